//! TLS in tests: certificates made on the spot, profiles and settings for both ends, and one end of a connection
//! without sockets.

mod authority;
mod end;

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

pub use authority::Authority;
use catamaran_tls::{
    BuiltProfile, CertificateFiles, ClientCertificate, ClientIdentity, Fault, PemFile, Profile,
    ProfileFiles, ProfileSettings, Roots, TicketKeys, Trust, TrustSettings, Version,
};
pub use end::End;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

/// A certificate with its chain and key, as PEM.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The certificate, then the certificates of its issuers.
    pub chain: String,
    /// The private key.
    pub key: String,
}

impl Pair {
    /// A certificate for these names and addresses that is its own issuer.
    ///
    /// # Panics
    /// A name is invalid.
    #[must_use]
    pub fn self_signed(names: &[&str]) -> Self {
        Self::self_signed_with(names, |_| {})
    }

    /// Like [`Pair::self_signed`], but as an authority, as `openssl req -x509` makes it.
    ///
    /// # Panics
    /// A name is invalid.
    #[must_use]
    pub fn of_own_authority(names: &[&str]) -> Self {
        Self::self_signed_with(names, |params| {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        })
    }

    /// Like [`Pair::self_signed`], but `change` changes the parameters of the certificate first.
    ///
    /// # Panics
    /// A name is invalid.
    #[must_use]
    pub fn self_signed_with(names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Self {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).expect("names");
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a key");
        Self {
            chain: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}

/// A file that only its owner may read.
#[must_use]
pub fn file(name: &str, text: impl Into<Vec<u8>>) -> PemFile {
    PemFile {
        path: PathBuf::from(name),
        bytes: text.into(),
        is_public: false,
    }
}

/// The certificates of a profile, none of them the default. The files are called `chain.pem` and
/// `key.pem`.
#[must_use]
pub fn files(pairs: &[Pair]) -> ProfileFiles {
    let of = |pair: &Pair| CertificateFiles {
        chain: file("chain.pem", pair.chain.clone()),
        key: file("key.pem", pair.key.clone()),
        default: false,
    };
    ProfileFiles {
        certificates: pairs.iter().map(of).collect(),
        ..ProfileFiles::default()
    }
}

/// Settings for TLS 1.2 and 1.3 with tickets, for any name, without client certificates.
#[must_use]
pub fn settings() -> ProfileSettings {
    ProfileSettings {
        strict_sni: false,
        version_min: Version::Tls12,
        client_certificate: ClientCertificate::Off,
        client_ca_depth: catamaran_tls::DEPTH_MAX,
        client_certificate_chain: false,
        tickets: true,
        ticket_rotation: Duration::from_secs(3600),
    }
}

/// Builds a profile at the present time, with ticket keys of its own.
///
/// # Errors
/// All faults of the files.
///
/// # Panics
/// The system has no random bytes.
pub fn build(settings: &ProfileSettings, files: &ProfileFiles) -> Result<BuiltProfile, Vec<Fault>> {
    let keys = TicketKeys::generate().expect("random bytes");
    Profile::build(settings, files, &keys, None, SystemTime::now())
}

/// Like [`build`], but returns the profile alone.
///
/// # Panics
/// The files have a fault.
#[must_use]
pub fn profile(settings: &ProfileSettings, files: &ProfileFiles) -> Profile {
    build(settings, files).expect("good files").profile
}

/// The settings of a client that asks for `name`, trusts `issuers` and presents `identity`.
///
/// # Panics
/// The PEM contains no issuer, or the certificate is invalid.
#[must_use]
pub fn trust(issuers: &str, name: &str, identity: Option<&Pair>) -> Trust {
    let identity = identity.map(|pair| ClientIdentity {
        chain: pair.chain.clone().into(),
        key: pair.key.clone().into(),
    });
    let settings = TrustSettings {
        server_name: name.to_owned(),
        verify: true,
        roots: Roots::from_pem(issuers.as_bytes()).expect("issuers"),
        identity,
    };
    Trust::new(settings).expect("a name and an identity")
}
