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
use tokio::sync::Notify;

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
    /// Wakes those who wait for a member, as its health may have changed.
    changed: Arc<Notify>,
}

impl Group {
    /// Makes a group of these backends with their weights. At most `unwell_max` percent of the weight may
    /// be out for missing answers. The caller leaves out backends that an operator stopped: whether they
    /// are well changes nothing for the others. After each probe of a member, and whenever a member may serve that did
    /// not before, all who wait for `changed` are woken.
    #[must_use]
    pub fn new(
        members: impl Iterator<Item = (Arc<Backend>, u32)>,
        unwell_max: u8,
        changed: Arc<Notify>,
    ) -> Arc<Self> {
        let members = members.map(|(backend, weight)| (Arc::downgrade(&backend), weight));
        Arc::new(Self {
            members: members.collect(),
            unwell_max,
            deciding: Mutex::default(),
            panics: AtomicBool::new(false),
            changed,
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
        let is_member = self
            .members
            .iter()
            .any(|(member, _)| std::ptr::eq(member.as_ptr(), failing));
        if !is_member {
            // An operator stopped it, so it serves nothing anyway.
            return false;
        }
        let weights =
            self.weights(|member| std::ptr::eq(member, failing) || member.health().is_out());
        self.exceeds_limit(weights)
    }

    /// Whether more of the weight is out than `unwell_max` allows, by the result of [`Self::weights`].
    fn exceeds_limit(&self, out_and_total: (u64, u64)) -> bool {
        // Whether a backend's connections are all in use is judged apart from this, in `Backend::conclude`.
        let is_saturated = false;
        excuses(is_saturated, out_and_total, self.unwell_max)
    }

    /// Whether some backend other than `failing` is in, has answered, and did not answer its last request
    /// with a 5xx.
    pub(crate) fn has_better(&self, failing: &Backend) -> bool {
        for (member, _) in &self.members {
            if let Some(member) = member.upgrade()
                && !std::ptr::eq(&*member, failing)
                && !member.health().is_out()
                && member.answers_well()
            {
                return true;
            }
        }
        false
    }

    /// Checks whether too much weight is out or unwell, and if so lets unwell backends serve (pardons them); else they
    /// are out again. Logs a change. Call it when a
    /// member's health may have changed, while holding the guard of [`Self::decide`].
    pub(crate) fn review(&self) {
        let is_away = |member: &Backend| member.health().is_out() || member.health().is_unwell();
        let weights = self.weights(is_away);
        let is_exceeded = self.exceeds_limit(weights);
        let mut panics = false;
        let mut upstream = String::new();
        for (member, _) in &self.members {
            let Some(backend) = member.upgrade() else {
                continue;
            };
            let pardoned = is_exceeded && backend.health().is_unwell();
            backend.health().pardon(pardoned);
            panics |= pardoned;
            // For the log: all members have the same upstream.
            if upstream.is_empty() {
                backend.upstream().clone_into(&mut upstream);
            }
        }
        if self.panics.swap(panics, Ordering::Relaxed) != panics {
            log_panic(panics, &upstream, weights);
        }
        self.note_change();
    }

    /// Wakes those who wait for a member.
    pub(crate) fn note_change(&self) {
        self.changed.notify_waiters();
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

    /// Locks the decision whether a backend is put out.
    pub(crate) fn decide(&self) -> MutexGuard<'_, ()> {
        self.deciding.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Logs that unwell backends serve from now on, or that they do not any more.
fn log_panic(panics: bool, upstream: &str, (out, total): (u64, u64)) {
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
