//! Who the client is, and how the backend is told.
//!
//! Only a trusted proxy is believed. Fields about a client's identity from anybody else are removed,
//! for both protocols. Over HTTP/1.1 the front then writes its own fields; over AJP13 the protocol
//! has fields for the same facts.

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use catamaran_message::Authority;
use catamaran_upstream::IpText;
use http::HeaderMap;
use http::header::{Entry, FORWARDED, HeaderName, HeaderValue, VIA};
use ipnet::IpNet;

use crate::exchange::certificate;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PORT: HeaderName = HeaderName::from_static("x-forwarded-port");

/// Fields by which proxies and CDNs tell the client's address, besides `X-Forwarded-*`.
const CLAIMS: [&str; 6] = [
    "forwarded",
    "x-forwarded",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "true-client-ip",
];

/// The client as the application should see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Its address: the peer's, or what trusted proxies say.
    pub(crate) ip: IpAddr,
    /// Its port, known only for a peer that is the client itself.
    pub(crate) port: Option<u16>,
    /// Whether it came over TLS, here or at a trusted proxy.
    pub(crate) secure: bool,
}

/// Where a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// The other end; for a Unix socket the loopback address and port 0.
    pub(crate) address: SocketAddr,
    /// Whether the peer is in `trusted_proxies`.
    pub(crate) trusted: bool,
    /// Whether it came over TLS.
    pub(crate) secure: bool,
}

impl Peer {
    /// The peer at an address, by the networks that are trusted at the moment.
    pub(crate) fn new(address: SocketAddr, secure: bool, trusted: &[IpNet]) -> Self {
        Self {
            address,
            trusted: is_trusted(trusted, address.ip()),
            secure,
        }
    }
}

/// Whether an address is in one of the networks. An IPv4 address mapped into IPv6 counts as IPv4.
pub(crate) fn is_trusted(networks: &[IpNet], ip: IpAddr) -> bool {
    networks
        .iter()
        .any(|network| network.contains(&ip.to_canonical()))
}

/// Reads who the client is, and removes claims that no trusted proxy made.
pub(crate) fn identify(peer: Peer, networks: &[IpNet], headers: &mut HeaderMap) -> Identity {
    let direct = Identity {
        ip: peer.address.ip().to_canonical(),
        port: (peer.address.port() != 0).then_some(peer.address.port()),
        secure: peer.secure,
    };
    if !peer.trusted {
        remove_claims(headers);
        return direct;
    }
    let secure = is_secure(peer, headers);
    match client_address(networks, headers) {
        Some(ip) => Identity {
            ip,
            port: None,
            secure,
        },
        None => Identity { secure, ..direct },
    }
}

/// Whether the client came over TLS: here, or to a trusted proxy that says so.
pub(crate) fn is_secure(peer: Peer, headers: &HeaderMap) -> bool {
    let told = peer
        .trusted
        .then(|| last_element(headers, &X_FORWARDED_PROTO));
    told.flatten().map_or(peer.secure, |told| told == b"https")
}

/// The host and port that a trusted proxy was asked for, by its `X-Forwarded-Host` and `-Port`. If it
/// sent only one of them, the other is that of `own`, the proxy's own request. `None` if it sent
/// neither.
pub(crate) fn asked_of_proxy(
    headers: &HeaderMap,
    own: Option<&Authority>,
    secure: bool,
) -> Option<Authority> {
    let host = last_element(headers, &X_FORWARDED_HOST)
        .and_then(|text| Authority::parse(&Bytes::copy_from_slice(text)).ok());
    let port = last_element(headers, &X_FORWARDED_PORT)
        .and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok())
        .filter(|&port: &u16| port != 0);
    if host.is_none() && port.is_none() {
        return None;
    }
    let mut asked = host.or_else(|| own.cloned())?;
    let default = if secure { 443 } else { 80 };
    asked.port = port.or(asked.port).filter(|&port| port != default);
    Some(asked)
}

/// The value that the nearest proxy wrote: the last element of the last line. A client may have
/// written the others.
fn last_element<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    let line = headers.get_all(name).iter().next_back()?.as_bytes();
    let element = line.rsplit(|&byte| byte == b',').next()?.trim_ascii();
    (!element.is_empty()).then_some(element)
}

/// The last address in `X-Forwarded-For` that is not a trusted proxy's own, else the first. An entry
/// that is no address ends the search, because the entries left of it cannot be trusted.
fn client_address(networks: &[IpNet], headers: &HeaderMap) -> Option<IpAddr> {
    let lines: Vec<&[u8]> = headers
        .get_all(X_FORWARDED_FOR)
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    let entries = lines
        .iter()
        .rev()
        .flat_map(|line| line.rsplit(|&byte| byte == b','));
    let mut seen = None;
    for entry in entries {
        let Some(ip) = parse_address(entry) else {
            return seen;
        };
        seen = Some(ip);
        if !is_trusted(networks, ip) {
            break;
        }
    }
    seen
}

/// An address, with or without a port, with or without brackets.
fn parse_address(entry: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(entry.trim_ascii()).ok()?;
    let ip = text
        .parse::<IpAddr>()
        .or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip()))
        .or_else(|_| {
            text.trim_start_matches('[')
                .trim_end_matches(']')
                .parse::<IpAddr>()
        });
    ip.ok().map(|ip| ip.to_canonical())
}

fn remove_claims(headers: &mut HeaderMap) {
    remove_fields(headers, is_claim);
}

/// Removes what the client, or a proxy before it, says of its certificate and its TLS.
pub(crate) fn remove_certificate_claims(headers: &mut HeaderMap) {
    remove_fields(headers, |name| certificate::is_claim(name.as_str()));
}

fn remove_fields(headers: &mut HeaderMap, is_doomed: impl Fn(&HeaderName) -> bool) {
    // Most requests have none.
    if headers.keys().any(&is_doomed) {
        let is_doomed = |name: &&HeaderName| is_doomed(name);
        let doomed: Vec<HeaderName> = headers.keys().filter(is_doomed).cloned().collect();
        for name in doomed {
            headers.remove(name);
        }
    }
}

/// Whether a field says who the client is.
fn is_claim(name: &HeaderName) -> bool {
    let name = name.as_str();
    // Most fields are told apart by their first letter.
    match name.as_bytes() {
        [b'f' | b't', ..] => CLAIMS.contains(&name),
        [b'x', ..] => {
            name.starts_with("x-forwarded-")
                || CLAIMS.contains(&name)
                || certificate::is_claim(name)
        }
        [b'c' | b's', ..] => certificate::is_claim(name),
        _ => false,
    }
}

/// Writes our own `X-Forwarded-*` and extends a trusted `Forwarded`, for a backend that speaks
/// HTTP/1.1. `host` is what the client asked for.
pub(crate) fn announce(
    headers: &mut HeaderMap,
    peer: Peer,
    identity: &Identity,
    host: Option<&HeaderValue>,
) {
    let ip = peer.address.ip().to_canonical();
    if let Ok(ip) = HeaderValue::from_bytes(IpText::new(ip).as_bytes()) {
        append_to_list(headers, X_FORWARDED_FOR, &ip);
    }
    let proto = if identity.secure { "https" } else { "http" };
    headers.insert(X_FORWARDED_PROTO, HeaderValue::from_static(proto));
    if let Some(host) = host
        && !headers.contains_key(X_FORWARDED_HOST)
    {
        headers.insert(X_FORWARDED_HOST, host.clone());
    }
    if headers.contains_key(FORWARDED) {
        let node = match ip {
            IpAddr::V4(ip) => format!("for={ip};proto={proto}"),
            IpAddr::V6(ip) => format!("for=\"[{ip}]\";proto={proto}"),
        };
        if let Ok(node) = HeaderValue::try_from(node) {
            append_to_list(headers, FORWARDED, &node);
        }
    }
}

/// The front's element of `Via` (RFC 9110, section 7.6.3), formatted.
#[derive(Clone, Debug)]
pub(crate) struct Via {
    http10: HeaderValue,
    http11: HeaderValue,
    http2: HeaderValue,
}

impl Via {
    /// `None` if the pseudonym cannot stand in a field.
    pub(crate) fn new(pseudonym: &str) -> Option<Self> {
        let element = |version| HeaderValue::try_from(format!("{version} {pseudonym}")).ok();
        Some(Self {
            http10: element("1.0")?,
            http11: element("1.1")?,
            http2: element("2.0")?,
        })
    }

    /// Adds the element to a request of this `version`.
    pub(crate) fn add(&self, headers: &mut HeaderMap, version: http::Version) {
        let element = match version {
            http::Version::HTTP_10 => &self.http10,
            http::Version::HTTP_2 => &self.http2,
            _ => &self.http11,
        };
        append_to_list(headers, VIA, element);
    }
}

/// Makes one field of all lines of `name` and the further `element`.
fn append_to_list(headers: &mut HeaderMap, name: HeaderName, element: &HeaderValue) {
    let mut field = match headers.try_entry(name) {
        Ok(Entry::Occupied(field)) => field,
        Ok(Entry::Vacant(place)) => {
            // A map that is full is one that no codec would have made.
            place.try_insert(element.clone()).ok();
            return;
        }
        Err(_) => return,
    };
    let mut list: Vec<u8> = Vec::new();
    for value in field.iter() {
        list.extend_from_slice(value.as_bytes());
        list.extend_from_slice(b", ");
    }
    list.extend_from_slice(element.as_bytes());
    // Bytes of valid values are valid.
    if let Ok(value) = HeaderValue::from_maybe_shared(Bytes::from(list)) {
        field.insert_mult(value).for_each(drop);
    }
}

#[cfg(test)]
mod tests;
