//! `[[upstream.NAME.backend]]`: TLS to a backend whose URL is `https://`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use catamaran_proxy::config::{
    Address, BackendConfig, ClientIdentity, Roots, Trust, TrustFault, TrustSettings,
};

use super::Surroundings;
use super::backend::{KEYS, TLS};
use crate::report::Finding;
use crate::table::Table;
use crate::value::address::BackendUrl;

/// The keys about TLS of a backend, or of an upstream for all its backends.
#[derive(Debug)]
pub(crate) struct TlsKeys {
    pub(super) ca_file: Option<PathBuf>,
    pub(super) ca_depth: Option<usize>,
    pub(super) server_name: Option<String>,
    pub(super) verify: bool,
    pub(super) client_certificate: Option<PathBuf>,
    pub(super) client_key: Option<PathBuf>,
}

impl TlsKeys {
    /// The values of a backend before its keys are read. Of its upstream's values only `verify` is taken here;
    /// [`settle`] fills in the others.
    pub(super) fn within(&self) -> Self {
        Self {
            verify: self.verify,
            ..Self::default()
        }
    }
}

impl Default for TlsKeys {
    fn default() -> Self {
        Self {
            ca_file: None,
            ca_depth: None,
            server_name: None,
            verify: true,
            client_certificate: None,
            client_key: None,
        }
    }
}

/// Reads the PEM file at a path; the error says why that is not possible.
pub(crate) type ReadPem<'s> = &'s dyn Fn(&Path) -> Result<Vec<u8>, String>;

/// The issuers read so far, by file; `None`: those that the system trusts. Backends share them.
pub(crate) type RootsCache = RefCell<HashMap<Option<PathBuf>, Result<Roots, String>>>;

/// Fills in the keys that a backend does not set with those of its upstream, and makes relative paths start from
/// `base`. Reports keys that contradict each other.
pub(super) fn settle(
    own: TlsKeys,
    shared: &TlsKeys,
    table: &mut Table<'_>,
    base: &Path,
) -> TlsKeys {
    if table.has("client_certificate") != table.has("client_key") {
        let message = "`client_certificate` and `client_key` need each other";
        let written = if table.has("client_key") {
            "client_key"
        } else {
            "client_certificate"
        };
        table.push(Finding::fault(message, table.place_of(written)).hint("write both, or neither"));
    }
    for key in ["ca_file", "ca_depth"] {
        if table.has(key) && table.has("verify") && !own.verify {
            let message = format!("`{key}` has no effect with verify = \"off\"");
            let place = table.place_of(key);
            table.push(Finding::warning(message, place).hint("remove verify = \"off\""));
        }
    }
    let path_of = |own: Option<PathBuf>, shared: &Option<PathBuf>| match own {
        Some(path) => Some(base.join(path)),
        // The upstream's path starts from `base` already.
        None => shared.clone(),
    };
    TlsKeys {
        ca_file: path_of(own.ca_file, &shared.ca_file),
        ca_depth: own.ca_depth.or(shared.ca_depth),
        server_name: own.server_name.or_else(|| shared.server_name.clone()),
        verify: own.verify,
        client_certificate: path_of(own.client_certificate, &shared.client_certificate),
        client_key: path_of(own.client_key, &shared.client_key),
    }
}

/// Builds the trust for connections to a backend. A file that cannot be used is reported and left out.
pub(super) fn build(
    table: &mut Table<'_>,
    url: Range<usize>,
    keys: &TlsKeys,
    address: &Address,
    surroundings: &Surroundings<'_>,
) -> Option<Arc<Trust>> {
    if !keys.verify {
        let message = format!(
            "the certificate of {} is not verified: everybody who can answer in its place reads and \
             changes everything",
            address
        );
        let hint = "give the certificate of its issuer as `ca_file`, and remove verify = \"off\"";
        let place = place_or(table, "verify", &url);
        table.push(Finding::warning(message, place).hint(hint));
    }
    let server_name = match (&keys.server_name, address) {
        (Some(name), _) => name.clone(),
        (None, Address::Tcp { host, .. }) => host.clone(),
        // A socket has no host that a certificate could have.
        (None, Address::Unix(_)) => return None,
    };
    let roots = match roots(keys, surroundings) {
        Ok(roots) => roots,
        Err(error) => {
            let place = place_or(table, "ca_file", &url);
            table.push(Finding::fault(error, place).hint(CA_HINT));
            return None;
        }
    };
    let identity = match identity(keys, surroundings) {
        Ok(identity) => identity,
        Err(error) => {
            let place = place_or(table, "client_certificate", &url);
            table.push(Finding::fault(error, place));
            return None;
        }
    };
    let settings = TrustSettings {
        server_name,
        verify: keys.verify,
        roots,
        identity,
    };
    match Trust::new(settings) {
        Ok(trust) => Some(Arc::new(trust)),
        Err(fault) => {
            table.push(trust_finding(&fault, table, &url, keys));
            None
        }
    }
}

/// The finding at the key that caused the fault; at `url` if the backend's upstream has that key.
fn trust_finding(
    fault: &TrustFault,
    table: &Table<'_>,
    url: &Range<usize>,
    keys: &TlsKeys,
) -> Finding {
    let file = |path: &Option<PathBuf>| path.clone().unwrap_or_default();
    match fault {
        TrustFault::Name(_) => {
            Finding::fault(fault.to_string(), place_or(table, "server_name", url))
                .hint("write the name that its certificate has as `server_name`")
        }
        TrustFault::Chain(reason) => {
            let message = format!("{} {reason}", file(&keys.client_certificate).display());
            Finding::fault(message, place_or(table, "client_certificate", url))
        }
        TrustFault::Key(reason) => {
            let message = format!("the key {} {reason}", file(&keys.client_key).display());
            Finding::fault(message, place_or(table, "client_key", url)).hint(KEY_HINT)
        }
    }
}

/// The trust in discovered members. The name in their certificates is `server_name`; empty: each member has its own.
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
    let name = keys.server_name.clone().unwrap_or_default();
    // Checks the files, for which any name will do.
    let sample_name = if name.is_empty() { "localhost" } else { &name };
    Trust::new(settings(sample_name.to_owned())?).map_err(|fault| fault.to_string())?;
    settings(name)
}

/// A backend with every default, from its URL alone.
pub(crate) fn plain(url: BackendUrl) -> Result<BackendConfig, String> {
    let has_tls = url.tls;
    let mut backend = url.backend();
    if has_tls && let Address::Tcp { host, .. } = &backend.address {
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

/// The place of a key; if the backend does not have it, because its upstream does, that of the URL.
fn place_or(table: &Table<'_>, key: &str, url: &Range<usize>) -> Range<usize> {
    if table.has(key) {
        table.place_of(key)
    } else {
        url.clone()
    }
}

/// The issuers that are trusted: those of `ca_file`, or else the system's. There are none if nothing is verified,
/// or if files are not read.
fn roots(keys: &TlsKeys, surroundings: &Surroundings<'_>) -> Result<Roots, String> {
    if !keys.verify {
        return Ok(Roots::none());
    }
    let roots = trusted_roots(keys.ca_file.clone(), surroundings)?;
    Ok(match keys.ca_depth {
        Some(depth) => roots.with_depth(depth),
        None => roots,
    })
}

/// The issuers of this file, or else the system's. There are none if files are not read. All who name the same file
/// share what was read.
pub(crate) fn trusted_roots(
    ca_file: Option<PathBuf>,
    surroundings: &Surroundings<'_>,
) -> Result<Roots, String> {
    let Some(read_pem) = surroundings.read_pem else {
        return Ok(Roots::none());
    };
    let mut cache = surroundings.roots.borrow_mut();
    let entry = cache.entry(ca_file.clone());
    entry
        .or_insert_with(|| match &ca_file {
            Some(path) => read_pem(path)
                .and_then(|pem| Roots::from_pem(&pem))
                .map_err(|error| format!("{} {error}", path.display())),
            None => system_roots(),
        })
        .clone()
}

/// The front's own certificate for connections to a backend; `None`: it has none, or files are not read.
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

/// Reports keys for TLS on a backend whose URL does not ask for it.
pub(super) fn at_fault(table: &mut Table<'_>) {
    for (name, place) in table.written(KEYS, |group| group == TLS) {
        let message = format!("`{name}` is for TLS, and this backend's `url` has none");
        table
            .push(Finding::fault(message, place).hint("remove it, or write https:// in the `url`"));
    }
}

const CA_HINT: &str = "write the certificate of who issued the backend's as PEM, and its path as \
                       `ca_file`";

const KEY_HINT: &str = "openssl pkey -in KEY -out PLAIN takes the password off a key";
