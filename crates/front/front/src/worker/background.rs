//! Tasks of a worker that belong to no connection: what is fetched for caches.

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::lock::lock;
use crate::worker::Worker;

/// What makes a task, once the worker is at hand.
type Order = Box<dyn FnOnce(Arc<Worker>) -> Task + Send>;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The tasks that a worker is told to run.
pub(crate) struct Background {
    orders: mpsc::Sender<Order>,
    /// `None` once the event loop has it.
    ordered: Mutex<Option<mpsc::Receiver<Order>>>,
}

impl Default for Background {
    fn default() -> Self {
        let (orders, ordered) = mpsc::channel(ORDERS_MAX);
        Self {
            orders,
            ordered: Mutex::new(Some(ordered)),
        }
    }
}

impl std::fmt::Debug for Background {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Background").finish_non_exhaustive()
    }
}

impl Background {
    /// Has a task run. `false` if too many wait to be begun, or the worker has ended; what makes the task is
    /// dropped then.
    #[must_use]
    pub(crate) fn order<F>(&self, make: impl FnOnce(Arc<Worker>) -> F + Send + 'static) -> bool
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let make = |worker| -> Task { Box::pin(make(worker)) };
        self.orders.try_send(Box::new(make)).is_ok()
    }

    fn take(&self) -> Option<mpsc::Receiver<Order>> {
        let mut ordered = lock(&self.ordered);
        ordered.take()
    }
}

/// Runs a worker's tasks, until this is dropped.
pub(crate) async fn run(worker: Arc<Worker>) {
    let Some(mut ordered) = worker.background().take() else {
        return;
    };
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = tasks.join_next() => {}
            order = ordered.recv() => match order {
                Some(make) => drop(tasks.spawn(make(Arc::clone(&worker)))),
                None => return,
            },
        }
    }
}

/// Tasks that wait to be begun: the event loop begins all that there are before it looks at sockets again.
const ORDERS_MAX: usize = 16 * 1024;
