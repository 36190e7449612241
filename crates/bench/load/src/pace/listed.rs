//! A schedule of start times from a list, such as a log: each thread has its part of the list.

use std::sync::Arc;

use crate::clock::NEVER;
use crate::plan::Arrival;

/// One thread's part of a list of arrivals, from the next one on.
#[derive(Clone, Debug)]
pub(crate) struct ArrivalList {
    arrivals: Arc<[Arrival]>,
    /// The index of the next arrival, and the distance to the one after it.
    place: usize,
    step: usize,
    /// The time at which the list begins.
    origin: u64,
}

impl ArrivalList {
    /// The part of thread `index` of `threads`; the list begins at `origin`.
    pub(crate) fn new(arrivals: Arc<[Arrival]>, index: usize, threads: usize, origin: u64) -> Self {
        Self {
            arrivals,
            place: index,
            step: threads.max(1),
            origin,
        }
    }

    /// The time at which the next request is due; [`NEVER`] after the last.
    pub(crate) fn next(&self) -> u64 {
        let arrival = self.arrivals.get(self.place);
        arrival.map_or(NEVER, |arrival| self.origin.saturating_add(arrival.at_ns))
    }

    /// The place of the next request among the target's requests.
    pub(crate) fn request(&self) -> u32 {
        let arrival = self.arrivals.get(self.place);
        arrival.map_or(0, |arrival| arrival.request)
    }

    /// Moves on to the thread's next arrival.
    pub(crate) fn advance(&mut self) {
        self.place += self.step;
    }
}
