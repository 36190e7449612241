//! Body framing: the length of a message's body, and its bytes in both directions.
//!
//! Content-Length and Transfer-Encoding are interpreted here (RFC 9112 section 6) and never leave the
//! codec as fields. Anything ambiguous is a fault; there is no lenient reading.

use bytes::{Bytes, BytesMut};
use catamaran_message::field::decimal;
use catamaran_message::name::{CONTENT_LENGTH, TRANSFER_ENCODING};
use catamaran_message::{BodyLength, Fields};
use http::Version;

use crate::chunked;
use crate::error::{BodyError, Fault};
use crate::limits::Limits;
use crate::syntax::{is_token_text, list, trim};

/// The framing fields of a head, collected while its fields are read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FramingFields {
    content_length: Option<u64>,
    coding: Option<Coding>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Chunked,
    /// A coding that ends in `chunked`, so that the length is known, over another that is not
    /// decoded.
    Unsupported,
}

impl Coding {
    /// Reads a Transfer-Encoding field.
    fn read(value: &[u8]) -> Result<Self, Fault> {
        let mut is_chunked = false;
        let mut has_others = false;
        for coding in list(value) {
            // `chunked` must be the last coding.
            if is_chunked {
                return Err(Fault::TransferEncoding);
            }
            let name = coding
                .split(|&byte| byte == b';')
                .next()
                .unwrap_or_default();
            if !is_token_text(trim(name)) {
                return Err(Fault::TransferEncoding);
            }
            is_chunked = coding.eq_ignore_ascii_case(b"chunked");
            has_others |= !is_chunked;
        }
        if !is_chunked {
            Err(Fault::TransferEncoding)
        } else if has_others {
            Ok(Self::Unsupported)
        } else {
            Ok(Self::Chunked)
        }
    }
}

impl FramingFields {
    /// Reads the fields of a head.
    pub(crate) fn read(headers: &Fields) -> Result<Self, Fault> {
        let mut framing = Self::default();
        for value in headers.get_all(CONTENT_LENGTH) {
            let length = decimal(value).ok_or(Fault::ContentLength)?;
            if framing.content_length.replace(length).is_some() {
                return Err(Fault::ContentLengthDuplicate);
            }
        }
        for value in headers.get_all(TRANSFER_ENCODING) {
            if framing.coding.replace(Coding::read(value)?).is_some() {
                return Err(Fault::TransferEncoding);
            }
        }
        Ok(framing)
    }

    /// The length of a request body. Without framing fields there is none.
    pub(crate) fn request_length(self, version: Version) -> Result<BodyLength, Fault> {
        self.check(version)?;
        Ok(match self.coding {
            Some(_) => BodyLength::Unknown,
            None => BodyLength::Known(self.content_length.unwrap_or(0)),
        })
    }

    /// The announced length and the decoder of a response body. `bodiless`: the response has none,
    /// whatever the fields say. Without framing fields the body ends with the connection.
    pub(crate) fn response_length(
        self,
        version: Version,
        bodiless: bool,
    ) -> Result<(Option<u64>, Decoder), Fault> {
        self.check(version)?;
        let decoder = if bodiless {
            Decoder::Length(0)
        } else if self.coding.is_some() {
            Decoder::Chunked(chunked::Decoder::for_response())
        } else if let Some(length) = self.content_length {
            Decoder::Length(length)
        } else {
            Decoder::UntilClose
        };
        Ok((self.content_length, decoder))
    }

    /// Whether the fields announce body bytes.
    pub(crate) fn announces_body(self) -> bool {
        self.coding.is_some() || self.content_length.is_some_and(|length| length > 0)
    }

    /// Checks that the framing fields are allowed together, and in a message of this version.
    fn check(self, version: Version) -> Result<(), Fault> {
        match self.coding {
            None => Ok(()),
            Some(_) if version == Version::HTTP_10 => Err(Fault::TransferEncodingVersion),
            Some(_) if self.content_length.is_some() => Err(Fault::FramingConflict),
            Some(Coding::Unsupported) => Err(Fault::TransferEncodingUnsupported),
            Some(Coding::Chunked) => Ok(()),
        }
    }
}

/// A result of [`Decoder::decode`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Bytes of the body, never empty.
    Data(Bytes),
    /// The body is complete.
    End,
}

/// How many bytes [`Decoder::skip`] took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SkipCounts {
    /// The bytes taken from the input.
    pub(crate) taken: usize,
    /// The bytes of the body among the bytes taken; the others are framing.
    pub(crate) data: usize,
}

/// Decodes the body of a message by its framing.
#[derive(Clone, Debug)]
pub(crate) enum Decoder {
    /// The number of body bytes still to come.
    Length(u64),
    Chunked(chunked::Decoder),
    UntilClose,
}

impl Decoder {
    pub(crate) fn for_request(length: BodyLength) -> Self {
        match length {
            BodyLength::Known(length) => Self::Length(length),
            BodyLength::Unknown => Self::Chunked(chunked::Decoder::default()),
        }
    }

    /// The next piece of the body; `None` when `input` holds no more of it.
    pub(crate) fn decode(
        &mut self,
        input: &mut BytesMut,
        limits: &Limits,
    ) -> Result<Option<Piece>, Fault> {
        match self {
            Self::Chunked(chunked) => chunked.decode(input, limits),
            Self::Length(0) => Ok(Some(Piece::End)),
            _ if input.is_empty() => Ok(None),
            Self::Length(left) => {
                let len = at_most(*left, input.len());
                *left -= len as u64;
                Ok(Some(Piece::Data(input.split_to(len).freeze())))
            }
            Self::UntilClose => Ok(Some(Piece::Data(input.split().freeze()))),
        }
    }

    /// Discards as much of the body as `input` holds.
    pub(crate) fn skip(
        &mut self,
        input: &[u8],
        limits: &Limits,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<SkipCounts, Fault> {
        let len = match self {
            Self::Chunked(chunked) => return chunked.skip(input, limits, sink),
            Self::Length(left) => {
                let len = at_most(*left, input.len());
                *left -= len as u64;
                len
            }
            Self::UntilClose => input.len(),
        };
        sink(&input[..len]);
        Ok(SkipCounts {
            taken: len,
            data: len,
        })
    }

    /// Whether the body is complete by its framing.
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Self::Length(left) => *left == 0,
            Self::Chunked(chunked) => chunked.is_done(),
            Self::UntilClose => false,
        }
    }

    /// Whether the body is complete if the stream ends now.
    pub(crate) fn ends_here(&self) -> bool {
        self.is_done() || matches!(self, Self::UntilClose)
    }
}

/// `available` bytes, or only `left` if these are fewer.
pub(crate) fn at_most(left: u64, available: usize) -> usize {
    usize::try_from(left).map_or(available, |left| left.min(available))
}

/// Encodes the body of a message by its framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoder {
    /// The number of body bytes still to be written.
    Length(u64),
    /// `open`: whether a chunk has been begun and not finished.
    Chunked {
        open: bool,
    },
    UntilClose,
    /// The message has no body; bytes that are offered are dropped.
    Discard,
    /// More bytes were offered than announced.
    Overrun,
}

impl Encoder {
    /// Begins a piece of `len` body bytes: for chunked framing, writes the chunk's size to `out`. Returns how many of
    /// these bytes the caller must write before it calls [`Self::finish`]: fewer than `len` if Content-Length allows
    /// fewer, and 0 if the message has no body.
    pub(crate) fn begin(&mut self, len: usize, out: &mut BytesMut) -> usize {
        match self {
            Self::Length(left) => match left.checked_sub(len as u64) {
                Some(rest) => {
                    *left = rest;
                    len
                }
                None => {
                    let allowed = usize::try_from(*left).unwrap_or(len);
                    *self = Self::Overrun;
                    allowed
                }
            },
            Self::Chunked { open } => {
                if len > 0 {
                    chunked::write_size(len, out);
                    *open = true;
                }
                len
            }
            Self::UntilClose => len,
            Self::Discard | Self::Overrun => 0,
        }
    }

    /// Whether the peer can tell without a further byte that the body is complete.
    pub(crate) fn is_filled(self) -> bool {
        matches!(self, Self::Length(0) | Self::Discard | Self::Overrun)
    }

    /// Finishes the piece that `begin` began.
    pub(crate) fn finish(&mut self, out: &mut BytesMut) {
        if let Self::Chunked { open } = self
            && std::mem::take(open)
        {
            out.extend_from_slice(b"\r\n");
        }
    }

    /// Ends the body: for chunked framing, writes the last chunk.
    ///
    /// # Errors
    /// The body is shorter or longer than announced.
    pub(crate) fn end(self, out: &mut BytesMut) -> Result<(), BodyError> {
        match self {
            Self::Length(0) | Self::UntilClose | Self::Discard => Ok(()),
            Self::Length(missing) => Err(BodyError::Short { missing }),
            Self::Overrun => Err(BodyError::Long),
            Self::Chunked { .. } => {
                out.extend_from_slice(chunked::LAST_CHUNK);
                Ok(())
            }
        }
    }
}
