//! Traces of requests: which ones are recorded, and the queue from which their spans reach a collector.
//!
//! A worker decides for each request ([`Traces::begin`]) and adds the spans of those that are recorded to a bounded queue.
//! One thread sends them ([`sender`]). No request waits for it: if the queue is full, a span is dropped and counted. The
//! syntax of the fields is in [`crate::trace_context`].

mod queue;
mod sender;
pub(crate) mod span;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use arc_swap::ArcSwap;
use catamaran_message::Fields;
use catamaran_message::name::TRACEPARENT;
use queue::Queue;
pub(crate) use queue::SpanResult;
use tokio::time::Instant;

use crate::config::TraceConfig;
use crate::lock::lock;
use crate::trace_context::{SpanId, TraceId, TraceParent};

/// The state of traces that all workers share.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    queue: Arc<Queue>,
    strangers: Allowance,
    /// The settings that the sending thread follows; `None` until there is one.
    followed: Mutex<Option<Arc<ArcSwap<TraceConfig>>>>,
}

/// One exchange's part of a trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trace {
    pub(crate) id: TraceId,
    /// The span in which the client made the request; `None`: the trace begins here.
    pub(crate) parent: Option<SpanId>,
    /// The span of the exchange.
    pub(crate) span: SpanId,
    /// The first of the series of ids that attempts have.
    attempts: SpanId,
    /// Whether the client came over TLS, to the front or to a trusted proxy.
    pub(crate) is_secure: bool,
    /// When the exchange began; `None`: its spans are not recorded.
    pub(crate) recorded: Option<Began>,
}

/// The beginning of a trace, by the clock of the day and by the one that measures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Began {
    pub(crate) time: SystemTime,
    pub(crate) instant: Instant,
}

/// The change of a request's `traceparent` for an attempt after the first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextParent {
    before: TraceParent,
    now: TraceParent,
}

/// Who sent a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TraceSender {
    /// A proxy in `trusted_proxies`.
    Trusted,
    /// Any other client.
    Stranger,
}

/// A stranger's wish to have its trace recorded was ignored: `strangers_per_second` is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Excess;

impl Traces {
    /// Begins the trace of a request with these fields, or goes on with the client's. `Excess`: strangers want more
    /// traces recorded than `strangers_per_second`; this one is treated as if the client had not said so.
    pub(crate) fn begin(
        &self,
        config: &TraceConfig,
        headers: &Fields,
        sender: TraceSender,
        now: impl Fn() -> Began,
    ) -> (Trace, Option<Excess>) {
        let given = TraceParent::of(headers);
        let is_drawn = || fastrand::f64() < config.sample;
        let mut excess = None;
        let is_sampled = match given.map(|given| given.is_sampled) {
            None => is_drawn(),
            Some(is_sampled) if sender == TraceSender::Trusted => is_sampled,
            Some(false) => false,
            Some(true) if self.strangers.take(config.strangers_per_second, now().time) => true,
            Some(true) => {
                excess = Some(Excess);
                is_drawn()
            }
        };
        let trace = Trace {
            id: given.map_or_else(TraceId::random, |given| given.trace),
            parent: given.map(|given| given.span),
            span: SpanId::random(),
            attempts: SpanId::random(),
            is_secure: false,
            recorded: is_sampled.then(now),
        };
        (trace, excess)
    }

    /// Adds a span to the queue, or drops it if that is full.
    pub(crate) fn put(&self, span: &span::Span) {
        self.queue.put(span.to_json());
    }

    /// Sends spans as this configuration says from now on. The first one starts the thread. With `None`, spans that
    /// wait are still sent, but trouble of their collector is no longer reported.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn follow(&self, config: Option<&Arc<TraceConfig>>) -> io::Result<()> {
        let mut followed = lock(&self.followed);
        self.queue.follow(config.map(|config| &config.address));
        let Some(config) = config else {
            return Ok(());
        };
        match &*followed {
            Some(settings) => settings.store(Arc::clone(config)),
            None => {
                let settings = Arc::new(ArcSwap::new(Arc::clone(config)));
                sender::start(Arc::clone(&self.queue), Arc::clone(&settings))?;
                *followed = Some(settings);
            }
        }
        Ok(())
    }

    /// The spans by what became of them, in the order of [`SpanResult::ALL`].
    pub(crate) fn counts(&self) -> [u64; SpanResult::ALL.len()] {
        self.queue.counts()
    }

    /// Why the collector takes no spans now; `None`: it does, or there is none.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.queue.trouble()
    }

    /// Sends the spans that are left; a collector that takes nothing is waited for some seconds at most.
    pub(crate) fn finish(&self) {
        if lock(&self.followed).is_some() {
            self.queue.finish();
        }
    }
}

impl Trace {
    /// The trace that a request would be part of, for explanations: all requests get the same ids in place of random
    /// ones, and a client that wants its trace recorded is always obeyed.
    pub(crate) fn supposed(headers: &Fields) -> Self {
        let given = TraceParent::of(headers);
        let parent = given.unwrap_or(TraceParent::SUPPOSED);
        Self {
            id: parent.trace,
            parent: given.map(|given| given.span),
            span: TraceParent::SUPPOSED.span,
            attempts: TraceParent::SUPPOSED.span,
            is_secure: false,
            recorded: parent.is_sampled.then(Began::now),
        }
    }

    /// The span of the attempt with this number, which counts from 1.
    pub(crate) fn attempt(&self, number: u32) -> SpanId {
        self.attempts.after(number.saturating_sub(1))
    }

    /// The trace for a fetch that this exchange begins: the fetch's attempts get spans of their own.
    pub(crate) fn of_fetch(&self) -> Self {
        Self {
            attempts: SpanId::random(),
            ..*self
        }
    }

    /// The `traceparent` that the backend of an attempt gets.
    fn parent_of(&self, attempt: u32) -> TraceParent {
        TraceParent {
            trace: self.id,
            span: self.attempt(attempt),
            is_sampled: self.recorded.is_some(),
        }
    }

    /// Writes the fields for the first attempt.
    pub(crate) fn write(&self, headers: &mut Fields) {
        self.parent_of(1).write(self.parent.is_some(), headers);
    }

    /// The change for an attempt after the first; `None` for the first one.
    pub(crate) fn next(&self, attempt: u32) -> Option<NextParent> {
        (attempt > 1).then(|| NextParent {
            before: self.parent_of(1),
            now: self.parent_of(attempt),
        })
    }

    /// The change of `traceparent` for a request that was written for `other` and whose first attempt is in this trace.
    pub(crate) fn instead_of(&self, other: &Self) -> NextParent {
        NextParent {
            before: other.parent_of(1),
            now: self.parent_of(1),
        }
    }

    /// The present time, if the trace is recorded.
    pub(crate) fn clock(&self) -> Option<Instant> {
        self.recorded.map(|_| Instant::now())
    }
}

impl NextParent {
    /// Changes the fields, unless the route has written a `traceparent` of its own.
    pub(crate) fn apply(&self, headers: &mut Fields) {
        if headers.get(TRACEPARENT) == Some(self.before.text().as_bytes()) {
            headers.insert(TRACEPARENT, self.now.text());
        }
    }
}

impl Began {
    pub(crate) fn now() -> Self {
        Self {
            time: SystemTime::now(),
            instant: Instant::now(),
        }
    }
}

/// Counts what passes in each second.
#[derive(Debug, Default)]
struct Allowance {
    /// The second of the Unix epoch, and in the lower half how many have passed in it.
    passed: AtomicU64,
}

impl Allowance {
    /// Whether one more may pass at this time.
    fn take(&self, max: u32, now: SystemTime) -> bool {
        let since_epoch = now.duration_since(SystemTime::UNIX_EPOCH);
        let second = since_epoch.unwrap_or_default().as_secs() << 32;
        // Counts one more, unless `max` have passed in this second.
        let count_one = |before: u64| {
            let is_same_second = before & !COUNT == second;
            let passed = if is_same_second { before & COUNT } else { 0 };
            (passed < u64::from(max)).then_some(second | (passed + 1))
        };
        let (order, failed_order) = (Ordering::Relaxed, Ordering::Relaxed);
        let counted = self.passed.fetch_update(order, failed_order, count_one);
        counted.is_ok()
    }
}

/// The bits of [`Allowance::passed`] that count.
const COUNT: u64 = u32::MAX as u64;

#[cfg(test)]
mod tests;
