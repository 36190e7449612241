//! The part that all kinds of slots have: a number, the state of the connection, its connects, and
//! the requests that it takes.

use std::{io, mem};

use mio::Token;

use crate::record::Flight;
use crate::report::FailureKind;
use crate::stream::{self, Stream};
use crate::worker::jar::Jar;
use crate::worker::lent::SlotResources;

/// The common part of a slot; `C` is its open connection.
#[derive(Debug)]
pub(super) struct Place<C> {
    /// The slot's number in the worker.
    pub(super) key: usize,
    pub(super) state: State<C>,
    /// The number of the slot's current connection: events of earlier ones are ignored by it.
    generation: u32,
    /// The number of the slot's client in the run.
    client_number: usize,
    pub(super) target: usize,
    /// The place of the next request among the target's requests.
    turn: usize,
    /// The time at which the slot's last connect began.
    since: u64,
    /// The time at which the slot's first request began; `None` before that.
    first_begun: Option<u64>,
    /// The time at which the slot was last free.
    pub(super) free_at: u64,
    /// The length of the last pause, in nanoseconds.
    pause: u64,
    /// The client's cookies; `None` if clients keep no cookies.
    pub(super) jar: Option<Jar>,
    /// Whether the slot is in the worker's queue of free slots.
    is_resting: bool,
}

/// The state of a slot's connection.
///
/// ```text
///            ticket            connected         it ends, or is of no more use
/// Closed ─────────► Dialling ─────────────► Open ─────────────────────────────► Closed
///    ▲                  │ failed
///    └──── Pausing ◄────┘
/// ```
#[derive(Debug)]
pub(super) enum State<C> {
    Closed,
    Pausing,
    Dialling(Stream),
    Open(C),
}

/// The mask of the bits of a token that are the slot's number.
pub(super) const KEY_MASK: usize = (1 << KEY_BITS) - 1;

impl<C> Place<C> {
    /// A place without a connection. `turn` begins at another request for each client, so that not all send the
    /// same one.
    pub(super) fn new(key: usize, client_number: usize, lent: &SlotResources) -> Self {
        let target = client_number % lent.board.targets.len();
        Self {
            key,
            state: State::Closed,
            generation: 0,
            client_number,
            target,
            turn: client_number % lent.board.targets[target].requests.len(),
            since: 0,
            first_begun: None,
            free_at: 0,
            pause: 0,
            jar: lent.board.plan.cookie_jar.then(Jar::default),
            is_resting: false,
        }
    }

    /// The token of the slot's connection in the worker's poll.
    pub(super) fn token(&self) -> Token {
        Token(self.key | (self.generation as usize) << KEY_BITS)
    }

    /// Notes that the worker has removed the slot from the queue of free slots.
    pub(super) fn leave_queue(&mut self) {
        self.is_resting = false;
    }

    /// Puts the slot into the queue of free slots, unless it is in the queue already.
    pub(super) fn rest(&mut self, lent: &mut SlotResources) {
        if !self.is_resting {
            self.is_resting = true;
            lent.idle.push_back(self.key);
        }
    }

    /// Makes the slot wait until `at` before its next request.
    pub(super) fn wait_until(&mut self, at: u64, lent: &mut SlotResources) {
        self.state = State::Pausing;
        lent.pause(at, self.key);
    }

    /// Ends a pause; returns whether there was one.
    pub(super) fn end_pause(&mut self) -> bool {
        let is_pausing = matches!(self.state, State::Pausing);
        if is_pausing {
            self.state = State::Closed;
        }
        is_pausing
    }

    /// The time from `from` to `to`, less the part before the first request, in nanoseconds: the
    /// client should be busy for all of it.
    pub(super) fn expected_busy(&self, from: u64, to: u64) -> u64 {
        match self.first_begun {
            Some(begun) => to.saturating_sub(begun.max(from)),
            None => 0,
        }
    }

    /// Takes the next request, if one may begin. `is_reused`: its connection has had responses.
    pub(super) fn take(&mut self, is_reused: bool, lent: &mut SlotResources) -> Option<Flight> {
        let Some(ticket) = lent.feed.claim(self.client_number, lent.now) else {
            if lent.feed.is_spent() {
                // No request is left: from here on no client should be busy.
                lent.span.1 = lent.span.1.min(lent.now);
            }
            return None;
        };
        self.first_begun.get_or_insert(lent.now);
        let target = &lent.board.targets[self.target];
        let plan = &lent.board.plan;
        let number = if target.needs_number() {
            plan.numbers.next()
        } else {
            0
        };
        let index = match (ticket.request, &target.choice) {
            (Some(request), _) => request as usize,
            (None, Some(choice)) => choice.place(plan.seed, number),
            (None, None) => self.turn,
        };
        let request = &target.requests[index];
        let jar = self.jar.as_mut().map(|jar| (jar, lent.now));
        let flight = Flight {
            place: request.number as u32,
            filled: lent.filled.fill(&lent.board, request, number, jar),
            due: ticket.due,
            begun: lent.now,
            counted: ticket.counted,
            ..Flight::default()
        };
        self.turn = (self.turn + 1) % target.requests.len();
        lent.begin(&flight, self.free_at);
        lent.connections.reused += u64::from(is_reused);
        Some(flight)
    }

    /// Begins a connect; an event tells when it is done.
    ///
    /// # Errors
    /// The connect failed at once: the kind of failure for the requests that need it, and the error.
    pub(super) fn dial(
        &mut self,
        lent: &mut SlotResources,
    ) -> Result<(), (FailureKind, io::Error)> {
        self.since = lent.now;
        self.generation = self.generation.wrapping_add(1);
        lent.connections.attempted += 1;
        let source = lent.next_source();
        let address = &lent.board.addresses[self.target];
        let tls = lent.board.tls_targets[self.target].as_ref();
        let mut stream = stream::connect(address, tls, &lent.board.plan.connections, source)?;
        stream
            .register(&lent.registry, self.token())
            .map_err(|error| (stream::connect_failure(&error), error))?;
        lent.opened(1);
        self.state = State::Dialling(stream);
        Ok(())
    }

    /// Notes that the connection is made, and returns its stream for the caller; `flight` is the
    /// request that it was made for.
    pub(super) fn connected(
        &mut self,
        flight: Option<&mut Flight>,
        lent: &mut SlotResources,
    ) -> Option<Stream> {
        let State::Dialling(mut stream) = mem::replace(&mut self.state, State::Closed) else {
            return None;
        };
        let duration = lent.now.saturating_sub(self.since).max(1);
        lent.connections.opened += 1;
        if let Some(flight) = flight {
            flight.connect = duration;
            if flight.counted {
                lent.record.connected(duration);
            }
        }
        let tls = lent.board.tls_targets[self.target].as_ref();
        if lent.board.tls.get().is_none()
            && let Some(facts) = stream.tls_facts(tls)
        {
            // Another thread may have been faster; the first one counts.
            let _ = lent.board.tls.set(facts);
        }
        if lent.board.plan.connections.keep_alive {
            stream.set_nodelay();
        }
        self.pause = 0;
        Some(stream)
    }

    /// Pauses the slot after a failed connect; each further pause is twice as long.
    pub(super) fn pause(&mut self, lent: &mut SlotResources) {
        self.pause = (self.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX);
        self.wait_until(lent.now + self.pause, lent);
    }

    /// Closes the connection, if there is one.
    pub(super) fn close(&mut self, lent: &mut SlotResources) {
        match mem::replace(&mut self.state, State::Closed) {
            State::Closed | State::Pausing => {}
            State::Dialling(_) | State::Open(_) => lent.opened(-1),
        }
    }
}

const PAUSE_MIN: u64 = 1_000_000;
const PAUSE_MAX: u64 = 100_000_000;

const KEY_BITS: u32 = 32;
