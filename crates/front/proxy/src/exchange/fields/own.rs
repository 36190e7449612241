//! The fields that the front adds to a request. A list that a proxy has begun (`Via`, `X-Forwarded-For`) is extended in
//! its place.

use std::net::{IpAddr, SocketAddr};

use catamaran_message::name::{
    FORWARDED, VIA, X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PORT, X_FORWARDED_PROTO,
};
use catamaran_message::{Fields, NameRef, RequestHead};
use catamaran_upstream::IpText;
use http::Version;

use crate::exchange::fields::forwarded::{self, Identity, Peer, Sender};
use crate::exchange::fields::passage;
use crate::request_id::RequestId;
use crate::via::Via;

/// The front's own fields for one request. They are added before a backend is asked: an answer from a stored response
/// does not need them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnFields<'s> {
    /// The facts about the client; `None` if the backend is not told in fields.
    pub(crate) told: Option<ToldClient>,
    pub(crate) via: Option<&'s Via>,
    /// The name of the field for the request's id, and the id.
    pub(crate) id: Option<(NameRef<'s>, RequestId)>,
}

/// The facts about the client that a backend over HTTP gets in fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToldClient {
    pub(crate) peer: Peer,
    pub(crate) identity: Identity,
    /// The port that the client used.
    pub(crate) port: u16,
}

impl OwnFields<'_> {
    /// Whether [`Self::add_to`] may add or change a field of this name.
    pub(crate) fn has(&self, name: NameRef<'_>) -> bool {
        let of_client = [
            X_FORWARDED_FOR,
            X_FORWARDED_HOST,
            X_FORWARDED_PORT,
            X_FORWARDED_PROTO,
            FORWARDED,
            VIA,
        ];
        of_client.iter().any(|id| name.is(*id)) || self.id.is_some_and(|(its, _)| its.is(name))
    }

    /// Adds the fields to those of a request. `host` is its `Host`, and `version` the version of HTTP by which it was
    /// received.
    pub(crate) fn add_to(&self, headers: &mut Fields, host: &[u8], version: Version) {
        if let Some(told) = &self.told {
            told.add_to(headers, host);
        }
        if let Some(via) = self.via {
            let element = via.element(version);
            if !headers.join(VIA, b", ", Some(element)) {
                headers.append(VIA, element);
            }
        }
        if let Some((name, id)) = self.id {
            headers.append(name, id.digits());
        }
    }
}

impl ToldClient {
    /// The facts about the client of a request with this head, which came to the address `local`.
    pub(crate) fn new(sender: &Sender, head: &RequestHead, local: SocketAddr) -> Self {
        let own = head.authority.as_ref();
        Self {
            peer: sender.peer,
            identity: sender.identity,
            port: forwarded::client_port(sender, &head.headers, own, local),
        }
    }

    /// Adds `X-Forwarded-*`. If a trusted proxy wrote `Forwarded`, adds an element to it. Such fields of anybody else
    /// were removed by [`crate::exchange::fields::clean::clean_request`].
    fn add_to(&self, headers: &mut Fields, host: &[u8]) {
        let Self {
            peer,
            identity,
            port,
        } = self;
        let ip = peer.address.ip().to_canonical();
        let address = IpText::new(ip);
        if !headers.join(X_FORWARDED_FOR, b", ", Some(address.as_bytes())) {
            headers.append(X_FORWARDED_FOR, address.as_bytes());
        }
        headers.insert(X_FORWARDED_PROTO, passage::scheme(identity.secure));
        headers.insert(X_FORWARDED_PORT, itoa::Buffer::new().format(*port));
        if !headers.contains(X_FORWARDED_HOST) {
            headers.append(X_FORWARDED_HOST, host);
        }
        if headers.contains(FORWARDED) {
            let proto = if identity.secure { "https" } else { "http" };
            let node = match ip {
                IpAddr::V4(ip) => format!("for={ip};proto={proto}"),
                IpAddr::V6(ip) => format!("for=\"[{ip}]\";proto={proto}"),
            };
            headers.join(FORWARDED, b", ", Some(node.as_bytes()));
        }
    }
}

#[cfg(test)]
mod tests;
