//! The socket of one connection, with blocking calls that have timeouts.
//!
//! The timeouts are the socket's own, SO_RCVTIMEO and SO_SNDTIMEO, and are set only when they change,
//! so that a request costs a read and a write. Calls ending in `_now` never wait.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};
use socket2::Socket;

use super::Seat;
use crate::counters::Counters;
use crate::io::{FAR, LINGER, LINGER_BYTES, READ_MAX, now};
use crate::output::{Output, SLICES_MAX};

/// Why a connection is over; `None`: it ended in order.
pub(super) type Reason = Option<&'static str>;

/// A connected socket, and the bytes that the last read returned.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) seat: Arc<Seat>,
    counters: Arc<Counters>,
    received: Vec<u8>,
    /// The present SO_RCVTIMEO of the socket.
    read_timeout: Option<Duration>,
}

/// The events that [`Stream::watch`] saw.
#[derive(Clone, Copy, Debug)]
pub(super) struct WatchResult {
    pub(super) flags: PollFlags,
    pub(super) rung: bool,
}

impl Stream {
    pub(super) fn new(seat: Arc<Seat>, counters: Arc<Counters>, write_timeout: Duration) -> Self {
        // Refused only if the socket is broken, and then the next write is, too.
        let write_timeout = at_least_a_moment(write_timeout.min(FAR));
        let _ = seat.socket.set_write_timeout(Some(write_timeout));
        Self {
            seat,
            counters,
            received: Vec::with_capacity(READ_MAX),
            read_timeout: None,
        }
    }

    /// The bytes that the last read returned.
    pub(super) fn received(&self) -> &[u8] {
        &self.received
    }

    /// Waits for bytes and reads them: `None` if none came within `timeout`, 0 at the end of the
    /// stream.
    pub(super) fn receive(&mut self, timeout: Option<Duration>) -> io::Result<Option<usize>> {
        let timeout = timeout.map(at_least_a_moment);
        if timeout != self.read_timeout {
            self.socket().set_read_timeout(timeout)?;
            self.read_timeout = timeout;
        }
        self.receive_with(RecvFlags::empty())
    }

    /// Reads bytes that have arrived: `None` if there are none, 0 at the end of the stream.
    pub(super) fn receive_now(&mut self) -> io::Result<Option<usize>> {
        self.receive_with(RecvFlags::DONTWAIT)
    }

    /// Reads once into `received`: `None` if nothing came in time, 0 at the end of the stream.
    fn receive_with(&mut self, flags: RecvFlags) -> io::Result<Option<usize>> {
        self.received.clear();
        loop {
            match recv(&self.seat.socket, spare_capacity(&mut self.received), flags) {
                Ok((count, _)) => {
                    Counters::add(&self.counters.bytes_in, count as u64);
                    return Ok(Some(count));
                }
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sends all of `out`, waiting for room.
    pub(super) fn send(&self, out: &mut Output) -> Result<(), Reason> {
        while !out.is_empty() {
            if !self.send_some(out, SendFlags::NOSIGNAL)? {
                return Err(Some("write-timeout"));
            }
        }
        Ok(())
    }

    /// Sends as much of `out` as the socket takes without waiting.
    pub(super) fn send_now(&self, out: &mut Output) -> Result<(), Reason> {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        while !out.is_empty() && self.send_some(out, flags)? {}
        Ok(())
    }

    /// Writes once; `false` if the socket took nothing in time. `true` does not mean that all was written.
    fn send_some(&self, out: &mut Output, flags: SendFlags) -> Result<bool, Reason> {
        let mut slices = [io::IoSlice::new(&[]); SLICES_MAX];
        let sent = match out.slices(&mut slices) {
            [slice] => send(self.socket(), slice, flags),
            slices => {
                let mut nothing_else = SendAncillaryBuffer::default();
                sendmsg(self.socket(), slices, &mut nothing_else, flags)
            }
        };
        match sent {
            Ok(0) => Err(Some("peer-gone")),
            Ok(count) => {
                out.advance(count);
                Counters::add(&self.counters.bytes_out, count as u64);
                Ok(true)
            }
            Err(Errno::AGAIN) => Ok(false),
            Err(Errno::INTR) => Ok(true),
            Err(_) => Err(Some("peer-gone")),
        }
    }

    /// Waits until the socket has one of the `asked` events, `bell` rings, or `limit` is over. Errors
    /// and the end of both directions are always reported.
    pub(super) fn watch(
        &self,
        asked: PollFlags,
        bell: Option<BorrowedFd<'_>>,
        limit: Option<Duration>,
    ) -> WatchResult {
        let timeout = limit.map(timespec);
        // Without a bell, only the first of the two is watched.
        let bell_fd = bell.unwrap_or_else(|| self.socket().as_fd());
        let mut watched = [
            PollFd::new(self.socket(), asked),
            PollFd::from_borrowed_fd(bell_fd, PollFlags::IN),
        ];
        let count = if bell.is_some() { 2 } else { 1 };
        if poll(&mut watched[..count], timeout.as_ref()).is_err() {
            // Interrupted or short of memory; both pass, and nothing was seen.
            return WatchResult {
                flags: PollFlags::empty(),
                rung: false,
            };
        }
        WatchResult {
            flags: watched[0].revents(),
            rung: bell.is_some() && !watched[1].revents().is_empty(),
        }
    }

    /// Sends our end of stream, and reads on for a limited time until the peer's.
    pub(super) fn linger(&mut self) {
        if self.socket().shutdown(Shutdown::Write).is_err() {
            return;
        }
        let until = now() + LINGER;
        let mut left = LINGER_BYTES;
        loop {
            let timeout = until.saturating_duration_since(now());
            if timeout.is_zero() {
                return;
            }
            match self.receive(Some(timeout)) {
                Ok(Some(count @ 1..)) if count < left => left -= count,
                // The peer's end of stream, a timeout, an error, or more bytes than are worth reading.
                _ => return,
            }
        }
    }

    fn socket(&self) -> &Socket {
        &self.seat.socket
    }
}

/// A timeout of at least a millisecond, for a socket takes zero as no timeout at all.
pub(super) fn at_least_a_moment(timeout: Duration) -> Duration {
    timeout.max(Duration::from_millis(1))
}

/// Converts a timeout of `poll`.
pub(super) fn timespec(timeout: Duration) -> Timespec {
    Timespec {
        tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    }
}
