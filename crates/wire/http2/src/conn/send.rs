//! Sends body bytes, trailers, and frames about the connection.

use bytes::BytesMut;
use catamaran_message::Fields;

use super::{Connection, PING_LEN, Role, count};
use crate::encode;
use crate::error::{Code, SendError};
use crate::frame::{self, FrameHead, HEAD_LEN, PAYLOAD_MAX};
use crate::hpack::Block;

impl Connection {
    /// The number of body bytes that may be sent on a stream now, in one frame; 0 if the windows are used up or the
    /// stream takes none.
    #[inline]
    pub fn room(&mut self, id: u32) -> usize {
        let connection = self.windows.send;
        let Some(stream) = self.streams.sending(id) else {
            return 0;
        };
        let narrower = stream.send_window.min(connection).max(0);
        let window = usize::try_from(narrower).unwrap_or(usize::MAX);
        window.min(self.peer.payload_max).min(PAYLOAD_MAX)
    }

    /// Begins a frame with at most `len` body bytes. Returns how many of them the caller must write to the connection
    /// next: no more than the windows allow. `ends`: the message ends with these `len` bytes.
    ///
    /// # Errors
    /// The stream has no body to send, or a body that is not as long as announced; nothing was written.
    pub fn begin_data(
        &mut self,
        id: u32,
        len: usize,
        ends: bool,
        out: &mut BytesMut,
    ) -> Result<usize, SendError> {
        let taken = len.min(self.room(id));
        let stream = self.streams.sending(id).ok_or(SendError::OutOfTurn)?;
        if let Some(unsent) = &mut stream.unsent {
            let left = unsent.checked_sub(len as u64).ok_or(SendError::Length)?;
            if ends && left > 0 {
                return Err(SendError::Length);
            }
            *unsent -= taken as u64;
        }
        let is_last = ends && taken == len;
        // An empty frame is of use only if it ends the message.
        if taken == 0 && !is_last {
            return Ok(0);
        }
        let bytes = i64::from(count(taken));
        stream.send_window -= bytes;
        self.windows.send -= bytes;
        let head = FrameHead {
            len: taken,
            kind: frame::DATA,
            flags: if is_last { frame::END_STREAM } else { 0 },
            stream: id,
        };
        out.extend_from_slice(&head.bytes());
        if is_last {
            self.end_outbound(id, out);
        }
        Ok(taken)
    }

    /// Writes a block, which `fields` fills, in as many frames as the peer's largest frame requires.
    pub(crate) fn write_block(
        &mut self,
        id: u32,
        ends: bool,
        out: &mut BytesMut,
        fields: impl FnOnce(&mut Block<'_>),
    ) {
        let start = out.len();
        // Room for the frame's head, which is written once the block is complete.
        out.extend_from_slice(&[0; HEAD_LEN]);
        fields(&mut self.encoder.block(out));
        let max = self.peer.payload_max.min(PAYLOAD_MAX);
        let len = out.len() - start - HEAD_LEN;
        let mut head = FrameHead {
            len: len.min(max),
            kind: frame::HEADERS,
            flags: if ends { frame::END_STREAM } else { 0 },
            stream: id,
        };
        if len <= max {
            head.flags |= frame::END_HEADERS;
        }
        out[start..start + HEAD_LEN].copy_from_slice(&head.bytes());
        if len > max {
            let rest = out.split_off(start + HEAD_LEN + max);
            let mut pieces = rest.chunks(max).peekable();
            while let Some(piece) = pieces.next() {
                let is_last = pieces.peek().is_none();
                let flags = if is_last { frame::END_HEADERS } else { 0 };
                frame::write(frame::CONTINUATION, flags, id, piece, out);
            }
        }
    }

    /// Sends GOAWAY: the connection ends. `is_final`: streams that have not begun are not taken any more. Otherwise
    /// they are, because some may be on their way (RFC 9113, section 6.8).
    pub fn go_away(&mut self, code: Code, is_final: bool, out: &mut BytesMut) {
        if is_final {
            self.last_taken = self.last_taken.min(match self.role {
                Role::Server => self.streams.last,
                // This client takes no streams of the server.
                Role::Client => 0,
            });
        }
        frame::write_go_away(self.last_taken, code, out);
    }

    /// Sends a PING, whose answer is [`Event::Pong`](crate::Event).
    pub fn ping(&mut self, out: &mut BytesMut) {
        frame::write(frame::PING, 0, 0, &[0; PING_LEN], out);
    }

    /// Writes trailers, which end the message.
    ///
    /// # Errors
    /// See [`SendError`]; nothing was written.
    pub fn send_trailers(
        &mut self,
        id: u32,
        fields: &Fields,
        out: &mut BytesMut,
    ) -> Result<(), SendError> {
        encode::trailers(self, id, fields, out)
    }
}
