//! Request heads: as received from a client, and as sent to a server.

use bytes::Bytes;
use http::{Method, Version};

use crate::{Authority, BodyLength, Fields, Target};

/// A request head as received. Everything in it has been validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// The method; any token but CONNECT.
    pub method: Method,
    /// The path and query that the request asks for.
    pub target: Target,
    /// The version: HTTP/1.0, HTTP/1.1 (also for all later minor versions) or HTTP/2.
    pub version: Version,
    /// All fields as received (Host, Connection and Expect too), except Content-Length and
    /// Transfer-Encoding, which became `body`.
    pub headers: Fields,
    /// The host that the request is for: from an absolute target, else from Host. `None` only for
    /// HTTP/1.0 without Host.
    pub authority: Option<Authority>,
    /// The length of the body that follows.
    pub body: BodyLength,
    /// Whether the client waits for 100 (Continue) before it sends the body. Only from HTTP/1.1 on
    /// and with a body; ignored otherwise (RFC 9110 section 10.1.1).
    pub expect_continue: bool,
}

impl RequestHead {
    /// An empty head, for a decoder to fill.
    pub fn empty() -> Self {
        Self {
            method: Method::GET,
            target: Target {
                path: Bytes::new(),
                query: None,
                scheme: None,
            },
            version: Version::HTTP_11,
            headers: Fields::new(),
            authority: None,
            body: BodyLength::Known(0),
            expect_continue: false,
        }
    }

    /// Empties the head; its memory is kept for the next one.
    pub fn clear(&mut self) {
        self.method = Method::GET;
        self.target.path = Bytes::new();
        self.target.query = None;
        self.authority = None;
        self.headers.clear();
    }
}

/// A request head to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The method, any token but CONNECT.
    pub method: &'a Method,
    /// The path, percent-encoded, beginning with `/`; or `*` for OPTIONS.
    pub path: &'a [u8],
    /// The query, percent-encoded, without its `?`. `None` if there is none, which differs from an
    /// empty one.
    pub query: Option<&'a [u8]>,
    /// The value of Host. HTTP/1.1 writes it first and skips Host in `headers`; AJP13 sends the Host
    /// of `headers` and not this.
    pub host: &'a [u8],
    /// The fields. Those that concern one connection only are not written over HTTP/1.1.
    /// Content-Length and Transfer-Encoding are ignored here: `body` decides them.
    pub headers: &'a Fields,
    /// The length of the body. A known length is announced, and must be met.
    pub body: BodyLength,
}
