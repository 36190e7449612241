//! Who the client is.
//!
//! Only a trusted proxy is believed. Fields about a client's identity from anybody else are removed,
//! for both protocols. Over HTTP/1.1 the front then writes its own fields (see
//! [`crate::exchange::fields::own`]); over AJP13 the protocol has fields for the same facts.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use bytes::Bytes;
use catamaran_message::name::{
    X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PORT, X_FORWARDED_PROTO,
};
use catamaran_message::{Authority, Fields, Id, RequestHead, Scheme};
use ipnet::IpNet;

use crate::peer::PeerFacts;
use crate::trust::is_trusted;
use crate::version;

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
    /// Whether its client came over TLS, or it says in `:scheme` that its client did and is trusted.
    pub(crate) secure: bool,
}

impl Peer {
    /// The peer that sent a request, by the networks that are trusted at the moment.
    pub(crate) fn new(client: &PeerFacts, head: &RequestHead, networks: &[IpNet]) -> Self {
        let trusted = is_trusted(networks, client.remote.ip());
        let told = told_scheme(head).filter(|_| trusted);
        Self {
            address: client.remote,
            trusted,
            secure: match told {
                Some(scheme) => scheme == Scheme::Https,
                None => client.secure,
            },
        }
    }
}

/// Who sent a request: the other end of its connection, and the client behind that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sender {
    pub(crate) peer: Peer,
    pub(crate) identity: Identity,
}

impl Sender {
    /// Reads who sent a request from its head as received.
    #[inline]
    pub(crate) fn new(client: &PeerFacts, head: &RequestHead, networks: &[IpNet]) -> Self {
        let peer = Peer::new(client, head, networks);
        Self {
            identity: identify(&peer, networks, &head.headers),
            peer,
        }
    }
}

/// The scheme that the peer itself says, for whom it may stand: a balancer that ends TLS and speaks
/// HTTP/2 in clear says `https`. The URL in the first line of a request of HTTP/1.1 is no such word,
/// since proxies pass it on as clients write it.
pub(crate) fn told_scheme(head: &RequestHead) -> Option<Scheme> {
    let scheme = head.target.scheme?;
    version::has_streams(head.version).then_some(scheme)
}

/// Reads who the client is. Only a trusted proxy's fields are read.
#[inline]
pub(crate) fn identify(peer: &Peer, networks: &[IpNet], headers: &Fields) -> Identity {
    let mut identity = Identity {
        ip: match peer.address.ip() {
            ip @ IpAddr::V4(_) => ip,
            IpAddr::V6(ip) => canonical(ip),
        },
        port: (peer.address.port() != 0).then_some(peer.address.port()),
        secure: peer.secure,
    };
    if peer.trusted {
        identity.believe_proxy(networks, headers);
    }
    identity
}

/// An address of IPv6, or of IPv4 if it is one mapped into IPv6. Apart, since it takes many instructions.
#[inline(never)]
fn canonical(ip: Ipv6Addr) -> IpAddr {
    ip.to_canonical()
}

impl Identity {
    /// Changes that of a trusted proxy to what it says of its client. Apart, since most peers are none.
    #[inline(never)]
    fn believe_proxy(&mut self, networks: &[IpNet], headers: &Fields) {
        // `X-Forwarded-Proto` wins over `:scheme`: a proxy writes the one itself, and may have the other from its
        // client. A word that is no scheme says nothing.
        let told = last_element(headers, X_FORWARDED_PROTO).and_then(Scheme::of_word);
        if let Some(scheme) = told {
            self.secure = scheme == Scheme::Https;
        }
        if let Some(ip) = client_address(networks, headers) {
            self.ip = ip;
            self.port = None;
        }
    }
}

/// The port that the client used, as far as is known: what a trusted proxy says, else that of the host
/// that was asked for, else that of the connection. `local` has port 0 for a Unix socket.
pub(crate) fn client_port(
    sender: &Sender,
    headers: &Fields,
    own: Option<&Authority>,
    local: SocketAddr,
) -> u16 {
    let Sender { peer, identity } = sender;
    let default = if identity.secure { 443 } else { 80 };
    let asked = peer
        .trusted
        .then(|| asked_of_proxy(headers, own, identity.secure));
    match (asked.flatten().as_ref().or(own), local.port()) {
        (Some(authority), _) => authority.port.unwrap_or(default),
        (None, 0) => default,
        (None, port) => port,
    }
}

/// The host and port that a trusted proxy was asked for, by its `X-Forwarded-Host` and `-Port`. If it
/// sent only one of them, the other is that of `own`, the proxy's own request. `None` if it sent
/// neither.
pub(crate) fn asked_of_proxy(
    headers: &Fields,
    own: Option<&Authority>,
    secure: bool,
) -> Option<Authority> {
    let host = last_element(headers, X_FORWARDED_HOST)
        .and_then(|text| Authority::parse(&Bytes::copy_from_slice(text)).ok());
    let port = last_element(headers, X_FORWARDED_PORT)
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
fn last_element(headers: &Fields, name: Id) -> Option<&[u8]> {
    let line = headers.get_all(name).next_back()?;
    let element = line.rsplit(|&byte| byte == b',').next()?.trim_ascii();
    (!element.is_empty()).then_some(element)
}

/// The last address in `X-Forwarded-For` that is not a trusted proxy's own, else the first. An entry
/// that is no address ends the search, because the entries left of it cannot be trusted.
fn client_address(networks: &[IpNet], headers: &Fields) -> Option<IpAddr> {
    let lines: Vec<&[u8]> = headers.get_all(X_FORWARDED_FOR).collect();
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

#[cfg(test)]
pub(crate) mod tests;
