//! Sockets that clients connect to.
//!
//! Each worker has a TCP socket of its own on the same port (SO_REUSEPORT), so that the kernel
//! spreads connections and workers share nothing. A Unix socket cannot be shared so; there the
//! workers accept from duplicates of one.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::{Path, PathBuf};

use socket2::{Domain, Protocol, Socket, Type};
use thiserror::Error;

use crate::config::ListenAddress;

/// A listener's address as bound, port 0 resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundAddress {
    /// HTTP over TCP.
    Tcp(SocketAddr),
    /// HTTP over a Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for BoundAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "http://{address}"),
            Self::Unix(path) => write!(f, "http+unix:{}", path.display()),
        }
    }
}

/// A listener that cannot be had.
#[derive(Debug, Error)]
pub enum BindError {
    /// Another program listens there.
    #[error(
        "cannot listen on {address}: the address is already in use; stop the other program or \
         choose another port"
    )]
    InUse {
        /// The address asked for.
        address: String,
    },
    /// Ports below 1024 need a privilege.
    #[error(
        "cannot listen on {address}: permission denied; choose a port of 1024 or more, or grant \
         CAP_NET_BIND_SERVICE"
    )]
    Denied {
        /// The address asked for.
        address: String,
    },
    /// Anything else the system refuses.
    #[error("cannot listen on {address}: {source}")]
    Other {
        /// The address asked for.
        address: String,
        /// The system's reason.
        source: io::Error,
    },
}

/// One listener's sockets, one for each worker.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) address: BoundAddress,
    pub(crate) sockets: Sockets,
}

#[derive(Debug)]
pub(crate) enum Sockets {
    Tcp(Vec<std::net::TcpListener>),
    Unix(Vec<StdUnixListener>),
}

/// Binds a listener for so many workers.
pub(crate) fn bind(address: &ListenAddress, workers: usize) -> Result<Bound, BindError> {
    match address {
        ListenAddress::Tcp(tcp) => bind_tcp(*tcp, workers).map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => BindError::InUse {
                address: tcp.to_string(),
            },
            io::ErrorKind::PermissionDenied => BindError::Denied {
                address: tcp.to_string(),
            },
            _ => BindError::Other {
                address: tcp.to_string(),
                source,
            },
        }),
        ListenAddress::Unix(path) => {
            let address = path.display().to_string();
            bind_unix(path, workers).map_err(|source| match source.kind() {
                io::ErrorKind::AddrInUse => BindError::InUse { address },
                _ => BindError::Other { address, source },
            })
        }
    }
}

fn bind_tcp(address: SocketAddr, workers: usize) -> io::Result<Bound> {
    // With SO_REUSEPORT a second front would silently take half of the clients, so a plain socket
    // asks first whether the port is free.
    drop(tcp_socket(address, false)?);
    let first = tcp_socket(address, true)?;
    let bound = first.local_addr()?.as_socket().unwrap_or(address);
    let mut sockets = vec![first.into()];
    for _ in 1..workers {
        sockets.push(tcp_socket(bound, true)?.into());
    }
    Ok(Bound {
        address: BoundAddress::Tcp(bound),
        sockets: Sockets::Tcp(sockets),
    })
}

fn tcp_socket(address: SocketAddr, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    // Connections of an earlier run in TIME_WAIT are no reason to refuse.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

fn bind_unix(path: &Path, workers: usize) -> io::Result<Bound> {
    remove_stale(path)?;
    let first = StdUnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660))?;
    first.set_nonblocking(true)?;
    let mut sockets = Vec::with_capacity(workers);
    for _ in 1..workers {
        sockets.push(first.try_clone()?);
    }
    sockets.push(first);
    let address = BoundAddress::Unix(path.to_owned());
    Ok(Bound {
        address,
        sockets: Sockets::Unix(sockets),
    })
}

/// Removes a socket that nobody listens on, and nothing else.
fn remove_stale(path: &Path) -> io::Result<()> {
    let is_socket = std::fs::metadata(path).is_ok_and(|it| it.file_type().is_socket());
    if !is_socket {
        return Ok(());
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path)
        }
        _ => Err(io::ErrorKind::AddrInUse.into()),
    }
}

/// Connections the kernel keeps for us to accept; it caps this at `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(address: &str) -> ListenAddress {
        ListenAddress::Tcp(address.parse().expect("an address"))
    }

    #[test]
    fn each_worker_has_a_socket_on_the_same_port() {
        let bound = bind(&tcp("127.0.0.1:0"), 3).expect("a free port");
        let Sockets::Tcp(sockets) = &bound.sockets else {
            panic!("TCP sockets")
        };
        for socket in sockets {
            let address = BoundAddress::Tcp(socket.local_addr().expect("bound"));
            assert_eq!(address, bound.address);
        }
        assert_eq!(sockets.len(), 3);
    }

    #[test]
    fn a_port_in_use_is_said_plainly() {
        let bound = bind(&tcp("127.0.0.1:0"), 1).expect("a free port");
        let BoundAddress::Tcp(address) = bound.address else {
            panic!("a TCP address")
        };
        let error = bind(&ListenAddress::Tcp(address), 1).expect_err("in use");
        assert!(matches!(error, BindError::InUse { .. }), "{error}");
        assert!(error.to_string().contains(&address.to_string()));
    }

    #[test]
    fn a_stale_unix_socket_is_replaced_and_a_live_one_is_not() {
        let directory = tempfile::tempdir().expect("a directory");
        let address = ListenAddress::Unix(directory.path().join("front.sock"));
        drop(bind(&address, 2).expect("free"));
        let live = bind(&address, 2).expect("stale");
        assert!(matches!(bind(&address, 2), Err(BindError::InUse { .. })));
        drop(live);
    }

    #[test]
    fn another_file_is_never_removed() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("precious");
        std::fs::write(&path, "data").expect("written");
        assert!(bind(&ListenAddress::Unix(path.clone()), 1).is_err());
        assert_eq!(std::fs::read_to_string(path).expect("still there"), "data");
    }
}
