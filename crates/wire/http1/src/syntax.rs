//! The byte classes of RFC 9110 section 5.6 that more than one part of the codec needs.

pub(crate) use catamaran_message::field::{is_value, is_value_text, trim};

/// A byte of a token: method, field name, coding, chunk extension.
pub(crate) const fn is_token(byte: u8) -> bool {
    TOKEN[byte as usize]
}

/// Whether `text` is a token.
pub(crate) fn is_token_text(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|&byte| is_token(byte))
}

/// The elements of a comma-separated list, trimmed, empty ones too.
pub(crate) fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(trim)
}

/// The value of a hexadecimal digit.
pub(crate) const fn hex_value(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

static TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = matches!(
            byte as u8,
            b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_'
                | b'`' | b'|' | b'~' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z'
        );
        byte += 1;
    }
    table
};
