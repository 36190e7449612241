//! The fields that the front adds to a request.
//!
//! A map hashes each name and keeps each value in memory of its own, which costs more than the rest of
//! such a field. So the fields stay beside the map. A list that a proxy before us began (`Via`,
//! `X-Forwarded-For`) is extended where it is, in the map.

use std::net::IpAddr;

use arrayvec::ArrayVec;
use bytes::Bytes;
use catamaran_upstream::IpText;
use http::header::{Entry, FORWARDED, HeaderName, HeaderValue, VIA};
use http::{HeaderMap, Version};

use crate::exchange::forwarded::{
    Identity, Peer, X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PORT, X_FORWARDED_PROTO,
};
use crate::exchange::passage;
use crate::request_id::RequestId;
use crate::via::Via;

/// The front's fields of one request, as far as they are not in its map.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnFields<'s> {
    /// What `X-Forwarded-For` says.
    client: Option<IpAddr>,
    /// The value of `X-Forwarded-Proto`.
    scheme: Option<&'static [u8]>,
    /// Whether `X-Forwarded-Host` says what `Host` says.
    tells_host: bool,
    /// The value of `X-Forwarded-Port`.
    port: Option<PortText>,
    via: Option<&'s HeaderValue>,
    /// The field of the request's id, and its value.
    id: Option<(&'s HeaderName, [u8; RequestId::DIGITS])>,
}

/// A port in decimal digits.
#[derive(Clone, Copy, Debug)]
struct PortText {
    digits: [u8; 5],
    len: u8,
}

impl PortText {
    fn new(port: u16) -> Self {
        let mut text = Self {
            digits: [0; 5],
            len: 0,
        };
        // At most 65535.
        for digit in itoa::Buffer::new().format(port).bytes() {
            text.digits[usize::from(text.len)] = digit;
            text.len += 1;
        }
        text
    }

    fn as_bytes(&self) -> &[u8] {
        &self.digits[..usize::from(self.len)]
    }
}

/// Fields as [`catamaran_message::Request::extra`] takes them.
pub(crate) type FieldList<'o> = ArrayVec<(&'o HeaderName, &'o [u8]), COUNT_MAX>;

impl<'s> OwnFields<'s> {
    /// Tells a backend that speaks HTTP/1.1 who the client is: `X-Forwarded-*`, and an element of
    /// `Forwarded` if a trusted proxy wrote this field. These fields of anybody else were removed by
    /// [`crate::exchange::forwarded::remove_claims`]. `port` is the one that the client used.
    pub(crate) fn announce(
        &mut self,
        headers: &mut HeaderMap,
        peer: &Peer,
        identity: &Identity,
        port: u16,
    ) {
        let ip = peer.address.ip().to_canonical();
        self.scheme = Some(passage::scheme(identity.secure));
        self.port = Some(PortText::new(port));
        if !peer.trusted {
            self.client = Some(ip);
            self.tells_host = true;
            return;
        }
        if !extend_list(headers, &X_FORWARDED_FOR, IpText::new(ip).as_bytes()) {
            self.client = Some(ip);
        }
        headers.remove(&X_FORWARDED_PROTO);
        headers.remove(&X_FORWARDED_PORT);
        self.tells_host = !headers.contains_key(&X_FORWARDED_HOST);
        if headers.contains_key(FORWARDED) {
            let proto = if identity.secure { "https" } else { "http" };
            let node = match ip {
                IpAddr::V4(ip) => format!("for={ip};proto={proto}"),
                IpAddr::V6(ip) => format!("for=\"[{ip}]\";proto={proto}"),
            };
            extend_list(headers, &FORWARDED, node.as_bytes());
        }
    }

    /// Adds the front's element to `Via`.
    pub(crate) fn add_via(&mut self, headers: &mut HeaderMap, via: &'s Via, version: Version) {
        let element = via.element(version);
        // Without a hash: there are few.
        let is_begun = headers.keys().any(|name| *name == VIA);
        if !is_begun || !extend_list(headers, &VIA, element.as_bytes()) {
            self.via = Some(element);
        }
    }

    /// Has the field `name`, if there is to be one, say the request's id. The map must not have it.
    pub(crate) fn tell_id(&mut self, name: Option<&'s HeaderName>, id: RequestId) {
        self.id = name.map(|name| (name, id.digits()));
    }

    /// The value of `X-Forwarded-Port`, if there is one.
    pub(crate) fn port(&self) -> Option<&[u8]> {
        self.port.as_ref().map(PortText::as_bytes)
    }

    /// The text of `X-Forwarded-For`, for [`Self::list`].
    pub(crate) fn client(&self) -> Option<IpText> {
        self.client.map(IpText::new)
    }

    /// All of them. `host` is the request's `Host`.
    pub(crate) fn list<'o>(&'o self, client: Option<&'o IpText>, host: &'o [u8]) -> FieldList<'o> {
        let mut list = FieldList::new();
        if let Some(client) = client {
            list.push((&X_FORWARDED_FOR, client.as_bytes()));
        }
        if let Some(scheme) = self.scheme {
            list.push((&X_FORWARDED_PROTO, scheme));
        }
        if self.tells_host {
            list.push((&X_FORWARDED_HOST, host));
        }
        if let Some(port) = &self.port {
            list.push((&X_FORWARDED_PORT, port.as_bytes()));
        }
        if let Some(element) = self.via {
            list.push((&VIA_NAME, element.as_bytes()));
        }
        if let Some((name, digits)) = &self.id {
            list.push((name, digits));
        }
        list
    }

    /// Moves them into the map, for those who change or read fields by name.
    pub(crate) fn move_into(&mut self, headers: &mut HeaderMap, host: &HeaderValue) {
        let own = std::mem::take(self);
        let client = own.client();
        let list = own.list(client.as_ref(), host.as_bytes());
        for (name, value) in list {
            // Texts are values, and a map that is full is one that no codec would have made.
            if let Ok(value) = HeaderValue::from_bytes(value) {
                headers.try_insert(name, value).ok();
            }
        }
    }
}

/// As a value that can be borrowed for as long as a request lasts.
static VIA_NAME: HeaderName = VIA;

/// Makes one field of all lines of `name` and the further `element`. `false` if there is no line.
fn extend_list(headers: &mut HeaderMap, name: &HeaderName, element: &[u8]) -> bool {
    let Ok(Entry::Occupied(mut field)) = headers.try_entry(name) else {
        return false;
    };
    let mut list: Vec<u8> = Vec::new();
    for value in field.iter() {
        list.extend_from_slice(value.as_bytes());
        list.extend_from_slice(b", ");
    }
    list.extend_from_slice(element);
    // Bytes of valid values are valid.
    if let Ok(value) = HeaderValue::from_maybe_shared(Bytes::from(list)) {
        field.insert_mult(value).for_each(drop);
    }
    true
}

/// The most fields that the front adds beside the map.
const COUNT_MAX: usize = 6;

#[cfg(test)]
mod tests;
