//! The readiness driver: a few event loops, edge-triggered, each with its own listeners.
//!
//! A socket is registered when it is first waited for. The [`task::Task`] remembers readiness that
//! was not used up, so a registration changes only if a peer does not take what is sent to it. An
//! idle connection holds no buffers: the worker lends them for a step. The driver knows no protocol:
//! it does what `Conn` returns.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

use mio::event::Event;
use mio::{Events, Poll, Token, Waker};
use socket2::Socket;

mod stream;
mod task;

use stream::Acceptor;
use task::{Fate, Task};

use super::agent::Agent;
use super::event_loop::{Core, EventLoop, LoopHandle};
use super::lent::Loan;
use super::wakeups::Wakeups;
use super::{ConnectorState, READ_MAX};
use crate::config::Listener;
use crate::counters::Counters;

/// Starts one worker on a thread of its own.
pub(crate) fn spawn(
    index: usize,
    listeners: Vec<(Listener, Socket)>,
    shared: &Arc<ConnectorState>,
    counters: &[Arc<Counters>],
) -> io::Result<LoopHandle> {
    let poll = Poll::new()?;
    let waker = Waker::new(poll.registry(), WAKE)?;
    let wakeups = Arc::new(Wakeups::new(move || {
        // Fails only if the worker's queue is gone, and then it needs no waking.
        let _ = waker.wake();
    }));
    let mut acceptors = Vec::new();
    for (listener_index, (listener, socket)) in listeners.into_iter().enumerate() {
        let mut acceptor = Acceptor::new(&listener, socket);
        acceptor.register(poll.registry(), Token(ACCEPT_FIRST + listener_index))?;
        acceptors.push(acceptor);
    }
    let mut lent = Loan::new(
        Arc::clone(shared),
        counters.to_vec(),
        Arc::<Wakeups>::clone(&wakeups),
    );
    // This driver reads into memory of its own.
    lent.scratch = vec![0; READ_MAX].into_boxed_slice();
    let worker = Worker {
        poll,
        acceptors,
        unfinished: VecDeque::new(),
        core: Core::new(lent, Arc::<Wakeups>::clone(&wakeups)),
    };
    let thread = thread::Builder::new()
        .name(format!("connector-{index}"))
        .spawn(move || worker.run())?;
    Ok(LoopHandle { thread, wakeups })
}

#[derive(Debug)]
struct Worker {
    poll: Poll,
    acceptors: Vec<Acceptor>,
    /// Keys of tasks that used up their turn, to be continued in the next one.
    unfinished: VecDeque<usize>,
    core: Core<Task>,
}

impl Worker {
    /// Runs the loop until a stop has drained all connections, or its time is over.
    fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS_MAX);
        while !self.is_done() {
            if let Err(error) = self.poll.poll(&mut events, self.timeout())
                && error.kind() != io::ErrorKind::Interrupted
            {
                tracing::error!(%error, "a connector worker cannot wait for events and ends");
                break;
            }
            self.core.lent.look_at_the_clock();
            for event in &events {
                self.handle_event(event);
            }
            self.handle_wakeups();
            self.continue_unfinished();
            self.fire_timers();
            self.accept();
        }
        // The time to drain is over, or waiting failed: what is still open is cut.
        for task in std::mem::take(&mut self.core.tasks).into_tasks() {
            self.core.lent.forget(&task.agent, Some("stopped"));
        }
    }

    fn is_done(&self) -> bool {
        self.core
            .stop
            .is_some_and(|at| self.core.tasks.is_empty() || at <= self.core.lent.now)
    }

    /// How long to wait for events: not at all while there is work, else until the next timer; `None`: without limit.
    fn timeout(&self) -> Option<Duration> {
        let can_accept = self.core.accept_again.is_none()
            && self.acceptors.iter().any(|acceptor| acceptor.ready);
        if can_accept || !self.unfinished.is_empty() {
            return Some(Duration::ZERO);
        }
        self.core.timeout()
    }

    fn handle_event(&mut self, event: &Event) {
        match event.token() {
            WAKE => self.drain_if_stopped(),
            Token(token) if token >= ACCEPT_FIRST => {
                if let Some(acceptor) = self.acceptors.get_mut(token - ACCEPT_FIRST) {
                    acceptor.ready = true;
                }
            }
            Token(key) => {
                // A connection closed earlier in this round may leave an event behind.
                if let Some(task) = self.core.tasks.get_mut(key) {
                    task.handle_readiness(event);
                    self.advance(key);
                }
            }
        }
    }

    fn close(&mut self, key: usize, reason: Option<&'static str>) {
        if let Some(task) = self.core.remove(key) {
            self.core.lent.forget(&task.agent, reason);
        }
    }

    /// Gives a turn to each connection that had used up its last one. If it does so again, it is queued for the next
    /// round, which the count of the loop leaves out.
    fn continue_unfinished(&mut self) {
        for _ in 0..self.unfinished.len() {
            let Some(key) = self.unfinished.pop_front() else {
                break;
            };
            // The key may belong to a later connection by now, which loses nothing by a turn.
            if let Some(task) = self.core.tasks.get_mut(key) {
                task.queued = false;
                self.advance(key);
            }
        }
    }

    /// Accepts what waits at the listeners, but at most [`ACCEPTS_MAX`] each: open connections have their turn, too.
    fn accept(&mut self) {
        if self.core.pauses_accepting() {
            return;
        }
        self.core.accept_again = None;
        for listener_index in 0..self.acceptors.len() {
            for _ in 0..ACCEPTS_MAX {
                if !self.acceptors[listener_index].ready || self.core.accept_again.is_some() {
                    break;
                }
                self.accept_one(listener_index);
            }
        }
    }

    /// Accepts one connection of this listener. Reserves room under `max_connections` first, and gives it back if no
    /// connection was accepted.
    fn accept_one(&mut self, listener_index: usize) {
        if !self.core.lent.shared.admit() {
            self.core.pause_accepting();
            return;
        }
        let acceptor = &mut self.acceptors[listener_index];
        let accepted = acceptor.accept();
        if accepted.is_err() {
            self.core.lent.shared.dismiss();
        }
        match accepted {
            Ok((stream, peer)) => {
                self.core.note_accepted();
                acceptor.ready = acceptor.has_more();
                let protocol = acceptor.protocol();
                let key = self.core.tasks.insert(|key| {
                    let agent = Agent::new(protocol, key, peer, listener_index, &self.core.lent);
                    Task::new(stream, agent)
                });
                Counters::add(&self.core.lent.counters(listener_index).accepted, 1);
                self.advance(key);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => acceptor.ready = false,
            // The peer left while it waited in the kernel's queue.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => self.core.handle_refused(listener_index, &error),
        }
    }

    /// Begins the stop if it was asked for since the last call: closes the listeners and tells all connections.
    fn drain_if_stopped(&mut self) {
        if self.core.sees_stop() {
            // Connections queued before the stop are still served.
            self.accept();
            self.acceptors.clear();
            self.drain_all();
        }
    }
}

impl EventLoop for Worker {
    type Task = Task;

    fn core(&mut self) -> &mut Core<Task> {
        &mut self.core
    }

    fn agent(task: &mut Task) -> &mut Agent {
        &mut task.agent
    }

    fn advance(&mut self, key: usize) {
        let Some(task) = self.core.tasks.get_mut(key) else {
            return;
        };
        match task.advance(&mut self.core.lent) {
            Fate::Waits { until } => {
                if let Some(until) = until {
                    self.core.timers.set(key, until);
                }
                if let Err(error) = task.watch(self.poll.registry(), Token(key)) {
                    tracing::warn!(%error, "cannot watch a connection and closes it");
                    self.close(key, Some("accept"));
                }
            }
            Fate::Unfinished => {
                // A task is in the list once, however often it is advanced.
                if !std::mem::replace(&mut task.queued, true) {
                    self.unfinished.push_back(key);
                }
            }
            Fate::Closed(reason) => self.close(key, reason),
        }
    }
}

const WAKE: Token = Token(usize::MAX);
/// The token of the first listener; those of tasks count up from 0.
const ACCEPT_FIRST: usize = usize::MAX / 2;
/// The most connections accepted in a row before others get their turn.
const ACCEPTS_MAX: usize = 64;
const EVENTS_MAX: usize = 1024;
