//! The codecs of AJP and HTTP behind one interface.
//!
//! Only what a response needs is common; the differences that remain (who asks for body bytes, what
//! an unread body means, how a fault is answered) are each decided in one method here.

use bytes::{Bytes, BytesMut};
use catamaran_ajp as ajp;
use catamaran_http1 as http1;
use catamaran_message::name::{CONTENT_TYPE, DATE};
use catamaran_message::{Fields, RequestHead, Response};
use catamaran_transport::ByteQueue;
use http::StatusCode;

use super::{Io, Refusal};
use crate::config::{Config, Protocol};
use crate::handler::BodyLength;
use crate::output::{OUT_MARK, Output};

#[derive(Debug)]
pub(super) enum Wire {
    Ajp(ajp::Server),
    Http(http1::Server),
}

/// A part of a request that a codec received.
#[derive(Debug)]
pub(super) enum Event {
    Ajp(Box<ajp::RequestHead>),
    Http(Box<RequestHead>),
    Body(Bytes),
    BodyEnd,
}

/// What becomes of the connection after the end of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaves {
    /// The connection is ready for the next request.
    Idle,
    /// The connection has to be closed.
    Closed { linger: bool },
    /// The rest of the request has to be read first, up to the next [`Event::BodyEnd`].
    Leftover,
}

impl Wire {
    pub(super) fn new(protocol: Protocol, config: &Config) -> Self {
        match protocol {
            Protocol::Ajp => Self::Ajp(ajp::Server::new(ajp::ServerConfig {
                packet_size: config.packet_size,
                bare_body: config.bare_body,
                body_ahead: config.body_ahead,
                ..ajp::ServerConfig::default()
            })),
            Protocol::Http => Self::Http(http1::Server::new(config.http_limits)),
        }
    }

    pub(super) fn is_http(&self) -> bool {
        matches!(self, Self::Http(_))
    }

    /// Decodes the next event of the input; `None` if more bytes are needed. Over AJP it may answer CPing by itself.
    pub(super) fn receive(&mut self, io: &mut Io<'_>) -> Result<Option<Event>, Refusal> {
        Ok(match self {
            Self::Ajp(server) => match server.receive(io.input, io.out.staging())? {
                Some(ajp::ServerEvent::Request(head)) => Some(Event::Ajp(head)),
                Some(ajp::ServerEvent::Body(data)) => Some(Event::Body(data)),
                Some(ajp::ServerEvent::BodyEnd) => Some(Event::BodyEnd),
                None => None,
            },
            Self::Http(server) => match server.receive(io.input)? {
                Some(http1::ServerEvent::Head(head)) => Some(Event::Http(head)),
                Some(http1::ServerEvent::Body(data)) => Some(Event::Body(data)),
                Some(http1::ServerEvent::BodyEnd) => Some(Event::BodyEnd),
                None => None,
            },
        })
    }

    pub(super) fn receive_eof(&mut self, input: &BytesMut) -> Result<(), Refusal> {
        match self {
            Self::Ajp(server) => Ok(server.receive_eof()?),
            Self::Http(server) => Ok(server.receive_eof(input)?),
        }
    }

    /// Receives more of a body that is being read. Over AJP it also asks the front for more.
    pub(super) fn receive_body(&mut self, io: &mut Io<'_>) -> Result<Option<Event>, Refusal> {
        if let Some(event) = self.receive(io)? {
            return Ok(Some(event));
        }
        let Self::Ajp(server) = self else {
            return Ok(None);
        };
        server.want_body(io.out.staging());
        // A packet that came before it was asked for is taken for the answer.
        self.receive(io)
    }

    /// Sends 100 (Continue) to an HTTP client that waits for it. Over AJP the front has sent it.
    pub(super) fn send_continue(&mut self, out: &mut Output) {
        if let Self::Http(server) = self {
            server.send_continue(out.staging());
        }
    }

    /// Writes the head of a response, with a `Date` unless it has one; `Err` (500) if the protocol cannot express it.
    pub(super) fn send_head(
        &mut self,
        status: StatusCode,
        mut headers: Fields,
        length: BodyLength,
        io: &mut Io<'_>,
    ) -> Result<(), Refusal> {
        if let Some(date) = io.date.filter(|_| !headers.contains(DATE)) {
            headers.append(DATE, date);
        }
        let out = io.out.staging();
        let head = Response {
            status,
            reason: None,
            headers: &headers,
            body: length,
        };
        let is_sent = match self {
            Self::Ajp(server) => server.send_head(&head, out).is_ok(),
            Self::Http(server) => server.send_head(&head, out).is_ok(),
        };
        if is_sent {
            Ok(())
        } else {
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            Err(Refusal::new(status, "response-head"))
        }
    }

    /// Sends a piece of the body; large ones are not copied. Bytes beyond the announced length are
    /// dropped, and the connection closes after the response.
    pub(super) fn send_data(&mut self, mut data: Bytes, out: &mut Output) {
        while !data.is_empty() {
            let len = self.begin_data(data.len(), out);
            if len == 0 {
                return;
            }
            out.push(data.split_to(len));
            self.finish_data(out);
        }
    }

    /// Sends as much of `body` as the output takes, in chunks that are as large as possible.
    pub(super) fn send_queued(&mut self, body: &mut ByteQueue, out: &mut Output) {
        while !body.is_empty() && !out.is_full() {
            let mut chunk_room = self.begin_data(body.len().min(OUT_MARK), out);
            if chunk_room == 0 {
                // The announced length is reached: what is left could not be sent, and must not wait for ever.
                body.clear();
                return;
            }
            while let Some(piece) = body.pop(chunk_room) {
                chunk_room -= piece.len();
                out.push(piece);
            }
            self.finish_data(out);
        }
    }

    /// Begins a chunk of at most `len` body bytes, and returns its size. 0 means that the response
    /// can have no more body; the codec notes it if that is a fault.
    fn begin_data(&mut self, len: usize, out: &mut Output) -> usize {
        match self {
            Self::Http(server) => server.begin_data(len, out.staging()),
            Self::Ajp(server) => {
                let size = len.min(server.chunk_room());
                if size > 0 {
                    server.begin_chunk(size, out.staging());
                } else {
                    // Nothing is sent: the codec sees any byte beyond the announced length, and notes the fault.
                    server.send_data(b"?", out.staging());
                }
                size
            }
        }
    }

    fn finish_data(&mut self, out: &mut Output) {
        match self {
            Self::Http(server) => server.finish_data(out.staging()),
            Self::Ajp(server) => server.finish_chunk(out.staging()),
        }
    }

    /// Asks an AJP front to pass on bytes that it may be holding back; HTTP has no such message.
    pub(super) fn send_flush(&mut self, out: &mut Output) {
        if let Self::Ajp(server) = self {
            server.send_flush(out.staging());
        }
    }

    /// Makes the next response the last one of the connection.
    pub(super) fn close_after(&mut self) {
        match self {
            Self::Ajp(server) => server.close_after(),
            Self::Http(server) => server.close_after(),
        }
    }

    /// Ends a response, and returns what has to follow.
    ///
    /// # Errors
    /// The body was shorter than announced: the connection has to be cut.
    pub(super) fn end(&mut self, io: &mut Io<'_>) -> Result<Leaves, Refusal> {
        let is_short = match self {
            Self::Http(server) => server.send_end(io.out.staging()).is_err(),
            // After END_RESPONSE, a front that frames the response anew would pass it on as complete.
            Self::Ajp(server) => server.response_missing() > 0,
        };
        if is_short {
            return Err(Refusal {
                status: None,
                reason: "response-length",
            });
        }
        Ok(self.end_leftover(io))
    }

    /// Ends a response, and returns what is left to do. Called again each time that more of the request has been
    /// read, until it no longer returns [`Leaves::Leftover`].
    pub(super) fn end_leftover(&mut self, io: &mut Io<'_>) -> Leaves {
        match self {
            Self::Ajp(server) => match server.send_end(io.input, io.out.staging()) {
                ajp::End::Reuse => Leaves::Idle,
                ajp::End::Close => Leaves::Closed { linger: true },
                ajp::End::Owed => Leaves::Leftover,
            },
            Self::Http(server) => {
                let is_body_read = server.request_body_done();
                if server.can_reuse() {
                    Leaves::Idle
                } else if is_body_read || server.is_last() {
                    // A close with unread bytes sends a reset, which can destroy the response.
                    let linger = !is_body_read || !io.input.is_empty();
                    Leaves::Closed { linger }
                } else {
                    Leaves::Leftover
                }
            }
        }
    }

    /// Ends a response without waiting for what is left of the request.
    pub(super) fn end_now(&mut self, out: &mut Output) {
        if let Self::Ajp(server) = self {
            server.send_end_now(out.staging());
        }
    }

    /// Whether closing now would make an incomplete response look complete; see
    /// `Conn::awaits_close`.
    pub(super) fn awaits_close(&self) -> bool {
        matches!(self, Self::Http(server) if server.awaits_close())
    }

    /// Answers refused bytes with this status, and marks the connection to be closed.
    pub(super) fn refuse(&mut self, status: StatusCode, io: &mut Io<'_>) {
        match self {
            Self::Ajp(server) => server.refuse(status, io.out.staging()),
            Self::Http(_) => {
                self.close_after();
                let text = format!("{status}\n");
                let headers = Fields::from_iter([(CONTENT_TYPE, "text/plain; charset=utf-8")]);
                let length = BodyLength::Known(text.len() as u64);
                if self.send_head(status, headers, length, io).is_ok() {
                    self.send_data(text.into(), io.out);
                    // The only error is a body that is too short, and all of the text was sent.
                    let _ = self.end(io);
                }
            }
        }
    }
}

impl From<ajp::Fault> for Refusal {
    fn from(fault: ajp::Fault) -> Self {
        Self {
            status: fault.status(),
            reason: fault.token(),
        }
    }
}

impl From<http1::Fault> for Refusal {
    fn from(fault: http1::Fault) -> Self {
        Self {
            status: Some(fault.status()),
            reason: fault.token(),
        }
    }
}
