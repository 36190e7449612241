//! A listening socket on the ring, and the addresses of the connections it accepts.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use socket2::{SockRef, Socket};

use super::ring::OperationId;
use crate::config::{Address, Listener, Protocol};
use crate::conn::Peer;

/// A listening socket, with the protocol spoken there.
#[derive(Debug)]
pub(super) struct Acceptor {
    pub(super) protocol: Protocol,
    pub(super) socket: Rc<OwnedFd>,
    /// The accept operation under way; `None` if none is.
    pub(super) accepting: Option<OperationId>,
    transport: Transport,
}

#[derive(Debug)]
enum Transport {
    Tcp {
        /// The bound address; `None` if it is a wildcard, so that each connection has to
        /// be asked.
        local: Option<SocketAddr>,
    },
    Unix,
}

impl Acceptor {
    pub(super) fn new(listener: &Listener, socket: Socket) -> io::Result<Self> {
        // On a socket that does not block, an operation would not wait either.
        socket.set_nonblocking(false)?;
        let transport = match &listener.address {
            Address::Tcp(address) => Transport::Tcp {
                local: (!address.ip().is_unspecified()).then_some(*address),
            },
            Address::Unix(_) => Transport::Unix,
        };
        Ok(Self {
            protocol: listener.protocol,
            socket: Rc::new(socket.into()),
            accepting: None,
            transport,
        })
    }

    /// Accepts a connection that waits in the queue, without waiting; `None` if there is
    /// none.
    pub(super) fn accept_now(&self) -> Option<OwnedFd> {
        let socket = SockRef::from(&self.socket);
        socket.set_nonblocking(true).ok()?;
        let (accepted, _) = socket.accept().ok()?;
        Some(accepted.into())
    }

    /// The addresses of an accepted socket; an error if the peer has left already.
    pub(super) fn introduce(&self, socket: &OwnedFd) -> io::Result<Peer> {
        let Transport::Tcp { local } = self.transport else {
            return Ok(Peer::Unix);
        };
        let socket = SockRef::from(socket);
        let not_tcp = || io::Error::from(io::ErrorKind::InvalidData);
        let address = |address: socket2::SockAddr| address.as_socket().ok_or_else(not_tcp);
        Ok(Peer::Tcp {
            remote: address(socket.peer_addr()?)?,
            local: match local {
                Some(local) => local,
                None => address(socket.local_addr()?)?,
            },
        })
    }
}
