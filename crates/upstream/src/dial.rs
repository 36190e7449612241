//! Opening a connection to a backend within its time.

use std::io;
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use crate::config::Address;
use crate::error::LeaseError;
use crate::stream::Stream;

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
        Address::Unix(path) => Ok(Stream::Unix(UnixStream::connect(path).await?)),
    }
}
