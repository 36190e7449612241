//! An answer of the front's own that is not a failure.

use std::path::PathBuf;

use bytes::Bytes;
use catamaran_message::RequestHead;
use catamaran_upstream::Culprit;
use http::{HeaderValue, Method, StatusCode};

use crate::counters::Reason;
use crate::exchange::guards::Guard;

/// An answer of the front's own that is not a failure.
#[derive(Debug)]
pub(crate) struct OwnAnswer {
    pub(crate) content: OwnContent,
    /// The reason to count and log.
    pub(crate) reason: Reason,
    /// The route's guard that refuses the client; `None`: no guard does.
    pub(crate) guard: Option<Guard>,
    /// The request's head, whose memory the next request may use; `None`: it is not kept.
    pub(crate) spent: Option<Box<RequestHead>>,
}

/// The content of the front's own answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OwnContent {
    /// The page for this status.
    Page(StatusCode),
    /// The text of a route, with this status and media type.
    Text(StatusCode, HeaderValue, Bytes),
    /// The page for this status, with these methods in `Allow`.
    Allow(StatusCode, Vec<Method>),
    /// The page for a request beyond a limit, which would pass after so many seconds.
    Limited(u64),
    /// 204 without content, for a preflight of CORS.
    Preflight,
    /// A redirect of this status to this location.
    Redirect(StatusCode, Vec<u8>),
    /// The content of this file, which answers an ACME challenge; 404 if there is no such file.
    Challenge(PathBuf),
}

impl OwnAnswer {
    pub(super) fn new(content: OwnContent, token: &'static str) -> Self {
        Self {
            content,
            reason: Reason::new(Culprit::Client, token),
            guard: None,
            spent: None,
        }
    }

    pub(super) fn page(status: StatusCode, token: &'static str) -> Self {
        Self::new(OwnContent::Page(status), token)
    }

    /// The answer to a client that a guard refuses.
    pub(super) fn guarded(guard: Guard) -> Self {
        Self {
            guard: Some(guard),
            ..Self::page(Guard::STATUS, guard.token())
        }
    }

    /// The answer to a request beyond a limit.
    pub(crate) fn limited(token: &'static str, seconds: u64) -> Self {
        Self::new(OwnContent::Limited(seconds), token)
    }

    pub(crate) fn redirect(status: StatusCode, location: Vec<u8>, token: &'static str) -> Self {
        Self::new(OwnContent::Redirect(status, location), token)
    }
}
