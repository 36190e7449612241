//! A response that is being received, and those who read it meanwhile.
//!
//! One fills, any number read. What is to be stored is kept in blocks from its beginning, so that a reader
//! may come late and none waits for another. What is not stored has one reader, the one that asked for it,
//! and the filler waits for it. A reader that has the head gets the rest or sees a failure: nothing that
//! was cut ever looks whole.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use catamaran_cache::storable::{Credentials, Terms};
use catamaran_cache::vary::{RequestFields, Selection};
use http::{HeaderMap, HeaderValue, StatusCode};
use slab::Slab;

use crate::cache::object::{Object, SHORT_MAX};
use crate::counters::Reason;
use crate::deadlines::Tick;

/// A response that is being received.
#[derive(Debug)]
pub(crate) struct Fill {
    state: Mutex<State>,
    /// Bytes of all that is being received.
    filling: Arc<AtomicU64>,
}

/// The head of a response that is being received, as it is stored.
#[derive(Debug)]
pub(crate) struct FillHead {
    pub(crate) status: StatusCode,
    pub(crate) reason: Option<Bytes>,
    pub(crate) headers: HeaderMap,
    /// `None` if the length is not known before the end.
    pub(crate) content_length: Option<u64>,
    /// The age with which it arrived, in seconds.
    pub(crate) age: u32,
    /// For whom it is, if it is to be stored; else why it is not.
    pub(crate) storing: Result<Audience, &'static str>,
    /// The front's own cookie for the client that asked.
    pub(crate) cookie: Option<HeaderValue>,
}

/// The requests that a response is for.
#[derive(Clone, Debug)]
pub(crate) struct Audience {
    /// Which it answers.
    pub(crate) selection: Selection,
    /// On which terms it is used: not all are for requests with a session.
    pub(crate) terms: Terms,
}

impl Audience {
    /// Whether a request with these credentials is one of them.
    pub(crate) fn has(&self, request: &dyn RequestFields, credentials: Credentials) -> bool {
        self.selection.matches(request) && self.terms.admit(credentials)
    }
}

/// Why a response did not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FillFailure {
    pub(crate) status: StatusCode,
    pub(crate) reason: Reason,
}

/// What becomes of a response before its body.
#[derive(Clone, Debug)]
pub(crate) enum FillNews {
    /// An interim response.
    Interim(StatusCode, Box<HeaderMap>),
    /// The head; the body follows.
    Head(Arc<FillHead>),
    /// All of it is there. `true`: the backend said that what was stored is valid.
    Whole(Arc<Object>, bool),
    /// It is for the one alone that asked for it; its status, if it has begun.
    NotShared(Option<StatusCode>),
    Failed(FillFailure),
}

/// Who attempted what for a response.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FetchFacts {
    /// The member that answered, by its index.
    pub(crate) member: Option<usize>,
    pub(crate) attempts: u32,
}

#[derive(Debug)]
struct State {
    interims: VecDeque<(StatusCode, HeaderMap)>,
    head: Option<Arc<FillHead>>,
    body: Received,
    /// Bytes that are counted as being received.
    counted: u64,
    end: Option<End>,
    /// Readers that are there, and whom to wake.
    readers: Slab<Option<Waker>>,
    filler: Option<Waker>,
    /// What can be stored of it is wanted whoever reads it.
    is_wanted: bool,
    /// Since when nobody reads it, or its one reader takes nothing.
    idle_since: Option<Tick>,
    facts: FetchFacts,
}

#[derive(Debug)]
enum Received {
    /// From its beginning, for all.
    Kept {
        blocks: Vec<Bytes>,
        tail: BytesMut,
        len: u64,
    },
    /// What the one reader has not taken.
    Passed { queue: VecDeque<Bytes>, len: usize },
}

#[derive(Clone, Debug)]
enum End {
    /// The object, if it was stored.
    Whole(Option<(Arc<Object>, bool)>),
    Failed(FillFailure),
}

/// A reader's place in a response. Dropping it gives it up.
#[derive(Debug)]
pub(crate) struct FillReader {
    fill: Arc<Fill>,
    key: usize,
    /// Whether the response was asked for by this request.
    pub(crate) leads: bool,
    /// The next block.
    next: usize,
}

impl Fill {
    pub(crate) fn new(filling: Arc<AtomicU64>) -> Self {
        Self {
            state: Mutex::new(State {
                interims: VecDeque::new(),
                head: None,
                body: Received::Kept {
                    blocks: Vec::new(),
                    tail: BytesMut::new(),
                    len: 0,
                },
                counted: 0,
                end: None,
                readers: Slab::new(),
                filler: None,
                is_wanted: false,
                idle_since: None,
                facts: FetchFacts::default(),
            }),
            filling,
        }
    }

    /// How many read it, or wait for it.
    pub(crate) fn readers(&self) -> usize {
        self.lock().readers.len()
    }

    /// A place to read from.
    pub(crate) fn read(self: &Arc<Self>, leads: bool) -> FillReader {
        FillReader {
            key: self.lock().readers.insert(None),
            fill: Arc::clone(self),
            leads,
            next: 0,
        }
    }

    /// It is received to its end whoever reads it, as long as it can be stored.
    pub(crate) fn want(&self) {
        self.lock().is_wanted = true;
    }

    /// Takes an interim response.
    pub(crate) fn interim(&self, status: StatusCode, headers: HeaderMap) {
        let mut state = self.lock();
        if state.interims.len() < INTERIMS_MAX {
            state.interims.push_back((status, headers));
        }
        state.wake_readers();
    }

    /// Takes the head. If it is to be stored and has a length, so many bytes are counted; `false` if more
    /// than `most` would be, and nobody but the one that asked gets it.
    pub(crate) fn begin(&self, mut head: FillHead, most: u64) -> bool {
        let mut state = self.lock();
        if head.storing.is_ok()
            && !state.count(head.content_length.unwrap_or(0), &self.filling, most)
        {
            head.storing = Err("fills-max");
        }
        let is_kept = head.storing.is_ok();
        if !is_kept {
            state.body = Received::Passed {
                queue: VecDeque::new(),
                len: 0,
            };
        }
        if let (Some(length), Received::Kept { tail, .. }) = (head.content_length, &mut state.body)
        {
            tail.reserve(usize::try_from(length).unwrap_or(BLOCK).min(BLOCK));
        }
        state.head = Some(Arc::new(head));
        state.wake_readers();
        is_kept
    }

    /// Takes some of the body. `false` if it turns out to be longer than `object_max`, or than `most` of
    /// all that is being received allow: it goes on for the one that asked for it.
    pub(crate) fn push(&self, data: Bytes, (object_max, most): (u64, u64)) -> bool {
        let mut state = self.lock();
        let is_long = state
            .head
            .as_ref()
            .is_some_and(|it| it.content_length.is_none());
        let added = data.len() as u64;
        let fits = !is_long || state.count(added, &self.filling, most);
        let kept = match &mut state.body {
            Received::Kept { blocks, tail, len } if fits && *len + added <= object_max => {
                *len += added;
                keep(data, blocks, tail);
                true
            }
            Received::Kept { .. } => {
                state.pass_on(data);
                false
            }
            Received::Passed { queue, len } => {
                *len += data.len();
                queue.push_back(data);
                true
            }
        };
        state.wake_readers();
        kept
    }

    /// The head, once it is there.
    pub(crate) fn head(&self) -> Option<Arc<FillHead>> {
        self.lock().head.clone()
    }

    /// The blocks of the whole body, if it was kept.
    pub(crate) fn body(&self) -> Option<Vec<Bytes>> {
        let mut state = self.lock();
        let Received::Kept { blocks, tail, len } = &mut state.body else {
            return None;
        };
        if !tail.is_empty() {
            blocks.push(tail.split().freeze());
        }
        Some(compact(blocks, *len))
    }

    /// All was received; what became of it, and whether the backend only said that it is valid.
    pub(crate) fn finish(&self, object: Option<Arc<Object>>, validated: bool) {
        let mut state = self.lock();
        state.end = Some(End::Whole(object.map(|object| (object, validated))));
        state.wake_readers();
    }

    /// The rest will not come. Only the first end counts.
    pub(crate) fn fail(&self, failure: FillFailure) {
        let mut state = self.lock();
        state.end.get_or_insert(End::Failed(failure));
        state.wake_readers();
    }

    /// Keeps who attempted what.
    pub(crate) fn note_facts(&self, facts: FetchFacts) {
        self.lock().facts = facts;
    }

    pub(crate) fn facts(&self) -> FetchFacts {
        self.lock().facts
    }

    /// Whether more may be pushed. If not, the task is woken when that changes.
    pub(crate) fn poll_room(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        state.filler = Some(cx.waker().clone());
        match state.has_room() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    /// Whether more may be pushed now.
    pub(crate) fn has_room(&self) -> bool {
        self.lock().has_room()
    }

    /// When it is given up, if nothing changes: no other timeout runs while the front waits for itself. `None`
    /// while somebody takes what comes.
    pub(crate) fn idle_ends(&self, now: Tick) -> Option<Tick> {
        let mut state = self.lock();
        if !state.readers.is_empty() && state.has_room() {
            state.idle_since = None;
        } else {
            state.idle_since.get_or_insert(now);
        }
        state.idle_since.map(|since| since + IDLE_MAX)
    }

    /// Whether nobody reads the rest, and it is not worth being received: it cannot be stored, or it is not
    /// wanted and too much to be had for its own sake.
    pub(crate) fn is_abandoned(&self) -> bool {
        let state = self.lock();
        if !state.readers.is_empty() {
            return false;
        }
        let length = state.head.as_ref().and_then(|head| head.content_length);
        match (&state.body, length) {
            (Received::Passed { .. }, _) => true,
            _ if state.is_wanted => false,
            (Received::Kept { len, .. }, Some(length)) => length.saturating_sub(*len) > REST_MAX,
            (Received::Kept { .. }, None) => true,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Fill {
    fn drop(&mut self) {
        let counted = self.lock().counted;
        self.filling.fetch_sub(counted, Ordering::Relaxed);
    }
}

impl State {
    /// Counts bytes as being received, unless that would be more than `most`.
    fn count(&mut self, bytes: u64, filling: &AtomicU64, most: u64) -> bool {
        let before = filling.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > most {
            filling.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        self.counted += bytes;
        true
    }

    /// Keeps nothing from here on but what the one that asked has not taken.
    fn pass_on(&mut self, data: Bytes) {
        let mut queue = VecDeque::new();
        if let Received::Kept { blocks, tail, .. } = &mut self.body {
            queue.extend(blocks.drain(..));
            if !tail.is_empty() {
                queue.push_back(tail.split().freeze());
            }
        }
        queue.push_back(data);
        let len = queue.iter().map(Bytes::len).sum();
        self.body = Received::Passed { queue, len };
    }

    /// Whether more may be pushed.
    fn has_room(&self) -> bool {
        match &self.body {
            Received::Passed { len, .. } => *len < AHEAD_MAX,
            Received::Kept { .. } => true,
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
    /// What there is before the body.
    pub(crate) fn poll_news(&self, cx: &Context<'_>) -> Poll<FillNews> {
        let mut state = self.fill.lock();
        let is_kept = matches!(state.body, Received::Kept { .. });
        if self.leads
            && let Some((status, headers)) = state.interims.pop_front()
        {
            return Poll::Ready(FillNews::Interim(status, Box::new(headers)));
        }
        match (&state.end, &state.head) {
            (Some(End::Failed(failure)), _) => return Poll::Ready(FillNews::Failed(*failure)),
            (Some(End::Whole(Some((object, validated)))), None) => {
                return Poll::Ready(FillNews::Whole(Arc::clone(object), *validated));
            }
            (_, Some(head)) if self.leads => return Poll::Ready(FillNews::Head(Arc::clone(head))),
            (_, Some(head)) if head.storing.is_err() || !is_kept => {
                return Poll::Ready(FillNews::NotShared(Some(head.status)));
            }
            // Of one without a length it is not known whether it can be kept.
            (_, Some(head)) if head.content_length.is_some() => {
                return Poll::Ready(FillNews::Head(Arc::clone(head)));
            }
            (Some(End::Whole(Some((object, validated)))), Some(_)) => {
                return Poll::Ready(FillNews::Whole(Arc::clone(object), *validated));
            }
            (Some(End::Whole(None)), _) => return Poll::Ready(FillNews::NotShared(None)),
            (None, _) => {}
        }
        state.readers[self.key] = Some(cx.waker().clone());
        Poll::Pending
    }

    /// The next piece of the body; `None` at its end.
    ///
    /// # Errors
    /// The rest will not come.
    pub(crate) fn poll_body(
        &mut self,
        cx: &Context<'_>,
    ) -> Poll<Result<Option<Bytes>, FillFailure>> {
        let mut state = self.fill.lock();
        let next = match &mut state.body {
            Received::Kept { blocks, tail, .. } => {
                if self.next == blocks.len() && !tail.is_empty() {
                    blocks.push(tail.split().freeze());
                }
                let block = blocks.get(self.next).cloned();
                self.next += usize::from(block.is_some());
                block
            }
            Received::Passed { queue, len } => {
                // It has taken some of what had been kept before.
                while self.next > 0 {
                    self.next -= 1;
                    *len -= queue.pop_front().map_or(0, |block| block.len());
                }
                let block = queue.pop_front();
                *len -= block.as_ref().map_or(0, Bytes::len);
                block
            }
        };
        if let Some(block) = next {
            if matches!(state.body, Received::Passed { .. }) {
                state.idle_since = None;
                state.wake_filler();
            }
            return Poll::Ready(Ok(Some(block)));
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

    /// What it reads.
    pub(crate) fn fill(&self) -> &Arc<Fill> {
        &self.fill
    }
}

impl Drop for FillReader {
    fn drop(&mut self) {
        let mut state = self.fill.lock();
        state.readers.remove(self.key);
        if state.readers.is_empty() {
            state.wake_filler();
        }
    }
}

/// Copies bytes into blocks, so that no buffer that is lent to a connection stays with a reader.
fn keep(mut data: Bytes, blocks: &mut Vec<Bytes>, tail: &mut BytesMut) {
    while !data.is_empty() {
        if tail.len() == tail.capacity() {
            if !tail.is_empty() {
                blocks.push(std::mem::take(tail).freeze());
            }
            *tail = BytesMut::with_capacity(BLOCK);
        }
        let room = (tail.capacity() - tail.len()).min(data.len());
        tail.extend_from_slice(&data.split_to(room));
    }
}

/// The blocks as they are stored: without the room that was left, and not in many small pieces. Those of a short body
/// are copied when it is stored.
fn compact(blocks: &[Bytes], len: u64) -> Vec<Bytes> {
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    if blocks.len() <= len.div_ceil(BLOCK) || len < SHORT_MAX {
        return blocks.to_vec();
    }
    let mut left = len;
    let mut compacted = Vec::with_capacity(len.div_ceil(BLOCK));
    let mut block = Vec::with_capacity(left.min(BLOCK));
    for mut data in blocks.iter().cloned() {
        while !data.is_empty() {
            let room = (block.capacity() - block.len()).min(data.len());
            block.extend_from_slice(&data.split_to(room));
            if block.len() == block.capacity() {
                left -= block.len();
                compacted.push(Bytes::from(std::mem::take(&mut block)));
                block = Vec::with_capacity(left.min(BLOCK));
            }
        }
    }
    compacted
}

/// Bytes of a block.
const BLOCK: usize = 16 * 1024;

/// Bytes that the reader of what is not stored may leave to be taken.
const AHEAD_MAX: usize = 64 * 1024;

/// How long it goes on though nobody reads it, or its one reader takes nothing. A client that takes no less than
/// the default of `write_rate_min` empties its own buffers in less.
const IDLE_MAX: Duration = Duration::from_secs(5 * 60);

/// Bytes of a rest that is received though nobody reads it, for those who come next.
const REST_MAX: u64 = 256 * 1024;

/// Interim responses that wait for their reader.
const INTERIMS_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use catamaran_cache::freshness::LifetimeSource;
    use catamaran_testkit::Wakes;
    use catamaran_upstream::Culprit;

    use super::*;

    const MOST: (u64, u64) = (1 << 20, 1 << 20);

    const TERMS: Terms = Terms {
        lifetime: 60,
        source: LifetimeSource::Explicit,
        stale_while_revalidate: 0,
        stale_if_error: 0,
        no_cache: false,
        never_stale: false,
        for_sessions: false,
        for_authorization: false,
    };

    fn fill() -> Arc<Fill> {
        Arc::new(Fill::new(Arc::default()))
    }

    fn head(content_length: Option<u64>, is_stored: bool) -> FillHead {
        FillHead {
            status: StatusCode::OK,
            reason: None,
            headers: HeaderMap::new(),
            content_length,
            age: 0,
            storing: match is_stored {
                true => Ok(Audience {
                    selection: Selection::new(Vec::new(), &HeaderMap::new()),
                    terms: TERMS,
                }),
                false => Err("no-store"),
            },
            cookie: None,
        }
    }

    fn pattern(len: usize) -> Vec<u8> {
        (0..len).map(|at| (at % 251) as u8).collect()
    }

    fn read_all(reader: &mut FillReader, cx: &Context<'_>) -> (Vec<u8>, Poll<bool>) {
        let mut read = Vec::new();
        loop {
            match reader.poll_body(cx) {
                Poll::Ready(Ok(Some(piece))) => read.extend_from_slice(&piece),
                Poll::Ready(Ok(None)) => return (read, Poll::Ready(true)),
                Poll::Ready(Err(_)) => return (read, Poll::Ready(false)),
                Poll::Pending => return (read, Poll::Pending),
            }
        }
    }

    #[test]
    fn all_readers_get_all_of_it() {
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let cx = Context::from_waker(&waker);
        let (fill, body) = (fill(), pattern(100_000));
        let mut first = fill.read(true);
        assert!(first.poll_news(&cx).is_pending());
        assert!(fill.begin(head(Some(100_000), true), MOST.1));
        assert!(matches!(
            first.poll_news(&cx),
            Poll::Ready(FillNews::Head(_))
        ));
        let mut got = Vec::new();
        for piece in body.chunks(700) {
            assert!(fill.push(Bytes::copy_from_slice(piece), MOST));
            let (read, more) = read_all(&mut first, &cx);
            got.extend(read);
            assert!(more.is_pending());
        }
        let mut second = fill.read(false);
        assert!(matches!(
            second.poll_news(&cx),
            Poll::Ready(FillNews::Head(_))
        ));
        assert_eq!(read_all(&mut second, &cx), (body.clone(), Poll::Pending));
        let stored = fill.body().unwrap();
        fill.finish(None, false);
        assert_eq!(read_all(&mut second, &cx), (Vec::new(), Poll::Ready(true)));
        assert_eq!(read_all(&mut first, &cx), (Vec::new(), Poll::Ready(true)));
        assert_eq!(got, body);
        assert_eq!(stored.len(), 7);
        assert_eq!(stored.concat(), body);
    }

    #[test]
    fn what_is_cut_is_seen_to_be_cut() {
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let cx = Context::from_waker(&waker);
        let fill = fill();
        let mut reader = fill.read(false);
        fill.begin(head(Some(10), true), MOST.1);
        fill.push(Bytes::from(pattern(5)), MOST);
        let failure = FillFailure {
            status: StatusCode::BAD_GATEWAY,
            reason: Reason::new(Culprit::Backend, "cut"),
        };
        fill.fail(failure);
        assert_eq!(read_all(&mut reader, &cx), (pattern(5), Poll::Ready(false)));
        let late = fill.read(false);
        assert!(matches!(late.poll_news(&cx), Poll::Ready(FillNews::Failed(it)) if it == failure));
    }

    #[test]
    fn what_is_not_stored_is_for_one_at_its_pace() {
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let cx = Context::from_waker(&waker);
        let fill = fill();
        let (mut first, second) = (fill.read(true), fill.read(false));
        assert!(!fill.begin(head(None, false), MOST.1));
        assert!(matches!(
            second.poll_news(&cx),
            Poll::Ready(FillNews::NotShared(_))
        ));
        drop(second);
        fill.push(Bytes::from(pattern(AHEAD_MAX)), MOST);
        assert!(fill.poll_room(&cx).is_pending());
        let before = wakes.count();
        assert_eq!(read_all(&mut first, &cx).0.len(), AHEAD_MAX);
        assert!(wakes.count() > before && fill.poll_room(&cx).is_ready());
        assert!(fill.body().is_none());
        drop(first);
        assert!(fill.is_abandoned());
    }

    #[test]
    fn what_is_not_stored_is_not_wanted() {
        let fill = fill();
        fill.want();
        assert!(!fill.is_abandoned(), "it may be one to be stored");
        fill.begin(head(None, false), MOST.1);
        assert!(fill.is_abandoned());
    }

    #[test]
    fn the_front_does_not_wait_for_itself_for_ever() {
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let cx = Context::from_waker(&waker);
        let at = |seconds| Tick::START + Duration::from_secs(seconds);
        let passed = fill();
        let mut reader = passed.read(true);
        passed.begin(head(None, false), MOST.1);
        assert_eq!(passed.idle_ends(at(1)), None);
        passed.push(Bytes::from(pattern(AHEAD_MAX)), MOST);
        // Whenever it is looked at, the wait began when nothing more was taken.
        for seconds in 1..4 {
            assert_eq!(passed.idle_ends(at(seconds)), Some(at(1) + IDLE_MAX));
        }
        assert_eq!(read_all(&mut reader, &cx).0.len(), AHEAD_MAX);
        assert_eq!(passed.idle_ends(at(4)), None);
        let kept = fill();
        kept.want();
        kept.begin(head(Some(10), true), MOST.1);
        assert_eq!(kept.idle_ends(at(5)), Some(at(5) + IDLE_MAX));
        let _reader = kept.read(false);
        assert_eq!(kept.idle_ends(at(6)), None);
    }

    #[test]
    fn a_body_that_turns_out_too_long_goes_on_for_the_one_that_asked() {
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let cx = Context::from_waker(&waker);
        let (fill, body) = (fill(), pattern(60_000));
        let (mut first, second) = (fill.read(true), fill.read(false));
        assert!(fill.begin(head(None, true), MOST.1));
        assert!(fill.push(Bytes::copy_from_slice(&body[..20_000]), (50_000, MOST.1)));
        assert!(second.poll_news(&cx).is_pending());
        let (mut got, _) = read_all(&mut first, &cx);
        assert!(fill.push(
            Bytes::copy_from_slice(&body[20_000..40_000]),
            (50_000, MOST.1)
        ));
        assert!(!fill.push(Bytes::copy_from_slice(&body[40_000..]), (50_000, MOST.1)));
        assert!(matches!(
            second.poll_news(&cx),
            Poll::Ready(FillNews::NotShared(_))
        ));
        got.extend(read_all(&mut first, &cx).0);
        assert_eq!(got, body);
    }

    #[test]
    fn what_is_received_is_bounded() {
        let filling = Arc::<AtomicU64>::default();
        let one = Fill::new(Arc::clone(&filling));
        let other = Fill::new(Arc::clone(&filling));
        assert!(one.begin(head(Some(600), true), 1000));
        assert!(!other.begin(head(Some(600), true), 1000));
        drop(one);
        assert_eq!(filling.load(Ordering::Relaxed), 0);
    }
}
