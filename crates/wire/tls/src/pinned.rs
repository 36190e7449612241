//! Certificates that are trusted by themselves: a peer's own certificate that is contained in `ca_file` or
//! `client_ca`.
//!
//! `openssl req -x509` makes certificates of authorities, which rustls accepts only as issuers. This verifier also
//! accepts them as a peer's own certificate. Name, dates, and possession of the key are still verified.
//!
//! It also limits how many authorities may stand between a peer's certificate and a trusted one ([`Depth`]).

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName, TrustAnchor, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore,
    SignatureScheme,
};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

/// A verifier that also accepts certificates without an issuer, if they are listed.
#[derive(Debug)]
pub(crate) struct PinnedVerifier<V: ?Sized> {
    /// The listed certificates, of which none is revoked: the inner verifier may refuse one before it asks the lists of
    /// revoked ones.
    certificates: Arc<[CertificateDer<'static>]>,
    depth: Depth,
    verifier: Arc<V>,
}

/// How many authorities may stand between a peer's certificate and one of the trusted ones.
#[derive(Debug)]
pub(crate) struct Depth {
    /// The trusted authorities.
    pub(crate) roots: Arc<RootCertStore>,
    /// The most authorities in between; [`DEPTH_MAX`] is what the inner verifier allows anyway.
    pub(crate) max: usize,
}

impl Depth {
    /// Checks the certificates that a peer sent with its own. The inner verifier builds a chain of these and the trusted
    /// authorities alone, so the chain has no more authorities in between than these are.
    ///
    /// # Errors
    /// The peer sent too many, although some of them may be needless.
    fn check(&self, sent: &[CertificateDer<'_>]) -> Result<(), Error> {
        // At such a certificate the chain ends.
        let is_between = |it: &&CertificateDer<'_>| !self.is_trusted(it);
        if self.max < DEPTH_MAX && sent.iter().filter(is_between).count() > self.max {
            return Err(Error::InvalidCertificate(CertificateError::UnknownIssuer));
        }
        Ok(())
    }

    /// Whether a certificate is that of a trusted authority, perhaps another one for the same name and key.
    fn is_trusted(&self, certificate: &CertificateDer<'_>) -> bool {
        let mut alone = RootCertStore::empty();
        let is_usable = alone.add(certificate.clone()).is_ok();
        let is_same = |one: &TrustAnchor<'_>, other: &TrustAnchor<'_>| {
            one.subject == other.subject
                && one.subject_public_key_info == other.subject_public_key_info
        };
        let mut roots = self.roots.roots.iter();
        is_usable && roots.any(|root| alone.roots.iter().any(|own| is_same(root, own)))
    }
}

impl<V: ?Sized> PinnedVerifier<V> {
    pub(crate) fn new(
        certificates: Arc<[CertificateDer<'static>]>,
        depth: Depth,
        verifier: Arc<V>,
    ) -> Self {
        Self {
            certificates,
            depth,
            verifier,
        }
    }

    /// Accepts a certificate that was refused, if it is listed, valid now and not revoked.
    ///
    /// # Errors
    /// The refusal, or that the certificate is not valid now.
    fn accept_listed(
        &self,
        certificate: &CertificateDer<'_>,
        refusal: Error,
        now: UnixTime,
    ) -> Result<(), Error> {
        let may_be_revoked = matches!(
            refusal,
            Error::InvalidCertificate(
                CertificateError::Revoked
                    | CertificateError::ExpiredRevocationList
                    | CertificateError::ExpiredRevocationListContext { .. }
            )
        );
        if may_be_revoked || !self.certificates.contains(certificate) {
            return Err(refusal);
        }
        check_validity(certificate, now)
    }
}

/// Checks the dates of a certificate, which the inner verifier may not have reached.
fn check_validity(der: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let (_, certificate) = X509Certificate::from_der(der)
        .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
    let now_seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let validity = certificate.validity();
    if now_seconds < validity.not_before.timestamp() {
        return Err(Error::InvalidCertificate(CertificateError::NotValidYet));
    }
    if now_seconds > validity.not_after.timestamp() {
        return Err(Error::InvalidCertificate(CertificateError::Expired));
    }
    Ok(())
}

impl ServerCertVerifier for PinnedVerifier<dyn ServerCertVerifier> {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self
            .verifier
            .verify_server_cert(certificate, chain, name, ocsp, now);
        let measured = verified.and_then(|verified| self.depth.check(chain).map(|()| verified));
        measured.or_else(|refusal| {
            self.accept_listed(certificate, refusal, now)?;
            // The inner verifier refused before it looked at the name.
            verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
            Ok(ServerCertVerified::assertion())
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

impl ClientCertVerifier for PinnedVerifier<dyn ClientCertVerifier> {
    fn offer_client_auth(&self) -> bool {
        self.verifier.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.verifier.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.verifier.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.verifier.verify_client_cert(certificate, chain, now);
        // The depth comes last: its refusal says nothing of revocation.
        let measured = verified.and_then(|verified| self.depth.check(chain).map(|()| verified));
        measured.or_else(|refusal| {
            self.accept_listed(certificate, refusal, now)?;
            Ok(ClientCertVerified::assertion())
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

/// The most authorities that rustls allows between a peer's certificate and a trusted one (`MAX_SUB_CA_COUNT` of webpki).
pub const DEPTH_MAX: usize = 6;
