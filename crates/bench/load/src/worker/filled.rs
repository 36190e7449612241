//! Keeps the requests in flight that were made for one sending only.

use std::num::NonZeroU32;

use slab::Slab;

use super::jar::Jar;
use crate::board::Board;
use crate::prepare::{PreparedRequest, encode};
use crate::record::Flight;
use crate::template::Values;

/// The requests of one worker that were made for one sending, by the key in their flights.
#[derive(Debug, Default)]
pub(super) struct FilledRequests {
    requests: Slab<PreparedRequest>,
}

impl FilledRequests {
    /// The request that a flight has sent.
    pub(super) fn request<'a>(&'a self, board: &'a Board, flight: &Flight) -> &'a PreparedRequest {
        let key = flight.filled.map(|key| key.get() as usize - 1);
        let filled = key.and_then(|key| self.requests.get(key));
        filled.unwrap_or_else(|| board.request(flight.place))
    }

    /// Makes the request with the run's number `number`, if `prepared` must be made anew each time; returns its key.
    pub(super) fn fill(
        &mut self,
        board: &Board,
        prepared: &PreparedRequest,
        number: u64,
        jar: Option<(&mut Jar, u64)>,
    ) -> Option<NonZeroU32> {
        let plan = &board.plan;
        if let Some(maker) = &prepared.maker {
            let written = maker.write(plan.seed, number);
            return self.insert(PreparedRequest::of_memcached(written, prepared.number));
        }
        let dynamic = prepared.dynamic.as_deref()?;
        let values = Values::new(plan.seed, number, plan.table.as_deref());
        let mut request = dynamic.fill(&mut values.clone());
        let mut path = String::new();
        if let Some((jar, now)) = jar {
            let before_query = request.target.split('?').next();
            path = before_query.unwrap_or_default().to_owned();
            jar.add_to(&mut request, &path, now);
        }
        let endpoint = &plan.targets[board.target_of(prepared.number)].endpoint;
        let mut encoded = encode(endpoint, &request, prepared.number);
        if encoded.is_err() {
            // Cookies can make it too long for an AJP13 packet; then it is sent without them.
            let without_cookies = dynamic.fill(&mut values.clone());
            encoded = encode(endpoint, &without_cookies, prepared.number);
        }
        let mut filled = encoded.ok()?;
        filled.path = path;
        self.insert(filled)
    }

    fn insert(&mut self, request: PreparedRequest) -> Option<NonZeroU32> {
        let key = u32::try_from(self.requests.insert(request)).ok()?;
        NonZeroU32::new(key + 1)
    }

    /// Drops the request of a flight that has ended.
    pub(super) fn remove(&mut self, flight: &Flight) {
        if let Some(key) = flight.filled {
            self.requests.try_remove(key.get() as usize - 1);
        }
    }
}
