//! Field lines (RFC 9112 section 5) and the few fields that concern the connection itself.

use catamaran_message::usual_value;
use http::Version;
use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::error::Fault;
use crate::head::name;
use crate::head::scan::RawHead;
use crate::syntax::{is_value_text, list, trim};

/// What becomes of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Keep,
    /// It stays, and this is its value: one with the same text.
    KeepAs(HeaderValue),
    Drop,
}

/// Reads all fields of a head in one pass into `headers`. `judge` sees each of them, takes what it
/// needs and says whether it stays in the map. Values are slices of the head, or were known before.
pub(crate) fn decode(
    raw: &RawHead,
    headers: &mut HeaderMap,
    mut judge: impl FnMut(&HeaderName, &[u8]) -> Result<Verdict, Fault>,
) -> Result<(), Fault> {
    let room = headers.try_reserve(raw.fields + SPARE);
    room.map_err(|_| Fault::TooManyFields)?;
    let mut at = raw.fields_at;
    for index in 0..raw.fields {
        let lf = raw.field_end(index, at).ok_or(Fault::FieldName)?;
        // The scan has judged how the line ends.
        let line = raw.bytes.get(at..lf).ok_or(Fault::FieldName)?;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        at = lf + 1;
        // A name is short: looking at each byte costs less than the call of a vectorised search.
        let colon = line.iter().position(|&byte| byte == b':');
        let colon = colon.ok_or(Fault::FieldName)?;
        // Neither a space before the colon nor one that folds a line can be part of a name.
        let name = name::decode(&line[..colon]).ok_or(Fault::FieldName)?;
        let text = trim(&line[colon + 1..]);
        let value = match judge(&name, text) {
            Ok(Verdict::Keep) => read_value(raw, text)?,
            Ok(Verdict::KeepAs(value)) => value,
            // Whatever else is wrong with it, it has to be a value.
            _ if !is_value_text(text) => return Err(Fault::FieldValue),
            Ok(Verdict::Drop) => continue,
            Err(fault) => return Err(fault),
        };
        let appended = headers.try_append(name, value);
        appended.map_err(|_| Fault::TooManyFields)?;
    }
    Ok(())
}

fn read_value(raw: &RawHead, text: &[u8]) -> Result<HeaderValue, Fault> {
    match usual_value(text) {
        Some(value) => Ok(value),
        None => {
            HeaderValue::from_maybe_shared(raw.bytes.slice_ref(text)).map_err(|_| Fault::FieldValue)
        }
    }
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
