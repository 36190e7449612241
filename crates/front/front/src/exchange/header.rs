//! Which of a request's fields are forwarded to the backend.
//!
//! The codecs clean the responses that they read. The front's own fields are added after this
//! cleaning (see [`crate::exchange::forwarded`]), so a client cannot remove them by naming them in
//! `Connection`.

use catamaran_message::field;
use http::HeaderMap;
use http::header::{
    AUTHORIZATION, CONNECTION, COOKIE, Entry, HOST, HeaderName, HeaderValue, MAX_FORWARDS,
};

/// Whether all fields are some that most requests have, and that no rule removes. Others are judged one
/// by one.
pub(crate) fn are_usual(headers: &HeaderMap) -> bool {
    headers.keys().all(is_usual)
}

/// Defines [`is_usual`] from names.
macro_rules! usual_names {
    ($($name:literal)*) => {
        /// Whether it is a name that most requests have, and that no rule removes.
        pub(crate) fn is_usual(name: &HeaderName) -> bool {
            matches!(name.as_str(), $($name)|*)
        }

        #[cfg(test)]
        const USUAL: &[&str] = &[$($name),*];
    };
}

usual_names! {
    "host"
    "accept"
    "user-agent"
    "accept-encoding"
    "accept-language"
    "cookie"
    "referer"
    "content-type"
    "cache-control"
    "authorization"
    "origin"
    "pragma"
    "range"
    "if-none-match"
    "if-modified-since"
}

/// Fields of a request that no backend gets as fields. They are kept for a cache alone, which tells requests apart
/// by what clients sent.
#[derive(Debug, Default)]
pub(crate) struct Withheld {
    is_kept: bool,
    fields: Option<Box<HeaderMap>>,
}

impl Withheld {
    /// None yet. They are kept, or only removed.
    pub(crate) fn new(is_kept: bool) -> Self {
        Self {
            is_kept,
            fields: None,
        }
    }

    /// Takes all lines of a field out of a request.
    pub(crate) fn take(&mut self, headers: &mut HeaderMap, name: &HeaderName) {
        if let Ok(Entry::Occupied(field)) = headers.try_entry(name) {
            let (name, values) = field.remove_entry_mult();
            for value in values.filter(|_| self.is_kept) {
                let fields = self.fields.get_or_insert_default();
                // It holds no more than the request did.
                fields.try_append(&name, value).ok();
            }
        }
    }

    /// Those that were kept.
    pub(crate) fn into_fields(self) -> Option<Box<HeaderMap>> {
        self.fields
    }
}

/// Removes fields that concern the client's connection only, and those that a backend could misread.
/// Returns how many fields were dropped because of an underscore in their name; those of
/// `underscored_names`, in lower case, stay.
pub(crate) fn clean_request(
    headers: &mut HeaderMap,
    underscored_names: &[String],
    withheld: &mut Withheld,
) -> usize {
    if headers.keys().any(|name| *name == CONNECTION) {
        remove_nominated(headers, withheld);
    }
    let has_underscore = |name: &HeaderName| {
        has_underscore(name) && !underscored_names.iter().any(|it| it == name.as_str())
    };
    let is_doomed = |name: &&HeaderName| stays_here(name) || has_underscore(name);
    let mut underscored = 0;
    if headers.keys().any(|name| is_doomed(&name)) {
        let doomed: Vec<HeaderName> = headers.keys().filter(is_doomed).cloned().collect();
        for name in doomed {
            if has_underscore(&name) {
                underscored += headers.get_all(&name).iter().count();
            }
            match stays_here(&name) {
                true => drop(headers.remove(name)),
                false => withheld.take(headers, &name),
            }
        }
    }
    underscored
}

/// Removes the fields that `Connection` names (RFC 9110, section 7.6.1), except those that a
/// client must not be able to hide from the backend.
fn remove_nominated(headers: &mut HeaderMap, withheld: &mut Withheld) {
    let nominated: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(field::nominated)
        .filter(|name| ![HOST, COOKIE, AUTHORIZATION].contains(name))
        .collect();
    for name in nominated {
        withheld.take(headers, &name);
    }
}

/// Fields of one connection, and two that are harmful or useless behind a front: `Proxy` becomes
/// `HTTP_PROXY` in a CGI environment (httpoxy), and the front itself answers `Expect`.
fn stays_here(name: &HeaderName) -> bool {
    field::is_hop_by_hop(name)
        || matches!(
            name.as_str(),
            "expect" | "proxy-authorization" | "http2-settings" | "proxy"
        )
}

/// Containers and CGI treat `_` and `-` alike, so `X_Real_IP` could be read as `X-Real-IP`.
fn has_underscore(name: &HeaderName) -> bool {
    name.as_str().contains('_')
}

/// Counts `Max-Forwards` down (RFC 9110, section 7.6.2); `false` if the request may go no further.
/// A value that is no number is left as it is.
pub(crate) fn count_forwards(headers: &mut HeaderMap) -> bool {
    let Some(value) = headers.get(MAX_FORWARDS).map(HeaderValue::as_bytes) else {
        return true;
    };
    let is_number = value.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(value).ok().filter(|_| is_number);
    let Some(forwards) = number.and_then(|digits| digits.parse::<u64>().ok()) else {
        return true;
    };
    if let Some(left) = forwards.checked_sub(1) {
        headers.insert(MAX_FORWARDS, left.into());
    }
    forwards > 0
}

#[cfg(test)]
mod tests;
