//! The limits on what a peer may make the codec hold or read.
//!
//! Every count and size is limited. Exceeding one is a [`Fault`] of its own, so the log names the
//! limit. The caller limits durations: there is no clock in this crate.
//!
//! [`Fault`]: crate::Fault

/// Limits on the messages that one connection receives. All sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest head, from the start line to the empty line. Request default 32 KiB (nginx
    /// `large_client_header_buffers`, Tomcat `maxHttpHeaderSize` 8 KiB), response default 32 KiB.
    pub head_bytes: usize,
    /// The longest request target, as received. Default 8 KiB, the least RFC 9112 section 3 asks
    /// for. Longer ones are answered 414. Without effect on responses.
    pub target_bytes: usize,
    /// The longest field line or status line, without its line ending. Request default 8 KiB
    /// (httpd `LimitRequestFieldSize`), response default 32 KiB: a backend may set one large
    /// cookie.
    pub line_bytes: usize,
    /// The most field lines. Request default 100 (httpd `LimitRequestFields`, Tomcat
    /// `maxHeaderCount`), response default 200.
    pub fields: usize,
    /// The most empty lines skipped before a request line (RFC 9112 section 2.2). Default 8.
    pub leading_lines: usize,
    /// The longest chunk-size line, with its extensions. Default 1 KiB.
    pub chunk_line_bytes: usize,
    /// The most bytes of chunk extensions in one whole body. Default 8 KiB (Tomcat
    /// `maxExtensionSize`).
    pub chunk_extension_bytes: usize,
    /// The largest trailer section of a chunked body. Default 8 KiB (Tomcat `maxTrailerSize`).
    pub trailer_bytes: usize,
}

impl Limits {
    /// The default limits on requests, for the server role.
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

    /// The default limits on responses, for the client role.
    pub const fn response() -> Self {
        Self {
            line_bytes: 32 * 1024,
            fields: 200,
            ..Self::request()
        }
    }
}
