//! The limits on what a peer may make the codec hold or read.

/// Limits on heads that are received. All sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest head: the sum over all fields of name, value and 32 bytes (RFC 9113, section 6.5.2). Default 32 KiB.
    pub head_bytes: usize,
    /// The longest path with its query. Default 8 KiB.
    pub target_bytes: usize,
    /// The longest field, as a line of HTTP/1.1 without its line ending. Default 8 KiB for requests, 32 KiB for
    /// responses.
    pub line_bytes: usize,
    /// The most fields; all `Cookie` fields count as one. Default 100 for requests, 200 for responses.
    pub fields: usize,
}

impl Limits {
    /// The default limits on requests, for the server role.
    pub const fn request() -> Self {
        Self {
            head_bytes: 32 * 1024,
            target_bytes: 8 * 1024,
            line_bytes: 8 * 1024,
            fields: 100,
        }
    }

    /// The default limits on responses, for the client role.
    pub const fn response() -> Self {
        Self {
            line_bytes: 32 * 1024,
            fields: 200,
            ..Self::request()
        }
    }
}
