//! The report of a run as JSON has it: structs whose field names are the keys, with their units in
//! them. docs/bench.md is the reference.
//!
//! `bench --json` writes a [`Document`], and whoever evaluates runs reads one with
//! [`Document::parse`]. A key may be added at any time; none changes its meaning without a new
//! [`SCHEMA`]. Unknown keys are ignored, so that an older reader takes a newer file.

pub mod knee;
pub mod versus;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The version of the keys' meanings.
pub const SCHEMA: &str = "catamaran-bench/1";

/// How far a run is: a line of `bench --ticks`. Counts are from its beginning, or from the end of its
/// warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tick {
    /// Since the run began; once measuring has begun, since then.
    pub elapsed_s: f64,
    /// Whether it is still warming up.
    pub is_warm_up: bool,
    /// Requests begun.
    pub started: u64,
    /// Answered in full.
    pub completed: u64,
    /// Failed.
    pub failed: u64,
    /// The median latency of about the last second; `None` without answers, and while warming up.
    pub p50_ms: Option<f64>,
    /// The 99th percentile of the same.
    pub p99_ms: Option<f64>,
}

/// A run as JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Document {
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
    /// How many URLs there were.
    pub urls: usize,
    /// What was spoken to the first server: `HTTP/1.0`, `HTTP/1.1`, `HTTP/2`, `AJP13`,
    /// `memcached (meta)` or `memcached (text)`; empty in files of before there was this key.
    #[serde(default)]
    pub protocol: String,
    /// Requests that a connection was to carry at once: streams of HTTP/2, or pipelined; 0 in files of
    /// before there was this key.
    #[serde(default)]
    pub streams: u32,
    /// The most streams of HTTP/2 that a connection had at once; 0 of other protocols.
    #[serde(default)]
    pub streams_reached: usize,
    /// When measuring began, in Unix time.
    pub started_at_s: f64,
    /// The measured span, over which rates are.
    pub elapsed_s: f64,
    /// How long after the span requests that had begun were still waited for.
    pub drain_s: f64,
    /// `requests`, `duration`, `stopped` (by hand), `idle` (ab's `-s`) or `failure`.
    pub ending: String,
    /// What a `failure` was.
    pub error: Option<ErrorFacts>,
    /// The warm-up.
    pub warm_up: WarmUp,
    /// Threads of the generator.
    pub threads: usize,
    /// Connections asked for.
    pub concurrency: usize,
    /// The most connections open at once.
    pub concurrency_reached: usize,
    /// Requests per second asked for; `None` in a closed loop.
    pub rate_asked_per_s: Option<f64>,
    /// Whom the run talked to.
    pub server: Server,
    /// How many requests came to which end.
    pub requests: Requests,
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// What was asked of memcached, and what it had; `None`: another protocol was spoken.
    #[serde(default)]
    pub memcached: Option<MemcachedFacts>,
    /// Failed requests by the token of their kind.
    pub failures: BTreeMap<String, u64>,
    /// The error of the first failed request of a kind, where it says more than the kind.
    #[serde(default)]
    pub failure_reasons: BTreeMap<String, String>,
    /// Requests without an answer when the run ended.
    pub unfinished: Unfinished,
    /// Bytes on the wire.
    pub bytes: Bytes,
    /// What became of connections.
    pub connections: Connections,
    /// What came through in a second.
    pub throughput: Throughput,
    /// How long things took.
    pub latency: Latencies,
    /// What the instrument itself used.
    pub generator: Generator,
    /// Spans of `silence_min_s` or more in which no answer came although requests waited for one.
    #[serde(default)]
    pub silences: Vec<SilenceFacts>,
    /// How long such a span is at least: 0.1, ten times the time between two answers, and twice the median latency;
    /// 0 in files of before there was this key.
    #[serde(default)]
    pub silence_min_s: f64,
    /// The longest span without an answer, also one that is shorter than that; `None` if none was as long as 1 ms.
    #[serde(default)]
    pub longest_silence: Option<SilenceFacts>,
    /// One entry for each second since measuring began; the last one may be shorter.
    pub seconds: Vec<SecondFacts>,
    /// Latencies by percentile, to draw them.
    pub curves: Curves,
    /// What would fool a reader who is not told.
    pub warnings: Vec<WarningText>,
    /// What the conditions of `--fail-if` came to; `None`: there were none.
    #[serde(default)]
    pub gate: Option<Gate>,
    /// What came of the requests of each name; empty: they have none.
    #[serde(default)]
    pub by_name: Vec<NamedFacts>,
    /// What `--replay` took of its log; `None`: none was replayed.
    #[serde(default)]
    pub replay: Option<ReplayFacts>,
}

/// What a log had.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayFacts {
    /// Requests that are replayed.
    pub requests: u64,
    /// Lines with methods that are not.
    pub other_methods: u64,
    /// Lines that are no requests.
    pub not_requests: u64,
}

/// Operations on memcached. Those that failed are in [`Document::failures`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemcachedFacts {
    /// Operations and their weights, such as `get=9, set=1`.
    pub mix: String,
    /// How many keys there are.
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

/// What came of the requests of one name. Requests that were never sent are in none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NamedFacts {
    /// Their name.
    pub name: String,
    /// Answered in full.
    pub completed: u64,
    /// Of these: with a status outside 200 to 299.
    pub non_2xx: u64,
    /// Failed.
    pub failed: u64,
    /// In flight when the run ended.
    pub unfinished: u64,
    /// From when they were due, which in a closed loop is when they began.
    pub latency: CorrectedTimes,
}

/// The error that ended a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ErrorFacts {
    /// The token of the kind of failure.
    pub kind: String,
    /// The system's error number, if it came from the system.
    pub errno: Option<i32>,
    /// What happened, in words.
    pub message: String,
}

/// What was sent before measuring began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WarmUp {
    /// How long it was.
    pub duration_s: f64,
    /// Requests that began in it; no other figure has them.
    pub requests: u64,
    /// Whether the run became steady; `None`: nobody looked.
    pub steady: Option<bool>,
    /// `steady`, `moving` or `unclear`: the noise hides a movement; `None`: nobody looked.
    pub verdict: Option<String>,
    /// By which share of its level the run would move over the measured time, or could without
    /// being seen; `None` when it was steady.
    pub movement: Option<f64>,
}

/// Whom the run talked to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// One for each server; `None` for Unix sockets.
    pub addresses: Vec<Option<String>>,
    /// The `Server` field of the first answer.
    pub software: Option<String>,
    /// The first answer's status.
    pub first_status: Option<u16>,
    /// How long the first answer's body was.
    pub document_bytes: Option<u64>,
    /// What TLS agreed on.
    pub tls: Option<Tls>,
}

/// What TLS agreed on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tls {
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: String,
    /// The cipher suite as OpenSSL names it.
    pub cipher: String,
    /// Bits of the symmetric key.
    pub cipher_bits: u32,
    /// Bits of the server's public key.
    pub key_bits: Option<u32>,
    /// The group of the key exchange.
    pub temp_key: Option<String>,
    /// The name sent in SNI.
    pub server_name: Option<String>,
}

/// How many requests came to which end: `started = ok + failed + unfinished`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Requests {
    /// Requests that clients began or that a schedule made due.
    pub started: u64,
    /// Answered in full, and as the checks want it.
    pub ok: u64,
    /// Failed, each once.
    pub failed: u64,
    /// Without an answer at the end.
    pub unfinished: u64,
    /// Answered in full.
    pub completed: u64,
    /// Of the completed: answered in the drain, and in no rate.
    pub completed_in_drain: u64,
    /// Of the completed: bodies that were not as long as the first one; 0 with `-l`.
    pub other_length: u64,
    /// Of the completed: bodies that had another checksum (CRC-32C) than the first one; 0 without `--check-bodies`.
    #[serde(default)]
    pub other_body: u64,
    /// Of the completed: with a status outside 200 to 299.
    pub non_2xx: u64,
    /// Of the completed: the connection could be used again.
    pub kept_alive: u64,
    /// Of the completed: announced no length.
    pub without_length: u64,
}

/// Requests without an answer when the run ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Unfinished {
    /// Still without an answer when the grace was over.
    pub hung: u64,
    /// In flight when the run was stopped.
    pub cut: u64,
    /// Due, but no connection was free.
    pub unsent: u64,
    /// The age of the oldest.
    pub oldest_s: f64,
}

/// Bytes on the wire; under TLS: inside it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bytes {
    /// All sent.
    pub sent: u64,
    /// Of these: heads and framing.
    pub sent_heads: u64,
    /// Of these: bodies.
    pub sent_bodies: u64,
    /// All received.
    pub received: u64,
    /// Of these: heads.
    pub received_heads: u64,
    /// Of these: bodies without framing.
    pub received_bodies: u64,
}

/// What became of connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Connections {
    /// Connects begun.
    pub attempted: u64,
    /// Connects that succeeded.
    pub opened: u64,
    /// Used for a further request after an answer.
    pub reused: u64,
    /// Reset by the peer.
    pub reset: u64,
    /// Closed by the peer between requests.
    pub closed_idle: u64,
    /// Requests sent a second time on another connection.
    pub resent: u64,
}

/// A span without an answer, since measuring began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SilenceFacts {
    /// When it began.
    pub from_s: f64,
    /// When the next answer came, or the measured span ended.
    pub to_s: f64,
}

/// What came through in a second.
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

/// How far apart the values of a series are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpreadFacts {
    /// How many values.
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

/// How long things took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// Of connects that succeeded, with TLS.
    pub connect: Times,
    /// From the request written to the answer's first byte.
    pub first_byte: Times,
    /// From the connection being ready to the last byte.
    pub processing: Times,
    /// From the beginning to the last byte: raw.
    pub total: Times,
    /// From when the request was due to the last byte; `None` in a closed loop.
    pub corrected: Option<CorrectedTimes>,
    /// How late the generator sent; `None` in a closed loop.
    pub lateness: Option<Times>,
}

/// Latencies from when requests were due, of all requests. Those without an answer (failed, hung,
/// cut, never sent) count with the time that they were waited for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CorrectedTimes {
    /// The figures.
    #[serde(flatten)]
    pub times: Times,
    /// How many of `count` had no answer.
    pub unanswered: u64,
    /// The keys of the figures that are lower bounds, because they depend on requests that had no
    /// answer, such as `p99_us`.
    pub lower_bounds: Vec<String>,
}

/// A histogram's figures. Percentiles are there whatever their worth: `percentile_max` says up to
/// which there are enough values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// How many values.
    pub count: u64,
    /// The smallest.
    pub min_us: u64,
    /// The arithmetic mean.
    pub mean_us: u64,
    /// The standard deviation as of a sample.
    pub stddev_us: u64,
    /// The largest.
    pub max_us: u64,
    /// The median.
    pub p50_us: u64,
    /// The 75th percentile.
    pub p75_us: u64,
    /// The 90th percentile.
    pub p90_us: u64,
    /// The 95th percentile.
    pub p95_us: u64,
    /// The 99th percentile.
    pub p99_us: u64,
    /// The 99.9th percentile.
    pub p99_9_us: u64,
    /// The 99.99th percentile.
    pub p99_99_us: u64,
    /// The 99.999th percentile.
    pub p99_999_us: u64,
    /// The highest of these percentiles with ten values beyond it.
    pub percentile_max: Option<f64>,
}

/// What the instrument itself used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Generator {
    /// CPU time of all threads.
    pub cpu_s: f64,
    /// The same per complete answer.
    pub cpu_us_per_request: f64,
    /// Each thread.
    pub threads: Vec<Thread>,
    /// The limit of open files; `None`: no limit.
    pub open_files_max: Option<u64>,
}

/// One thread of the generator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// How long it ran.
    pub wall_s: f64,
    /// Its CPU time.
    pub cpu_s: f64,
    /// Its CPU time by its wall time.
    pub busy: f64,
    /// How long it was ready to run without a CPU; `None` where the system does not say.
    pub starved_s: Option<f64>,
    /// Of its CPU time: waiting for the next intended start without sleeping.
    pub spun_s: f64,
}

/// What happened in one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SecondFacts {
    /// Complete answers.
    pub completed: u64,
    /// Failed requests.
    pub failed: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Mean raw latency of these answers.
    pub latency_mean_us: f64,
    /// The longest of them.
    pub latency_max_us: f64,
    /// Answers outside 200 to 299; 0 where seconds are not told apart.
    pub non_2xx: u64,
    /// The median of this second's latencies, corrected where there is a schedule; `None`: no
    /// answers, or the run is so long that seconds are not told apart.
    pub p50_us: Option<u64>,
    /// The 99th percentile.
    pub p99_us: Option<u64>,
    /// The longest, as the percentiles are.
    pub max_us: Option<u64>,
}

/// What would fool a reader who is not told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WarningText {
    /// Its token, which never changes.
    pub kind: String,
    /// What happened, and what it means or what to do.
    pub text: String,
}

/// Latencies by percentile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Curves {
    /// Raw.
    pub total: Vec<CurvePoint>,
    /// From when requests were due; where requests had no answer, lower bounds. `None` in a closed
    /// loop.
    pub corrected: Option<Vec<CurvePoint>>,
}

/// A percentile; only such as have ten values beyond them are there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// 0 to 100.
    pub percent: f64,
    /// In milliseconds.
    pub ms: f64,
}

/// What a gate decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// The worst of its conditions: `passed`, `undecided` or `failed`.
    pub verdict: String,
    /// Each condition: those that were asked for, then those that hold for any run.
    pub conditions: Vec<Condition>,
}

/// One condition of a gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// As it was written.
    pub condition: String,
    /// `passed`, `undecided` or `failed`.
    pub verdict: String,
    /// `ms`, `requests/s`, `share` or `requests`; `None` for what is no number.
    pub unit: Option<String>,
    /// The figure; a lower bound if requests without an answer are at its place.
    pub value: Option<f64>,
    /// The lower end of its interval of 95 %; `None`: the run is too short for one.
    pub low: Option<f64>,
    /// The upper end; `None`: no end was found.
    pub high: Option<f64>,
    /// Why it is undecided, or the run invalid.
    pub reason: Option<String>,
}

/// Why a text is no document of ours.
#[derive(Debug, Error)]
pub enum DocumentFault {
    /// It is not JSON, or a key is missing or of another type.
    #[error("this is no report of `bench --json`: {0}")]
    Json(#[from] serde_json::Error),
    /// It is a report, but of a version that this program does not know.
    #[error("this report is of the version {0:?}, and only {SCHEMA:?} is known")]
    Schema(String),
}

impl Document {
    /// Reads what `bench --json` has written.
    ///
    /// # Errors
    /// [`DocumentFault`].
    pub fn parse(text: &str) -> Result<Self, DocumentFault> {
        /// The version is looked at first: other versions may lack keys.
        #[derive(Deserialize)]
        struct Version {
            schema: String,
        }
        let Version { schema } = serde_json::from_str(text)?;
        if schema != SCHEMA {
            return Err(DocumentFault::Schema(schema));
        }
        Ok(serde_json::from_str(text)?)
    }
}
