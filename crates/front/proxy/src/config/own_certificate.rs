//! A certificate that the front signs itself.

use std::fmt;

use catamaran_tls::fingerprint;
use rcgen::{CertificateParams, DistinguishedName, KeyPair};

/// A self-signed certificate and its key, which are in memory alone.
#[derive(Clone, PartialEq, Eq)]
pub struct OwnCertificate {
    chain: String,
    key: String,
    sha256: String,
}

impl OwnCertificate {
    /// Makes one for these names and addresses, with a new key. One for `localhost` is also for the loopback addresses.
    ///
    /// # Errors
    /// A name cannot be in a certificate, or the system has no random bytes.
    pub fn self_signed(mut names: Vec<String>) -> Result<Self, String> {
        if names.iter().any(|name| name == "localhost") {
            names.extend(["127.0.0.1", "::1"].map(str::to_owned));
        }
        names.sort();
        names.dedup();
        let sign = || {
            let key = KeyPair::generate()?;
            let mut params = CertificateParams::new(names)?;
            params.distinguished_name = DistinguishedName::new();
            Ok((params.self_signed(&key)?, key))
        };
        let (certificate, key) = sign().map_err(|error: rcgen::Error| error.to_string())?;
        Ok(Self {
            chain: certificate.pem(),
            key: key.serialize_pem(),
            sha256: fingerprint(certificate.der()),
        })
    }

    /// The SHA-256 of the certificate's DER, in lower-case hexadecimal.
    #[must_use]
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// The certificate as PEM.
    pub(crate) fn chain(&self) -> &str {
        &self.chain
    }

    /// The key as PEM.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }
}

/// Without the key.
impl fmt::Debug for OwnCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnCertificate")
            .field("sha256", &self.sha256)
            .finish_non_exhaustive()
    }
}
