//! The fields that the front adds to a request. A list that a proxy before us began (`Via`,
//! `X-Forwarded-For`) is extended where it is.

use std::net::IpAddr;

use catamaran_message::Fields;
use catamaran_message::name::{
    FORWARDED, VIA, X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PORT, X_FORWARDED_PROTO,
};
use catamaran_upstream::IpText;
use http::Version;

use crate::exchange::forwarded::{Identity, Peer};
use crate::exchange::passage;
use crate::via::Via;

/// Tells a backend that speaks HTTP/1.1 who the client is: `X-Forwarded-*`, and an element of
/// `Forwarded` if a trusted proxy wrote this field. These fields of anybody else were removed by
/// [`crate::exchange::header::clean_request`]. `port` is the one that the client used, `host` the request's `Host`.
pub(crate) fn announce(
    headers: &mut Fields,
    peer: &Peer,
    identity: &Identity,
    port: u16,
    host: &[u8],
) {
    let ip = peer.address.ip().to_canonical();
    let address = IpText::new(ip);
    if !headers.join(X_FORWARDED_FOR, b", ", Some(address.as_bytes())) {
        headers.append(X_FORWARDED_FOR, address.as_bytes());
    }
    headers.insert(X_FORWARDED_PROTO, passage::scheme(identity.secure));
    headers.insert(X_FORWARDED_PORT, itoa::Buffer::new().format(port));
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

/// Adds the front's element to `Via`.
pub(crate) fn add_via(headers: &mut Fields, via: &Via, version: Version) {
    let element = via.element(version);
    if !headers.join(VIA, b", ", Some(element)) {
        headers.append(VIA, element);
    }
}

#[cfg(test)]
mod tests;
