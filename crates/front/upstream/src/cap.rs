//! The cap on connections to a backend over all workers, with a bounded queue behind it.
//!
//! Every open connection, in use or idle, owns a [`Permit`]. When the cap is reached, an exchange
//! waits in a queue that all workers share, served first come, first served. A connection that
//! becomes free is given to the first exchange in the queue if that runs on the same worker.
//! Otherwise the connection is closed and its permit is passed on, because a socket is bound to its
//! worker's event loop.
//!
//! The mutex is held for a few instructions and never across an await. A connection on the common
//! path, leased and given back while no request waits, does not take it: [`Cap::is_awaited`] is one
//! atomic load.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::sync::oneshot;

/// The cap of one backend; `C` is the type of its connections.
#[derive(Debug)]
pub(crate) struct Cap<C> {
    /// The queue's length, which can be read without the lock.
    waiting: AtomicUsize,
    state: Mutex<State<C>>,
}

#[derive(Debug)]
struct State<C> {
    /// The cap; it may have been lowered below `open`.
    max: usize,
    queue_max: usize,
    /// The number of permits that are in use.
    open: usize,
    queue: VecDeque<Waiter<C>>,
}

#[derive(Debug)]
struct Waiter<C> {
    worker: usize,
    grant: oneshot::Sender<Grant<C>>,
}

/// What an exchange gets at the end of its wait in the queue.
#[derive(Debug)]
pub(crate) enum Grant<C> {
    /// A permit, with which the exchange dials.
    Permit(Permit<C>),
    /// A connection that another exchange on the same worker no longer needs.
    Connection(C),
}

/// The right to hold one connection open. Dropping it gives the right to the next exchange in the
/// queue.
#[derive(Debug)]
pub(crate) struct Permit<C> {
    /// The cap that gets the right back; `None` once the right was moved to another value.
    cap: Option<Arc<Cap<C>>>,
}

/// The result of joining the queue.
#[derive(Debug)]
pub(crate) enum Place<C> {
    /// A permit had become free, so there is no wait.
    Granted(Permit<C>),
    /// A place in the queue, at which the grant arrives.
    Queued(QueuePlace<C>),
}

/// Counts a tunnel as open until dropped.
#[derive(Debug)]
pub(crate) struct OpenTunnel(Arc<AtomicUsize>);

/// A place in the queue, and the future of what it gets. Dropping it leaves the queue.
#[derive(Debug)]
pub(crate) struct QueuePlace<C> {
    cap: Arc<Cap<C>>,
    granted: oneshot::Receiver<Grant<C>>,
    /// Whether the grant was received, so that dropping this has nothing to undo.
    ended: bool,
}

/// The error of [`Cap::enqueue`]: the queue is full.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct QueueFull;

impl OpenTunnel {
    /// Counts one more tunnel in `count`; `None` if `max` are open already.
    pub(crate) fn begin(count: &Arc<AtomicUsize>, max: usize) -> Option<Self> {
        // Counted first, so that two that begin at once cannot both be the last one.
        let open = Self(Arc::clone(count));
        (count.fetch_add(1, Ordering::Relaxed) < max).then_some(open)
    }
}

impl Drop for OpenTunnel {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<C> Cap<C> {
    pub(crate) fn new(max: usize, queue_max: usize) -> Arc<Self> {
        let state = Mutex::new(State {
            max,
            queue_max,
            open: 0,
            queue: VecDeque::new(),
        });
        Arc::new(Self {
            waiting: AtomicUsize::new(0),
            state,
        })
    }

    /// Changes the cap and the length of the queue. Permits that become free go to exchanges in the
    /// queue. Permits beyond a lower cap expire when they are dropped.
    pub(crate) fn resize(self: &Arc<Self>, max: usize, queue_max: usize) {
        let freed = {
            let mut state = self.lock();
            state.max = max;
            state.queue_max = queue_max;
            // Counted as open before they are granted, so that no other exchange takes them.
            let freed = max.saturating_sub(state.open).min(state.queue.len());
            state.open += freed;
            freed
        };
        for _ in 0..freed {
            Arc::clone(self).pass_on();
        }
    }

    /// Whether more permits are in use than the cap allows.
    pub(crate) fn is_exceeded(&self) -> bool {
        let state = self.lock();
        state.open > state.max
    }

    /// Takes a permit, if one is free and the queue is empty.
    pub(crate) fn try_permit(self: &Arc<Self>) -> Option<Permit<C>> {
        let mut state = self.lock();
        if state.open >= state.max || !state.queue.is_empty() {
            return None;
        }
        state.open += 1;
        Some(Permit {
            cap: Some(Arc::clone(self)),
        })
    }

    /// Takes a permit if one has become free, or joins the queue. Dropping the place leaves the
    /// queue.
    pub(crate) fn enqueue(self: &Arc<Self>, worker: usize) -> Result<Place<C>, QueueFull> {
        let mut state = self.lock();
        // Exchanges that gave up must not fill the queue.
        state.queue.retain(|waiter| !waiter.grant.is_closed());
        if state.open < state.max && state.queue.is_empty() {
            state.open += 1;
            return Ok(Place::Granted(Permit {
                cap: Some(Arc::clone(self)),
            }));
        }
        if state.queue.len() >= state.queue_max {
            return Err(QueueFull);
        }
        let (grant, granted) = oneshot::channel();
        state.queue.push_back(Waiter { worker, grant });
        self.publish(&state);
        Ok(Place::Queued(QueuePlace {
            cap: Arc::clone(self),
            granted,
            ended: false,
        }))
    }

    /// Removes the entries of exchanges that left the queue.
    fn prune(&self) {
        let mut state = self.lock();
        state.queue.retain(|waiter| !waiter.grant.is_closed());
        self.publish(&state);
    }

    /// Whether an exchange waits for a connection.
    pub(crate) fn is_awaited(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Gives a free connection of `worker` to the first exchange in the queue, or closes it so that
    /// the permit reaches that exchange. Returns the connection if the queue is empty.
    pub(crate) fn hand_over(&self, worker: usize, mut conn: C) -> Option<C> {
        let mut state = self.lock();
        while let Some(waiter) = state.queue.pop_front() {
            if waiter.grant.is_closed() {
                continue;
            }
            if waiter.worker != worker {
                // The waiter goes back: the permit of the connection, which is closed here, reaches it.
                state.queue.push_front(waiter);
                self.publish(&state);
                // Unlocked first, because dropping the connection drops its permit, which takes the lock.
                drop(state);
                drop(conn);
                return None;
            }
            match waiter.grant.send(Grant::Connection(conn)) {
                Ok(()) => {
                    self.publish(&state);
                    return None;
                }
                // That exchange has just left the queue; the connection goes to the next.
                Err(Grant::Connection(refused)) => conn = refused,
                // Not sent, so it cannot come back.
                Err(Grant::Permit(_)) => return None,
            }
        }
        self.publish(&state);
        Some(conn)
    }

    /// The number of permits in use, which is that of open connections.
    pub(crate) fn open(&self) -> usize {
        self.lock().open
    }

    /// The number of exchanges in the queue.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Gives a permit that is counted as open to the first exchange in the queue, or frees it.
    fn pass_on(self: Arc<Self>) {
        let mut state = self.lock();
        // If the cap was lowered below `open`, the permit expires.
        while state.open <= state.max
            && let Some(waiter) = state.queue.pop_front()
        {
            let permit = Permit {
                cap: Some(Arc::clone(&self)),
            };
            match waiter.grant.send(Grant::Permit(permit)) {
                Ok(()) => {
                    self.publish(&state);
                    return;
                }
                // That exchange left the queue. The permit goes to the next, so dropping this one must not free it.
                Err(Grant::Permit(mut refused)) => refused.cap = None,
                // Not sent, so it cannot come back.
                Err(Grant::Connection(_)) => {}
            }
        }
        state.open -= 1;
        self.publish(&state);
    }

    /// Makes the queue's length known to [`Self::is_awaited`].
    fn publish(&self, state: &State<C>) {
        self.waiting.store(state.queue.len(), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State<C>> {
        // No code that can panic runs under the lock, so it cannot be poisoned.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> Future for QueuePlace<C> {
    type Output = Option<Grant<C>>;

    /// Waits for the grant; `None` if the sender was dropped without one, which does not happen.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let granted = ready!(Pin::new(&mut self.granted).poll(cx));
        self.ended = true;
        Poll::Ready(granted.ok())
    }
}

impl<C> Drop for QueuePlace<C> {
    fn drop(&mut self) {
        if !self.ended {
            // A grant that is on its way passes on when the receiver is dropped.
            self.granted.close();
            self.cap.prune();
        }
    }
}

impl<C> Drop for Permit<C> {
    fn drop(&mut self) {
        if let Some(cap) = self.cap.take() {
            cap.pass_on();
        }
    }
}

#[cfg(test)]
mod tests;
