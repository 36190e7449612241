//! What a version of HTTP can do, so that nobody else compares versions: a further one is answered for here.

use http::Version;

/// Whether a client of this version understands interim responses and chunks: from HTTP/1.1 on.
pub(crate) fn has_chunks(version: Version) -> bool {
    version > Version::HTTP_10
}

/// Whether a connection of this version carries several exchanges at a time. Such a request names its scheme itself and
/// asks for a tunnel by CONNECT.
pub(crate) fn has_streams(version: Version) -> bool {
    version > Version::HTTP_11
}

/// Whether a connection of this version may change to another protocol by `Upgrade`.
pub(crate) fn has_upgrade(version: Version) -> bool {
    version == Version::HTTP_11
}
