//! Request targets (RFC 9112 section 3.2).

use bytes::Bytes;

/// What a request is for, in origin form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The path: begins with `/`, or is `*` for OPTIONS. Escapes are well-formed and kept as
    /// received; bytes that may not stand in a path are escaped. Nothing is decoded and dot
    /// segments are still there.
    pub path: Bytes,
    /// The query without its question mark, treated like the path.
    pub query: Option<Bytes>,
    /// The scheme of an absolute target, `None` for the other forms. A request for `https` on a
    /// connection without TLS is not for us (RFC 9110 section 7.4): the caller refuses it.
    pub scheme: Option<Scheme>,
}

/// The scheme of an absolute request target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `http`
    Http,
    /// `https`
    Https,
}
