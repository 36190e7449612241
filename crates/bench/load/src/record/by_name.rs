//! What a worker writes down of requests by their names.

use std::sync::Arc;
use std::time::Duration;

use catamaran_stats::CensoredLatencies;

use super::Flight;

/// Which request of the plan has which name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// In the order in which they come first.
    pub(crate) list: Vec<String>,
    /// Per request of the plan; empty: none has a name.
    places: Arc<[Option<u32>]>,
}

/// One entry for each name.
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
    /// In flight when the run ended.
    pub(crate) unfinished: u64,
    /// From when they were due, which in a closed loop is when they began.
    pub(crate) latency: CensoredLatencies,
}

impl Names {
    /// The names of all requests of the plan, in their order.
    pub(crate) fn new<'a>(of_requests: impl Iterator<Item = Option<&'a str>>) -> Self {
        let mut list: Vec<String> = Vec::new();
        let mut known = std::collections::HashMap::new();
        let places: Vec<Option<u32>> = of_requests
            .map(|name| {
                let name = name?;
                let next = u32::try_from(list.len()).ok()?;
                Some(*known.entry(name).or_insert_with(|| {
                    list.push(name.to_owned());
                    next
                }))
            })
            .collect();
        if list.is_empty() {
            Self::default()
        } else {
            Self {
                list,
                places: places.into(),
            }
        }
    }

    /// Empty entries.
    pub(crate) fn record(&self) -> ByName {
        ByName {
            places: Arc::clone(&self.places),
            list: vec![NameCounts::default(); self.list.len()],
        }
    }
}

impl ByName {
    /// A request was answered in full.
    pub(super) fn answer(&mut self, flight: &Flight, end: u64) {
        let Some(named) = self.of(flight) else { return };
        named.completed += 1;
        named.non_2xx += u64::from(!flight.is_success());
        named.latency.record(age(flight, end));
    }

    /// A request failed.
    pub(super) fn fail(&mut self, flight: &Flight, now: u64) {
        let Some(named) = self.of(flight) else { return };
        named.failed += 1;
        named.latency.record_failed(age(flight, now));
    }

    /// A request had no answer when it was waited for no longer.
    pub(crate) fn abandon(&mut self, flight: &Flight, now: u64) {
        let Some(named) = self.of(flight) else { return };
        named.unfinished += 1;
        named.latency.record_waiting(age(flight, now));
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

    fn of(&mut self, flight: &Flight) -> Option<&mut NameCounts> {
        let place = (*self.places.get(flight.place as usize)?)?;
        self.list.get_mut(place as usize)
    }
}

fn age(flight: &Flight, now: u64) -> Duration {
    Duration::from_nanos(now.saturating_sub(flight.due))
}
