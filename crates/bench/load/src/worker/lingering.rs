//! Keeps connections without further requests until their peer closes them, as it has announced.
//!
//! The side that closes first keeps the port in TIME_WAIT, and a generator that does so runs out of
//! ports. So such a connection is kept here until the peer closes it, for a limited time, while its
//! slot dials the next connection at once.

use std::collections::{HashMap, VecDeque};

use mio::Token;
use mio::event::Event;

use crate::stream::Stream;

/// The connections that wait for their peer's close, by token.
#[derive(Debug)]
pub(super) struct LingeringConnections {
    streams: HashMap<Token, Stream>,
    /// The time at which each was added, the oldest first; some are closed already.
    since: VecDeque<(u64, Token)>,
    max: usize,
}

impl LingeringConnections {
    /// An empty set of at most `max` connections.
    pub(super) fn new(max: usize) -> Self {
        Self {
            streams: HashMap::new(),
            since: VecDeque::new(),
            max,
        }
    }

    /// Adds a connection that the peer will close; closes the oldest one if the set is full.
    pub(super) fn add(&mut self, token: Token, stream: Stream, now: u64) {
        while self.streams.len() >= self.max {
            let Some((_, oldest)) = self.since.pop_front() else {
                return;
            };
            self.streams.remove(&oldest);
        }
        self.streams.insert(token, stream);
        self.since.push_back((now, token));
    }

    /// Handles an event of a connection that belongs to no slot: drops it if the peer has closed it.
    pub(super) fn handle_event(&mut self, event: &Event) {
        if event.is_read_closed() || event.is_error() {
            self.streams.remove(&event.token());
        }
    }

    /// Closes the connections that the peer has not closed in time.
    pub(super) fn expire(&mut self, now: u64) {
        while let Some(&(since, token)) = self.since.front()
            && now.saturating_sub(since) >= LINGER
        {
            self.since.pop_front();
            self.streams.remove(&token);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.since.is_empty()
    }
}

/// The time that a peer has to close a connection as announced, in nanoseconds.
const LINGER: u64 = 100_000_000;
