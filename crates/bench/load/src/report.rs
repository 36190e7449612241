//! The report of a run: what its process knows of it, and what its JSON has.
//!
//! There is one type for both. What the field names and units of the JSON are stands here (docs/bench.md is their
//! reference); what only the process has that made the run, such as whole histograms, is left out of the JSON and
//! empty in a report that was read. A key may be added at any time; none changes its meaning without a new
//! [`SCHEMA`]. Unknown keys are ignored, so that an older reader takes a newer file.
//!
//! The counts add up: [`Requests::started`] is the number of requests that succeeded, failed or were unfinished at
//! the end, each counted once. Nothing is averaged before it is here: latencies are whole histograms, merged from all
//! threads. [`Report::warnings`] has what could mislead a reader.

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
pub use times::{CorrectedTimes, CurvePoint, Curves, Latencies, NamedFacts, SecondFacts, Times};
pub use warning::Warning;
use written::seconds;

use crate::document::Gate;
use crate::render::verdict::Judgement;
use crate::timeline::Timeline;

/// The version of the keys' meanings.
pub const SCHEMA: &str = "catamaran-bench/1";

/// A run, from the end of its warm-up to its end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// What may be made of the figures: `valid`, `doubtful` or `invalid`; empty in files of before there
    /// was this key.
    #[serde(default)]
    pub verdict: String,
    /// Why they are invalid, or the kinds of the warnings that make them doubtful.
    #[serde(default)]
    pub verdict_reason: Option<String>,
    /// The first URL as the user gave it.
    pub url: String,
    /// The number of URLs.
    pub urls: usize,
    /// What was spoken to the first server: `HTTP/1.0`, `HTTP/1.1`, `HTTP/2`, `AJP13`,
    /// `memcached (meta)` or `memcached (text)`; empty in files of before there was this key.
    #[serde(default)]
    pub protocol: String,
    /// Requests that a connection was to carry at once: streams of HTTP/2, or pipelined; 0 in files of
    /// before there was this key.
    #[serde(default)]
    pub streams: u32,
    /// The most requests that were under way on a connection of HTTP/2 at once: fewer than were asked for
    /// where the server allows fewer, or had no more to answer. 0 of other protocols.
    #[serde(default)]
    pub streams_reached: usize,
    /// When measuring began, in Unix time.
    #[serde(rename = "started_at_s", with = "seconds")]
    pub started_at: Duration,
    /// The measured span, over which rates are: from when measuring began (after the warm-up) to
    /// the end of the run's duration or of its schedule, or to the end of the last request if that
    /// was earlier or nothing was planned.
    #[serde(rename = "elapsed_s", with = "seconds")]
    pub elapsed: Duration,
    /// The drain: how long after the span requests that had begun were still waited for.
    #[serde(rename = "drain_s", with = "seconds")]
    pub drain: Duration,
    /// What ended the run: `ending` is `requests`, `duration`, `stopped` (by hand), `idle` (ab's `-s`) or
    /// `failure`, of which `error` says what it was.
    #[serde(flatten)]
    pub ending: Ending,
    /// The warm-up that came before.
    pub warm_up: WarmUp,
    /// Threads of the generator.
    pub threads: usize,
    /// Connections asked for: clients of a closed loop, connections of an open one.
    pub concurrency: usize,
    /// The most connections that were open at once.
    pub concurrency_reached: usize,
    /// Requests per second asked for; `None` in a closed loop.
    pub rate_asked_per_s: Option<f64>,
    /// Whom the run talked to.
    pub server: Server,
    /// The number of requests by how they ended.
    pub requests: Requests,
    /// Answers by status; empty of memcached, which has none.
    pub statuses: BTreeMap<u16, u64>,
    /// The load on memcached and its results; `None`: another protocol was spoken.
    #[serde(default)]
    pub memcached: Option<MemcachedFacts>,
    /// Failed requests by kind; their sum is [`Requests::failed`].
    pub failures: Failures,
    /// The error of the first failed request of a kind, where it
    /// [says more](FailureKind::has_reason) than the kind: why TLS failed, for one.
    #[serde(default, with = "written::by_token")]
    pub failure_reasons: BTreeMap<FailureKind, String>,
    /// Requests that had no answer when the run ended.
    pub unfinished: UnfinishedRequests,
    /// Bytes on the wire.
    pub bytes: Bytes,
    /// Counts of connections: opened, reused, reset.
    pub connections: Connections,
    /// Answers and bytes per second.
    pub throughput: Throughput,
    /// Latencies, and the times of their parts.
    pub latency: Latencies,
    /// The load generator's own use of CPU, and its limit of open files.
    pub generator: Generator,
    /// Spans of [`Report::silence_min`] or more in which no answer came to any thread although requests waited
    /// for one; in order, within [`Report::elapsed`].
    #[serde(default)]
    pub silences: Vec<Silence>,
    /// How long a silence is: 100 ms at least, ten times the time between two answers, and twice the median latency;
    /// 0 in files of before there was this key.
    #[serde(default, rename = "silence_min_s", with = "seconds")]
    pub silence_min: Duration,
    /// The longest span without an answer, whether it is a silence or not; `None` if none was as long as 1 ms.
    #[serde(default)]
    pub longest_silence: Option<Silence>,
    /// One entry per second since measuring began, the drain included, the last one shorter.
    pub seconds: Vec<SecondFacts>,
    /// Latencies by percentile, to draw them.
    pub curves: Curves,
    /// Reasons to distrust the figures.
    pub warnings: Vec<Warning>,
    /// The results of the conditions of `--fail-if`; `None`: there were none.
    #[serde(default)]
    pub gate: Option<Gate>,
    /// The results of the requests of each name, in the order of the plan; empty: they have none.
    #[serde(default)]
    pub by_name: Vec<NamedFacts>,
    /// The log's lines that `--replay` used and skipped; `None`: none was replayed.
    #[serde(default)]
    pub replay: Option<ReplayFacts>,
    /// What the plan said, as far as the text says it, too.
    #[serde(skip)]
    pub subject: Subject,
    /// The errors as ab 2.4 counts them.
    #[serde(skip)]
    pub ab: AbCounts,
    /// The results of operations on memcached; `None`: another protocol was spoken.
    #[serde(skip)]
    pub operations: Option<Operations>,
    /// Counts within the span, without the drain.
    #[serde(skip)]
    pub in_span: InSpan,
    /// The seconds in finer slices with their histograms.
    #[serde(skip)]
    pub timeline: Timeline,
    /// Single requests, by when they ended; empty unless the plan asked for them.
    #[serde(skip)]
    pub samples: Vec<Sample>,
}

impl Report {
    /// Reads what `bench --json` has written.
    ///
    /// # Errors
    /// [`ReportFault`].
    pub fn parse(text: &str) -> Result<Self, ReportFault> {
        /// The version is looked at first: other versions may lack keys.
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

    /// Whether the server answered what it was asked, and the figures are those of the server: every
    /// request was sent and answered, some with a status of 200 to 399, and none too late by the
    /// generator's fault. A body of another length is no objection, nor is a single bad status.
    pub fn is_sound(&self) -> bool {
        let lengths = self.failures.of(FailureKind::BodyLength);
        let unfinished = &self.unfinished;
        let all_answered =
            self.requests.failed == lengths && unfinished.hung + unfinished.unsent == 0;
        let good: u64 = self.statuses.range(200..400).map(|(_, count)| count).sum();
        let is_invalid = |warning: &Warning| matches!(warning, Warning::GeneratorLate { .. });
        all_answered
            && (good > 0 || self.requests.completed == 0 || self.operations.is_some())
            && !self.warnings.iter().any(is_invalid)
    }

    /// Sets what follows from the other members: totals, rates, curves, and the verdict.
    pub(crate) fn conclude(&mut self) {
        self.introduce();
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

    /// Sets what the JSON repeats of the subject.
    fn introduce(&mut self) {
        SCHEMA.clone_into(&mut self.schema);
        let subject = &self.subject;
        self.url.clone_from(&subject.url);
        self.urls = subject.urls;
        subject.protocol.name().clone_into(&mut self.protocol);
        self.streams = subject.streams;
        self.rate_asked_per_s = subject.rate;
        let asked = subject.memcached.as_ref().zip(self.operations);
        self.memcached = asked.map(|(asked, operations)| MemcachedFacts::of(asked, &operations));
    }

    /// Answers of each whole second; the last, shorter one would pass for a drop.
    pub(crate) fn whole_seconds(&self) -> Vec<f64> {
        let whole = usize::try_from(self.elapsed.as_secs()).unwrap_or(usize::MAX);
        let seconds = self.seconds.iter().take(whole);
        seconds.map(|second| second.completed as f64).collect()
    }
}

/// Why a text is no report of ours.
#[derive(Debug, Error)]
pub enum ReportFault {
    /// The text is not JSON, or a key is missing or of another type.
    #[error("this is no report of `bench --json`: {0}")]
    Json(#[from] serde_json::Error),
    /// The report's version is one that this program does not know.
    #[error("this report is of the version {0:?}, and only {SCHEMA:?} is known")]
    Schema(String),
}

/// The cause of a run's end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "written::EndingFacts", try_from = "written::EndingFacts")]
pub enum Ending {
    /// The number of requests was reached.
    #[default]
    Requests,
    /// The duration, or the last stage, was over.
    Duration,
    /// [`Stopper::stop`](crate::Stopper::stop) was called.
    Stopped,
    /// No connection had any event for [`Timeouts::idle`](crate::plan::Timeouts::idle).
    Idle,
    /// An error ended it: a name that was not found, or what [`Checks`](crate::plan::Checks) and
    /// [`ConnectPatience`](crate::plan::ConnectPatience) made final.
    Failure(FatalError),
}

/// The error that ended a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FatalError {
    /// The kind of the failure.
    pub kind: FailureKind,
    /// The system's error number, if it came from the system.
    pub errno: Option<i32>,
    /// The failure in words.
    pub message: String,
}

/// The load before measuring began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WarmUp {
    /// The length of the warm-up.
    #[serde(rename = "duration_s", with = "seconds")]
    pub duration: Duration,
    /// Requests that began in it; no other figure has them.
    pub requests: u64,
    /// Whether the run became steady; `None`: nobody looked.
    pub steady: Option<bool>,
    /// `steady`, `moving` or `unclear`: the noise hides a movement; `None`: nobody looked.
    pub verdict: Option<String>,
    /// The share of its level by which the run would move over the measured time, or could move unseen; `None` when it
    /// was steady.
    pub movement: Option<f64>,
}

impl WarmUp {
    /// A warm-up of this duration in which `requests` requests began; `found`: its verdict, if anybody looked.
    pub(crate) fn new(duration: Duration, requests: u64, found: Option<Steadiness>) -> Self {
        let word = |found| match found {
            Steadiness::Steady => "steady",
            Steadiness::Moving(_) => "moving",
            Steadiness::Unclear(_) => "unclear",
        };
        let movement = |found| match found {
            Steadiness::Steady => None,
            // JSON has no infinity.
            Steadiness::Moving(share) | Steadiness::Unclear(share) => {
                Some(share).filter(|it| it.is_finite())
            }
        };
        Self {
            duration,
            requests,
            steady: found.map(|found| found == Steadiness::Steady),
            verdict: found.map(|found| word(found).to_owned()),
            movement: found.and_then(movement),
        }
    }
}

/// Whom the run talked to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// One for each server; `None` for Unix sockets, and names that were not found.
    pub addresses: Vec<Option<String>>,
    /// The `Server` field of the first answer, whole (ab prints it up to the first space or slash-version).
    pub software: Option<String>,
    /// The first answer's status.
    pub first_status: Option<u16>,
    /// The length of the first answer's body, without chunk framing (ab: Document Length).
    pub document_bytes: Option<u64>,
    /// The parameters of TLS on the first connection that used it.
    pub tls: Option<TlsFacts>,
    /// The first answer's head as received, at most 8 KiB; an AJP13 head is written as HTTP would.
    #[serde(skip)]
    pub first_head: Vec<u8>,
}

/// The parameters of TLS that client and server agreed on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsFacts {
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: String,
    /// The cipher suite as OpenSSL names it, such as `TLS_AES_256_GCM_SHA384` or
    /// `ECDHE-RSA-AES128-GCM-SHA256`.
    pub cipher: String,
    /// Bits of the symmetric key (ab's `skbits`).
    pub cipher_bits: u32,
    /// Bits of the server's public key, if they could be told (ab's `pkbits`).
    pub key_bits: Option<u32>,
    /// The group of the key exchange as OpenSSL names it, such as `X25519`.
    pub temp_key: Option<String>,
    /// Bits of that group, such as 253 for X25519.
    #[serde(skip)]
    pub temp_key_bits: Option<u32>,
    /// The name sent in SNI.
    pub server_name: Option<String>,
}

/// The number of requests by how they ended: `started = ok + failed + unfinished`, always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requests {
    /// Requests that clients began or that a schedule made due.
    pub started: u64,
    /// Answered in full, whatever the status, and as the checks want it.
    pub ok: u64,
    /// Failed, each once.
    pub failed: u64,
    /// Requests without an answer at the end.
    pub unfinished: u64,
    /// Answered in full: `ok` and those with an unexpected length.
    pub completed: u64,
    /// Of the completed: answered in the drain, and in no rate.
    pub completed_in_drain: u64,
    /// Of the completed: bodies that were not as long as the first one, where that was looked at.
    pub other_length: u64,
    /// Of the completed: bodies that had another checksum (CRC-32C) than the first one of their request, where that
    /// was looked at.
    #[serde(default)]
    pub other_body: u64,
    /// Of the completed: with a status outside 200 to 299.
    pub non_2xx: u64,
    /// Of the completed: answers after which the connection could be used again and keep-alive
    /// was wanted (ab's "Keep-Alive requests").
    pub kept_alive: u64,
    /// Of the completed: announced no length (ab without `-l` and HTTP/1.0 calls it variable).
    pub without_length: u64,
}

/// The results of operations on memcached, of those that were answered and did not fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// Gets that found a value, and the right one.
    pub hits: u64,
    /// Gets that found none.
    pub misses: u64,
    /// Sets whose value was stored.
    pub stored: u64,
}

impl Operations {
    /// Gets that were answered.
    pub fn gets(&self) -> u64 {
        self.hits + self.misses
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.gets() + self.stored
    }

    /// The share of gets that found a value, from 0 to 1; `None` without gets.
    pub fn hit_share(&self) -> Option<f64> {
        let gets = self.gets();
        (gets > 0).then(|| self.hits as f64 / gets as f64)
    }
}

/// Operations on memcached. Those that failed are in [`Report::failures`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemcachedFacts {
    /// Operations and their weights, such as `get=9, set=1`.
    pub mix: String,
    /// The number of keys.
    pub keys: u64,
    /// The exponent of Zipf's law; `None`: each key is as frequent as any other.
    pub zipf: Option<f64>,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// Values that were stored before the run, and are in no other figure.
    pub prefilled: u64,
    /// Gets that found a value or none.
    pub gets: u64,
    /// Of these: gets that found a value.
    pub hits: u64,
    /// Of these: gets that found none.
    pub misses: u64,
    /// Sets whose value was stored.
    pub sets: u64,
}

impl MemcachedFacts {
    fn of(asked: &MemcachedSubject, operations: &Operations) -> Self {
        Self {
            mix: asked.mix.clone(),
            keys: asked.keys,
            zipf: asked.zipf,
            value_bytes: asked.value_bytes,
            prefilled: asked.prefilled,
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
    /// Requests that are replayed.
    pub requests: u64,
    /// Lines with methods that are not.
    pub other_methods: u64,
    /// Lines that are no requests.
    pub not_requests: u64,
}

/// Counts within [`Report::elapsed`]; the drain is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InSpan {
    /// Requests that were sent, or whose connect began.
    pub sent: u64,
    /// Complete answers.
    pub completed: u64,
    /// Bytes received for them.
    pub received: u64,
}

/// Errors as ab 2.4 counts them: one event can be in several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AbCounts {
    /// Connects that failed.
    pub connect: u64,
    /// Receives that failed.
    pub receive: u64,
    /// Bodies that were not as long as the first one, cut ones and those of resets too.
    pub length: u64,
    /// Connections with an error condition.
    pub exceptions: u64,
    /// Sends that failed; not part of ab's "Failed requests".
    pub write: u64,
}

impl AbCounts {
    /// ab's "Failed requests".
    pub fn failed(&self) -> u64 {
        self.connect + self.receive + self.length + self.exceptions
    }
}

/// Bytes on the wire of requests that count (under TLS: inside it).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bytes {
    /// All sent: heads and bodies.
    pub sent: u64,
    /// Of these: heads and framing.
    pub sent_heads: u64,
    /// Of these: body bytes without packet framing.
    pub sent_bodies: u64,
    /// All received: heads, bodies and their framing, of failed requests too.
    pub received: u64,
    /// Of these: response heads (for AJP13 the packets that carry them).
    pub received_heads: u64,
    /// Of these: body bytes without chunk or packet framing (ab: HTML transferred).
    pub received_bodies: u64,
}

/// Counts of connections from the beginning of the run, the warm-up included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// Connects begun.
    pub attempted: u64,
    /// Connects (and TLS handshakes) that succeeded.
    pub opened: u64,
    /// Used for a further request after an answer.
    pub reused: u64,
    /// Reset by the peer.
    pub reset: u64,
    /// Closed by the peer between requests although keep-alive was wanted; the request then goes
    /// on a new connection and nothing is counted as failed.
    pub closed_idle: u64,
    /// Requests sent a second time, on another connection: see [`Resend`](crate::plan::Resend).
    pub resent: u64,
    /// Closed by us, because the peer sent bytes on them while no answer was due.
    #[serde(skip)]
    pub unsolicited: u64,
}

/// Requests without an answer when the run ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct UnfinishedRequests {
    /// Still without an answer when the grace was over: hung.
    pub hung: u64,
    /// In flight when the run was stopped at once, by hand or by an error.
    pub cut: u64,
    /// Due by the schedule, but still waiting for a connection.
    pub unsent: u64,
    /// The age of the oldest.
    pub oldest_s: f64,
    /// How old each of them was, counted from when it was due or sent: to the end of the grace,
    /// and for one that was never sent to the end of the run's duration, after which none is sent.
    #[serde(skip)]
    pub ages: Histogram,
}

impl UnfinishedRequests {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.hung + self.cut + self.unsent
    }
}

/// A span of time without an answer, since measuring began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    /// When it began.
    #[serde(rename = "from_s", with = "seconds")]
    pub from: Duration,
    /// When the next answer came, or the span that is measured ended.
    #[serde(rename = "to_s", with = "seconds")]
    pub to: Duration,
}

impl Silence {
    /// The length of the silence.
    pub fn length(self) -> Duration {
        self.to.saturating_sub(self.from)
    }
}

/// Answers and bytes per second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    /// Complete answers within the span.
    pub requests_per_s: f64,
    /// Bytes sent.
    pub sent_bytes_per_s: f64,
    /// Bytes received for these answers.
    pub received_bytes_per_s: f64,
    /// The spread of whole seconds; `None` when there was none.
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

/// The spread of a series of values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpreadFacts {
    /// The number of values.
    pub seconds: usize,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The middle value.
    pub median: f64,
    /// The standard deviation as of a sample.
    pub stddev: f64,
    /// The standard deviation by the mean.
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
    /// CPU time of all threads.
    pub cpu_s: f64,
    /// CPU time per complete answer, in microseconds.
    pub cpu_us_per_request: f64,
    /// Each thread.
    pub threads: Vec<Thread>,
    /// The limit of open files as the run found it; `None`: no limit.
    pub open_files_max: Option<u64>,
}

/// The times of a thread of the generator while measuring, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// The thread's measured time.
    pub wall_s: f64,
    /// Its CPU time, in user mode and in the kernel together.
    pub cpu_s: f64,
    /// The share of its wall time that was CPU time, 0 to 1.
    pub busy: f64,
    /// How long it could have run, but no CPU was free for it (the scheduler's account, in
    /// `/proc/thread-self/schedstat`); `None` where the system does not say.
    pub starved_s: Option<f64>,
    /// Of its CPU time: waiting for the next intended start without sleeping, since that was too near for a
    /// timer.
    pub spun_s: f64,
}

impl Thread {
    /// Share of the wall time in which it was ready to run and had no CPU, 0 to 1.
    pub fn starved(&self) -> f64 {
        self.share(self.starved_s.unwrap_or_default())
    }

    /// Share of the wall time spent waiting without sleeping, 0 to 1.
    pub fn spun(&self) -> f64 {
        self.share(self.spun_s)
    }

    /// `seconds` as a share of the thread's wall time.
    pub(crate) fn share(&self, seconds: f64) -> f64 {
        seconds / self.wall_s.max(f64::MIN_POSITIVE)
    }
}

/// One answered request. Times are nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When it began, since [`Report::started_at`] (ab `-g`: starttime).
    pub start: u64,
    /// Connect, 0 on a reused connection (ctime).
    pub connect: u64,
    /// From request written to first byte (wait).
    pub first_byte: u64,
    /// From beginning to end (ttime); dtime is this less `connect`.
    pub total: u64,
    /// The status.
    pub status: u16,
}

/// One by the other, zero if there is no other.
pub(crate) fn ratio(one: f64, other: f64) -> f64 {
    if other > 0.0 { one / other } else { 0.0 }
}

#[cfg(test)]
mod tests;
