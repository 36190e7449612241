//! A slot for one connection of a worker: it dials, sends, receives, and starts again.
//!
//! A slot outlives its connections. It takes a ticket when it is free, and each ticket ends in
//! exactly one of: an answer, a failure, or being abandoned when the run ends. What is spoken decides
//! how many requests are under way and in which order they are answered: [`Sequential`] is for
//! HTTP/1.x, AJP13 and memcached, [`MultiplexedSlot`] for HTTP/2.

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

/// A place for a connection.
#[derive(Debug)]
pub(super) enum Slot {
    Sequential(Box<Sequential>),
    Multiplexed(Box<MultiplexedSlot>),
}

/// The number of the slot whose token this is or was.
pub(super) fn key_of(token: Token) -> usize {
    token.0 & KEY_MASK
}

/// Calls the same method of whichever slot it is, or of its place.
macro_rules! either {
    ($slot:expr, $($name:ident).+($($argument:expr),*)) => {
        match $slot {
            Self::Sequential(slot) => slot.$($name).+($($argument),*),
            Self::Multiplexed(slot) => slot.$($name).+($($argument),*),
        }
    };
}

impl Slot {
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

    /// The poll's token of its connection.
    pub(super) fn token(&self) -> Token {
        either!(self, place.token())
    }

    /// Called when the slot has left the queue of free slots: takes a request, if there is one.
    pub(super) fn start(&mut self, lent: &mut SlotResources) {
        either!(self, place.leave_queue());
        either!(self, advance(lent));
    }

    /// The pause is over.
    pub(super) fn wake(&mut self, lent: &mut SlotResources) {
        either!(self, wake(lent));
    }

    /// Waits until `at` before its first request.
    pub(super) fn wait_until(&mut self, at: u64, lent: &mut SlotResources) {
        either!(self, place.wait_until(at, lent));
    }

    pub(super) fn handle_event(&mut self, event: &Event, lent: &mut SlotResources) {
        either!(self, handle_event(event, lent));
    }

    /// Looks whether something has lasted too long.
    pub(super) fn check_time(&mut self, timeout: u64, lent: &mut SlotResources) {
        either!(self, check_time(timeout, lent));
    }

    /// Nanoseconds from `from` to `to` since the first request: the client should be busy in all.
    pub(super) fn expected_busy(&self, from: u64, to: u64) -> u64 {
        either!(self, place.expected_busy(from, to))
    }

    /// The run is over: hands over what is under way.
    pub(super) fn abandon(&mut self) -> Vec<Flight> {
        either!(self, abandon())
    }
}
