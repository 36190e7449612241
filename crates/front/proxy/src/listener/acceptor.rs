//! A listening socket, on the event loop of the worker that accepts from it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use catamaran_transport::Stream;
use socket2::{SockFilter, SockRef, Socket};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::BoundAddress;
use crate::peer::ToldTls;

/// One worker's socket of a listener, on that worker's event loop.
#[derive(Debug)]
pub(crate) enum Acceptor {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A connection that was just accepted.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) stream: Stream,
    /// The client's address; for a Unix socket the loopback address and port 0.
    pub(crate) remote: SocketAddr,
    /// The address that the client connected to; for a Unix socket the loopback address and port 0.
    pub(crate) local: SocketAddr,
    /// The client's TLS as a proxy that terminated it reports; boxed, since most connections have
    /// none.
    pub(crate) told_tls: Option<Box<ToldTls>>,
}

impl Acceptor {
    /// Registers a listening socket with the event loop of the runtime that the caller has entered.
    pub(crate) fn adopt(socket: Socket, address: &BoundAddress) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        match address {
            BoundAddress::Tcp(_) => TcpListener::from_std(socket.into()).map(Self::Tcp),
            BoundAddress::Unix(_) => UnixListener::from_std(socket.into()).map(Self::Unix),
        }
    }

    /// Waits for the next connection.
    ///
    /// # Cancel safety
    /// If the future is dropped, the connection stays in the queue.
    pub(crate) async fn accept(&self) -> io::Result<Incoming> {
        match self {
            Self::Tcp(listener) => {
                let (stream, remote) = listener.accept().await?;
                Incoming::tcp(stream, remote)
            }
            Self::Unix(listener) => Ok(Incoming::unix(listener.accept().await?.0)),
        }
    }

    /// Accepts the next connection in the queue, or fails with `WouldBlock`. Asks the kernel rather
    /// than the event loop, which may not know of it yet.
    pub(crate) fn try_accept(&self) -> io::Result<Incoming> {
        let (socket, remote) = self.socket().accept()?;
        socket.set_nonblocking(true)?;
        match self {
            Self::Tcp(_) => {
                let remote = remote.as_socket().unwrap_or(NOWHERE);
                Incoming::tcp(TcpStream::from_std(socket.into())?, remote)
            }
            Self::Unix(_) => {
                let stream = UnixStream::from_std(OwnedFd::from(socket).into())?;
                Ok(Incoming::unix(stream))
            }
        }
    }

    /// Accepts the next connection in the queue and closes it at once.
    pub(crate) fn refuse_one(&self) -> io::Result<()> {
        self.socket().accept().map(drop)
    }

    /// Makes the kernel drop the first packet of each further TCP connection. Such clients find out by
    /// themselves that nobody listens, unlike clients in the queue of a socket that is closed, which
    /// are reset.
    pub(crate) fn refuse_handshakes(&self) {
        if let Self::Tcp(listener) = self
            && let Err(error) = SockRef::from(listener).attach_filter(&DROP_SYN)
        {
            tracing::debug!(%error, "a client may be reset when the listener closes");
        }
    }

    fn socket(&self) -> SockRef<'_> {
        match self {
            Self::Tcp(listener) => SockRef::from(listener),
            Self::Unix(listener) => SockRef::from(listener),
        }
    }
}

impl AsFd for Acceptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(listener) => listener.as_fd(),
            Self::Unix(listener) => listener.as_fd(),
        }
    }
}

impl Incoming {
    /// Whether the connection came over TCP, so that the client has an address.
    pub(crate) fn is_tcp(&self) -> bool {
        matches!(self.stream, Stream::Tcp(_))
    }

    fn tcp(stream: TcpStream, remote: SocketAddr) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self {
            remote: canonical(remote),
            local: canonical(stream.local_addr()?),
            told_tls: None,
            stream: Stream::Tcp(stream),
        })
    }

    fn unix(stream: UnixStream) -> Self {
        Self {
            remote: NOWHERE,
            local: NOWHERE,
            told_tls: None,
            stream: Stream::Unix(stream),
        }
    }
}

/// Turns an IPv6 address that maps an IPv4 address, as on a socket for both, into the IPv4 address.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A classic BPF program, run on a packet from its TCP header on: it loads the byte of flags; if SYN
/// is set, it drops the packet, else keeps it whole.
const DROP_SYN: [SockFilter; 4] = [
    SockFilter::new(LOAD_BYTE, 0, 0, TCP_FLAGS_AT),
    SockFilter::new(JUMP_IF_BITS, 0, 1, TCP_SYN),
    SockFilter::new(KEEP, 0, 0, 0),
    SockFilter::new(KEEP, 0, 0, u32::MAX),
];
const LOAD_BYTE: u16 = 0x30;
const JUMP_IF_BITS: u16 = 0x45;
const KEEP: u16 = 0x06;
const TCP_FLAGS_AT: u32 = 13;
const TCP_SYN: u32 = 0x02;
