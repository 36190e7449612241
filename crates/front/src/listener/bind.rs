//! Getting the sockets of a listener: bound anew, or inherited from the process before this one.
//!
//! Each worker has a TCP socket of its own on the same port (SO_REUSEPORT), so that the kernel
//! spreads connections and workers share nothing. A Unix socket cannot be shared so; there the
//! workers accept from duplicates of one. Inherited sockets are all kept, whatever their number:
//! each has a queue of its own, in which clients may be waiting.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::{Path, PathBuf};

use socket2::{Domain, Protocol, Socket, Type};

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

/// The file of a Unix socket, told apart from one that took its place later.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

/// Binds a listener for so many workers.
pub(crate) fn bind(address: &ListenAddress, workers: usize) -> Result<Bound, BindError> {
    let bound = match address {
        ListenAddress::Tcp(tcp) => bind_tcp(*tcp, workers),
        ListenAddress::Unix(path) => bind_unix(path, workers),
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

fn bind_tcp(address: SocketAddr, workers: usize) -> io::Result<Bound> {
    // With SO_REUSEPORT a second front would silently take half of the clients, so a plain socket
    // asks first whether the port is free.
    drop(tcp_socket(address, false)?);
    let first = tcp_socket(address, true)?;
    adopt(&ListenAddress::Tcp(address), vec![first], workers)
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
                tcp_socket(*bound, true).or_else(|_| sockets[0].try_clone())?
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
    let listener = StdUnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660))?;
    listener.set_nonblocking(true)?;
    let sockets = vec![Socket::from(OwnedFd::from(listener))];
    adopt(&ListenAddress::Unix(path.to_owned()), sockets, workers)
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

impl SocketFile {
    fn at(path: &Path) -> io::Result<Self> {
        let metadata = std::fs::symlink_metadata(path)?;
        Ok(Self {
            path: path.to_owned(),
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    /// Removes the file, unless another one took its place.
    pub(crate) fn remove(&self) {
        let is_ours =
            Self::at(&self.path).is_ok_and(|it| (it.device, it.inode) == (self.device, self.inode));
        if is_ours && let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "cannot remove the socket's file");
        }
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
        for socket in &bound.sockets {
            let address = socket.local_addr().expect("bound").as_socket();
            assert_eq!(address.map(BoundAddress::Tcp), Some(bound.address.clone()));
        }
        assert_eq!(bound.sockets.len(), 3);
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

    #[test]
    fn only_its_own_file_is_removed() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("front.sock");
        let old = bind(&ListenAddress::Unix(path.clone()), 1).expect("free");
        let file = old.file.expect("a file");
        std::fs::rename(&path, directory.path().join("old.sock")).expect("moved");
        let new = bind(&ListenAddress::Unix(path.clone()), 1).expect("free again");
        file.remove();
        assert!(path.exists());
        new.file.expect("a file").remove();
        assert!(!path.exists());
    }
}
