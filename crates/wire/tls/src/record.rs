//! The TLS records of one connection: converts bytes of the socket to plaintext and back.
//!
//! It uses rustls' unbuffered connections, because an idle one holds no buffer. Only this file calls
//! them, so that another interface of rustls would change one file. The caller owns the bytes of an
//! incomplete record and passes them with each call.

use std::fmt;
use std::sync::Arc;

use bytes::BytesMut;
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus};
use rustls::{AlertDescription, CertificateError, CommonState, Error, InvalidMessage};

use crate::client::Trust;
use crate::facts::Facts;
use crate::fault::in_words;
use crate::names;
use crate::server::{Profile, Protocols};

/// The TLS state of one connection. It owns no buffer.
#[derive(Debug)]
pub struct Connection {
    role: Role,
    /// The server name that the client asked for, until the handshake is over.
    asked: Option<Box<str>>,
    /// Whether the peer has announced that it sends nothing more.
    peer_closed: bool,
    close_sent: bool,
    /// The error after which nothing more can be received or sent.
    failed: Option<Error>,
}

enum Role {
    Server(UnbufferedServerConnection),
    Client(UnbufferedClientConnection),
}

impl fmt::Debug for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server(_) => "Server",
            Self::Client(_) => "Client",
        })
    }
}

/// The result of received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordInput {
    /// The number of bytes consumed from the beginning of the input. The caller passes the rest again, with
    /// more bytes after it.
    pub consumed: usize,
    /// Whether application data may be sent.
    pub is_open: bool,
}

/// An error after which a TLS connection cannot go on.
#[derive(Debug, thiserror::Error)]
#[error("{}", in_words(.0))]
pub struct TlsError(#[from] Error);

impl TlsError {
    /// The reason token for logs and counters, if the peer is a client.
    #[must_use]
    pub fn client_token(&self) -> &'static str {
        match &self.0 {
            Error::NoCertificatesPresented => "tls-client-cert-missing",
            Error::InvalidCertificate(error) => match error {
                CertificateError::Revoked => "tls-client-cert-revoked",
                CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                    "tls-client-cert-expired"
                }
                _ => "tls-client-cert-untrusted",
            },
            Error::General(text) if text == NO_CERTIFICATE_YET => "tls-no-certificate-yet",
            error if is_of_unknown_name(error) => "tls-unknown-name",
            _ => "tls-handshake",
        }
    }

    /// The reason token for logs and counters, if the peer is a backend.
    #[must_use]
    pub fn server_token(&self) -> &'static str {
        match &self.0 {
            Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            ) => "tls-name",
            Error::InvalidCertificate(_) => "tls-untrusted",
            _ => "tls-handshake",
        }
    }

    /// The alert by which the peer gave up, for example because it refused our certificate; `None`
    /// for other errors.
    #[must_use]
    pub fn alert(&self) -> Option<String> {
        match &self.0 {
            Error::AlertReceived(AlertDescription::CloseNotify) => None,
            Error::AlertReceived(alert) => Some(format!("{alert:?}")),
            _ => None,
        }
    }

    /// Whether the received bytes were not TLS at all.
    #[must_use]
    pub fn is_no_tls(&self) -> bool {
        matches!(
            self.0,
            Error::InvalidMessage(InvalidMessage::InvalidContentType)
        )
    }
}

/// Whether the first bytes of a connection are those of a TLS handshake.
#[must_use]
pub fn looks_like_tls(first: &[u8]) -> bool {
    matches!(first, [0x16] | [0x16, 0x03, ..])
}

impl Connection {
    /// The state of a connection that was accepted.
    ///
    /// # Errors
    /// rustls cannot begin.
    pub fn server(profile: &Profile, protocols: Protocols) -> Result<Self, TlsError> {
        let config = Arc::clone(profile.config(protocols));
        let connection = UnbufferedServerConnection::new(config)?;
        Ok(Self::new(Role::Server(connection)))
    }

    /// The state of a connection that this process opened.
    ///
    /// # Errors
    /// rustls cannot begin.
    pub fn client(trust: &Trust) -> Result<Self, TlsError> {
        let config = Arc::clone(&trust.config);
        let connection = UnbufferedClientConnection::new(config, trust.name.clone())?;
        Ok(Self::new(Role::Client(connection)))
    }

    fn new(role: Role) -> Self {
        Self {
            role,
            asked: None,
            peer_closed: false,
            close_sent: false,
            failed: None,
        }
    }

    /// Processes bytes of the socket, which begin with those not consumed before. Appends
    /// application data to `plain` and bytes for the peer to `out`. There may be such bytes at any
    /// time; on an error they are an alert.
    ///
    /// # Errors
    /// The peer's bytes are not acceptable. Nothing more can be received or sent.
    pub fn receive(
        &mut self,
        incoming: &mut [u8],
        plain: &mut BytesMut,
        out: &mut Vec<u8>,
    ) -> Result<RecordInput, TlsError> {
        self.check()?;
        let peer_closed = &mut self.peer_closed;
        let received = match &mut self.role {
            Role::Server(connection) => drive(connection, incoming, plain, out, peer_closed),
            Role::Client(connection) => drive(connection, incoming, plain, out, peer_closed),
        };
        // rustls chose the certificate in this call, if the ClientHello was complete.
        if matches!(self.role, Role::Server(_))
            && let Some(asked) = names::take_asked()
        {
            self.asked = Some(asked);
        }
        let received = received.map_err(|error| {
            if is_of_unknown_name(&error.0) && names::is_awaited() {
                TlsError(Error::General(NO_CERTIFICATE_YET.to_owned()))
            } else {
                error
            }
        });
        self.failed = received.as_ref().err().map(|error| error.0.clone());
        received
    }

    /// Returns the error of the connection, if it has failed: then rustls must not be called.
    fn check(&self) -> Result<(), TlsError> {
        match &self.failed {
            Some(error) => Err(error.clone().into()),
            None => Ok(()),
        }
    }

    /// Encrypts application data and appends it to `out`. The handshake must be over. `rest` are the
    /// bytes received and not consumed.
    ///
    /// # Errors
    /// The connection has failed, or its keys are used up.
    pub fn seal(
        &mut self,
        plain: &[u8],
        rest: &mut [u8],
        out: &mut Vec<u8>,
    ) -> Result<(), TlsError> {
        self.check()?;
        match &mut self.role {
            Role::Server(connection) => send(connection, RecordOutput::Data(plain), rest, out),
            Role::Client(connection) => send(connection, RecordOutput::Data(plain), rest, out),
        }
    }

    /// Appends a close_notify to `out`, unless one was sent before. Nothing may be sent after it.
    pub fn close(&mut self, rest: &mut [u8], out: &mut Vec<u8>) {
        let was_sent = std::mem::replace(&mut self.close_sent, true);
        if was_sent || self.failed.is_some() {
            return;
        }
        let closed = match &mut self.role {
            Role::Server(connection) => send(connection, RecordOutput::Close, rest, out),
            Role::Client(connection) => send(connection, RecordOutput::Close, rest, out),
        };
        // An error means that the connection has failed, which an alert has told the peer.
        closed.ok();
    }

    /// Whether the peer has announced by a close_notify that it sends nothing more.
    #[must_use]
    pub fn is_peer_closed(&self) -> bool {
        self.peer_closed
    }

    /// Whether this end is the client.
    #[must_use]
    pub fn is_client(&self) -> bool {
        matches!(self.role, Role::Client(_))
    }

    /// The facts that the handshake established. To be called once, when the handshake is over.
    #[must_use]
    pub fn facts(&mut self) -> Facts {
        let asked = self.asked.take();
        Facts::of(self.state(), asked)
    }

    fn state(&self) -> &CommonState {
        match &self.role {
            Role::Server(connection) => connection,
            Role::Client(connection) => connection,
        }
    }
}

/// A connection of either role: rustls has no common trait for its method `process_tls_records`.
trait Records {
    type Data;

    /// Whether rustls has bytes for the peer to be encoded.
    fn wants_write(&self) -> bool;

    fn process<'c, 'i>(
        &'c mut self,
        incoming: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data>;
}

impl Records for UnbufferedServerConnection {
    type Data = ServerConnectionData;

    fn wants_write(&self) -> bool {
        (**self).wants_write()
    }

    fn process<'c, 'i>(
        &'c mut self,
        incoming: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(incoming)
    }
}

impl Records for UnbufferedClientConnection {
    type Data = ClientConnectionData;

    fn wants_write(&self) -> bool {
        (**self).wants_write()
    }

    fn process<'c, 'i>(
        &'c mut self,
        incoming: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(incoming)
    }
}

/// Lets rustls process `incoming` until it needs more bytes. Appends application data to `plain`, bytes for the peer to
/// `out`, and sets `peer_closed` at a close_notify.
fn drive<R: Records>(
    records: &mut R,
    incoming: &mut [u8],
    plain: &mut BytesMut,
    out: &mut Vec<u8>,
    peer_closed: &mut bool,
) -> Result<RecordInput, TlsError> {
    let mut consumed = 0;
    let is_open = loop {
        let UnbufferedStatus { discard, state, .. } = records.process(&mut incoming[consumed..]);
        consumed += discard;
        match state {
            Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                while let Some(record) = traffic.next_record() {
                    plain.extend_from_slice(record?.payload);
                }
            }
            Ok(ConnectionState::EncodeTlsData(mut data)) => append(out, |room| data.encode(room))?,
            // The caller transmits what was appended.
            Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
            Ok(ConnectionState::PeerClosed) => *peer_closed = true,
            Ok(ConnectionState::WriteTraffic(_) | ConnectionState::Closed) => break true,
            Ok(ConnectionState::BlockedHandshake) => break false,
            Ok(_) => return Err(unexpected()),
            Err(error) => {
                encode_alert(records, out);
                if is_of_unknown_name(&error) {
                    name_unknown(out);
                }
                return Err(error.into());
            }
        }
    };
    Ok(RecordInput { consumed, is_open })
}

/// Appends the alert that tells the peer of a failure. rustls must not get the bytes again.
fn encode_alert<R: Records>(records: &mut R, out: &mut Vec<u8>) {
    while records.wants_write() {
        match records.process(&mut []).state {
            Ok(ConnectionState::EncodeTlsData(mut data)) => {
                if append(out, |room| data.encode(room)).is_err() {
                    return;
                }
            }
            Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                while traffic.next_record().is_some() {}
            }
            _ => return,
        }
    }
}

/// Whether a handshake failed because there is no certificate for the name that the client asked for.
fn is_of_unknown_name(error: &Error) -> bool {
    matches!(error, Error::General(text) if text == NO_CERTIFICATE)
}

/// Replaces the alert `access_denied`, which rustls sends if there is no certificate, by `unrecognized_name` (RFC 6066,
/// section 3). Before a ServerHello alerts are in clear.
fn name_unknown(out: &mut [u8]) {
    const ALERT: [u8; 2] = [2, 49];
    const UNRECOGNIZED_NAME: u8 = 112;
    if let [.., level, description] = out
        && [*level, *description] == ALERT
    {
        *description = UNRECOGNIZED_NAME;
    }
}

enum RecordOutput<'a> {
    Data(&'a [u8]),
    Close,
}

/// Lets rustls append what it still has for the peer, and then `sending`.
fn send<R: Records>(
    records: &mut R,
    sending: RecordOutput<'_>,
    rest: &mut [u8],
    out: &mut Vec<u8>,
) -> Result<(), TlsError> {
    loop {
        // rustls hands out its states only while it processes received bytes, even if none is complete.
        match records.process(rest).state? {
            ConnectionState::EncodeTlsData(mut data) => append(out, |room| data.encode(room))?,
            ConnectionState::TransmitTlsData(data) => data.done(),
            // `rest` has no complete record, so there is nothing to be used up.
            ConnectionState::PeerClosed => {}
            ConnectionState::WriteTraffic(mut traffic) => {
                return match sending {
                    RecordOutput::Data(plain) => append(out, |room| traffic.encrypt(plain, room)),
                    RecordOutput::Close => append(out, |room| traffic.queue_close_notify(room)),
                };
            }
            _ => return Err(unexpected()),
        }
    }
}

/// Appends the output of `encode` to `out`. Calls it without room first, to learn how much it needs.
fn append<E: NeedsRoom>(
    out: &mut Vec<u8>,
    mut encode: impl FnMut(&mut [u8]) -> Result<usize, E>,
) -> Result<(), TlsError> {
    let len = out.len();
    let needed = match encode(&mut []) {
        // It had nothing to write.
        Ok(_) => return Ok(()),
        Err(error) => error.needed()?,
    };
    out.resize(len + needed, 0);
    match encode(&mut out[len..]) {
        Ok(written) => {
            out.truncate(len + written);
            Ok(())
        }
        Err(_) => {
            out.truncate(len);
            Err(unexpected())
        }
    }
}

/// Errors of rustls, one of which says that a buffer is too small.
trait NeedsRoom {
    /// The size that is needed; an error if the fault is another one.
    fn needed(&self) -> Result<usize, TlsError>;
}

impl NeedsRoom for EncodeError {
    fn needed(&self) -> Result<usize, TlsError> {
        match self {
            Self::InsufficientSize(error) => Ok(error.required_size),
            Self::AlreadyEncoded => Err(unexpected()),
        }
    }
}

impl NeedsRoom for EncryptError {
    fn needed(&self) -> Result<usize, TlsError> {
        match self {
            Self::InsufficientSize(error) => Ok(error.required_size),
            Self::EncryptExhausted => Err(TlsError(Error::EncryptError)),
        }
    }
}

/// The error for a state of rustls that cannot occur here.
fn unexpected() -> TlsError {
    TlsError(Error::General(
        "rustls is in an unexpected state".to_owned(),
    ))
}

/// The text of rustls' error when the resolver has no certificate.
const NO_CERTIFICATE: &str = "no server certificate chain resolved";

/// The text that stands for it if the first certificate of the name is awaited.
const NO_CERTIFICATE_YET: &str = "no certificate was issued for this name yet";
