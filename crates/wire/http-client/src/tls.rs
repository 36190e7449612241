//! TLS of a client's connection: what its socket carries in place of HTTP in clear text.
//!
//! It only converts bytes; the client reads and writes them, with its deadlines.

use std::io::{self, ErrorKind};

use bytes::{Buf as _, BytesMut};
use catamaran_tls::{Connection, TlsError, Trust};

/// The TLS state of a client's connection.
#[derive(Debug)]
pub(crate) struct TlsSession {
    connection: Connection,
    /// Received bytes of an incomplete record.
    incoming: Vec<u8>,
    /// Plaintext that was not read yet.
    plain: BytesMut,
    /// Whether the handshake is over.
    is_open: bool,
}

impl TlsSession {
    pub(crate) fn new(trust: &Trust) -> io::Result<Self> {
        Ok(Self {
            connection: Connection::client(trust).map_err(broken)?,
            incoming: Vec::new(),
            plain: BytesMut::new(),
            is_open: false,
        })
    }

    /// Whether the handshake is over.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Takes bytes of the server, and returns bytes for it. Without bytes, it begins the handshake.
    pub(crate) fn receive(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        self.incoming.extend_from_slice(bytes);
        let mut out = Vec::new();
        let received = self
            .connection
            .receive(&mut self.incoming, &mut self.plain, &mut out)
            .map_err(broken)?;
        self.incoming.drain(..received.consumed);
        self.is_open = received.is_open;
        Ok(out)
    }

    /// Encrypts bytes for the server.
    pub(crate) fn seal(&mut self, plain: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        let sealed = self.connection.seal(plain, &mut self.incoming, &mut out);
        sealed.map_err(broken)?;
        Ok(out)
    }

    /// Moves decrypted bytes to `buffer`, and returns their number. It is 0 if the server has announced its end;
    /// `None`: the server must send more first.
    pub(crate) fn take(&mut self, buffer: &mut [u8]) -> Option<usize> {
        if self.plain.is_empty() {
            return self.connection.is_peer_closed().then_some(0);
        }
        let len = self.plain.len().min(buffer.len());
        buffer[..len].copy_from_slice(&self.plain[..len]);
        self.plain.advance(len);
        Some(len)
    }
}

fn broken(error: TlsError) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error)
}
