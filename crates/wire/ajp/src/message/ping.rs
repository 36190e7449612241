//! CPING and CPONG, by which a web server asks whether the container answers.
//!
//! They are legal between exchanges only. A pong proves that the container reads its socket, nothing
//! about a request in flight. Both are constant packets. Bytes after the code are overlooked:
//! Tomcat's own test client sends some with a CPING, and mod_jk and mod_proxy_ajp take them with a
//! CPONG.

use crate::code;
use crate::error::DecodeError;

/// A whole CPING packet, from the web server.
pub const CPING: [u8; 5] = [0x12, 0x34, 0, 1, code::CPING];

/// A whole CPONG packet, from the container.
pub const CPONG: [u8; 5] = [b'A', b'B', 0, 1, code::CPONG];

/// Checks that `payload` is a CPONG.
///
/// # Errors
/// [`DecodeError`] otherwise.
pub fn decode_pong(payload: &[u8]) -> Result<(), DecodeError> {
    super::open(payload, code::CPONG).map(drop)
}
