//! One request as it is handed to a backend, whichever protocol carries it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use http::{HeaderMap, Method};

/// How long a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// Exactly so many bytes; 0 is no body.
    Known(u64),
    /// Not known before it ends.
    Unknown,
}

/// A request's head, ready to be sent: routed, normalised, cleaned of hop-by-hop fields.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The method, any token.
    pub method: &'a Method,
    /// The normalised path, percent-encoded, beginning with `/`; or `*` for OPTIONS.
    pub path: &'a [u8],
    /// The query as received, without `?`.
    pub query: Option<&'a [u8]>,
    /// The version the client spoke, such as `HTTP/1.1`; AJP13 tells the application.
    pub protocol: &'a str,
    /// The value of `Host`. Over AJP13 it is taken from `headers`.
    pub host: &'a [u8],
    /// End-to-end fields, `Host` among them. Content-Length and Transfer-Encoding are not heeded;
    /// `body` rules.
    pub headers: &'a HeaderMap,
    /// How long the body is.
    pub body: BodyLength,
    /// Who asks, for AJP13's own fields.
    pub client: ClientFacts<'a>,
}

/// What the application should know of the client's connection. AJP13 has fields for all of it;
/// over HTTP/1.1 it travels in `X-Forwarded-*`, which the front writes into the headers.
#[derive(Clone, Copy, Debug)]
pub struct ClientFacts<'a> {
    /// The client's address as the application should see it, trusted proxies looked through.
    pub remote_ip: IpAddr,
    /// The client's port, where it is known.
    pub remote_port: Option<u16>,
    /// The address the client connected to.
    pub local_ip: IpAddr,
    /// The host name the client asked for.
    pub server_name: &'a [u8],
    /// The port the client asked for.
    pub server_port: u16,
    /// Whether the client's connection is secure (TLS, or a trusted proxy says so).
    pub secure: bool,
}

impl ClientFacts<'_> {
    /// A client on this very host, for examples and probes.
    #[must_use]
    pub fn local() -> Self {
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 80));
        Self {
            remote_ip: local.ip(),
            remote_port: None,
            local_ip: local.ip(),
            server_name: b"localhost",
            server_port: local.port(),
            secure: false,
        }
    }
}

/// An address as text, on the stack: one or two are written with each request.
#[derive(Clone, Copy, Debug)]
pub struct IpText {
    bytes: [u8; Self::MAX],
    len: usize,
}

impl IpText {
    /// The longest: `ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255`.
    const MAX: usize = 45;

    /// The text of an address.
    #[must_use]
    pub fn new(ip: IpAddr) -> Self {
        let mut text = Self {
            bytes: [0; Self::MAX],
            len: 0,
        };
        match ip {
            IpAddr::V4(ip) => {
                for octet in ip.octets() {
                    let (digits, len) = OCTETS[usize::from(octet)];
                    text.bytes[text.len..text.len + 4].copy_from_slice(&digits);
                    text.len += len;
                }
                // No dot after the last.
                text.len -= 1;
            }
            IpAddr::V6(ip) => ip.to_string().bytes().for_each(|byte| text.push(byte)),
        }
        text
    }

    /// The text.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn push(&mut self, byte: u8) {
        if let Some(slot) = self.bytes.get_mut(self.len) {
            *slot = byte;
            self.len += 1;
        }
    }
}

/// The digits of each number and a dot, and the length of both.
static OCTETS: [([u8; 4], usize); 256] = {
    let mut octets = [([b'.'; 4], 0); 256];
    let mut octet = 0;
    while octet < 256 {
        let digits = [octet / 100, octet / 10 % 10, octet % 10];
        let mut skipped = if octet < 10 {
            2
        } else {
            (octet < 100) as usize
        };
        let (text, len) = &mut octets[octet];
        while skipped < 3 {
            text[*len] = b'0' + digits[skipped] as u8;
            *len += 1;
            skipped += 1;
        }
        *len += 1;
        octet += 1;
    }
    octets
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_as_they_print() {
        for text in [
            "0.0.0.0",
            "127.0.0.1",
            "255.255.255.255",
            "::1",
            "2001:db8::8:800:200c:417a",
        ] {
            let ip: IpAddr = text.parse().expect("an address");
            assert_eq!(IpText::new(ip).as_bytes(), text.as_bytes());
        }
        let longest = IpAddr::from([0xffff_u16; 8]);
        assert_eq!(
            IpText::new(longest).as_bytes(),
            longest.to_string().as_bytes()
        );
    }
}
