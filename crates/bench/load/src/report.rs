//! The report of a run: its figures in the process that made it, and in JSON.
//!
//! One type serves for both. Its field names and units are those of the JSON (docs/bench.md is
//! their reference). Members that only the process of the run has, such as whole histograms, are
//! left out of the JSON and are empty in a report that was read. A key may be added at any time;
//! none changes its meaning without a new [`SCHEMA`]. Unknown keys are ignored, so that an older
//! program can read a newer file.
//!
//! The counts add up: [`Requests::started`] is the number of requests that succeeded, failed or
//! were unfinished at the end, each counted once. Averages are taken last: latencies are whole
//! histograms, merged from all threads. [`Report::warnings`] names what could mislead a reader.

mod failure;
mod subject;
mod times;
mod warning;
mod written;

use std::collections::BTreeMap;
use std::time::Duration;

use catamaran_stats::{Histogram, Spread, WarmUp as Steadiness};
pub use failure::{FailureKind, Failures};
use serde::{Deserialize, Serialize};
pub use subject::{MemcachedSubject, SpokenProtocol, Subject};
use thiserror::Error;
pub(crate) use times::BARS;
pub use times::{
    CorrectedTimes, CurvePoint, Curves, Latencies, LatencyBar, NamedFacts, SecondFacts, Times,
};
pub(crate) use warning::WarningWeight;
pub use warning::{ThreadShare, Warning};
use written::seconds;

use crate::document::Gate;
use crate::render::verdict::Judgement;
use crate::timeline::Timeline;

/// The schema of the report, with the version of its keys.
pub const SCHEMA: &str = "catamaran-bench/1";

/// The report of a run, from the end of its warm-up to its end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// The schema of the report: [`SCHEMA`].
    pub schema: String,
    /// The judgement of the figures: `valid`, `imprecise`, `doubtful` or `invalid`; empty in files that older versions
    /// wrote.
    #[serde(default)]
    pub verdict: String,
    /// Why the figures are invalid, or the kinds of warnings that make them doubtful or imprecise; `None` if they are
    /// valid.
    #[serde(default)]
    pub verdict_reason: Option<String>,
    /// The first URL that the user gave.
    pub url: String,
    /// The number of URLs that the user gave.
    pub urls: usize,
    /// The protocol of the first server: `HTTP/1.0`, `HTTP/1.1`, `HTTP/2`, `AJP13`, `memcached
    /// (meta)` or `memcached (text)`; empty in files that older versions wrote.
    #[serde(default)]
    pub protocol: String,
    /// The most requests that the plan allows on a connection at once: streams of HTTP/2, or
    /// pipelined; 0 in files that older versions wrote.
    #[serde(default)]
    pub streams: u32,
    /// The most requests that were in flight on an HTTP/2 connection at once. It is lower than
    /// `streams` if the server allows fewer, or responded before more were sent. 0 for other
    /// protocols.
    #[serde(default)]
    pub streams_reached: usize,
    /// The time at which measuring began, in Unix time.
    #[serde(rename = "started_at_s", with = "seconds")]
    pub started_at: Duration,
    /// The measured span, by which rates are divided: from the beginning of measuring (after the
    /// warm-up) to the end of the run's duration or of its schedule; or to the end of the last
    /// request, if that was earlier or no duration was planned.
    #[serde(rename = "elapsed_s", with = "seconds")]
    pub elapsed: Duration,
    /// The drain: the time after the span in which requests in flight were still waited for.
    #[serde(rename = "drain_s", with = "seconds")]
    pub drain: Duration,
    /// What ended the run. `ending` is `requests`, `duration`, `stopped` (by hand), `idle` (ab's
    /// `-s`) or `failure`; then `error` tells which.
    #[serde(flatten)]
    pub ending: Ending,
    /// The warm-up before the measured span.
    pub warm_up: WarmUp,
    /// The number of threads of the generator.
    pub threads: usize,
    /// The number of connections in the plan: clients of a closed loop, connections of an open one.
    pub concurrency: usize,
    /// The most connections that were open at once.
    pub concurrency_reached: usize,
    /// The rate of the plan in requests per second; `None` in a closed loop.
    pub rate_asked_per_s: Option<f64>,
    /// Facts about the server, from its first responses.
    pub server: Server,
    /// The numbers of requests by how they ended.
    pub requests: Requests,
    /// The numbers of responses by status; empty for memcached, which has none.
    pub statuses: BTreeMap<u16, u64>,
    /// The load on memcached and its results; `None`: the run used another protocol.
    #[serde(default)]
    pub memcached: Option<MemcachedFacts>,
    /// The numbers of failed requests by kind; their sum is [`Requests::failed`].
    pub failures: Failures,
    /// The error of the first failed request of each kind, where it [says
    /// more](FailureKind::has_reason) than the kind: for instance why TLS failed.
    #[serde(default, with = "written::by_token")]
    pub failure_reasons: BTreeMap<FailureKind, String>,
    /// The requests that had no response when the run ended.
    pub unfinished: UnfinishedRequests,
    /// The numbers of bytes on the wire.
    pub bytes: Bytes,
    /// The numbers of connections: opened, reused, reset.
    pub connections: Connections,
    /// Responses and bytes per second.
    pub throughput: Throughput,
    /// The latencies, and the times of their parts.
    pub latency: Latencies,
    /// The load generator's own use of CPU, and its limit of open files.
    pub generator: Generator,
    /// The silences: spans of at least [`Report::silence_min`] in which no thread received a
    /// response although requests waited for one; in order, within [`Report::elapsed`].
    #[serde(default)]
    pub silences: Vec<Silence>,
    /// The least length of a silence: at least 100 ms, ten times the mean time between two
    /// responses, and twice the median latency; 0 in files that older versions wrote.
    #[serde(default, rename = "silence_min_s", with = "seconds")]
    pub silence_min: Duration,
    /// The longest span without a response, whether it is a silence or not; `None` if none was as long as 1 ms.
    #[serde(default)]
    pub longest_silence: Option<Silence>,
    /// The counts and latencies of each second since measuring began, the drain included; the last second may be shorter.
    pub seconds: Vec<SecondFacts>,
    /// Latencies by percentile, for a chart.
    pub curves: Curves,
    /// Reasons to distrust the figures.
    pub warnings: Vec<Warning>,
    /// The result of the conditions of `--fail-if`; `None`: there were none.
    #[serde(default)]
    pub gate: Option<Gate>,
    /// The results of the requests of each name, in the order of the plan; empty: no request has a name.
    #[serde(default)]
    pub by_name: Vec<NamedFacts>,
    /// The counts of the log's lines that `--replay` used and skipped; `None`: there was no replay.
    #[serde(default)]
    pub replay: Option<ReplayFacts>,
    /// The options of the plan that the text report prints.
    #[serde(skip)]
    pub subject: Subject,
    /// The errors as ab 2.4 counts them, where one event can be in several counts.
    #[serde(skip)]
    pub ab: AbCounts,
    /// The results of operations on memcached; `None`: the run used another protocol.
    #[serde(skip)]
    pub operations: Option<Operations>,
    /// The counts within the measured span, without the drain.
    #[serde(skip)]
    pub in_span: InSpan,
    /// The counts and histograms of slices of a second or less.
    #[serde(skip)]
    pub timeline: Timeline,
    /// Data of single requests, in the order in which they ended; empty unless the plan asked for them.
    #[serde(skip)]
    pub samples: Vec<Sample>,
}

impl Report {
    /// Parses a report that `bench --json` has written.
    ///
    /// # Errors
    /// The text is not a report that this program knows; [`ReportFault`] says why.
    pub fn parse(text: &str) -> Result<Self, ReportFault> {
        /// The version is read first, since other versions may lack keys.
        #[derive(Deserialize)]
        struct Version {
            schema: String,
        }
        let Version { schema } = serde_json::from_str(text)?;
        if schema != SCHEMA {
            return Err(ReportFault::Schema(schema));
        }
        Ok(serde_json::from_str(text)?)
    }

    /// Whether the run is a success: every request was sent and answered, some with a status of 200
    /// to 399, and the figures are not spoiled by the generator's lateness. A body of another
    /// length or a single bad status does not matter.
    pub fn is_sound(&self) -> bool {
        let wrong_lengths = self.failures.of(FailureKind::BodyLength);
        let unfinished = &self.unfinished;
        let is_answered =
            self.requests.failed == wrong_lengths && unfinished.hung + unfinished.unsent == 0;
        let good: u64 = self.statuses.range(200..400).map(|(_, count)| count).sum();
        // Operations on memcached have no statuses.
        let has_success = good > 0 || self.requests.completed == 0 || self.operations.is_some();
        let mut warnings = self.warnings.iter();
        let is_late = warnings.any(|warning| matches!(warning, Warning::GeneratorLate { .. }));
        is_answered && has_success && !is_late
    }

    /// Sets the members that follow from others: totals, rates, curves, and the verdict.
    pub(crate) fn conclude(&mut self) {
        self.repeat_subject();
        self.requests.unfinished = self.unfinished.total();
        self.requests.completed_in_drain =
            (self.requests.completed).saturating_sub(self.in_span.completed);
        self.unfinished.oldest_s = self.unfinished.ages.max().as_secs_f64();
        self.bytes.sent_heads = self.bytes.sent.saturating_sub(self.bytes.sent_bodies);
        self.throughput = Throughput::of(self);
        self.curves = Curves::of(&self.latency);
        let completed = self.requests.completed as f64;
        let generator = &mut self.generator;
        generator.cpu_us_per_request = ratio(generator.cpu_s * 1e6, completed);
        let judgement = Judgement::of(self);
        self.verdict = judgement.word.to_owned();
        self.verdict_reason = judgement.reason;
    }

    /// Sets the members that the JSON repeats from the subject.
    fn repeat_subject(&mut self) {
        SCHEMA.clone_into(&mut self.schema);
        let subject = &self.subject;
        self.url.clone_from(&subject.url);
        self.urls = subject.urls;
        subject.protocol.name().clone_into(&mut self.protocol);
        self.streams = subject.streams;
        self.rate_asked_per_s = subject.rate;
        self.memcached = match (&subject.memcached, &self.operations) {
            (Some(load), Some(operations)) => Some(MemcachedFacts::of(load, operations)),
            _ => None,
        };
    }

    /// The numbers of responses in each whole second. The last, shorter second is left out: it would look like a drop.
    pub(crate) fn whole_seconds(&self) -> Vec<f64> {
        let whole = usize::try_from(self.elapsed.as_secs()).unwrap_or(usize::MAX);
        let seconds = self.seconds.iter().take(whole);
        seconds.map(|second| second.completed as f64).collect()
    }
}

/// Why a text is not a report of `bench`.
#[derive(Debug, Error)]
pub enum ReportFault {
    /// The text is not JSON, or a key is missing or of another type.
    #[error("this is no report of `bench --json`: {0}")]
    Json(#[from] serde_json::Error),
    /// This program does not know the version of the report.
    #[error("this report is of the version {0:?}, and only {SCHEMA:?} is known")]
    Schema(String),
}

/// The cause of the end of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "written::EndingFacts", try_from = "written::EndingFacts")]
pub enum Ending {
    /// The number of requests was reached.
    #[default]
    Requests,
    /// The duration, or the last stage, has ended.
    Duration,
    /// [`Stopper::stop`](crate::Stopper::stop) was called.
    Stopped,
    /// No connection had any event for [`Timeouts::idle`](crate::plan::Timeouts::idle).
    Idle,
    /// An error ended the run: a host name that was not found, or one that
    /// [`Checks`](crate::plan::Checks) or [`ConnectPatience`](crate::plan::ConnectPatience) does
    /// not allow.
    Failure(FatalError),
}

/// The error that ended a run early.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FatalError {
    /// The kind of the failure.
    pub kind: FailureKind,
    /// The system's error number; `None` if it was no error of the system.
    pub errno: Option<i32>,
    /// The failure in words.
    pub message: String,
}

/// The facts about the warm-up before measuring began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WarmUp {
    /// The length of the warm-up.
    #[serde(rename = "duration_s", with = "seconds")]
    pub duration: Duration,
    /// The number of requests that began in the warm-up; no other figure includes them.
    pub requests: u64,
    /// Whether the run became steady; `None`: not examined.
    pub steady: Option<bool>,
    /// The result of the test for steadiness: `steady`, `moving`, or `unclear` if noise may hide a movement; `None`:
    /// not examined.
    pub verdict: Option<String>,
    /// The share of the level by which the run would move, or could move unnoticed, over the measured time; `None` if
    /// it was steady, was not examined, or if the share is infinite.
    pub movement: Option<f64>,
}

impl WarmUp {
    /// The facts of a warm-up of this duration in which `requests` requests began; `steadiness` is
    /// `None` if it was not tested.
    pub(crate) fn new(duration: Duration, requests: u64, steadiness: Option<Steadiness>) -> Self {
        let Some(steadiness) = steadiness else {
            return Self {
                duration,
                requests,
                ..Self::default()
            };
        };
        let (verdict, movement) = match steadiness {
            Steadiness::Steady => ("steady", None),
            Steadiness::Moving(share) => ("moving", Some(share)),
            Steadiness::Unclear(share) => ("unclear", Some(share)),
        };
        Self {
            duration,
            requests,
            steady: Some(steadiness == Steadiness::Steady),
            verdict: Some(verdict.to_owned()),
            // JSON has no infinity.
            movement: movement.filter(|share| share.is_finite()),
        }
    }
}

/// Facts about the server, from its first responses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// The address of each server; `None` for Unix sockets, and for names that were not found.
    pub addresses: Vec<Option<String>>,
    /// The `Server` field of the first response, complete (ab prints it up to the first space or slash-version).
    pub software: Option<String>,
    /// The status of the first response; `None` without responses.
    pub first_status: Option<u16>,
    /// The length of the first response's body in bytes, without chunk framing (ab: Document
    /// Length); `None` without responses.
    pub document_bytes: Option<u64>,
    /// The TLS parameters of the first connection that used TLS; `None`: none did.
    pub tls: Option<TlsFacts>,
    /// The head of the first response as received, at most 8 KiB; an AJP13 head is written as HTTP/1.1 would be.
    #[serde(skip)]
    pub first_head: Vec<u8>,
}

/// The TLS parameters that client and server have negotiated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsFacts {
    /// The version: `TLSv1.2` or `TLSv1.3`.
    pub version: String,
    /// OpenSSL's name of the cipher suite, such as `TLS_AES_256_GCM_SHA384` or `ECDHE-RSA-AES128-GCM-SHA256`.
    pub cipher: String,
    /// The bits of the symmetric key (ab's `skbits`).
    pub cipher_bits: u32,
    /// The bits of the server's public key (ab's `pkbits`); `None` if not known.
    pub key_bits: Option<u32>,
    /// OpenSSL's name of the key exchange group, such as `X25519`; `None` if not known.
    pub temp_key: Option<String>,
    /// The bits of the group for the key exchange, such as 253 for X25519; `None` if not known.
    #[serde(skip)]
    pub temp_key_bits: Option<u32>,
    /// The name sent in SNI; `None`: none was sent.
    pub server_name: Option<String>,
}

/// The numbers of requests by how they ended; always `started = ok + failed + unfinished`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requests {
    /// The number of requests that clients began or that a schedule made due.
    pub started: u64,
    /// Requests that were answered in full, with any status, and passed the plan's checks.
    pub ok: u64,
    /// Requests that failed, each counted once.
    pub failed: u64,
    /// Requests without a response at the end.
    pub unfinished: u64,
    /// Requests that were answered in full: `ok`, and those whose body had an unexpected length.
    pub completed: u64,
    /// Completed requests that were answered in the drain; they are in no rate.
    pub completed_in_drain: u64,
    /// Completed requests whose body was not as long as the first one, where lengths are compared.
    pub other_length: u64,
    /// Completed requests whose body had another checksum (CRC-32C) than the first one of the same
    /// request, where bodies are compared.
    #[serde(default)]
    pub other_body: u64,
    /// Completed requests with a status outside 200 to 299.
    pub non_2xx: u64,
    /// Completed requests after which the connection could be used again, if keep-alive was on
    /// (ab's "Keep-Alive requests").
    pub kept_alive: u64,
    /// Completed requests whose response announced no length of its body.
    pub without_length: u64,
}

/// The results of operations on memcached that were answered and did not fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// Gets that found the right value.
    pub hits: u64,
    /// Gets that found no value.
    pub misses: u64,
    /// Sets whose value was stored by the server.
    pub stored: u64,
}

impl Operations {
    /// The number of gets that were answered.
    pub fn gets(&self) -> u64 {
        self.hits + self.misses
    }

    /// The number of all operations that were answered and did not fail.
    pub fn total(&self) -> u64 {
        self.gets() + self.stored
    }

    /// The share of gets that found a value, from 0 to 1; `None` without gets.
    pub fn hit_share(&self) -> Option<f64> {
        let gets = self.gets();
        (gets > 0).then(|| self.hits as f64 / gets as f64)
    }
}

/// The load on memcached and its results. Operations that failed are in [`Report::failures`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemcachedFacts {
    /// The operations with their weights, such as `get=9, set=1`.
    pub mix: String,
    /// The number of keys.
    pub keys: u64,
    /// The exponent of Zipf's law; `None`: all keys are equally frequent.
    pub zipf: Option<f64>,
    /// The length of a value in bytes.
    pub value_bytes: u64,
    /// The number of values stored before the run; they are in no other figure.
    pub prefilled: u64,
    /// Gets that were answered, with a value or without.
    pub gets: u64,
    /// Gets that found a value.
    pub hits: u64,
    /// Gets that found no value.
    pub misses: u64,
    /// Sets whose value was stored by the server.
    pub sets: u64,
}

impl MemcachedFacts {
    fn of(load: &MemcachedSubject, operations: &Operations) -> Self {
        Self {
            mix: load.mix.clone(),
            keys: load.keys,
            zipf: load.zipf,
            value_bytes: load.value_bytes,
            prefilled: load.prefilled,
            gets: operations.gets(),
            hits: operations.hits,
            misses: operations.misses,
            sets: operations.stored,
        }
    }
}

/// Counts of the lines of a replayed log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReplayFacts {
    /// The number of requests in the replay.
    pub requests: u64,
    /// The number of lines with methods that are not replayed.
    pub other_methods: u64,
    /// The number of lines that are not requests.
    pub not_requests: u64,
}

/// The counts within [`Report::elapsed`], without the drain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InSpan {
    /// The number of requests that were sent, or whose connect began.
    pub sent: u64,
    /// The number of complete responses.
    pub completed: u64,
    /// The bytes received for responses within the span.
    pub received: u64,
}

/// Errors as ab 2.4 counts them: one event can be in several counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AbCounts {
    /// The number of connects that failed.
    pub connect: u64,
    /// The number of receives that failed.
    pub receive: u64,
    /// The number of bodies that were not as long as the first one, including those cut or ended by a reset.
    pub length: u64,
    /// The number of connections with an error condition.
    pub exceptions: u64,
    /// The number of sends that failed; not part of ab's "Failed requests".
    pub write: u64,
}

impl AbCounts {
    /// The number that ab prints as "Failed requests".
    pub fn failed(&self) -> u64 {
        self.connect + self.receive + self.length + self.exceptions
    }
}

/// The bytes on the wire of measured requests (with TLS: before encryption).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bytes {
    /// All bytes sent: heads and bodies.
    pub sent: u64,
    /// The part of `sent` that is heads and framing.
    pub sent_heads: u64,
    /// The part of `sent` that is bodies, without packet framing.
    pub sent_bodies: u64,
    /// All bytes received: heads, bodies and their framing, of failed requests too.
    pub received: u64,
    /// The part of `received` that is heads (for AJP13 the packets that contain them).
    pub received_heads: u64,
    /// The part of `received` that is bodies, without chunk or packet framing (ab: HTML transferred).
    pub received_bodies: u64,
}

/// The numbers of connections from the beginning of the run, including the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// The number of connects that began.
    pub attempted: u64,
    /// The number of connects (with TLS: and handshakes) that succeeded.
    pub opened: u64,
    /// The number of times that a connection was used for a further request.
    pub reused: u64,
    /// The number of connections that the peer reset.
    pub reset: u64,
    /// The number of kept connections that the peer closed between requests. The request is then
    /// sent on a new connection and does not count as failed.
    pub closed_idle: u64,
    /// The number of requests sent a second time, on another connection: see [`Resend`](crate::plan::Resend).
    pub resent: u64,
    /// The number of connections that the generator closed because the peer sent bytes while no response was due.
    #[serde(skip)]
    pub unsolicited: u64,
}

/// The numbers of requests without a response when the run ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct UnfinishedRequests {
    /// Requests that hung: they had no response when the grace was over.
    pub hung: u64,
    /// Requests in flight when the run was stopped at once, by hand or by an error.
    pub cut: u64,
    /// Requests that were due by the schedule, but still waited for a connection.
    pub unsent: u64,
    /// The age of the oldest unfinished request, in seconds.
    pub oldest_s: f64,
    /// The age of each unfinished request, counted from when it was due or sent to the end of the
    /// grace; for one that was never sent, to the end of the run's duration, after which none is
    /// sent.
    #[serde(skip)]
    pub ages: Histogram,
}

impl UnfinishedRequests {
    /// The number of all unfinished requests.
    pub fn total(&self) -> u64 {
        self.hung + self.cut + self.unsent
    }
}

/// A span of time without a response; its ends count from the beginning of measuring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    /// The time at which the silence began.
    #[serde(rename = "from_s", with = "seconds")]
    pub from: Duration,
    /// The time at which the next response came, or the measured span ended.
    #[serde(rename = "to_s", with = "seconds")]
    pub to: Duration,
}

impl Silence {
    /// The length of the silence.
    pub fn length(self) -> Duration {
        self.to.saturating_sub(self.from)
    }
}

/// Responses and bytes per second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    /// The number of complete responses within the span, per second.
    pub requests_per_s: f64,
    /// The number of bytes sent per second.
    pub sent_bytes_per_s: f64,
    /// The number of bytes received for complete responses per second.
    pub received_bytes_per_s: f64,
    /// The spread over whole seconds; `None` if there was no whole second.
    pub per_second: Option<SpreadFacts>,
}

impl Throughput {
    fn of(report: &Report) -> Self {
        let per_second = |count: u64| ratio(count as f64, report.elapsed.as_secs_f64());
        Self {
            requests_per_s: per_second(report.in_span.completed),
            sent_bytes_per_s: per_second(report.bytes.sent),
            received_bytes_per_s: per_second(report.in_span.received),
            per_second: Spread::of(&report.whole_seconds()).map(SpreadFacts::of),
        }
    }
}

/// The spread of the values of each second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpreadFacts {
    /// The number of seconds that have a value.
    pub seconds: usize,
    /// The smallest value of a second.
    pub min: f64,
    /// The largest value of a second.
    pub max: f64,
    /// The arithmetic mean of the seconds.
    pub mean: f64,
    /// The median of the seconds.
    pub median: f64,
    /// The standard deviation of the seconds, as of a sample.
    pub stddev: f64,
    /// The standard deviation divided by the mean.
    pub variation: f64,
}

impl SpreadFacts {
    fn of(spread: Spread) -> Self {
        Self {
            seconds: spread.count,
            min: spread.min,
            max: spread.max,
            mean: spread.mean,
            median: spread.median,
            stddev: spread.stddev,
            variation: spread.variation(),
        }
    }
}

/// The load generator's own use of CPU, and its limit of open files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Generator {
    /// The CPU time of all threads.
    pub cpu_s: f64,
    /// The CPU time per complete response, in microseconds.
    pub cpu_us_per_request: f64,
    /// The times of each thread.
    pub threads: Vec<Thread>,
    /// The limit of open files when the run began; `None`: no limit.
    pub open_files_max: Option<u64>,
}

/// The times of a thread of the generator while measuring, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// The thread's measured time, in seconds.
    pub wall_s: f64,
    /// The thread's CPU time in seconds, in user mode and in the kernel together.
    pub cpu_s: f64,
    /// The share of the thread's wall time that was CPU time, from 0 to 1.
    pub busy: f64,
    /// The time in which the thread was ready to run but had no CPU, in seconds (from the
    /// scheduler, in `/proc/thread-self/schedstat`); `None` where the system does not tell.
    pub starved_s: Option<f64>,
    /// The part of the thread's CPU time that it spent waiting for the next intended start without
    /// sleeping, since that was too near for a timer; in seconds.
    pub spun_s: f64,
}

impl Thread {
    /// The share of the wall time in which the thread was ready to run but had no CPU, from 0 to 1.
    pub fn starved(&self) -> f64 {
        self.share(self.starved_s.unwrap_or_default())
    }

    /// The share of the wall time that the thread spent waiting without sleeping, from 0 to 1.
    pub fn spun(&self) -> f64 {
        self.share(self.spun_s)
    }

    /// `seconds` divided by the thread's wall time.
    pub(crate) fn share(&self, seconds: f64) -> f64 {
        seconds / self.wall_s.max(f64::MIN_POSITIVE)
    }
}

/// The times of one answered request, in nanoseconds, and its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The time at which the request began, since [`Report::started_at`] (ab `-g`: starttime).
    pub start: u64,
    /// The time of the request's connect, 0 on a reused connection (ctime).
    pub connect: u64,
    /// The time from the request's last byte written to the response's first byte (wait).
    pub first_byte: u64,
    /// The time from the request's beginning to its end (ttime); ab's dtime is this less `connect`.
    pub total: u64,
    /// The status of the response.
    pub status: u16,
}

/// `dividend` divided by `divisor`; zero if `divisor` is not above zero.
pub(crate) fn ratio(dividend: f64, divisor: f64) -> f64 {
    if divisor > 0.0 {
        dividend / divisor
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests;
