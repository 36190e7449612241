//! The backends of one upstream, for the limit on how many of them may be out for missing answers to
//! CPING.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use catamaran_balance::health::excuses;

use crate::backend::Backend;

/// The backends of one upstream with their weights.
#[derive(Debug)]
pub struct Group {
    members: Vec<(Weak<Backend>, u32)>,
    /// In percent of all weight.
    unwell_max: u8,
    /// Locked while it is decided whether a backend is put out, so that two are not put out at once.
    deciding: Mutex<()>,
}

impl Group {
    /// A group of these backends with their weights. At most `unwell_max` percent of the weight may
    /// be out for missing answers.
    #[must_use]
    pub fn new(members: impl Iterator<Item = (Arc<Backend>, u32)>, unwell_max: u8) -> Arc<Self> {
        let members = members.map(|(backend, weight)| (Arc::downgrade(&backend), weight));
        Arc::new(Self {
            members: members.collect(),
            unwell_max,
            deciding: Mutex::default(),
        })
    }

    /// Whether `silent` must not be put out for its silence. To be called while [`Self::decide`]'s
    /// guard is held.
    pub(crate) fn excuses(&self, silent: &Backend, saturated: bool) -> bool {
        let (mut out, mut total) = (0, 0);
        for (backend, weight) in &self.members {
            let weight = u64::from(*weight);
            total += weight;
            let is_out = backend
                .upgrade()
                .is_some_and(|backend| std::ptr::eq(&*backend, silent) || backend.share() == 0);
            out += if is_out { weight } else { 0 };
        }
        excuses(saturated, (out, total), self.unwell_max)
    }

    pub(crate) fn decide(&self) -> MutexGuard<'_, ()> {
        self.deciding.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
