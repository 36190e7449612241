//! The results of requests by their names, as a worker records them.

use std::sync::Arc;
use std::time::Duration;

use catamaran_stats::CensoredLatencies;

use super::Flight;

/// The names of the plan's requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// The different names, in the order in which they first occur.
    pub(crate) list: Vec<String>,
    /// For each request of the plan, the place of its name in `list`; empty: no request has a name.
    places: Arc<[Option<u32>]>,
}

/// The results for each name.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByName {
    places: Arc<[Option<u32>]>,
    pub(crate) list: Vec<NameCounts>,
}

/// The results of the requests of one name.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameCounts {
    pub(crate) completed: u64,
    pub(crate) non_2xx: u64,
    pub(crate) failed: u64,
    /// The number of requests in flight when the run ended.
    pub(crate) unfinished: u64,
    /// Latencies from when requests were due, which in a closed loop is when they began.
    pub(crate) latency: CensoredLatencies,
}

impl Names {
    /// The names of the plan's requests, given in the order of the plan.
    pub(crate) fn new<'a>(of_requests: impl Iterator<Item = Option<&'a str>>) -> Self {
        let mut list: Vec<String> = Vec::new();
        let mut known = std::collections::HashMap::new();
        let mut places = Vec::new();
        for name in of_requests {
            let Some(name) = name else {
                places.push(None);
                continue;
            };
            let place = *known.entry(name).or_insert_with(|| {
                list.push(name.to_owned());
                list.len() - 1
            });
            places.push(u32::try_from(place).ok());
        }
        // Without any name there are no places either, so that nothing is looked up.
        if list.is_empty() {
            Self::default()
        } else {
            Self {
                list,
                places: places.into(),
            }
        }
    }

    /// An empty record for the names of the plan.
    pub(crate) fn record(&self) -> ByName {
        ByName {
            places: Arc::clone(&self.places),
            list: vec![NameCounts::default(); self.list.len()],
        }
    }
}

impl ByName {
    /// Notes that a request was answered in full at `end`.
    pub(super) fn answer(&mut self, flight: &Flight, end: u64) {
        let Some(counts) = self.counts_of(flight) else {
            return;
        };
        counts.completed += 1;
        counts.non_2xx += u64::from(!flight.is_success());
        counts.latency.record(age(flight, end));
    }

    /// Notes that a request failed at `now`.
    pub(super) fn fail(&mut self, flight: &Flight, now: u64) {
        let Some(counts) = self.counts_of(flight) else {
            return;
        };
        counts.failed += 1;
        counts.latency.record_failed(age(flight, now));
    }

    /// Notes that a request had no response when the run stopped waiting for it, at `now`.
    pub(crate) fn abandon(&mut self, flight: &Flight, now: u64) {
        let Some(counts) = self.counts_of(flight) else {
            return;
        };
        counts.unfinished += 1;
        counts.latency.record_waiting(age(flight, now));
    }

    pub(super) fn merge(&mut self, other: &Self) {
        if self.list.len() < other.list.len() {
            self.list.resize_with(other.list.len(), NameCounts::default);
        }
        for (mine, theirs) in self.list.iter_mut().zip(&other.list) {
            mine.completed += theirs.completed;
            mine.non_2xx += theirs.non_2xx;
            mine.failed += theirs.failed;
            mine.unfinished += theirs.unfinished;
            mine.latency.merge(&theirs.latency);
        }
    }

    fn counts_of(&mut self, flight: &Flight) -> Option<&mut NameCounts> {
        let place = (*self.places.get(flight.place as usize)?)?;
        self.list.get_mut(place as usize)
    }
}

fn age(flight: &Flight, now: u64) -> Duration {
    Duration::from_nanos(now.saturating_sub(flight.due))
}
