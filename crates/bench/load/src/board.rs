//! The state that the threads of a run share. All of it is written rarely and read often, except each
//! thread's own line of counters.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::clock::{Clock, NEVER, after};
use crate::plan::{Plan, WarmUp};
use crate::prepare::{PreparedRequest, PreparedTarget};
use crate::record::Names;
use crate::report::{Ending, FailureKind, TlsFacts};
use crate::stream::Address;
use crate::tls::TlsTarget;

/// The state of a run that its threads share.
#[derive(Debug)]
pub(crate) struct Board {
    pub(crate) plan: Plan,
    pub(crate) clock: Clock,
    /// The prepared requests, one entry for each target.
    pub(crate) targets: Vec<PreparedTarget>,
    /// For each request of the plan: the index of its target, and its index among that target's requests.
    places: Vec<(usize, usize)>,
    pub(crate) names: Names,
    pub(crate) addresses: Vec<Address>,
    pub(crate) tls_targets: Vec<Option<TlsTarget>>,
    /// The number of threads that have not yet prepared what their first request needs.
    unready: Mutex<usize>,
    all_ready: Condvar,
    /// The time at which measuring begins; [`NEVER`] while it is not known.
    measure_from: AtomicU64,
    /// For each request of the plan, the length of its first response's body; [`UNKNOWN`] before that.
    lengths: Vec<AtomicU64>,
    /// For each request of the plan, the checksum of its first response's body; [`UNKNOWN`] before that.
    checksums: Vec<AtomicU64>,
    pub(crate) first: OnceLock<FirstResponse>,
    pub(crate) tls: OnceLock<TlsFacts>,
    stop: Arc<AtomicBool>,
    /// The reason of the end, unless `stop` was set from outside. A lock, because it is taken once in a run.
    ending: Mutex<Option<Ending>>,
    pub(crate) lines: Vec<Line>,
    /// For each kind of failure, the text of its first error, where the kind needs one.
    reasons: [OnceLock<String>; FailureKind::ALL.len()],
    /// The number of failures, and whether there was a response, for [`ConnectPatience`](crate::plan::ConnectPatience).
    pub(crate) failures: AtomicU64,
    pub(crate) answers: AtomicBool,
    /// The result of the test whether the run was steady after the warm-up; unset if there was no test.
    pub(crate) steady: OnceLock<catamaran_stats::WarmUp>,
}

/// Facts of the first response, for the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FirstResponse {
    /// The status code of the response.
    pub(crate) status: u16,
    /// The value of the response's Server field; `None` if there is none.
    pub(crate) server: Option<String>,
    /// The length of the response's body in bytes, without chunk framing.
    pub(crate) body_bytes: u64,
    /// The response's head as received, at most 8 KiB; an AJP13 head is written as HTTP/1.1 would be.
    pub(crate) head: Vec<u8>,
}

/// The counters of one thread while it runs. Only that thread writes them, so plain stores suffice.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Line {
    pub(crate) started: AtomicU64,
    pub(crate) completed: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) in_flight: AtomicU64,
    pub(crate) received: AtomicU64,
    pub(crate) latency_sum: AtomicU64,
    pub(crate) latency_max: AtomicU64,
    /// The number of requests that are due and wait for a connection.
    pub(crate) waiting: AtomicU64,
    /// The numbers of responses by the first digit of their status, from 1 on.
    pub(crate) statuses: [AtomicU64; 5],
    /// The numbers of memcached's hits, misses and stored values.
    pub(crate) operations: [AtomicU64; 3],
    /// The latencies of about the last second. A lock, because it is taken once a second.
    pub(crate) recent: Mutex<catamaran_stats::Slice>,
    /// The time of the last event.
    pub(crate) active_at: AtomicU64,
}

impl Board {
    /// The state before the first thread is ready. `threads` is their number; each counts itself ready later.
    pub(crate) fn new(
        plan: Plan,
        targets: Vec<PreparedTarget>,
        addresses: Vec<Address>,
        tls_targets: Vec<Option<TlsTarget>>,
        threads: usize,
    ) -> Self {
        let mut places = Vec::new();
        for (target, prepared) in targets.iter().enumerate() {
            places.extend((0..prepared.requests.len()).map(|index| (target, index)));
        }
        let requests = plan.targets.iter().flat_map(|target| &target.requests);
        let names = Names::new(requests.map(|request| request.name.as_deref()));
        Self {
            plan,
            clock: Clock::start(),
            targets,
            names,
            addresses,
            tls_targets,
            unready: Mutex::new(threads),
            all_ready: Condvar::new(),
            measure_from: AtomicU64::new(NEVER),
            lengths: unknown(places.len()),
            checksums: unknown(places.len()),
            places,
            first: OnceLock::new(),
            tls: OnceLock::new(),
            stop: Arc::default(),
            ending: Mutex::new(None),
            lines: std::iter::repeat_with(Line::default)
                .take(threads)
                .collect(),
            reasons: std::array::from_fn(|_| OnceLock::new()),
            failures: AtomicU64::new(0),
            answers: AtomicBool::new(false),
            steady: OnceLock::new(),
        }
    }

    /// The prepared request with the number `place` in the plan.
    pub(crate) fn request(&self, place: u32) -> &PreparedRequest {
        let (target, index) = self.places[place as usize];
        &self.targets[target].requests[index]
    }

    /// The target of the request with the number `place` in the plan.
    pub(crate) fn target_of(&self, place: usize) -> usize {
        self.places[place].0
    }

    pub(crate) fn measure_from(&self) -> u64 {
        self.measure_from.load(Relaxed)
    }

    /// Prepares this thread for its first request, for example TLS, and waits until all threads are prepared.
    pub(crate) fn get_ready(&self) {
        for target in self.tls_targets.iter().flatten() {
            target.prime();
        }
        self.make_ready();
        self.wait_for_all();
    }

    /// Notes that a thread is ready. With the last one the clock begins for the measured span, or
    /// for a warm-up of known length, so that no thread's preparation makes requests late.
    fn make_ready(&self) {
        let mut unready = self.unready.lock().unwrap_or_else(PoisonError::into_inner);
        *unready = unready.saturating_sub(1);
        if *unready > 0 {
            return;
        }
        let now = self.clock.now();
        match self.plan.warm_up {
            WarmUp::None => self.measure(now),
            WarmUp::For(duration) => self.measure(after(now, Some(duration))),
            WarmUp::Detect { .. } => {}
        }
        self.all_ready.notify_all();
    }

    /// Waits until all threads are ready or the run is stopped.
    fn wait_for_all(&self) {
        let mut unready = self.unready.lock().unwrap_or_else(PoisonError::into_inner);
        while *unready > 0 && !self.is_stopped() {
            let waited = self.all_ready.wait_timeout(unready, STOP_TICK);
            (unready, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Sets the time at which measuring begins; called once.
    pub(crate) fn measure(&self, from: u64) {
        self.measure_from.store(from, Relaxed);
    }

    /// Whether a body of `len` bytes is as long as the first body of the same request.
    pub(crate) fn fits(&self, place: u32, len: u64) -> bool {
        is_first_or_same(&self.lengths[place as usize], len)
    }

    /// Returns a function that adds bytes of a body to the checksum `crc`, if the plan compares bodies.
    pub(crate) fn checksum<'a>(&self, crc: &'a mut u32) -> impl FnMut(&[u8]) + use<'a> {
        let is_compared = self.plan.checks.body_content;
        move |bytes| {
            if is_compared {
                *crc = crc32c::crc32c_append(*crc, bytes);
            }
        }
    }

    /// Whether a body's checksum equals that of the first body of the same request.
    pub(crate) fn has_same_body(&self, place: u32, checksum: u32) -> bool {
        is_first_or_same(&self.checksums[place as usize], checksum.into())
    }

    /// Whether the request differs each time it is sent, so that responses may differ too.
    pub(crate) fn varies(&self, place: u32) -> bool {
        let dynamic = self.request(place).dynamic.as_ref();
        dynamic.is_some_and(|dynamic| dynamic.varies())
    }

    /// Whether the `len` bytes received of an incomplete body are fewer or more than the first body had.
    pub(crate) fn differs(&self, place: u32, len: u64) -> bool {
        let first = self.lengths[place as usize].load(Relaxed);
        first != UNKNOWN && first != len
    }

    /// Keeps the text of a failure's error, if it is the first of its kind and the kind needs a reason.
    pub(crate) fn explain(&self, kind: FailureKind, error: &io::Error) {
        if kind.has_reason() {
            self.reasons[kind as usize].get_or_init(|| error.to_string());
        }
    }

    /// The first error's text for each kind of failure that has one.
    pub(crate) fn reasons(&self) -> BTreeMap<FailureKind, String> {
        let mut texts = BTreeMap::new();
        for (kind, reason) in FailureKind::ALL.into_iter().zip(&self.reasons) {
            if let Some(text) = reason.get() {
                texts.insert(kind, text.clone());
            }
        }
        texts
    }

    /// The time of the last event on any connection.
    pub(crate) fn active_at(&self) -> u64 {
        let active = self.lines.iter().map(|line| line.active_at.load(Relaxed));
        active.max().unwrap_or(0)
    }

    /// The flag that ends the run when it is set to true.
    pub(crate) fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Ends the run for all threads. If it is called more than once, the first reason counts.
    pub(crate) fn end(&self, ending: Ending) {
        let mut first = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(ending);
        self.stop.store(true, Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// The reason why the run was ended early; `None`: it was ended from outside, or was not.
    pub(crate) fn ending(&self) -> Option<Ending> {
        let ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
        ending.clone()
    }
}

/// `count` values that are all [`UNKNOWN`].
fn unknown(count: usize) -> Vec<AtomicU64> {
    let values = std::iter::repeat_with(|| AtomicU64::new(UNKNOWN));
    values.take(count).collect()
}

/// Whether `value` equals `known`; if `known` is not set yet, it is set to `value`.
fn is_first_or_same(known: &AtomicU64, value: u64) -> bool {
    let loaded = known.load(Relaxed);
    if loaded != UNKNOWN {
        return loaded == value;
    }
    // Another thread may set its own first value at the same time.
    match known.compare_exchange(UNKNOWN, value, Relaxed, Relaxed) {
        Ok(_) => true,
        Err(first) => first == value,
    }
}

const UNKNOWN: u64 = u64::MAX;

/// The interval at which a thread that waits for the others checks whether the run is stopped.
const STOP_TICK: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::plan::{Checks, Connections, LengthCheck, Numbers, Pace, Samples, Stop, Timeouts};

    fn board(warm_up: WarmUp, threads: usize) -> Board {
        board_of(warm_up, threads, Vec::new())
    }

    fn board_of(warm_up: WarmUp, threads: usize, tls_targets: Vec<Option<TlsTarget>>) -> Board {
        let plan = Plan {
            subject: crate::report::Subject::default(),
            targets: Vec::new(),
            pace: Pace::Closed {
                concurrency: NonZeroUsize::MIN,
                spacing: Duration::ZERO,
            },
            stages: Vec::new(),
            replay: None,
            stop: Stop {
                requests: None,
                duration: None,
                grace: Duration::ZERO,
            },
            warm_up,
            threads: NonZeroUsize::MIN,
            connections: Connections::default(),
            timeouts: Timeouts {
                request: None,
                idle: None,
            },
            checks: Checks {
                body_length: LengthCheck::Ignored,
                body_content: false,
                stop_at_receive_error: false,
                stop_without_descriptors: false,
            },
            samples: Samples::None,
            table: None,
            numbers: Numbers::default(),
            cookie_jar: false,
            seed: 1,
            starved_time: || None,
        };
        Board::new(plan, Vec::new(), Vec::new(), tls_targets, threads)
    }

    /// Preparations of a thread, such as its first TLS handshake, come before the measured time.
    #[test]
    fn time_begins_when_the_last_thread_is_ready() {
        let board = board(WarmUp::None, 3);
        for _ in 0..2 {
            board.make_ready();
            assert_eq!(board.measure_from(), NEVER);
        }
        let before = board.clock.now();
        board.make_ready();
        board.wait_for_all();
        assert!((before..=board.clock.now()).contains(&board.measure_from()));
    }

    /// An open loop over https whose clock began first would send each thread's first request late, by tens of
    /// milliseconds.
    #[test]
    fn the_first_handshake_of_tls_is_prepared_before_time_begins() {
        let board: Arc<OnceLock<Board>> = Arc::default();
        let seen: Arc<Mutex<Vec<u64>>> = Arc::default();
        let (known, times) = (Arc::clone(&board), Arc::clone(&seen));
        let target = TlsTarget::watched(move || {
            let from = known.get().map(Board::measure_from);
            times.lock().unwrap().extend(from);
        });
        let board = board.get_or_init(|| board_of(WarmUp::None, 1, vec![Some(target)]));
        board.get_ready();
        assert_eq!(*seen.lock().unwrap(), [NEVER]);
        assert!(board.measure_from() < NEVER);
    }

    #[test]
    fn a_warm_up_begins_with_it_and_one_to_be_found_has_no_end_yet() {
        let length = Duration::from_secs(2);
        let timed = board(WarmUp::For(length), 1);
        let before = timed.clock.now();
        timed.make_ready();
        assert!(timed.measure_from() >= after(before, Some(length)));
        let found = board(WarmUp::Detect { max: length }, 1);
        found.make_ready();
        assert_eq!(found.measure_from(), NEVER);
    }
}
