//! Listening sockets of an address, one for each worker.
//!
//! The workers' TCP sockets share the port with SO_REUSEPORT: the kernel spreads the connections, and
//! the workers share nothing. The first one is bound *without* that option, because otherwise a
//! second process of the same user could join the port unnoticed and take half of the clients. A Unix
//! socket cannot be shared this way; there the workers accept from duplicates of one socket.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// Options for listening on TCP.
#[derive(Clone, Copy, Debug)]
pub struct TcpOptions {
    /// The most connections that the kernel queues until they are accepted, at most
    /// `net.core.somaxconn`.
    pub backlog: i32,
    /// Whether an IPv6 socket accepts no IPv4 clients (IPV6_V6ONLY). Otherwise one on `[::]` accepts
    /// both.
    pub only_v6: bool,
}

/// Options for listening on a Unix socket.
#[derive(Clone, Copy, Debug)]
pub struct UnixOptions {
    /// The most connections that the kernel queues; see [`TcpOptions::backlog`].
    pub backlog: i32,
    /// The permissions of the file, as `chmod` takes them.
    pub mode: u32,
}

/// Opens a socket for each of `workers` workers, all bound to the port that the first one has. They
/// listen and do not block. Returns the address with the port that the system chose for port 0.
///
/// # Errors
/// `AddrInUse` if any socket listens there; otherwise the system's error.
pub fn listen_tcp(
    address: SocketAddr,
    workers: usize,
    options: TcpOptions,
) -> io::Result<(SocketAddr, Vec<Socket>)> {
    let first = bind_tcp(address, SharedPort::No, options)?;
    // The port is this process's own from here on, so further sockets may share it.
    first.set_reuse_port(true)?;
    let bound_address = first.local_addr()?.as_socket().unwrap_or(address);
    let mut sockets = vec![first];
    while sockets.len() < workers {
        sockets.push(bind_tcp(bound_address, SharedPort::Yes, options)?);
    }
    for socket in &sockets {
        socket.listen(options.backlog)?;
    }
    Ok((bound_address, sockets))
}

/// Opens one more socket on a port whose sockets share it.
///
/// # Errors
/// The system's, for instance for a port below 1024 without the privilege for it.
pub fn join_tcp(address: SocketAddr, options: TcpOptions) -> io::Result<Socket> {
    let socket = bind_tcp(address, SharedPort::Yes, options)?;
    socket.listen(options.backlog)?;
    Ok(socket)
}

/// Whether a socket may share its port with others (SO_REUSEPORT).
#[derive(Clone, Copy, PartialEq, Eq)]
enum SharedPort {
    No,
    Yes,
}

fn bind_tcp(address: SocketAddr, shared: SharedPort, options: TcpOptions) -> io::Result<Socket> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    // Connections of an earlier run in TIME_WAIT must not make this fail.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared == SharedPort::Yes)?;
    if address.is_ipv6() {
        socket.set_only_v6(options.only_v6)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Opens a socket for each of `workers` workers, all duplicates of one. They listen and do not block.
/// A socket file that a process left behind is replaced.
///
/// # Errors
/// `AddrInUse` if a process listens there, or if the path is not a socket; otherwise the system's
/// error.
pub fn listen_unix(
    path: &Path,
    workers: usize,
    options: UnixOptions,
) -> io::Result<(SocketFile, Vec<Socket>)> {
    let address = SockAddr::unix(path)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    if let Err(error) = socket.bind(&address) {
        if error.kind() != ErrorKind::AddrInUse || !is_abandoned(path, &address)? {
            return Err(error);
        }
        fs::remove_file(path)?;
        socket.bind(&address)?;
    }
    // Before `listen`, so that nobody connects while the mode is still that of the umask.
    fs::set_permissions(path, Permissions::from_mode(options.mode))?;
    socket.set_nonblocking(true)?;
    socket.listen(options.backlog)?;
    let mut sockets = vec![socket];
    while sockets.len() < workers {
        sockets.push(sockets[0].try_clone()?);
    }
    Ok((SocketFile::at(path)?, sockets))
}

/// Whether no process listens on a socket file any more.
fn is_abandoned(path: &Path, address: &SockAddr) -> io::Result<bool> {
    // Connecting to an ordinary file is refused in the same way, and it must not be removed.
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        return Ok(false);
    }
    let probe = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    probe.set_nonblocking(true)?;
    let is_refused = |error: io::Error| error.kind() == ErrorKind::ConnectionRefused;
    Ok(probe.connect(address).is_err_and(is_refused))
}

/// The file of a Unix socket, which is distinguished from a later file at the same path.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl SocketFile {
    /// The file that is at this path now.
    ///
    /// # Errors
    /// There is no file, or it cannot be examined.
    pub fn at(path: &Path) -> io::Result<Self> {
        let metadata = fs::symlink_metadata(path)?;
        Ok(Self {
            path: path.to_owned(),
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file, unless it is gone or another one took its place.
    ///
    /// # Errors
    /// The system does not permit it.
    pub fn remove(&self) -> io::Result<()> {
        match Self::at(&self.path) {
            Ok(file) if file.device == self.device && file.inode == self.inode => {
                fs::remove_file(&self.path)
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TCP: TcpOptions = TcpOptions {
        backlog: 16,
        only_v6: true,
    };

    const UNIX: UnixOptions = UnixOptions {
        backlog: 16,
        mode: 0o660,
    };

    fn free_port() -> SocketAddr {
        "127.0.0.1:0".parse().unwrap()
    }

    #[test]
    fn each_worker_has_a_socket_on_the_same_port() {
        let (address, sockets) = listen_tcp(free_port(), 3, TCP).unwrap();
        let more = join_tcp(address, TCP).unwrap();
        assert_eq!(sockets.len(), 3);
        for socket in sockets.iter().chain([&more]) {
            assert_eq!(socket.local_addr().unwrap().as_socket(), Some(address));
            assert!(socket.reuse_port().unwrap() && socket.is_listener().unwrap());
        }
    }

    #[test]
    fn a_second_listener_never_joins_a_port_unnoticed() {
        let (address, _sockets) = listen_tcp(free_port(), 2, TCP).unwrap();
        let second = listen_tcp(address, 2, TCP).map(|_| ());
        assert_eq!(second.unwrap_err().kind(), ErrorKind::AddrInUse);
    }

    #[test]
    fn a_file_left_behind_is_replaced_and_a_live_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.sock");
        drop(listen_unix(&path, 2, UNIX).unwrap());
        let (file, sockets) = listen_unix(&path, 2, UNIX).unwrap();
        assert_eq!((file.path(), sockets.len()), (&*path, 2));
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, UNIX.mode);
        let second = listen_unix(&path, 2, UNIX).map(|_| ());
        assert_eq!(second.unwrap_err().kind(), ErrorKind::AddrInUse);
    }

    #[test]
    fn another_file_is_never_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("precious");
        fs::write(&path, "data").unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for taken in [&path, &link] {
            let refused = listen_unix(taken, 1, UNIX).map(|_| ());
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::AddrInUse);
        }
        assert_eq!(fs::read_to_string(path).unwrap(), "data");
    }

    #[test]
    fn only_its_own_file_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.sock");
        let (old, _sockets) = listen_unix(&path, 1, UNIX).unwrap();
        fs::rename(&path, directory.path().join("old.sock")).unwrap();
        let (new, _sockets) = listen_unix(&path, 1, UNIX).unwrap();
        old.remove().unwrap();
        assert!(path.exists());
        new.remove().unwrap();
        assert!(!path.exists());
        new.remove().unwrap();
    }
}
