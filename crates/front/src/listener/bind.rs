//! Making the sockets of a listener: bound here, or inherited from the previous process.
//!
//! Inherited sockets are all kept, whatever their number: each has a queue of its own, in which
//! clients may be waiting.

use std::io;
use std::os::fd::OwnedFd;

use catamaran_transport::{SocketFile, TcpOptions, UnixOptions, join_tcp, listen_tcp, listen_unix};
use socket2::Socket;

use super::{BindError, BoundAddress};
use crate::config::ListenAddress;

/// A listener's sockets, at least one for each worker.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) address: BoundAddress,
    pub(crate) sockets: Vec<Socket>,
    /// The file of a Unix socket.
    pub(crate) file: Option<SocketFile>,
}

/// Binds a listener for so many workers.
pub(crate) fn bind(address: &ListenAddress, workers: usize) -> Result<Bound, BindError> {
    bind_as(address, workers, UNIX.mode)
}

/// The same with the permissions of a Unix socket's file.
pub(crate) fn bind_as(
    address: &ListenAddress,
    workers: usize,
    mode: u32,
) -> Result<Bound, BindError> {
    let unix = UnixOptions { mode, ..UNIX };
    let bound = match address {
        ListenAddress::Tcp(tcp) => listen_tcp(*tcp, workers, TCP).map(|(tcp, sockets)| Bound {
            address: BoundAddress::Tcp(tcp),
            sockets,
            file: None,
        }),
        ListenAddress::Unix(path) => {
            listen_unix(path, workers, unix).map(|(file, sockets)| Bound {
                address: BoundAddress::Unix(path.clone()),
                sockets,
                file: Some(file),
            })
        }
    };
    bound.map_err(|source| refusal(address, source))
}

/// Takes over the sockets of a listener that another process bound, and adds what is missing for
/// so many workers.
pub(crate) fn inherit(
    address: &ListenAddress,
    sockets: Vec<OwnedFd>,
    workers: usize,
) -> Result<Bound, BindError> {
    let sockets = sockets.into_iter().map(Socket::from).collect();
    adopt(address, sockets, workers).map_err(|source| refusal(address, source))
}

fn refusal(address: &ListenAddress, source: io::Error) -> BindError {
    let is_tcp = matches!(address, ListenAddress::Tcp(_));
    let address = match address {
        ListenAddress::Tcp(tcp) => tcp.to_string(),
        ListenAddress::Unix(path) => path.display().to_string(),
    };
    match source.kind() {
        io::ErrorKind::AddrInUse => BindError::InUse { address },
        io::ErrorKind::PermissionDenied if is_tcp => BindError::Denied { address },
        _ => BindError::Other { address, source },
    }
}

fn adopt(address: &ListenAddress, mut sockets: Vec<Socket>, workers: usize) -> io::Result<Bound> {
    let first = sockets.first().ok_or(io::ErrorKind::NotFound)?;
    let (address, file) = match address {
        ListenAddress::Tcp(tcp) => {
            let bound = first.local_addr()?.as_socket().unwrap_or(*tcp);
            (BoundAddress::Tcp(bound), None)
        }
        ListenAddress::Unix(path) => {
            let file = SocketFile::at(path).ok();
            (BoundAddress::Unix(path.clone()), file)
        }
    };
    while sockets.len() < workers {
        let more = match &address {
            // Who inherits a port below 1024 may lack the privilege to bind it; a duplicate serves.
            BoundAddress::Tcp(bound) => {
                join_tcp(*bound, TCP).or_else(|_| sockets[0].try_clone())?
            }
            BoundAddress::Unix(_) => sockets[0].try_clone()?,
        };
        sockets.push(more);
    }
    Ok(Bound {
        address,
        sockets,
        file,
    })
}

const TCP: TcpOptions = TcpOptions {
    backlog: BACKLOG,
    only_v6: true,
};

const UNIX: UnixOptions = UnixOptions {
    backlog: BACKLOG,
    mode: 0o660,
};

/// Connections the kernel keeps for us to accept; it caps this at `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(address: &str) -> ListenAddress {
        ListenAddress::Tcp(address.parse().expect("an address"))
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
    fn inherited_sockets_are_all_kept_and_filled_up() {
        for (before, workers, after) in [(3, 2, 3), (1, 4, 4)] {
            let address = tcp("127.0.0.1:0");
            let old = bind(&address, before).expect("a free port");
            let sockets = old.sockets.into_iter().map(OwnedFd::from).collect();
            let new = inherit(&address, sockets, workers).expect("inherited");
            assert_eq!(new.address, old.address);
            assert_eq!(new.sockets.len(), after);
        }
    }
}
