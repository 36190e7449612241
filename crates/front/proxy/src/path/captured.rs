//! The texts that a route's expression captured of a path, and how they are written into other texts.
//!
//! They are parts of the [`compared`](super::compared) form, so they are decoded. Each way of writing them encodes all
//! bytes that it does not list. So a captured byte never becomes a `?`, a `#`, a separator of fields or the end of a
//! line, whatever the client had encoded.

use bytes::Bytes;

use super::{ESCAPED_SLASH, is_unreserved};

/// The captured texts, by the number of their group less one. Empty: a group that took no part, or that does not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Captures(Option<Box<[Bytes]>>);

impl Captures {
    /// The texts of a path without an expression.
    pub(crate) const NONE: &'static Self = &Self(None);

    pub(crate) fn new(groups: impl Iterator<Item = Bytes>) -> Self {
        Self(Some(groups.collect()))
    }

    /// Appends a captured text to a path, in which it may be several segments.
    pub(crate) fn write_in_path(&self, group: usize, path: &mut Vec<u8>) {
        self.encode(group, is_plain_in_path, path);
    }

    /// Appends a captured text to a URL or path that has begun. Directly after the host a slash is put before it,
    /// unless it begins with one, so that it is no part of the host. After a `?` or `#` its separators are encoded.
    pub(crate) fn write_in_url(&self, group: usize, url: &mut Vec<u8>) {
        if url.iter().any(|byte| matches!(byte, b'?' | b'#')) {
            return self.write(group, url);
        }
        let scheme_end = url.windows(3).position(|bytes| bytes == b"://");
        let host_and_path = match scheme_end {
            Some(end) => &url[end + 3..],
            None => &url[..],
        };
        if !host_and_path.contains(&b'/') && !self.get(group).starts_with(b"/") {
            url.push(b'/');
        }
        self.write_in_path(group, url);
    }

    /// Appends a captured text to a text in which every separator may have a meaning.
    pub(crate) fn write(&self, group: usize, text: &mut Vec<u8>) {
        self.encode(group, |byte| is_unreserved(byte) || byte == b'/', text);
    }

    fn get(&self, group: usize) -> &[u8] {
        let groups = self.0.as_deref().unwrap_or_default();
        let text = group.checked_sub(1).and_then(|index| groups.get(index));
        text.map_or(b"", |text| text)
    }

    /// Appends a captured text, with all bytes encoded but those that `is_plain` accepts.
    fn encode(&self, group: usize, is_plain: fn(u8) -> bool, text: &mut Vec<u8>) {
        for &byte in self.get(group) {
            match byte {
                ESCAPED_SLASH => text.extend_from_slice(b"%2F"),
                byte if is_plain(byte) => text.push(byte),
                byte => text.extend(super::escape(byte)),
            }
        }
    }
}

/// Whether a byte stands for itself in a path (RFC 3986, section 3.3). A semicolon does not: it begins parameters.
fn is_plain_in_path(byte: u8) -> bool {
    is_unreserved(byte) || b"/!$&'()*+,=:@".contains(&byte)
}
