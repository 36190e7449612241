//! The facts of an attempt that failed, from which the next step is decided.

use std::io;

use catamaran_upstream::{Lease, LeaseError};

use crate::exchange::failure::Failure;
use crate::exchange::progress::Progress;
use crate::exchange::relay::RelayError;
use crate::exchange::retry::Stage;
use crate::exchange::spans::AttemptFault;

/// A failed attempt: the failure, and the facts that decide whether another attempt is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failed {
    pub(super) failure: Failure,
    pub(super) stage: Stage,
    pub(super) disconnected: bool,
    /// Whether the front gave the backend up: it was put out, or the time of the attempt was over.
    pub(super) given_up: bool,
    /// Whether the time of the whole exchange is over.
    pub(super) is_over: bool,
    pub(super) dial_timed_out: bool,
    /// Whether the connection was refused at once.
    pub(super) refused: bool,
    pub(super) reused: bool,
}

impl Failed {
    /// The facts of an attempt that got no connection.
    pub(super) fn from_lease(error: &LeaseError) -> Self {
        Self {
            dial_timed_out: matches!(error, LeaseError::DialTimeout { .. }),
            refused: matches!(error, LeaseError::Dial { source, .. } if is_refusal(source)),
            ..Self::unsent(Failure::from_lease(error))
        }
    }

    /// The facts of an attempt that had no connection when its time was over.
    pub(super) fn late(error: &RelayError) -> Self {
        Self {
            is_over: matches!(error, RelayError::ExchangeTimeout),
            ..Self::unsent(error.failure())
        }
    }

    /// The facts of an attempt that sent nothing.
    pub(super) fn unsent(failure: Failure) -> Self {
        Self {
            failure,
            stage: Stage::NotSent,
            disconnected: false,
            given_up: false,
            is_over: false,
            dial_timed_out: false,
            refused: false,
            reused: false,
        }
    }

    /// The failure as the span of the attempt records it.
    pub(super) fn fault(&self) -> AttemptFault {
        AttemptFault {
            reason: self.failure.reason,
            declined: (self.stage == Stage::Declined).then_some(self.failure.status),
        }
    }

    /// The facts of an attempt whose relay failed.
    pub(super) fn from_relay(error: &RelayError, progress: &Progress, lease: &Lease<'_>) -> Self {
        let disconnected = match error {
            RelayError::Source(error) => error.is_disconnect(),
            _ => false,
        };
        let stage = if matches!(error, RelayError::Declined(_)) {
            Stage::Declined
        } else if progress.status.is_some() || lease.is_answered() {
            Stage::Answered
        } else if disconnected && lease.is_undelivered() {
            Stage::Undelivered
        } else {
            Stage::Sent
        };
        Self {
            failure: error.failure(),
            stage,
            disconnected,
            given_up: matches!(error, RelayError::BackendOut | RelayError::AttemptTimeout),
            is_over: matches!(error, RelayError::ExchangeTimeout),
            dial_timed_out: false,
            refused: false,
            reused: lease.is_reused(),
        }
    }
}

/// Whether the system reports at once that nothing listens at the address.
fn is_refusal(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, NotFound};
    matches!(error.kind(), ConnectionRefused | NotFound)
}
