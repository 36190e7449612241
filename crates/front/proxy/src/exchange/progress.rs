//! The progress of an exchange, which every attempt and every source of a response adds to.

use http::StatusCode;
use tokio::time::Instant;

use crate::exchange::compression::Compression;
use crate::exchange::replay::Replay;
use crate::exchange::sink::Sink;

/// The events of an exchange so far. They stay valid after the relay has ended or failed.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Bytes of the request's body received from the client.
    pub(crate) received: u64,
    /// The final response's status, once its head was handed to the client.
    pub(crate) status: Option<StatusCode>,
    /// The time at which the end of the request's body arrived; `None` if that is not logged, or
    /// there was no body.
    pub(crate) uploaded_at: Option<Instant>,
    /// The time at which the final response's head arrived; `None` if that is not logged.
    pub(crate) head_at: Option<Instant>,
    /// Whether the request's body was received whole, or there is none.
    pub(crate) body_complete: bool,
    /// Whether the client was told to send its body (100).
    pub(crate) continued: bool,
    /// Whether the backend agreed to a tunnel, and the client was told so.
    pub(crate) upgraded: bool,
    /// Whether the client got a page instead of the backend's response.
    pub(crate) replaced: bool,
    /// Who takes the response of a backend besides the client; `None`: nobody does.
    pub(crate) sink: Option<Box<Sink>>,
    /// The bytes of the request's body received so far, kept for a further attempt.
    pub(crate) replay: Replay,
    /// The compression of the response; `None`: it is not compressed.
    pub(crate) compression: Option<Box<Compression>>,
}
