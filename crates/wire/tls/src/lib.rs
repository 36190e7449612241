//! TLS on rustls, without sockets: certificates, names, tickets, records.
//!
//! A [`Profile`] has the settings of a listener: certificates chosen by name, the authorities for
//! client certificates, keys of tickets. A [`Trust`] has those for a backend. A [`Connection`]
//! turns bytes of a socket into plaintext and back; it holds no buffers. Files and sockets belong
//! to the callers. All of the front's calls of rustls are in this crate.
#![forbid(unsafe_code)]

mod challenge;
mod client;
mod clock;
mod facts;
mod fault;
mod identity;
mod key_log;
mod names;
mod pinned;
mod record;
mod server;
mod store;
mod tickets;

use std::sync::Arc;

pub use challenge::ChallengeCertificates;
pub use client::{ClientIdentity, Roots, Trust, TrustFault, TrustSettings, server_verifier};
pub use facts::{Facts, Session, Version, fingerprint};
pub use fault::{Fault, Part, PemFile};
pub use identity::{CertificateFacts, Identity, RenewalId};
pub use key_log::KeyLog;
pub use pinned::DEPTH_MAX;
pub use record::{Connection, RecordInput, TlsError, looks_like_tls};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
pub use server::{
    BuiltProfile, CertificateFiles, ClientCertificate, IssuedCertificates, Profile, ProfileFiles,
    ProfileSettings, Protocols,
};
pub use tickets::{TICKET_KEYS_LEN, TicketKeys};

/// The cryptography of every connection: rustls' cipher suites, and the groups X25519MLKEM768,
/// X25519, P-256 and P-384 in this order.
fn provider() -> Arc<CryptoProvider> {
    use aws_lc_rs::kx_group::{SECP256R1, SECP384R1, X25519, X25519MLKEM768};
    Arc::new(CryptoProvider {
        kx_groups: vec![X25519MLKEM768, X25519, SECP256R1, SECP384R1],
        ..aws_lc_rs::default_provider()
    })
}
