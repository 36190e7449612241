//! Listening and connected sockets, each one type for TCP and Unix sockets.

use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use mio::event::Source;
use mio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use mio::{Interest, Registry, Token};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};
use socket2::Socket;

use crate::config::{Address, Listener, Protocol};
use crate::conn::Peer;
use crate::output::{Output, SLICES_MAX};

/// A listening socket, with the protocol spoken there.
#[derive(Debug)]
pub(super) struct Acceptor {
    protocol: Protocol,
    socket: ListenSocket,
    /// Whether connections may be waiting in the listener's queue.
    pub(super) ready: bool,
}

#[derive(Debug)]
enum ListenSocket {
    Tcp {
        socket: TcpListener,
        /// The bound address; `None` if it is a wildcard, so that each connection has to be asked.
        local: Option<SocketAddr>,
    },
    Unix(UnixListener),
}

impl Acceptor {
    pub(super) fn new(listener: &Listener, socket: Socket) -> Self {
        let socket = match &listener.address {
            Address::Tcp(address) => ListenSocket::Tcp {
                socket: TcpListener::from_std(socket.into()),
                // A wildcard's connections have different local addresses, which are asked for.
                local: (!address.ip().is_unspecified()).then_some(*address),
            },
            Address::Unix(_) => ListenSocket::Unix(UnixListener::from_std(socket.into())),
        };
        Self {
            protocol: listener.protocol,
            socket,
            ready: true,
        }
    }

    pub(super) fn protocol(&self) -> Protocol {
        self.protocol
    }

    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        match &mut self.socket {
            ListenSocket::Tcp { socket, .. } => {
                socket.register(registry, token, Interest::READABLE)
            }
            ListenSocket::Unix(socket) => socket.register(registry, token, Interest::READABLE),
        }
    }

    /// Whether another connection waits in the listener's queue. An accept without one costs as much as seven
    /// of these calls, because the system makes a socket before it looks into the queue.
    pub(super) fn has_more(&self) -> bool {
        let socket = match &self.socket {
            ListenSocket::Tcp { socket, .. } => socket.as_fd(),
            ListenSocket::Unix(socket) => socket.as_fd(),
        };
        let mut queue = [PollFd::from_borrowed_fd(socket, PollFlags::IN)];
        let at_once = Timespec::default();
        // If the call fails, the next attempt to accept shows the reason.
        poll(&mut queue, Some(&at_once)) != Ok(0)
    }

    pub(super) fn accept(&self) -> io::Result<(Stream, Peer)> {
        match &self.socket {
            ListenSocket::Tcp { socket, local } => {
                let (stream, remote) = socket.accept()?;
                let local = match local {
                    Some(local) => *local,
                    None => stream.local_addr()?,
                };
                Ok((Stream::Tcp(stream), Peer::Tcp { remote, local }))
            }
            ListenSocket::Unix(socket) => {
                let (stream, _) = socket.accept()?;
                Ok((Stream::Unix(stream), Peer::Unix))
            }
        }
    }
}

/// A connected socket.
#[derive(Debug)]
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Registers the socket with the event loop or, if `is_watched`, changes its registration.
    pub(super) fn watch(
        &mut self,
        registry: &Registry,
        token: Token,
        interest: Interest,
        is_watched: bool,
    ) -> io::Result<()> {
        let source: &mut dyn Source = match self {
            Self::Tcp(stream) => stream,
            Self::Unix(stream) => stream,
        };
        if is_watched {
            return source.reregister(registry, token, interest);
        }
        source.register(registry, token, interest)
    }

    // Without libc, whose wrapper is a cancellation point: that takes a twentieth of the time of a small exchange.

    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::net::recv(self, buffer, RecvFlags::empty())?.0)
    }

    /// Writes once: as much of `out` as the socket takes. With `last`, the kernel holds the bytes
    /// back until [`finish`](Self::finish), so that its FIN leaves in the same packet.
    pub(super) fn write(&mut self, out: &Output, last: bool) -> io::Result<usize> {
        let mut flags = SendFlags::NOSIGNAL;
        flags.set(SendFlags::MORE, last);
        if let Some(slice) = out.only_slice() {
            return Ok(rustix::net::send(self, slice, flags)?);
        }
        let mut room = [IoSlice::new(&[]); SLICES_MAX];
        let mut nothing_else = SendAncillaryBuffer::default();
        let slices = out.slices(&mut room);
        Ok(rustix::net::sendmsg(
            self,
            slices,
            &mut nothing_else,
            flags,
        )?)
    }

    /// Closes our half of the connection: nothing more will be sent.
    pub(super) fn finish(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Self::Unix(stream) => stream.shutdown(Shutdown::Write),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}
