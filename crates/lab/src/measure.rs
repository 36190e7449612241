//! What is measured: names, units, and which gates touch it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Something that a run measures, by its name in files: `throughput`, `cpu`, `cpu.SERVER`, `p50`,
/// `p90`, `p99`, `memory`, `memory.SERVER`, `syscalls`, `syscalls.SERVER`, `bytes.SERVER.PORT`,
/// `bytes.upstream`, `variation`, `sockets`, `time_wait`, `capacity`, `silences`, `longest_silence`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Measure(String);

/// Which kind of conclusion a measure serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Throughput and latency.
    Time,
    /// CPU time.
    Cpu,
    /// Counts and sizes, which a busy machine does not change.
    Count,
}

impl Measure {
    /// Reads a name.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(name: &str) -> Result<Self, String> {
        let (plain, share) = apart(name);
        let (base, rest) = plain
            .split_once('.')
            .map_or((plain, None), |(base, rest)| (base, Some(rest)));
        let has_share = SHARED.contains(&base);
        if share.is_some_and(|share| !has_share || share.parse::<f64>().is_err()) {
            return Err(format!(
                "`{name}`: only {} have a share, such as p99@0.5",
                SHARED.join(", ")
            ));
        }
        let fits = match base {
            "throughput" | "p50" | "p90" | "p99" | "variation" | "failed" | "errors" | "first"
            | "acted" | "sockets" | "time_wait" | "silences" | "longest_silence" | CAPACITY => {
                rest.is_none()
            }
            "cpu" | "memory" | "syscalls" | "held" => rest != Some(""),
            "heap" | "collecting" => rest.is_some_and(|rest| !rest.is_empty()),
            "free" | "disk" => rest.is_none(),
            "ab1" | "ab2" | "ab" => rest.is_some_and(|rest| [RATE, LONGEST].contains(&rest)),
            "bytes" => rest.is_some_and(|rest| rest == UPSTREAM || rest.contains('.')),
            "max" => {
                return Err("a maximum is one request of all: no claim is made on it".to_owned());
            }
            _ => false,
        };
        if fits {
            Ok(Self(name.to_owned()))
        } else {
            Err(format!("no measure `{name}`; there are {ALL}"))
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }

    /// What it is without the server: `cpu` of `cpu.front`.
    #[must_use]
    pub fn base(&self) -> &str {
        let (plain, _) = apart(&self.0);
        plain.split('.').next().unwrap_or_default()
    }

    /// The server, or server and port, that it is restricted to.
    #[must_use]
    pub fn of(&self) -> Option<&str> {
        apart(&self.0).0.split_once('.').map(|(_, of)| of)
    }

    /// Which kind of conclusion it serves.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self.base() {
            "throughput" | "p50" | "p90" | "p99" | "variation" | "first" | "silences"
            | "longest_silence" | "ab1" | "ab2" | "ab" => Kind::Time,
            // Of the whole machine: other processes spoil them as they spoil CPU time.
            "free" | "disk" => Kind::Cpu,
            "cpu" | "collecting" | CAPACITY => Kind::Cpu,
            _ => Kind::Count,
        }
    }

    /// Its unit.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        match self.base() {
            "throughput" => "req/s",
            CAPACITY => "req/s per core",
            "ab1" | "ab2" | "ab" if self.of() == Some(RATE) => "req/s",
            "cpu" => "µs/req",
            "disk" => "transfers/s",
            "memory" | "heap" | "free" => "MiB",
            "held" => "B/client",
            "collecting" => "%",
            "failed" | "errors" => "requests",
            "first" => "req/s",
            "acted" => "times",
            "silences" => "spans",
            "sockets" | "time_wait" => "per req",
            "syscalls" => "calls/req",
            "bytes" => "B/req",
            "variation" => "",
            _ => "ms",
        }
    }

    /// What a level does with it, and what it is: "takes" 0.8 times the "CPU" of another. CPU, calls, bytes,
    /// connections and ports are those of a request.
    #[must_use]
    pub fn words(&self) -> [&'static str; 2] {
        match self.base() {
            "throughput" => ["has", "throughput"],
            CAPACITY => ["has", "capacity per core"],
            "cpu" => ["takes", "CPU"],
            "memory" => ["uses", "memory"],
            "syscalls" => ["makes", "system calls"],
            "bytes" => ["moves", "bytes"],
            "variation" => ["has", "variation of throughput"],
            "held" => ["uses", "memory per client beside the load"],
            "heap" => ["uses", "heap"],
            "collecting" => ["spends", "garbage collection time"],
            "failed" => ["has", "failed requests"],
            "errors" => ["has", "requests without a 2xx"],
            "first" => ["has", "throughput in the first second"],
            "acted" => ["has", "actions"],
            "free" => ["leaves", "free memory"],
            "disk" => ["makes", "transfers of disks"],
            "ab1" => ["has", self.of_ab(FIRST)],
            "ab2" => ["has", self.of_ab(SECOND)],
            "ab" => ["has", self.of_ab(SETTLED)],
            "sockets" => ["opens", "connections"],
            "time_wait" => ["leaves", "ports in TIME_WAIT"],
            "silences" => ["has", "spans without an answer"],
            "longest_silence" => ["has", "longest span without an answer"],
            "p50" => ["has", "median latency"],
            "p90" => ["has", "p90"],
            _ => ["has", "p99"],
        }
    }

    /// Of a published run made by ab: its throughput or its longest request.
    fn of_ab(&self, words: [&'static str; 2]) -> &'static str {
        words[usize::from(self.of() == Some(LONGEST))]
    }

    /// Where it is measured, and at which share of the capacity, each with a space in front; empty if it is of
    /// all servers at any.
    #[must_use]
    pub fn place(&self) -> String {
        let share = apart(&self.0).1.and_then(|share| share.parse::<f64>().ok());
        let share = share.map(|share| format!(" at {:.0} % of the capacity", share * 100.0));
        let is_of_ab = self.base().starts_with("ab");
        let of = match self.of().filter(|_| !is_of_ab) {
            Some(UPSTREAM) => " to the application".to_owned(),
            Some(hop) if hop.contains('.') => format!(" on the hop {hop}"),
            Some(server) => format!(" on the server {server}"),
            None => String::new(),
        };
        of + &share.unwrap_or_default()
    }
}

/// A name, and the share of the capacity behind its `@`.
fn apart(name: &str) -> (&str, Option<&str>) {
    name.split_once('@')
        .map_or((name, None), |(plain, share)| (plain, Some(share)))
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is measured at shares of the capacity, too.
pub(crate) const SHARED: [&str; 5] = ["p50", "p90", "p99", "cpu", "variation"];

/// How many requests the server in front could answer with a second of CPU time: 1 / CPU time of a request. It is
/// measured where that server has a declared part of a core.
pub(crate) const CAPACITY: &str = "capacity";
/// Throughput and longest request of a published run, as the name of a measure has them.
pub(crate) const RATE: &str = "throughput";
pub(crate) const LONGEST: &str = "longest";

const FIRST: [&str; 2] = [
    "throughput in a first run",
    "longest request of a first run",
];
const SECOND: [&str; 2] = [
    "throughput in a second run",
    "longest request of a second run",
];
const SETTLED: [&str; 2] = [
    "throughput in a settled run",
    "longest request of a settled run",
];

/// The hops between servers, as the name of a measure has them.
pub(crate) const UPSTREAM: &str = "upstream";

const ALL: &str = "throughput, capacity, cpu, p50, p90, p99, memory, syscalls, bytes.SERVER.PORT, bytes.upstream, \
                   held, heap.SERVER, collecting.SERVER, sockets, time_wait, failed, errors, first, acted, silences, \
                   longest_silence, free, disk and variation; of published runs in each round ab1, ab2 and ab, such as \
                   ab1.longest; cpu, memory, syscalls and held also of one server, such as cpu.front; p99@0.5 at half the capacity";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_the_machine_is_no_count() {
        for name in ["free", "disk", "cpu.front"] {
            assert_eq!(Measure::parse(name).unwrap().kind(), Kind::Cpu, "{name}");
        }
        assert_eq!(Measure::parse("ab1.longest").unwrap().kind(), Kind::Time);
        assert_eq!(Measure::parse("memory").unwrap().kind(), Kind::Count);
    }

    #[test]
    fn names_units_and_words() {
        for (name, unit, words, place) in [
            ("throughput", "req/s", ["has", "throughput"], ""),
            (
                "cpu.front",
                "µs/req",
                ["takes", "CPU"],
                " on the server front",
            ),
            ("p99@0.5", "ms", ["has", "p99"], " at 50 % of the capacity"),
            ("free", "MiB", ["leaves", "free memory"], ""),
            (
                "ab1.longest",
                "ms",
                ["has", "longest request of a first run"],
                "",
            ),
            (
                "ab.throughput",
                "req/s",
                ["has", "throughput in a settled run"],
                "",
            ),
            (
                "bytes.upstream",
                "B/req",
                ["moves", "bytes"],
                " to the application",
            ),
            (
                "bytes.front.http",
                "B/req",
                ["moves", "bytes"],
                " on the hop front.http",
            ),
        ] {
            let measure = Measure::parse(name).unwrap();
            assert_eq!((measure.unit(), measure.words()), (unit, words));
            assert_eq!(measure.place(), place);
        }
    }

    #[test]
    fn maxima_and_unknown_names_are_faults() {
        assert!(
            Measure::parse("max")
                .unwrap_err()
                .contains("one request of all")
        );
        for name in [
            "speed",
            "bytes",
            "bytes.front",
            "cpu.",
            "p50.front",
            "ab1",
            "ab3.longest",
        ] {
            assert!(
                Measure::parse(name)
                    .unwrap_err()
                    .contains("there are throughput"),
                "{name}"
            );
        }
    }
}
