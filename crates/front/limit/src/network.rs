//! The address of a client as a key: an IPv4 address, or the network of an IPv6 one.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use arrayvec::ArrayVec;

/// The network to which a client's requests are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The masked address, from the most significant bit.
    bits: u128,
    prefix: u8,
    is_v4: bool,
}

impl Network {
    /// The network of `ip` with the first of `prefix` for IPv4 and the second for IPv6, in bits. An IPv4 address that is
    /// mapped into IPv6 is the IPv4 one.
    #[must_use]
    #[inline]
    pub fn new(ip: IpAddr, prefix: [u8; 2]) -> Self {
        let (bits, prefix, is_v4) = match ip.to_canonical() {
            IpAddr::V4(ip) => (u128::from(ip.to_bits()) << 96, prefix[0].min(32), true),
            IpAddr::V6(ip) => (ip.to_bits(), prefix[1].min(128), false),
        };
        let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
        Self {
            bits: bits & mask,
            prefix,
            is_v4,
        }
    }

    /// The bytes that are hashed to a key: the family, and the part of an address that networks differ in.
    #[must_use]
    #[inline]
    pub fn to_bytes(&self) -> ArrayVec<u8, 17> {
        let (family, len) = match self.prefix {
            _ if self.is_v4 => (4, 4),
            // Half of the address is hashed faster, and the other half is masked.
            ..=64 => (6, 8),
            _ => (6, 16),
        };
        let mut key = ArrayVec::new();
        key.push(family);
        // There is room for the longest.
        key.try_extend_from_slice(&self.bits.to_be_bytes()[..len])
            .ok();
        key
    }
}

/// An address alone if its network has no others, else with the length of its prefix.
impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ip, longest) = if self.is_v4 {
            let bits = (self.bits >> 96) as u32;
            (IpAddr::V4(Ipv4Addr::from_bits(bits)), 32)
        } else {
            (IpAddr::V6(Ipv6Addr::from_bits(self.bits)), 128)
        };
        if self.prefix == longest {
            write!(f, "{ip}")
        } else {
            write!(f, "{ip}/{}", self.prefix)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_are_one_key() {
        for (ip, prefix, expected) in [
            ("192.0.2.1", [32, 64], "192.0.2.1"),
            ("::ffff:192.0.2.1", [32, 64], "192.0.2.1"),
            ("192.0.2.77", [24, 48], "192.0.2.0/24"),
            ("192.0.2.77", [0, 0], "0.0.0.0/0"),
            ("2001:db8:0:1:aaaa::1", [32, 64], "2001:db8:0:1::/64"),
            ("2001:db8:0:1:bbbb::2", [32, 64], "2001:db8:0:1::/64"),
            ("2001:db8:0:1::2", [32, 48], "2001:db8::/48"),
            ("2001:db8::2", [32, 128], "2001:db8::2"),
            ("2001:db8::2", [32, 0], "::/0"),
        ] {
            let network = Network::new(ip.parse().unwrap(), prefix);
            assert_eq!(network.to_string(), expected, "{ip}");
        }
        let of = |ip: &str| Network::new(ip.parse().unwrap(), [32, 64]);
        assert_eq!(
            of("192.0.2.1").to_bytes(),
            of("::ffff:192.0.2.1").to_bytes()
        );
        assert_ne!(of("0.0.0.0").to_bytes(), of("::2").to_bytes());
        assert_eq!(of("2001:db8::1").to_bytes().len(), 9);
        let last = |ip: &str| Network::new(ip.parse().unwrap(), [32, 65]);
        assert_ne!(
            last("2001:db8::1").to_bytes(),
            last("2001:db8::8000:0:0:1").to_bytes()
        );
    }
}
