//! Pages of the operator's own: for errors, and for the time of maintenance.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;

/// Which page is sent with which status. Only error statuses, 400 to 599, have pages. `[error_pages]` in
/// `docs/reference.md` has the meaning of its keys and the directives of other servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorPages {
    /// Pages by status; the first range that has the status counts.
    pub pages: Vec<(RangeInclusive<u16>, Arc<Page>)>,
    /// Responses of backends with these statuses are replaced with pages: the key `replace_errors`.
    pub replaced: Vec<RangeInclusive<u16>>,
    /// What is sent with 503 while every backend of the upstream is stopped; `None`: the page for 503.
    pub maintenance: Option<Arc<Page>>,
}

/// A page, as it was when the configuration was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The file.
    pub file: PathBuf,
    /// The value of `Content-Type`.
    pub content_type: &'static str,
    /// What the file held; `None` if it could not be read. Then the front's own text is sent.
    pub body: Option<Bytes>,
}

impl ErrorPages {
    /// The page for a status, whether it could be read or not.
    pub(crate) fn page(&self, status: StatusCode) -> Option<&Page> {
        let mut pages = self.pages.iter();
        let found = pages.find(|(statuses, _)| statuses.contains(&status.as_u16()));
        found.map(|(_, page)| &**page)
    }

    /// Whether a backend's response with this status is replaced.
    pub(crate) fn replaces(&self, status: StatusCode) -> bool {
        let mut replaced = self.replaced.iter();
        replaced.any(|statuses| statuses.contains(&status.as_u16()))
    }
}
