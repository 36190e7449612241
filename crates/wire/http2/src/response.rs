//! The head of a response as received (RFC 9113, section 8.3.2).

use catamaran_message::ResponseHead;
use http::StatusCode;

use crate::block::ReceivedBlock;
use crate::error::StreamFault;
use crate::hpack::Pseudo;
use crate::limits::Limits;

/// Reads a block into `head`. `ends`: no body follows. `is_head`: the request was HEAD. Returns the length of the body
/// that follows; `None` if it is not known.
pub(crate) fn read(
    block: &mut ReceivedBlock,
    ends: bool,
    is_head: bool,
    limits: &Limits,
    head: &mut ResponseHead,
) -> Result<Option<u64>, StreamFault> {
    block.check(limits)?;
    if block.has_pseudo_but(&[Pseudo::Status]) {
        return Err(StreamFault::Pseudo);
    }
    let status = block.pseudo(Pseudo::Status).unwrap_or_default();
    head.status = StatusCode::from_bytes(status).map_err(|_| StreamFault::Pseudo)?;
    let is_interim = head.status.is_informational();
    // HTTP/2 has no 101, and an interim head cannot end the stream (section 8.1).
    if head.status == StatusCode::SWITCHING_PROTOCOLS || is_interim && ends {
        return Err(StreamFault::Pseudo);
    }
    let length = block.take_content_length()?;
    // Responses to HEAD and 304 may say a length without a body; 1xx and 204 have none (RFC 9110, section 8.6).
    let is_bodiless =
        is_head || head.status == StatusCode::NO_CONTENT || head.status == StatusCode::NOT_MODIFIED;
    let has_no_length = is_interim || head.status == StatusCode::NO_CONTENT;
    head.content_length = length.filter(|_| !has_no_length);
    std::mem::swap(&mut head.headers, &mut block.fields);
    if is_interim {
        return Ok(None);
    }
    if is_bodiless {
        return Ok(Some(0));
    }
    match length {
        Some(1..) if ends => Err(StreamFault::LengthMismatch),
        _ => Ok(length),
    }
}
