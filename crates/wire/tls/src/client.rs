//! TLS to backends: how their certificates are verified, and which one the front presents.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientSessionMemoryCache, Resumption, WebPkiServerVerifier};
use rustls::crypto::{
    CryptoProvider, verify_tls12_signature, verify_tls13_signature,
    verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use crate::clock::SystemClock;
use crate::fault::in_words;
use crate::pinned::{DEPTH_MAX, Depth, PinnedVerifier};
use crate::store::Store;

/// The TLS settings for one backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustSettings {
    /// The name or address that the backend's certificate must have.
    pub server_name: String,
    /// Whether the backend's certificate is verified.
    pub verify: bool,
    /// The authorities that may have issued the backend's certificate.
    pub roots: Roots,
    /// The certificate and key that the front presents to the backend; `None`: it presents none.
    pub identity: Option<ClientIdentity>,
}

/// The authorities that may issue certificates of backends. A clone shares the certificates.
#[derive(Clone, Debug)]
pub struct Roots {
    store: Arc<RootCertStore>,
    /// The certificates of the file themselves: a backend may present one of them as its own.
    own: Arc<[CertificateDer<'static>]>,
    /// The most authorities between a backend's certificate and one of these.
    depth: usize,
}

impl Roots {
    /// Trusts no authority, so that every certificate is refused.
    #[must_use]
    pub fn none() -> Self {
        Self {
            store: Arc::new(RootCertStore::empty()),
            own: Arc::default(),
            depth: DEPTH_MAX,
        }
    }

    /// Trusts these certificates. Certificates that the verifier cannot use are skipped: system stores
    /// have some.
    ///
    /// # Errors
    /// If none can be used.
    pub fn new(certificates: Vec<CertificateDer<'static>>) -> Result<Self, String> {
        let mut store = RootCertStore::empty();
        let (added, _) = store.add_parsable_certificates(certificates);
        if added == 0 {
            return Err("has no certificate that can be used".to_owned());
        }
        Ok(Self {
            store: Arc::new(store),
            own: Arc::default(),
            depth: DEPTH_MAX,
        })
    }

    /// Reads the certificates of a PEM file. A backend that presents one of them as its own is
    /// trusted, too.
    ///
    /// # Errors
    /// What is wrong with the file, as a phrase that follows its name ("is not PEM").
    pub fn from_pem(pem: &[u8]) -> Result<Self, String> {
        let certificates = certificates(pem)?;
        Ok(Self {
            own: certificates.as_slice().into(),
            ..Self::new(certificates)?
        })
    }

    /// The same authorities, with at most this many others between a backend's certificate and one of them.
    /// [`Self::none`] stays as it is.
    #[must_use]
    pub fn with_depth(self, depth: usize) -> Self {
        if self.store.is_empty() {
            return self;
        }
        Self { depth, ..self }
    }

    /// A verifier that trusts these authorities, and the certificates of the file themselves.
    fn pinned(&self, provider: Arc<CryptoProvider>) -> PinnedVerifier<dyn ServerCertVerifier> {
        let store = Arc::clone(&self.store);
        let verifier = WebPkiServerVerifier::builder_with_provider(store, provider)
            .build()
            .expect("certificates of a file are never none, and there are no CRLs");
        let depth = Depth {
            roots: Arc::clone(&self.store),
            max: self.depth,
        };
        PinnedVerifier::new(Arc::clone(&self.own), depth, verifier)
    }
}

impl PartialEq for Roots {
    fn eq(&self, other: &Self) -> bool {
        // Clones share the store, which is compared faster.
        let is_clone = Arc::ptr_eq(&self.store, &other.store);
        let are_same = is_clone || (self.store.roots == other.store.roots && self.own == other.own);
        are_same && self.depth == other.depth
    }
}

impl Eq for Roots {}

/// The certificate that the front presents to a backend, with its key.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientIdentity {
    /// The certificate and then the certificates of its issuers, as PEM.
    pub chain: Vec<u8>,
    /// The key, as PEM.
    pub key: Vec<u8>,
}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientIdentity(..)")
    }
}

impl ClientIdentity {
    /// The certificate chain and the key, decoded.
    ///
    /// # Errors
    /// Which of them cannot be used, and why.
    pub fn parsed(
        &self,
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TrustFault> {
        let chain = certificates(&self.chain).map_err(TrustFault::Chain)?;
        Ok((chain, self.private_key()?))
    }

    fn private_key(&self) -> Result<PrivateKeyDer<'static>, TrustFault> {
        if let Some(store) = Store::of(&self.key) {
            return Err(TrustFault::Key(format!("is {}, not PEM", store.kind())));
        }
        PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| {
            TrustFault::Key(if contains(&self.key, b"ENCRYPTED") {
                "is encrypted".to_owned()
            } else {
                format!("has no usable key: {error}")
            })
        })
    }
}

/// The certificates in a PEM file; at least one.
///
/// # Errors
/// What is wrong with the file, as a phrase that follows its name.
fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    if let Some(store) = Store::of(pem) {
        return Err(format!("is {}, not PEM", store.kind()));
    }
    let certificates = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| format!("is not PEM: {error}"))?;
    if certificates.is_empty() {
        return Err("has no CERTIFICATE block".to_owned());
    }
    Ok(certificates)
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// A setting for a backend's TLS that cannot be used. All texts but that of `Name` are phrases that
/// follow the file's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrustFault {
    /// The name that the backend's certificate must have is not valid.
    #[error("`{0}` is neither a name nor an address that a certificate can have")]
    Name(String),
    /// The certificate chain that the front presents cannot be used.
    #[error("{0}")]
    Chain(String),
    /// The key of the certificate that the front presents cannot be used.
    #[error("{0}")]
    Key(String),
}

/// The state that connections to one backend share: trust, the front's own certificate, sessions to be
/// resumed.
#[derive(Debug)]
pub struct Trust {
    settings: TrustSettings,
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) name: ServerName<'static>,
}

impl PartialEq for Trust {
    fn eq(&self, other: &Self) -> bool {
        self.settings == other.settings
    }
}

impl Eq for Trust {}

impl Trust {
    /// Prepares TLS for one backend.
    ///
    /// # Errors
    /// The setting that cannot be used.
    pub fn new(settings: TrustSettings) -> Result<Self, TrustFault> {
        let provider = crate::provider();
        let name = ServerName::try_from(settings.server_name.clone())
            .map_err(|_| TrustFault::Name(settings.server_name.clone()))?;
        let with_versions =
            ClientConfig::builder_with_details(Arc::clone(&provider), Arc::new(SystemClock))
                .with_safe_default_protocol_versions()
                .expect("the provider has suites for all versions");
        let is_plain = settings.roots.own.is_empty() && settings.roots.depth >= DEPTH_MAX;
        let builder = if settings.verify && is_plain {
            with_versions.with_root_certificates(Arc::clone(&settings.roots.store))
        } else {
            // Also accepts certificates that rustls refuses: those of the file themselves, or any. Or it limits chains.
            let roots = settings.verify.then_some(&settings.roots);
            with_versions
                .dangerous()
                .with_custom_certificate_verifier(server_verifier(roots, provider))
        };
        let mut config = match &settings.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let (chain, key) = identity.parsed()?;
                builder
                    .with_client_auth_cert(chain, key)
                    .map_err(|error| match error {
                        Error::InconsistentKeys(_) => {
                            TrustFault::Key("is not that of the certificate".to_owned())
                        }
                        other => TrustFault::Chain(format!("cannot be used: {}", in_words(&other))),
                    })?
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let sessions = Arc::new(ClientSessionMemoryCache::new(SESSIONS_MAX));
        config.resumption = Resumption::store(sessions);
        Ok(Self {
            settings,
            config: Arc::new(config),
            name,
        })
    }

    /// Whether the backend's certificate is verified.
    #[must_use]
    pub fn verifies(&self) -> bool {
        self.settings.verify
    }
}

/// A verifier of servers by the authorities of a file; without `roots` it accepts any certificate.
#[must_use]
pub fn server_verifier(
    roots: Option<&Roots>,
    provider: Arc<CryptoProvider>,
) -> Arc<dyn ServerCertVerifier> {
    match roots {
        Some(roots) => Arc::new(roots.pinned(provider)),
        None => Arc::new(Anyone { provider }),
    }
}

/// Accepts any certificate, but still verifies that the server has its key.
#[derive(Debug)]
struct Anyone {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Anyone {
    /// Accepts any certificate. The signatures are still verified, so the peer has the certificate's key.
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
        // Certificates of version 1 have a key, too, which is all that matters here.
        verify_tls13_signature(message, certificate, signature, algorithms).or_else(|refusal| {
            let (_, parsed) = X509Certificate::from_der(certificate).map_err(|_| refusal)?;
            let key = SubjectPublicKeyInfoDer::from(parsed.tbs_certificate.subject_pki.raw);
            verify_tls13_signature_with_raw_key(message, &key, signature, algorithms)
        })
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// The number of names for which sessions are kept; a backend has only one.
const SESSIONS_MAX: usize = 8;
