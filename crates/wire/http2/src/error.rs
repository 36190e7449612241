//! Errors: codes on the wire, faults of a connection and of one stream, and messages that cannot be sent.
//!
//! A [`Fault`] ends the connection: nothing after it can be trusted. A [`StreamFault`] ends one stream, or is answered
//! on it. Each has a stable token for logs and counters.

use catamaran_message::TargetFault;
use http::StatusCode;
use thiserror::Error;

/// An error code of RST_STREAM and GOAWAY (RFC 9113, section 7). Peers may send codes that are not named here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code(pub u32);

impl Code {
    /// No error: the connection, or the rest of a request's body, is not needed any more.
    pub const NO_ERROR: Self = Self(0);
    /// The peer broke a rule that has no code of its own.
    pub const PROTOCOL_ERROR: Self = Self(1);
    /// The sender of the code failed.
    pub const INTERNAL_ERROR: Self = Self(2);
    /// The peer sent more than its window allowed.
    pub const FLOW_CONTROL_ERROR: Self = Self(3);
    /// A frame for a stream that the peer had ended.
    pub const STREAM_CLOSED: Self = Self(5);
    /// A frame of a size that its kind cannot have.
    pub const FRAME_SIZE_ERROR: Self = Self(6);
    /// The stream was not processed; the request may be sent again.
    pub const REFUSED_STREAM: Self = Self(7);
    /// The sender of the code does not need the stream any more.
    pub const CANCEL: Self = Self(8);
    /// The state of HPACK is lost.
    pub const COMPRESSION_ERROR: Self = Self(9);
    /// The peer causes excessive load.
    pub const ENHANCE_YOUR_CALM: Self = Self(11);
}

/// A fault that ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Fault {
    /// The first bytes are not those of HTTP/2 (RFC 9113, section 3.4).
    #[error("the connection does not begin as HTTP/2")]
    Preface,
    /// A frame that is not allowed where it came, or has a value that is not allowed.
    #[error("a frame breaks a rule of the protocol")]
    Protocol,
    /// The peer sent more than a window allowed, or widened one beyond 2^31-1.
    #[error("a window was overrun")]
    FlowControl,
    /// A frame longer than this side allows (16 KiB), or of a size that its kind cannot have.
    #[error("a frame has a size that it cannot have")]
    FrameSize,
    /// A frame for a stream that the peer had ended.
    #[error("a frame for a stream that had ended")]
    StreamClosed,
    /// A block of fields that HPACK cannot decode: from now on the tables of both sides differ.
    #[error("a block of fields cannot be decoded")]
    Compression,
    /// A head, or trailers, of more than four times [`Limits::head_bytes`](crate::Limits).
    #[error("a head of many times the largest size")]
    HeadFlood,
    /// A head in more than 16 CONTINUATION frames, or in more than two empty ones.
    #[error("a head in too many frames")]
    ContinuationFlood,
}

impl Fault {
    /// The error code for GOAWAY.
    pub const fn code(self) -> Code {
        match self {
            Self::Preface | Self::Protocol => Code::PROTOCOL_ERROR,
            Self::FlowControl => Code::FLOW_CONTROL_ERROR,
            Self::FrameSize => Code::FRAME_SIZE_ERROR,
            Self::StreamClosed => Code::STREAM_CLOSED,
            Self::Compression => Code::COMPRESSION_ERROR,
            Self::HeadFlood | Self::ContinuationFlood => Code::ENHANCE_YOUR_CALM,
        }
    }

    /// A stable name in kebab case, for logs and counters.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Preface => "h2-preface",
            Self::Protocol => "h2-protocol-error",
            Self::FlowControl => "h2-flow-control-error",
            Self::FrameSize => "h2-frame-size-error",
            Self::StreamClosed => "h2-stream-closed",
            Self::Compression => "h2-compression-error",
            Self::HeadFlood => "h2-head-flood",
            Self::ContinuationFlood => "h2-continuation-flood",
        }
    }
}

/// A fault of one message. The connection continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum StreamFault {
    /// A field name that is not a lower-case token, or a field that concerns a connection of HTTP/1.1 (RFC 9113,
    /// section 8.2).
    #[error("malformed field")]
    Field,
    /// A field value with a control character, or with white space around it.
    #[error("malformed field value")]
    FieldValue,
    /// A pseudo-field that is missing, unknown, repeated, after other fields, or not allowed in such a message.
    #[error("malformed pseudo-fields")]
    Pseudo,
    /// More than one Content-Length, one that is not a number, or one in a request for a tunnel.
    #[error("malformed Content-Length")]
    ContentLength,
    /// A body that is longer or shorter than its Content-Length.
    #[error("the body is not as long as announced")]
    LengthMismatch,
    /// Trailers in a HEADERS frame without END_STREAM (RFC 9113, section 8.1).
    #[error("trailers that end nothing")]
    Trailers,
    /// A frame for a stream on which the peer's message had ended.
    #[error("a frame behind the end of the message")]
    AfterEnd,
    /// The peer sent more than the window of the stream allowed, or widened one beyond 2^31-1.
    #[error("the window of the stream was overrun")]
    FlowControl,
    /// More open streams than [`Config::streams_max`](crate::Config).
    #[error("more streams than allowed")]
    TooManyStreams,
    /// The server has announced by GOAWAY that it does not process this request.
    #[error("the peer has not looked at this request")]
    NotProcessed,
    /// The method CONNECT without a protocol: this is not a forward proxy.
    #[error("CONNECT is not allowed")]
    Connect,
    /// A method that is not a token, or longer than 32 bytes.
    #[error("malformed method")]
    Method,
    /// A scheme that is neither `http` nor `https`.
    #[error("unknown scheme")]
    Scheme,
    /// A path and query that are malformed.
    #[error("malformed path")]
    Target(TargetFault),
    /// A path longer than [`Limits::target_bytes`](crate::Limits).
    #[error("path too long")]
    TargetTooLong,
    /// Neither `:authority` nor Host.
    #[error("no host")]
    HostMissing,
    /// More than one Host field.
    #[error("more than one Host field")]
    HostDuplicate,
    /// More than one line of a field that has one value and decides what a request is answered, such as Authorization.
    #[error("more than one line of a field that has one value")]
    FieldDuplicate,
    /// A host that is not `host [":" port]`.
    #[error("malformed host")]
    HostSyntax,
    /// `:authority` and Host differ.
    #[error("`:authority` and Host differ")]
    HostMismatch,
    /// A field longer than [`Limits::line_bytes`](crate::Limits).
    #[error("field too long")]
    FieldTooLong,
    /// More fields than [`Limits::fields`](crate::Limits).
    #[error("too many fields")]
    TooManyFields,
    /// A head larger than [`Limits::head_bytes`](crate::Limits).
    #[error("head too large")]
    HeadTooLarge,
    /// An expectation other than `100-continue`.
    #[error("unknown expectation")]
    Expectation,
}

impl StreamFault {
    /// The status with which a server answers. `None`: the stream is reset instead.
    pub const fn status(self) -> Option<StatusCode> {
        Some(match self {
            Self::Connect => StatusCode::METHOD_NOT_ALLOWED,
            Self::Method
            | Self::Target(_)
            | Self::HostMissing
            | Self::HostDuplicate
            | Self::FieldDuplicate
            | Self::HostSyntax
            | Self::HostMismatch => StatusCode::BAD_REQUEST,
            Self::Scheme => StatusCode::MISDIRECTED_REQUEST,
            Self::TargetTooLong => StatusCode::URI_TOO_LONG,
            Self::FieldTooLong | Self::TooManyFields | Self::HeadTooLarge => {
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            }
            Self::Expectation => StatusCode::EXPECTATION_FAILED,
            Self::Field
            | Self::FieldValue
            | Self::Pseudo
            | Self::ContentLength
            | Self::LengthMismatch
            | Self::Trailers
            | Self::AfterEnd
            | Self::FlowControl
            | Self::TooManyStreams
            | Self::NotProcessed => return None,
        })
    }

    /// The error code for RST_STREAM.
    pub const fn code(self) -> Code {
        match self {
            Self::AfterEnd => Code::STREAM_CLOSED,
            Self::FlowControl => Code::FLOW_CONTROL_ERROR,
            Self::TooManyStreams | Self::NotProcessed => Code::REFUSED_STREAM,
            _ => Code::PROTOCOL_ERROR,
        }
    }

    /// A stable name in kebab case, for logs and counters.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Field | Self::Trailers | Self::AfterEnd => "h2-refused",
            Self::FieldValue => "h2-field-value",
            Self::Pseudo => "h2-pseudo",
            Self::ContentLength => "h2-content-length",
            Self::LengthMismatch => "h2-length-mismatch",
            Self::FlowControl => "h2-flow-control-error",
            Self::TooManyStreams => "h2-streams-max",
            Self::NotProcessed => "h2-not-processed",
            Self::Connect => "connect",
            Self::Method => "method",
            Self::Scheme => "scheme-mismatch",
            Self::Target(TargetFault::Byte) => "target-byte",
            Self::Target(TargetFault::Escape) => "target-escape",
            Self::Target(TargetFault::Fragment) => "target-fragment",
            Self::Target(TargetFault::Form) => "target-form",
            Self::TargetTooLong => "target-too-long",
            Self::HostMissing => "host-missing",
            Self::HostDuplicate => "host-duplicate",
            Self::Target(TargetFault::Host(_)) | Self::HostSyntax => "host-syntax",
            Self::HostMismatch => "host-mismatch",
            Self::FieldDuplicate => "field-duplicate",
            Self::FieldTooLong => "field-too-long",
            Self::TooManyFields => "too-many-fields",
            Self::HeadTooLarge => "head-too-large",
            Self::Expectation => "expectation",
        }
    }
}

impl From<TargetFault> for StreamFault {
    fn from(fault: TargetFault) -> Self {
        Self::Target(fault)
    }
}

/// Why a message, or a part of one, cannot be sent. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SendError {
    /// The stream does not expect this message now: it has ended, was reset, or its head is missing or was sent
    /// already.
    #[error("the stream is not where this belongs")]
    OutOfTurn,
    /// A 1xx status in a final head, or another status in an interim head.
    #[error("the status does not fit its place")]
    Status,
    /// The body is not as long as its head announced. Reset the stream, so that the peer notices.
    #[error("the body is not as long as its head announced")]
    Length,
    /// The peer allows no further stream, either now or at all.
    #[error("the peer takes no further stream")]
    NoStream,
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
