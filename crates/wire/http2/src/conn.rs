//! One connection in either role: frames, windows, settings, and which streams are open.
//!
//! The role decides who may open streams, and how SETTINGS and GOAWAY are read. [`crate::server`] and [`crate::client`]
//! interpret the blocks of fields.

use bytes::{Buf, BytesMut};

use crate::block::ReceivedBlock;
use crate::error::{Code, Fault, StreamFault};
use crate::event::{Event, Received};
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

/// The windows of the whole connection: how many body bytes all streams together may send and receive.
#[derive(Debug)]
struct Windows {
    send: i64,
    receive: i64,
    /// The bytes that were credited and not announced to the peer by WINDOW_UPDATE yet.
    unannounced: u32,
}

/// A block of fields that ends with a CONTINUATION still to come.
#[derive(Debug)]
struct OpenBlock {
    id: u32,
    ends: bool,
    bytes: Vec<u8>,
    frames: u32,
    empty_frames: u32,
}

/// The part of a connection that both roles share. Its public functions send on streams and give credit for what was
/// received.
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
    /// The block that was received last.
    pub(crate) block: ReceivedBlock,
    open_block: Option<Box<OpenBlock>>,
    /// Whether the frame that has arrived only in part is a HEADERS or CONTINUATION.
    awaits_block: bool,
    /// The number of bytes of the client's preface still to come.
    preface_left: usize,
    stage: Stage,
    /// The greatest stream number that this side takes, as it announced by GOAWAY.
    last_taken: u32,
    /// Whether the peer has announced by GOAWAY that the connection ends.
    pub(crate) peer_leaves: bool,
    /// The greatest stream number that the server processes, as it announced by GOAWAY.
    pub(crate) last_processed: u32,
    /// The useless frames since the last [`Self::take_tally`].
    tally: Tally,
    fault: Option<Fault>,
}

/// The progress of the exchange of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The peer's settings have not arrived.
    Begun,
    /// The peer's settings have arrived, but not its acknowledgement of ours.
    Unacknowledged,
    Settled,
}

impl Connection {
    /// The state of a new connection. Writes this side's first bytes to `out`: the preface of a client, and the
    /// settings.
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
                unannounced: 0,
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

    /// Takes frames out of `input` until one yields an event; `None` if it needs more bytes. Answers that the protocol
    /// demands are written to `out`.
    pub(crate) fn receive(
        &mut self,
        input: &mut BytesMut,
        out: &mut BytesMut,
    ) -> Result<Option<Received>, Fault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        // After GOAWAY: streams that the server does not process.
        if let Some(stream) = self.streams.take_beyond(self.last_processed) {
            self.release(stream.held, out);
            let fault = StreamFault::NotProcessed;
            return Ok(Some(Event::Failed {
                stream: stream.id,
                fault,
            }));
        }
        let received = self.frames(input, out);
        received.inspect_err(|fault| self.fault = Some(*fault))
    }

    /// Handles the frames in `input` until one yields an event.
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
            if input.len() < whole {
                self.awaits_block = matches!(head.kind, frame::HEADERS | frame::CONTINUATION);
                input.reserve(whole - input.len());
                return Ok(None);
            }
            self.awaits_block = false;
            if let Some(received) = self.frame(head, input, out)? {
                return Ok(Some(received));
            }
        }
        Ok(None)
    }

    /// Takes the client's preface out of `input`; returns whether all of it has arrived.
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

    /// Checks that a frame of this kind may come now: SETTINGS first, and within a block only its CONTINUATION.
    #[inline]
    fn check_order(&self, head: FrameHead) -> Result<(), Fault> {
        let is_expected = match &self.open_block {
            Some(block) => head.kind == frame::CONTINUATION && head.stream == block.id,
            None if self.stage == Stage::Begun => {
                head.kind == frame::SETTINGS && !head.has(frame::ACK)
            }
            None => head.kind != frame::CONTINUATION,
        };
        if is_expected {
            Ok(())
        } else {
            Err(Fault::Protocol)
        }
    }

    /// Opens a stream with the windows that both sides have announced.
    pub(crate) fn open(&mut self, id: u32, inbound: Half, outbound: Half) {
        // A smaller window of ours is in force once the peer has acknowledged it.
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
            unannounced: 0,
            missing: None,
            unsent: None,
            is_head: false,
        });
    }

    /// Notes that the peer's message on this stream has ended.
    pub(crate) fn end_inbound(&mut self, id: u32, out: &mut BytesMut) {
        self.end(id, |stream| stream.inbound = Half::Ended, out);
    }

    /// Notes that our message on this stream has ended.
    pub(crate) fn end_outbound(&mut self, id: u32, out: &mut BytesMut) {
        self.end(id, |stream| stream.outbound = Half::Ended, out);
    }

    /// Ends one direction of a stream, and removes it if both have ended.
    fn end(&mut self, id: u32, end_half: impl FnOnce(&mut Stream), out: &mut BytesMut) {
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        end_half(stream);
        if (stream.inbound, stream.outbound) == (Half::Ended, Half::Ended)
            && let Some(stream) = self.streams.remove(id)
        {
            self.release(stream.held, out);
        }
    }

    /// Resets a stream because of a fault of the peer; returns the event that reports it.
    pub(crate) fn fail<H>(&mut self, id: u32, fault: StreamFault, out: &mut BytesMut) -> Event<H> {
        self.tally.provoked_resets += 1;
        self.reset(id, fault.code(), out);
        Event::Failed { stream: id, fault }
    }

    /// Resets a stream and forgets it, which ends its exchange. Does nothing if the stream is not open.
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

    /// Gives credit for `bytes` body bytes of a stream, which the caller has processed: the peer may send as many more.
    /// Windows are announced once half of one is due.
    pub fn credit(&mut self, id: u32, bytes: u32, out: &mut BytesMut) {
        let Some(stream) = self.streams.get(id) else {
            // The bytes of a stream that is over were credited when it ended.
            return;
        };
        let credited = bytes.min(stream.held);
        if credited == 0 {
            return;
        }
        stream.held -= credited;
        stream.unannounced += credited;
        if stream.inbound != Half::Ended && stream.unannounced >= self.config.window / 2 {
            frame::write_window_update(id, stream.unannounced, out);
            stream.receive_window += i64::from(stream.unannounced);
            stream.unannounced = 0;
        }
        self.release(credited, out);
    }

    /// Gives credit for `bytes` body bytes in the window of the connection.
    fn release(&mut self, bytes: u32, out: &mut BytesMut) {
        let windows = &mut self.windows;
        windows.unannounced += bytes;
        if windows.unannounced >= self.config.connection_window.max(DEFAULT_WINDOW) / 2 {
            frame::write_window_update(0, windows.unannounced, out);
            windows.receive += i64::from(windows.unannounced);
            windows.unannounced = 0;
        }
    }

    /// The number of open streams.
    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// Whether the connection waits for the rest of something that must not take long: the preface and first settings,
    /// a head, or trailers.
    pub fn is_amid_head(&self) -> bool {
        self.stage == Stage::Begun || self.open_block.is_some() || self.awaits_block
    }

    /// Whether the window of the connection is used up, so that no body byte can be sent on any stream.
    pub fn is_shut(&self) -> bool {
        self.windows.send <= 0
    }

    /// Whether the server accepts extended CONNECT (RFC 8441).
    pub fn takes_tunnels(&self) -> bool {
        match self.role {
            Role::Server => self.config.takes_tunnels,
            Role::Client => self.peer.takes_tunnels,
        }
    }

    /// Frees memory that is not needed before the next head.
    pub fn shrink(&mut self) {
        self.block.shrink();
    }

    /// Returns how many useless frames the peer has sent since the last call.
    pub fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }
}

/// A number of bytes within one frame, which always fits 32 bits.
pub(crate) fn count(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// The bytes with which a client begins a connection (RFC 9113, section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) const PING_LEN: usize = 8;

const WINDOW_MAX: i64 = MAX_31_BITS as i64;

/// A head of more than this many times [`Limits::head_bytes`] ends the connection.
pub(crate) const FLOOD_FACTOR: usize = 4;
