//! The demo's certificate, made at the start in a directory that is removed when the demo
//! ends.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use catamaran_proxy::config::{CertificateConfig, ListenAddress, TlsConfig};
use rcgen::{CertificateParams, DnType, KeyPair};
use tempfile::TempDir;

use crate::failure::Failure;

/// A self-signed certificate with its key, in a temporary directory. Dropping it removes the
/// directory.
pub(super) struct Certificate {
    directory: TempDir,
}

impl Certificate {
    /// Makes a certificate for `localhost`, the loopback addresses and the address of
    /// `listen`.
    ///
    /// # Errors
    /// The directory for temporary files cannot be written to, or there are no random bytes.
    pub(super) fn make(listen: &ListenAddress) -> Result<Self, Failure> {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::Fault(format!("cannot make a certificate: {error}"))
        };
        let (certificate, key) = sign(names(listen)).map_err(|error| failed(&error))?;
        let directory = tempfile::Builder::new()
            .prefix("catamaran-demo-")
            .tempdir()
            .map_err(|error| failed(&error))?;
        let made = Self { directory };
        write(&made.chain(), &certificate, 0o644).map_err(|error| failed(&error))?;
        write(&made.key(), &key, 0o600).map_err(|error| failed(&error))?;
        Ok(made)
    }

    /// The path of the PEM file with the certificate, for clients to trust.
    pub(super) fn chain(&self) -> PathBuf {
        self.directory.path().join("certificate.pem")
    }

    fn key(&self) -> PathBuf {
        self.directory.path().join("key.pem")
    }

    /// A TLS profile with this certificate.
    pub(super) fn profile(&self) -> TlsConfig {
        let certificate = CertificateConfig {
            chain: self.chain(),
            key: self.key(),
            default: true,
        };
        TlsConfig::new(PROFILE, vec![certificate])
    }
}

fn names(listen: &ListenAddress) -> Vec<String> {
    let mut names = vec![
        "localhost".to_owned(),
        "127.0.0.1".to_owned(),
        "::1".to_owned(),
    ];
    if let ListenAddress::Tcp(address) = listen {
        let own = address.ip().to_string();
        if !address.ip().is_unspecified() && !names.contains(&own) {
            names.push(own);
        }
    }
    names
}

/// Makes a self-signed certificate for these names; returns it and its key as PEM.
fn sign(names: Vec<String>) -> Result<(String, String), rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(names)?;
    params
        .distinguished_name
        .push(DnType::CommonName, "catamaran demo");
    Ok((params.self_signed(&key)?.pem(), key.serialize_pem()))
}

fn write(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(text.as_bytes())
}

/// The name of the demo's TLS profile.
pub(super) const PROFILE: &str = "demo";
