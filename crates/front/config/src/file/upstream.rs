//! `[upstream.NAME]`: a named group of backends with a policy.

use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use catamaran_proxy::config::{
    BackendConfig, HoldConfig, Policy, Protocol, RequestAttributes, RetrySentRule, UpstreamConfig,
};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::backend_tls::TlsKeys;
use super::kubernetes::Kubernetes;
use super::mcmp::Mcmp;
use super::members::{self, Members};
use super::sticky::{self, Sticky};
use super::{Backend, Surroundings, attributes, backend, named, probe};
use crate::fill;
use crate::key::{ALL, Key, Part, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::{Table, list_header, tables};
use crate::value::text::{parse_hash_by, parse_statuses};
use crate::value::{Choices, Counts, Durations, OneOrMore, Optional, OrOff, Percents, Syntax};

/// An upstream; its place is that of its header. It exists even if its backends have faults, so that routes to it get
/// no further faults.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) name: String,
    pub(crate) place: Range<usize>,
    /// The settings of the upstream's own keys, without backends, members and sessions.
    pub(crate) config: UpstreamConfig,
    pub(crate) sticky: Sticky,
    pub(crate) attributes: RequestAttributes,
    pub(crate) backends: Vec<Backend>,
    pub(crate) members: Option<Members>,
    /// Whether there is a table `members`, even one with faults.
    pub(crate) finds_members: bool,
}

/// The values of the keys of `[upstream.NAME]`, before they are checked against each other.
struct RawUpstream {
    config: UpstreamConfig,
    hold: Option<Duration>,
    unwell_max: Option<u8>,
    attributes: RequestAttributes,
    /// The keys that hold for all backends.
    shared: backend::RawBackend,
}

impl RawUpstream {
    fn new(name: &str) -> Self {
        let config = UpstreamConfig::new(name, Vec::new());
        Self {
            hold: None,
            unwell_max: Some(config.unwell_max),
            config,
            attributes: RequestAttributes::default(),
            shared: backend::RawBackend::default(),
        }
    }
}

/// What tables of the file say about sources of members.
#[derive(Clone, Copy)]
pub(crate) struct Sources<'f> {
    pub(crate) mcmp: Option<&'f Mcmp>,
    pub(crate) kubernetes: &'f Kubernetes,
}

/// Reads all tables `[upstream.NAME]`.
pub(crate) fn read(
    value: &Spanned<DeValue<'_>>,
    surroundings: &Surroundings<'_>,
    sources: Sources<'_>,
    report: &mut Report,
) -> Vec<Upstream> {
    let tables = named(&[&SECTION, &backend::SECTION], "an upstream", value, report);
    tables
        .into_iter()
        .map(|(name, place, entries)| read_one(name, place, entries, surroundings, sources, report))
        .collect()
}

/// Reads one `[upstream.NAME]` with its backends, members, sessions and attributes.
fn read_one(
    name: &str,
    place: Range<usize>,
    entries: &DeTable<'_>,
    surroundings: &Surroundings<'_>,
    sources: Sources<'_>,
    report: &mut Report,
) -> Upstream {
    let mut table = Table::new(&SECTION, place.clone(), entries).except(&[
        "backend",
        "probe",
        "sticky",
        "members",
        attributes::NAME,
    ]);
    let mut written = RawUpstream::new(name);
    table.read(KEYS, &mut written);
    let RawUpstream {
        mut config,
        hold,
        unwell_max,
        mut attributes,
        mut shared,
    } = written;
    // `off`: all of the weight may be left out.
    config.unwell_max = unwell_max.unwrap_or(100);
    hashing(&mut table, config.policy);
    retry_status(&mut table, &shared.config);
    let keys = backend::KEYS.iter();
    let shared_keys = keys.filter(|key| backend::is_shared(key.group));
    table.read(shared_keys, &mut shared);
    let mut shared = backend::settle(shared, &TlsKeys::default(), &mut table, surroundings);
    config.hold = hold.map(|wait| HoldConfig {
        wait,
        queue_max: shared.config.queue_max,
    });
    if let Some(value) = entries.get("probe") {
        shared.config.probe = probe::read(value, report);
    }
    let sticky = match entries.get("sticky") {
        Some(value) => sticky::read(value, surroundings, report),
        None => Sticky::default(),
    };
    attributes.named = attributes::read(entries.get(attributes::NAME), &mut table, report);
    let members_entry = entries.get("members");
    let finds_members = members_entry.is_some();
    let members = members_entry.and_then(|value| {
        let group = members::ForUpstream {
            shared: &shared,
            sticky: &sticky,
            sources,
        };
        members::read(value, &group, surroundings, report)
    });
    if entries.get("backend").is_none() && !finds_members {
        let message = format!("upstream `{name}` has no backend");
        let hint = format!("add [[upstream.{name}.backend]] with a `url`");
        table.push(Finding::fault(message, place.clone()).hint(hint));
    }
    let backends = read_backends(name, entries, &shared, surroundings, report);
    holding(&mut table, config.hold, &backends, &shared.config);
    keys_without_use(&mut table, &backends, members.as_ref(), report);
    table.finish(report);
    Upstream {
        name: name.to_owned(),
        place,
        config,
        sticky,
        attributes,
        backends,
        members,
        finds_members,
    }
}

/// Reads the backends of an upstream; those without a valid `url` are reported and left out.
fn read_backends(
    upstream: &str,
    entries: &DeTable<'_>,
    shared: &backend::BackendDefaults,
    surroundings: &Surroundings<'_>,
    report: &mut Report,
) -> Vec<Backend> {
    let Some(value) = entries.get("backend") else {
        return Vec::new();
    };
    let lists = tables(&list_header("upstream", upstream, "backend"), value, report);
    let read = |(place, entries)| backend::read(place, entries, surroundings, shared, report);
    lists.into_iter().filter_map(read).collect()
}

/// Reports statuses of `retry_status` that are no errors.
fn retry_status(table: &mut Table<'_>, shared: &BackendConfig) {
    let is_failure = |range: &RangeInclusive<u16>| *range.start() >= 400;
    if !shared.retry_status.iter().all(is_failure) {
        let message = "`retry_status` has a status below 400, which is no failure";
        let place = table.place_of("retry_status");
        table.push(Finding::fault(message, place).hint("write retry_status = [\"503\"]"));
    }
}

/// Warns of a `hold` that is longer than an exchange may take. Members have the settings `shared`.
fn holding(
    table: &mut Table<'_>,
    hold: Option<HoldConfig>,
    backends: &[Backend],
    shared: &BackendConfig,
) {
    let timeout = |backend: &BackendConfig| backend.exchange_timeout.unwrap_or(Duration::MAX);
    let timeouts = backends.iter().map(|backend| timeout(&backend.value));
    let longest = timeouts.max().unwrap_or_else(|| timeout(shared));
    if hold.is_some_and(|hold| hold.wait > longest) {
        backend::never_reached(table, "hold", "exchange_timeout");
    }
}

/// Warns of keys that have no use for any backend or member.
fn keys_without_use(
    table: &mut Table<'_>,
    backends: &[Backend],
    members: Option<&Members>,
    report: &Report,
) {
    if backends.is_empty() && members.is_none() {
        return;
    }
    let speaks_ajp = |backend: &Backend| backend.value.protocol == Protocol::Ajp;
    let members_may_speak_ajp = members.is_some_and(|members| members.may_speak(Protocol::Ajp));
    if !backends.iter().any(speaks_ajp) && !members_may_speak_ajp {
        let mut keys = table.written(KEYS, |group| group == backend::AJP);
        keys.extend(table.written(backend::KEYS, |group| group == backend::AJP));
        if table.has(attributes::NAME) {
            keys.push((attributes::NAME, table.place_of(attributes::NAME)));
        }
        for (name, place) in keys {
            let message = format!("`{name}` is for AJP, and no backend of this upstream speaks it");
            let hint = "remove it, or write ajp:// in the `url` of a backend";
            table.push(Finding::warning(message, place).hint(hint));
        }
    }
    // A backend whose certificates have faults has no TLS settings, either.
    let has_tls = |backend: &Backend| backend.value.tls.is_some();
    let members_may_have_tls = members.is_some_and(Members::may_have_tls);
    if report.faults() == 0 && !backends.iter().any(has_tls) && !members_may_have_tls {
        for (name, place) in table.written(backend::KEYS, |group| group == backend::TLS) {
            let message = format!("`{name}` is for TLS, and no backend of this upstream has it");
            let hint = "remove it, or write https:// in the `url` of a backend";
            table.push(Finding::warning(message, place).hint(hint));
        }
    }
}

/// Reports the policy `hash` without `hash_by`, and the reverse.
fn hashing(table: &mut Table<'_>, policy: Policy) {
    let hashes = policy == Policy::Hash;
    if hashes && !table.has("hash_by") {
        let message =
            "the policy `hash` needs `hash_by`, which says what of a request chooses its backend";
        let place = table.place_of("policy");
        table.push(Finding::fault(message, place).hint("write hash_by = \"address\""));
    }
    // A policy with a fault may have been meant to be `hash`.
    let is_known = !table.has("policy") || table.is_good_at("policy");
    if !hashes && is_known && table.is_good_at("hash_by") {
        let message = "`hash_by` has no effect without policy = \"hash\"";
        let hint = "write policy = \"hash\", or remove it";
        table.push(Finding::fault(message, table.place_of("hash_by")).hint(hint));
    }
}

pub(crate) static SECTION: Section = Section {
    header: "[upstream.NAME]",
    intro: "A named group of backends that serve the same applications. Most keys of a backend \
            (see the section of backends) may stand here, too. They hold for every backend of the \
            group that does not set the key itself. Exceptions are `url`, `name`, `weight` and the \
            keys that place a backend among the others.",
    keys: &[
        Part::all(&KEYS),
        Part::of(&backend::KEYS, backend::is_shared),
    ],
    later: &[
        (
            "hash_load_max",
            "remove it; `weight` limits a backend's keys",
        ),
        ("health", "write [upstream.NAME.probe] with a `kind`"),
    ],
};

static KEYS: &[Key<RawUpstream>] = &[
    Key {
        name: "policy",
        group: ALL,
        value: fill!(
            Choices(&[
                ("round-robin", Policy::RoundRobin),
                ("least-in-flight", Policy::LeastInFlight),
                ("traffic", Policy::Traffic),
                ("hash", Policy::Hash),
            ]),
            RawUpstream.config.policy
        ),
        preset: Preset::Value("\"round-robin\""),
        sample: "\"least-in-flight\"",
        effect: "How the front chooses a backend for a request without a session. `round-robin`: \
                 in turn by weight; requests of sessions count. `least-in-flight`: the one with \
                 the fewest exchanges in flight per weight, and of equal ones in turn by weight: with \
                 weights 2:1, of 60 sessions that begin one after the other 40 go to the first; among \
                 more than 32, the better of two random ones. `traffic`: in turn by weights that are corrected each second, by a \
                 factor from 0.5 to 2, towards equal bytes per weight over the last minutes. \
                 `hash`: by `hash_by`, the same value to the same backend, on every front with \
                 these backends; when one is out only its own values move.",
        extremes: "In turn suits equal backends and equal requests. The fewest in flight suits \
                   requests of very different cost; a backend that fails fast attracts load. By hash, \
                   a single value with much load stays with one backend.",
        elsewhere: "nginx `least_conn`, `ip_hash`, `hash ... consistent`; HAProxy `balance`; httpd \
                    `lbmethod`; mod_jk `method` (`R`, `B`, `T`)",
    },
    Key {
        name: "hash_by",
        group: ALL,
        value: fill!(
            Syntax {
                what: "\"address\", \"path\", \"cookie:NAME\", \"header:NAME\" or \"query:NAME\"",
                parse: parse_hash_by,
            },
            RawUpstream.config.hash_by
        ),
        preset: Preset::Unset("required with `policy = \"hash\"`, a fault with any other policy"),
        sample: "\"header:X-Tenant\"",
        effect: "Which part of a request decides on its backend: the client's address (that of \
                 `trusted_proxies`' client), the path without parameters and query, or the first \
                 cookie, header field or parameter of the query of that name. A request without it \
                 goes to the next backend in turn.",
        extremes: "By address, all clients behind one NAT share a backend. By path, the busiest page \
                   loads one backend.",
        elsewhere: "nginx `ip_hash`, `hash`; HAProxy `balance source`, `uri`, `hdr()`, `url_param`",
    },
    Key {
        name: "hold",
        group: ALL,
        value: fill!(
            Optional(Durations(
                Duration::from_millis(1)..=Duration::from_secs(600)
            )),
            RawUpstream.hold
        ),
        preset: Preset::Unset("a request is answered 503 at once"),
        sample: "\"10s\"",
        effect: "How long a request waits while no backend takes new sessions: there is none yet, or all are out or \
                 drain. It is served by the first that comes, also after its connection was refused. At most \
                 `queue_max` of the upstream wait. After it: 503 (`hold-timeout`).",
        extremes: "Shorter than a backend takes to be started anew, its clients see errors. Long, clients wait for an \
                   upstream that is gone; those that leave are noticed. If operators stopped all backends, nobody waits; \
                   when the front drains, nobody waits any longer.",
        elsewhere: "HAProxy: `timeout queue` for a backend without servers",
    },
    Key {
        name: "retries",
        group: ALL,
        value: fill!(Counts(0..=20), RawUpstream.config.retries),
        preset: Preset::Value("2"),
        sample: "1",
        effect: "Further attempts after a failed one, on another backend where there is one. A request \
                 that did not reach a backend is sent again whatever its method. One that did may \
                 have been processed: it is sent again, and may run twice, only if `retry_sent` says so, \
                 by default if its method is idempotent (GET, HEAD, OPTIONS, TRACE, PUT, DELETE). A \
                 backend that refuses the connection at once does not count: unless the number is 0, the \
                 front may try each of the others.",
        extremes: "With 0, each backend that goes away causes an error for a client. High values \
                   multiply the load when all backends are failing.",
        elsewhere: "nginx `proxy_next_upstream_tries` less one; mod_jk `lb_retries`, `retries`",
    },
    Key {
        name: "retry_sent",
        group: ALL,
        value: fill!(
            Choices(&[
                ("idempotent", RetrySentRule::Idempotent),
                ("safe", RetrySentRule::Safe),
                ("none", RetrySentRule::Nothing),
            ]),
            RawUpstream.config.retry_sent
        ),
        preset: Preset::Value("\"idempotent\""),
        sample: "\"none\"",
        effect: "Which requests are sent again that a backend may have received, as when it closed the \
                 connection without a response: those whose method is idempotent (RFC 9110, section \
                 9.2.2), or `safe` (GET, HEAD, OPTIONS, TRACE), or `none`. The same holds for `retry_status`: with `none` no other \
                 backend is asked. Requests that certainly \
                 did not reach a backend are sent again in any case.",
        extremes: "`idempotent`: a PUT or DELETE may run twice, which applications that count or \
                   notify may not bear. `none`: a GET on a kept connection that the backend closes at that moment is \
                   answered 502.",
        elsewhere: "mod_jk `recovery_options`: 3 is `none`, 27 is `safe`; nginx `proxy_next_upstream \
                    non_idempotent` goes the other way",
    },
    Key {
        name: "retry_status",
        group: ALL,
        value: fill!(
            OneOrMore(Syntax {
                what: "a status or a range such as \"502-504\"",
                parse: parse_statuses,
            }),
            RawUpstream.shared.config.retry_status
        ),
        preset: Preset::Value("[]"),
        sample: "[\"503\"]",
        effect: "If a backend answers with one of these statuses, the front tries another backend \
                 and probes this one. It does so only if `retry_sent` allows the method, the request's \
                 body is at hand, and `retries` and the budget allow it. Otherwise the client gets \
                 the answer.",
        extremes: "With 404 or 500, each request that all backends answer so is sent to several of \
                   them.",
        elsewhere: "mod_jk `fail_on_status`; nginx `proxy_next_upstream`; httpd `failonstatus`",
    },
    Key {
        name: "unwell_max",
        group: ALL,
        value: fill!(OrOff(Percents), RawUpstream.unwell_max),
        preset: Preset::Value("\"50%\""),
        sample: "\"off\"",
        effect: "How much of the upstream's weight may be left out when a backend is left out because \
                 it does not answer CPING or its probe fails. Beyond that the upstream is in panic: all \
                 such backends serve, and others are preferred to them. A backend that cannot be \
                 connected to is left out in any case.",
        extremes: "`\"0%\"` leaves nobody out for silence. Off, a network that is slow for all can \
                   leave all backends out, and requests are answered 503.",
        elsewhere: "Envoy `healthy_panic_threshold`, which then spreads requests over all evenly. Here \
                    those that are well come first: a silent backend would hold each request for \
                    `first_byte_timeout`",
    },
    Key {
        name: "remote_user",
        group: backend::AJP,
        value: fill!(
            Optional(Syntax {
                what: "\"auth\", \"tls:subject_cn\", \"tls:san_email\" or \"header:NAME\"",
                parse: attributes::parse_user,
            }),
            RawUpstream.attributes.remote_user
        ),
        preset: Preset::Unset("the application authenticates"),
        sample: "\"header:X-Remote-User\"",
        effect: "Who tells the user. AJP backends get it as the user of the request (`getRemoteUser`): Tomcat with \
                 `tomcatAuthentication=\"false\"` in its AJP connector. `\"auth\"` is the user of the route's sign-on \
                 ([auth.NAME]). `\"tls:subject_cn\"` is the common name of the certificate that the client has shown, \
                 `\"tls:san_email\"` the first address of mail in it; the `client_certificate` of a route says whether one \
                 is needed. `\"header:NAME\"` is a field by which a proxy in `trusted_proxies` tells the user that it \
                 authenticated; the last line counts, and an empty one is none.",
        extremes: "A route without `auth` has no user. The field is removed from every request of this upstream, and not believed from others. \
                   Everybody who reaches Tomcat's AJP port itself can still be any user: give it a `secret`.",
        elsewhere: "mod_jk and mod_proxy_ajp: `REMOTE_USER` of httpd; mod_ssl `SSLUserName`",
    },
    Key {
        name: "auth_type",
        group: backend::AJP,
        value: fill!(
            Optional(attributes::SOURCE),
            RawUpstream.attributes.auth_type
        ),
        preset: Preset::Unset("not told"),
        sample: "\"text:SSO\"",
        effect: "How the user of `remote_user` was authenticated (`getAuthType`). The value has \
                 the same sources as attributes.",
        extremes: "The front sends it together with a user only.",
        elsewhere: "mod_jk and mod_proxy_ajp: `AUTH_TYPE` of httpd",
    },
];
