//! TLS of a listener: certificates, verification of clients, tickets.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aws_lc_rs::digest;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use rustls::server::{
    NoServerSessionStorage, VerifierBuilderError, WantsServerCert, WebPkiClientVerifier,
};
use rustls::version::{TLS12, TLS13};
use rustls::{ConfigBuilder, RootCertStore, ServerConfig};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;
use x509_parser::revocation_list::CertificateRevocationList;
use x509_parser::x509::X509Name;

use crate::challenge::{self, ChallengeCertificates};
use crate::clock::SystemClock;
use crate::facts::Version;
use crate::fault::{Fault, Part, PemFile, in_words};
use crate::identity::{self, CertificateFacts, Identity};
use crate::key_log::KeyLog;
use crate::names::Names;
use crate::pinned::{Depth, PinnedVerifier};
use crate::tickets::{TicketKeys, Ticketer};

/// Whether a listener asks clients for a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificate {
    /// Clients are not asked for a certificate.
    Off,
    /// Clients are asked for a certificate. They may have none, but one that cannot be verified is
    /// refused.
    Optional,
    /// Clients must present a certificate that can be verified.
    Required,
}

/// The protocols that clients of a listener may speak, chosen by ALPN over TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocols {
    /// HTTP/1.1 only.
    #[default]
    Http1,
    /// HTTP/2 only.
    Http2,
    /// HTTP/1.1 and HTTP/2; HTTP/2 is used if the client offers it by ALPN.
    Both,
}

impl Protocols {
    /// Whether clients may speak HTTP/2.
    #[must_use]
    pub fn has_http2(self) -> bool {
        self != Self::Http1
    }

    /// The protocols' names for ALPN, the preferred one first.
    fn alpn(self) -> Vec<Vec<u8>> {
        let names: &[&[u8]] = match self {
            Self::Http1 => &[b"http/1.1"],
            Self::Http2 => &[b"h2"],
            Self::Both => &[b"h2", b"http/1.1"],
        };
        names.iter().map(|name| name.to_vec()).collect()
    }
}

/// The settings of a profile that are in the configuration itself, not in files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileSettings {
    /// Whether clients are refused that ask for an unknown server name, or for none.
    pub strict_sni: bool,
    /// The lowest version of TLS that clients may use.
    pub version_min: Version,
    /// Whether clients are asked for a certificate.
    pub client_certificate: ClientCertificate,
    /// The most authorities between a client's certificate and one of `client_ca`, up to [`crate::DEPTH_MAX`].
    pub client_ca_depth: usize,
    /// Whether backends also get the chain of a client's certificate.
    pub client_certificate_chain: bool,
    /// Whether sessions may be resumed.
    pub tickets: bool,
    /// How often the keys of tickets change.
    pub ticket_rotation: Duration,
}

/// A certificate of a profile.
#[derive(Clone, Debug)]
pub struct CertificateFiles {
    /// The certificate, then the certificates of its issuers.
    pub chain: PemFile,
    /// The private key of the certificate.
    pub key: PemFile,
    /// Whether this certificate serves clients that ask for another name or for none.
    pub default: bool,
}

/// The certificates of a profile that are issued to this program while it runs. None of them is the default.
#[derive(Clone, Debug, Default)]
pub struct IssuedCertificates {
    /// The certificates that were issued so far.
    pub identities: Vec<Identity>,
    /// The names, in lower case, whose first certificate is awaited. A client that asks for one of them is
    /// refused, unless another certificate is for that name, too.
    pub awaited: Vec<String>,
}

impl IssuedCertificates {
    fn are_none(&self) -> bool {
        self.identities.is_empty() && self.awaited.is_empty()
    }

    /// These certificates, and for each awaited name the one of `served` that has not ended at `now`, if there is one.
    #[must_use]
    pub fn or_served(mut self, served: &Self, now: SystemTime) -> Self {
        for identity in &served.identities {
            let names = &identity.facts.names;
            let awaited = self.awaited.len();
            if identity.facts.not_after > now {
                self.awaited.retain(|name| !names.contains(name));
            }
            if self.awaited.len() < awaited {
                self.identities.push(identity.clone());
            }
        }
        self
    }
}

/// The files of a profile, and the certificates that it has besides.
#[derive(Clone, Debug, Default)]
pub struct ProfileFiles {
    /// The certificates of the profile, at least one if none is issued.
    pub certificates: Vec<CertificateFiles>,
    /// The certificates that are issued to this program.
    pub issued: IssuedCertificates,
    /// The certificates that answer an authority's challenges tls-alpn-01; `None`: none is answered. They do not count
    /// for a profile that asks clients for certificates, because the authority has none.
    pub challenges: Option<Arc<dyn ChallengeCertificates>>,
    /// The authorities that may issue certificates of clients; `None`: there is no such file.
    pub client_ca: Option<PemFile>,
    /// The list of revoked client certificates; `None`: there is no such file.
    pub client_crl: Option<PemFile>,
}

/// Certificates, names and trust, ready for handshakes.
#[derive(Debug)]
pub struct Profile {
    /// The configuration of rustls for each choice of protocols, since listeners of a profile may
    /// differ in them.
    configs: [Arc<ServerConfig>; 3],
    names: Arc<Names>,
    /// The names of the certificates that come from files.
    names_of_files: Names,
    /// Facts of those certificates, and then of issued ones.
    certificates: Vec<CertificateFacts>,
    /// How many certificates come from files.
    of_files: usize,
    issued: IssuedCertificates,
    client_certificate: ClientCertificate,
    client_certificate_chain: bool,
}

/// A profile, and the warnings about its files.
#[derive(Debug)]
pub struct BuiltProfile {
    /// The profile that was built from the files.
    pub profile: Profile,
    /// Warnings about the files, which can be used all the same.
    pub warnings: Vec<Fault>,
}

impl Profile {
    /// Builds a profile. Certificates are checked as of `now`. `key_log` gets the secrets of every
    /// session.
    ///
    /// # Errors
    /// All faults of the files.
    pub fn build(
        settings: &ProfileSettings,
        files: &ProfileFiles,
        keys: &Arc<TicketKeys>,
        key_log: Option<Arc<KeyLog>>,
        now: SystemTime,
    ) -> Result<BuiltProfile, Vec<Fault>> {
        let provider = crate::provider();
        let (mut faults, mut warnings) = (Vec::new(), Vec::new());
        let mut identities = Vec::new();
        for (index, pair) in files.certificates.iter().enumerate() {
            match identity::read(index, &pair.chain, &pair.key, &provider, now, &mut warnings) {
                Ok(identity) => identities.push(identity),
                Err(identity_faults) => faults.extend(identity_faults),
            }
        }
        let default_index = default_index(files, &mut faults);
        if files.certificates.is_empty() && files.issued.are_none() {
            let hint = "add a [[tls.NAME.certificate]] with its `chain` and `key`";
            faults.push(Fault::new(Part::Profile, "there is no certificate", hint));
        }
        let clients = match trusted_clients(settings, files, now, &mut warnings) {
            Ok(clients) => clients,
            Err(client_faults) => {
                faults.extend(client_faults);
                None
            }
        };
        if !faults.is_empty() {
            return Err(faults);
        }

        let mut names_of_files = Names::new(&identities, default_index, settings.strict_sni)?;
        if settings.client_certificate == ClientCertificate::Off {
            names_of_files.challenges.clone_from(&files.challenges);
        }
        let names = Arc::new(names_of_files.with_issued(&files.issued));
        let builder = server_config(settings, files, clients, &provider)?;
        let mut config = builder.with_cert_resolver(Arc::clone(&names) as _);
        config.session_storage = Arc::new(NoServerSessionStorage {});
        // Early data is never accepted, because rustls requires stored sessions for it. This much of it is skipped.
        config.max_early_data_size = EARLY_DATA_SKIPPED_MAX;
        if let Some(key_log) = key_log {
            config.key_log = key_log;
        }
        if settings.tickets {
            config.ticketer = Arc::new(Ticketer {
                keys: Arc::clone(keys),
                trust: digest_of_trust(settings, files),
                rotation: settings.ticket_rotation,
            });
        } else {
            config.send_tls13_tickets = 0;
        }
        let configs = EVERY_CHOICE.map(|protocols| {
            let mut config = config.clone();
            config.alpn_protocols = protocols.alpn();
            if names.challenges.is_some() {
                config.alpn_protocols.push(challenge::PROTOCOL.to_vec());
            }
            Arc::new(config)
        });
        let of_files = identities.len();
        let all = identities.iter().chain(&files.issued.identities);
        let profile = Self {
            configs,
            names,
            names_of_files,
            certificates: all.map(|identity| identity.facts.clone()).collect(),
            of_files,
            issued: files.issued.clone(),
            client_certificate: settings.client_certificate,
            client_certificate_chain: settings.client_certificate_chain,
        };
        Ok(BuiltProfile { profile, warnings })
    }

    /// The same profile with other issued certificates. Certificates of files, trust and tickets stay.
    #[must_use]
    pub fn with_issued(&self, issued: &IssuedCertificates) -> Self {
        let names = Arc::new(self.names_of_files.with_issued(issued));
        let configs = self.configs.each_ref().map(|config| {
            let mut config = ServerConfig::clone(config);
            config.cert_resolver = Arc::clone(&names) as _;
            Arc::new(config)
        });
        let mut certificates = self.certificates[..self.of_files].to_vec();
        certificates.extend(issued.identities.iter().map(|it| it.facts.clone()));
        Self {
            configs,
            names,
            names_of_files: self.names_of_files.clone(),
            certificates,
            of_files: self.of_files,
            issued: issued.clone(),
            client_certificate: self.client_certificate,
            client_certificate_chain: self.client_certificate_chain,
        }
    }

    /// The certificates that were issued to this program, and the names that await one.
    #[must_use]
    pub fn issued(&self) -> &IssuedCertificates {
        &self.issued
    }

    /// The rustls configuration for connections with these protocols.
    pub(crate) fn config(&self, protocols: Protocols) -> &Arc<ServerConfig> {
        &self.configs[protocols as usize]
    }

    /// Facts about the profile's certificates: those of files in the configuration's order, then issued
    /// ones.
    #[must_use]
    pub fn certificates(&self) -> &[CertificateFacts] {
        &self.certificates
    }

    /// Whether clients are asked for a certificate.
    #[must_use]
    pub fn verifies_clients(&self) -> bool {
        self.client_certificate != ClientCertificate::Off
    }

    /// Whether backends also get the chain of a client's certificate.
    #[must_use]
    pub fn tells_chain(&self) -> bool {
        self.client_certificate_chain
    }

    /// Whether a request for `host`, in lower case, is allowed on a connection whose client asked for
    /// the server name `sni`. With client certificates, both must be equal; else `host` must be a name
    /// that is served.
    #[must_use]
    pub fn allows(&self, host: &str, sni: Option<&str>) -> bool {
        if sni == Some(host) {
            return true;
        }
        if self.verifies_clients() {
            // Clients do not send addresses (RFC 6066, section 3).
            return sni.is_none() && is_address(host);
        }
        self.names.serves(host)
    }
}

fn is_address(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.parse::<std::net::IpAddr>().is_ok()
}

/// The index of the certificate that is marked as default; `None` without a mark. A second mark is a fault.
fn default_index(files: &ProfileFiles, faults: &mut Vec<Fault>) -> Option<usize> {
    let mut first = None;
    for (index, certificate) in files.certificates.iter().enumerate() {
        if !certificate.default {
            continue;
        }
        if first.is_none() {
            first = Some(index);
            continue;
        }
        let message = "another certificate is the default already";
        let hint = "keep one `default = true`";
        faults.push(Fault::new(Part::Default(index), message, hint));
    }
    first
}

/// What certificates of clients are verified with.
struct TrustedClients {
    roots: RootCertStore,
    crls: Vec<CertificateRevocationListDer<'static>>,
    /// The certificates of the roots themselves that are not revoked: a client may present one of them as its own.
    own: Vec<CertificateDer<'static>>,
}

/// The authorities for client certificates; `None` if clients are not asked for one.
fn trusted_clients(
    settings: &ProfileSettings,
    files: &ProfileFiles,
    now: SystemTime,
    warnings: &mut Vec<Fault>,
) -> Result<Option<TrustedClients>, Vec<Fault>> {
    if settings.client_certificate == ClientCertificate::Off {
        return Ok(None);
    }
    let Some(ca) = &files.client_ca else {
        let message = "`client_certificate` is on, and no `client_ca` says who may issue them";
        let hint = "add `client_ca` with the certificates of who issues them, as PEM";
        return Err(vec![Fault::new(Part::Profile, message, hint)]);
    };
    let issuers = identity::certificates(ca, Part::ClientCa).map_err(|fault| vec![fault])?;
    let mut roots = RootCertStore::empty();
    for issuer in &issuers {
        roots.add(issuer.clone()).map_err(|error| {
            let message = format!(
                "a certificate in {} cannot be used: {}",
                ca.path.display(),
                in_words(&error)
            );
            let hint = "name a file with certificates of authorities only";
            vec![Fault::new(Part::ClientCa, message, hint)]
        })?;
    }
    let crls = match &files.client_crl {
        Some(file) => crls(file, &issuers, now, warnings).map_err(|fault| vec![fault])?,
        None => Vec::new(),
    };
    let own = unrevoked(issuers, &crls);
    Ok(Some(TrustedClients { roots, crls, own }))
}

/// The certificates that none of these lists has. The dates and signatures of the lists are not verified here.
fn unrevoked(
    mut certificates: Vec<CertificateDer<'static>>,
    crls: &[CertificateRevocationListDer<'static>],
) -> Vec<CertificateDer<'static>> {
    let read = crls
        .iter()
        .filter_map(|der| CertificateRevocationList::from_der(der).ok());
    for (_, crl) in read {
        certificates.retain(|der| {
            // What cannot be read may be revoked.
            X509Certificate::from_der(der).is_ok_and(|(_, certificate)| {
                let mut entries = crl.iter_revoked_certificates();
                crl.issuer().as_raw() != certificate.issuer().as_raw()
                    || !entries.any(|it| it.raw_serial() == certificate.raw_serial())
            })
        });
    }
    certificates
}

/// Reads the lists of revoked certificates, and checks that one of `issuers` issued each.
fn crls(
    file: &PemFile,
    issuers: &[CertificateDer<'_>],
    now: SystemTime,
    warnings: &mut Vec<Fault>,
) -> Result<Vec<CertificateRevocationListDer<'static>>, Fault> {
    let path = file.path.display();
    let fault = |message: String, hint: &str| Fault::new(Part::ClientCrl, message, hint);
    let hint = "get it from who issues the certificates, as PEM: openssl crl -inform der";
    let crls = CertificateRevocationListDer::pem_slice_iter(&file.bytes)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| fault(format!("{path} is broken PEM: {error}"), hint))?;
    if crls.is_empty() {
        return Err(fault(format!("there is no X509 CRL block in {path}"), hint));
    }
    for der in &crls {
        let (_, crl) = CertificateRevocationList::from_der(der)
            .map_err(|error| fault(format!("a CRL in {path} cannot be read: {error}"), hint))?;
        if !is_known(crl.issuer(), issuers) {
            return Err(fault(
                format!(
                    "{path} was issued by {}, which is not in `client_ca`",
                    crl.issuer()
                ),
                "add the certificate of that issuer to `client_ca`, or name another CRL",
            ));
        }
        if let Some(next_update) = crl.next_update()
            && seconds(now) > next_update.timestamp()
        {
            warnings.push(fault(
                format!("{path} was to be replaced already; certificates of clients are refused"),
                "get a new one, and have it renewed before its nextUpdate",
            ));
        }
    }
    Ok(crls)
}

/// Whether one of the certificates in `issuers` is of `issuer`.
fn is_known(issuer: &X509Name<'_>, issuers: &[CertificateDer<'_>]) -> bool {
    issuers.iter().any(|der| {
        let parsed = X509Certificate::from_der(der);
        parsed.is_ok_and(|(_, certificate)| certificate.subject() == issuer)
    })
}

fn seconds(time: SystemTime) -> i64 {
    let since = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// The fault that the verifier of client certificates cannot use a file.
fn unusable(files: &ProfileFiles, error: &VerifierBuilderError) -> Fault {
    let (part, file) = match error {
        VerifierBuilderError::InvalidCrl(_) => (Part::ClientCrl, &files.client_crl),
        _ => (Part::ClientCa, &files.client_ca),
    };
    let path = file.as_ref().map(|file| file.path.display().to_string());
    let message = format!("{} cannot be used: {error}", path.unwrap_or_default());
    Fault::new(part, message, "get the file anew from who issued it")
}

/// A rustls configuration with the versions of TLS and the verification of client certificates.
fn server_config(
    settings: &ProfileSettings,
    files: &ProfileFiles,
    clients: Option<TrustedClients>,
    provider: &Arc<CryptoProvider>,
) -> Result<ConfigBuilder<ServerConfig, WantsServerCert>, Vec<Fault>> {
    let versions: &[_] = match settings.version_min {
        Version::Tls12 => &[&TLS13, &TLS12],
        Version::Tls13 => &[&TLS13],
    };
    let builder = ServerConfig::builder_with_details(Arc::clone(provider), Arc::new(SystemClock))
        .with_protocol_versions(versions)
        .map_err(|error| {
            let message = format!("TLS cannot be set up: {error}");
            vec![Fault::new(Part::Profile, message, "report it as a bug")]
        })?;
    let Some(TrustedClients { roots, crls, own }) = clients else {
        return Ok(builder.with_no_client_auth());
    };
    let roots: Arc<RootCertStore> = roots.into();
    let mut verifier_builder =
        WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(provider))
            .with_crls(crls)
            .enforce_revocation_expiration();
    if settings.client_certificate == ClientCertificate::Optional {
        verifier_builder = verifier_builder.allow_unauthenticated();
    }
    let verifier = verifier_builder
        .build()
        .map_err(|error| vec![unusable(files, &error)])?;
    let max = settings.client_ca_depth;
    let pinned = PinnedVerifier::new(own.into(), Depth { roots, max }, verifier);
    Ok(builder.with_client_cert_verifier(Arc::new(pinned)))
}

/// A digest of the settings for client certificates: a session is resumed only under equal ones.
fn digest_of_trust(settings: &ProfileSettings, files: &ProfileFiles) -> [u8; 32] {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(&[settings.client_certificate as u8]);
    context.update(&settings.client_ca_depth.to_be_bytes());
    for file in [&files.client_ca, &files.client_crl] {
        let bytes = file.as_ref().map_or(&[][..], |file| &file.bytes);
        // With the lengths, bytes cannot move from one file to the other unnoticed.
        context.update(&bytes.len().to_be_bytes());
        context.update(bytes);
    }
    let mut digest = [0; 32];
    digest.copy_from_slice(context.finish().as_ref());
    digest
}

/// All choices of protocols, in the order of their numbers.
const EVERY_CHOICE: [Protocols; 3] = [Protocols::Http1, Protocols::Http2, Protocols::Both];

/// The most encrypted bytes of early data that are skipped of a client with a ticket of another
/// server. rustls counts a record again with each read until the handshake goes on. Servers allow 16
/// KiB.
const EARLY_DATA_SKIPPED_MAX: u32 = 512 * 1024;
