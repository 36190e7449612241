//! SEND_HEADERS: the head of a response.
//!
//! Status, reason phrase, counted fields. Exactly one opens every response, even one without
//! fields: a web server that gets none may show the fields of the response before.

use bytes::BytesMut;
use http::{HeaderMap, StatusCode};

use crate::{
    code,
    error::DecodeError,
    field,
    message::fields::{self, Fields},
    packet::{PacketSize, SERVER_MAGIC},
    wire::{TooLarge, Writer},
};

/// A response head, borrowed from the payload.
#[derive(Clone, Debug)]
pub struct SendHeaders<'a> {
    /// The status as sent; any number.
    pub status: u16,
    /// The reason phrase; Tomcat sends the status in digits.
    pub reason: Option<&'a [u8]>,
    /// The fields; call [`SendHeaders::finish`] behind the last one.
    pub fields: Fields<'a>,
}

impl<'a> SendHeaders<'a> {
    /// Reads what precedes the fields.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn decode(payload: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = super::open(payload, code::SEND_HEADERS)?;
        Ok(Self {
            status: reader.u16()?,
            reason: reader.string()?,
            fields: Fields::read(reader, &code::RESPONSE_FIELDS)?,
        })
    }

    /// Checks that the payload ends with the last field.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn finish(self) -> Result<(), DecodeError> {
        self.fields.into_reader()?.finish()
    }
}

/// Appends a response head. Fields that concern one connection only are left out.
///
/// # Errors
/// [`TooLarge`] if it does not fit one packet; nothing is written then.
pub fn encode(
    status: StatusCode,
    reason: &[u8],
    headers: &HeaderMap,
    size: PacketSize,
    out: &mut BytesMut,
) -> Result<(), TooLarge> {
    let mut writer = Writer::packet(SERVER_MAGIC, out);
    writer.u8(code::SEND_HEADERS);
    writer.u16(status.as_u16());
    writer.string(reason);
    let count_at = writer.reserve_u16();
    let mut count = 0_u16;
    for (name, value) in headers {
        if field::is_hop_by_hop(name) {
            continue;
        }
        fields::encode_name(name, &code::RESPONSE_FIELDS, &mut writer);
        writer.string(value.as_bytes());
        count = count.saturating_add(1);
    }
    writer.fill(count_at, count);
    writer.finish(size.payload_max())
}
