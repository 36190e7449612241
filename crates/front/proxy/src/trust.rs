//! Compares addresses with the networks that a setting such as `trusted_proxies` or `allow` lists.

use std::net::IpAddr;

use ipnet::IpNet;

/// Whether an address is in one of the networks. An IPv4 address mapped into IPv6 counts as IPv4.
#[inline]
pub(crate) fn is_trusted(networks: &[IpNet], ip: IpAddr) -> bool {
    !networks.is_empty() && contains(networks, ip)
}

/// Compares like [`is_trusted`], for a list that is not empty; not inlined, since most lists are empty.
#[inline(never)]
fn contains(networks: &[IpNet], ip: IpAddr) -> bool {
    let ip = ip.to_canonical();
    networks.iter().any(|network| network.contains(&ip))
}
