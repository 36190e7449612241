//! The byte classes of RFC 9110 section 5.6 that more than one part of the codec needs.

pub(crate) use catamaran_message::field::{
    is_token, is_token_text, is_value, is_value_text, list, trim,
};

/// The value of a hexadecimal digit; `None` for any other byte.
pub(crate) const fn hex_value(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}
