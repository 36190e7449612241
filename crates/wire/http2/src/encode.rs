//! Heads and trailers as they are sent.

use bytes::BytesMut;
use catamaran_message::name::{CONTENT_LENGTH, HOST, TE, TRAILER};
use catamaran_message::{Fields, NameRef, Request, Traits};
use http::StatusCode;

use crate::conn::Connection;
use crate::error::SendError;
use crate::hpack::{Block, Pseudo};

/// Writes the head of a response. Of its fields those that concern a connection of HTTP/1.1, and Content-Length, are
/// left out.
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
        write_fields(headers, false, block);
        write_length(length, block);
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
        write_fields(request.headers, true, block);
        write_length(length, block);
    });
}

/// Writes fields behind a body, which end it.
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
    conn.write_block(id, true, out, |block| write_fields(trailers, true, block));
    conn.end_outbound(id, out);
    Ok(())
}

/// Writes fields but for those that the codec says in another way.
fn write_fields(fields: &Fields, without_host: bool, block: &mut Block<'_>) {
    for field in fields.iter() {
        let is_left_out = match field.id() {
            Some(TRAILER) => false,
            // All that it may say here.
            Some(TE) => !field.value().eq_ignore_ascii_case(b"trailers"),
            Some(HOST) => without_host,
            Some(_) | None => field.traits().has_any(NOT_SENT),
        };
        if !is_left_out {
            block.field(field.name_ref(), field.value());
        }
    }
}

fn write_length(length: Option<u64>, block: &mut Block<'_>) {
    if let Some(length) = length {
        let mut digits = itoa::Buffer::new();
        block.field(
            NameRef::from(CONTENT_LENGTH),
            digits.format(length).as_bytes(),
        );
    }
}

const NOT_SENT: Traits = Traits::HOP_BY_HOP
    .with(Traits::FRAMING)
    .with(Traits::NOMINATED);
