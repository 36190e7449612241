//! The requests that wait for a first member of their upstream (`hold`), and the members that end their wait.
//!
//! The queue belongs to the upstream's name: workers, and sites that follow each other, share it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use catamaran_transport::PerWorker;
use catamaran_upstream::{BucketSums, Buckets};

use super::rules::Rules;
use super::{Member, Upstream};
use crate::config::{Activation, HoldConfig, MemberSource};

/// The requests of an upstream that wait for a first member.
#[derive(Debug)]
pub(crate) struct HoldQueue {
    waiting: AtomicUsize,
    /// The waits that have ended, however they ended.
    waits: PerWorker<Buckets>,
}

/// The place of one request in the queue, left when this is dropped.
#[derive(Debug)]
pub(crate) struct HoldPlace<'q>(&'q HoldQueue);

/// The members that a route leaves out, by their indices in an upstream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LeftOut<'r> {
    /// Those that get no requests.
    pub(crate) stopped: &'r [usize],
    /// Those that get only requests of their own sessions.
    pub(crate) drained: &'r [usize],
}

/// The figures of a queue for administrators.
#[derive(Clone, Debug, Default)]
pub(crate) struct HoldFigures {
    /// How many requests wait now.
    pub(crate) waiting: usize,
    /// The waits that have ended since the start.
    pub(crate) waits: BucketSums,
}

impl HoldQueue {
    pub(super) fn new(workers: usize) -> Self {
        Self {
            waiting: AtomicUsize::new(0),
            waits: PerWorker::new(workers, |_| Buckets::default()),
        }
    }

    /// Takes a place; `None`: `max` requests wait already.
    pub(crate) fn enter(&self, max: usize) -> Option<HoldPlace<'_>> {
        // Counted first, so that two that come at once cannot both be the last one. Without room, the drop of `place`
        // counts the request out.
        let place = HoldPlace(self);
        (self.waiting.fetch_add(1, Ordering::Relaxed) < max).then_some(place)
    }

    /// Records a wait that has ended.
    pub(crate) fn note(&self, worker: usize, waited: Duration) {
        self.waits[worker].record(waited);
    }

    pub(crate) fn figures(&self) -> HoldFigures {
        let mut waits = BucketSums::default();
        for of_worker in self.waits.iter() {
            waits.add(of_worker);
        }
        HoldFigures {
            waiting: self.waiting.load(Ordering::Relaxed),
            waits,
        }
    }
}

impl<'r> LeftOut<'r> {
    /// The members that a route with these rules leaves out.
    pub(crate) fn of(rules: Option<&'r Rules>) -> Self {
        rules.map_or_else(Self::default, |rules| Self {
            stopped: rules.stopped(),
            drained: rules.drained(),
        })
    }

    fn has(&self, member: usize) -> bool {
        self.stopped.contains(&member) || self.drained.contains(&member)
    }
}

impl Drop for HoldPlace<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Upstream {
    /// How long a request waits for a first member, and where; `None`: it does not wait.
    pub(crate) fn hold(&self) -> Option<(HoldConfig, &Arc<HoldQueue>)> {
        self.config.hold.zip(self.hold.as_ref())
    }

    /// Whether a request that no member can get waits for one: the upstream has `hold`, no member takes new sessions,
    /// and not all of them were stopped on purpose, since 503 is then wanted at once. `left_out` are those that the route
    /// leaves out; `tried` are those that it stops, and those that have failed the request.
    pub(crate) fn holds(&self, left_out: LeftOut<'_>, tried: &[usize]) -> bool {
        let unusable = LeftOut {
            stopped: tried,
            ..left_out
        };
        self.hold.is_some() && !self.has_usable(unusable) && !self.is_stopped(left_out.stopped)
    }

    /// Whether a member that the route does not leave out takes new sessions.
    pub(crate) fn has_usable(&self, left_out: LeftOut<'_>) -> bool {
        let mut members = self.members.iter().enumerate();
        members.any(|(index, member)| !left_out.has(index) && member.share() > 0)
    }

    /// Whether there are members, and all were stopped on purpose: in the upstream, or, by index, on the route.
    pub(crate) fn is_stopped(&self, stopped: &[usize]) -> bool {
        self.is_in_maintenance(stopped) && !self.members.is_empty()
    }

    /// Has the backends probed sooner, because requests wait for one.
    pub(crate) fn want(&self) {
        self.members.iter().for_each(Member::want);
    }

    /// Whether operators have stopped every backend: in the upstream, or, by index, on the route.
    pub(crate) fn is_in_maintenance(&self, stopped: &[usize]) -> bool {
        let mut members = self.members.iter().enumerate();
        members.all(|(index, member)| {
            let is_stopped = member.controls.activation == Activation::Stopped;
            stopped.contains(&index) || is_stopped && !self.is_unready(index, member)
        })
    }

    /// Whether a member is stopped because it is a pod that is not ready: nobody meant to stop it.
    fn is_unready(&self, index: usize, member: &Member) -> bool {
        let source = self.config.members.as_ref().map(|members| &members.source);
        let is_pod = matches!(source, Some(MemberSource::Kubernetes(_))) && index >= self.of_file();
        is_pod && member.file().activation == Activation::Stopped
    }

    /// The indices that these members of the upstream `before`, of the same name, have here; those that are gone are
    /// left out.
    pub(crate) fn indices_of(&self, before: &Self, members: &[usize]) -> Vec<usize> {
        let mut indices = Vec::with_capacity(members.len());
        for &index in members {
            if let Some(member) = before.members.get(index)
                && let Some((own_index, _)) = self.member(member.name())
            {
                indices.push(own_index);
            }
        }
        indices
    }

    /// Shares the queue of the upstream that this one replaces, and what wakes those who wait.
    pub(super) fn follow_hold(&mut self, before: &Self) {
        self.changed = Arc::clone(&before.changed);
        if let (Some(own), Some(before)) = (&mut self.hold, &before.hold) {
            own.clone_from(before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Address, BackendConfig, Protocol, UpstreamConfig};

    fn upstream(names: &[&str]) -> Upstream {
        let backend = |name: &&str| {
            let address = Address::Unix((*name).into());
            BackendConfig {
                name: (*name).to_owned(),
                ..BackendConfig::new(Protocol::Http, address)
            }
        };
        let config = UpstreamConfig {
            hold: Some(HoldConfig {
                wait: Duration::from_secs(1),
                queue_max: 1,
            }),
            ..UpstreamConfig::new("app", names.iter().map(backend).collect())
        };
        Upstream::new(&config, 1, &mut Vec::new())
    }

    #[test]
    fn members_are_known_again_by_their_names() {
        let before = upstream(&["a", "b", "c"]);
        let mut later = upstream(&["x", "c", "a"]);
        assert_eq!(later.indices_of(&before, &[2, 1, 0, 7]), [1, 2]);
        later.follow_hold(&before);
        let queue = |upstream: &Upstream| upstream.hold().map(|(_, queue)| Arc::clone(queue));
        let (own, other) = (queue(&later).expect("one"), queue(&before).expect("one"));
        assert!(Arc::ptr_eq(&own, &other));
    }

    #[tokio::test]
    async fn members_that_are_stopped_on_purpose_are_not_waited_for() {
        let some = upstream(&["a", "b"]);
        let without = |stopped, drained| {
            let left_out = LeftOut { stopped, drained };
            (some.has_usable(left_out), some.holds(left_out, stopped))
        };
        assert_eq!(without(&[0], &[]), (true, false));
        assert_eq!(without(&[0, 1], &[]), (false, false));
        assert_eq!(without(&[], &[0]), (true, false));
        assert_eq!(without(&[0], &[1]), (false, true));
        assert!(upstream(&[]).holds(LeftOut::default(), &[]));
        let holds = |tried| some.holds(LeftOut::default(), tried);
        assert!(!holds(&[0]) && holds(&[0, 1]), "both have failed");
    }

    #[test]
    fn places_are_limited_and_given_back() {
        let queue = HoldQueue::new(1);
        let first = queue.enter(2).expect("a place");
        let second = queue.enter(2).expect("a place");
        assert!(queue.enter(2).is_none());
        drop(first);
        assert!(queue.enter(2).is_some());
        assert!(queue.enter(0).is_none());
        queue.note(0, Duration::from_secs(1));
        let figures = queue.figures();
        assert_eq!((figures.waiting, figures.waits.count()), (1, 1));
        drop(second);
        assert_eq!(queue.figures().waiting, 0);
    }
}
