//! `[[upstream.NAME.backend]]`: one address and protocol, and the limits of its pool.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use catamaran_front::config::{
    Activation, Address, BackendConfig, ClientCertFields, PacketSize, Protocol, Secret,
};
use toml::de::DeTable;

use super::attributes::{AUTH_TYPE, REMOTE_USER};
use super::backend_errors::{EJECT, EJECT_AFTER_5XX};
use super::backend_host::HOST;
use super::backend_tls::TlsKeys;
use super::backend_upgrade::{TUNNELS_MAX, UPGRADE_URL};
use super::upstream::{HASH_BY, POLICY, RETRIES, RETRY_SENT, RETRY_STATUS, UNWELL_MAX};
use super::{Backend, Surroundings, backend_host, backend_tls, backend_upgrade};
use crate::key::{AnyKey, Doc, Key, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::Table;
use crate::value::address::{BackendUrl, UrlError, backend_from, parse_upstream_url};
use crate::value::text::{FilePath, TextError, file_path, parse_label, parse_secret};
use crate::value::{Choices, Counts, Durations, OrOff, Parsed, Sizes, Switch};

/// Reads one table, starting from the settings of its upstream.
pub(crate) fn read(
    (place, entries): (Range<usize>, &DeTable<'_>),
    surroundings: &Surroundings<'_>,
    (shared, shared_tls): (&BackendConfig, &TlsKeys),
    report: &mut Report,
) -> Option<Backend> {
    let mut table = Table::new(&SECTION, place, entries);
    let mut url = table.require(&URL);
    if let Some(Err(error)) = url.as_mut().map(|it| backend_from(surroundings.base, it)) {
        let message = format!("`{}` {error}", URL.name);
        table.push(Finding::fault(message, table.place_of(&URL)));
    }
    let place = table.place_of(&URL);
    let unplaced = || BackendUrl {
        protocol: Protocol::Ajp,
        address: Address::Unix(PathBuf::new()),
        tls: false,
    };
    let has_tls = url.as_ref().is_some_and(|url| url.tls);
    let own = url.clone().unwrap_or_else(unplaced).backend();
    let mut backend = BackendConfig {
        name: own.name,
        protocol: own.protocol,
        address: own.address,
        ..shared.clone()
    };
    table.set(&NAME, &mut backend.name);
    table.set(&WEIGHT, &mut backend.weight);
    membership(&mut table, &mut backend);
    settings(&mut table, surroundings, &mut backend);
    match backend.protocol {
        Protocol::Http => ajp_keys_at_fault(&mut table),
        Protocol::Ajp => http_key_at_fault(&mut table),
    }
    let mut tls = shared_tls.clone();
    backend_tls::read(&mut table, surroundings.base, &mut tls);
    if has_tls {
        backend.tls = backend_tls::build(
            &mut table,
            place.clone(),
            &tls,
            &backend.address,
            surroundings,
        );
    }
    let upgrade = backend_upgrade::read(&mut table, &tls, &backend, surroundings);
    if !has_tls && url.is_some() && !upgrade.as_ref().is_some_and(|(_, has_tls)| *has_tls) {
        backend_tls::at_fault(&mut table);
    }
    backend.upgrade = upgrade.map(|(end, _)| end);
    backend_host::settle(&mut table, &mut backend, url.is_some());
    table.finish(report);
    url.map(|_| Backend {
        value: backend,
        place,
    })
}

/// Reads what places the backend among the others.
fn membership(table: &mut Table<'_>, backend: &mut BackendConfig) {
    let route = table.take(&JVM_ROUTE);
    backend.jvm_route = route.unwrap_or_else(|| backend.name.clone());
    let domain = table.take(&DOMAIN);
    let prefix = || {
        let (domain, _) = backend.jvm_route.split_once('.')?;
        // A URL is no route that anybody gave.
        let given = !domain.is_empty() && !is_url(&backend.jvm_route);
        given.then(|| domain.to_owned())
    };
    backend.domain = domain.or_else(prefix);
    backend.fallback = table.take(&FALLBACK);
    table.set(&DISTANCE, &mut backend.distance);
    table.set(&ACTIVATION, &mut backend.activation);
}

/// Whether a route is the URL that stands in for a backend's name.
pub(crate) fn is_url(route: &str) -> bool {
    route.contains(":/")
}

/// Reads the keys that an upstream may set for all its backends.
pub(super) fn settings(
    table: &mut Table<'_>,
    surroundings: &Surroundings<'_>,
    backend: &mut BackendConfig,
) {
    table.set(&CONNECTIONS_MAX, &mut backend.connections_max);
    table.set(&QUEUE_MAX, &mut backend.queue_max);
    table.set(&QUEUE_TIMEOUT, &mut backend.queue_timeout);
    table.set(&IDLE_TIMEOUT, &mut backend.idle_timeout);
    table.set(&CONNECT_TIMEOUT, &mut backend.connect_timeout);
    table.set(&FIRST_BYTE_TIMEOUT, &mut backend.first_byte_timeout);
    table.set(&IDLE_BODY_TIMEOUT, &mut backend.idle_body_timeout);
    table.set(&EXCHANGE_TIMEOUT, &mut backend.exchange_timeout);
    table.set(&EJECT, &mut backend.eject);
    if let Some(run_max) = table.take(&EJECT_AFTER_5XX) {
        backend.eject_after_5xx = run_max;
    }
    table.set(&SUSPECT_AFTER, &mut backend.suspect_after);
    table.set(&SLOW_START, &mut backend.slow_start);
    table.set(&TUNNELS_MAX, &mut backend.tunnels_max);
    table.set(&CLIENT_CERT_FIELDS, &mut backend.client_cert_fields);
    table.set(&HOST, &mut backend.host);
    let ajp = &mut backend.ajp;
    let packet_size = table
        .take(&PACKET_SIZE)
        .and_then(|bytes| PacketSize::new(bytes).ok());
    ajp.packet_size = packet_size.unwrap_or(ajp.packet_size);
    table.set(&PING_AFTER_IDLE, &mut ajp.ping_after_idle);
    table.set(&PING_FRESH, &mut ajp.ping_fresh);
    table.set(&PING_TIMEOUT, &mut ajp.ping_timeout);
    table.set(&ANNOUNCE_CHUNKED, &mut ajp.announce_chunked);
    if let Some(secret) = secret(table, surroundings) {
        ajp.secret = Some(Secret::new(secret));
    }
    compare(table, backend);
}

/// A secret that is at fault counts as one, so that its absence is not warned of as well.
fn secret(table: &mut Table<'_>, surroundings: &Surroundings<'_>) -> Option<String> {
    let (secret, path) = (table.take(&SECRET), table.take(&SECRET_FILE));
    if table.has(&SECRET) && table.has(&SECRET_FILE) {
        let place = table.place_of(&SECRET_FILE);
        let message = "`secret` and `secret_file` are both there";
        table.push(
            Finding::fault(message, place)
                .hint("remove one; a file is safer, because others may read the configuration"),
        );
        return Some(String::new());
    }
    let Some(path) = path else {
        let given = table.has(&SECRET) || table.has(&SECRET_FILE);
        return secret.or_else(|| given.then(String::new));
    };
    let path = surroundings.base.join(path);
    let read = (surroundings.read_secret)(&path)
        .and_then(|text| parse_secret(&text).map_err(|error| error.to_string()));
    Some(read.unwrap_or_else(|error| {
        let message = format!("the file {} {error}", path.display());
        table.push(Finding::fault(message, table.place_of(&SECRET_FILE)));
        String::new()
    }))
}

/// Warns of a limit that another one reaches first.
fn compare(table: &mut Table<'_>, backend: &BackendConfig) {
    let whole = backend.exchange_timeout.unwrap_or(Duration::MAX);
    for (key, part) in [
        (&FIRST_BYTE_TIMEOUT, backend.first_byte_timeout),
        (&IDLE_BODY_TIMEOUT, backend.idle_body_timeout),
        (&CONNECT_TIMEOUT, backend.connect_timeout),
        (&QUEUE_TIMEOUT, backend.queue_timeout),
    ] {
        if table.has(key) && part > whole {
            never_reached(table, key, EXCHANGE_TIMEOUT.name);
        }
    }
    if table.has(&PING_AFTER_IDLE)
        && backend
            .ajp
            .ping_after_idle
            .is_some_and(|after| after >= backend.idle_timeout)
    {
        never_reached(table, &PING_AFTER_IDLE, IDLE_TIMEOUT.name);
    }
}

fn never_reached(table: &mut Table<'_>, key: &impl AnyKey, first: &str) {
    let message = format!(
        "`{}` is never reached, because `{first}` ends sooner",
        key.name()
    );
    let hint = format!("lower `{}`, or raise `{first}`", key.name());
    table.push(Finding::warning(message, table.place_of(key)).hint(hint));
}

/// A setting of AJP on a backend that does not speak it is a slip, in the key or in the URL.
fn ajp_keys_at_fault(table: &mut Table<'_>) {
    for (name, place) in ajp_keys(table) {
        let message = format!("`{name}` is for AJP, and this backend speaks HTTP");
        table.push(Finding::fault(message, place).hint("remove it, or write ajp:// in the `url`"));
    }
}

fn http_key_at_fault(table: &mut Table<'_>) {
    if table.has(&CLIENT_CERT_FIELDS) {
        let place = table.place_of(&CLIENT_CERT_FIELDS);
        let message = "`client_cert_fields` is for HTTP, and this backend speaks AJP";
        let hint = "remove it: over AJP the application gets the certificate anyway";
        table.push(Finding::fault(message, place).hint(hint));
    }
}

/// On a whole group it may stay behind when backends are switched for a while.
pub(super) fn ajp_keys_without_use(table: &mut Table<'_>) {
    for (name, place) in ajp_keys(table) {
        let message = format!("`{name}` is for AJP, and no backend of this upstream speaks it");
        table.push(
            Finding::warning(message, place)
                .hint("remove it, or write ajp:// in the `url` of a backend"),
        );
    }
}

fn ajp_keys(table: &Table<'_>) -> Vec<(&'static str, Range<usize>)> {
    let keys = [
        (
            PACKET_SIZE.name,
            table.has(&PACKET_SIZE),
            table.place_of(&PACKET_SIZE),
        ),
        (SECRET.name, table.has(&SECRET), table.place_of(&SECRET)),
        (
            SECRET_FILE.name,
            table.has(&SECRET_FILE),
            table.place_of(&SECRET_FILE),
        ),
        (
            PING_AFTER_IDLE.name,
            table.has(&PING_AFTER_IDLE),
            table.place_of(&PING_AFTER_IDLE),
        ),
        (
            PING_FRESH.name,
            table.has(&PING_FRESH),
            table.place_of(&PING_FRESH),
        ),
        (
            PING_TIMEOUT.name,
            table.has(&PING_TIMEOUT),
            table.place_of(&PING_TIMEOUT),
        ),
        (
            ANNOUNCE_CHUNKED.name,
            table.has(&ANNOUNCE_CHUNKED),
            table.place_of(&ANNOUNCE_CHUNKED),
        ),
    ];
    keys.into_iter()
        .filter(|(_, has, _)| *has)
        .map(|(name, _, place)| (name, place))
        .collect()
}

pub(crate) static SECTION: Section = Section {
    header: "[[upstream.NAME.backend]]",
    intro: "One backend of a group; at least one per upstream. All keys but the first \
            nine may stand in `[upstream.NAME]` instead. Those from `ca_file` to `client_key` are for \
            `https://` only, the last seven for AJP only.",
    keys: &[
        &URL,
        &UPGRADE_URL,
        &NAME,
        &WEIGHT,
        &JVM_ROUTE,
        &DOMAIN,
        &FALLBACK,
        &DISTANCE,
        &ACTIVATION,
        &CONNECTIONS_MAX,
        &QUEUE_MAX,
        &QUEUE_TIMEOUT,
        &IDLE_TIMEOUT,
        &CONNECT_TIMEOUT,
        &FIRST_BYTE_TIMEOUT,
        &IDLE_BODY_TIMEOUT,
        &EXCHANGE_TIMEOUT,
        &EJECT,
        &EJECT_AFTER_5XX,
        &SUSPECT_AFTER,
        &SLOW_START,
        &TUNNELS_MAX,
        &HOST,
        &CLIENT_CERT_FIELDS,
        backend_tls::KEYS[0],
        backend_tls::KEYS[1],
        backend_tls::KEYS[2],
        backend_tls::KEYS[3],
        backend_tls::KEYS[4],
        &PACKET_SIZE,
        &SECRET,
        &SECRET_FILE,
        &PING_AFTER_IDLE,
        &PING_FRESH,
        &PING_TIMEOUT,
        &ANNOUNCE_CHUNKED,
    ],
    parts: &[],
    later: &[
        ("drain", "write activation = \"drain\""),
        ("standby", "give it a `distance` above that of the others"),
    ],
};

/// The keys of an upstream: its own, and those it may set for its backends.
pub(super) const UPSTREAM_KEYS: &[&dyn AnyKey] = &[
    &POLICY,
    &HASH_BY,
    &RETRIES,
    &RETRY_SENT,
    &RETRY_STATUS,
    &UNWELL_MAX,
    &REMOTE_USER,
    &AUTH_TYPE,
    &CONNECTIONS_MAX,
    &QUEUE_MAX,
    &QUEUE_TIMEOUT,
    &IDLE_TIMEOUT,
    &CONNECT_TIMEOUT,
    &FIRST_BYTE_TIMEOUT,
    &IDLE_BODY_TIMEOUT,
    &EXCHANGE_TIMEOUT,
    &EJECT,
    &EJECT_AFTER_5XX,
    &SUSPECT_AFTER,
    &SLOW_START,
    &TUNNELS_MAX,
    &HOST,
    &CLIENT_CERT_FIELDS,
    backend_tls::KEYS[0],
    backend_tls::KEYS[1],
    backend_tls::KEYS[2],
    backend_tls::KEYS[3],
    backend_tls::KEYS[4],
    &PACKET_SIZE,
    &SECRET,
    &SECRET_FILE,
    &PING_AFTER_IDLE,
    &PING_FRESH,
    &PING_TIMEOUT,
    &ANNOUNCE_CHUNKED,
];

pub(super) static URL: Key<Parsed<BackendUrl, UrlError>> = Key {
    name: "url",
    values: Parsed {
        what: "a URL: \"ajp://HOST:PORT\", \"http://HOST:PORT\", \"https://HOST:PORT\", \
               \"ajp+unix:/PATH\" or \"http+unix:/PATH\"",
        parse: parse_upstream_url,
    },
    doc: Doc {
        preset: Preset::Required,
        sample: "\"ajp://127.0.0.1:8009\"",
        effect: "Protocol and address of the backend. A host name is resolved beside the \
                 traffic, every 3 s and after a dial that failed. While resolving fails, the last \
                 addresses stay in use. Of several addresses the next one is tried after 250 ms.",
        extremes: "AJP carries no encryption and trusts whoever may connect: keep it on loopback, a \
                   Unix socket or a private network, and give it a `secret`.",
        elsewhere: "nginx `server`; httpd `BalancerMember`; mod_jk `type`, `host`, `port`; Tomcat \
                    `unixDomainSocketPath`",
    },
};

static NAME: Key<Parsed<String, TextError>> = Key {
    name: "name",
    values: Parsed {
        what: "a name such as \"a\"",
        parse: parse_label,
    },
    doc: Doc {
        preset: Preset::Unset("the `url`"),
        sample: "\"a\"",
        effect: "The name of the backend in logs and counters. Unique within its upstream.",
        extremes: "A reload with another name keeps the backend's connections and counters; its \
                   metrics go on under the new name.",
        elsewhere: "mod_jk: the worker's name",
    },
};

pub(super) static WEIGHT: Key<Counts<u32>> = Key {
    name: "weight",
    values: Counts { min: 1, max: 1000 },
    doc: Doc {
        preset: Preset::Value("1"),
        sample: "3",
        effect: "The backend's share of the load, in proportion to the weights of the others.",
        extremes: "0 is refused: to take a backend out of use, remove it.",
        elsewhere: "nginx `weight`; httpd `loadfactor`; mod_jk `lbfactor`",
    },
};

pub(super) static JVM_ROUTE: Key<Parsed<String, TextError>> = Key {
    name: "jvm_route",
    values: Parsed {
        what: "a route such as \"a\"",
        parse: parse_label,
    },
    doc: Doc {
        preset: Preset::Unset("the `name`"),
        sample: "\"a\"",
        effect: "The route at the end of this backend's session ids: the `jvmRoute` of `<Engine>` \
                 in Tomcat's `server.xml`, `instance-id` in WildFly. Unique within its upstream; \
                 upper and lower case differ. Used with `[upstream.NAME.sticky]`.",
        extremes: "A route that the backend does not write breaks its sessions: they show as \
                   `sticky=unknown`, or `sticky=ignored` if it writes none.",
        elsewhere: "httpd `route`; mod_jk `route`; nginx `srun_id`, `route`",
    },
};

pub(super) static DOMAIN: Key<Parsed<String, TextError>> = Key {
    name: "domain",
    values: Parsed {
        what: "a name such as \"east\"",
        parse: parse_label,
    },
    doc: Doc {
        preset: Preset::Unset("what `jvm_route` has before its first dot, if it has one"),
        sample: "\"east\"",
        effect: "The replication group. When a backend is out, its sessions go to a backend with the \
                 same domain, which has copies of them.",
        extremes: "Backends that do not replicate to one another gain nothing from a common domain.",
        elsewhere: "mod_jk `domain`",
    },
};

static FALLBACK: Key<Parsed<String, TextError>> = Key {
    name: "fallback",
    values: Parsed {
        what: "the `jvm_route` of another backend",
        parse: parse_label,
    },
    doc: Doc {
        preset: Preset::Unset("none"),
        sample: "\"b\"",
        effect: "Where the sessions of this backend go first when it is out, before others of its \
                 `domain`.",
        extremes: "One fallback for many backends gets the load of all that are out.",
        elsewhere: "httpd `redirect`; mod_jk `redirect`",
    },
};

static ACTIVATION: Key<Choices<Activation>> = Key {
    name: "activation",
    values: Choices(&[
        ("active", Activation::Active),
        ("drain", Activation::Drain),
        ("stopped", Activation::Stopped),
    ]),
    doc: Doc {
        preset: Preset::Value("\"active\""),
        sample: "\"drain\"",
        effect: "Which requests the backend gets: with `\"active\"` its share, with `\"drain\"` \
                 those of its own sessions only, with `\"stopped\"` none. Exchanges in flight are \
                 always finished. Over AJP, with `sticky`, the front tells Tomcat in the attribute \
                 `JK_LB_ACTIVATION`. `catamaran drain`, `stop` and `activate` change it without \
                 the file ([sessions.md](sessions.md)).",
        extremes: "Without `sticky` a backend in `\"drain\"` gets nothing, like one that is stopped.",
        elsewhere: "httpd `status=+D`, `+S`; HAProxy `drain`, `maint`; mod_jk `activation`; nginx \
                    `drain`, `down`",
    },
};

pub(super) static DISTANCE: Key<Counts<u32>> = Key {
    name: "distance",
    values: Counts { min: 0, max: 1000 },
    doc: Doc {
        preset: Preset::Value("0"),
        sample: "1",
        effect: "Strict preference: a backend gets requests only while no backend with a lower \
                 distance can serve. Sessions stay with their backend whatever its distance.",
        extremes: "A standby that gets no requests may be broken without anybody noticing: give it \
                   a probe. One that is suspect (`suspect_after`) serves only if no distance has \
                   another.",
        elsewhere: "nginx `backup`; httpd `lbset`, `status=+H`; mod_jk `distance`",
    },
};

static CONNECTIONS_MAX: Key<Counts<usize>> = Key {
    name: "connections_max",
    values: Counts {
        min: 1,
        max: 65_535,
    },
    doc: Doc {
        preset: Preset::Value("200"),
        sample: "400",
        effect: "Open connections to this backend over all workers, idle ones included. The \
                 default is Tomcat's `maxThreads`: further requests would wait inside Tomcat, \
                 where the front does not see them.",
        extremes: "Too low and requests queue here while the backend idles. Too high and they queue \
                   in the backend, where no limit of the front holds.",
        elsewhere: "nginx `max_conns`; httpd `max`; mod_jk `connection_pool_size` (per process there)",
    },
};

static QUEUE_MAX: Key<Counts<usize>> = Key {
    name: "queue_max",
    values: Counts {
        min: 0,
        max: 1_000_000,
    },
    doc: Doc {
        preset: Preset::Value("1000"),
        sample: "100",
        effect: "Exchanges that may wait for a connection when `connections_max` is reached; one \
                 more is answered 503.",
        extremes: "0 refuses at once. Too high and clients wait for answers they have given up on.",
        elsewhere: "nginx Plus `queue`; HAProxy `maxqueue`; Tomcat `acceptCount`",
    },
};

static QUEUE_TIMEOUT: Key<Durations> = Key {
    name: "queue_timeout",
    values: WAIT,
    doc: Doc {
        preset: Preset::Value("\"5s\""),
        sample: "\"1s\"",
        effect: "How long an exchange may wait for a connection before it is answered 503.",
        extremes: "Too short turns short bursts into errors. Too long hides an overload.",
        elsewhere: "mod_jk `connection_acquire_timeout`; httpd `acquire`; HAProxy `timeout queue`",
    },
};

static IDLE_TIMEOUT: Key<Durations> = Key {
    name: "idle_timeout",
    values: WAIT,
    doc: Doc {
        preset: Preset::Value("\"15s\""),
        sample: "\"20s\"",
        effect: "How long an unused connection stays in the pool.",
        extremes: "Longer than the backend's own (Tomcat: `keepAliveTimeout`, or else \
                   `connectionTimeout`, 20 s for HTTP in its stock `server.xml`), requests meet \
                   connections that are just closing. Too short and each pause costs new \
                   connections.",
        elsewhere: "nginx `keepalive_timeout` (upstream); httpd `ttl`; mod_jk \
                    `connection_pool_timeout`",
    },
};

static CONNECT_TIMEOUT: Key<Durations> = Key {
    name: "connect_timeout",
    values: WAIT,
    doc: Doc {
        preset: Preset::Value("\"1s\""),
        sample: "\"500ms\"",
        effect: "How long a new connection may take, name resolution included.",
        extremes: "Too short, a lost packet makes the dial fail (a retry of TCP takes 1 s). Too \
                   long keeps clients waiting before another backend is tried.",
        elsewhere: "nginx `proxy_connect_timeout`; httpd `connectiontimeout`; mod_jk \
                    `socket_connect_timeout`",
    },
};

static FIRST_BYTE_TIMEOUT: Key<Durations> = Key {
    name: "first_byte_timeout",
    values: WAIT,
    doc: Doc {
        preset: Preset::Value("\"60s\""),
        sample: "\"5m\"",
        effect: "How long the backend may be silent before the first byte of its response; the \
                 transfer of a request's body does not count. After it: 504.",
        extremes: "Too short cuts slow pages off, and their work goes on in the backend. Too long \
                   lets a hung backend hold connections.",
        elsewhere: "nginx `proxy_read_timeout`; httpd `timeout`; mod_jk `reply_timeout`",
    },
};

static IDLE_BODY_TIMEOUT: Key<Durations> = Key {
    name: "idle_body_timeout",
    values: WAIT,
    doc: Doc {
        preset: Preset::Value("\"60s\""),
        sample: "\"10s\"",
        effect: "How long the backend may be silent within a response, or refuse to take the next \
                 bytes of a request.",
        extremes: "Too short cuts streams with long pauses, such as server-sent events. The client \
                   sees a truncated response.",
        elsewhere: "nginx `proxy_read_timeout`, `proxy_send_timeout`; mod_jk `socket_timeout`",
    },
};

static EXCHANGE_TIMEOUT: Key<OrOff<Durations>> = Key {
    name: "exchange_timeout",
    values: OrOff(WAIT),
    doc: Doc {
        preset: Preset::Value("\"off\""),
        sample: "\"10m\"",
        effect: "How long a whole exchange may take, however busy it is. Off by default, as in \
                 nginx: a large download takes as long as its client needs.",
        extremes: "Too short cuts downloads off. Off lets a slow client hold a connection for long.",
        elsewhere: "HAProxy `timeout tunnel` comes near",
    },
};

static SUSPECT_AFTER: Key<OrOff<Durations>> = Key {
    name: "suspect_after",
    values: OrOff(WAIT),
    doc: Doc {
        preset: Preset::Value("\"2s\""),
        sample: "\"5s\"",
        effect: "A backend is suspect when no byte came on any of its connections for so long while a \
                 request awaits the first byte of its answer. Other backends are preferred until a \
                 byte comes. Over AJP it is asked CPING; without an answer it is left out, unless its \
                 requests fill `connections_max` or `unwell_max` would be exceeded. Requests that \
                 may run twice and have no byte of an answer are then tried elsewhere. Over HTTP \
                 there is no such question: a backend is never left out for its silence, requests \
                 that wait for it are not tried elsewhere and wait for up to `first_byte_timeout`, \
                 and a suspect without requests gets some again, few at first.",
        extremes: "Too short, a slow page on a quiet backend makes others preferred for a moment. Too \
                   long or off, requests wait for a hung backend until `first_byte_timeout`. For CPING \
                   to tell a busy Tomcat from a hung one, `connections_max` must not exceed its \
                   `maxThreads`.",
        elsewhere: "mod_jk `reply_timeout` with `max_reply_timeouts` comes near",
    },
};

static SLOW_START: Key<Durations> = Key {
    name: "slow_start",
    values: Durations {
        min: Duration::ZERO,
        max: DAY,
    },
    doc: Doc {
        preset: Preset::Value("\"10s\""),
        sample: "\"60s\"",
        effect: "How long a backend that comes back gets less than its `weight`, growing from a tenth \
                 of it. Without effect when no other backend is up.",
        extremes: "`\"0s\"` gives a Tomcat that has just started its full load before its code is \
                   warm. Too long, the others carry the load for it.",
        elsewhere: "nginx `slow_start` (commercial); HAProxy `slowstart`",
    },
};

static CLIENT_CERT_FIELDS: Key<Choices<ClientCertFields>> = Key {
    name: "client_cert_fields",
    values: Choices(&[
        ("off", ClientCertFields::Off),
        ("rfc9440", ClientCertFields::Rfc9440),
        ("tomcat", ClientCertFields::Tomcat),
    ]),
    doc: Doc {
        preset: Preset::Value("\"off\""),
        sample: "\"tomcat\"",
        effect: "The fields by which an HTTP backend is told of the client's certificate: \
                 `\"rfc9440\"` is `Client-Cert`, with `client_certificate_chain` also \
                 `Client-Cert-Chain`; `\"tomcat\"` is what Tomcat's `SSLValve` reads, \
                 `ssl_client_escaped_cert`, `ssl_cipher` and `ssl_cipher_usekeysize`. Such fields of \
                 a client are removed whatever this says (tls.md).",
        extremes: "The backend must take requests from the front only: whoever else reaches it can \
                   write these fields, too. A certificate takes 2 to 3 KiB of a head.",
        elsewhere: "nginx `proxy_set_header ... $ssl_client_escaped_cert`; httpd `RequestHeader set \
                    ... %{SSL_CLIENT_CERT}s`",
    },
};

static PACKET_SIZE: Key<Sizes<usize>> = Key {
    name: "packet_size",
    values: Sizes {
        min: 8192,
        max: 65_536,
    },
    doc: Doc {
        preset: Preset::Value("\"8KiB\""),
        sample: "\"64KiB\"",
        effect: "The size of a whole AJP packet. It must equal the connector's `packetSize`, which \
                 Tomcat takes as a number of bytes: `packetSize=\"16384\"` for \"16KiB\". A request's head must fit one packet, and so must a response's.",
        extremes: "Above the connector's: it drops the connection. Below it: large responses break \
                   off. Too low for the heads of your requests: they are answered 431. Tomcat asks \
                   for an upload packet by packet, each a round trip: `\"64KiB\"` on both sides takes \
                   a third of the CPU.",
        elsewhere: "mod_jk `max_packet_size`; httpd `ProxyIOBufferSize`; Tomcat `packetSize`",
    },
};

static SECRET: Key<Parsed<String, TextError>> = Key {
    name: "secret",
    values: Parsed {
        what: "a text",
        parse: parse_secret,
    },
    doc: Doc {
        preset: Preset::Unset("none is sent"),
        sample: "\"correct horse battery staple\"",
        effect: "The shared secret of the connector (Tomcat: `secret`, required there unless \
                 `secretRequired=\"false\"`), sent with each request. Never printed.",
        extremes: "Missing or wrong, Tomcat answers 403. Readable by everyone who can read this \
                   file: `secret_file` keeps it apart.",
        elsewhere: "httpd `secret`; mod_jk `secret`; Tomcat `secret`",
    },
};

static SECRET_FILE: Key<FilePath> = Key {
    name: "secret_file",
    values: file_path("a path"),
    doc: Doc {
        preset: Preset::Unset("none is read"),
        sample: "\"ajp.secret\"",
        effect: "A file that holds the secret in its first line. A relative path starts from the \
                 directory of the configuration file. Instead of `secret`.",
        extremes: "Let only the user of the front read it (mode 0400).",
        elsewhere: "",
    },
};

static PING_AFTER_IDLE: Key<OrOff<Durations>> = Key {
    name: "ping_after_idle",
    values: OrOff(Durations {
        min: Duration::ZERO,
        max: DAY,
    }),
    doc: Doc {
        preset: Preset::Value("\"10s\""),
        sample: "\"off\"",
        effect: "The front sends CPING on a pooled connection that was idle for longer, before its \
                 next use, so that no request meets a backend that has gone away. A backend that \
                 serves and has never answered CPING is not asked on pooled connections, and is back \
                 as soon as it can be connected to; a warning says so.",
        extremes: "`\"0s\"` asks before every request and costs each a round trip. Off leaves stale \
                   connections to the retry, which not every request can have.",
        elsewhere: "httpd `ping`; mod_jk `ping_mode`, `connection_ping_interval`",
    },
};

static PING_FRESH: Key<Switch> = Key {
    name: "ping_fresh",
    values: Switch,
    doc: Doc {
        preset: Preset::Value("false"),
        sample: "true",
        effect: "The front sends CPING on each new connection before its first request. Without an \
                 answer the connection counts as not established, so the front may try a request \
                 of any method elsewhere.",
        extremes: "On, each new connection costs a round trip more, and a backend whose threads are \
                   all busy takes no new connection. Off, a backend that accepts connections and does \
                   nothing is noticed by its first request.",
        elsewhere: "mod_jk `ping_mode` C, `connect_timeout`; httpd `ping`",
    },
};

static PING_TIMEOUT: Key<Durations> = Key {
    name: "ping_timeout",
    values: WAIT,
    doc: Doc {
        preset: Preset::Value("\"1s\""),
        sample: "\"3s\"",
        effect: "How long the answer to CPING may take before the connection is given up for \
                 another.",
        extremes: "Too short throws good connections away while the backend collects garbage. Too \
                   long delays requests.",
        elsewhere: "httpd `ping`; mod_jk `ping_timeout`",
    },
};

static ANNOUNCE_CHUNKED: Key<Switch> = Key {
    name: "announce_chunked",
    values: Switch,
    doc: Doc {
        preset: Preset::Value("true"),
        sample: "false",
        effect: "Say `Transfer-Encoding: chunked` for a body of unknown length. The field is the \
                 front's own, never the client's, and no Content-Length stands beside it.",
        extremes: "Off, a form that its client sends in chunks has no parameters for an application \
                   on Tomcat, and with Undertow (WildFly, JBoss EAP) every chunked upload arrives \
                   empty. Turn it off only for a container that refuses the field.",
        elsewhere: "mod_jk and mod_proxy_ajp always say it",
    },
};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The range of waiting for a backend.
const WAIT: Durations = Durations {
    min: Duration::from_millis(1),
    max: DAY,
};
