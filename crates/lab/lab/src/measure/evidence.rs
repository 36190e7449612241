//! What a run has shown, from which measures are read: figures and counters, already taken from wherever they are.

use std::collections::BTreeMap;
use std::time::Duration;

use catamaran_gauge::Counts;
use catamaran_load::report::Report;

use super::records::MEASURES;
use crate::sample::Sample;

/// The results of a span of load, and what was seen before it.
///
/// Counters are sums over the span; measures divide them by the requests.
#[derive(Debug)]
pub(crate) struct Evidence<'a> {
    /// The report of the load.
    pub(crate) document: &'a Report,
    /// Answers of all loads.
    pub(crate) requests: u64,
    /// Requests of all loads that had no good answer.
    pub(crate) failed: u64,
    /// Failed requests, and those that were answered with another status than 2xx.
    pub(crate) errors: u64,
    /// Actions on servers that were done.
    pub(crate) acted: u64,
    /// Whether the experiment has several servers, so that each has measures of its own.
    pub(crate) has_several: bool,
    /// CPU time by server.
    pub(crate) cpu: &'a BTreeMap<String, Duration>,
    /// The server in front, if it has a declared part of a core.
    pub(crate) tested: Option<&'a str>,
    /// Connections that were opened, by whomever.
    pub(crate) opened: u64,
    /// Connections that ended in TIME_WAIT.
    pub(crate) waited: u64,
    /// System calls, where they were counted.
    pub(crate) calls: CallCounts<'a>,
    /// Bytes of a request by hop: `front.http`, or `upstream`.
    pub(crate) bytes: BTreeMap<String, f64>,
    /// The memory that servers have allocated, in bytes; `None` if nobody asked.
    pub(crate) memory: Option<BTreeMap<String, u64>>,
    /// The memory for each client of a crowd, in bytes: of all servers (an empty name), and of each of several.
    pub(crate) held: BTreeMap<String, f64>,
    /// The samples of each second.
    pub(crate) samples: &'a [Sample],
    /// Servers whose heap and collections are measured.
    pub(crate) jvms: &'a [String],
    /// Whether it is of a published form, which also measures the machine's memory and disks, and connects.
    pub(crate) is_published: bool,
    /// Answers of the first second after a start.
    pub(crate) first: Option<f64>,
    /// The figures that ab printed of a round's published runs, by `ab1`, `ab2` and `ab`.
    pub(crate) published: &'a BTreeMap<String, AbFigures>,
}

/// System calls by server, and the requests of the span in which they were counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallCounts<'a> {
    pub(crate) calls: &'a BTreeMap<String, Counts>,
    pub(crate) requests: u64,
}

/// The figures that ab prints of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct AbFigures {
    /// Requests a second.
    pub(crate) throughput: Option<f64>,
    /// The longest request in milliseconds.
    pub(crate) longest_ms: Option<f64>,
}

/// The values of a measure: of all that it is of (`None`), and of single servers or hops.
pub(super) type MeasureValues = Vec<(Option<String>, f64)>;

impl Evidence<'_> {
    /// All measures, by name.
    pub(crate) fn measures(&self) -> BTreeMap<String, f64> {
        let mut measures = BTreeMap::new();
        for record in MEASURES {
            for (of, value) in (record.read)(self) {
                let of = of.map_or_else(String::new, |of| format!(".{of}"));
                measures.insert(format!("{}{of}", record.name), value);
            }
        }
        measures
    }

    /// The time between the first sample and the last.
    pub(super) fn sampled(&self) -> Option<SampledSpan<'_>> {
        let (first, last) = (self.samples.first()?, self.samples.last()?);
        let seconds = (last.time_s - first.time_s).max(1e-9);
        Some(SampledSpan {
            first,
            last,
            seconds,
        })
    }

    /// `count` divided by the requests; `None` if there were none.
    pub(super) fn each(&self, count: f64) -> Option<f64> {
        (self.requests > 0).then(|| count / self.requests as f64)
    }
}

/// The samples at both ends of a span.
pub(super) struct SampledSpan<'a> {
    pub(super) first: &'a Sample,
    pub(super) last: &'a Sample,
    pub(super) seconds: f64,
}
