//! `[[upstream.NAME.backend]]`: TLS to a backend whose URL is `https://`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use catamaran_front::config::{
    Address, BackendConfig, ClientIdentity, Roots, Trust, TrustFault, TrustSettings,
};

use super::Surroundings;
use crate::key::{AnyKey, Doc, Key, Preset};
use crate::report::Finding;
use crate::table::Table;
use crate::value::address::{BackendUrl, UrlError, parse_server_name};
use crate::value::text::{FilePath, file_path};
use crate::value::{Choices, Parsed};

/// What the file says of TLS to a backend, or to all of an upstream.
#[derive(Clone, Debug)]
pub(crate) struct TlsKeys {
    ca_file: Option<PathBuf>,
    server_name: Option<String>,
    verify: bool,
    client_certificate: Option<PathBuf>,
    client_key: Option<PathBuf>,
}

impl Default for TlsKeys {
    fn default() -> Self {
        Self {
            ca_file: None,
            server_name: None,
            verify: true,
            client_certificate: None,
            client_key: None,
        }
    }
}

/// Reads the PEM file at a path, or says why not.
pub(crate) type ReadPem<'s> = &'s dyn Fn(&Path) -> Result<Vec<u8>, String>;

/// Roots read so far, by file; those of the system without one. Backends share them.
pub(crate) type RootsCache = RefCell<HashMap<Option<PathBuf>, Result<Roots, String>>>;

/// Reads the keys that an upstream may set for all its backends.
pub(super) fn read(table: &mut Table<'_>, base: &Path, keys: &mut TlsKeys) {
    let path = |path: Option<PathBuf>| path.map(|path| base.join(path));
    let certificate = path(table.take(&CLIENT_CERTIFICATE));
    let key = path(table.take(&CLIENT_KEY));
    if table.has(&CLIENT_CERTIFICATE) != table.has(&CLIENT_KEY) {
        let message = "`client_certificate` and `client_key` need each other";
        let place = match table.has(&CLIENT_KEY) {
            true => table.place_of(&CLIENT_KEY),
            false => table.place_of(&CLIENT_CERTIFICATE),
        };
        table.push(Finding::fault(message, place).hint("write both, or neither"));
    }
    if let (Some(certificate), Some(key)) = (certificate, key) {
        keys.client_certificate = Some(certificate);
        keys.client_key = Some(key);
    }
    keys.ca_file = path(table.take(&CA_FILE)).or_else(|| keys.ca_file.take());
    keys.server_name = table.take(&SERVER_NAME).or_else(|| keys.server_name.take());
    table.set(&VERIFY, &mut keys.verify);
    if table.has(&CA_FILE) && table.has(&VERIFY) && !keys.verify {
        let message = "`ca_file` has no effect with verify = \"off\"";
        let place = table.place_of(&CA_FILE);
        table.push(Finding::warning(message, place).hint("remove verify = \"off\""));
    }
}

/// Sets TLS up for one end of a backend. What is at fault is left out.
pub(super) fn build(
    table: &mut Table<'_>,
    url: Range<usize>,
    keys: &TlsKeys,
    address: &Address,
    surroundings: &Surroundings<'_>,
) -> Option<Arc<Trust>> {
    if !keys.verify {
        let message = format!(
            "the certificate of {} is not verified: whoever can answer in its place reads and \
             changes everything",
            address
        );
        let hint = "give the certificate of its issuer as `ca_file`, and remove verify = \"off\"";
        let place = place_or(table, &VERIFY, &url);
        table.push(Finding::warning(message, place).hint(hint));
    }
    let host = match (&keys.server_name, address) {
        (Some(name), _) => name.clone(),
        (None, Address::Tcp { host, .. }) => host.clone(),
        (None, Address::Unix(_)) => return None,
    };
    let roots = match roots(keys, surroundings) {
        Ok(roots) => roots,
        Err(error) => {
            let place = place_or(table, &CA_FILE, &url);
            table.push(Finding::fault(error, place).hint(CA_HINT));
            return None;
        }
    };
    let identity = match identity(keys, surroundings) {
        Ok(identity) => identity,
        Err(error) => {
            let place = place_or(table, &CLIENT_CERTIFICATE, &url);
            table.push(Finding::fault(error, place));
            return None;
        }
    };
    let settings = TrustSettings {
        server_name: host,
        verify: keys.verify,
        roots,
        identity,
    };
    let fault = match Trust::new(settings) {
        Ok(trust) => return Some(Arc::new(trust)),
        Err(fault) => fault,
    };
    let file = |path: &Option<PathBuf>| path.clone().unwrap_or_default();
    let finding = match fault {
        TrustFault::Name(_) => {
            Finding::fault(fault.to_string(), place_or(table, &SERVER_NAME, &url))
                .hint("write the name that its certificate has as `server_name`")
        }
        TrustFault::Chain(what) => {
            let message = format!("{} {what}", file(&keys.client_certificate).display());
            Finding::fault(message, place_or(table, &CLIENT_CERTIFICATE, &url))
        }
        TrustFault::Key(what) => {
            let message = format!("the key {} {what}", file(&keys.client_key).display());
            Finding::fault(message, place_or(table, &CLIENT_KEY, &url)).hint(KEY_HINT)
        }
    };
    table.push(finding);
    None
}

/// What members that are found are trusted by. The name is `server_name`; empty if each has its own.
pub(super) fn settings(
    keys: &TlsKeys,
    surroundings: &Surroundings<'_>,
) -> Result<TrustSettings, String> {
    let settings = |server_name: String| {
        Ok::<_, String>(TrustSettings {
            server_name,
            verify: keys.verify,
            roots: roots(keys, surroundings)?,
            identity: identity(keys, surroundings)?,
        })
    };
    // Whatever the name, the files must be good.
    let sample = keys
        .server_name
        .clone()
        .unwrap_or_else(|| "localhost".to_owned());
    Trust::new(settings(sample)?).map_err(|fault| fault.to_string())?;
    settings(keys.server_name.clone().unwrap_or_default())
}

/// A backend with every default, from its URL alone.
pub(crate) fn plain(url: BackendUrl) -> Result<BackendConfig, String> {
    let has_tls = url.tls;
    let mut backend = url.backend();
    if let (true, Address::Tcp { host, .. }) = (has_tls, &backend.address) {
        let settings = TrustSettings {
            server_name: host.clone(),
            verify: true,
            roots: system_roots()?,
            identity: None,
        };
        let trust = Trust::new(settings).map_err(|fault| fault.to_string())?;
        backend.tls = Some(Arc::new(trust));
    }
    Ok(backend)
}

fn system_roots() -> Result<Roots, String> {
    Roots::new(rustls_native_certs::load_native_certs().certs)
        .map_err(|_| "this system has no certificates of issuers that are trusted".to_owned())
}

/// Where a key stands; else the URL, when the upstream has it.
fn place_or(table: &Table<'_>, key: &impl AnyKey, url: &Range<usize>) -> Range<usize> {
    match table.has(key) {
        true => table.place_of(key),
        false => url.clone(),
    }
}

fn roots(keys: &TlsKeys, surroundings: &Surroundings<'_>) -> Result<Roots, String> {
    if !keys.verify {
        return Ok(Roots::none());
    }
    let Some(read_pem) = surroundings.read_pem else {
        return Ok(Roots::none());
    };
    let mut cache = surroundings.roots.borrow_mut();
    let entry = cache.entry(keys.ca_file.clone());
    entry
        .or_insert_with(|| match &keys.ca_file {
            Some(path) => read_pem(path)
                .and_then(|pem| Roots::from_pem(&pem))
                .map_err(|error| format!("{} {error}", path.display())),
            None => system_roots(),
        })
        .clone()
}

fn identity(
    keys: &TlsKeys,
    surroundings: &Surroundings<'_>,
) -> Result<Option<ClientIdentity>, String> {
    let (Some(certificate), Some(key), Some(read_pem)) = (
        &keys.client_certificate,
        &keys.client_key,
        surroundings.read_pem,
    ) else {
        return Ok(None);
    };
    let read = |path: &PathBuf| {
        read_pem(path).map_err(|error| format!("the file {} {error}", path.display()))
    };
    Ok(Some(ClientIdentity {
        chain: read(certificate)?,
        key: read(key)?,
    }))
}

/// A setting of TLS on a backend without it is a slip, in the key or in the URL.
pub(super) fn at_fault(table: &mut Table<'_>) {
    for (name, place) in present(table) {
        let message = format!("`{name}` is for TLS, and this backend's `url` has none");
        table
            .push(Finding::fault(message, place).hint("remove it, or write https:// in the `url`"));
    }
}

/// On a whole group it may stay behind when backends are switched for a while.
pub(super) fn without_use(table: &mut Table<'_>) {
    for (name, place) in present(table) {
        let message = format!("`{name}` is for TLS, and no backend of this upstream has it");
        table.push(
            Finding::warning(message, place)
                .hint("remove it, or write https:// in the `url` of a backend"),
        );
    }
}

fn present(table: &Table<'_>) -> Vec<(&'static str, Range<usize>)> {
    fn found(table: &Table<'_>, key: &impl AnyKey) -> Option<(&'static str, Range<usize>)> {
        let has = table.has(key);
        has.then(|| (key.name(), table.place_of(key)))
    }
    [
        found(table, &CA_FILE),
        found(table, &SERVER_NAME),
        found(table, &VERIFY),
        found(table, &CLIENT_CERTIFICATE),
        found(table, &CLIENT_KEY),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The keys, in the order of the reference.
pub(crate) const KEYS: [&dyn AnyKey; 5] = [
    &CA_FILE,
    &SERVER_NAME,
    &VERIFY,
    &CLIENT_CERTIFICATE,
    &CLIENT_KEY,
];

const CA_HINT: &str = "write the certificate of who issued the backend's as PEM, and its path as \
                       `ca_file`";

const KEY_HINT: &str = "openssl pkey -in KEY -out PLAIN takes the password off a key";

static CA_FILE: Key<FilePath> = Key {
    name: "ca_file",
    values: file_path("a path such as \"/etc/ssl/backends-ca.pem\""),
    doc: Doc {
        preset: Preset::Unset("the issuers that this system trusts"),
        sample: "\"/etc/ssl/backends-ca.pem\"",
        effect: "The PEM file with the certificates of the authorities that may issue the \
                 backend's certificate, or with that certificate itself. For `https://` alone, like the next four. A reload reads \
                 it anew.",
        extremes: "A certificate of another issuer is refused: 502, `tls-untrusted`. With the \
                   system's issuers anybody who gets a certificate for the name can stand in for \
                   the backend; an authority of your own is the closer rule.",
        elsewhere: "nginx `proxy_ssl_trusted_certificate`; httpd `SSLProxyCACertificateFile`; \
                    HAProxy `ca-file`",
    },
};

static SERVER_NAME: Key<Parsed<String, UrlError>> = Key {
    name: "server_name",
    values: Parsed {
        what: "a host name or an address",
        parse: parse_server_name,
    },
    doc: Doc {
        preset: Preset::Unset("the host of the `url`"),
        sample: "\"app.internal\"",
        effect: "The name that the backend's certificate must have, and that it is asked for (SNI). \
                 An address must stand in the certificate as an address.",
        extremes: "Another name: 502, `tls-name`.",
        elsewhere: "nginx `proxy_ssl_name`; HAProxy `sni`, `verifyhost`",
    },
};

static VERIFY: Key<Choices<bool>> = Key {
    name: "verify",
    values: Choices(&[("on", true), ("off", false)]),
    doc: Doc {
        preset: Preset::Value("\"on\""),
        sample: "\"off\"",
        effect: "Whether the backend's certificate is verified. Off, each start warns of it, and \
                 `catamaran_backend_tls_unverified` is 1.",
        extremes: "With `\"off\"`, TLS protects only against those who listen. Anybody who can \
                   answer in the backend's place can read and change everything.",
        elsewhere: "nginx `proxy_ssl_verify` (off there unless said); httpd `SSLProxyVerify`; HAProxy \
                    `verify`",
    },
};

static CLIENT_CERTIFICATE: Key<FilePath> = Key {
    name: "client_certificate",
    values: file_path("a path such as \"/etc/ssl/front.pem\""),
    doc: Doc {
        preset: Preset::Unset("none is shown"),
        sample: "\"/etc/ssl/front.pem\"",
        effect: "The PEM file with the certificate that the front shows to the backend, then those of \
                 its issuers. Needs `client_key`.",
        extremes: "A backend that refuses it closes the connection, in TLS 1.3 only after the \
                   request was sent: `tls-alert`.",
        elsewhere: "nginx `proxy_ssl_certificate`; httpd `SSLProxyMachineCertificateFile`; HAProxy \
                    `crt`",
    },
};

static CLIENT_KEY: Key<FilePath> = Key {
    name: "client_key",
    values: file_path("a path such as \"/etc/ssl/front.key\""),
    doc: Doc {
        preset: Preset::Unset("none"),
        sample: "\"/etc/ssl/front.key\"",
        effect: "The PEM file with the key of `client_certificate`, not encrypted.",
        extremes: "Anybody who can read it can pretend to be this front: keep it from other users.",
        elsewhere: "nginx `proxy_ssl_certificate_key`",
    },
};
