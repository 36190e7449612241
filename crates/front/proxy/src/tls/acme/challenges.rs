//! Answers to an authority's challenges, which lie in `pending` of the store while the authority may ask: whichever
//! process of this machine is asked gives them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use catamaran_tls::{ChallengeCertificates, fingerprint};
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};

use super::disk;
use super::memory::MemoryFiles;
use crate::config::{AcmeChallenge, AcmeConfig};

/// The certificates that answer challenges tls-alpn-01 for the names of a profile. Each is read when it is asked for, so
/// that those of other processes are found: a small file, for clients that offer the protocol of authorities alone.
#[derive(Debug)]
pub(crate) struct PendingCertificates {
    pending: PathBuf,
    names: Vec<String>,
    memory: Arc<MemoryFiles>,
}

impl PendingCertificates {
    /// Those of a profile; `None`: it does not answer this challenge.
    pub(crate) fn of(config: &AcmeConfig, memory: &Arc<MemoryFiles>) -> Option<Self> {
        let answers = config.challenges.contains(&AcmeChallenge::TlsAlpn01);
        answers.then(|| Self {
            pending: config.pending(),
            names: config.names.clone(),
            memory: Arc::clone(memory),
        })
    }
}

impl ChallengeCertificates for PendingCertificates {
    fn pem_for(&self, name: &str) -> Option<Vec<u8>> {
        // No other name becomes a part of a path.
        let known = self.names.iter().find(|it| *it == name)?;
        let path = certificate_file(&self.pending, known);
        match self.memory.file(&path) {
            Some(bytes) => bytes,
            None => Some(disk::read_text(&path).ok()??.into_bytes()),
        }
    }
}

/// The file with the challenge certificate of a name, which may be as long as a file's name. It has a dot in its name, as
/// no token of http-01 has.
pub(super) fn certificate_file(pending: &Path, name: &str) -> PathBuf {
    let digest = fingerprint(name.as_bytes());
    pending.join(format!("{digest}.tls-alpn-01.pem"))
}

/// The certificate that answers a challenge tls-alpn-01, with a key of its own, both as PEM. `digest`: that of the key
/// authorization (RFC 8737, section 3).
pub(super) fn certificate(name: &str, digest: &[u8]) -> Result<String, rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new([name.to_owned()])?;
    params.distinguished_name = DistinguishedName::new();
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let certificate = params.self_signed(&key)?;
    Ok(certificate.pem() + &key.serialize_pem())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::acme::store::Store;
    use crate::tls::acme::test_config;

    #[test]
    fn a_challenge_certificate_is_found_while_it_is_pending() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = test_config(folder.path());
        let memory = Arc::default();
        assert!(PendingCertificates::of(&config, &memory).is_none());
        config.challenges.push(AcmeChallenge::TlsAlpn01);
        let certificates =
            PendingCertificates::of(&config, &memory).expect("it answers this challenge");
        let store = Store::new(&config, &memory);
        store.open().unwrap();
        assert!(certificates.pem_for("a.test").is_none());
        let pem = certificate("a.test", &[7; 32]).unwrap();
        // Of a name that is not configured any more.
        let other = store.answer_by_certificate("b.test", &pem);
        let pending = store.answer_by_certificate("a.test", &pem);
        assert_eq!(certificates.pem_for("a.test"), Some(pem.into_bytes()));
        for unknown in ["b.test", "../a.test", ""] {
            assert!(certificates.pem_for(unknown).is_none(), "{unknown}");
        }
        drop((pending, other));
        assert!(certificates.pem_for("a.test").is_none());
        // A disk that takes nothing: a file is where the folder would be.
        let folder = folder.path().join("pending");
        std::fs::remove_dir(&folder).unwrap();
        std::fs::write(&folder, "in the way").unwrap();
        let pending = store.answer_by_certificate("a.test", "kept");
        assert_eq!(certificates.pem_for("a.test"), Some(b"kept".to_vec()));
        drop(pending);
        assert!(certificates.pem_for("a.test").is_none());
    }
}
