//! Finds out who the client is: its address and scheme.
//!
//! Only a trusted proxy is believed. Fields about a client's identity from anybody else are removed, whatever
//! protocol the backend speaks. Over HTTP/1.1 the front then writes its own fields (see
//! [`crate::exchange::fields::own`]); AJP13 has fields of its own for the same facts.

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
    /// The client's address: the peer's, or the one that trusted proxies report.
    pub(crate) ip: IpAddr,
    /// The client's port; known only if the peer is the client itself.
    pub(crate) port: Option<u16>,
    /// Whether the client used TLS, to the front or to a trusted proxy.
    pub(crate) secure: bool,
}

/// The other end of a connection: the client itself, or a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// The peer's address; for a Unix socket the loopback address and port 0.
    pub(crate) address: SocketAddr,
    /// Whether the peer is in `trusted_proxies`.
    pub(crate) trusted: bool,
    /// Whether the client used TLS to the front, or a trusted peer reports with `:scheme` that it used TLS.
    pub(crate) secure: bool,
}

impl Peer {
    /// The peer that sent a request. `networks` are those of the proxies that are trusted now.
    pub(crate) fn new(client: &PeerFacts, head: &RequestHead, networks: &[IpNet]) -> Self {
        let trusted = is_trusted(networks, client.remote.ip());
        let reported = reported_scheme(head).filter(|_| trusted);
        Self {
            address: client.remote,
            trusted,
            secure: reported.map_or(client.secure, |scheme| scheme == Scheme::Https),
        }
    }
}

/// The sender of a request: the other end of the connection, and the client behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sender {
    pub(crate) peer: Peer,
    pub(crate) identity: Identity,
}

impl Sender {
    /// Reads the sender of a request from its head as received.
    #[inline]
    pub(crate) fn new(client: &PeerFacts, head: &RequestHead, networks: &[IpNet]) -> Self {
        let peer = Peer::new(client, head, networks);
        Self {
            identity: identify(&peer, networks, &head.headers),
            peer,
        }
    }
}

/// The scheme that the peer itself reports, in `:scheme`: a balancer that ends TLS and speaks HTTP/2 in clear
/// text says `https`.
///
/// The URL in the first line of an HTTP/1.1 request does not count, since proxies pass it on as clients write it.
pub(crate) fn reported_scheme(head: &RequestHead) -> Option<Scheme> {
    let scheme = head.target.scheme?;
    version::has_streams(head.version).then_some(scheme)
}

/// Reads the client's identity. Fields are read only if a trusted proxy sent them.
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

/// The address itself, or the IPv4 address that is mapped into it. Not inlined, because it takes many
/// instructions.
#[inline(never)]
fn canonical(ip: Ipv6Addr) -> IpAddr {
    ip.to_canonical()
}

impl Identity {
    /// The usual port of the scheme that the client used: 443 or 80.
    pub(crate) fn usual_port(&self) -> u16 {
        if self.secure { 443 } else { 80 }
    }

    /// Replaces the identity of a trusted proxy by that of its client, as the proxy reports it. Not inlined,
    /// because most peers are not proxies.
    #[inline(never)]
    fn believe_proxy(&mut self, networks: &[IpNet], headers: &Fields) {
        // `X-Forwarded-Proto` wins over `:scheme`: a proxy writes that field itself, but may pass on its client's
        // `:scheme`. A word that is no scheme is ignored.
        let reported = last_element(headers, X_FORWARDED_PROTO).and_then(Scheme::of_word);
        if let Some(scheme) = reported {
            self.secure = scheme == Scheme::Https;
        }
        if let Some(ip) = client_address(networks, headers) {
            self.ip = ip;
            self.port = None;
        }
    }
}

/// The port that the client used: the one that a trusted proxy reports, else that of the host that was asked for,
/// else that of the connection. `local` has port 0 for a Unix socket.
pub(crate) fn client_port(sender: &Sender, head: &RequestHead, local: SocketAddr) -> u16 {
    let default = sender.identity.usual_port();
    let asked = asked_of_proxy(sender, head);
    if let Some(authority) = asked.as_ref().or(head.authority.as_ref()) {
        return authority.port.unwrap_or(default);
    }
    if local.port() == 0 {
        default
    } else {
        local.port()
    }
}

/// The host and port that the client asked a trusted proxy for, by `X-Forwarded-Host` and `-Port`. If the proxy
/// sent only one of them, the other is taken from the proxy's own request. `None` if it sent neither, or is not
/// trusted.
pub(crate) fn asked_of_proxy(sender: &Sender, head: &RequestHead) -> Option<Authority> {
    if !sender.peer.trusted {
        return None;
    }
    let headers = &head.headers;
    let host = last_element(headers, X_FORWARDED_HOST)
        .and_then(|text| Authority::parse(&Bytes::copy_from_slice(text)).ok());
    let port = last_element(headers, X_FORWARDED_PORT)
        .and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok())
        .filter(|&port: &u16| port != 0);
    if host.is_none() && port.is_none() {
        return None;
    }
    let mut asked = host.or_else(|| head.authority.clone())?;
    let default = sender.identity.usual_port();
    asked.port = port.or(asked.port).filter(|&port| port != default);
    Some(asked)
}

/// The value that the nearest proxy wrote: the last element of the last line; `None` if it is empty or missing. A
/// client may have written the other elements.
fn last_element(headers: &Fields, name: Id) -> Option<&[u8]> {
    let last = headers.elements(name).next_back();
    last.filter(|element| !element.is_empty())
}

/// The client's address: the last one in `X-Forwarded-For` that is not a trusted proxy's, else the first. An
/// entry that is no address ends the search, because the entries before it cannot be trusted.
fn client_address(networks: &[IpNet], headers: &Fields) -> Option<IpAddr> {
    let mut farthest = None;
    for entry in headers.elements(X_FORWARDED_FOR).rev() {
        let Some(ip) = parse_address(entry) else {
            break;
        };
        farthest = Some(ip);
        // A proxy that is not trusted may have made up the entries before its own.
        if !is_trusted(networks, ip) {
            break;
        }
    }
    farthest
}

/// Reads an address, with or without a port or brackets.
fn parse_address(entry: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(entry).ok()?;
    let with_port = text.parse::<SocketAddr>().map(|address| address.ip());
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let ip = with_port.or_else(|_| bare.parse::<IpAddr>());
    ip.ok().map(|ip| ip.to_canonical())
}

#[cfg(test)]
pub(crate) mod tests;
