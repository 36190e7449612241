//! Rules for header fields that hold in every protocol.

/// Whether a byte may be in a field value or a reason phrase: visible, space, tab or above
/// ASCII.
pub const fn is_value(byte: u8) -> bool {
    (byte == b'\t') | ((byte >= b' ') & (byte != 0x7f))
}

/// Whether `text` may be a field value or a reason phrase: one line without control characters
/// other than the tab.
pub fn is_value_text(text: &[u8]) -> bool {
    // Bytes may be in two blocks.
    if let Some(last) = text.last_chunk::<16>() {
        return text.as_chunks().0.iter().all(is_block::<16>) && is_block(last);
    }
    match (text.first_chunk(), text.last_chunk()) {
        (Some(first), Some(last)) => is_block::<8>(first) & is_block::<8>(last),
        _ => text.iter().all(|&byte| is_value(byte)),
    }
}

/// Whether all bytes may be in a value. There is no branch for each byte, so compilers make vector instructions of it.
fn is_block<const N: usize>(block: &[u8; N]) -> bool {
    block.iter().fold(true, |is, &byte| is & is_value(byte))
}

/// Whether a byte may be in a token: a method, field name, coding or chunk extension.
#[inline]
pub const fn is_token(byte: u8) -> bool {
    TOKEN[byte as usize]
}

/// Whether `text` is a token.
pub fn is_token_text(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|&byte| is_token(byte))
}

/// `text` without the spaces and tabs around it (OWS).
pub fn trim(text: &[u8]) -> &[u8] {
    let mut text = trim_start(text);
    while let [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// `text` without the spaces and tabs in front of it.
pub fn trim_start(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = text {
        text = rest;
    }
    text
}

/// Parses a Content-Length: digits only, at most 19 of them, below 2^63; else `None`.
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

/// The longest body of a known length, in bytes: the most that every peer can count.
pub const LENGTH_MAX: u64 = i64::MAX as u64;

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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_token_is_what_the_http_crate_takes_for_a_name() {
        for byte in 0..=u8::MAX {
            let is_name = http::HeaderName::from_bytes(&[b'a', byte]).is_ok();
            assert_eq!(is_token_text(&[b'a', byte]), is_name, "{byte}");
        }
        assert!(!is_token_text(b""));
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
}
