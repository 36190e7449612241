//! Binding a connector's listeners, with the options that their connections inherit.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::time::Duration;

use catamaran_transport::{TcpOptions, UnixOptions, listen_tcp, listen_unix};
use socket2::{Socket, TcpKeepalive};

use crate::StartError;
use crate::config::{Address, Config, Listener, Protocol};

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

/// Binds `listener` once for each of `workers`, with the backlog and permissions of `config`.
pub(crate) fn bind(
    listener: &Listener,
    workers: usize,
    config: &Config,
) -> Result<BoundListener, StartError> {
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
            let options = TcpOptions {
                backlog,
                only_v6: false,
            };
            let (address, sockets) = listen_tcp(*address, workers, options).map_err(failed)?;
            for socket in &sockets {
                set_options(socket, listener.protocol);
            }
            let listener = Listener {
                address: Address::Tcp(address),
                ..listener.clone()
            };
            Ok(BoundListener {
                listener,
                sockets,
                file: None,
            })
        }
        Address::Unix(path) => {
            if fs::symlink_metadata(path).is_ok_and(|file| !file.file_type().is_socket()) {
                return Err(StartError::NotASocket { path: path.clone() });
            }
            let options = UnixOptions {
                backlog,
                mode: config.unix_socket_mode.bits(),
            };
            let (file, sockets) = listen_unix(path, workers, options).map_err(failed)?;
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
