//! The streams of a connection that are open, and what is known of those that are not.

use std::collections::VecDeque;

/// One stream that is open in at least one direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    pub(crate) id: u32,
    pub(crate) inbound: Half,
    pub(crate) outbound: Half,
    /// Bytes of a body that may be sent. Less than none if the peer took back what it had allowed.
    pub(crate) send_window: i64,
    /// Bytes of a body that may come.
    pub(crate) receive_window: i64,
    /// Bytes that came and were not credited.
    pub(crate) held: u32,
    /// Bytes that were credited and that the peer was not told of.
    pub(crate) untold: u32,
    /// What of the announced body is still to come.
    pub(crate) missing: Option<u64>,
    /// What of the announced body is still to be sent.
    pub(crate) unsent: Option<u64>,
    /// The request is HEAD.
    pub(crate) is_head: bool,
}

/// How far a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    /// Its head has not come, or was not sent.
    Awaited,
    /// Its body, or its trailers.
    Body,
    Ended,
}

/// What an id means.
#[derive(Debug)]
pub(crate) enum Found<'s> {
    Open(&'s mut Stream),
    /// It was never used.
    Idle,
    /// This side has reset it, or reset so many that it may be one of them: what comes was on its way.
    Reset,
    Closed,
}

/// The streams of one connection. They are few, and were opened in the order of their ids.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    open: Vec<Stream>,
    /// The last that were reset by this side.
    reset: VecDeque<u32>,
    /// The greatest of those that were reset before.
    forgotten: u32,
    /// The last id that the side used which opens streams.
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
        let at = self.position(id)?;
        self.open.get_mut(at)
    }

    /// The open stream with this id, if the head of our message is sent and its body has not ended.
    #[inline]
    pub(crate) fn sending(&mut self, id: u32) -> Option<&mut Stream> {
        self.get(id).filter(|stream| stream.outbound == Half::Body)
    }

    /// What an id means. Only one side opens streams, and its ids are odd.
    #[inline]
    pub(crate) fn find(&mut self, id: u32) -> Found<'_> {
        if let Some(at) = self.position(id) {
            return Found::Open(&mut self.open[at]);
        }
        match id {
            // Even ones are those of pushes, which nobody asked for.
            _ if id > self.last || id.is_multiple_of(2) => Found::Idle,
            _ if id <= self.forgotten || self.reset.contains(&id) => Found::Reset,
            _ => Found::Closed,
        }
    }

    #[inline]
    fn position(&self, id: u32) -> Option<usize> {
        // Most often it is the last one.
        match self.open.last() {
            Some(last) if last.id == id => Some(self.open.len() - 1),
            _ => self.open.binary_search_by_key(&id, |stream| stream.id).ok(),
        }
    }

    /// Opens a stream, whose id is greater than those before.
    pub(crate) fn open(&mut self, stream: Stream) {
        debug_assert!(stream.id > self.last);
        self.last = stream.id;
        self.open.push(stream);
    }

    /// Removes a stream that is over.
    pub(crate) fn remove(&mut self, id: u32) -> Option<Stream> {
        let at = self.position(id)?;
        Some(self.open.remove(at))
    }

    /// Remembers that this side has reset a stream, as one of at most `max`.
    pub(crate) fn note_reset(&mut self, id: u32, max: usize) {
        self.reset.push_back(id);
        if self.reset.len() > max {
            let forgotten = self.reset.pop_front().unwrap_or_default();
            self.forgotten = self.forgotten.max(forgotten);
        }
    }

    /// Removes the first stream beyond `last`.
    pub(crate) fn take_beyond(&mut self, last: u32) -> Option<Stream> {
        let at = self.open.partition_point(|stream| stream.id <= last);
        (at < self.open.len()).then(|| self.open.remove(at))
    }
}
