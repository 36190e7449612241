//! Which fields of a response say something of its body: what it is, how long it is good, and for whom.
//!
//! What a route says of them is meant for what it serves. A page of the front has a body of its own, and a 304 has
//! none.

use catamaran_message::Fields;
use catamaran_message::NameRef;
use http::StatusCode;

/// What a response is to the fields that its route says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldScope {
    /// What the route serves, so that it has all of them.
    Served,
    /// Its body is gone, or was never there.
    NotModified,
    /// A page of the front in its place.
    OwnPage,
}

impl FieldScope {
    /// That of a response with this status.
    pub(crate) fn new(status: StatusCode, is_own: bool) -> Self {
        match (status, is_own) {
            (StatusCode::NOT_MODIFIED, _) => Self::NotModified,
            (_, true) => Self::OwnPage,
            (_, false) => Self::Served,
        }
    }

    /// Whether a response may have the field from its route.
    pub(crate) fn takes<'n>(self, name: impl Into<NameRef<'n>>) -> bool {
        let name = lower(name.into());
        match self {
            Self::Served => true,
            Self::NotModified => !describes_body(&name),
            Self::OwnPage => !describes_body(&name) && !describes_life(&name),
        }
    }
}

/// Leaves of a stored response what a page of the front may have.
pub(crate) fn remove(headers: &mut Fields) {
    headers.retain(|field| FieldScope::OwnPage.takes(field.name_ref()));
}

fn lower(name: NameRef<'_>) -> String {
    String::from_utf8_lossy(name.as_bytes()).to_ascii_lowercase()
}

/// Whether a field describes the bytes of a body, so that a 304 has it not (RFC 9110, section 15.4.5).
fn describes_body(name: &str) -> bool {
    match name.strip_prefix("content-") {
        // These two describe no body: they hold for the page, and name the resource.
        Some(rest) => !rest.starts_with("security-policy") && rest != "location",
        None => matches!(name, "repr-digest" | "digest"),
    }
}

/// Whether a field says how long a response is good, for whom, or which version it is.
fn describes_life(name: &str) -> bool {
    // The cache's own as well, such as `CDN-Cache-Control` (RFC 9213).
    name.ends_with("cache-control")
        || matches!(
            name,
            "expires"
                | "age"
                | "pragma"
                | "surrogate-control"
                | "etag"
                | "last-modified"
                | "accept-ranges"
                | "content-location"
                | "set-cookie"
        )
}
