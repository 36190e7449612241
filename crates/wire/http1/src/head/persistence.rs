//! Whether the connection may be used after a message, according to its head.

use catamaran_message::Fields;
use catamaran_message::name::CONNECTION;
use http::Version;

/// Whether another exchange may follow, by version and Connection fields (RFC 9112 section 9.3).
pub(crate) fn allows_next(headers: &Fields, version: Version) -> bool {
    let has = |option: &[u8]| {
        let mut options = headers.elements(CONNECTION);
        options.any(|known| known.eq_ignore_ascii_case(option))
    };
    !has(b"close") && (version == Version::HTTP_11 || has(b"keep-alive"))
}
