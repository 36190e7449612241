//! The readiness driver: a few event loops, edge-triggered, each with its own listeners.
//!
//! Sockets are registered when they are first waited for; what was ready and has not been used up is
//! remembered in the [`task::Task`], so a registration changes only if a peer does not take what it
//! is sent. An idle
//! connection holds no buffers: they are lent by the worker for the time of a step. Nothing here
//! knows a protocol; `Conn` says what to do, the worker does it.

use std::{
    collections::VecDeque,
    io,
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use mio::{Events, Poll, Token, Waker, event::Event};
use socket2::Socket;

mod stream;
mod task;

use super::{
    ACCEPT_PAUSE, READ_MAX, Shared, agent::Agent, lent::Lent, tasks::Tasks, timers::Timers,
    wakeups::Wakeups,
};
use crate::{config::Listener, counters::Counters};
use stream::Acceptor;
use task::{Fate, Task};

/// A worker that runs.
#[derive(Debug)]
pub(crate) struct Running {
    thread: JoinHandle<()>,
    wakeups: Arc<Wakeups>,
}

impl Running {
    /// Makes the worker look at [`Shared`]'s stop.
    pub(crate) fn wake(&self) {
        self.wakeups.rouse();
    }

    /// Waits for the worker to end.
    pub(crate) fn join(self) {
        if self.thread.join().is_err() {
            tracing::error!("a connector worker panicked");
        }
    }
}

/// Starts one worker on a thread of its own.
pub(crate) fn spawn(
    index: usize,
    listeners: Vec<(Listener, Socket)>,
    shared: &Arc<Shared>,
    counters: &[Arc<Counters>],
) -> io::Result<Running> {
    let poll = Poll::new()?;
    let waker = Waker::new(poll.registry(), WAKE)?;
    let wakeups = Arc::new(Wakeups::new(move || {
        // Fails only if the worker's queue is gone, and then it needs no waking.
        let _ = waker.wake();
    }));
    let mut acceptors = Vec::new();
    for (place, (listener, socket)) in listeners.into_iter().enumerate() {
        let mut acceptor = Acceptor::new(&listener, socket);
        acceptor.register(poll.registry(), Token(ACCEPT_FIRST + place))?;
        acceptors.push((acceptor, true));
    }
    let mut lent = Lent::new(shared.clone(), counters.to_vec(), wakeups.clone());
    lent.scratch = vec![0; READ_MAX].into_boxed_slice();
    let worker = Worker {
        poll,
        acceptors,
        accept_again: None,
        starved: false,
        tasks: Tasks::default(),
        unfinished: VecDeque::new(),
        timers: Timers::default(),
        stop: None,
        lent,
        wakeups: wakeups.clone(),
        woken: Vec::new(),
    };
    let thread = thread::Builder::new()
        .name(format!("connector-{index}"))
        .spawn(move || worker.run())?;
    Ok(Running { thread, wakeups })
}

#[derive(Debug)]
struct Worker {
    poll: Poll,
    /// Each with whether it may have connections waiting.
    acceptors: Vec<(Acceptor, bool)>,
    /// When to try accepting again after the system or the limit refused.
    accept_again: Option<Instant>,
    /// The last attempt to accept failed for want of descriptors, and that has been logged.
    starved: bool,
    tasks: Tasks<Task>,
    /// Tasks that used up their turn, to be continued in the next one.
    unfinished: VecDeque<usize>,
    timers: Timers,
    /// Set once the connector is being stopped.
    stop: Option<Instant>,
    wakeups: Arc<Wakeups>,
    /// Keys being worked off; kept for its space.
    woken: Vec<usize>,
    lent: Lent,
}

const WAKE: Token = Token(usize::MAX);
/// Tokens of listeners count up from here, those of tasks from 0.
const ACCEPT_FIRST: usize = usize::MAX / 2;
/// Connections accepted in a row before others get their turn.
const ACCEPTS_MAX: usize = 64;
const EVENTS_MAX: usize = 1024;

impl Worker {
    fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS_MAX);
        while !self.is_done() {
            if let Err(error) = self.poll.poll(&mut events, self.timeout())
                && error.kind() != io::ErrorKind::Interrupted
            {
                tracing::error!(%error, "a connector worker cannot wait for events and ends");
                break;
            }
            self.lent.look_at_the_clock();
            for event in &events {
                self.handle_event(event);
            }
            self.handle_wakeups();
            self.continue_unfinished();
            self.fire_timers();
            self.accept();
        }
        for task in std::mem::take(&mut self.tasks).into_tasks() {
            self.lent.forget(&task.agent, Some("stopped"));
        }
    }

    fn is_done(&self) -> bool {
        self.stop
            .is_some_and(|at| self.tasks.is_empty() || at <= self.lent.now)
    }

    fn timeout(&self) -> Option<Duration> {
        let can_accept =
            self.accept_again.is_none() && self.acceptors.iter().any(|(_, ready)| *ready);
        if can_accept || !self.unfinished.is_empty() {
            return Some(Duration::ZERO);
        }
        let next = [self.timers.next(), self.accept_again, self.stop]
            .into_iter()
            .flatten()
            .min();
        next.map(|at| at.saturating_duration_since(self.lent.now))
    }

    fn handle_event(&mut self, event: &Event) {
        match event.token() {
            WAKE => self.look_at_the_stop(),
            Token(token) if token >= ACCEPT_FIRST => {
                if let Some((_, ready)) = self.acceptors.get_mut(token - ACCEPT_FIRST) {
                    *ready = true;
                }
            }
            Token(key) => {
                // A connection closed earlier in this round may leave an event behind.
                if let Some(task) = self.tasks.get_mut(key) {
                    task.handle_readiness(event);
                    self.advance(key);
                }
            }
        }
    }

    fn advance(&mut self, key: usize) {
        let Some(task) = self.tasks.get_mut(key) else {
            return;
        };
        match task.advance(&mut self.lent) {
            Fate::Waits { until } => {
                if let Some(until) = until {
                    self.timers.set(key, until);
                }
                if let Err(error) = task.watch(self.poll.registry(), Token(key)) {
                    tracing::warn!(%error, "cannot watch a connection and closes it");
                    self.close(key, Some("accept"));
                }
            }
            Fate::Unfinished => {
                if !std::mem::replace(&mut task.queued, true) {
                    self.unfinished.push_back(key);
                }
            }
            Fate::Closed(reason) => self.close(key, reason),
        }
    }

    fn close(&mut self, key: usize, reason: Option<&'static str>) {
        let Some(task) = self.tasks.remove(key) else {
            return;
        };
        self.timers.clear(key);
        self.lent.forget(&task.agent, reason);
        // There is room now, so waiting connections need not wait for the pause to end.
        self.accept_again = None;
    }

    fn handle_wakeups(&mut self) {
        let mut keys = std::mem::take(&mut self.woken);
        self.wakeups.take(&mut keys);
        for key in keys.drain(..) {
            // The key may belong to a later connection by now, which loses nothing by a turn.
            if let Some(task) = self.tasks.get_mut(key) {
                task.agent.handle_wake();
                self.advance(key);
            }
        }
        self.woken = keys;
    }

    fn continue_unfinished(&mut self) {
        for _ in 0..self.unfinished.len() {
            let Some(key) = self.unfinished.pop_front() else {
                break;
            };
            // The key may belong to a later connection by now, which loses nothing by a turn.
            if let Some(task) = self.tasks.get_mut(key) {
                task.queued = false;
                self.advance(key);
            }
        }
    }

    fn fire_timers(&mut self) {
        while let Some(key) = self.timers.pop_due(self.lent.now) {
            if let Some(task) = self.tasks.get_mut(key) {
                task.agent.handle_time(&self.lent);
                self.advance(key);
            }
        }
    }

    fn accept(&mut self) {
        if self.accept_again.is_some_and(|at| at > self.lent.now) {
            return;
        }
        self.accept_again = None;
        for place in 0..self.acceptors.len() {
            for _ in 0..ACCEPTS_MAX {
                if !self.acceptors[place].1 || self.accept_again.is_some() {
                    break;
                }
                self.accept_one(place);
            }
        }
    }

    fn accept_one(&mut self, place: usize) {
        if !self.lent.shared.admit() {
            self.accept_again = Some(self.lent.now + ACCEPT_PAUSE);
            return;
        }
        let (acceptor, ready) = &mut self.acceptors[place];
        let accepted = acceptor.accept();
        if accepted.is_err() {
            self.lent.shared.dismiss();
        }
        match accepted {
            Ok((stream, peer)) => {
                self.starved = false;
                *ready = acceptor.has_more();
                let protocol = acceptor.protocol();
                let key = self.tasks.insert(|key| {
                    let agent = Agent::new((protocol, key), peer, place, &self.lent);
                    Task::new(stream, agent)
                });
                Counters::add(&self.lent.counters(place).accepted, 1);
                self.advance(key);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => *ready = false,
            // The peer gave up while it waited in the queue.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                self.lent.counters(place).refuse("accept");
                self.accept_again = Some(self.lent.now + ACCEPT_PAUSE);
                if !std::mem::replace(&mut self.starved, true) {
                    tracing::warn!(%error, "cannot accept connections; trying again until it works");
                }
            }
        }
    }

    fn look_at_the_stop(&mut self) {
        let first = self.stop.is_none();
        self.stop = self.lent.shared.stops_at();
        if self.stop.is_none() || !first {
            return;
        }
        // Whoever was let into the queue before the stop is still served.
        self.accept();
        self.acceptors.clear();
        let keys: Vec<usize> = self.tasks.keys().collect();
        for key in keys {
            if let Some(task) = self.tasks.get_mut(key) {
                task.agent.drain();
                self.advance(key);
            }
        }
    }
}
