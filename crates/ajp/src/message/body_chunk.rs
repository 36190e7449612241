//! SEND_BODY_CHUNK: bytes of the response body.
//!
//! A 16-bit count, the bytes, and one zero byte that the count leaves out and the payload length
//! includes. A count of zero asks the web server to flush. Count and payload must agree exactly:
//! mod_proxy_ajp insists on the zero byte too, so no deployed container leaves it out.

use bytes::BytesMut;

use crate::code;
use crate::error::DecodeError;
use crate::packet::{PacketSize, SERVER_MAGIC};

/// A whole packet that asks the web server to pass on what it has.
pub const FLUSH: [u8; 8] = [b'A', b'B', 0, 4, code::SEND_BODY_CHUNK, 0, 0, 0];

/// Bytes of the payload before those of a chunk: code and count.
pub const PREFIX_BYTES: usize = 3;

/// Follows the bytes of a chunk.
pub const TERMINATOR: u8 = 0;

/// The body bytes in `payload`; none means flush.
///
/// # Errors
/// [`DecodeError`] if count and payload disagree.
pub fn decode(payload: &[u8]) -> Result<&[u8], DecodeError> {
    let mut reader = super::open(payload, code::SEND_BODY_CHUNK)?;
    let len = reader.u16()?;
    let data = reader.terminated(len)?;
    reader.finish()?;
    Ok(data)
}

/// Appends what precedes `len` body bytes in a chunk; [`TERMINATOR`] must follow them.
///
/// # Panics
/// If `len` exceeds what the largest packet carries.
pub fn encode_prefix(len: usize, out: &mut BytesMut) {
    assert!(
        len <= PacketSize::MAX.chunk_max(),
        "{len} bytes do not fit one packet"
    );
    let len = len as u16;
    out.extend_from_slice(&SERVER_MAGIC);
    out.extend_from_slice(&(len + 4).to_be_bytes());
    out.extend_from_slice(&[code::SEND_BODY_CHUNK]);
    out.extend_from_slice(&len.to_be_bytes());
}
