//! What a worker lends to the connection it advances: the time, the shared state, buffers.
//!
//! Because buffers are lent, an idle connection holds none. It takes the worker's buffer when bytes
//! arrive, and returns it when they are used up. Bytes that are left over are kept in a buffer of the
//! connection's own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;

use super::agent::Agent;
use super::{ConnectorState, date, now};
use crate::conn::Io;
use crate::counters::Counters;
use crate::output::Output;
use crate::pipe::Wake;

/// The state and buffers that a worker lends to the connection it advances; see the module.
#[derive(Debug)]
pub(super) struct Loan {
    pub(super) shared: Arc<ConnectorState>,
    /// The counters of each listener, by its index.
    counters: Vec<Arc<Counters>>,
    /// The place where applications report that they have something for a connection.
    pub(super) wakeups: Arc<dyn Wake>,
    /// When this round of the loop began.
    pub(super) now: Instant,
    /// The value of the `Date` field; `None` if there is no usable clock.
    date: Option<String>,
    date_until: Instant,
    /// The read buffer of a driver that reads into memory of its own; empty for others.
    pub(super) scratch: Box<[u8]>,
    input: BytesMut,
    out: Output,
}

impl Loan {
    pub(super) fn new(
        shared: Arc<ConnectorState>,
        counters: Vec<Arc<Counters>>,
        wakeups: Arc<dyn Wake>,
    ) -> Self {
        let now = now();
        Self {
            shared,
            counters,
            wakeups,
            now,
            date: date(),
            date_until: now + Duration::from_secs(1),
            scratch: Box::default(),
            input: BytesMut::new(),
            out: Output::default(),
        }
    }

    /// Reads the clock for this round of the loop, and formats the `Date` anew once a second.
    pub(super) fn look_at_the_clock(&mut self) {
        self.now = now();
        if self.now >= self.date_until {
            self.date = date();
            self.date_until = self.now + Duration::from_secs(1);
        }
    }

    /// What a connection with these buffers gets for one call.
    pub(super) fn io<'a>(&'a self, input: &'a mut BytesMut, out: &'a mut Output) -> Io<'a> {
        let date = self.date.as_deref();
        Io { input, out, date }
    }

    /// The counters of the listener at this index.
    pub(super) fn counters(&self, listener_index: usize) -> &Arc<Counters> {
        &self.counters[listener_index]
    }

    /// Counts a closed connection, with the reason if it has one, and gives back its room under `max_connections`.
    pub(super) fn forget(&self, agent: &Agent, reason: Option<&'static str>) {
        self.shared.dismiss();
        // First, so that whoever sees the connection closed sees its reason.
        if let Some(reason) = reason {
            agent.refuse(reason);
        }
        Counters::add(&agent.counters().closed, 1);
    }

    /// Lends a buffer for input to a connection that has none.
    pub(super) fn lend_input(&mut self, own: &mut BytesMut) {
        if own.capacity() == 0 {
            std::mem::swap(own, &mut self.input);
        }
    }

    /// Takes an empty buffer back from a connection, to lend it again or to free it. A large buffer with few bytes is
    /// taken, too: the connection keeps a small copy.
    pub(super) fn take_back_input(&mut self, own: &mut BytesMut) {
        if own.is_empty() {
            let mut buffer = std::mem::take(own);
            // If the worker has a buffer already, this one is freed.
            if self.input.capacity() == 0 {
                buffer.clear();
                self.input = buffer;
            }
        } else if own.len() < KEPT_BYTES && own.capacity() > 2 * KEPT_BYTES {
            // Part of a head: a peer that sends the rest slowly must not occupy a large buffer.
            let mut buffer = std::mem::replace(own, BytesMut::from(&own[..]));
            buffer.clear();
            self.input = buffer;
        }
    }

    /// Lends an output to a connection that has none.
    pub(super) fn lend_output(&mut self, own: &mut Output) {
        if own.is_vacant() {
            std::mem::swap(own, &mut self.out);
        }
    }

    /// Takes an empty output back from a connection, to lend it again or to free it.
    pub(super) fn take_back_output(&mut self, own: &mut Output) {
        if own.is_empty() {
            let out = std::mem::take(own);
            // If the worker has an output already, this one is freed.
            if self.out.is_vacant() {
                self.out = out;
            }
        }
    }
}

/// A connection that holds fewer bytes than this in a buffer of more than twice the size gets a small
/// buffer instead.
const KEPT_BYTES: usize = 4 * 1024;
