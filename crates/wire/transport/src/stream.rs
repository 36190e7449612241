//! A byte stream to a peer, over TCP or a Unix socket, with or without TLS.
//!
//! There are only these kinds of streams, so it is an enum. It also has what its users need besides reading and
//! writing: waiting for bytes without a buffer, and whether an unused connection is still quiet.

use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, BytesMut};
use catamaran_tls::Session;
use rustix::fs::sendfile;
use rustix::io::Errno;
use rustix::net::sockopt::set_tcp_cork;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};
use socket2::SockRef;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::coop::{has_budget_remaining, poll_proceed};

use crate::acknowledged::acknowledged;
use crate::buffers;
use crate::proxy_header::{PROXY_HEADER_MAX, ProxyFault, ProxyHeader, parse_proxy_header};
use crate::tls_stream::TlsStream;

/// A connected TCP or Unix stream socket, with or without TLS.
#[derive(Debug)]
pub enum Stream {
    /// TCP, with `TCP_NODELAY` set by the code that connected or accepted it.
    Tcp(TcpStream),
    /// A Unix stream socket.
    Unix(UnixStream),
    /// TLS on one of the other kinds. Boxed: most idle connections have none.
    Tls(Box<TlsStream>),
}

/// Why a connection did not begin with a header of the PROXY protocol.
#[derive(Debug, Error)]
pub enum ProxyError {
    /// The socket failed.
    #[error("the connection failed")]
    Io(#[from] io::Error),
    /// The peer closed the connection.
    #[error("the peer closed before its header was complete")]
    Closed {
        /// Whether the peer had sent a part of the header.
        begun: bool,
    },
    /// The peer sent something else.
    #[error(transparent)]
    Fault(#[from] ProxyFault),
}

/// Which directions of a connection the peer has closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerEnd {
    /// The peer sends nothing more. TCP does not tell whether it still receives: a FIN follows `close` as well as
    /// `shutdown`.
    Sending,
    /// Both directions are closed: the connection was reset, or it is a Unix socket that was closed.
    Closed,
}

impl Stream {
    /// Ready when bytes, an end or an error can be read. No buffer is needed meanwhile.
    ///
    /// # Errors
    /// If the socket cannot be watched.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => stream.poll_read_ready(cx),
            Self::Unix(stream) => stream.poll_read_ready(cx),
            Self::Tls(stream) => stream.socket().poll_readable(cx),
        }
    }

    /// Whether the event loop last reported that something can be read: bytes, an end or an error.
    #[must_use]
    pub fn has_news(&self) -> bool {
        self.try_io(|| Ok(())).is_ok()
    }

    /// The directions that the peer has closed, as far as the event loop knows, even if bytes before that are
    /// unread; `None`: neither. Makes no system call.
    #[must_use]
    pub fn peer_end(&self) -> Option<PeerEnd> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        let mut context = Context::from_waker(Waker::noop());
        let polled = match self {
            Self::Tcp(stream) => pin!(stream.ready(interest)).poll(&mut context),
            Self::Unix(stream) => pin!(stream.ready(interest)).poll(&mut context),
            Self::Tls(stream) => {
                return match stream.socket().peer_end() {
                    None if stream.is_peer_closed() => Some(PeerEnd::Sending),
                    end_of_socket => end_of_socket,
                };
            }
        };
        match polled {
            Poll::Ready(Ok(ready)) if ready.is_write_closed() => Some(PeerEnd::Closed),
            Poll::Ready(Ok(ready)) if ready.is_read_closed() => Some(PeerEnd::Sending),
            Poll::Ready(Ok(_)) | Poll::Pending => None,
            // The event loop itself ends.
            Poll::Ready(Err(_)) => Some(PeerEnd::Closed),
        }
    }

    /// Reads once into the room that `buffer` has; 0 is the end of the peer's stream. With TLS `buffer` grows if a
    /// record does not fit.
    ///
    /// Respects the task's budget of progress (tokio's cooperative scheduling), but uses none of it. A loop around
    /// this must also write, or have a limit, so that other tasks can run.
    ///
    /// # Errors
    /// The socket's.
    pub fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        if let Self::Tls(stream) = self {
            return stream.poll_read(cx, buffer);
        }
        loop {
            if !has_budget_remaining() {
                ready!(self.poll_readable(cx))?;
            }
            match self.try_read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    ready!(self.poll_readable(cx))?;
                }
                read => return Poll::Ready(read),
            }
        }
    }

    /// Reads once into `buf`, for a reader that takes only as much as it has room for; no bytes mean the end of the
    /// peer's stream. A TLS record may have more bytes: they are kept in `rest`, which is read first.
    ///
    /// # Errors
    /// The socket's.
    pub fn poll_read_bounded(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
        rest: &mut BytesMut,
    ) -> Poll<io::Result<()>> {
        if rest.is_empty() {
            match self {
                Self::Tcp(stream) => return Pin::new(stream).poll_read(cx, buf),
                Self::Unix(stream) => return Pin::new(stream).poll_read(cx, buf),
                Self::Tls(stream) => {
                    let progress = ready!(poll_proceed(cx));
                    let mut lent = buffers::take();
                    let read = stream.poll_read(cx, &mut lent);
                    if lent.len() > buf.remaining() {
                        *rest = lent.split_off(buf.remaining());
                    }
                    buf.put_slice(&lent);
                    buffers::give(lent);
                    ready!(read)?;
                    progress.made_progress();
                    return Poll::Ready(Ok(()));
                }
            }
        }
        let taken = rest.len().min(buf.remaining());
        buf.put_slice(&rest[..taken]);
        rest.advance(taken);
        if rest.is_empty() {
            // An idle connection holds no memory.
            *rest = BytesMut::new();
        }
        Poll::Ready(Ok(()))
    }

    /// Reads, unless the event loop last reported that there is nothing to read.
    fn try_read(&self, buffer: &mut BytesMut) -> io::Result<usize> {
        let room = buffer.capacity() - buffer.len();
        debug_assert!(room > 0, "nothing read means the peer's end");
        let mut read = 0;
        let result = self.try_io(|| {
            read = match self {
                Self::Tcp(stream) => stream.try_read_buf(buffer)?,
                Self::Unix(stream) => stream.try_read_buf(buffer)?,
                Self::Tls(_) => return Err(ErrorKind::WouldBlock.into()),
            };
            // A short read has emptied the socket. Reporting that it would block saves another read
            // that finds nothing; the event loop reports further bytes.
            if 0 < read && read < room {
                Err(ErrorKind::WouldBlock.into())
            } else {
                Ok(())
            }
        });
        match result {
            // The error of the short read was for the event loop alone.
            Err(_) if read > 0 => Ok(read),
            Err(error) => Err(error),
            Ok(()) => Ok(read),
        }
    }

    /// Reads once, whatever the event loop last reported: after a failed write the kernel may know more of the peer
    /// than the loop. Fills at most the room that `buffer` has; 0 is the end of the peer's stream.
    ///
    /// # Errors
    /// The socket's; `WouldBlock` if there is nothing to read.
    pub fn read_now(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        if let Self::Tls(stream) = self {
            return stream.read_now(buffer);
        }
        let (len, end) = (buffer.len(), buffer.capacity());
        debug_assert!(len < end, "nothing read means the peer's end");
        buffer.resize(end, 0);
        let received = self.receive(&mut buffer[len..], RecvFlags::DONTWAIT);
        let read = received.map_or(0, |(read, _)| read);
        buffer.truncate(len + read);
        received?;
        Ok(read)
    }

    /// Reads a header of the PROXY protocol, and none of the bytes after it. The header is read in the kernel's
    /// buffer until it is complete, so that no bytes have to be given back. Only for a stream without TLS.
    ///
    /// # Errors
    /// [`ProxyError`]; the connection cannot be used.
    pub fn poll_proxy_header(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<ProxyHeader, ProxyError>> {
        let mut bytes = [0; PROXY_HEADER_MAX];
        loop {
            ready!(self.poll_readable(cx))?;
            let mut peeked = None;
            let result = self.try_io(|| {
                let (len, _) = self.receive(&mut bytes, RecvFlags::DONTWAIT | RecvFlags::PEEK)?;
                peeked = Some(len);
                match parse_proxy_header(&bytes[..len]) {
                    // With this error, `poll_readable` waits until the event loop reports further bytes.
                    Ok(None) if len > 0 => Err(ErrorKind::WouldBlock.into()),
                    _ => Ok(()),
                }
            });
            let Some(len) = peeked else {
                match result {
                    Err(error) if error.kind() != ErrorKind::WouldBlock => {
                        return Poll::Ready(Err(error.into()));
                    }
                    _ => continue,
                }
            };
            match parse_proxy_header(&bytes[..len])? {
                Some(header) => {
                    // Takes the bytes that were only peeked at; all of them are there.
                    self.receive(&mut bytes[..header.len], RecvFlags::DONTWAIT)
                        .map_err(io::Error::from)?;
                    return Poll::Ready(Ok(header));
                }
                None if len == 0 || self.peer_end().is_some() => {
                    return Poll::Ready(Err(ProxyError::Closed { begun: len > 0 }));
                }
                None => {}
            }
        }
    }

    /// Calls `recv` on a socket without TLS.
    fn receive(&self, room: &mut [u8], flags: RecvFlags) -> Result<(usize, usize), Errno> {
        match self {
            Self::Tcp(stream) => recv(stream, room, flags),
            Self::Unix(stream) => recv(stream, room, flags),
            Self::Tls(_) => Ok((0, 0)),
        }
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => stream.poll_write_ready(cx),
            Self::Unix(stream) => stream.poll_write_ready(cx),
            Self::Tls(stream) => stream.socket().poll_writable(cx),
        }
    }

    /// Calls `send` once the event loop reports room to write. `send` should make its system call without libc,
    /// whose wrappers do extra work for the case that the thread is cancelled.
    pub(crate) fn poll_send(
        &self,
        cx: &mut Context<'_>,
        send: impl Fn(BorrowedFd<'_>) -> Result<usize, Errno>,
    ) -> Poll<io::Result<usize>> {
        let progress = ready!(poll_proceed(cx));
        let send_to = |socket: BorrowedFd<'_>| Ok(send(socket)?);
        loop {
            let sent = match self {
                Self::Tcp(stream) => stream.try_io(Interest::WRITABLE, || send_to(stream.as_fd())),
                Self::Unix(stream) => stream.try_io(Interest::WRITABLE, || send_to(stream.as_fd())),
                // TLS writes to the socket under it.
                Self::Tls(_) => Err(ErrorKind::Unsupported.into()),
            };
            match sent {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    ready!(self.poll_writable(cx))?;
                }
                sent => {
                    progress.made_progress();
                    return Poll::Ready(sent);
                }
            }
        }
    }

    /// Makes the kernel send bytes of a file, as many as the socket takes; 0 means the file's end. Only for a stream
    /// without TLS.
    ///
    /// # Errors
    /// The socket's, and the file's.
    pub(crate) fn poll_send_file(
        &self,
        cx: &mut Context<'_>,
        file: &OwnedFd,
        from: u64,
        len: usize,
    ) -> Poll<io::Result<usize>> {
        self.poll_send(cx, |socket| {
            // The kernel advances it, and the caller counts itself.
            let mut offset = from;
            sendfile(socket, file, Some(&mut offset), len)
        })
    }

    /// Sets whether a partial segment waits for further bytes, for 200 ms at most (`TCP_CORK`, `tcp(7)`; nginx:
    /// `tcp_nopush`). Has an effect only on TCP without TLS. If the kernel refuses it, nothing waits.
    pub fn cork(&self, waits: bool) {
        if let Self::Tcp(stream) = self {
            set_tcp_cork(stream, waits).ok();
        }
    }

    /// Sends bytes, as many as the socket takes. Only for a stream without TLS.
    ///
    /// # Errors
    /// The socket's.
    pub(crate) fn poll_send_bytes(
        &self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(cx, |socket| send(socket, bytes, SendFlags::NOSIGNAL))
    }

    /// Whether the stream has TLS.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Whether the peer has neither sent anything nor closed, as of the event loop's last check of all sockets.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        if let Self::Tls(stream) = self {
            return stream.is_quiet() && stream.socket().is_quiet();
        }
        let peeked = self.try_io(|| self.peek());
        matches!(peeked, Err(error) if error.kind() == ErrorKind::WouldBlock)
    }

    /// Whether the peer has neither sent anything nor closed at this moment: asks the kernel, because bytes or a
    /// close may have arrived since the event loop's last check.
    #[must_use]
    pub fn is_quiet_now(&self) -> bool {
        if let Self::Tls(stream) = self {
            return stream.is_quiet() && stream.socket().is_quiet_now();
        }
        matches!(self.peek(), Err(error) if error.kind() == ErrorKind::WouldBlock)
    }

    /// Looks for a byte or the end of the stream without removing it; `WouldBlock` if there is neither.
    fn peek(&self) -> io::Result<()> {
        let mut byte = [MaybeUninit::uninit()];
        let peeked = match self {
            Self::Tcp(stream) => SockRef::from(stream).peek(&mut byte),
            Self::Unix(stream) => SockRef::from(stream).peek(&mut byte),
            Self::Tls(stream) => return stream.socket().peek(),
        };
        peeked.map(drop)
    }

    /// Calls `operation` if the event loop reported that something can be read; otherwise `WouldBlock`.
    fn try_io(&self, operation: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.try_io(Interest::READABLE, operation),
            Self::Unix(stream) => stream.try_io(Interest::READABLE, operation),
            Self::Tls(stream) => stream.socket().try_io(operation),
        }
    }

    /// The number of bytes given to the socket that the peer's kernel has acknowledged. Known only for a TCP
    /// connection that this process opened; else `None`. With TLS these are the bytes of its records.
    #[must_use]
    pub fn acknowledged(&self) -> Option<u64> {
        match self {
            Self::Tcp(stream) => acknowledged(stream).ok()?.checked_sub(1),
            Self::Unix(_) => None,
            Self::Tls(stream) => stream.socket().acknowledged(),
        }
    }

    /// The number of bytes given to the socket, if `taken` bytes were taken by writes. With TLS these are the bytes
    /// of its records, including the handshake.
    #[must_use]
    pub fn given(&self, taken: u64) -> u64 {
        match self {
            Self::Tcp(_) | Self::Unix(_) => taken,
            Self::Tls(stream) => stream.written(),
        }
    }

    /// Makes the following close a reset, so that the peer cannot take what it received for a
    /// complete message.
    pub fn reset_on_close(&self) {
        // Unix sockets have no reset; a failure leaves an ordinary close, which the framing reveals.
        match self {
            Self::Tcp(stream) => {
                SockRef::from(stream)
                    .set_linger(Some(std::time::Duration::ZERO))
                    .ok();
            }
            Self::Unix(_) => {}
            Self::Tls(stream) => stream.socket().reset_on_close(),
        }
    }

    /// The number of bytes that a write took and that the socket does not have yet: TLS keeps records that the
    /// socket refused.
    #[must_use]
    pub fn unsent(&self) -> usize {
        match self {
            Self::Tcp(_) | Self::Unix(_) => 0,
            Self::Tls(stream) => stream.unsent(),
        }
    }

    /// The result of the handshake; `None` without TLS, or before the handshake is over.
    #[must_use]
    pub fn tls(&self) -> Option<&Arc<Session>> {
        match self {
            Self::Tcp(_) | Self::Unix(_) => None,
            Self::Tls(stream) => stream.session(),
        }
    }

    /// Prepares an orderly close: over TLS it tells the peer, without waiting, that nothing is missing.
    pub fn close_in_order(&mut self) {
        if let Self::Tls(stream) = self {
            stream.close_now();
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Self::Tls(stream) = &mut *self {
            return stream.poll_write(cx, &[io::IoSlice::new(buf)]);
        }
        self.poll_send_bytes(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let Self::Tls(stream) = &mut *self {
            return stream.poll_write(cx, bufs);
        }
        self.poll_send(cx, |socket| {
            let mut control = SendAncillaryBuffer::default();
            sendmsg(socket, bufs, &mut control, SendFlags::NOSIGNAL)
        })
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(_) | Self::Unix(_) => Poll::Ready(Ok(())),
            Self::Tls(stream) => stream.poll_flush_unsent(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => stream.poll_shutdown(cx),
        }
    }
}
