//! The errors, one enum per operation.
//!
//! A [`Fault`] ends the connection: the peer's bytes cannot be decoded, or are not allowed now
//! ([`Violation`]). It carries a stable token for logs and counters, and in the server role the status
//! that may still answer it. The other enums refuse what the caller asked for and leave the connection as
//! it was.

use http::StatusCode;
use thiserror::Error;

pub use crate::packet::PacketError;

/// A fault in what the peer sent; nothing more is read from the connection.
///
/// In the client role every fault is a bad gateway: 502 if no head was passed on yet, a visibly truncated
/// response otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// The header bytes start no packet, or one that is too large.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// A packet without payload where a message is expected.
    #[error("an empty packet where a message is due")]
    Empty,
    /// A message that the peer may not send now, or an unknown one; the number is its code.
    #[error("message {0} has no place here")]
    Message(u8),
    /// The head of a request cannot be accepted.
    #[error(transparent)]
    Request(#[from] RequestFault),
    /// A packet of the request's body cannot be accepted.
    #[error(transparent)]
    Body(#[from] BodyFault),
    /// A message of the response cannot be accepted.
    #[error(transparent)]
    Response(#[from] ResponseFault),
    /// A message at the wrong time or of the wrong size.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// Bytes arrived when none were expected: before a request, or after the last exchange.
    #[error("bytes arrived while no answer was due")]
    Unsolicited,
    /// The peer closed the connection in the middle of an exchange.
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

    /// In the server role, the status that answers the fault as long as no head was sent; `None`: close
    /// without an answer, for the peer does not speak AJP13.
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
    /// The payload has this message code instead of the expected one.
    #[error("message {0} in place of another")]
    Code(u8),
    /// A part of the message extends beyond the end of the payload.
    #[error("the message passes the end of its packet")]
    Overrun,
    /// A string without its zero byte.
    #[error("a string does not end with a zero byte")]
    Unterminated,
    /// Bytes follow the end of the message.
    #[error("bytes follow the end of the message")]
    Trailing,
    /// The head announces this many fields, more than the packet can hold.
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
    /// An attribute code that does not exist. The attributes after it cannot be read.
    #[error("no attribute has the code {0}")]
    AttributeCode(u8),
    /// A key size written as text that has more than 15 characters, or is not a decimal number below 2^32.
    #[error("the key size is not a number")]
    KeySize,
    /// A GET_BODY_CHUNK that asks for no bytes.
    #[error("a body packet of no bytes was asked for")]
    NothingAsked,
}

/// A fault in a header field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FieldFault {
    /// The name is not a token.
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
    /// Content-Length is not a number, too large, or given more than once.
    #[error("the content-length is invalid or ambiguous")]
    ContentLength,
    /// Transfer-Encoding is not exactly `chunked`, or comes with a Content-Length.
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

/// A fault in a FORWARD_REQUEST.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RequestFault {
    /// The message cannot be decoded.
    #[error("malformed request head")]
    Malformed(#[from] DecodeError),
    /// A header field cannot be accepted.
    #[error("a field of the request head is refused")]
    Field(#[from] FieldFault),
    /// The stored method is missing, not a token, or contradicts the method code.
    #[error("the stored method is missing, malformed, or beside a method code")]
    Method,
    /// The path is absent or does not start with `/`.
    #[error("the path is absent or not absolute")]
    Path,
    /// A text has control characters; the string names it.
    #[error("control characters in the {0}")]
    Control(&'static str),
    /// A named attribute has no name.
    #[error("an attribute without a name")]
    AttributeName,
    /// An attribute that would decide which file the container serves (CVE-2020-1938).
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

/// A fault in a packet of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BodyFault {
    /// The header bytes start no packet, or one that is too large.
    #[error("no acceptable packet where one of the request body is due")]
    Packet(#[from] PacketError),
    /// The count of bytes and the payload's length disagree.
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

/// A fault in a message of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ResponseFault {
    /// The message cannot be decoded.
    #[error("malformed response message")]
    Malformed(#[from] DecodeError),
    /// A header field cannot be accepted.
    #[error("a field of the response head is refused")]
    Field(#[from] FieldFault),
    /// The status is no valid HTTP status, or one that AJP13 cannot carry.
    #[error("{0} is not an acceptable status")]
    Status(u16),
    /// The reason phrase has control characters.
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
    /// A body packet that was not asked for.
    #[error("a body packet that was not asked for")]
    UnaskedData,
    /// More request body than announced, or body bytes after its end.
    #[error("the request body is longer than announced")]
    DataExcess,
    /// The request body ended early.
    #[error("the request body ended {missing} bytes short of its content-length")]
    DataShort {
        /// The number of announced bytes that did not come.
        missing: u64,
    },
    /// The container asked for body bytes too often.
    #[error("too many requests for body bytes")]
    TooManyAsks,
    /// More interim heads than [`ClientConfig::interim_max`](crate::ClientConfig::interim_max) allows;
    /// AJP13 has none.
    #[error("an interim response head where none is accepted")]
    Interim,
    /// A second head in one response.
    #[error("a second response head")]
    HeadTwice,
    /// Body bytes before the head.
    #[error("response body bytes before the head")]
    ChunkBeforeHead,
    /// END_RESPONSE before the head.
    #[error("the response ended without a head")]
    EndBeforeHead,
    /// More response body than announced.
    #[error("the response body is longer than announced")]
    ChunkExcess,
    /// The response body ended early.
    #[error("the response body ended {missing} bytes short of its content-length")]
    ChunkShort {
        /// The number of announced bytes that did not come.
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

    /// The status that answers the violation; `None` for those of a container, which cannot be answered.
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
    /// The connection is not idle: it has an exchange, or is over.
    #[error("the connection is not idle")]
    Busy,
    /// The head does not fit one packet.
    #[error("the request head takes {bytes} bytes, one packet carries {max}")]
    HeadTooLarge {
        /// The payload bytes that the head needs.
        bytes: usize,
        /// The payload bytes that one packet carries.
        max: usize,
    },
    /// More fields than [`ClientConfig::fields_max`](crate::ClientConfig::fields_max).
    #[error("the request has {fields} fields, the container takes {max}")]
    TooManyFields {
        /// The number of fields in the request.
        fields: usize,
        /// The most fields allowed.
        max: usize,
    },
    /// A field name that is longer than some containers read.
    #[error("a field name of {bytes} bytes exceeds the maximum of {max}")]
    FieldNameTooLong {
        /// The length of the name in bytes.
        bytes: usize,
        /// The longest name allowed, in bytes.
        max: usize,
    },
    /// A body longer than 2^63 - 1 bytes.
    #[error("the request body is longer than a content-length can say")]
    BodyTooLong,
    /// The path does not begin with `/`, or is `*` for a method other than OPTIONS.
    #[error("the request path is not absolute")]
    Path,
    /// A text has characters that containers pass on unchecked; the string names it.
    #[error("control characters in the request's {0}")]
    Control(&'static str),
}

/// A response head that cannot be sent over AJP13; nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ResponseError {
    /// No response is expected: there is no request, or the head was sent already.
    #[error("no response head is due")]
    NotDue,
    /// The head does not fit one packet.
    #[error("the response head takes {bytes} bytes, one packet carries {max}")]
    HeadTooLarge {
        /// The payload bytes that the head needs.
        bytes: usize,
        /// The payload bytes that one packet carries.
        max: usize,
    },
    /// A 1xx status: AJP13 has no interim responses.
    #[error("interim responses cannot be sent over ajp")]
    Interim,
    /// The reason phrase has control characters.
    #[error("control characters in the reason phrase")]
    Reason,
    /// The body is longer than peers can count: 2^63 - 1 bytes.
    #[error("the content-length of the response is 2^63 or more")]
    ContentLength,
}

/// A request body that ended early: the connection must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BodyError {
    /// Fewer bytes were sent than announced.
    #[error("the request body ended {missing} bytes short of its content-length")]
    Short {
        /// The number of announced bytes that were not sent.
        missing: u64,
    },
}
