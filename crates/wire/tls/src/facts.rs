//! The result of a handshake, in OpenSSL's terms, which containers and mod_jk use.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::CertificateDer;
use rustls::{CipherSuite, CommonState, HandshakeKind, ProtocolVersion};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

use crate::server::Profile;

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// TLS 1.2 (RFC 5246).
    Tls12,
    /// TLS 1.3 (RFC 8446).
    Tls13,
}

impl Version {
    /// The version's name in OpenSSL, such as `TLSv1.3`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tls12 => "TLSv1.2",
            Self::Tls13 => "TLSv1.3",
        }
    }
}

/// The parameters of a client's TLS connection, and its verified certificate if it presented one. They come from
/// our own handshake, or from a trusted proxy that ended TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The version of TLS.
    pub version: Version,
    /// The cipher suite as OpenSSL names it; empty if it is not known.
    pub cipher: Cow<'static, str>,
    /// The size of the symmetric key in bits: 128 or 256; 0 if it is not known.
    pub key_bits: u16,
    /// The group of the key exchange; empty if a session of TLS 1.2 was resumed, or if it is not known.
    pub group: String,
    /// The server name that the client asked for (SNI), in lower case.
    pub sni: Option<Box<str>>,
    /// The protocol chosen by ALPN.
    pub alpn: Option<Box<str>>,
    /// Whether a session was resumed.
    pub resumed: bool,
    /// The client's certificate and then its chain, as PEM; empty if it presented none.
    client_pem: String,
    /// The length of the client's own certificate in `client_pem`.
    client_leaf_len: usize,
    /// The client's certificate and its chain, as DER.
    pub client_chain: Vec<CertificateDer<'static>>,
    /// The SHA-256 of the client's certificate, in lower-case hexadecimal.
    pub client_sha256: Option<String>,
    /// The common name of the client's certificate, if it has one without control characters.
    pub client_cn: Option<Box<str>>,
    /// The first address of mail among the alternative names of the client's certificate, if it has one without control
    /// characters.
    pub client_email: Option<Box<str>>,
}

/// The result of a connection's handshake.
#[derive(Clone, Debug)]
pub struct Session {
    /// The parameters and the client's certificate.
    pub facts: Facts,
    /// The profile of the listener at that time; `None` on a connection that this process opened, or whose TLS a
    /// proxy ended.
    pub profile: Option<Arc<Profile>>,
}

impl Facts {
    /// The facts of a connection whose handshake is over. `sni` is the name that the client asked for.
    pub(crate) fn of(state: &CommonState, sni: Option<Box<str>>) -> Self {
        let suite = state.negotiated_cipher_suite().map(|suite| suite.suite());
        let (cipher, key_bits) = suite.map_or(("", 0), cipher);
        let chain = state.peer_certificates().unwrap_or_default();
        let group = state.negotiated_key_exchange_group();
        let alpn = state.alpn_protocol().map(String::from_utf8_lossy);
        let leaf = chain
            .first()
            .and_then(|leaf| X509Certificate::from_der(leaf).ok());
        let (client_cn, client_email) = match &leaf {
            Some((_, leaf)) => (common_name(leaf), email(leaf)),
            None => (None, None),
        };
        Self {
            version: match state.protocol_version() {
                Some(ProtocolVersion::TLSv1_3) => Version::Tls13,
                // rustls has no older versions.
                _ => Version::Tls12,
            },
            cipher: cipher.into(),
            key_bits,
            group: group.map_or_else(String::new, |group| format!("{:?}", group.name())),
            sni,
            alpn: alpn.map(|name| name.into()),
            resumed: state.handshake_kind() == Some(HandshakeKind::Resumed),
            client_leaf_len: chain.first().map_or(0, |leaf| pem(leaf).len()),
            client_pem: chain.iter().map(pem).collect(),
            client_chain: chain.iter().map(|der| der.clone().into_owned()).collect(),
            client_sha256: chain.first().map(|leaf| fingerprint(leaf)),
            client_cn,
            client_email,
        }
    }
    /// Facts of an assumed handshake with a usual client, which asks for the name `sni` and presents no
    /// certificate, for explaining what the front would do.
    #[must_use]
    pub fn supposed(sni: &str) -> Self {
        let (cipher, key_bits) = cipher(CipherSuite::TLS13_AES_128_GCM_SHA256);
        Self {
            sni: Some(sni.into()),
            ..Self::without_certificate(Version::Tls13, cipher.into(), key_bits)
        }
    }

    /// Facts that a proxy reports, which ended the client's TLS itself; `None` if `version` is neither TLS 1.2
    /// nor 1.3. `client_cn` is from a certificate that the proxy verified.
    #[must_use]
    pub fn told(version: &str, cipher: Option<String>, client_cn: Option<String>) -> Option<Self> {
        let mut known_versions = [Version::Tls12, Version::Tls13].into_iter();
        let version = known_versions.find(|known| known.name() == version)?;
        // The name appears in logs unchanged.
        let is_name = |text: &String| {
            text.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        let cipher = cipher.filter(is_name).unwrap_or_default();
        let key_bits = key_bits(&cipher);
        Some(Self {
            client_cn: client_cn.map(String::into_boxed_str),
            ..Self::without_certificate(version, cipher.into(), key_bits)
        })
    }

    /// Facts of a new session whose client presented no certificate and asked for no name.
    fn without_certificate(version: Version, cipher: Cow<'static, str>, key_bits: u16) -> Self {
        Self {
            version,
            cipher,
            key_bits,
            group: String::new(),
            sni: None,
            alpn: None,
            resumed: false,
            client_pem: String::new(),
            client_leaf_len: 0,
            client_chain: Vec::new(),
            client_sha256: None,
            client_cn: None,
            client_email: None,
        }
    }

    /// Whether the facts identify the client by a certificate.
    #[must_use]
    pub fn name_client(&self) -> bool {
        self.client_sha256.is_some() || self.client_cn.is_some()
    }

    /// The client's certificate as PEM, followed by its chain if `chain`; `None` if it presented none.
    #[must_use]
    pub fn client_certificate(&self, chain: bool) -> Option<&str> {
        let len = if chain {
            self.client_pem.len()
        } else {
            self.client_leaf_len
        };
        self.client_pem.get(..len).filter(|pem| !pem.is_empty())
    }
}

/// OpenSSL's name of a cipher suite, and the size of its key in bits.
fn cipher(suite: CipherSuite) -> (&'static str, u16) {
    match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => ("TLS_AES_128_GCM_SHA256", 128),
        CipherSuite::TLS13_AES_256_GCM_SHA384 => ("TLS_AES_256_GCM_SHA384", 256),
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => ("TLS_CHACHA20_POLY1305_SHA256", 256),
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 => {
            ("ECDHE-ECDSA-AES128-GCM-SHA256", 128)
        }
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 => {
            ("ECDHE-ECDSA-AES256-GCM-SHA384", 256)
        }
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => {
            ("ECDHE-ECDSA-CHACHA20-POLY1305", 256)
        }
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => ("ECDHE-RSA-AES128-GCM-SHA256", 128),
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => ("ECDHE-RSA-AES256-GCM-SHA384", 256),
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => {
            ("ECDHE-RSA-CHACHA20-POLY1305", 256)
        }
        // The provider has no others.
        _ => ("unknown", 0),
    }
}

/// The size of a cipher suite's key in bits, by OpenSSL's name of the suite; 0 if the name does not show it.
fn key_bits(cipher: &str) -> u16 {
    if cipher.contains("AES128") || cipher.contains("AES_128") {
        128
    } else if cipher.contains("AES") || cipher.contains("CHACHA20") {
        256
    } else {
        0
    }
}

/// The subject's common name; `None` if it has none, or one with control characters.
fn common_name(certificate: &X509Certificate<'_>) -> Option<Box<str>> {
    let common_name = certificate.subject().iter_common_name().next()?;
    let text = common_name.as_str().ok()?;
    (!text.contains(char::is_control)).then(|| text.into())
}

/// The first address of mail among the alternative names (RFC 5280, section 4.2.1.6); `None` if there is none, or one with
/// control characters.
fn email(certificate: &X509Certificate<'_>) -> Option<Box<str>> {
    let names = certificate.subject_alternative_name().ok()??;
    let mut emails = names
        .value
        .general_names
        .iter()
        .filter_map(|name| match name {
            GeneralName::RFC822Name(email) => Some(*email),
            _ => None,
        });
    let first = emails.next()?;
    (!first.is_empty() && !first.contains(char::is_control)).then(|| first.into())
}

/// SHA-256 of a certificate's DER, in lower-case hexadecimal.
#[must_use]
pub fn fingerprint(der: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in digest(&SHA256, der).as_ref() {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// A certificate as PEM (RFC 7468), lines of 64 characters.
fn pem(certificate: &CertificateDer<'_>) -> String {
    let encoded = STANDARD.encode(certificate);
    // A line end for each 64 characters, and the first and the last line.
    let mut text = String::with_capacity(encoded.len() * 65 / 64 + 60);
    text.push_str("-----BEGIN CERTIFICATE-----\n");
    let mut unwritten = encoded.as_str();
    while !unwritten.is_empty() {
        let (line, lines_after) = unwritten.split_at(unwritten.len().min(64));
        text.push_str(line);
        text.push('\n');
        unwritten = lines_after;
    }
    text.push_str("-----END CERTIFICATE-----\n");
    text
}

#[cfg(test)]
mod tests {
    use catamaran_testkit::tls::Pair;
    use rcgen::{DnType, SanType};
    use rustls::pki_types::pem::PemObject;

    use super::*;

    #[test]
    fn a_certificate_names_its_client() {
        let read = |emails: &[&str]| {
            let pair = Pair::self_signed_with(&["a.test"], |params| {
                params.distinguished_name.push(DnType::CommonName, "Ann");
                for email in emails {
                    let email = (*email).try_into().expect("ASCII");
                    params.subject_alt_names.push(SanType::Rfc822Name(email));
                }
            });
            let der = CertificateDer::from_pem_slice(pair.chain.as_bytes()).expect("PEM");
            let (_, leaf) = X509Certificate::from_der(&der).expect("DER");
            assert_eq!(common_name(&leaf).as_deref(), Some("Ann"));
            email(&leaf)
        };
        assert_eq!(read(&[]), None);
        let two = ["ann@example.org", "root@example.org"];
        assert_eq!(read(&two).as_deref(), Some("ann@example.org"));
        assert_eq!(read(&["ann\n@example.org"]), None);
    }

    #[test]
    fn what_a_proxy_tells_is_taken_if_it_has_a_name_here() {
        let told = |version, cipher: &str| Facts::told(version, Some(cipher.to_owned()), None);
        let facts = told("TLSv1.3", "TLS_AES_256_GCM_SHA384").expect("a version");
        assert_eq!((facts.version, facts.key_bits), (Version::Tls13, 256));
        assert_eq!(
            told("TLSv1.2", "AES128-SHA").expect("a version").key_bits,
            128
        );
        assert_eq!(told("TLSv1.2", "a\" b").expect("a version").cipher, "");
        assert_eq!(told("TLSv1.1", "AES128-SHA"), None);
    }

    #[test]
    fn every_suite_of_the_provider_has_its_openssl_name() {
        for suite in &crate::provider().cipher_suites {
            let (name, bits) = cipher(suite.suite());
            assert_ne!(name, "unknown", "{suite:?}");
            assert_eq!(key_bits(name), bits, "{name}");
        }
    }
}
