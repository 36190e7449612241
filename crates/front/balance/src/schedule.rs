//! Picks the members of one upstream in an order by deadlines.
//!
//! The member with the earliest deadline is next. Each pick moves its deadline on by a step in inverse
//! proportion to its weight, so that members are picked in proportion to their weights and heavy members
//! are spread out. The order is kept in a heap: a pick costs the logarithm of the number of members.
//! Members that may not be picked are taken out of the heap when a pick finds them there; each pick
//! checks a few of them again, so that no pick looks at all members while one may be picked.

use std::collections::VecDeque;
use std::time::Duration;

use fastrand::Rng;

use crate::Policy;
use crate::health::{Moment, SHARE_FULL};
use crate::level::{self, DecayingAmount};

/// The facts about an upstream's members that a pick needs; a member is given by its index. A pick asks
/// only about members that it considers.
pub trait Members {
    /// The percentage of its weight that the member gets at present: less than 100 while it ramps up
    /// ([`crate::health::share`]), 0 if it must not be picked. It is relative to the other members: a
    /// single member gets everything.
    fn share(&self, member: usize) -> u8;

    /// The member's exchanges in flight over all workers. Called under [`Policy::LeastInFlight`] only.
    fn in_flight(&self, member: usize) -> usize;

    /// The member's sessions seen lately. Called under [`Policy::Sessions`] only, once a second.
    fn sessions(&self, member: usize) -> u64;

    /// The member's bytes moved since some fixed moment, over all workers. Called under
    /// [`Policy::Traffic`] only, once a second.
    fn traffic(&self, member: usize) -> u64;
}

/// The order in which the members of one upstream are picked, on one worker.
#[derive(Clone, Debug)]
pub struct Schedule {
    policy: Policy,
    members: Vec<Member>,
    /// The members that are not known to be out: a heap, the earliest deadline first.
    heap: Vec<usize>,
    /// The members that were found to be out; the one checked longest ago is first.
    out: VecDeque<usize>,
    /// For each member, the sum of the weights up to it, including its own.
    sums: Vec<u64>,
    rng: Rng,
    /// When [`Self::settle`] last halved the parts of deadlines that are too far ahead.
    settled: Moment,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    weight: u32,
    /// The correction of the weight, in units of 1/[`level::ONE`].
    factor: u32,
    deadline: u64,
    /// The member's index in the heap; [`OUT`] if it is not there.
    place: usize,
    /// The bytes that the member moved lately; older bytes count less.
    traffic: DecayingAmount,
}

impl Member {
    /// The distance by which one pick moves the member's deadline.
    fn step(&self, share: u8) -> u64 {
        step(self.weight, share, self.factor)
    }
}

impl Schedule {
    /// Makes a schedule for members with these weights; 0 is treated as 1. `seed` decides with which
    /// member turns begin: workers with different seeds begin with different members.
    #[must_use]
    pub fn new(policy: Policy, weights: impl IntoIterator<Item = u32>, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut sum = 0;
        let mut sums = Vec::new();
        let mut members = Vec::new();
        for (place, weight) in weights.into_iter().enumerate() {
            let weight = weight.max(1);
            sum += u64::from(weight);
            sums.push(sum);
            members.push(Member {
                weight,
                factor: level::ONE,
                deadline: rng.u64(0..step(weight, SHARE_FULL, level::ONE)),
                place,
                traffic: DecayingAmount::default(),
            });
        }
        let mut schedule = Self {
            policy,
            heap: (0..members.len()).collect(),
            out: VecDeque::with_capacity(members.len()),
            members,
            sums,
            rng,
            settled: Moment::ZERO,
        };
        schedule.order();
        schedule
    }

    /// Picks a member that is not out and not in `tried`; `None` if there is none.
    pub fn pick(&mut self, members: &impl Members, tried: &[usize], now: Moment) -> Option<usize> {
        self.settle(members, now);
        self.readmit(members, LOOKS);
        if let Some(member) = self.choose(members, tried) {
            return Some(member);
        }
        // No member is left: those that have come back meanwhile must be found now.
        self.readmit(members, self.out.len());
        self.choose(members, tried)
    }

    /// Picks one of the members in `among` by looking at each: the member whose turn it is, or the member with
    /// the fewest exchanges in flight. `None` if all are out or in `tried`.
    pub fn pick_among(
        &mut self,
        members: &impl Members,
        among: &[usize],
        tried: &[usize],
    ) -> Option<usize> {
        self.readmit(members, LOOKS);
        let fits = |member: &&usize| members.share(**member) > 0 && !tried.contains(member);
        let fitting = among.iter().filter(fits).copied();
        let picked = match self.policy {
            Policy::LeastInFlight => self.least(members, fitting),
            Policy::RoundRobin | Policy::Sessions | Policy::Traffic | Policy::Hash => {
                fitting.min_by_key(|&member| self.members[member].deadline)
            }
        }?;
        self.charge(picked, members.share(picked));
        Some(picked)
    }

    /// Counts a request that a member got without being picked, such as a request of a session. The other
    /// members get their turn earlier for it. Does nothing if the policy levels sessions or bytes, which count
    /// the request elsewhere.
    pub fn note(&mut self, members: &impl Members, member: usize) {
        match self.policy {
            Policy::RoundRobin | Policy::LeastInFlight | Policy::Hash => {
                self.charge(member, members.share(member));
            }
            Policy::Sessions | Policy::Traffic => {}
        }
    }

    /// The members of `among` that the next request may go to, each with its frequency in proportion to
    /// the others'. Moves no deadline and looks at each member. Under [`Policy::LeastInFlight`] these
    /// are the members with the fewest exchanges in flight for their weight, unless there are so many
    /// that two are chosen at random; `exact`: all are looked at, as in [`Self::pick_among`].
    #[must_use]
    pub fn foresee(
        &self,
        members: &impl Members,
        among: impl Iterator<Item = usize>,
        exact: bool,
    ) -> Vec<(usize, u64)> {
        let mut fitting: Vec<(usize, u64)> = Vec::new();
        for member in among {
            let share = u64::from(members.share(member));
            let Member { weight, factor, .. } = self.members[member];
            let frequency = u64::from(weight) * share * u64::from(factor);
            if frequency > 0 {
                fitting.push((member, frequency));
            }
        }
        // A pick draws two members at random if it considers more than [`EXACT_MAX`]: those in the heap, and those out
        // that it would check again.
        let considered = (self.heap.len() + LOOKS).min(self.members.len());
        let looks_at_all = exact || considered <= EXACT_MAX;
        if self.policy == Policy::LeastInFlight && looks_at_all {
            let load_of = |(member, _): &(usize, u64)| self.load(members, *member);
            if let Some(least) = fitting.iter().map(load_of).min_by(Load::compare) {
                fitting.retain(|it| load_of(it).compare(&least).is_eq());
            }
        }
        fitting
    }

    /// Picks a member by the policy.
    fn choose(&mut self, members: &impl Members, tried: &[usize]) -> Option<usize> {
        match self.policy {
            Policy::RoundRobin | Policy::Sessions | Policy::Traffic | Policy::Hash => {
                self.earliest(members, tried)
            }
            Policy::LeastInFlight if self.heap.len() > EXACT_MAX => {
                let sampled = self.less_loaded_of_two(members, tried);
                sampled.or_else(|| self.earliest(members, tried))
            }
            Policy::LeastInFlight => self.least_loaded(members, tried),
        }
    }

    /// Picks the member whose turn it is.
    fn earliest(&mut self, members: &impl Members, tried: &[usize]) -> Option<usize> {
        // Members in `tried`, which are taken out only to see who comes after them.
        let mut skipped = Vec::new();
        let found = loop {
            let Some(&member) = self.heap.first() else {
                break None;
            };
            match members.share(member) {
                0 => self.put_out(member),
                _ if tried.contains(&member) => {
                    self.remove(member);
                    skipped.push(member);
                }
                share => break Some((member, share)),
            }
        };
        for member in skipped {
            self.insert(member);
        }
        let (member, share) = found?;
        self.charge(member, share);
        Some(member)
    }

    /// Picks the member with the fewest exchanges in flight for its weight; among equals the one whose
    /// turn it is.
    fn least_loaded(&mut self, members: &impl Members, tried: &[usize]) -> Option<usize> {
        let is_out = |member: &usize| members.share(*member) == 0;
        let out: Vec<usize> = self.heap.iter().copied().filter(is_out).collect();
        for member in out {
            self.put_out(member);
        }
        let candidates = self.heap.iter().filter(|member| !tried.contains(member));
        let least = self.least(members, candidates.copied())?;
        self.charge(least, members.share(least));
        Some(least)
    }

    /// The least loaded of the candidates; among equals the one whose turn it is.
    fn least(
        &self,
        members: &impl Members,
        candidates: impl Iterator<Item = usize>,
    ) -> Option<usize> {
        let deadline = |load: &Load| self.members[load.member].deadline;
        let loads = candidates.map(|member| self.load(members, member));
        let least = loads.min_by(|one, other| {
            let by_turn = || deadline(one).cmp(&deadline(other));
            one.compare(other).then_with(by_turn)
        })?;
        Some(least.member)
    }

    /// The less loaded of two random members; `None` if the draws found too few that may be picked.
    fn less_loaded_of_two(&mut self, members: &impl Members, tried: &[usize]) -> Option<usize> {
        let first = self.sample(members, tried)?;
        let second = self.sample(members, tried)?;
        let (first_load, second_load) = (self.load(members, first), self.load(members, second));
        if second_load.compare(&first_load).is_lt() {
            Some(second)
        } else {
            Some(first)
        }
    }

    /// Draws a random member, by its weight and share; `None` if [`SAMPLES_MAX`] draws found none that
    /// may be picked.
    fn sample(&mut self, members: &impl Members, tried: &[usize]) -> Option<usize> {
        let total = *self.sums.last()?;
        for _ in 0..SAMPLES_MAX {
            // Each member has a part of the range that is as long as its weight.
            let point = self.rng.u64(0..total);
            let member = self.sums.partition_point(|&sum| sum <= point);
            match members.share(member) {
                0 => self.put_out(member),
                _ if tried.contains(&member) => {}
                SHARE_FULL => return Some(member),
                share if self.rng.u8(0..SHARE_FULL) < share => return Some(member),
                _ => {}
            }
        }
        None
    }

    fn load(&self, members: &impl Members, member: usize) -> Load {
        let share = members.share(member).max(1);
        let in_flight = members.in_flight(member);
        Load {
            member,
            weight: u64::from(self.members[member].weight) * u64::from(share),
            in_flight,
            is_idle: in_flight == 0 && share >= SHARE_FULL,
        }
    }

    /// Moves the member's deadline on by a step, because it was picked.
    fn charge(&mut self, member: usize, share: u8) {
        let charged = &mut self.members[member];
        charged.deadline += charged.step(share);
        let place = charged.place;
        if place != OUT {
            self.sink(place);
        }
    }

    /// Checks up to `looks` members that are out, and returns those that are back to the heap.
    fn readmit(&mut self, members: &impl Members, looks: usize) {
        for _ in 0..looks.min(self.out.len()) {
            let Some(member) = self.out.pop_front() else {
                return;
            };
            if members.share(member) == 0 {
                self.out.push_back(member);
                continue;
            }
            // A member gets nothing in return for the time when it was out.
            let earliest = self.earliest_deadline();
            let deadline = &mut self.members[member].deadline;
            *deadline = (*deadline).max(earliest);
            self.insert(member);
        }
    }

    /// Once a second halves the part of each deadline that is more than one step after the earliest,
    /// such as from a time of a small share. A member that was just picked is one step behind, which is
    /// not a debt: weights count however few requests there are.
    fn settle(&mut self, members: &impl Members, now: Moment) {
        let passed = now.saturating_sub(self.settled);
        let seconds = passed.as_secs();
        if seconds == 0 {
            return;
        }
        self.settled = now;
        self.level(members, passed);
        let halvings = u32::try_from(seconds)
            .unwrap_or(u32::MAX)
            .min(u64::BITS - 1);
        let earliest = self.earliest_deadline();
        for (index, member) in self.members.iter_mut().enumerate() {
            let turn = match members.share(index) {
                0 => member.step(SHARE_FULL),
                share => member.step(share),
            };
            // Counted from the earliest, so that no deadline ever grows too large.
            let ahead = member.deadline.saturating_sub(earliest);
            let debt = ahead.saturating_sub(turn);
            member.deadline = ahead - debt + (debt >> halvings);
        }
        self.order();
    }

    /// Corrects the weights of the members that may be picked, by the sessions or bytes that each has.
    fn level(&mut self, members: &impl Members, passed: Duration) {
        let mut amounts = Vec::new();
        for (index, member) in self.members.iter_mut().enumerate() {
            let amount = match self.policy {
                #[expect(clippy::cast_precision_loss, reason = "a part in 2^52 is no matter")]
                Policy::Sessions => members.sessions(index) as f64,
                Policy::Traffic => member.traffic.note(members.traffic(index), passed),
                Policy::RoundRobin | Policy::LeastInFlight | Policy::Hash => return,
            };
            if members.share(index) > 0 {
                amounts.push((index, amount));
            }
        }
        let (mut amount_sum, mut weight_sum) = (0.0, 0.0);
        for (index, amount) in &amounts {
            amount_sum += amount;
            weight_sum += f64::from(self.members[*index].weight);
        }
        for (index, own) in amounts {
            let member = &mut self.members[index];
            let target = amount_sum * f64::from(member.weight) / weight_sum;
            member.factor = level::factor(target, own);
        }
    }

    /// The earliest deadline among members that are not known to be out; 0 if there are none.
    fn earliest_deadline(&self) -> u64 {
        self.heap
            .first()
            .map_or(0, |&member| self.members[member].deadline)
    }

    /// Moves a member that is out from the heap to `out`.
    fn put_out(&mut self, member: usize) {
        if self.members[member].place != OUT {
            self.remove(member);
            self.out.push_back(member);
        }
    }
}

/// The heap operations: each member knows its place, and no parent's deadline is later than its
/// children's.
impl Schedule {
    /// Orders the heap, whatever order its members are in, and sets their places.
    fn order(&mut self) {
        for place in (0..self.heap.len()).rev() {
            self.members[self.heap[place]].place = place;
            self.sink(place);
        }
    }

    fn insert(&mut self, member: usize) {
        let place = self.heap.len();
        self.heap.push(member);
        self.members[member].place = place;
        self.rise(place);
    }

    fn remove(&mut self, member: usize) {
        let place = std::mem::replace(&mut self.members[member].place, OUT);
        self.heap.swap_remove(place);
        // The last member of the heap was moved to this place, where it may be too early or too late.
        if let Some(&moved) = self.heap.get(place) {
            self.members[moved].place = place;
            self.rise(place);
            self.sink(self.members[moved].place);
        }
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.deadline(parent) <= self.deadline(place) {
                return;
            }
            self.swap(place, parent);
            place = parent;
        }
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let left = 2 * place + 1;
            let right = left + 1;
            if left >= self.heap.len() {
                return;
            }
            let earlier = if right < self.heap.len() && self.deadline(right) < self.deadline(left) {
                right
            } else {
                left
            };
            if self.deadline(place) <= self.deadline(earlier) {
                return;
            }
            self.swap(place, earlier);
            place = earlier;
        }
    }

    fn deadline(&self, place: usize) -> u64 {
        self.members[self.heap[place]].deadline
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        self.members[self.heap[one]].place = one;
        self.members[self.heap[other]].place = other;
    }
}

/// A member's load, to compare it under [`Policy::LeastInFlight`].
#[derive(Clone, Copy, Debug)]
struct Load {
    member: usize,
    /// The member's weight times its share.
    weight: u64,
    in_flight: usize,
    /// Whether the member has no exchange in flight and gets its whole share.
    is_idle: bool,
}

impl Load {
    /// Compares exchanges in flight per weight without division, including the exchange to come. Idle
    /// members are equal whatever their weights are, as in HAProxy: turns decide among them, and each
    /// gets its share. A member that ramps up never counts as idle, or it would get every request for
    /// which no other is idle.
    fn compare(&self, other: &Self) -> std::cmp::Ordering {
        let scaled = |own: &Self, other: &Self| {
            if own.is_idle {
                0
            } else {
                (own.in_flight as u128 + 1) * u128::from(other.weight)
            }
        };
        scaled(self, other).cmp(&scaled(other, self))
    }
}

/// The distance by which one pick moves the deadline of a member with this weight, share and correction.
fn step(weight: u32, share: u8, factor: u32) -> u64 {
    let effective = u64::from(weight) * u64::from(share.max(1)) * u64::from(factor);
    (STEP * u64::from(SHARE_FULL) * u64::from(level::ONE) / effective).max(1)
}

/// The step of a member with weight 1, full share and no correction.
const STEP: u64 = 1 << 20;

/// The place of a member that is not in the heap.
const OUT: usize = usize::MAX;

/// How many members that are out each pick checks.
const LOOKS: usize = 4;

/// Up to this number of members, all are compared to find the least loaded one; of more, two random
/// ones are compared.
const EXACT_MAX: usize = 32;

/// The most random draws in search of a member that may be picked.
const SAMPLES_MAX: usize = 16;

#[cfg(test)]
mod tests;
