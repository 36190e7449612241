//! The resources that a worker lends to the slot that is running.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};

use bytes::BytesMut;
use mio::Registry;

use super::filled::FilledRequests;
use super::lingering::LingeringConnections;
use crate::board::{Board, FirstResponse, Line};
use crate::client::LastHeads;
use crate::clock::{NEVER, nanos};
use crate::pace::Feed;
use crate::plan::{ConnectPatience, LengthCheck};
use crate::prepare::PreparedRequest;
use crate::record::{Flight, Record};
use crate::report::{Connections, Ending, FailureKind, FatalError};

/// The resources that all slots of a worker share.
#[derive(Debug)]
pub(super) struct SlotResources {
    pub(super) board: Arc<Board>,
    pub(super) registry: Registry,
    /// The time when the worker last looked at the clock.
    pub(super) now: u64,
    pub(super) feed: Feed,
    pub(super) record: Record,
    pub(super) warm_up: Tally,
    pub(super) connections: Connections,
    /// The requests in flight that were made for one sending only.
    pub(super) filled: FilledRequests,
    /// For each request of the plan, the last heads received.
    pub(super) known: Vec<LastHeads>,
    pub(super) scratch: Box<[u8]>,
    /// The buffer into which HTTP/2 connections read. They borrow it in turn; only a connection with a part of a frame
    /// keeps a buffer of its own.
    pub(super) input: BytesMut,
    /// Slots that are free, the longest free first.
    pub(super) idle: VecDeque<usize>,
    /// The slots that pause, by the time at which they are woken.
    pub(super) pauses: BinaryHeap<Reverse<(u64, usize)>>,
    /// The time that clients had a request in flight within the measured span, in nanoseconds.
    pub(super) busy: u128,
    /// The measured span, from and to; it ends early when no request is left to begin.
    pub(super) span: (u64, u64),
    /// The number of requests in flight, measured or not.
    pub(super) in_flight: u64,
    /// The number of connections that are open or being opened, and its maximum so far.
    open: u64,
    pub(super) open_max: u64,
    /// The most requests that one HTTP/2 connection has had at once.
    pub(super) streams_max: usize,
    /// The fewest streams that a server has allowed on a connection, among the servers that set a limit.
    pub(super) streams_allowed: usize,
    /// The connections that wait for the peer to close them.
    pub(super) lingering: LingeringConnections,
    /// The index of the next connection's source address.
    source: usize,
    has_answered: bool,
    /// The time at which the latencies of the last second are published next.
    next_recent: u64,
}

/// The counts of the warm-up, for the display of progress.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) started: u64,
    completed: u64,
    failed: u64,
    received: u64,
    latency_sum: u64,
    latency_max: u64,
}

impl SlotResources {
    /// The resources before any connection is open. `index` is the number of the thread.
    pub(super) fn new(
        board: Arc<Board>,
        registry: Registry,
        feed: Feed,
        record: Record,
        index: usize,
    ) -> Self {
        let requests = board.targets.iter().map(|target| target.requests.len());
        let known = std::iter::repeat_with(LastHeads::default).take(requests.sum());
        Self {
            known: known.collect(),
            filled: FilledRequests::default(),
            registry,
            now: board.clock.now(),
            feed,
            record,
            warm_up: Tally::default(),
            connections: Connections::default(),
            scratch: vec![0; READ_MAX].into_boxed_slice(),
            input: BytesMut::new(),
            idle: VecDeque::new(),
            pauses: BinaryHeap::new(),
            busy: 0,
            span: (NEVER, NEVER),
            in_flight: 0,
            open: 0,
            open_max: 0,
            streams_max: 0,
            streams_allowed: usize::MAX,
            lingering: LingeringConnections::new(LINGERING_MAX),
            source: index,
            has_answered: false,
            next_recent: 0,
            board,
        }
    }

    pub(super) fn look_at_the_clock(&mut self) {
        self.now = self.board.clock.now();
    }

    /// The request that a flight has sent.
    pub(super) fn request(&self, flight: &Flight) -> &PreparedRequest {
        self.filled.request(&self.board, flight)
    }

    /// Makes the worker wake slot `key` at `at`.
    pub(super) fn pause(&mut self, at: u64, key: usize) {
        self.pauses.push(Reverse((at, key)));
    }

    /// Counts a connection that was opened (1) or closed (-1).
    pub(super) fn opened(&mut self, change: i64) {
        self.open = self.open.saturating_add_signed(change);
        self.open_max = self.open_max.max(self.open);
    }

    /// The local address for the next connection; `None`: the system chooses.
    pub(super) fn next_source(&mut self) -> Option<IpAddr> {
        let sources = &self.board.plan.connections.sources;
        let source = sources.get(self.source % sources.len().max(1)).copied();
        self.source += 1;
        source
    }

    /// Notes that a request begins, on a connection that was free since `free_at`.
    pub(super) fn begin(&mut self, flight: &Flight, free_at: u64) {
        self.in_flight += 1;
        if flight.counted {
            self.record.start(flight.begun);
            self.record.waited(free_at.saturating_sub(flight.due));
            self.record
                .late(flight.begun.saturating_sub(flight.due.max(free_at)));
        } else {
            self.warm_up.started += 1;
        }
    }

    /// Adds the part of a request's time within the measured span; the request has ended just now.
    pub(super) fn add_busy(&mut self, flight: &Flight) {
        let (from, to) = self.span;
        let begun = flight.begun.max(from);
        self.busy += u128::from(self.now.min(to).saturating_sub(begun));
    }

    /// Notes that a request was answered in full just now.
    pub(super) fn answer(&mut self, flight: &Flight, can_reuse: bool, target: usize) {
        self.in_flight -= 1;
        self.add_busy(flight);
        if !self.has_answered {
            self.has_answered = true;
            self.board.answers.store(true, Relaxed);
        }
        if target == 0 && self.board.first.get().is_none() {
            self.keep_first(flight);
        }
        let plan = &self.board.plan;
        // The length is compared in every case, so that the first response sets the length that others are compared
        // with.
        let has_other_length = !self.board.fits(flight.place, flight.body)
            && plan.checks.body_length != LengthCheck::Ignored
            && !self.board.varies(flight.place);
        let has_other_body = plan.checks.body_content
            && !self.board.has_same_body(flight.place, flight.body_crc)
            && !self.board.varies(flight.place);
        let fits = !has_other_length || plan.checks.body_length == LengthCheck::Counted;
        if flight.counted {
            self.record.counts.other_length += u64::from(has_other_length);
            self.record.counts.other_body += u64::from(has_other_body);
            let kept = can_reuse && plan.connections.keep_alive;
            self.record.answer(flight, self.now, kept, fits);
            if !fits {
                self.board.failures.fetch_add(1, Relaxed);
            }
        } else {
            self.warm_up.answer(flight, self.now);
        }
        self.filled.remove(flight);
    }

    /// Notes that a request failed just now.
    pub(super) fn fail(&mut self, flight: &Flight, kind: FailureKind, error: Option<&io::Error>) {
        self.in_flight -= 1;
        self.add_busy(flight);
        self.filled.remove(flight);
        if flight.counted {
            let differs = self.board.plan.checks.body_length == LengthCheck::Failed
                && self.board.differs(flight.place, flight.body);
            self.record.fail(flight, kind, self.now, differs);
            if let Some(error) = error {
                self.board.explain(kind, error);
            }
        } else {
            self.warm_up.failed += 1;
        }
        self.note_failure(kind, error);
    }

    /// Whether a request whose connect failed in this way is tried again: only as ab does, for
    /// which a request ends by a refused connect or a failed handshake alone.
    pub(super) fn tries_again(&self, kind: FailureKind) -> bool {
        let has_ended = [FailureKind::Refused, FailureKind::Tls, FailureKind::Source];
        let is_ab = matches!(self.board.plan.connections.patience, ConnectPatience::Ab(_));
        is_ab && kind.is_connect() && !has_ended.contains(&kind)
    }

    /// Notes that a connect failed whose request is tried again.
    pub(super) fn fail_connect(&mut self, kind: FailureKind, error: Option<&io::Error>) {
        self.record.fail_connect();
        self.note_failure(kind, error);
    }

    /// Counts the failure, and ends the run if the plan does not allow it.
    fn note_failure(&self, kind: FailureKind, error: Option<&io::Error>) {
        let failures = self.board.failures.fetch_add(1, Relaxed) + 1;
        if self.is_final(kind, failures, error) {
            let fatal = FatalError {
                kind,
                errno: error.and_then(io::Error::raw_os_error),
                message: message(kind, error),
            };
            self.board.end(Ending::Failure(fatal));
        }
    }

    /// Whether this failure ends the run; `failures` is the number of failures including this one.
    fn is_final(&self, kind: FailureKind, failures: u64, error: Option<&io::Error>) -> bool {
        let plan = &self.board.plan;
        match kind {
            FailureKind::Reset | FailureKind::Receive => plan.checks.stop_at_receive_error,
            FailureKind::Descriptors if plan.checks.stop_without_descriptors => true,
            kind if kind.is_connect() => self.is_final_connect(kind, failures, error),
            _ => false,
        }
    }

    /// Whether this failure of a connect ends the run.
    fn is_final_connect(
        &self,
        kind: FailureKind,
        failures: u64,
        error: Option<&io::Error>,
    ) -> bool {
        let plan = &self.board.plan;
        let was_answered = self.board.answers.load(Relaxed);
        match plan.connections.patience {
            ConnectPatience::Unlimited => false,
            ConnectPatience::UntilConnected => {
                let was_connected = self.connections.opened > 0 || was_answered;
                let is_hopeless = kind == FailureKind::Source || error.is_some_and(is_nobody_there);
                is_hopeless && !was_connected
            }
            ConnectPatience::Ab(max) => match kind {
                // ab learns of a refused connect by reading.
                FailureKind::Refused => plan.checks.stop_at_receive_error && !self.has_tls(),
                FailureKind::Tls => false,
                FailureKind::Source => true,
                _ => failures > u64::from(max),
            },
            ConnectPatience::BeforeFirstAnswer(max) => failures > u64::from(max) && !was_answered,
        }
    }

    fn has_tls(&self) -> bool {
        self.board.tls_targets.iter().any(Option::is_some)
    }

    /// Publishes the counts so far in `line`, for the display of progress.
    pub(super) fn publish(&mut self, line: &Line, is_measuring: bool) {
        let counts = &self.record.counts;
        let tally = if is_measuring {
            Tally {
                started: counts.started,
                completed: counts.completed,
                failed: counts.failed,
                received: self.record.bytes.received,
                latency_sum: nanos(self.record.total.sum()),
                latency_max: nanos(self.record.total.max()),
            }
        } else {
            self.warm_up
        };
        for (counter, value) in [
            (&line.started, tally.started),
            (&line.completed, tally.completed),
            (&line.failed, tally.failed),
            (&line.received, tally.received),
            (&line.latency_sum, tally.latency_sum),
            (&line.latency_max, tally.latency_max),
            (&line.in_flight, self.in_flight),
            (&line.waiting, self.feed.waiting() as u64),
        ] {
            counter.store(value, Relaxed);
        }
        if is_measuring && self.now >= self.next_recent {
            self.next_recent = self.now + RECENT;
            self.publish_recent(line);
        }
    }

    /// Publishes the counts that take more time to make, and the latencies of the last second.
    fn publish_recent(&self, line: &Line) {
        for (counter, count) in line.statuses.iter().zip(self.record.status_classes()) {
            counter.store(count, Relaxed);
        }
        let results = &self.record.operations;
        let operations = [results.hits, results.misses, results.stored];
        for (counter, count) in line.operations.iter().zip(operations) {
            counter.store(count, Relaxed);
        }
        let mut recent = line.recent.lock().unwrap_or_else(PoisonError::into_inner);
        *recent = self.record.timeline.recent();
    }

    /// Keeps the facts of the first response to the first target, for the report.
    fn keep_first(&self, flight: &Flight) {
        let codec = self.board.targets[0].codec;
        let (mut head, server) = self.known[flight.place as usize].head(codec);
        head.truncate(FIRST_HEAD_MAX);
        // Another thread may have been faster; the first one counts.
        let _ = self.board.first.set(FirstResponse {
            status: flight.status,
            server,
            body_bytes: flight.body,
            head,
        });
    }
}

impl Tally {
    /// Counts the response to `flight`, which ended at `now`.
    fn answer(&mut self, flight: &Flight, now: u64) {
        let total = now.saturating_sub(flight.begun);
        self.completed += 1;
        self.received += flight.received;
        self.latency_sum += total;
        self.latency_max = self.latency_max.max(total);
    }
}

/// The message on why the run ended. The system's message about a bind does not name its purpose, so it is added.
fn message(kind: FailureKind, error: Option<&io::Error>) -> String {
    match error {
        None => kind.text().to_owned(),
        Some(error) if kind == FailureKind::Source => format!("{}: {error}", kind.text()),
        Some(error) => error.to_string(),
    }
}

/// Whether a connect's error says that nothing listens there. A full queue is not such an error.
fn is_nobody_there(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable, NotFound};
    matches!(
        error.kind(),
        ConnectionRefused | NotFound | HostUnreachable | NetworkUnreachable
    )
}

/// The time between publications of recent latencies in nanoseconds, short enough that a display
/// each second finds new ones.
const RECENT: u64 = 500_000_000;

/// The most bytes that are read at once.
const READ_MAX: usize = 64 * 1024;

/// The most connections that wait for their peer's close: a tenth of a second of 20,000 connects.
const LINGERING_MAX: usize = 2000;

/// The most bytes of the first head that are kept.
const FIRST_HEAD_MAX: usize = 8192;
