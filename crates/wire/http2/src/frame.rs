//! Frames: the nine bytes before each payload (RFC 9113, section 4.1), and frames whose payload has a fixed length.

use bytes::BytesMut;

use crate::error::Code;

/// The number of bytes before each payload.
pub(crate) const HEAD_LEN: usize = 9;

/// The fixed fields before a frame's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHead {
    /// The length of the payload, in bytes.
    pub(crate) len: usize,
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    /// The stream of the frame; 0 stands for the connection.
    pub(crate) stream: u32,
}

impl FrameHead {
    /// The fixed fields at the beginning of `input`; `None` if they are not complete.
    #[inline]
    pub(crate) fn read(input: &[u8]) -> Option<Self> {
        let [a, b, c, kind, flags, stream @ ..] = *input.first_chunk::<HEAD_LEN>()?;
        Some(Self {
            len: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            // The highest bit is reserved.
            stream: number(stream),
        })
    }

    #[inline]
    pub(crate) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The fixed fields as bytes.
    #[inline]
    pub(crate) fn bytes(self) -> [u8; HEAD_LEN] {
        let [_, a, b, c] = u32::try_from(self.len).unwrap_or(u32::MAX).to_be_bytes();
        let [s0, s1, s2, s3] = self.stream.to_be_bytes();
        [a, b, c, self.kind, self.flags, s0, s1, s2, s3]
    }
}

/// A number of 31 bits, whose highest bit is ignored.
#[inline]
pub(crate) fn number(bytes: [u8; 4]) -> u32 {
    u32::from_be_bytes(bytes) & MAX_31_BITS
}

/// Writes a frame whose payload is `payload`.
pub(crate) fn write(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut BytesMut) {
    let len = payload.len();
    let head = FrameHead {
        len,
        kind,
        flags,
        stream,
    };
    out.extend_from_slice(&head.bytes());
    out.extend_from_slice(payload);
}

/// Writes RST_STREAM.
pub(crate) fn write_reset(stream: u32, code: Code, out: &mut BytesMut) {
    write(RST_STREAM, 0, stream, &code.0.to_be_bytes(), out);
}

/// Writes WINDOW_UPDATE.
pub(crate) fn write_window_update(stream: u32, increment: u32, out: &mut BytesMut) {
    write(WINDOW_UPDATE, 0, stream, &increment.to_be_bytes(), out);
}

/// Writes GOAWAY: streams beyond `last` are not processed.
pub(crate) fn write_go_away(last: u32, code: Code, out: &mut BytesMut) {
    let payload = u64::from(last) << 32 | u64::from(code.0);
    write(GOAWAY, 0, 0, &payload.to_be_bytes(), out);
}

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PUSH_PROMISE: u8 = 5;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;
/// PRIORITY_UPDATE (RFC 9218, section 7.1).
pub(crate) const PRIORITY_UPDATE: u8 = 16;

/// A flag of DATA and HEADERS: the message ends.
pub(crate) const END_STREAM: u8 = 1;
/// A flag of SETTINGS and PING: the frame acknowledges one that the receiver had sent.
pub(crate) const ACK: u8 = 1;
/// A flag of HEADERS and CONTINUATION: the block ends.
pub(crate) const END_HEADERS: u8 = 4;
/// A flag of DATA and HEADERS: the first byte is the length of the padding at the end.
pub(crate) const PADDED: u8 = 8;
/// A flag of HEADERS: five bytes about priority (RFC 7540) precede the block.
pub(crate) const HAS_PRIORITY: u8 = 32;

/// The greatest window size, increment and stream number.
pub(crate) const MAX_31_BITS: u32 = 0x7fff_ffff;

/// The largest payload of a frame in bytes, until a peer allows more (RFC 9113, section 4.2).
pub(crate) const PAYLOAD_MAX: usize = 16 * 1024;
