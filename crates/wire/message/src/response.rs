//! Response heads: as received from a server, and as sent to a client.

use bytes::Bytes;
use http::StatusCode;

use crate::{BodyLength, Fields};

/// A response head as received, without what concerns one connection only: the hop-by-hop fields,
/// those that Connection names, Content-Length and Transfer-Encoding are gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseHead {
    /// The status, 100 to 999; 101 only if it was asked for, and then Upgrade is among the fields.
    pub status: StatusCode,
    /// The reason phrase. `None` if there was none, or if it said no more than the status.
    pub reason: Option<Bytes>,
    /// The end-to-end fields.
    pub headers: Fields,
    /// The announced length. For a response to HEAD and for 304 it is the length that a GET would
    /// have got. `None` if the length is not known before the end, for 1xx and for 204.
    pub content_length: Option<u64>,
}

impl ResponseHead {
    /// Empties the head; its memory is kept for the next one.
    pub fn clear(&mut self) {
        self.status = StatusCode::OK;
        self.reason = None;
        self.headers.clear();
        self.content_length = None;
    }
}

/// A response head to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    /// The final status, 200 to 999, or 101 if the connection becomes a tunnel.
    pub status: StatusCode,
    /// The reason phrase; `None` is the usual one of the status. One with a control character is
    /// replaced by the usual one (HTTP/1.1) or refused (AJP13).
    pub reason: Option<&'a [u8]>,
    /// The fields. Those that concern one connection only are not written, nor is Content-Length:
    /// the codec decides framing and reuse.
    pub headers: &'a Fields,
    /// The length of the body. A known length is announced, and must be met; responses without a
    /// body (to HEAD, 304) announce it as well.
    pub body: BodyLength,
}
