//! A certificate authority for tests, which issues certificates as files or as texts.

use std::fs;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType,
    IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, RevocationReason, RevokedCertParams, SerialNumber,
    date_time_ymd,
};

use super::Pair;

/// An authority that issues certificates.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    /// Makes an authority called `name`.
    ///
    /// # Errors
    /// No key can be made.
    pub fn new(name: &str) -> anyhow::Result<Self> {
        let key = KeyPair::generate()?;
        Ok(Self(CertifiedIssuer::self_signed(params(name)?, key)?))
    }

    /// Makes an authority called `name`, whose certificate this one has issued.
    ///
    /// # Errors
    /// No key can be made.
    pub fn below(&self, name: &str) -> anyhow::Result<Self> {
        let key = KeyPair::generate()?;
        let params = params(name)?;
        Ok(Self(CertifiedIssuer::signed_by(params, key, &self.0)?))
    }

    /// The authority's certificate as PEM.
    #[must_use]
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// The authority's certificate as DER.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        self.0.der()
    }

    /// A certificate for these names and addresses; `change` changes its parameters first.
    ///
    /// # Errors
    /// A name is invalid.
    pub fn sign(
        &self,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> anyhow::Result<Pair> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names)?;
        change(&mut params);
        let key = KeyPair::generate()?;
        let leaf = params.signed_by(&key, &self.0)?;
        Ok(Pair {
            chain: leaf.pem() + &self.0.pem(),
            key: key.serialize_pem(),
        })
    }

    /// Writes a certificate for these names and addresses as `NAME.pem` and `NAME.key`, where NAME is `file`.
    /// The serial number is the text of the first name.
    ///
    /// # Errors
    /// A name is invalid, or the files cannot be written.
    pub fn issue(&self, directory: &Path, file: &str, names: &[&str]) -> anyhow::Result<()> {
        self.issue_with(directory, file, names, |params| {
            params.serial_number = names.first().map(serial);
        })
    }

    /// Like [`Authority::issue`], but the certificate expired years ago.
    ///
    /// # Errors
    /// As [`Authority::issue`].
    pub fn issue_expired(
        &self,
        directory: &Path,
        file: &str,
        names: &[&str],
    ) -> anyhow::Result<()> {
        self.issue_with(directory, file, names, |params| {
            params.not_after = date_time_ymd(2020, 1, 1);
        })
    }

    /// Like [`Authority::issue`], but `change` changes the parameters of the certificate first.
    ///
    /// # Errors
    /// As [`Authority::issue`].
    pub fn issue_with(
        &self,
        directory: &Path,
        file: &str,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> anyhow::Result<()> {
        let Pair { chain, key } = self.sign(names, change)?;
        fs::write(directory.join(format!("{file}.key")), key)?;
        fs::write(directory.join(format!("{file}.pem")), chain)?;
        Ok(())
    }

    /// A revocation list, as PEM, of the certificates whose first names these are.
    ///
    /// # Errors
    /// The list cannot be signed.
    pub fn revocations(&self, names: &[&str]) -> anyhow::Result<String> {
        self.revocations_until(names, 2120)
    }

    /// Like [`Authority::revocations`]; the list is valid until the beginning of `year`.
    ///
    /// # Errors
    /// The list cannot be signed.
    pub fn revocations_until(&self, names: &[&str], year: i32) -> anyhow::Result<String> {
        let (begin, end) = (date_time_ymd(2020, 1, 1), date_time_ymd(year, 1, 1));
        let revoked = |name: &&str| RevokedCertParams {
            serial_number: serial(name),
            revocation_time: begin,
            reason_code: Some(RevocationReason::KeyCompromise),
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: begin,
            next_update: end,
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: names.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        Ok(list.signed_by(&self.0)?.pem()?)
    }
}

fn serial(name: &&str) -> SerialNumber {
    SerialNumber::from_slice(name.as_bytes())
}

/// The parameters of an authority's certificate.
fn params(name: &str) -> anyhow::Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}
