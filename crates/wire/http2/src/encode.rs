//! Encodes heads and trailers.

use bytes::BytesMut;
use catamaran_message::name::{CONTENT_LENGTH, HOST, TE, TRAILER};
use catamaran_message::{Fields, NameRef, Request, Traits};
use http::StatusCode;

use crate::conn::Connection;
use crate::error::SendError;
use crate::hpack::{Block, Pseudo};

/// Writes the head of a response, except fields that concern a connection of HTTP/1.1. `length` is announced as
/// Content-Length; that of the fields is not written.
pub(crate) fn response(
    conn: &mut Connection,
    id: u32,
    status: StatusCode,
    headers: &Fields,
    length: Option<u64>,
    ends: bool,
    out: &mut BytesMut,
) {
    conn.write_block(id, ends, out, |block| {
        block.field(Pseudo::Status, status.as_str().as_bytes());
        write_fields(headers, false, length, block);
    });
}

/// Writes the head of a request.
pub(crate) fn request(
    conn: &mut Connection,
    id: u32,
    request: &Request<'_>,
    scheme: &[u8],
    length: Option<u64>,
    ends: bool,
    out: &mut BytesMut,
) {
    conn.write_block(id, ends, out, |block| {
        block.field(Pseudo::Method, request.method.as_str().as_bytes());
        block.field(Pseudo::Scheme, scheme);
        block.field(Pseudo::Authority, request.host);
        match request.query {
            None => block.field(Pseudo::Path, request.path),
            Some(query) => block.field(Pseudo::Path, &[request.path, query].join(&b'?')),
        }
        write_fields(request.headers, true, length, block);
    });
}

/// Writes trailers, which end the message.
pub(crate) fn trailers(
    conn: &mut Connection,
    id: u32,
    trailers: &Fields,
    out: &mut BytesMut,
) -> Result<(), SendError> {
    let stream = conn.streams.sending(id).ok_or(SendError::OutOfTurn)?;
    if stream.unsent.is_some_and(|unsent| unsent > 0) {
        return Err(SendError::Length);
    }
    conn.write_block(id, true, out, |block| {
        write_fields(trailers, true, None, block);
    });
    conn.end_outbound(id, out);
    Ok(())
}

/// Writes fields, except those that the codec writes itself, and then `length` as Content-Length.
fn write_fields(fields: &Fields, without_host: bool, length: Option<u64>, block: &mut Block<'_>) {
    for field in fields.iter() {
        let is_left_out = match field.id() {
            Some(TRAILER) => false,
            // The only value that TE may have in HTTP/2.
            Some(TE) => !field.value().eq_ignore_ascii_case(b"trailers"),
            Some(HOST) => without_host,
            Some(_) | None => field.traits().has_any(Traits::OF_CONNECTION),
        };
        if !is_left_out {
            block.field(field.name_ref(), field.value());
        }
    }
    if let Some(length) = length {
        let mut digits = itoa::Buffer::new();
        block.field(
            NameRef::from(CONTENT_LENGTH),
            digits.format(length).as_bytes(),
        );
    }
}
