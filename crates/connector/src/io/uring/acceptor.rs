//! A listening socket on the ring, and the addresses of the connections it accepts.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use socket2::{SockRef, Socket};

use super::ring::OperationId;
use crate::config::{Listener, Protocol};
use crate::conn::Peer;
use crate::io::listen::LocalAddress;

/// A listening socket, with the protocol spoken there.
#[derive(Debug)]
pub(super) struct Acceptor {
    pub(super) protocol: Protocol,
    pub(super) socket: Rc<OwnedFd>,
    /// The accept operation under way; `None` if none is.
    pub(super) accepting: Option<OperationId>,
    local: LocalAddress,
}

impl Acceptor {
    pub(super) fn new(listener: &Listener, socket: Socket) -> io::Result<Self> {
        // On a socket that does not block, an operation would not wait either.
        socket.set_nonblocking(false)?;
        Ok(Self {
            protocol: listener.protocol,
            socket: Rc::new(socket.into()),
            accepting: None,
            local: LocalAddress::of(listener),
        })
    }

    pub(super) fn is_accepting(&self) -> bool {
        self.accepting.is_some()
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
        self.local.peer(&SockRef::from(socket), None)
    }
}
