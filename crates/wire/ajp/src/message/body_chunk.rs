//! SEND_BODY_CHUNK: bytes of the response body.
//!
//! A 16-bit count, the bytes, and one zero byte that the count leaves out and the payload length
//! includes. A count of zero asks the web server to flush. Only the count is checked: Grizzly, which
//! Payara and GlassFish are made of, never writes the last byte, so it has whatever value stood in
//! the buffer, often a byte of an earlier upload. mod_jk and mod_proxy_ajp do not look at it, and
//! mod_jk takes a chunk without it. More bytes than that one are a fault, as for mod_proxy_ajp: the
//! count is then wrong, and bytes of the body may be among them.

use bytes::BytesMut;

use crate::code;
use crate::error::DecodeError;
use crate::packet::{PacketSize, SERVER_MAGIC};

/// A whole packet that asks the web server to pass on the bytes it has.
pub const FLUSH: [u8; 8] = [b'A', b'B', 0, 4, code::SEND_BODY_CHUNK, 0, 0, 0];

/// The bytes of the payload before the body bytes: code and count.
pub const PREFIX_BYTES: usize = 3;

/// The byte that follows the body bytes of a chunk.
pub const TERMINATOR: u8 = 0;

/// The body bytes in `payload`; if it has none, it asks for a flush. The byte after them may have
/// any value, or be missing.
///
/// # Errors
/// [`DecodeError::Overrun`] if the count passes the payload's end, [`DecodeError::Trailing`] if more
/// than one byte follows what it counts.
pub fn decode(payload: &[u8]) -> Result<&[u8], DecodeError> {
    let mut reader = super::open(payload, code::SEND_BODY_CHUNK)?;
    let len = reader.u16()?;
    let data = reader.bytes(usize::from(len))?;
    match reader.rest() {
        [] | [_] => Ok(data),
        _ => Err(DecodeError::Trailing),
    }
}

/// Appends the prefix of a chunk with `len` body bytes; [`TERMINATOR`] must follow these.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_byte_after_a_chunk_may_have_any_value_or_be_missing() {
        for data in [&b""[..], b"x", b"hello", &[0xFF; 8184]] {
            let mut packet = BytesMut::new();
            encode_prefix(data.len(), &mut packet);
            let payload = [&packet[4..], data].concat();
            assert_eq!(decode(&payload), Ok(data), "none");
            for last in 0..=u8::MAX {
                let payload = [&payload[..], &[last]].concat();
                assert_eq!(decode(&payload), Ok(data), "{last:02x}");
                let payload = [&payload[..], &[last]].concat();
                assert_eq!(decode(&payload), Err(DecodeError::Trailing), "{last:02x}");
            }
        }
    }

    #[test]
    fn the_count_must_be_covered_by_the_payload() {
        for payload in [
            &b"\x03"[..],
            b"\x03\0",
            b"\x03\0\x01",
            b"\x03\0\x06hello",
            b"\x03\xFF\xFFhello\0",
        ] {
            assert_eq!(decode(payload), Err(DecodeError::Overrun), "{payload:x?}");
        }
        assert_eq!(decode(b"\x05\0\0\0"), Err(DecodeError::Code(5)));
    }
}
