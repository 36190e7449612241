//! The open streams of a connection, and the states of those that are not open.

use std::collections::VecDeque;

/// One stream that is open in at least one direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    pub(crate) id: u32,
    pub(crate) inbound: Half,
    pub(crate) outbound: Half,
    /// The body bytes that may be sent; negative if the peer reduced the window afterwards.
    pub(crate) send_window: i64,
    /// The body bytes that the peer may send.
    pub(crate) receive_window: i64,
    /// The body bytes that were received and not credited yet.
    pub(crate) held: u32,
    /// The body bytes that were credited and not announced to the peer by WINDOW_UPDATE yet.
    pub(crate) unannounced: u32,
    /// The number of body bytes still to come; `None` if the length is not known.
    pub(crate) missing: Option<u64>,
    /// The number of body bytes still to be sent; `None` if the length is not known.
    pub(crate) unsent: Option<u64>,
    /// Whether the request is HEAD.
    pub(crate) is_head: bool,
}

/// The progress of one of a stream's two messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    /// The head is still to come, or to be sent.
    Awaited,
    /// The head is complete; the body or trailers follow.
    Body,
    Ended,
}

/// The state of the stream that an id names.
#[derive(Debug)]
pub(crate) enum Found<'s> {
    Open(&'s mut Stream),
    /// The stream was never opened.
    Idle,
    /// This side reset the stream, or may have: older resets are not remembered one by one. Frames may have been on
    /// their way.
    Reset,
    Closed,
}

/// The open streams of one connection, in the order of their ids, in which they were opened. They are few.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    open: Vec<Stream>,
    /// The streams that this side reset last, the oldest first.
    reset: VecDeque<u32>,
    /// The greatest id of a stream that this side reset before those in `reset`; 0 if there is none.
    forgotten: u32,
    /// The greatest id that the client has used.
    pub(crate) last: u32,
}

impl Streams {
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.open.iter_mut()
    }

    /// The open stream with this id.
    #[inline]
    pub(crate) fn get(&mut self, id: u32) -> Option<&mut Stream> {
        let index = self.position(id)?;
        self.open.get_mut(index)
    }

    /// The open stream with this id, if our head on it is sent and our message has not ended.
    #[inline]
    pub(crate) fn sending(&mut self, id: u32) -> Option<&mut Stream> {
        self.get(id).filter(|stream| stream.outbound == Half::Body)
    }

    /// The state of the stream with this id. Only the client opens streams, and its ids are odd.
    #[inline]
    pub(crate) fn find(&mut self, id: u32) -> Found<'_> {
        if let Some(index) = self.position(id) {
            return Found::Open(&mut self.open[index]);
        }
        // Even ids are those of pushes, which are not allowed here.
        if id > self.last || id.is_multiple_of(2) {
            Found::Idle
        } else if id <= self.forgotten || self.reset.contains(&id) {
            Found::Reset
        } else {
            Found::Closed
        }
    }

    #[inline]
    fn position(&self, id: u32) -> Option<usize> {
        // Mostly it is the stream that was opened last.
        match self.open.last() {
            Some(last) if last.id == id => Some(self.open.len() - 1),
            _ => self.open.binary_search_by_key(&id, |stream| stream.id).ok(),
        }
    }

    /// Adds a stream, whose id must be greater than those before.
    pub(crate) fn open(&mut self, stream: Stream) {
        debug_assert!(stream.id > self.last);
        self.last = stream.id;
        self.open.push(stream);
    }

    /// Removes a stream that is over.
    pub(crate) fn remove(&mut self, id: u32) -> Option<Stream> {
        let index = self.position(id)?;
        Some(self.open.remove(index))
    }

    /// Remembers that this side has reset a stream, forgetting the oldest one if there are more than `max`.
    pub(crate) fn note_reset(&mut self, id: u32, max: usize) {
        self.reset.push_back(id);
        if self.reset.len() > max {
            let forgotten = self.reset.pop_front().unwrap_or_default();
            self.forgotten = self.forgotten.max(forgotten);
        }
    }

    /// Removes the first open stream whose id is greater than `last`.
    pub(crate) fn take_beyond(&mut self, last: u32) -> Option<Stream> {
        let first = self.open.partition_point(|stream| stream.id <= last);
        (first < self.open.len()).then(|| self.open.remove(first))
    }
}
