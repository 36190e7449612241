//! The results of a run as data; the command line renders them.
//!
//! The counts add up: [`Counts::started`] is the number of requests that succeeded, failed or were
//! unfinished at the end, each counted once. Nothing is averaged before it is here: latencies are
//! whole histograms, merged from all threads. [`Report::warnings`] has what could mislead a reader.

mod failure;
mod warning;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use catamaran_stats::{Censored, Histogram};
pub use failure::{FailureKind, Failures};
pub use warning::Warning;

use crate::timeline::Timeline;

/// A run, from the end of its warm-up to its end.
#[derive(Clone, Debug)]
pub struct Report {
    /// What ended the run.
    pub ending: Ending,
    /// When measuring began, by the wall clock: for files that name a time.
    pub started_at: SystemTime,
    /// The measured span, over which rates are: from when measuring began (after the warm-up) to
    /// the end of the run's duration or of its schedule, or to the end of the last request if that
    /// was earlier or nothing was planned.
    pub elapsed: Duration,
    /// The drain: how long after the span requests that had begun were still waited for.
    pub drain: Duration,
    /// The warm-up that came before.
    pub warm_up: WarmUpReport,
    /// Threads used.
    pub threads: usize,
    /// Connections asked for: clients of a closed loop, connections of an open one.
    pub concurrency: usize,
    /// The most connections that were open at once.
    pub concurrency_reached: usize,
    /// The most requests that were under way on a connection of HTTP/2 at once: fewer than were asked for
    /// where the server allows fewer, or had no more to answer. 0 of other protocols.
    pub streams_reached: usize,
    /// Addresses connected to, one per target; `None` for Unix sockets and names that were not
    /// found.
    pub addresses: Vec<Option<SocketAddr>>,
    /// The first answer of the first target (ab: Server Software, Document Length).
    pub first: Option<FirstResponse>,
    /// What TLS agreed on, on the first connection that used it.
    pub tls: Option<TlsFacts>,
    /// How many requests came to which end.
    pub counts: Counts,
    /// The same errors, counted as ab 2.4 does.
    pub ab: AbCounts,
    /// Failed requests by kind; their sum is [`Counts::failed`].
    pub failures: Failures,
    /// The error of the first failed request of a kind, where it
    /// [says more](FailureKind::has_reason) than the kind: why TLS failed, for one.
    pub reasons: BTreeMap<FailureKind, String>,
    /// Answers by status; empty of memcached, which has none.
    pub statuses: BTreeMap<u16, u64>,
    /// What operations on memcached came to; `None`: another protocol was spoken.
    pub operations: Option<Operations>,
    /// What came within the span, without the drain.
    pub in_span: InSpan,
    /// Bytes on the wire (under TLS: inside it).
    pub bytes: Bytes,
    /// What became of connections.
    pub connections: ConnectionCounts,
    /// Requests that had no answer when the run ended.
    pub unfinished: Unfinished,
    /// How long things took.
    pub latency: Latency,
    /// What came of the requests of each name, in the order of the plan; empty: they have none.
    pub by_name: Vec<ByName>,
    /// Spans of [`Report::silence_min`] or more in which no answer came to any thread although requests waited
    /// for one; in order, within [`Report::elapsed`].
    pub silences: Vec<Silence>,
    /// How long a silence is: 100 ms at least, ten times the time between two answers, and twice the median latency.
    pub silence_min: Duration,
    /// The longest span without an answer, whether it is a silence or not; `None` if none was as long as 1 ms.
    pub longest_silence: Option<Silence>,
    /// One entry per second since measuring began, the drain included, the last one shorter.
    pub seconds: Vec<Second>,
    /// The same in finer slices with their histograms.
    pub timeline: Timeline,
    /// What each thread of ours used.
    pub generator: Vec<ThreadUse>,
    /// Single requests, by when they ended; empty unless the plan asked for them.
    pub samples: Vec<Sample>,
    /// The limit of open files as the run found it; `None`: no limit.
    pub descriptors: Option<u64>,
    /// What would fool a reader who is not told.
    pub warnings: Vec<Warning>,
}

impl Report {
    /// Whether the server answered what it was asked, and the figures are those of the server: every
    /// request was sent and answered, some with a status of 200 to 399, and none too late by the
    /// generator's fault. A body of another length is no objection, nor is a single bad status.
    pub fn is_sound(&self) -> bool {
        let lengths = self.failures.of(FailureKind::BodyLength);
        let unfinished = &self.unfinished;
        let all_answered =
            self.counts.failed == lengths && unfinished.hung + unfinished.unsent == 0;
        let good: u64 = self.statuses.range(200..400).map(|(_, count)| count).sum();
        let is_invalid = |warning: &Warning| matches!(warning, Warning::GeneratorLate { .. });
        all_answered
            && (good > 0 || self.counts.completed == 0 || self.operations.is_some())
            && !self.warnings.iter().any(is_invalid)
    }
}

/// What ended a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The number of requests was reached.
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FatalError {
    /// What kind it was.
    pub kind: FailureKind,
    /// The system's error number, if it came from the system.
    pub errno: Option<i32>,
    /// What happened, in words.
    pub message: String,
}

/// What was sent before measuring began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WarmUpReport {
    /// How long it was.
    pub duration: Duration,
    /// Requests that began in it; they are in no other number of the report.
    pub requests: u64,
    /// Whether it became steady; `None` if nobody looked.
    pub verdict: Option<catamaran_stats::WarmUp>,
}

/// The first answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstResponse {
    /// Its status.
    pub status: u16,
    /// Its Server field, whole (ab prints it up to the first space or slash-version).
    pub server: Option<String>,
    /// How long its body was, without chunk framing.
    pub body_bytes: u64,
    /// Its head as received, at most 8 KiB; an AJP13 head is written as HTTP would.
    pub head: Vec<u8>,
}

/// What TLS agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFacts {
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: String,
    /// The cipher suite as OpenSSL names it, such as `TLS_AES_256_GCM_SHA384` or
    /// `ECDHE-RSA-AES128-GCM-SHA256`.
    pub cipher: String,
    /// Bits of the server's public key, if they could be told (ab's `pkbits`).
    pub key_bits: Option<u32>,
    /// Bits of the symmetric key (ab's `skbits`).
    pub cipher_bits: u32,
    /// The group of the key exchange as OpenSSL names it, such as `X25519`.
    pub temp_key: Option<String>,
    /// Bits of that group, such as 253 for X25519.
    pub temp_key_bits: Option<u32>,
    /// The name sent in SNI.
    pub server_name: Option<String>,
}

/// How many requests came to which end.
///
/// `started = ok + failed + unfinished`, always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that clients began or that a schedule made due.
    pub started: u64,
    /// Answered in full, whatever the status, and as the checks want it.
    pub ok: u64,
    /// Of the completed: bodies that were not as long as the first one, where that was looked at.
    pub other_length: u64,
    /// Of the completed: bodies that had another checksum than the first one of their request, where that was looked
    /// at.
    pub other_body: u64,
    /// Failed, each once.
    pub failed: u64,
    /// Answered in full: `ok` and those with an unexpected length.
    pub completed: u64,
    /// Of the completed: with a status outside 200 to 299.
    pub non_2xx: u64,
    /// Of the completed: answers after which the connection could be used again and keep-alive
    /// was wanted (ab's "Keep-Alive requests").
    pub kept_alive: u64,
    /// Of the completed: announced no length (ab without `-l` and HTTP/1.0 calls it variable).
    pub without_length: u64,
}

/// What operations on memcached came to, of those that were answered and did not fail.
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

/// What came within [`Report::elapsed`]; the rest came in the drain.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// All received: heads, bodies and their framing, of failed requests too.
    pub received: u64,
    /// Of these: response heads (for AJP13 the packets that carry them).
    pub heads: u64,
    /// Of these: body bytes without chunk or packet framing (ab: HTML transferred).
    pub bodies: u64,
    /// All sent: heads and bodies.
    pub sent: u64,
    /// Of these: body bytes without packet framing.
    pub sent_bodies: u64,
}

/// What became of connections, from the beginning of the run, the warm-up included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
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
    pub unsolicited: u64,
}

/// Requests without an answer when the run ended.
#[derive(Clone, Debug)]
pub struct Unfinished {
    /// Still without an answer when the grace was over: hung.
    pub hung: u64,
    /// In flight when the run was stopped at once, by hand or by an error.
    pub cut: u64,
    /// Due by the schedule, but still waiting for a connection.
    pub unsent: u64,
    /// How old each of them was, counted from when it was due or sent: to the end of the grace,
    /// and for one that was never sent to the end of the run's duration, after which none is sent.
    pub ages: Histogram,
}

impl Unfinished {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.hung + self.cut + self.unsent
    }
}

/// How long things took, of all answers that came in full; [`Latency::corrected`] has the others,
/// too.
#[derive(Clone, Debug)]
pub struct Latency {
    /// From the beginning of a connect to its end, with TLS; one value per connection opened in
    /// the measured time (ab counts 0 for reused ones: see [`Latency::per_request_connects`]).
    pub connect: Histogram,
    /// From the request's last byte written to the answer's first byte read (ab: Waiting).
    pub first_byte: Histogram,
    /// From the connection being ready (or, reused, the request being sent) to the answer's last
    /// byte (ab: Processing).
    pub processing: Histogram,
    /// From the beginning, with the connect if there was one, to the last byte (ab: Total): the
    /// *raw* latency.
    pub total: Histogram,
    /// From when the request was due to its last byte: *corrected* for what a late or blocked
    /// sender hides. It has all requests: those that failed, hung or were never sent with the time
    /// that they were waited for, as a lower bound. `None` in a closed loop, which has no schedule.
    pub corrected: Option<Censored>,
    /// From when the request was due, or its connection free if that was later, to when it was
    /// sent: how late we were ourselves. `None` in a closed loop.
    pub lateness: Option<Histogram>,
    /// From when the request was due to when a connection was free for it, of those requests that
    /// waited. `None` in a closed loop.
    pub waits: Option<Histogram>,
    /// Answers that needed no connect of their own: so many zeros would be in ab's Connect row.
    pub per_request_connects: u64,
}

/// What came of the requests of one name. Requests of an open loop that were never sent have none.
#[derive(Clone, Debug)]
pub struct ByName {
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
    /// From when they were due, which in a closed loop is when they began; those without an answer
    /// with the time that they were waited for.
    pub latency: Censored,
}

/// A span of time without an answer, since measuring began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// When it began.
    pub from: Duration,
    /// When the next answer came, or the span that is measured ended.
    pub to: Duration,
}

impl Silence {
    /// How long it was.
    pub fn length(self) -> Duration {
        self.to.saturating_sub(self.from)
    }
}

/// What happened in one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Second {
    /// Answers in full.
    pub completed: u64,
    /// Failures.
    pub failed: u64,
    /// Bytes received.
    pub received: u64,
    /// Sum of the raw latencies of these answers, in nanoseconds.
    pub latency_sum: u64,
    /// The longest of them, in nanoseconds.
    pub latency_max: u64,
}

/// What a thread of the generator used while measuring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUse {
    /// How long it ran.
    pub wall: Duration,
    /// CPU time, in user mode and in the kernel together.
    pub cpu: Duration,
    /// How long it could have run, but no CPU was free for it (the scheduler's account, in
    /// `/proc/thread-self/schedstat`); `None` where the system does not say.
    pub starved: Option<Duration>,
    /// Of `cpu`: waiting for the next intended start without sleeping, since that was too near for a
    /// timer.
    pub spun: Duration,
}

impl ThreadUse {
    /// Share of the wall time on a CPU, 0 to 1.
    pub fn busy(&self) -> f64 {
        self.share(self.cpu)
    }

    /// Share of the wall time in which it was ready to run and had no CPU, 0 to 1.
    pub fn starved(&self) -> f64 {
        self.share(self.starved.unwrap_or_default())
    }

    /// Share of the wall time spent waiting without sleeping, 0 to 1.
    pub fn spun(&self) -> f64 {
        self.share(self.spun)
    }

    fn share(&self, time: Duration) -> f64 {
        time.as_secs_f64() / self.wall.as_secs_f64().max(f64::MIN_POSITIVE)
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
