//! Refuses connections when no further file may be opened.
//!
//! A connection that cannot be accepted for lack of a descriptor stays in the kernel's queue, and its
//! client waits for a timeout. So one descriptor is held in reserve. When it is closed for a moment,
//! one connection can be accepted and closed, and its client learns of the failure at once.

use std::io;
use std::sync::Mutex;

use rustix::io::Errno;
use socket2::{Domain, Socket, Type};

use crate::listener::Acceptor;
use crate::lock::lock;

/// The resource that the system lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortage {
    /// The process or the system has its maximum number of open files.
    Descriptors,
    /// The system lacks memory for another socket.
    Memory,
}

/// The resource whose lack made accepting fail. `None`: the system lacks nothing, it was this
/// client's connection that failed.
pub(crate) fn shortage(error: &io::Error) -> Option<Shortage> {
    match Errno::from_io_error(error)? {
        Errno::MFILE | Errno::NFILE => Some(Shortage::Descriptors),
        Errno::NOMEM | Errno::NOBUFS => Some(Shortage::Memory),
        _ => None,
    }
}

/// A descriptor held in reserve. It is a socket, since a socket needs no file to exist.
#[derive(Debug)]
pub(crate) struct Reserve(Mutex<Option<Socket>>);

impl Reserve {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(unconnected()))
    }

    /// Opens a descriptor for the reserve if it is empty, such as after another thread took the one
    /// freed by [`Self::refuse_one`]. Must be called before anything else uses a descriptor that
    /// became free: otherwise clients would take each of them, and no client could be refused any
    /// more.
    pub(crate) fn refill(&self) {
        let mut held = lock(&self.0);
        if held.is_none() {
            *held = unconnected();
        }
    }

    /// Accepts and closes the next connection in the queue. If another thread takes the freed
    /// descriptor first, nothing happens, and [`Self::refill`] makes up for it later.
    pub(crate) fn refuse_one(&self, acceptor: &Acceptor) {
        // Held for a few system calls that do not wait.
        let mut held = lock(&self.0);
        drop(held.take());
        if let Err(error) = acceptor.refuse_one() {
            tracing::debug!(%error, "not even the reserve lets a connection be refused");
        }
        *held = unconnected();
    }
}

fn unconnected() -> Option<Socket> {
    Socket::new(Domain::UNIX, Type::STREAM, None).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_that_was_lost_is_filled_again() {
        let reserve = Reserve::new();
        drop(reserve.0.lock().unwrap().take());
        reserve.refill();
        assert!(reserve.0.lock().unwrap().is_some());
    }

    #[test]
    fn only_the_systems_shortages_are_ours() {
        for (errno, expected) in [
            (Errno::MFILE, Some(Shortage::Descriptors)),
            (Errno::NFILE, Some(Shortage::Descriptors)),
            (Errno::NOBUFS, Some(Shortage::Memory)),
            (Errno::CONNABORTED, None),
            (Errno::PROTO, None),
        ] {
            assert_eq!(shortage(&errno.into()), expected, "{errno}");
        }
    }
}
