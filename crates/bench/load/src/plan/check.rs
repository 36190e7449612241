//! Contradictions in a plan, found before anything is sent.

use catamaran_ajp::PacketSize;
use thiserror::Error;

use super::{KeyOrder, Memcached, Pace, Plan, Protocol, Replay, Request, Stage, Table, Target};
use crate::prepare::Dynamic;
use crate::template::TemplateFault;

/// Why a plan cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PlanFault {
    /// No target.
    #[error("there is no target: at least one URL is needed")]
    NoTarget,
    /// A target without requests.
    #[error("target {} has no request", target + 1)]
    NoRequest {
        /// Its number, from 0; the message counts from 1.
        target: usize,
    },
    /// More targets than connections.
    #[error(
        "{targets} targets need as many connections at least, but there are {connections}; raise \
         the concurrency"
    )]
    TooFewConnections {
        /// Targets in the plan.
        targets: usize,
        /// Connections in the plan.
        connections: usize,
    },
    /// A replay with what it does not go with, or of a request that is not there.
    #[error("a replay needs an open loop, one target that has its requests, and no stages")]
    Replay,
    /// Nothing ends the run.
    #[error("nothing ends the run: give a number of requests, a duration or stages")]
    Endless,
    /// A rate that is no number above zero.
    #[error("a rate must be a number of requests per second above zero")]
    Rate,
    /// A stage without duration, or a level that is negative or no number.
    #[error("stage {stage} needs a duration above zero and a level of zero or more")]
    Stage {
        /// Its number, from 0.
        stage: usize,
    },
    /// A stage with more clients than the plan has.
    #[error("stage {stage} wants {level} clients, the concurrency is {concurrency}")]
    StageLevel {
        /// Its number, from 0.
        stage: usize,
        /// The level wanted.
        level: u64,
        /// The clients there are.
        concurrency: usize,
    },
    /// Pipelining without kept connections.
    #[error("pipelining needs connections that are kept")]
    PipelineWithoutKeepAlive,
    /// HTTP/2 without kept connections.
    #[error("HTTP/2 needs connections that are kept")]
    Http2WithoutKeepAlive,
    /// Pipelining over AJP13.
    #[error("AJP13 has no pipelining: one request at a time")]
    PipelineOverAjp,
    /// TLS under AJP13.
    #[error("AJP13 has no TLS")]
    TlsUnderAjp,
    /// A packet size outside AJP13's.
    #[error("an AJP13 packet has 8192 to 65536 bytes, not {bytes}")]
    PacketSize {
        /// The size asked for.
        bytes: usize,
    },
    /// TLS options that cannot be.
    #[error("{0}")]
    Tls(String),
    /// memcached without kept connections, which only a limit of requests may end.
    #[error("memcached needs connections that are kept")]
    MemcachedWithoutKeepAlive,
    /// TLS under memcached's protocols.
    #[error("memcached is spoken without TLS")]
    TlsUnderMemcached,
    /// Operations on memcached beside other requests, on several servers, or from a log.
    #[error("a run with memcached has one target, and neither replay nor cookies")]
    MemcachedBeside,
    /// A value that has no room for its key, or that no server takes.
    #[error(
        "a value has {min} bytes at least, for its key and checksum, and 1 GiB at most, not {bytes}"
    )]
    ValueSize {
        /// The size asked for.
        bytes: usize,
        /// The smallest one.
        min: usize,
    },
    /// An exponent of Zipf's law that makes no sense.
    #[error("the exponent of Zipf's law is above 0 and at most {EXPONENT_MAX}")]
    Exponent,
    /// A request that cannot be written.
    #[error("request {} of target {}: {what}", request + 1, target + 1)]
    Request {
        /// The target's number, from 0; the message counts from 1.
        target: usize,
        /// The request's number in it, from 0; the message counts from 1.
        request: usize,
        /// The fault, in words.
        what: String,
    },
    /// A table of which no request uses a column.
    #[error(
        "no request takes a value from the table; write {{{{csv COLUMN}}}} where one belongs: its \
         columns are {columns}"
    )]
    UnusedTable {
        /// The names of its columns.
        columns: String,
    },
}

impl Plan {
    /// Looks for what makes no sense, and names the first of it. [`start`](crate::start) calls
    /// this.
    ///
    /// # Errors
    /// [`PlanFault`]. Faults in TLS options and in requests' encoding are found by `start` only.
    pub fn check(&self) -> Result<(), PlanFault> {
        let connections = self.pace.connections().get();
        match self.targets.len() {
            0 => return Err(PlanFault::NoTarget),
            targets if targets > connections => {
                return Err(PlanFault::TooFewConnections {
                    targets,
                    connections,
                });
            }
            _ => {}
        }
        if let Pace::Open { per_second, .. } = self.pace
            && !(per_second.is_finite() && per_second > 0.0)
        {
            return Err(PlanFault::Rate);
        }
        let ends = self.stop.requests.is_some() || self.stop.duration.is_some();
        if let Some(replay) = &self.replay {
            self.check_replay(replay)?;
        } else if !ends && self.stages.is_empty() {
            return Err(PlanFault::Endless);
        }
        if self.connections.pipeline.get() > 1 && !self.connections.keep_alive {
            return Err(PlanFault::PipelineWithoutKeepAlive);
        }
        for (number, stage) in self.stages.iter().enumerate() {
            self.check_stage(number, stage)?;
        }
        for (number, target) in self.targets.iter().enumerate() {
            self.check_target(number, target)?;
        }
        match &self.table {
            Some(table) if !self.uses_table() => Err(PlanFault::UnusedTable {
                columns: table.columns.join(", "),
            }),
            _ => Ok(()),
        }
    }

    fn uses_table(&self) -> bool {
        let mut requests = self.targets.iter().flat_map(|target| &target.requests);
        requests.any(Request::uses_table)
    }

    fn check_replay(&self, replay: &Replay) -> Result<(), PlanFault> {
        let is_open = matches!(self.pace, Pace::Open { .. });
        let requests = self.targets[0].requests.len();
        let mut arrivals = replay.arrivals.iter();
        let has_all = arrivals.all(|arrival| (arrival.request as usize) < requests);
        let is_alone = self.stages.is_empty() && self.stop.requests.is_none();
        if is_open && has_all && is_alone && self.targets.len() == 1 {
            Ok(())
        } else {
            Err(PlanFault::Replay)
        }
    }

    fn check_stage(&self, number: usize, stage: &Stage) -> Result<(), PlanFault> {
        let level_is_sane = stage.level.is_finite() && stage.level >= 0.0;
        if stage.duration.is_zero() || !level_is_sane {
            return Err(PlanFault::Stage { stage: number });
        }
        if let Pace::Closed { concurrency, .. } = self.pace
            && stage.level.round() > concurrency.get() as f64
        {
            return Err(PlanFault::StageLevel {
                stage: number,
                level: stage.level.round() as u64,
                concurrency: concurrency.get(),
            });
        }
        Ok(())
    }

    fn check_target(&self, number: usize, target: &Target) -> Result<(), PlanFault> {
        if target.requests.is_empty() {
            return Err(PlanFault::NoRequest { target: number });
        }
        if let Protocol::Ajp(ajp) = &target.endpoint.protocol {
            if self.connections.pipeline.get() > 1 {
                return Err(PlanFault::PipelineOverAjp);
            }
            if target.endpoint.tls.is_some() {
                return Err(PlanFault::TlsUnderAjp);
            }
            let bytes = ajp.packet_bytes;
            PacketSize::new(bytes).map_err(|_| PlanFault::PacketSize { bytes })?;
        }
        if target.endpoint.protocol == Protocol::Http2 && !self.connections.keep_alive {
            return Err(PlanFault::Http2WithoutKeepAlive);
        }
        if let Protocol::Memcached(asked) = &target.endpoint.protocol {
            self.check_memcached(target, asked)?;
        }
        for (index, request) in target.requests.iter().enumerate() {
            let checked = request.check(self.table.as_deref());
            checked.map_err(|what| PlanFault::Request {
                target: number,
                request: index,
                what,
            })?;
        }
        Ok(())
    }

    fn check_memcached(&self, target: &Target, asked: &Memcached) -> Result<(), PlanFault> {
        if !self.connections.keep_alive {
            return Err(PlanFault::MemcachedWithoutKeepAlive);
        }
        if target.endpoint.tls.is_some() {
            return Err(PlanFault::TlsUnderMemcached);
        }
        if self.targets.len() > 1 || self.replay.is_some() || self.cookie_jar {
            return Err(PlanFault::MemcachedBeside);
        }
        let (bytes, min) = (asked.value_bytes, asked.value_min());
        if !(min..=VALUE_BYTES_MAX).contains(&bytes) {
            return Err(PlanFault::ValueSize { bytes, min });
        }
        match asked.order {
            KeyOrder::Zipf(exponent) if !(exponent > 0.0 && exponent <= EXPONENT_MAX) => {
                Err(PlanFault::Exponent)
            }
            _ => Ok(()),
        }
    }
}

impl Request {
    /// Whether it has placeholders that are filled in.
    pub fn varies(&self) -> bool {
        let compiled = self.has_placeholders.then(|| Dynamic::compile(self, None));
        // What needs a table, or cannot be compiled, is not as it stands either.
        compiled.is_some_and(|compiled| compiled.map_or(true, |dynamic| dynamic.varies()))
    }

    fn uses_table(&self) -> bool {
        let without = self.has_placeholders.then(|| Dynamic::compile(self, None));
        matches!(without, Some(Err(TemplateFault::NoTable(_))))
    }

    /// Looks for what cannot be sent, once placeholders are filled in from `table`.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn check(&self, table: Option<&Table>) -> Result<(), String> {
        if !self.has_placeholders {
            return check_request(self).map_err(str::to_owned);
        }
        let dynamic = Dynamic::compile(self, table).map_err(|fault| fault.to_string())?;
        check_request(&dynamic.longest(table)).map_err(str::to_owned)
    }
}

/// Refuses what would be read as another request than the one meant. Whatever else is odd is sent:
/// a tool that tests servers must be able to.
fn check_request(request: &Request) -> Result<(), &'static str> {
    let is_cut = |byte: &u8| *byte <= b' ' || *byte == 0x7F;
    let breaks_line = |byte: &u8| matches!(byte, b'\r' | b'\n' | 0);
    if request.method.is_empty() || request.method.bytes().any(|byte| is_cut(&byte)) {
        return Err("the method is empty or has white space or control characters");
    }
    if request.target.is_empty() || request.target.bytes().any(|byte| is_cut(&byte)) {
        return Err("the target is empty or has white space or control characters: encode them");
    }
    for header in &request.headers {
        let is_bad = |byte: u8| is_cut(&byte) || byte == b':';
        if header.name.is_empty() || header.name.bytes().any(is_bad) {
            return Err("a field name is empty, or has a colon, white space or control characters");
        }
        if header.value.iter().any(breaks_line) {
            return Err("a field value has a line break or NUL");
        }
    }
    Ok(())
}

/// The largest item that memcached can be set up for (`-I`).
const VALUE_BYTES_MAX: usize = 1 << 30;

/// With it nearly all requests are for the first key.
const EXPONENT_MAX: f64 = 10.0;
