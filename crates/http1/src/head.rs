//! Heads: what the two roles exchange before a body.
//!
//! The types of both directions are here; reading and writing them is in the submodules, one for
//! each part of a head. A head is only looked at once all of it has arrived ([`scan`] finds its
//! end), then taken apart in one pass into slices of the receive buffer.

pub(crate) mod encode;
pub(crate) mod fields;
pub(crate) mod host;
pub(crate) mod name;
pub(crate) mod request;
pub(crate) mod request_line;
pub(crate) mod response;
pub(crate) mod scan;
pub(crate) mod status_line;
pub(crate) mod target;

use bytes::Bytes;
use catamaran_message::{BodyLength, field};
use http::{HeaderMap, Method, Version};

pub use host::Authority;
pub use target::{Scheme, Target};

/// A request head as received. Everything in it has been validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// The method; any token but CONNECT.
    pub method: Method,
    /// What the request is for.
    pub target: Target,
    /// HTTP/1.0 or HTTP/1.1 (which stands for all later minor versions too).
    pub version: Version,
    /// All fields as received (Host, Connection and Expect too), except Content-Length and
    /// Transfer-Encoding, which became `body`.
    pub headers: HeaderMap,
    /// Whom the request is for: from an absolute target, else from Host. `None` only for
    /// HTTP/1.0 without Host.
    pub authority: Option<Authority>,
    /// How much body follows.
    pub body: BodyLength,
    /// The client waits for 100 (Continue) before it sends the body. Only for HTTP/1.1 with a
    /// body; ignored otherwise (RFC 9110 section 10.1.1).
    pub expect_continue: bool,
    /// Version and Connection field allow another request after this one.
    pub keep_alive: bool,
}

impl RequestHead {
    /// Lets go of everything received; what is left is memory for the next head.
    pub(crate) fn forget(&mut self) {
        self.method = Method::GET;
        self.target.path = Bytes::new();
        self.target.query = None;
        self.authority = None;
        field::clear(&mut self.headers);
    }
}

/// A request head to send, always as HTTP/1.1 in origin form.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The method; CONNECT is refused.
    pub method: &'a Method,
    /// The path, encoded, beginning with `/`; or `*` for OPTIONS.
    pub path: &'a [u8],
    /// The query, encoded, without the question mark.
    pub query: Option<&'a [u8]>,
    /// The value of Host.
    pub host: &'a [u8],
    /// The fields. Host, Content-Length, Transfer-Encoding, Connection, Keep-Alive,
    /// Proxy-Connection, TE, Trailer, Upgrade, HTTP2-Settings and Expect in it are not written.
    pub headers: &'a HeaderMap,
    /// How much body follows. `Known(0)` is announced as `Content-Length: 0` unless the method
    /// is one that usually has no body (RFC 9110 section 8.6).
    pub body: BodyLength,
}
