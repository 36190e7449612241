//! Hashes the part of a request by which the policy `hash` chooses a backend.

use std::net::IpAddr;

use catamaran_balance::hash::Key;
use catamaran_message::pairs;

use crate::config::HashBy;
use crate::site::Facts;

/// The hash key of a request by the part `by`; `None` if the request does not have that part.
pub(super) fn key(by: &HashBy, facts: &Facts<'_>) -> Option<Key> {
    let headers = &facts.head.headers;
    match by {
        HashBy::Address => Some(match facts.client.to_canonical() {
            IpAddr::V4(address) => Key::new(&address.octets()),
            IpAddr::V6(address) => Key::new(&address.octets()),
        }),
        HashBy::Path => Some(Key::new(facts.path.route())),
        HashBy::Cookie(name) => {
            let mut values = pairs::cookies(headers, std::slice::from_ref(name));
            let value = values.find(|(_, value)| !value.is_empty());
            value.map(|(_, value)| Key::new(value))
        }
        HashBy::Header(name) => {
            let value = headers.get(name)?;
            (!value.is_empty()).then(|| Key::new(value))
        }
        HashBy::Query(name) => {
            let query = facts.head.target.query.as_deref()?;
            parameter(query, name.as_bytes()).map(Key::new)
        }
    }
}

/// The first value of a query parameter, not decoded; `None` if it is empty or missing.
fn parameter<'a>(query: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let pieces = query.split(|&byte| byte == b'&');
    let mut values = pieces.filter_map(|piece| piece.strip_prefix(name)?.strip_prefix(b"="));
    values.next().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_found_by_their_whole_name() {
        let of = |query: &'static str| parameter(query.as_bytes(), b"user");
        assert_eq!(of("user=7"), Some(&b"7"[..]));
        assert_eq!(of("a=1&user=x%20y&user=z"), Some(&b"x%20y"[..]));
        for absent in ["", "user", "user=", "users=7", "auser=7", "x=user=7"] {
            assert_eq!(of(absent), None, "{absent}");
        }
    }
}
