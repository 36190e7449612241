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
        let (host, port_text) = split.ok_or(InvalidHost)?;
        let port = port(port_text).ok_or(InvalidHost)?;
        let host = match host {
            Host::Lower(host) => head.slice_ref(host),
            Host::Mixed(host) => host.to_ascii_lowercase().into(),
        };
        Ok(Self { host, port })
    }

    /// The IP address that `host` is, with or without brackets; `None` if it is a name.
    pub fn ip(&self) -> Option<IpAddr> {
        let host = std::str::from_utf8(&self.host).ok()?;
        let literal = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        literal.unwrap_or(host).parse().ok()
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
    let allowed = |byte: u8| byte.is_ascii_graphic() && !b"/?#@\\,\"<>".contains(&byte);
    !text.is_empty()
        && text
            .iter()
            .all(|&byte| NAME_CLASSES[usize::from(byte)] != FOREIGN || allowed(byte))
}

/// The port after a host: `Some(None)` if there is none, `None` if it is malformed.
fn port(text: &[u8]) -> Option<Option<u16>> {
    match text {
        [] | [b':'] => Some(None),
        [b':', digits @ ..] if digits.len() <= 5 => {
            let mut value = 0;
            for &digit in digits {
                if !digit.is_ascii_digit() {
                    return None;
                }
                value = value * 10 + u32::from(digit - b'0');
            }
            u16::try_from(value).ok().filter(|&port| port > 0).map(Some)
        }
        _ => None,
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
    let (mut len, mut classes, mut before) = (0, 0, DOT);
    for &byte in text {
        let class = NAME_CLASSES[usize::from(byte)];
        if class == FOREIGN {
            break;
        }
        // Two dots, or one at the beginning.
        if class & before == DOT {
            return None;
        }
        classes |= class;
        before = class;
        len += 1;
    }
    let (host, rest) = text.split_at(len);
    let host = host.strip_suffix(b".").unwrap_or(host);
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
