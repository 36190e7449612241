//! A listener: an address, its current settings, and the workers' sockets.
//!
//! As long as its address is configured, a reload keeps the sockets and replaces the settings, which
//! apply to connections accepted later. A listener ends by its [`Drain`]: with the front, when a
//! reload removes it, or when another process took it over.

mod acceptor;
pub(crate) mod addresses;
pub(crate) mod admission;
mod bind;
pub(crate) mod descriptors;
pub(crate) mod drain;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::{fmt, io};

pub(crate) use acceptor::{Acceptor, Incoming};
use arc_swap::{ArcSwap, ArcSwapOption};
pub(crate) use bind::{BoundListener, Ipv4Ports, bind, bind_as, inherit};
use catamaran_transport::SocketFile;
use thiserror::Error;

use crate::config::{ListenAddress, ListenerConfig};
use crate::listener::drain::Drain;
use crate::lock::lock;
use crate::tls::LiveProfile;

/// The address at which a listener is bound; a configured port 0 is replaced by the one that the
/// system chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundAddress {
    /// A TCP address.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for BoundAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "http://{address}"),
            Self::Unix(path) => write!(f, "http+unix:{}", path.display()),
        }
    }
}

/// Why a listener could not be bound.
#[derive(Debug, Error)]
pub enum BindError {
    /// Another program listens at this address.
    #[error(
        "cannot listen on {address}: the address is already in use; stop the other program or \
         choose another port"
    )]
    InUse {
        /// The address that the configuration names.
        address: String,
    },
    /// Another listener of this front, on `[::]`, has the port, and also accepts clients of IPv4.
    #[error(
        "cannot listen on {address}: {by} of this front also accepts clients of IPv4; restart the front, \
         and that listener will accept IPv6 alone"
    )]
    TakenByBoth {
        /// The address that the configuration names.
        address: String,
        /// The address of the listener on `[::]`.
        by: String,
    },
    /// The system refuses the port, because ports below 1024 need a privilege.
    #[error(
        "cannot listen on {address}: permission denied; choose a port of 1024 or more, or grant \
         CAP_NET_BIND_SERVICE"
    )]
    Denied {
        /// The address that the configuration names.
        address: String,
    },
    /// The system refuses for another reason.
    #[error("cannot listen on {address}: {source}")]
    Other {
        /// The address that the configuration names.
        address: String,
        /// The system's error.
        source: io::Error,
    },
}

/// A listener that accepts clients, or that has stopped to.
#[derive(Debug)]
pub(crate) struct Listener {
    address: BoundAddress,
    config: ArcSwap<ListenerConfig>,
    /// The TLS profile that clients are served with; `None`: clear text.
    tls: ArcSwapOption<LiveProfile>,
    drain: Drain,
    file: Option<SocketFile>,
    /// All workers' sockets. Locked only to add, hand over or close sockets.
    acceptors: Mutex<Vec<Arc<Acceptor>>>,
}

impl Listener {
    pub(crate) fn new(
        config: ListenerConfig,
        tls: Option<Arc<LiveProfile>>,
        address: BoundAddress,
        file: Option<SocketFile>,
    ) -> Self {
        Self {
            address,
            config: ArcSwap::from_pointee(config),
            tls: ArcSwapOption::new(tls),
            drain: Drain::default(),
            file,
            acceptors: Mutex::default(),
        }
    }

    /// The address as bound, with the port that the system chose for port 0.
    pub(crate) fn address(&self) -> &BoundAddress {
        &self.address
    }

    /// The settings for connections that are accepted from now on.
    pub(crate) fn config(&self) -> Arc<ListenerConfig> {
        self.config.load_full()
    }

    /// Replaces the settings and the TLS profile for connections that are accepted from now on.
    pub(crate) fn configure(&self, config: ListenerConfig, tls: Option<Arc<LiveProfile>>) {
        self.config.store(Arc::new(config));
        self.tls.store(tls);
    }

    /// The URL of the listener, with the scheme `https` if clients speak TLS.
    pub(crate) fn url(&self) -> String {
        let url = self.address.to_string();
        if self.tls.load().is_some() {
            url.replacen("http", "https", 1)
        } else {
            url
        }
    }

    /// The TLS profile for connections that are accepted from now on; `None`: clear text.
    pub(crate) fn tls(&self) -> Option<Arc<LiveProfile>> {
        self.tls.load_full()
    }

    /// Whether `address` in a configuration means this listener: its configured address, or the one
    /// that the system chose for it.
    pub(crate) fn is_at(&self, address: &ListenAddress) -> bool {
        let is_bound_there = match (&self.address, address) {
            (BoundAddress::Tcp(bound), ListenAddress::Tcp(wanted)) => bound == wanted,
            _ => false,
        };
        is_bound_there || self.config.load().address == *address
    }

    pub(crate) fn drain(&self) -> &Drain {
        &self.drain
    }

    /// Adds a worker's socket.
    pub(crate) fn add(&self, acceptor: Acceptor) -> Arc<Acceptor> {
        let acceptor = Arc::new(acceptor);
        self.lock().push(Arc::clone(&acceptor));
        acceptor
    }

    /// All workers' sockets; empty once the listener has released them.
    pub(crate) fn acceptors(&self) -> Vec<Arc<Acceptor>> {
        self.lock().clone()
    }

    /// Refuses new handshakes. Clients whose handshake has begun are still accepted. The sockets are
    /// not closed yet, because closing one resets the clients in its queue.
    pub(crate) fn refuse_more(&self) {
        for acceptor in self.lock().iter() {
            acceptor.refuse_handshakes();
        }
        self.remove_file();
    }

    /// Removes the file of the socket, if it is a Unix socket.
    pub(crate) fn remove_file(&self) {
        if let Some(file) = &self.file {
            remove_file(file);
        }
    }

    /// Drops the sockets. Each is closed when its worker has dropped it, too.
    pub(crate) fn release(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Acceptor>>> {
        lock(&self.acceptors)
    }
}

/// Removes the file of a Unix socket that is no longer used.
pub(crate) fn remove_file(file: &SocketFile) {
    if let Err(error) = file.remove() {
        tracing::warn!(%error, path = %file.path().display(), "cannot remove the socket's file");
    }
}
