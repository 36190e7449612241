//! Starting the front and stopping it.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use thiserror::Error;
use tokio::runtime;

use crate::access_log::AccessLog;
use crate::config::{Config, ListenerConfig};
use crate::counters::{Counters, CountersSnapshot};
use crate::drain::Drain;
use crate::listener::{self, BindError, Bound, BoundAddress, Sockets};
use crate::site::Site;
use crate::worker::{Acceptor, Shared, Worker};

/// Why the front did not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// A listener cannot be had.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A route names an upstream that does not exist.
    #[error("a route names the upstream {name:?}, which does not exist")]
    UnknownUpstream {
        /// The name.
        name: String,
    },
    /// The access log cannot be written.
    #[error("cannot open the access log: {0}")]
    AccessLog(#[source] io::Error),
    /// A worker's thread or event loop cannot be had.
    #[error("cannot start a worker: {0}")]
    Worker(#[source] io::Error),
}

/// A front that runs. Dropping it leaves it running; see [`Running::drain`] and
/// [`Running::join`].
#[derive(Debug)]
pub struct Running {
    addresses: Vec<BoundAddress>,
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

/// Binds every listener and starts the workers. Clients are served when it returns.
///
/// # Errors
/// [`StartError`]; nothing is left listening.
pub fn start(config: Config) -> Result<Running, StartError> {
    let count = config.server.workers.get();
    let site = Site::new(&config, count).map_err(|name| StartError::UnknownUpstream { name })?;
    let mut bound = Vec::with_capacity(config.listeners.len());
    for listener in config.listeners {
        bound.push((
            listener::bind(&listener.address, count)?,
            Arc::new(listener),
        ));
    }
    let addresses = bound
        .iter()
        .map(|(bound, _)| bound.address.clone())
        .collect();
    let shared = Arc::new(Shared {
        site: Arc::new(site),
        access_log: AccessLog::open(&config.log, count).map_err(StartError::AccessLog)?,
        counters: Counters::default(),
        drain: Drain::default(),
        connections_max: config.server.connections_max,
        drain_timeout: config.server.drain_timeout,
    });
    let mut running = Running {
        addresses,
        shared,
        workers: Vec::with_capacity(count),
    };
    for (index, sockets) in deal(bound, count).into_iter().enumerate() {
        let worker = Arc::new(Worker::new(index, Arc::clone(&running.shared)));
        match spawn(worker, sockets) {
            Ok(thread) => running.workers.push(thread),
            Err(error) => {
                running.drain();
                return Err(StartError::Worker(error));
            }
        }
    }
    Ok(running)
}

impl Running {
    /// Where the listeners are, in the configuration's order, with real ports.
    #[must_use]
    pub fn addresses(&self) -> &[BoundAddress] {
        &self.addresses
    }

    /// Begins to stop: no further connections are accepted, idle ones are closed, exchanges
    /// finish until `drain_timeout`. Returns at once.
    pub fn drain(&self) {
        self.shared.drain.begin();
    }

    /// Waits until all workers have stopped, then writes the rest of the access log.
    pub fn join(self) {
        for worker in self.workers {
            if worker.join().is_err() {
                tracing::error!("a worker's thread panicked");
            }
        }
        self.shared.access_log.finish();
        let dropped = self.shared.access_log.dropped();
        if dropped > 0 {
            tracing::warn!(
                dropped,
                "access-log lines were dropped: writing did not keep up"
            );
        }
    }

    /// The counters at this moment.
    #[must_use]
    pub fn counters(&self) -> CountersSnapshot {
        self.shared.counters.snapshot()
    }
}

/// Each worker's sockets: one of each listener.
type Hand = Vec<(Sockets, Arc<ListenerConfig>)>;

fn deal(bound: Vec<(Bound, Arc<ListenerConfig>)>, workers: usize) -> Vec<Hand> {
    let mut hands: Vec<Hand> = (0..workers).map(|_| Vec::new()).collect();
    for (bound, listener) in bound {
        let each: Vec<Sockets> = match bound.sockets {
            Sockets::Tcp(all) => all.into_iter().map(|it| Sockets::Tcp(vec![it])).collect(),
            Sockets::Unix(all) => all.into_iter().map(|it| Sockets::Unix(vec![it])).collect(),
        };
        for (hand, sockets) in hands.iter_mut().zip(each) {
            hand.push((sockets, Arc::clone(&listener)));
        }
    }
    hands
}

fn spawn(worker: Arc<Worker>, hand: Hand) -> io::Result<JoinHandle<()>> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let acceptors = {
        // Sockets join the event loop of the runtime they are adopted in.
        let _entered = runtime.enter();
        let mut acceptors = Vec::new();
        for (sockets, listener) in hand {
            for acceptor in Acceptor::adopt(sockets)? {
                acceptors.push((acceptor, Arc::clone(&listener)));
            }
        }
        acceptors
    };
    let name = format!("worker-{}", worker.index());
    std::thread::Builder::new()
        .name(name)
        .spawn(move || runtime.block_on(worker.run(acceptors)))
}
