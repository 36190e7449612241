//! What can go wrong, by operation.

use http::StatusCode;
use thiserror::Error;

/// The peer's bytes cannot be accepted; the connection is over.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// The peer closed in the middle of something.
    #[error("the peer closed the connection in the middle of an exchange")]
    Eof,
}

impl Fault {
    /// The fault's name in logs and counters: kebab-case, stable.
    pub fn token(&self) -> &'static str {
        "eof"
    }

    /// The status that answers the fault in the server role; `None`: close without a word.
    pub fn status(&self) -> Option<StatusCode> {
        None
    }
}

/// A request that is not sent; nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// The head does not fit one packet.
    #[error("the request head takes {bytes} bytes, one packet carries {max}")]
    HeadTooLarge {
        /// Payload bytes needed, or a lower bound.
        bytes: usize,
        /// Payload bytes that fit.
        max: usize,
    },
    /// An exchange is still open.
    #[error("the connection is not idle")]
    Busy,
}

/// A response head that is not sent; nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ResponseError {
    /// The head does not fit one packet.
    #[error("the response head takes {bytes} bytes, one packet carries {max}")]
    HeadTooLarge {
        /// Payload bytes needed, or a lower bound.
        bytes: usize,
        /// Payload bytes that fit.
        max: usize,
    },
}

/// A request body that ended too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BodyError {
    /// Fewer bytes than announced.
    #[error("the body ended {missing} bytes short of its content-length")]
    Short {
        /// Bytes that were announced and never came.
        missing: u64,
    },
}
