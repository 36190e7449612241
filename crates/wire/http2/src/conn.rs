//! One connection, whichever role this side has: frames, windows, settings, and which streams are open.
//!
//! The role is asked in two places: who opens streams, and what a block of fields is. What the blocks mean is for
//! [`crate::server`] and [`crate::client`].

use bytes::{Buf, Bytes, BytesMut};

use crate::block::ReceivedBlock;
use crate::error::{Code, Fault, StreamFault};
use crate::frame::{self, FrameHead, HEAD_LEN, MAX_31_BITS, PAYLOAD_MAX};
use crate::hpack;
use crate::limits::Limits;
use crate::settings::{Config, DEFAULT_WINDOW, PeerSettings};
use crate::streams::{Half, Stream, Streams};
use crate::tally::Tally;

mod receive;
mod send;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Server,
    Client,
}

/// What a frame came to.
#[derive(Debug)]
pub(crate) enum Received {
    /// A block of fields, which is in [`Connection::block`].
    Block {
        id: u32,
        is_trailers: bool,
        ends: bool,
    },
    Data {
        id: u32,
        data: Bytes,
        ends: bool,
    },
    /// The peer has reset a stream.
    Reset {
        id: u32,
        code: Code,
    },
    /// This side has reset a stream.
    Refused {
        id: u32,
        fault: StreamFault,
    },
    /// More may be sent of a body, or with the id 0 of all of them.
    Window {
        id: u32,
    },
    GoAway {
        code: Code,
    },
    Pong,
}

/// Bytes of bodies that all streams together may receive and send.
#[derive(Debug)]
struct Windows {
    send: i64,
    receive: i64,
    /// Bytes that were credited and that the peer was not told of.
    untold: u32,
}

/// A block of fields whose end has not come.
#[derive(Debug)]
struct OpenBlock {
    id: u32,
    ends: bool,
    bytes: Vec<u8>,
    frames: u32,
    empty_frames: u32,
}

/// What both roles of a connection share: what is sent on streams, and what is taken of them.
#[derive(Debug)]
pub struct Connection {
    role: Role,
    pub(crate) limits: Limits,
    config: Config,
    pub(crate) peer: PeerSettings,
    pub(crate) streams: Streams,
    windows: Windows,
    decoder: hpack::Decoder,
    pub(crate) encoder: hpack::Encoder,
    /// The last block that was received.
    pub(crate) block: ReceivedBlock,
    open_block: Option<Box<OpenBlock>>,
    /// The frame whose payload is not complete is of a block.
    awaits_block: bool,
    /// Bytes of the preface that are still to come.
    preface_left: usize,
    stage: Stage,
    /// Streams beyond this id are not taken: this side has said so.
    last_taken: u32,
    /// The peer has said that the connection ends: it takes no further streams.
    pub(crate) peer_leaves: bool,
    /// Streams beyond this id are not processed: the peer has said so.
    pub(crate) last_processed: u32,
    /// What happened since it was taken.
    tally: Tally,
    fault: Option<Fault>,
}

/// How far the settings are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The peer's have not come.
    Begun,
    /// The peer has not said that it heeds ours.
    Unacknowledged,
    Settled,
}

impl Connection {
    /// A connection, whose first bytes of this side are written.
    pub(crate) fn new(role: Role, limits: Limits, config: Config, out: &mut BytesMut) -> Self {
        if role == Role::Client {
            out.extend_from_slice(PREFACE);
        }
        config.write(role == Role::Server, limits.head_bytes, out);
        Self {
            role,
            limits,
            config,
            peer: PeerSettings::default(),
            streams: Streams::default(),
            windows: Windows {
                send: DEFAULT_WINDOW.into(),
                receive: config.connection_window.max(DEFAULT_WINDOW).into(),
                untold: 0,
            },
            decoder: hpack::Decoder::default(),
            encoder: hpack::Encoder::default(),
            block: ReceivedBlock::default(),
            open_block: None,
            awaits_block: false,
            preface_left: match role {
                Role::Server => PREFACE.len(),
                Role::Client => 0,
            },
            stage: Stage::Begun,
            last_taken: MAX_31_BITS,
            peer_leaves: false,
            last_processed: MAX_31_BITS,
            tally: Tally::default(),
            fault: None,
        }
    }

    /// Takes frames out of `input` until one comes to something. What is to be said at once is written.
    pub(crate) fn receive(
        &mut self,
        input: &mut BytesMut,
        out: &mut BytesMut,
    ) -> Result<Option<Received>, Fault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        // Streams that the peer does not process, after it said so.
        if let Some(stream) = self.streams.take_beyond(self.last_processed) {
            self.release(stream.held, out);
            let fault = StreamFault::NotProcessed;
            return Ok(Some(Received::Refused {
                id: stream.id,
                fault,
            }));
        }
        let received = self.frames(input, out);
        received.inspect_err(|fault| self.fault = Some(*fault))
    }

    fn frames(
        &mut self,
        input: &mut BytesMut,
        out: &mut BytesMut,
    ) -> Result<Option<Received>, Fault> {
        if !self.take_preface(input)? {
            return Ok(None);
        }
        while let Some(head) = FrameHead::read(input) {
            if head.len > PAYLOAD_MAX {
                return Err(Fault::FrameSize);
            }
            self.check_order(head)?;
            let whole = HEAD_LEN + head.len;
            self.awaits_block = matches!(head.kind, frame::HEADERS | frame::CONTINUATION);
            if input.len() < whole {
                input.reserve(whole - input.len());
                return Ok(None);
            }
            self.awaits_block = false;
            input.advance(HEAD_LEN);
            let payload = input.split_to(head.len);
            if let Some(received) = self.frame(head, payload, out)? {
                return Ok(Some(received));
            }
        }
        Ok(None)
    }

    /// Whether the preface is complete.
    fn take_preface(&mut self, input: &mut BytesMut) -> Result<bool, Fault> {
        if self.preface_left > 0 {
            let wanted = &PREFACE[PREFACE.len() - self.preface_left..];
            let len = wanted.len().min(input.len());
            if input[..len] != wanted[..len] {
                return Err(Fault::Preface);
            }
            input.advance(len);
            self.preface_left -= len;
        }
        Ok(self.preface_left == 0)
    }

    /// What may stand where: settings first, and nothing amid a block.
    #[inline]
    fn check_order(&self, head: FrameHead) -> Result<(), Fault> {
        let is_expected = match &self.open_block {
            Some(block) => head.kind == frame::CONTINUATION && head.stream == block.id,
            None if self.stage == Stage::Begun => {
                head.kind == frame::SETTINGS && !head.has(frame::ACK)
            }
            None => head.kind != frame::CONTINUATION,
        };
        is_expected.then_some(()).ok_or(Fault::Protocol)
    }

    pub(crate) fn open(&mut self, id: u32, inbound: Half, outbound: Half) {
        // What the peer was told counts once it has said that it heeds it.
        let window = match self.stage {
            Stage::Settled => self.config.window,
            Stage::Begun | Stage::Unacknowledged => DEFAULT_WINDOW.max(self.config.window),
        };
        self.streams.open(Stream {
            id,
            inbound,
            outbound,
            send_window: self.peer.window.into(),
            receive_window: window.into(),
            held: 0,
            untold: 0,
            missing: None,
            unsent: None,
            is_head: false,
        });
    }

    /// The peer's message has ended.
    pub(crate) fn end_inbound(&mut self, id: u32, out: &mut BytesMut) {
        if let Some(stream) = self.streams.get(id) {
            stream.inbound = Half::Ended;
            self.forget_ended(id, out);
        }
    }

    /// Removes a stream whose messages have both ended.
    pub(crate) fn forget_ended(&mut self, id: u32, out: &mut BytesMut) {
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        if (stream.inbound, stream.outbound) != (Half::Ended, Half::Ended) {
            return;
        }
        if let Some(stream) = self.streams.remove(id) {
            self.release(stream.held, out);
        }
    }

    /// Resets a stream for what is wrong with it.
    pub(crate) fn refuse(&mut self, id: u32, fault: StreamFault, out: &mut BytesMut) {
        self.tally.provoked_resets += 1;
        self.reset(id, fault.code(), out);
    }

    fn refused(&mut self, id: u32, fault: StreamFault, out: &mut BytesMut) -> Received {
        self.refuse(id, fault, out);
        Received::Refused { id, fault }
    }

    /// Resets a stream, whose exchange is over by that. One that is not known is left alone.
    pub fn reset(&mut self, id: u32, code: Code, out: &mut BytesMut) {
        if let Some(stream) = self.streams.remove(id) {
            self.release(stream.held, out);
            self.write_reset(id, code, out);
        }
    }

    fn write_reset(&mut self, id: u32, code: Code, out: &mut BytesMut) {
        self.streams.note_reset(id, self.config.resets_remembered);
        frame::write_reset(id, code, out);
    }

    /// Takes note that bytes of a body were taken: as many more may come.
    pub fn credit(&mut self, id: u32, bytes: u32, out: &mut BytesMut) {
        let Some(stream) = self.streams.get(id) else {
            // With the stream all of its bytes were credited.
            return;
        };
        let bytes = bytes.min(stream.held);
        if bytes == 0 {
            return;
        }
        stream.held -= bytes;
        stream.untold += bytes;
        if stream.inbound != Half::Ended && stream.untold >= self.config.window / 2 {
            frame::write_window_update(id, stream.untold, out);
            stream.receive_window += i64::from(stream.untold);
            stream.untold = 0;
        }
        self.release(bytes, out);
    }

    /// The same for the connection alone.
    fn release(&mut self, bytes: u32, out: &mut BytesMut) {
        let windows = &mut self.windows;
        windows.untold += bytes;
        if windows.untold >= self.config.connection_window.max(DEFAULT_WINDOW) / 2 {
            frame::write_window_update(0, windows.untold, out);
            windows.receive += i64::from(windows.untold);
            windows.untold = 0;
        }
    }

    /// Our message has ended.
    pub(crate) fn end_outbound(&mut self, id: u32, out: &mut BytesMut) {
        if let Some(stream) = self.streams.get(id) {
            stream.outbound = Half::Ended;
            self.forget_ended(id, out);
        }
    }

    /// Streams that are open.
    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// Whether the peer's opening (preface and settings) is not complete, or a head or trailers that have begun to come.
    pub fn is_amid_head(&self) -> bool {
        self.stage == Stage::Begun || self.open_block.is_some() || self.awaits_block
    }

    /// Whether the window of the connection lets no byte of any body be sent.
    pub fn is_shut(&self) -> bool {
        self.windows.send <= 0
    }

    /// Whether the server takes requests for tunnels (RFC 8441).
    pub fn takes_tunnels(&self) -> bool {
        match self.role {
            Role::Server => self.config.takes_tunnels,
            Role::Client => self.peer.takes_tunnels,
        }
    }

    /// Lets go of memory that is of no use until the next head.
    pub fn shrink(&mut self) {
        self.block.shrink();
    }

    /// What the peer has sent without use since this was called last.
    pub fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }
}

/// Bytes of one frame.
pub(crate) fn count(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// What a client sends first (RFC 9113, section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) const PING_LEN: usize = 8;

const WINDOW_MAX: i64 = MAX_31_BITS as i64;

/// A head of many times its largest size is a flood.
pub(crate) const FLOOD_FACTOR: usize = 4;
