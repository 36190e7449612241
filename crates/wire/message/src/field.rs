//! Rules for header fields that hold whichever protocol carries them.

use http::header::COOKIE;
use http::{HeaderMap, HeaderName, HeaderValue};

/// Whether the field concerns one connection only (RFC 9110, section 7.6.1), apart from what
/// Connection itself names.
pub fn is_hop_by_hop(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "connection"
            | "keep-alive"
            | "proxy-connection"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
    )
}

/// The names that a Connection field with this value lists.
pub fn nominated(connection: &HeaderValue) -> impl Iterator<Item = HeaderName> {
    let options = connection.as_bytes().split(|byte| *byte == b',');
    options.filter_map(|option| HeaderName::from_bytes(option.trim_ascii()).ok())
}

/// Removes the fields that a Connection field with this value names.
pub fn remove_nominated(headers: &mut HeaderMap, connection: &HeaderValue) {
    for name in nominated(connection) {
        headers.remove(name);
    }
}

/// A byte of a field value or a reason phrase: visible, space, tab or above ASCII.
pub const fn is_value(byte: u8) -> bool {
    (byte == b'\t') | ((byte >= b' ') & (byte != 0x7f))
}

/// Whether `text` may be a field value or a reason phrase: one line without control characters
/// other than the tab.
pub fn is_value_text(text: &[u8]) -> bool {
    // Eight bytes at a time, without a branch, which compilers turn into vector instructions.
    let is_block = |block: &[u8; 8]| block.iter().fold(true, |is, &byte| is & is_value(byte));
    match (text.first_chunk(), text.last_chunk()) {
        // Bytes may be in two blocks. Most values have no more than two.
        (Some(first), Some(last)) if text.len() <= 16 => is_block(first) & is_block(last),
        (_, Some(last)) => text.as_chunks().0.iter().all(is_block) && is_block(last),
        _ => text.iter().all(|&byte| is_value(byte)),
    }
}

/// `text` without the spaces and tabs around it (OWS).
pub fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = text {
        text = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// The number in a Content-Length: digits only, at most 19 of them, below 2^63.
pub fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 19 {
        return None;
    }
    let mut value = 0_u64;
    for &byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
    }
    (value <= LENGTH_MAX).then_some(value)
}

/// Makes one `Cookie` field of several, as servlet containers expect (RFC 6265, section 5.4). `true` if there were
/// several.
pub fn join_cookies(headers: &mut HeaderMap) -> bool {
    if headers.len() == headers.keys_len() || headers.get_all(COOKIE).iter().nth(1).is_none() {
        return false;
    }
    let lines = headers.get_all(COOKIE).iter();
    let crumbs: Vec<&[u8]> = lines.map(HeaderValue::as_bytes).collect();
    // Valid values joined by valid bytes.
    if let Ok(joined) = HeaderValue::from_bytes(&crumbs.join(&b"; "[..])) {
        headers.insert(COOKIE, joined);
    }
    true
}

/// The longest body of a known length: what every peer can count.
pub const LENGTH_MAX: u64 = i64::MAX as u64;

/// Empties a map. Its memory is kept for the next head, unless that is much.
pub fn clear(headers: &mut HeaderMap) {
    match headers.capacity() {
        0..=KEPT_CAPACITY_MAX => headers.clear(),
        _ => *headers = HeaderMap::new(),
    }
}

/// Most heads have fewer fields.
const KEPT_CAPACITY_MAX: usize = 48;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_little_memory_is_kept() {
        for (room, is_kept) in [(10, true), (1000, false)] {
            let mut headers = HeaderMap::with_capacity(room);
            headers.insert(http::header::AGE, 1.into());
            clear(&mut headers);
            assert!(headers.is_empty(), "{room}");
            assert_eq!(headers.capacity() > 0, is_kept, "{room}");
        }
    }

    #[test]
    fn lengths_are_digits_below_two_to_the_63rd() {
        for (text, length) in [
            ("0", Some(0)),
            ("5", Some(5)),
            ("007", Some(7)),
            ("0000000000000000007", Some(7)),
            ("00000000000000000007", None),
            ("9223372036854775807", Some(i64::MAX as u64)),
            ("9223372036854775808", None),
            ("18446744073709551616", None),
            ("99999999999999999999999999", None),
            ("", None),
            ("+5", None),
            ("-1", None),
            ("5x", None),
            (" 5", None),
            ("5 ", None),
            ("5, 5", None),
            ("0x5", None),
        ] {
            assert_eq!(decimal(text.as_bytes()), length, "{text:?}");
        }
    }

    #[test]
    fn a_control_is_found_wherever_it_is() {
        for len in 0..40 {
            let mut text = vec![b'\t'; len];
            assert!(is_value_text(&text), "{len}");
            for at in 0..len {
                for byte in [0, 0x1f, 0x7f, b'\n'] {
                    text[at] = byte;
                    assert!(!is_value_text(&text), "{byte} at {at} of {len}");
                }
                text[at] = 0xff;
            }
            assert!(is_value_text(&text), "{len}");
        }
    }

    #[test]
    fn what_connection_names_is_removed() {
        let mut headers = HeaderMap::new();
        for name in ["x-a", "x-b", "x-c"] {
            headers.insert(name, HeaderValue::from_static("1"));
        }
        let connection = HeaderValue::from_static("close, X-A ,, x b,x-c");
        remove_nominated(&mut headers, &connection);
        assert_eq!(headers.keys().collect::<Vec<_>>(), ["x-b"]);
    }
}
