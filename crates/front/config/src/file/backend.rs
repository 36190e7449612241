//! `[[upstream.NAME.backend]]`: one address and protocol, and the limits of its pool.

mod keys;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use catamaran_proxy::config::{BackendConfig, PacketSize, Protocol, Secret, SentHost};
use toml::de::DeTable;

use self::keys::HTTP;
pub(crate) use self::keys::{AJP, KEYS, MEMBER, RawBackend, TLS, is_shared};
use super::backend_tls::TlsKeys;
use super::members::unplaced;
use super::{Backend, Surroundings, backend_tls, backend_upgrade};
use crate::key::{Part, Section};
use crate::report::{Finding, Report};
use crate::table::Table;
use crate::value::address::{BackendUrl, backend_from};
use crate::value::text::parse_secret;

/// The settings of an upstream that hold for all its backends.
pub(crate) struct BackendDefaults {
    pub(crate) config: BackendConfig,
    pub(crate) tls: TlsKeys,
}

/// Reads one `[[upstream.NAME.backend]]`. What it does not set is taken from its upstream.
///
/// A backend without a valid `url` is checked as far as possible, for the report alone, and is `None`.
pub(crate) fn read(
    place: Range<usize>,
    entries: &DeTable<'_>,
    surroundings: &Surroundings<'_>,
    shared: &BackendDefaults,
    report: &mut Report,
) -> Option<Backend> {
    let mut table = Table::new(&SECTION, place, entries);
    let mut written = RawBackend::within(shared);
    table.read(KEYS, &mut written);
    let mut url = written.url.take();
    resolve("url", url.as_mut(), &mut table, surroundings.base);
    let place = table.place_of("url");
    let has_url = url.is_some();
    let url = url.unwrap_or_else(|| BackendUrl {
        protocol: Protocol::Ajp,
        address: unplaced(),
        tls: false,
    });
    let has_tls = url.tls;
    let by_url = url.backend();
    let (name, jvm_route) = (written.name.take(), written.jvm_route.take());
    let upgrade_url = written.upgrade_url.take();
    let BackendDefaults { config, tls } = settle(written, &shared.tls, &mut table, surroundings);
    let mut backend = BackendConfig {
        name: name.unwrap_or(by_url.name),
        protocol: by_url.protocol,
        address: by_url.address,
        ..config
    };
    backend.jvm_route = jvm_route.unwrap_or_else(|| backend.name.clone());
    backend.domain = backend.domain.or_else(|| domain_of(&backend.jvm_route));
    match backend.protocol {
        Protocol::Http => ajp_keys_at_fault(&mut table),
        Protocol::Ajp => http_keys_at_fault(&mut table),
    }
    if has_tls {
        let address = &backend.address;
        backend.tls = backend_tls::build(&mut table, place.clone(), &tls, address, surroundings);
    }
    let upgrade = upgrade_url.and_then(|upgrade_url| {
        backend_upgrade::end(upgrade_url, &mut table, &tls, &backend, surroundings)
    });
    let tunnels_have_tls = matches!(upgrade, Some((_, true)));
    backend.upgrade = upgrade.map(|(end, _)| end);
    if has_url && !has_tls && !tunnels_have_tls {
        backend_tls::at_fault(&mut table);
    }
    settle_host(&mut table, &mut backend, has_url);
    table.finish(report);
    has_url.then_some(Backend {
        value: backend,
        place,
    })
}

/// Makes a relative path in a URL start from the directory `base`. `key` is the key that has the URL.
pub(super) fn resolve(key: &str, url: Option<&mut BackendUrl>, table: &mut Table<'_>, base: &Path) {
    if let Some(Err(error)) = url.map(|it| backend_from(base, it)) {
        let message = format!("`{key}` {error}");
        table.push(Finding::fault(message, table.place_of(key)));
    }
}

/// The domain with which a `jvm_route` begins: the text before its first dot; `None` if it has none.
fn domain_of(jvm_route: &str) -> Option<String> {
    let (domain, _) = jvm_route.split_once('.')?;
    // Without a name, a backend has its URL as its route, which has no domain.
    let given = !domain.is_empty() && !is_url(jvm_route);
    given.then(|| domain.to_owned())
}

/// Whether a route is a URL, which a backend without a name has in its place.
pub(crate) fn is_url(route: &str) -> bool {
    route.contains(":/")
}

/// Replaces `host = "backend"`, which an upstream may say for all backends, by the host of this one. `has_url`: its
/// address is known.
fn settle_host(table: &mut Table<'_>, backend: &mut BackendConfig, has_url: bool) {
    if backend.host != SentHost::Backend || !has_url {
        return;
    }
    match backend.own_host() {
        Some(host) => backend.host = SentHost::Named(host),
        None => {
            let message = "host = \"backend\", and a Unix socket has no host";
            let hint =
                "write the host that the application knows itself by, such as \"app.internal\"";
            table.push(Finding::fault(message, table.place_of("host")).hint(hint));
        }
    }
}

/// Makes settings of the keys of a backend or an upstream. `shared` has the keys about TLS that the upstream of a
/// backend sets.
pub(super) fn settle(
    mut written: RawBackend,
    shared: &TlsKeys,
    table: &mut Table<'_>,
    surroundings: &Surroundings<'_>,
) -> BackendDefaults {
    let tls = backend_tls::settle(written.tls, shared, table, surroundings.base);
    let packet_size = written.packet_size.map(PacketSize::new);
    let ajp = &mut written.config.ajp;
    if let Some(Ok(packet_size)) = packet_size {
        ajp.packet_size = packet_size;
    }
    if let Some(secret) = secret(written.secret, written.secret_file, table, surroundings) {
        ajp.secret = Some(Secret::new(secret));
    }
    compare(table, &written.config);
    BackendDefaults {
        config: written.config,
        tls,
    }
}

/// Reads the secret of a backend. If it is not valid, returns an empty one, so that no warning says that it is missing.
fn secret(
    secret: Option<String>,
    path: Option<PathBuf>,
    table: &mut Table<'_>,
    surroundings: &Surroundings<'_>,
) -> Option<String> {
    let (has_secret, has_file) = (table.has("secret"), table.has("secret_file"));
    if has_secret && has_file {
        let message = "`secret` and `secret_file` are both there";
        let hint = "remove one; a file is safer, because others may read the configuration";
        table.push(Finding::fault(message, table.place_of("secret_file")).hint(hint));
        return Some(String::new());
    }
    if let Some(path) = path {
        let check = |text: String| parse_secret(&text).map_err(|error| error.to_string());
        let from_file = surroundings.secret("secret_file", &path, check, table);
        return Some(from_file.unwrap_or_default());
    }
    match secret {
        // The key is there, and its value has a fault.
        None if has_secret || has_file => Some(String::new()),
        secret => secret,
    }
}

/// Warns of a limit that has no effect, because another limit is reached first.
fn compare(table: &mut Table<'_>, backend: &BackendConfig) {
    let exchange_timeout = backend.exchange_timeout.unwrap_or(Duration::MAX);
    for (key, timeout) in [
        ("first_byte_timeout", backend.first_byte_timeout),
        ("idle_body_timeout", backend.idle_body_timeout),
        ("connect_timeout", backend.connect_timeout),
        ("queue_timeout", backend.queue_timeout),
    ] {
        if table.has(key) && timeout > exchange_timeout {
            never_reached(table, key, "exchange_timeout");
        }
    }
    let ping_after_idle = backend.ajp.ping_after_idle;
    if table.has("ping_after_idle")
        && ping_after_idle.is_some_and(|after| after >= backend.idle_timeout)
    {
        never_reached(table, "ping_after_idle", "idle_timeout");
    }
}

/// Warns that the limit `key` is never reached, because the limit `first` ends sooner.
pub(super) fn never_reached(table: &mut Table<'_>, key: &str, first: &str) {
    let message = format!("`{key}` is never reached, because `{first}` ends sooner");
    let hint = format!("lower `{key}`, or raise `{first}`");
    table.push(Finding::warning(message, table.place_of(key)).hint(hint));
}

/// Reports keys for AJP on a backend that speaks HTTP.
fn ajp_keys_at_fault(table: &mut Table<'_>) {
    for (name, place) in table.written(KEYS, |group| group == AJP) {
        let message = format!("`{name}` is for AJP, and this backend speaks HTTP");
        table.push(Finding::fault(message, place).hint("remove it, or write ajp:// in the `url`"));
    }
}

/// Reports keys for HTTP on a backend that speaks AJP.
fn http_keys_at_fault(table: &mut Table<'_>) {
    for (name, place) in table.written(KEYS, |group| group == HTTP) {
        let message = format!("`{name}` is for HTTP, and this backend speaks AJP");
        let hint = "remove it: over AJP the application gets the certificate anyway";
        table.push(Finding::fault(message, place).hint(hint));
    }
}

pub(crate) static SECTION: Section = Section {
    header: "[[upstream.NAME.backend]]",
    intro: "One backend of a group; at least one per upstream. All keys but the first \
            nine may stand in `[upstream.NAME]` instead. Those from `ca_file` to `client_key` are for \
            `https://` only, the last seven for AJP only.",
    keys: &[Part::all(&KEYS)],
    later: &[
        ("drain", "write activation = \"drain\""),
        ("standby", "give it a `distance` above that of the others"),
    ],
};
