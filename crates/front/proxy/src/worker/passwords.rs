//! Passwords of users: which were right a short time ago, and the threads that hash the others.
//!
//! All workers share it. A hash takes some 100 ms, so it never runs on a worker, and at most half of the processors
//! hash. The address of a client is charged before its password is hashed, so that guesses are limited although they come
//! at the same time. It gets the charge back if the password was right or was not hashed, even if the client has left.
//! Requests with the same password, such as those of a page whose user was forgotten, wait for one hash, and only the
//! first is charged. When the last of them has left, a hash that waits is withdrawn. The threads end with the front's
//! state. The mutex is held for look-ups and the charge, not while a password is hashed.

use std::collections::HashMap;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::thread;
use std::time::Duration;

use catamaran_credentials::{
    BasicCredentials, BasicFault, Candidate, HashQueue, SuccessKey, SuccessMac, Successes,
};
use catamaran_limit::Network;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::lock::lock;
use crate::site::Site;
use crate::site::limits::{FailureCharge, network_of};
use crate::users::ReadUsers;

/// The passwords that were right, and the hashes that wait and run.
#[derive(Debug)]
pub(crate) struct Passwords {
    mac: SuccessMac,
    desk: Arc<HashDesk>,
    /// The most threads that hash.
    threads_max: usize,
    /// The times of successes count from here.
    began: Instant,
}

/// The part that the threads share.
#[derive(Debug, Default)]
struct HashDesk {
    state: Mutex<HashState>,
    /// Wakes a thread when a hash waits, and all when the front ends.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct HashState {
    successes: Successes,
    queue: HashQueue<Network, HashJob>,
    /// The hashes that wait or run, by what a success would be remembered by.
    pending: HashMap<SuccessKey, PendingHash>,
    /// The number of threads that were started.
    threads: usize,
    has_ended: bool,
}

/// What a thread needs for a hash.
#[derive(Debug)]
struct HashJob {
    key: SuccessKey,
    candidate: Candidate,
    credentials: BasicCredentials,
}

/// A hash that waits or runs, and the requests that wait for it.
#[derive(Debug)]
struct PendingHash {
    ticket: u64,
    waiters: Vec<oneshot::Sender<bool>>,
    /// The charge to the address of the client that sent the password first.
    charge: FailureCharge,
}

/// Whose password is to be checked, and against what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PasswordQuestion<'q> {
    pub(crate) site: &'q Site,
    /// The name of the sign-on, under which failures are counted.
    pub(crate) auth: &'q str,
    pub(crate) users: &'q ReadUsers,
    /// The address of the client.
    pub(crate) client: IpAddr,
}

/// The result of a check of a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PasswordVerdict {
    Right,
    /// There is no such user, or it has another password.
    Wrong,
    /// The address has sent too many wrong passwords; it may send another after this time.
    Limited(Duration),
    /// Too many passwords wait to be hashed.
    Busy,
}

/// A check of a password that is under way. Dropping it withdraws the hash, unless others wait for it.
#[derive(Debug)]
pub(crate) enum PasswordCheck {
    Settled(PasswordVerdict),
    Hashing(AwaitedHash),
}

/// The wait for a hash.
#[derive(Debug)]
pub(crate) struct AwaitedHash {
    answer: oneshot::Receiver<bool>,
    key: SuccessKey,
    desk: Arc<HashDesk>,
}

impl Passwords {
    /// `None`: the system has no random bytes.
    pub(crate) fn new() -> Option<Self> {
        let mut secret = [0; 32];
        aws_lc_rs::rand::fill(&mut secret).ok()?;
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Some(Self {
            mac: SuccessMac::new(&secret),
            desk: Arc::default(),
            threads_max: (processors / 2).clamp(1, THREADS_MAX),
            began: Instant::now(),
        })
    }

    /// Checks credentials, which may be malformed. Those that are not remembered are charged to the client's address.
    pub(crate) fn check(
        &self,
        question: PasswordQuestion<'_>,
        credentials: Result<BasicCredentials, BasicFault>,
    ) -> PasswordCheck {
        let Ok(credentials) = credentials else {
            let charged = question.charge();
            let limited = charged.err().map(PasswordVerdict::Limited);
            return PasswordCheck::Settled(limited.unwrap_or(PasswordVerdict::Wrong));
        };
        let candidate = question.users.users.candidate(credentials.user());
        let job = HashJob {
            key: self.mac.key(&credentials, &candidate),
            candidate,
            credentials,
        };
        self.join_or_begin(question, job).into()
    }

    /// The number of hashes that wait for a thread.
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.desk.state).queue.waiting()
    }

    /// Waits for the hash of another request with this password, or begins one. The error is the verdict if it is known
    /// already.
    fn join_or_begin(
        &self,
        question: PasswordQuestion<'_>,
        job: HashJob,
    ) -> Result<AwaitedHash, PasswordVerdict> {
        let key = job.key;
        let (waiter, answer) = oneshot::channel();
        let awaited = || AwaitedHash {
            answer,
            key,
            desk: Arc::clone(&self.desk),
        };
        let mut state = lock(&self.desk.state);
        if state.successes.contains(&key, self.began.elapsed()) {
            return Err(PasswordVerdict::Right);
        }
        if let Some(pending) = state.pending.get_mut(&key) {
            if pending.waiters.len() >= WAITERS_MAX {
                return Err(PasswordVerdict::Busy);
            }
            pending.waiters.push(waiter);
            return Ok(awaited());
        }
        let charge = question.charge().map_err(PasswordVerdict::Limited)?;
        let network = network_of(question.client);
        let Ok(ticket) = state.queue.push(network, job) else {
            charge.refund();
            return Err(PasswordVerdict::Busy);
        };
        let pending = PendingHash {
            ticket,
            waiters: vec![waiter],
            charge,
        };
        state.pending.insert(key, pending);
        self.start_threads(&mut state);
        self.desk.changed.notify_one();
        Ok(awaited())
    }

    /// Starts the threads, unless they were. If none can be started, hashes wait until their requests give up.
    fn start_threads(&self, state: &mut HashState) {
        while state.threads < self.threads_max {
            let (desk, began) = (Arc::clone(&self.desk), self.began);
            let thread = thread::Builder::new()
                .name("passwords".to_owned())
                .spawn(move || desk.hash(began));
            if let Err(error) = thread {
                tracing::error!(%error, "cannot start a thread that hashes passwords");
                return;
            }
            state.threads += 1;
        }
    }
}

impl Drop for Passwords {
    fn drop(&mut self) {
        lock(&self.desk.state).has_ended = true;
        self.desk.changed.notify_all();
    }
}

impl HashDesk {
    /// Hashes what waits, until the front ends.
    fn hash(&self, began: Instant) {
        while let Some((network, job)) = self.next() {
            // A fault of a hash must not end the thread, nor keep the place of its address.
            let verify = || job.candidate.verify(job.credentials.password());
            let result = catch_unwind(AssertUnwindSafe(verify));
            if result.is_err() {
                tracing::error!("a thread that hashes passwords panicked");
            }
            self.settle(&network, &job.key, result.ok(), began);
        }
    }

    /// Ends a hash: remembers a success, refunds the charge unless the password was wrong, and answers the requests that
    /// wait. `is_right` is `None` if the hash failed: their wait ends without an answer.
    fn settle(&self, network: &Network, key: &SuccessKey, is_right: Option<bool>, began: Instant) {
        let mut state = lock(&self.state);
        state.queue.finish(network);
        if is_right == Some(true) {
            state.successes.insert(*key, began.elapsed());
        }
        let Some(pending) = state.pending.remove(key) else {
            return;
        };
        if is_right != Some(false) {
            pending.charge.refund();
        }
        let Some(is_right) = is_right else {
            return;
        };
        for waiter in pending.waiters {
            // A request whose client has left does not wait any more.
            waiter.send(is_right).ok();
        }
    }

    /// Waits for the next hash; `None`: the front ends.
    fn next(&self) -> Option<(Network, HashJob)> {
        let mut state = lock(&self.state);
        while !state.has_ended {
            if let Some(next) = state.queue.pop() {
                return Some(next);
            }
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// Withdraws a hash that still waits and whose requests have all left, and refunds its charge.
    fn leave(&self, key: &SuccessKey) {
        let mut state = lock(&self.state);
        let Some(pending) = state.pending.get_mut(key) else {
            return;
        };
        pending.waiters.retain(|waiter| !waiter.is_closed());
        let ticket = pending.ticket;
        if pending.waiters.is_empty()
            && state.queue.withdraw(ticket).is_some()
            && let Some(pending) = state.pending.remove(key)
        {
            pending.charge.refund();
        }
    }
}

impl From<Result<AwaitedHash, PasswordVerdict>> for PasswordCheck {
    fn from(begun: Result<AwaitedHash, PasswordVerdict>) -> Self {
        match begun {
            Ok(awaited) => Self::Hashing(awaited),
            Err(verdict) => Self::Settled(verdict),
        }
    }
}

impl Future for PasswordCheck {
    type Output = PasswordVerdict;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<PasswordVerdict> {
        let awaited = match &mut *self {
            Self::Settled(verdict) => return Poll::Ready(*verdict),
            Self::Hashing(awaited) => awaited,
        };
        let answer = ready!(Pin::new(&mut awaited.answer).poll(cx));
        Poll::Ready(match answer {
            Ok(true) => PasswordVerdict::Right,
            Ok(false) => PasswordVerdict::Wrong,
            // The front ends, or the hash failed.
            Err(_) => PasswordVerdict::Busy,
        })
    }
}

impl Drop for AwaitedHash {
    fn drop(&mut self) {
        self.answer.close();
        self.desk.leave(&self.key);
    }
}

impl PasswordQuestion<'_> {
    /// Charges the client's address for a wrong password. The error is the time until it may send another.
    fn charge(&self) -> Result<FailureCharge, Duration> {
        FailureCharge::take(self.site.limits.as_ref(), self.auth, self.client)
    }
}

/// The most threads that hash passwords.
const THREADS_MAX: usize = 4;

/// The most requests that wait for one hash.
const WAITERS_MAX: usize = 256;

#[cfg(test)]
mod tests;
