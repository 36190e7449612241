//! Facts: what is known of one run, be it measured here or printed by another tool.

use std::collections::BTreeMap;

use catamaran_load::report::Report;
use serde::{Deserialize, Serialize};

use crate::published::TextFigures;

/// The facts of one run that gates check.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// The expected answers.
    pub expect: Expect,
    /// Clients at once, in a closed loop.
    pub clients: Option<u64>,
    /// The measured span.
    pub seconds: Option<f64>,
    /// Requests that were answered.
    pub completed: u64,
    /// Requests without an answer.
    pub failed: u64,
    /// Answers by status, if the tool tells them apart.
    pub statuses: BTreeMap<u16, u64>,
    /// Answers outside 200 to 299.
    pub non_2xx: Option<u64>,
    /// Answers after which the connection could be used again; `None`: unknown, or not asked for.
    pub kept: Option<u64>,
    /// The mean length of a body.
    pub body_bytes: Option<f64>,
    /// The mean length of all that is received beside bodies, for each answer.
    pub head_bytes: Option<f64>,
    /// Answers whose body was not as long as the first one.
    pub other_length: u64,
    /// Answers whose body had another checksum than the first one; 0 where `varies` is on.
    pub other_body: u64,
    /// Connections that servers opened to each other, for each answer.
    pub dials: Option<f64>,
    /// Answers per second.
    pub rate: Option<f64>,
    /// Latencies.
    pub latency_ms: Option<LatencyFacts>,
    /// The busiest thread of the load generator, as a share of its time.
    pub generator_busy: Option<f64>,
    /// The share of its time for which the generator was ready to run but had no core.
    pub generator_starved: Option<f64>,
    /// Whether the load generator holds its own figures against Little's law, which it does better
    /// than its report allows: it knows what became of requests at the ends of the span.
    pub judges_itself: bool,
    /// Whether rate times mean latency need not be the number of clients: clients wait between their
    /// requests, have several under way, or lost time to requests that failed; or the mean is not that
    /// of the requests as they came.
    pub is_paced: bool,
    /// The load generator's own warnings, by token.
    pub warnings: BTreeMap<String, String>,
    /// Spans in which no answer came; `None` if the tool does not tell.
    pub silences: Option<SilenceFacts>,
    /// For each server of the cell, how many requests it got per answer, and how many were expected. Empty with a
    /// single server, which gave every answer.
    pub asked: BTreeMap<String, PathFacts>,
    /// The state of the machine while the run lasted.
    pub machine: Option<MachineFacts>,
}

/// The expected status, length and other properties of answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Expect {
    /// The status of all.
    pub status: Option<u16>,
    /// The length of all bodies.
    pub body_bytes: Option<u64>,
    /// Whether connections are to be kept; `None`: no matter.
    pub kept: Option<bool>,
    /// After how many requests the server closes a kept connection; 0 for never.
    pub kept_requests_max: u64,
    /// The least time that an answer takes, in milliseconds, by what the experiment has put in: a
    /// delay of the application, a round trip of a link.
    pub delay_ms: Option<f64>,
    /// Up to this share, answers of another status and requests without an answer are worth a remark
    /// alone; 0 for experiments, whose runs can be made again.
    pub rare: f64,
}

/// Spans in which no answer came although requests waited for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SilenceFacts {
    /// The number of spans of `min_ms` or more.
    pub count: u64,
    /// The shortest span that is counted, in milliseconds.
    pub min_ms: f64,
    /// The longest one, also if it is shorter than that; 1 if none was as long as that.
    pub longest_ms: f64,
    /// When the longest one began, in seconds.
    pub from_s: f64,
}

/// Requests that a server got for each answer to the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PathFacts {
    /// At least so often, by the experiment's file.
    pub expected: f64,
    /// The requests, counted as segments with data that reached its ports; `None` if the kernel did not count them.
    pub counted: Option<f64>,
    /// Its CPU time in the measured span, in microseconds.
    pub cpu_us: Option<f64>,
}

/// Latencies of one run in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyFacts {
    /// The arithmetic mean.
    pub mean: f64,
    /// The most by which the printed mean may be wrong, since it was rounded.
    pub rounding: f64,
    /// The standard deviation.
    #[serde(default)]
    pub stddev: Option<f64>,
    /// The median.
    pub median: Option<f64>,
    /// The longest.
    pub max: f64,
}

/// The state of the machine and the servers while a run lasted. Shares are of one core's time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineFacts {
    /// The share of its time for which the load's core was busy.
    pub load_core: Option<f64>,
    /// The share of its time for which the busiest server's core was busy, if servers are pinned to cores of their own.
    pub server_core: Option<f64>,
    /// The part of all cores' time that processes took which are not part of the experiment.
    pub foreign: f64,
    /// The part of all cores' time that a hypervisor gave to others.
    pub steal: f64,
    /// Handshakes dropped because a queue of connections was full.
    pub listen_overflows: u64,
    /// Local ports in TIME_WAIT at the end as a share of the range.
    pub ports_used: Option<f64>,
    /// The length of the warm-up in seconds.
    pub warmed_s: Option<f64>,
    /// By how much throughput or CPU time still moved after the warm-up, as a share of the measured span
    /// to come; 0 if they were steady, `None` if that is not known.
    pub moving: Option<f64>,
    /// A movement up to this share would have been hidden by noise; `None` if `moving` is known or nobody
    /// looked.
    pub hidden: Option<f64>,
    /// Where the level changed within the measured span; `None` if noise explains it, if the span is too short
    /// to tell, or if something is done to servers meanwhile.
    pub changed: Option<LevelChange>,
    /// Processes of servers that ended, and lines of logs that must not be there.
    pub alarms: Vec<String>,
    /// The part of a core that the compilers of a Java virtual machine took.
    pub compiling: Option<f64>,
    /// Lines of logs that say that a server had reached a maximum of its own.
    pub capped: Vec<String>,
    /// Periods in which a CPU quota held the experiment that nobody has declared.
    pub throttled: u64,
    /// Servers that have a declared part of a core, by their names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub shares: BTreeMap<String, ShareFacts>,
    /// Processes of the machine that were killed for want of memory.
    pub oom_kills: u64,
    /// Why measures were not counted, by the base of their names.
    pub uncounted: BTreeMap<String, String>,
    /// Why system calls were counted by strace, in a span of their own; `None` if they were not.
    pub by_strace: Option<String>,
    /// CPU time of the lab itself by that of load and servers.
    pub own_cost: Option<f64>,
}

/// The declared and the used share of a core of a server that has a declared part of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShareFacts {
    /// The part of the core that it may have.
    pub declared: f64,
    /// The share of the core that it used: CPU time of a request by the requests in a second.
    pub used: f64,
    /// Whether a weight holds it, so that it also gets of what others leave; a quota otherwise.
    pub is_weight: bool,
    /// Whether it is the server in front, which is to be the limit.
    pub is_tested: bool,
    /// Periods of its quota.
    pub periods: u64,
    /// Periods of the quota in which it was used up.
    pub stopped: u64,
}

/// A change of level within a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelChange {
    /// The measure that changed.
    pub what: String,
    /// The time from the beginning of the span, in seconds.
    pub after_s: f64,
    /// The change as a share of the level before, with a sign.
    pub shift: f64,
}

impl SilenceFacts {
    /// `None` of a report by an older version, and of an echo.
    pub(crate) fn of(document: &Report) -> Option<Self> {
        let is_known = !document.silence_min.is_zero();
        let longest = document.longest_silence.unwrap_or_default();
        is_known.then(|| Self {
            count: document.silences.len() as u64,
            min_ms: document.silence_min.as_secs_f64() * 1000.0,
            longest_ms: (longest.length().as_secs_f64() * 1000.0).max(1.0),
            from_s: longest.from.as_secs_f64(),
        })
    }
}

impl Facts {
    /// Whether the machine was looked at.
    pub(super) fn has_machine(&self) -> bool {
        self.machine.is_some()
    }

    /// Whether `part` of the requests are too few to void the run.
    pub(super) fn is_rare(&self, part: u64) -> bool {
        part as f64 <= self.expect.rare * (self.completed + self.failed) as f64
    }

    /// The facts in a report of `bench --json`.
    #[must_use]
    pub fn of_document(document: &Report) -> Self {
        let requests = &document.requests;
        let completed = requests.completed;
        let each = |bytes: u64| (completed > 0).then(|| bytes as f64 / completed as f64);
        let threads = &document.generator.threads;
        let worst = |of: &dyn Fn(&catamaran_load::report::Thread) -> Option<f64>| {
            threads.iter().filter_map(of).reduce(f64::max)
        };
        let total = &document.latency.total;
        let ms = |micros: u64| micros as f64 / 1000.0;
        let bytes = &document.bytes;
        Self {
            clients: document
                .rate_asked_per_s
                .is_none()
                .then_some(document.concurrency as u64),
            seconds: Some(document.elapsed.as_secs_f64()),
            completed,
            failed: requests.failed + document.unfinished.hung,
            statuses: document.statuses.clone(),
            non_2xx: Some(requests.non_2xx),
            kept: Some(requests.kept_alive),
            body_bytes: each(bytes.received_bodies),
            head_bytes: each(bytes.received - bytes.received_bodies),
            other_length: requests.other_length,
            other_body: requests.other_body,
            rate: Some(document.throughput.requests_per_s),
            latency_ms: (total.count > 0).then(|| LatencyFacts {
                mean: ms(total.mean_us),
                rounding: 0.001,
                stddev: Some(ms(total.stddev_us)),
                median: Some(ms(total.p50_us)),
                max: ms(total.max_us),
            }),
            generator_busy: worst(&|thread| (thread.spun_s == 0.0).then_some(thread.busy)),
            generator_starved: worst(&|thread| {
                thread.starved_s.map(|s| s / thread.wall_s.max(1e-9))
            }),
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

    /// What a text of another tool says. Such a text does not tell what was expected: a status of
    /// success is, and kept connections where keep-alive was asked for.
    #[must_use]
    pub fn of_figures(figures: &TextFigures) -> Self {
        let completed = figures.completed.unwrap_or(0);
        let failed = figures.failed.unwrap_or(0);
        let (body_bytes, head_bytes) = lengths(figures);
        let mut statuses = figures.statuses.clone();
        if figures.non_2xx == Some(0) && statuses.is_empty() {
            statuses.insert(200, completed);
        }
        Self {
            expect: Expect {
                // A server that closes a connection after some requests keeps a part of them.
                kept: figures.kept.filter(|kept| *kept == 0).map(|_| true),
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
            body_bytes,
            head_bytes,
            rate: figures.rate,
            latency_ms: figures.total_ms.map(|times| LatencyFacts {
                mean: times.mean,
                rounding: times.rounding,
                stddev: None,
                median: times.median,
                max: times.max,
            }),
            // ab alone always asks again as soon as it has an answer. The others can wait,
            // keep to a rate, or have several requests under way, and their texts do not say so; wrk's
            // mean is over samples that it has added.
            is_paced: figures.tool != "ab" || failed > 0,
            ..Self::default()
        }
    }
}

/// Answers by status with all of 2xx as 200: a page may use any of them.
#[must_use]
pub(crate) fn successes_as_one(statuses: BTreeMap<u16, u64>) -> BTreeMap<u16, u64> {
    let mut folded = BTreeMap::new();
    for (status, count) in statuses {
        let status = match status {
            200..300 => 200,
            other => other,
        };
        *folded.entry(status).or_insert(0) += count;
    }
    folded
}

/// The mean length of a body and of what is received beside it, where a text tells it well enough.
fn lengths(figures: &TextFigures) -> (Option<f64>, Option<f64>) {
    let none = (None, None);
    let (Some(completed @ 1..), Some(all), Some(bodies)) =
        (figures.completed, figures.bytes, figures.body_bytes)
    else {
        return none;
    };
    let completed = completed as f64;
    let heads = all.saturating_sub(bodies) as f64;
    // Bytes of requests that were under way at the end are counted, the requests are not. Where all
    // bodies have one length, these bytes say how many answers there were.
    let same = figures.document_bytes.filter(|bytes| *bytes > 0);
    let same = same.filter(|_| figures.other_length.unwrap_or(0) == 0 && figures.unexplained == 0);
    let under_way = figures.clients.unwrap_or(0) as f64;
    let answers = same.map(|bytes| bodies as f64 / bytes as f64);
    match answers.filter(|answers| (completed..=completed + under_way).contains(answers)) {
        Some(answers) => (Some(bodies as f64 / answers), Some(heads / answers)),
        None if heads * under_way < completed * completed * HEAD_OFF_MAX => {
            (Some(bodies as f64 / completed), Some(heads / completed))
        }
        None => none,
    }
}

/// The most by which requests under way at the end may change the mean length of heads, in bytes.
const HEAD_OFF_MAX: f64 = 0.5;

/// Up to which share a failure leaves the figures of another tool's run what they are.
const RARE: f64 = 0.01;
