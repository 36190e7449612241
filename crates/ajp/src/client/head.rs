//! The response head as the codec hands it to a web server.
//!
//! What the container says about one connection is dropped, for the web server frames its own
//! response; what could split a response is refused; reason phrases that say no more than the
//! status, the usual ones and Tomcat's, which repeat it, are replaced by nothing.

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};

use crate::{
    error::{FieldFault, ResponseFault},
    exchange, field,
    message::{fields::FieldName, send_headers::SendHeaders},
};

/// The head of a response.
#[derive(Clone, Debug, Default)]
pub struct ResponseHead {
    /// The status, 100 to 999.
    pub status: StatusCode,
    /// The reason phrase, if it is not the usual one of this status, nor the status in digits.
    pub reason: Option<Bytes>,
    /// End-to-end fields, repeated names apart; without Content-Length.
    pub headers: HeaderMap,
    /// The length that the container announced. The codec holds it to that, unless the response
    /// has no body: then it tells what a GET would have got.
    pub content_length: Option<u64>,
}

impl ResponseHead {
    /// Reads `payload`, a SEND_HEADERS with at most `fields_max` fields, into an empty head.
    pub(super) fn read(&mut self, payload: &Bytes, fields_max: usize) -> Result<(), ResponseFault> {
        let mut view = SendHeaders::decode(payload)?;
        self.status = status(view.status)?;
        self.reason = reason(view.reason, self.status, payload)?;
        field::make_room(&mut self.headers, view.fields.left(), fields_max)?;
        let mut connection = None;
        for item in &mut view.fields {
            let item = item?;
            if field::is_content_length(&item) {
                self.take_content_length(item.value.unwrap_or_default())?;
                continue;
            }
            let (name, value) = field::read(&item, payload)?;
            if name == header::CONNECTION {
                connection.get_or_insert_with(Vec::new).push(value);
                continue;
            }
            // None that concerns the connection has a code.
            let is_coded = matches!(item.name, FieldName::Coded(_));
            if is_coded || !field::is_hop_by_hop(&name) {
                let appended = self.headers.try_append(name, value);
                appended.map_err(|_| FieldFault::TooMany { max: fields_max })?;
            }
        }
        view.finish()?;
        for value in connection.iter().flatten() {
            field::remove_nominated(&mut self.headers, value);
        }
        if !may_have_length(self.status) {
            self.content_length = None;
        }
        Ok(())
    }

    /// Becomes empty, and keeps the memory of the fields.
    pub(super) fn forget(&mut self) {
        field::forget(&mut self.headers);
        self.reason = None;
        self.content_length = None;
    }

    fn take_content_length(&mut self, digits: &[u8]) -> Result<(), FieldFault> {
        let length = field::decimal(digits).ok_or(FieldFault::ContentLength)?;
        match self.content_length.replace(length) {
            Some(first) if first != length => Err(FieldFault::ContentLength),
            _ => Ok(()),
        }
    }
}

/// The status, if HTTP can carry it and AJP13 can mean it: there is no switching of protocols.
fn status(number: u16) -> Result<StatusCode, ResponseFault> {
    match StatusCode::from_u16(number) {
        Ok(status) if status != StatusCode::SWITCHING_PROTOCOLS => Ok(status),
        _ => Err(ResponseFault::Status(number)),
    }
}

/// The reason phrase, if there is one that says more than the status.
fn reason(
    reason: Option<&[u8]>,
    status: StatusCode,
    payload: &Bytes,
) -> Result<Option<Bytes>, ResponseFault> {
    let usual = status.canonical_reason().unwrap_or_default();
    let reason = match reason {
        None | Some([]) => return Ok(None),
        Some(reason) if reason == usual.as_bytes() => return Ok(None),
        Some(reason) if reason == status.as_str().as_bytes() => return Ok(None),
        Some(reason) => reason,
    };
    match field::has_control(reason) {
        true => Err(ResponseFault::Reason),
        false => Ok(Some(field::shared(reason, payload))),
    }
}

/// Whether a Content-Length may stand in a response of this status (RFC 9110, section 8.6).
fn may_have_length(status: StatusCode) -> bool {
    status == StatusCode::NOT_MODIFIED || !exchange::is_bodiless(status)
}
