//! Flags for TLS: versions, ciphers, certificates.

use catamaran_load::plan::TlsVersion;

use super::ValueKind::Needed;
use super::{Flag, store, switch_on};
use crate::getopt::Mode;
use crate::refusal::Refusal;
use crate::refusal::RunKind::Memcached;
use crate::settings::file;

/// The settings of TLS: versions, ciphers, certificates.
#[derive(Debug, Default)]
pub(crate) struct TlsSettings {
    pub(crate) ciphers: Vec<String>,
    pub(crate) versions: Vec<TlsVersion>,
    pub(crate) certificate: Option<Vec<u8>>,
    pub(crate) no_sni: bool,
    pub(crate) verify: bool,
    pub(crate) roots: Option<Vec<u8>>,
}

pub(super) static FLAGS: &[Flag] = &[
    Flag {
        short: Some('Z'),
        long: "ciphers",
        value: Needed("SUITES"),
        help: "Cipher suites, with : or , between them",
        conflicts: &[(Memcached, "TLS")],
        apply: |settings, given| {
            let suites = given.text().split([':', ',']);
            settings.tls.ciphers = suites.map(str::to_owned).collect();
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        short: Some('f'),
        long: "tls",
        value: Needed("VERSION"),
        help: "TLS1.2, TLS1.3 or ALL [default: ALL]",
        conflicts: &[(Memcached, "TLS")],
        apply: |settings, given| {
            if let Some(versions) = versions(given.text())? {
                settings.tls.versions = versions;
            } else if given.mode == Mode::Ours {
                return Err(given.bad("TLS1.2, TLS1.3 or ALL"));
            }
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        short: Some('E'),
        long: "certificate",
        value: Needed("FILE"),
        help: "Certificate chain and private key to show, PEM",
        conflicts: &[(Memcached, "TLS")],
        apply: |settings, given| store(&mut settings.tls.certificate, file(given.text())?),
        ..Flag::OURS
    },
    Flag {
        short: Some('I'),
        long: "no-sni",
        help: "Do not name the host (SNI)",
        conflicts: &[(Memcached, "TLS")],
        apply: |settings, _| switch_on(&mut settings.tls.no_sni),
        ..Flag::OURS
    },
    Flag {
        long: "verify",
        help: "Verify the server's certificate against the system's roots [default: no, as ab]",
        conflicts: &[(Memcached, "TLS")],
        apply: |settings, _| switch_on(&mut settings.tls.verify),
        ..Flag::OURS
    },
    Flag {
        long: "cacert",
        value: Needed("FILE"),
        help: "Verify it against these roots, PEM",
        conflicts: &[(Memcached, "TLS")],
        apply: |settings, given| store(&mut settings.tls.roots, file(given.text())?),
        ..Flag::OURS
    },
];

/// The TLS versions that a word names; `None` for a word that ab ignores. A version before 1.2 is refused.
fn versions(text: &str) -> Result<Option<Vec<TlsVersion>>, Refusal> {
    let upper = text.to_ascii_uppercase();
    // ab compares beginnings, longer names first.
    let versions = if upper.starts_with("ALL") {
        vec![TlsVersion::Tls12, TlsVersion::Tls13]
    } else if upper.starts_with("TLS1.2") {
        vec![TlsVersion::Tls12]
    } else if upper.starts_with("TLS1.3") {
        vec![TlsVersion::Tls13]
    } else if ["SSL2", "SSL3", "TLS1"]
        .iter()
        .any(|old| upper.starts_with(old))
    {
        return Err(Refusal::OldTls(text.to_owned()));
    } else {
        return Ok(None);
    };
    Ok(Some(versions))
}
