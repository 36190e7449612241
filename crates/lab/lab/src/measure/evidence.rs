//! The figures and counters of a run, from which measures are computed.

use std::collections::BTreeMap;
use std::time::Duration;

use catamaran_gauge::Counts;
use catamaran_load::report::Report;

use super::records::MEASURES;
use crate::sample::Sample;

/// The figures of a span of load, and what was observed before it.
///
/// Counters are sums over the span; measures divide them by the requests.
#[derive(Debug)]
pub(crate) struct Evidence<'a> {
    /// The report of the main load.
    pub(crate) document: &'a Report,
    /// The number of responses of all loads.
    pub(crate) requests: u64,
    /// The number of requests that failed or hung, of all loads.
    pub(crate) failed: u64,
    /// The number of requests that failed, or had a status other than 2xx.
    pub(crate) errors: u64,
    /// The number of actions that were done on servers.
    pub(crate) acted: u64,
    /// Whether the experiment has several servers, so that each has measures of its own.
    pub(crate) has_several: bool,
    /// The CPU time of each server, by name.
    pub(crate) cpu: &'a BTreeMap<String, Duration>,
    /// The bytes that each server has read from disks and written to them; empty if they were not measured.
    pub(crate) disks: &'a BTreeMap<String, u64>,
    /// The server in front, if it has a declared part of a core.
    pub(crate) tested: Option<&'a str>,
    /// The number of connections opened, by any process.
    pub(crate) opened: u64,
    /// The number of connections that ended in TIME_WAIT.
    pub(crate) waited: u64,
    /// The system calls; empty where they were not counted.
    pub(crate) calls: CallCounts<'a>,
    /// The bytes of a request by hop: `front.http`, or `upstream`.
    pub(crate) bytes: BTreeMap<String, f64>,
    /// The memory that servers have allocated, in bytes by server; `None` if it was not measured.
    pub(crate) memory: Option<BTreeMap<String, u64>>,
    /// The memory for each client of a crowd, in bytes: of all servers (an empty name), and of each
    /// if there are several.
    pub(crate) held: BTreeMap<String, f64>,
    /// The samples of each second.
    pub(crate) samples: &'a [Sample],
    /// The names of servers whose heap and collections are measured.
    pub(crate) jvms: &'a [String],
    /// Whether the experiment is a published form, which also measures the machine's memory, disks and connects.
    pub(crate) is_published: bool,
    /// The responses per second in the first second after a start; `None`: not measured.
    pub(crate) first: Option<f64>,
    /// The figures that ab printed of a round's published runs, by the runs' names `ab1`, `ab2` and `ab`.
    pub(crate) published: &'a BTreeMap<String, AbFigures>,
}

/// The system calls of each server, and the number of requests in the span in which they were counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallCounts<'a> {
    pub(crate) calls: &'a BTreeMap<String, Counts>,
    pub(crate) requests: u64,
}

/// The figures that ab printed for a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct AbFigures {
    /// The number of requests per second.
    pub(crate) throughput: Option<f64>,
    /// The time of the longest request in milliseconds.
    pub(crate) longest_ms: Option<f64>,
}

/// The values of a measure: that of all (`None`), and those of single servers or hops.
pub(super) type MeasureValues = Vec<(Option<String>, f64)>;

impl Evidence<'_> {
    /// All measures of the run, by name.
    pub(crate) fn measures(&self) -> BTreeMap<String, f64> {
        let mut measures = BTreeMap::new();
        for record in MEASURES {
            for (part, value) in (record.read)(self) {
                let name = match part {
                    Some(part) => format!("{}.{part}", record.name),
                    None => record.name.to_owned(),
                };
                measures.insert(name, value);
            }
        }
        measures
    }

    /// The first and the last sample, and the time between them; `None` without samples.
    pub(super) fn sampled_span(&self) -> Option<SampledSpan<'_>> {
        let (first, last) = (self.samples.first()?, self.samples.last()?);
        let seconds = (last.time_s - first.time_s).max(1e-9);
        Some(SampledSpan {
            first,
            last,
            seconds,
        })
    }

    /// `count` for each request; `None` if there were no requests.
    pub(super) fn by_request(&self, count: f64) -> Option<f64> {
        (self.requests > 0).then(|| count / self.requests as f64)
    }
}

/// The first and the last sample of a span.
pub(super) struct SampledSpan<'a> {
    pub(super) first: &'a Sample,
    pub(super) last: &'a Sample,
    pub(super) seconds: f64,
}
