//! Where a test server listens or a test client connects, and addresses nobody else uses.
//!
//! Our own servers bind port 0 and say which port they got. Some programs (httpd, nginx) must be
//! told one. For those [`unused`] gives a port on a loopback address made from this process's id:
//! all of 127.0.0.0/8 is loopback on Linux, so no other process has a reason to be there and the
//! time between choosing the port and using it is no race.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use std::{fmt, io, process};

use socket2::{Domain, SockAddr, Socket, Type};

/// A TCP address or the path of a Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An IP address and port.
    Tcp(SocketAddr),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl Address {
    /// Connects. `timeout` is for TCP; a Unix socket connects at once or not at all.
    ///
    /// # Errors
    /// Nothing listens at the address, or nothing answered in time.
    pub fn connect(&self, timeout: Duration) -> io::Result<Socket> {
        match self {
            Self::Tcp(address) => {
                let socket = Socket::new(Domain::for_address(*address), Type::STREAM, None)?;
                socket.connect_timeout(&(*address).into(), timeout)?;
                socket.set_tcp_nodelay(true)?;
                Ok(socket)
            }
            Self::Unix(path) => {
                let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
                socket.connect(&SockAddr::unix(path)?)?;
                Ok(socket)
            }
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl From<PathBuf> for Address {
    fn from(path: PathBuf) -> Self {
        Self::Unix(path)
    }
}

impl From<&Self> for Address {
    fn from(address: &Self) -> Self {
        address.clone()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A free address, for a program that must be told one. Only this process takes ports of its loopback address.
///
/// # Errors
/// No socket can be bound on loopback.
pub fn unused() -> io::Result<SocketAddr> {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let address = own_loopback();
    loop {
        let port = TcpListener::bind((address, 0))?.local_addr()?.port();
        // A lock, not an atomic: the set is what keeps one port from being given twice.
        let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
        if given.insert(port) {
            return Ok(SocketAddr::new(address, port));
        }
    }
}

/// An address on which nothing listens, so that connecting is refused at once.
///
/// # Errors
/// As [`unused`].
pub fn refusing() -> io::Result<SocketAddr> {
    unused()
}

/// The loopback address of this process, from 127.64.0.0 on. It never ends in 255: at such an address of loopback Java
/// listens no socket of IPv4 ("Cannot assign requested address").
fn own_loopback() -> IpAddr {
    loopback_of(process::id())
}

fn loopback_of(process: u32) -> IpAddr {
    let own = u32::from(Ipv4Addr::new(127, 64, 0, 0)) + process / 255 * 256 + process % 255;
    Ipv4Addr::from(own).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_addresses_differ_and_can_be_bound() {
        let first = unused().unwrap();
        let second = unused().unwrap();
        assert_ne!(first, second);
        let _first = TcpListener::bind(first).unwrap();
        let _second = TcpListener::bind(second).unwrap();
    }

    #[test]
    fn processes_have_loopback_addresses_where_java_listens() {
        // The greatest id that Linux gives.
        let last: u32 = 1 << 22;
        for (process, expected) in [
            (1, [127, 64, 0, 1]),
            (254, [127, 64, 0, 254]),
            (255, [127, 64, 1, 0]),
            (5887, [127, 64, 23, 22]),
            (last, [127, 128, 64, 64]),
        ] {
            assert_eq!(loopback_of(process), IpAddr::from(expected), "{process}");
        }
    }

    #[test]
    fn nobody_answers_at_a_refusing_address() {
        let address = Address::from(refusing().unwrap());
        let error = address.connect(Duration::from_secs(10)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
