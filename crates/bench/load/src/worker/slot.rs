//! A slot for one connection of a worker: it dials, sends, receives, and begins again.
//!
//! A slot outlives its connections. It takes a ticket when it is free, and each ticket ends in
//! exactly one of: a response, a failure, or being abandoned when the run ends. The protocol
//! decides how many requests are in flight and in which order they are answered: [`Sequential`] is
//! for HTTP/1.x, AJP13 and memcached, [`MultiplexedSlot`] for HTTP/2.

mod multiplexed;
mod place;
mod sequential;

use mio::Token;
use mio::event::Event;

use self::multiplexed::MultiplexedSlot;
use self::place::KEY_MASK;
use self::sequential::Sequential;
use super::lent::SlotResources;
use crate::prepare::Codec;
use crate::record::Flight;

/// A slot, by the kind of protocol on its connection.
#[derive(Debug)]
pub(super) enum Slot {
    Sequential(Box<Sequential>),
    Multiplexed(Box<MultiplexedSlot>),
}

/// The number of the slot to which the token belongs, or did before a new connection.
pub(super) fn key_of(token: Token) -> usize {
    token.0 & KEY_MASK
}

/// Calls a method of the slot or of its place, whichever kind of slot it is.
macro_rules! either {
    ($slot:expr, $($name:ident).+($($argument:expr),*)) => {
        match $slot {
            Self::Sequential(slot) => slot.$($name).+($($argument),*),
            Self::Multiplexed(slot) => slot.$($name).+($($argument),*),
        }
    };
}

impl Slot {
    /// A slot for connection `client_number` of all threads, whose index among the slots of this worker is `key`.
    /// Targets take turns over the connections.
    pub(super) fn new(key: usize, client_number: usize, lent: &SlotResources) -> Self {
        let target = client_number % lent.board.targets.len();
        match lent.board.targets[target].codec {
            Codec::Http2 => {
                Self::Multiplexed(Box::new(MultiplexedSlot::new(key, client_number, lent)))
            }
            Codec::Http1 | Codec::Ajp | Codec::Memcached(_) => {
                Self::Sequential(Box::new(Sequential::new(key, client_number, lent)))
            }
        }
    }

    /// The token of the slot's connection in the worker's poll.
    pub(super) fn token(&self) -> Token {
        either!(self, place.token())
    }

    /// Sends a request, if there is one. Called when the slot has left the queue of free slots.
    pub(super) fn start(&mut self, lent: &mut SlotResources) {
        either!(self, place.leave_queue());
        either!(self, advance(lent));
    }

    /// Ends the slot's pause, so that it can send again.
    pub(super) fn wake(&mut self, lent: &mut SlotResources) {
        either!(self, wake(lent));
    }

    /// Makes the slot wait until `at` before its first request.
    pub(super) fn wait_until(&mut self, at: u64, lent: &mut SlotResources) {
        either!(self, place.wait_until(at, lent));
    }

    pub(super) fn handle_event(&mut self, event: &Event, lent: &mut SlotResources) {
        either!(self, handle_event(event, lent));
    }

    /// Fails requests that have lasted longer than `timeout`, in nanoseconds.
    pub(super) fn check_time(&mut self, timeout: u64, lent: &mut SlotResources) {
        either!(self, check_time(timeout, lent));
    }

    /// The time from `from` to `to`, less the part before the slot's first request, in nanoseconds:
    /// the client should be busy for all of it.
    pub(super) fn expected_busy(&self, from: u64, to: u64) -> u64 {
        either!(self, place.expected_busy(from, to))
    }

    /// Ends the slot with the run; returns the requests in flight.
    pub(super) fn abandon(&mut self) -> Vec<Flight> {
        either!(self, abandon())
    }
}
