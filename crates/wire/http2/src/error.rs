//! What is wrong with a peer: codes of the wire, faults of a connection and of one stream.
//!
//! A [`Fault`] ends the connection: what follows on it cannot be trusted. A [`StreamFault`] ends one stream, or is
//! answered on it. Each has a stable token for logs and counters.

use catamaran_message::TargetFault;
use http::StatusCode;
use thiserror::Error;

/// An error code of RST_STREAM and GOAWAY (RFC 9113, section 7). Peers may send others than those named here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code(pub u32);

impl Code {
    /// Nothing is wrong: the connection or the rest of an upload is not needed any more.
    pub const NO_ERROR: Self = Self(0);
    /// The peer broke a rule that has no code of its own.
    pub const PROTOCOL_ERROR: Self = Self(1);
    /// The sender failed.
    pub const INTERNAL_ERROR: Self = Self(2);
    /// The peer sent more than it was allowed.
    pub const FLOW_CONTROL_ERROR: Self = Self(3);
    /// A frame for a stream that the peer had ended.
    pub const STREAM_CLOSED: Self = Self(5);
    /// A frame of a size that its kind cannot have.
    pub const FRAME_SIZE_ERROR: Self = Self(6);
    /// The stream was not processed; the request may be sent again.
    pub const REFUSED_STREAM: Self = Self(7);
    /// The sender needs the stream no longer.
    pub const CANCEL: Self = Self(8);
    /// The table of HPACK can no longer be kept.
    pub const COMPRESSION_ERROR: Self = Self(9);
    /// The peer behaves as if it wanted to do harm.
    pub const ENHANCE_YOUR_CALM: Self = Self(11);
}

/// Why a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Fault {
    /// The first bytes are not those of HTTP/2 (RFC 9113, section 3.4).
    #[error("the connection does not begin as HTTP/2")]
    Preface,
    /// A frame that may not stand where it does, or says what it may not.
    #[error("a frame breaks a rule of the protocol")]
    Protocol,
    /// A window was overrun, or widened beyond 2^31-1.
    #[error("a window was overrun")]
    FlowControl,
    /// A frame longer than was agreed on, or of a size that its kind cannot have.
    #[error("a frame has a size that it cannot have")]
    FrameSize,
    /// A frame for a stream that the peer had ended.
    #[error("a frame for a stream that had ended")]
    StreamClosed,
    /// A block of fields that HPACK cannot decode: the tables of both sides differ from now on.
    #[error("a block of fields cannot be decoded")]
    Compression,
    /// Fields of more than four times the largest head.
    #[error("a head of many times the largest size")]
    HeadFlood,
    /// A head in more CONTINUATION frames than any head needs, or in empty ones.
    #[error("a head in too many frames")]
    ContinuationFlood,
}

impl Fault {
    /// What GOAWAY says.
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

    /// A stable name, for logs and counters.
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

/// What is wrong with one message. The connection continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum StreamFault {
    /// A field whose name is no token in lower case, or which concerns a connection of HTTP/1.1 (RFC 9113, section 8.2).
    #[error("malformed field")]
    Field,
    /// A field value with a control character, or with white space around it.
    #[error("malformed field value")]
    FieldValue,
    /// Pseudo-fields that are missing, unknown, repeated, out of place, or that no such message has.
    #[error("malformed pseudo-fields")]
    Pseudo,
    /// More than one Content-Length, or one that is no number.
    #[error("malformed Content-Length")]
    ContentLength,
    /// A body that is not as long as announced.
    #[error("the body is not as long as announced")]
    LengthMismatch,
    /// Fields behind a body that do not end it (RFC 9113, section 8.1).
    #[error("trailers that end nothing")]
    Trailers,
    /// A frame for a stream on which the peer's message had ended.
    #[error("a frame behind the end of the message")]
    AfterEnd,
    /// The window of the stream was overrun, or widened beyond 2^31-1.
    #[error("the window of the stream was overrun")]
    FlowControl,
    /// More streams than were allowed.
    #[error("more streams than allowed")]
    TooManyStreams,
    /// The peer has given the whole connection up before it looked at this request.
    #[error("the peer has not looked at this request")]
    NotProcessed,
    /// The method CONNECT without a protocol: this is not a forward proxy.
    #[error("CONNECT is not allowed")]
    Connect,
    /// A method that is not a token, or longer than 32 bytes.
    #[error("malformed method")]
    Method,
    /// A scheme that is none of HTTP.
    #[error("unknown scheme")]
    Scheme,
    /// A path and query that cannot be read.
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
    /// A host that is not `host [":" port]`.
    #[error("malformed host")]
    HostSyntax,
    /// `:authority` and Host say different things.
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
    /// What a server answers. `None`: the stream is reset.
    pub const fn status(self) -> Option<StatusCode> {
        Some(match self {
            Self::Connect => StatusCode::METHOD_NOT_ALLOWED,
            Self::Method
            | Self::Target(_)
            | Self::HostMissing
            | Self::HostDuplicate
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

    /// What RST_STREAM says.
    pub const fn code(self) -> Code {
        match self {
            Self::AfterEnd => Code::STREAM_CLOSED,
            Self::FlowControl => Code::FLOW_CONTROL_ERROR,
            Self::TooManyStreams | Self::NotProcessed => Code::REFUSED_STREAM,
            _ => Code::PROTOCOL_ERROR,
        }
    }

    /// A stable name, for logs and counters.
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

/// A message or a part of one that cannot be sent. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SendError {
    /// The stream has ended, was reset, or is not where such a message belongs.
    #[error("the stream is not where this belongs")]
    OutOfTurn,
    /// A 1xx status as the final one, or another one as an interim one.
    #[error("the status does not fit its place")]
    Status,
    /// A body that is not as long as its head announced. The stream is to be reset, so that the peer sees it.
    #[error("the body is not as long as its head announced")]
    Length,
    /// The peer takes no further stream, now or at all.
    #[error("the peer takes no further stream")]
    NoStream,
    /// The method CONNECT, which has no meaning here.
    #[error("CONNECT is not supported")]
    Connect,
    /// A path or query that is not a valid origin-form (or `*` for OPTIONS).
    #[error("invalid path or query")]
    Target,
    /// A host that is empty or has a byte no host may have.
    #[error("invalid host")]
    Host,
}
