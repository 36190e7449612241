//! Chooses among an upstream's members by policy, with one schedule for each distance and worker.

use std::sync::{Arc, Mutex, MutexGuard};

use catamaran_balance::hash::{Key, Maglev};
use catamaran_balance::{Members, Policy, Schedule};
use catamaran_transport::PerWorker;
use tokio::time::Instant;

use super::Member;
use crate::config::UpstreamConfig;
use crate::lock::lock;

#[derive(Debug)]
pub(super) struct Turns {
    /// The members of each distance (a tier), the lowest distance first.
    tiers: Box<[Box<[usize]>]>,
    /// For each member, its tier and its place in that tier.
    places: Box<[(usize, usize)]>,
    /// For each tier, the table that maps hash keys to members; `None` if the policy is not `hash`.
    tables: Option<Box<[Arc<Table>]>>,
    /// For each worker, one schedule for each tier. The mutex is never contended: only that worker's thread locks it.
    workers: PerWorker<Mutex<Box<[Schedule]>>>,
    /// When this was built; the schedules count time from then.
    built: Instant,
}

/// The table that maps hash keys to the members of a tier. After a change of controls, tables whose members and
/// weights are the same are kept, because building one takes many milliseconds.
#[derive(Debug)]
struct Table {
    /// The members and weights from which the table was built.
    weights: Vec<(usize, u32)>,
    keys: Maglev,
}

impl Table {
    fn new(weights: Vec<(usize, u32)>, members: &[Member]) -> Self {
        let named = weights
            .iter()
            .map(|&(member, weight)| (members[member].name(), weight));
        Self {
            keys: Maglev::new(named),
            weights,
        }
    }
}

impl Turns {
    pub(super) fn new(config: &UpstreamConfig, members: &[Member], workers: usize) -> Self {
        Self::build(&[], config, members, workers)
    }

    /// Builds the schedules of the same upstream for members with other controls.
    pub(super) fn controlled(
        &self,
        config: &UpstreamConfig,
        members: &[Member],
        workers: usize,
    ) -> Self {
        let known = self.tables.as_deref().unwrap_or_default();
        Self::build(known, config, members, workers)
    }

    /// Builds the schedules, and reuses the tables in `known` that have the same members and weights.
    fn build(
        known: &[Arc<Table>],
        config: &UpstreamConfig,
        members: &[Member],
        workers: usize,
    ) -> Self {
        let all_distances = members.iter().map(|member| member.controls.distance);
        let mut distances: Vec<u32> = all_distances.collect();
        distances.sort_unstable();
        distances.dedup();
        let mut tiers = vec![Vec::new(); distances.len()];
        let mut places = Vec::with_capacity(members.len());
        for (index, member) in members.iter().enumerate() {
            let tier = distances.partition_point(|&it| it < member.controls.distance);
            places.push((tier, tiers[tier].len()));
            tiers[tier].push(index);
        }
        let schedule = |tier: &Vec<usize>| {
            let weights = tier.iter().map(|&member| members[member].controls.weight);
            Schedule::new(config.policy, weights, fastrand::u64(..))
        };
        let table = |tier: &Vec<usize>| {
            let with_weight = |&member: &usize| (member, members[member].controls.weight);
            let weights: Vec<(usize, u32)> = tier.iter().map(with_weight).collect();
            match known.iter().find(|table| table.weights == weights) {
                Some(same) => Arc::clone(same),
                None => Arc::new(Table::new(weights, members)),
            }
        };
        let hashes = config.policy == Policy::Hash;
        let schedules = |_| Mutex::new(tiers.iter().map(schedule).collect());
        Self {
            workers: PerWorker::new(workers, schedules),
            tiers: tiers.iter().map(|tier| tier.as_slice().into()).collect(),
            places: places.into(),
            tables: hashes.then(|| tiers.iter().map(table).collect()),
            built: Instant::now(),
        }
    }

    /// Picks a member by the policy, from the lowest distance that has one; `None`: no member may get the request.
    /// Suspect members, at whatever distance, are picked only if there are no others.
    pub(super) fn pick(
        &self,
        worker: usize,
        members: &[Member],
        tried: &[usize],
        key: Option<Key>,
        now: Instant,
    ) -> Option<usize> {
        let since_built = now.saturating_duration_since(self.built);
        self.first(
            worker,
            members,
            tried,
            |schedule, of_tier, tried, tier| match self.table(key, tier) {
                Some((key, table)) => table.pick(key, |place| share(of_tier, place, tried)),
                None => schedule.pick(of_tier, tried, since_built),
            },
        )
    }

    /// Picks as [`Self::pick`] does, but only among the members in `among`.
    pub(super) fn pick_among(
        &self,
        worker: usize,
        members: &[Member],
        among: &[usize],
        tried: &[usize],
        key: Option<Key>,
    ) -> Option<usize> {
        self.first(worker, members, tried, |schedule, of_tier, tried, tier| {
            let places = self.places_in(tier, among);
            match self.table(key, tier) {
                Some((key, table)) => table.pick(key, |place| {
                    if places.contains(&place) {
                        share(of_tier, place, tried)
                    } else {
                        0
                    }
                }),
                None => schedule.pick_among(of_tier, &places, tried),
            }
        })
    }

    /// The table of a tier in which to look up `key`; `None` without a key or tables.
    fn table(&self, key: Option<Key>, tier: usize) -> Option<(Key, &Maglev)> {
        Some((key?, &self.tables.as_ref()?[tier].keys))
    }

    /// Tells the schedule that a member got a request by its session.
    pub(super) fn note(&self, worker: usize, members: &[Member], member: usize) {
        let (tier, place) = self.places[member];
        let of_tier = TierMembers {
            members,
            tier: &self.tiers[tier],
            suspects: true,
        };
        self.lock(worker)[tier].note(&of_tier, place);
    }

    /// The first member that `pick` picks by the worker's schedules, in the order of [`Self::in_order`].
    fn first(
        &self,
        worker: usize,
        members: &[Member],
        tried: &[usize],
        mut pick: impl FnMut(&mut Schedule, &TierMembers<'_>, &[usize], usize) -> Option<usize>,
    ) -> Option<usize> {
        let mut schedules = self.lock(worker);
        self.in_order(members, tried, |of_tier, tried, tier| {
            let place = pick(&mut schedules[tier], of_tier, tried, tier)?;
            Some(of_tier.tier[place])
        })
    }

    /// The members that may get a request next, each with its weight in proportion to the others; with a key there is
    /// at most one. No schedule advances. With `among`, only those members are considered.
    ///
    /// The first worker's schedule is taken for all: the schedules correct their weights by the same counters. This
    /// and that worker may wait for each other's lock for a short time.
    pub(super) fn foresee(
        &self,
        members: &[Member],
        among: Option<&[usize]>,
        tried: &[usize],
        key: Option<Key>,
    ) -> Vec<(usize, u64)> {
        let foreseen = self.in_order(members, tried, |of_tier, tried, tier| {
            let allowed = among.map(|among| self.places_in(tier, among));
            let fits = |place: usize| {
                let is_allowed = allowed.as_ref().is_none_or(|it| it.contains(&place));
                is_allowed && !tried.contains(&place)
            };
            let mut fitting = match self.table(key, tier) {
                Some((key, table)) => {
                    let share = |place| if fits(place) { of_tier.share(place) } else { 0 };
                    Vec::from_iter(table.pick(key, share).map(|place| (place, 1)))
                }
                None => {
                    let places = (0..of_tier.tier.len()).filter(|&place| fits(place));
                    let schedules = self.lock(0);
                    schedules[tier].foresee(of_tier, places, allowed.is_some())
                }
            };
            for (place, _) in &mut fitting {
                // The member in that place.
                *place = of_tier.tier[*place];
            }
            Some(fitting).filter(|fitting| !fitting.is_empty())
        });
        foreseen.unwrap_or_default()
    }

    /// Calls `ask` for each tier in turn, then for each once more with suspect members, until it returns `Some`.
    fn in_order<T>(
        &self,
        members: &[Member],
        tried: &[usize],
        mut ask: impl FnMut(&TierMembers<'_>, &[usize], usize) -> Option<T>,
    ) -> Option<T> {
        for suspects in [false, true] {
            for (tier_index, tier) in self.tiers.iter().enumerate() {
                let of_tier = TierMembers {
                    members,
                    tier,
                    suspects,
                };
                // With a single tier, a member's place equals its index.
                let places = (self.tiers.len() > 1).then(|| self.places_in(tier_index, tried));
                let tried_places = places.as_deref().unwrap_or(tried);
                let answer = ask(&of_tier, tried_places, tier_index);
                if answer.is_some() {
                    return answer;
                }
            }
        }
        None
    }

    /// For those of `members` that belong to this tier, their places in it.
    fn places_in(&self, tier: usize, members: &[usize]) -> Vec<usize> {
        let places = members.iter().map(|&member| self.places[member]);
        let of_tier = places.filter(|(own_tier, _)| *own_tier == tier);
        of_tier.map(|(_, place)| place).collect()
    }

    fn lock(&self, worker: usize) -> MutexGuard<'_, Box<[Schedule]>> {
        lock(&self.workers[worker])
    }
}

/// Gives a schedule the facts about the members of a tier.
struct TierMembers<'a> {
    members: &'a [Member],
    tier: &'a [usize],
    /// Whether suspect members may be picked.
    suspects: bool,
}

impl Members for TierMembers<'_> {
    fn share(&self, place: usize) -> u8 {
        let member = &self.members[self.tier[place]];
        if member.backend.is_suspect() && !self.suspects {
            return 0;
        }
        member.share()
    }

    fn in_flight(&self, place: usize) -> usize {
        self.members[self.tier[place]].backend.load()
    }

    fn sessions(&self, place: usize) -> u64 {
        let seen = self.members[self.tier[place]].sessions_seen();
        seen.unwrap_or_default()
    }

    fn traffic(&self, place: usize) -> u64 {
        self.members[self.tier[place]].backend.traffic()
    }
}

/// A member's share of the load, in percent of its weight; 0 if it is in `tried`.
fn share(of_tier: &TierMembers<'_>, place: usize, tried: &[usize]) -> u8 {
    if tried.contains(&place) {
        0
    } else {
        of_tier.share(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Activation, Address, BackendConfig, Policy, Protocol};

    #[test]
    fn a_table_of_keys_is_made_anew_only_for_other_weights() {
        let backend = |name: &str| BackendConfig::new(Protocol::Ajp, Address::Unix(name.into()));
        let mut config = UpstreamConfig::new("app", ["a", "b", "c"].map(backend).into());
        config.policy = Policy::Hash;
        let of_file = |config: &BackendConfig| Member::new("app", config, 1, &mut Vec::new());
        let mut members: Vec<Member> = config.backends.iter().map(of_file).collect();
        members[2].controls.distance = 1;
        let first = Turns::new(&config, &members, 1);
        let mut kept = |change: &dyn Fn(&mut Member)| {
            change(&mut members[0]);
            let next = first.controlled(&config, &members, 1);
            let tables = |turns: &Turns| turns.tables.clone().expect("it hashes");
            let pairs = tables(&first).into_iter().zip(tables(&next));
            let kept: Vec<bool> = pairs
                .map(|(one, other)| Arc::ptr_eq(&one, &other))
                .collect();
            kept
        };
        assert_eq!(
            kept(&|member| member.controls.activation = Activation::Drain),
            [true, true]
        );
        assert_eq!(kept(&|member| member.controls.weight = 7), [false, true]);
        assert_eq!(kept(&|member| member.controls.weight = 1), [true, true]);
    }
}
