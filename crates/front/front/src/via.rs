//! The front's element of the field `Via`.

use http::Version;
use http::header::HeaderValue;

/// The front's element of `Via` (RFC 9110, section 7.6.3), formatted.
#[derive(Clone, Debug)]
pub(crate) struct Via {
    http10: HeaderValue,
    http11: HeaderValue,
    http2: HeaderValue,
}

impl Via {
    /// `None` if the pseudonym cannot stand in a field.
    pub(crate) fn new(pseudonym: &str) -> Option<Self> {
        let element = |version| HeaderValue::try_from(format!("{version} {pseudonym}")).ok();
        Some(Self {
            http10: element("1.0")?,
            http11: element("1.1")?,
            http2: element("2.0")?,
        })
    }

    /// The element for a request of this `version`.
    pub(crate) fn element(&self, version: Version) -> &HeaderValue {
        match version {
            Version::HTTP_10 => &self.http10,
            Version::HTTP_2 => &self.http2,
            _ => &self.http11,
        }
    }
}
