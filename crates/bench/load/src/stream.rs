//! Sockets: TCP, Unix, and TLS on either, as one type.
//!
//! All sockets are non-blocking and registered once with the worker's poll, for both directions and
//! edge-triggered. [`connect_failure`] and [`receive_failure`] turn errors into kinds of failures.

use std::io::{self, IoSlice, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use mio::event::{Event, Source};
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::acknowledged::acknowledged;
use crate::plan::Connections;
use crate::report::{FailureKind, TlsFacts};
use crate::tls::{self, TlsStream, TlsTarget};

/// The address to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// A socket that is connected or being connected, with or without TLS.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(Plain),
    Tls(Box<TlsStream<Plain>>),
}

/// A socket without TLS.
#[derive(Debug)]
pub(crate) enum Plain {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Begins a connect; the socket becomes writable when it is done.
///
/// # Errors
/// The connect failed at once: the kind of failure for a request that needs it, and the system's error.
pub(crate) fn connect(
    address: &Address,
    tls: Option<&TlsTarget>,
    options: &Connections,
    source: Option<IpAddr>,
) -> Result<Stream, (FailureKind, io::Error)> {
    let failure = |error| (connect_failure(&error), error);
    let (socket, peer) = socket(address, options).map_err(failure)?;
    if let (Some(source), Address::Tcp(_)) = (source, address) {
        let any_port = SocketAddr::new(source, 0);
        socket
            .bind(&any_port.into())
            .map_err(|error| (bind_failure(&error), error))?;
    }
    let plain = connect_plain(address, socket, &peer).map_err(failure)?;
    Ok(match tls {
        None => Stream::Plain(plain),
        Some(target) => Stream::Tls(Box::new(TlsStream::new(plain, target).map_err(failure)?)),
    })
}

/// Makes a socket with the plan's options; also returns the address of the peer.
fn socket(address: &Address, options: &Connections) -> io::Result<(Socket, SockAddr)> {
    let kind = Type::STREAM.nonblocking();
    let (socket, peer) = match address {
        Address::Tcp(address) => (
            Socket::new(Domain::for_address(*address), kind, Some(Protocol::TCP))?,
            SockAddr::from(*address),
        ),
        Address::Unix(path) => (
            Socket::new(Domain::UNIX, kind, None)?,
            SockAddr::unix(path)?,
        ),
    };
    if let Some(bytes) = options.send_buffer {
        socket.set_send_buffer_size(bytes)?;
    }
    if let Some(bytes) = options.receive_buffer {
        socket.set_recv_buffer_size(bytes)?;
    }
    Ok((socket, peer))
}

/// Begins to connect. The result says nothing about success: the socket is writable once it is known.
fn connect_plain(address: &Address, socket: Socket, peer: &SockAddr) -> io::Result<Plain> {
    // A connect of a non-blocking socket goes on in the background.
    if let Err(error) = socket.connect(peer)
        && error.raw_os_error() != Some(Errno::INPROGRESS.raw_os_error())
    {
        return Err(error);
    }
    Ok(match address {
        Address::Tcp(_) => Plain::Tcp(TcpStream::from_std(socket.into())),
        Address::Unix(_) => Plain::Unix(UnixStream::from_std(socket.into())),
    })
}

impl Stream {
    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        match self.plain() {
            Plain::Tcp(stream) => stream.register(registry, token, interest),
            Plain::Unix(stream) => stream.register(registry, token, interest),
        }
    }

    /// The socket's pending error, such as that of a failed connect.
    pub(crate) fn take_error(&mut self) -> io::Result<()> {
        let error = match self.plain() {
            Plain::Tcp(stream) => stream.take_error(),
            Plain::Unix(stream) => stream.take_error(),
        };
        error?.map_or(Ok(()), Err)
    }

    /// Switches TCP_NODELAY on, so that small writes go out at once; this matters with several requests in flight.
    pub(crate) fn set_nodelay(&mut self) {
        if let Plain::Tcp(stream) = self.plain() {
            // An improvement; the connection works without it.
            let _ = stream.set_nodelay(true);
        }
    }

    /// Continues a connect after an event of its socket; `true` once requests can be sent.
    ///
    /// # Errors
    /// The connect failed: the kind of failure under which it is counted, and the error.
    pub(crate) fn go_on_dialling(
        &mut self,
        event: &Event,
    ) -> Result<bool, (FailureKind, io::Error)> {
        if event.is_error()
            && let Err(error) = self.take_error()
        {
            return Err((dial_failure(self, &error), error));
        }
        self.handshake().map_err(|error| (FailureKind::Tls, error))
    }

    /// Begins or continues the TLS handshake on the connected socket; `true` once requests can be sent.
    fn handshake(&mut self) -> io::Result<bool> {
        match self {
            Self::Plain(_) => Ok(true),
            Self::Tls(stream) => stream.handshake(),
        }
    }

    /// Checks that HTTP/2 can be used: TLS must have agreed on it; without TLS the server is assumed to know it.
    ///
    /// # Errors
    /// TLS agreed on another protocol, or on none.
    pub(crate) fn expect_http2(&self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Tls(stream) => stream.expect_http2(),
        }
    }

    /// The TLS parameters that were negotiated; `None` without TLS.
    pub(crate) fn tls_facts(&self, target: Option<&TlsTarget>) -> Option<TlsFacts> {
        match (self, target) {
            (Self::Tls(stream), Some(target)) => Some(stream.facts(target)),
            _ => None,
        }
    }

    /// Whether it is certain that the peer has received nothing beyond the first `before` bytes
    /// written. Never with TLS, whose records are not counted.
    pub(crate) fn is_unreceived_after(&self, before: u64) -> bool {
        match self {
            Self::Plain(Plain::Tcp(stream)) => {
                acknowledged(stream).is_ok_and(|bytes| bytes <= before)
            }
            Self::Plain(Plain::Unix(_)) | Self::Tls(_) => false,
        }
    }

    /// Writes the bytes that TLS has kept back.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Tls(stream) => stream.flush(),
        }
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }

    /// Whether a read of `len` bytes into a buffer of `room` bytes has emptied the socket, so that
    /// an event will tell when more comes (epoll(7), on edge-triggered streams).
    pub(crate) fn is_emptied(&self, len: usize, room: usize) -> bool {
        match self {
            Self::Plain(_) => len < room,
            // TLS returns one record at a time.
            Self::Tls(_) => false,
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    /// Writes some of the bytes; returns their number. TLS takes only bytes of the first slice that has any.
    pub(crate) fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write_vectored(slices),
            Self::Tls(stream) => {
                // A write may take less than all: the caller writes the other slices later.
                let first = slices.iter().find(|slice| !slice.is_empty());
                stream.write(first.map_or(&[], |slice| slice))
            }
        }
    }

    fn plain(&mut self) -> &mut Plain {
        match self {
            Self::Plain(plain) => plain,
            Self::Tls(stream) => &mut stream.socket,
        }
    }
}

impl Read for Plain {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Plain {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write_vectored(slices),
            Self::Unix(stream) => stream.write_vectored(slices),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The kind of failure of a connect of `stream`, TLS handshake included.
fn dial_failure(stream: &Stream, error: &io::Error) -> FailureKind {
    match stream {
        Stream::Tls(stream) if stream.has_begun => FailureKind::Tls,
        _ => connect_failure(error),
    }
}

/// The kind of failure of a bind to a source address.
fn bind_failure(error: &io::Error) -> FailureKind {
    match Errno::from_io_error(error) {
        Some(Errno::ADDRINUSE) => FailureKind::Ports,
        _ => FailureKind::Source,
    }
}

/// The kind of failure of a connect.
pub(crate) fn connect_failure(error: &io::Error) -> FailureKind {
    let Some(errno) = Errno::from_io_error(error) else {
        return FailureKind::Connect;
    };
    match errno {
        // The queue of a listening Unix socket is full: AGAIN.
        Errno::CONNREFUSED | Errno::NOENT | Errno::AGAIN => FailureKind::Refused,
        Errno::HOSTUNREACH | Errno::NETUNREACH | Errno::NETDOWN | Errno::TIMEDOUT => {
            FailureKind::Unreachable
        }
        Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM => FailureKind::Descriptors,
        Errno::ADDRNOTAVAIL => FailureKind::Ports,
        // The connection was made, and reset before this was called.
        Errno::CONNRESET => FailureKind::Reset,
        _ => FailureKind::Connect,
    }
}

/// The kind of failure of a receive.
pub(crate) fn receive_failure(error: &io::Error) -> FailureKind {
    match Errno::from_io_error(error) {
        Some(Errno::CONNRESET) => FailureKind::Reset,
        _ if tls::is_broken(error) => FailureKind::Tls,
        _ => FailureKind::Receive,
    }
}

/// The kind of failure of a send. A reset is reported by whichever call comes first.
pub(crate) fn send_failure(error: &io::Error) -> FailureKind {
    match Errno::from_io_error(error) {
        Some(Errno::CONNRESET) => FailureKind::Reset,
        _ if tls::is_broken(error) => FailureKind::Tls,
        _ => FailureKind::Write,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The peer has closed its side before the request is written, or after it has read it.
    #[test]
    fn what_the_peer_has_not_received_is_known() {
        use std::net::{TcpListener, TcpStream as StdStream};
        for is_closed_before in [true, false] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut client = StdStream::connect(listener.local_addr().unwrap()).unwrap();
            let (mut server, _) = listener.accept().unwrap();
            client.write_all(b"first").unwrap();
            server.read_exact(&mut [0; 5]).unwrap();
            if is_closed_before {
                drop(server);
                client.write_all(b"second").unwrap();
            } else {
                client.write_all(b"second").unwrap();
                server.read_exact(&mut [0; 6]).unwrap();
                drop(server);
            }
            assert_eq!(client.read(&mut [0; 9]).unwrap(), 0);
            client.set_nonblocking(true).unwrap();
            let stream = Stream::Plain(Plain::Tcp(TcpStream::from_std(client)));
            assert_eq!(stream.is_unreceived_after(5), is_closed_before);
        }
    }

    #[test]
    fn errors_of_the_system_have_their_kinds() {
        use FailureKind as Kind;
        let error = |errno: Errno| io::Error::from(errno);
        for (errno, expected) in [
            (Errno::CONNREFUSED, Kind::Refused),
            (Errno::NOENT, Kind::Refused),
            (Errno::HOSTUNREACH, Kind::Unreachable),
            (Errno::NETUNREACH, Kind::Unreachable),
            (Errno::TIMEDOUT, Kind::Unreachable),
            (Errno::MFILE, Kind::Descriptors),
            (Errno::NFILE, Kind::Descriptors),
            (Errno::ADDRNOTAVAIL, Kind::Ports),
            (Errno::ACCESS, Kind::Connect),
        ] {
            assert_eq!(connect_failure(&error(errno)), expected);
        }
        assert_eq!(bind_failure(&error(Errno::ADDRINUSE)), Kind::Ports);
        assert_eq!(bind_failure(&error(Errno::ADDRNOTAVAIL)), Kind::Source);
        assert_eq!(send_failure(&error(Errno::PIPE)), Kind::Write);
        assert_eq!(send_failure(&error(Errno::CONNRESET)), Kind::Reset);
        assert_eq!(receive_failure(&error(Errno::CONNRESET)), Kind::Reset);
        assert_eq!(receive_failure(&error(Errno::TIMEDOUT)), Kind::Receive);
    }
}
