//! The facts of one run that gates check, whether the run was measured here or printed by another tool.

mod joined;

use std::collections::BTreeMap;

use catamaran_load::report::{Report, Thread};
use serde::{Deserialize, Serialize};

use crate::published::TextFigures;

/// The facts of one run, which gates check.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// The properties that responses should have.
    pub expect: Expect,
    /// The number of clients of a closed loop; `None`: not known, or an open loop.
    pub clients: Option<u64>,
    /// The length of the measured span in seconds; `None`: not known.
    pub seconds: Option<f64>,
    /// The number of requests that were answered.
    pub completed: u64,
    /// The number of requests without a response.
    pub failed: u64,
    /// The numbers of responses by status; empty if the tool does not distinguish them.
    pub statuses: BTreeMap<u16, u64>,
    /// The number of responses outside 200 to 299; `None`: not known.
    pub non_2xx: Option<u64>,
    /// The number of responses after which the connection could be used again; `None`: not known,
    /// or keep-alive was off.
    pub kept: Option<u64>,
    /// The mean length of a body; `None`: not known.
    pub body_bytes: Option<f64>,
    /// The mean number of bytes received besides the body, for each response; `None`: not known.
    pub head_bytes: Option<f64>,
    /// The number of responses whose body was not as long as the first one.
    pub other_length: u64,
    /// The number of responses whose body had another checksum than the first one; 0 where `varies` is on.
    pub other_body: u64,
    /// The number of connections that servers opened to each other, for each response; `None`: not counted.
    pub dials: Option<f64>,
    /// The number of responses per second; `None`: not known.
    pub rate: Option<f64>,
    /// The latencies; `None`: not known.
    pub latency_ms: Option<LatencyFacts>,
    /// The share of its time that the load generator's busiest thread was busy, from 0 to 1.
    pub generator_busy: Option<f64>,
    /// The share of its time for which the generator was ready to run but had no core, from 0 to 1.
    pub generator_starved: Option<f64>,
    /// Whether the load generator checks its own figures by Little's law. It can do so better than
    /// from its report: it knows the requests in flight at the ends of the span.
    pub judges_itself: bool,
    /// Whether rate times mean latency may differ from the number of clients: clients pause between
    /// requests, have several in flight, or lost time to failed ones; or the mean is not that of
    /// the single requests.
    pub is_paced: bool,
    /// The load generator's own warnings: texts by token.
    pub warnings: BTreeMap<String, String>,
    /// The spans without a response; `None` if the tool does not tell.
    pub silences: Option<SilenceFacts>,
    /// For each server of the cell, the requests that it received for each response, and the number
    /// expected. Empty with a single server, which gave every response.
    pub asked: BTreeMap<String, PathFacts>,
    /// The state of the machine during the run; `None` if it was not observed.
    pub machine: Option<MachineFacts>,
}

/// The status, the length and other properties that responses should have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Expect {
    /// The status of all responses; `None`: any.
    pub status: Option<u16>,
    /// The length of all bodies in bytes; `None`: any.
    pub body_bytes: Option<u64>,
    /// Whether connections should be kept; `None`: either is right.
    pub kept: Option<bool>,
    /// The number of requests after which the server closes a kept connection; 0: never.
    pub kept_requests_max: u64,
    /// The least time of a response in milliseconds, by delays that the experiment has set: of the
    /// application, or the round trip of a link. `None`: there is none.
    pub delay_ms: Option<f64>,
    /// The largest share of responses with another status, or of requests without a response, that
    /// leads to a remark alone; 0 for experiments, whose runs can be repeated.
    pub rare: f64,
}

/// The spans without a response although requests waited for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SilenceFacts {
    /// The number of spans of at least `min_ms`.
    pub count: u64,
    /// The least length of a span that is counted, in milliseconds.
    pub min_ms: f64,
    /// The length of the longest span in milliseconds, even if it is below `min_ms`; 1 if none was as long as that.
    pub longest_ms: f64,
    /// The time at which the longest span began, in seconds.
    pub from_s: f64,
}

/// The requests that a server received for each response to the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PathFacts {
    /// The least number of requests, by the experiment's file.
    pub expected: f64,
    /// The number of requests, counted as segments with data that reached its ports; `None` if the
    /// kernel did not count them.
    pub counted: Option<f64>,
    /// The server's CPU time in the measured span, in microseconds; `None`: not known.
    pub cpu_us: Option<f64>,
}

/// Latencies of one run in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyFacts {
    /// The arithmetic mean of the latencies.
    pub mean: f64,
    /// The largest error of the printed mean by rounding, in milliseconds.
    pub rounding: f64,
    /// The standard deviation; `None`: not known.
    #[serde(default)]
    pub stddev: Option<f64>,
    /// The shortest latency; `None`: not known.
    #[serde(default)]
    pub min: Option<f64>,
    /// The median; `None`: not known.
    pub median: Option<f64>,
    /// The longest latency.
    pub max: f64,
}

/// The state of the machine and the servers while a run lasted. Shares are of one core's time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineFacts {
    /// The share of its time for which the load's core was busy; `None`: the load is not pinned.
    pub load_core: Option<f64>,
    /// The share of its time for which the busiest server's core was busy; `None`: servers are not
    /// pinned to cores of their own.
    pub server_core: Option<f64>,
    /// The part of all cores' time that was used by processes outside the experiment.
    pub foreign: f64,
    /// The part of all cores' time that a hypervisor gave to other machines.
    pub steal: f64,
    /// The number of handshakes dropped because a queue of connections was full.
    pub listen_overflows: u64,
    /// The local ports in TIME_WAIT at the end, as a share of all ports in the range; `None`: not known.
    pub ports_used: Option<f64>,
    /// The length of the warm-up in seconds; `None`: there was none.
    pub warmed_s: Option<f64>,
    /// The share by which throughput or CPU time would still move over the measured span, by the
    /// end of the warm-up; 0 if they were steady, `None` if that is not known.
    pub moving: Option<f64>,
    /// The largest share of movement that noise would have hidden; `None` if `moving` is known, or it was not examined.
    pub hidden: Option<f64>,
    /// A change of level within the measured span; `None` if noise explains it, if the span is too
    /// short to tell, or if the experiment acts on servers meanwhile.
    pub changed: Option<LevelChange>,
    /// Servers' processes that ended, and lines of their logs that must not occur.
    pub alarms: Vec<String>,
    /// The part of a core that the compilers of a Java virtual machine took; `None`: not known.
    pub compiling: Option<f64>,
    /// Lines of logs that say that a server had reached a maximum of its own.
    pub capped: Vec<String>,
    /// The number of periods in which a CPU quota that the experiment has not declared stopped its processes.
    pub throttled: u64,
    /// The servers that have a declared part of a core, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub shares: BTreeMap<String, ShareFacts>,
    /// The number of the machine's processes that were killed because memory ran out.
    pub oom_kills: u64,
    /// Why measures were not counted, by the first part of their names.
    pub uncounted: BTreeMap<String, String>,
    /// Why system calls were counted by strace, in a span of its own; `None` if they were not.
    pub by_strace: Option<String>,
    /// The CPU time of the lab itself, divided by that of load and servers; `None`: not known.
    pub own_cost: Option<f64>,
}

/// The declared and the used part of a core, for a server with a declared part of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShareFacts {
    /// The declared part of the core, from 0 to 1.
    pub declared: f64,
    /// The used part of the core: CPU time per request times requests per second.
    pub used: f64,
    /// Whether the server is limited by a weight, so that it may also use what others leave; `false`: by a quota.
    pub is_weight: bool,
    /// Whether this is the server in front, which should be the limit of the rate.
    pub is_tested: bool,
    /// The number of periods of the quota in which the server ran.
    pub periods: u64,
    /// The number of periods in which the server used up its quota.
    pub stopped: u64,
}

/// A change of level within a measured span.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelChange {
    /// The measure that changed: that of CPU time a request, or the rate.
    pub what: String,
    /// The time of the change from the beginning of the span, in seconds.
    pub after_s: f64,
    /// The change as a share of the level before; negative for a decrease.
    pub shift: f64,
    /// The share of the servers' cores that others took, before the change and after it: other processes, and a
    /// hypervisor. `None` if it is not known, as of servers that are not pinned, or that share the load's core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<[f64; 2]>,
}

impl LevelChange {
    /// Whether others on the servers' cores explain the change: they took clearly more of them when the servers became
    /// slower or dearer, or clearly less when they became faster or cheaper.
    #[must_use]
    pub fn is_of_others(&self) -> bool {
        let Some([before, after]) = self.others else {
            return false;
        };
        let is_for_the_worse = (self.shift > 0.0) == (self.what == CPU_OF_REQUEST);
        (after - before).abs() > OTHERS_APART && (after > before) == is_for_the_worse
    }
}

impl SilenceFacts {
    /// The silences in a report; `None` for a report by an older version, and for an echo.
    pub(crate) fn of(document: &Report) -> Option<Self> {
        if document.silence_min.is_zero() {
            return None;
        }
        let longest = document.longest_silence.unwrap_or_default();
        Some(Self {
            count: document.silences.len() as u64,
            min_ms: document.silence_min.as_secs_f64() * 1000.0,
            longest_ms: (longest.length().as_secs_f64() * 1000.0).max(1.0),
            from_s: longest.from.as_secs_f64(),
        })
    }
}

impl Facts {
    /// Whether the state of the machine was observed.
    pub(super) fn has_machine(&self) -> bool {
        self.machine.is_some()
    }

    /// Whether `part` requests are too few to void the run, by [`Expect::rare`].
    pub(super) fn is_rare(&self, part: u64) -> bool {
        part as f64 <= self.expect.rare * (self.completed + self.failed) as f64
    }

    /// The facts in a report of `bench --json`.
    #[must_use]
    pub fn of_document(document: &Report) -> Self {
        let requests = &document.requests;
        let completed = requests.completed;
        let mean_bytes = |sum: u64| (completed > 0).then(|| sum as f64 / completed as f64);
        let highest = |share: fn(&Thread) -> Option<f64>| {
            let threads = document.generator.threads.iter();
            threads.filter_map(share).reduce(f64::max)
        };
        let total = &document.latency.total;
        let ms = |micros: u64| micros as f64 / 1000.0;
        let bytes = &document.bytes;
        let is_closed_loop = document.rate_asked_per_s.is_none();
        Self {
            clients: is_closed_loop.then_some(document.concurrency as u64),
            seconds: Some(document.elapsed.as_secs_f64()),
            completed,
            failed: requests.failed + document.unfinished.hung,
            statuses: document.statuses.clone(),
            non_2xx: Some(requests.non_2xx),
            kept: Some(kept(document)),
            body_bytes: mean_bytes(bytes.received_bodies),
            head_bytes: mean_bytes(bytes.received - bytes.received_bodies),
            other_length: requests.other_length,
            other_body: requests.other_body,
            rate: Some(document.throughput.requests_per_s),
            latency_ms: (total.count > 0).then(|| LatencyFacts {
                mean: ms(total.mean_us),
                // The report has whole microseconds.
                rounding: 0.001,
                stddev: Some(ms(total.stddev_us)),
                min: Some(ms(total.min_us)),
                median: Some(ms(total.p50_us)),
                max: ms(total.max_us),
            }),
            // A thread that spins is always busy.
            generator_busy: highest(|thread| (thread.spun_s == 0.0).then_some(thread.busy)),
            generator_starved: highest(|thread| Some(thread.starved_s? / thread.wall_s.max(1e-9))),
            judges_itself: true,
            silences: SilenceFacts::of(document),
            warnings: document
                .warnings
                .iter()
                .map(|warning| (warning.token().to_owned(), warning.text()))
                .collect(),
            ..Self::default()
        }
    }

    /// The facts in the output of another tool. The output does not tell what was expected; it is
    /// assumed to be a successful status, and kept connections where keep-alive was on.
    #[must_use]
    pub fn of_figures(figures: &TextFigures) -> Self {
        let completed = figures.completed.unwrap_or(0);
        let failed = figures.failed.unwrap_or(0);
        let lengths = mean_lengths(figures);
        let mut statuses = figures.statuses.clone();
        // All are 2xx, which `successes_as_one` counts as 200.
        if figures.non_2xx == Some(0) && statuses.is_empty() {
            statuses.insert(200, completed);
        }
        Self {
            expect: Expect {
                // With keep-alive, some connections must be kept; not all, since a server may close one after some
                // requests.
                kept: (figures.kept == Some(0)).then_some(true),
                kept_requests_max: 0,
                status: Some(200),
                body_bytes: None,
                delay_ms: None,
                rare: RARE,
            },
            clients: figures.clients,
            seconds: figures.seconds,
            completed,
            failed,
            statuses: successes_as_one(statuses),
            non_2xx: figures.non_2xx,
            kept: figures.kept,
            body_bytes: lengths.as_ref().map(|lengths| lengths.body),
            head_bytes: lengths.as_ref().map(|lengths| lengths.head),
            rate: figures.rate,
            latency_ms: figures.total_ms.map(|times| LatencyFacts {
                mean: times.mean,
                rounding: times.rounding,
                stddev: None,
                min: None,
                median: times.median,
                max: times.max,
            }),
            // Of all tools only ab always sends the next request at once. Others may pause, keep to
            // a rate, or have several requests in flight without saying so; wrk's mean includes
            // samples that it has added.
            is_paced: figures.tool != "ab" || failed > 0,
            ..Self::default()
        }
    }
}

/// The counts of responses by status, with all of 2xx under 200: a page may use any of them.
#[must_use]
pub(crate) fn successes_as_one(statuses: BTreeMap<u16, u64>) -> BTreeMap<u16, u64> {
    let mut joined = BTreeMap::new();
    for (status, count) in statuses {
        let key = if (200..300).contains(&status) {
            200
        } else {
            status
        };
        *joined.entry(key).or_insert(0) += count;
    }
    joined
}

/// The number of responses after which the connection was really kept: it served a further request, or could have at
/// the end of the run. A server may announce that it keeps a connection and close it, so at most as many are counted as
/// responses that no new connection followed. The connections that clients began with are not counted as new.
fn kept(document: &Report) -> u64 {
    let announced = document.requests.kept_alive;
    if document.warm_up.requests > 0 {
        return announced; // Connections of the warm-up are counted with the others.
    }
    let answers = document.requests.completed + document.concurrency as u64;
    announced.min(answers.saturating_sub(document.connections.opened))
}

/// The mean lengths of a response, in bytes.
struct MeanLengths {
    body: f64,
    head: f64,
}

/// The mean lengths of the responses in another tool's run; `None` if the text does not say how many responses its
/// bytes belong to.
fn mean_lengths(figures: &TextFigures) -> Option<MeanLengths> {
    let completed = figures.completed.filter(|count| *count > 0)? as f64;
    let heads = figures.bytes?.saturating_sub(figures.body_bytes?) as f64;
    let bodies = figures.body_bytes? as f64;
    // Bytes of requests in flight at the end are counted, but not their requests.
    let in_flight = figures.clients.unwrap_or(0) as f64;
    // If all bodies have one length, their sum tells how many responses there were.
    let by_length = length_of_each(figures).map(|length| bodies / length as f64);
    let possible = completed..=completed + in_flight;
    // By so much the mean is wrong if the heads of all requests in flight were counted.
    let error_max = heads * in_flight / (completed * completed);
    let responses = match by_length {
        Some(responses) if possible.contains(&responses) => responses,
        _ if error_max < HEAD_OFF_MAX => completed,
        _ => return None,
    };
    Some(MeanLengths {
        body: bodies / responses,
        head: heads / responses,
    })
}

/// The length of all bodies in bytes, if the text says that all have the same length.
fn length_of_each(figures: &TextFigures) -> Option<u64> {
    // Requests that failed without a reason may have had responses of another length.
    let others = figures.other_length.unwrap_or(0) + figures.unexplained;
    let length = figures.document_bytes?;
    (length > 0 && others == 0).then_some(length)
}

/// The largest error of the mean length of heads, in bytes, because of requests in flight at the end.
const HEAD_OFF_MAX: f64 = 0.5;

/// The share of failures up to which another tool's run is still judged by its figures.
pub(crate) const RARE: f64 = 0.01;

/// What changes its level: the CPU time of a request, of all servers together.
pub(crate) const CPU_OF_REQUEST: &str = "CPU time of a request";

/// What changes its level: the number of responses in a second.
pub(crate) const RATE: &str = "rate";

/// The least difference of the shares that others took of the servers' cores, to explain a change.
const OTHERS_APART: f64 = 0.05;

#[cfg(test)]
mod tests {
    use super::*;

    /// The kept answers of a run of ten clients with 1,650 answers that all said keep-alive, if `opened` connections
    /// were opened and `warm_up` requests came before.
    fn kept_of(opened: u64, warm_up: u64) -> u64 {
        let mut document = Report {
            concurrency: 10,
            ..Report::default()
        };
        document.requests.completed = 1650;
        document.requests.kept_alive = 1650;
        document.connections.opened = opened;
        document.warm_up.requests = warm_up;
        kept(&document)
    }

    #[test]
    fn a_connection_that_was_closed_was_not_kept_whatever_was_said() {
        assert_eq!(kept_of(10, 0), 1650);
        // Closed after 100 requests each.
        assert_eq!(kept_of(10 + 16, 0), 1634);
        // Closed after each.
        assert_eq!(kept_of(1650, 0), 10);
        assert_eq!(kept_of(1660, 0), 0);
        assert_eq!(kept_of(3000, 900), 1650, "some were of the warm-up");
    }
}
