//! A response that is being received for the cache, and its readers.
//!
//! One task fills it, any number of requests read it. A body that is to be stored is kept from its beginning, so that
//! a reader may come late and no reader waits for another. A body that is not stored has one reader, the request that
//! caused the fetch, and the filler waits for that reader. A reader that has the head gets the rest or sees a failure:
//! a response that was cut never looks whole.

mod room;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use catamaran_cache::storable::{Credentials, Terms};
use catamaran_cache::vary::{RequestFields, Selection};
use catamaran_message::Fields;
use http::StatusCode;
pub(crate) use room::FillRoom;
use room::FillShare;
use slab::Slab;

use crate::cache::object::{Object, SHORT_MAX};
use crate::counters::Reason;
use crate::deadlines::Tick;
use crate::lock::lock;

/// A response that is being received.
#[derive(Debug)]
pub(crate) struct Fill {
    state: Mutex<FillState>,
    share: FillShare,
}

/// The head of a response that is being received, as it is stored.
#[derive(Debug)]
pub(crate) struct FillHead {
    pub(crate) status: StatusCode,
    pub(crate) reason: Option<Bytes>,
    pub(crate) headers: Fields,
    /// The length of the body; `None` if it is not known before the end.
    pub(crate) content_length: Option<u64>,
    /// The age in seconds that the response had when it arrived.
    pub(crate) age: u32,
    /// The requests that the response may answer, if it is to be stored; else the reason why it is not.
    pub(crate) storing: Result<Audience, &'static str>,
    /// The cookie that the front sets for the client whose request caused the fetch.
    pub(crate) cookie: Option<Bytes>,
}

/// The requests that may be answered with a response.
#[derive(Clone, Debug)]
pub(crate) struct Audience {
    /// The values that a request must have in the fields that `Vary` names.
    pub(crate) selection: Selection,
    /// The terms on which the response may be used: some are not for requests with a session.
    pub(crate) terms: Terms,
}

impl Audience {
    /// Whether the response may answer this request, which has these credentials.
    pub(crate) fn has(&self, request: &dyn RequestFields, credentials: Credentials) -> bool {
        self.selection.matches(request) && self.terms.admit(credentials)
    }
}

/// The limits, in bytes, on bodies that are being received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FillLimits {
    /// The longest body that is stored.
    pub(crate) object_max: u64,
    /// The most bytes that all bodies being received may take.
    pub(crate) fills_max: u64,
}

/// The reason why a response could not be fetched, and the status to answer with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FillFailure {
    pub(crate) status: StatusCode,
    pub(crate) reason: Reason,
}

/// An event that a reader gets before the body.
#[derive(Clone, Debug)]
pub(crate) enum FillNews {
    /// An interim response (1xx).
    Interim(StatusCode, Box<Fields>),
    /// The head; the body follows.
    Head(Arc<FillHead>),
    /// The whole response, as stored. `true`: the backend answered that the stored one is still valid.
    Whole(Arc<Object>, bool),
    /// The response may not be shared: only the request that caused it gets it. With its status, if its head has come.
    NotShared(Option<StatusCode>),
    Failed(FillFailure),
}

/// How a response was fetched, for the access log.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FetchFacts {
    /// The index of the member that answered, in its upstream.
    pub(crate) member: Option<usize>,
    pub(crate) attempts: u32,
}

#[derive(Debug)]
struct FillState {
    interims: VecDeque<(StatusCode, Fields)>,
    head: Option<Arc<FillHead>>,
    body: FillBody,
    /// The bytes of the shared room that this fill has taken.
    counted: u64,
    place: Option<u64>,
    /// Whether it has given up its bytes to other fills: the body will not be stored.
    is_given_up: bool,
    end: Option<End>,
    /// The readers, each with its waker if it waits.
    readers: Slab<Option<Waker>>,
    filler: Option<Waker>,
    /// Whether the response is fetched to its end even without readers, as long as it can be stored.
    is_wanted: bool,
    /// The time since which the body has had no room because its reader takes nothing; `None` while it has room.
    idle_since: Option<Tick>,
    facts: FetchFacts,
}

#[derive(Debug)]
enum FillBody {
    /// All of the body so far, for any number of readers.
    Kept {
        blocks: Vec<Bytes>,
        tail: BytesMut,
        len: u64,
    },
    /// The bytes that the only reader has not taken yet; the body is not stored.
    Passed { queue: VecDeque<Bytes>, len: usize },
}

#[derive(Clone, Debug)]
enum End {
    /// The whole response came. With the stored object, and whether the backend only confirmed it; `None`: not stored.
    Whole(Option<(Arc<Object>, bool)>),
    Failed(FillFailure),
}

/// A reader of a response, with its position. Dropping it ends the reading.
#[derive(Debug)]
pub(crate) struct FillReader {
    fill: Arc<Fill>,
    key: usize,
    /// Whether this reader's request caused the fetch.
    pub(crate) leads: bool,
    /// The index of the next block to read.
    next: usize,
}

impl Fill {
    /// A fill that a task of its own feeds, for any number of readers.
    pub(crate) fn new(room: Arc<FillRoom>) -> Self {
        Self::of(room, false)
    }

    /// A fill without readers, which copies a response while it is sent to its client.
    pub(crate) fn beside(room: Arc<FillRoom>) -> Self {
        Self::of(room, true)
    }

    /// A fill without readers. `yields`: its bytes are given up if other fills need them (see [`FillShare::yields`]).
    fn of(room: Arc<FillRoom>, yields: bool) -> Self {
        Self {
            share: FillShare { room, yields },
            state: Mutex::new(FillState {
                interims: VecDeque::new(),
                head: None,
                body: FillBody::Kept {
                    blocks: Vec::new(),
                    tail: BytesMut::new(),
                    len: 0,
                },
                counted: 0,
                place: None,
                is_given_up: false,
                end: None,
                readers: Slab::new(),
                filler: None,
                is_wanted: false,
                idle_since: None,
                facts: FetchFacts::default(),
            }),
        }
    }

    /// The number of requests that read the response or wait for it.
    pub(crate) fn readers(&self) -> usize {
        self.lock().readers.len()
    }

    /// Adds a reader, which begins at the start of the response. `leads`: its request caused the fetch.
    pub(crate) fn read(self: &Arc<Self>, leads: bool) -> FillReader {
        FillReader {
            key: self.lock().readers.insert(None),
            fill: Arc::clone(self),
            leads,
            next: 0,
        }
    }

    /// Lets the response be received to its end even if nobody reads it, as long as it can be stored.
    pub(crate) fn want(&self) {
        self.lock().is_wanted = true;
    }

    /// Adds an interim response, for the request that caused the fetch.
    pub(crate) fn interim(&self, status: StatusCode, headers: Fields) {
        let mut state = self.lock();
        if state.interims.len() < INTERIMS_MAX {
            state.interims.push_back((status, headers));
        }
        state.wake_readers();
    }

    /// Takes the head. If the response is to be stored, its announced length is reserved. `false`: it is not stored,
    /// for example because all bodies being received would take more than `fills_max`; it then has one reader.
    pub(crate) fn begin(self: &Arc<Self>, mut head: FillHead, fills_max: u64) -> bool {
        let announced = head.content_length;
        // A body of unknown length is counted as it comes.
        let reserved = announced.unwrap_or(0);
        if head.storing.is_ok() && !self.share.take(reserved, fills_max) {
            head.storing = Err("fills-max");
        }
        let is_kept = head.storing.is_ok();
        let mut state = self.lock();
        if is_kept {
            state.counted += reserved;
            state.place = self.share.join(Arc::downgrade(self));
        } else {
            state.body = FillBody::passed();
        }
        if let (Some(length), FillBody::Kept { tail, .. }) = (announced, &mut state.body) {
            // A short body gets one block of its size.
            tail.reserve(usize::try_from(length).unwrap_or(BLOCK).min(BLOCK));
        }
        state.head = Some(Arc::new(head));
        state.wake_readers();
        is_kept
    }

    /// Adds bytes of the body.
    ///
    /// # Errors
    /// The reason why the body is not stored: it exceeds one of the limits. The request that caused the fetch still
    /// gets the body.
    pub(crate) fn push(&self, data: Bytes, limits: FillLimits) -> Result<(), &'static str> {
        let added = data.len() as u64;
        let is_counted = self.lock().is_counted_as_it_comes();
        // `take` may have other fills give up their bytes, and even this one, so this one is not locked meanwhile.
        let fits = !is_counted || self.share.take(added, limits.fills_max);
        let mut state = self.lock();
        if is_counted && fits {
            state.counted += added;
        }
        if state.is_given_up {
            state.release(&self.share, u64::MAX);
            return Err("fills-max");
        }
        let pushed = match &mut state.body {
            FillBody::Kept { blocks, tail, len } if fits && *len + added <= limits.object_max => {
                *len += added;
                keep(data, blocks, tail);
                Ok(())
            }
            FillBody::Kept { .. } => {
                state.pass_on(data, &self.share);
                Err(if fits { "object-max" } else { "fills-max" })
            }
            FillBody::Passed { queue, len } => {
                *len += data.len();
                queue.push_back(data);
                Ok(())
            }
        };
        state.wake_readers();
        pushed
    }

    /// Stops storing the body, and frees its bytes for other responses.
    fn give_up(&self) {
        let mut state = self.lock();
        if state.end.is_none() {
            state.is_given_up = true;
            state.body = FillBody::passed();
        }
        state.place = None;
        state.release(&self.share, u64::MAX);
    }

    /// The head of the response, once it has arrived.
    pub(crate) fn head(&self) -> Option<Arc<FillHead>> {
        self.lock().head.clone()
    }

    /// The blocks of the whole body, if it was kept: compacted, so that little of their memory is unused.
    pub(crate) fn collect_body(&self) -> Option<Vec<Bytes>> {
        let mut state = self.lock();
        let FillBody::Kept { blocks, tail, len } = &mut state.body else {
            return None;
        };
        if !tail.is_empty() {
            blocks.push(tail.split().freeze());
        }
        Some(compact(blocks, *len))
    }

    /// Ends a response that was received whole: `object` if it was stored; `validated` if the backend only confirmed a
    /// stored one.
    pub(crate) fn finish(&self, object: Option<Arc<Object>>, validated: bool) {
        let mut state = self.lock();
        state.end = Some(End::Whole(object.map(|object| (object, validated))));
        // From here on it holds no room for others back, however slowly it is read.
        state.leave(&self.share);
        state.wake_readers();
    }

    /// Ends a response whose rest will not come, unless it has ended already.
    pub(crate) fn fail(&self, failure: FillFailure) {
        let mut state = self.lock();
        state.end.get_or_insert(End::Failed(failure));
        state.leave(&self.share);
        state.wake_readers();
    }

    /// Keeps how the response was fetched.
    pub(crate) fn note_facts(&self, facts: FetchFacts) {
        self.lock().facts = facts;
    }

    pub(crate) fn facts(&self) -> FetchFacts {
        self.lock().facts
    }

    /// Ready when more may be pushed. While pending, the task of `cx` is woken when that changes.
    pub(crate) fn poll_room(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        state.filler = Some(cx.waker().clone());
        if state.has_room() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// Whether more may be pushed now.
    pub(crate) fn has_room(&self) -> bool {
        self.lock().has_room()
    }

    /// The time at which the fetch is given up because its reader takes nothing; no other timeout runs meanwhile.
    /// `None` while there is room: then the timeouts of the backend hold.
    pub(crate) fn idle_ends(&self, now: Tick) -> Option<Tick> {
        let mut state = self.lock();
        if state.has_room() {
            state.idle_since = None;
        } else {
            state.idle_since.get_or_insert(now);
        }
        state.idle_since.map(|since| since + IDLE_MAX)
    }

    /// Whether to stop fetching: there are no readers, and the response cannot be stored, or nobody asked by
    /// [`Self::want`] to store it and its rest is longer than [`REST_MAX`] or of unknown length.
    pub(crate) fn is_abandoned(&self) -> bool {
        let state = self.lock();
        if !state.readers.is_empty() {
            return false;
        }
        let FillBody::Kept { len, .. } = &state.body else {
            return true;
        };
        if state.is_wanted {
            return false;
        }
        match state.head.as_ref().and_then(|head| head.content_length) {
            Some(length) => length.saturating_sub(*len) > REST_MAX,
            None => true,
        }
    }

    fn lock(&self) -> MutexGuard<'_, FillState> {
        lock(&self.state)
    }
}

impl Drop for Fill {
    fn drop(&mut self) {
        self.lock().leave(&self.share);
    }
}

impl FillBody {
    /// A body that is passed on to one reader, still empty.
    fn passed() -> Self {
        Self::Passed {
            queue: VecDeque::new(),
            len: 0,
        }
    }

    /// The next block for a reader that has taken `taken` blocks.
    fn next_block(&mut self, taken: &mut usize) -> Option<Bytes> {
        match self {
            Self::Kept { blocks, tail, .. } => {
                if *taken == blocks.len() && !tail.is_empty() {
                    blocks.push(tail.split().freeze());
                }
                let block = blocks.get(*taken).cloned()?;
                *taken += 1;
                Some(block)
            }
            Self::Passed { queue, len } => {
                // Blocks that the one reader had taken before the body was no longer kept.
                for block in queue.drain(..(*taken).min(queue.len())) {
                    *len -= block.len();
                }
                *taken = 0;
                let block = queue.pop_front()?;
                *len -= block.len();
                Some(block)
            }
        }
    }
}

impl FillState {
    /// Gives back the bytes and the place that this fill has in the shared room.
    fn leave(&mut self, share: &FillShare) {
        self.release(share, u64::MAX);
        if let Some(place) = self.place.take() {
            share.leave(place);
        }
    }

    /// Gives back this number of bytes of the shared room, at most all that this fill has taken.
    fn release(&mut self, share: &FillShare, bytes: u64) {
        let released = bytes.min(self.counted);
        self.counted -= released;
        share.release(released);
    }

    /// Whether bytes are counted as they come: the body is kept, and its length was not announced.
    fn is_counted_as_it_comes(&self) -> bool {
        let head = self.head.as_ref();
        let has_unknown_length = head.is_some_and(|head| head.content_length.is_none());
        has_unknown_length && matches!(self.body, FillBody::Kept { .. })
    }

    /// Stops storing the body: passes its bytes, with `data` at their end, on to the one reader, if there still is one.
    fn pass_on(&mut self, data: Bytes, share: &FillShare) {
        let mut queue = VecDeque::new();
        if let FillBody::Kept { blocks, tail, .. } = &mut self.body
            && !self.readers.is_empty()
        {
            queue.extend(blocks.drain(..));
            if !tail.is_empty() {
                queue.push_back(tail.split().freeze());
            }
            queue.push_back(data);
        }
        let len: usize = queue.iter().map(Bytes::len).sum();
        self.body = FillBody::Passed { queue, len };
        self.release(share, self.counted.saturating_sub(len as u64));
    }

    /// Whether more bytes of the body may be pushed now.
    fn has_room(&self) -> bool {
        match &self.body {
            FillBody::Passed { len, .. } => *len < AHEAD_MAX,
            FillBody::Kept { .. } => true,
        }
    }

    fn wake_readers(&mut self) {
        for (_, waker) in &mut self.readers {
            if let Some(waker) = waker.take() {
                waker.wake();
            }
        }
    }

    fn wake_filler(&mut self) {
        if let Some(waker) = self.filler.take() {
            waker.wake();
        }
    }
}

impl FillReader {
    /// The next event before the body: an interim response, the head, a whole response or a failure.
    pub(crate) fn poll_news(&self, cx: &Context<'_>) -> Poll<FillNews> {
        let mut state = self.fill.lock();
        if self.leads
            && let Some((status, headers)) = state.interims.pop_front()
        {
            return Poll::Ready(FillNews::Interim(status, Box::new(headers)));
        }
        if let Some(End::Failed(failure)) = &state.end {
            return Poll::Ready(FillNews::Failed(*failure));
        }
        if let Some(head) = &state.head {
            if self.leads {
                return Poll::Ready(FillNews::Head(Arc::clone(head)));
            }
            let is_kept = matches!(state.body, FillBody::Kept { .. });
            if head.storing.is_err() || !is_kept {
                return Poll::Ready(FillNews::NotShared(Some(head.status)));
            }
            // Without an announced length it is not known before the end whether the whole body can be kept.
            if head.content_length.is_some() {
                return Poll::Ready(FillNews::Head(Arc::clone(head)));
            }
        }
        if let Some(End::Whole(stored)) = &state.end {
            return Poll::Ready(match stored {
                Some((object, validated)) => FillNews::Whole(Arc::clone(object), *validated),
                None => FillNews::NotShared(None),
            });
        }
        state.readers[self.key] = Some(cx.waker().clone());
        Poll::Pending
    }

    /// The next piece of the body; `None` at its end.
    ///
    /// # Errors
    /// The response failed: its rest will not come.
    pub(crate) fn poll_body(
        &mut self,
        cx: &Context<'_>,
    ) -> Poll<Result<Option<Bytes>, FillFailure>> {
        let mut state = self.fill.lock();
        let block = state.body.next_block(&mut self.next);
        if let FillBody::Passed { len, .. } = state.body {
            // Bytes that were counted while the body was kept are given back as they are taken.
            let taken = state.counted.saturating_sub(len as u64);
            state.release(&self.fill.share, taken);
            if block.is_some() {
                state.idle_since = None;
                state.wake_filler();
            }
        }
        if block.is_some() {
            return Poll::Ready(Ok(block));
        }
        match &state.end {
            Some(End::Whole(_)) => Poll::Ready(Ok(None)),
            Some(End::Failed(failure)) => Poll::Ready(Err(*failure)),
            None => {
                state.readers[self.key] = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// The fill whose response is read.
    pub(crate) fn fill(&self) -> &Arc<Fill> {
        &self.fill
    }
}

impl Drop for FillReader {
    fn drop(&mut self) {
        let mut state = self.fill.lock();
        state.readers.remove(self.key);
        if state.readers.is_empty() {
            // The filler may stop now: see `Fill::is_abandoned`.
            state.wake_filler();
        }
    }
}

/// Copies bytes into blocks, so that readers do not hold on to buffers of connections. `tail` is the block that is
/// being filled.
fn keep(mut data: Bytes, blocks: &mut Vec<Bytes>, tail: &mut BytesMut) {
    while !data.is_empty() {
        let is_full = tail.len() == tail.capacity();
        if is_full {
            if !tail.is_empty() {
                blocks.push(std::mem::take(tail).freeze());
            }
            *tail = BytesMut::with_capacity(BLOCK);
        }
        let fitting = (tail.capacity() - tail.len()).min(data.len());
        tail.extend_from_slice(&data.split_to(fitting));
    }
}

/// The body's blocks as they are stored: full ones, without unused room. Those of a short body need no compacting,
/// since they are copied when it is stored.
fn compact(blocks: &[Bytes], body_len: u64) -> Vec<Bytes> {
    let len = usize::try_from(body_len).unwrap_or(usize::MAX);
    let full_blocks = len.div_ceil(BLOCK);
    if blocks.len() <= full_blocks || len < SHORT_MAX {
        return blocks.to_vec();
    }
    let mut compacted = Vec::with_capacity(full_blocks);
    let mut block = Vec::with_capacity(BLOCK);
    for mut data in blocks.iter().cloned() {
        while !data.is_empty() {
            let fitting = (BLOCK - block.len()).min(data.len());
            block.extend_from_slice(&data.split_to(fitting));
            if block.len() == BLOCK {
                compacted.push(Bytes::from(block));
                block = Vec::with_capacity(BLOCK);
            }
        }
    }
    if !block.is_empty() {
        block.shrink_to_fit();
        compacted.push(Bytes::from(block));
    }
    compacted
}

/// The size of a block, in bytes.
const BLOCK: usize = 16 * 1024;

/// The most bytes of a body that is not stored which may wait for their reader; the fetch pauses meanwhile.
const AHEAD_MAX: usize = 64 * 1024;

/// How long a fetch pauses for a reader that takes nothing before it is given up. A client that takes no less
/// than the default of `write_rate_min` empties its own buffers in less.
const IDLE_MAX: Duration = Duration::from_secs(5 * 60);

/// The longest rest of a body, in bytes, that is received without readers, so that it is stored for later requests.
const REST_MAX: u64 = 256 * 1024;

/// The most interim responses that wait for their reader; further ones are dropped.
const INTERIMS_MAX: usize = 8;

#[cfg(test)]
mod tests;
