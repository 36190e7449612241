//! Binding: from an address to listening sockets, one for each worker.
//!
//! TCP listeners of the workers share the port with SO_REUSEPORT, so the kernel spreads connections
//! and no lock is shared. The first one is bound *without* that option: otherwise a second process
//! of the same user could join the port unnoticed instead of hearing that it is in use.

use std::{
    fs,
    io::{self, ErrorKind},
    net::SocketAddr,
    os::unix::fs::{FileTypeExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use socket2::{Domain, SockAddr, Socket, TcpKeepalive, Type};

use crate::{
    StartError,
    config::{Address, Config, Listener, Protocol, UnixSocketMode},
};

/// A listener that is bound.
#[derive(Debug)]
pub(crate) struct Bound {
    /// As configured, but with the port that the system chose.
    pub(crate) listener: Listener,
    /// One for each worker.
    pub(crate) sockets: Vec<Socket>,
    pub(crate) file: Option<SocketFile>,
}

/// The file of a Unix socket; removed when dropped.
#[derive(Debug)]
pub(crate) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Gone already, or no longer permitted: there is nobody left to tell.
        let _ = fs::remove_file(&self.0);
    }
}

/// Binds `listener` for `workers` workers, with the backlog and permissions of `config`.
pub(crate) fn bind(
    listener: &Listener,
    workers: usize,
    config: &Config,
) -> Result<Bound, StartError> {
    let backlog = i32::try_from(config.accept_count).unwrap_or(i32::MAX);
    let failed = |source: io::Error| match source.kind() {
        ErrorKind::AddrInUse => StartError::AddressInUse {
            listener: listener.clone(),
        },
        _ => StartError::Listen {
            listener: listener.clone(),
            source,
        },
    };
    match &listener.address {
        Address::Tcp(address) => {
            let (address, sockets) = bind_tcp(*address, workers, backlog).map_err(failed)?;
            for socket in &sockets {
                set_options(socket, listener.protocol);
            }
            let listener = Listener {
                address: Address::Tcp(address),
                ..listener.clone()
            };
            Ok(Bound {
                listener,
                sockets,
                file: None,
            })
        }
        Address::Unix(path) => {
            if fs::symlink_metadata(path).is_ok_and(|file| !file.file_type().is_socket()) {
                return Err(StartError::NotASocket { path: path.clone() });
            }
            let (file, sockets) =
                bind_unix(path, config.unix_socket_mode, workers, backlog).map_err(failed)?;
            Ok(Bound {
                listener: listener.clone(),
                sockets,
                file: Some(file),
            })
        }
    }
}

fn bind_tcp(
    address: SocketAddr,
    workers: usize,
    backlog: i32,
) -> io::Result<(SocketAddr, Vec<Socket>)> {
    let open = |address: SocketAddr, join: bool| {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(join)?;
        socket.bind(&address.into())?;
        Ok::<_, io::Error>(socket)
    };
    let first = open(address, false)?;
    first.set_reuse_port(true)?;
    let address = first.local_addr()?.as_socket().unwrap_or(address);
    let mut sockets = vec![first];
    for _ in 1..workers {
        sockets.push(open(address, true)?);
    }
    for socket in &sockets {
        socket.set_nonblocking(true)?;
        socket.listen(backlog)?;
    }
    Ok((address, sockets))
}

/// Sets what connections inherit from the socket that accepted them, so that none costs a call.
///
/// Small responses leave at once. AJP connections may be idle for ever, so that a front that
/// vanished without a word is noticed only by probing.
fn set_options(socket: &Socket, protocol: Protocol) {
    // Both are improvements; a connection is served without them too.
    let _ = socket.set_tcp_nodelay(true);
    if protocol == Protocol::Ajp {
        let _ = socket.set_tcp_keepalive(&KEEPALIVE);
    }
}

const KEEPALIVE: TcpKeepalive = TcpKeepalive::new()
    .with_time(Duration::from_secs(60))
    .with_interval(Duration::from_secs(15))
    .with_retries(4);

/// Unix sockets have no SO_REUSEPORT: the workers share one.
fn bind_unix(
    path: &Path,
    mode: UnixSocketMode,
    workers: usize,
    backlog: i32,
) -> io::Result<(SocketFile, Vec<Socket>)> {
    let address = SockAddr::unix(path)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    if let Err(error) = socket.bind(&address) {
        if error.kind() != ErrorKind::AddrInUse || is_alive(&address)? {
            return Err(error);
        }
        fs::remove_file(path)?;
        socket.bind(&address)?;
    }
    let file = SocketFile(path.to_owned());
    // Before `listen`, so that nobody connects while the mode is still that of the umask.
    fs::set_permissions(path, fs::Permissions::from_mode(mode.bits()))?;
    socket.set_nonblocking(true)?;
    socket.listen(backlog)?;
    let mut sockets = vec![socket];
    for _ in 1..workers {
        sockets.push(sockets[0].try_clone()?);
    }
    Ok((file, sockets))
}

/// Whether somebody listens at a socket file, or it was only left behind.
fn is_alive(address: &SockAddr) -> io::Result<bool> {
    let probe = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    probe.set_nonblocking(true)?;
    Ok(match probe.connect(address) {
        Err(error) => error.kind() != ErrorKind::ConnectionRefused,
        Ok(()) => true,
    })
}
