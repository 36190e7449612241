//! What is measured: the names by which files call measures, and what is known of each.
//!
//! A measure is a record in `records`: what it is called, what it is, and how it is read from what a run has shown.
//! A new one takes a record there and a row in docs/lab.md, and is then a column of every report. A figure that no
//! run has yet is read by `gauge`, counted in `drive/counters` or sampled in `drive`, and handed over in `evidence`.

mod evidence;
mod records;

use std::fmt;

use serde::{Deserialize, Serialize};

use self::evidence::MeasureValues;
pub(crate) use self::evidence::{AbFigures, CallCounts, Evidence};
use self::records::MEASURES;

/// The sort of figure that a measure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasureKind {
    /// A number per second.
    Rate,
    /// A length of time: of a request, of a silence, of CPU time.
    Time,
    /// A count or a size.
    Count,
    /// A part of something, or a ratio.
    Share,
}

/// The disturbance that spoils a measure: it decides which gates forbid a claim on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoiler {
    /// Whatever changes when things happen: a load that was the limit, other work on the machine.
    Times,
    /// Other work on the machine, which takes cores and caches.
    Machine,
    /// Nothing that gates look at: counts and sizes, which a busy machine does not change.
    Nothing,
}

/// Which change of a measure is one for the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More of it.
    More,
    /// Less of it.
    Less,
}

/// The table of a report in which a measure stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReportTable {
    /// Throughput and latency.
    Times,
    /// CPU, system calls, memory.
    Costs,
    /// Bytes, connections and ports between servers.
    Hops,
}

/// The restriction that may follow a measure's name after a dot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// Nothing: it is of the whole run.
    Run,
    /// All servers, or one: `cpu`, `cpu.front`.
    Servers,
    /// One server: `heap.app`.
    Server,
    /// One hop, or all behind the server in front: `bytes.front.http`, `bytes.upstream`.
    Hop,
}

/// All that is known of a measure.
#[derive(Debug)]
pub struct MeasureRecord {
    /// The name in files, without a server and a share.
    pub name: &'static str,
    /// Its unit; empty of a ratio.
    pub unit: &'static str,
    /// What a level does with it, and what it is: "takes" 0.8 times the "CPU" of another. CPU, calls, bytes, connections
    /// and ports are those of a request.
    pub words: [&'static str; 2],
    /// The sort of figure.
    pub kind: MeasureKind,
    /// The disturbance that spoils it.
    pub spoiler: Spoiler,
    /// Which change is one for the better.
    pub better: Better,
    /// The table of reports that has it.
    pub table: ReportTable,
    /// Whether it is also measured at shares of the capacity, as `p99@0.5`.
    pub has_shares: bool,
    /// Whether it is a count that is 0 of most runs, so that its ratios say little.
    pub is_mostly_zero: bool,
    /// Whether it is of a server that was just started, so that a server that is not warm is what it is about.
    pub is_cold: bool,
    scope: Scope,
    read: fn(&Evidence<'_>) -> MeasureValues,
}

/// A measure as a file names it, such as `cpu`, `cpu.front`, `bytes.front.http` or `p99@0.5`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Measure {
    name: String,
    record: &'static MeasureRecord,
}

impl Measure {
    /// Reads a name.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(name: &str) -> Result<Self, String> {
        let (plain, share) = apart(name);
        let (base, of) = plain
            .split_once('.')
            .map_or((plain, None), |(base, of)| (base, Some(of)));
        let known = |name: &str| MEASURES.iter().find(|record| record.name == name);
        // Some have a dot in their name.
        let (record, of) = match known(plain) {
            Some(whole) => (Some(whole), None),
            None => (known(base), of),
        };
        let has_shares = record.is_some_and(|record| record.has_shares);
        if share.is_some_and(|share| !has_shares || share.parse::<f64>().is_err()) {
            let shared = MEASURES.iter().filter(|record| record.has_shares);
            let shared: Vec<&str> = shared.map(|record| record.name).collect();
            return Err(format!(
                "`{name}`: only {} have a share, such as p99@0.5",
                shared.join(", ")
            ));
        }
        if base == "max" {
            return Err("a maximum is one request of all: no claim is made on it".to_owned());
        }
        match record.filter(|record| record.scope.has(of)) {
            Some(record) => Ok(Self {
                name: name.to_owned(),
                record,
            }),
            None => Err(format!("no measure `{name}`; there are {}", names())),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its record, which does not depend on the server and the share.
    #[must_use]
    pub fn record(&self) -> &'static MeasureRecord {
        self.record
    }

    /// Its place among all measures, as reports have them.
    #[must_use]
    pub(crate) fn rank(&self) -> (ReportTable, usize) {
        let place = MEASURES.iter().position(|it| it.name == self.base());
        (self.record.table, place.unwrap_or(MEASURES.len()))
    }

    /// The name without the server: `cpu` of `cpu.front`.
    #[must_use]
    pub fn base(&self) -> &'static str {
        self.record.name
    }

    /// The server, or server and port, that it is restricted to.
    #[must_use]
    pub fn of(&self) -> Option<&str> {
        let (plain, _) = apart(&self.name);
        plain.strip_prefix(self.record.name)?.strip_prefix('.')
    }

    /// Whether the measure of this name is measured at shares of the capacity, too.
    pub(crate) fn has_shares(name: &str) -> bool {
        Self::parse(name).is_ok_and(|measure| measure.record.has_shares)
    }

    /// Whether it is the largest value of a run, of which another run has another.
    #[must_use]
    pub fn is_maximum(&self) -> bool {
        self.name().ends_with(".longest")
    }

    /// Its unit.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        self.record.unit
    }

    /// See [`MeasureRecord::words`].
    #[must_use]
    pub fn words(&self) -> [&'static str; 2] {
        self.record.words
    }

    /// The measure of all servers, if this is one of a server.
    #[must_use]
    pub(crate) fn of_all(self) -> Self {
        let share = apart(&self.name).1.map(|share| format!("@{share}"));
        match self.record.scope {
            Scope::Servers => Self {
                name: format!("{}{}", self.record.name, share.unwrap_or_default()),
                record: self.record,
            },
            Scope::Run | Scope::Server | Scope::Hop => self,
        }
    }

    /// Where it is measured, and at which share of the capacity, each with a space in front; empty if it is of
    /// all servers at any.
    #[must_use]
    pub fn place(&self) -> String {
        let share = apart(&self.name).1;
        let share = share.and_then(|share| share.parse::<f64>().ok());
        let share = share.map(|share| format!(" at {:.0} % of the capacity", share * 100.0));
        let of = match self.of() {
            Some(UPSTREAM) => " to the application".to_owned(),
            Some(hop) if hop.contains('.') => format!(" on the hop {hop}"),
            Some(server) => format!(" on the server {server}"),
            None => String::new(),
        };
        of + &share.unwrap_or_default()
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
    /// Whether a measure may be restricted to this.
    fn has(self, of: Option<&str>) -> bool {
        match self {
            Self::Run => of.is_none(),
            Self::Servers => of != Some(""),
            Self::Server => of.is_some_and(|of| !of.is_empty()),
            Self::Hop => of.is_some_and(|of| of == UPSTREAM || of.contains('.')),
        }
    }
}

/// All measures, as a message lists them when a file names an unknown one.
fn names() -> String {
    let each = MEASURES.iter().map(|record| match record.scope {
        Scope::Run | Scope::Servers => record.name.to_owned(),
        Scope::Server => format!("{}.SERVER", record.name),
        Scope::Hop => format!("{0}.SERVER.PORT, {0}.{UPSTREAM}", record.name),
    });
    let each: Vec<String> = each.collect();
    let divided = MEASURES.iter().filter(|it| it.scope == Scope::Servers);
    let divided: Vec<&str> = divided.map(|record| record.name).collect();
    format!(
        "{}; {} also of one server, such as cpu.front; p99@0.5 at half the capacity",
        each.join(", "),
        divided.join(", ")
    )
}

/// A name, and the share of the capacity behind its `@`.
fn apart(name: &str) -> (&str, Option<&str>) {
    name.split_once('@')
        .map_or((name, None), |(plain, share)| (plain, Some(share)))
}

/// How many requests the server in front could answer with a second of CPU time: 1 / CPU time of a request. It is
/// measured where that server has a declared part of a core.
pub(crate) const CAPACITY: &str = "capacity";
/// Answers a second.
pub(crate) const THROUGHPUT: &str = "throughput";
/// Requests without a good answer.
pub(crate) const FAILED: &str = "failed";
/// Failed requests, and those that were answered with another status than 2xx.
pub(crate) const ERRORS: &str = "errors";
/// Spans without an answer, and the longest of them.
pub(crate) const SILENCES: &str = "silences";
pub(crate) const LONGEST_SILENCE: &str = "longest_silence";
/// The memory that servers have allocated.
pub(crate) const MEMORY: &str = "memory";
/// What BPF counts: system calls, and bytes of hops.
pub(crate) const SYSCALLS: &str = "syscalls";
pub(crate) const BYTES: &str = "bytes";

/// The hops between servers, as the name of a measure has them.
pub(crate) const UPSTREAM: &str = "upstream";

#[cfg(test)]
mod tests;
