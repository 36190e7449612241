//! The queue of spans between the workers and the thread that sends them.
//!
//! It holds at most [`SPANS_MAX`] spans as JSON. Workers only push; the lock is held for no longer than that. Only spans of
//! recorded traces come here.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use catamaran_upstream::config::Address;
use tokio::time::Instant;

use crate::lock::lock;

/// What became of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpanResult {
    /// The collector took it.
    Sent,
    /// The queue was full.
    Dropped,
    /// The collector could not be reached, or did not take it in time.
    Lost,
    /// The collector refused it.
    Refused,
}

/// The queue, shared by all workers and the sending thread.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<QueueState>,
    /// Told when a batch is complete, and when the queue is closed.
    news: Condvar,
    /// Told when the thread has ended.
    ended: Condvar,
    counts: [AtomicU64; SpanResult::ALL.len()],
    collector: Mutex<Collector>,
}

/// The collector of the configuration in force.
#[derive(Debug, Default)]
struct Collector {
    /// The address of the collector; `None`: the configuration has none.
    address: Option<Address>,
    /// Why the collector takes no spans now; `None`: it takes them.
    trouble: Option<String>,
}

#[derive(Debug, Default)]
struct QueueState {
    spans: Vec<Vec<u8>>,
    /// When the thread must have ended; `None`: the front does not end yet.
    end: Option<Instant>,
    has_ended: bool,
}

impl SpanResult {
    pub(crate) const ALL: [Self; 4] = [Self::Sent, Self::Dropped, Self::Lost, Self::Refused];

    /// The name in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Dropped => "dropped",
            Self::Lost => "lost",
            Self::Refused => "refused",
        }
    }
}

impl Queue {
    /// Adds a span, or drops it if the queue is full.
    pub(super) fn put(&self, span: Vec<u8>) {
        let mut state = self.lock();
        if state.spans.len() >= SPANS_MAX || state.end.is_some() {
            drop(state);
            return self.count(SpanResult::Dropped, 1);
        }
        state.spans.push(span);
        // The first span wakes a thread that waits for any, a whole batch one that gathers.
        if state.spans.len() == 1 || state.spans.len() == BATCH_MAX {
            self.news.notify_one();
        }
    }

    pub(super) fn count(&self, result: SpanResult, spans: usize) {
        self.counts[result as usize].fetch_add(spans as u64, Ordering::Relaxed);
    }

    pub(super) fn counts(&self) -> [u64; SpanResult::ALL.len()] {
        SpanResult::ALL.map(|result| self.counts[result as usize].load(Ordering::Relaxed))
    }

    /// Takes the collector of the configuration in force. The trouble of the one before is forgotten.
    pub(super) fn follow(&self, address: Option<&Address>) {
        let mut collector = lock(&self.collector);
        if collector.address.as_ref() != address {
            *collector = Collector {
                address: address.cloned(),
                trouble: None,
            };
        }
    }

    pub(super) fn trouble(&self) -> Option<String> {
        lock(&self.collector).trouble.clone()
    }

    /// Sets or clears the trouble of the collector at this address. Returns whether that is news: it is none if the
    /// trouble goes on, or if the collector is no longer that of the configuration in force.
    pub(super) fn set_trouble(&self, address: &Address, trouble: Option<String>) -> bool {
        let mut collector = lock(&self.collector);
        if collector.address.as_ref() != Some(address) {
            return false;
        }
        let is_news = collector.trouble.is_some() != trouble.is_some();
        collector.trouble = trouble;
        is_news
    }

    /// Waits for spans, and from the first one for [`GATHER`] at most for a whole batch. `None`: the queue is closed, and
    /// nothing is left.
    pub(super) fn next_batch(&self) -> Option<Vec<Vec<u8>>> {
        let mut state = self.lock();
        while state.spans.is_empty() {
            if state.end.is_some() {
                return None;
            }
            let waited = self.news.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let is_gathering =
            |state: &mut QueueState| state.spans.len() < BATCH_MAX && state.end.is_none();
        let waited = self.news.wait_timeout_while(state, GATHER, is_gathering);
        let (mut gathered, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let count = gathered.spans.len().min(BATCH_MAX);
        Some(gathered.spans.drain(..count).collect())
    }

    /// Waits before the next attempt to send; ends early if the queue is closed.
    pub(super) fn pause(&self, pause: Duration) {
        let is_open = |state: &mut QueueState| state.end.is_none();
        drop(self.news.wait_timeout_while(self.lock(), pause, is_open));
    }

    /// The time that is left to send what waits; `None`: as long as it takes, since the front does not end.
    pub(super) fn left(&self) -> Option<Duration> {
        let end = self.lock().end?;
        Some(end.saturating_duration_since(Instant::now()))
    }

    /// Closes the queue, and waits until the thread has sent what is left, for [`END_MAX`] at most.
    pub(super) fn finish(&self) {
        let mut state = self.lock();
        state.end = Some(Instant::now() + END_MAX);
        self.news.notify_one();
        let is_running = |state: &mut QueueState| !state.has_ended;
        let waited = self.ended.wait_timeout_while(state, END_MAX, is_running);
        let (closed, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if !closed.has_ended {
            tracing::warn!("the collector of spans takes nothing; the last ones are lost");
        }
    }

    /// Says that the thread has ended.
    pub(super) fn end(&self) {
        self.lock().has_ended = true;
        self.ended.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        lock(&self.state)
    }
}

/// The most spans that may wait: some 2 MiB, and 6 MiB if all paths are as long as a text of a span may be.
pub(super) const SPANS_MAX: usize = 2048;

/// The most spans that are sent at a time.
const BATCH_MAX: usize = 512;

/// How long spans are gathered before they are sent.
const GATHER: Duration = Duration::from_secs(1);

/// How long the end of the process waits for the last spans to be sent.
const END_MAX: Duration = Duration::from_secs(3);
