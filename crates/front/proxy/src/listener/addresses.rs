//! Counts the connections of each client address, over all workers.
//!
//! The counts are kept only while `connections_per_address` is set: the mutex is taken when such a
//! connection begins and when it ends, never for a request. An IPv6 client usually controls a whole
//! /64 network, so such a network counts as one address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use crate::lock::lock;

#[derive(Debug, Default)]
pub(crate) struct Addresses(Arc<OpenCounts>);

/// The number of open connections of each address.
type OpenCounts = Mutex<HashMap<Client, usize>>;

/// The key under which connections are counted: an IPv4 address, or an IPv6 network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Client {
    Address(Ipv4Addr),
    /// The first 64 bits of an IPv6 address.
    Network([u8; 8]),
}

/// A connection that is counted for its address; dropping it counts it out.
#[derive(Debug)]
pub(crate) struct AddressCount {
    open: Arc<OpenCounts>,
    client: Client,
}

impl Addresses {
    /// Counts a connection; `None` if its address has `max` connections already.
    pub(crate) fn connect(&self, ip: IpAddr, max: usize) -> Option<AddressCount> {
        let client = Client::of(ip);
        let mut open = lock(&self.0);
        let count = open.entry(client).or_default();
        if *count >= max {
            return None;
        }
        *count += 1;
        Some(AddressCount {
            open: Arc::clone(&self.0),
            client,
        })
    }
}

impl Client {
    fn of(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            IpAddr::V4(ip) => Self::Address(ip),
            IpAddr::V6(ip) => {
                let [a, b, c, d, e, f, g, h, ..] = ip.octets();
                Self::Network([a, b, c, d, e, f, g, h])
            }
        }
    }
}

impl Drop for AddressCount {
    fn drop(&mut self) {
        let mut open = lock(&self.open);
        if let Some(count) = open.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn each_address_has_its_own_count_which_ends_with_the_connection() {
        let addresses = Addresses::default();
        let first = addresses.connect(ip("192.0.2.1"), 2);
        let second = addresses.connect(ip("::ffff:192.0.2.1"), 2);
        assert!(first.is_some() && second.is_some());
        assert!(addresses.connect(ip("192.0.2.1"), 2).is_none());
        assert!(addresses.connect(ip("192.0.2.2"), 2).is_some());
        drop(first);
        assert!(addresses.connect(ip("192.0.2.1"), 2).is_some());
        drop(second);
        assert!(lock(&addresses.0).is_empty());
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one() {
        let addresses = Addresses::default();
        let _first = addresses.connect(ip("2001:db8:0:1::1"), 1);
        assert!(addresses.connect(ip("2001:db8:0:1:ffff::2"), 1).is_none());
        assert!(addresses.connect(ip("2001:db8:0:2::1"), 1).is_some());
    }
}
