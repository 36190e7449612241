//! The bytes that a connection still has to write: prepared requests, and answers that the protocol
//! demands in between.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::mem;

use bytes::{Buf, BytesMut};

use super::lent::SlotResources;
use crate::record::Flight;
use crate::stream::Stream;

/// The progress of writing the requests under way.
#[derive(Debug, Default)]
pub(super) struct WriteProgress {
    /// The number of requests under way that are written in full.
    whole: usize,
    /// The bytes written of the next one.
    written: usize,
    /// Other bytes of the protocol, which are written after the requests.
    pub(super) extra: BytesMut,
    /// The socket takes no more until it says so.
    blocked: bool,
    /// Bytes written on the connection.
    total: u64,
}

impl WriteProgress {
    /// The connection is a new one.
    pub(super) fn reset(&mut self) {
        self.whole = 0;
        self.written = 0;
        self.extra.clear();
        self.blocked = false;
        self.total = 0;
    }

    /// Requests under way of which something was written.
    pub(super) fn begun(&self) -> usize {
        self.whole + usize::from(self.written > 0)
    }

    /// Bytes written on the connection before the requests under way.
    pub(super) fn before(&self, flights: &VecDeque<Flight>, lent: &SlotResources) -> u64 {
        let sent_whole = flights.iter().take(self.whole);
        let whole = sent_whole.map(|flight| lent.request(flight).bytes.len());
        let begun = whole.sum::<usize>() + self.written;
        self.total.saturating_sub(begun as u64)
    }

    /// The socket takes bytes again.
    pub(super) fn unblock(&mut self) {
        self.blocked = false;
    }

    /// The first request was answered; whether it was written by then.
    pub(super) fn pop(&mut self) -> bool {
        let was_written = self.whole > 0;
        self.whole = self.whole.saturating_sub(1);
        was_written
    }

    /// Writes as much as the socket takes, and notes in `flights` when each was sent. Returns how
    /// many bytes of counted requests that were.
    pub(super) fn write(
        &mut self,
        stream: &mut Stream,
        flights: &mut VecDeque<Flight>,
        lent: &SlotResources,
    ) -> io::Result<u64> {
        let mut counted = 0;
        while !self.blocked && (self.whole < flights.len() || !self.extra.is_empty()) {
            let bytes = |flight: &Flight| &lent.request(flight).bytes[..];
            let result = match flights.len() - self.whole {
                0 => stream.write(&self.extra),
                1 => stream.write(&bytes(&flights[self.whole])[self.written..]),
                _ => {
                    let mut slices = [IoSlice::new(&[]); SLICES_MAX];
                    let mut skip = self.written;
                    for (slice, flight) in slices.iter_mut().zip(flights.iter().skip(self.whole)) {
                        *slice = IoSlice::new(&bytes(flight)[mem::take(&mut skip)..]);
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

    /// Notes that `count` bytes were written; returns those of counted requests.
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
            counted += if flight.counted { step as u64 } else { 0 };
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
            let is_counted = flights.front().is_some_and(|flight| flight.counted);
            counted += if is_counted { left as u64 } else { 0 };
        }
        counted
    }
}

/// Requests written at once at most, where several are pipelined.
const SLICES_MAX: usize = 16;
