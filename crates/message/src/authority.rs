//! Host and port of a request (RFC 9110 section 7.2).
//!
//! Stricter than the grammar of RFC 3986: a host is a name of letters, digits, `-`, `.`, `_` and
//! `~`, an IPv4 address, or an IPv6 address in brackets. Sub-delimiters and escapes, which no
//! resolvable name has, are refused, since every reader understands them differently.

use std::net::Ipv6Addr;

use bytes::Bytes;
use memchr::memchr;

use crate::error::InvalidHost;

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
    /// [`InvalidHost`].
    pub fn parse(text: &Bytes) -> Result<Self, InvalidHost> {
        Self::decode(text, text)
    }

    /// Reads `text`, which is part of `head`, as `host [":" [port]]`.
    ///
    /// # Errors
    /// [`InvalidHost`].
    pub fn decode(text: &[u8], head: &Bytes) -> Result<Self, InvalidHost> {
        let host_end = match text.first() {
            Some(b'[') => memchr(b']', text).map(|at| at + 1),
            _ => Some(memchr(b':', text).unwrap_or(text.len())),
        };
        let (host, port_text) = text.split_at(host_end.ok_or(InvalidHost)?);
        let port = port(port_text).ok_or(InvalidHost)?;
        let host = if host.starts_with(b"[") {
            ipv6(host)
        } else {
            name(host)
        };
        let host = match host.ok_or(InvalidHost)? {
            Host::Lower(host) => head.slice_ref(host),
            Host::Mixed(host) => host.to_ascii_lowercase().into(),
        };
        Ok(Self { host, port })
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

/// A host that was found good.
enum Host<'a> {
    /// In lower case.
    Lower(&'a [u8]),
    /// In any case.
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

fn ipv6(host: &[u8]) -> Option<Host<'_>> {
    let address = std::str::from_utf8(&host[1..host.len() - 1]).ok()?;
    address.parse::<Ipv6Addr>().ok()?;
    Some(Host::Mixed(host))
}

fn name(host: &[u8]) -> Option<Host<'_>> {
    let host = host.strip_suffix(b".").unwrap_or(host);
    if host.len() > NAME_BYTES_MAX {
        return None;
    }
    let mut classes = 0;
    let mut has_empty_label = false;
    let mut before = b'.';
    for &byte in host {
        classes |= NAME_CLASSES[usize::from(byte)];
        has_empty_label |= (byte == b'.') & (before == b'.');
        before = byte;
    }
    match classes {
        _ if has_empty_label || before == b'.' => None,
        0 => Some(Host::Lower(host)),
        UPPER => Some(Host::Mixed(host)),
        _ => None,
    }
}

/// The longest DNS name.
const NAME_BYTES_MAX: usize = 255;

/// Class of the bytes of a name that have to be lowered.
const UPPER: u8 = 1;

/// Class of the bytes that no name has.
const FOREIGN: u8 = 2;

/// The classes of bytes; lower case, digits and marks, the dot too, have none.
static NAME_CLASSES: [u8; 256] = {
    let mut classes = [FOREIGN; 256];
    let mut byte = 0;
    while byte < 128 {
        classes[byte] = match byte as u8 {
            b'0'..=b'9' | b'a'..=b'z' | b'-' | b'_' | b'~' | b'.' => 0,
            b'A'..=b'Z' => UPPER,
            _ => FOREIGN,
        };
        byte += 1;
    }
    classes
};
