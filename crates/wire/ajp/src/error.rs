//! What can go wrong, one enum per operation.
//!
//! A [`Fault`] ends the connection: the peer's bytes cannot be decoded, or say what must not be
//! said now ([`Violation`]). It carries a stable token for logs and counters, and in the server
//! role the status that may still answer it. The other enums refuse what the caller asked for and
//! leave the connection as it was.

use http::StatusCode;
use thiserror::Error;

pub use crate::packet::PacketError;

/// What the peer sent cannot be accepted; nothing more is read from the connection.
///
/// In the client role every fault is a bad gateway: 502 if no head was passed on yet, a visibly
/// truncated response otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// No packet, or one too large.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// A packet without payload where a message is due.
    #[error("an empty packet where a message is due")]
    Empty,
    /// A message that the peer may not send now, or that does not exist.
    #[error("message {0} has no place here")]
    Message(u8),
    /// A request head that is not accepted.
    #[error(transparent)]
    Request(#[from] RequestFault),
    /// A packet of the request's body that is not accepted.
    #[error(transparent)]
    Body(#[from] BodyFault),
    /// A message of the response that is not accepted.
    #[error(transparent)]
    Response(#[from] ResponseFault),
    /// A message at the wrong time or of the wrong size.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// Bytes arrived while none were due: before a request, or after the last exchange.
    #[error("bytes arrived while no answer was due")]
    Unsolicited,
    /// The peer closed the connection before it was done.
    #[error("the connection was closed in the middle of an exchange")]
    Eof,
}

impl Fault {
    /// The fault's name in logs and counters: kebab-case, never changed.
    pub fn token(&self) -> &'static str {
        match self {
            Self::Packet(fault) => packet_token(fault),
            Self::Empty => "ajp-empty-packet",
            Self::Message(_) => "ajp-unexpected-message",
            Self::Request(fault) => fault.token(),
            Self::Body(fault) => fault.token(),
            Self::Response(fault) => fault.token(),
            Self::Violation(violation) => violation.token(),
            Self::Unsolicited => "ajp-unsolicited-bytes",
            Self::Eof => "ajp-eof",
        }
    }

    /// In the server role, the status that answers the fault as long as no head was sent;
    /// `None`: close without a word, for the peer does not speak AJP13.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Packet(PacketError::TooLarge { .. }) | Self::Body(_) => {
                Some(StatusCode::BAD_REQUEST)
            }
            Self::Request(fault) => Some(fault.status()),
            Self::Violation(violation) => violation.status(),
            Self::Packet(PacketError::Magic)
            | Self::Empty
            | Self::Message(_)
            | Self::Response(_)
            | Self::Unsolicited
            | Self::Eof => None,
        }
    }
}

fn packet_token(fault: &PacketError) -> &'static str {
    match fault {
        PacketError::Magic => "ajp-magic",
        PacketError::TooLarge { .. } => "ajp-packet-too-large",
    }
}

/// A payload that is not the message it claims to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// Another message.
    #[error("message {0} in place of another")]
    Code(u8),
    /// A part of the message passes the end of the payload.
    #[error("the message passes the end of its packet")]
    Overrun,
    /// A string without its zero byte.
    #[error("a string does not end with a zero byte")]
    Unterminated,
    /// Bytes behind the end of the message.
    #[error("bytes follow the end of the message")]
    Trailing,
    /// More fields than the packet can hold.
    #[error("{0} fields do not fit the packet")]
    FieldCount(u16),
    /// A field name code that does not exist.
    #[error("no field has the code A0{0:02X}")]
    FieldCode(u8),
    /// A field name that is null or too long to be one.
    #[error("a field name is null or too long")]
    FieldNameLength,
    /// A method code that does not exist.
    #[error("no method has the code {0}")]
    MethodCode(u8),
    /// An attribute code that does not exist; what follows cannot be read.
    #[error("no attribute has the code {0}")]
    AttributeCode(u8),
    /// A key size written as text that has more than 15 characters, or is not a decimal number below 2^32.
    #[error("the key size is not a number")]
    KeySize,
    /// A GET_BODY_CHUNK that wants no bytes.
    #[error("a body packet of no bytes was asked for")]
    NothingAsked,
}

/// A header field that is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FieldFault {
    /// The name is no token.
    #[error("a field name is not a token")]
    Name,
    /// The value has control characters.
    #[error("a field value contains control characters")]
    Value,
    /// More fields than allowed.
    #[error("more than {max} fields")]
    TooMany {
        /// The most fields allowed.
        max: usize,
    },
    /// Content-Length is no number, too large, or given more than once.
    #[error("the content-length is invalid or ambiguous")]
    ContentLength,
    /// Transfer-Encoding is not exactly `chunked`, or stands beside a Content-Length.
    #[error("the transfer-encoding is not understood or contradicts a content-length")]
    TransferEncoding,
}

impl FieldFault {
    fn token(&self) -> &'static str {
        match self {
            Self::Name => "ajp-field-name",
            Self::Value => "ajp-field-value",
            Self::TooMany { .. } => "ajp-too-many-fields",
            Self::ContentLength => "ajp-content-length",
            Self::TransferEncoding => "ajp-transfer-encoding",
        }
    }
}

/// A FORWARD_REQUEST that is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RequestFault {
    /// It cannot be decoded.
    #[error("malformed request head")]
    Malformed(#[from] DecodeError),
    /// A field is not accepted.
    #[error("a field of the request head is refused")]
    Field(#[from] FieldFault),
    /// The stored method is missing, no token, or contradicts the method code.
    #[error("the stored method is missing, malformed, or beside a method code")]
    Method,
    /// The path is absent or does not start with `/`.
    #[error("the path is absent or not absolute")]
    Path,
    /// Control characters in a text.
    #[error("control characters in the {0}")]
    Control(&'static str),
    /// An attribute without name.
    #[error("an attribute without a name")]
    AttributeName,
    /// An attribute that would steer which file the container serves (CVE-2020-1938).
    #[error("an attribute that would redirect the request inside the container")]
    ForbiddenAttribute,
}

impl RequestFault {
    fn token(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "ajp-malformed-request",
            Self::Field(fault) => fault.token(),
            Self::Method => "ajp-stored-method",
            Self::Path => "ajp-path",
            Self::Control(_) => "ajp-control-character",
            Self::AttributeName => "ajp-attribute-name",
            Self::ForbiddenAttribute => "ajp-forbidden-attribute",
        }
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::Field(FieldFault::TooMany { .. }) => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::ForbiddenAttribute => StatusCode::FORBIDDEN,
            _ => StatusCode::BAD_REQUEST,
        }
    }
}

/// A packet of a request's body that is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BodyFault {
    /// No packet, or one too large.
    #[error("no acceptable packet where one of the request body is due")]
    Packet(#[from] PacketError),
    /// Count and payload disagree.
    #[error("the count in a body packet contradicts its length")]
    Shape,
    /// The web server closed the connection before the body's end.
    #[error("the connection was closed before the end of the request body")]
    Eof,
}

impl BodyFault {
    fn token(&self) -> &'static str {
        match self {
            Self::Packet(fault) => packet_token(fault),
            Self::Shape => "ajp-body-shape",
            Self::Eof => "ajp-request-body-eof",
        }
    }
}

/// A message of a response that is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ResponseFault {
    /// It cannot be decoded.
    #[error("malformed response message")]
    Malformed(#[from] DecodeError),
    /// A field is not accepted.
    #[error("a field of the response head is refused")]
    Field(#[from] FieldFault),
    /// The status is no HTTP status, or none that AJP13 can carry.
    #[error("{0} is not an acceptable status")]
    Status(u16),
    /// Control characters in the reason phrase.
    #[error("control characters in the reason phrase")]
    Reason,
}

impl ResponseFault {
    fn token(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "ajp-malformed-response",
            Self::Field(fault) => fault.token(),
            Self::Status(_) => "ajp-status",
            Self::Reason => "ajp-reason",
        }
    }
}

/// A decodable message that the state of the exchange does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// A body packet that nobody asked for.
    #[error("a body packet that was not asked for")]
    UnaskedData,
    /// More request body than announced, or after its end.
    #[error("the request body is longer than announced")]
    DataExcess,
    /// The request body ended early.
    #[error("the request body ended {missing} bytes short of its content-length")]
    DataShort {
        /// Bytes announced that did not come.
        missing: u64,
    },
    /// The container asks for body bytes again and again.
    #[error("too many requests for body bytes")]
    TooManyAsks,
    /// More interim heads than accepted; by default none is, for AJP13 has no such thing.
    #[error("an interim response head where none is accepted")]
    Interim,
    /// A second head in one response.
    #[error("a second response head")]
    HeadTwice,
    /// Body bytes before the head.
    #[error("response body bytes before the head")]
    ChunkBeforeHead,
    /// An end before the head.
    #[error("the response ended without a head")]
    EndBeforeHead,
    /// More response body than announced.
    #[error("the response body is longer than announced")]
    ChunkExcess,
    /// The response body ended early.
    #[error("the response body ended {missing} bytes short of its content-length")]
    ChunkShort {
        /// Bytes announced that did not come.
        missing: u64,
    },
}

impl Violation {
    fn token(&self) -> &'static str {
        match self {
            Self::UnaskedData => "ajp-unasked-data",
            Self::DataExcess => "ajp-request-body-too-long",
            Self::DataShort { .. } => "ajp-request-body-too-short",
            Self::TooManyAsks => "ajp-too-many-asks",
            Self::Interim => "ajp-interim-head",
            Self::HeadTwice => "ajp-second-head",
            Self::ChunkBeforeHead => "ajp-chunk-before-head",
            Self::EndBeforeHead => "ajp-end-before-head",
            Self::ChunkExcess => "ajp-response-body-too-long",
            Self::ChunkShort { .. } => "ajp-response-body-too-short",
        }
    }

    /// Only what a web server does wrong can be answered.
    fn status(&self) -> Option<StatusCode> {
        match self {
            Self::UnaskedData | Self::DataExcess | Self::DataShort { .. } => {
                Some(StatusCode::BAD_REQUEST)
            }
            _ => None,
        }
    }
}

/// A request that cannot be sent over AJP13; nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// The connection is in an exchange, or done.
    #[error("the connection is not idle")]
    Busy,
    /// The head does not fit one packet.
    #[error("the request head takes {bytes} bytes, one packet carries {max}")]
    HeadTooLarge {
        /// Payload bytes needed.
        bytes: usize,
        /// Payload bytes that one packet carries.
        max: usize,
    },
    /// More fields than the container is known to take.
    #[error("the request has {fields} fields, the container takes {max}")]
    TooManyFields {
        /// Fields in the request.
        fields: usize,
        /// The most allowed.
        max: usize,
    },
    /// A field name longer than every container reads.
    #[error("a field name of {bytes} bytes exceeds the maximum of {max}")]
    FieldNameTooLong {
        /// Bytes of the name.
        bytes: usize,
        /// The most allowed.
        max: usize,
    },
    /// A body longer than 2^63 - 1 bytes.
    #[error("the request body is longer than a content-length can say")]
    BodyTooLong,
    /// The path is not absolute, or `*` for another method than OPTIONS.
    #[error("the request path is not absolute")]
    Path,
    /// A text with characters that containers pass on unseen.
    #[error("control characters in the request's {0}")]
    Control(&'static str),
}

/// A response head that cannot be sent over AJP13; nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ResponseError {
    /// No response is due: there is no request, or its head was sent before.
    #[error("no response head is due")]
    NotDue,
    /// The head does not fit one packet.
    #[error("the response head takes {bytes} bytes, one packet carries {max}")]
    HeadTooLarge {
        /// Payload bytes needed.
        bytes: usize,
        /// Payload bytes that one packet carries.
        max: usize,
    },
    /// A 1xx status: AJP13 has no interim responses.
    #[error("interim responses cannot be sent over ajp")]
    Interim,
    /// Control characters in the reason phrase.
    #[error("control characters in the reason phrase")]
    Reason,
    /// The body is longer than peers can count.
    #[error("the content-length of the response is 2^63 or more")]
    ContentLength,
}

/// A request body that ended early: the connection must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BodyError {
    /// Fewer bytes than announced.
    #[error("the request body ended {missing} bytes short of its content-length")]
    Short {
        /// Bytes announced that did not come.
        missing: u64,
    },
}
