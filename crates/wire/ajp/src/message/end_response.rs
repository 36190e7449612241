//! END_RESPONSE: the response is complete.
//!
//! One byte says whether the connection may carry another exchange. Only 1 means yes: Tomcat sends
//! 0 after errors and leaves the socket open, so the web server has to close it. Bytes after that one
//! are overlooked, as by mod_jk and mod_proxy_ajp: the packet's length says where they end.

use crate::code;
use crate::error::DecodeError;

/// A whole packet: the response is complete, and the connection may be used again.
pub const REUSE: [u8; 6] = [b'A', b'B', 0, 2, code::END_RESPONSE, 1];

/// A whole packet: the response is complete, and the connection closes.
pub const CLOSE: [u8; 6] = [b'A', b'B', 0, 2, code::END_RESPONSE, 0];

/// Whether the connection may be used again, according to `payload`.
///
/// # Errors
/// [`DecodeError`] if it is no END_RESPONSE.
pub fn decode(payload: &[u8]) -> Result<bool, DecodeError> {
    let mut reader = super::open(payload, code::END_RESPONSE)?;
    Ok(reader.u8()? == 1)
}
