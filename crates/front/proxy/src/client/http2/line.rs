//! The state of one connection, which its driver and the tasks of its streams change in turn: the codec, the bytes on
//! both ways, and the streams.
//!
//! What a stream has to send stays with it until the windows and the output have room ([`Line::pump`]); streams take
//! turns, a frame at a time. Only the driver writes to the socket, once for all that the connection's tasks have added
//! since it was woken.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Bytes, BytesMut};
use catamaran_http2::{Code, Event, Fault, SendError, Server, StreamFault, Tally};
use catamaran_message::{Fields, RequestHead, Response};
use catamaran_transport::{FreeList, HIGH_WATER, Output, buffers};
use http::StatusCode;

use crate::client::ClientConnection;
use crate::client::http2::channel::{Channel, Over};
use crate::client::http2::share::{SharedDirection, TURN_MAX};
use crate::deadlines::Tick;

/// A client's connection that speaks HTTP/2.
#[derive(Debug)]
pub(crate) struct Line {
    /// `None` once nothing more is read or written.
    client: Option<ClientConnection>,
    codec: Server,
    /// Bytes that were received and not decoded.
    input: BytesMut,
    output: Output,
    /// The pieces of `output`, in their order, each with the stream whose body it is. Bytes after the last piece belong
    /// to no body.
    parts: VecDeque<OutputPart>,
    /// The bytes of all `parts`.
    parted: usize,
    /// The open streams, by their numbers.
    channels: Vec<Channel>,
    /// The index in `channels` of the stream looked up last: the next look-up is mostly for the same one.
    last_index: usize,
    /// The streams that have something to send and whose windows are open, in the order of their turns.
    listed: VecDeque<u32>,
    /// Bytes of responses' bodies that streams have handed over and the socket has not taken.
    pub(super) queued: usize,
    /// When the socket last took bytes of a body. Nothing else is progress: PINGs, settings and heads would keep all
    /// responses alive that the client does not take.
    body_written_at: Tick,
    /// Since when the socket has taken nothing; `None` while it refuses nothing.
    blocked: Option<Tick>,
    /// How exchanges share the bytes of requests' bodies that the client sends, and of responses' bodies that it takes.
    pub(super) uploads: SharedDirection,
    pub(super) downloads: SharedDirection,
    /// The driver's task, unless it has been woken since it ran.
    driver: Option<Waker>,
}

/// Bytes of one kind in the output.
#[derive(Debug)]
struct OutputPart {
    /// The stream whose body the bytes are; 0: they are heads of frames, fields, or frames of the connection.
    stream: u32,
    len: usize,
}

/// An event that the driver has to handle.
#[derive(Debug)]
pub(crate) enum Received {
    /// A request; or a fault of a request that is to be answered.
    Request {
        stream: u32,
        head: Result<Box<RequestHead>, StreamFault>,
        /// Whether the request has no body.
        ends: bool,
    },
    /// A message was malformed, and its stream was reset. The driver counts this, since no exchange does.
    Refused(StreamFault),
    /// The client has sent GOAWAY: it takes no further streams.
    GoAway,
    /// The client has answered [`Connection::ping`](catamaran_http2::Connection::ping), so it has read all that was
    /// sent before.
    Pong,
}

thread_local! {
    /// Heads of requests that are over, kept so that the next requests use their memory.
    static HEADS: RefCell<FreeList<Box<RequestHead>>> = const { RefCell::new(FreeList::new()) };
}

impl Line {
    /// Takes over a client's connection. Bytes that it has received already are decoded first; `begin` makes the codec
    /// and writes its first frames.
    pub(crate) fn new(
        mut client: ClientConnection,
        now: Tick,
        begin: impl FnOnce(&mut BytesMut) -> Server,
    ) -> Self {
        let mut output = Output::default();
        Self {
            input: client.take_input(),
            codec: begin(output.staging()),
            client: Some(client),
            output,
            parts: VecDeque::new(),
            parted: 0,
            channels: Vec::new(),
            last_index: 0,
            listed: VecDeque::new(),
            queued: 0,
            body_written_at: now,
            blocked: None,
            uploads: SharedDirection::default(),
            downloads: SharedDirection::default(),
            driver: None,
        }
    }

    // ---- the driver's side

    /// Has the driver's task woken when a stream has something to send.
    pub(crate) fn watch(&mut self, cx: &Context<'_>) {
        self.driver = Some(cx.waker().clone());
    }

    /// Wakes the driver, unless it was woken since it last ran.
    fn wake_driver(&mut self) {
        if let Some(driver) = self.driver.take() {
            driver.wake();
        }
    }

    /// Decodes what was received, and returns the next event for the driver; `None`: more bytes are needed. Events of
    /// streams are passed on to their tasks.
    ///
    /// # Errors
    /// The client has broken the protocol: the connection must be closed.
    pub(crate) fn receive(&mut self, now: Tick) -> Result<Option<Received>, Fault> {
        loop {
            let out = self.output.staging_bare();
            let Some(event) = self.codec.receive(&mut self.input, out, empty_head)? else {
                break;
            };
            if let Some(received) = self.take(event, now) {
                return Ok(Some(received));
            }
        }
        if self.input.is_empty() {
            // An idle connection holds no memory.
            buffers::give(std::mem::take(&mut self.input));
        }
        Ok(None)
    }

    /// Handles an event of the codec; returns it if the driver has to act on it.
    fn take(&mut self, event: Event<RequestHead>, now: Tick) -> Option<Received> {
        match event {
            Event::Head { stream, head, ends } => {
                self.open(stream, ends, now);
                let head = Ok(head);
                return Some(Received::Request { stream, head, ends });
            }
            Event::Refused {
                stream,
                fault,
                ends,
            } => {
                self.open(stream, ends, now);
                let head = Err(fault);
                return Some(Received::Request { stream, head, ends });
            }
            Event::Failed { stream, fault } => return self.fail(stream, fault),
            Event::GoAway { .. } => return Some(Received::GoAway),
            Event::Pong => return Some(Received::Pong),
            Event::Body { stream, data, ends } => {
                self.uploads.moved(data.len());
                match self.channel(stream) {
                    Some(channel) => channel.receive(data, ends),
                    None => self.credit(stream, data.len()),
                }
            }
            Event::Trailers { stream, .. } => {
                if let Some(channel) = self.channel(stream) {
                    channel.receive(Bytes::new(), true);
                }
            }
            Event::Reset { stream, .. } => {
                if let Some(channel) = self.channel(stream) {
                    channel.end(Over::Reset);
                }
            }
            // The window of the connection.
            Event::Window { stream: 0 } => {
                for index in 0..self.channels.len() {
                    let stream = self.channels[index].id;
                    self.list(stream);
                }
                self.pump();
            }
            Event::Window { stream } => {
                self.list(stream);
                self.pump();
            }
        }
        None
    }

    fn open(&mut self, stream: u32, ends: bool, now: Tick) {
        self.channels.push(Channel::new(stream, ends, now));
    }

    /// Ends a stream that was reset for a fault. The driver is told only if no exchange can report the fault.
    fn fail(&mut self, stream: u32, fault: StreamFault) -> Option<Received> {
        match self.channel(stream) {
            // The exchange of the stream counts and logs the fault.
            Some(channel) if !channel.is_sent => {
                channel.end(Over::Malformed(fault.token()));
                None
            }
            Some(channel) => {
                channel.end(Over::Left);
                Some(Received::Refused(fault))
            }
            None => Some(Received::Refused(fault)),
        }
    }

    /// Reads once; 0: the client has closed. Reads nothing while [`UNTAKEN_MAX`] bytes or more wait to be written.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.output.len() >= UNTAKEN_MAX {
            // The driver is woken when the socket takes bytes.
            return Poll::Pending;
        }
        let Some(client) = &mut self.client else {
            return Poll::Ready(Ok(0));
        };
        if self.input.capacity() == 0 && !client.stream.has_news() {
            ready!(client.stream.poll_readable(cx))?;
        }
        make_room(&mut self.input);
        let read = client.stream.poll_read(cx, &mut self.input);
        if self.input.is_empty() {
            buffers::give(std::mem::take(&mut self.input));
        }
        read
    }

    /// Writes all that the tasks of the connection had to send; ready when it is written.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>, now: Tick) -> Poll<io::Result<()>> {
        while !self.is_written()
            && let Some(client) = &mut self.client
        {
            // With TLS, bytes that have left the output may still wait for the socket.
            let (output_before, unsent_before) = (self.output.len(), client.stream.unsent());
            let flushed = self.output.poll_write(cx, &mut client.stream);
            let written = output_before - self.output.len();
            let has_moved = written > 0 || client.stream.unsent() < unsent_before;
            self.blocked = if flushed.is_ready() {
                None
            } else if has_moved {
                Some(now)
            } else {
                self.blocked.or(Some(now))
            };
            self.wrote(written, now);
            ready!(flushed)?;
            self.pump();
        }
        Poll::Ready(Ok(()))
    }

    /// Notes that the socket has taken this many bytes of the output, and tells the streams whose bodies they were.
    fn wrote(&mut self, mut written: usize, now: Tick) {
        let mut moved = 0;
        while written > 0 {
            let Some(part) = self.parts.front_mut() else {
                break;
            };
            let (stream, taken) = (part.stream, part.len.min(written));
            part.len -= taken;
            if part.len == 0 {
                self.parts.pop_front();
            }
            written -= taken;
            self.parted -= taken;
            if stream > 0 {
                moved += taken;
                if let Some(channel) = self.channel(stream) {
                    channel.wrote(taken, now);
                }
            }
        }
        if moved > 0 {
            self.queued -= moved;
            self.body_written_at = now;
            self.downloads.moved(moved);
        }
    }

    /// The frames without use that the client has sent since the last call.
    pub(crate) fn take_tally(&mut self) -> Tally {
        self.codec.connection.take_tally()
    }

    /// Whether only a part of the connection's preface or of a head has arrived.
    pub(crate) fn is_amid_head(&self) -> bool {
        self.codec.connection.is_amid_head()
    }

    /// Whether no stream is open, and no body has bytes that are not written.
    pub(crate) fn is_idle(&self) -> bool {
        self.channels.is_empty() && self.queued == 0
    }

    /// Whether the socket has taken all that was to be written.
    pub(crate) fn is_written(&self) -> bool {
        let client = self.client.as_ref();
        self.output.is_empty() && client.is_none_or(|client| client.stream.unsent() == 0)
    }

    /// Lets go of memory that an idle connection does not need.
    pub(crate) fn release(&mut self) {
        if self.is_written() {
            self.output.release();
        }
        self.parts.shrink_to(KEPT);
        self.listed.shrink_to(KEPT);
        self.channels.shrink_to(KEPT);
        self.codec.connection.shrink();
    }

    /// Sends GOAWAY: the connection ends. Unless `is_final`, also sends a PING, whose answer shows that the client has
    /// read it.
    pub(crate) fn go_away(&mut self, code: Code, is_final: bool) {
        let (connection, out) = (&mut self.codec.connection, self.output.staging());
        connection.go_away(code, is_final, out);
        if !is_final {
            connection.ping(out);
        }
    }

    /// Ends all streams, and wakes their tasks.
    pub(crate) fn end_streams(&mut self) {
        for channel in &mut self.channels {
            channel.end(Over::Left);
        }
        self.listed.clear();
    }

    /// Ends the connection and returns the client; bytes not yet written are dropped. `None`: this was done before.
    pub(crate) fn take_client(&mut self) -> Option<ClientConnection> {
        self.end_streams();
        // Freed now, because tasks of streams may hold this connection until their backends are done.
        self.input = BytesMut::new();
        self.output.clear();
        self.parts.clear();
        self.parted = 0;
        self.client.take()
    }

    // ---- what is asked of the whole connection

    /// Since when the socket has taken nothing, if it refuses bytes.
    pub(crate) fn blocked_since(&self) -> Option<Tick> {
        self.blocked
    }

    /// Whether the socket last refused bytes.
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked.is_some()
    }

    /// When the client last took bytes of a body, if it is the socket or the window of the connection
    /// that holds responses up, not that of one stream.
    pub(super) fn limited_since(&self) -> Option<Tick> {
        let is_limited = self.is_blocked() || self.codec.connection.is_shut();
        is_limited.then_some(self.body_written_at)
    }

    // ---- one stream's side

    /// The stream with this number, until its task has let go of it.
    pub(super) fn channel(&mut self, stream: u32) -> Option<&mut Channel> {
        let index = self.position(stream)?;
        self.channels.get_mut(index)
    }

    /// The index of a stream in `channels`, which are in the order of their numbers.
    #[inline]
    fn position(&mut self, stream: u32) -> Option<usize> {
        let last = self.channels.get(self.last_index);
        if last.is_none_or(|channel| channel.id != stream) {
            let found = self
                .channels
                .binary_search_by_key(&stream, |channel| channel.id);
            self.last_index = found.ok()?;
        }
        Some(self.last_index)
    }

    /// Lets the client send this many more bytes of the stream's body.
    pub(super) fn credit(&mut self, stream: u32, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let out = self.output.staging_bare();
        self.codec.connection.credit(stream, bytes, out);
        if !self.output.is_empty() {
            self.wake_driver();
        }
    }

    /// Sends an interim head.
    pub(super) fn send_interim(&mut self, stream: u32, status: StatusCode, fields: &Fields) {
        if self.client.is_none() {
            return;
        }
        let out = self.output.staging();
        // An error is ignored: if the stream is over, the task notices this at the final head.
        let sent = self.codec.send_interim(stream, status, fields, out);
        if sent.is_ok() {
            self.wake_driver();
        }
    }

    /// Sends the head of a response. `true`: nothing follows it. Otherwise it is written together with what follows it,
    /// at the next [`Self::flush`].
    ///
    /// # Errors
    /// The stream does not await this head, or it cannot be encoded; nothing was sent.
    pub(super) fn send_head(
        &mut self,
        stream: u32,
        response: &Response<'_>,
    ) -> Result<bool, SendError> {
        if self.client.is_none() {
            return Err(SendError::OutOfTurn);
        }
        let out = self.output.staging();
        let ends = self.codec.send_head(stream, response, false, out)?;
        if let Some(channel) = self.channel(stream) {
            channel.is_sent = ends;
            channel.has_head = !ends;
        }
        if ends {
            self.wake_driver();
        }
        Ok(ends)
    }

    /// Takes bytes of a response's body.
    pub(super) fn send_data(&mut self, stream: u32, data: Bytes) {
        let len = data.len();
        if let Some(channel) = self.channel(stream)
            && channel.over.is_none()
        {
            channel.queue.push(data);
            self.queued += len;
            self.list(stream);
        }
    }

    /// Notes that nothing follows the bytes of the response's body taken so far.
    pub(super) fn send_end(&mut self, stream: u32) {
        if let Some(channel) = self.channel(stream) {
            channel.ends = true;
            self.list(stream);
        }
    }

    /// Lists a stream that has something to send, unless it is listed.
    fn list(&mut self, stream: u32) {
        if let Some(channel) = self.channel(stream)
            && !channel.is_listed
            && channel.has_output()
        {
            channel.is_listed = true;
            self.listed.push_back(stream);
        }
    }

    /// Moves what streams have to send into the output, and wakes the driver to write it, with the head of this stream.
    pub(super) fn flush(&mut self, stream: u32) {
        self.pump();
        if let Some(channel) = self.channel(stream) {
            channel.has_head = false;
        }
        if !self.output.is_empty() {
            self.wake_driver();
        }
    }

    /// Moves what streams have to send into the output: a frame of each in turn, while the windows and the output have
    /// room.
    fn pump(&mut self) {
        while !self.output.is_full()
            && let Some(stream) = self.listed.pop_front()
        {
            if self.hand_over(stream) {
                self.listed.push_back(stream);
            }
        }
    }

    /// Moves a frame of a stream into the output. `true` if the stream may have more to send.
    fn hand_over(&mut self, stream: u32) -> bool {
        let piece_max = self.piece_max();
        let Some(index) = self.position(stream) else {
            return false;
        };
        let channel = &mut self.channels[index];
        channel.is_listed = false;
        if !channel.has_output() {
            return false;
        }
        let len = channel.queue.len().min(piece_max);
        let is_last = channel.ends && len == channel.queue.len();
        let out = self.output.staging();
        let begun = self.codec.connection.begin_data(stream, len, is_last, out);
        let Ok(taken) = begun else {
            // The stream is over, or its body has not the announced length; its task finds out which.
            channel.end(Over::Left);
            return false;
        };
        if taken == 0 && len > 0 {
            // The windows are shut: an event of the codec tells when they are open.
            return false;
        }
        channel.unwritten += taken;
        channel.is_sent = is_last && taken == len;
        // The frame's head, and whatever else was added to the output since the last piece of a body.
        let framing = self.output.len() - self.parted;
        self.parts.push_back(OutputPart {
            stream: 0,
            len: framing,
        });
        let mut left = taken;
        while let Some(bytes) = channel.queue.pop(left) {
            left -= bytes.len();
            self.output.push(bytes);
        }
        // The socket's progress in this piece wakes the task.
        if taken > 0 {
            self.parts.push_back(OutputPart { stream, len: taken });
        } else {
            // Only the end was to be sent, so the socket will report no bytes.
            channel.wake();
        }
        self.parted += framing + taken;
        channel.is_listed = channel.has_output();
        channel.is_listed
    }

    /// The most bytes of one response that are moved into the output in a turn.
    fn piece_max(&self) -> usize {
        // While the client is slow and several responses wait for it, each gets a small turn.
        if self.limited_since().is_some() && self.downloads.is_shared() {
            TURN_MAX as usize
        } else {
            PIECE_MAX
        }
    }

    /// The most bytes of one response that may be queued.
    pub(super) fn room(&self) -> usize {
        if self.queued > QUEUED_MAX {
            STREAM_QUEUED_MIN
        } else {
            STREAM_QUEUED_MAX
        }
    }

    /// Bytes of a response's body that are not written; see [`Channel::unwritten`].
    pub(super) fn unwritten(&mut self, stream: u32) -> usize {
        let is_blocked = self.is_blocked();
        let channel = self.channel(stream);
        channel.map_or(0, |channel| channel.unwritten(is_blocked))
    }

    /// Resets a stream, whatever of it is missing.
    pub(crate) fn reset(&mut self, stream: u32, code: Code) {
        if let Some(channel) = self.channel(stream) {
            channel.end(Over::Left);
        }
        let out = self.output.staging_bare();
        self.codec.connection.reset(stream, code, out);
        self.wake_driver();
    }

    /// Forgets a stream whose task is done. If the stream is not over, it is reset: the rest of an upload is not needed
    /// once the response is whole (RFC 9113, section 8.1).
    pub(crate) fn leave(&mut self, stream: u32) {
        let Some(index) = self.position(stream) else {
            return;
        };
        let channel = self.channels.remove(index);
        self.queued -= channel.queue.len();
        let code = if channel.is_sent {
            Code::NO_ERROR
        } else {
            Code::CANCEL
        };
        let output_before = self.output.len();
        let out = self.output.staging_bare();
        // Writes nothing if the stream is over.
        self.codec.connection.reset(stream, code, out);
        if self.output.len() > output_before || self.channels.is_empty() {
            self.wake_driver();
        }
    }
}

/// Takes back a request's head, for the next one of this thread to use its memory.
pub(crate) fn recycle(mut head: Box<RequestHead>) {
    head.clear();
    HEADS.with_borrow_mut(|list| list.give(head));
}

fn empty_head() -> Box<RequestHead> {
    let used = HEADS.with_borrow_mut(FreeList::take);
    used.unwrap_or_else(|| Box::new(RequestHead::empty()))
}

/// Frees the heads that this thread did not need since the last call.
pub(crate) fn trim() {
    HEADS.with_borrow_mut(FreeList::trim);
}

/// Makes room for a read. A frame of a body keeps its buffer until it is taken, and the allocator keeps memory for
/// each size that was ever asked for: so there are two sizes, one for heads and one for bodies.
fn make_room(input: &mut BytesMut) {
    let room = input.capacity() - input.len();
    if input.capacity() == 0 {
        *input = buffers::take();
    } else if room < ROOM_MIN {
        let partial = std::mem::replace(input, BytesMut::with_capacity(CHUNK));
        input.extend_from_slice(&partial);
    }
}

/// The largest piece handed over: with its head it fills one record of TLS.
pub(super) const PIECE_MAX: usize = 16 * 1024 - 9;

/// The most bytes of a response that are queued while its connection has little queued.
const STREAM_QUEUED_MAX: usize = 64 * 1024;

/// The most bytes of a response that are queued while its connection has more than [`QUEUED_MAX`] queued.
pub(super) const STREAM_QUEUED_MIN: usize = 16 * 1024;

/// The bytes queued for one connection beyond which each response may queue less.
const QUEUED_MAX: usize = 512 * 1024;

/// The bytes waiting to be written at which nothing more is read of a client: answers, such as those to PING, would
/// only add to them.
const UNTAKEN_MAX: usize = 4 * HIGH_WATER;

/// The most places for streams and their bytes that an idle connection keeps.
const KEPT: usize = 4;

/// With less room than this a frame that has not come whole is moved to a buffer of [`CHUNK`] bytes.
const ROOM_MIN: usize = 4 * 1024;

/// The bytes of a buffer for frames of a body; a frame has at most 16 KiB and its head.
pub(super) const CHUNK: usize = 32 * 1024;
