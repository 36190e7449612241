//! One end of a TLS connection, without a socket.

use bytes::BytesMut;
use catamaran_tls::{Connection, TlsError};

/// One end of a TLS connection without a socket: the connection, its input that is not used up, and its output.
///
/// [`End::receive`] asserts what must hold for every connection.
#[derive(Debug)]
pub struct End {
    /// The connection under test.
    pub connection: Connection,
    /// Received bytes of an incomplete record.
    pub rest: Vec<u8>,
    /// The plaintext received so far.
    pub plain: BytesMut,
    /// Bytes for the other end.
    pub out: Vec<u8>,
    /// Whether the handshake has ended.
    pub is_open: bool,
    /// Whether the connection failed.
    pub failed: bool,
}

impl End {
    /// An end of `connection`, before the first byte.
    #[must_use]
    pub fn new(connection: Connection) -> Self {
        Self {
            connection,
            rest: Vec::new(),
            plain: BytesMut::new(),
            out: Vec::new(),
            is_open: false,
            failed: false,
        }
    }

    /// Receives bytes of the other end. With no bytes, a client begins its handshake.
    ///
    /// # Errors
    /// The connection failed, now or before.
    ///
    /// # Panics
    /// The connection uses up more than it received, receives after a failure, falls back into the handshake,
    /// or its error has no token of TLS.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), TlsError> {
        self.rest.extend_from_slice(bytes);
        let before = self.rest.len();
        let received = self
            .connection
            .receive(&mut self.rest, &mut self.plain, &mut self.out);
        match received {
            Ok(received) => {
                assert!(!self.failed, "nothing is received after a failure");
                assert!(received.consumed <= before, "no more than it received");
                assert!(!self.is_open || received.is_open, "what is open stays so");
                self.is_open = received.is_open;
                self.rest.drain(..received.consumed);
                Ok(())
            }
            Err(error) => {
                self.failed = true;
                for token in [error.client_token(), error.server_token()] {
                    assert!(token.starts_with("tls-"), "{token}");
                }
                Err(error)
            }
        }
    }

    /// Encrypts plaintext for the other end.
    ///
    /// # Panics
    /// The connection is not open.
    pub fn seal(&mut self, plain: &[u8]) {
        let sealed = self.connection.seal(plain, &mut self.rest, &mut self.out);
        sealed.expect("an open connection");
    }
}
