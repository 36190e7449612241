//! Host and port of a request (RFC 9110 section 7.2).
//!
//! Stricter than the grammar of RFC 3986: a host is a name of letters, digits, `-`, `.`, `_` and
//! `~`, an IPv4 address, or an IPv6 address in brackets. Sub-delimiters and escapes, which no
//! resolvable name has, are refused, since every reader understands them differently.

use std::net::{IpAddr, Ipv6Addr};

use bytes::Bytes;
use memchr::memchr;

use crate::error::InvalidHost;

/// The host and port that a request is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Authority {
    /// The host in lower case, without a trailing dot; an IPv6 address keeps its brackets.
    pub host: Bytes,
    /// The port, 1 to 65535; `None` if none was given.
    pub port: Option<u16>,
}

impl Authority {
    /// Reads `host [":" [port]]`, the value of a Host field.
    ///
    /// # Errors
    /// [`InvalidHost`] if it is malformed.
    pub fn parse(text: &Bytes) -> Result<Self, InvalidHost> {
        Self::decode(text, text)
    }

    /// Reads `text`, which is part of `head`, as `host [":" [port]]`; the result shares the memory
    /// of `head`.
    ///
    /// # Errors
    /// [`InvalidHost`] if it is malformed.
    pub fn decode(text: &[u8], head: &Bytes) -> Result<Self, InvalidHost> {
        let split = match text {
            [b'[', ..] => ipv6(text),
            _ => name(text),
        };
        let (host, after_host) = split.ok_or(InvalidHost)?;
        let port = port(after_host)?;
        let host = match host {
            Host::Lower(lower) => head.slice_ref(lower),
            Host::Mixed(mixed) => mixed.to_ascii_lowercase().into(),
        };
        Ok(Self { host, port })
    }

    /// The IP address that `host` is, with or without brackets; `None` if it is a name.
    pub fn ip(&self) -> Option<IpAddr> {
        let host = std::str::from_utf8(&self.host).ok()?;
        let after_bracket = host.strip_prefix('[');
        let in_brackets = after_bracket.and_then(|text| text.strip_suffix(']'));
        in_brackets.unwrap_or(host).parse().ok()
    }

    /// `host` or `host:port`, as the value of a Host field.
    pub fn to_bytes(&self) -> Bytes {
        let Some(port) = self.port else {
            return self.host.clone();
        };
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(port).as_bytes();
        let mut text = Vec::with_capacity(self.host.len() + 1 + digits.len());
        text.extend_from_slice(&self.host);
        text.push(b':');
        text.extend_from_slice(digits);
        text.into()
    }
}

/// A valid host, as a part of the text.
enum Host<'a> {
    /// All letters are in lower case.
    Lower(&'a [u8]),
    /// Some letters are in upper case.
    Mixed(&'a [u8]),
}

/// Whether `text` can be sent as the value of Host.
pub fn is_sendable_host(text: &[u8]) -> bool {
    let is_allowed = |&byte: &u8| {
        let is_of_name = NAME_CLASSES[usize::from(byte)] != FOREIGN;
        is_of_name || byte.is_ascii_graphic() && !b"/?#@\\,\"<>".contains(&byte)
    };
    !text.is_empty() && text.iter().all(is_allowed)
}

/// Reads the text after a host, `[":" [port]]`; `None` if it has no port.
fn port(text: &[u8]) -> Result<Option<u16>, InvalidHost> {
    let digits = match text {
        [] | [b':'] => return Ok(None),
        // Five digits cannot overflow the sum.
        [b':', digits @ ..] if digits.len() <= 5 => digits,
        _ => return Err(InvalidHost),
    };
    let mut value = 0;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return Err(InvalidHost);
        }
        value = value * 10 + u32::from(digit - b'0');
    }
    match u16::try_from(value) {
        Ok(port) if port > 0 => Ok(Some(port)),
        _ => Err(InvalidHost),
    }
}

/// Splits an IPv6 address in brackets from the text after it.
fn ipv6(text: &[u8]) -> Option<(Host<'_>, &[u8])> {
    let (host, rest) = text.split_at(memchr(b']', text)? + 1);
    let address = std::str::from_utf8(&host[1..host.len() - 1]).ok()?;
    address.parse::<Ipv6Addr>().ok()?;
    Some((Host::Mixed(host), rest))
}

/// Splits the name at the start from the text after it. One pass finds the end, upper case and empty
/// labels.
fn name(text: &[u8]) -> Option<(Host<'_>, &[u8])> {
    // A dot at the beginning is refused as if a dot stood before it.
    let (mut len, mut classes, mut previous) = (0, 0, DOT);
    for &byte in text {
        let class = NAME_CLASSES[usize::from(byte)];
        if class == FOREIGN {
            break;
        }
        if class & previous == DOT {
            return None;
        }
        classes |= class;
        previous = class;
        len += 1;
    }
    let (dotted, rest) = text.split_at(len);
    let host = dotted.strip_suffix(b".").unwrap_or(dotted);
    match host.len() {
        1..=NAME_BYTES_MAX if classes & UPPER == 0 => Some((Host::Lower(host), rest)),
        1..=NAME_BYTES_MAX => Some((Host::Mixed(host), rest)),
        _ => None,
    }
}

/// The longest DNS name, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// The class of upper-case letters, which have to be lowered.
const UPPER: u8 = 1;

/// The class of bytes that no name may have.
const FOREIGN: u8 = 2;

/// The class of the dot between labels.
const DOT: u8 = 4;

/// The class of each byte; lower-case letters, digits and marks other than the dot have none.
static NAME_CLASSES: [u8; 256] = {
    let mut classes = [FOREIGN; 256];
    let mut byte = 0;
    while byte < 128 {
        classes[byte] = match byte as u8 {
            b'0'..=b'9' | b'a'..=b'z' | b'-' | b'_' | b'~' => 0,
            b'.' => DOT,
            b'A'..=b'Z' => UPPER,
            _ => FOREIGN,
        };
        byte += 1;
    }
    classes
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_one_with_and_without_brackets() {
        for (text, expected) in [
            ("127.0.0.1:80", Some(IpAddr::from([127, 0, 0, 1]))),
            ("[::1]:80", Some(IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]))),
            ("localhost", None),
            ("127.0.0.1.example.org", None),
        ] {
            let authority = Authority::parse(&Bytes::from_static(text.as_bytes())).unwrap();
            assert_eq!(authority.ip(), expected, "{text}");
        }
    }
}
