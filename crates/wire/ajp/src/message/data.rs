//! DATA: request body bytes, the only message without a code.
//!
//! A 16-bit count and the bytes; no zero byte ends them. The end of the body is an empty packet,
//! which peers write in two forms: no payload at all, or a count of zero. Tomcat's test client
//! leaves four bytes of slack after the data, so up to four are ignored; more is a fault, because
//! a payload that does not mean what its count says is how requests are smuggled.

use bytes::BytesMut;

use crate::error::BodyFault;
use crate::packet::{CLIENT_MAGIC, PacketSize};
use crate::wire::Reader;

/// The most bytes after the data that are ignored.
pub const SLACK_MAX: usize = 4;

/// The packet that ends a body, in the six-byte form that Undertow reads at once.
pub const EMPTY: [u8; 6] = [0x12, 0x34, 0, 2, 0, 0];

/// The body bytes in `payload`; none in either form of packet that ends the body.
///
/// # Errors
/// [`BodyFault::Shape`] if count and payload disagree.
pub fn decode(payload: &[u8]) -> Result<&[u8], BodyFault> {
    if payload.is_empty() {
        return Ok(payload);
    }
    let mut reader = Reader::new(payload);
    let len = reader.u16().map_err(|_| BodyFault::Shape)?;
    let data = reader
        .bytes(usize::from(len))
        .map_err(|_| BodyFault::Shape)?;
    if reader.rest().len() > SLACK_MAX {
        return Err(BodyFault::Shape);
    }
    Ok(data)
}

/// Whether `payload` is one of the two forms that end a body.
pub fn is_end(payload: &[u8]) -> bool {
    matches!(payload, [] | [0, 0])
}

/// Appends the prefix of a packet with `len` body bytes.
///
/// # Panics
/// If `len` exceeds what the largest packet carries.
pub fn encode_prefix(len: usize, out: &mut BytesMut) {
    assert!(
        len <= PacketSize::MAX.data_max(),
        "{len} bytes do not fit one packet"
    );
    let len = len as u16;
    out.extend_from_slice(&CLIENT_MAGIC);
    out.extend_from_slice(&(len + 2).to_be_bytes());
    out.extend_from_slice(&len.to_be_bytes());
}
