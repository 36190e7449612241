//! TLS for a load generator: certificates are verified only if asked, and no session is resumed, so
//! that each connection makes a full handshake, as ab's do.
//!
//! A [`TlsStream`] is a non-blocking socket with rustls. Bytes that the socket did not take are
//! kept, and written once it is writable.

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
    /// The name sent in SNI; `None`: none is sent.
    sni: Option<String>,
}

impl TlsTarget {
    /// Makes the beginning of a handshake and drops it. A thread's first handshake sets up random
    /// numbers and tables, which takes tens of milliseconds of CPU time that should not count for a
    /// request.
    pub(crate) fn prime(&self) {
        let session = ClientConnection::new(Arc::clone(&self.config), self.name.clone());
        // A fault in the target's options is reported by its first real handshake.
        if let Ok(mut session) = session {
            // A sink takes all bytes.
            let _ = session.write_tls(&mut io::sink());
        }
    }

    /// Makes the TLS configuration for a target.
    ///
    /// # Errors
    /// The options are contradictory or not supported; the text says why.
    pub(crate) fn new(options: &Tls, endpoint: &Endpoint) -> Result<Self, String> {
        let host = match (&options.server_name, &endpoint.transport) {
            (Some(name), _) => name,
            (None, Transport::Tcp { host, .. }) => host,
            (None, Transport::Unix(_)) => "localhost",
        };
        let config = config(options, &endpoint.protocol)?;
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| format!("`{host}` is no name that TLS knows"))?;
        // SNI has no IP addresses.
        let sni = match name {
            ServerName::DnsName(_) => options.server_name.clone(),
            _ => None,
        };
        Ok(Self {
            config: Arc::new(config),
            name,
            sni,
        })
    }
}

/// rustls's configuration by the options of a target.
fn config(options: &Tls, protocol: &Protocol) -> Result<ClientConfig, String> {
    let mut provider = CryptoProvider {
        // The groups that OpenSSL 3.0 prefers, so that a handshake costs the server as much as one of ab's.
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
            Roots::from_pem(pem).map_err(|what| format!("the file of root certificates {what}"))?,
        ),
    };
    let builder = builder
        .dangerous()
        .with_custom_certificate_verifier(server_verifier(roots.as_ref(), provider));
    let mut config = match &options.certificate {
        None => builder.with_no_client_auth(),
        Some(certificate) => {
            let (chain, key) = certificate
                .parsed()
                .map_err(|what| format!("the client certificate {what}"))?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| format!("the client certificate cannot be used: {error}"))?
        }
    };
    config.enable_sni = options.server_name.is_some();
    // Each connection makes a full handshake, as ab's do.
    config.resumption = Resumption::disabled();
    config.alpn_protocols = match protocol {
        Protocol::Http2 => vec![HTTP2.to_vec()],
        Protocol::Http | Protocol::Ajp(_) | Protocol::Memcached(_) => {
            vec![b"http/1.1".to_vec()]
        }
    };
    Ok(config)
}

fn version(version: &TlsVersion) -> &'static rustls::SupportedProtocolVersion {
    match version {
        TlsVersion::Tls12 => &TLS12,
        TlsVersion::Tls13 => &TLS13,
    }
}

/// Restricts the provider to the cipher suites with these names; an empty list restricts nothing.
fn restrict(provider: &mut CryptoProvider, names: &[String]) -> Result<(), String> {
    if names.is_empty() {
        return Ok(());
    }
    let is_named = |suite: &SupportedCipherSuite, name: &str| {
        let rustls_name = format!("{:?}", suite.suite());
        let iana_name = rustls_name.replacen("TLS13", "TLS", 1);
        let openssl_name = openssl_name(suite.suite());
        [rustls_name, iana_name, openssl_name]
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name))
    };
    let supported = provider.cipher_suites.clone();
    let mut chosen = Vec::new();
    for name in names {
        let Some(suite) = supported.iter().find(|suite| is_named(suite, name)) else {
            let suites = supported.iter();
            let known: Vec<String> = suites.map(|suite| openssl_name(suite.suite())).collect();
            return Err(format!(
                "cipher `{name}` is not supported; there are {}",
                known.join(", ")
            ));
        };
        chosen.push(*suite);
    }
    provider.cipher_suites = chosen;
    Ok(())
}

/// A socket with TLS.
#[derive(Debug)]
pub(crate) struct TlsStream<S> {
    pub(crate) socket: S,
    session: ClientConnection,
    /// Whether the socket is connected and the handshake has begun.
    pub(crate) has_begun: bool,
}

impl<S: Read + Write> TlsStream<S> {
    /// Makes the TLS side of a socket that is connected or being connected.
    pub(crate) fn new(socket: S, target: &TlsTarget) -> io::Result<Self> {
        let session = ClientConnection::new(Arc::clone(&target.config), target.name.clone());
        Ok(Self {
            socket,
            session: session.map_err(broken)?,
            has_begun: false,
        })
    }

    /// Begins or continues the handshake; `true`: it is complete.
    pub(crate) fn handshake(&mut self) -> io::Result<bool> {
        self.has_begun = true;
        while self.session.is_handshaking() {
            let result = if self.session.wants_write() {
                self.session.write_tls(&mut self.socket)
            } else {
                self.receive()
            };
            match result {
                Ok(0) => return Err(broken("the server closed amid the handshake")),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // The alert tells the server why; whether it arrives does not matter here.
                    let _ = self.session.write_tls(&mut self.socket);
                    return Err(error);
                }
            }
        }
        self.flush()?;
        Ok(true)
    }

    /// Writes pending TLS records, until the socket takes no more.
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

    /// Reads decrypted bytes. `WouldBlock` means that more must be received first; 0 is the end.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.session.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // A close without close_notify is treated as one with it: the framing of HTTP shows
                // whether a response is complete.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            self.receive()?;
        }
    }

    /// Takes bytes to encrypt, and sends what the socket takes; returns how many were taken. `WouldBlock` means
    /// that encrypted bytes of earlier calls still wait, so that this type never stores more than one call.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        if self.session.wants_write() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let taken = self.session.writer().write(bytes)?;
        self.flush()?;
        Ok(taken)
    }

    /// Checks that the server has agreed to HTTP/2.
    pub(crate) fn expect_http2(&self) -> io::Result<()> {
        match self.session.alpn_protocol() {
            Some(HTTP2) => Ok(()),
            _ => Err(broken("the server does not agree to HTTP/2 (ALPN)")),
        }
    }

    /// The TLS parameters that were negotiated.
    pub(crate) fn facts(&self, target: &TlsTarget) -> TlsFacts {
        facts::of(&self.session, target.sni.clone())
    }

    /// Reads from the socket and decrypts; returns the number of bytes read.
    fn receive(&mut self) -> io::Result<usize> {
        let read = self.session.read_tls(&mut self.socket)?;
        self.session.process_new_packets().map_err(broken)?;
        Ok(read)
    }
}

/// Makes an error of TLS itself, which [`is_broken`] recognises.
fn broken(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// Whether the error is one of TLS itself, not of the socket under it.
pub(crate) fn is_broken(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidData
}

/// The name of HTTP/2 in ALPN (RFC 9113, section 3.1).
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

    /// A session store without sessions. A handshake asks it first for the key exchange group, so
    /// it notices each handshake.
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
