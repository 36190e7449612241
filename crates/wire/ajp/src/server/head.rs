//! Interprets the head of a request for a container.
//!
//! `message` decodes the packet. This module interprets it and refuses ambiguous lengths,
//! contradicting methods, control characters, invalid paths, and the attributes by which a peer could
//! read any file of an application (CVE-2020-1938). The connector decides whose attributes to trust
//! and what a path may contain.

use std::fmt;

use bytes::Bytes;
use catamaran_message::name::{CONTENT_LENGTH, TRANSFER_ENCODING};
use catamaran_message::{Fields, Traits};
use http::Method;

use crate::code::{ATTRIBUTES_END, AttributeCode};
use crate::error::{DecodeError, FieldFault, RequestFault};
use crate::field::is_value_text as is_line;
use crate::message::fields::ReceivedFields;
use crate::message::forward_request::ForwardRequest;
use crate::wire::Reader;
use crate::{BodyLength, field};

/// The head of a request.
#[derive(Clone, Debug)]
pub struct RequestHead {
    /// The method, such as GET.
    pub method: Method,
    /// The client's protocol as text, such as `HTTP/1.1`; empty if the web server sent none.
    pub protocol: Bytes,
    /// The path as received: percent-encoded, unless the web server decodes it. It starts with `/`,
    /// or is `*` for OPTIONS, and has no control characters; nothing else is checked.
    pub path: Bytes,
    /// The query, without its `?`.
    pub query: Option<Bytes>,
    /// The client's IP address.
    pub remote_addr: Option<Bytes>,
    /// The client's host name; most web servers leave it out.
    pub remote_host: Option<Bytes>,
    /// The host that the client asked for, if there is no Host field; empty if none was sent.
    pub server_name: Bytes,
    /// The port that the client asked for, or that the web server listens on.
    pub server_port: u16,
    /// Whether the client came over TLS, as the web server says.
    pub is_ssl: bool,
    /// The end-to-end fields, without Content-Length and Transfer-Encoding, which became `body`.
    pub headers: Fields,
    /// The length of the body. Without a Content-Length it is unknown: web servers do not announce
    /// that there is no body, so ask for it only when the application reads.
    pub body: BodyLength,
    /// Whether the client sent its body in chunks: then there certainly is one, although `body` is
    /// unknown. Otherwise an unknown length mostly means that there is no body.
    pub is_chunked: bool,
    /// The attributes of the request.
    pub attributes: Attributes,
}

/// The attributes of a request. Where the web server repeats one, the last counts.
///
/// Its `Debug` hides the secret.
#[derive(Clone, Default)]
pub struct Attributes {
    /// The user that the web server authenticated; to be believed only of a trusted web server.
    pub remote_user: Option<Bytes>,
    /// How the user was authenticated.
    pub auth_type: Option<Bytes>,
    /// The route that a balancer chose.
    pub jvm_route: Option<Bytes>,
    /// The client's TLS connection; boxed, since most requests have none.
    pub ssl: Option<Box<Ssl>>,
    /// The shared secret as sent; the connector compares it, in constant time.
    pub secret: Option<Bytes>,
    /// Named attributes in order, repeated ones too.
    pub other: Vec<(Bytes, Bytes)>,
}

/// The client's TLS connection, as the web server describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ssl {
    /// The client's certificate as PEM, possibly with its chain.
    pub cert: Option<Bytes>,
    /// The name of the cipher.
    pub cipher: Option<Bytes>,
    /// The session id.
    pub session: Option<Bytes>,
    /// The cipher's key size in bits.
    pub key_size: Option<u32>,
}

impl fmt::Debug for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attributes")
            .field("remote_user", &self.remote_user)
            .field("auth_type", &self.auth_type)
            .field("jvm_route", &self.jvm_route)
            .field("ssl", &self.ssl)
            .field("has_secret", &self.secret.is_some())
            .field("other", &self.other)
            .finish_non_exhaustive()
    }
}

impl RequestHead {
    /// Reads `payload`, a FORWARD_REQUEST, with at most `fields_max` fields.
    pub(super) fn read(payload: &Bytes, fields_max: usize) -> Result<Self, RequestFault> {
        let mut view = ForwardRequest::decode(payload)?;
        let shared_line = |name, text| shared(name, text, payload, is_line);
        let path = shared_line("path", view.uri)?.unwrap_or_default();
        let protocol = match view.protocol {
            // The usual version as a static text, which does not keep the payload in memory.
            Some(b"HTTP/1.1") => Bytes::from_static(b"HTTP/1.1"),
            unusual => shared_line("protocol", unusual)?.unwrap_or_default(),
        };
        let remote_addr = shared_line("remote address", view.remote_addr)?;
        let remote_host = shared_line("remote host", view.remote_host)?;
        let server_name = shared_line("server name", view.server_name)?.unwrap_or_default();
        let (server_port, is_ssl) = (view.server_port, view.is_ssl);
        let (headers, body, is_chunked) = read_fields(&mut view.fields, payload, fields_max)?;
        let coded_method = view.method.take();
        let received = read_attributes(view, payload)?;
        // Without any, or with two that may differ, the method is not certain.
        let ((Some(method), None) | (None, Some(method))) = (coded_method, received.stored_method)
        else {
            return Err(RequestFault::Method);
        };
        let is_asterisk = path == b"*"[..] && method == Method::OPTIONS;
        if path.first() != Some(&b'/') && !is_asterisk {
            return Err(RequestFault::Path);
        }
        Ok(Self {
            method,
            protocol,
            path,
            query: received.query,
            remote_addr,
            remote_host,
            server_name,
            server_port,
            is_ssl,
            headers,
            body,
            is_chunked,
            attributes: received.attributes,
        })
    }
}

/// Shares `text`, a part of `payload`, if `is_allowed` accepts it.
///
/// # Errors
/// [`RequestFault::Control`], with the text's name.
fn shared(
    name: &'static str,
    text: Option<&[u8]>,
    payload: &Bytes,
    is_allowed: fn(&[u8]) -> bool,
) -> Result<Option<Bytes>, RequestFault> {
    match text {
        Some(text) if !is_allowed(text) => Err(RequestFault::Control(name)),
        text => Ok(text.map(|text| payload.slice_ref(text))),
    }
}

/// Whether a text has no zero byte; it may have several lines, as certificates do.
fn is_opaque(text: &[u8]) -> bool {
    !text.contains(&0)
}

/// Reads the fields: returns them, the length of the body, and whether it is chunked.
fn read_fields(
    fields: &mut ReceivedFields<'_>,
    payload: &Bytes,
    fields_max: usize,
) -> Result<(Fields, BodyLength, bool), RequestFault> {
    let mut headers = Fields::new();
    field::make_room(&mut headers, fields.left(), fields_max)?;
    let mut content_length = None;
    let mut is_chunked = false;
    for received in fields {
        let field = received?;
        let id = field::id(&field)?;
        let value = field::value(&field)?;
        match id {
            Some(CONTENT_LENGTH) => {
                let length = field::decimal(value).ok_or(FieldFault::ContentLength)?;
                if content_length.replace(length).is_some() {
                    return Err(FieldFault::ContentLength.into());
                }
            }
            Some(TRANSFER_ENCODING) => {
                if is_chunked || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(FieldFault::TransferEncoding.into());
                }
                is_chunked = true;
            }
            Some(id) if id.traits().has_any(Traits::HOP_BY_HOP) => {}
            id => field::push(&mut headers, payload, &field, id, value),
        }
    }
    headers.keep(payload.clone());
    match content_length {
        Some(_) if is_chunked => Err(FieldFault::TransferEncoding.into()),
        Some(length) => Ok((headers, BodyLength::Known(length), false)),
        None => Ok((headers, BodyLength::Unknown, is_chunked)),
    }
}

/// The attributes of a request, with the query and the method, which are sent as attributes, too.
#[derive(Default)]
struct ReceivedAttributes {
    attributes: Attributes,
    query: Option<Bytes>,
    stored_method: Option<Method>,
}

/// Reads the attributes, up to the end of the payload; skips fields that were not read.
fn read_attributes(
    view: ForwardRequest<'_>,
    payload: &Bytes,
) -> Result<ReceivedAttributes, RequestFault> {
    let mut received = ReceivedAttributes::default();
    let mut reader = view.fields.into_reader()?;
    loop {
        let number = reader.u8()?;
        if number == ATTRIBUTES_END {
            break;
        }
        let code = AttributeCode::from_number(number).ok_or(DecodeError::AttributeCode(number))?;
        received.take(code, &mut reader, payload)?;
    }
    reader.finish()?;
    Ok(received)
}

impl ReceivedAttributes {
    fn ssl(&mut self) -> &mut Ssl {
        self.attributes.ssl.get_or_insert_default()
    }

    /// Reads and stores the attribute with this code.
    fn take(
        &mut self,
        code: AttributeCode,
        reader: &mut Reader<'_>,
        payload: &Bytes,
    ) -> Result<(), RequestFault> {
        let attributes = &mut self.attributes;
        let mut text = |what, is_allowed| shared(what, reader.string()?, payload, is_allowed);
        match code {
            AttributeCode::RemoteUser => attributes.remote_user = text("remote user", is_line)?,
            AttributeCode::AuthType => attributes.auth_type = text("authentication type", is_line)?,
            AttributeCode::QueryString => self.query = text("query", is_line)?,
            AttributeCode::JvmRoute => attributes.jvm_route = text("route", is_line)?,
            AttributeCode::SslCert => self.ssl().cert = text("certificate", is_opaque)?,
            AttributeCode::SslCipher => self.ssl().cipher = text("cipher", is_line)?,
            AttributeCode::SslSession => self.ssl().session = text("tls session", is_line)?,
            AttributeCode::SslKeySize => self.ssl().key_size = Some(key_size(reader)?),
            AttributeCode::Secret => attributes.secret = text("secret", is_opaque)?,
            AttributeCode::StoredMethod => {
                let method = Method::from_bytes(reader.string()?.unwrap_or_default());
                self.stored_method = Some(method.map_err(|_| RequestFault::Method)?);
            }
            AttributeCode::ReqAttribute => {
                let name = text("attribute name", is_line)?.unwrap_or_default();
                check_attribute_name(&name)?;
                let value = text("attribute value", is_opaque)?.unwrap_or_default();
                attributes.other.push((name, value));
            }
            // No web server sends them, and they would steer the container's routing.
            AttributeCode::Context | AttributeCode::ServletPath => drop(reader.string()?),
        }
        Ok(())
    }
}

/// Refuses a name that a request attribute cannot have, or that redirects the request inside the container.
fn check_attribute_name(name: &[u8]) -> Result<(), RequestFault> {
    if name.is_empty() {
        return Err(RequestFault::AttributeName);
    }
    if INCLUDE_PREFIXES
        .iter()
        .any(|prefix| name.starts_with(prefix))
    {
        return Err(RequestFault::ForbiddenAttribute);
    }
    Ok(())
}

/// Reads a key size: an integer, unless it is the length of digits that follow.
///
/// The two cannot be confused: no attribute has the number of a digit.
fn key_size(reader: &mut Reader<'_>) -> Result<u32, DecodeError> {
    let number = reader.u16()?;
    let starts_digits = reader.rest().first().is_some_and(u8::is_ascii_digit);
    if !starts_digits || number == 0 {
        return Ok(u32::from(number));
    }
    if number > KEY_SIZE_DIGITS_MAX {
        return Err(DecodeError::KeySize);
    }
    let digits = reader.terminated(number)?;
    let size = field::decimal(digits).ok_or(DecodeError::KeySize)?;
    u32::try_from(size).map_err(|_| DecodeError::KeySize)
}

/// Prefixes of attributes that redirect a request inside the container; a request with one is
/// refused.
const INCLUDE_PREFIXES: [&[u8]; 2] = [b"javax.servlet.include.", b"jakarta.servlet.include."];

/// The longest string of digits read as a key size.
const KEY_SIZE_DIGITS_MAX: u16 = 15;
