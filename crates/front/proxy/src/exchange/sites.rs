//! The sites of one exchange.

use std::sync::{Arc, OnceLock};

use crate::worker::OwnSite;

/// The site with which an exchange began, and those with which it went on. They live as long as this.
#[derive(Debug)]
pub(crate) struct Sites {
    first: Arc<OwnSite>,
    /// Mostly empty: only a request that waited for a member goes on with another site.
    later: OnceLock<Box<Self>>,
}

impl Sites {
    pub(crate) fn new(first: Arc<OwnSite>) -> Self {
        Self {
            first,
            later: OnceLock::new(),
        }
    }

    /// The site with which the exchange began.
    pub(crate) fn first(&self) -> &Arc<OwnSite> {
        &self.first
    }

    /// Keeps a site with which the exchange goes on.
    pub(crate) fn keep(&self, site: Arc<OwnSite>) -> &OwnSite {
        let mut last = self;
        while let Some(later) = last.later.get() {
            last = later;
        }
        &last.later.get_or_init(|| Box::new(Self::new(site))).first
    }
}
