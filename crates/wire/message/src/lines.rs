//! Fields as lines: the form in which most heads are sent, and in which they take the least memory.

use bytes::Bytes;
use http::header::DATE;
use http::{HeaderMap, HeaderName, HeaderValue};
use memchr::memchr;

/// Fields as lines: each a name in lower case, a colon and a space, a value, and CR LF. `Date` is the first, if it is
/// among them. Bytes that belong to the fields may follow in the same memory: a small body takes none of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldLines {
    bytes: Bytes,
    /// Where the lines end.
    end: usize,
}

impl FieldLines {
    /// The fields of a map.
    #[must_use]
    pub fn new(headers: &HeaderMap) -> Self {
        Self::followed::<&[u8]>(headers, &[])
    }

    /// The fields of a map, and what follows them, piece by piece.
    #[must_use]
    pub fn followed<T: AsRef<[u8]>>(headers: &HeaderMap, rest: &[T]) -> Self {
        let fields = || {
            let dates = headers.iter().filter(|(name, _)| **name == DATE);
            let others = headers.iter().filter(|(name, _)| **name != DATE);
            dates.chain(others)
        };
        let length: usize = fields()
            .map(|(name, value)| line_length(name.as_str(), value.as_bytes()))
            .sum();
        let following: usize = rest.iter().map(|piece| piece.as_ref().len()).sum();
        let mut bytes = Vec::with_capacity(length + following);
        for (name, value) in fields() {
            write_line(&mut bytes, name.as_str(), value.as_bytes());
        }
        let end = bytes.len();
        for piece in rest {
            bytes.extend_from_slice(piece.as_ref());
        }
        Self {
            bytes: bytes.into(),
            end,
        }
    }

    /// The same lines, and behind them a text in these parts that is further lines, in memory of their own.
    #[must_use]
    pub fn with(&self, further: &[&[u8]]) -> Self {
        let end = self.end + further.iter().map(|part| part.len()).sum::<usize>();
        let mut bytes = Vec::with_capacity(end);
        bytes.extend_from_slice(self.as_bytes());
        for part in further {
            bytes.extend_from_slice(part);
        }
        Self {
            bytes: bytes.into(),
            end,
        }
    }

    /// The lines.
    #[must_use]
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.end]
    }

    /// What follows the lines.
    #[must_use]
    pub fn rest(&self) -> Bytes {
        self.bytes.slice(self.end..)
    }

    /// Whether `Date` is among them.
    #[must_use]
    #[inline]
    pub fn is_dated(&self) -> bool {
        self.as_bytes().starts_with(b"date: ")
    }

    /// Whether there are no fields.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.end == 0
    }

    /// Bytes of memory that they take, and what follows them.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.bytes.len()
    }

    /// Whether another is a copy of these that shares their memory.
    #[must_use]
    pub fn shares_memory(&self, other: &Self) -> bool {
        !self.is_empty() && self.bytes.as_ptr() == other.bytes.as_ptr()
    }

    /// The fields as a map. Values share the memory of the lines.
    #[must_use]
    pub fn to_map(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        self.append_to(&mut headers);
        headers
    }

    /// Adds the fields to a map. Values share the memory of the lines.
    pub fn append_to(&self, headers: &mut HeaderMap) {
        if self.is_empty() {
            return;
        }
        headers.reserve(FIELDS_USUAL);
        for (name, value) in self.iter() {
            let name = HeaderName::from_bytes(name);
            let value = HeaderValue::from_maybe_shared(self.bytes.slice_ref(value));
            if let (Ok(name), Ok(value)) = (name, value) {
                // A map that is full is one that no codec would have made.
                drop(headers.try_append(name, value));
            }
        }
    }

    /// The first value of a field, whose name is in lower case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let mut fields = self.iter();
        fields.find_map(|(it, value)| (it == name.as_bytes()).then_some(value))
    }

    /// Names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut rest = self.as_bytes();
        std::iter::from_fn(move || {
            let end = memchr(b'\r', rest)?;
            let line = &rest[..end];
            rest = rest.get(end + 2..).unwrap_or_default();
            let colon = line.iter().position(|byte| *byte == b':')?;
            Some((&line[..colon], line.get(colon + 2..)?))
        })
    }
}

fn line_length(name: &str, value: &[u8]) -> usize {
    name.len() + value.len() + 4
}

fn write_line(bytes: &mut Vec<u8>, name: &str, value: &[u8]) {
    bytes.extend_from_slice(name.as_bytes());
    bytes.extend_from_slice(b": ");
    bytes.extend_from_slice(value);
    bytes.extend_from_slice(b"\r\n");
}

/// Most heads have no more fields.
const FIELDS_USUAL: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn headers() -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("a", "1"),
            ("b", ""),
            ("a", "x: y"),
            ("c", "\u{e9}"),
            ("date", "now"),
        ] {
            headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        headers
    }

    #[test]
    fn lines_are_the_map_again() {
        let lines = FieldLines::new(&headers());
        assert_eq!(lines.to_map(), headers());
        assert_eq!(lines.get("b"), Some(&b""[..]));
        assert_eq!(lines.get("d"), None);
        assert!(lines.as_bytes().starts_with(b"date: now\r\na: 1\r\n"));
        assert!(FieldLines::default().to_map().is_empty());
        assert!(lines.rest().is_empty());
    }

    #[test]
    fn further_lines_follow_and_the_rest_is_no_line() {
        let lines = FieldLines::followed(&headers(), &["d: ", "1\r\n"]);
        assert_eq!(lines.get("d"), None);
        assert_eq!(lines.to_map(), headers());
        assert_eq!(lines.rest(), &b"d: 1\r\n"[..]);
        let more = lines.with(&[b"d: ", b"2\r\n", b"e: \r\n"]);
        assert!(more.is_dated() && !FieldLines::default().is_dated());
        assert_eq!(
            (more.get("d"), more.get("e")),
            (Some(&b"2"[..]), Some(&b""[..]))
        );
        assert!(more.rest().is_empty());
        let mut expected = headers();
        for (name, value) in [("d", "2"), ("e", "")] {
            expected.append(name, HeaderValue::from_static(value));
        }
        assert_eq!(more.to_map(), expected);
        assert!(lines.shares_memory(&lines.clone()) && !lines.shares_memory(&more));
        assert!(!FieldLines::default().shares_memory(&FieldLines::default()));
    }
}
