//! The completion driver: a few event loops, each with a ring of its own and its own listeners.
//!
//! One accept per listener and one receive per connection are always under way; they are multishot
//! operations, so they complete repeatedly. Output is queued while completions are handled, and
//! submitted by the call that waits for the next ones: a turn of the loop is one system call, however
//! many connections it serves. Received bytes are copied out of the ring's buffers at once, so an
//! idle connection holds none. The driver knows no protocol: it does what `Conn` returns.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::{io, thread};

use socket2::Socket;

mod acceptor;
mod ring;
mod task;

use acceptor::Acceptor;
use ring::{Completion, Ring};
use task::{Fate, Task};

use super::ConnectorState;
use super::agent::Agent;
use super::event_loop::{Core, EventLoop, LoopHandle};
use super::lent::Loan;
use super::wakeups::Wakeups;
use crate::config::Listener;
use crate::counters::Counters;
use crate::{NoUring, StartError};

/// Converts the system's error on setting up a ring into one that says why.
pub(crate) fn explain(source: io::Error) -> StartError {
    let fault = match source.raw_os_error() {
        Some(libc::ENOSYS) => NoUring::Absent,
        Some(libc::EINVAL) => NoUring::TooOld,
        Some(libc::EPERM | libc::EACCES) => NoUring::Forbidden,
        _ => return StartError::Worker(source),
    };
    StartError::NoUring { fault, source }
}

/// Starts one worker on a thread of its own.
pub(crate) fn spawn(
    index: usize,
    listeners: Vec<(Listener, Socket)>,
    shared: &Arc<ConnectorState>,
    counters: &[Arc<Counters>],
) -> io::Result<LoopHandle> {
    let (shared, counters) = (Arc::clone(shared), counters.to_vec());
    let (report, started) = sync_channel(1);
    // The ring is made on the thread that uses it, which the kernel then holds it to.
    let thread = thread::Builder::new()
        .name(format!("connector-{index}"))
        .spawn(move || match Worker::new(listeners, shared, counters) {
            Ok((worker, wakeups)) => {
                // The starting thread waits for this, so it is received.
                let _ = report.send(Ok(wakeups));
                worker.run();
            }
            Err(error) => {
                let _ = report.send(Err(error));
            }
        })?;
    let no_report = |_| io::Error::other("the worker ended at once");
    let wakeups = started.recv().map_err(no_report)??;
    Ok(LoopHandle { thread, wakeups })
}

#[derive(Debug)]
struct Worker {
    ring: Ring,
    acceptors: Vec<Acceptor>,
    /// Sockets accepted while the limit of connections was reached, with the indices of their
    /// listeners.
    held: VecDeque<(usize, OwnedFd)>,
    core: Core<Task>,
}

impl Worker {
    /// Makes a worker with its ring, on the thread that will run it. Returns also what wakes it.
    fn new(
        listeners: Vec<(Listener, Socket)>,
        shared: Arc<ConnectorState>,
        counters: Vec<Arc<Counters>>,
    ) -> io::Result<(Self, Arc<Wakeups>)> {
        let ring = Ring::new()?;
        let waker = ring.waker();
        let wakeups = Arc::new(Wakeups::new(move || waker.wake()));
        let lent = Loan::new(shared, counters, Arc::<Wakeups>::clone(&wakeups));
        let mut acceptors = Vec::with_capacity(listeners.len());
        for (listener, socket) in listeners {
            acceptors.push(Acceptor::new(&listener, socket)?);
        }
        let worker = Self {
            ring,
            acceptors,
            held: VecDeque::new(),
            core: Core::new(lent, Arc::<Wakeups>::clone(&wakeups)),
        };
        Ok((worker, wakeups))
    }

    /// Serves until the worker is told to stop and its tasks have ended, or the time for that is over.
    fn run(mut self) {
        self.accept();
        while !self.is_done() {
            if let Err(error) = self.ring.enter(self.core.timeout()) {
                tracing::error!(%error, "a connector worker cannot wait for completions and ends");
                break;
            }
            self.core.lent.look_at_the_clock();
            while let Some(completion) = self.ring.next() {
                self.handle(completion);
            }
            self.handle_wakeups();
            self.fire_timers();
            self.accept();
        }
        // The time is over, or waiting has failed: tasks that are still open are cut.
        for mut task in std::mem::take(&mut self.core.tasks).into_tasks() {
            task.abandon(&mut self.ring);
            self.core.lent.forget(&task.agent, Some("stopped"));
        }
    }

    /// Whether the worker is to stop, and has no more tasks or no more time for them.
    fn is_done(&self) -> bool {
        let Some(deadline) = self.core.stop else {
            return false;
        };
        let is_idle = self.core.tasks.is_empty() && self.acceptors.is_empty();
        is_idle || deadline <= self.core.lent.now
    }

    fn handle(&mut self, completion: Completion) {
        match completion {
            Completion::Woken => self.drain_if_stopped(),
            Completion::Accepted {
                owner,
                socket,
                last,
            } => self.handle_accepted(owner, socket, last),
            Completion::Received {
                owner,
                result,
                last,
            } => {
                if let Some(task) = self.core.tasks.get_mut(owner) {
                    task.handle_received(result, last, &mut self.ring, &mut self.core.lent);
                    self.advance(owner);
                }
            }
            Completion::HungUp { owner, gone } => {
                if let Some(task) = self.core.tasks.get_mut(owner) {
                    task.handle_hangup(gone);
                    self.advance(owner);
                }
            }
            Completion::Sent { owner, out, sent } => {
                if let Some(task) = self.core.tasks.get_mut(owner) {
                    task.handle_sent(out, sent, &mut self.ring, &mut self.core.lent);
                    self.advance(owner);
                }
            }
        }
    }

    fn close(&mut self, key: usize, reason: Option<&'static str>) {
        if let Some(mut task) = self.core.remove(key) {
            task.abandon(&mut self.ring);
            self.core.lent.forget(&task.agent, reason);
        }
    }

    /// Serves connections that wait for a place, then starts to accept again on listeners that have
    /// stopped.
    fn accept(&mut self) {
        if self.core.pauses_accepting() || self.core.stop.is_some() {
            return;
        }
        self.core.accept_again = None;
        while !self.held.is_empty() {
            if !self.core.lent.shared.admit() {
                self.core.pause_accepting();
                return;
            }
            if let Some((listener_index, socket)) = self.held.pop_front() {
                self.open(listener_index, socket);
            }
        }
        if self.acceptors.iter().all(Acceptor::is_accepting) {
            return;
        }
        if self.core.lent.shared.is_full() {
            self.core.pause_accepting();
            return;
        }
        for (listener_index, acceptor) in self.acceptors.iter_mut().enumerate() {
            if !acceptor.is_accepting() {
                acceptor.accepting = Some(self.ring.accept(listener_index, &acceptor.socket));
            }
        }
    }

    /// Handles a result of a listener's accept operation. `last`: the operation has ended.
    fn handle_accepted(&mut self, listener_index: usize, socket: io::Result<OwnedFd>, last: bool) {
        if last && let Some(acceptor) = self.acceptors.get_mut(listener_index) {
            acceptor.accepting = None;
        }
        match socket {
            Ok(socket) => {
                self.core.note_accepted();
                self.admit(listener_index, socket);
            }
            Err(error) => self.handle_refused(listener_index, &error),
        }
        if self.core.stop.is_some() {
            self.finish_accepting();
        }
    }

    /// Handles a failed accept. Errors of one connection, or of our cancelling, are ignored.
    fn handle_refused(&mut self, listener_index: usize, error: &io::Error) {
        match error.raw_os_error() {
            // Cancelled by us; or the peer gave up while it waited in the queue.
            Some(libc::ECANCELED | libc::ECONNABORTED | libc::EINTR | libc::EAGAIN) => {}
            _ => self.core.handle_refused(listener_index, error),
        }
    }

    /// Serves a connection if the limit allows it. Otherwise it waits in `held`, and no more are
    /// accepted.
    fn admit(&mut self, listener_index: usize, socket: OwnedFd) {
        if self.held.is_empty() && self.core.lent.shared.admit() {
            self.open(listener_index, socket);
            return;
        }
        self.held.push_back((listener_index, socket));
        self.core.pause_accepting();
        self.cancel_accepts();
    }

    fn cancel_accepts(&mut self) {
        for acceptor in &self.acceptors {
            if let Some(operation) = acceptor.accepting {
                self.ring.cancel(operation);
            }
        }
    }

    /// Makes a task of an accepted connection, which has its place under the limit already.
    fn open(&mut self, listener_index: usize, socket: OwnedFd) {
        let acceptor = self.acceptors.get(listener_index);
        let origin = acceptor.and_then(|acceptor| {
            let peer = acceptor.introduce(&socket).ok()?;
            Some((acceptor.protocol, peer))
        });
        let Some((protocol, peer)) = origin else {
            // The peer has given up while it waited in the queue.
            self.core.lent.shared.dismiss();
            return;
        };
        Counters::add(&self.core.lent.counters(listener_index).accepted, 1);
        let key = self.core.tasks.insert(|key| {
            let agent = Agent::new(protocol, key, peer, listener_index, &self.core.lent);
            Task::new(socket, agent)
        });
        self.advance(key);
    }

    /// Begins the stop if it was asked for since the last call. The listeners are closed once their accepts, which are
    /// cancelled here, have ended.
    fn drain_if_stopped(&mut self) {
        if self.core.sees_stop() {
            self.cancel_accepts();
            self.finish_accepting();
            self.drain_all();
        }
    }

    /// Closes the listeners once no accept is under way. A client that entered the queue before the
    /// stop is still served.
    fn finish_accepting(&mut self) {
        if self.acceptors.iter().any(Acceptor::is_accepting) {
            return;
        }
        for listener_index in 0..self.acceptors.len() {
            while let Some(socket) = self.acceptors[listener_index].accept_now() {
                self.held.push_back((listener_index, socket));
            }
        }
        while let Some((listener_index, socket)) = self.held.pop_front() {
            // Beyond the limit, dropping the socket closes the connection.
            if self.core.lent.shared.admit() {
                self.open(listener_index, socket);
            }
        }
        self.acceptors.clear();
        self.drain_all();
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
        match task.advance(&mut self.ring, &mut self.core.lent) {
            Fate::Waits { until } => {
                if let Some(until) = until {
                    self.core.timers.set(key, until);
                }
            }
            Fate::Closed(reason) => self.close(key, reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_against_io_uring_is_told_from_the_errno() {
        let fault = |errno| match explain(io::Error::from_raw_os_error(errno)) {
            StartError::NoUring { fault, .. } => Some(fault),
            _ => None,
        };
        assert_eq!(fault(libc::ENOSYS), Some(NoUring::Absent));
        assert_eq!(fault(libc::EINVAL), Some(NoUring::TooOld));
        // The sysctl, and the profiles of Docker and Podman.
        assert_eq!(fault(libc::EPERM), Some(NoUring::Forbidden));
        assert_eq!(fault(libc::EACCES), Some(NoUring::Forbidden));
        // A lack of descriptors or memory does not mean that the kernel has no io_uring.
        assert_eq!(fault(libc::EMFILE), None);
        assert_eq!(fault(libc::ENOMEM), None);
    }
}
