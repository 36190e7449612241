//! What a source in Kubernetes counts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::api::error::ApiErrorKind;

/// What the source of an upstream has counted, shared by the source's thread and those who show it.
#[derive(Debug)]
pub struct WatchFacts {
    origin: Instant,
    /// The time after `origin`, in milliseconds and never 0, at which the server last said what is; 0: never.
    heard: AtomicU64,
    objects: AtomicU64,
    lists: AtomicU64,
    errors: [AtomicU64; ApiErrorKind::ALL.len()],
}

impl Default for WatchFacts {
    fn default() -> Self {
        Self {
            origin: Instant::now(),
            heard: AtomicU64::new(0),
            objects: AtomicU64::new(0),
            lists: AtomicU64::new(0),
            errors: Default::default(),
        }
    }
}

impl WatchFacts {
    /// How long ago the API server last said what is: by a list, or by a watch that it accepted or a line of it;
    /// `None`: it never did.
    #[must_use]
    pub fn age(&self) -> Option<Duration> {
        match self.heard.load(Ordering::Relaxed) {
            0 => None,
            heard => Some(
                self.origin
                    .elapsed()
                    .saturating_sub(Duration::from_millis(heard)),
            ),
        }
    }

    /// How many EndpointSlices the Service has.
    #[must_use]
    pub fn objects(&self) -> u64 {
        self.objects.load(Ordering::Relaxed)
    }

    /// How often all objects were listed after the first time.
    #[must_use]
    pub fn relists(&self) -> u64 {
        self.lists.load(Ordering::Relaxed).saturating_sub(1)
    }

    /// How often the API server was asked in vain, by the reason, in the order of [`ApiErrorKind::ALL`].
    pub fn errors(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let kinds = ApiErrorKind::ALL.iter().zip(&self.errors);
        kinds.map(|(kind, count)| (kind.token(), count.load(Ordering::Relaxed)))
    }

    pub(super) fn note_list(&self, objects: usize) {
        self.lists.fetch_add(1, Ordering::Relaxed);
        self.note_watch(objects);
    }

    pub(super) fn note_watch(&self, objects: usize) {
        let millis = self.origin.elapsed().as_millis().max(1);
        let heard = u64::try_from(millis).unwrap_or(u64::MAX);
        self.heard.store(heard, Ordering::Relaxed);
        self.objects.store(objects as u64, Ordering::Relaxed);
    }

    pub(super) fn note_error(&self, kind: ApiErrorKind) {
        let index = ApiErrorKind::ALL.iter().position(|it| *it == kind);
        self.errors[index.unwrap_or_default()].fetch_add(1, Ordering::Relaxed);
    }
}
