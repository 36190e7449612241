//! Field lines (RFC 9112 section 5) and the few fields that concern the connection itself.

use http::Version;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use memchr::memchr;

use crate::error::Fault;
use crate::head::name;
use crate::head::scan::RawHead;
use crate::syntax::{list, trim};

/// What becomes of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Keep,
    Drop,
}

/// Reads all fields of a head in one pass. `judge` sees each of them, takes what it needs and
/// says whether it stays in the map. Values are slices of the head.
///
/// Names and values are checked by the types they become: a name is a token, so nothing may stand
/// before it or between it and the colon, and a folded line has none; a value has no control
/// characters but tabs.
pub(crate) fn decode(
    raw: &RawHead,
    mut judge: impl FnMut(&HeaderName, &HeaderValue) -> Result<Verdict, Fault>,
) -> Result<HeaderMap, Fault> {
    let mut headers =
        HeaderMap::try_with_capacity(raw.fields + SPARE).map_err(|_| Fault::TooManyFields)?;
    let mut rest = &raw.bytes[raw.fields_at..];
    // What a field says counts only once all are well-formed.
    let mut refused = None;
    for _ in 0..raw.fields {
        let (name, value);
        (name, value, rest) = split_line(rest).ok_or(Fault::FieldName)?;
        let name = name::decode(name).ok_or(Fault::FieldName)?;
        let value = HeaderValue::from_maybe_shared(raw.bytes.slice_ref(value));
        let value = value.map_err(|_| Fault::FieldValue)?;
        match judge(&name, &value) {
            Ok(Verdict::Keep) => {
                let appended = headers.try_append(name, value);
                appended.map_err(|_| Fault::TooManyFields)?;
            }
            Ok(Verdict::Drop) => {}
            Err(fault) => refused = refused.or(Some(fault)),
        }
    }
    refused.map_or(Ok(headers), Err)
}

/// The name and the value in the first line of `lines`, and the lines after it.
fn split_line(lines: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (line, rest) = lines.split_at_checked(memchr(b'\n', lines)? + 1)?;
    let line = line
        .strip_suffix(b"\r\n")
        .unwrap_or(&line[..line.len() - 1]);
    let colon = memchr(b':', line)?;
    Some((&line[..colon], trim(&line[colon + 1..]), rest))
}

/// What the Connection fields of a head say about the connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Persistence {
    close: bool,
    keep_alive: bool,
}

impl Persistence {
    /// Takes a Connection field.
    pub(crate) fn take(&mut self, value: &[u8]) {
        for option in list(value) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// Whether another exchange may follow (RFC 9112 section 9.3).
    pub(crate) fn allows_next(self, version: Version) -> bool {
        !self.close && (version == Version::HTTP_11 || self.keep_alive)
    }
}

/// Room left for fields that whoever handles the head will add, such as Via.
const SPARE: usize = 4;
