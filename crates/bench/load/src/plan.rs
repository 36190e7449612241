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

/// The plan of one run of the load generator.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The options that the report prints beside the figures.
    pub subject: Subject,
    /// Where requests are sent: at least one target. Connection number `i` serves target `i` modulo
    /// their number and sends that target's requests in turn, so more targets than connections are
    /// a fault.
    pub targets: Vec<Target>,
    /// The pace of requests: by clients (closed loop) or by a rate (open loop).
    pub pace: Pace,
    /// Start times from a list, such as a log. They replace those drawn from the rate, which only the warm-up
    /// uses then. A replay has one target, and neither stages nor a number of requests; the run ends with the
    /// last request.
    pub replay: Option<Replay>,
    /// Stages in which the level of the pace changes; empty: it is constant. Without
    /// [`Stop::duration`] the run ends with its last stage.
    pub stages: Vec<Stage>,
    /// The conditions that end the run.
    pub stop: Stop,
    /// The load before measuring begins, which is left out of the report.
    pub warm_up: WarmUp,
    /// The number of threads, each with one event loop and its share of the connections; never more
    /// than there are connections. The command line's default is one per core (ab: 1, trunk: `-W`).
    pub threads: NonZeroUsize,
    /// The options of connections, such as keep-alive and pipelining.
    pub connections: Connections,
    /// The time limits of a request, and of a run without events.
    pub timeouts: Timeouts,
    /// What makes a request a failure, and what ends the run early.
    pub checks: Checks,
    /// Whether data of each request are kept, and of how many (ab `-g`, `-e`).
    pub samples: Samples,
    /// The seed of random numbers (Poisson gaps, phases): the same seed gives the same schedule.
    pub seed: u64,
    /// The table of `{{csv COLUMN}}`; `None`: there is none.
    pub table: Option<Arc<Table>>,
    /// The source of the requests' numbers, which placeholders and weights need.
    pub numbers: Numbers,
    /// Whether each client keeps the cookies that it receives and sends them back.
    pub cookie_jar: bool,
    /// The function by which each thread reads its starved time when measuring begins and ends.
    pub starved_time: StarvedTime,
}

/// The time that the calling thread has been ready to run without a CPU since it began; `None`
/// where the system does not tell. Linux has it in `/proc/thread-self/schedstat`; this crate reads
/// no files itself.
pub type StarvedTime = fn() -> Option<Duration>;

/// The rule by which requests become due: a closed or an open loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// A closed loop: each client sends its next request when it has the response to the last one.
    /// It measures capacity (ab `-c`, wrk `-c`).
    Closed {
        /// The number of clients, and so of connections open at once.
        concurrency: NonZeroUsize,
        /// The time between the first connects of two clients (ab trunk `-R`). Default zero.
        spacing: Duration,
    },
    /// An open loop: requests are due by a schedule that does not depend on responses. It measures
    /// latency at a given demand (wrk2 `-R`).
    Open {
        /// The rate of the whole run in requests per second; finite and above zero.
        per_second: f64,
        /// The distribution of the gaps between requests.
        arrivals: Arrivals,
        /// The number of connections. A request that finds all of them busy waits; its latency
        /// counts from the time at which it was due.
        connections: NonZeroUsize,
        /// The most requests that may wait per thread, at 16 bytes each; those beyond fail as
        /// [`Backlog`](crate::report::FailureKind::Backlog). The command line's default is 2^20.
        backlog: NonZeroUsize,
    },
}

/// Requests with a start time each, such as those of a log.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The start times of the requests, in order.
    pub arrivals: Arc<[Arrival]>,
    /// The length of the whole schedule, by which rates are divided.
    pub span: Duration,
    /// Counts of the log's lines, for the report.
    pub facts: ReplayFacts,
}

/// The start time of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The start time in nanoseconds after the beginning of the schedule.
    pub at_ns: u64,
    /// The request's place among the target's requests, from 0.
    pub request: u32,
}

/// The distribution of the gaps between requests of an open loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Equal gaps, with a random phase for each thread.
    Constant,
    /// Exponential gaps: independent arrivals, as of many users. The command line's default.
    Poisson,
}

/// A stage of the run: a level that holds or is ramped to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    /// The length of the stage, above zero.
    pub duration: Duration,
    /// The level at the end of the stage: requests per second (open loop), or clients (closed loop;
    /// rounded, at most `concurrency`).
    pub level: f64,
    /// `true`: the level changes evenly from the last stage's (zero before the first) to this one;
    /// `false`: it changes at once.
    pub ramp: bool,
}

/// The conditions that end the run; the first one that is met counts. One of `requests`, `duration`
/// and [`Plan::stages`] must be given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stop {
    /// The run ends after exactly this number of requests (ab `-n`); those of the warm-up do not count.
    pub requests: Option<NonZeroU64>,
    /// The run ends after this time (ab `-t`, wrk `-d`); the warm-up does not count.
    pub duration: Option<Duration>,
    /// The time that requests in flight have after `duration`; then they are reported as hung, with
    /// their age. The command line's default is 2 s; ab has no such time and drops them.
    pub grace: Duration,
}

/// The load before measuring begins, which is left out of the report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WarmUp {
    /// No warm-up: everything is measured, as ab does.
    #[default]
    None,
    /// A warm-up of this length.
    For(Duration),
    /// A warm-up until the run is steady: throughput and latency of a closed loop, latency of an
    /// open one, by the tests of `stats` on one value a second. If it is not steady after `max`,
    /// the report says so and measuring begins.
    Detect {
        /// The longest warm-up. The command line's default is 60 s.
        max: Duration,
    },
}

/// The options of connections, such as keep-alive and pipelining.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connections {
    /// Whether a connection is used for more than one request (ab `-k`, wrk's default). If not, it
    /// is closed after each response. The caller writes the Connection field into the requests'
    /// headers; AJP13 has none.
    pub keep_alive: bool,
    /// The number of requests after which the generator closes a kept connection; `None`: no limit.
    pub requests_max: Option<NonZeroU64>,
    /// The requests that a connection may have outstanding: by HTTP/1.1 pipelining, or as streams
    /// of HTTP/2 (h2load `-m`). The command line's default is 1. More need `keep_alive`, and are a
    /// fault over AJP13.
    pub pipeline: NonZeroU32,
    /// Local addresses, used by the connections in turn; empty: the system chooses (ab `-B`, `-o`).
    pub sources: Vec<IpAddr>,
    /// SO_SNDBUF in bytes, set before connecting; `None`: the system's default (ab `-b`).
    pub send_buffer: Option<usize>,
    /// SO_RCVBUF in bytes, set before connecting; `None`: the system's default (ab `-b`).
    pub receive_buffer: Option<usize>,
    /// How many connects may fail before the run is given up.
    pub patience: ConnectPatience,
    /// Whether a request is sent again if the server closes its kept connection without a response.
    pub resend: Resend,
}

/// Whether a request is sent a second time if the server has closed its kept connection without a
/// byte of a response. A request of which nothing was written does not count as sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resend {
    /// The request is sent again only if the server had closed before it could receive any of it,
    /// and its method is idempotent. Else it has failed. The default.
    Unreceived,
    /// The request is never sent again: it has failed. This is ab's rule, which writes on a kept
    /// connection without checking whether it has ended.
    Never,
}

/// How many connects may fail before the run is given up. In every case a connection whose connect
/// failed waits before its next one, from 1 ms doubling to 100 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectPatience {
    /// Any number of connects may fail: each is a failed request. The default.
    Unlimited,
    /// The run ends if a connect is refused, or finds no socket or no route, before any connection was made:
    /// then there is no server. The command line's default for one server.
    UntilConnected,
    /// The rule of ab 2.4. A refused connect counts as a receive error: it ends the run unless
    /// [`Checks::stop_at_receive_error`] is off, and never over TLS. After other errors the request
    /// is tried again, until this number of requests or connects has failed (10 in ab).
    Ab(u32),
    /// The run ends if more than this number of connects fail before the first response (ab trunk with 10).
    BeforeFirstAnswer(u32),
}

/// The time limits of a request, and of a run without events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// The limit for one request, from when it is sent or its connect begins. Then it fails as
    /// [`Timeout`](crate::report::FailureKind::Timeout) and its connection is closed. `None`: no
    /// limit, as ab. The command line's default is 30 s.
    pub request: Option<Duration>,
    /// The limit for the whole run without any event on any connection; then it ends as
    /// [`Idle`](crate::report::Ending::Idle) (ab `-s`, whose default is 30 s).
    pub idle: Option<Duration>,
}

/// What makes a request a failure, and what ends the run early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    /// What follows if a body is not as long as the first one. Lengths are compared for each
    /// request of the plan, so that different URLs may differ.
    pub body_length: LengthCheck,
    /// Whether the checksum (CRC-32C) of each body is compared with that of the first one of the
    /// same request; the others are counted in
    /// [`Requests::other_body`](crate::report::Requests::other_body). It costs CPU time.
    pub body_content: bool,
    /// Whether the run ends at the first error of a receive, such as a reset (ab without `-r`); the
    /// report is complete up to then.
    pub stop_at_receive_error: bool,
    /// Whether the run ends at the first connection that gets no file descriptor (ab). If not, that
    /// is a failed request.
    pub stop_without_descriptors: bool,
}

/// What is done if a body is not as long as the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LengthCheck {
    /// Nothing follows (ab `-l`).
    Ignored,
    /// The body is counted in [`Requests::other_length`](crate::report::Requests::other_length),
    /// with a warning. The command line's default.
    Counted,
    /// The body is counted, and the request has failed: [`BodyLength`](crate::report::FailureKind::BodyLength) (ab).
    Failed,
}

/// Whether the data of each request are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Samples {
    /// No samples are kept, so that memory does not grow with the number of requests.
    None,
    /// The data of the first answered requests of the run are kept, up to this number, at 40 bytes each.
    First(NonZeroUsize),
}

impl Replay {
    /// The number of requests that are due within `time` from the beginning.
    pub(crate) fn due_within(&self, time: Duration) -> usize {
        let is_due = |arrival: &Arrival| u128::from(arrival.at_ns) < time.as_nanos();
        self.arrivals.partition_point(is_due)
    }
}

impl Pace {
    /// The most connections that are open at once.
    pub fn connections(&self) -> NonZeroUsize {
        match *self {
            Self::Closed { concurrency, .. } => concurrency,
            Self::Open { connections, .. } => connections,
        }
    }
}

impl Default for Connections {
    /// Keep-alive without limits, one request at a time, and the system's defaults.
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
