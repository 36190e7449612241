//! The effect of each kind of frame that is received.

use bytes::{Buf, BytesMut};

use super::{Connection, FLOOD_FACTOR, OpenBlock, PING_LEN, Role, Stage, WINDOW_MAX, count};
use crate::error::{Code, Fault, StreamFault};
use crate::event::{Event, Received};
use crate::frame::{self, FrameHead, HEAD_LEN};
use crate::settings::DEFAULT_WINDOW;
use crate::streams::{Found, Half, Stream};

impl Connection {
    /// Handles the complete frame at the beginning of `input`, and removes it.
    pub(super) fn frame(
        &mut self,
        head: FrameHead,
        input: &mut BytesMut,
        out: &mut BytesMut,
    ) -> Result<Option<Received>, Fault> {
        input.advance(HEAD_LEN);
        if head.kind == frame::DATA {
            let payload = input.split_to(head.len);
            return self.data(head, payload, out);
        }
        let payload = &input[..head.len];
        let received = match head.kind {
            frame::HEADERS => self.headers(head, payload, out),
            frame::CONTINUATION => self.continuation(head, payload, out),
            frame::RST_STREAM => self.reset_by_peer(head, payload, out),
            frame::WINDOW_UPDATE => self.window_update(head, payload, out),
            frame::SETTINGS => self.settings(head, payload, out),
            frame::PING => self.ping_of_peer(head, payload, out),
            frame::GOAWAY => self.go_away_of_peer(head, payload),
            frame::PRIORITY => self.priority(head, payload),
            frame::PRIORITY_UPDATE => self.priority_update(head, payload),
            frame::PUSH_PROMISE => Err(Fault::Protocol),
            _ => {
                self.tally.useless += 1;
                Ok(None)
            }
        };
        input.advance(head.len);
        received
    }

    fn data(
        &mut self,
        head: FrameHead,
        mut payload: BytesMut,
        out: &mut BytesMut,
    ) -> Result<Option<Received>, Fault> {
        let id = head.stream;
        let len = i64::try_from(head.len).unwrap_or(i64::MAX);
        if id == 0 {
            return Err(Fault::Protocol);
        }
        if len > self.windows.receive {
            return Err(Fault::FlowControl);
        }
        let padding = strip_padding(head, &mut payload)?;
        self.windows.receive -= len;
        let whole = count(head.len);
        let stream = match self.streams.find(id) {
            Found::Open(stream) => stream,
            Found::Idle => return Err(Fault::Protocol),
            Found::Closed if id <= self.last_taken => return Err(Fault::StreamClosed),
            // DATA that was on its way to a stream that was reset is no flood: the stream's window limits it.
            Found::Closed | Found::Reset => {
                self.tally.useless += u32::from(payload.is_empty());
                self.release(whole, out);
                return Ok(None);
            }
        };
        let ends = head.has(frame::END_STREAM);
        let result = match stream.inbound {
            Half::Awaited => Err(StreamFault::Pseudo),
            Half::Ended => Err(StreamFault::AfterEnd),
            Half::Body if len > stream.receive_window => Err(StreamFault::FlowControl),
            Half::Body => stream.take_body(payload.len(), ends),
        };
        // If the stream fails, its reset releases these bytes, too.
        stream.held += whole;
        stream.receive_window -= len;
        if let Err(fault) = result {
            return Ok(Some(self.fail(id, fault, out)));
        }
        // The caller does not see padding, so it cannot credit it.
        if padding > 0 {
            self.credit(id, padding, out);
        }
        if ends {
            self.end_inbound(id, out);
        } else if payload.is_empty() {
            self.tally.useless += 1;
            return Ok(None);
        }
        let data = payload.freeze();
        Ok(Some(Event::Body {
            stream: id,
            data,
            ends,
        }))
    }

    fn headers(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        out: &mut BytesMut,
    ) -> Result<Option<Received>, Fault> {
        let id = head.stream;
        let mut block = unpadded(head, payload)?;
        if head.has(frame::HAS_PRIORITY) {
            let (dependency, rest) = block.split_first_chunk::<5>().ok_or(Fault::FrameSize)?;
            check_dependency(id, dependency)?;
            block = rest;
        }
        match self.streams.find(id) {
            Found::Closed if id <= self.last_taken => return Err(Fault::StreamClosed),
            Found::Idle if self.role == Role::Client || id.is_multiple_of(2) => {
                return Err(Fault::Protocol);
            }
            Found::Open(_) | Found::Idle | Found::Reset | Found::Closed => {}
        }
        let ends = head.has(frame::END_STREAM);
        if head.has(frame::END_HEADERS) {
            return self.end_block(id, ends, block, out);
        }
        self.open_block = Some(Box::new(OpenBlock {
            id,
            ends,
            bytes: block.to_vec(),
            frames: 0,
            empty_frames: 0,
        }));
        Ok(None)
    }

    fn continuation(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        out: &mut BytesMut,
    ) -> Result<Option<Received>, Fault> {
        let Some(block) = &mut self.open_block else {
            return Err(Fault::Protocol);
        };
        block.frames += 1;
        block.empty_frames += u32::from(payload.is_empty());
        if block.frames > CONTINUATIONS_MAX || block.empty_frames > EMPTY_CONTINUATIONS_MAX {
            return Err(Fault::ContinuationFlood);
        }
        block.bytes.extend_from_slice(payload);
        if block.bytes.len() > self.limits.head_bytes.saturating_mul(FLOOD_FACTOR) {
            return Err(Fault::HeadFlood);
        }
        if !head.has(frame::END_HEADERS) {
            return Ok(None);
        }
        match self.open_block.take() {
            Some(block) => self.end_block(block.id, block.ends, &block.bytes, out),
            None => Ok(None),
        }
    }

    /// Reads a complete block. It is decoded even if the stream is over, because it changes the decoder's table.
    fn end_block(
        &mut self,
        id: u32,
        ends: bool,
        bytes: &[u8],
        out: &mut BytesMut,
    ) -> Result<Option<Received>, Fault> {
        self.block.read(&mut self.decoder, bytes, &self.limits)?;
        match self.streams.find(id) {
            Found::Open(stream) => match stream.inbound {
                Half::Ended => return Ok(Some(self.fail(id, StreamFault::AfterEnd, out))),
                Half::Body => {}
                // The client role finds out whether the head is an interim one, which must not end the stream.
                Half::Awaited => return Ok(Some(Event::block(id, ends))),
            },
            Found::Idle => return Ok(self.open_by_peer(id, ends, out)),
            Found::Reset | Found::Closed => {
                self.tally.useless += 1;
                return Ok(None);
            }
        }
        // A block after the head is trailers, which end the message.
        if !ends {
            return Ok(Some(self.fail(id, StreamFault::Trailers, out)));
        }
        if let Some(stream) = self.streams.get(id)
            && let Err(fault) = stream.take_body(0, true)
        {
            return Ok(Some(self.fail(id, fault, out)));
        }
        self.end_inbound(id, out);
        Ok(Some(match self.block.take_trailers(&self.limits) {
            Ok(fields) => Event::Trailers { stream: id, fields },
            Err(fault) => self.fail(id, fault, out),
        }))
    }

    /// Opens the stream of a request, whose head is the block that was read.
    fn open_by_peer(&mut self, id: u32, ends: bool, out: &mut BytesMut) -> Option<Received> {
        if id > self.last_taken {
            // The request was on its way when this side announced that it takes no more.
            self.tally.useless += 1;
            self.streams.last = id;
            return None;
        }
        if self.streams.len() >= self.config.streams_max as usize {
            self.streams.last = id;
            let fault = StreamFault::TooManyStreams;
            self.tally.provoked_resets += 1;
            self.write_reset(id, fault.code(), out);
            return Some(Event::Failed { stream: id, fault });
        }
        let inbound = if ends { Half::Ended } else { Half::Body };
        self.open(id, inbound, Half::Awaited);
        Some(Event::block(id, ends))
    }

    fn reset_by_peer(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        out: &mut BytesMut,
    ) -> Result<Option<Received>, Fault> {
        let code_bytes = payload.try_into().map_err(|_| Fault::FrameSize)?;
        let id = head.stream;
        self.tally.resets += 1;
        if id == 0 || matches!(self.streams.find(id), Found::Idle) {
            return Err(Fault::Protocol);
        }
        let Some(stream) = self.streams.remove(id) else {
            return Ok(None);
        };
        self.release(stream.held, out);
        let code = Code(u32::from_be_bytes(code_bytes));
        Ok(Some(Event::Reset { stream: id, code }))
    }

    fn window_update(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        out: &mut BytesMut,
    ) -> Result<Option<Received>, Fault> {
        let id = head.stream;
        let increment = frame::number(payload.try_into().map_err(|_| Fault::FrameSize)?);
        if increment == 0 {
            return Err(Fault::Protocol);
        }
        let window = match self.streams.find(id) {
            _ if id == 0 => &mut self.windows.send,
            Found::Open(stream) => &mut stream.send_window,
            Found::Idle => return Err(Fault::Protocol),
            Found::Reset | Found::Closed => {
                self.tally.window_updates += 1;
                return Ok(None);
            }
        };
        let was_shut = *window <= 0;
        *window += i64::from(increment);
        let opens = was_shut && *window > 0;
        if *window > WINDOW_MAX {
            return match id {
                0 => Err(Fault::FlowControl),
                _ => Ok(Some(self.fail(id, StreamFault::FlowControl, out))),
            };
        }
        self.tally.window_updates += u32::from(!opens);
        Ok(opens.then_some(Event::Window { stream: id }))
    }

    fn settings(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        out: &mut BytesMut,
    ) -> Result<Option<Received>, Fault> {
        self.tally.useless += 1;
        if head.stream != 0 {
            return Err(Fault::Protocol);
        }
        if head.has(frame::ACK) {
            return self.settle(payload);
        }
        let old_window = self.peer.window;
        if self.stage == Stage::Begun {
            self.stage = Stage::Unacknowledged;
            // The peer's settings replace the assumed limit; without the setting there is none.
            self.peer.streams_max = u32::MAX;
        }
        let least_table = self.peer.read(payload, self.role == Role::Client)?;
        // The smallest size comes first: it has evicted entries, even if a larger size follows in the same frame (RFC
        // 7541, section 4.2).
        self.encoder.set_table_size(least_table);
        self.encoder.set_table_size(self.peer.table_max);
        let change = i64::from(self.peer.window) - i64::from(old_window);
        let mut is_opened = false;
        for stream in self.streams.iter_mut() {
            let was_shut = stream.send_window <= 0;
            stream.send_window += change;
            if stream.send_window > WINDOW_MAX {
                return Err(Fault::FlowControl);
            }
            is_opened |= was_shut && stream.send_window > 0;
        }
        frame::write(frame::SETTINGS, frame::ACK, 0, &[], out);
        Ok(is_opened.then_some(Event::Window { stream: 0 }))
    }

    /// Handles the acknowledgement of our settings: from now on our window counts.
    fn settle(&mut self, payload: &[u8]) -> Result<Option<Received>, Fault> {
        if !payload.is_empty() {
            return Err(Fault::FrameSize);
        }
        if self.stage != Stage::Unacknowledged {
            return Err(Fault::Protocol);
        }
        self.stage = Stage::Settled;
        let narrowed = i64::from(DEFAULT_WINDOW.saturating_sub(self.config.window));
        for stream in self.streams.iter_mut() {
            stream.receive_window -= narrowed;
        }
        Ok(None)
    }

    fn ping_of_peer(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        out: &mut BytesMut,
    ) -> Result<Option<Received>, Fault> {
        self.tally.useless += 1;
        if head.stream != 0 {
            return Err(Fault::Protocol);
        }
        if payload.len() != PING_LEN {
            return Err(Fault::FrameSize);
        }
        if head.has(frame::ACK) {
            return Ok(Some(Event::Pong));
        }
        frame::write(frame::PING, frame::ACK, 0, payload, out);
        Ok(None)
    }

    fn go_away_of_peer(
        &mut self,
        head: FrameHead,
        payload: &[u8],
    ) -> Result<Option<Received>, Fault> {
        let Some((&[l0, l1, l2, l3, code @ ..], _)) = payload.split_first_chunk::<8>() else {
            return Err(Fault::FrameSize);
        };
        let last = frame::number([l0, l1, l2, l3]);
        // The number may only decrease (RFC 9113, section 6.8).
        if head.stream != 0 || self.role == Role::Client && last > self.last_processed {
            return Err(Fault::Protocol);
        }
        let code = Code(u32::from_be_bytes(code));
        self.peer_leaves = true;
        if self.role == Role::Client {
            self.last_processed = last;
        }
        Ok(Some(Event::GoAway { code }))
    }

    /// Checks a PRIORITY frame of RFC 7540, and ignores it (RFC 9113, section 5.3).
    fn priority(&mut self, head: FrameHead, payload: &[u8]) -> Result<Option<Received>, Fault> {
        self.tally.useless += 1;
        let dependency = payload.try_into().map_err(|_| Fault::FrameSize)?;
        if head.stream == 0 {
            return Err(Fault::Protocol);
        }
        check_dependency(head.stream, dependency)?;
        Ok(None)
    }

    /// Checks a PRIORITY_UPDATE (RFC 9218, section 7.1), and ignores it: all streams have the same priority.
    fn priority_update(
        &mut self,
        head: FrameHead,
        payload: &[u8],
    ) -> Result<Option<Received>, Fault> {
        self.tally.useless += 1;
        let (stream, _) = payload.split_first_chunk().ok_or(Fault::FrameSize)?;
        if head.stream != 0 || self.role == Role::Client || frame::number(*stream) == 0 {
            return Err(Fault::Protocol);
        }
        Ok(None)
    }
}

impl Stream {
    /// Counts body bytes against the announced length. `ends`: these are the last ones.
    fn take_body(&mut self, bytes: usize, ends: bool) -> Result<(), StreamFault> {
        let Some(missing) = &mut self.missing else {
            return Ok(());
        };
        *missing = missing
            .checked_sub(bytes as u64)
            .ok_or(StreamFault::LengthMismatch)?;
        if ends && *missing > 0 {
            return Err(StreamFault::LengthMismatch);
        }
        Ok(())
    }
}

/// Removes the padding from a payload, with the byte that states its length. Returns how many bytes that were.
fn strip_padding(head: FrameHead, payload: &mut BytesMut) -> Result<u32, Fault> {
    let padded_len = payload.len();
    let len = unpadded(head, payload)?.len();
    if head.has(frame::PADDED) {
        payload.advance(1);
    }
    payload.truncate(len);
    Ok(count(padded_len - len))
}

/// The payload without its padding.
fn unpadded(head: FrameHead, payload: &[u8]) -> Result<&[u8], Fault> {
    if !head.has(frame::PADDED) {
        return Ok(payload);
    }
    let (&padding, rest) = payload.split_first().ok_or(Fault::FrameSize)?;
    match rest.len().checked_sub(padding.into()) {
        Some(len) => Ok(&rest[..len]),
        None => Err(Fault::Protocol),
    }
}

/// Checks that a stream does not depend on itself (RFC 7540, section 5.3.1).
fn check_dependency(stream: u32, dependency: &[u8; 5]) -> Result<(), Fault> {
    let [on @ .., _weight] = *dependency;
    if frame::number(on) == stream {
        Err(Fault::Protocol)
    } else {
        Ok(())
    }
}

/// The most CONTINUATION frames of one head; a head of 32 KiB needs two.
const CONTINUATIONS_MAX: u32 = 16;

/// The most empty CONTINUATION frames of one head; none is of use.
const EMPTY_CONTINUATIONS_MAX: u32 = 2;
