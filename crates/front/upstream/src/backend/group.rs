//! The backends of one upstream, for the limit on how many of them may be out because they do not answer
//! CPING.
//!
//! Beyond the limit, unwell backends serve, but only where no other can. Envoy spreads requests evenly
//! then, because a health check may be wrong about all. Here an unwell backend is usually silent, and
//! would hold each request for `first_byte_timeout`: with two of three Tomcats hung, two of three
//! requests would wait although one Tomcat is well. If no backend is well, all serve evenly.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use catamaran_balance::health::excuses;

use super::Backend;

/// The backends of one upstream with their weights.
#[derive(Debug)]
pub struct Group {
    members: Vec<(Weak<Backend>, u32)>,
    /// The most weight that may be out because of missing answers, in percent of all weight.
    unwell_max: u8,
    /// Locked while a backend may be put out, so that two are not put out at once.
    deciding: Mutex<()>,
    /// Whether more than `unwell_max` would be out, so that unwell backends serve.
    panics: AtomicBool,
}

impl Group {
    /// Makes a group of these backends with their weights. At most `unwell_max` percent of the weight may
    /// be out for missing answers. The caller leaves out backends that an operator stopped: whether they
    /// are well changes nothing for the others.
    #[must_use]
    pub fn new(members: impl Iterator<Item = (Arc<Backend>, u32)>, unwell_max: u8) -> Arc<Self> {
        let members = members.map(|(backend, weight)| (Arc::downgrade(&backend), weight));
        Arc::new(Self {
            members: members.collect(),
            unwell_max,
            deciding: Mutex::default(),
            panics: AtomicBool::new(false),
        })
    }

    /// Whether more than `unwell_max` of the weight is unwell or cannot be connected to, so that all
    /// unwell backends serve where no other can.
    #[must_use]
    pub fn panics(&self) -> bool {
        self.panics.load(Ordering::Relaxed)
    }

    /// Whether a failed probe of `failing` must not put it out, because more weight would then be out
    /// than `unwell_max` allows. The caller must hold the guard of [`Self::decide`].
    pub(crate) fn excuses(&self, failing: &Backend) -> bool {
        let is_failing =
            |(member, _): &(Weak<Backend>, u32)| member.as_ptr() == std::ptr::from_ref(failing);
        if !self.members.iter().any(is_failing) {
            return false;
        }
        let weights = self.weights(|it| std::ptr::eq(it, failing) || it.health().is_out());
        excuses(false, weights, self.unwell_max)
    }

    /// Whether some backend other than `failing` is in, has answered, and did not answer its last request
    /// with a 5xx.
    pub(crate) fn has_better(&self, failing: &Backend) -> bool {
        let answers_well = |(member, _): &(Weak<Backend>, u32)| {
            let member = member.upgrade().filter(|it| !std::ptr::eq(&**it, failing));
            member.is_some_and(|it| !it.health().is_out() && it.answers_well())
        };
        self.members.iter().any(answers_well)
    }

    /// Checks whether too much weight is out, and if so lets unwell backends serve. Call it when a
    /// member's health may have changed, while holding the guard of [`Self::decide`].
    pub(crate) fn review(&self) {
        let is_away = |it: &Backend| it.health().is_out() || it.health().is_unwell();
        let weights = self.weights(is_away);
        let exceeded = excuses(false, weights, self.unwell_max);
        let mut panics = false;
        let mut upstream = String::new();
        for backend in self
            .members
            .iter()
            .filter_map(|(backend, _)| backend.upgrade())
        {
            let pardoned = exceeded && backend.health().is_unwell();
            backend.health().pardon(pardoned);
            panics |= pardoned;
            if upstream.is_empty() {
                backend.upstream().clone_into(&mut upstream);
            }
        }
        if self.panics.swap(panics, Ordering::Relaxed) == panics {
            return;
        }
        let (out, total) = weights;
        if panics {
            tracing::warn!(
                upstream,
                out,
                total,
                "more than `unwell_max` of the weight would be out: backends that are unwell serve \
             where no other can"
            );
        } else {
            tracing::info!(
                upstream,
                out,
                total,
                "backends that are unwell are out again"
            );
        }
    }

    /// The weight of the members for which `counts` is true, and the weight of all members.
    fn weights(&self, counts: impl Fn(&Backend) -> bool) -> (u64, u64) {
        let (mut sum, mut total) = (0, 0);
        for (backend, weight) in &self.members {
            let weight = u64::from(*weight);
            total += weight;
            if backend.upgrade().is_some_and(|backend| counts(&backend)) {
                sum += weight;
            }
        }
        (sum, total)
    }

    pub(crate) fn decide(&self) -> MutexGuard<'_, ()> {
        self.deciding.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
