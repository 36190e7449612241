//! Threads that wait for a disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use thiserror::Error;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// The threads of one worker that wait for disks. A disk that is slow is felt by those who need it, and by
/// nobody else.
#[derive(Clone, Debug)]
pub struct FileThreads {
    permits: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
}

/// More requests wait for the disk than may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("too many requests wait for the disk")]
pub struct ThreadsBusy;

impl Default for FileThreads {
    fn default() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(THREADS_MAX)),
            waiting: Arc::default(),
        }
    }
}

impl FileThreads {
    /// Does some work on one of the threads, once one is free.
    ///
    /// # Errors
    /// Too much work waits already.
    ///
    /// # Cancel safety
    /// What waits is given up. What has begun ends by itself.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ThreadsBusy> {
        let place = Place::new(&self.waiting)?;
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        drop(place);
        let permit = permit.map_err(|_| ThreadsBusy)?;
        let done = spawn_blocking(move || {
            let _permit = permit;
            work()
        });
        done.await.map_err(|_| ThreadsBusy)
    }
}

/// A place in the queue.
struct Place<'q>(&'q AtomicUsize);

impl<'q> Place<'q> {
    fn new(waiting: &'q AtomicUsize) -> Result<Self, ThreadsBusy> {
        let before = waiting.fetch_add(1, Ordering::Relaxed);
        let place = Self(waiting);
        match before < WAITING_MAX {
            true => Ok(place),
            false => Err(ThreadsBusy),
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Threads of one worker that may wait for disks at a time.
const THREADS_MAX: usize = 4;

/// Requests of one worker that may wait for a thread.
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
                let work = move || {
                    begun.fetch_add(1, Ordering::Relaxed);
                    held.lock().unwrap().recv().unwrap();
                };
                threads.run(work).await
            });
        }
        while threads.waiting.load(Ordering::Relaxed) < WAITING_MAX {
            tokio::task::yield_now().await;
        }
        assert_eq!(threads.run(|| ()).await, Err(ThreadsBusy));
        assert!(begun.load(Ordering::Relaxed) <= THREADS_MAX);
        for _ in 0..THREADS_MAX + WAITING_MAX {
            release.send(()).unwrap();
        }
        while let Some(done) = tasks.join_next().await {
            assert_eq!(done.unwrap(), Ok(()));
        }
        assert_eq!(threads.run(|| 7).await, Ok(7));
    }
}
