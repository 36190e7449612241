//! GET_BODY_CHUNK: the container asks for one more packet of the request's body.
//!
//! The number is the most bytes that the container wants. A shorter packet is allowed, and an
//! empty one means that the body has ended. Zero wants nothing and cannot be answered, so it is a
//! fault. Bytes after the number are overlooked, as by mod_jk and mod_proxy_ajp.

use bytes::BytesMut;

use crate::code;
use crate::error::DecodeError;
use crate::packet::SERVER_MAGIC;

/// The most body bytes that the container wants, according to `payload`.
///
/// # Errors
/// [`DecodeError`], also if it wants none.
pub fn decode(payload: &[u8]) -> Result<u16, DecodeError> {
    let mut reader = super::open(payload, code::GET_BODY_CHUNK)?;
    match reader.u16()? {
        0 => Err(DecodeError::NothingAsked),
        max => Ok(max),
    }
}

/// Appends a packet that asks for at most `max` bytes.
pub fn encode(max: u16, out: &mut BytesMut) {
    out.extend_from_slice(&SERVER_MAGIC);
    out.extend_from_slice(&[0, 3]);
    out.extend_from_slice(&[code::GET_BODY_CHUNK]);
    out.extend_from_slice(&max.to_be_bytes());
}
