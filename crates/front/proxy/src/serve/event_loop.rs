//! A worker's event loop: it accepts, serves, and closes unused backend connections.
//!
//! A worker gets sockets to accept from while it runs. For each it has a task, which owns the
//! connections accepted there. The loop ends when a drain has begun and all of these tasks have
//! ended.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::client;
use crate::listener::{Acceptor, Listener};
use crate::serve::accept::Accepting;
use crate::worker::{Worker, background};

/// A socket that a worker accepts from, and its listener.
pub(crate) type Assignment = (Arc<Listener>, Arc<Acceptor>);

/// Accepts and serves until the drain is over. `assignments` brings further sockets.
pub(crate) async fn run(worker: Arc<Worker>, mut assignments: mpsc::Receiver<Vec<Assignment>>) {
    // These tasks never end. They are aborted when this function returns.
    let mut services = JoinSet::new();
    services.spawn(Arc::clone(worker.deadlines()).run());
    services.spawn(background::run(Arc::clone(&worker)));
    let pacing = Arc::clone(&worker);
    services.spawn(async move { pacing.handshakes().pace().await });
    let mut accepting = JoinSet::new();
    let mut sweep = interval(SWEEP_PERIOD);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            Some(assigned) = assignments.recv() => {
                for (listener, acceptor) in assigned {
                    let task = Accepting::new(Arc::clone(&worker), listener, acceptor);
                    accepting.spawn(task.run());
                }
            }
            _ = worker.drain().begun() => break,
            _ = sweep.tick() => {
                worker.site().sweep(worker.index());
                worker.files().sweep(worker.counters());
                client::trim();
            }
            // A listener that a reload removed.
            Some(_) = accepting.join_next() => {}
        }
    }
    for backend in worker.site().backends() {
        backend.unwatch();
    }
    while accepting.join_next().await.is_some() {}
}

/// How often unused backend connections, cache entries and open files are swept.
const SWEEP_PERIOD: Duration = Duration::from_secs(1);
