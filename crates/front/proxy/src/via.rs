//! The element that the front adds to the field `Via`.

use bytes::Bytes;
use http::Version;

/// The front's elements of `Via` (RFC 9110, section 7.6.3), formatted for each version of HTTP.
#[derive(Clone, Debug)]
pub(crate) struct Via {
    http10: Bytes,
    http11: Bytes,
    http2: Bytes,
}

impl Via {
    /// Formats the elements of a front with this pseudonym, which must be a token.
    pub(crate) fn new(pseudonym: &str) -> Self {
        let element = |version| Bytes::from(format!("{version} {pseudonym}"));
        Self {
            http10: element("1.0"),
            http11: element("1.1"),
            http2: element("2.0"),
        }
    }

    /// The element for a message received in this `version`.
    pub(crate) fn element(&self, version: Version) -> &Bytes {
        match version {
            Version::HTTP_10 => &self.http10,
            Version::HTTP_2 => &self.http2,
            _ => &self.http11,
        }
    }
}
