//! Threads for work that may block: as many as the work needs, up to a limit, and reused.
//!
//! A job goes to an idle thread, else to a new one, else it waits in a queue of bounded length.
//! Threads beyond the number to keep end after some time without a job. A panic in a job is logged
//! and its thread goes on. Closing the pool ends idle threads at once and others after their job.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fmt, io, thread};

/// The limits of a pool of threads; the names are those of Tomcat's `<Executor>`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The most threads; at least one.
    pub(crate) max_threads: usize,
    /// The number of threads that are started with the pool and never end for lack of work.
    pub(crate) min_spare_threads: usize,
    /// The most jobs that wait while all threads are busy.
    pub(crate) max_queue_size: usize,
    /// How long a thread beyond the spare ones may be idle before it ends.
    pub(crate) max_idle_time: Duration,
}

/// How many threads and jobs a pool has at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// The number of threads, busy or not.
    pub(crate) threads: usize,
    /// The number of threads that run a job.
    pub(crate) busy: usize,
    /// The number of jobs that wait for a thread.
    pub(crate) queued: usize,
}

/// A job, which a thread runs once.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// A pool of threads. Dropping it closes the pool.
pub(crate) struct Pool(Arc<PoolState>);

struct PoolState {
    name: &'static str,
    limits: Limits,
    state: Mutex<QueueState>,
    /// Signalled when there is a job, or the pool was closed.
    changed: Condvar,
    /// Signalled when a thread has ended.
    ended: Condvar,
}

#[derive(Default)]
struct QueueState {
    queue: VecDeque<Job>,
    threads: usize,
    /// The number of threads that wait for a job, including those about to take one from the queue,
    /// and those about to begin to wait.
    idle: usize,
    closed: bool,
}

impl Pool {
    /// Starts a pool with its spare threads, each named `name`.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(crate) fn start(name: &'static str, limits: Limits) -> io::Result<Self> {
        let pool = Self(Arc::new(PoolState {
            name,
            limits,
            state: Mutex::default(),
            changed: Condvar::new(),
            ended: Condvar::new(),
        }));
        for _ in 0..limits.min_spare_threads.min(limits.max_threads) {
            let mut state = pool.0.lock();
            state.threads += 1;
            // Counted before the thread waits, so that jobs are queued for it.
            state.idle += 1;
            drop(state);
            pool.0.spawn(None)?;
        }
        Ok(pool)
    }

    /// Runs `job` on a thread, now or as soon as one is free.
    ///
    /// # Errors
    /// Returns the job if the queue is full, the pool is closed, or there is no thread and the
    /// system refuses one.
    pub(crate) fn run(&self, job: Job) -> Result<(), Job> {
        let mut state = self.0.lock();
        if state.closed {
            return Err(job);
        }
        let has_idle = state.idle > state.queue.len();
        if !has_idle && state.threads < self.0.limits.max_threads {
            state.threads += 1;
            drop(state);
            return self.run_on_new_thread(job);
        }
        self.0.enqueue(state, job)
    }

    /// The present use of the pool.
    pub(crate) fn usage(&self) -> Usage {
        let state = self.0.lock();
        Usage {
            threads: state.threads,
            busy: state.threads - state.idle,
            queued: state.queue.len(),
        }
    }

    /// Accepts no more jobs. Jobs in the queue still run.
    pub(crate) fn close(&self) {
        self.0.lock().closed = true;
        self.0.changed.notify_all();
    }

    /// Waits, `limit` at the longest, until all threads have ended, as they do after
    /// [`close`](Self::close). Returns the number of threads left.
    pub(crate) fn join(&self, limit: Duration) -> usize {
        let has_threads = |state: &mut QueueState| state.threads > 0;
        let waited = self
            .0
            .ended
            .wait_timeout_while(self.0.lock(), limit, has_threads);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.threads
    }

    /// Starts a thread for a job. If the system refuses one, the job waits for a thread that exists.
    fn run_on_new_thread(&self, job: Job) -> Result<(), Job> {
        // A failed `spawn` drops its closure, so the job is kept outside of it.
        let handover = Arc::new(Mutex::new(Some(job)));
        let Err(error) = self.0.spawn(Some(Arc::clone(&handover))) else {
            return Ok(());
        };
        let job = take(&handover).expect("no thread was started to take it");
        let state = self.0.lock();
        if state.threads == 0 {
            // No thread would ever take it from the queue.
            return Err(job);
        }
        tracing::debug!(%error, "no further thread; the work waits for one of those there are");
        self.0.enqueue(state, job)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("limits", &self.0.limits)
            .field("usage", &self.usage())
            .finish()
    }
}

type Handover = Arc<Mutex<Option<Job>>>;

fn take(handover: &Handover) -> Option<Job> {
    let mut job = handover.lock().unwrap_or_else(PoisonError::into_inner);
    job.take()
}

impl PoolState {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        // No job runs under the lock, so nothing panics half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a job to the queue; `Err` with the job if the queue is full.
    fn enqueue(&self, mut state: MutexGuard<'_, QueueState>, job: Job) -> Result<(), Job> {
        // Jobs that an idle thread is about to take do not wait.
        if state.queue.len() >= state.idle + self.limits.max_queue_size {
            return Err(job);
        }
        state.queue.push_back(job);
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// Starts a thread, which the caller has counted already. Its first job is in `first`; `None`: it waits for one.
    /// On failure the thread is no longer counted.
    fn spawn(self: &Arc<Self>, first: Option<Handover>) -> io::Result<()> {
        let pool = Arc::clone(self);
        let started = thread::Builder::new()
            .name(self.name.to_owned())
            .spawn(move || {
                let first_job = first.as_ref().and_then(take);
                pool.work(first_job);
            });
        if let Err(error) = started {
            self.lock().threads -= 1;
            self.ended.notify_all();
            return Err(error);
        }
        Ok(())
    }

    /// Runs jobs, `first` before others, until the thread has to end.
    fn work(&self, first: Option<Job>) {
        let mut next = match first {
            Some(job) => Some(job),
            None => {
                // A thread without a job was counted as idle when it was started.
                self.lock().idle -= 1;
                self.next()
            }
        };
        while let Some(job) = next {
            if catch_unwind(AssertUnwindSafe(job)).is_err() {
                tracing::error!(thread = self.name, "a job panicked; its thread goes on");
            }
            next = self.next();
        }
    }

    /// Waits for a job; `None`: the thread has to end, and is no longer counted.
    fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.queue.pop_front() {
                return Some(job);
            }
            if state.closed {
                break;
            }
            state.idle += 1;
            let waited = self.changed.wait_timeout(state, self.limits.max_idle_time);
            let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            let is_surplus = state.threads > self.limits.min_spare_threads;
            if timeout.timed_out() && is_surplus && state.queue.is_empty() {
                break;
            }
        }
        state.threads -= 1;
        self.ended.notify_all();
        None
    }
}

#[cfg(test)]
mod tests;
