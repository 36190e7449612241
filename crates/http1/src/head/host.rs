//! Host and port of a request (RFC 9110 section 7.2).
//!
//! Stricter than the grammar of RFC 3986: a host is a name of letters, digits, `-`, `.`, `_` and
//! `~`, an IPv4 address, or an IPv6 address in brackets. Sub-delimiters and escapes, which no
//! resolvable name has, are refused, since every reader understands them differently.

use std::net::Ipv6Addr;

use bytes::Bytes;
use memchr::memchr;

use crate::error::Fault;

/// Whom a request is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Authority {
    /// The host in lower case, without a trailing dot; an IPv6 address keeps its brackets.
    pub host: Bytes,
    /// The port, 1 to 65535, if one was given.
    pub port: Option<u16>,
}

impl Authority {
    /// Reads `host [":" [port]]`, the value of a Host field, wherever it came from.
    ///
    /// # Errors
    /// [`Fault::HostSyntax`].
    pub fn parse(text: &Bytes) -> Result<Self, Fault> {
        decode(text)
    }

    /// `host` or `host:port`, as a Host field has it.
    pub fn to_bytes(&self) -> Bytes {
        let Some(port) = self.port else {
            return self.host.clone();
        };
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(port).as_bytes();
        let mut text = Vec::with_capacity(self.host.len() + 1 + digits.len());
        text.extend_from_slice(&self.host);
        text.push(b':');
        text.extend_from_slice(digits);
        text.into()
    }
}

/// Reads `host [":" [port]]`.
pub(crate) fn decode(text: &Bytes) -> Result<Authority, Fault> {
    let host_end = match text.first() {
        Some(b'[') => memchr(b']', text).map(|at| at + 1),
        _ => Some(memchr(b':', text).unwrap_or(text.len())),
    };
    let host_end = host_end.ok_or(Fault::HostSyntax)?;
    let port = port(&text[host_end..]).ok_or(Fault::HostSyntax)?;
    let host = text.slice(..host_end);
    let host = if host.starts_with(b"[") {
        ipv6(host)
    } else {
        name(host)
    };
    Ok(Authority {
        host: host.ok_or(Fault::HostSyntax)?,
        port,
    })
}

/// Whether `text` can be sent as Host.
pub(crate) fn is_sendable(text: &[u8]) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_graphic() && !b"/?#@\\,\"<>".contains(byte);
    !text.is_empty() && text.iter().all(allowed)
}

/// The port after a host; the outer `None` means malformed.
fn port(text: &[u8]) -> Option<Option<u16>> {
    match text {
        [] | [b':'] => Some(None),
        [b':', digits @ ..] if digits.len() <= 5 && digits.iter().all(u8::is_ascii_digit) => {
            let value = digits
                .iter()
                .fold(0, |value, &digit| value * 10 + u32::from(digit - b'0'));
            u16::try_from(value).ok().filter(|&port| port > 0).map(Some)
        }
        _ => None,
    }
}

fn ipv6(host: Bytes) -> Option<Bytes> {
    let address = std::str::from_utf8(&host[1..host.len() - 1]).ok()?;
    address.parse::<Ipv6Addr>().ok()?;
    Some(lower_case(host))
}

fn name(mut host: Bytes) -> Option<Bytes> {
    if host.ends_with(b".") {
        host.truncate(host.len() - 1);
    }
    if host.len() > NAME_BYTES_MAX {
        return None;
    }
    let mut label_is_empty = true;
    for &byte in &host {
        match byte {
            b'.' if label_is_empty => return None,
            b'.' => label_is_empty = true,
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'_' | b'~' => label_is_empty = false,
            _ => return None,
        }
    }
    (!label_is_empty).then(|| lower_case(host))
}

fn lower_case(host: Bytes) -> Bytes {
    if host.iter().any(u8::is_ascii_uppercase) {
        host.to_ascii_lowercase().into()
    } else {
        host
    }
}

/// The longest DNS name.
const NAME_BYTES_MAX: usize = 255;
