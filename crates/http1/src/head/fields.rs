//! Field lines (RFC 9112 section 5) and the few fields that concern the connection itself.

use http::Version;
use http::header::{HeaderMap, HeaderName, HeaderValue};

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

/// Reads all fields of a head in one pass into `headers`. `judge` sees each of them, takes what it
/// needs and says whether it stays in the map. Values are slices of the head.
pub(crate) fn decode(
    raw: &RawHead,
    headers: &mut HeaderMap,
    mut judge: impl FnMut(&HeaderName, &HeaderValue) -> Result<Verdict, Fault>,
) -> Result<(), Fault> {
    let mut few = [httparse::EMPTY_HEADER; FEW];
    let mut many;
    let slots = if raw.fields <= FEW {
        &mut few[..]
    } else {
        many = vec![httparse::EMPTY_HEADER; raw.fields];
        &mut many[..]
    };
    let lines = &raw.bytes[raw.fields_at..];
    let parsed = match httparse::parse_headers(lines, slots).map_err(fault)? {
        httparse::Status::Complete((len, parsed)) if len == lines.len() => parsed,
        // The scan found the head complete; a parser that ends elsewhere reads it otherwise.
        _ => return Err(Fault::FieldName),
    };
    let room = headers.try_reserve(parsed.len() + SPARE);
    room.map_err(|_| Fault::TooManyFields)?;
    for field in parsed {
        let name = name::decode(field.name.as_bytes()).ok_or(Fault::FieldName)?;
        let value = HeaderValue::from_maybe_shared(raw.bytes.slice_ref(trim(field.value)));
        let value = value.map_err(|_| Fault::FieldValue)?;
        if judge(&name, &value)? == Verdict::Keep {
            let appended = headers.try_append(name, value);
            appended.map_err(|_| Fault::TooManyFields)?;
        }
    }
    Ok(())
}

fn fault(error: httparse::Error) -> Fault {
    match error {
        httparse::Error::HeaderValue | httparse::Error::NewLine => Fault::FieldValue,
        httparse::Error::TooManyHeaders => Fault::TooManyFields,
        _ => Fault::FieldName,
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

/// Fields up to this number need no allocation while they are parsed; most heads have fewer.
const FEW: usize = 32;

/// Room left for fields that whoever handles the head will add, such as Via.
const SPARE: usize = 4;
