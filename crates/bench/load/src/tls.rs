//! TLS for a client that measures: certificates are verified only on request, and no session is
//! resumed, so each connection makes a full handshake, as ab's do.
//!
//! A [`TlsStream`] is a non-blocking socket with rustls on it. It keeps the bytes that it could not
//! write, and writes them when it is told that the socket is writable.

mod facts;

use std::io::{self, Read, Write};
use std::sync::Arc;

use catamaran_tls::{Roots, server_verifier};
pub(crate) use facts::openssl_name;
use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs::kx_group::{SECP256R1, SECP384R1, X25519};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, SupportedCipherSuite};

use crate::plan::{Endpoint, Protocol, Tls, TlsVersion, Transport, Verify};
use crate::report::TlsFacts;

/// The TLS configuration that all connections to one target share.
#[derive(Clone, Debug)]
pub(crate) struct TlsTarget {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    /// The name sent in SNI.
    sni: Option<String>,
}

impl TlsTarget {
    /// Makes the beginning of a handshake for nobody. A thread's first one seeds its random numbers,
    /// which takes tens of milliseconds of CPU time, and its tables; that is no time of a request.
    pub(crate) fn prime(&self) {
        let session = ClientConnection::new(Arc::clone(&self.config), self.name.clone());
        // What is wrong with the target shows in its first handshake, with its reason.
        if let Ok(mut session) = session {
            let _ = session.write_tls(&mut io::sink());
        }
    }

    /// Sets up TLS for a target.
    ///
    /// # Errors
    /// What in the options cannot be, in words.
    pub(crate) fn new(options: &Tls, endpoint: &Endpoint) -> Result<Self, String> {
        let transport = &endpoint.transport;
        let mut provider = CryptoProvider {
            // Those that OpenSSL 3.0 prefers: each handshake costs the server what ab's costs it.
            kx_groups: vec![X25519, SECP256R1, SECP384R1],
            ..aws_lc_rs::default_provider()
        };
        restrict(&mut provider, &options.ciphers)?;
        let versions: Vec<_> = options.versions.iter().map(version).collect();
        let provider = Arc::new(provider);
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions)
            .map_err(|error| format!("these TLS versions and ciphers do not fit: {error}"))?;
        let roots = match &options.verify {
            Verify::Nothing => None,
            Verify::Roots(pem) => Some(
                Roots::from_pem(pem)
                    .map_err(|what| format!("the file of root certificates {what}"))?,
            ),
        };
        let builder = builder
            .dangerous()
            .with_custom_certificate_verifier(server_verifier(roots.as_ref(), provider));
        let mut config = match &options.certificate {
            None => builder.with_no_client_auth(),
            Some(certificate) => {
                let read = certificate.parsed();
                let (chain, key) = read.map_err(|what| format!("the client certificate {what}"))?;
                builder
                    .with_client_auth_cert(chain, key)
                    .map_err(|error| format!("the client certificate cannot be used: {error}"))?
            }
        };
        config.enable_sni = options.server_name.is_some();
        config.resumption = Resumption::disabled();
        config.alpn_protocols = match endpoint.protocol {
            Protocol::Http2 => vec![HTTP2.to_vec()],
            Protocol::Http | Protocol::Ajp(_) | Protocol::Memcached(_) => {
                vec![b"http/1.1".to_vec()]
            }
        };
        let host = match (&options.server_name, transport) {
            (Some(name), _) => name,
            (None, Transport::Tcp { host, .. }) => host,
            (None, Transport::Unix(_)) => "localhost",
        };
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| format!("`{host}` is no name that TLS knows"))?;
        Ok(Self {
            config: Arc::new(config),
            sni: options
                .server_name
                .clone()
                .filter(|_| matches!(name, ServerName::DnsName(_))),
            name,
        })
    }
}

fn version(version: &TlsVersion) -> &'static rustls::SupportedProtocolVersion {
    match version {
        TlsVersion::Tls12 => &TLS12,
        TlsVersion::Tls13 => &TLS13,
    }
}

/// Leaves only the cipher suites that are named.
fn restrict(provider: &mut CryptoProvider, names: &[String]) -> Result<(), String> {
    if names.is_empty() {
        return Ok(());
    }
    let is_named = |suite: &SupportedCipherSuite, name: &str| {
        let iana = format!("{:?}", suite.suite());
        [
            iana.as_str(),
            &iana.replacen("TLS13", "TLS", 1),
            &openssl_name(suite.suite()),
        ]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(name))
    };
    let all = provider.cipher_suites.clone();
    let mut chosen = Vec::new();
    for name in names {
        let suite = all
            .iter()
            .find(|suite| is_named(suite, name))
            .ok_or_else(|| {
                let known: Vec<String> = all.iter().map(|s| openssl_name(s.suite())).collect();
                format!(
                    "cipher `{name}` is not supported; there are {}",
                    known.join(", ")
                )
            })?;
        chosen.push(*suite);
    }
    provider.cipher_suites = chosen;
    Ok(())
}

/// A socket with TLS on it.
#[derive(Debug)]
pub(crate) struct TlsStream<S> {
    pub(crate) socket: S,
    session: ClientConnection,
    /// The socket is connected and the handshake has begun.
    pub(crate) has_begun: bool,
}

impl<S: Read + Write> TlsStream<S> {
    /// TLS on a socket that is connected or about to be.
    pub(crate) fn new(socket: S, target: &TlsTarget) -> io::Result<Self> {
        let session = ClientConnection::new(Arc::clone(&target.config), target.name.clone());
        Ok(Self {
            socket,
            session: session.map_err(broken)?,
            has_begun: false,
        })
    }

    /// Goes on with the handshake; `true`: it is over.
    pub(crate) fn handshake(&mut self) -> io::Result<bool> {
        self.has_begun = true;
        while self.session.is_handshaking() {
            let done = if self.session.wants_write() {
                self.session.write_tls(&mut self.socket)
            } else {
                self.receive()
            };
            match done {
                Ok(0) => return Err(broken("the server closed amid the handshake")),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // The alert says why; whether it arrives does not matter here.
                    let _ = self.session.write_tls(&mut self.socket);
                    return Err(error);
                }
            }
        }
        self.flush()?;
        Ok(true)
    }

    /// Writes the pending TLS records, as far as the socket takes them.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.session.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // A close without close_notify is as good as one with it: framing tells.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            self.receive()?;
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        if self.session.wants_write() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let taken = self.session.writer().write(bytes)?;
        self.flush()?;
        Ok(taken)
    }

    /// Whether the server agreed to speak HTTP/2.
    pub(crate) fn expect_http2(&self) -> io::Result<()> {
        match self.session.alpn_protocol() {
            Some(HTTP2) => Ok(()),
            _ => Err(broken("the server does not agree to HTTP/2 (ALPN)")),
        }
    }

    /// What was agreed on.
    pub(crate) fn facts(&self, target: &TlsTarget) -> TlsFacts {
        facts::of(&self.session, target.sni.clone())
    }

    /// Reads from the socket and decrypts.
    fn receive(&mut self) -> io::Result<usize> {
        let read = self.session.read_tls(&mut self.socket)?;
        self.session.process_new_packets().map_err(broken)?;
        Ok(read)
    }
}

/// An error of TLS itself, as [`is_broken`] recognises it.
fn broken(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// Whether TLS itself failed, not the socket under it.
pub(crate) fn is_broken(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidData
}

/// HTTP/2 over TLS, as ALPN names it (RFC 9113, section 3.1).
const HTTP2: &[u8] = b"h2";

#[cfg(test)]
mod tests {
    use std::fmt;

    use rustls::NamedGroup;
    use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};

    use super::*;

    impl TlsTarget {
        /// A target that calls `began` whenever a handshake with it begins.
        pub(crate) fn watched(began: impl Fn() + Send + Sync + 'static) -> Self {
            let options = Tls {
                server_name: None,
                verify: Verify::Nothing,
                versions: vec![TlsVersion::Tls13],
                ciphers: Vec::new(),
                certificate: None,
            };
            let endpoint = Endpoint {
                transport: Transport::Unix("/none".into()),
                tls: None,
                protocol: Protocol::Http,
            };
            let target = Self::new(&options, &endpoint).unwrap();
            let mut config = (*target.config).clone();
            config.resumption = Resumption::store(Arc::new(Watch(Box::new(began))));
            Self {
                config: Arc::new(config),
                ..target
            }
        }
    }

    /// A store of sessions that has none. A handshake asks it first for the group of its key.
    struct Watch(Box<dyn Fn() + Send + Sync>);

    impl fmt::Debug for Watch {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Watch")
        }
    }

    impl ClientSessionStore for Watch {
        fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}

        fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
            (self.0)();
            None
        }

        fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

        fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
            None
        }

        fn remove_tls12_session(&self, _: &ServerName<'static>) {}

        fn insert_tls13_ticket(&self, _: ServerName<'static>, _: Tls13ClientSessionValue) {}

        fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
            None
        }
    }
}
