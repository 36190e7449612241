//! Threads that wait for disks, in place of the event loop.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

/// The threads of one worker that wait for disks. A slow disk delays only the requests that need it.
#[derive(Clone, Debug)]
pub struct FileThreads {
    permits: Arc<Semaphore>,
    /// The permits for long tasks. There are fewer of them than threads, so that short tasks always find a
    /// thread.
    long: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
}

/// The task that waits for the result of some work; the work asks it whether to go on.
#[derive(Clone, Debug)]
pub struct Waiter(Weak<()>);

impl Waiter {
    pub(crate) fn new(waits: &Arc<()>) -> Self {
        Self(Arc::downgrade(waits))
    }

    /// Whether the task that asked has ended, so that the result is not needed.
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.0.strong_count() == 0
    }
}

/// The error that too many requests wait for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("too many requests wait for the disk")]
pub struct ThreadsBusy;

impl Default for FileThreads {
    fn default() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(THREADS_MAX)),
            long: Arc::new(Semaphore::new(LONG_MAX)),
            waiting: Arc::default(),
        }
    }
}

impl FileThreads {
    /// Does some work on one of the threads, once one is free, and returns its result.
    ///
    /// # Errors
    /// Too many tasks wait already.
    ///
    /// # Cancel safety
    /// If the future is dropped, work that waits is dropped, too. Work that has begun runs on: if it takes long, it
    /// should ask whether its waiter has left.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(Waiter) -> T + Send + 'static,
    ) -> Result<T, ThreadsBusy> {
        let waits = Arc::new(());
        let waiter = Waiter::new(&waits);
        let place = Place::new(&self.waiting)?;
        let acquired = Arc::clone(&self.permits).acquire_owned().await;
        drop(place);
        // Neither error occurs: the semaphore is never closed, and work does not panic.
        let permit = acquired.map_err(|_| ThreadsBusy)?;
        let done = spawn_blocking(move || {
            let _permit = permit;
            work(waiter)
        });
        done.await.map_err(|_| ThreadsBusy)
    }

    /// Takes the permit for a long task, to be held until it ends; `None` if none is free.
    pub(crate) fn begin_long(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.long).try_acquire_owned().ok()
    }
}

/// A place in the queue for a thread; dropping it leaves the queue.
struct Place<'q>(&'q AtomicUsize);

impl<'q> Place<'q> {
    fn new(waiting: &'q AtomicUsize) -> Result<Self, ThreadsBusy> {
        // Counted first; without room, the drop of `place` counts it out.
        let before = waiting.fetch_add(1, Ordering::Relaxed);
        let place = Self(waiting);
        if before >= WAITING_MAX {
            return Err(ThreadsBusy);
        }
        Ok(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The most threads of one worker that wait for disks at a time.
const THREADS_MAX: usize = 4;

/// The most threads of one worker that do long tasks.
const LONG_MAX: usize = 1;

/// The most requests of one worker that wait for a thread.
const WAITING_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn few_threads_work_and_many_requests_wait() {
        let threads = FileThreads::default();
        let (release, held) = mpsc::sync_channel::<()>(THREADS_MAX + WAITING_MAX);
        let held = Arc::new(std::sync::Mutex::new(held));
        let begun = Arc::new(AtomicUsize::new(0));
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..THREADS_MAX + WAITING_MAX {
            let (threads, held, begun) = (threads.clone(), Arc::clone(&held), Arc::clone(&begun));
            tasks.spawn(async move {
                let work = move |_| {
                    begun.fetch_add(1, Ordering::Relaxed);
                    held.lock().unwrap().recv().unwrap();
                };
                threads.run(work).await
            });
        }
        while threads.waiting.load(Ordering::Relaxed) < WAITING_MAX {
            tokio::task::yield_now().await;
        }
        assert_eq!(threads.run(|_| ()).await, Err(ThreadsBusy));
        assert!(begun.load(Ordering::Relaxed) <= THREADS_MAX);
        for _ in 0..THREADS_MAX + WAITING_MAX {
            release.send(()).unwrap();
        }
        while let Some(done) = tasks.join_next().await {
            assert_eq!(done.unwrap(), Ok(()));
        }
        assert_eq!(threads.run(|_| 7).await, Ok(7));
    }

    #[tokio::test]
    async fn work_that_has_begun_learns_that_its_waiter_has_left() {
        let threads = FileThreads::default();
        let (begin, begun) = tokio::sync::oneshot::channel();
        let (go_on, goes_on) = mpsc::sync_channel::<()>(1);
        let (end, ended) = tokio::sync::oneshot::channel();
        let work = move |waiter: Waiter| {
            begin.send(waiter.has_left()).ok();
            goes_on.recv().ok();
            end.send(waiter.has_left()).ok();
        };
        tokio::select! {
            biased;
            _ = threads.run(work) => unreachable!("it is told to go on below"),
            begun = begun => assert_eq!(begun, Ok(false)),
        }
        go_on.send(()).unwrap();
        assert_eq!(ended.await, Ok(true));
    }
}
