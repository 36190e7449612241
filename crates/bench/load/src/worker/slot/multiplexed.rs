//! A slot whose connection speaks HTTP/2: several requests at once, each on its own stream, answered in any order.
//!
//! The slot is in the queue of free slots as long as another stream may begin. A server that wants
//! no more requests on a connection (GOAWAY) gets none; those that it says it has not processed are
//! sent once more. A stream that fails makes only its own request fail.

use std::collections::VecDeque;
use std::{io, mem};

use catamaran_http2::{Code, StreamFault};
use catamaran_message::ResponseHead;
use catamaran_message::name::SET_COOKIE;
use mio::event::Event;

use super::place::{Place, State};
use crate::client::LastHeads;
use crate::http2::{self, Http2, StreamFailure};
use crate::record::Flight;
use crate::report::FailureKind;
use crate::worker::lent::SlotResources;

/// A slot with an HTTP/2 connection.
#[derive(Debug)]
pub(in crate::worker) struct MultiplexedSlot {
    pub(super) place: Place<Box<Http2>>,
    /// Requests that were taken but are not on a stream yet, in order.
    waiting: VecDeque<Flight>,
    /// Requests under way, each with the number of its stream, in order.
    flights: VecDeque<(u32, Flight)>,
    /// The numbers of requests sent and of responses received in full on this connection.
    sent: u64,
    served: u64,
    vacancy: Vacancy,
    /// Whether the last request that was taken is measured.
    counts: bool,
}

/// The time since which the connection has had a free stream. A request that is sent later than that was delayed by the
/// generator, not by the lack of a stream. So the time changes only when a connection without a free stream gets one.
#[derive(Debug, Default)]
struct Vacancy {
    since: u64,
    is_full: bool,
}

impl Vacancy {
    /// Notes that the connection has no free stream now.
    fn end(&mut self) {
        self.is_full = true;
    }

    /// Notes that the connection has a free stream at `now`; returns the time since which it has had one.
    fn begin(&mut self, now: u64) -> u64 {
        if mem::take(&mut self.is_full) {
            self.since = now;
        }
        self.since
    }
}

impl MultiplexedSlot {
    pub(super) fn new(key: usize, client_number: usize, lent: &SlotResources) -> Self {
        Self {
            place: Place::new(key, client_number, lent),
            waiting: VecDeque::new(),
            flights: VecDeque::new(),
            sent: 0,
            served: 0,
            vacancy: Vacancy::default(),
            counts: false,
        }
    }

    /// Continues after the end of a pause.
    pub(super) fn wake(&mut self, lent: &mut SlotResources) {
        if self.place.end_pause() {
            // The pause was planned, so nothing is late because of it.
            self.place.free_at = self.vacancy.begin(lent.now);
        }
        self.advance(lent);
    }

    /// Handles an event of the slot's connection: continues a connect, or notes what can be read and written.
    pub(super) fn handle_event(&mut self, event: &Event, lent: &mut SlotResources) {
        if let State::Dialling(stream) = &mut self.place.state {
            lent.look_at_the_clock();
            match stream.go_on_dialling(event) {
                Ok(false) => {}
                Ok(true) => self.ready(lent),
                Err((kind, error)) => self.fail_connect(kind, &error, lent),
            }
        }
        if let State::Open(http2) = &mut self.place.state {
            http2.note(event);
        }
        self.advance(lent);
    }

    /// Fails the requests that have lasted longer than `timeout`; others on the same connection continue.
    pub(super) fn check_time(&mut self, timeout: u64, lent: &mut SlotResources) {
        let now = lent.now;
        let is_late = |flight: &Flight| now.saturating_sub(flight.begun) >= timeout;
        let mut was_late = false;
        self.flights.retain(|(stream, flight)| {
            if !is_late(flight) {
                return true;
            }
            if let State::Open(http2) = &mut self.place.state {
                http2.reset(*stream);
            }
            lent.fail(flight, FailureKind::Timeout, None);
            was_late = true;
            false
        });
        while let Some(flight) = self.waiting.pop_front_if(|flight| is_late(flight)) {
            lent.fail(&flight, FailureKind::Timeout, None);
            was_late = true;
        }
        if was_late {
            self.place.free_at = self.vacancy.begin(now);
            if matches!(self.place.state, State::Dialling(_)) {
                self.place.close(lent);
            }
            self.advance(lent);
        }
    }

    pub(super) fn abandon(&mut self) -> Vec<Flight> {
        let open = self.flights.drain(..).map(|(_, flight)| flight);
        open.chain(self.waiting.drain(..)).collect()
    }

    /// Does what the state allows: takes requests, connects, reads and writes, or puts the slot into the queue.
    pub(super) fn advance(&mut self, lent: &mut SlotResources) {
        for round in 1.. {
            self.fill(lent);
            self.dial(lent);
            if !self.turn(lent) {
                break;
            }
            if round == ROUNDS_MAX {
                // Other slots run before this one's next request, for which there is a stream.
                return lent.pause(lent.now, self.place.key);
            }
        }
        let has_room = match self.place.state {
            State::Closed => self.waiting.is_empty(),
            State::Open(_) => self.room(lent) > 0,
            State::Pausing | State::Dialling(_) => false,
        };
        if has_room {
            self.place.rest(lent);
        } else {
            self.vacancy.end();
        }
    }

    /// The number of requests that may still begin on the connection.
    fn room(&self, lent: &SlotResources) -> usize {
        let State::Open(http2) = &self.place.state else {
            return 0;
        };
        if http2.is_leaving() {
            return 0;
        }
        let options = &lent.board.plan.connections;
        let streams_max = http2.streams_max().min(options.pipeline.get() as usize);
        let free_streams = streams_max.saturating_sub(self.flights.len());
        let left = match options.requests_max {
            Some(max) => max.get().saturating_sub(self.sent),
            None => u64::MAX,
        };
        free_streams.min(usize::try_from(left).unwrap_or(usize::MAX))
    }

    /// Takes as many requests as the connection carries at once, and sends them.
    fn fill(&mut self, lent: &mut SlotResources) {
        if matches!(self.place.state, State::Closed) && self.waiting.is_empty() {
            // This request is the reason for a new connection.
            let is_reused = false;
            let taken = self.place.take(is_reused, lent);
            self.waiting.extend(taken);
        }
        for _ in 0..self.room(lent) {
            let next = self.waiting.pop_front();
            let Some(flight) = next.or_else(|| self.place.take(self.served > 0, lent)) else {
                return;
            };
            self.send(flight, lent);
        }
    }

    /// Sends a request.
    fn send(&mut self, mut flight: Flight, lent: &mut SlotResources) {
        let prepared = lent.request(&flight).http2.as_ref();
        let (State::Open(http2), Some(prepared)) = (&mut self.place.state, prepared) else {
            debug_assert!(false, "a request for HTTP/2, and a connection of it");
            return self.waiting.push_front(flight);
        };
        match http2.send(prepared) {
            Ok(stream) => {
                flight.sent = lent.now;
                flight.sent_body = prepared.body.len() as u64;
                self.counts = flight.counted;
                self.sent += 1;
                self.flights.push_back((stream, flight));
                lent.streams_max = lent.streams_max.max(self.flights.len());
            }
            Err(error) => lent.fail(&flight, FailureKind::Write, Some(&io::Error::other(error))),
        }
    }

    /// Connects, if there is a request to send and no connection.
    fn dial(&mut self, lent: &mut SlotResources) {
        if self.waiting.is_empty() || !matches!(self.place.state, State::Closed) {
            return;
        }
        if let Err((kind, error)) = self.place.dial(lent) {
            self.fail_connect(kind, &error, lent);
        }
    }

    /// Opens HTTP/2 on the connection that was just made.
    fn ready(&mut self, lent: &mut SlotResources) {
        if let State::Dialling(stream) = &self.place.state
            && let Err(error) = stream.expect_http2()
        {
            return self.fail_connect(FailureKind::Tls, &error, lent);
        }
        let Some(stream) = self.place.connected(self.waiting.front_mut(), lent) else {
            return;
        };
        self.place.state = State::Open(Box::new(Http2::begin(stream)));
        (self.sent, self.served) = (0, 0);
        self.place.free_at = self.vacancy.begin(lent.now);
    }

    /// Reads and writes what the socket allows, and handles the events; returns whether another request may begin
    /// because of them.
    fn turn(&mut self, lent: &mut SlotResources) -> bool {
        let State::Open(http2) = &mut self.place.state else {
            return false;
        };
        let written = http2.write();
        if let (Ok(sent), true) = (&written, self.counts) {
            lent.record.bytes.sent += sent;
        }
        http2.borrow_input(&mut lent.input);
        let received = match (self.receive(lent), written) {
            // If writing failed, what was received before is handled first.
            (Ok(false), Err(why)) => Err(why),
            (received, _) => received,
        };
        let mut is_leaving = false;
        if let State::Open(http2) = &mut self.place.state {
            http2.return_input(&mut lent.input);
            is_leaving = http2.is_leaving();
        }
        if let Err(why) = &received {
            self.end(why, lent);
        } else if self.flights.is_empty() {
            if is_leaving {
                self.end(&StreamFailure::Closed, lent);
            } else if self.is_used_up(lent) {
                self.place.close(lent);
            }
        }
        // After a failure or a close, requests begin on another connection.
        received.unwrap_or(true) || matches!(self.place.state, State::Closed)
    }

    /// Reads and handles what the server has sent, at most [`READS_MAX`] times so that other slots get their turn;
    /// returns whether there was anything.
    fn receive(&mut self, lent: &mut SlotResources) -> Result<bool, StreamFailure> {
        for read in 0..READS_MAX {
            let State::Open(http2) = &mut self.place.state else {
                return Ok(false);
            };
            let len = http2.read(&mut lent.scratch);
            lent.look_at_the_clock();
            if len? == 0 {
                return Ok(read > 0);
            }
            while let State::Open(http2) = &mut self.place.state
                && let Some(event) = http2.receive()?
            {
                self.take(event, lent);
            }
        }
        Ok(true)
    }

    /// Whether the connection has had as many requests as the plan allows for one.
    fn is_used_up(&self, lent: &SlotResources) -> bool {
        let max = lent.board.plan.connections.requests_max;
        max.is_some_and(|max| max.get() <= self.sent)
    }

    /// Handles an event of a stream or of the connection.
    fn take(&mut self, event: http2::Event, lent: &mut SlotResources) {
        match event {
            http2::Event::Head { stream, head, ends } => {
                self.take_head(stream, &head, ends, lent);
                if ends {
                    self.complete(stream, lent);
                }
            }
            http2::Event::Body { stream, data, ends } => {
                if let Some(flight) = self.flight(stream) {
                    let bytes = data.len() as u64;
                    flight.body += bytes;
                    flight.received += bytes;
                    lent.board.checksum(&mut flight.body_crc)(&data);
                }
                if ends {
                    self.complete(stream, lent);
                }
            }
            http2::Event::Trailers { stream, .. } => self.complete(stream, lent),
            http2::Event::Reset { stream, code } => {
                let why = match code {
                    Code::REFUSED_STREAM => StreamFailure::Unprocessed,
                    _ => StreamFailure::Reset,
                };
                self.break_off(stream, &why, lent);
            }
            http2::Event::Failed { stream, fault } => {
                let why = match fault {
                    StreamFault::NotProcessed => StreamFailure::Unprocessed,
                    _ => StreamFailure::Malformed(io::Error::other(fault)),
                };
                self.break_off(stream, &why, lent);
            }
            // No client has a request to refuse.
            http2::Event::Refused { .. } => {}
            http2::Event::Window { .. } | http2::Event::GoAway { .. } | http2::Event::Pong => {}
        }
    }

    /// Notes the head of a response, and keeps its cookies.
    fn take_head(
        &mut self,
        stream: u32,
        head: &ResponseHead,
        ends: bool,
        lent: &mut SlotResources,
    ) {
        if head.status.is_informational() {
            return;
        }
        if let State::Open(http2) = &self.place.state {
            // The server's settings came before its first answer.
            lent.streams_allowed = lent.streams_allowed.min(http2.streams_max().max(1));
        }
        let Some(index) = self.position(stream) else {
            return;
        };
        let (_, flight) = &mut self.flights[index];
        flight.first_byte = lent.now;
        flight.status = head.status.as_u16();
        flight.has_length = ends || head.content_length.is_some();
        if let Some(jar) = &mut self.place.jar {
            let path = &lent.filled.request(&lent.board, flight).path;
            for field in head.headers.get_all(SET_COOKIE) {
                jar.set(field, path, lent.now);
            }
        }
        if self.place.target == 0 && lent.board.first.get().is_none() {
            lent.known[flight.place as usize] = LastHeads::of_http2(head);
        }
    }

    /// Records the response of a stream, which is complete.
    fn complete(&mut self, stream: u32, lent: &mut SlotResources) {
        let Some(mut flight) = self.finish(stream, lent) else {
            return;
        };
        let State::Open(http2) = &mut self.place.state else {
            return;
        };
        self.served += 1;
        // The server may have answered before it took the whole request.
        http2.reset(stream);
        flight.head = mem::take(&mut http2.framing);
        flight.received += flight.head;
        let can_reuse = !http2.is_leaving();
        lent.answer(&flight, can_reuse, self.place.target);
    }

    /// Handles a stream that ended before its answer was complete.
    fn break_off(&mut self, stream: u32, why: &StreamFailure, lent: &mut SlotResources) {
        let Some(flight) = self.finish(stream, lent) else {
            return;
        };
        let has_head = flight.status != 0;
        let (kind, error) = match why {
            StreamFailure::Unprocessed if !has_head && !flight.retried => {
                // The request may be sent again, once.
                lent.connections.resent += 1;
                return self.waiting.push_back(Flight {
                    retried: true,
                    sent: 0,
                    sent_body: 0,
                    ..flight
                });
            }
            StreamFailure::Unprocessed | StreamFailure::Closed if !has_head => {
                (FailureKind::EarlyClose, None)
            }
            StreamFailure::Closed => (FailureKind::TruncatedBody, None),
            StreamFailure::Unprocessed | StreamFailure::Reset => (FailureKind::Reset, None),
            StreamFailure::Malformed(error) if has_head => (FailureKind::BadBody, Some(error)),
            StreamFailure::Malformed(error) => (FailureKind::BadHead, Some(error)),
            StreamFailure::Failed(kind, error) => (*kind, Some(error)),
        };
        lent.fail(&flight, kind, error);
    }

    /// Takes the request of a stream that has ended out of those under way.
    fn finish(&mut self, stream: u32, lent: &SlotResources) -> Option<Flight> {
        let (_, flight) = self.flights.remove(self.position(stream)?)?;
        self.place.free_at = self.vacancy.begin(lent.now);
        Some(flight)
    }

    fn flight(&mut self, stream: u32) -> Option<&mut Flight> {
        let index = self.position(stream)?;
        self.flights.get_mut(index).map(|(_, flight)| flight)
    }

    fn position(&self, stream: u32) -> Option<usize> {
        // Streams are numbered in the order in which they begin.
        self.flights
            .binary_search_by_key(&stream, |(number, _)| *number)
            .ok()
    }

    /// Ends all streams of a connection that has ended or cannot be used any more.
    fn end(&mut self, why: &StreamFailure, lent: &mut SlotResources) {
        while let Some(&(stream, _)) = self.flights.front() {
            self.break_off(stream, why, lent);
        }
        match why {
            StreamFailure::Failed(FailureKind::Reset, _) => lent.connections.reset += 1,
            StreamFailure::Closed => lent.connections.closed_idle += 1,
            _ => {}
        }
        self.place.close(lent);
    }

    /// Fails the requests that wait for a connect that failed, and pauses the slot.
    fn fail_connect(&mut self, kind: FailureKind, error: &io::Error, lent: &mut SlotResources) {
        self.place.close(lent);
        self.place.free_at = lent.now;
        while let Some(flight) = self.waiting.pop_front() {
            lent.fail(&flight, kind, Some(error));
        }
        self.place.pause(lent);
    }
}

/// The most times in a row that a connection is served if its server answers at once.
const ROUNDS_MAX: u32 = 8;

/// The most reads before requests are sent on the streams that became free. TLS gives one record with each.
const READS_MAX: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_ends_beside_free_ones_is_no_vacancy() {
        let mut vacancy = Vacancy::default();
        assert_eq!(vacancy.begin(10), 0, "there was room from the beginning");
        vacancy.end();
        assert_eq!(vacancy.begin(20), 20, "the first of all streams");
        assert_eq!(vacancy.begin(30), 20, "the second one");
        vacancy.end();
        vacancy.end();
        assert_eq!(vacancy.begin(40), 40);
    }
}
