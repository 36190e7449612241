//! Exchanges whose application runs elsewhere and is connected by a pipe.
//!
//! Each step moves what both directions allow: the body goes in while the application reads it, the
//! response comes out as the application writes it. Neither direction waits for the other. `port` is the connection's
//! end of the pipe.

use http::StatusCode;

use super::{Action, BodyLength, Conn, ConnState, Event, Io, Refusal, WaitClass};
use crate::pipe::{ConnEnd, Head, Progress};

impl Conn {
    /// Connects the request that [`Action::Serve`] delivered to its application by this pipe,
    /// through which the response will come.
    pub(crate) fn attach(&mut self, port: ConnEnd, io: &mut Io<'_>) -> Action {
        debug_assert_eq!(self.state, ConnState::Serving);
        self.exchange.port = Some(port);
        self.state = ConnState::Piped;
        self.poll(io)
    }

    /// Tells an application at work that its connection is over, for this reason.
    pub(crate) fn abandon(&mut self, reason: &'static str) {
        if let Some(port) = self.exchange.port.take() {
            port.fail(reason);
        }
    }

    /// Moves body and response on, and ends the request once its response is complete.
    ///
    /// The pipe is taken out of the exchange meanwhile, so that `relay` can borrow the connection. It is there from
    /// [`Self::attach`] until [`Self::abandon`], which is for connections that end.
    pub(super) fn poll_piped(&mut self, io: &mut Io<'_>) -> Result<Action, Refusal> {
        let Some(port) = self.exchange.port.take() else {
            return Err(Refusal::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "handler-gave-up",
            ));
        };
        let relayed = self.relay(&port, io);
        // Put back even on failure: the refusal that follows tells the application.
        self.exchange.port = Some(port);
        match relayed? {
            Some(action) => Ok(action),
            None => {
                self.exchange.port = None;
                self.finish(io)
            }
        }
    }

    /// Whether the application waits for more of the request's body.
    pub(super) fn awaits_body(&self) -> bool {
        let port = self.exchange.port.as_ref();
        port.is_some_and(ConnEnd::awaits_body)
    }

    /// Moves body and response as far as both sides allow; `None` if the response is complete.
    fn relay(&mut self, port: &ConnEnd, io: &mut Io<'_>) -> Result<Option<Action>, Refusal> {
        let output_before = io.out.len();
        let awaits_peer = self.receive_for(port, io)?;
        if let Some(head) = port.take_head() {
            let is_silent = self.is_silent(head.status);
            self.begin_piped(head, port, io)?;
            if is_silent {
                // The head is all of the response; what the application writes as a body is dropped with the pipe.
                return Ok(None);
            }
        }
        match port.send(|parts| self.wire.send_queued(parts, io.out)) {
            Progress::Complete if self.exchange.head_sent => return Ok(None),
            Progress::Complete => {
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                return Err(Refusal::new(status, "handler-gave-up"));
            }
            Progress::Failed(reason) => {
                return Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, reason));
            }
            Progress::Open { flush: true } => self.wire.send_flush(io.out),
            Progress::Open { flush: false } => {}
        }
        // Output restarts the time that the application may take after the peer has closed its half.
        self.exchange.hung_up &= io.out.len() == output_before;
        let awaiting = match awaits_peer {
            None if self.exchange.hung_up => Some(WaitClass::Answer),
            awaiting => awaiting,
        };
        let write = io.out.is_full();
        Ok(Some(Action::Park { awaiting, write }))
    }

    /// Passes the request's body to the application while it wants more. Returns what to wait for
    /// from the peer, if anything.
    fn receive_for(
        &mut self,
        port: &ConnEnd,
        io: &mut Io<'_>,
    ) -> Result<Option<WaitClass>, Refusal> {
        while port.wants_body() {
            if self.exchange.expects_continue {
                self.send_continue(io);
            }
            match self.receive_body(io)? {
                Some(Event::Body(data)) => port.push_body(data),
                // The body has ended. A length of 0 says that nothing is left to receive.
                Some(_) => {
                    self.exchange.length = BodyLength::Known(0);
                    port.end_body();
                }
                None => return Ok(Some(WaitClass::Body)),
            }
        }
        Ok(None)
    }

    fn begin_piped(&mut self, head: Head, port: &ConnEnd, io: &mut Io<'_>) -> Result<(), Refusal> {
        let length = match head.length {
            // Applications write no body for HEAD, which says nothing about the length of a GET's.
            BodyLength::Known(0) if self.exchange.head_only => BodyLength::Unknown,
            length => length,
        };
        self.send_head(head.status, head.headers, length, port.is_reading(), io)
    }
}
