//! What header fields mean to the codec, in both roles.
//!
//! Turns the views of [`crate::message::fields`] into `http` types without copying values, reads
//! Content-Length strictly, and knows which fields concern one connection only. Names must be
//! tokens and values free of control characters, or the head is refused: nothing that could split
//! a message passes through here.

use bytes::Bytes;
pub(crate) use catamaran_message::field::{
    LENGTH_MAX, decimal, is_hop_by_hop, is_value_text, remove_nominated, trim,
};
use catamaran_message::usual_value;
use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::error::FieldFault;
use crate::message::fields::{Field, FieldName};

/// The name and value of `field`, which is a view into `payload`. A null value counts as empty. `clean` says what
/// of a text is the value, unless it is a usual one.
#[inline]
pub(crate) fn read(
    field: &Field<'_>,
    payload: &Bytes,
    clean: impl Fn(&[u8]) -> &[u8],
) -> Result<(HeaderName, HeaderValue), FieldFault> {
    let name = match field.name {
        FieldName::Coded(name) => name.clone(),
        FieldName::Literal(name) => HeaderName::from_bytes(name).map_err(|_| FieldFault::Name)?,
    };
    let text = field.value.unwrap_or_default();
    let value = match usual_value(text) {
        Some(value) => value,
        None => {
            let text = shared(clean(text), payload);
            HeaderValue::from_maybe_shared(text).map_err(|_| FieldFault::Value)?
        }
    };
    Ok((name, value))
}

/// Whether `field` is a Content-Length, of which nothing but the number is wanted.
pub(crate) fn is_content_length(field: &Field<'_>) -> bool {
    match field.name {
        FieldName::Coded(name) => *name == header::CONTENT_LENGTH,
        FieldName::Literal(name) => {
            name.eq_ignore_ascii_case(header::CONTENT_LENGTH.as_str().as_bytes())
        }
    }
}

/// A handle on `view`, which lies in `payload`.
pub(crate) fn shared(view: &[u8], payload: &Bytes) -> Bytes {
    payload.slice_ref(view)
}

/// Makes room for `count` fields, of which at most `max` are allowed.
pub(crate) fn make_room(
    headers: &mut HeaderMap,
    count: usize,
    max: usize,
) -> Result<(), FieldFault> {
    if count > max {
        return Err(FieldFault::TooMany { max });
    }
    let room = headers.try_reserve(count);
    room.map_err(|_| FieldFault::TooMany { max })
}

/// The number in a Content-Length.
pub(crate) fn content_length(value: &HeaderValue) -> Result<u64, FieldFault> {
    decimal(value.as_bytes()).ok_or(FieldFault::ContentLength)
}

/// Whether the field frames the body: the codec reads and writes those itself.
pub(crate) fn is_framing(name: &HeaderName) -> bool {
    *name == header::CONTENT_LENGTH || *name == header::TRANSFER_ENCODING
}

/// Whether `text` has control characters, of which only the tab is fit for one line of HTTP.
pub(crate) fn has_control(text: &[u8]) -> bool {
    !is_value_text(text)
}

/// Whether any byte of `text` is what `is_sought` tells: eight at a time, without a branch, which
/// compilers turn into vector instructions.
#[inline]
pub(crate) fn has_byte(text: &[u8], is_sought: impl Fn(u8) -> bool) -> bool {
    let block_has = |block: &[u8; 8]| block.iter().fold(false, |has, &byte| has | is_sought(byte));
    match text.last_chunk() {
        // Its bytes may have been in the block before too.
        Some(last) => text.as_chunks().0.iter().any(block_has) || block_has(last),
        None => text.iter().any(|&byte| is_sought(byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_found_wherever_it_is() {
        for len in 0..40 {
            let mut text = vec![b'\t'; len];
            assert!(!has_control(&text), "{len}");
            for at in 0..len {
                for byte in [0, 0x1f, 0x7f] {
                    text[at] = byte;
                    assert!(has_control(&text), "{byte} at {at} of {len}");
                }
                text[at] = 0xff;
            }
            assert!(!has_control(&text), "{len}");
        }
    }
}
