//! Counts exchanges whose client has left while their backend still works on them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Backend;

/// Counts an exchange as abandoned until dropped.
#[derive(Debug)]
pub(crate) struct Abandoned(Arc<Backend>);

impl Abandoned {
    pub(crate) fn begin(backend: &Arc<Backend>) -> Self {
        backend.abandoned.fetch_add(1, Ordering::Relaxed);
        backend.abandoned_total.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(backend))
    }
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.0.abandoned.fetch_sub(1, Ordering::Relaxed);
    }
}
