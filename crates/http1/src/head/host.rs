//! Host and port of a request.

use bytes::Bytes;

/// Whom a request is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Authority {
    /// The host in lower case, without a trailing dot; an IPv6 address keeps its brackets.
    pub host: Bytes,
    /// The port, 1 to 65535, if one was given.
    pub port: Option<u16>,
}

impl Authority {
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
