//! Checks a plan for contradictions before anything is sent.

use catamaran_ajp::PacketSize;
use thiserror::Error;

use super::{KeyOrder, Memcached, Pace, Plan, Protocol, Replay, Request, Stage, Table, Target};
use crate::prepare::Dynamic;
use crate::template::TemplateFault;

/// The reason why a plan cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PlanFault {
    /// The plan has no target.
    #[error("there is no target: at least one URL is needed")]
    NoTarget,
    /// A target has no requests.
    #[error("target {} has no request", target + 1)]
    NoRequest {
        /// The target's number, from 0; the message counts from 1.
        target: usize,
    },
    /// The plan has more targets than connections.
    #[error(
        "{targets} targets need as many connections at least, but there are {connections}; raise \
         the concurrency"
    )]
    TooFewConnections {
        /// The number of targets in the plan.
        targets: usize,
        /// The number of connections in the plan.
        connections: usize,
    },
    /// A replay is combined with something that it does not go with, or names a request that does not exist.
    #[error("a replay needs an open loop, one target that has its requests, and no stages")]
    Replay,
    /// The plan has no condition that ends the run.
    #[error("nothing ends the run: give a number of requests, a duration or stages")]
    Endless,
    /// The rate is not a number above zero.
    #[error("a rate must be a number of requests per second above zero")]
    Rate,
    /// A stage has no duration, or its level is negative or not a number.
    #[error("stage {stage} needs a duration above zero and a level of zero or more")]
    Stage {
        /// The stage's number, from 0.
        stage: usize,
    },
    /// A stage has more clients than the plan.
    #[error("stage {stage} wants {level} clients, the concurrency is {concurrency}")]
    StageLevel {
        /// The stage's number, from 0.
        stage: usize,
        /// The stage's level: its number of clients.
        level: u64,
        /// The number of clients in the plan.
        concurrency: usize,
    },
    /// Pipelining needs kept connections, which the plan does not have.
    #[error("pipelining needs connections that are kept")]
    PipelineWithoutKeepAlive,
    /// HTTP/2 needs kept connections, which the plan does not have.
    #[error("HTTP/2 needs connections that are kept")]
    Http2WithoutKeepAlive,
    /// AJP13 has no pipelining, but the plan uses it.
    #[error("AJP13 has no pipelining: one request at a time")]
    PipelineOverAjp,
    /// AJP13 does not run over TLS, but the plan has both.
    #[error("AJP13 has no TLS")]
    TlsUnderAjp,
    /// The packet size is not one that AJP13 allows.
    #[error("an AJP13 packet has 8192 to 65536 bytes, not {bytes}")]
    PacketSize {
        /// The size in the plan, in bytes.
        bytes: usize,
    },
    /// The TLS options are contradictory or not supported; the text says why.
    #[error("{0}")]
    Tls(String),
    /// memcached needs kept connections, which only a limit of requests may end.
    #[error("memcached needs connections that are kept")]
    MemcachedWithoutKeepAlive,
    /// The plan has memcached over TLS, which does not exist.
    #[error("memcached is spoken without TLS")]
    TlsUnderMemcached,
    /// Operations on memcached are mixed with other requests, spread over several servers, or taken from a log.
    #[error("a run with memcached has one target, and neither replay nor cookies")]
    MemcachedBeside,
    /// A value is too short for its key, or too long for any server.
    #[error(
        "a value has {min} bytes at least, for its key and checksum, and 1 GiB at most, not {bytes}"
    )]
    ValueSize {
        /// The size in the plan, in bytes.
        bytes: usize,
        /// The smallest size allowed, in bytes.
        min: usize,
    },
    /// The exponent of Zipf's law is out of range.
    #[error("the exponent of Zipf's law is above 0 and at most {EXPONENT_MAX}")]
    Exponent,
    /// A request cannot be sent.
    #[error("request {} of target {}: {what}", request + 1, target + 1)]
    Request {
        /// The target's number, from 0; the message counts from 1.
        target: usize,
        /// The request's number in the target, from 0; the message counts from 1.
        request: usize,
        /// What is wrong with the request, in words.
        what: String,
    },
    /// The plan has a table, but no request uses a column of it.
    #[error(
        "no request takes a value from the table; write {{{{csv COLUMN}}}} where one belongs: its \
         columns are {columns}"
    )]
    UnusedTable {
        /// The names of the table's columns.
        columns: String,
    },
}

impl Plan {
    /// Checks the plan, and returns the first fault. [`start`](crate::start) calls this.
    ///
    /// # Errors
    /// The plan is contradictory; [`PlanFault`] says why. Faults in TLS options and in requests'
    /// encoding are found by `start` only.
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

    /// A replay needs an open loop, one target, and only requests that this target has.
    fn check_replay(&self, replay: &Replay) -> Result<(), PlanFault> {
        let is_open = matches!(self.pace, Pace::Open { .. });
        let requests = self.targets[0].requests.len();
        let mut arrivals = replay.arrivals.iter();
        let has_all_requests = arrivals.all(|arrival| (arrival.request as usize) < requests);
        // A replay has a schedule and an end of its own.
        let is_unlimited = self.stages.is_empty() && self.stop.requests.is_none();
        if is_open && has_all_requests && is_unlimited && self.targets.len() == 1 {
            Ok(())
        } else {
            Err(PlanFault::Replay)
        }
    }

    /// A stage lasts some time, and asks for no more clients than there are connections.
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

    /// Checks one target. `number` is its place in the plan, for the message.
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
        if let Protocol::Memcached(options) = &target.endpoint.protocol {
            self.check_memcached(target, options)?;
        }
        for (index, request) in target.requests.iter().enumerate() {
            if let Err(what) = request.check(self.table.as_deref()) {
                return Err(PlanFault::Request {
                    target: number,
                    request: index,
                    what,
                });
            }
        }
        Ok(())
    }

    /// Checks the options of memcached, and that the plan asks for nothing that its client cannot do.
    fn check_memcached(&self, target: &Target, options: &Memcached) -> Result<(), PlanFault> {
        if !self.connections.keep_alive {
            return Err(PlanFault::MemcachedWithoutKeepAlive);
        }
        if target.endpoint.tls.is_some() {
            return Err(PlanFault::TlsUnderMemcached);
        }
        if self.targets.len() > 1 || self.replay.is_some() || self.cookie_jar {
            return Err(PlanFault::MemcachedBeside);
        }
        let (bytes, min) = (options.value_bytes, options.value_min());
        if !(min..=VALUE_BYTES_MAX).contains(&bytes) {
            return Err(PlanFault::ValueSize { bytes, min });
        }
        match options.order {
            KeyOrder::Zipf(exponent) if !(exponent > 0.0 && exponent <= EXPONENT_MAX) => {
                Err(PlanFault::Exponent)
            }
            _ => Ok(()),
        }
    }
}

impl Request {
    /// Whether the request has placeholders, so that it differs each time it is sent.
    pub fn varies(&self) -> bool {
        if !self.has_placeholders {
            return false;
        }
        match Dynamic::compile(self, None) {
            Ok(dynamic) => dynamic.varies(),
            // A request that needs a table, or does not compile, has placeholders too.
            Err(_) => true,
        }
    }

    fn uses_table(&self) -> bool {
        self.has_placeholders
            && matches!(Dynamic::compile(self, None), Err(TemplateFault::NoTable(_)))
    }

    /// Checks whether the request can be sent, with its placeholders filled in from `table`.
    ///
    /// # Errors
    /// The request cannot be sent; the text says why.
    pub fn check(&self, table: Option<&Table>) -> Result<(), String> {
        if !self.has_placeholders {
            return check_request(self).map_err(str::to_owned);
        }
        let dynamic = Dynamic::compile(self, table).map_err(|fault| fault.to_string())?;
        check_request(&dynamic.longest(table)).map_err(str::to_owned)
    }
}

/// Refuses a request that a server would read as a different one, such as one with a line break in
/// a field. Other invalid requests are allowed: a tool that tests servers must be able to send
/// them.
fn check_request(request: &Request) -> Result<(), &'static str> {
    let ends_word = |byte: u8| byte <= b' ' || byte == 0x7F;
    if request.method.is_empty() || request.method.bytes().any(ends_word) {
        return Err("the method is empty or has white space or control characters");
    }
    if request.target.is_empty() || request.target.bytes().any(ends_word) {
        return Err("the target is empty or has white space or control characters: encode them");
    }
    for header in &request.headers {
        let ends_name = |byte: u8| ends_word(byte) || byte == b':';
        if header.name.is_empty() || header.name.bytes().any(ends_name) {
            return Err("a field name is empty, or has a colon, white space or control characters");
        }
        let ends_line = |byte: &u8| matches!(byte, b'\r' | b'\n' | 0);
        if header.value.iter().any(ends_line) {
            return Err("a field value has a line break or NUL");
        }
    }
    Ok(())
}

/// The largest value in bytes: the largest item for which memcached can be configured (`-I`).
const VALUE_BYTES_MAX: usize = 1 << 30;

/// The largest exponent of Zipf's law: with it nearly all requests are for the first key.
const EXPONENT_MAX: f64 = 10.0;
