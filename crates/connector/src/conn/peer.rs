//! Who is at the other end of a connection, and how far that alone is to be believed.

use std::net::{IpAddr, SocketAddr};

/// Both ends of a connection's transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// A TCP connection.
    Tcp {
        /// The other end.
        remote: SocketAddr,
        /// This end.
        local: SocketAddr,
    },
    /// A Unix socket, whose file permissions decided who may connect.
    Unix,
}

impl Peer {
    /// Whether the peer is on this machine.
    pub(crate) fn is_local(&self) -> bool {
        match self {
            Self::Tcp { remote, .. } => remote.ip().to_canonical().is_loopback(),
            Self::Unix => true,
        }
    }

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
