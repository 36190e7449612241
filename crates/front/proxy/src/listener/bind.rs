//! Makes the sockets of a listener: binds them, or takes those of the previous process.
//!
//! All inherited sockets are kept, even if there are more than workers: each has a queue of its
//! own, in which clients may be waiting.

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use catamaran_transport::{SocketFile, TcpOptions, UnixOptions, join_tcp, listen_tcp, listen_unix};
use socket2::Socket;

use super::{BindError, BoundAddress};
use crate::config::{Config, ListenAddress};

/// A listener's sockets, at least one for each worker.
#[derive(Debug)]
pub(crate) struct BoundListener {
    pub(crate) address: BoundAddress,
    pub(crate) sockets: Vec<Socket>,
    /// The file of the socket, if it is a Unix socket.
    pub(crate) file: Option<SocketFile>,
}

/// The ports on which a configuration has IPv4 listeners. On these ports a listener on `[::]`
/// accepts IPv6 only; on others it accepts both, as `Listen 80` of httpd does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ipv4Ports(HashSet<u16>);

impl Ipv4Ports {
    /// Collects the ports of all IPv4 listeners of a configuration, including the admin listener's.
    pub(crate) fn of(config: &Config) -> Self {
        let ipv4 = config.tcp_addresses().filter(SocketAddr::is_ipv4);
        Self(ipv4.map(|address| address.port()).collect())
    }

    fn options(&self, address: SocketAddr) -> TcpOptions {
        let takes_both = address.ip().is_unspecified() && !self.0.contains(&address.port());
        TcpOptions {
            backlog: BACKLOG,
            only_v6: !takes_both,
        }
    }
}

/// Binds a listener at `address`, with a socket for each worker.
pub(crate) fn bind(
    address: &ListenAddress,
    beside: &Ipv4Ports,
    workers: usize,
) -> Result<BoundListener, BindError> {
    bind_as(address, beside, workers, UNIX.mode)
}

/// Binds like [`bind`], with `mode` as the permissions of a Unix socket's file.
pub(crate) fn bind_as(
    address: &ListenAddress,
    beside: &Ipv4Ports,
    workers: usize,
    mode: u32,
) -> Result<BoundListener, BindError> {
    let unix_options = UnixOptions { mode, ..UNIX };
    let bound = match address {
        ListenAddress::Tcp(tcp) => {
            let options = beside.options(*tcp);
            listen_tcp(*tcp, workers, options).map(|(bound_at, sockets)| BoundListener {
                address: BoundAddress::Tcp(bound_at),
                sockets,
                file: None,
            })
        }
        ListenAddress::Unix(path) => {
            listen_unix(path, workers, unix_options).map(|(file, sockets)| BoundListener {
                address: BoundAddress::Unix(path.clone()),
                sockets,
                file: Some(file),
            })
        }
    };
    bound.map_err(|source| bind_error(address, source))
}

/// Takes over the sockets of a listener that another process bound, and adds more if there are
/// fewer than `workers`.
pub(crate) fn inherit(
    address: &ListenAddress,
    sockets: Vec<OwnedFd>,
    workers: usize,
) -> Result<BoundListener, BindError> {
    let sockets = sockets.into_iter().map(Socket::from).collect();
    adopt(address, sockets, workers).map_err(|source| bind_error(address, source))
}

/// The error for `source`, for which the listener cannot be bound at `address`.
fn bind_error(address: &ListenAddress, source: io::Error) -> BindError {
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

/// Makes a listener of the inherited `sockets`, and adds sockets until there are `workers` of them.
fn adopt(
    address: &ListenAddress,
    mut sockets: Vec<Socket>,
    workers: usize,
) -> io::Result<BoundListener> {
    let first = sockets.first().ok_or(io::ErrorKind::NotFound)?;
    let (address, file) = match address {
        ListenAddress::Tcp(tcp) => {
            let bound = first.local_addr()?.as_socket().unwrap_or(*tcp);
            (BoundAddress::Tcp(bound), None)
        }
        ListenAddress::Unix(path) => {
            // Without its file the socket still serves; nothing is removed at the end then.
            let file = SocketFile::at(path).ok();
            (BoundAddress::Unix(path.clone()), file)
        }
    };
    while sockets.len() < workers {
        let more = match &address {
            // A process that inherits a port below 1024 may lack the privilege to bind it. After any error a duplicate
            // serves: its worker then shares the queue of the first socket.
            BoundAddress::Tcp(bound) => {
                let options = TcpOptions {
                    backlog: BACKLOG,
                    only_v6: bound.is_ipv6() && sockets[0].only_v6()?,
                };
                join_tcp(*bound, options).or_else(|_| sockets[0].try_clone())?
            }
            BoundAddress::Unix(_) => sockets[0].try_clone()?,
        };
        sockets.push(more);
    }
    Ok(BoundListener {
        address,
        sockets,
        file,
    })
}

const UNIX: UnixOptions = UnixOptions {
    backlog: BACKLOG,
    mode: 0o660,
};

/// The connections that the kernel queues until they are accepted; it caps this at
/// `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(address: &str) -> ListenAddress {
        ListenAddress::Tcp(address.parse().expect("an address"))
    }

    #[test]
    fn a_port_in_use_is_said_plainly() {
        let bound = bind(&tcp("127.0.0.1:0"), &Ipv4Ports::default(), 1).expect("a free port");
        let BoundAddress::Tcp(address) = bound.address else {
            panic!("a TCP address")
        };
        let error =
            bind(&ListenAddress::Tcp(address), &Ipv4Ports::default(), 1).expect_err("in use");
        assert!(matches!(error, BindError::InUse { .. }), "{error}");
        assert!(error.to_string().contains(&address.to_string()));
    }

    #[test]
    fn all_of_ipv6_is_all_of_ipv4_too_unless_another_listener_has_that() {
        let port = |bound: &BoundListener| match bound.address {
            BoundAddress::Tcp(address) => address.port(),
            BoundAddress::Unix(_) => panic!("a TCP address"),
        };
        let reaches = |bound: &BoundListener| {
            let address = SocketAddr::from(([127, 0, 0, 1], port(bound)));
            std::net::TcpStream::connect(address).is_ok()
        };
        let Ok(both) = bind(&tcp("[::]:0"), &Ipv4Ports::default(), 2) else {
            // A machine without IPv6.
            return;
        };
        assert!(reaches(&both));
        let beside = Ipv4Ports(HashSet::from([0]));
        let alone = bind(&tcp("[::]:0"), &beside, 2).expect("a free port");
        assert!(!reaches(&alone));
    }

    #[test]
    fn inherited_sockets_are_all_kept_and_filled_up() {
        for (before, workers, after) in [(3, 2, 3), (1, 4, 4)] {
            let address = tcp("127.0.0.1:0");
            let old = bind(&address, &Ipv4Ports::default(), before).expect("a free port");
            let sockets = old.sockets.into_iter().map(OwnedFd::from).collect();
            let new = inherit(&address, sockets, workers).expect("inherited");
            assert_eq!(new.address, old.address);
            assert_eq!(new.sockets.len(), after);
        }
    }
}
