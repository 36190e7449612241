//! The frame around every message: magic, length, payload.
//!
//! A packet from the web server starts with `12 34`, one from the container with `41 42` ("AB");
//! then comes the payload length as 16 bits, big endian, and the payload. The size is not
//! negotiated: both ends must be configured alike. This module checks only the four header bytes,
//! so an oversized packet is refused before any of its payload is awaited. [`crate::message`]
//! decodes the payload.

use bytes::{Buf, Bytes, BytesMut};
use thiserror::Error;

/// The bytes before the payload: two of magic, two of length.
pub const HEADER_BYTES: usize = 4;

/// The first bytes of every packet that the web server sends.
pub const CLIENT_MAGIC: [u8; 2] = [0x12, 0x34];

/// The first bytes of every packet that the container sends.
pub const SERVER_MAGIC: [u8; 2] = *b"AB";

/// The largest whole packet, header included, in bytes: 8192 (the default) to 65536.
///
/// Both ends of a connection must agree on it; this is Tomcat's `packetSize`, mod_jk's
/// `max_packet_size` and httpd's `ProxyIOBufferSize`. Heads must fit one packet, and uploads move
/// one packet per round trip, so a larger size serves large heads and fast uploads at the price of
/// memory per connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PacketSize(u32);

impl PacketSize {
    /// 8192 bytes: what every deployed peer accepts.
    pub const DEFAULT: Self = Self(8192);

    /// 65536 bytes: the most that the 16-bit length allows.
    pub const MAX: Self = Self(65536);

    /// A packet size of `bytes`.
    ///
    /// # Errors
    /// [`PacketSizeError`] outside 8192 ..= 65536.
    pub fn new(bytes: usize) -> Result<Self, PacketSizeError> {
        match u32::try_from(bytes) {
            Ok(size) if (Self::DEFAULT.0..=Self::MAX.0).contains(&size) => Ok(Self(size)),
            _ => Err(PacketSizeError { bytes }),
        }
    }

    /// The size of the whole packet, in bytes.
    pub const fn bytes(self) -> usize {
        self.0 as usize
    }

    /// The longest payload of any packet.
    pub const fn payload_max(self) -> usize {
        self.bytes() - HEADER_BYTES
    }

    /// The most body bytes in one DATA packet: the payload less its 16-bit count.
    pub const fn data_max(self) -> usize {
        self.bytes() - 6
    }

    /// The most body bytes in one SEND_BODY_CHUNK: the payload less code, count and terminator.
    pub const fn chunk_max(self) -> usize {
        self.bytes() - 8
    }
}

impl Default for PacketSize {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The error for a packet size outside 8192 to 65536 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("packet size {bytes} is outside 8192 to 65536 bytes")]
pub struct PacketSizeError {
    /// The size asked for, in bytes.
    pub bytes: usize,
}

/// The fault of four header bytes that start no acceptable packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PacketError {
    /// The peer does not speak AJP13 in this direction.
    #[error("the packet does not start with the magic bytes of AJP13")]
    Magic,
    /// The announced payload exceeds the configured packet size.
    #[error("a payload of {bytes} bytes exceeds the maximum of {max}")]
    TooLarge {
        /// The announced payload length.
        bytes: usize,
        /// The longest payload accepted.
        max: usize,
    },
}

/// Takes the payload of the packet at the front of `input` once it is complete.
///
/// Decides as early as the bytes allow: on the first wrong magic byte, and on the length alone.
/// `None` leaves `input` as it is, with room reserved for the rest of the packet.
///
/// # Errors
/// [`PacketError`]; nothing is consumed then.
pub fn take(
    input: &mut BytesMut,
    magic: [u8; 2],
    size: PacketSize,
) -> Result<Option<Bytes>, PacketError> {
    let packet = complete(input, magic, size)?;
    Ok(packet.map(|len| take_payload(input, len)))
}

/// Takes a packet of `len` bytes off the front of `input`; returns its payload.
pub(crate) fn take_payload(input: &mut BytesMut, len: usize) -> Bytes {
    let mut packet = input.split_to(len).freeze();
    packet.advance(HEADER_BYTES);
    packet
}

/// The length of the packet at the front of `input`, header included, once it is complete. As [`take`]
/// otherwise.
pub(crate) fn complete(
    input: &mut BytesMut,
    magic: [u8; 2],
    size: PacketSize,
) -> Result<Option<usize>, PacketError> {
    let Some(payload) = payload_length(input, magic, size)? else {
        return Ok(None);
    };
    let packet = HEADER_BYTES + payload;
    if input.len() < packet {
        input.reserve(packet - input.len());
        return Ok(None);
    }
    Ok(Some(packet))
}

/// The payload length that the first four bytes of `input` announce; `None` if there are fewer.
pub(crate) fn payload_length(
    input: &[u8],
    magic: [u8; 2],
    size: PacketSize,
) -> Result<Option<usize>, PacketError> {
    if input.iter().zip(magic).any(|(have, want)| *have != want) {
        return Err(PacketError::Magic);
    }
    let Some(&[_, _, high, low]) = input.first_chunk::<HEADER_BYTES>() else {
        return Ok(None);
    };
    let bytes = usize::from(u16::from_be_bytes([high, low]));
    let max = size.payload_max();
    if bytes > max {
        return Err(PacketError::TooLarge { bytes, max });
    }
    Ok(Some(bytes))
}
