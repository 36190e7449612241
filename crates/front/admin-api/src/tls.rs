//! TLS profiles and their certificates.

objects! {
    /// The TLS profiles of a configuration.
    pub struct ProfileList {
        /// The profiles, in the order of their names.
        pub profiles: Vec<ProfileStatus>,
    }

    /// A TLS profile.
    pub struct ProfileStatus {
        /// The name of the TLS profile.
        pub name: String,
        /// Whether clients are asked for a certificate: `off`, `optional` or `required`.
        pub client_certificate: String,
        /// The moment at which the profile's files were read.
        pub read: String,
        /// The time since then, in seconds.
        pub age_s: u64,
        /// Why the changed files of the profile cannot be used; `null` if they can.
        pub refused: Option<String>,
        /// The profile's certificates, in the order of the configuration file.
        pub certificates: Vec<CertificateStatus>,
        /// The names that get their certificates by ACME; empty if the profile has no `[tls.NAME.acme]`.
        pub acme: Vec<IssuedNameStatus>,
    }

    /// A name that gets its certificate by ACME.
    pub struct IssuedNameStatus {
        /// The DNS name.
        pub name: String,
        /// `served`: it has a certificate; `awaited`: its handshakes are refused until the first one is issued;
        /// `followed`: as `awaited`, and another process orders it.
        pub state: String,
        /// How many attempts failed in a row.
        pub failures: u32,
        /// Why the last attempt failed; `null` if it did not.
        pub problem: Option<String>,
        /// The moment at which the next attempt begins: a renewal, or the end of the pause after a failure; `null` if
        /// another process orders.
        pub next_attempt: Option<String>,
        /// Whether its certificate or its state is in memory alone, because `state_dir` cannot be written: a restart
        /// loses it.
        pub unstored: bool,
    }

    /// A certificate.
    pub struct CertificateStatus {
        /// The names of the certificate: DNS names in lower case, and addresses.
        pub names: Vec<String>,
        /// The issuer of the certificate.
        pub issuer: String,
        /// The last moment at which the certificate is valid.
        pub not_after: String,
        /// The SHA-256 digest of the certificate's DER, in lower-case hexadecimal.
        pub sha256: String,
        /// The type of the key: `RSA`, `ECDSA` or `Ed25519`.
        pub key_type: String,
        /// The file of the certificate.
        pub file: String,
        /// The file of the certificate's private key.
        pub key_file: String,
        /// The certificate that it replaced while this process ran; `null`: it replaced none.
        pub replaced: Option<ReplacedCertificate>,
    }

    /// A certificate that another one has replaced.
    pub struct ReplacedCertificate {
        /// The last moment at which the certificate is valid.
        pub not_after: String,
        /// The SHA-256 digest of the certificate's DER, in lower-case hexadecimal.
        pub sha256: String,
        /// The moment at which it was replaced.
        pub at: String,
    }
}
