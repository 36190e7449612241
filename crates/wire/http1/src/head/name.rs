//! Field names.
//!
//! Reading a name means to convert it to lower case, to check it and to look it up, which is nearly
//! half the cost of a field. So names that most heads have are recognised in their usual spelling,
//! and only the others are read.

use http::header::{self, HeaderName};

/// Reads a field name; `None` if it is no token.
pub(crate) fn decode(text: &[u8]) -> Option<HeaderName> {
    usual(text).or_else(|| HeaderName::from_bytes(text).ok())
}

/// Defines [`usual`] from pairs of a spelling and a name, the most frequent first.
macro_rules! usual_names {
    ($($text:literal $name:ident)*) => {
        /// The name, if it is a usual one in its usual spelling.
        fn usual(text: &[u8]) -> Option<HeaderName> {
            match text {
                $($text => Some(header::$name),)*
                _ => None,
            }
        }

        #[cfg(test)]
        const USUAL: &[&[u8]] = &[$($text),*];
    };
}

usual_names! {
    b"Host" HOST
    b"User-Agent" USER_AGENT
    b"Accept" ACCEPT
    b"Accept-Encoding" ACCEPT_ENCODING
    b"Accept-Language" ACCEPT_LANGUAGE
    b"Connection" CONNECTION
    b"Cookie" COOKIE
    b"Referer" REFERER
    b"Content-Type" CONTENT_TYPE
    b"Content-Length" CONTENT_LENGTH
    b"Date" DATE
    b"Cache-Control" CACHE_CONTROL
    b"Set-Cookie" SET_COOKIE
    b"Transfer-Encoding" TRANSFER_ENCODING
    b"Last-Modified" LAST_MODIFIED
    b"ETag" ETAG
    b"Vary" VARY
    b"Location" LOCATION
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_names_are_what_they_read_as() {
        for text in USUAL {
            let read = HeaderName::from_bytes(text).unwrap();
            assert_eq!(usual(text), Some(read.clone()));
            assert_eq!(decode(&text.to_ascii_uppercase()), Some(read));
        }
    }
}
