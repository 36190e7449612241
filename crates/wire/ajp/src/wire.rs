//! The primitives of the payload: bytes, 16-bit integers, strings.
//!
//! A string is a 16-bit length, the bytes, and one zero byte that the length does not count;
//! `FF FF` alone is the null string. Bytes are opaque: AJP13 names no charset. [`Reader`] never
//! looks past the slice it was given, and checks the zero byte, which Tomcat and Undertow do not.
//! [`Writer`] builds one packet at the end of the caller's buffer and takes it back if it grew
//! too large. Sums of lengths cannot overflow: every length is 16 bits.

use bytes::BytesMut;
use thiserror::Error;

use crate::error::DecodeError;
use crate::packet::HEADER_BYTES;

/// Reads primitives from the front of a payload.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from `payload`, and only from it.
    pub fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload }
    }

    /// The bytes not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// [`DecodeError::Overrun`] at the payload's end.
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        let (&byte, rest) = self.rest.split_first().ok_or(DecodeError::Overrun)?;
        self.rest = rest;
        Ok(byte)
    }

    /// Reads a truth value: every byte but zero is true.
    ///
    /// # Errors
    /// [`DecodeError::Overrun`] at the payload's end.
    pub fn bool(&mut self) -> Result<bool, DecodeError> {
        Ok(self.u8()? != 0)
    }

    /// Reads a 16-bit integer, the only kind that AJP13 has.
    ///
    /// # Errors
    /// [`DecodeError::Overrun`] if fewer than two bytes are left.
    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        let (&bytes, rest) = self.rest.split_first_chunk().ok_or(DecodeError::Overrun)?;
        self.rest = rest;
        Ok(u16::from_be_bytes(bytes))
    }

    /// Reads the next `len` bytes.
    ///
    /// # Errors
    /// [`DecodeError::Overrun`] if fewer are left.
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let (bytes, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or(DecodeError::Overrun)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Reads a string; `None` is the null string.
    ///
    /// # Errors
    /// [`DecodeError::Overrun`] if it passes the payload's end, [`DecodeError::Unterminated`] if
    /// no zero byte follows.
    pub fn string(&mut self) -> Result<Option<&'a [u8]>, DecodeError> {
        match self.u16()? {
            NULL => Ok(None),
            len => self.terminated(len).map(Some),
        }
    }

    /// Reads the `len` bytes of a string whose length was read already, and the zero byte after
    /// them.
    ///
    /// # Errors
    /// As [`Reader::string`].
    pub fn terminated(&mut self, len: u16) -> Result<&'a [u8], DecodeError> {
        let bytes = self.bytes(usize::from(len))?;
        match self.u8()? {
            0 => Ok(bytes),
            _ => Err(DecodeError::Unterminated),
        }
    }

    /// Checks that the message is complete.
    ///
    /// # Errors
    /// [`DecodeError::Trailing`] if bytes are left.
    pub fn finish(self) -> Result<(), DecodeError> {
        match self.rest {
            [] => Ok(()),
            _ => Err(DecodeError::Trailing),
        }
    }
}

/// Builds one packet at the end of a buffer.
///
/// Room is made for many fields at once, so that each of them costs little more than its bytes.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut BytesMut,
    start: usize,
    /// The position of the next byte. The bytes of `out` from there on are unused room.
    position: usize,
    /// The bytes of strings that are too long for their length field: not written, but counted.
    unwritten: usize,
}

impl<'a> Writer<'a> {
    /// Starts a packet with `magic` after what `out` already holds.
    pub fn packet(magic: [u8; 2], out: &'a mut BytesMut) -> Self {
        let start = out.len();
        let mut writer = Self {
            out,
            start,
            position: start,
            unwritten: 0,
        };
        let [first, second] = magic;
        writer.array([first, second, 0, 0]);
        writer
    }

    /// Writes one byte.
    pub fn u8(&mut self, value: u8) {
        self.array([value]);
    }

    /// Writes a 16-bit integer.
    pub fn u16(&mut self, value: u16) {
        self.array(value.to_be_bytes());
    }

    /// Writes a string.
    pub fn string(&mut self, value: &[u8]) {
        self.strings([], [value]);
    }

    /// Writes bytes as they are, and strings after them. Makes room only once.
    #[inline]
    pub fn strings<const B: usize, const S: usize>(&mut self, bytes: [u8; B], strings: [&[u8]; S]) {
        let len = B + strings
            .map(|value| value.len() + STRING_OVERHEAD)
            .iter()
            .sum::<usize>();
        if strings.iter().any(|value| value.len() >= usize::from(NULL)) {
            self.unwritten += len;
            return;
        }
        let (prefix, mut string_room) = self.room(len).split_at_mut(B);
        prefix.copy_from_slice(&bytes);
        for value in strings {
            let (string, room_after) = string_room.split_at_mut(value.len() + STRING_OVERHEAD);
            if let [high, low, text @ .., terminator] = string {
                let [.., high_len, low_len] = value.len().to_be_bytes();
                (*high, *low, *terminator) = (high_len, low_len, 0);
                text.copy_from_slice(value);
            }
            string_room = room_after;
        }
    }

    /// Writes a number as a string of decimal digits.
    pub fn decimal(&mut self, value: u64) {
        self.string(itoa::Buffer::new().format(value).as_bytes());
    }

    /// Writes a string, or the null string for `None`.
    pub fn optional(&mut self, value: Option<&[u8]>) {
        match value {
            Some(value) => self.string(value),
            None => self.u16(NULL),
        }
    }

    /// Leaves room for a 16-bit integer that is not known yet, and returns its position for
    /// [`Writer::fill`].
    pub fn reserve_u16(&mut self) -> usize {
        self.u16(0);
        self.position - 2
    }

    /// Fills the room that [`Writer::reserve_u16`] left.
    pub fn fill(&mut self, position: usize, value: u16) {
        self.out[position..position + 2].copy_from_slice(&value.to_be_bytes());
    }

    /// Completes the packet by writing its payload length.
    ///
    /// # Errors
    /// [`TooLarge`] if the payload exceeds `max` bytes; `out` is then as it was before.
    pub fn finish(mut self, max: usize) -> Result<(), TooLarge> {
        let bytes = self.position - self.start - HEADER_BYTES + self.unwritten;
        match u16::try_from(bytes) {
            Ok(len) if bytes <= max && self.unwritten == 0 => {
                self.fill(self.start + 2, len);
                self.out.truncate(self.position);
                Ok(())
            }
            _ => {
                self.out.truncate(self.start);
                Err(TooLarge { bytes, max })
            }
        }
    }

    /// Writes bytes as they are.
    #[inline]
    pub fn array<const N: usize>(&mut self, bytes: [u8; N]) {
        self.room(N).copy_from_slice(&bytes);
    }

    /// The next `len` bytes of the buffer, for the caller to write.
    #[inline]
    fn room(&mut self, len: usize) -> &mut [u8] {
        let (start, end) = (self.position, self.position + len);
        if end > self.out.len() {
            self.out.resize(end + ROOM_BYTES, 0);
        }
        self.position = end;
        &mut self.out[start..end]
    }
}

/// A message that does not fit one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the message takes {bytes} bytes, one packet carries {max}")]
pub struct TooLarge {
    /// Payload bytes that the message needs.
    pub bytes: usize,
    /// Payload bytes that one packet carries.
    pub max: usize,
}

/// The bytes of a string besides its text: the length and the zero byte.
const STRING_OVERHEAD: usize = 3;

/// The length field of the null string.
const NULL: u16 = 0xFFFF;

/// The bytes of room made at once; enough for most heads.
const ROOM_BYTES: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_is_length_bytes_and_zero() {
        let mut out = BytesMut::from(&b"before"[..]);
        let mut writer = Writer::packet(*b"AB", &mut out);
        writer.string(b"ab");
        writer.string(b"");
        writer.optional(None);
        writer.finish(100).unwrap();
        assert_eq!(
            &out[..],
            b"beforeAB\x00\x0a\x00\x02ab\x00\x00\x00\x00\xff\xff"
        );

        let mut reader = Reader::new(&out[10..]);
        assert_eq!(reader.string(), Ok(Some(&b"ab"[..])));
        assert_eq!(reader.string(), Ok(Some(&b""[..])));
        assert_eq!(reader.string(), Ok(None));
        assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn a_string_must_end_inside_the_payload_with_a_zero() {
        for (payload, fault) in [
            (&b""[..], DecodeError::Overrun),
            (b"\x00", DecodeError::Overrun),
            (b"\x00\x02a", DecodeError::Overrun),
            (b"\x00\x02ab", DecodeError::Overrun),
            (b"\x00\x02abc", DecodeError::Unterminated),
            (b"\xff\xfe", DecodeError::Overrun),
        ] {
            assert_eq!(Reader::new(payload).string(), Err(fault), "{payload:x?}");
        }
    }

    #[test]
    fn a_packet_that_grew_too_large_is_taken_back() {
        let mut out = BytesMut::from(&b"kept"[..]);
        for len in [9, 70_000] {
            let mut writer = Writer::packet(*b"AB", &mut out);
            writer.string(&vec![b'x'; len]);
            let error = writer.finish(11).unwrap_err();
            assert!(error.bytes >= len, "{error}");
            assert_eq!(&out[..], b"kept");
        }
    }

    #[test]
    fn the_longest_string_is_one_short_of_null() {
        for (len, fits) in [(0xFFF0, true), (0xFFFE, false), (0xFFFF, false)] {
            let mut out = BytesMut::new();
            let mut writer = Writer::packet(*b"AB", &mut out);
            writer.string(&vec![b'x'; len]);
            assert_eq!(writer.finish(0xFFFF).is_ok(), fits, "{len}");
        }
    }
}
