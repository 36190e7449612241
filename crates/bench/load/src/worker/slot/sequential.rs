//! A slot whose connection answers requests in the order in which they were sent: HTTP/1.x,
//! AJP13 and memcached.
//!
//! The slot registers with the poll once per connection; bytes that the socket did not take are
//! written when it is writable again. A connection that the peer will close is given to
//! [`lingering`](crate::worker::lingering), and the slot continues at once.

use std::collections::VecDeque;
use std::{io, mem};

use mio::event::Event;

use super::place::{Place, State};
use crate::client::{Client, OwnSide, Step};
use crate::plan::Resend;
use crate::record::Flight;
use crate::report::FailureKind;
use crate::stream::{self, Stream};
use crate::worker::lent::SlotResources;
use crate::worker::outgoing::WriteProgress;

/// A slot whose connection answers in order.
#[derive(Debug)]
pub(in crate::worker) struct Sequential {
    pub(super) place: Place<Stream>,
    client: Client,
    /// Requests in flight, in the order in which they are sent.
    flights: VecDeque<Flight>,
    outgoing: WriteProgress,
    /// Bytes received that are not enough to be parsed yet.
    kept: Vec<u8>,
    /// The number of responses on this connection.
    served: u64,
    /// Whether the peer has closed its sending side.
    peer_closed: bool,
}

impl Sequential {
    pub(super) fn new(key: usize, client_number: usize, lent: &SlotResources) -> Self {
        let place = Place::new(key, client_number, lent);
        Self {
            client: Client::new(lent.board.targets[place.target].codec),
            flights: VecDeque::new(),
            outgoing: WriteProgress::default(),
            kept: Vec::new(),
            served: 0,
            peer_closed: false,
            place,
        }
    }

    /// Continues after the end of a pause.
    pub(super) fn wake(&mut self, lent: &mut SlotResources) {
        if self.place.end_pause() {
            // The pause was planned, so nothing is late because of it.
            self.place.free_at = lent.now;
        }
        self.advance(lent);
    }

    /// Handles an event of the slot's connection: continues a connect, or reads and writes.
    pub(super) fn handle_event(&mut self, event: &Event, lent: &mut SlotResources) {
        match &mut self.place.state {
            State::Closed | State::Pausing => {}
            State::Dialling(stream) => {
                lent.look_at_the_clock();
                match stream.go_on_dialling(event) {
                    Ok(false) => {}
                    Ok(true) => {
                        self.ready(lent);
                        if event.is_readable() {
                            // The server has sent bytes before a request, which comes as no other event.
                            self.read(lent);
                        }
                    }
                    Err((kind, error)) => self.break_off(kind, Some(&error), lent),
                }
            }
            State::Open(stream) => {
                if event.is_writable() {
                    self.outgoing.unblock();
                    // If this fails, the read that follows reports why.
                    let _ = stream.flush();
                }
                if event.is_readable() || event.is_read_closed() || event.is_error() {
                    self.peer_closed |= event.is_read_closed();
                    self.read(lent);
                }
            }
        }
        self.advance(lent);
    }

    /// Breaks the connection off if its first request has lasted longer than `timeout`.
    pub(super) fn check_time(&mut self, timeout: u64, lent: &mut SlotResources) {
        let front = self.flights.front();
        if front.is_some_and(|flight| lent.now.saturating_sub(flight.begun) >= timeout) {
            self.break_off(FailureKind::Timeout, None, lent);
            self.advance(lent);
        }
    }

    pub(super) fn abandon(&mut self) -> Vec<Flight> {
        self.flights.drain(..).collect()
    }

    /// Does what the state allows: takes requests, connects, writes, or puts the slot into the queue.
    pub(super) fn advance(&mut self, lent: &mut SlotResources) {
        self.fill(lent);
        self.dial(lent);
        if !self.write(lent) {
            // The connection has broken: its requests, or the next one, need another connection.
            self.fill(lent);
            self.dial(lent);
        }
        let is_free = matches!(self.place.state, State::Closed | State::Open(_));
        if is_free && self.flights.is_empty() {
            self.place.rest(lent);
        }
    }

    /// Takes as many requests as the connection carries at once.
    fn fill(&mut self, lent: &mut SlotResources) {
        let options = &lent.board.plan.connections;
        let room = match self.place.state {
            // The request that is the reason for a connect.
            State::Closed => 1,
            State::Open(_) => {
                let left = match options.requests_max {
                    Some(max) => max.get().saturating_sub(self.served),
                    None => u64::MAX,
                };
                left.min(u64::from(options.pipeline.get()))
            }
            _ => 0,
        };
        while (self.flights.len() as u64) < room {
            let is_reused = matches!(self.place.state, State::Open(_)) && self.served > 0;
            let Some(flight) = self.place.take(is_reused, lent) else {
                return;
            };
            self.flights.push_back(flight);
            if self.flights.len() == 1 {
                self.expect_answer(lent);
            }
        }
    }

    /// Tells the client which request the next response is to.
    fn expect_answer(&mut self, lent: &SlotResources) {
        if let (State::Open(_), Some(flight)) = (&self.place.state, self.flights.front()) {
            self.client.expect(lent.request(flight));
        }
    }

    /// Connects, if there is a request to send and no connection.
    fn dial(&mut self, lent: &mut SlotResources) {
        if self.flights.is_empty() || !matches!(self.place.state, State::Closed) {
            return;
        }
        if let Err((kind, error)) = self.place.dial(lent) {
            self.break_off(kind, Some(&error), lent);
        }
    }

    /// Opens the protocol on the connection that was just made.
    fn ready(&mut self, lent: &mut SlotResources) {
        let Some(stream) = self.place.connected(self.flights.front_mut(), lent) else {
            return;
        };
        self.place.state = State::Open(stream);
        self.client = Client::new(lent.board.targets[self.place.target].codec);
        self.served = 0;
        self.peer_closed = false;
        self.expect_answer(lent);
    }

    /// Writes the requests in flight; `false`: the connection has broken.
    fn write(&mut self, lent: &mut SlotResources) -> bool {
        let State::Open(stream) = &mut self.place.state else {
            return true;
        };
        match self.outgoing.write(stream, &mut self.flights, lent) {
            Ok(counted) => {
                lent.record.bytes.sent += counted;
                true
            }
            Err(error) if self.is_untouched(lent) => {
                // The peer has closed a kept connection; nothing of these requests was written.
                lent.connections.closed_idle += 1;
                let is_reset = stream::send_failure(&error) == FailureKind::Reset;
                lent.connections.reset += u64::from(is_reset);
                self.close(lent);
                false
            }
            Err(error) => {
                self.break_off(stream::send_failure(&error), Some(&error), lent);
                false
            }
        }
    }

    /// Reads and handles all that has arrived.
    fn read(&mut self, lent: &mut SlotResources) {
        let mut scratch = mem::take(&mut lent.scratch);
        while let State::Open(stream) = &mut self.place.state {
            match stream.read(&mut scratch) {
                Ok(0) => {
                    lent.look_at_the_clock();
                    self.receive_eof(lent);
                    break;
                }
                Ok(len) => {
                    let is_last = stream.is_emptied(len, scratch.len()) && !self.peer_closed;
                    lent.look_at_the_clock();
                    self.receive(&scratch[..len], lent);
                    if is_last {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    lent.look_at_the_clock();
                    self.break_off(stream::receive_failure(&error), Some(&error), lent);
                    break;
                }
            }
        }
        lent.scratch = scratch;
    }

    /// Handles received bytes: steps of the responses to the requests in flight, in order.
    fn receive(&mut self, bytes: &[u8], lent: &mut SlotResources) {
        // Kept bytes are the beginning of a step whose end has come with `bytes`.
        let joined;
        let mut input = bytes;
        if !self.kept.is_empty() {
            self.kept.extend_from_slice(bytes);
            joined = mem::take(&mut self.kept);
            input = &joined;
        }
        while let Some(flight) = self.flights.front_mut() {
            if flight.first_byte == 0 {
                flight.first_byte = lent.now;
            }
            let request = lent.filled.request(&lent.board, flight);
            let known = &mut lent.known[flight.place as usize];
            let before = input.len();
            let sink = lent.board.checksum(&mut flight.body_crc);
            let out = &mut self.outgoing.extra;
            let own = OwnSide { request, out };
            let received = self.client.receive(&mut input, known, own, sink);
            flight.received += (before - input.len()) as u64;
            match received {
                Ok(None) => break,
                Ok(Some(Step::Interim(bytes))) => flight.head += bytes,
                Ok(Some(Step::Head {
                    status,
                    bytes,
                    has_length,
                })) => {
                    flight.head += bytes;
                    flight.status = status;
                    flight.has_length = has_length;
                    if let Some(jar) = &mut self.place.jar {
                        let codec = lent.board.targets[self.place.target].codec;
                        known.each_set_cookie(codec, |field| {
                            jar.set(field, &request.path, lent.now);
                        });
                    }
                }
                Ok(Some(Step::Body(bytes))) => flight.body += bytes,
                Ok(Some(Step::End)) => {
                    self.finish(!input.is_empty(), lent);
                    if input.is_empty() {
                        return;
                    }
                }
                Err(kind) => {
                    flight.received += input.len() as u64;
                    let error = self.client.error_message().map(io::Error::other);
                    return self.break_off(kind, error.as_ref(), lent);
                }
            }
            if !matches!(self.place.state, State::Open(_)) {
                return;
            }
        }
        self.keep(input, lent);
    }

    /// Keeps the bytes of an incomplete step until more come. If no response is due, they end the connection.
    fn keep(&mut self, rest: &[u8], lent: &mut SlotResources) {
        if rest.is_empty() {
            return;
        }
        if self.flights.is_empty() {
            lent.connections.unsolicited += 1;
            self.close(lent);
        } else {
            self.kept.extend_from_slice(rest);
        }
    }

    /// Handles the end of the peer's sending side. What it means for the first request depends on how much of its
    /// response has arrived.
    fn receive_eof(&mut self, lent: &mut SlotResources) {
        self.peer_closed = true;
        let resend = lent.board.plan.connections.resend;
        // ab writes on a connection without checking whether it has ended.
        if resend == Resend::Never && self.outgoing.begun() == 0 && !self.write(lent) {
            return;
        }
        let has_unread = !self.kept.is_empty();
        let Some(flight) = self.flights.front() else {
            lent.connections.closed_idle += 1;
            return self.close(lent);
        };
        let has_no_answer = flight.received == 0 && !has_unread;
        let (status, is_counted) = (flight.status, flight.counted);
        if self.client.receive_eof(has_unread) {
            self.finish(false, lent);
        } else if has_no_answer && self.can_send_again(lent) {
            lent.connections.closed_idle += 1;
            self.send_again(lent);
        } else {
            if resend == Resend::Never
                && let State::Open(stream) = &mut self.place.state
                && stream.take_error().is_err()
            {
                // ab's poll reports a reset after the end of the stream that was read.
                lent.record.ab.exceptions += u64::from(is_counted);
            }
            let has_head = status != 0;
            let kind = if has_no_answer {
                FailureKind::EarlyClose
            } else if has_head {
                FailureKind::TruncatedBody
            } else {
                FailureKind::TruncatedHead
            };
            self.break_off(kind, None, lent);
        }
    }

    /// Whether the connection was kept and nothing of the requests in flight was written to it.
    /// Always `false` in a run that never sends again, as in ab.
    fn is_untouched(&self, lent: &SlotResources) -> bool {
        let is_kept = self.served > 0 && self.outgoing.begun() == 0;
        is_kept && lent.board.plan.connections.resend == Resend::Unreceived
    }

    /// Whether the requests in flight may be sent on another connection, after the peer has closed
    /// this one without a byte of a response.
    fn can_send_again(&self, lent: &SlotResources) -> bool {
        let State::Open(stream) = &self.place.state else {
            return false;
        };
        if self.served == 0 || self.flights.iter().any(|flight| flight.retried) {
            return false;
        }
        let board = &lent.board;
        let begun = self.outgoing.begun();
        let mut begun_flights = self.flights.iter().take(begun);
        match board.plan.connections.resend {
            Resend::Never => false,
            Resend::Unreceived if begun == 0 => true,
            Resend::Unreceived => {
                let before = self.outgoing.before(&self.flights, lent);
                begun_flights.all(|flight| board.request(flight.place).is_idempotent)
                    && stream.is_unreceived_after(before)
            }
        }
    }

    /// Closes the connection, and sends the requests in flight on another one.
    fn send_again(&mut self, lent: &mut SlotResources) {
        for flight in self.flights.iter_mut().take(self.outgoing.begun()) {
            flight.retried = true;
            lent.connections.resent += 1;
        }
        self.close(lent);
    }

    /// Fails the requests in flight that were sent and must not run twice, after a response that
    /// ends the connection: it is not known whether the peer has read them. The others are sent
    /// again on another connection.
    fn give_up_unrepeatable(&mut self, lent: &mut SlotResources) {
        let begun = self.outgoing.begun();
        for (index, flight) in mem::take(&mut self.flights).into_iter().enumerate() {
            let was_sent = index < begun;
            let is_idempotent = lent.board.request(flight.place).is_idempotent;
            if !was_sent || is_idempotent {
                lent.connections.resent += u64::from(was_sent);
                self.flights.push_back(flight);
            } else {
                lent.fail(&flight, FailureKind::EarlyClose, None);
            }
        }
    }

    /// Ends the first request, whose response is complete; `has_more`: bytes follow it.
    fn finish(&mut self, has_more: bool, lent: &mut SlotResources) {
        let Some(mut flight) = self.flights.pop_front() else {
            return;
        };
        flight.sent_body += self.client.rest_sent() as u64;
        // A server may answer before it has read the whole request; the rest cannot be sent any more.
        let is_sent = self.outgoing.pop();
        self.served += 1;
        self.place.free_at = lent.now;
        // Bytes after the response belong to the next response, if one is due.
        let has_excess = has_more && self.flights.is_empty();
        let can_reuse = self.client.can_reuse();
        match self.client.outcome() {
            _ if has_excess => lent.fail(&flight, FailureKind::Excess, None),
            Ok(outcome) => {
                flight.outcome = outcome;
                lent.answer(&flight, can_reuse, self.place.target);
            }
            Err(kind) => {
                let error = self.client.error_message().map(io::Error::other);
                lent.fail(&flight, kind, error.as_ref());
            }
        }
        let options = &lent.board.plan.connections;
        let is_spent = match options.requests_max {
            Some(max) => self.served >= max.get(),
            None => false,
        };
        if options.keep_alive && can_reuse && is_sent && !has_excess && !is_spent {
            if self.flights.is_empty() {
                self.fill(lent);
            } else {
                self.expect_answer(lent);
            }
        } else if !can_reuse && !self.peer_closed && !has_excess && self.flights.is_empty() {
            // The server has announced its close.
            self.linger(lent);
        } else {
            self.give_up_unrepeatable(lent);
            self.close(lent);
        }
    }

    /// Moves the connection to those that only wait for the peer's close.
    fn linger(&mut self, lent: &mut SlotResources) {
        let token = self.place.token();
        if let State::Open(stream) = mem::replace(&mut self.place.state, State::Closed) {
            lent.lingering.add(token, stream, lent.now);
            lent.opened(-1);
        }
        self.close(lent);
    }

    /// Closes a connection that cannot be used further: all requests in flight on it fail, unless they are tried again.
    fn break_off(
        &mut self,
        kind: FailureKind,
        error: Option<&io::Error>,
        lent: &mut SlotResources,
    ) {
        self.close(lent);
        lent.connections.reset += u64::from(kind == FailureKind::Reset);
        self.place.free_at = lent.now;
        if lent.tries_again(kind) {
            lent.fail_connect(kind, error);
        } else {
            while let Some(flight) = self.flights.pop_front() {
                lent.fail(&flight, kind, error);
            }
        }
        if kind.is_connect() {
            self.place.pause(lent);
        }
    }

    /// Closes the connection; requests in flight will be sent on another one.
    fn close(&mut self, lent: &mut SlotResources) {
        self.place.close(lent);
        self.outgoing.reset();
        self.kept.clear();
        for flight in &mut self.flights {
            flight.sent = 0;
            flight.first_byte = 0;
            flight.status = 0;
        }
    }
}
