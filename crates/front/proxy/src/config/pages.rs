//! The operator's own pages: for errors, and for maintenance.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;

/// The pages that are sent with error statuses (400 to 599). `[error_pages]` in `docs/reference.md` has
/// the meaning of its keys and the directives of other servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorPages {
    /// The pages by status; the first range that contains the status applies.
    pub pages: Vec<(RangeInclusive<u16>, Arc<Page>)>,
    /// The statuses for which a backend's response is replaced by a page: the key `replace_errors`.
    pub replaced: Vec<RangeInclusive<u16>>,
    /// The page that is sent with 503 while every backend of the upstream is stopped; `None`: the page
    /// for 503.
    pub maintenance: Option<Arc<Page>>,
}

/// A page, as its file was when the configuration was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The path of the page's file.
    pub file: PathBuf,
    /// The value of `Content-Type`.
    pub content_type: &'static str,
    /// The content of the file; `None` if it could not be read: then the front's own text is sent.
    pub body: Option<Bytes>,
}

impl ErrorPages {
    /// The page for a status, also if its file could not be read; `None`: there is none.
    pub(crate) fn page(&self, status: StatusCode) -> Option<&Page> {
        let mut pages = self.pages.iter();
        let found = pages.find(|(statuses, _)| statuses.contains(&status.as_u16()));
        found.map(|(_, page)| &**page)
    }

    /// Whether a backend's response with this status is replaced by a page.
    pub(crate) fn replaces(&self, status: StatusCode) -> bool {
        let mut replaced = self.replaced.iter();
        replaced.any(|statuses| statuses.contains(&status.as_u16()))
    }
}
