//! Whether the connection may be used after a message, according to its head.

use http::Version;

use crate::syntax::list;

/// The options of the Connection fields of a head.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Persistence {
    close: bool,
    keep_alive: bool,
}

impl Persistence {
    /// Reads a Connection field.
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
