//! A certificate with its key, read from PEM and checked.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SigningKey};
use rustls::{Error, InconsistentKeys, SignatureAlgorithm};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;
use x509_parser::time::ASN1Time;

use crate::facts::fingerprint;
use crate::fault::{Fault, Part, PemFile};
use crate::store::Store;

/// A certificate with its chain and key, checked and ready to be served.
#[derive(Clone, Debug)]
pub struct Identity {
    pub(crate) certified: Arc<CertifiedKey>,
    /// Facts that the certificate states.
    pub facts: CertificateFacts,
}

/// Facts that a certificate states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFacts {
    /// The DNS names in lower case, wildcards as they are (`*.example.org`), and addresses.
    pub names: Vec<String>,
    /// The distinguished name of the certificate's issuer.
    pub issuer: String,
    /// The beginning of the certificate's validity.
    pub not_before: SystemTime,
    /// The end of the certificate's validity.
    pub not_after: SystemTime,
    /// The SHA-256 of the certificate's DER, in lower-case hexadecimal.
    pub sha256: String,
    /// The type of the key: `"RSA"`, `"ECDSA"` or `"Ed25519"`.
    pub key_type: &'static str,
    /// The file of the certificate.
    pub chain_file: PathBuf,
    /// The file of the certificate's key.
    pub key_file: PathBuf,
}

impl Identity {
    /// Reads a certificate that was issued to this program, and its key, and checks them as of the time `now`.
    ///
    /// # Errors
    /// All faults found.
    pub fn issued(chain: &PemFile, key: &PemFile, now: SystemTime) -> Result<Self, Vec<Fault>> {
        // Warnings are about what an operator put there.
        read(0, chain, key, &crate::provider(), now, &mut Vec::new())
    }

    /// Identifies the certificate to its authority; `None`: it does not name its authority's key.
    #[must_use]
    pub fn renewal_id(&self) -> Option<RenewalId> {
        let der = self.certified.cert.first()?;
        let (_, leaf) = X509Certificate::from_der(der).ok()?;
        let mut extensions = leaf.iter_extensions();
        let key = extensions.find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::AuthorityKeyIdentifier(authority) => authority.key_identifier.as_ref(),
            _ => None,
        })?;
        Some(RenewalId {
            authority_key: URL_SAFE_NO_PAD.encode(key.0),
            serial: URL_SAFE_NO_PAD.encode(leaf.raw_serial()),
        })
    }
}

/// Identifies a certificate in questions about its renewal (RFC 9773, section 4.1). Both are base64url.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenewalId {
    /// The identifier of the key with which the authority signed the certificate.
    pub authority_key: String,
    /// The certificate's serial number.
    pub serial: String,
}

/// Reads a certificate and its key, and checks them as of the time `now`. Adds warnings to `warnings`.
///
/// # Errors
/// All faults found.
pub(crate) fn read(
    index: usize,
    chain: &PemFile,
    key: &PemFile,
    provider: &CryptoProvider,
    now: SystemTime,
    warnings: &mut Vec<Fault>,
) -> Result<Identity, Vec<Fault>> {
    let (chain_part, key_part) = (Part::Chain(index), Part::Key(index));
    // Both files are read before the first return, so that the faults of both are reported.
    let mut faults = Vec::new();
    let certificates = ok_or_note(certificates(chain, chain_part), &mut faults);
    let signing_key = ok_or_note(signing_key(key, key_part, provider), &mut faults);
    if key.is_public {
        let message = format!("every user may read the key {}", key.path.display());
        let hint = format!("chmod 600 {}", key.path.display());
        warnings.push(Fault::new(key_part, message, hint));
    }
    let Some(certificates) = certificates else {
        return Err(faults);
    };
    let Some(leaf) = ok_or_note(parse(&certificates[0], chain, chain_part), &mut faults) else {
        return Err(faults);
    };
    check_leaf(&leaf, chain, chain_part, &mut faults);
    let Some(signing_key) = signing_key.filter(|_| faults.is_empty()) else {
        return Err(faults);
    };
    let facts = CertificateFacts {
        chain_file: chain.path.clone(),
        key_file: key.path.clone(),
        ..facts(&leaf, &certificates[0], key_type(&*signing_key))
    };
    warn_of_leaf(
        &leaf,
        &certificates,
        &facts,
        chain,
        chain_part,
        now,
        warnings,
    );
    let certified = CertifiedKey::new(certificates, signing_key);
    check_keys_match(&certified, chain, chain_part, key, key_part).map_err(|fault| vec![fault])?;
    Ok(Identity {
        certified: Arc::new(certified),
        facts,
    })
}

/// The value of a result; adds its fault to `faults` if it has none.
fn ok_or_note<T>(result: Result<T, Fault>, faults: &mut Vec<Fault>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(fault) => {
            faults.push(fault);
            None
        }
    }
}

/// Checks that the key is that of the first certificate.
fn check_keys_match(
    certified: &CertifiedKey,
    chain: &PemFile,
    chain_part: Part,
    key: &PemFile,
    key_part: Part,
) -> Result<(), Fault> {
    if has_matching_key(certified) {
        return Ok(());
    }
    let mut issuers = certified.cert.iter().skip(1);
    let is_of_another = issuers.any(|certificate| {
        let signing_key = Arc::clone(&certified.key);
        has_matching_key(&CertifiedKey::new(vec![certificate.clone()], signing_key))
    });
    if is_of_another {
        let path = chain.path.display();
        let message = format!("the server's own certificate is not the first in {path}");
        let hint = "order the file: the server's certificate, then who issued it, and so on";
        return Err(Fault::new(chain_part, message, hint));
    }
    let message = format!(
        "the key {} does not belong to the certificate {}",
        key.path.display(),
        chain.path.display()
    );
    let hint = "compare `openssl x509 -noout -pubkey -in CHAIN` with `openssl pkey -pubout -in \
                KEY`, and name the file that belongs to the other";
    Err(Fault::new(key_part, message, hint))
}

/// Whether the key is that of the first certificate, or rustls cannot tell.
fn has_matching_key(certified: &CertifiedKey) -> bool {
    !matches!(
        certified.keys_match(),
        Err(Error::InconsistentKeys(InconsistentKeys::KeyMismatch))
    )
}

/// The certificates in a PEM file; at least one.
pub(crate) fn certificates(
    file: &PemFile,
    part: Part,
) -> Result<Vec<CertificateDer<'static>>, Fault> {
    if let Some(store) = Store::of(&file.bytes) {
        return Err(store.fault(file, part));
    }
    let certificates = CertificateDer::pem_slice_iter(&file.bytes)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| broken_pem(file, part, &error))?;
    if !certificates.is_empty() {
        return Ok(certificates);
    }
    let path = file.path.display();
    if is_der(&file.bytes) {
        let message = format!("{path} is DER, not PEM");
        let hint = format!("openssl x509 -inform der -in {path} -out {path}.pem");
        return Err(Fault::new(part, message, hint));
    }
    let message = format!("there is no CERTIFICATE block in {path}");
    let hint = "name the PEM file with the certificate and its chain";
    Err(Fault::new(part, message, hint))
}

/// Reads the key of a PEM file. The fault says what the file is instead, and how to convert it.
fn signing_key(
    file: &PemFile,
    part: Part,
    provider: &CryptoProvider,
) -> Result<Arc<dyn SigningKey>, Fault> {
    let path = file.path.display();
    let fault = |message: String, hint: String| Err(Fault::new(part, message, hint));
    if let Some(store) = Store::of(&file.bytes) {
        return Err(store.fault(file, part));
    }
    if is_encrypted(&file.bytes) {
        let message = format!("the key {path} is encrypted, and nobody can type its password");
        return fault(
            message,
            format!("openssl pkey -in {path} -out {path}.plain"),
        );
    }
    let key = match PrivateKeyDer::from_pem_slice(&file.bytes) {
        Ok(key) => key,
        Err(pem::Error::NoItemsFound) if is_der(&file.bytes) => {
            let message = format!("{path} is DER, not PEM");
            return fault(
                message,
                format!("openssl pkey -inform der -in {path} -out {path}.pem"),
            );
        }
        Err(pem::Error::NoItemsFound) => {
            let message = format!("there is no PRIVATE KEY block in {path}");
            return fault(
                message,
                "name the PEM file with the certificate's key".to_owned(),
            );
        }
        Err(error) => return Err(broken_pem(file, part, &error)),
    };
    provider
        .key_provider
        .load_private_key(key)
        .or_else(|error| {
            let message = format!("the key {path} cannot be used: {error}");
            fault(
                message,
                "use an RSA key of 2048 to 8192 bits, P-256, P-384 or Ed25519".to_owned(),
            )
        })
}

fn broken_pem(file: &PemFile, part: Part, error: &pem::Error) -> Fault {
    let message = format!("{} is broken PEM: {error}", file.path.display());
    Fault::new(part, message, "get the file anew from who issued it")
}

/// Whether the bytes begin like DER: with a SEQUENCE.
fn is_der(bytes: &[u8]) -> bool {
    match bytes {
        // A long one, whose length takes several bytes.
        [0x30, 0x81..=0x84, ..] => true,
        // A short one that is the whole file, such as a key on P-256.
        [0x30, length, content @ ..] => usize::from(*length) == content.len(),
        _ => false,
    }
}

fn is_encrypted(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    text.contains("-----BEGIN ENCRYPTED PRIVATE KEY-----")
        || text.contains("Proc-Type: 4,ENCRYPTED")
}

fn parse<'a>(
    der: &'a CertificateDer<'_>,
    file: &PemFile,
    part: Part,
) -> Result<X509Certificate<'a>, Fault> {
    X509Certificate::from_der(der)
        .map(|(_, certificate)| certificate)
        .map_err(|error| {
            let path = file.path.display();
            let message = format!("the first certificate in {path} cannot be read: {error}");
            Fault::new(part, message, "get the file anew from who issued it")
        })
}

/// Adds the faults of the server's own certificate to `faults`.
fn check_leaf(leaf: &X509Certificate<'_>, file: &PemFile, part: Part, faults: &mut Vec<Fault>) {
    let path = file.path.display();
    let mut fault = |message: String, hint: &str| faults.push(Fault::new(part, message, hint));
    if let Ok(PublicKey::RSA(key)) = leaf.public_key().parsed()
        && key.key_size() < RSA_BITS_MIN
    {
        let bits = key.key_size();
        fault(
            format!("the certificate in {path} has an RSA key of {bits} bits; 2048 is the least"),
            "reissue it with a new key: openssl genpkey -algorithm EC -pkeyopt \
             ec_paramgen_curve:P-256",
        );
    }
    let algorithm = leaf.signature_algorithm.algorithm.to_id_string();
    if SHA1_SIGNATURES.contains(&algorithm.as_str()) {
        fault(
            format!("the certificate in {path} is signed with SHA-1, which no client accepts"),
            "have it reissued with SHA-256: openssl x509 -req -sha256",
        );
    }
}

/// Adds warnings about the server's own certificate, which can be served all the same.
fn warn_of_leaf(
    leaf: &X509Certificate<'_>,
    chain: &[CertificateDer<'_>],
    facts: &CertificateFacts,
    file: &PemFile,
    part: Part,
    now: SystemTime,
    warnings: &mut Vec<Fault>,
) {
    let path = file.path.display();
    let mut warn = |message: String, hint: &str| warnings.push(Fault::new(part, message, hint));
    let name = facts.names.first().map_or("?", |name| name);
    if alternative_names(leaf).is_empty() {
        warn(
            format!("the certificate in {path} has no subjectAltName, so browsers refuse it"),
            "reissue it with the names: openssl req -x509 with -addext subjectAltName=DNS:www.example.org; \
             openssl x509 -req takes names only from -extfile, or from the request with -copy_extensions copy",
        );
    }
    match facts.not_after.duration_since(now) {
        Err(since) => warn(
            format!(
                "the certificate of {name} expired {} days ago",
                days(since.duration())
            ),
            "renew it; it is served meanwhile",
        ),
        Ok(left) if left < RENEWAL => warn(
            format!("the certificate of {name} expires in {} days", days(left)),
            "renew it",
        ),
        Ok(_) => {}
    }
    if chain.len() == 1 && is_issued_publicly(leaf) {
        warn(
            format!(
                "the chain of {name} has the certificate alone, so some clients cannot verify it"
            ),
            "append the certificate of who issued it (fullchain.pem, not cert.pem)",
        );
    }
    if has_extension(leaf, MUST_STAPLE) {
        warn(
            format!("the certificate of {name} demands OCSP stapling, which is not done"),
            "reissue it without must-staple",
        );
    }
}

/// Whether an authority that browsers know issued the certificate: those sign by an intermediate, and
/// log what they sign. A private root may sign a server's certificate itself, and then no intermediate
/// is missing.
fn is_issued_publicly(leaf: &X509Certificate<'_>) -> bool {
    has_extension(leaf, TRANSPARENCY) && leaf.issuer() != leaf.subject()
}

fn has_extension(leaf: &X509Certificate<'_>, id: &str) -> bool {
    let mut extensions = leaf.extensions().iter();
    extensions.any(|extension| extension.oid.to_id_string() == id)
}

fn days(duration: Duration) -> u64 {
    duration.as_secs() / (24 * 60 * 60)
}

/// What the certificate itself states; its files are added by the caller.
fn facts(leaf: &X509Certificate<'_>, der: &[u8], key_type: &'static str) -> CertificateFacts {
    let moment = |time: ASN1Time| {
        let seconds = u64::try_from(time.timestamp()).unwrap_or(0);
        UNIX_EPOCH + Duration::from_secs(seconds)
    };
    CertificateFacts {
        names: names(leaf),
        issuer: leaf.issuer().to_string(),
        not_before: moment(leaf.validity().not_before),
        not_after: moment(leaf.validity().not_after),
        sha256: fingerprint(der),
        key_type,
        chain_file: PathBuf::new(),
        key_file: PathBuf::new(),
    }
}

/// The names and addresses that the certificate is for: those in its subjectAltName, else its common name,
/// which OpenSSL's clients accept then (RFC 9525 section 2 no longer allows it, and browsers refuse it).
fn names(leaf: &X509Certificate<'_>) -> Vec<String> {
    let names = alternative_names(leaf);
    if !names.is_empty() {
        return names;
    }
    let common_names = leaf.subject().iter_common_name();
    let texts = common_names.filter_map(|name| name.as_str().ok());
    texts.map(str::to_ascii_lowercase).collect()
}

/// The names and addresses in the certificate's subjectAltName.
fn alternative_names(leaf: &X509Certificate<'_>) -> Vec<String> {
    let mut names = Vec::new();
    let Ok(Some(extension)) = leaf.subject_alternative_name() else {
        return names;
    };
    for name in &extension.value.general_names {
        match name {
            GeneralName::DNSName(name) => names.push(name.to_ascii_lowercase()),
            GeneralName::IPAddress(bytes) => names.extend(address(bytes).map(|ip| ip.to_string())),
            _ => {}
        }
    }
    names
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(ipv4) = <[u8; 4]>::try_from(bytes) {
        return Some(ipv4.into());
    }
    let ipv6 = <[u8; 16]>::try_from(bytes).ok()?;
    Some(ipv6.into())
}

/// The kind of a key, for reports. rustls has no keys but RSA, Ed25519 and ECDSA.
fn key_type(key: &dyn SigningKey) -> &'static str {
    match key.algorithm() {
        SignatureAlgorithm::RSA => "RSA",
        SignatureAlgorithm::ED25519 => "Ed25519",
        _ => "ECDSA",
    }
}

/// The shortest RSA key in bits that clients accept.
const RSA_BITS_MIN: usize = 2048;

/// The identifiers of RSA and ECDSA signatures with SHA-1 (RFC 3279, section 2.2).
const SHA1_SIGNATURES: [&str; 2] = ["1.2.840.113549.1.1.5", "1.2.840.10045.4.1"];

/// A certificate that expires within this time causes a warning.
const RENEWAL: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// The identifier of the extension with proofs of Certificate Transparency (RFC 6962, section 3.3).
const TRANSPARENCY: &str = "1.3.6.1.4.1.11129.2.4.2";

/// The identifier of the extension "TLS feature" (RFC 7633), whose only use is must-staple.
const MUST_STAPLE: &str = "1.3.6.1.5.5.7.1.24";
