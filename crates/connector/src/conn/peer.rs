//! The addresses of a connection's two ends.

use std::net::{IpAddr, SocketAddr};

/// The addresses of a connection's two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// A TCP connection.
    Tcp {
        /// The peer's address.
        remote: SocketAddr,
        /// Our own address.
        local: SocketAddr,
    },
    /// A Unix socket, whose file permissions decided who may connect.
    Unix,
}

impl Peer {
    pub(super) fn remote(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp { remote, .. } => Some(*remote),
            Self::Unix => None,
        }
    }

    pub(super) fn local(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp { local, .. } => Some(*local),
            Self::Unix => None,
        }
    }

    pub(super) fn remote_ip(&self) -> Option<IpAddr> {
        self.remote().map(|address| address.ip().to_canonical())
    }
}
