//! Opens a connection to a backend within a time limit, including the TLS handshake.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use catamaran_tls::Trust;
use catamaran_transport::{HandshakeError, Stream, TlsStream};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::config::Address;
use crate::error::{LeaseError, Tried};
use crate::names::Name;

/// Connects to an address of a backend. If a name has several IP addresses, the next one is tried when the one
/// before has failed, or is silent for a while; the first connection wins. `limit` bounds the wait for the
/// resolver's first answer, all attempts and the handshake together. `name` is the address's name; `None`: it has
/// none.
pub(crate) async fn dial(
    address: &Address,
    trust: Option<&Trust>,
    name: Option<&Arc<Name>>,
    limit: Duration,
) -> Result<Stream, LeaseError> {
    let mut tried = Tried::default();
    let dialling = async {
        let stream = connect(address, name, &mut tried).await?;
        match trust {
            None => Ok(stream),
            // Boxed: most backends have no TLS, and a dial is part of each exchange's future.
            Some(trust) => Box::pin(secure(stream, trust))
                .await
                .map_err(|source| LeaseError::Handshake { source }),
        }
    };
    let error = match timeout(limit, dialling).await {
        Ok(Ok(stream)) => return Ok(stream),
        // `connect` leaves the addresses tried to this function, which borrows them until here.
        Ok(Err(LeaseError::Dial { source, .. })) => LeaseError::Dial { source, tried },
        Ok(Err(error)) => error,
        // Without an address to try, the time went by waiting for the resolver.
        Err(_) if name.is_some() && tried.is_empty() => LeaseError::Unresolved {
            reason: format!("no answer within {limit:?}"),
        },
        Err(_) => LeaseError::DialTimeout { limit, tried },
    };
    if let Some(name) = name {
        // The name is resolved again soon: its addresses may have changed.
        name.note_dial(None);
    }
    Err(error)
}

/// Completes the TLS handshake on a connection.
async fn secure(stream: Stream, trust: &Trust) -> Result<Stream, HandshakeError> {
    let mut stream = TlsStream::client(stream, trust)?;
    let mut early = BytesMut::new();
    poll_fn(|cx| stream.poll_handshake(cx, &mut early)).await?;
    if !early.is_empty() {
        // A backend must not send anything before the first request.
        return Err(io::Error::from(io::ErrorKind::InvalidData).into());
    }
    Ok(Stream::Tls(Box::new(stream)))
}

/// Connects without TLS. The addresses tried are added to `tried`, not to the error.
async fn connect(
    address: &Address,
    name: Option<&Arc<Name>>,
    tried: &mut Tried,
) -> Result<Stream, LeaseError> {
    let dial_error = |source| LeaseError::Dial {
        source,
        tried: Tried::default(),
    };
    match address {
        Address::Tcp { host, port } => {
            let resolved = match (name, host.parse::<IpAddr>()) {
                (Some(name), _) => name.addresses(*port).await,
                (None, Ok(ip)) => Ok(vec![SocketAddr::new(ip, *port)]),
                (None, Err(error)) => Err(error.to_string()),
            };
            let addresses = resolved.map_err(|reason| LeaseError::Unresolved { reason })?;
            let (stream, connected) = first_of(&addresses, tried).await.map_err(dial_error)?;
            stream.set_nodelay(true).map_err(dial_error)?;
            if let Some(name) = name
                && addresses.len() > 1
            {
                name.note_dial(Some(connected.ip()));
            }
            Ok(Stream::Tcp(stream))
        }
        Address::Unix(path) => loop {
            match UnixStream::connect(path).await {
                // The backlog is full. Unlike for TCP, the kernel neither waits for room (unix(7),
                // EAGAIN) nor reports when there is some. Tomcat's backlog is 100.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    sleep(BACKLOG_PAUSE).await;
                }
                connected => return Ok(Stream::Unix(connected.map_err(dial_error)?)),
            }
        },
    }
}

/// Returns the first connection that succeeds, and its address. The addresses are tried one after the other; the next
/// one is due when an attempt fails or is silent for [`NEXT_AFTER`] (RFC 8305, section 5). Adds those tried to `tried`.
async fn first_of(
    addresses: &[SocketAddr],
    tried: &mut Tried,
) -> io::Result<(TcpStream, SocketAddr)> {
    let mut untried = addresses.iter().copied();
    let mut last_error = io::Error::from(io::ErrorKind::AddrNotAvailable);
    // Dropping the set cancels the attempts that are still running.
    let mut attempts = JoinSet::new();
    loop {
        if let Some(address) = untried.next() {
            tried.0.push(address);
            if addresses.len() == 1 {
                // The usual case needs no task.
                return Ok((TcpStream::connect(address).await?, address));
            }
            attempts.spawn(async move { (TcpStream::connect(address).await, address) });
        }
        let ended = if untried.len() > 0 {
            match timeout(NEXT_AFTER, attempts.join_next()).await {
                Ok(ended) => ended,
                // The attempts are silent: the next address is tried beside them.
                Err(_) => continue,
            }
        } else {
            attempts.join_next().await
        };
        match ended {
            Some(Ok((Ok(stream), address))) => return Ok((stream, address)),
            Some(Ok((Err(error), _))) => last_error = error,
            // The task was cancelled, as the event loop ends.
            Some(Err(_)) => {}
            // All attempts have failed.
            None => return Err(last_error),
        }
    }
}

/// How long to wait before the next attempt on a Unix socket with a full backlog.
const BACKLOG_PAUSE: Duration = Duration::from_millis(5);

/// How long an attempt may be silent before the next address is tried beside it.
const NEXT_AFTER: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use socket2::{Domain, SockAddr, Socket, Type};

    use super::*;

    #[tokio::test]
    async fn a_full_backlog_of_a_unix_socket_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("backend.sock");
        let name = SockAddr::unix(&path).unwrap();
        let listener = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        listener.bind(&name).unwrap();
        listener.listen(1).unwrap();
        let mut waiting = Vec::new();
        loop {
            let socket = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
            socket.set_nonblocking(true).unwrap();
            match socket.connect(&name) {
                Ok(()) => waiting.push(socket),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        let address = Address::Unix(path);
        // The dialling is polled first and finds no room; then there is some.
        let (dialled, accepted) =
            tokio::join!(dial(&address, None, None, Duration::from_secs(30)), async {
                listener.accept()
            });
        accepted.unwrap();
        dialled.unwrap();
    }
}
