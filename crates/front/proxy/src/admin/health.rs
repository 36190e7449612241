//! `/healthz`, `/readyz` and `/metrics`: for monitoring, without a token.

use catamaran_gauge::process;
use catamaran_message::RequestHead;
use catamaran_message::name::ACCEPT;
use http::StatusCode;

use super::Desk;
use super::exposition::Format;
use super::metrics::{self, Observation};
use super::reply::Reply;
use crate::limits::Limit;
use crate::line_queue::LineQueue;
use crate::site::{Site, Upstream};
use crate::tls;
use crate::worker::FrontState;

/// Answers a request for `/healthz`, `/readyz` or `/metrics`; `None` for another path.
pub(super) fn answer(desk: &Desk, head: &RequestHead) -> Option<Reply> {
    let shared = &*desk.shared;
    let query = head.target.query.as_deref();
    Some(match &*head.target.path {
        b"/healthz" => Reply::text(StatusCode::OK, "alive\n"),
        b"/readyz" => match super::request::parameter(query, "upstream") {
            Some(upstream) => readiness_of(shared, &upstream),
            None => readiness(&observe(desk)),
        },
        b"/metrics" => {
            let values = head.headers.get_all(ACCEPT);
            let accept: Vec<&str> = values.flat_map(str::from_utf8).collect();
            let format = Format::accepted(&accept.join(","));
            let text = metrics::render(&observe(desk), format);
            Reply::new(StatusCode::OK, format.content_type(), text)
        }
        _ => return None,
    })
}

/// The answer of `/readyz`. It names each upstream that accepts no new clients, even if `ready` does not list it, each
/// TLS profile that has no certificate yet, and each limit at which clients are turned away. A limit that is reached leaves the front ready: a balancer that sends
/// all clients elsewhere would only move the overload.
fn readiness(observed: &Observation) -> Reply {
    let mut text = match (observed.leaving, observed.ready) {
        (true, _) => "draining\n".to_owned(),
        (false, true) => "ready\n".to_owned(),
        (false, false) => "not ready\n".to_owned(),
    };
    for (upstream, _) in observed.upstreams.iter().filter(|(_, is_ready)| !is_ready) {
        text.push_str(&format!("upstream {upstream} accepts no new clients\n"));
    }
    for profile in &observed.uncertified {
        text.push_str(&format!("TLS profile {profile} has no certificate yet\n"));
    }
    for (upstream, host) in &observed.unresolved {
        text.push_str(&format!(
            "upstream {upstream}: the name {host} does not resolve\n"
        ));
    }
    let reached = observed.limits.iter().map(|(limit, _)| *limit);
    // The limit on administrators' connections says nothing about clients.
    let of_clients = reached.filter(|limit| *limit != Limit::Administrators);
    let limits: Vec<&str> = of_clients.map(Limit::token).collect();
    if !limits.is_empty() {
        text.push_str(&format!("clients are turned away: {}\n", limits.join(", ")));
    }
    for view in observed.members.iter().filter(|view| view.age.is_none()) {
        let (upstream, source) = (&view.upstream, view.source);
        text.push_str(&format!(
            "upstream {upstream} has no members from {source} yet\n"
        ));
    }
    let status = if observed.ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    Reply::text(status, &text)
}

/// Whether the upstream accepts clients that have no session yet.
pub(super) fn accepts_new(upstream: &Upstream) -> bool {
    upstream.members.iter().any(|member| member.share() > 0)
}

/// Answers `/readyz?upstream=NAME`: 200 if that upstream accepts new clients, 404 if there is none, else 503.
fn readiness_of(shared: &FrontState, name: &str) -> Reply {
    let site = shared.site.load();
    let unready = StatusCode::SERVICE_UNAVAILABLE;
    match site.upstream(name) {
        None => Reply::text(StatusCode::NOT_FOUND, "there is no such upstream\n"),
        Some(_) if shared.is_leaving() => Reply::text(unready, "draining\n"),
        Some(_) if shared.control.discovered.awaits(name) => {
            Reply::text(unready, "no members were found yet\n")
        }
        Some(upstream) if accepts_new(upstream) => Reply::text(StatusCode::OK, "ready\n"),
        Some(_) => Reply::text(unready, "no backend takes new sessions\n"),
    }
}

/// The upstreams, each with a host name of a backend that failed to resolve and never did before.
fn unresolved_names(site: &Site) -> Vec<(String, String)> {
    let mut names = Vec::new();
    for backend in site.backends() {
        if let Some(resolution) = backend.resolution()
            && resolution.age.is_none()
            && resolution.failed.is_some()
        {
            names.push((backend.upstream().to_owned(), resolution.host));
        }
    }
    names
}

/// Collects all values that metrics and `/readyz` show.
pub(super) fn observe(desk: &Desk) -> Observation {
    let shared = &*desk.shared;
    let config = desk.config.load();
    let site = shared.site.load();
    let leaving = shared.is_leaving();
    let mut backends = site.status();
    // A retired backend gets its address added if one of those in force has its name.
    backends.extend(shared.retired.status(&backends));
    let mut upstreams = Vec::with_capacity(site.upstreams.len());
    let mut holds = Vec::new();
    for upstream in &site.upstreams {
        let awaits_members = shared.control.discovered.awaits(&upstream.name);
        let is_ready = accepts_new(upstream) && !awaits_members;
        upstreams.push((upstream.name.clone(), is_ready));
        if let Some((_, queue)) = upstream.hold() {
            holds.push((upstream.name.clone(), queue.figures()));
        }
    }
    // Without `ready` in [admin], all upstreams must be ready.
    let is_required = |name: &String| config.ready.as_ref().is_none_or(|it| it.contains(name));
    let usable = upstreams
        .iter()
        .all(|(name, is_ready)| *is_ready || !is_required(name));
    let profiles = shared.profiles.load();
    let uncertified = tls::uncertified(&profiles);
    Observation {
        counters: shared.counters.snapshot(shared.admission.open()),
        generation: site.generation,
        connections_max: site.server.clients_max(),
        limits: shared.limits.reached(shared.began.elapsed()),
        backends,
        caches: site.caches.to_vec(),
        request_limits: site.limits.clone(),
        auths: site.auths.clone(),
        hashes_waiting: shared.passwords.waiting(),
        usage: process::own_usage().ok(),
        certificates: tls::certificates(&profiles),
        refusals: tls::refusals(&profiles),
        issuance: shared.issuance.all(),
        log_lines_dropped: shared.access_log.dropped(),
        log_lines_lost: shared.access_log.lost(),
        own_log_lines_dropped: shared.own_log.get().map_or(0, LineQueue::dropped),
        own_log_lines_lost: shared.own_log.get().map_or(0, LineQueue::lost),
        spans: shared.traces.counts(),
        draining: shared.drain.has_begun(),
        leaving,
        ready: usable && !leaving && uncertified.is_empty(),
        uncertified,
        upstreams,
        holds,
        unresolved: unresolved_names(&site),
        members: shared.control.discovered.views(),
        since: shared.since,
        state_file_fails: shared.control.state_file_fails(),
        encoder_memory: shared.encoder_memory.held(),
    }
}
