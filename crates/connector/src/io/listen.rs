//! Binding a connector's listeners, with the options that their connections inherit.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::time::Duration;

use catamaran_transport::{TcpOptions, UnixOptions, listen_tcp, listen_unix};
use socket2::{SockAddr, Socket, TcpKeepalive};

use crate::StartError;
use crate::config::{Address, Config, Listener, Protocol};
use crate::conn::Peer;

/// A bound listener, with its sockets.
#[derive(Debug)]
pub(crate) struct BoundListener {
    /// The listener as configured, but with the port that the system chose.
    pub(crate) listener: Listener,
    /// The listening sockets, one for each worker.
    pub(crate) sockets: Vec<Socket>,
    pub(crate) file: Option<SocketFile>,
}

/// The file of a Unix socket, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct SocketFile(catamaran_transport::SocketFile);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // The error cannot be reported here: the connector has ended.
        let _ = self.0.remove();
    }
}

/// The local address of the connections of a listener.
#[derive(Clone, Copy, Debug)]
pub(super) enum LocalAddress {
    Bound(SocketAddr),
    /// The listener is bound to a wildcard, so each connection has to be asked.
    OfConnection,
    /// The listener is a Unix socket.
    Unix,
}

impl LocalAddress {
    pub(super) fn of(listener: &Listener) -> Self {
        match &listener.address {
            Address::Tcp(address) if address.ip().is_unspecified() => Self::OfConnection,
            Address::Tcp(address) => Self::Bound(*address),
            Address::Unix(_) => Self::Unix,
        }
    }

    /// The addresses of an accepted socket. Asks it for the peer's if `remote` is `None`.
    ///
    /// # Errors
    /// The peer has left already.
    pub(super) fn peer(self, socket: &Socket, remote: Option<SockAddr>) -> io::Result<Peer> {
        let local = match self {
            Self::Bound(address) => address,
            Self::OfConnection => tcp_address(&socket.local_addr()?)?,
            Self::Unix => return Ok(Peer::Unix),
        };
        let peer_address = match remote {
            Some(address) => address,
            None => socket.peer_addr()?,
        };
        let remote = tcp_address(&peer_address)?;
        Ok(Peer::Tcp { remote, local })
    }
}

fn tcp_address(address: &SockAddr) -> io::Result<SocketAddr> {
    Ok(address.as_socket().ok_or(ErrorKind::NotConnected)?)
}

/// Binds `listener` once for each of `workers`, with the backlog and permissions of `config`.
pub(crate) fn bind(
    listener: &Listener,
    workers: usize,
    config: &Config,
) -> Result<BoundListener, StartError> {
    let backlog = i32::try_from(config.accept_count).unwrap_or(i32::MAX);
    let to_start_error = |source: io::Error| match source.kind() {
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
            let options = TcpOptions {
                backlog,
                // `[::]` accepts IPv4, too.
                only_v6: false,
            };
            let (bound_address, sockets) =
                listen_tcp(*address, workers, options).map_err(to_start_error)?;
            for socket in &sockets {
                set_options(socket, listener.protocol);
            }
            Ok(BoundListener {
                listener: Listener {
                    address: Address::Tcp(bound_address),
                    ..listener.clone()
                },
                sockets,
                file: None,
            })
        }
        Address::Unix(path) => {
            // `listen_unix` replaces an old socket; any other file may be of value.
            if fs::symlink_metadata(path).is_ok_and(|file| !file.file_type().is_socket()) {
                return Err(StartError::NotASocket { path: path.clone() });
            }
            let options = UnixOptions {
                backlog,
                mode: config.unix_socket_mode.bits(),
            };
            let (file, sockets) = listen_unix(path, workers, options).map_err(to_start_error)?;
            Ok(BoundListener {
                listener: listener.clone(),
                sockets,
                file: Some(SocketFile(file)),
            })
        }
    }
}

/// Sets options that connections inherit from their listening socket, so that none costs a call
/// of its own.
///
/// Small responses leave at once. AJP connections may be idle without limit, so TCP keepalive
/// detects a front that vanished.
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
