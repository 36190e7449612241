//! Settings of the certificates that the front gets from an authority by ACME (RFC 8555).

use std::fmt;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use catamaran_tls::Roots;

/// The certificates of a TLS profile that an authority issues to the front: one for each name, or one for all.
///
/// Each field is the key of that name of `[tls.NAME.acme]` in `docs/reference.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeConfig {
    /// The DNS names in lower case, also wildcards such as `*.example.org`.
    pub names: Vec<String>,
    /// Whether one certificate has all names; else each has its own.
    pub together: bool,
    /// The URL of the authority's directory (RFC 8555, section 7.1.1).
    pub directory: String,
    /// The addresses that the authority may write to, as URLs such as `mailto:admin@example.org`.
    pub contact: Vec<String>,
    /// The directory with the account, keys, certificates and the state of each name.
    pub state_dir: PathBuf,
    /// The challenges that the front can answer, at least one, in the order in which they are tried: after two failures in a
    /// row the next one is.
    pub challenges: Vec<AcmeChallenge>,
    /// The program that puts records into the DNS, with its first arguments; empty: there is none. `present` or `cleanup`,
    /// the record's name and its value follow.
    pub dns_hook: Vec<String>,
    /// Whether the front, before an order by http-01, looks whether the name leads to it.
    pub preflight: bool,
    /// The type of new keys.
    pub key_type: IssuedKeyType,
    /// The authority's profile of certificates; `None`: its default.
    pub profile: Option<String>,
    /// The account outside of ACME to which the front's is bound (RFC 8555, section 7.3.4); `None`: none.
    pub external_account: Option<ExternalAccount>,
    /// The authorities that may issue the certificate of the directory's own server.
    pub roots: Roots,
}

/// An account that an authority made outside of ACME. Its `Debug` does not show the key.
#[derive(Clone, PartialEq, Eq)]
pub struct ExternalAccount {
    /// The authority's name of the key.
    pub key_id: String,
    hmac_key: Vec<u8>,
}

impl ExternalAccount {
    /// An account with the key as authorities show it, in base64url; `None`: the text is none.
    #[must_use]
    pub fn new(key_id: String, hmac_key: &str) -> Option<Self> {
        let decoded = URL_SAFE_NO_PAD.decode(hmac_key.trim_end_matches('='));
        let hmac_key = decoded.ok().filter(|key| !key.is_empty())?;
        Some(Self { key_id, hmac_key })
    }

    pub(crate) fn hmac_key(&self) -> &[u8] {
        &self.hmac_key
    }
}

impl fmt::Debug for ExternalAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalAccount")
            .field("key_id", &self.key_id)
            .finish_non_exhaustive()
    }
}

/// How an authority sees that a name leads to this front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcmeChallenge {
    /// It fetches a file from port 80 of the name (RFC 8555, section 8.3).
    Http01,
    /// It makes a handshake of TLS at port 443 of the name (RFC 8737).
    TlsAlpn01,
    /// It looks up a record in the DNS (RFC 8555, section 8.4). Wildcards have no other.
    Dns01,
}

impl AcmeChallenge {
    /// Its name, as registered with IANA.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Http01 => "http-01",
            Self::TlsAlpn01 => "tls-alpn-01",
            Self::Dns01 => "dns-01",
        }
    }
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
    /// The names of each certificate. The first one stands for all of them: in files, logs and metrics.
    pub fn certificates(&self) -> impl Iterator<Item = &[String]> {
        let count = if self.together { self.names.len() } else { 1 };
        self.names.chunks(count.max(1))
    }

    /// The first name of each certificate.
    pub(crate) fn first_names(&self) -> impl Iterator<Item = &String> {
        self.certificates().filter_map(|names| names.first())
    }

    /// The first name of the certificate that has this name; `None`: there is none.
    pub(crate) fn first_name_of(&self, name: &str) -> Option<&String> {
        let mut certificates = self.certificates();
        let names = certificates.find(|names| names.iter().any(|it| it == name))?;
        names.first()
    }

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
