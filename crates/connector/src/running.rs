//! Starting and stopping a connector.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::application::Runner;
use crate::io::listen::SocketFile;
use crate::io::{self, ConnectorState, Worker};
use crate::{Application, Config, Listener, Snapshot, Status};

/// Why a connector could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The configuration has no listener.
    #[error("no listener: name at least one address to listen on")]
    NoListeners,
    /// An AJP address beyond loopback has no secret, so that anybody who reaches the port would be
    /// trusted.
    #[error(
        "AJP on {address} without a secret: everybody who reaches this port could pretend to be the front \
         (CVE-2020-1938); set a secret, or listen on 127.0.0.1 or a Unix socket"
    )]
    SecretRequired {
        /// The address of the listener without a secret.
        address: SocketAddr,
    },
    /// Another process listens on the address already.
    #[error(
        "{listener} is in use: another process listens there; stop it or choose another address"
    )]
    AddressInUse {
        /// The listener that was to be bound.
        listener: Listener,
    },
    /// The path of a Unix socket is taken by something that is not a socket.
    #[error("{path} exists and is not a socket; remove it or choose another path", path = path.display())]
    NotASocket {
        /// The path that is taken.
        path: PathBuf,
    },
    /// The system refused to listen on the address.
    #[error("cannot listen on {listener}")]
    Listen {
        /// The listener that was to be bound.
        listener: Listener,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The application is a service, and there is no tokio runtime for its futures.
    #[error("no tokio runtime: start the connector of a service from within one")]
    NoRuntime,
    /// io_uring is missing, or this process may not use it.
    #[cfg(feature = "uring")]
    #[error("{fault}; use another I/O model, such as epoll")]
    NoUring {
        /// Why io_uring cannot be used.
        fault: NoUring,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The system refused a thread or an event queue.
    #[error("cannot start a worker")]
    Worker(#[source] std::io::Error),
}

/// Why io_uring cannot be used.
#[cfg(feature = "uring")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoUring {
    /// The kernel is older than io_uring, or was built without it.
    #[error("this kernel has no io_uring (Linux 6.0 or later has what is needed)")]
    Absent,
    /// The kernel has an io_uring without multishot receives or rings of buffers.
    #[error("the io_uring of this kernel is too old: Linux 6.0 is needed")]
    TooOld,
    /// A policy forbids io_uring to this process, as containers often do.
    #[error(
        "io_uring is forbidden here: allow it by sysctl kernel.io_uring_disabled=0 and in the \
         seccomp profile of the container, if there is one"
    )]
    Forbidden,
}

/// Starts a connector: listeners are bound and workers run when this returns.
///
/// # Errors
/// What [`Config::check`] refuses, or the system's error on binding or on starting threads: see
/// [`StartError`]. Nothing is left running or bound then.
pub fn start(config: Config, application: impl Into<Application>) -> Result<Running, StartError> {
    config.check()?;
    let runner = Runner::start(application.into(), &config)?;
    let workers = Worker::count(&config);
    let mut bound = Vec::with_capacity(config.listeners.len());
    for listener in &config.listeners {
        bound.push(io::listen::bind(listener, workers, &config)?);
    }
    // Taken out: `files` removes the sockets' files when it is dropped, on failure as at the end.
    let files = bound
        .iter_mut()
        .filter_map(|each| each.file.take())
        .collect();
    let listeners = bound.iter().map(|each| each.listener.clone()).collect();
    let mut running = Running {
        files,
        shared: Arc::new(ConnectorState::new(config, runner, listeners)),
        workers: Vec::with_capacity(workers),
    };
    for index in 0..workers {
        // One socket of each listener is this worker's.
        let mut own_listeners = Vec::with_capacity(bound.len());
        for each in &mut bound {
            if let Some(socket) = each.sockets.pop() {
                own_listeners.push((each.listener.clone(), socket));
            }
        }
        let worker = Worker::spawn(index, own_listeners, &running.shared);
        // On failure, dropping `running` stops the workers that run already.
        running.workers.push(worker?);
    }
    for address in running.addresses() {
        tracing::debug!(%address, "listening");
    }
    Ok(running)
}

/// A running connector. Dropping it stops it at once; see [`shutdown`](Self::shutdown) for the
/// orderly way.
#[derive(Debug)]
pub struct Running {
    shared: Arc<ConnectorState>,
    workers: Vec<Worker>,
    /// Unix socket files, removed when the connector ends.
    files: Vec<SocketFile>,
}

impl Running {
    /// The listeners in the order configured, with the ports that the system chose for port 0.
    #[must_use]
    pub fn addresses(&self) -> &[Listener] {
        &self.shared.listeners
    }

    /// Stops accepting, closes idle connections and lets exchanges under way finish, but no longer
    /// than `deadline` from now. Returns at once; [`join`](Self::join) waits. Called again, it can
    /// only shorten the deadline.
    pub fn shutdown(&self, deadline: Duration) {
        self.shared.stop_within(deadline);
        for worker in &self.workers {
            worker.wake();
        }
    }

    /// Waits until all workers have ended, which they do after [`shutdown`](Self::shutdown).
    pub fn join(mut self) {
        self.join_workers();
    }

    /// The sum of all counters since the start.
    #[must_use]
    pub fn counters(&self) -> Snapshot {
        let mut sum = Snapshot::default();
        for counters in self.shared.counters.iter().flatten() {
            counters.add_to(&mut sum);
        }
        sum
    }

    /// The present state and the counters, listener by listener.
    #[must_use]
    pub fn status(&self) -> Status {
        self.shared.status()
    }

    fn join_workers(&mut self) {
        for worker in self.workers.drain(..) {
            worker.join();
        }
        self.files.clear();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shutdown(Duration::ZERO);
        self.join_workers();
    }
}
