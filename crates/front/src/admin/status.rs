//! What the front is like, as JSON: one consistent site.

use std::sync::Arc;

use catamaran_balance::RetryBudget;
use catamaran_upstream::Backend;
use serde_json::{Value, json};

use super::{Desk, figures, health};
use crate::config::{Activation, BackendConfig, Protocol};
use crate::control::discovered::{Discovered, MembersView};
use crate::control::events::Event;
use crate::control::patch::show_moment;
use crate::control::{now, version};
use crate::site::overrides::{Drain, Override, Overrides};
use crate::site::{Controls, Member, Upstream};

/// `GET /api/v1/status`.
pub(super) fn all(desk: &Desk) -> Value {
    let shared = &*desk.shared;
    let observed = health::observe(desk);
    let overrides = shared.control.lock();
    let site = shared.site.load_full();
    let counters = &observed.counters;
    let reasons = counters.reasons.iter();
    let reasons = reasons.map(|(reason, count)| (reason.to_string(), json!(count)));
    let discovered = &shared.control.discovered;
    let of_upstream = |it: &Arc<Upstream>| upstream(it, &overrides, discovered);
    let retired = shared.retired.in_use();
    let of_retired = |it: &Arc<Backend>| backend(it, &it.settings());
    let (upgrades, failed) = shared.control.last_upgrade();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "process": std::process::id(),
        "upgrade": {"number": upgrades, "failed": failed},
        "generation": site.generation,
        "now": show_moment(now()),
        "uptime_s": shared.began.elapsed().as_secs(),
        "workers": shared.counters.workers(),
        "ready": observed.ready,
        "draining": observed.draining,
        "leaving": observed.leaving,
        "read_only": desk.config.load().read_only,
        "state_file_fails": observed.state_file_fails,
        "connections": {"open": counters.open, "accepted": counters.accepted},
        "requests": counters.requests,
        "responses": {
            "1xx": counters.responses[1], "2xx": counters.responses[2],
            "3xx": counters.responses[3], "4xx": counters.responses[4],
            "5xx": counters.responses[5], "none": counters.responses[0],
        },
        "retries": counters.retries,
        "reloads": {"applied": counters.reloads_applied, "refused": counters.reloads_refused},
        "reasons": reasons.collect::<serde_json::Map<_, _>>(),
        "upstreams": site.upstreams.iter().map(of_upstream).collect::<Vec<_>>(),
        "retired": retired.iter().map(of_retired).collect::<Vec<_>>(),
        "in_flight": figures::in_flight(shared, &site, &retired),
    })
}

/// One upstream with its backends.
pub(super) fn upstream(
    upstream: &Upstream,
    overrides: &Overrides,
    discovered: &Discovered,
) -> Value {
    let members = upstream.members.iter();
    let members = members.map(|it| member(upstream, it, overrides, discovered));
    json!({
        "name": upstream.name,
        "policy": upstream.config().policy.token(),
        "sticky": upstream.sticky.is_some(),
        "sticky_outcomes": figures::sticky_of_all(upstream),
        "ready": health::accepts_new(upstream) && !discovered.awaits(&upstream.name),
        "members": discovered.view(&upstream.name).map(|view| source(&view)),
        "panic": upstream.members.iter().any(|it| it.backend.is_in_panic()),
        "retries": upstream.retries,
        "retry_budget": {"left": upstream.retry_budget.left(), "max": RetryBudget::MAX},
        "backends": members.collect::<Vec<_>>(),
    })
}

/// Where an upstream finds members, and how well that goes.
fn source(view: &MembersView) -> Value {
    let refused = view.refused.iter();
    let refused = refused.map(|(name, why)| json!({"name": name, "reason": why.token()}));
    json!({
        "from": view.source,
        "active": view.active,
        "drain": view.draining,
        "leaving": view.leaving,
        "age_s": view.age.map(|age| age.as_secs()),
        "failed": view.failed,
        "answers": {"good": view.counts.good, "failed": view.counts.failed},
        "refused": refused.collect::<Vec<_>>(),
    })
}

/// One backend.
pub(super) fn member(
    upstream: &Upstream,
    member: &Member,
    overrides: &Overrides,
    discovered: &Discovered,
) -> Value {
    let found = discovered.member(&upstream.name, member.name());
    let settings = &member.settings;
    let said = overrides.get(&upstream.name, member.name());
    let mut value = backend(&member.backend, settings);
    let of_member = json!({
        "jvm_route": settings.jvm_route,
        "domain": settings.domain,
        "fallback": settings.fallback,
        "version": version(upstream, member, overrides),
        "settings": controls(member.controls),
        "file": controls(member.file()),
        "found": found.map(|found| json!({
            "from": found.source,
            "state": found.standing,
            "gone_in_s": found.gone_in.map(|left| left.as_secs()),
        })),
        "override": said.map(said_of),
        "drain": said.and_then(|said| said.drain).map(|drain| progress(&drain, member)),
        "sessions": member.sessions_seen(),
        "unknown_ids": member.unknown_ids(),
    });
    if let (Some(value), Value::Object(of_member)) = (value.as_object_mut(), of_member) {
        value.extend(of_member);
    }
    value
}

/// What there is to tell of a backend, whether the configuration in force has it or not.
fn backend(backend: &Backend, settings: &BackendConfig) -> Value {
    let counts = backend.counts();
    let state = backend.state();
    let snapshot = backend.figures().snapshot();
    json!({
        "name": settings.name,
        "upstream": backend.upstream(),
        "protocol": match settings.protocol {
            Protocol::Ajp => "ajp",
            Protocol::Http if settings.tls.is_some() => "https",
            Protocol::Http => "http",
        },
        "address": settings.address.to_string(),
        "state": state.to_string(),
        "condition": state.token(),
        "share": counts.share,
        "in_flight": counts.in_flight,
        "abandoned": counts.abandoned,
        "waiting": counts.waiting,
        "queue_max": settings.queue_max,
        "connections": {
            "open": counts.open,
            "idle": counts.idle,
            "max": settings.connections_max,
            "dialled": counts.dialled,
            "failed": counts.dials_failed,
            "reused": counts.reused,
            "stale": counts.stale,
        },
        "requests": snapshot.attempts,
        "bytes": {"sent": counts.sent, "received": counts.received},
        "rates": snapshot.rates.map(figures::rates),
        "latency": figures::latency(&snapshot),
        "errors": figures::errors(&snapshot),
        "server_errors": figures::server_errors(&snapshot),
        "sticky": figures::sticky(&snapshot.sticky),
        "last_failure": snapshot.last_failure.as_ref().map(figures::last_failure),
        "probes": {"answered": counts.probes_answered, "failed": counts.probes_failed},
        "last_probe": backend.last_probe().as_ref().map(figures::last_probe),
        "ejections": counts.ejections,
        "suspicions": counts.suspicions,
        "down_s": counts.down.as_secs(),
    })
}

/// One change or failure.
pub(super) fn event(event: &Event) -> Value {
    json!({
        "number": event.number,
        "at": show_moment(event.at / 1000),
        "kind": event.kind.token(),
        "upstream": event.upstream,
        "backend": event.backend,
        "text": event.text,
    })
}

fn controls(controls: Controls) -> Value {
    json!({
        "activation": controls.activation.token(),
        "weight": controls.weight,
        "distance": controls.distance,
    })
}

fn said_of(said: &Override) -> Value {
    json!({
        "activation": said.activation.map(|set| set.value.token()),
        "weight": said.weight.map(|set| set.value),
        "distance": said.distance.map(|set| set.value),
        "until": said.until.map(show_moment),
        "reason": said.reason,
        "by": said.by,
        "at": show_moment(said.at),
    })
}

/// How far a drain is.
fn progress(drain: &Drain, member: &Member) -> Value {
    let Drain {
        then,
        began,
        sessions,
        ..
    } = *drain;
    json!({
        "then": Activation::token(then),
        "began": show_moment(began),
        "deadline": show_moment(drain.ends()),
        "sessions_at_start": sessions,
        "sessions_now": member.sessions_seen(),
        "earliest": member.drained_in().map(|left| show_moment(now() + left.as_secs())),
        "in_flight": member.backend.in_flight(),
    })
}
