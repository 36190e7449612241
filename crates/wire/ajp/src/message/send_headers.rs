//! SEND_HEADERS: the head of a response.
//!
//! Status, reason phrase, counted fields. Exactly one opens every response, even one without
//! fields: a web server that gets none may show the fields of the response before.

use bytes::BytesMut;
use catamaran_message::name::Protocol;
use catamaran_message::{BodyLength, Response, Traits};

use crate::code;
use crate::error::DecodeError;
use crate::message::fields::{self, ReceivedFields};
use crate::packet::{PacketSize, SERVER_MAGIC};
use crate::wire::{TooLarge, Writer};

/// A response head, borrowed from the payload.
#[derive(Clone, Debug)]
pub struct SendHeaders<'a> {
    /// The status as sent; any number.
    pub status: u16,
    /// The reason phrase, as sent; Tomcat sends the status in digits.
    pub reason: Option<&'a [u8]>,
    /// The fields; call [`SendHeaders::finish`] after the last one.
    pub fields: ReceivedFields<'a>,
}

impl<'a> SendHeaders<'a> {
    /// Reads the part of a payload that precedes the fields.
    ///
    /// # Errors
    /// [`DecodeError`] if that part is malformed.
    pub fn decode(payload: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = super::open(payload, code::SEND_HEADERS)?;
        Ok(Self {
            status: reader.u16()?,
            reason: reader.string()?,
            fields: ReceivedFields::read(reader, Protocol::AjpResponse)?,
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

/// Appends a response head. Fields that concern one connection only are left out;
/// Content-Length is written from `head.body`, never from the fields.
///
/// # Errors
/// [`TooLarge`] if it does not fit one packet; nothing is written then.
pub fn encode(head: &Response<'_>, size: PacketSize, out: &mut BytesMut) -> Result<(), TooLarge> {
    let mut writer = Writer::packet(SERVER_MAGIC, out);
    writer.u8(code::SEND_HEADERS);
    writer.u16(head.status.as_u16());
    // Old web servers fail without a phrase.
    let usual = head.status.canonical_reason().unwrap_or_default();
    writer.string(head.reason.unwrap_or(usual.as_bytes()));
    let count_at = writer.reserve_u16();
    let mut count = 0_u16;
    for field in head.headers.without(Traits::OF_CONNECTION) {
        fields::encode(field, Protocol::AjpResponse, &mut writer);
        count = count.saturating_add(1);
    }
    if let BodyLength::Known(length) = head.body {
        writer.array(code::CONTENT_LENGTH_OF_RESPONSE);
        writer.decimal(length);
        count = count.saturating_add(1);
    }
    writer.fill(count_at, count);
    writer.finish(size.payload_max())
}
