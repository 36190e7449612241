//! Opening a connection to a backend within its time.

use std::io;
use std::time::Duration;

use catamaran_transport::Stream;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{sleep, timeout};

use crate::config::Address;
use crate::error::LeaseError;

/// Connects to `address`. A name's addresses are tried in the resolver's order until one answers;
/// `limit` bounds resolution and all attempts together.
pub(crate) async fn dial(address: &Address, limit: Duration) -> Result<Stream, LeaseError> {
    match timeout(limit, connect(address)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(source)) => Err(LeaseError::Dial { source }),
        Err(_) => Err(LeaseError::DialTimeout { limit }),
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
        let (dialled, accepted) = tokio::join!(dial(&address, Duration::from_secs(30)), async {
            listener.accept()
        });
        accepted.unwrap();
        dialled.unwrap();
    }
}
