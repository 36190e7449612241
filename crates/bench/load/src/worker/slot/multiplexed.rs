//! A slot whose connection speaks HTTP/2: several requests at once, each on its own stream, answered in any order.
//!
//! The slot is in the queue of free slots as long as another stream may begin. A server that wants
//! no more requests on a connection (GOAWAY) gets none; those that it says it has not processed are
//! sent once more. A stream that fails makes only its own request fail.

use std::collections::VecDeque;
use std::{io, mem};

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
    /// Requests in flight, by the key of their stream.
    flights: Vec<Option<Flight>>,
    /// The number of requests in `flights`.
    open: usize,
    /// The number of requests sent on this connection, and of responses received on it.
    sent: u64,
    served: u64,
    /// Bytes received that belong to no body and are not yet counted for a request.
    framing: u64,
    vacancy: Vacancy,
    /// Whether the last request that was taken is measured.
    counts: bool,
    /// The events of the last turn; kept so that its memory is reused.
    events: Vec<http2::Event>,
}

/// The time since which another request could begin. A stream that ends does not change it while
/// others are free: a request sent late then did not wait for a connection, the generator was late.
#[derive(Debug, Default)]
struct Vacancy {
    since: u64,
    is_full: bool,
}

impl Vacancy {
    /// Notes that no request can begin now.
    fn end(&mut self) {
        self.is_full = true;
    }

    /// Notes that a request can begin at `now`; returns since when that is so.
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
            flights: Vec::new(),
            open: 0,
            sent: 0,
            served: 0,
            framing: 0,
            vacancy: Vacancy::default(),
            counts: false,
            events: Vec::new(),
        }
    }

    pub(super) fn wake(&mut self, lent: &mut SlotResources) {
        if self.place.end_pause() {
            // The pause was planned, so nothing is late because of it.
            self.place.free_at = self.vacancy.begin(lent.now);
        }
        self.advance(lent);
    }

    pub(super) fn handle_event(&mut self, event: &Event, lent: &mut SlotResources) {
        if let State::Dialling(stream) = &mut self.place.state {
            lent.look_at_the_clock();
            match stream.go_on_dialling(event) {
                Ok(false) => {}
                Ok(true) => self.ready(lent),
                Err((kind, error)) => self.fail_connect(kind, &error, lent),
            }
        }
        self.advance(lent);
    }

    pub(super) fn check_time(&mut self, timeout: u64, lent: &mut SlotResources) {
        let now = lent.now;
        let is_late = |flight: &Flight| now.saturating_sub(flight.begun) >= timeout;
        let mut was_late = false;
        for key in 0..self.flights.len() {
            if let Some(flight) = self.flights[key].take_if(|flight| is_late(flight)) {
                if let State::Open(http2) = &mut self.place.state {
                    http2.reset(key);
                }
                self.open -= 1;
                lent.fail(&flight, FailureKind::Timeout, None);
                was_late = true;
            }
        }
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
        let open = self.flights.drain(..).flatten();
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
    fn room(&mut self, lent: &SlotResources) -> usize {
        let State::Open(http2) = &mut self.place.state else {
            return 0;
        };
        let options = &lent.board.plan.connections;
        let asked = options.pipeline.get() as usize;
        let max = options.requests_max;
        let left = max.map_or(u64::MAX, |max| max.get().saturating_sub(self.sent));
        let streams = asked.min(http2.streams_max()).saturating_sub(self.open);
        streams.min(usize::try_from(left).unwrap_or(usize::MAX))
    }

    /// Takes as many requests as the connection carries at once, and sends them.
    fn fill(&mut self, lent: &mut SlotResources) {
        if matches!(self.place.state, State::Closed) && self.waiting.is_empty() {
            let taken = self.place.take(false, lent);
            self.waiting.extend(taken);
        }
        for _ in 0..self.room(lent) {
            let next = self.waiting.pop_front();
            let Some(flight) = next.or_else(|| self.place.take(self.served > 0, lent)) else {
                return;
            };
            if !self.send(flight, lent) {
                return;
            }
        }
    }

    /// Sends a request; `false`: it must be sent on another connection.
    fn send(&mut self, mut flight: Flight, lent: &mut SlotResources) -> bool {
        let State::Open(http2) = &mut self.place.state else {
            return false;
        };
        self.counts = flight.counted;
        let request = lent.request(&flight);
        let sent = request.http2.as_ref().and_then(|prepared| {
            flight.sent_body = prepared.body.len() as u64;
            http2.send(prepared.head.clone(), &prepared.body)
        });
        let Some(key) = sent else {
            self.waiting.push_front(flight);
            return false;
        };
        flight.sent = lent.now;
        if self.flights.len() <= key {
            self.flights.resize_with(key + 1, || None);
        }
        self.flights[key] = Some(flight);
        self.open += 1;
        lent.streams_max = lent.streams_max.max(self.open);
        self.sent += 1;
        true
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
        (self.sent, self.served, self.framing) = (0, 0, 0);
        self.place.free_at = self.vacancy.begin(lent.now);
    }

    /// Reads and writes, and handles the events; returns whether another request may begin because of them.
    fn turn(&mut self, lent: &mut SlotResources) -> bool {
        let State::Open(http2) = &mut self.place.state else {
            return false;
        };
        let mut events = mem::take(&mut self.events);
        let was_beginning = http2.is_beginning();
        let ended = http2.turn(&mut events);
        let (received, sent) = http2.take_traffic();
        // The server's settings come before its first response. 0: it accepts no more streams.
        if let (false, allowed @ 1..) = (events.is_empty(), http2.streams_max()) {
            lent.streams_allowed = lent.streams_allowed.min(allowed);
        }
        let is_leaving = http2.is_leaving();
        let has_begun = was_beginning && !http2.is_beginning();
        lent.look_at_the_clock();
        if self.counts {
            lent.record.bytes.sent += sent;
        }
        let bodies = events.iter().map(http2::Event::body_bytes);
        self.framing += received.saturating_sub(bodies.sum());
        let before = self.open;
        for event in events.drain(..) {
            self.take(event, is_leaving, lent);
        }
        self.events = events;
        match ended {
            Some(why) => self.end(why, lent),
            None if self.open == 0 && is_leaving => self.end(StreamFailure::Closed, lent),
            None if self.open == 0 && self.is_used_up(lent) => self.place.close(lent),
            None => {}
        }
        has_begun || self.open < before || matches!(self.place.state, State::Closed)
    }

    /// Whether the connection has had as many requests as the plan allows for one.
    fn is_used_up(&self, lent: &SlotResources) -> bool {
        let max = lent.board.plan.connections.requests_max;
        max.is_some_and(|max| max.get() <= self.sent)
    }

    fn take(&mut self, event: http2::Event, is_leaving: bool, lent: &mut SlotResources) {
        match event {
            http2::Event::Head {
                key,
                head,
                has_length,
            } => {
                let Some(flight) = self.flights[key].as_mut() else {
                    return;
                };
                flight.first_byte = lent.now;
                flight.status = head.status.as_u16();
                flight.has_length = has_length;
                if let Some(jar) = &mut self.place.jar {
                    let path = &lent.filled.request(&lent.board, flight).path;
                    for field in head.headers.get_all(http::header::SET_COOKIE) {
                        jar.set(field.as_bytes(), path, lent.now);
                    }
                }
                if self.place.target == 0 && lent.board.first.get().is_none() {
                    lent.known[flight.place as usize] = LastHeads::of_http2(&head);
                }
            }
            http2::Event::Body { key, data } => {
                let Some(flight) = self.flights[key].as_mut() else {
                    return;
                };
                let bytes = data.len() as u64;
                flight.body += bytes;
                flight.received += bytes;
                lent.board.checksum(&mut flight.body_crc)(&data);
            }
            http2::Event::End { key } => {
                let Some(mut flight) = self.finish(key, lent) else {
                    return;
                };
                self.served += 1;
                flight.head = mem::take(&mut self.framing);
                flight.received += flight.head;
                lent.answer(&flight, !is_leaving, self.place.target);
            }
            http2::Event::Broken { key, why } => {
                let Some(mut flight) = self.finish(key, lent) else {
                    return;
                };
                match why {
                    StreamFailure::Unprocessed if !flight.retried => {
                        lent.connections.resent += 1;
                        flight = Flight {
                            retried: true,
                            sent: 0,
                            sent_body: 0,
                            ..flight
                        };
                        self.waiting.push_back(flight);
                    }
                    StreamFailure::Unprocessed => lent.fail(&flight, FailureKind::EarlyClose, None),
                    StreamFailure::Closed => {
                        let kind = match flight.status {
                            0 => FailureKind::EarlyClose,
                            _ => FailureKind::TruncatedBody,
                        };
                        lent.fail(&flight, kind, None);
                    }
                    StreamFailure::Failed(kind, error) => lent.fail(&flight, kind, error.as_ref()),
                }
            }
        }
    }

    /// Removes the request of a stream that has ended from those in flight.
    fn finish(&mut self, key: usize, lent: &SlotResources) -> Option<Flight> {
        let flight = self.flights.get_mut(key)?.take()?;
        self.open -= 1;
        self.place.free_at = self.vacancy.begin(lent.now);
        Some(flight)
    }

    /// Closes a connection that has ended or cannot be used further; its streams have ended
    /// already. If no request could be sent on it, the first waiting one fails, since the next
    /// connection may be no better.
    fn end(&mut self, why: StreamFailure, lent: &mut SlotResources) {
        debug_assert_eq!(self.open, 0, "every stream has ended");
        let (kind, error) = match why {
            StreamFailure::Failed(kind, error) => (kind, error),
            StreamFailure::Closed | StreamFailure::Unprocessed => (FailureKind::EarlyClose, None),
        };
        lent.connections.reset += u64::from(kind == FailureKind::Reset);
        let is_closed = kind == FailureKind::EarlyClose && self.sent > 0;
        lent.connections.closed_idle += u64::from(is_closed);
        self.place.close(lent);
        if self.sent == 0
            && let Some(flight) = self.waiting.pop_front()
        {
            self.place.free_at = lent.now;
            lent.fail(&flight, kind, error.as_ref());
        }
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
