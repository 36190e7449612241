//! `/healthz`, `/readyz` and `/metrics`: for monitoring, without a token.

use catamaran_gauge::process;
use catamaran_message::RequestHead;
use catamaran_message::name::ACCEPT;
use http::StatusCode;

use super::Desk;
use super::exposition::Format;
use super::metrics::{self, Observation};
use super::reply::Reply;
use crate::control::discovered::MembersView;
use crate::limits::Limit;
use crate::line_queue::LineQueue;
use crate::site::Upstream;
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

/// The answer of `/readyz`. It names each upstream that accepts no new clients, even if `ready` does not list it, and
/// each limit at which clients are turned away. A limit that is reached leaves the front ready: a balancer that sends
/// all clients elsewhere would only move the overload.
fn readiness(observed: &Observation) -> Reply {
    let mut text = match observed {
        Observation { leaving: true, .. } => "draining\n".to_owned(),
        Observation { ready: true, .. } => "ready\n".to_owned(),
        _ => "not ready\n".to_owned(),
    };
    for (upstream, _) in observed.upstreams.iter().filter(|(_, is_ready)| !is_ready) {
        text.push_str(&format!("upstream {upstream} accepts no new clients\n"));
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
        let MembersView {
            upstream, source, ..
        } = view;
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

/// Collects all values that metrics and `/readyz` show.
pub(super) fn observe(desk: &Desk) -> Observation {
    let shared = &*desk.shared;
    let config = desk.config.load();
    let site = shared.site.load();
    let mut backends = site.status();
    let leaving = shared.is_leaving();
    let all = site.upstreams.iter();
    let upstreams: Vec<(String, bool)> = all
        .map(|it| {
            let awaits = shared.control.discovered.awaits(&it.name);
            (it.name.clone(), accepts_new(it) && !awaits)
        })
        .collect();
    let lacking = site.backends().filter_map(|backend| {
        let resolution = backend.resolution()?;
        let lacks = resolution.age.is_none() && resolution.failed.is_some();
        lacks.then(|| (backend.upstream().to_owned(), resolution.host))
    });
    let unresolved = lacking.collect();
    let counts = |name: &String| config.ready.as_ref().is_none_or(|it| it.contains(name));
    let usable = upstreams
        .iter()
        .all(|(name, is_ready)| *is_ready || !counts(name));
    backends.extend(shared.retired.status(&backends));
    let queues = site.upstreams.iter().filter_map(|upstream| {
        let (_, queue) = upstream.hold()?;
        Some((upstream.name.clone(), queue.figures()))
    });
    let holds = queues.collect();
    Observation {
        counters: shared.counters.snapshot(shared.admission.open()),
        generation: site.generation,
        connections_max: site.server.clients_max(),
        limits: shared.limits.reached(shared.began.elapsed()),
        backends,
        caches: site.caches.to_vec(),
        request_limits: site.limits.clone(),
        usage: process::own_usage().ok(),
        certificates: tls::certificates(&shared.profiles.load()),
        refusals: tls::refusals(&shared.profiles.load()),
        log_lines_dropped: shared.access_log.dropped(),
        log_lines_lost: shared.access_log.lost(),
        own_log_lines_dropped: shared.own_log.get().map_or(0, LineQueue::dropped),
        own_log_lines_lost: shared.own_log.get().map_or(0, LineQueue::lost),
        spans: shared.traces.counts(),
        draining: shared.drain.has_begun(),
        leaving,
        ready: usable && !leaving,
        upstreams,
        holds,
        unresolved,
        members: shared.control.discovered.views(),
        since: shared.since,
        state_file_fails: shared.control.state_file_fails(),
        encoder_memory: shared.encoder_memory.held(),
    }
}
