//! Writes commands as bytes.

use crate::{Dialect, Key};

/// Appends the command that asks for the value of a key. In the meta dialect it also asks the server to
/// repeat the key, which the text dialect always does.
pub fn get(dialect: Dialect, key: Key<'_>, out: &mut Vec<u8>) {
    let (before, behind) = match dialect {
        Dialect::Meta => (&b"mg "[..], &b" k v\r\n"[..]),
        Dialect::Text => (&b"get "[..], &b"\r\n"[..]),
    };
    out.extend_from_slice(before);
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(behind);
}

/// Appends the line that stores `length` bytes under a key, without an expiry time. The value and
/// [`VALUE_END`] have to follow.
pub fn set(dialect: Dialect, key: Key<'_>, length: usize, out: &mut Vec<u8>) {
    let (before, between) = match dialect {
        Dialect::Meta => (&b"ms "[..], &b" "[..]),
        Dialect::Text => (&b"set "[..], &b" 0 0 "[..]),
    };
    out.extend_from_slice(before);
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(between);
    out.extend_from_slice(length.to_string().as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// The bytes that follow a stored value.
pub const VALUE_END: &[u8] = b"\r\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_those_of_the_protocol() {
        let key = Key::new(b"k").unwrap();
        for (dialect, expected) in [
            (Dialect::Meta, &b"mg k k v\r\nms k 5\r\n"[..]),
            (Dialect::Text, &b"get k\r\nset k 0 0 5\r\n"[..]),
        ] {
            let mut out = Vec::new();
            get(dialect, key, &mut out);
            set(dialect, key, 5, &mut out);
            assert_eq!(out, expected);
        }
    }
}
