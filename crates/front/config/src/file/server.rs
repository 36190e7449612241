//! `[server]`: settings of all listeners.

use std::num::NonZeroUsize;
use std::time::Duration;

use catamaran_proxy::config::ServerConfig;
use toml::Spanned;
use toml::de::DeValue;

use crate::file::route::RESPONSE_NAME;
use crate::fill;
use crate::key::{ALL, Key, Part, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::{Table, table};
use crate::value::text::{parse_network, parse_request_id, parse_token, parse_underscored};
use crate::value::{Counts, Durations, Map, OneOrMore, Optional, OrOff, Sizes, Syntax};

/// Reads `[server]`.
pub(crate) fn read(value: &Spanned<DeValue<'_>>, server: &mut ServerConfig, report: &mut Report) {
    let Some((place, entries)) = table(SECTION.header, value, report) else {
        return;
    };
    let mut table = Table::new(&SECTION, place, entries).except(&[RESPONSE_NAME]);
    table.read(KEYS, server);
    if server
        .trusted_proxies
        .iter()
        .any(|network| network.prefix_len() == 0)
    {
        let message = "`trusted_proxies` trusts everybody";
        let hint = "any client may then claim any address; list your own proxies only";
        table.push(Finding::warning(message, table.place_of("trusted_proxies")).hint(hint));
    }
    table.finish(report);
}

/// Turns a count, which is at least 1, into the type for such numbers.
fn not_zero(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN)
}

pub(crate) static SECTION: Section = Section {
    header: "[server]",
    intro: "What holds for all listeners. The table may be left out.",
    keys: &[Part::all(&KEYS)],
    later: &[],
};

static KEYS: &[Key<ServerConfig>] = &[
    Key {
        name: "workers",
        group: ALL,
        value: fill!(Map(Counts(1..=1024), not_zero), ServerConfig.workers),
        preset: Preset::Unset("one per core"),
        sample: "3",
        effect: "How many event loops run, each on a thread of its own. A client's connection stays \
                 with the worker that accepted it. A reload (SIGHUP) does not change it, an upgrade \
                 (SIGUSR2) does.",
        extremes: "Fewer than the cores leaves cores to the application server on the same machine. \
                   More than the cores gains nothing and splits the pools of idle connections.",
        elsewhere: "nginx `worker_processes`; httpd `ThreadsPerChild`",
    },
    Key {
        name: "connections_max",
        group: ALL,
        value: fill!(
            Optional(Counts(1..=10_000_000)),
            ServerConfig.connections_max
        ),
        preset: Preset::Unset("20000, or as many as the limit of open files leaves"),
        sample: "50000",
        effect: "Connections of clients over all workers; one more is closed as soon as it is \
                 accepted. The log, `status` and the events say so (`connections-max`). Each needs a file \
                 descriptor, and so does each connection to a backend.",
        extremes: "Too low and clients that only keep a connection alive crowd out others. Above what \
                   the hard limit of open files (`ulimit -Hn`) leaves beside the backends' connections, \
                   `serve` lowers it and says so once. Members that are found count while they are there.",
        elsewhere: "nginx `worker_connections`; httpd `MaxRequestWorkers`; Tomcat `maxConnections`",
    },
    Key {
        name: "connections_per_address",
        group: ALL,
        value: fill!(
            OrOff(Map(Counts(1..=10_000_000), not_zero)),
            ServerConfig.connections_per_address
        ),
        preset: Preset::Value("\"off\""),
        sample: "100",
        effect: "Connections of one client address over all workers; one more is closed as soon as it \
                 is accepted. An IPv6 network of 64 bits counts as one address. Peers in \
                 `trusted_proxies` and clients of Unix sockets are not counted.",
        extremes: "Too low and browsers, which open six connections each, or many people behind one \
                   address are turned away. `\"off\"` lets one address take all of \
                   `connections_max`.",
        elsewhere: "nginx `limit_conn`; HAProxy `src_conn_cur`",
    },
    Key {
        name: "compress_memory",
        group: ALL,
        value: fill!(Sizes(1 << 20..=1 << 40), ServerConfig.compress_memory),
        preset: Preset::Value("\"64MiB\""),
        sample: "\"256MiB\"",
        effect: "Memory that responses which are being compressed (`compress` of a route) may hold in all \
                 workers together: 384 KiB each with gzip, 896 KiB with zstd, 6 MiB while a body is put into \
                 Brotli to be kept. A response beyond it is sent as it is, and counted \
                 (`compress-memory`).",
        extremes: "A response holds its memory until its client has it: many slow clients, or many event \
                   streams, need more. The default is enough for 73 with zstd, 170 with gzip.",
        elsewhere: "nginx `gzip_buffers` (each request); httpd `DeflateMemLevel` (each request)",
    },
    Key {
        name: "limit_memory",
        group: ALL,
        value: fill!(Sizes(64 << 10..=1 << 36), ServerConfig.limit_memory),
        preset: Preset::Value("\"8MiB\""),
        sample: "\"64MiB\"",
        effect: "Memory in which the front knows what clients owe to limits ([limit.NAME]), 17 bytes for each client \
                 and limit: 8 MiB for 490,000. If there are more, those that owe least are forgotten. Without limits \
                 none is taken.",
        extremes: "Too small forgets what clients owe; it never refuses a client that owes nothing. A reload that \
                   changes it forgets everything.",
        elsewhere: "nginx `limit_req_zone zone=NAME:SIZE`; HAProxy `stick-table size`",
    },
    Key {
        name: "files_open",
        group: ALL,
        value: fill!(Counts(0..=1_000_000), ServerConfig.files_open),
        preset: Preset::Value("1000"),
        sample: "5000",
        effect: "Files of routes with `files` that each worker keeps open, so that the next request for one \
                 need not open it. A name is looked up again once a second; a file that nobody has asked for \
                 for ten seconds is closed.",
        extremes: "Each is a descriptor, beside those of connections; if none is left, all are closed. `0` \
                   opens a file for each request, unless `files_memory` has it.",
        elsewhere: "nginx `open_file_cache max=…` (each worker, off unless it is set)",
    },
    Key {
        name: "files_memory",
        group: ALL,
        value: fill!(Sizes(0..=1 << 40), ServerConfig.files_memory),
        preset: Preset::Value("\"16MiB\""),
        sample: "\"64MiB\"",
        effect: "Memory in which each worker keeps files of at most 32 KiB of routes with `files`, what \
                 `compress` makes of them, and in an eighth of it the names of files. \
                 `catamaran_files_bytes` says how much is used.",
        extremes: "A file that was written within the last two seconds is not kept: a write may be under way. \
                   `\"0B\"` reads a file for each request.",
        elsewhere: "httpd `mod_cache_socache`; nginx has none for files",
    },
    Key {
        name: "drain_timeout",
        group: ALL,
        value: fill!(
            Durations(Duration::ZERO..=Duration::from_secs(24 * 3600)),
            ServerConfig.drain_timeout
        ),
        preset: Preset::Value("\"30s\""),
        sample: "\"2m\"",
        effect: "After SIGTERM or SIGINT, and for a listener that a reload removes: how long exchanges \
                 may go on before their connections are cut. Meanwhile each response says \
                 `Connection: close`; for half a second, at most a quarter of this time, new \
                 connections are still accepted and idle ones are left open; the old process of \
                 an upgrade leaves them open for five seconds, at most a quarter of this time.",
        extremes: "`\"0s\"` cuts every exchange at once. Longer than the service manager's patience \
                   (systemd: `TimeoutStopSec`, 90 s) ends in SIGKILL.",
        elsewhere: "nginx `worker_shutdown_timeout`; httpd `GracefulShutdownTimeout`",
    },
    Key {
        name: "drain_delay",
        group: ALL,
        value: fill!(
            Durations(Duration::ZERO..=Duration::from_secs(3600)),
            ServerConfig.drain_delay
        ),
        preset: Preset::Value("\"0s\""),
        sample: "\"10s\"",
        effect: "After SIGTERM or SIGINT: how long the front serves as before, new connections too, while \
                 `/readyz` of the admin listener is 503. Then the drain begins. A second signal ends this \
                 time, a third one the process. Meanwhile nothing is reloaded or upgraded. An upgrade \
                 (SIGUSR2) has no use for it and does not wait.",
        extremes: "Shorter than a load balancer takes to notice (its interval times its count of failures), \
                   and it still sends connections when they are refused. Service managers must wait for \
                   `drain_delay` and `drain_timeout` together (systemd: `TimeoutStopSec`; Kubernetes: \
                   `terminationGracePeriodSeconds`).",
        elsewhere: "HAProxy `grace`; Kubernetes: a `sleep` as `preStop`; Spring Boot, Tomcat: none",
    },
    Key {
        name: "trusted_proxies",
        group: ALL,
        value: fill!(
            OneOrMore(Syntax {
                what: "an IP address or network such as \"10.0.0.0/8\"",
                parse: parse_network,
            }),
            ServerConfig.trusted_proxies
        ),
        preset: Preset::Value("[]"),
        sample: "[\"10.0.0.0/8\", \"fd00::/8\"]",
        effect: "Peers whose `Forwarded` and `X-Forwarded-*` fields are believed; from all others \
                 these fields are dropped and written anew. Of several lines or elements the \
                 last counts, which the nearest proxy wrote. Over HTTP/2 their `:scheme` is believed as well, \
                 unless there is an `X-Forwarded-Proto`, which wins. In both, `wss` counts as `https` and `ws` as \
                 `http`, in any case; another word in `X-Forwarded-Proto` says nothing. Over AJP, `X-Forwarded-Host` and \
                 `-Port` become the server's name and port, and `Host`; for an upstream with a \
                 backend that speaks HTTP, `X-Forwarded-Host` is passed on as it is, and \
                 `X-Forwarded-Port` says the port that the client used.",
        extremes: "Left out behind a load balancer, every request seems to come from it. Too wide, \
                   any client can claim any address.",
        elsewhere: "nginx `set_real_ip_from`; httpd `RemoteIPTrustedProxy`; Tomcat \
                    `RemoteIpValve internalProxies`",
    },
    Key {
        name: "underscore_fields",
        group: ALL,
        value: fill!(
            OneOrMore(Syntax {
                what: "the name of a field with an underscore, such as \"SM_USER\"",
                parse: parse_underscored,
            }),
            ServerConfig.underscore_fields
        ),
        preset: Preset::Value("[]"),
        sample: "[\"SM_USER\"]",
        effect: "Fields that are passed on although their names have an underscore, or another sign than \
                 letters, digits and hyphens. All others are dropped, since CGI and some containers take \
                 `X_Real_IP` for `X-Real-IP`.",
        extremes: "Clients can send a listed field, too: list only what a trusted agent in front of \
                   this listener sets or removes.",
        elsewhere: "nginx `underscores_in_headers`, `ignore_invalid_headers` (all or none)",
    },
    Key {
        name: "via",
        group: ALL,
        value: fill!(
            OrOff(Syntax {
                what: "a token such as \"front-1\"",
                parse: parse_token,
            }),
            ServerConfig.via
        ),
        preset: Preset::Value("\"catamaran\""),
        sample: "\"off\"",
        effect: "The name under which the front adds itself to `Via` (RFC 9110, section 7.6.3).",
        extremes: "`\"off\"` writes no `Via`; a loop of proxies is then not seen in the fields.",
        elsewhere: "httpd `ProxyVia`",
    },
    Key {
        name: "request_id",
        group: ALL,
        value: fill!(
            OrOff(Syntax {
                what: "the name of a field such as \"X-Request-Id\"",
                parse: parse_request_id,
            }),
            ServerConfig.request_id
        ),
        preset: Preset::Value("\"X-Request-Id\""),
        sample: "\"X-Correlation-Id\"",
        effect: "The field by which backends get the request's id, which stands in the access log and on \
                 pages of the front. What clients send in it is replaced; what a proxy in \
                 `trusted_proxies` sends is passed on, and is `given_id` in the access log. \
                 [log.md](log.md) shows how a request is followed into Tomcat's log.",
        extremes: "Off, the field is passed on as clients send it.",
        elsewhere: "mod_jk `JkRequestIdIndicator`; nginx `proxy_set_header X-Request-Id $request_id`; \
                    HAProxy `unique-id-header`",
    },
];
