//! A stored response.
//!
//! Its fields are kept as lines, as HTTP/1.1 has them: a map takes five times as much memory, and most
//! clients are sent lines. Its body is in blocks, which are shared with all who read it.

use bytes::{BufMut, Bytes, BytesMut};
use http::StatusCode;
use http::header::{AGE, HeaderMap, HeaderName, HeaderValue, SET_COOKIE};

use crate::storable::{SetCookie, Terms};
use crate::vary::Selection;
use crate::verdict::Stored;
use crate::{Millis, tags};

/// A stored response, without its body.
#[derive(Clone, Debug)]
pub struct ObjectHead {
    /// The status.
    pub status: StatusCode,
    /// The reason phrase, if it is an unusual one.
    pub reason: Option<Bytes>,
    /// The fields; see [`FieldLines`].
    pub fields: FieldLines,
    /// On which terms it is used.
    pub terms: Terms,
    /// When it was made, as far as its age says.
    pub made: Millis,
    /// When it was stored, or found to be valid.
    pub validated: Millis,
    /// Which requests it answers.
    pub selection: Selection,
    /// Its tags, as [`tags::read`] has them.
    pub tags: Box<[u8]>,
    /// How many purges there were when it began.
    pub began: u64,
}

impl ObjectHead {
    /// What its use depends on.
    #[must_use]
    pub fn stored(&self, is_purged: bool) -> Stored<'_> {
        Stored {
            terms: &self.terms,
            made: self.made,
            validated: self.validated,
            is_purged,
        }
    }

    /// The bytes of memory that it takes, with itself.
    #[must_use]
    pub fn weight(&self) -> usize {
        let reason = self.reason.as_ref().map_or(0, Bytes::len);
        size_of::<Self>()
            + reason
            + self.fields.lines.len()
            + self.selection.weight()
            + self.tags.len()
    }
}

/// Fields as lines: each a name, a colon and a space, a value, and CR LF.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldLines {
    lines: Bytes,
}

impl FieldLines {
    /// The fields of a map.
    #[must_use]
    pub fn new(headers: &HeaderMap) -> Self {
        let length: usize = headers
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len() + 4)
            .sum();
        let mut lines = BytesMut::with_capacity(length);
        for (name, value) in headers {
            lines.put_slice(name.as_str().as_bytes());
            lines.put_slice(b": ");
            lines.put_slice(value.as_bytes());
            lines.put_slice(b"\r\n");
        }
        Self {
            lines: lines.freeze(),
        }
    }

    /// The lines.
    #[must_use]
    pub fn as_bytes(&self) -> &Bytes {
        &self.lines
    }

    /// The fields as a map. Values share the memory of the lines.
    #[must_use]
    pub fn to_map(&self) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(16);
        for (name, value) in self.iter() {
            let name = HeaderName::from_bytes(name);
            let value = HeaderValue::from_maybe_shared(self.lines.slice_ref(value));
            if let (Ok(name), Ok(value)) = (name, value) {
                // A map that is full is one that no codec would have made.
                drop(headers.try_append(name, value));
            }
        }
        headers
    }

    /// The first value of a field, whose name is in lower case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let mut fields = self.iter();
        fields.find_map(|(it, value)| (it == name.as_bytes()).then_some(value))
    }

    /// Names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut rest = &self.lines[..];
        std::iter::from_fn(move || {
            let end = rest.iter().position(|byte| *byte == b'\r')?;
            let line = &rest[..end];
            rest = rest.get(end + 2..).unwrap_or_default();
            let colon = line.iter().position(|byte| *byte == b':')?;
            Some((&line[..colon], line.get(colon + 2..)?))
        })
    }
}

/// Removes what is not stored of a response's fields, and makes `Date` complete.
pub fn clean(headers: &mut HeaderMap, set_cookie: SetCookie, date: Option<&HeaderValue>) {
    headers.remove(AGE);
    for name in NOT_STORED {
        headers.remove(*name);
    }
    tags::remove(headers);
    if set_cookie == SetCookie::Strip {
        headers.remove(SET_COOKIE);
    }
    if let Some(date) = date
        && !headers.contains_key(http::header::DATE)
    {
        headers.insert(http::header::DATE, date.clone());
    }
}

/// Fields of one connection that are no matter of its codec (RFC 9111, section 3.1).
const NOT_STORED: &[&str] = &[
    "proxy-authentication-info",
    "proxy-authorization",
    "proxy-connection",
    "proxy-authenticate",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_map_again() {
        let mut headers = HeaderMap::new();
        for (name, value) in [("a", "1"), ("b", ""), ("a", "x: y"), ("c", "\u{e9}")] {
            headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let lines = FieldLines::new(&headers);
        assert_eq!(lines.to_map(), headers);
        assert_eq!(lines.get("b"), Some(&b""[..]));
        assert_eq!(lines.get("d"), None);
        assert!(FieldLines::default().to_map().is_empty());
    }

    #[test]
    fn what_is_not_stored_is_removed() {
        let mut headers = HeaderMap::new();
        for name in ["age", "set-cookie", "cache-tag", "proxy-connection", "x"] {
            headers.insert(name, HeaderValue::from_static("1"));
        }
        let date = HeaderValue::from_static("now");
        clean(&mut headers, SetCookie::Store, Some(&date));
        assert!(headers.contains_key("set-cookie") && headers["date"] == "now");
        clean(&mut headers, SetCookie::Strip, None);
        let names: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(headers.len(), 2, "{names:?}");
    }
}
