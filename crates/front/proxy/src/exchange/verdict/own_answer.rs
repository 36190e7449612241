//! Answers of the front's own that are not failures, and those that a route's `text` and `redirect` make.

use std::path::PathBuf;

use bytes::Bytes;
use catamaran_message::{Fields, RequestHead};
use catamaran_upstream::Culprit;
use http::{HeaderValue, Method, StatusCode};

use super::Case;
use crate::config::{Redirect, RouteConfig, RouteText};
use crate::counters::Reason;
use crate::exchange::fields::passage::{RequestedUrl, Values};
use crate::exchange::guards::Guard;
use crate::path::NormalPath;
use crate::site::rewrite::Prefix;

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
    /// The answer of the service that was asked whether the client has signed on.
    Service(StatusCode, Box<Fields>, Bytes),
    /// A redirect to this location, where the client can sign on.
    SignIn(Vec<u8>),
    /// The page for 401, with this challenge in `WWW-Authenticate`.
    Unauthorized(HeaderValue),
    /// A redirect of this status to this location.
    Redirect(StatusCode, Vec<u8>),
    /// The content of the first of these files that exists, which answers an ACME challenge; 404 if none does.
    Challenge(Vec<PathBuf>),
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

    /// Whether the request is answered so before the route's sign-on is asked: a guard or a limit refuses it, or it is a
    /// preflight, with which browsers send no credentials.
    pub(super) fn precedes_auth(&self) -> bool {
        match self.content {
            OwnContent::Limited(_) | OwnContent::Preflight => true,
            OwnContent::Page(_)
            | OwnContent::Text(..)
            | OwnContent::Allow(..)
            | OwnContent::Service(..)
            | OwnContent::SignIn(_)
            | OwnContent::Unauthorized(_)
            | OwnContent::Redirect(..)
            | OwnContent::Challenge(_) => self.guard.is_some(),
        }
    }

    /// The answer of the service that was asked whether the client has signed on.
    pub(crate) fn of_service(status: StatusCode, fields: Fields, body: Bytes) -> Self {
        let content = OwnContent::Service(status, Box::new(fields), body);
        Self::new(content, "auth-denied")
    }

    /// The answer to a browser that is to sign on.
    pub(crate) fn sign_in(location: Vec<u8>) -> Self {
        Self::new(OwnContent::SignIn(location), "auth-sign-in")
    }

    /// The answer to a client that is to send a user and a password.
    pub(crate) fn unauthorized(challenge: HeaderValue, token: &'static str) -> Self {
        Self::new(OwnContent::Unauthorized(challenge), token)
    }

    /// The answer to a request beyond a limit.
    pub(crate) fn limited(token: &'static str, seconds: u64) -> Self {
        Self::new(OwnContent::Limited(seconds), token)
    }

    pub(crate) fn redirect(status: StatusCode, location: Vec<u8>, token: &'static str) -> Self {
        Self::new(OwnContent::Redirect(status, location), token)
    }
}

impl Case<'_, '_> {
    /// Answers with the text of the route.
    pub(super) fn text(
        &self,
        status: StatusCode,
        text: &RouteText,
        path: &NormalPath,
        head: &RequestHead,
    ) -> OwnAnswer {
        let content = match text.content.plain() {
            Some(plain) => Bytes::copy_from_slice(plain),
            None => {
                let url = RequestedUrl::new(self.sender, self.grounds.peer.local, head);
                let values = Values {
                    path: &path.forward,
                    ..url.values(self.grounds, head)
                };
                values.fill_text(&text.content).into()
            }
        };
        let content = OwnContent::Text(status, text.media_type.clone(), content);
        OwnAnswer::new(content, "route-status")
    }

    /// Redirects the client as its route says, unless it asked for that very URL already (a loop: 500).
    pub(super) fn redirect(
        &self,
        to: &Redirect,
        route: &RouteConfig,
        path: &NormalPath,
        head: &RequestHead,
    ) -> OwnAnswer {
        let url = RequestedUrl::new(self.sender, self.grounds.peer.local, head);
        let rest = if to.to.names_rest() {
            Prefix::new(&route.path).rest(&path.forward)
        } else {
            b""
        };
        let values = Values {
            path: &path.forward,
            rest,
            captured: path.captured(),
            ..url.values(self.grounds, head)
        };
        match values.redirect(&to.to) {
            Some(location) => OwnAnswer::redirect(to.status, location, "route-redirect"),
            None => OwnAnswer {
                content: OwnContent::Page(StatusCode::INTERNAL_SERVER_ERROR),
                reason: Reason::new(Culprit::Front, "redirect-loop"),
                guard: None,
                spent: None,
            },
        }
    }
}
