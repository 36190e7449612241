//! Writes heads, in one pass over their fields.
//!
//! Framing and connection fields are never taken from a list: the roles decide on them and hand
//! them over as [`Announcement`] and connection option.

use bytes::BytesMut;
use catamaran_message::{Fields, Request, Traits};
use http::StatusCode;

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

/// Writes status line and fields of a response; [`end_head`] follows.
pub(crate) fn begin_response(
    status: StatusCode,
    reason: Option<&[u8]>,
    headers: &Fields,
    out: &mut BytesMut,
) {
    out.reserve(HEAD_BYTES_USUAL);
    status_line::write(status, reason, out);
    headers.write_lines(OF_CONNECTION, out);
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
    let headers = request.headers;
    headers.write_lines(OF_CONNECTION.with(Traits::OF_CODEC), out);
}

/// Writes the fields that are this codec's own and the empty line.
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

fn write_field(name: &[u8], value: &[u8], out: &mut BytesMut) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// What concerns only one connection, or the framing on it.
const OF_CONNECTION: Traits = Traits::HOP_BY_HOP.with(Traits::FRAMING);

/// Room made at once; most heads fit.
const HEAD_BYTES_USUAL: usize = 1024;
