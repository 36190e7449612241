//! Tasks of a worker that belong to no connection, such as fetches for caches.

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::lock::lock;
use crate::worker::Worker;

/// A function that makes the future of a task, given the worker that runs it.
type Order = Box<dyn FnOnce(Arc<Worker>) -> Task + Send>;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The queue of tasks that a worker has to run.
pub(crate) struct Background {
    orders: mpsc::Sender<Order>,
    /// The receiving end of the queue; `None` once the event loop has taken it.
    queue: Mutex<Option<mpsc::Receiver<Order>>>,
}

impl Default for Background {
    fn default() -> Self {
        let (orders, queue) = mpsc::channel(ORDERS_MAX);
        Self {
            orders,
            queue: Mutex::new(Some(queue)),
        }
    }
}

impl std::fmt::Debug for Background {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Background").finish_non_exhaustive()
    }
}

impl Background {
    /// Queues a task. `false`: [`ORDERS_MAX`] tasks wait already, or the worker has ended; then `make` is dropped.
    #[must_use]
    pub(crate) fn order<F>(&self, make: impl FnOnce(Arc<Worker>) -> F + Send + 'static) -> bool
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let make = |worker| -> Task { Box::pin(make(worker)) };
        self.orders.try_send(Box::new(make)).is_ok()
    }

    fn take(&self) -> Option<mpsc::Receiver<Order>> {
        let mut queue = lock(&self.queue);
        queue.take()
    }
}

/// Runs a worker's background tasks until this future is dropped.
pub(crate) async fn run(worker: Arc<Worker>) {
    let Some(mut queue) = worker.background().take() else {
        return;
    };
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = tasks.join_next() => {}
            order = queue.recv() => match order {
                Some(make) => drop(tasks.spawn(make(Arc::clone(&worker)))),
                None => return,
            },
        }
    }
}

/// The most tasks that may wait to be started. The event loop starts all of them before it polls sockets again.
const ORDERS_MAX: usize = 16 * 1024;
