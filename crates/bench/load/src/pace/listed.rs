//! Start times that are given one by one, as those of a log: each thread takes its part of them.

use std::sync::Arc;

use crate::clock::NEVER;
use crate::plan::Arrival;

/// The rest of a list of arrivals, for one thread.
#[derive(Clone, Debug)]
pub(crate) struct ArrivalList {
    arrivals: Arc<[Arrival]>,
    /// The place of the next one, and the distance to the one after it.
    place: usize,
    step: usize,
    /// When the list's time begins.
    origin: u64,
}

impl ArrivalList {
    /// The part of thread `index` of `threads`, from `origin` on.
    pub(crate) fn new(arrivals: Arc<[Arrival]>, index: usize, threads: usize, origin: u64) -> Self {
        Self {
            arrivals,
            place: index,
            step: threads.max(1),
            origin,
        }
    }

    /// When the next request is due.
    pub(crate) fn next(&self) -> u64 {
        let arrival = self.arrivals.get(self.place);
        arrival.map_or(NEVER, |arrival| self.origin.saturating_add(arrival.at_ns))
    }

    /// Which of the target's requests that is.
    pub(crate) fn request(&self) -> u32 {
        let arrival = self.arrivals.get(self.place);
        arrival.map_or(0, |arrival| arrival.request)
    }

    /// Turns to the request after it.
    pub(crate) fn advance(&mut self) {
        self.place += self.step;
    }
}
