//! A source for tests: it yields, waits, fails and stalls where a script says so, and tells what became
//! of it.
//!
//! A front that runs in a test serves a script to requests for the path under which it is published.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use catamaran_message::ResponseHead;
use catamaran_upstream::{Error as UpstreamError, Event};
use http::StatusCode;

use crate::exchange::source::SourceError;
use crate::lock::lock;

/// One thing that a source does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The head, which announces so many bytes.
    Head(Option<u64>),
    /// So many bytes of the body, in pieces.
    Body(u64),
    /// Nothing until [`Script::go_on`].
    Wait,
    /// Nothing more, for ever.
    Stall,
    /// It breaks off.
    Fail,
    /// The end of the response.
    End,
}

/// What a source does, and what it has done.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) steps: Vec<Step>,
    /// Whether it goes on when its client has left.
    pub(crate) outlives_client: bool,
    /// After how much silence it is given up.
    pub(crate) patience: Option<Duration>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// It is at a [`Step::Wait`] or a [`Step::Stall`].
    is_waiting: bool,
    may_go_on: bool,
    waker: Option<Waker>,
    given: u64,
    has_ended: bool,
    /// Its client has left, and it was asked whether to go on.
    is_alone: bool,
    is_dropped: bool,
}

impl Script {
    pub(crate) fn new(steps: Vec<Step>) -> Self {
        Self {
            steps,
            outlives_client: false,
            patience: None,
            state: Mutex::default(),
        }
    }

    /// Serves it to requests for `path` from now on.
    pub(crate) fn publish(self, path: &str) -> Arc<Self> {
        let script = Arc::new(self);
        let mut published = lock(&PUBLISHED);
        published.insert(path.as_bytes().into(), Arc::clone(&script));
        script
    }

    /// A source that plays it.
    pub(crate) fn play(self: &Arc<Self>) -> Scripted {
        Scripted {
            steps: self.steps.iter().copied().collect(),
            script: Arc::clone(self),
        }
    }

    /// Ends the wait.
    pub(crate) fn go_on(&self) {
        let mut state = lock(&self.state);
        state.may_go_on = true;
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    /// Whether it waits, or has stalled.
    pub(crate) fn is_waiting(&self) -> bool {
        lock(&self.state).is_waiting
    }

    /// Bytes of the body that it has given away.
    pub(crate) fn given(&self) -> u64 {
        lock(&self.state).given
    }

    /// Whether it was received to its end.
    pub(crate) fn has_ended(&self) -> bool {
        lock(&self.state).has_ended
    }

    /// Whether its client is known to have left.
    pub(crate) fn is_alone(&self) -> bool {
        lock(&self.state).is_alone
    }

    /// Whether nobody asks it for more.
    pub(crate) fn is_dropped(&self) -> bool {
        lock(&self.state).is_dropped
    }
}

/// The source that plays a script.
#[derive(Debug)]
pub(crate) struct Scripted {
    steps: VecDeque<Step>,
    script: Arc<Script>,
}

/// The source of what stands at `path`, if there is a script.
pub(super) fn of(path: &[u8]) -> Option<Scripted> {
    Some(lock(&PUBLISHED).get(path)?.play())
}

impl Scripted {
    pub(super) fn outlives_client(&self) -> bool {
        lock(&self.script.state).is_alone = true;
        self.script.outlives_client
    }

    pub(super) fn patience(&self) -> Option<Duration> {
        self.script.patience
    }

    pub(super) fn poll_event(&mut self, cx: &Context<'_>) -> Poll<Result<Event, SourceError>> {
        let mut state = lock(&self.script.state);
        loop {
            let step = self.steps.pop_front().unwrap_or(Step::Stall);
            return Poll::Ready(Ok(match step {
                Step::Head(content_length) => Event::Head(Box::new(ResponseHead {
                    status: StatusCode::OK,
                    content_length,
                    ..ResponseHead::default()
                })),
                Step::Body(0) => continue,
                Step::Body(left) => {
                    let len = left.min(PIECE);
                    self.steps.push_front(Step::Body(left - len));
                    let piece = pattern(state.given, len);
                    state.given += len;
                    Event::Body(Bytes::from(piece))
                }
                Step::Wait if state.may_go_on => continue,
                Step::Wait | Step::Stall => {
                    self.steps.push_front(step);
                    state.is_waiting = true;
                    state.waker = Some(cx.waker().clone());
                    return Poll::Pending;
                }
                Step::Fail => {
                    return Poll::Ready(Err(UpstreamError::Closed.into()));
                }
                Step::End => {
                    state.has_ended = true;
                    Event::End
                }
            }));
        }
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        lock(&self.script.state).is_dropped = true;
    }
}

/// The bytes of every script's body, from one of them on.
pub(crate) fn pattern(from: u64, len: u64) -> Vec<u8> {
    (from..from + len).map(|at| (at % 251) as u8).collect()
}

/// By path. The tests of one process share it, so each has paths of its own.
static PUBLISHED: Mutex<BTreeMap<Box<[u8]>, Arc<Script>>> = Mutex::new(BTreeMap::new());

/// The largest piece of a body.
const PIECE: u64 = 8192;
