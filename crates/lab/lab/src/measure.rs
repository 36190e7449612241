//! Measures: the figures of a run, and the names by which files refer to them.
//!
//! A measure is a record in `records`: its name, its meaning, and how it is read from a run's
//! evidence. A new one needs a record there and a row in docs/lab.md; then it is a column of every
//! report. A figure that runs do not have yet must first be read by `gauge`, counted in
//! `drive/counters` or sampled in `drive`, and added to `evidence`.

mod evidence;
mod records;

use std::fmt;

use serde::{Deserialize, Serialize};

use self::evidence::MeasureValues;
pub(crate) use self::evidence::{AbFigures, CallCounts, Evidence};
use self::records::MEASURES;

/// The kind of figure that a measure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasureKind {
    /// A number per second, such as of responses.
    Rate,
    /// A length of time, such as of a request, of a silence, or of CPU time.
    Time,
    /// A count or a size.
    Count,
    /// A part of a whole, or a ratio.
    Share,
}

/// The disturbances that spoil a measure; they decide which gates forbid a claim on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoiler {
    /// Disturbances of timing: a load that was itself the limit, or other work on the machine.
    Times,
    /// Other work on the machine, which takes cores and caches.
    Machine,
    /// No disturbance that gates check: counts and sizes do not depend on how busy the machine is.
    Nothing,
}

/// The direction in which a change of a measure is an improvement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// A larger value is better.
    More,
    /// A smaller value is better.
    Less,
}

/// The table of a report that has a measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReportTable {
    /// The table of throughput and latency.
    Times,
    /// The table of CPU time, system calls and memory.
    Costs,
    /// The table of bytes, connections and ports between servers.
    Hops,
}

/// The part of a tier to which a measure can be restricted, after a dot in its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// No part: it is of the whole run.
    Run,
    /// All servers, or one if it is given: `cpu`, `cpu.front`.
    Servers,
    /// One server, which must be given: `heap.app`.
    Server,
    /// One hop, or all hops behind the server in front: `bytes.front.http`, `bytes.upstream`.
    Hop,
}

/// The definition of a measure.
#[derive(Debug)]
pub struct MeasureRecord {
    /// The name in files, without the server and the share.
    pub name: &'static str,
    /// The unit; empty for a ratio.
    pub unit: &'static str,
    /// The verb and the noun for sentences: a level "takes" 0.8 times the "CPU" of another. CPU,
    /// calls, bytes, connections and ports are per request.
    pub words: [&'static str; 2],
    /// The kind of figure, such as a rate or a time.
    pub kind: MeasureKind,
    /// The disturbance that spoils the measure.
    pub spoiler: Spoiler,
    /// The direction in which a change of the measure is an improvement.
    pub better: Better,
    /// The table of reports that has the measure.
    pub table: ReportTable,
    /// Whether the measure is also taken at shares of the capacity, such as `p99@0.5`.
    pub has_shares: bool,
    /// Whether the measure is a count that is 0 in most runs, so that its ratios say little.
    pub is_mostly_zero: bool,
    /// The measure of the servers that is claimed instead, where this one is of the whole machine.
    pub of_servers: Option<&'static str>,
    /// Whether the measure is about servers just started, which need not be warm.
    pub is_cold: bool,
    scope: Scope,
    read: fn(&Evidence<'_>) -> MeasureValues,
}

/// A measure as a file refers to it, such as `cpu`, `cpu.front`, `bytes.front.http` or `p99@0.5`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Measure {
    name: String,
    record: &'static MeasureRecord,
}

impl Measure {
    /// Parses the name of a measure.
    ///
    /// # Errors
    /// There is no such measure, or it cannot be restricted so; the text says which.
    pub fn parse(name: &str) -> Result<Self, String> {
        let (plain, share) = split_share(name);
        let (base, part) = match plain.split_once('.') {
            Some((base, part)) => (base, Some(part)),
            None => (plain, None),
        };
        let record_of = |name: &str| MEASURES.iter().find(|record| record.name == name);
        // Some names contain a dot.
        let (record, part) = match record_of(plain) {
            Some(record) => (Some(record), None),
            None => (record_of(base), part),
        };
        let has_shares = record.is_some_and(|record| record.has_shares);
        if share.is_some_and(|share| !has_shares || share.parse::<f64>().is_err()) {
            let with_shares = MEASURES.iter().filter(|record| record.has_shares);
            let names: Vec<&str> = with_shares.map(|record| record.name).collect();
            return Err(format!(
                "`{name}`: only {} have a share, such as p99@0.5",
                names.join(", ")
            ));
        }
        if base == "max" {
            return Err("a maximum is one request of all: no claim is made on it".to_owned());
        }
        match record {
            Some(record) if record.scope.has(part) => Ok(Self {
                name: name.to_owned(),
                record,
            }),
            _ => Err(format!("no measure `{name}`; there are {}", names())),
        }
    }

    /// The measure's name as in files.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The measure's definition, which is the same for all servers and shares.
    #[must_use]
    pub fn record(&self) -> &'static MeasureRecord {
        self.record
    }

    /// The measure's place in the order of reports.
    #[must_use]
    pub(crate) fn rank(&self) -> (ReportTable, usize) {
        let place = MEASURES.iter().position(|it| it.name == self.base());
        (self.record.table, place.unwrap_or(MEASURES.len()))
    }

    /// The measure's name without the server: `cpu` for `cpu.front`.
    #[must_use]
    pub fn base(&self) -> &'static str {
        self.record.name
    }

    /// The server, or server and port, to which it is restricted; `None`: it is of all.
    #[must_use]
    pub fn of(&self) -> Option<&str> {
        let (plain, _) = split_share(&self.name);
        plain.strip_prefix(self.record.name)?.strip_prefix('.')
    }

    /// Whether the measure called `name` is also measured at shares of the capacity.
    pub(crate) fn has_shares(name: &str) -> bool {
        Self::parse(name).is_ok_and(|measure| measure.record.has_shares)
    }

    /// The unit; empty for a ratio.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        self.record.unit
    }

    /// The verb and the noun for sentences about the measure: see [`MeasureRecord::words`].
    #[must_use]
    pub fn words(&self) -> [&'static str; 2] {
        self.record.words
    }

    /// The measure of all servers, if this is one of a single server.
    #[must_use]
    pub(crate) fn of_all(self) -> Self {
        if self.record.scope != Scope::Servers {
            return self;
        }
        let name = match split_share(&self.name).1 {
            Some(share) => format!("{}@{share}", self.record.name),
            None => self.record.name.to_owned(),
        };
        Self { name, ..self }
    }

    /// The words on where and at which share of the capacity it is measured, each after a space;
    /// empty if it is of all servers without a share.
    #[must_use]
    pub fn place(&self) -> String {
        let mut words = match self.of() {
            Some(UPSTREAM) => " to the application".to_owned(),
            Some(hop) if hop.contains('.') => format!(" on the hop {hop}"),
            Some(server) => format!(" on the server {server}"),
            None => String::new(),
        };
        let share = split_share(&self.name).1;
        if let Some(Ok(share)) = share.map(str::parse::<f64>) {
            words += &format!(" at {:.0} % of the capacity", share * 100.0);
        }
        words
    }
}

impl PartialEq for Measure {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Measure {}

impl TryFrom<String> for Measure {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::parse(&name)
    }
}

impl From<Measure> for String {
    fn from(measure: Measure) -> Self {
        measure.name
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Scope {
    /// Whether a measure of this scope may be restricted to `part`; `None`: without a restriction.
    fn has(self, part: Option<&str>) -> bool {
        match self {
            Self::Run => part.is_none(),
            Self::Servers => part != Some(""),
            Self::Server => part.is_some_and(|server| !server.is_empty()),
            Self::Hop => part.is_some_and(|hop| hop == UPSTREAM || hop.contains('.')),
        }
    }
}

/// The names of all measures, for the message on an unknown one.
fn names() -> String {
    let mut forms = Vec::new();
    let mut of_one_server = Vec::new();
    for MeasureRecord { name, scope, .. } in MEASURES {
        forms.push(match scope {
            Scope::Run | Scope::Servers => (*name).to_owned(),
            Scope::Server => format!("{name}.SERVER"),
            Scope::Hop => format!("{name}.SERVER.PORT, {name}.{UPSTREAM}"),
        });
        if *scope == Scope::Servers {
            of_one_server.push(*name);
        }
    }
    format!(
        "{}; {} also of one server, such as cpu.front; p99@0.5 at half the capacity",
        forms.join(", "),
        of_one_server.join(", ")
    )
}

/// Splits a name at its `@`: the plain name, and the share of the capacity if there is one.
fn split_share(name: &str) -> (&str, Option<&str>) {
    match name.split_once('@') {
        Some((plain, share)) => (plain, Some(share)),
        None => (name, None),
    }
}

/// The number of requests that the server in front could answer with a second of CPU time: 1 / CPU
/// time per request. It is measured where that server has a declared part of a core.
pub(crate) const CAPACITY: &str = "capacity";
/// The CPU time per request: the primary measure where servers share a core.
pub(crate) const CPU: &str = "cpu";
/// The number of responses per second.
pub(crate) const THROUGHPUT: &str = "throughput";
/// The number of requests that failed or hung.
pub(crate) const FAILED: &str = "failed";
/// The number of requests that failed, or had a status other than 2xx.
pub(crate) const ERRORS: &str = "errors";
/// The number of spans without a response, and the length of the longest.
pub(crate) const SILENCES: &str = "silences";
pub(crate) const LONGEST_SILENCE: &str = "longest_silence";
/// The bytes of memory that servers have allocated.
pub(crate) const MEMORY: &str = "memory";
/// The measures that BPF counts: system calls, and bytes of hops.
pub(crate) const SYSCALLS: &str = "syscalls";
pub(crate) const BYTES: &str = "bytes";

/// The restriction of a measure to the hops behind the server in front.
pub(crate) const UPSTREAM: &str = "upstream";

#[cfg(test)]
mod tests;
