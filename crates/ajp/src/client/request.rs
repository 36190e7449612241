//! The request as a web server hands it to the codec, and what may not be sent.
//!
//! Containers pass much on to the application unseen: Tomcat delivers line breaks in header values
//! (which [`http::HeaderMap`] rules out already). So every text is checked here, before a byte is
//! written; no container's leniency is relied on.

use std::fmt;
use std::net::IpAddr;

use http::{HeaderMap, Method};

use crate::code::AttributeCode;
use crate::{BodyLength, RequestError, field};

/// One request's head, borrowed from the caller.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The method. All 27 that AJP13 numbers travel as a number, the others as attribute
    /// `stored_method`.
    pub method: &'a Method,
    /// The client's protocol as text, such as `HTTP/1.1` or `HTTP/2.0`.
    pub protocol: &'a str,
    /// The path without query, percent-encoded; starts with `/`, or is `*` for OPTIONS.
    pub path: &'a [u8],
    /// The query without its `?`; `None` if there is none, which differs from an empty one.
    pub query: Option<&'a [u8]>,
    /// The client's IP address as text.
    pub remote_addr: &'a [u8],
    /// The client's host name, if it was looked up; usually not.
    pub remote_host: Option<&'a str>,
    /// The host that the client asked for. `headers` should have a Host that agrees.
    pub server_name: &'a [u8],
    /// The port that the client asked for.
    pub server_port: u16,
    /// Whether the client came over TLS.
    pub is_ssl: bool,
    /// End-to-end fields. Content-Length and Transfer-Encoding in it are ignored: `body` rules.
    /// Several Cookie fields, which HTTP/2 clients send, become one.
    pub headers: &'a HeaderMap,
    /// How long the body is. A known length, zero too, is written as Content-Length; without one
    /// the container asks for every packet.
    pub body: BodyLength,
    /// For an unknown length, write `Transfer-Encoding: chunked`. Without it Undertow takes the
    /// request for one without a body, and Tomcat reads no parameters from it.
    pub announce_chunked: bool,
    /// Attributes besides the query and the stored method, which are written by themselves.
    pub attributes: &'a [Attribute<'a>],
}

/// One attribute of a request.
///
/// Its `Debug` shows the code alone: secrets and certificates do not belong in logs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Attribute<'a> {
    /// The user whom the web server authenticated. Tomcat heeds it with
    /// `tomcatAuthentication="false"` only.
    RemoteUser(&'a [u8]),
    /// How the user was authenticated; as [`Attribute::RemoteUser`].
    AuthType(&'a [u8]),
    /// The route of the backend that was chosen.
    JvmRoute(&'a [u8]),
    /// The client's certificate as PEM; its chain may follow.
    SslCert(&'a [u8]),
    /// The name of the TLS cipher.
    SslCipher(&'a [u8]),
    /// The TLS session id in hexadecimal.
    SslSession(&'a [u8]),
    /// The cipher's key size in bits.
    SslKeySize(u16),
    /// The secret that Tomcat's `secret` demands with every request.
    Secret(&'a [u8]),
    /// The address that the client connected to: the named attribute `AJP_LOCAL_ADDR`.
    LocalAddr(IpAddr),
    /// The client's port: the named attribute `AJP_REMOTE_PORT`.
    RemotePort(u16),
    /// Another named attribute. Tomcat refuses names that it does not know with 403, unless its
    /// `allowedRequestAttributesPattern` matches.
    Request {
        /// Its name, such as `AJP_SSL_PROTOCOL`.
        name: &'a [u8],
        /// Its value.
        value: &'a [u8],
    },
}

impl Attribute<'_> {
    pub(crate) fn code(&self) -> AttributeCode {
        match self {
            Self::RemoteUser(_) => AttributeCode::RemoteUser,
            Self::AuthType(_) => AttributeCode::AuthType,
            Self::JvmRoute(_) => AttributeCode::JvmRoute,
            Self::SslCert(_) => AttributeCode::SslCert,
            Self::SslCipher(_) => AttributeCode::SslCipher,
            Self::SslSession(_) => AttributeCode::SslSession,
            Self::SslKeySize(_) => AttributeCode::SslKeySize,
            Self::Secret(_) => AttributeCode::Secret,
            Self::LocalAddr(_) | Self::RemotePort(_) | Self::Request { .. } => {
                AttributeCode::ReqAttribute
            }
        }
    }

    /// Whether the attribute may be sent. Values that may span lines, such as certificates, must
    /// only be free of zero bytes.
    fn is_sendable(&self) -> bool {
        match *self {
            Self::SslKeySize(_) | Self::LocalAddr(_) | Self::RemotePort(_) => true,
            Self::SslCert(value) | Self::Secret(value) => !value.contains(&0),
            Self::Request { name, value } => {
                !name.is_empty() && !field::has_control(name) && !value.contains(&0)
            }
            Self::RemoteUser(value)
            | Self::AuthType(value)
            | Self::JvmRoute(value)
            | Self::SslCipher(value)
            | Self::SslSession(value) => !field::has_control(value),
        }
    }
}

impl fmt::Debug for Attribute<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Attribute").field(&self.code()).finish()
    }
}

impl Request<'_> {
    /// Checks the texts that the encoder of FORWARD_REQUEST takes for granted, and the length.
    pub(super) fn check(&self) -> Result<(), RequestError> {
        self.check_target()?;
        self.check_texts()?;
        match self.body {
            BodyLength::Known(length) if i64::try_from(length).is_err() => {
                Err(RequestError::BodyTooLong)
            }
            _ => Ok(()),
        }
    }

    fn check_target(&self) -> Result<(), RequestError> {
        let is_asterisk = self.path == b"*" && self.method == Method::OPTIONS;
        if self.path.first() != Some(&b'/') && !is_asterisk {
            return Err(RequestError::Path);
        }
        let is_unsafe = |text| field::has_byte(text, |byte| byte <= b' ' || byte == 0x7F);
        if is_unsafe(self.path) {
            return Err(RequestError::Control("path"));
        }
        if self.query.is_some_and(is_unsafe) {
            return Err(RequestError::Control("query"));
        }
        Ok(())
    }

    fn check_texts(&self) -> Result<(), RequestError> {
        for (part, text) in [
            ("protocol", Some(self.protocol.as_bytes())),
            ("remote address", Some(self.remote_addr)),
            ("remote host", self.remote_host.map(str::as_bytes)),
            ("server name", Some(self.server_name)),
        ] {
            if text.is_some_and(field::has_control) {
                return Err(RequestError::Control(part));
            }
        }
        match self.attributes.iter().all(Attribute::is_sendable) {
            true => Ok(()),
            false => Err(RequestError::Control("attributes")),
        }
    }
}
