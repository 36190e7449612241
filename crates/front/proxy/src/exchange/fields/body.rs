//! Tells which fields of a response describe its body: what it is, how long it is fresh, and for whom.
//!
//! A route's rules for these fields are meant for the content that the route serves. They do not apply to a page
//! of the front, which has another body, or to a 304, which has none.

use catamaran_message::field::begins;
use catamaran_message::name::{AGE, CACHE_CONTROL, CONTENT_LOCATION, EXPIRES, SURROGATE_CONTROL};
use catamaran_message::{Fields, NameRef, Traits};
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
            Self::NotModified | Self::OwnText => !describes_body(name.into()),
            Self::OwnPage => {
                let name = name.into();
                !describes_body(name) && !describes_life(name)
            }
        }
    }
}

/// Removes the fields of a stored response that a page of the front must not have.
pub(crate) fn remove(headers: &mut Fields) {
    headers.retain(|field| FieldScope::OwnPage.takes(field.name_ref()));
}

/// Replaces what a response says to caches by this `Cache-Control`, which keeps it from shared ones.
pub(crate) fn forbid_sharing(headers: &mut Fields, control: &'static str) {
    headers.retain(|field| {
        let is_of_life = [AGE, EXPIRES, SURROGATE_CONTROL]
            .into_iter()
            .any(|it| field.is(it));
        !is_of_life && !instructs_caches(field.name_ref())
    });
    headers.insert(CACHE_CONTROL, control);
}

/// Whether a field describes the bytes of a body, so that a 304 must not have it (RFC 9110, section 15.4.5).
fn describes_body(name: NameRef<'_>) -> bool {
    let text = name.as_bytes();
    // `Content-Security-Policy` is about the page, and `Content-Location` names the resource: neither describes the
    // body.
    let is_other = name.is(CONTENT_LOCATION) || begins(text, b"content-security-policy");
    !is_other && (begins(text, b"content-") || name.traits().has_any(Traits::EXACT_BODY))
}

/// Whether a field tells how long a response is fresh, for whom it is, or which version it is.
fn describes_life(name: NameRef<'_>) -> bool {
    if name.traits().has_any(Traits::OF_CONTENT) {
        return true;
    }
    instructs_caches(name)
}

/// Whether a field is `Cache-Control`, or one for some caches only, such as `CDN-Cache-Control` (RFC 9213).
fn instructs_caches(name: NameRef<'_>) -> bool {
    let text = name.as_bytes();
    let end = &text[text.len().saturating_sub(b"cache-control".len())..];
    end.eq_ignore_ascii_case(b"cache-control")
}
