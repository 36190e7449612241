//! The fields that the front adds to a request. A list that a proxy has begun (`Via`, `X-Forwarded-For`) is extended in
//! its place.

use std::net::IpAddr;

use catamaran_message::name::{
    FORWARDED, TRACEPARENT, TRACESTATE, VIA, X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PORT,
    X_FORWARDED_PROTO,
};
use catamaran_message::{Fields, NameRef, Traits};
use catamaran_upstream::IpText;
use http::Version;

use crate::exchange::fields::forwarded::Sender;
use crate::exchange::fields::passage;
use crate::request_id::RequestId;
use crate::traces::Trace;
use crate::via::Via;

/// The front's own fields for one request. They are added before a backend is asked: an answer from a stored response
/// does not need them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnFields<'s> {
    /// The facts about the client; `None` if the backend is not told in fields.
    pub(crate) client: Option<ForwardedClient>,
    pub(crate) via: Option<&'s Via>,
    /// The name of the field for the request's id, and the id.
    pub(crate) id: Option<(NameRef<'s>, RequestId)>,
    /// The trace of which the request is part; `None`: what the client says of traces is passed on.
    pub(crate) trace: Option<&'s Trace>,
}

/// The facts about the client that a backend over HTTP gets in fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForwardedClient {
    pub(crate) sender: Sender,
    /// The port that the client used.
    pub(crate) port: u16,
}

impl OwnFields<'_> {
    /// Whether [`Self::add_to`] may add or change a field of this name; `true` for every field that says who the client
    /// is.
    pub(crate) fn has(&self, name: NameRef<'_>) -> bool {
        let is_of_client = name.traits().has_any(Traits::CLAIM);
        let is_of_trace = name.is(TRACEPARENT) || name.is(TRACESTATE);
        is_of_client
            || name.is(VIA)
            || self.id.is_some_and(|(its, _)| its.is(name))
            || self.trace.is_some() && is_of_trace
    }

    /// Adds the fields to those of a request. `host` is its `Host`, and `version` the version of HTTP by which it was
    /// received.
    pub(crate) fn add_to(&self, headers: &mut Fields, host: &[u8], version: Version) {
        if let Some(client) = &self.client {
            client.add_to(headers, host);
        }
        if let Some(via) = self.via {
            headers.add_element(VIA, via.element(version));
        }
        if let Some((name, id)) = self.id {
            headers.append(name, id.digits());
        }
        if let Some(trace) = self.trace {
            trace.write(headers);
        }
    }
}

impl ForwardedClient {
    /// Adds `X-Forwarded-*`. If a trusted proxy wrote `Forwarded`, adds an element to it. Such fields of anybody else
    /// were removed by [`crate::exchange::fields::clean::clean_request`].
    fn add_to(&self, headers: &mut Fields, host: &[u8]) {
        let Sender { peer, identity } = &self.sender;
        let ip = peer.address.ip().to_canonical();
        headers.add_element(X_FORWARDED_FOR, IpText::new(ip).as_bytes());
        headers.insert(X_FORWARDED_PROTO, passage::scheme(identity.secure));
        headers.insert(X_FORWARDED_PORT, itoa::Buffer::new().format(self.port));
        if !headers.contains(X_FORWARDED_HOST) {
            headers.append(X_FORWARDED_HOST, host);
        }
        if headers.contains(FORWARDED) {
            let proto = if identity.secure { "https" } else { "http" };
            let node = match ip {
                IpAddr::V4(ip) => format!("for={ip};proto={proto}"),
                IpAddr::V6(ip) => format!("for=\"[{ip}]\";proto={proto}"),
            };
            headers.add_element(FORWARDED, node);
        }
    }
}

#[cfg(test)]
mod tests;
