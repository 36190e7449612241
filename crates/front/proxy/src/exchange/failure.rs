//! Failures of an exchange: culprit, reason and status.
//!
//! Each error of the layers below becomes one [`Failure`]. The answer to the client and the log line
//! both come from it.

use std::error::Error;
use std::fmt;

use catamaran_upstream::{Culprit, LeaseError, RequestError};
use http::StatusCode;

use crate::cache::fill::FillFailure;
use crate::client::ClientError;
use crate::counters::Reason;

/// The reason why an exchange failed, for the client and for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The status for the client, if it can still be sent.
    pub(crate) status: StatusCode,
    pub(crate) reason: Reason,
    /// Whether the client cannot be answered any more.
    pub(crate) client_gone: bool,
}

impl Failure {
    pub(crate) fn new(culprit: Culprit, status: StatusCode, token: &'static str) -> Self {
        Self {
            status,
            reason: Reason::new(culprit, token),
            client_gone: false,
        }
    }

    pub(crate) fn client(status: StatusCode, token: &'static str) -> Self {
        Self::new(Culprit::Client, status, token)
    }

    pub(crate) fn from_lease(error: &LeaseError) -> Self {
        Self::new(error.culprit(), error.status(), error.token())
    }

    pub(crate) fn from_request(error: &RequestError) -> Self {
        Self::client(error.status(), error.token())
    }

    /// The failure of a tunnel to an AJP backend without `upgrade_url`: AJP has no tunnels.
    pub(crate) fn no_upgrade_url() -> Self {
        let status = StatusCode::NOT_IMPLEMENTED;
        Self::new(Culprit::Front, status, "no-upgrade-url")
    }

    /// The failure for a client that broke its connection or the protocol.
    pub(crate) fn from_client(error: &ClientError) -> Self {
        let closed = StatusCode::from_u16(CLIENT_CLOSED_REQUEST).expect("three digits");
        let (status, token) = match error {
            // The connection still works, so the client is answered.
            ClientError::Fault(fault) => return Self::client(fault.status(), fault.token()),
            ClientError::Malformed(token) => (StatusCode::BAD_REQUEST, *token),
            ClientError::Io(_) | ClientError::Left => (closed, "gone"),
            ClientError::Reset => (closed, "client-reset"),
        };
        Self {
            client_gone: true,
            ..Self::client(status, token)
        }
    }

    /// The failure of the fetch whose response was waited for.
    pub(crate) fn from_fill(failure: FillFailure) -> Self {
        Self {
            status: failure.status,
            reason: failure.reason,
            client_gone: false,
        }
    }

    /// Whether the client has left, so that no response can be sent.
    pub(crate) fn is_gone(&self) -> bool {
        self.status.as_u16() == CLIENT_CLOSED_REQUEST
    }
}

/// An error and what caused it, on one line.
pub(crate) struct Causes<'a>(pub(crate) &'a dyn Error);

impl fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(cause) = source {
            write!(f, ": {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}

/// The status in the log of a request whose client left before a response began, as in nginx. It is
/// never sent.
const CLIENT_CLOSED_REQUEST: u16 = 499;
