//! What each kind of frame changes, as it is received.

use bytes::{Buf, BytesMut};

use super::{
    Connection, FLOOD_FACTOR, OpenBlock, PING_LEN, Received, Role, Stage, WINDOW_MAX, count,
};
use crate::error::{Code, Fault, StreamFault};
use crate::frame::{self, FrameHead};
use crate::settings::DEFAULT_WINDOW;
use crate::streams::{Found, Half, Stream};

impl Connection {
    pub(super) fn frame(
        &mut self,
        head: FrameHead,
        payload: BytesMut,
        out: &mut BytesMut,
    ) -> Result<Option<Received>, Fault> {
        match head.kind {
            frame::DATA => self.data(head, payload, out),
            frame::HEADERS => self.headers(head, &payload, out),
            frame::CONTINUATION => self.continuation(head, &payload, out),
            frame::RST_STREAM => self.reset_by_peer(head, &payload, out),
            frame::WINDOW_UPDATE => self.window_update(head, &payload, out),
            frame::SETTINGS => self.settings(head, &payload, out),
            frame::PING => self.ping_of_peer(head, &payload, out),
            frame::GOAWAY => self.go_away_of_peer(head, &payload),
            frame::PRIORITY => self.priority(head, &payload),
            frame::PRIORITY_UPDATE => self.priority_update(head, &payload),
            frame::PUSH_PROMISE => Err(Fault::Protocol),
            _ => {
                self.tally.useless += 1;
                Ok(None)
            }
        }
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
            // What was on its way for a stream that was reset is no flood: its window bounds it.
            Found::Closed | Found::Reset => {
                self.tally.useless += u32::from(payload.is_empty());
                self.release(whole, out);
                return Ok(None);
            }
        };
        let fault = match stream.inbound {
            Half::Awaited => Some(StreamFault::Pseudo),
            Half::Ended => Some(StreamFault::AfterEnd),
            Half::Body if len > stream.receive_window => Some(StreamFault::FlowControl),
            Half::Body => None,
        };
        let ends = head.has(frame::END_STREAM);
        let fault = fault.or_else(|| stream.take_body(payload.len(), ends).err());
        stream.held += whole;
        stream.receive_window -= len;
        if let Some(fault) = fault {
            return Ok(Some(self.refused(id, fault, out)));
        }
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
        Ok(Some(Received::Data { id, data, ends }))
    }

    fn headers(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        out: &mut BytesMut,
    ) -> Result<Option<Received>, Fault> {
        let id = head.stream;
        let mut rest = unpadded(head, payload)?;
        if head.has(frame::HAS_PRIORITY) {
            let (dependency, block) = rest.split_first_chunk::<5>().ok_or(Fault::FrameSize)?;
            check_dependency(id, dependency)?;
            rest = block;
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
            return self.end_block(id, ends, rest, out);
        }
        self.open_block = Some(Box::new(OpenBlock {
            id,
            ends,
            bytes: rest.to_vec(),
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

    /// A block is complete. It is decoded whatever it is for: both sides' tables change with it.
    fn end_block(
        &mut self,
        id: u32,
        ends: bool,
        bytes: &[u8],
        out: &mut BytesMut,
    ) -> Result<Option<Received>, Fault> {
        self.block.read(&mut self.decoder, bytes, &self.limits)?;
        let is_trailers = match self.streams.find(id) {
            Found::Open(stream) => match stream.inbound {
                Half::Ended => return Ok(Some(self.refused(id, StreamFault::AfterEnd, out))),
                Half::Body => true,
                Half::Awaited => false,
            },
            Found::Idle => return Ok(self.open_by_peer(id, ends, out)),
            Found::Reset | Found::Closed => {
                self.tally.useless += 1;
                return Ok(None);
            }
        };
        if !is_trailers {
            // Whether it is an interim head, which ends nothing, the client's role tells.
            return Ok(Some(Received::Block {
                id,
                is_trailers,
                ends,
            }));
        }
        if !ends {
            return Ok(Some(self.refused(id, StreamFault::Trailers, out)));
        }
        let length = self.streams.get(id).map(|stream| stream.take_body(0, true));
        if let Some(Err(fault)) = length {
            return Ok(Some(self.refused(id, fault, out)));
        }
        self.end_inbound(id, out);
        Ok(Some(Received::Block {
            id,
            is_trailers,
            ends,
        }))
    }

    /// A client opens a stream with the block that was read.
    fn open_by_peer(&mut self, id: u32, ends: bool, out: &mut BytesMut) -> Option<Received> {
        if id > self.last_taken {
            // It was on its way when this side said that no more are taken.
            self.tally.useless += 1;
            self.streams.last = id;
            return None;
        }
        if self.streams.len() >= self.config.streams_max as usize {
            self.streams.last = id;
            let fault = StreamFault::TooManyStreams;
            self.tally.provoked_resets += 1;
            self.write_reset(id, fault.code(), out);
            return Some(Received::Refused { id, fault });
        }
        let inbound = if ends { Half::Ended } else { Half::Body };
        self.open(id, inbound, Half::Awaited);
        let is_trailers = false;
        Some(Received::Block {
            id,
            is_trailers,
            ends,
        })
    }

    fn reset_by_peer(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        out: &mut BytesMut,
    ) -> Result<Option<Received>, Fault> {
        let code = payload.try_into().map_err(|_| Fault::FrameSize)?;
        let id = head.stream;
        self.tally.resets += 1;
        if id == 0 || matches!(self.streams.find(id), Found::Idle) {
            return Err(Fault::Protocol);
        }
        let Some(stream) = self.streams.remove(id) else {
            return Ok(None);
        };
        self.release(stream.held, out);
        let code = Code(u32::from_be_bytes(code));
        Ok(Some(Received::Reset { id, code }))
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
        let is_open = *window > 0;
        if *window <= WINDOW_MAX {
            let opens = was_shut && is_open;
            self.tally.window_updates += u32::from(!opens);
            return Ok(opens.then_some(Received::Window { id }));
        }
        match id {
            0 => Err(Fault::FlowControl),
            _ => Ok(Some(self.refused(id, StreamFault::FlowControl, out))),
        }
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
        let window = self.peer.window;
        if self.stage == Stage::Begun {
            self.stage = Stage::Unacknowledged;
            // From now on there are as many streams as the peer says, or as it likes.
            self.peer.streams_max = u32::MAX;
        }
        let least_table = self.peer.read(payload, self.role == Role::Client)?;
        // A table that was made smaller in between has lost its entries (RFC 7541, section 4.2).
        self.encoder.set_table_size(least_table);
        self.encoder.set_table_size(self.peer.table_max);
        let widened = i64::from(self.peer.window) - i64::from(window);
        let mut is_opened = false;
        for stream in self.streams.iter_mut() {
            let was_shut = stream.send_window <= 0;
            stream.send_window += widened;
            if stream.send_window > WINDOW_MAX {
                return Err(Fault::FlowControl);
            }
            is_opened |= was_shut && stream.send_window > 0;
        }
        frame::write(frame::SETTINGS, frame::ACK, 0, &[], out);
        Ok(is_opened.then_some(Received::Window { id: 0 }))
    }

    /// The peer heeds our settings.
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
            return Ok(Some(Received::Pong));
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
        // It may only become less.
        if head.stream != 0 || self.role == Role::Client && last > self.last_processed {
            return Err(Fault::Protocol);
        }
        let code = Code(u32::from_be_bytes(code));
        self.peer_leaves = true;
        if self.role == Role::Client {
            self.last_processed = last;
        }
        Ok(Some(Received::GoAway { code }))
    }

    /// Priorities of RFC 7540 are read and mean nothing (RFC 9113, section 5.3).
    fn priority(&mut self, head: FrameHead, payload: &[u8]) -> Result<Option<Received>, Fault> {
        self.tally.useless += 1;
        let dependency = payload.try_into().map_err(|_| Fault::FrameSize)?;
        if head.stream == 0 {
            return Err(Fault::Protocol);
        }
        check_dependency(head.stream, dependency)?;
        Ok(None)
    }

    /// Those of RFC 9218 (section 7.1), too: streams take turns alike.
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
    /// Compares the body with what was announced. `ends` if these are its last bytes.
    fn take_body(&mut self, bytes: usize, ends: bool) -> Result<(), StreamFault> {
        let Some(missing) = &mut self.missing else {
            return Ok(());
        };
        *missing = missing
            .checked_sub(bytes as u64)
            .ok_or(StreamFault::LengthMismatch)?;
        match (ends, *missing) {
            (true, 1..) => Err(StreamFault::LengthMismatch),
            _ => Ok(()),
        }
    }
}

/// Takes off what pads a payload, and returns how many bytes that were.
fn strip_padding(head: FrameHead, payload: &mut BytesMut) -> Result<u32, Fault> {
    let whole = payload.len();
    let from = usize::from(head.has(frame::PADDED));
    let rest = unpadded(head, payload)?.len();
    payload.advance(from);
    payload.truncate(rest);
    Ok(count(whole - rest))
}

/// The payload without what pads it.
fn unpadded(head: FrameHead, payload: &[u8]) -> Result<&[u8], Fault> {
    if !head.has(frame::PADDED) {
        return Ok(payload);
    }
    let (&padding, rest) = payload.split_first().ok_or(Fault::FrameSize)?;
    let len = rest.len().checked_sub(padding.into());
    len.map(|len| &rest[..len]).ok_or(Fault::Protocol)
}

/// No stream depends on itself (RFC 7540, section 5.3.1).
fn check_dependency(stream: u32, dependency: &[u8; 5]) -> Result<(), Fault> {
    let [on @ .., _weight] = *dependency;
    if frame::number(on) == stream {
        Err(Fault::Protocol)
    } else {
        Ok(())
    }
}

/// A head of 32 KiB takes two.
const CONTINUATIONS_MAX: u32 = 16;

/// None is of use.
const EMPTY_CONTINUATIONS_MAX: u32 = 2;
