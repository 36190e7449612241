//! Errors: faults in the peer's bytes, and misuse by the sender of a message.
//!
//! A [`Fault`] is final: framing can no longer be trusted, so the connection that showed it is
//! never used for another message. Each has a stable token for logs and counters.

use catamaran_message::{InvalidHost, TargetFault};
use http::StatusCode;
use thiserror::Error;

/// A fault in the peer's bytes, or the end of the stream at a wrong place.
///
/// If a head has several, the first that is noticed is reported: field lines are checked as they arrive, the start
/// line and the meaning of fields once the head is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Fault {
    /// More empty lines before a request line than [`Limits::leading_lines`](crate::Limits).
    #[error("too many empty lines before the request line")]
    LeadingLines,
    /// A line of a request head that ends in LF without CR (RFC 9112 section 2.2).
    #[error("a line ends in LF without CR")]
    BareLf,
    /// A request line that is not `method SP target SP version`; HTTP/0.9 looks like this too.
    #[error("malformed request line")]
    RequestLine,
    /// A method that is not a token, or longer than 32 bytes.
    #[error("malformed method")]
    Method,
    /// The method CONNECT: this is not a forward proxy.
    #[error("CONNECT is not allowed")]
    Connect,
    /// A version that does not read `HTTP/` digit `.` digit.
    #[error("malformed HTTP version")]
    Version,
    /// A major version other than 1.
    #[error("HTTP version not supported")]
    VersionUnsupported,
    /// A request target longer than [`Limits::target_bytes`](crate::Limits).
    #[error("request target too long")]
    TargetTooLong,
    /// A byte that is not allowed in a request target.
    #[error("forbidden byte in the request target")]
    TargetByte,
    /// A `%` in the request target without two hexadecimal digits after it.
    #[error("malformed percent escape in the request target")]
    TargetEscape,
    /// A `#` in the request target.
    #[error("fragment in the request target")]
    TargetFragment,
    /// A target in a form that the method does not allow (RFC 9112 section 3.2).
    #[error("request target in a form its method does not allow")]
    TargetForm,
    /// No Host field in an HTTP/1.1 request.
    #[error("no Host field")]
    HostMissing,
    /// More than one Host field.
    #[error("more than one Host field")]
    HostDuplicate,
    /// More than one line of a field that has one value and decides what a request is answered, such as Authorization.
    #[error("more than one line of a field that has one value")]
    FieldDuplicate,
    /// A Host field, or the authority of an absolute target, that is not `host [":" port]`.
    #[error("malformed host")]
    HostSyntax,
    /// A field name that is not a token, a missing colon, or white space where none is allowed.
    #[error("malformed field name")]
    FieldName,
    /// A control byte, a bare CR or NUL in a field value.
    #[error("malformed field value")]
    FieldValue,
    /// A field line longer than [`Limits::line_bytes`](crate::Limits).
    #[error("field line too long")]
    FieldTooLong,
    /// More field lines than [`Limits::fields`](crate::Limits).
    #[error("too many fields")]
    TooManyFields,
    /// A head larger than [`Limits::head_bytes`](crate::Limits).
    #[error("head too large")]
    HeadTooLarge,
    /// A Content-Length that is not a decimal number below 2^63.
    #[error("malformed Content-Length")]
    ContentLength,
    /// More than one Content-Length, equal or not.
    #[error("more than one Content-Length")]
    ContentLengthDuplicate,
    /// Content-Length and Transfer-Encoding in one message (RFC 9112 section 6.3).
    #[error("both Content-Length and Transfer-Encoding")]
    FramingConflict,
    /// A Transfer-Encoding that is malformed, repeated, or does not end in `chunked`.
    #[error("malformed Transfer-Encoding")]
    TransferEncoding,
    /// A Transfer-Encoding that ends in `chunked` but applies another coding before it.
    #[error("unsupported transfer coding")]
    TransferEncodingUnsupported,
    /// Transfer-Encoding in an HTTP/1.0 message.
    #[error("Transfer-Encoding in an HTTP/1.0 message")]
    TransferEncodingVersion,
    /// An expectation other than `100-continue`.
    #[error("unknown expectation")]
    Expectation,
    /// A chunk-size line that is malformed.
    #[error("malformed chunk size")]
    ChunkSize,
    /// A chunk size with more than 16 digits, or of 2^63 and more.
    #[error("chunk size too large")]
    ChunkSizeTooLarge,
    /// A chunk extension that is malformed.
    #[error("malformed chunk extension")]
    ChunkExtension,
    /// A chunk-size line longer than [`Limits::chunk_line_bytes`](crate::Limits).
    #[error("chunk-size line too long")]
    ChunkLineTooLong,
    /// More extension bytes in a body than
    /// [`Limits::chunk_extension_bytes`](crate::Limits).
    #[error("too many chunk extensions")]
    ChunkExtensionsTooLarge,
    /// Chunk data not followed by CRLF.
    #[error("chunk data not followed by CRLF")]
    ChunkEnd,
    /// A trailer section that is malformed.
    #[error("malformed trailer section")]
    Trailer,
    /// A trailer section larger than [`Limits::trailer_bytes`](crate::Limits).
    #[error("trailer section too large")]
    TrailerTooLarge,
    /// The stream ended inside a head.
    #[error("the peer closed inside a head")]
    TruncatedHead,
    /// The stream ended inside a body.
    #[error("the peer closed inside a body")]
    TruncatedBody,
    /// The stream ended before the first byte of a response: the request may be worth a retry.
    #[error("the peer closed before answering")]
    ClosedUnanswered,
    /// A status line that is not `HTTP/1.x SP 3DIGIT [SP reason]` with a status from 100.
    #[error("malformed status line")]
    StatusLine,
    /// Status 101 although the request asked for no upgrade, or for another protocol.
    #[error("unexpected 101 Switching Protocols")]
    Upgraded,
    /// Bytes from the server when no response is expected.
    #[error("bytes without a request")]
    Unsolicited,
}

impl From<TargetFault> for Fault {
    fn from(fault: TargetFault) -> Self {
        match fault {
            TargetFault::Byte => Self::TargetByte,
            TargetFault::Escape => Self::TargetEscape,
            TargetFault::Fragment => Self::TargetFragment,
            TargetFault::Form => Self::TargetForm,
            TargetFault::Host(_) => Self::HostSyntax,
        }
    }
}

impl From<InvalidHost> for Fault {
    fn from(_: InvalidHost) -> Self {
        Self::HostSyntax
    }
}

impl Fault {
    /// A stable name in kebab case, for logs and counters.
    pub const fn token(self) -> &'static str {
        match self {
            Self::LeadingLines => "leading-lines",
            Self::BareLf => "bare-lf",
            Self::RequestLine => "request-line",
            Self::Method => "method",
            Self::Connect => "connect",
            Self::Version => "version",
            Self::VersionUnsupported => "version-unsupported",
            Self::TargetTooLong => "target-too-long",
            Self::TargetByte => "target-byte",
            Self::TargetEscape => "target-escape",
            Self::TargetFragment => "target-fragment",
            Self::TargetForm => "target-form",
            Self::HostMissing => "host-missing",
            Self::HostDuplicate => "host-duplicate",
            Self::FieldDuplicate => "field-duplicate",
            Self::HostSyntax => "host-syntax",
            Self::FieldName => "field-name",
            Self::FieldValue => "field-value",
            Self::FieldTooLong => "field-too-long",
            Self::TooManyFields => "too-many-fields",
            Self::HeadTooLarge => "head-too-large",
            Self::ContentLength => "content-length",
            Self::ContentLengthDuplicate => "content-length-duplicate",
            Self::FramingConflict => "framing-conflict",
            Self::TransferEncoding => "transfer-encoding",
            Self::TransferEncodingUnsupported => "transfer-encoding-unsupported",
            Self::TransferEncodingVersion => "transfer-encoding-version",
            Self::Expectation => "expectation",
            Self::ChunkSize => "chunk-size",
            Self::ChunkSizeTooLarge => "chunk-size-too-large",
            Self::ChunkExtension => "chunk-extension",
            Self::ChunkLineTooLong => "chunk-line-too-long",
            Self::ChunkExtensionsTooLarge => "chunk-extensions-too-large",
            Self::ChunkEnd => "chunk-end",
            Self::Trailer => "trailer",
            Self::TrailerTooLarge => "trailer-too-large",
            Self::TruncatedHead => "truncated-head",
            Self::TruncatedBody => "truncated-body",
            Self::ClosedUnanswered => "closed-unanswered",
            Self::StatusLine => "status-line",
            Self::Upgraded => "upgraded",
            Self::Unsolicited => "unsolicited",
        }
    }

    /// The status with which a server answers before it closes. For faults that only a response can have it is 502;
    /// a proxy that met any fault in a response answers its own client 502, whatever this returns.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Connect => StatusCode::METHOD_NOT_ALLOWED,
            Self::VersionUnsupported => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            Self::TargetTooLong => StatusCode::URI_TOO_LONG,
            Self::FieldTooLong | Self::TooManyFields | Self::HeadTooLarge => {
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            }
            Self::TransferEncodingUnsupported => StatusCode::NOT_IMPLEMENTED,
            Self::Expectation => StatusCode::EXPECTATION_FAILED,
            Self::ClosedUnanswered | Self::StatusLine | Self::Upgraded | Self::Unsolicited => {
                StatusCode::BAD_GATEWAY
            }
            _ => StatusCode::BAD_REQUEST,
        }
    }
}

/// Why a response head cannot be sent. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ResponseError {
    /// No head may be sent now: the final head of this exchange has been sent.
    #[error("the response head was sent already")]
    OutOfTurn,
    /// A 1xx status as the final one; [`Server::send_interim`](crate::Server) sends interim responses.
    #[error("an interim status cannot end an exchange")]
    InterimStatus,
}

/// Why a request head cannot be sent. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// An exchange is still under way, or the connection is over.
    #[error("the connection is not idle")]
    OutOfTurn,
    /// The method CONNECT, which this client does not support.
    #[error("CONNECT is not supported")]
    Connect,
    /// A path or query that is not a valid origin-form (or `*` for OPTIONS).
    #[error("invalid path or query")]
    Target,
    /// A host that is empty or has a byte that is not allowed in one.
    #[error("invalid host")]
    Host,
}

/// Why a body cannot be ended as its head announced. The connection must be cut, so that the peer sees the
/// truncation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BodyError {
    /// Fewer bytes were sent than Content-Length announced.
    #[error("the body is {missing} bytes short of its Content-Length")]
    Short {
        /// The number of announced bytes that were not sent.
        missing: u64,
    },
    /// More bytes were offered than Content-Length announced; the excess was not sent.
    #[error("the body is longer than its Content-Length")]
    Long,
    /// No head was sent, or the body has ended already.
    #[error("no body is being sent")]
    OutOfTurn,
}
