//! Decodes a response head and validates it as a whole.

use catamaran_message::{Fields, ResponseHead, Traits, name};
use http::{StatusCode, Version};

use crate::body::{Decoder, FramingFields};
use crate::error::Fault;
use crate::head::persistence::allows_next;
use crate::head::scan::RawHead;
use crate::head::status_line;

/// What a response head implies for the body and the connection.
#[derive(Debug)]
pub(crate) struct Rest {
    pub(crate) decoder: Decoder,
    pub(crate) keep_alive: bool,
}

/// Facts of a request on which the reading of its response depends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestTraits<'a> {
    /// Whether the request was a HEAD.
    pub(crate) is_head: bool,
    /// The protocol that the request asked to change to; `None`: to none.
    pub(crate) upgrade: Option<&'a [u8]>,
}

/// Checks a complete response head, whose fields are in `head`, and fills in the rest of `head`.
pub(crate) fn decode(
    raw: &RawHead,
    request: RequestTraits<'_>,
    head: &mut ResponseHead,
) -> Result<Rest, Fault> {
    let line = status_line::decode(&raw.bytes, raw.start_line)?;
    let status = line.status;
    let headers = &mut head.headers;
    headers.keep(raw.bytes.clone());
    let framing = FramingFields::read(headers)?;
    let may_go_on = allows_next(headers, line.version);
    let mut upgrade = None;
    if status == StatusCode::SWITCHING_PROTOCOLS {
        if framing.announces_body() || line.version != Version::HTTP_11 {
            return Err(Fault::Upgraded);
        }
        let protocol = new_protocol(headers, request.upgrade);
        upgrade = Some(protocol.ok_or(Fault::Upgraded)?);
    }
    headers.mark_nominated(&[]);
    headers.remove_all(Traits::OF_CONNECTION);
    // The field is addressed to this proxy, not to its clients.
    headers.remove(name::PROXY_AUTHENTICATE);
    // Of several fields with this name, the first counts.
    headers.keep_first(name::LOCATION);
    headers.keep_first(name::CONTENT_TYPE);
    head.status = status;
    head.reason = line.reason;
    if let Some(protocol) = upgrade {
        headers.insert(name::UPGRADE, protocol);
        head.content_length = None;
        return Ok(Rest {
            decoder: Decoder::UntilClose,
            keep_alive: false,
        });
    }
    let has_no_framing = status.is_informational() || status == StatusCode::NO_CONTENT;
    let bodiless = request.is_head || has_no_framing || status == StatusCode::NOT_MODIFIED;
    let (announced, decoder) = framing.response_length(line.version, bodiless)?;
    // A server that announces a body with a 204 may send one, even after the check for left-over bytes.
    let may_send_more = status == StatusCode::NO_CONTENT && framing.announces_body();
    let ends_with_stream = matches!(decoder, Decoder::UntilClose);
    head.content_length = announced.filter(|_| !has_no_framing);
    Ok(Rest {
        decoder,
        keep_alive: may_go_on && !may_send_more && !ends_with_stream,
    })
}

/// The protocol to which a 101 changes: its Upgrade field must name the one that was asked for and no other (RFC 9110
/// section 7.8).
fn new_protocol(headers: &Fields, asked: Option<&[u8]>) -> Option<Vec<u8>> {
    let mut options = headers.elements(name::CONNECTION);
    if !options.any(|option| option.eq_ignore_ascii_case(b"upgrade")) {
        return None;
    }
    let token = headers.only(name::UPGRADE)?;
    token.eq_ignore_ascii_case(asked?).then(|| token.to_vec())
}
