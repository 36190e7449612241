//! FORWARD_REQUEST: the head of a request.
//!
//! Fixed fields, counted header fields, attributes in any order up to `FF`; all in one packet, for
//! there is no continuation. Attributes of unknown number cannot be skipped, because nothing says
//! how long they are: such a request is refused. The shapes decoded here are checked for meaning
//! by the server role, and the encoder writes only what every deployed container reads.

use bytes::BytesMut;
use catamaran_message::Traits;
use catamaran_message::name::{Protocol, TRANSFER_ENCODING};
use http::{Method, Version};

use crate::client::{Attribute, ClientConfig, Facts};
use crate::code::{self, AttributeCode};
use crate::error::DecodeError;
use crate::message::fields::{self, ReceivedFields};
use crate::packet::CLIENT_MAGIC;
use crate::wire::{TooLarge, Writer};
use crate::{BodyLength, IpText, Request, RequestError};

/// A request head, borrowed from the payload, up to its fields.
#[derive(Clone, Debug)]
pub struct ForwardRequest<'a> {
    /// The method; `None` if attribute `stored_method` names it.
    pub method: Option<Method>,
    /// The client's protocol as text.
    pub protocol: Option<&'a [u8]>,
    /// The path, still undecoded.
    pub uri: Option<&'a [u8]>,
    /// The client's address.
    pub remote_addr: Option<&'a [u8]>,
    /// The client's host name, which most web servers leave null.
    pub remote_host: Option<&'a [u8]>,
    /// The host that the client asked for.
    pub server_name: Option<&'a [u8]>,
    /// The port that the client asked for.
    pub server_port: u16,
    /// Whether the client came over TLS.
    pub is_ssl: bool,
    /// The fields, which the attributes follow.
    pub fields: ReceivedFields<'a>,
}

impl<'a> ForwardRequest<'a> {
    /// Reads the part of a payload that precedes the fields.
    ///
    /// # Errors
    /// [`DecodeError`] if that part is malformed.
    pub fn decode(payload: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = super::open(payload, code::FORWARD_REQUEST)?;
        let method = match reader.u8()? {
            code::STORED_METHOD => None,
            number => Some(code::method(number).ok_or(DecodeError::MethodCode(number))?),
        };
        Ok(Self {
            method,
            protocol: reader.string()?,
            uri: reader.string()?,
            remote_addr: reader.string()?,
            remote_host: reader.string()?,
            server_name: reader.string()?,
            server_port: reader.u16()?,
            is_ssl: reader.bool()?,
            fields: ReceivedFields::read(reader, Protocol::AjpRequest)?,
        })
    }
}

/// Appends a request head. The caller has checked that the texts may be sent.
///
/// # Errors
/// If it does not fit one packet, or has more fields or longer names than the container takes. Part of it may then
/// have been written.
pub(crate) fn encode(
    request: &Request<'_>,
    facts: &Facts<'_>,
    config: &ClientConfig,
    out: &mut BytesMut,
) -> Result<(), RequestError> {
    let mut writer = Writer::packet(CLIENT_MAGIC, out);
    let method = code::method_code(request.method);
    let remote_addr = IpText::new(facts.remote_ip);
    writer.strings(
        [code::FORWARD_REQUEST, method],
        [
            protocol(facts.version),
            request.path,
            remote_addr.as_bytes(),
        ],
    );
    // The client's host name, which this client role does not look up.
    writer.optional(None);
    writer.string(facts.server_name);
    let [high, low] = facts.server_port.to_be_bytes();
    writer.array([high, low, u8::from(facts.is_ssl)]);
    encode_fields(
        request,
        facts.announce_chunked,
        config.fields_max,
        &mut writer,
    )?;
    if let Some(query) = request.query {
        writer.strings([AttributeCode::QueryString.number()], [query]);
    }
    for attribute in facts.attributes {
        encode_attribute(attribute, &mut writer);
    }
    if method == code::STORED_METHOD {
        let name = request.method.as_str().as_bytes();
        writer.strings([AttributeCode::StoredMethod.number()], [name]);
    }
    writer.u8(code::ATTRIBUTES_END);
    let finished = writer.finish(config.packet_size.payload_max());
    finished.map_err(|TooLarge { bytes, max }| RequestError::HeadTooLarge { bytes, max })
}

/// Appends the fields, at most `max`: those of the request, and our own framing.
fn encode_fields(
    request: &Request<'_>,
    announce_chunked: bool,
    max: usize,
    writer: &mut Writer<'_>,
) -> Result<(), RequestError> {
    let count_at = writer.reserve_u16();
    let mut fields = 0;
    for field in request.headers.without(Traits::FRAMING) {
        // All names with an id are shorter.
        if field.id().is_none() && field.name().len() > FIELD_NAME_BYTES_MAX {
            let (bytes, max) = (field.name().len(), FIELD_NAME_BYTES_MAX);
            return Err(RequestError::FieldNameTooLong { bytes, max });
        }
        fields::encode(field, Protocol::AjpRequest, writer);
        fields += 1;
    }
    match request.body {
        BodyLength::Known(bytes) => {
            let digits = &mut itoa::Buffer::new();
            let length = digits.format(bytes).as_bytes();
            writer.strings(code::CONTENT_LENGTH_OF_REQUEST, [length]);
            fields += 1;
        }
        BodyLength::Unknown if announce_chunked => {
            writer.string(TRANSFER_ENCODING.spelling().as_bytes());
            writer.string(b"chunked");
            fields += 1;
        }
        BodyLength::Unknown => {}
    }
    match u16::try_from(fields) {
        Ok(count) if fields <= max => {
            writer.fill(count_at, count);
            Ok(())
        }
        _ => Err(RequestError::TooManyFields { fields, max }),
    }
}

fn encode_attribute(attribute: &Attribute<'_>, writer: &mut Writer<'_>) {
    let code = attribute.code().number();
    match *attribute {
        Attribute::SslKeySize(bits) => {
            let [high, low] = bits.to_be_bytes();
            writer.array([code, high, low]);
        }
        Attribute::LocalAddr(ip) => {
            writer.strings([code], [b"AJP_LOCAL_ADDR", IpText::new(ip).as_bytes()]);
        }
        Attribute::RemotePort(port) => {
            let digits = &mut itoa::Buffer::new();
            writer.strings([code], [b"AJP_REMOTE_PORT", digits.format(port).as_bytes()]);
        }
        Attribute::Request { name, value } => writer.strings([code], [name, value]),
        Attribute::RemoteUser(value)
        | Attribute::AuthType(value)
        | Attribute::JvmRoute(value)
        | Attribute::SslCert(value)
        | Attribute::SslCipher(value)
        | Attribute::SslSession(value)
        | Attribute::Secret(value) => writer.strings([code], [value]),
    }
}

/// The version of HTTP in words of AJP13.
fn protocol(version: Version) -> &'static [u8] {
    match version {
        Version::HTTP_10 => b"HTTP/1.0",
        Version::HTTP_2 => b"HTTP/2.0",
        _ => b"HTTP/1.1",
    }
}

/// The longest field name that every container reads: Undertow keeps 255 bytes.
const FIELD_NAME_BYTES_MAX: usize = 255;
