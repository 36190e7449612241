//! The plan of a run: targets, requests, pace, duration, and what counts as a failure.
//!
//! A [`Plan`] is plain data that the command line fills in. Nothing here opens a socket or reads a
//! file, so the files the user names (bodies, certificates) arrive as bytes. [`Plan::check`] finds
//! contradictions before anything is sent. Where ab or wrk has a flag for a field, the field's
//! documentation names it.

mod check;
mod data;
mod memcached;
mod target;

use std::net::IpAddr;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;

pub use catamaran_tls::ClientIdentity;
pub use check::PlanFault;
pub use data::{Numbers, Row, Table};
pub use memcached::{KeyOrder, Memcached, Operation};
pub use target::{
    Ajp, Endpoint, Header, HttpVersion, Protocol, Request, Target, Tls, TlsVersion, Transport,
    Verify,
};

use crate::report::{ReplayFacts, Subject};

/// One run of the load generator.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The options that the report repeats beside the figures.
    pub subject: Subject,
    /// Where the requests go; at least one. Connection number `i` serves target `i` modulo their
    /// number and sends that target's requests in turn, so more targets than connections are a
    /// fault.
    pub targets: Vec<Target>,
    /// The pace: by clients or by a rate.
    pub pace: Pace,
    /// Start times of an open loop that are given one by one, instead of drawn from its rate, which
    /// only the warm-up has then. For one target without stages and without a number of requests;
    /// the run ends with the last one.
    pub replay: Option<Replay>,
    /// The changes of the pace's level during the run; empty: it is constant. Without [`Stop::duration`] the run ends
    /// with its last stage.
    pub stages: Vec<Stage>,
    /// When the run is over.
    pub stop: Stop,
    /// The load before measuring begins, which is left out of the report.
    pub warm_up: WarmUp,
    /// Threads, each with one event loop and its share of the connections; never more than there
    /// are connections. The command line's default is one per core (ab: 1, trunk: `-W`).
    pub threads: NonZeroUsize,
    /// The options of connections.
    pub connections: Connections,
    /// The time limits of a request, and of a run without any event.
    pub timeouts: Timeouts,
    /// What makes a request a failure, and what ends the run early.
    pub checks: Checks,
    /// Whether each request is kept, and how many of them (ab `-g`, `-e`).
    pub samples: Samples,
    /// The seed of random numbers (Poisson gaps, phases): the same seed gives the same schedule.
    pub seed: u64,
    /// The table of `{{csv COLUMN}}`; `None`: there is none.
    pub table: Option<Arc<Table>>,
    /// The numbers of requests, where their placeholders or weights need them.
    pub numbers: Numbers,
    /// Whether each client keeps the cookies that it is given and sends them back.
    pub cookie_jar: bool,
    /// Asked by each thread of itself, when measuring begins and ends.
    pub starved_time: StarvedTime,
}

/// How long the calling thread has been ready to run without a CPU since it began; `None` where the
/// system does not say. Linux has it in `/proc/thread-self/schedstat`, and a library reads no files.
pub type StarvedTime = fn() -> Option<Duration>;

/// The pace: what decides when a request is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Each client sends its next request when it has the answer to the last one: measures capacity (ab `-c`, wrk
    /// `-c`).
    Closed {
        /// Clients, and connections open at once.
        concurrency: NonZeroUsize,
        /// Time between the first connects of two clients (ab trunk `-R`). Default zero.
        spacing: Duration,
    },
    /// Requests are due by a schedule, whatever the answers do: measures latency at a given
    /// demand (wrk2 `-R`).
    Open {
        /// Requests per second of the whole run; finite and above zero.
        per_second: f64,
        /// The gaps between requests.
        arrivals: Arrivals,
        /// Connections that carry them. A request that finds all of them busy waits; its latency
        /// counts from when it was due.
        connections: NonZeroUsize,
        /// How many requests may wait per thread, at 16 bytes each; those beyond fail as
        /// [`Backlog`](crate::report::FailureKind::Backlog). The command line's default is 2^20.
        backlog: NonZeroUsize,
    },
}

/// Requests at times of their own, such as those of a log.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The requests, ordered by time.
    pub arrivals: Arc<[Arrival]>,
    /// The length of the whole schedule from its beginning on: rates are over this.
    pub span: Duration,
    /// Counts of the log's lines, for the report.
    pub facts: ReplayFacts,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Nanoseconds after the beginning.
    pub at_ns: u64,
    /// Which of the target's requests, from 0.
    pub request: u32,
}

/// The gaps between requests of an open loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Equal gaps, with a random phase for each thread.
    Constant,
    /// Exponential gaps: independent arrivals, as of many users. The command line's default.
    Poisson,
}

/// A piece of the run with its own level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    /// The length of the stage, above zero.
    pub duration: Duration,
    /// Requests per second (open) or clients (closed, rounded, at most `concurrency`).
    pub level: f64,
    /// `true`: the level moves evenly from the last stage's (zero before the first) to this one;
    /// `false`: it is this one at once.
    pub ramp: bool,
}

/// When the run is over: at whatever comes first. One of `requests`, `duration` and
/// [`Plan::stages`] must be given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stop {
    /// The run ends after exactly this many requests (ab `-n`); those of the warm-up do not count.
    pub requests: Option<NonZeroU64>,
    /// After so long (ab `-t`, wrk `-d`); the warm-up does not count.
    pub duration: Option<Duration>,
    /// The time that requests in flight have after `duration`; then they are reported as hung, with their age. The
    /// command line's default is 2 s; ab has none and forgets them.
    pub grace: Duration,
}

/// The load before measuring begins, which is left out of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarmUp {
    /// Nothing: all is measured, as ab does.
    None,
    /// For this time.
    For(Duration),
    /// Until the run is steady, at most so long: throughput and latency of a closed loop, latency
    /// of an open one, as `stats` finds from one value a second. If it is not steady by then, the
    /// report says so and measures all the same.
    Detect {
        /// When to give up waiting. The command line's default is 60 s.
        max: Duration,
    },
}

/// The options of connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connections {
    /// Whether a connection is used for more than one request (ab `-k`, wrk's default). If not,
    /// each is closed after its answer. What is *asked* of an HTTP server is written by the
    /// caller into the requests' headers; AJP13 has no way to ask.
    pub keep_alive: bool,
    /// After how many requests a kept connection is closed by us; `None`: never.
    pub requests_max: Option<NonZeroU64>,
    /// Requests sent on a connection before the first answer is there: HTTP/1.1 pipelining, or over
    /// HTTP/2 streams that are open at once (h2load `-m`); 1 unless asked. More need `keep_alive`,
    /// and are a fault over AJP13.
    pub pipeline: NonZeroU32,
    /// Local addresses, given to the connections in turn; empty: the system chooses (ab `-B`,
    /// `-o`).
    pub sources: Vec<IpAddr>,
    /// SO_SNDBUF in bytes, before connecting; `None`: the system's (ab `-b`).
    pub send_buffer: Option<usize>,
    /// SO_RCVBUF in bytes, before connecting; `None`: the system's (ab `-b`).
    pub receive_buffer: Option<usize>,
    /// Connects that may fail before the run is given up; see [`ConnectPatience`].
    pub patience: ConnectPatience,
    /// Whether a request is sent again if the server closes its kept connection without an answer.
    pub resend: Resend,
}

/// When a request is sent a second time, because the server has closed its kept connection without
/// a byte of an answer. A request of which nothing was written is never counted as sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resend {
    /// Only if the server had closed before it could receive any of the request, and its method is
    /// idempotent. Others have failed. The default.
    Unreceived,
    /// Never (ab): each has failed. ab writes a request on a kept connection without looking whether that
    /// has ended.
    Never,
}

/// The number of connects that may fail before the run is given up. Whatever is chosen, a connection whose connect
/// failed waits before its next one, from 1 ms doubling to 100 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectPatience {
    /// Any number: each is a failed request. The default.
    Unlimited,
    /// The run ends at the first connect that is refused, or finds no such socket or no route,
    /// before any connection was made: nobody is there. The command line's default for one server.
    UntilConnected,
    /// As ab 2.4. A refused connect is the error of a receive: it ends the run unless
    /// [`Checks::stop_at_receive_error`] is off, and over TLS it never does. A request whose connect
    /// fails otherwise is tried again, until so many requests or connects have failed (10 there).
    Ab(u32),
    /// The run ends if more than this many connects fail before the first answer (ab trunk with 10).
    BeforeFirstAnswer(u32),
}

/// The time limits of a request, and of a run without any event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// One request, from the moment it is sent or its connect begins; then it fails as
    /// [`Timeout`](crate::report::FailureKind::Timeout) and its connection is closed. `None`:
    /// for ever, as ab. The command line's default is 30 s.
    pub request: Option<Duration>,
    /// The whole run without any event on any connection; then the run ends as
    /// [`Idle`](crate::report::Ending::Idle) (ab `-s`, default 30 s there).
    pub idle: Option<Duration>,
}

/// What makes a request a failure, and what ends the run early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    /// The effect of a body that is not as long as the first one. Lengths are compared per request of the plan, so that
    /// many URLs may differ.
    pub body_length: LengthCheck,
    /// Whether the checksum (CRC-32C) of each body is compared with that of the first one of the same request, in
    /// [`Requests::other_body`](crate::report::Requests::other_body). It costs CPU time.
    pub body_content: bool,
    /// The run ends at the first error of a receive, such as a reset (ab without `-r`); the
    /// report is complete up to then.
    pub stop_at_receive_error: bool,
    /// The run ends at the first connection that cannot have a descriptor (ab). Otherwise that is
    /// a failed request.
    pub stop_without_descriptors: bool,
}

/// The effect of a body that is not as long as the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LengthCheck {
    /// None (ab `-l`).
    Ignored,
    /// It is counted, in [`Requests::other_length`](crate::report::Requests::other_length), and warned
    /// of. The command line's default.
    Counted,
    /// It is a failure as well: [`BodyLength`](crate::report::FailureKind::BodyLength) (ab).
    Failed,
}

/// Whether each request is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Samples {
    /// None: memory does not grow with the number of requests.
    None,
    /// The first answered requests of the whole run, up to this many, at 40 bytes each.
    First(NonZeroUsize),
}

impl Replay {
    /// The number of requests that are due within `time` after the beginning.
    pub(crate) fn due_within(&self, time: Duration) -> usize {
        let is_due = |arrival: &Arrival| u128::from(arrival.at_ns) < time.as_nanos();
        self.arrivals.partition_point(is_due)
    }
}

impl Pace {
    /// Connections open at once at most.
    pub fn connections(&self) -> NonZeroUsize {
        match *self {
            Self::Closed { concurrency, .. } => concurrency,
            Self::Open { connections, .. } => connections,
        }
    }
}

impl Default for Connections {
    /// Keep-alive without limits, one request at a time, everything else the system's.
    fn default() -> Self {
        Self {
            keep_alive: true,
            requests_max: None,
            pipeline: NonZeroU32::MIN,
            sources: Vec::new(),
            send_buffer: None,
            receive_buffer: None,
            patience: ConnectPatience::Unlimited,
            resend: Resend::Unreceived,
        }
    }
}
