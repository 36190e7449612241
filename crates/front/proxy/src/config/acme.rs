//! Settings of the certificates that the front gets from an authority by ACME (RFC 8555).

use std::path::PathBuf;

use catamaran_tls::Roots;

/// The certificates of a TLS profile that an authority issues to the front: one for each name.
///
/// Each field is the key of that name of `[tls.NAME.acme]` in `docs/reference.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeConfig {
    /// The DNS names in lower case, each of which gets a certificate of its own.
    pub names: Vec<String>,
    /// The URL of the authority's directory (RFC 8555, section 7.1.1).
    pub directory: String,
    /// The addresses that the authority may write to, as URLs such as `mailto:admin@example.org`.
    pub contact: Vec<String>,
    /// The directory with the account, keys, certificates and the state of each name.
    pub state_dir: PathBuf,
    /// The type of new keys.
    pub key_type: IssuedKeyType,
    /// The authority's profile of certificates; `None`: its default.
    pub profile: Option<String>,
    /// The authorities that may issue the certificate of the directory's own server.
    pub roots: Roots,
}

/// The type of the keys of issued certificates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IssuedKeyType {
    /// ECDSA on the curve P-256.
    #[default]
    P256,
    /// ECDSA on the curve P-384.
    P384,
    /// RSA with 2048 bits.
    Rsa2048,
}

impl AcmeConfig {
    /// The directory with the answers to challenges that are pending.
    #[must_use]
    pub fn pending(&self) -> PathBuf {
        self.state_dir.join("pending")
    }
}

/// The directory of Let's Encrypt.
pub const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// The directory of Let's Encrypt for trials, whose certificates no client trusts.
pub const LETS_ENCRYPT_STAGING: &str = "https://acme-staging-v02.api.letsencrypt.org/directory";
