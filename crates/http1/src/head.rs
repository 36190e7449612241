//! Heads: what the two roles exchange before a body.
//!
//! The request to be sent is here, the other heads are those of `catamaran-message`; reading and writing them is in the submodules, one for
//! each part of a head. A head is only looked at once all of it has arrived ([`scan`] finds its
//! end), then taken apart in one pass into slices of the receive buffer.

pub(crate) mod encode;
pub(crate) mod fields;
pub(crate) mod name;
pub(crate) mod request;
pub(crate) mod request_line;
pub(crate) mod response;
pub(crate) mod scan;
pub(crate) mod status_line;

use catamaran_message::BodyLength;
use http::{HeaderMap, Method};

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
