//! The counters of each worker, and their sum.
//!
//! Each worker owns one [`Counters`] for each listener, so workers share no cache line; [`Snapshot`]
//! is their sum. Relaxed atomics suffice, because the numbers imply no order of events.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Counts of one listener on one worker.
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) accepted: AtomicU64,
    pub(crate) closed: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) bytes_in: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    /// Open connections by [`Stage`].
    stages: [AtomicU64; Stage::COUNT],
    processing_nanos: AtomicU64,
    processing_nanos_max: AtomicU64,
    refused: [Slot; REASONS_MAX],
}

#[derive(Debug, Default)]
struct Slot {
    reason: OnceLock<&'static str>,
    count: AtomicU64,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            accepted: AtomicU64::default(),
            closed: AtomicU64::default(),
            requests: AtomicU64::default(),
            bytes_in: AtomicU64::default(),
            bytes_out: AtomicU64::default(),
            stages: Default::default(),
            processing_nanos: AtomicU64::default(),
            processing_nanos_max: AtomicU64::default(),
            refused: std::array::from_fn(|_| Slot::default()),
        }
    }
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Relaxed);
    }

    /// Counts one request or connection that ended badly for `reason`.
    pub(crate) fn refuse(&self, reason: &'static str) {
        for slot in &self.refused {
            // A free slot becomes this reason's, so the slots in use come first.
            if *slot.reason.get_or_init(|| reason) == reason {
                slot.count.fetch_add(1, Relaxed);
                return;
            }
        }
        // All slots have other reasons: the last one counts this under its own reason, so that no event is lost.
        if let Some(last) = self.refused.last() {
            last.count.fetch_add(1, Relaxed);
        }
    }

    /// Counts one more open connection at this stage.
    pub(crate) fn enter(&self, stage: Stage) {
        self.stages[stage as usize].fetch_add(1, Relaxed);
    }

    /// Counts one connection less at this stage.
    pub(crate) fn leave(&self, stage: Stage) {
        self.stages[stage as usize].fetch_sub(1, Relaxed);
    }

    /// Counts the time that a request took, from its head to the end of its response.
    pub(crate) fn answered(&self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.processing_nanos.fetch_add(nanos, Relaxed);
        self.processing_nanos_max.fetch_max(nanos, Relaxed);
    }

    pub(crate) fn add_to(&self, sum: &mut Snapshot) {
        let count_at = |stage: Stage| self.stages[stage as usize].load(Relaxed);
        // A connection that passes from one stage to the next may be counted in both or in none.
        sum.connections.accepting += count_at(Stage::Accepting);
        sum.connections.reading += count_at(Stage::Reading);
        sum.connections.serving += count_at(Stage::Serving);
        sum.connections.writing += count_at(Stage::Writing);
        sum.connections.keep_alive += count_at(Stage::KeepAlive);
        sum.processing_time += Duration::from_nanos(self.processing_nanos.load(Relaxed));
        let longest = Duration::from_nanos(self.processing_nanos_max.load(Relaxed));
        sum.processing_time_max = sum.processing_time_max.max(longest);
        sum.accepted += self.accepted.load(Relaxed);
        sum.closed += self.closed.load(Relaxed);
        sum.requests += self.requests.load(Relaxed);
        sum.bytes_in += self.bytes_in.load(Relaxed);
        sum.bytes_out += self.bytes_out.load(Relaxed);
        for slot in &self.refused {
            let Some(reason) = slot.reason.get() else {
                break;
            };
            *sum.refused.entry(reason).or_default() += slot.count.load(Relaxed);
        }
    }
}

/// The stage of an open connection, as the status view shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Accepting,
    Reading,
    Serving,
    Writing,
    KeepAlive,
}

impl Stage {
    const COUNT: usize = 5;
}

/// Connections open now, by their stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Connections that were accepted and have sent nothing yet.
    pub accepting: u64,
    /// Connections that receive a head or a body while the application does not run.
    pub reading: u64,
    /// Connections whose application is at work, or whose answer is delayed.
    pub serving: u64,
    /// Connections whose peer takes the response more slowly than it is produced, or that are being
    /// closed.
    pub writing: u64,
    /// Connections that are idle between two requests.
    pub keep_alive: u64,
}

/// The counters of a connector since its start, summed over all workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections closed, by either side.
    pub closed: u64,
    /// Requests handed to the application.
    pub requests: u64,
    /// Bytes read from sockets.
    pub bytes_in: u64,
    /// Bytes written to sockets.
    pub bytes_out: u64,
    /// Connections open now.
    pub connections: Connections,
    /// The time that requests took, from the head to the end of the response or of what is left of
    /// the body; measured only with a [status view](crate::Config::status), else zero.
    pub processing_time: Duration,
    /// The longest time of a single request.
    pub processing_time_max: Duration,
    /// Requests and connections that ended with a fault, by reason token.
    pub refused: BTreeMap<&'static str, u64>,
}

impl Snapshot {
    /// The number of connections open now.
    #[must_use]
    pub fn open(&self) -> u64 {
        self.accepted.saturating_sub(self.closed)
    }
}

/// Slots for reason tokens. The codecs and the connector know about 50; further ones share the last
/// slot.
const REASONS_MAX: usize = 96;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_the_sum_of_the_workers() {
        let (one, two) = (Counters::default(), Counters::default());
        Counters::add(&one.accepted, 3);
        Counters::add(&two.accepted, 2);
        Counters::add(&two.closed, 1);
        one.refuse("a");
        two.refuse("b");
        two.refuse("a");
        let mut sum = Snapshot::default();
        one.add_to(&mut sum);
        two.add_to(&mut sum);
        assert_eq!((sum.accepted, sum.open()), (5, 4));
        assert_eq!(sum.refused, BTreeMap::from([("a", 2), ("b", 1)]));
    }
}
