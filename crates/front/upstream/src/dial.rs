//! Opening a connection to a backend within its time, the handshake of TLS included.

use std::future::poll_fn;
use std::io;
use std::time::Duration;

use bytes::BytesMut;
use catamaran_tls::Trust;
use catamaran_transport::{HandshakeError, Stream, TlsStream};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{sleep, timeout};

use crate::config::Address;
use crate::error::LeaseError;

/// Connects to one end of a backend. A name's addresses are tried in the resolver's order until one answers;
/// `limit` bounds resolution, all attempts and the handshake together.
pub(crate) async fn dial(
    (address, trust): (&Address, Option<&Trust>),
    limit: Duration,
) -> Result<Stream, LeaseError> {
    let dialling = async {
        let connected = connect(address).await;
        let stream = connected.map_err(|source| LeaseError::Dial { source })?;
        match trust {
            None => Ok(stream),
            // Boxed: most backends have no TLS, and a dial is part of each exchange's future.
            Some(trust) => Box::pin(secure(stream, trust))
                .await
                .map_err(|source| LeaseError::Handshake { source }),
        }
    };
    match timeout(limit, dialling).await {
        Ok(dialled) => dialled,
        Err(_) => Err(LeaseError::DialTimeout { limit }),
    }
}

/// Makes the handshake of TLS.
async fn secure(stream: Stream, trust: &Trust) -> Result<Stream, HandshakeError> {
    let mut stream = TlsStream::client(stream, trust)?;
    let mut early = BytesMut::new();
    poll_fn(|cx| stream.poll_handshake(cx, &mut early)).await?;
    match early.is_empty() {
        true => Ok(Stream::Tls(Box::new(stream))),
        // No answer may come before its request.
        false => Err(io::Error::from(io::ErrorKind::InvalidData).into()),
    }
}

async fn connect(address: &Address) -> io::Result<Stream> {
    match address {
        Address::Tcp { host, port } => {
            let stream = TcpStream::connect((host.as_str(), *port)).await?;
            stream.set_nodelay(true)?;
            Ok(Stream::Tcp(stream))
        }
        Address::Unix(path) => loop {
            match UnixStream::connect(path).await {
                // The backlog is full. Unlike for TCP, the kernel neither waits for room (unix(7),
                // EAGAIN) nor reports when there is some. Tomcat's backlog is 100.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    sleep(BACKLOG_PAUSE).await;
                }
                connected => return Ok(Stream::Unix(connected?)),
            }
        },
    }
}

/// How long to wait before the next attempt on a Unix socket with a full backlog.
const BACKLOG_PAUSE: Duration = Duration::from_millis(5);

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
            tokio::join!(dial((&address, None), Duration::from_secs(30)), async {
                listener.accept()
            });
        accepted.unwrap();
        dialled.unwrap();
    }
}
