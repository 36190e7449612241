//! What is served over TLS.

objects! {
    /// Every TLS profile.
    pub struct ProfileList {
        /// By name.
        pub profiles: Vec<ProfileStatus>,
    }

    /// A TLS profile.
    pub struct ProfileStatus {
        /// Its name.
        pub name: String,
        /// Whether clients are asked for a certificate: `off`, `optional` or `required`.
        pub client_certificate: String,
        /// When its files were read.
        pub read: String,
        /// The same, in seconds.
        pub age_s: u64,
        /// Why its changed files cannot be used; `null` if nothing is wrong.
        pub refused: Option<String>,
        /// Its certificates, in the order of the file.
        pub certificates: Vec<CertificateStatus>,
    }

    /// A certificate.
    pub struct CertificateStatus {
        /// DNS names in lower case, and addresses.
        pub names: Vec<String>,
        /// Who issued it.
        pub issuer: String,
        /// The last moment at which it is valid.
        pub not_after: String,
        /// The SHA-256 of its DER, in lower-case hexadecimal.
        pub sha256: String,
        /// `RSA`, `ECDSA` or `Ed25519`.
        pub key_type: String,
        /// Its file.
        pub file: String,
        /// The file of its key.
        pub key_file: String,
    }
}
