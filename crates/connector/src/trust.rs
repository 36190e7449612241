//! The peers that are trusted without a secret.
//!
//! Over AJP the front states who the user is and whether the client's connection is encrypted. A
//! secret proves that the peer is a front. Without one, a peer is trusted only by the address it
//! connects from, and this is the list of such addresses (CVE-2026-15554: a peer that can reach the
//! port must not choose a user name). Over HTTP there are no such statements.

use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

/// A list of networks, with or without Unix sockets.
///
/// Default: this machine, that is `127.0.0.0/8`, `::1` and Unix sockets, whose file permissions
/// decide who connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedPeers {
    networks: Vec<IpNet>,
    unix: bool,
}

/// The error for a text that is not a valid entry of [`TrustedPeers`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no address, no network such as 10.0.0.0/8, and neither `unix` nor `none`")]
pub struct TrustedPeersError(String);

impl TrustedPeers {
    /// An empty list: a front's statements about users and TLS count only with the secret.
    #[must_use]
    pub fn none() -> Self {
        Self {
            networks: Vec::new(),
            unix: false,
        }
    }

    /// Whether a peer with this address is listed; `None` is a Unix socket.
    pub(crate) fn contains(&self, peer: Option<IpAddr>) -> bool {
        let Some(ip) = peer else {
            return self.unix;
        };
        let ip = ip.to_canonical();
        self.networks.iter().any(|network| network.contains(&ip))
    }
}

impl Default for TrustedPeers {
    fn default() -> Self {
        let networks = ["127.0.0.0/8", "::1/128"];
        Self {
            networks: networks.into_iter().flat_map(IpNet::from_str).collect(),
            unix: true,
        }
    }
}

impl FromStr for TrustedPeers {
    type Err = TrustedPeersError;

    /// Parses addresses, networks and the word `unix`, separated by commas; `none` alone is an empty
    /// list.
    fn from_str(list: &str) -> Result<Self, Self::Err> {
        let mut peers = Self::none();
        if list.trim() == "none" {
            return Ok(peers);
        }
        for entry in list.split(',').map(str::trim) {
            if entry == "unix" {
                peers.unix = true;
            } else if let Ok(network) = entry.parse::<IpNet>() {
                peers.networks.push(network);
            } else if let Ok(ip) = entry.parse::<IpAddr>() {
                // An address is a network of one host.
                peers.networks.push(ip.to_canonical().into());
            } else {
                return Err(TrustedPeersError(entry.to_owned()));
            }
        }
        Ok(peers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(list: &str, peer: &str, expected: bool) {
        let peers: TrustedPeers = list.parse().unwrap();
        let peer = (peer != "unix").then(|| peer.parse().unwrap());
        assert_eq!(peers.contains(peer), expected, "{peer:?} in {list}");
    }

    #[test]
    fn a_list_names_addresses_networks_and_unix_sockets() {
        check("192.0.2.7", "192.0.2.7", true);
        check("192.0.2.7", "192.0.2.8", false);
        check("192.0.2.7", "unix", false);
        check("10.0.0.0/8, 2001:db8::/32, unix", "10.1.2.3", true);
        check("10.0.0.0/8, 2001:db8::/32, unix", "2001:db8::1", true);
        check("10.0.0.0/8, 2001:db8::/32, unix", "unix", true);
        check("10.0.0.0/8, 2001:db8::/32, unix", "127.0.0.1", false);
        check("none", "127.0.0.1", false);
        check("none", "unix", false);
    }

    #[test]
    fn an_ipv4_address_is_the_same_in_an_ipv6_dress() {
        check("192.0.2.7", "::ffff:192.0.2.7", true);
        check("::ffff:192.0.2.7", "192.0.2.7", true);
    }

    #[test]
    fn this_machine_is_trusted_unless_told_otherwise() {
        let peers = TrustedPeers::default();
        for peer in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            assert!(peers.contains(Some(peer.parse().unwrap())), "{peer}");
        }
        assert!(peers.contains(None));
        assert!(!peers.contains(Some("192.0.2.7".parse().unwrap())));
    }

    #[test]
    fn what_is_no_peer_is_an_error_that_says_so() {
        for list in ["", "localhost", "10.0.0.0/33", "none, unix", "10.0.0.1,,"] {
            let error = list.parse::<TrustedPeers>().unwrap_err().to_string();
            assert!(error.contains("is no address"), "{list}: {error}");
        }
    }
}
