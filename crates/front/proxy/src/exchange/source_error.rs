//! The errors of sources, which could not give the whole response.

use catamaran_coding::EncoderFault;
use catamaran_files::FileBodyError;
use catamaran_upstream::{Culprit, Error as UpstreamError};
use http::StatusCode;
use thiserror::Error;

use crate::cache::fill::FillFailure;

/// An error of a source, which could not give the whole response. Large errors are boxed, so that the result is
/// no larger than an event and cheap to move.
#[derive(Debug, Error)]
pub(crate) enum SourceError {
    /// The backend's connection failed, or the backend broke its protocol.
    #[error(transparent)]
    Upstream(Box<UpstreamError>),
    /// The rest of a file cannot be read.
    #[error(transparent)]
    File(FileBodyError),
    /// The rest of the response cannot be compressed.
    #[error(transparent)]
    Encoder(EncoderFault),
    /// The response that a cache awaits did not come, or may not go to this client.
    #[error(transparent)]
    Cached(Box<CachedError>),
}

impl From<UpstreamError> for SourceError {
    #[cold]
    fn from(error: UpstreamError) -> Self {
        Self::Upstream(Box::new(error))
    }
}

impl From<CachedError> for SourceError {
    #[cold]
    fn from(error: CachedError) -> Self {
        Self::Cached(Box::new(error))
    }
}

impl SourceError {
    /// The party to blame.
    pub(crate) fn culprit(&self) -> Culprit {
        match self {
            Self::Upstream(_) => Culprit::Backend,
            Self::File(_) | Self::Encoder(_) => Culprit::Front,
            Self::Cached(error) => error.culprit(),
        }
    }

    /// The reason in one word, for logs and counters.
    pub(crate) fn token(&self) -> &'static str {
        match self {
            Self::Upstream(error) => error.token(),
            Self::File(FileBodyError::Changed) => "file-changed",
            Self::File(FileBodyError::Read(_)) => "file-read",
            Self::File(FileBodyError::Busy(_)) => "files-busy",
            Self::Encoder(_) => "compress-failed",
            Self::Cached(error) => error.token(),
        }
    }

    /// The status for a client that was sent nothing yet.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Upstream(_) => StatusCode::BAD_GATEWAY,
            Self::File(FileBodyError::Read(_)) | Self::Encoder(_) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
            Self::File(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Cached(error) => error.status(),
        }
    }

    /// Whether the connection to a backend broke, so that another attempt may be made.
    pub(crate) fn is_disconnect(&self) -> bool {
        match self {
            Self::Upstream(error) => error.is_disconnect(),
            Self::File(_) | Self::Encoder(_) | Self::Cached(_) => false,
        }
    }
}

/// The reason why a response of the cache does not go to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum CachedError {
    /// The response may only go to another client.
    #[error("the response that was waited for is not for this client")]
    NotShared,
    /// The backend answered with this status, and a stale response is used instead.
    #[error("the backend answered {0}, which is one of `stale_status`")]
    StaleStatus(StatusCode),
    /// The fetch failed.
    #[error("the response that was waited for did not come: {}", .0.reason)]
    Failed(FillFailure),
}

impl CachedError {
    pub(crate) fn culprit(self) -> Culprit {
        match self {
            Self::NotShared => Culprit::Front,
            Self::StaleStatus(_) => Culprit::Backend,
            Self::Failed(failure) => failure.reason.culprit(),
        }
    }

    pub(crate) fn token(self) -> &'static str {
        match self {
            Self::NotShared => "not-shared",
            Self::StaleStatus(_) => "stale-status",
            Self::Failed(failure) => failure.reason.token(),
        }
    }

    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::NotShared => StatusCode::BAD_GATEWAY,
            Self::StaleStatus(status) => status,
            Self::Failed(failure) => failure.status,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use catamaran_upstream::Event;

    use super::*;

    /// An error must not be larger than an event, or each event would be moved once more.
    #[test]
    fn an_error_takes_no_room_beside_an_event() {
        type Polled<E> = Poll<Result<Event, E>>;
        assert_eq!(size_of::<Polled<SourceError>>(), size_of::<Event>());
        assert_eq!(size_of::<Polled<UpstreamError>>(), size_of::<Event>());
    }
}
