//! Values that many fields have.
//!
//! To read a value is to look at each of its bytes and to make it a slice of the head. Most heads have some
//! of a few values, such as `Accept: */*`; they are known beforehand, as in the static table of QPACK
//! (RFC 9204, appendix A), and take a comparison.

use http::HeaderValue;

/// The value of a field with this text, if it is one of those that many fields have. It is no slice of the
/// head that the text is part of.
#[inline]
pub fn usual_value(text: &[u8]) -> Option<HeaderValue> {
    let (from, to) = (FIRST.get(text.len())?, FIRST.get(text.len() + 1)?);
    let mut as_long = USUAL.get(*from..*to)?.iter();
    as_long.find(|value| value.as_bytes() == text).cloned()
}

/// Defines [`USUAL`] from texts, the shortest first.
macro_rules! usual_values {
    ($($text:literal)*) => {
        const TEXTS: &[&str] = &[$($text),*];
        static USUAL: [HeaderValue; TEXTS.len()] = [$(HeaderValue::from_static($text)),*];
    };
}

usual_values! {
    "0"
    "1"
    "?0"
    "?1"
    "*/*"
    "gzip"
    "bytes"
    "close"
    "empty"
    "navigate"
    "no-cache"
    "no-store"
    "text/css"
    "document"
    "image/png"
    "max-age=0"
    "text/html"
    "image/jpeg"
    "keep-alive"
    "text/plain"
    "same-origin"
    "gzip, deflate"
    "Accept-Encoding"
    "accept-encoding"
    "text/javascript"
    "application/json"
    "gzip, deflate, br"
    "text/html;charset=UTF-8"
    "text/html;charset=utf-8"
    "gzip, deflate, br, zstd"
    "text/html; charset=utf-8"
    "text/plain;charset=UTF-8"
    "application/octet-stream"
    "text/plain; charset=utf-8"
}

/// At each length the index of the first text that is as long or longer.
static FIRST: [usize; LENGTHS] = {
    let mut first = [0; LENGTHS];
    let mut length = 0;
    while length < LENGTHS {
        let mut index = 0;
        while index < TEXTS.len() && TEXTS[index].len() < length {
            index += 1;
        }
        first[length] = index;
        length += 1;
    }
    first
};

/// Lengths up to one more than that of the longest text.
const LENGTHS: usize = TEXTS[TEXTS.len() - 1].len() + 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_is_found_and_is_a_value() {
        assert!(TEXTS.is_sorted_by_key(|text| text.len()));
        for text in TEXTS {
            let found = usual_value(text.as_bytes());
            assert_eq!(found, HeaderValue::from_str(text).ok(), "{text}");
        }
    }

    #[test]
    fn no_other_is() {
        for text in ["", "2", "*/", "*/* ", "GZIP", "text/html; charset=utf-9"] {
            assert_eq!(usual_value(text.as_bytes()), None, "{text}");
        }
        assert_eq!(usual_value(&[b'x'; 1000]), None);
    }
}
