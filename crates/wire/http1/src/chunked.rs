//! The chunked transfer coding (RFC 9112 section 7.1).
//!
//! The decoder looks at every framing byte once and takes it out of the input at once, so chunk lines that
//! trickle in cost nothing extra; chunk data is handed on as it comes, however large the chunk. The grammar is
//! strict: CRLF only, no white space around sizes and extensions. Only in responses it accepts white space after
//! sizes and around the parts of extensions, since Apache 1.3 pads its sizes. Extensions and trailer fields are
//! checked, counted and dropped.

use bytes::{Buf, Bytes, BytesMut};

use crate::body::{Piece, SkipCounts, at_most};
use crate::error::Fault;
use crate::limits::Limits;
use crate::syntax::{hex_value, is_token, is_value};

/// Reads one chunked body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decoder {
    state: State,
    /// Whether white space may pad the lines of chunk sizes.
    is_padded: bool,
    /// The number of digits read of the current chunk size.
    digits: u8,
    /// The size of the current chunk while its line is read; then the number of its bytes still to come.
    remaining: u64,
    /// The bytes of the current chunk line, of all extensions, and of the trailer section, for the limits.
    line_bytes: usize,
    extension_bytes: usize,
    trailer_bytes: usize,
}

/// The part of the body that the next byte belongs to.
///
/// ```text
/// Size ─► (Extension…) ─► SizeLf ─┬─► Data ─► DataCr ─► DataLf ─► Size
///                                 └─► TrailerStart ─┬─► TrailerName ─► TrailerValue ─► TrailerLf ─► TrailerStart
///                                                   └─► EndLf ─► Done
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Size,
    SizePadding,
    ExtensionStart,
    ExtensionName,
    ExtensionNameEnd,
    ExtensionValueStart,
    ExtensionToken,
    ExtensionQuoted,
    ExtensionEscape,
    ExtensionQuotedEnd,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLf,
    EndLf,
    Done,
}

impl Decoder {
    /// A decoder for responses, which accepts padded chunk sizes.
    pub(crate) fn for_response() -> Self {
        Self {
            is_padded: true,
            ..Self::default()
        }
    }

    /// The next piece of the body; `None` when `input` holds no more of it.
    pub(crate) fn decode(
        &mut self,
        input: &mut BytesMut,
        limits: &Limits,
    ) -> Result<Option<Piece>, Fault> {
        loop {
            match self.state {
                State::Done => return Ok(Some(Piece::End)),
                State::Data => return Ok(self.take_data(input).map(Piece::Data)),
                _ if input.is_empty() => return Ok(None),
                _ => {
                    let taken = self.read_framing(input, limits)?;
                    input.advance(taken);
                }
            }
        }
    }

    /// Discards as much of the body as `input` holds.
    pub(crate) fn skip(
        &mut self,
        input: &[u8],
        limits: &Limits,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<SkipCounts, Fault> {
        let mut skipped = SkipCounts { taken: 0, data: 0 };
        while skipped.taken < input.len() && !self.is_done() {
            let rest = &input[skipped.taken..];
            skipped.taken += if self.state == State::Data {
                let len = self.pass_data(rest.len());
                sink(&rest[..len]);
                skipped.data += len;
                len
            } else {
                self.read_framing(rest, limits)?
            };
        }
        Ok(skipped)
    }

    /// Whether the last byte of the body has been read.
    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    fn take_data(&mut self, input: &mut BytesMut) -> Option<Bytes> {
        if input.is_empty() {
            return None;
        }
        let len = self.pass_data(input.len());
        Some(input.split_to(len).freeze())
    }

    /// Skips chunk data, of which `available` bytes are there; returns how many belong to the chunk.
    fn pass_data(&mut self, available: usize) -> usize {
        let len = at_most(self.remaining, available);
        self.remaining -= len as u64;
        if self.remaining == 0 {
            self.state = State::DataCr;
        }
        len
    }

    /// Reads framing bytes up to chunk data or the end of the body; returns their number.
    fn read_framing(&mut self, input: &[u8], limits: &Limits) -> Result<usize, Fault> {
        for (index, &byte) in input.iter().enumerate() {
            self.count(limits)?;
            self.state = self.step(byte)?;
            if matches!(self.state, State::Data | State::Done) {
                return Ok(index + 1);
            }
        }
        Ok(input.len())
    }

    /// Counts one more byte in the current state against the limits.
    fn count(&mut self, limits: &Limits) -> Result<(), Fault> {
        match self.state {
            State::Size | State::SizePadding | State::SizeLf => self.line_bytes += 1,
            State::ExtensionStart
            | State::ExtensionName
            | State::ExtensionNameEnd
            | State::ExtensionValueStart
            | State::ExtensionToken
            | State::ExtensionQuoted
            | State::ExtensionEscape
            | State::ExtensionQuotedEnd => {
                self.line_bytes += 1;
                self.extension_bytes += 1;
            }
            State::TrailerStart | State::TrailerName | State::TrailerValue | State::TrailerLf => {
                self.trailer_bytes += 1;
            }
            State::DataCr | State::DataLf | State::EndLf | State::Data | State::Done => {}
        }
        if self.extension_bytes > limits.chunk_extension_bytes {
            return Err(Fault::ChunkExtensionsTooLarge);
        }
        if self.line_bytes > limits.chunk_line_bytes {
            return Err(Fault::ChunkLineTooLong);
        }
        if self.trailer_bytes > limits.trailer_bytes {
            return Err(Fault::TrailerTooLarge);
        }
        Ok(())
    }

    /// The state after one framing byte.
    fn step(&mut self, byte: u8) -> Result<State, Fault> {
        if self.is_padded
            && matches!(byte, b' ' | b'\t')
            && let Some(state) = self.step_padding()
        {
            return Ok(state);
        }
        match self.state {
            State::Size => self.step_size(byte),
            State::SizePadding if byte == b'\r' => Ok(State::SizeLf),
            State::SizePadding if byte == b';' => Ok(State::ExtensionStart),
            State::SizePadding => Err(Fault::ChunkSize),
            State::SizeLf if byte == b'\n' => Ok(self.begin_chunk()),
            State::SizeLf => Err(Fault::ChunkSize),
            State::DataCr if byte == b'\r' => Ok(State::DataLf),
            State::DataLf if byte == b'\n' => Ok(State::Size),
            State::DataCr | State::DataLf => Err(Fault::ChunkEnd),
            State::TrailerStart if byte == b'\r' => Ok(State::EndLf),
            State::TrailerStart if is_token(byte) => Ok(State::TrailerName),
            State::TrailerName if is_token(byte) => Ok(State::TrailerName),
            State::TrailerName if byte == b':' => Ok(State::TrailerValue),
            State::TrailerValue if byte == b'\r' => Ok(State::TrailerLf),
            State::TrailerValue if is_value(byte) => Ok(State::TrailerValue),
            State::TrailerLf if byte == b'\n' => Ok(State::TrailerStart),
            State::EndLf if byte == b'\n' => Ok(State::Done),
            State::TrailerStart
            | State::TrailerName
            | State::TrailerValue
            | State::TrailerLf
            | State::EndLf => Err(Fault::Trailer),
            state => step_extension(state, byte).ok_or(Fault::ChunkExtension),
        }
    }

    /// The state after white space, where the grammar allows it (BWS) or Apache 1.3 writes it; `None` elsewhere.
    fn step_padding(&self) -> Option<State> {
        match self.state {
            State::Size if self.digits > 0 => Some(State::SizePadding),
            State::ExtensionName => Some(State::ExtensionNameEnd),
            State::ExtensionToken => Some(State::ExtensionQuotedEnd),
            state @ (State::SizePadding
            | State::ExtensionStart
            | State::ExtensionNameEnd
            | State::ExtensionValueStart
            | State::ExtensionQuotedEnd) => Some(state),
            _ => None,
        }
    }

    /// The state after one byte of a chunk's size, of its end, or of what may follow it.
    fn step_size(&mut self, byte: u8) -> Result<State, Fault> {
        if let Some(value) = hex_value(byte) {
            self.digits += 1;
            self.remaining = self.remaining << 4 | u64::from(value);
            if self.digits > SIZE_DIGITS_MAX || self.remaining > i64::MAX as u64 {
                return Err(Fault::ChunkSizeTooLarge);
            }
            return Ok(State::Size);
        }
        match byte {
            _ if self.digits == 0 => Err(Fault::ChunkSize),
            b'\r' => Ok(State::SizeLf),
            b';' => Ok(State::ExtensionStart),
            _ => Err(Fault::ChunkSize),
        }
    }

    /// The state after the line of a chunk's size: its data, or the trailers if the size is 0.
    fn begin_chunk(&mut self) -> State {
        self.line_bytes = 0;
        self.digits = 0;
        if self.remaining == 0 {
            State::TrailerStart
        } else {
            State::Data
        }
    }
}

/// The state after one byte of `*( ";" name [ "=" ( token / quoted-string ) ] )`, after its first semicolon;
/// `None` if the byte is not allowed.
fn step_extension(state: State, byte: u8) -> Option<State> {
    let next = match (state, byte) {
        (State::ExtensionStart | State::ExtensionName, _) if is_token(byte) => State::ExtensionName,
        (State::ExtensionName | State::ExtensionNameEnd, b'=') => State::ExtensionValueStart,
        (State::ExtensionValueStart | State::ExtensionToken, _) if is_token(byte) => {
            State::ExtensionToken
        }
        (State::ExtensionValueStart, b'"') => State::ExtensionQuoted,
        (State::ExtensionQuoted, b'"') => State::ExtensionQuotedEnd,
        (State::ExtensionQuoted, b'\\') => State::ExtensionEscape,
        (State::ExtensionQuoted | State::ExtensionEscape, _) if is_value(byte) => {
            State::ExtensionQuoted
        }
        (_, b';') if may_end_extension(state) => State::ExtensionStart,
        (_, b'\r') if may_end_extension(state) => State::SizeLf,
        _ => return None,
    };
    Some(next)
}

fn may_end_extension(state: State) -> bool {
    matches!(
        state,
        State::ExtensionName
            | State::ExtensionNameEnd
            | State::ExtensionToken
            | State::ExtensionQuotedEnd
    )
}

/// Writes the size line of a chunk of `len` bytes.
pub(crate) fn write_size(len: usize, out: &mut BytesMut) {
    // Two digits a byte, and CR LF. The digits are written from the last to the first.
    let mut line = [0; 2 * size_of::<usize>() + 2];
    let mut start = line.len() - 2;
    line[start..].copy_from_slice(b"\r\n");
    let mut rest = len;
    loop {
        start -= 1;
        line[start] = b"0123456789abcdef"[rest & 0xf];
        rest >>= 4;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&line[start..]);
}

/// The bytes that end a chunked body: the last chunk and an empty trailer section.
pub(crate) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The most digits of a chunk size. More than a 64-bit number needs are leading zeros, which no sender needs.
const SIZE_DIGITS_MAX: u8 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(mut bytes: BytesMut) -> Result<(Vec<u8>, bool), Fault> {
        let mut decoder = Decoder::default();
        let mut body = Vec::new();
        loop {
            match decoder.decode(&mut bytes, &Limits::request())? {
                Some(Piece::Data(data)) => body.extend_from_slice(&data),
                Some(Piece::End) => return Ok((body, true)),
                None => return Ok((body, false)),
            }
        }
    }

    #[test]
    fn a_chunk_larger_than_the_input_comes_in_pieces() {
        let mut decoder = Decoder::default();
        let mut input = BytesMut::from(&b"a\r\n0123"[..]);
        let piece = decoder.decode(&mut input, &Limits::request()).unwrap();
        assert_eq!(piece, Some(Piece::Data(Bytes::from_static(b"0123"))));
        assert_eq!(
            decoder.decode(&mut input, &Limits::request()).unwrap(),
            None
        );
        input.extend_from_slice(b"456789\r\n0\r\n\r\nrest");
        let piece = decoder.decode(&mut input, &Limits::request()).unwrap();
        assert_eq!(piece, Some(Piece::Data(Bytes::from_static(b"456789"))));
        assert_eq!(
            decoder.decode(&mut input, &Limits::request()).unwrap(),
            Some(Piece::End)
        );
        assert_eq!(&input[..], b"rest");
    }

    #[test]
    fn sizes_are_written_in_hexadecimal() {
        for len in [0, 1, 9, 10, 15, 16, 255, 4096, usize::MAX] {
            let mut out = BytesMut::new();
            write_size(len, &mut out);
            assert_eq!(out, format!("{len:x}\r\n").as_bytes());
        }
    }

    #[test]
    fn quoted_extensions_may_hold_anything_but_controls() {
        let body = BytesMut::from(&b"1;a=\"; \\\" \xff\";b\r\nx\r\n0;c=d\r\n\r\n"[..]);
        assert_eq!(decode(body), Ok((b"x".to_vec(), true)));
        let body = BytesMut::from(&b"1;a=\"\n\"\r\nx\r\n0\r\n\r\n"[..]);
        assert_eq!(decode(body), Err(Fault::ChunkExtension));
    }
}
