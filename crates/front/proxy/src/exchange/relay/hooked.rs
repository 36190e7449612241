//! The relay on a route with a cache: the cache sees the response as it is sent, and its readers may slow the
//! relay down.
//!
//! Most responses have neither cache nor compression. What these need is in separate functions, so that the relay
//! of other responses stays small enough to be compiled into one function.

use std::task::{Context, Poll};

use bytes::Bytes;
use catamaran_message::ResponseHead;

use crate::deadlines::Tick;
use crate::exchange::cache_hook::HeadFacts;
use crate::exchange::relay::{Relay, RelayError};

impl Relay<'_, '_, '_> {
    /// Ready if the cache takes more of the response now; else the task is woken when that changes.
    pub(super) fn poll_room(&self, cx: &Context<'_>) -> Poll<()> {
        match &self.progress.sink {
            Some(sink) => sink.poll_room(cx),
            None => Poll::Ready(()),
        }
    }

    /// Whether the cache takes more of the response now.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        let sink = self.progress.sink.as_ref();
        sink.is_none_or(|sink| sink.has_room())
    }

    /// The time at which the response is given up because readers of the cache take nothing of it.
    #[inline]
    pub(super) fn idle_ends(&self) -> Option<Tick> {
        let sink = self.progress.sink.as_ref();
        sink.and_then(|sink| sink.idle_ends(self.now()))
    }

    /// Whether the response is only for readers of the cache, and all of them have left.
    #[inline]
    pub(super) fn is_abandoned(&self) -> bool {
        let sink = self.progress.sink.as_ref();
        sink.is_some_and(|sink| sink.is_abandoned())
    }

    /// Passes a response's head to the cache, if there is one.
    #[inline]
    pub(super) fn show_head(&mut self, head: &mut ResponseHead, is_replaced: bool) {
        let policy = self.terms.policy;
        if let Some(sink) = &mut self.progress.sink {
            let facts = HeadFacts {
                request: policy.request,
                is_replaced,
                is_framed: self.source.is_framed(),
                cookie: policy.cookie(head),
            };
            sink.head(head, facts);
        }
    }

    /// Sends a body of the front's own instead of the source's.
    pub(super) fn send_own_body(&mut self, data: Bytes) {
        if let Some(sink) = &mut self.progress.sink {
            sink.body(&data);
        }
        self.down.send_data(data);
    }

    /// Ends the response.
    ///
    /// # Errors
    /// The response is not as long as announced.
    #[inline]
    pub(super) fn send_end(&mut self) -> Result<(), RelayError> {
        let is_whole = match (&self.progress.compression, &self.progress.sink) {
            (None, None) => self.down.send_end(),
            _ => self.send_hooked_end(),
        };
        if is_whole {
            Ok(())
        } else {
            Err(RelayError::ResponseLength)
        }
    }

    /// Ends a response that is compressed, or that a cache sees. `false` if it is not as long as announced.
    #[inline(never)]
    fn send_hooked_end(&mut self) -> bool {
        // The cache learns of the end even if the other checks fail.
        let is_stored_whole = match &mut self.progress.sink {
            Some(sink) => sink.end(),
            None => true,
        };
        let compression = self.progress.compression.as_ref();
        let is_coded_whole = compression.is_none_or(|compression| compression.is_whole());
        is_coded_whole && self.down.send_end() && is_stored_whole
    }
}
