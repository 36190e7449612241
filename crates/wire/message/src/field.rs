//! Rules for header fields that hold in every protocol.

/// Whether a byte may be in a field value or a reason phrase: visible, space, tab or above
/// ASCII.
pub const fn is_value(byte: u8) -> bool {
    (byte == b'\t') | ((byte >= b' ') & (byte != 0x7f))
}

/// Whether `text` may be a field value or a reason phrase: one line without control characters
/// other than the tab.
pub fn is_value_text(text: &[u8]) -> bool {
    are_all(text, is_value)
}

/// Whether `is_such` holds for each byte of `text`.
#[inline]
pub fn are_all(text: &[u8], is_such: impl Fn(u8) -> bool) -> bool {
    // The last block may overlap the one before it: to check a byte twice does no harm.
    if let Some(last) = text.last_chunk::<16>() {
        let mut blocks = text.as_chunks::<16>().0.iter();
        return blocks.all(|block| is_block(block, &is_such)) && is_block(last, &is_such);
    }
    match (text.first_chunk::<8>(), text.last_chunk::<8>()) {
        (Some(first), Some(last)) => is_block(first, &is_such) & is_block(last, &is_such),
        _ => text.iter().all(|&byte| is_such(byte)),
    }
}

/// [`are_all`] without a branch for each byte, so that compilers make vector instructions of it.
#[inline(always)]
fn is_block<const N: usize>(block: &[u8; N], is_such: &impl Fn(u8) -> bool) -> bool {
    block.iter().fold(true, |all, &byte| all & is_such(byte))
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
pub fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// The elements of a comma-separated list, trimmed; empty ones are included.
pub fn list(value: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(trim)
}

/// Whether `text` begins with `prefix`, in any case of letters.
pub fn begins(text: &[u8], prefix: &[u8]) -> bool {
    let start = text.get(..prefix.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// `text` without the quotes around it, if it has such.
pub fn unquoted(text: &[u8]) -> &[u8] {
    match text {
        [b'"', inner @ .., b'"'] => inner,
        _ => text,
    }
}

/// Parses a Content-Length: digits only, at most 19 of them, below 2^63; else `None`.
pub fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > LENGTH_DIGITS_MAX {
        return None;
    }
    let mut value = 0;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    (value <= LENGTH_MAX).then_some(value)
}

/// The most digits of a Content-Length. A `u64` holds all numbers of so many.
const LENGTH_DIGITS_MAX: usize = 19;

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
