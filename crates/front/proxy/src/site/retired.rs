//! Backends that a reload removed while they had exchanges. They are reported until the last exchange ends.
//!
//! A replaced site lives as long as its exchanges, and keeps its backends alive; here are only weak references. An
//! exchange that began before the reload may still begin an attempt on such a backend.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use catamaran_upstream::Backend;

use crate::lock::lock;
use crate::site::{BackendStatus, Site};

/// The backends that reloads removed, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct RetiredBackends(Mutex<Vec<Weak<Backend>>>);

impl RetiredBackends {
    /// Retires the backends that a reload removed, and forgets retired ones that are in `site` again.
    pub(crate) fn add(&self, removed: &[Arc<Backend>], site: &Site) {
        for backend in removed {
            backend.retire();
        }
        let present: HashSet<*const Backend> = site.backends().map(Arc::as_ptr).collect();
        let mut known = self.lock();
        known.retain(|it| it.strong_count() > 0 && !present.contains(&it.as_ptr()));
        known.extend(removed.iter().map(Arc::downgrade));
    }

    /// The retired backends that have exchanges in flight.
    pub(crate) fn in_use(&self) -> Vec<Arc<Backend>> {
        let known = self.lock();
        let all = known.iter().filter_map(Weak::upgrade);
        all.filter(|backend| backend.in_flight() > 0).collect()
    }

    /// The status of retired backends with exchanges in flight. If the name is taken by one of `present` (the backends
    /// in force) or by another retired one, the address is appended; if that is taken as well, the backend is left
    /// out.
    pub(crate) fn status(&self, present: &[BackendStatus]) -> Vec<BackendStatus> {
        let name_of = |status: &BackendStatus| (status.upstream.clone(), status.backend.clone());
        let mut taken: HashSet<(String, String)> = present.iter().map(name_of).collect();
        let mut statuses = Vec::new();
        for backend in self.in_use() {
            let settings = backend.settings();
            let mut status = BackendStatus::of(backend.upstream(), &settings.name, &backend);
            status.retired = true;
            if taken.contains(&name_of(&status)) {
                status.backend = format!("{} ({})", settings.name, settings.address);
            }
            // Two samples of one name would spoil the page for Prometheus.
            if taken.insert(name_of(&status)) {
                statuses.push(status);
            }
        }
        statuses
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Backend>>> {
        lock(&self.0)
    }
}
