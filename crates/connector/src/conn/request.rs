//! Converts the head of either protocol into the one [`Request`] that applications get, and decides which of its claims
//! are trusted.
//!
//! An AJP head contains claims of a front. A front that sent the secret is trusted; any other peer is trusted about
//! identity and TLS only if it is listed (CVE-2026-15554). Path, query and host that came over AJP must obey the rules
//! of an HTTP request line and Host field, so an application gets the same request over either protocol.

use std::net::IpAddr;

use bytes::Bytes;
use catamaran_ajp as ajp;
use catamaran_http1 as http1;
use catamaran_message::name::HOST;
use catamaran_message::{Authority, Fields, RequestHead, Scheme, Target};
use http::{Method, StatusCode, Version};

use super::{Peer, Refusal};
use crate::attribute::{LOCAL_ADDR, REMOTE_PORT, SSL_PROTOCOL};
use crate::confidential;
use crate::config::{Config, Protocol, UriForm};
use crate::handler::{BodyLength, Origin, Request, Response, Tls};

/// Converts an AJP head into a request.
///
/// # Errors
/// 403 for a wrong or missing secret, and for a request attribute that is not allowed; 405 for CONNECT; 400 for a path,
/// query or Host that an HTTP request could not have; 413 for a body that is too long.
pub(super) fn from_ajp(
    head: Box<ajp::RequestHead>,
    peer: &Peer,
    config: &Config,
) -> Result<Box<Request>, Refusal> {
    let attributes = head.attributes;
    let has_secret = check_secret(&attributes, config)?;
    check_attributes(&attributes.other, config)?;
    let encoded_path = match config.uri {
        UriForm::Encoded => head.path,
        UriForm::Decoded => escape(&head.path),
    };
    let (path, query) = check_target(&head.method, encoded_path, head.query)?;
    let host = check_host(&head.headers)?;
    check_announced(head.body, config)?;

    // What a front says about users and TLS counts only if the front is trusted.
    let is_trusted = has_secret || config.trusted_peers.contains(peer.remote_ip());
    let is_user_trusted = is_trusted && !config.tomcat_authentication;
    let trusted_ssl = attributes.ssl.filter(|_| is_trusted);
    let ssl = trusted_ssl.map(|ssl| *ssl).unwrap_or_default();
    let secure = head.is_ssl && is_trusted;

    let mut other_attributes = attributes.other;
    let remote_port = take_attribute(&mut other_attributes, REMOTE_PORT);
    let local_addr = take_attribute(&mut other_attributes, LOCAL_ADDR);
    let ssl_protocol = take_attribute(&mut other_attributes, SSL_PROTOCOL);
    let (server_name, server_port) = match host {
        // A Host without port leaves the port to the front, as Tomcat does.
        Some(host) => (host.host, host.port.unwrap_or(head.server_port)),
        None if head.server_name.is_empty() => (local_name(peer), local_port(peer, secure)),
        None => (head.server_name, head.server_port),
    };
    Ok(Box::new(Request {
        method: head.method,
        version: head.protocol,
        path,
        query,
        body: head.body,
        origin: Origin {
            protocol: Protocol::Ajp,
            remote_addr: head.remote_addr.or_else(|| remote_addr(peer)),
            remote_host: head.remote_host,
            remote_port: remote_port.and_then(|port| decimal(&port)),
            local_addr: local_addr.or_else(|| local_addr_of(peer)),
            server_name,
            server_port,
            secure,
            peer: peer.remote_ip(),
        },
        tls: Tls {
            protocol: ssl_protocol.filter(|_| is_trusted),
            cipher: ssl.cipher,
            session: ssl.session,
            key_size: ssl.key_size,
            certificate: ssl.cert,
        },
        user: attributes.remote_user.filter(|_| is_user_trusted),
        auth_type: attributes.auth_type.filter(|_| is_user_trusted),
        route: attributes.jvm_route,
        attributes: other_attributes,
        headers: head.headers,
    }))
}

/// Converts an HTTP head into a request. All that is known of the client is its address.
///
/// # Errors
/// 413 for a body that is too long, 421 for a target that names `https`: there is no TLS on this connection (RFC 9110
/// section 7.4).
pub(super) fn from_http(
    head: Box<RequestHead>,
    peer: &Peer,
    config: &Config,
) -> Result<Box<Request>, Refusal> {
    if head.target.scheme == Some(Scheme::Https) {
        return Err(Refusal::new(StatusCode::MISDIRECTED_REQUEST, "scheme"));
    }
    check_announced(head.body, config)?;
    let version = match head.version {
        Version::HTTP_10 => "HTTP/1.0",
        _ => "HTTP/1.1",
    };
    let (server_name, server_port) = match head.authority {
        Some(authority) => (authority.host, authority.port.unwrap_or(80)),
        // Not secure: there is no TLS.
        None => (local_name(peer), local_port(peer, false)),
    };
    Ok(Box::new(Request {
        method: head.method,
        version: Bytes::from_static(version.as_bytes()),
        path: head.target.path,
        query: head.target.query,
        headers: head.headers,
        body: head.body,
        origin: Origin {
            protocol: Protocol::Http,
            remote_addr: remote_addr(peer),
            remote_host: None,
            remote_port: peer.remote().map(|address| address.port()),
            local_addr: local_addr_of(peer),
            server_name,
            server_port,
            secure: false,
            peer: peer.remote_ip(),
        },
        tls: Tls::default(),
        user: None,
        auth_type: None,
        route: None,
        attributes: Vec::new(),
    }))
}

/// The redirect to TLS for a plain request whose path is served over TLS only; `None` for other requests.
pub(super) fn redirect(request: &Request, config: &Config) -> Option<Response> {
    let is_due = !request.origin.secure && config.confidential.contains(&request.path);
    is_due.then(|| confidential::redirect(request, config.redirect_port))
}

/// Checks that a body may have this many bytes.
///
/// # Errors
/// 413 if it may not.
pub(super) fn check_length(bytes: u64, config: &Config) -> Result<(), Refusal> {
    match config.max_post_size {
        Some(max) if bytes > max.get() => Err(Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body-too-large",
        )),
        _ => Ok(()),
    }
}

fn check_announced(body: BodyLength, config: &Config) -> Result<(), Refusal> {
    match body {
        BodyLength::Known(bytes) => check_length(bytes, config),
        BodyLength::Unknown => Ok(()),
    }
}

/// Checks the secret: `true` if the request has it, `false` if none is configured.
///
/// # Errors
/// 403 if the secret is wrong or missing.
fn check_secret(attributes: &ajp::Attributes, config: &Config) -> Result<bool, Refusal> {
    let Some(secret) = &config.secret else {
        return Ok(false);
    };
    match &attributes.secret {
        Some(proof) if secret.is_proved_by(proof) => Ok(true),
        Some(_) => Err(Refusal::new(StatusCode::FORBIDDEN, "secret-wrong")),
        None => Err(Refusal::new(StatusCode::FORBIDDEN, "secret-missing")),
    }
}

/// Checks and escapes a path and a query, so that they could stand in the request line of HTTP.
fn check_target(
    method: &Method,
    path: Bytes,
    query: Option<Bytes>,
) -> Result<(Bytes, Option<Bytes>), Refusal> {
    if *method == Method::CONNECT {
        return Err(http1::Fault::Connect.into());
    }
    if *method == Method::OPTIONS && path == b"*"[..] {
        // The one request line whose target does not begin with `/`.
        return Ok((path, None));
    }
    let target = Target::from_parts(path, query).map_err(http1::Fault::from)?;
    Ok((target.path, target.query))
}

/// Refuses a request with an attribute that the configuration does not allow.
fn check_attributes(attributes: &[(Bytes, Bytes)], config: &Config) -> Result<(), Refusal> {
    for (name, _) in attributes {
        if !config.allowed_request_attributes.allows(name) {
            return Err(Refusal::new(StatusCode::FORBIDDEN, "attribute"));
        }
    }
    Ok(())
}

/// Percent-encodes a decoded path: all bytes that are not plain characters of a path, `%` included.
fn escape(path: &[u8]) -> Bytes {
    /// Letters and digits apart, the characters of a path (RFC 3986, section 3.3).
    const PLAIN: &[u8] = b"-._~!$&'()*+,;=:@/";
    // The target of `OPTIONS *` is no path.
    if path == b"*" {
        return Bytes::from_static(b"*");
    }
    let mut escaped = Vec::with_capacity(path.len());
    for byte in path {
        if byte.is_ascii_alphanumeric() || PLAIN.contains(byte) {
            escaped.push(*byte);
        } else {
            escaped.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
    escaped.into()
}

/// The host that the client asked for, from the Host field; `None` if there is none.
///
/// # Errors
/// 400 for a malformed Host, or several.
fn check_host(headers: &Fields) -> Result<Option<Authority>, Refusal> {
    // `only` gives nothing if there are several.
    match headers.only(HOST).map(|host| headers.share(host)) {
        Some(host) => Ok(Some(Authority::parse(&host).map_err(http1::Fault::from)?)),
        None if headers.contains(HOST) => Err(http1::Fault::HostDuplicate.into()),
        None => Ok(None),
    }
}

/// Removes an attribute and returns its value; of several with this name the last, as in Tomcat.
fn take_attribute(attributes: &mut Vec<(Bytes, Bytes)>, name: &[u8]) -> Option<Bytes> {
    let mut last_value = None;
    attributes.retain_mut(|(key, value)| {
        let is_named = *key == name;
        if is_named {
            last_value = Some(std::mem::take(value));
        }
        !is_named
    });
    last_value
}

fn decimal(text: &[u8]) -> Option<u16> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn remote_addr(peer: &Peer) -> Option<Bytes> {
    peer.remote_ip().map(text_of)
}

fn local_addr_of(peer: &Peer) -> Option<Bytes> {
    peer.local()
        .map(|address| text_of(address.ip().to_canonical()))
}

fn local_name(peer: &Peer) -> Bytes {
    local_addr_of(peer).unwrap_or(Bytes::from_static(b"localhost"))
}

/// The port that the connection came to; on a Unix socket the default of the scheme.
fn local_port(peer: &Peer, secure: bool) -> u16 {
    match peer.local() {
        Some(address) => address.port(),
        None if secure => 443,
        None => 80,
    }
}

fn text_of(address: IpAddr) -> Bytes {
    Bytes::copy_from_slice(ajp::IpText::new(address).as_bytes())
}
