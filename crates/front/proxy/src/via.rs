//! The front's element of the field `Via`.

use bytes::Bytes;
use http::Version;

/// The front's element of `Via` (RFC 9110, section 7.6.3), formatted.
#[derive(Clone, Debug)]
pub(crate) struct Via {
    http10: Bytes,
    http11: Bytes,
    http2: Bytes,
}

impl Via {
    /// The elements of a front with this pseudonym, which must be a token.
    pub(crate) fn new(pseudonym: &str) -> Self {
        let element = |version| Bytes::from(format!("{version} {pseudonym}"));
        Self {
            http10: element("1.0"),
            http11: element("1.1"),
            http2: element("2.0"),
        }
    }

    /// The element for a request of this `version`.
    pub(crate) fn element(&self, version: Version) -> &Bytes {
        match version {
            Version::HTTP_10 => &self.http10,
            Version::HTTP_2 => &self.http2,
            _ => &self.http11,
        }
    }
}
