//! The abilities of each HTTP version. No other module compares versions, so a new one needs changes here only.

use http::Version;

/// Whether a client of this version understands interim responses and chunks: from HTTP/1.1 on.
pub(crate) fn has_chunks(version: Version) -> bool {
    version > Version::HTTP_10
}

/// Whether a connection of this version carries several exchanges at a time. Requests of such a version name their
/// scheme themselves and ask for a tunnel by CONNECT.
pub(crate) fn has_streams(version: Version) -> bool {
    version > Version::HTTP_11
}

/// Whether a connection of this version may change to another protocol by `Upgrade`.
pub(crate) fn has_upgrade(version: Version) -> bool {
    version == Version::HTTP_11
}
