//! Counts the results of requests by kind, and how long they took.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use catamaran_testkit::Deadline;

use crate::client::Failure;

/// Counts of one run, shared by its clients.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    // A std mutex: held for an addition, never across an await.
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// By the kind of request and its result: a status, or the name of a failure.
    counts: BTreeMap<(&'static str, String), u64>,
    /// Microseconds of the requests that were served.
    latencies: Vec<u32>,
}

impl Tally {
    /// Counts a request answered with 200.
    pub(crate) fn served(&self, kind: &'static str, took: Duration) {
        let micros = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
        let mut inner = self.lock();
        inner.latencies.push(micros);
        *inner.counts.entry((kind, "200".to_owned())).or_default() += 1;
    }

    pub(crate) fn other(&self, kind: &'static str, outcome: impl ToString) {
        let key = (kind, outcome.to_string());
        *self.lock().counts.entry(key).or_default() += 1;
    }

    pub(crate) fn failed(&self, kind: &'static str, failure: Failure) {
        self.other(kind, failure);
    }

    /// Waits until `more` further requests were served.
    pub(crate) fn wait_for_more(&self, more: usize) -> anyhow::Result<()> {
        let before = self.lock().latencies.len();
        let come = || (self.lock().latencies.len() >= before + more).then_some(());
        Ok(Deadline::default().poll("requests to be served", come)?)
    }

    /// How many requests of `kind` had one of `outcomes`.
    pub(crate) fn count(&self, kind: &str, outcomes: &[&str]) -> u64 {
        let inner = self.lock();
        let counts = inner.counts.iter().filter(|((counted_kind, outcome), _)| {
            *counted_kind == kind && outcomes.contains(&outcome.as_str())
        });
        counts.map(|(_, count)| count).sum()
    }

    /// The number of requests of `kind`.
    pub(crate) fn total(&self, kind: &str) -> u64 {
        let inner = self.lock();
        let of = |(key, count): (&(&str, String), &u64)| (key.0 == kind).then_some(*count);
        inner.counts.iter().filter_map(of).sum()
    }

    /// The latency that the share `part` of the served requests did not exceed; 0.99 for the 99th percentile.
    pub(crate) fn percentile(&self, part: f64) -> Duration {
        let mut latencies = self.lock().latencies.clone();
        latencies.sort_unstable();
        let index = (latencies.len() as f64 * part) as usize;
        let micros = latencies.get(index.min(latencies.len().saturating_sub(1)));
        Duration::from_micros(micros.copied().unwrap_or(0).into())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last = "";
        for ((kind, outcome), count) in &self.lock().counts {
            if *kind != last {
                let gap = if last.is_empty() { "" } else { "; " };
                write!(f, "{gap}{kind}:")?;
                last = kind;
            }
            write!(f, " {outcome} x {count}")?;
        }
        Ok(())
    }
}

/// Milliseconds, for printing.
pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
