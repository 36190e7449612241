//! Facts about a request that a web server sends besides the head, and checks of what may be sent.
//!
//! Containers pass many texts on to the application without a check: Tomcat delivers line breaks in
//! header values (which [`catamaran_message::Fields`] rules out already). So every other text is
//! checked here, before a byte is written.

use std::fmt;
use std::net::IpAddr;

use http::{Method, Version};

use crate::code::AttributeCode;
use crate::{BodyLength, Request, RequestError, field};

/// The parts of FORWARD_REQUEST besides the head: facts about the client's connection, which the
/// container cannot see, and how the body is announced.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The version of HTTP that the client speaks.
    pub version: Version,
    /// The client's IP address.
    pub remote_ip: IpAddr,
    /// The host that the client asked for. The head should have a Host that agrees.
    pub server_name: &'a [u8],
    /// The port that the client asked for.
    pub server_port: u16,
    /// Whether the client came over TLS.
    pub is_ssl: bool,
    /// Whether to announce a body of unknown length by `Transfer-Encoding: chunked`. Without it
    /// Undertow takes the request for one without a body, and Tomcat reads no parameters from it.
    pub announce_chunked: bool,
    /// Attributes besides the query and the stored method, which the codec writes itself.
    pub attributes: &'a [Attribute<'a>],
}

/// One attribute of a request.
///
/// Its `Debug` shows the code alone: secrets and certificates do not belong in logs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Attribute<'a> {
    /// The user that the web server authenticated. Tomcat uses it only with
    /// `tomcatAuthentication="false"`.
    RemoteUser(&'a [u8]),
    /// How the user was authenticated; Tomcat uses it as [`Attribute::RemoteUser`].
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
        /// The attribute's name, such as `AJP_SSL_PROTOCOL`.
        name: &'a [u8],
        /// The attribute's value.
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
                !name.is_empty() && field::is_value_text(name) && !value.contains(&0)
            }
            Self::RemoteUser(value)
            | Self::AuthType(value)
            | Self::JvmRoute(value)
            | Self::SslCipher(value)
            | Self::SslSession(value) => field::is_value_text(value),
        }
    }
}

impl fmt::Debug for Attribute<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Attribute").field(&self.code()).finish()
    }
}

/// Checks the texts of a request, which the encoder of FORWARD_REQUEST does not check, and the
/// body's length.
pub(super) fn check(request: &Request<'_>, facts: &Facts<'_>) -> Result<(), RequestError> {
    check_target(request)?;
    check_texts(facts)?;
    match request.body {
        BodyLength::Known(length) if i64::try_from(length).is_err() => {
            Err(RequestError::BodyTooLong)
        }
        _ => Ok(()),
    }
}

fn check_target(request: &Request<'_>) -> Result<(), RequestError> {
    let is_asterisk = request.path == b"*" && request.method == Method::OPTIONS;
    if request.path.first() != Some(&b'/') && !is_asterisk {
        return Err(RequestError::Path);
    }
    let is_safe = |text| field::are_all(text, |byte| (byte > b' ') & (byte != 0x7F));
    if !is_safe(request.path) {
        return Err(RequestError::Control("path"));
    }
    if !request.query.is_none_or(is_safe) {
        return Err(RequestError::Control("query"));
    }
    Ok(())
}

fn check_texts(facts: &Facts<'_>) -> Result<(), RequestError> {
    if !field::is_value_text(facts.server_name) {
        return Err(RequestError::Control("server name"));
    }
    if !facts.attributes.iter().all(Attribute::is_sendable) {
        return Err(RequestError::Control("attributes"));
    }
    Ok(())
}
