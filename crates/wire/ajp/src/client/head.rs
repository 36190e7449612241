//! Interprets the head of a response for a web server.
//!
//! Fields about one connection are removed, because the web server frames its own response. A head
//! that could split a response is refused. A reason phrase that only repeats the status, such as the
//! usual ones and Tomcat's, is removed.

use bytes::Bytes;
use catamaran_message::name::CONTENT_LENGTH;
use catamaran_message::{ResponseHead, Traits};
use http::StatusCode;

use crate::error::{FieldFault, ResponseFault};
use crate::message::send_headers::SendHeaders;
use crate::{exchange, field};

/// Reads `payload`, a SEND_HEADERS with at most `fields_max` fields, into an empty head.
pub(super) fn read(
    payload: &Bytes,
    fields_max: usize,
    head: &mut ResponseHead,
) -> Result<(), ResponseFault> {
    let mut view = SendHeaders::decode(payload)?;
    head.status = status(view.status)?;
    head.reason = reason(view.reason, head.status, payload)?;
    field::make_room(&mut head.headers, view.fields.left(), fields_max)?;
    for item in &mut view.fields {
        let item = item?;
        let id = field::id(&item)?;
        if id == Some(CONTENT_LENGTH) {
            take_content_length(head, item.value.unwrap_or_default())?;
            continue;
        }
        // Applications set values with white space around them, which is no part of a value (RFC 9110,
        // section 5.5) and which HTTP/2 forbids.
        let value = field::trim(field::value(&item)?);
        field::push(&mut head.headers, payload, &item, id, value);
    }
    view.finish()?;
    head.headers.keep(payload.clone());
    head.headers.mark_nominated(&[]);
    head.headers.remove_all(Traits::OF_CONNECTION);
    // Only in responses that may have it (RFC 9110, section 8.6).
    if exchange::is_bodiless(head.status) && head.status != StatusCode::NOT_MODIFIED {
        head.content_length = None;
    }
    Ok(())
}

fn take_content_length(head: &mut ResponseHead, digits: &[u8]) -> Result<(), FieldFault> {
    let length = field::decimal(field::trim(digits)).ok_or(FieldFault::ContentLength)?;
    match head.content_length.replace(length) {
        Some(first) if first != length => Err(FieldFault::ContentLength),
        _ => Ok(()),
    }
}

/// The status as a valid one of HTTP. 101 is refused, because AJP13 cannot switch protocols.
fn status(number: u16) -> Result<StatusCode, ResponseFault> {
    match StatusCode::from_u16(number) {
        Ok(status) if status != StatusCode::SWITCHING_PROTOCOLS => Ok(status),
        _ => Err(ResponseFault::Status(number)),
    }
}

/// The reason phrase; `None` if it says no more than the status.
fn reason(
    reason: Option<&[u8]>,
    status: StatusCode,
    payload: &Bytes,
) -> Result<Option<Bytes>, ResponseFault> {
    let usual = status.canonical_reason().unwrap_or_default();
    match reason {
        None | Some([]) => Ok(None),
        Some(reason) if reason == usual.as_bytes() => Ok(None),
        Some(reason) if reason == status.as_str().as_bytes() => Ok(None),
        Some(reason) if !field::is_value_text(reason) => Err(ResponseFault::Reason),
        Some(reason) => Ok(Some(payload.slice_ref(reason))),
    }
}
