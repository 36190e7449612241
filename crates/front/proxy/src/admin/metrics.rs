//! The metrics at `/metrics`: every family, and where its samples come from.
//!
//! Counters are plain structs all over the front and get their public names only here. The page
//! `docs/metrics.md` is generated from the same families, so the two always agree.

mod backend;
mod families;
mod members;

use std::fmt::Write as _;
use std::sync::Arc;

use catamaran_coding::Coding;
use catamaran_gauge::process::Usage;
use catamaran_tls::CertificateFacts;

use crate::admin::exposition::{Exposition, Family, Format};
use crate::cache::Cache;
use crate::cache::counts::CacheResult;
use crate::cache::store::FETCH_AGES;
use crate::control::discovered::MembersView;
use crate::counters::{CountersSnapshot, FileResult};
use crate::date::unix_seconds;
use crate::limits::{Limit, Spell};
use crate::site::BackendStatus;
use crate::site::auth::{AuthFigures, AuthResult, SiteAuths};
use crate::site::hold::HoldFigures;
use crate::site::limits::{LimitResult, SiteLimits};
use crate::tls::acme::{IssuedName, NameFigures};
use crate::traces::SpanResult;

/// The values of all metrics at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observation {
    pub(crate) counters: CountersSnapshot,
    /// The number of the configuration in force.
    pub(crate) generation: u64,
    /// The most clients that may be connected.
    pub(crate) connections_max: usize,
    /// The limits at which clients are turned away.
    pub(crate) limits: Vec<(Limit, Spell)>,
    /// The resources that this process uses; `None` if the system does not tell.
    pub(crate) usage: Option<Usage>,
    /// The certificates, each with the name of its profile.
    pub(crate) certificates: Vec<(String, CertificateFacts)>,
    /// The profiles, and whether their changed files are refused.
    pub(crate) refusals: Vec<(String, bool)>,
    /// The profiles that have no certificate yet.
    pub(crate) uncertified: Vec<String>,
    /// The names that get certificates by ACME.
    pub(crate) issuance: Vec<(IssuedName, NameFigures)>,
    pub(crate) backends: Vec<BackendStatus>,
    pub(crate) caches: Vec<Cache>,
    /// The limits of requests; `None`: there are none.
    pub(crate) request_limits: Option<Arc<SiteLimits>>,
    /// The sign-ons; `None`: there are none.
    pub(crate) auths: Option<Arc<SiteAuths>>,
    /// The passwords that wait for a thread.
    pub(crate) hashes_waiting: usize,
    pub(crate) log_lines_dropped: u64,
    pub(crate) log_lines_lost: u64,
    pub(crate) own_log_lines_dropped: u64,
    pub(crate) own_log_lines_lost: u64,
    /// The spans by what became of them, in the order of [`SpanResult::ALL`].
    pub(crate) spans: [u64; SpanResult::ALL.len()],
    pub(crate) draining: bool,
    /// Whether the front drains, or is about to.
    pub(crate) leaving: bool,
    pub(crate) ready: bool,
    /// The upstreams, and whether each accepts new clients.
    pub(crate) upstreams: Vec<(String, bool)>,
    /// The requests that wait for a first member, for upstreams that have them wait.
    pub(crate) holds: Vec<(String, HoldFigures)>,
    /// Upstreams, each with a host name of a backend that has never been resolved.
    pub(crate) unresolved: Vec<(String, String)>,
    /// The upstreams whose members are discovered, and the state of their sources.
    pub(crate) members: Vec<MembersView>,
    /// The time at which the first process of this front began, in seconds of the Unix epoch.
    pub(crate) since: u64,
    pub(crate) state_file_fails: bool,
    /// The bytes of memory that encoders of responses hold.
    pub(crate) encoder_memory: u64,
}

/// Writes the page of `/metrics`.
pub(crate) fn render(observed: &Observation, format: Format) -> String {
    let mut page = Exposition::new(format);
    let counters = &observed.counters;
    page.family(&families::BUILD_INFO)
        .sample(&[env!("CARGO_PKG_VERSION")], 1);
    render_ready(&mut page, observed);
    page.family(&families::DRAINING)
        .only(u8::from(observed.draining));
    page.family(&families::STATE_FILE_FAILS)
        .only(u8::from(observed.state_file_fails));
    page.family(&families::SERVED_SINCE).only(observed.since);
    render_reloads(&mut page, observed);
    render_connections(&mut page, observed);
    render_tls(&mut page, observed);
    page.family(&families::REQUESTS).only(counters.requests);
    let mut responses = page.family(&families::RESPONSES);
    for (digit, class) in CLASSES {
        responses.sample(&[class], counters.responses[digit]);
    }
    page.family(&families::RETRIES).only(counters.retries);
    page.family(&families::TUNNELS_OPEN)
        .only(counters.tunnels_open);
    let mut tunnelled = page.family(&families::TUNNEL_BYTES);
    for (direction, bytes) in ["from_client", "to_client"]
        .into_iter()
        .zip(counters.tunnel_bytes)
    {
        tunnelled.sample(&[direction], bytes);
    }
    render_contents(&mut page, observed);
    let mut sticky = page.family(&families::STICKY);
    for (outcome, count) in &counters.sticky {
        sticky.sample(&[outcome.token()], count);
    }
    let mut reasons = page.family(&families::REASONS);
    for (reason, count) in &counters.reasons {
        let culprit = reason.culprit().to_string();
        reasons.sample(&[&culprit, reason.token()], count);
    }
    render_logs(&mut page, observed);
    render_panics(&mut page, &observed.backends);
    render_holds(&mut page, &observed.holds);
    members::render(&mut page, &observed.members);
    backend::render(&mut page, &observed.backends);
    if let Some(usage) = &observed.usage {
        render_process(&mut page, usage);
    }
    page.into_text()
}

fn render_reloads(page: &mut Exposition, observed: &Observation) {
    let counters = &observed.counters;
    let mut reloads = page.family(&families::RELOADS);
    reloads.sample(&["applied"], counters.reloads_applied);
    reloads.sample(&["refused"], counters.reloads_refused);
    page.family(&families::CONFIG_GENERATION)
        .only(observed.generation);
    let last = &counters.last_reload;
    page.family(&families::LAST_RELOAD_SUCCESSFUL)
        .only(u8::from(last.applied));
    page.family(&families::LAST_RELOAD)
        .only(unix_seconds(last.at));
    page.family(&families::LAST_RELOAD_SUCCESS)
        .only(unix_seconds(last.applied_at));
}

fn render_connections(page: &mut Exposition, observed: &Observation) {
    let counters = &observed.counters;
    page.family(&families::CONNECTIONS_ACCEPTED)
        .only(counters.accepted);
    page.family(&families::CONNECTIONS_OPEN).only(counters.open);
    page.family(&families::CONNECTIONS_MAX)
        .only(observed.connections_max);
    page.family(&families::H2_CONNECTIONS_OPEN)
        .only(counters.h2_connections);
    page.family(&families::H2_STREAMS_OPEN)
        .only(counters.h2_streams);
}

fn render_panics(page: &mut Exposition, backends: &[BackendStatus]) {
    let mut panics = page.family(&families::UPSTREAM_PANIC);
    let present: Vec<&BackendStatus> = backends.iter().filter(|it| !it.retired).collect();
    // The backends of an upstream follow each other.
    for of_upstream in present.chunk_by(|first, next| first.upstream == next.upstream) {
        let is_panic = of_upstream.iter().any(|status| status.counts.panic);
        panics.sample(&[&of_upstream[0].upstream], u8::from(is_panic));
    }
}

fn render_holds(page: &mut Exposition, holds: &[(String, HoldFigures)]) {
    let mut held = page.family(&families::UPSTREAM_HELD);
    for (upstream, figures) in holds {
        held.sample(&[upstream], figures.waiting);
    }
    let mut waits = page.family(&families::UPSTREAM_HOLD);
    for (upstream, figures) in holds {
        waits.histogram(&[upstream], &figures.waits);
    }
}

fn render_ready(page: &mut Exposition, observed: &Observation) {
    page.family(&families::READY).only(u8::from(observed.ready));
    let mut ready = page.family(&families::UPSTREAM_READY);
    for (upstream, is_ready) in &observed.upstreams {
        ready.sample(&[upstream], u8::from(*is_ready));
    }
}

/// Writes the metrics of files, compression and caches.
fn render_contents(page: &mut Exposition, observed: &Observation) {
    render_files(page, &observed.counters);
    render_compression(page, observed);
    render_caches(page, &observed.caches);
    render_request_limits(page, observed.request_limits.as_deref());
    render_auths(page, observed);
}

fn render_files(page: &mut Exposition, counters: &CountersSnapshot) {
    let mut files = page.family(&families::FILES_REQUESTS);
    for (result, count) in FileResult::ALL.iter().zip(counters.files) {
        files.sample(&[result.name()], count);
    }
    page.family(&families::FILES_OPEN).only(counters.files_open);
    page.family(&families::FILES_BYTES)
        .only(counters.files_bytes);
    page.family(&families::FILES_THREAD_READS)
        .only(counters.file_thread_reads);
}

fn render_compression(page: &mut Exposition, observed: &Observation) {
    let counters = &observed.counters;
    let mut responses = page.family(&families::COMPRESSED_RESPONSES);
    for (coding, count) in Coding::ALL.iter().zip(counters.compressed) {
        responses.sample(&[coding.token()], count);
    }
    let mut bytes = page.family(&families::COMPRESSED_BYTES);
    for (side, count) in ["before", "after"]
        .into_iter()
        .zip(counters.compressed_bytes)
    {
        bytes.sample(&[side], count);
    }
    page.family(&families::COMPRESS_MEMORY)
        .only(observed.encoder_memory);
}

fn render_caches(page: &mut Exposition, caches: &[Cache]) {
    let mut requests = page.family(&families::CACHE_REQUESTS);
    for cache in caches {
        for (result, count) in CacheResult::ALL.iter().zip(cache.store.counts.results()) {
            requests.sample(&[&cache.config.name, result.name()], count);
        }
    }
    let mut bypass = page.family(&families::CACHE_BYPASS);
    for cache in caches {
        for ((_, reason), count) in cache.store.counts.reasons() {
            bypass.sample(&[&cache.config.name, reason], count);
        }
    }
    let mut render_each = |family, value: fn(&Cache) -> u64| {
        let mut samples = page.family(family);
        for cache in caches {
            samples.sample(&[&cache.config.name], value(cache));
        }
    };
    render_each(&families::CACHE_BYTES, |cache| cache.store.size().0);
    render_each(&families::CACHE_OBJECTS, |cache| {
        cache.store.size().1 as u64
    });
    render_each(&families::CACHE_EVICTIONS, |cache| cache.store.evicted());
    render_each(&families::CACHE_WAITERS, |cache| {
        cache.store.waiters() as u64
    });
    render_each(&families::CACHE_PURGES, |cache| cache.store.purge_count());
    let mut fetches = page.family(&families::CACHE_FILLS_OPEN);
    for cache in caches {
        for ((age, _), count) in FETCH_AGES.iter().zip(cache.store.fetches()) {
            fetches.sample(&[&cache.config.name, age], count as u64);
        }
    }
}

fn render_request_limits(page: &mut Exposition, limits: Option<&SiteLimits>) {
    let all = limits.map(SiteLimits::figures).unwrap_or_default();
    let mut requests = page.family(&families::LIMIT_REQUESTS);
    for limit in &all {
        for (result, count) in LimitResult::ALL.iter().zip(limit.requests) {
            requests.sample(&[&limit.config.name, result.name()], count);
        }
    }
    let mut keys = page.family(&families::LIMIT_KEYS);
    for limit in &all {
        keys.sample(&[&limit.config.name], limit.keys);
    }
    let mut flights = page.family(&families::LIMIT_IN_FLIGHT);
    for limit in &all {
        if let Some(count) = limit.in_flight {
            flights.sample(&[&limit.config.name], count);
        }
    }
    page.family(&families::LIMIT_EVICTED)
        .only(limits.map_or(0, |limits| limits.table().evicted()));
}

fn render_auths(page: &mut Exposition, observed: &Observation) {
    let auths = || observed.auths.as_deref().into_iter();
    let all: Vec<AuthFigures> = auths().flat_map(SiteAuths::figures).collect();
    let mut requests = page.family(&families::AUTH_REQUESTS);
    for auth in &all {
        for (result, count) in AuthResult::ALL.iter().zip(auth.requests) {
            requests.sample(&[&auth.name, result.name()], count);
        }
    }
    let mut waits = page.family(&families::AUTH_SECONDS);
    for auth in &all {
        waits.histogram(&[&auth.name], &auth.waits);
    }
    let mut refused = page.family(&families::AUTH_FILES_REFUSED);
    for users in auths().flat_map(SiteAuths::users) {
        refused.sample(&[&users.name], u8::from(users.is_refused()));
    }
    page.family(&families::AUTH_HASHES_WAITING)
        .only(observed.hashes_waiting);
}

fn render_logs(page: &mut Exposition, observed: &Observation) {
    page.family(&families::LOG_LINES_DROPPED)
        .only(observed.log_lines_dropped);
    page.family(&families::LOG_LINES_LOST)
        .only(observed.log_lines_lost);
    page.family(&families::OWN_LOG_LINES_DROPPED)
        .only(observed.own_log_lines_dropped);
    page.family(&families::OWN_LOG_LINES_LOST)
        .only(observed.own_log_lines_lost);
    let mut spans = page.family(&families::TRACE_SPANS);
    for (result, count) in SpanResult::ALL.iter().zip(observed.spans) {
        spans.sample(&[result.name()], count);
    }
}

fn render_tls(page: &mut Exposition, observed: &Observation) {
    let counters = &observed.counters;
    let mut handshakes = page.family(&families::TLS_HANDSHAKES);
    let kinds = [
        ("TLSv1.2", "no"),
        ("TLSv1.3", "no"),
        ("TLSv1.2", "yes"),
        ("TLSv1.3", "yes"),
    ];
    for ((version, resumed), count) in kinds.into_iter().zip(counters.handshakes) {
        handshakes.sample(&[version, resumed], count);
    }
    page.family(&families::TLS_HANDSHAKES_OPEN)
        .only(counters.handshakes_open);
    let mut reloads = page.family(&families::TLS_CERTIFICATE_RELOADS);
    reloads.sample(&["applied"], counters.certificates_renewed);
    reloads.sample(&["refused"], counters.certificates_refused);
    let mut refused = page.family(&families::TLS_CERTIFICATE_REFUSED);
    for (profile, is_refused) in &observed.refusals {
        refused.sample(&[profile], u8::from(*is_refused));
    }
    let mut expiry = page.family(&families::TLS_CERTIFICATE_NOT_AFTER);
    for (profile, certificate) in &observed.certificates {
        let name = certificate.names.first().map_or("", |name| name);
        let labels = [profile.as_str(), name, certificate.key_type];
        expiry.sample(&labels, unix_seconds(certificate.not_after));
    }
    render_issuance(page, &observed.issuance);
}

fn render_issuance(page: &mut Exposition, issuance: &[(IssuedName, NameFigures)]) {
    let mut attempts = page.family(&families::ACME_ATTEMPTS);
    for (IssuedName { profile, name }, figures) in issuance {
        attempts.sample(&[profile, name, "issued"], figures.issued);
        attempts.sample(&[profile, name, "failed"], figures.failed);
    }
    let mut failures = page.family(&families::ACME_FAILURES);
    for (IssuedName { profile, name }, figures) in issuance {
        failures.sample(&[profile, name], figures.failures);
    }
    let mut next = page.family(&families::ACME_NEXT_ATTEMPT);
    for (IssuedName { profile, name }, figures) in issuance {
        next.sample(&[profile, name], figures.next_attempt);
    }
    let mut unstored = page.family(&families::ACME_UNSTORED);
    for (IssuedName { profile, name }, figures) in issuance {
        unstored.sample(&[profile, name], u64::from(figures.is_unstored));
    }
}

/// Writes the process's resources, under the names that client libraries of Prometheus use.
fn render_process(page: &mut Exposition, usage: &Usage) {
    page.family(&families::PROCESS_CPU)
        .only(usage.cpu.as_secs_f64());
    page.family(&families::PROCESS_RESIDENT)
        .only(usage.resident);
    page.family(&families::PROCESS_VIRTUAL)
        .only(usage.address_space);
    page.family(&families::PROCESS_OPEN_FDS)
        .only(usage.open_files);
    let open_files_max = usage.open_files_max.map_or(f64::INFINITY, |max| max as f64);
    // The format has no `inf`.
    let limit = if open_files_max.is_finite() {
        open_files_max.to_string()
    } else {
        "+Inf".to_owned()
    };
    page.family(&families::PROCESS_MAX_FDS).only(limit);
    page.family(&families::PROCESS_START)
        .only(usage.began.as_secs_f64());
    page.family(&families::PROCESS_THREADS).only(usage.threads);
}

/// The page `docs/metrics.md`: every metric with its meaning.
#[must_use]
pub fn metrics_reference() -> String {
    let mut page = String::from(REFERENCE_HEAD);
    for family in families() {
        let (name, help) = (family.name, family.help);
        let (plain, explained): (Vec<_>, Vec<_>) = family
            .labels
            .iter()
            .partition(|(_, meaning)| meaning.is_empty());
        let names: Vec<String> = plain
            .iter()
            .map(|(label, _)| format!("`{label}`"))
            .collect();
        let by = if names.is_empty() {
            String::new()
        } else {
            format!(" by {}", names.join(", "))
        };
        let kind = family.kind.name();
        write!(page, "\n## `{name}`\n\n*{kind}{by}*: {help}\n").expect("a string takes all");
        if !explained.is_empty() {
            page.push('\n');
        }
        for (label, meaning) in explained {
            writeln!(page, "- Label `{label}`: {meaning}.").expect("a string takes all");
        }
    }
    page
}

/// Every family, in the order of `docs/metrics.md`.
fn families() -> impl Iterator<Item = &'static Family> {
    families::OF_FRONT
        .into_iter()
        .chain(members::OF_MEMBERS)
        .chain(backend::families())
        .chain(families::OF_PROCESS)
}

const REFERENCE_HEAD: &str = "\
# Metrics

`GET /metrics` of the admin listener (`[admin]` in the file, or `--admin`) has these metrics, in Prometheus'
text format 0.0.4, or as OpenMetrics 1.0 if the scraper accepts it. Counters begin at 0 with the process.
Those of a backend stay with its upstream, protocol and address, whatever else a reload changes. The labels
`upstream`, `backend` and `cache` are names of the configuration file; `le` of a histogram's `_bucket` is the bucket's
upper bound in seconds.

[monitoring.md](monitoring.md) has a dashboard, alert rules, how to scrape, and `/readyz`.

(Written by `cargo run -p catamaran-proxy --example metrics > docs/metrics.md`.)
";

/// The first digit of a status, and its label; 0 counts exchanges whose client was sent no head.
const CLASSES: [(usize, &str); 6] = [
    (1, "1xx"),
    (2, "2xx"),
    (3, "3xx"),
    (4, "4xx"),
    (5, "5xx"),
    (0, "none"),
];

#[cfg(test)]
mod tests;
