//! The address of a client as a key: an IPv4 address, or the network of an IPv6 one.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The network to which a client's requests are counted: the masked address, and the length of the prefix in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// A network of IPv4.
    V4(Ipv4Addr, u8),
    /// A network of IPv6.
    V6(Ipv6Addr, u8),
}

impl Network {
    /// The network of `ip` with the first of `prefix` for IPv4 and the second for IPv6, in bits. An IPv4 address that is
    /// mapped into IPv6 is the IPv4 one.
    #[must_use]
    #[inline]
    pub fn new(ip: IpAddr, prefix: [u8; 2]) -> Self {
        match ip.to_canonical() {
            IpAddr::V4(ip) => {
                let prefix = prefix[0].min(32);
                let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
                Self::V4(Ipv4Addr::from_bits(ip.to_bits() & mask), prefix)
            }
            IpAddr::V6(ip) => {
                let prefix = prefix[1].min(128);
                let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
                Self::V6(Ipv6Addr::from_bits(ip.to_bits() & mask), prefix)
            }
        }
    }
}

/// Hashes the part of an address that networks differ in, then the family, whose number no text has as its last byte.
impl Hash for Network {
    #[inline]
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        match self {
            Self::V4(ip, _) => {
                hasher.write_u32(ip.to_bits());
                hasher.write_u8(4);
            }
            Self::V6(ip, prefix) => {
                let [high, low] = [ip.to_bits() >> 64, ip.to_bits()].map(|half| half as u64);
                hasher.write_u64(high);
                // Half of the address is hashed faster, and the other half is masked.
                if *prefix > 64 {
                    hasher.write_u64(low);
                }
                hasher.write_u8(6);
            }
        }
    }
}

/// An address alone if its network has no others, else with the length of its prefix.
impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(ip, 32) => ip.fmt(f),
            Self::V6(ip, 128) => ip.fmt(f),
            Self::V4(ip, prefix) => write!(f, "{ip}/{prefix}"),
            Self::V6(ip, prefix) => write!(f, "{ip}/{prefix}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

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
        let of = |ip: &str, prefix| {
            let hasher = BuildHasherDefault::<DefaultHasher>::default();
            hasher.hash_one(Network::new(ip.parse().unwrap(), prefix))
        };
        let half = [32, 64];
        assert_eq!(of("192.0.2.1", half), of("::ffff:192.0.2.1", half));
        assert_ne!(of("0.0.0.2", half), of("0.0.0.1", half));
        assert_ne!(of("0.0.0.0", half), of("::", half));
        assert_eq!(of("2001:db8::1", half), of("2001:db8::2", half));
        let more = [32, 65];
        assert_eq!(of("2001:db8::1", more), of("2001:db8::2", more));
        assert_ne!(of("2001:db8::1", more), of("2001:db8::8000:0:0:1", more));
    }
}
