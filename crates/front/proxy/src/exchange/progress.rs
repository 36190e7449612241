//! How far an exchange has come: what every attempt and every source of a response adds to.

use http::StatusCode;
use tokio::time::Instant;

use crate::exchange::cache_hook::CacheHook;
use crate::exchange::compression::Compression;
use crate::exchange::replay::Replay;

/// What happened so far. It is valid after the relay has ended or failed.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Bytes of the request's body received from the client.
    pub(crate) received: u64,
    /// The final response's status, once its head was handed to the client.
    pub(crate) status: Option<StatusCode>,
    /// When the end of the request's body arrived, if that is logged and there was one.
    pub(crate) uploaded_at: Option<Instant>,
    /// When the final response's head arrived, if that is logged.
    pub(crate) head_at: Option<Instant>,
    /// The request's body was received whole (or there was none).
    pub(crate) body_complete: bool,
    /// The client was told to send its body.
    pub(crate) continued: bool,
    /// The backend agreed to a tunnel, and the client was told so.
    pub(crate) upgraded: bool,
    /// The client got a page in the place of the backend's response.
    pub(crate) replaced: bool,
    /// What a cache does with the response of a backend.
    pub(crate) hook: Option<Box<CacheHook>>,
    /// The bytes of the body received so far, for a further attempt.
    pub(crate) replay: Replay,
    /// The response is compressed.
    pub(crate) compression: Option<Box<Compression>>,
}
