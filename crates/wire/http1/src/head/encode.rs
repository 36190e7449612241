//! Writes heads, in one pass over their fields.
//!
//! Framing and connection fields are never taken from a list: the roles decide on them and hand
//! them over as [`Announcement`] and connection option.

use bytes::BytesMut;
use catamaran_message::{Fields, Request, Traits};
use http::StatusCode;

use crate::head::status_line;

/// How a head announces the length of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Announcement {
    Nothing,
    Length(u64),
    Chunked,
}

/// The Connection field that a head gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionOption<'a> {
    Nothing,
    Close,
    KeepAlive,
    /// An upgrade to this protocol, or a request for one.
    Upgrade(&'a [u8]),
}

/// Writes the status line and fields of a response; [`end_head`] has to follow.
pub(crate) fn begin_response(
    status: StatusCode,
    reason: Option<&[u8]>,
    headers: &Fields,
    out: &mut BytesMut,
) {
    out.reserve(HEAD_BYTES_USUAL);
    status_line::write(status, reason, out);
    headers.write_lines(Traits::OF_CONNECTION, out);
}

/// Writes the request line, Host and fields of a request; [`end_head`] has to follow.
pub(crate) fn begin_request(request: &Request<'_>, out: &mut BytesMut) {
    out.reserve(HEAD_BYTES_USUAL);
    out.extend_from_slice(request.method.as_str().as_bytes());
    out.extend_from_slice(b" ");
    out.extend_from_slice(request.path);
    if let Some(query) = request.query {
        out.extend_from_slice(b"?");
        out.extend_from_slice(query);
    }
    out.extend_from_slice(b" HTTP/1.1\r\nHost: ");
    out.extend_from_slice(request.host);
    out.extend_from_slice(b"\r\n");
    let without = Traits::OF_CONNECTION.with(Traits::OF_CODEC);
    request.headers.write_lines(without, out);
}

/// Writes the framing and connection fields, which the codec decides, and the empty line.
pub(crate) fn end_head(
    announcement: Announcement,
    connection: ConnectionOption<'_>,
    out: &mut BytesMut,
) {
    match announcement {
        Announcement::Nothing => {}
        Announcement::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        Announcement::Length(length) => {
            out.extend_from_slice(b"Content-Length: ");
            out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }
    if let ConnectionOption::Upgrade(token) = connection {
        out.extend_from_slice(b"Connection: Upgrade\r\nUpgrade: ");
        out.extend_from_slice(token);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(match connection {
        ConnectionOption::Nothing | ConnectionOption::Upgrade(_) => b"\r\n",
        ConnectionOption::Close => b"Connection: close\r\n\r\n",
        ConnectionOption::KeepAlive => b"Connection: keep-alive\r\n\r\n",
    });
}

/// The bytes of room made at once; enough for most heads.
const HEAD_BYTES_USUAL: usize = 1024;
