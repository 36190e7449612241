//! The errors of the relay.

use catamaran_files::FileBodyError;
use catamaran_transport::FileOutputFault;
use catamaran_upstream::Culprit;
use http::StatusCode;
use thiserror::Error;

use crate::client::{ClientError, ResponseError};
use crate::exchange::failure::Failure;
use crate::exchange::source_error::SourceError;

/// The reason why a relay failed.
#[derive(Debug, Error)]
pub(crate) enum RelayError {
    #[error(transparent)]
    Source(SourceError),
    #[error("the backend sent no response in time")]
    FirstByteTimeout,
    #[error("the backend was put out while its answer was awaited")]
    BackendOut,
    #[error("the backend answered {0}, which is one of `retry_status`")]
    Declined(StatusCode),
    #[error("the backend fell silent within the response")]
    IdleBodyTimeout,
    #[error("the exchange took too long")]
    ExchangeTimeout,
    #[error("the attempt took too long")]
    AttemptTimeout,
    #[error("the backend answered {0} to a request for a tunnel, without changing to its protocol")]
    NotUpgraded(StatusCode),
    #[error("the backend's Sec-WebSocket-Accept is not the one for the front's key")]
    WebSocketAccept,
    #[error("the backend sends interim responses too fast")]
    InterimFlood,
    #[error("the response cannot be sent to the client")]
    Response(#[source] ResponseError),
    #[error("the response is not as long as announced")]
    ResponseLength,
    #[error(transparent)]
    Client(ClientError),
    #[error("the client sent nothing of its body for too long")]
    BodyTimeout,
    #[error("the client took nothing of the response for too long")]
    WriteTimeout,
    #[error("the request's body is larger than allowed")]
    BodyTooLarge,
}

impl RelayError {
    /// The error of a write to the client, or of the file from which the kernel was sending.
    #[cold]
    pub(super) fn from_write(error: ClientError) -> Self {
        let fault = match &error {
            ClientError::Io(error) => error.get_ref(),
            _ => None,
        };
        match fault.and_then(|fault| fault.downcast_ref()) {
            Some(FileOutputFault::Ended) => Self::Source(SourceError::File(FileBodyError::Changed)),
            Some(FileOutputFault::Read(errno)) => {
                let error = FileBodyError::Read((*errno).into());
                Self::Source(SourceError::File(error))
            }
            None => Self::Client(error),
        }
    }

    /// The failure that the client is answered with and that the log shows.
    pub(crate) fn failure(&self) -> Failure {
        use Culprit::{Backend, Client};
        let (culprit, status, token) = match self {
            Self::Source(error) => (error.culprit(), error.status(), error.token()),
            Self::FirstByteTimeout => (Backend, StatusCode::GATEWAY_TIMEOUT, "first-byte-timeout"),
            Self::Declined(status) => (Backend, *status, "retry-status"),
            Self::BackendOut => (Backend, StatusCode::GATEWAY_TIMEOUT, "backend-out"),
            Self::IdleBodyTimeout => (Backend, StatusCode::GATEWAY_TIMEOUT, "idle-body-timeout"),
            Self::ExchangeTimeout => (Backend, StatusCode::GATEWAY_TIMEOUT, "exchange-timeout"),
            Self::AttemptTimeout => (Backend, StatusCode::GATEWAY_TIMEOUT, "attempt-timeout"),
            Self::NotUpgraded(_) => (Backend, StatusCode::BAD_GATEWAY, "not-upgraded"),
            Self::WebSocketAccept => (Backend, StatusCode::BAD_GATEWAY, "websocket-accept"),
            Self::InterimFlood => (Backend, StatusCode::BAD_GATEWAY, "interim-flood"),
            Self::Response(_) => (Backend, StatusCode::BAD_GATEWAY, "response-head"),
            Self::ResponseLength => (Backend, StatusCode::BAD_GATEWAY, "response-length"),
            Self::Client(error) => return Failure::from_client(error),
            Self::BodyTimeout => (Client, StatusCode::REQUEST_TIMEOUT, "body-timeout"),
            Self::WriteTimeout => (Client, StatusCode::REQUEST_TIMEOUT, "write-timeout"),
            Self::BodyTooLarge => (Client, StatusCode::PAYLOAD_TOO_LARGE, "body-too-large"),
        };
        Failure {
            client_gone: matches!(self, Self::WriteTimeout),
            ..Failure::new(culprit, status, token)
        }
    }
}
