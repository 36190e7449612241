//! HTTP/2 on a connection: bytes of its socket in, events out, one buffer of what is to be written.
//!
//! `catamaran_http2` has the protocol. It queues nothing, so that the bodies of requests wait here until the windows
//! take them. Nothing of an answer's body is kept: its bytes are counted, and as many more may come at once.

use std::collections::VecDeque;
use std::{io, mem};

use bytes::{Buf, Bytes, BytesMut};
use catamaran_http2::{Client, Code, Config, Limits, SendError};
use catamaran_message::ResponseHead;

use crate::prepare::PreparedHttp2;
use crate::report::FailureKind;
use crate::stream::{self, Stream};

/// The client's side of a connection over HTTP/2. Its streams are named by their numbers.
#[derive(Debug)]
pub(crate) struct Http2 {
    stream: Stream,
    client: Client,
    /// Received bytes that are not parsed yet.
    input: BytesMut,
    /// Bytes that are still to be written.
    out: BytesMut,
    /// The parts of requests' bodies that are not sent yet, each with the number of its stream.
    bodies: VecDeque<(u32, Bytes)>,
    /// Whether the socket may have bytes to read. Events are edge-triggered: they tell only that more have arrived.
    is_readable: bool,
    /// Whether the server has closed its sending side. Bytes that arrived before may be unread; no further event tells
    /// of them.
    peer_closed: bool,
    /// The number of received bytes that belong to no body and are not yet counted for a request.
    pub(crate) framing: u64,
}

pub(crate) type Event = catamaran_http2::Event<ResponseHead>;

/// Why a stream, or the connection, ended before its time.
#[derive(Debug)]
pub(crate) enum StreamFailure {
    /// The server says that it has not processed the request (RFC 9113, section 8.7), so the request may be sent again.
    Unprocessed,
    /// The server closed the connection.
    Closed,
    /// The server reset the stream.
    Reset,
    /// The server broke the protocol; the error says how.
    Malformed(io::Error),
    /// The socket failed.
    Failed(FailureKind, io::Error),
}

impl Http2 {
    /// Begins on a stream that is connected and on which, if there is TLS, HTTP/2 was agreed on.
    pub(crate) fn begin(stream: Stream) -> Self {
        let mut out = BytesMut::new();
        Self {
            stream,
            client: Client::new(LIMITS, CONFIG, &mut out),
            input: BytesMut::new(),
            out,
            bodies: VecDeque::new(),
            // TLS may have read more than its handshake.
            is_readable: true,
            peer_closed: false,
            framing: 0,
        }
    }

    /// Notes what an event says about the socket.
    pub(crate) fn note(&mut self, event: &mio::event::Event) {
        self.peer_closed |= event.is_read_closed();
        self.is_readable |= event.is_readable() || event.is_read_closed() || event.is_error();
    }

    /// The streams that the server allows at once.
    pub(crate) fn streams_max(&self) -> usize {
        self.client.streams_max()
    }

    /// Whether the server takes no further request on this connection.
    pub(crate) fn is_leaving(&self) -> bool {
        self.client.is_leaving()
    }

    /// Queues a request on a new stream; returns the stream's number.
    ///
    /// # Errors
    /// The request cannot be sent now or at all; [`SendError`] says why.
    pub(crate) fn send(&mut self, prepared: &PreparedHttp2) -> Result<u32, SendError> {
        let stream = prepared.send(&mut self.client, &mut self.out)?;
        if !prepared.body.is_empty() {
            self.bodies.push_back((stream, prepared.body.clone()));
        }
        Ok(stream)
    }

    /// Cancels a stream, if it is still open.
    pub(crate) fn reset(&mut self, stream: u32) {
        let connection = &mut self.client.connection;
        connection.reset(stream, Code::CANCEL, &mut self.out);
    }

    /// Takes `memory` as the buffer to read into, unless the connection keeps one with a part of a frame.
    pub(crate) fn borrow_input(&mut self, memory: &mut BytesMut) {
        if self.input.is_empty() {
            self.input = mem::take(memory);
        }
    }

    /// Gives the read buffer back to `memory`, unless it has a part of a frame.
    pub(crate) fn return_input(&mut self, memory: &mut BytesMut) {
        if self.input.is_empty() {
            *memory = mem::take(&mut self.input);
        }
    }

    /// Writes as much as the socket takes; returns how many bytes that were.
    ///
    /// # Errors
    /// The socket cannot be written to any more. What the server sent before may still be read.
    pub(crate) fn write(&mut self) -> Result<u64, StreamFailure> {
        self.write_out().map_err(|error| {
            // The socket may still have an answer that arrived before.
            self.is_readable = true;
            StreamFailure::Failed(stream::send_failure(&error), error)
        })
    }

    /// Reads once, if the socket may have something; returns how many bytes came.
    ///
    /// # Errors
    /// The connection has ended.
    pub(crate) fn read(&mut self, scratch: &mut [u8]) -> Result<usize, StreamFailure> {
        if self.out.len() > UNREAD_MAX {
            let error = io::Error::other("the server does not read what it is sent");
            return Err(StreamFailure::Failed(FailureKind::Write, error));
        }
        if !self.is_readable {
            return Ok(0);
        }
        match retry_interrupted(|| self.stream.read(scratch)) {
            Ok(None) => {
                self.is_readable = false;
                Ok(0)
            }
            Ok(Some(0)) => Err(StreamFailure::Closed),
            Ok(Some(len)) => {
                // No event tells about the end of a stream that the peer has closed already: it must be read.
                let is_last = self.stream.is_emptied(len, scratch.len()) && !self.peer_closed;
                self.is_readable = !is_last;
                self.input.extend_from_slice(&scratch[..len]);
                Ok(len)
            }
            Err(error) => {
                let kind = stream::receive_failure(&error);
                Err(StreamFailure::Failed(kind, error))
            }
        }
    }

    /// The next event in what was read.
    ///
    /// # Errors
    /// The server broke the protocol. It is told why, if it can be; the connection has ended.
    pub(crate) fn receive(&mut self) -> Result<Option<Event>, StreamFailure> {
        let before = self.input.len();
        let received = self.client.receive(&mut self.input, &mut self.out);
        self.framing += (before - self.input.len()) as u64;
        let connection = &mut self.client.connection;
        match &received {
            Ok(Some(Event::Body { stream, data, .. })) => {
                // All but the data is framing. The server may send as many bytes again, because none are kept.
                self.framing -= data.len() as u64;
                let bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
                connection.credit(*stream, bytes, &mut self.out);
            }
            Ok(_) => {}
            Err(fault) => {
                let is_final = true;
                connection.go_away(fault.code(), is_final, &mut self.out);
                // The connection is over, whether this arrives or not.
                let _ = self.write();
            }
        }
        received.map_err(|fault| StreamFailure::Malformed(io::Error::other(fault)))
    }

    /// Writes waiting output and parts of bodies until the socket takes no more; returns how many bytes that were.
    fn write_out(&mut self) -> io::Result<u64> {
        // What TLS kept back when the socket was full.
        self.stream.flush()?;
        let mut sent = 0;
        loop {
            self.take_bodies();
            if self.out.is_empty() {
                return Ok(sent);
            }
            match retry_interrupted(|| self.stream.write(&self.out))? {
                None => return Ok(sent),
                Some(0) => return Err(io::ErrorKind::WriteZero.into()),
                Some(len) => {
                    self.out.advance(len);
                    sent += len as u64;
                }
            }
        }
    }

    /// Moves bytes of waiting bodies to the output, as far as the flow control windows allow: one frame of each body in
    /// turn.
    fn take_bodies(&mut self) {
        // The number of bodies in a row for which no window had room.
        let mut blocked = 0;
        while blocked < self.bodies.len()
            && self.out.len() < OUT_MAX
            && let Some((stream, mut body)) = self.bodies.pop_front()
        {
            let connection = &mut self.client.connection;
            let ends = true;
            // An error means that the stream has ended: the rest of its body is dropped.
            if let Ok(len) = connection.begin_data(stream, body.len(), ends, &mut self.out) {
                blocked = if len == 0 { blocked + 1 } else { 0 };
                self.out.extend_from_slice(&body.split_to(len));
                if !body.is_empty() {
                    self.bodies.push_back((stream, body));
                }
            }
        }
    }
}

/// Makes a call of the socket again if a signal interrupted it; `None` if the socket is not ready.
fn retry_interrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<Option<T>> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done.map(Some),
        }
    }
}

const CONFIG: Config = Config {
    window: 1 << 20,
    connection_window: 1 << 24,
    // A server opens none.
    streams_max: 0,
    takes_tunnels: false,
    resets_remembered: 128,
};

const LIMITS: Limits = Limits {
    head_bytes: 64 * 1024,
    ..Limits::response()
};

/// The most bytes in the buffer of output. A fuller buffer gets no further request.
const OUT_MAX: usize = 64 * 1024;

/// The most bytes of output for a server that does not read: 250,000 answers to PING, or 100 requests of 40 KiB. With
/// more, the server gets no answers.
const UNREAD_MAX: usize = 4 << 20;
