//! Header fields in both roles: reads them into the list of a head.
//!
//! Puts the views of [`crate::message::fields`] into the list of a head without copying them, and reads
//! Content-Length strictly. Names must be tokens and values free of control characters, or the head is
//! refused: nothing that could split a message passes through here.

use std::ops::Range;

use bytes::Bytes;
use catamaran_message::field::is_token_text;
pub(crate) use catamaran_message::field::{LENGTH_MAX, are_all, decimal, is_value_text, trim};
use catamaran_message::{Fields, Id, name};

use crate::error::FieldFault;
use crate::message::fields::{FieldName, ReceivedField};

/// The number of the field's name in the table of names; `None` for a token that is not in it.
#[inline]
pub(crate) fn id(field: &ReceivedField<'_>) -> Result<Option<Id>, FieldFault> {
    match field.name {
        FieldName::Coded(id) => Ok(Some(id)),
        FieldName::Literal(text) => match name::find(text) {
            None if !is_token_text(text) => Err(FieldFault::Name),
            found => Ok(found),
        },
    }
}

/// The field's value, checked for control characters; a null value is empty.
#[inline]
pub(crate) fn value<'a>(field: &ReceivedField<'a>) -> Result<&'a [u8], FieldFault> {
    match field.value.unwrap_or_default() {
        value if is_value_text(value) => Ok(value),
        _ => Err(FieldFault::Value),
    }
}

/// Adds a field of `payload`, which has this number and value, to `headers`.
#[inline]
pub(crate) fn push(
    headers: &mut Fields,
    payload: &Bytes,
    field: &ReceivedField<'_>,
    id: Option<Id>,
    value: &[u8],
) {
    let name = match field.name {
        FieldName::Coded(_) => 0..0,
        FieldName::Literal(name) => range(name, payload),
    };
    headers.push(id, name, range(value, payload), false);
}

/// The position of `view` within `payload`.
#[inline]
fn range(view: &[u8], payload: &Bytes) -> Range<usize> {
    let start = if view.is_empty() {
        0
    } else {
        view.as_ptr().addr() - payload.as_ptr().addr()
    };
    start..start + view.len()
}

/// Makes room for `count` fields, of which at most `max` are allowed.
pub(crate) fn make_room(headers: &mut Fields, count: usize, max: usize) -> Result<(), FieldFault> {
    if count > max {
        return Err(FieldFault::TooMany { max });
    }
    headers.reserve(count);
    Ok(())
}
