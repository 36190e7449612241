//! What a head says about the connection after its message.

use http::Version;

use crate::syntax::list;

/// What the Connection fields of a head say about the connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Persistence {
    close: bool,
    keep_alive: bool,
}

impl Persistence {
    /// Takes a Connection field.
    pub(crate) fn take(&mut self, value: &[u8]) {
        for option in list(value) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// Whether another exchange may follow (RFC 9112 section 9.3).
    pub(crate) fn allows_next(self, version: Version) -> bool {
        !self.close && (version == Version::HTTP_11 || self.keep_alive)
    }
}
