//! The response head as the codec hands it to a web server.
//!
//! What the container says about one connection is dropped, for the web server frames its own
//! response; what could split a response is refused; reason phrases that repeat the status, as
//! Tomcat sends them, are replaced by nothing.

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};

use crate::{
    error::{FieldFault, ResponseFault},
    exchange, field,
    message::send_headers::SendHeaders,
};

/// The head of a response.
#[derive(Clone, Debug)]
pub struct ResponseHead {
    /// The status, 100 to 999.
    pub status: StatusCode,
    /// The reason phrase, if it says more than the status does in digits.
    pub reason: Option<Bytes>,
    /// End-to-end fields, repeated names apart; without Content-Length.
    pub headers: HeaderMap,
    /// The length that the container announced. The codec holds it to that, unless the response
    /// has no body: then it tells what a GET would have got.
    pub content_length: Option<u64>,
}

impl ResponseHead {
    /// Reads `payload`, a SEND_HEADERS, with at most `fields_max` fields, into `headers`, an empty
    /// map.
    pub(super) fn read(
        payload: &Bytes,
        fields_max: usize,
        mut headers: HeaderMap,
    ) -> Result<Self, ResponseFault> {
        let mut view = SendHeaders::decode(payload)?;
        let status = status(view.status)?;
        let reason = reason(view.reason, status, payload)?;
        field::make_room(&mut headers, view.fields.left(), fields_max)?;
        let mut content_length = None;
        let mut connection = None;
        for item in &mut view.fields {
            let item = item?;
            if field::is_content_length(&item) {
                let digits = item.value.unwrap_or_default();
                let length = field::decimal(digits).ok_or(FieldFault::ContentLength)?;
                if content_length
                    .replace(length)
                    .is_some_and(|first| first != length)
                {
                    return Err(FieldFault::ContentLength.into());
                }
                continue;
            }
            let (name, value) = field::read(&item, payload)?;
            if name == header::CONNECTION {
                connection.get_or_insert_with(Vec::new).push(value);
            } else if !field::is_hop_by_hop(&name) {
                headers
                    .try_append(name, value)
                    .map_err(|_| FieldFault::TooMany { max: fields_max })?;
            }
        }
        view.finish()?;
        for value in connection.iter().flatten() {
            field::remove_nominated(&mut headers, value);
        }
        Ok(Self {
            status,
            reason,
            headers,
            content_length: content_length.filter(|_| may_have_length(status)),
        })
    }
}

/// The status, if HTTP can carry it and AJP13 can mean it: there is no switching of protocols.
fn status(number: u16) -> Result<StatusCode, ResponseFault> {
    match StatusCode::from_u16(number) {
        Ok(status) if status != StatusCode::SWITCHING_PROTOCOLS => Ok(status),
        _ => Err(ResponseFault::Status(number)),
    }
}

/// The reason phrase, if there is one that is not just the status again.
fn reason(
    reason: Option<&[u8]>,
    status: StatusCode,
    payload: &Bytes,
) -> Result<Option<Bytes>, ResponseFault> {
    let Some(reason) = reason.filter(|reason| !reason.is_empty()) else {
        return Ok(None);
    };
    if field::has_control(reason) {
        return Err(ResponseFault::Reason);
    }
    let repeats_status = reason == status.as_str().as_bytes();
    Ok((!repeats_status).then(|| field::shared(reason, payload)))
}

/// Whether a Content-Length may stand in a response of this status (RFC 9110, section 8.6).
fn may_have_length(status: StatusCode) -> bool {
    status == StatusCode::NOT_MODIFIED || !exchange::is_bodiless(status)
}
