//! Why the API server's answer is missing or cannot be used.

use std::fmt;

/// Why the API server was asked in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) kind: ApiErrorKind,
    text: String,
}

impl ApiError {
    pub(crate) fn new(kind: ApiErrorKind, text: String) -> Self {
        Self { kind, text }
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The kinds of `ApiError`, by which they are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiErrorKind {
    /// A file with the token or the authorities cannot be used.
    File,
    /// No connection, or the server is not trusted.
    Connect,
    /// A connection broke off, or the server was silent for too long.
    Cut,
    /// The server does not accept the token: 401.
    Unauthorized,
    /// The server forbids the request: 403.
    Forbidden,
    /// The version is too old: 410.
    Expired,
    /// The server answers with another status.
    Status,
    /// An answer or a line is too large.
    TooLarge,
    /// An answer or a line cannot be read.
    Malformed,
    /// The objects have no members of them made: a port or a protocol is not clear.
    Unclear,
}

impl ApiErrorKind {
    /// The kind as a token, for metrics.
    #[must_use]
    pub fn token(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Connect => "connect",
            Self::Cut => "cut",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::Expired => "expired",
            Self::Status => "status",
            Self::TooLarge => "too-large",
            Self::Malformed => "malformed",
            Self::Unclear => "unclear",
        }
    }

    /// All kinds, in the order of the metrics page.
    pub const ALL: [Self; 10] = [
        Self::File,
        Self::Connect,
        Self::Cut,
        Self::Unauthorized,
        Self::Forbidden,
        Self::Expired,
        Self::Status,
        Self::TooLarge,
        Self::Malformed,
        Self::Unclear,
    ];
}
