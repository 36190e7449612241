//! Writes the bytes of a connection: prepared requests, and replies that the protocol demands in between.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use bytes::{Buf, BytesMut};

use super::lent::SlotResources;
use crate::record::Flight;
use crate::stream::Stream;

/// The progress of writing the requests in flight on one connection.
#[derive(Debug, Default)]
pub(super) struct WriteProgress {
    /// The number of requests in flight that are written in full.
    whole: usize,
    /// The number of bytes written of the next request.
    written: usize,
    /// Other bytes that the protocol must send; they are written after the requests.
    pub(super) extra: BytesMut,
    /// Whether the socket takes no more bytes until it is writable again.
    blocked: bool,
    /// The number of bytes written on the connection.
    total: u64,
}

impl WriteProgress {
    /// Resets the progress for a new connection.
    pub(super) fn reset(&mut self) {
        self.whole = 0;
        self.written = 0;
        self.extra.clear();
        self.blocked = false;
        self.total = 0;
    }

    /// The number of requests in flight of which anything was written.
    pub(super) fn begun(&self) -> usize {
        self.whole + usize::from(self.written > 0)
    }

    /// The number of bytes written on the connection before the requests in flight.
    pub(super) fn before(&self, flights: &VecDeque<Flight>, lent: &SlotResources) -> u64 {
        let sent_whole = flights.iter().take(self.whole);
        let whole = sent_whole.map(|flight| lent.request(flight).bytes.len());
        let begun = whole.sum::<usize>() + self.written;
        self.total.saturating_sub(begun as u64)
    }

    /// Notes that the socket takes bytes again.
    pub(super) fn unblock(&mut self) {
        self.blocked = false;
    }

    /// Removes the first request, which was answered; returns whether it had been written in full.
    pub(super) fn pop(&mut self) -> bool {
        let was_written = self.whole > 0;
        self.whole = self.whole.saturating_sub(1);
        was_written
    }

    /// Writes until the socket takes no more, and notes in `flights` when each was sent. Returns
    /// the number of bytes written of measured requests.
    pub(super) fn write(
        &mut self,
        stream: &mut Stream,
        flights: &mut VecDeque<Flight>,
        lent: &SlotResources,
    ) -> io::Result<u64> {
        let mut counted = 0;
        while !self.blocked && (self.whole < flights.len() || !self.extra.is_empty()) {
            let bytes = |flight: &Flight| &lent.request(flight).bytes[..];
            let unwritten_requests = flights.len() - self.whole;
            let result = match unwritten_requests {
                0 => stream.write(&self.extra),
                1 => stream.write(&bytes(&flights[self.whole])[self.written..]),
                _ => {
                    let mut slices = [IoSlice::new(&[]); SLICES_MAX];
                    let mut skip = self.written;
                    for (slice, flight) in slices.iter_mut().zip(flights.iter().skip(self.whole)) {
                        *slice = IoSlice::new(&bytes(flight)[skip..]);
                        // Only the first request is written in part.
                        skip = 0;
                    }
                    stream.write_vectored(&slices)
                }
            };
            match result {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => counted += self.note(count, flights, lent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.blocked = true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(counted)
    }

    /// Notes that `count` bytes were written; returns how many of them belong to measured requests.
    fn note(&mut self, count: usize, flights: &mut VecDeque<Flight>, lent: &SlotResources) -> u64 {
        let now = lent.board.clock.now();
        self.total += count as u64;
        let (mut left, mut counted) = (count, 0);
        while left > 0 && self.whole < flights.len() {
            let flight = &mut flights[self.whole];
            let request = lent.request(flight);
            let rest = request.bytes.len() - self.written;
            let step = rest.min(left);
            left -= step;
            if flight.counted {
                counted += step as u64;
            }
            if step == rest {
                flight.sent = now;
                flight.sent_body = request.body_bytes as u64;
                self.whole += 1;
                self.written = 0;
            } else {
                self.written += step;
            }
        }
        if left > 0 {
            self.extra.advance(left);
            // These bytes belong to the exchange of the first request.
            if flights.front().is_some_and(|flight| flight.counted) {
                counted += left as u64;
            }
        }
        counted
    }
}

/// The most pipelined requests that are written with one call.
const SLICES_MAX: usize = 16;
