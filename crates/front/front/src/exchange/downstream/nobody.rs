//! A client that is not there: one that has left, or that never was.
//!
//! A response that others wait for is received to its end after its client has left, and one that only
//! the front itself wants has no client at all. So nobody takes everything at once, is never full, and
//! never leaves. Whether a response is as long as announced is for those to judge who keep it.

use crate::exchange::downstream::Downstream;

/// The client of an exchange that has none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nobody {
    /// What the client spoke while there was one.
    protocol: &'static str,
    /// The number of its stream.
    stream: Option<u32>,
    /// Bytes of the response's body that it was sent.
    sent: u64,
}

impl Nobody {
    /// Takes the place of a client that has left.
    pub(crate) fn instead_of(client: &Downstream<'_>) -> Self {
        Self {
            protocol: client.protocol(),
            stream: client.stream(),
            sent: client.sent(),
        }
    }

    pub(super) fn protocol(&self) -> &'static str {
        self.protocol
    }

    pub(super) fn stream(&self) -> Option<u32> {
        self.stream
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent
    }
}

impl Default for Nobody {
    /// In an exchange that never had a client.
    fn default() -> Self {
        Self {
            protocol: "-",
            stream: None,
            sent: 0,
        }
    }
}
