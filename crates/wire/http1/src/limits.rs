//! The limits on what a peer may make the codec hold or read.
//!
//! Every count and size is limited. Exceeding one is a [`Fault`] of its own, so the log names the
//! limit. The caller limits durations: there is no clock in this crate.
//!
//! [`Fault`]: crate::Fault

/// Limits on what is received, for one connection. All sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The whole head, from the start line to the empty line. Request default 32 KiB (nginx
    /// `large_client_header_buffers`, Tomcat `maxHttpHeaderSize` 8 KiB), response default 32 KiB.
    pub head_bytes: usize,
    /// The request target as received. Default 8 KiB, the least RFC 9112 section 3 asks for.
    /// Longer ones are answered 414. Without effect on responses.
    pub target_bytes: usize,
    /// One field line, or the status line, without its line ending. Request default 8 KiB (httpd
    /// `LimitRequestFieldSize`), response default 32 KiB: a backend may set one large cookie.
    pub line_bytes: usize,
    /// Number of field lines. Request default 100 (httpd `LimitRequestFields`, Tomcat
    /// `maxHeaderCount`), response default 200.
    pub fields: usize,
    /// Empty lines skipped before a request line (RFC 9112 section 2.2). Default 8.
    pub leading_lines: usize,
    /// One chunk-size line with its extensions. Default 1 KiB.
    pub chunk_line_bytes: usize,
    /// Chunk extensions of one whole body. Default 8 KiB (Tomcat `maxExtensionSize`).
    pub chunk_extension_bytes: usize,
    /// The trailer section of a chunked body. Default 8 KiB (Tomcat `maxTrailerSize`).
    pub trailer_bytes: usize,
}

impl Limits {
    /// Limits on requests, for the server role.
    pub const fn request() -> Self {
        Self {
            head_bytes: 32 * 1024,
            target_bytes: 8 * 1024,
            line_bytes: 8 * 1024,
            fields: 100,
            leading_lines: 8,
            chunk_line_bytes: 1024,
            chunk_extension_bytes: 8 * 1024,
            trailer_bytes: 8 * 1024,
        }
    }

    /// Limits on responses, for the client role.
    pub const fn response() -> Self {
        Self {
            line_bytes: 32 * 1024,
            fields: 200,
            ..Self::request()
        }
    }
}
