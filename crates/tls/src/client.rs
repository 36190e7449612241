//! What a backend is verified by, and what we show to it.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientSessionMemoryCache, Resumption};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// How one backend is spoken to over TLS.
#[derive(Debug)]
pub struct TrustSettings<'a> {
    /// The name that its certificate must have, or an address.
    pub server_name: &'a str,
    /// Whether its certificate is verified.
    pub verify: bool,
    /// Who may have issued its certificate, as DER.
    pub roots: Vec<CertificateDer<'static>>,
    /// Our own certificate with its chain, and its key, as PEM.
    pub identity: Option<(&'a [u8], &'a [u8])>,
}

/// What connections to one backend share: trust, our certificate, sessions to be resumed.
#[derive(Debug)]
pub struct Trust {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) name: ServerName<'static>,
}

impl Trust {
    /// Sets TLS up for one backend.
    ///
    /// # Errors
    /// What cannot be used, as a sentence.
    pub fn new(settings: TrustSettings<'_>) -> Result<Self, String> {
        let provider = crate::provider();
        let name = ServerName::try_from(settings.server_name.to_owned())
            .map_err(|_| format!("`{}` is not a name for TLS", settings.server_name))?;
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let builder = if settings.verify {
            let mut roots = RootCertStore::empty();
            // Stores of systems hold roots that no verifier takes; the others are used.
            let (usable, _) = roots.add_parsable_certificates(settings.roots);
            if usable == 0 {
                return Err("there is no usable certificate among the roots".to_owned());
            }
            builder.with_root_certificates(roots)
        } else {
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Anyone { provider }))
        };
        let mut config = match settings.identity {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => {
                let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
                let chain = chain.map_err(|error| format!("our certificate: {error}"))?;
                let key = PrivateKeyDer::from_pem_slice(key)
                    .map_err(|error| format!("the key of our certificate: {error}"))?;
                builder
                    .with_client_auth_cert(chain, key)
                    .map_err(|error| format!("our certificate cannot be used: {error}"))?
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let sessions = Arc::new(ClientSessionMemoryCache::new(SESSIONS_MAX));
        config.resumption = Resumption::store(sessions);
        Ok(Self {
            config: Arc::new(config),
            name,
        })
    }
}

/// Takes any certificate; that the backend has its key is checked all the same.
#[derive(Debug)]
struct Anyone {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// Names for which sessions are kept; a backend has one.
const SESSIONS_MAX: usize = 8;
