//! Writes heads, in one pass over their fields.
//!
//! Framing and connection fields are never taken from a map: the roles decide on them and hand
//! them over as [`Announcement`] and connection option.

use bytes::BytesMut;
use catamaran_message::Request;
use catamaran_message::field::is_hop_by_hop;
use http::header::{CONTENT_LENGTH, EXPECT, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::head::status_line;

/// What a head says about its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Announcement {
    Nothing,
    Length(u64),
    Chunked,
}

/// What a head says about its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionOption<'a> {
    Nothing,
    Close,
    KeepAlive,
    /// It becomes a tunnel for this protocol, or is asked to.
    Upgrade(&'a [u8]),
}

/// Whether a field concerns only one connection or the framing on it.
pub(crate) fn is_connection_field(name: &HeaderName) -> bool {
    *name == CONTENT_LENGTH || is_hop_by_hop(name)
}

/// Writes status line and fields of a response; [`end_head`] follows.
pub(crate) fn begin_response(
    status: StatusCode,
    reason: Option<&[u8]>,
    headers: &HeaderMap,
    out: &mut BytesMut,
) {
    out.reserve(HEAD_BYTES_USUAL);
    status_line::write(status, reason, out);
    let end_to_end = headers
        .iter()
        .filter(|(name, _)| !is_connection_field(name));
    write_fields(end_to_end, out);
}

/// Writes request line, Host and fields of a request; [`end_head`] follows.
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
    let is_ours = |name: &HeaderName| {
        *name == HOST
            || *name == EXPECT
            || is_connection_field(name)
            || name.as_str() == "http2-settings"
    };
    let others = request.headers.iter().filter(|(name, _)| !is_ours(name));
    write_fields(others, out);
    for (name, value) in request.extra.iter().filter(|(name, _)| !is_ours(name)) {
        write_field(name.as_str().as_bytes(), value, out);
    }
}

/// Writes the fields that are this codec's own and the empty line. Their names are capitalised:
/// some clients (older `ab`) look for them that way.
pub(crate) fn end_head(
    announcement: Announcement,
    connection: ConnectionOption<'_>,
    out: &mut BytesMut,
) {
    match announcement {
        Announcement::Nothing => {}
        Announcement::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        Announcement::Length(length) => {
            write_field(
                b"Content-Length",
                itoa::Buffer::new().format(length).as_bytes(),
                out,
            );
        }
    }
    if let ConnectionOption::Upgrade(token) = connection {
        write_field(b"Connection", b"Upgrade", out);
        write_field(b"Upgrade", token, out);
    }
    out.extend_from_slice(match connection {
        ConnectionOption::Nothing | ConnectionOption::Upgrade(_) => b"\r\n",
        ConnectionOption::Close => b"Connection: close\r\n\r\n",
        ConnectionOption::KeepAlive => b"Connection: keep-alive\r\n\r\n",
    });
}

/// Writes fields as they are.
pub(crate) fn write_fields<'a>(
    fields: impl Iterator<Item = (&'a HeaderName, &'a HeaderValue)>,
    out: &mut BytesMut,
) {
    for (name, value) in fields {
        write_field(name.as_str().as_bytes(), value.as_bytes(), out);
    }
}

fn write_field(name: &[u8], value: &[u8], out: &mut BytesMut) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Room made at once; most heads fit.
const HEAD_BYTES_USUAL: usize = 1024;
