//! From each protocol's head to the one [`Request`] that applications see, and whom to believe.
//!
//! AJP heads are claims of a front: the secret proves it, and a peer that proved nothing is believed
//! about identity and TLS only if it is on this machine (CVE-2026-15554).

use bytes::Bytes;
use catamaran_ajp as ajp;
use catamaran_http1 as http1;
use http::{StatusCode, Version};

use super::{Peer, Refusal};
use crate::{
    attribute::{LOCAL_ADDR, REMOTE_PORT, SSL_PROTOCOL},
    config::{Config, Protocol},
    handler::{Origin, Request, Tls},
};

/// The request of an AJP head.
///
/// # Errors
/// 403 for a wrong or missing secret, and for a request attribute that is not allowed.
pub(super) fn from_ajp(
    head: ajp::RequestHead,
    peer: &Peer,
    config: &Config,
) -> Result<Request, Refusal> {
    let ajp::RequestHead { attributes, .. } = head;
    let proved = prove(&attributes, config)?;
    if attributes
        .other
        .iter()
        .any(|(name, _)| !config.allowed_request_attributes.allows(name))
    {
        return Err(Refusal::new(StatusCode::FORBIDDEN, "attribute"));
    }
    let trusted = proved || peer.is_local();
    let tls = |value: Option<Bytes>| value.filter(|_| trusted);
    let mut other = attributes.other;
    let remote_port = take(&mut other, REMOTE_PORT);
    let local_addr = take(&mut other, LOCAL_ADDR);
    let protocol = take(&mut other, SSL_PROTOCOL);
    let secure = head.is_ssl && trusted;
    let (server_name, server_port) = match head.server_name.is_empty() {
        true => (local_name(peer), local_port(peer, secure)),
        false => (head.server_name, head.server_port),
    };
    Ok(Request {
        method: head.method,
        version: head.protocol,
        path: head.path,
        query: head.query,
        body: head.body.into(),
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
            protocol: tls(protocol),
            cipher: tls(attributes.ssl_cipher),
            session: tls(attributes.ssl_session),
            key_size: attributes.ssl_key_size.filter(|_| trusted),
            certificate: tls(attributes.ssl_cert),
        },
        user: attributes.remote_user.filter(|_| trusted),
        auth_type: attributes.auth_type.filter(|_| trusted),
        route: attributes.jvm_route,
        attributes: other,
        headers: head.headers,
    })
}

/// The request of an HTTP head: all that is known of the client is its address.
pub(super) fn from_http(head: http1::RequestHead, peer: &Peer) -> Request {
    let version = match head.version {
        Version::HTTP_10 => "HTTP/1.0",
        _ => "HTTP/1.1",
    };
    let (server_name, server_port) = match head.authority {
        Some(authority) => (authority.host, authority.port.unwrap_or(80)),
        None => (local_name(peer), local_port(peer, false)),
    };
    Request {
        method: head.method,
        version: Bytes::from_static(version.as_bytes()),
        path: head.target.path,
        query: head.target.query,
        headers: head.headers,
        body: head.body.into(),
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
    }
}

/// Whether the peer proved to be a front by the secret; an error if it had to and did not.
fn prove(attributes: &ajp::Attributes, config: &Config) -> Result<bool, Refusal> {
    let Some(secret) = &config.secret else {
        return Ok(false);
    };
    match &attributes.secret {
        Some(proof) if secret.is_proved_by(proof) => Ok(true),
        Some(_) => Err(Refusal::new(StatusCode::FORBIDDEN, "secret-wrong")),
        None => Err(Refusal::new(StatusCode::FORBIDDEN, "secret-missing")),
    }
}

/// Takes an attribute out; of several with one name the last counts, as in Tomcat.
fn take(attributes: &mut Vec<(Bytes, Bytes)>, name: &[u8]) -> Option<Bytes> {
    let mut found = None;
    attributes.retain_mut(|(key, value)| {
        let wanted = *key == name;
        if wanted {
            found = Some(std::mem::take(value));
        }
        !wanted
    });
    found
}

fn decimal(text: &[u8]) -> Option<u16> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn remote_addr(peer: &Peer) -> Option<Bytes> {
    peer.remote_ip().map(|ip| Bytes::from(ip.to_string()))
}

fn local_addr_of(peer: &Peer) -> Option<Bytes> {
    peer.local()
        .map(|address| Bytes::from(address.ip().to_canonical().to_string()))
}

fn local_name(peer: &Peer) -> Bytes {
    local_addr_of(peer).unwrap_or(Bytes::from_static(b"localhost"))
}

fn local_port(peer: &Peer, secure: bool) -> u16 {
    peer.local()
        .map_or(if secure { 443 } else { 80 }, |address| address.port())
}
