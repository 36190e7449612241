//! Who the other end of a client's connection is.

use std::net::SocketAddr;
use std::sync::Arc;

use catamaran_tls::Session;

/// What is known of the client by its connection.
#[derive(Clone, Debug)]
pub(crate) struct PeerFacts {
    /// The client's address; for a Unix socket the loopback address and port 0.
    pub(crate) remote: SocketAddr,
    /// The address the client connected to; for a Unix socket as `remote`.
    pub(crate) local: SocketAddr,
    /// What the handshake agreed on; `None` without TLS.
    pub(crate) tls: Option<Arc<Session>>,
}
