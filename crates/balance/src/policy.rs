//! The balancing policies, a closed set chosen at run time.
//!
//! Health, affinity and drain decide who is eligible before a policy is asked; here is only the
//! order among those that are. Each pick is linear in the number of backends.

/// How a backend is picked among the eligible ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Smooth weighted round robin: each backend's share is its weight, and heavy backends are
    /// spread out rather than served in bursts. nginx's default; httpd's `byrequests`.
    #[default]
    RoundRobin,
    /// The fewest exchanges in flight for its weight; ties go round. nginx: `least_conn`; mod_jk:
    /// `method=B`; httpd: `bybusyness`.
    LeastInFlight,
}

/// What a policy may know of one backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its share, 1 or more; 0 is treated as 1.
    pub weight: u32,
    /// How much of that share it gets at present, in percent; less than 100 while it ramps up
    /// ([`crate::health::share`]). 0 is treated as 1. It is relative to the other candidates: who
    /// is alone gets all.
    pub share: u8,
    /// Exchanges in flight over all workers.
    pub in_flight: usize,
    /// Whether it may be picked at all.
    pub eligible: bool,
}

/// One upstream's turn-keeping, on one worker.
#[derive(Clone, Debug)]
pub struct Balancer {
    policy: Policy,
    /// Smooth round robin's credit of each backend; the sum over all is always 0.
    credits: Vec<i64>,
    /// Where the search for the least loaded starts, so that ties rotate.
    start: usize,
}

impl Balancer {
    /// A balancer for an upstream of `backends` members.
    #[must_use]
    pub fn new(policy: Policy, backends: usize) -> Self {
        Self {
            policy,
            credits: vec![0; backends],
            start: 0,
        }
    }

    /// Lets the turns begin at the backend `start`, so that workers do not all begin with the
    /// first.
    #[must_use]
    pub fn starting_at(mut self, start: usize) -> Self {
        let backends = self.credits.len();
        if backends > 0 {
            self.start = start % backends;
            if let Policy::RoundRobin = self.policy {
                // One unit of credit settles the first tie and is paid back like any other.
                let first = self.start;
                self.credits[first] += 1;
                self.credits[(first + backends - 1) % backends] -= 1;
            }
        }
        self
    }

    /// Picks an eligible backend; `None` if there is none. `candidates` are the upstream's members
    /// in their constant order.
    pub fn pick(&mut self, candidates: &[Candidate]) -> Option<usize> {
        debug_assert_eq!(
            candidates.len(),
            self.credits.len(),
            "one candidate per member"
        );
        match self.policy {
            Policy::RoundRobin => self.pick_round_robin(candidates),
            Policy::LeastInFlight => self.pick_least_in_flight(candidates),
        }
    }

    fn pick_round_robin(&mut self, candidates: &[Candidate]) -> Option<usize> {
        let mut total = 0;
        let mut best: Option<usize> = None;
        for (index, candidate) in eligible(candidates) {
            let credit = self.credits.get_mut(index)?;
            let weight = i64::from(candidate.weight.max(1)) * i64::from(candidate.share.max(1));
            *credit += weight;
            total += weight;
            let credit = *credit;
            if best.is_none_or(|best| credit > self.credits[best]) {
                best = Some(index);
            }
        }
        let best = best?;
        self.credits[best] -= total;
        Some(best)
    }

    fn pick_least_in_flight(&mut self, candidates: &[Candidate]) -> Option<usize> {
        let count = candidates.len();
        let mut best: Option<(usize, Candidate)> = None;
        for step in 0..count {
            let index = (self.start + step) % count;
            let candidate = candidates[index];
            let better = match best {
                _ if !candidate.eligible => false,
                None => true,
                Some((_, best)) => is_less_loaded(candidate, best),
            };
            if better {
                best = Some((index, candidate));
            }
        }
        let (index, _) = best?;
        self.start = index + 1;
        Some(index)
    }
}

fn eligible(candidates: &[Candidate]) -> impl Iterator<Item = (usize, &Candidate)> {
    candidates
        .iter()
        .enumerate()
        .filter(|(_, candidate)| candidate.eligible)
}

/// Compares in-flight per weight without division; the exchange to come counts as in flight, so
/// that among idle backends the heavier is preferred.
fn is_less_loaded(a: Candidate, b: Candidate) -> bool {
    let load = |own: Candidate, other: Candidate| {
        let weight = u64::from(other.weight.max(1)) * u64::from(other.share.max(1));
        (own.in_flight as u128 + 1) * u128::from(weight)
    };
    load(a, b) < load(b, a)
}

#[cfg(test)]
mod tests;
