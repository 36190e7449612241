//! Failures of an exchange: culprit, reason and status.
//!
//! Each error of the layers below becomes one [`Failure`]. The answer to the client and the log line
//! both come from it.

use std::error::Error;
use std::{fmt, io};

use catamaran_upstream::{Culprit, Lease, LeaseError, RequestError};
use http::StatusCode;

use crate::client::ClientError;
use crate::counters::Reason;
use crate::exchange::relay::{Progress, RelayError};
use crate::exchange::retry::Stage;

/// Why an exchange failed: for the client and for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The status for the client, if it can still be sent.
    pub(crate) status: StatusCode,
    pub(crate) reason: Reason,
    /// The client cannot be answered any more.
    pub(crate) client_gone: bool,
}

/// A failed attempt: the failure, and what decides about another attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failed {
    pub(super) failure: Failure,
    pub(super) stage: Stage,
    pub(super) disconnected: bool,
    pub(super) backend_out: bool,
    pub(super) dial_timed_out: bool,
    /// The connection was refused at once.
    pub(super) refused: bool,
    pub(super) reused: bool,
}

impl Failure {
    pub(crate) fn new(culprit: Culprit, status: StatusCode, token: &'static str) -> Self {
        Self {
            status,
            reason: Reason::new(culprit, token),
            client_gone: false,
        }
    }

    pub(super) fn client(status: StatusCode, token: &'static str) -> Self {
        Self::new(Culprit::Client, status, token)
    }

    pub(super) fn from_lease(error: &LeaseError) -> Self {
        Self::new(error.culprit(), error.status(), error.token())
    }

    pub(super) fn from_request(error: &RequestError) -> Self {
        Self::client(error.status(), error.token())
    }

    pub(super) fn from_relay(error: &RelayError) -> Self {
        use Culprit::{Backend, Client};
        let (culprit, status, token) = match error {
            RelayError::Source(error) => (error.culprit(), error.status(), error.token()),
            RelayError::FirstByteTimeout => {
                (Backend, StatusCode::GATEWAY_TIMEOUT, "first-byte-timeout")
            }
            RelayError::Declined(status) => (Backend, *status, "retry-status"),
            RelayError::BackendOut => (Backend, StatusCode::GATEWAY_TIMEOUT, "backend-out"),
            RelayError::IdleBodyTimeout => {
                (Backend, StatusCode::GATEWAY_TIMEOUT, "idle-body-timeout")
            }
            RelayError::ExchangeTimeout => {
                (Backend, StatusCode::GATEWAY_TIMEOUT, "exchange-timeout")
            }
            RelayError::NotUpgraded(_) => (Backend, StatusCode::BAD_GATEWAY, "not-upgraded"),
            RelayError::WebSocketAccept => (Backend, StatusCode::BAD_GATEWAY, "websocket-accept"),
            RelayError::InterimFlood => (Backend, StatusCode::BAD_GATEWAY, "interim-flood"),
            RelayError::Response(_) => (Backend, StatusCode::BAD_GATEWAY, "response-head"),
            RelayError::ResponseLength => (Backend, StatusCode::BAD_GATEWAY, "response-length"),
            RelayError::Client(error) => return Self::from_client(error),
            RelayError::BodyTimeout => (Client, StatusCode::REQUEST_TIMEOUT, "body-timeout"),
            RelayError::WriteTimeout => (Client, StatusCode::REQUEST_TIMEOUT, "write-timeout"),
            RelayError::BodyTooLarge => (Client, StatusCode::PAYLOAD_TOO_LARGE, "body-too-large"),
        };
        Self {
            client_gone: matches!(error, RelayError::WriteTimeout),
            ..Self::new(culprit, status, token)
        }
    }

    /// A tunnel is asked for, and the backend speaks AJP, which has none.
    pub(super) fn no_upgrade_url() -> Self {
        Self::new(
            Culprit::Front,
            StatusCode::NOT_IMPLEMENTED,
            "no-upgrade-url",
        )
    }

    /// The client broke its connection or its protocol.
    pub(super) fn from_client(error: &ClientError) -> Self {
        let status = StatusCode::from_u16(CLIENT_CLOSED_REQUEST).expect("three digits");
        let failure = match error {
            ClientError::Fault(fault) => return Self::client(fault.status(), fault.token()),
            ClientError::Malformed(token) => Self::client(StatusCode::BAD_REQUEST, token),
            ClientError::Io(_) | ClientError::Left => Self::client(status, "gone"),
            ClientError::Reset => Self::client(status, "client-reset"),
        };
        Self {
            client_gone: true,
            ..failure
        }
    }

    /// Whether the client has left, so that no response can be sent.
    pub(super) fn is_gone(&self) -> bool {
        self.status.as_u16() == CLIENT_CLOSED_REQUEST
    }
}

impl Failed {
    /// An attempt that got no connection.
    pub(super) fn from_lease(error: &LeaseError) -> Self {
        Self {
            dial_timed_out: matches!(error, LeaseError::DialTimeout { .. }),
            refused: matches!(error, LeaseError::Dial { source, .. } if is_refusal(source)),
            ..Self::unsent(Failure::from_lease(error))
        }
    }

    /// An attempt that sent nothing.
    pub(super) fn unsent(failure: Failure) -> Self {
        Self {
            failure,
            stage: Stage::NotSent,
            disconnected: false,
            backend_out: false,
            dial_timed_out: false,
            refused: false,
            reused: false,
        }
    }

    pub(super) fn from_relay(error: &RelayError, progress: &Progress, lease: &Lease<'_>) -> Self {
        let answered = progress.status.is_some() || lease.is_answered();
        let disconnected = match error {
            RelayError::Source(error) => error.is_disconnect(),
            _ => false,
        };
        Self {
            failure: Failure::from_relay(error),
            stage: if matches!(error, RelayError::Declined(_)) {
                Stage::Declined
            } else if answered {
                Stage::Answered
            } else if disconnected && lease.is_undelivered() {
                Stage::Undelivered
            } else {
                Stage::Sent
            },
            disconnected,
            backend_out: matches!(error, RelayError::BackendOut),
            dial_timed_out: false,
            refused: false,
            reused: lease.is_reused(),
        }
    }
}

/// Nobody listens there, which is known at once.
fn is_refusal(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, NotFound};
    matches!(error.kind(), ConnectionRefused | NotFound)
}

/// An error and what caused it, on one line.
pub(super) struct Causes<'a>(pub(super) &'a dyn Error);

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
