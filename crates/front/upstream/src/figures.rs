//! Figures of a backend's requests for operators: how many a second, how fast, where their sessions
//! went, and why some failed.
//!
//! A request touches the counts of its own worker, which no other changes. The locks are taken when an
//! attempt has failed, and by readers. Rates and percentiles exist only if
//! [`Backend::sample_figures`](crate::Backend::sample_figures) is called once a second.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use catamaran_balance::affinity::Outcome;
use catamaran_stats::buckets::{BucketSums, Buckets};
use catamaran_stats::tally::{Sum, Tally, Window};
use catamaran_transport::{Count, PerWorker};
use http::StatusCode;

use crate::error::Culprit;

/// The counters and times of one backend's requests.
#[derive(Debug)]
pub struct Figures {
    workers: PerWorker<Local>,
    failures: Mutex<Failures>,
    recent: Mutex<Recent>,
}

/// Bytes sent and received on a connection: heads, bodies and framing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

/// The counters that one worker has for the backend.
#[derive(Debug, Default)]
struct Local {
    attempts: Count,
    /// Requests by the [`Outcome`] for their session, in the order of [`Outcome::ALL`].
    sticky: [Count; Outcome::ALL.len()],
    /// Times from the beginning of an attempt to the head of its response; created with the first
    /// response.
    latency: OnceLock<Tally>,
    /// Heads of responses, by the first digit of their status; 0 is unused.
    responses: [Count; CLASSES],
    /// Attempts that were followed by another one.
    retried: Count,
    /// Times from the beginning of an attempt to the head of its response.
    first_byte: Buckets,
    /// Times from the beginning of an attempt to the end of its response.
    whole: Buckets,
    /// Waits for a connection because all were in use.
    queued: Buckets,
}

/// Counters and times of a backend's requests since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FiguresTotals {
    /// The number of attempts: requests, and their retries.
    pub attempts: u64,
    /// Heads of responses, by the first digit of their status; 0 is unused.
    pub responses: [u64; CLASSES],
    /// Attempts that were followed by another one.
    pub retried: u64,
    /// Times from the beginning of an attempt to the head of its response.
    pub first_byte: BucketSums,
    /// Times from the beginning of an attempt to the end of its response.
    pub whole: BucketSums,
    /// Waits for a connection because all were in use, including those that ended without one.
    pub queued: BucketSums,
    /// Failed attempts, by reason.
    pub failures: BTreeMap<FailureReason, u64>,
}

/// The culprit of a failure, and its token.
pub type FailureReason = (Culprit, &'static str);

#[derive(Debug, Default)]
struct Failures {
    /// Failed attempts by reason; reasons are constants of the program, so there are few.
    counts: BTreeMap<FailureReason, u64>,
    last: Option<LastFailure>,
}

/// The last attempt that failed, except those that failed because of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastFailure {
    /// When the attempt failed.
    pub at: SystemTime,
    /// The culprit and the token of the failure.
    pub reason: FailureReason,
    /// The stage that the attempt had reached, as a token.
    pub stage: &'static str,
    /// The id of the request, as in the log.
    pub request: String,
    /// The error message of the system or of the protocol.
    pub detail: String,
}

/// The counts of the last minute and of the last few seconds.
#[derive(Debug)]
struct Recent {
    seconds: VecDeque<Sample>,
    /// The number of samples since the last slice ended.
    since_slice: u32,
    latency: Window,
    /// The failure counts at the end of each slice, the oldest first; the first is from before the kept
    /// slices.
    failures: VecDeque<BTreeMap<FailureReason, u64>>,
    /// The counts of response heads at the same moments.
    responses: VecDeque<[u64; CLASSES]>,
}

/// Counts of a backend at one moment, from which rates are computed.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// The time of the sample, since any fixed moment.
    at: Duration,
    attempts: u64,
    moved: Traffic,
}

/// Counters, rates and latencies of a backend's requests, at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FiguresSnapshot {
    /// Attempts since the start: requests, and their retries.
    pub attempts: u64,
    /// Requests by the outcome for their session, that of the last attempt.
    pub sticky: Vec<(Outcome, u64)>,
    /// Failed attempts by reason: since the start, and within the last minute.
    pub failures: BTreeMap<FailureReason, (u64, u64)>,
    /// The last failure that the client did not cause; `None`: there was none.
    pub last_failure: Option<LastFailure>,
    /// Heads of responses since the start, by the first digit of their status; 0 is unused.
    pub responses: [u64; CLASSES],
    /// Heads of responses within the last minute, likewise by the first digit.
    pub responses_minute: [u64; CLASSES],
    /// Rates over the last few seconds; `None` until there are two samples.
    pub rates: Option<Rates>,
    /// How many responses of the last minute `median` and `p99` are computed from.
    pub timed: u64,
    /// The median time from the beginning of an attempt to the head of its response, including the wait
    /// for a connection, over the last minute. `None` if there was no response.
    pub median: Option<Duration>,
    /// The 99th percentile of the times of `median`.
    pub p99: Option<Duration>,
}

/// Attempts and bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Attempts per second.
    pub attempts: f64,
    /// Bytes per second sent to the backend.
    pub sent: f64,
    /// Bytes per second received from the backend.
    pub received: f64,
}

impl Figures {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            workers: PerWorker::new(workers, |_| Local::default()),
            failures: Mutex::default(),
            recent: Mutex::new(Recent {
                seconds: VecDeque::new(),
                since_slice: 0,
                latency: Window::new(SLICES),
                // What came before the first sample came within the last minute too.
                failures: VecDeque::from([BTreeMap::new()]),
                responses: VecDeque::from([[0; CLASSES]]),
            }),
        }
    }

    /// Counts an attempt that begins on `worker`.
    pub fn attempt(&self, worker: usize) {
        self.workers[worker].attempts.increment();
    }

    /// Counts a request by the outcome for its session.
    pub fn sticky(&self, worker: usize, outcome: Outcome) {
        let counts = &self.workers[worker].sticky;
        for (counted, count) in Outcome::ALL.iter().zip(counts) {
            if *counted == outcome {
                count.increment();
            }
        }
    }

    /// Records the time from the beginning of an attempt to the head of its response.
    pub fn answered(&self, worker: usize, after: Duration) {
        let local = &self.workers[worker];
        local.latency.get_or_init(Tally::new).record(after);
        local.first_byte.record(after);
    }

    /// Records the time from the beginning of an attempt to the end of its response.
    pub fn completed(&self, worker: usize, after: Duration) {
        self.workers[worker].whole.record(after);
    }

    /// Counts the head of a response, by the first digit of its status.
    pub fn responded(&self, worker: usize, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100);
        if let Some(count) = self.workers[worker].responses.get(class) {
            count.increment();
        }
    }

    /// Counts an attempt that is followed by another one.
    pub fn retried(&self, worker: usize) {
        self.workers[worker].retried.increment();
    }

    /// Records a wait for a connection, which may have ended without one.
    pub(crate) fn queued(&self, worker: usize, waited: Duration) {
        self.workers[worker].queued.record(waited);
    }

    /// Counts a failed attempt by its reason.
    fn failed(&self, reason: FailureReason) {
        *self.lock_failures().counts.entry(reason).or_default() += 1;
    }

    /// Counts a failed attempt, and keeps it as the last one.
    pub fn failed_as(&self, failure: LastFailure) {
        self.failed(failure.reason);
        self.lock_failures().last = Some(failure);
    }

    /// Samples the counts, for rates and percentiles. Must be called once a second; `at` is the time
    /// since any fixed moment, `moved` are the bytes since the start.
    pub(crate) fn sample(&self, at: Duration, moved: Traffic) {
        let mut recent = self.lock_recent();
        // The rates need a sample at either end of their seconds.
        if recent.seconds.len() == RATE_SECONDS + 1 {
            recent.seconds.pop_front();
        }
        recent.seconds.push_back(Sample {
            at,
            attempts: self.attempts(),
            moved,
        });
        recent.since_slice += 1;
        if recent.since_slice == SLICE_SECONDS {
            recent.since_slice = 0;
            self.end_slice(&mut recent);
        }
    }

    /// Keeps the counts at the end of a slice, and forgets those from before the last minute.
    fn end_slice(&self, recent: &mut Recent) {
        recent.latency.push(self.latency());
        if recent.failures.len() > SLICES {
            recent.failures.pop_front();
            recent.responses.pop_front();
        }
        let failures = self.lock_failures().counts.clone();
        recent.failures.push_back(failures);
        recent.responses.push_back(self.responses());
    }

    /// The figures as they are now. Those of the last minute are the counts by now without the counts at the end of the
    /// oldest slice that is kept.
    #[must_use]
    pub fn snapshot(&self) -> FiguresSnapshot {
        let recent = self.lock_recent();
        // With what came since the last slice ended: a minute that is up to a slice longer.
        let mut latency = recent.latency.clone();
        latency.extend(self.latency());
        let failed_attempts = self.lock_failures();
        let failures_before = recent.failures.front();
        let mut failures = BTreeMap::new();
        for (reason, count) in &failed_attempts.counts {
            let before = failures_before.and_then(|counts| counts.get(reason));
            let in_minute = count.saturating_sub(before.copied().unwrap_or_default());
            failures.insert(*reason, (*count, in_minute));
        }
        let responses = self.responses();
        let mut responses_minute = responses;
        let responses_before = recent.responses.front().copied().unwrap_or_default();
        for (count, before) in responses_minute.iter_mut().zip(responses_before) {
            *count = count.saturating_sub(before);
        }
        FiguresSnapshot {
            responses,
            responses_minute,
            attempts: self.attempts(),
            sticky: self.sticky_outcomes(),
            failures,
            last_failure: failed_attempts.last.clone(),
            rates: recent.rates(),
            timed: latency.count(),
            median: latency.percentile(50.0),
            p99: latency.percentile(99.0),
        }
    }

    /// The counters and times since the start.
    #[must_use]
    pub fn totals(&self) -> FiguresTotals {
        let mut totals = FiguresTotals {
            failures: self.lock_failures().counts.clone(),
            responses: self.responses(),
            ..FiguresTotals::default()
        };
        for local in self.workers.iter() {
            totals.attempts += local.attempts.read();
            totals.retried += local.retried.read();
            totals.first_byte.add(&local.first_byte);
            totals.whole.add(&local.whole);
            totals.queued.add(&local.queued);
        }
        totals
    }

    fn responses(&self) -> [u64; CLASSES] {
        let mut sums = [0; CLASSES];
        for local in self.workers.iter() {
            for (sum, count) in sums.iter_mut().zip(&local.responses) {
                *sum += count.read();
            }
        }
        sums
    }

    fn attempts(&self) -> u64 {
        self.workers.iter().map(|local| local.attempts.read()).sum()
    }

    /// The number of requests for each outcome for their session.
    #[must_use]
    pub fn sticky_outcomes(&self) -> Vec<(Outcome, u64)> {
        let mut counts = Outcome::ALL.map(|outcome| (outcome, 0));
        for local in self.workers.iter() {
            for ((_, sum), count) in counts.iter_mut().zip(&local.sticky) {
                *sum += count.read();
            }
        }
        counts.to_vec()
    }

    /// The times to the heads of responses, of all workers.
    fn latency(&self) -> Sum {
        let mut sum = Sum::new();
        for tally in self.workers.iter().filter_map(|local| local.latency.get()) {
            sum.add(tally);
        }
        sum
    }

    fn lock_failures(&self) -> MutexGuard<'_, Failures> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recent {
    /// Rates between the first and the last sample; `None` if no time passed between them.
    fn rates(&self) -> Option<Rates> {
        let (first, last) = (self.seconds.front()?, self.seconds.back()?);
        let seconds = last.at.saturating_sub(first.at).as_secs_f64();
        if seconds <= 0.0 {
            return None;
        }
        let rate = |before: u64, now: u64| now.saturating_sub(before) as f64 / seconds;
        Some(Rates {
            attempts: rate(first.attempts, last.attempts),
            sent: rate(first.moved.sent, last.moved.sent),
            received: rate(first.moved.received, last.moved.received),
        })
    }
}

/// The number of first digits of statuses, including 0.
const CLASSES: usize = 6;

/// How many seconds the rates are averaged over.
const RATE_SECONDS: usize = 5;

/// The length of a slice in seconds; a minute consists of slices.
const SLICE_SECONDS: u32 = 5;

/// How many slices are kept.
const SLICES: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    const RESET: FailureReason = (Culprit::Backend, "reset");

    fn moved(sent: u64, received: u64) -> Traffic {
        Traffic { sent, received }
    }

    #[test]
    fn rates_are_of_the_last_seconds() {
        let figures = Figures::new(2);
        assert_eq!(figures.snapshot().rates, None);
        for second in 0..10 {
            figures.sample(Duration::from_secs(second), moved(second * 100, 0));
            (0..second).for_each(|_| figures.attempt(1));
        }
        // The samples from second 4 on count: 4 + 5 + 6 + 7 + 8 attempts came between them.
        let rates = figures.snapshot().rates.expect("there are samples");
        assert_eq!(
            (rates.attempts, rates.sent, rates.received),
            (6.0, 100.0, 0.0)
        );
        assert_eq!(figures.snapshot().attempts, 45);
    }

    #[test]
    fn what_is_older_than_a_minute_is_only_in_the_totals() {
        let figures = Figures::new(1);
        let mut now = Duration::ZERO;
        let mut wait = |seconds: u32| {
            for _ in 0..seconds {
                now += Duration::from_secs(1);
                figures.sample(now, Traffic::default());
            }
        };
        wait(1);
        figures.failed(RESET);
        figures.answered(0, Duration::from_millis(900));
        assert_eq!(figures.snapshot().failures[&RESET], (1, 1), "at once");
        assert_eq!(figures.snapshot().timed, 1, "at once");
        wait(30);
        figures.failed(RESET);
        figures.answered(0, Duration::from_micros(9));
        let snapshot = figures.snapshot();
        assert_eq!(snapshot.failures[&RESET], (2, 2));
        assert_eq!(
            (snapshot.timed, snapshot.median),
            (2, Some(Duration::from_micros(9)))
        );
        assert!(
            snapshot.p99 > Some(Duration::from_millis(870)),
            "{:?}",
            snapshot.p99
        );
        wait(45);
        let snapshot = figures.snapshot();
        assert_eq!(snapshot.failures[&RESET], (2, 1));
        assert_eq!(
            (snapshot.timed, snapshot.p99),
            (1, Some(Duration::from_micros(9)))
        );
        wait(60);
        let snapshot = figures.snapshot();
        assert_eq!(snapshot.failures[&RESET], (2, 0));
        assert_eq!((snapshot.timed, snapshot.p99), (0, None));
    }

    #[test]
    fn responses_of_the_last_minute_are_told_by_class() {
        let figures = Figures::new(2);
        let mut now = Duration::ZERO;
        let mut wait = |seconds: u32| {
            for _ in 0..seconds {
                now += Duration::from_secs(1);
                figures.sample(now, Traffic::default());
            }
        };
        let of = || {
            let snapshot = figures.snapshot();
            (snapshot.responses, snapshot.responses_minute)
        };
        figures.responded(0, StatusCode::OK);
        wait(1);
        figures.responded(1, StatusCode::INTERNAL_SERVER_ERROR);
        let first = ([0, 0, 1, 0, 0, 1], [0, 0, 1, 0, 0, 1]);
        assert_eq!(
            of(),
            first,
            "one from before it was looked first, and one at once"
        );
        wait(40);
        figures.responded(1, StatusCode::BAD_GATEWAY);
        assert_eq!(of().1, [0, 0, 1, 0, 0, 2]);
        wait(40);
        assert_eq!(of(), ([0, 0, 1, 0, 0, 2], [0, 0, 0, 0, 0, 1]));
        wait(60);
        assert_eq!(of().1, [0; CLASSES]);
    }

    #[test]
    fn totals_are_sums_over_workers() {
        let figures = Figures::new(2);
        for worker in [0, 1, 1] {
            figures.attempt(worker);
            figures.responded(worker, StatusCode::NOT_FOUND);
            figures.answered(worker, Duration::from_millis(2));
            figures.completed(worker, Duration::from_millis(20));
            figures.queued(worker, Duration::from_micros(1));
        }
        // Three digits are all that a status has; this one has no class.
        figures.responded(0, StatusCode::from_u16(999).unwrap());
        figures.retried(0);
        figures.failed(RESET);
        let totals = figures.totals();
        assert_eq!((totals.attempts, totals.retried), (3, 1));
        assert_eq!(totals.responses, [0, 0, 0, 0, 3, 0]);
        assert_eq!(totals.failures[&RESET], 1);
        let under = |sums: &BucketSums, bound| {
            let mut buckets = sums.cumulative();
            buckets.find(|it| it.0 == bound).map(|it| it.1)
        };
        assert_eq!(under(&totals.first_byte, 0.001), Some(0));
        assert_eq!(under(&totals.first_byte, 0.0025), Some(3));
        assert_eq!(under(&totals.whole, 0.01), Some(0));
        assert_eq!(under(&totals.whole, 0.025), Some(3));
        assert_eq!((totals.queued.count(), totals.whole.seconds()), (3, 0.06));
    }

    #[test]
    fn the_last_failure_is_kept_whole() {
        let figures = Figures::new(1);
        let failure = LastFailure {
            at: SystemTime::now(),
            reason: RESET,
            stage: "sent",
            request: "00".to_owned(),
            detail: "connection reset".to_owned(),
        };
        figures.failed_as(failure.clone());
        figures.failed((Culprit::Client, "gone"));
        figures.sticky(0, Outcome::Moved);
        let snapshot = figures.snapshot();
        assert_eq!(snapshot.last_failure, Some(failure));
        assert_eq!(snapshot.failures.len(), 2);
        let moved = snapshot.sticky.iter().find(|it| it.0 == Outcome::Moved);
        assert_eq!(moved, Some(&(Outcome::Moved, 1)));
    }
}
