//! Answers to an authority's challenges tls-alpn-01 (RFC 8737): a handshake with a certificate of its own.

use std::fmt;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

/// The certificates that answer the challenges which are pending.
pub trait ChallengeCertificates: fmt::Debug + Send + Sync {
    /// The certificate for a name in lower case, with its key, both as PEM; `None`: no challenge is pending for the name.
    ///
    /// It is asked in the middle of a handshake, so it must not wait for anybody.
    fn pem_for(&self, name: &str) -> Option<Vec<u8>>;
}

/// A challenge certificate with its key, ready for a handshake; `None` if the PEM has no usable pair.
pub(crate) fn certified(pem: &[u8]) -> Option<Arc<CertifiedKey>> {
    let certificates = CertificateDer::pem_slice_iter(pem);
    let chain = certificates.collect::<Result<Vec<_>, _>>().ok()?;
    let key = PrivateKeyDer::from_pem_slice(pem).ok()?;
    let signing_key = crate::provider().key_provider.load_private_key(key).ok()?;
    let has_leaf = !chain.is_empty();
    has_leaf.then(|| Arc::new(CertifiedKey::new(chain, signing_key)))
}

/// The protocol that an authority offers, alone, by ALPN (RFC 8737, section 3).
pub(crate) const PROTOCOL: &[u8] = b"acme-tls/1";
