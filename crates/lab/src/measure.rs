//! What is measured: names, units, and which gates touch it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Something that a run measures, by its name in files: `throughput`, `cpu`, `cpu.SERVER`, `p50`,
/// `p90`, `p99`, `memory`, `memory.SERVER`, `syscalls`, `syscalls.SERVER`, `bytes.SERVER.PORT`,
/// `bytes.upstream`, `variation`, `sockets`, `time_wait`.
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
            "throughput" | "p50" | "p90" | "p99" | "variation" | "failed" | "first" | "acted"
            | "sockets" | "time_wait" => rest.is_none(),
            "cpu" | "memory" | "syscalls" | "held" => rest != Some(""),
            "heap" | "collecting" => rest.is_some_and(|rest| !rest.is_empty()),
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
            "throughput" | "p50" | "p90" | "p99" | "variation" | "first" => Kind::Time,
            "cpu" | "collecting" => Kind::Cpu,
            _ => Kind::Count,
        }
    }

    /// Its unit.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        match self.base() {
            "throughput" => "req/s",
            "cpu" => "µs/req",
            "memory" | "heap" => "MiB",
            "held" => "B/client",
            "collecting" => "%",
            "failed" => "requests",
            "first" => "req/s",
            "acted" => "times",
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
            "cpu" => ["takes", "CPU"],
            "memory" => ["uses", "memory"],
            "syscalls" => ["makes", "system calls"],
            "bytes" => ["moves", "bytes"],
            "variation" => ["has", "variation of throughput"],
            "held" => ["uses", "memory per client beside the load"],
            "heap" => ["uses", "heap"],
            "collecting" => ["spends", "garbage collection time"],
            "failed" => ["has", "failed requests"],
            "first" => ["has", "throughput in the first second"],
            "acted" => ["has", "actions"],
            "sockets" => ["opens", "connections"],
            "time_wait" => ["leaves", "ports in TIME_WAIT"],
            "p50" => ["has", "median latency"],
            "p90" => ["has", "p90"],
            _ => ["has", "p99"],
        }
    }

    /// Where it is measured, and at which share of the capacity, each with a space in front; empty if it is of
    /// all servers at any.
    #[must_use]
    pub fn place(&self) -> String {
        let share = apart(&self.0).1.and_then(|share| share.parse::<f64>().ok());
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

/// The hops between servers, as the name of a measure has them.
pub(crate) const UPSTREAM: &str = "upstream";

const ALL: &str = "throughput, cpu, p50, p90, p99, memory, syscalls, bytes.SERVER.PORT, bytes.upstream, \
                   held, heap.SERVER, collecting.SERVER, sockets, time_wait, failed, first, acted and \
                   variation; cpu, memory, syscalls and held also of one server, such as cpu.front; p99@0.5 at half the capacity";

#[cfg(test)]
mod tests {
    use super::*;

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
        for name in ["speed", "bytes", "bytes.front", "cpu.", "p50.front"] {
            assert!(
                Measure::parse(name)
                    .unwrap_err()
                    .contains("there are throughput"),
                "{name}"
            );
        }
    }
}
