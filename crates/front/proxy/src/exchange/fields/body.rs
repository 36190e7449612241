//! Tells which fields of a response describe its body: what it is, how long it is fresh, and for whom.
//!
//! A route's rules for these fields are meant for the content that the route serves. They do not apply to a page
//! of the front, which has another body, or to a 304, which has none.

use catamaran_message::{Fields, NameRef};
use http::StatusCode;

/// The kind of a response, by which the route's rules for fields apply to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldScope {
    /// The response is the route's content: it may get all fields.
    Served,
    /// The response is a 304, which has no body.
    NotModified,
    /// The response is a text of the route, whose type the front keeps: it says whether browsers run it.
    OwnText,
    /// The response is a page of the front instead of the route's content.
    OwnPage,
}

impl FieldScope {
    /// The scope of a response with this status, which would else have the scope `of_source`.
    pub(crate) fn new(status: StatusCode, of_source: Self) -> Self {
        match status {
            StatusCode::NOT_MODIFIED => Self::NotModified,
            _ => of_source,
        }
    }

    /// Whether the route may set this field on the response.
    pub(crate) fn takes<'n>(self, name: impl Into<NameRef<'n>>) -> bool {
        match self {
            Self::Served => true,
            Self::NotModified | Self::OwnText => !describes_body(name.into().as_bytes()),
            Self::OwnPage => {
                let name = name.into().as_bytes();
                !describes_body(name) && !describes_life(name)
            }
        }
    }
}

/// Removes the fields of a stored response that a page of the front must not have.
pub(crate) fn remove(headers: &mut Fields) {
    headers.retain(|field| FieldScope::OwnPage.takes(field.name_ref()));
}

/// Whether a field describes the bytes of a body, so that a 304 must not have it (RFC 9110, section 15.4.5).
fn describes_body(name: &[u8]) -> bool {
    match name.split_at_checked(CONTENT.len()) {
        // These two describe no body: they hold for the page, and name the resource.
        Some((start, rest)) if start.eq_ignore_ascii_case(CONTENT) => {
            let policy = rest.get(..SECURITY_POLICY.len());
            !policy.is_some_and(|it| it.eq_ignore_ascii_case(SECURITY_POLICY))
                && !rest.eq_ignore_ascii_case(b"location")
        }
        _ => is_one_of(name, &[b"repr-digest", b"digest"]),
    }
}

/// Whether a field tells how long a response is fresh, for whom it is, or which version it is.
fn describes_life(name: &[u8]) -> bool {
    // The cache's own as well, such as `CDN-Cache-Control` (RFC 9213).
    let end = &name[name.len().saturating_sub(CACHE_CONTROL.len())..];
    end.eq_ignore_ascii_case(CACHE_CONTROL)
        || is_one_of(
            name,
            &[
                b"expires",
                b"age",
                b"pragma",
                b"surrogate-control",
                b"etag",
                b"last-modified",
                b"accept-ranges",
                b"content-location",
                b"set-cookie",
            ],
        )
}

fn is_one_of(name: &[u8], names: &[&[u8]]) -> bool {
    names.iter().any(|it| it.eq_ignore_ascii_case(name))
}

const CONTENT: &[u8] = b"content-";
const SECURITY_POLICY: &[u8] = b"security-policy";
const CACHE_CONTROL: &[u8] = b"cache-control";
