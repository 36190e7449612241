//! The state of the front, its upstreams and its backends, as the API shows it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use catamaran_admin_api as api;
use catamaran_admin_api::{BackendMember, FrontStatus, UpstreamStatus};
use catamaran_balance::RetryBudget;
use catamaran_upstream::{Backend, Resolution};

use super::{Desk, figures, health};
use crate::config::{BackendConfig, Protocol};
use crate::control::discovered::{DiscoveredMembers, MembersView};
use crate::control::events::Event;
use crate::control::{now, version};
use crate::counters::{Culprit, Reason};
use crate::date::show_moment;
use crate::limits::{Limit, Spell};
use crate::site::overrides::{Drain, Override, Overrides};
use crate::site::{Controls, Member, Upstream};
use crate::tls;
use crate::tls::acme::IssuedName;
use crate::worker::FrontState;

/// `GET /api/v1/status`: the state of the whole front.
pub(super) fn all(desk: &Desk) -> FrontStatus {
    let shared = &*desk.shared;
    let observed = health::observe(desk);
    let overrides = shared.control.lock();
    let site = shared.site.load_full();
    let counters = &observed.counters;
    let reasons = counters.reasons.iter();
    let named_reasons = reasons.map(|(reason, count)| (reason.to_string(), *count));
    let discovered = &shared.control.discovered;
    let of_upstream = |it: &Arc<Upstream>| upstream(it, &overrides, discovered);
    let retired = shared.retired.in_use();
    let retired_backends = retired.iter().map(|it| backend(it, &it.settings()));
    let uptime = shared.began.elapsed();
    let limits = observed.limits.iter();
    let reached = limits.map(|(limit, spell)| reached_limit(*limit, spell, uptime));
    let (number, failed) = shared.control.last_upgrade();
    let [
        none,
        informational,
        success,
        redirection,
        client_error,
        server_error,
        ..,
    ] = counters.responses;
    FrontStatus {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        process: std::process::id(),
        upgrade: api::UpgradeStatus { number, failed },
        generation: site.generation,
        now: show_moment(now()),
        uptime_s: uptime.as_secs(),
        workers: shared.counters.workers(),
        ready: observed.ready,
        draining: observed.draining,
        leaving: observed.leaving,
        read_only: desk.config.load().read_only,
        state_file_fails: observed.state_file_fails,
        connections: api::ClientConnections {
            open: counters.open,
            max: observed.connections_max,
            accepted: counters.accepted,
        },
        limits: reached.collect(),
        troubles: troubles(shared),
        requests: counters.requests,
        responses: api::ResponseCounts {
            informational,
            success,
            redirection,
            client_error,
            server_error,
            none,
        },
        retries: counters.retries,
        reloads: api::ReloadCounts {
            applied: counters.reloads_applied,
            refused: counters.reloads_refused,
        },
        reasons: named_reasons.collect(),
        upstreams: site.upstreams.iter().map(of_upstream).collect(),
        retired: retired_backends.collect(),
        in_flight: figures::in_flight(shared, &site, &retired),
    }
}

/// The faults of the front itself, in words.
fn troubles(shared: &FrontState) -> Vec<String> {
    let mut troubles = Vec::new();
    if let Some(reason) = shared.access_log.loss() {
        troubles.push(format!("lines of the access log are lost: {reason}"));
    }
    if let Some(reason) = shared.control.refused_reload() {
        troubles.push(format!("the last reload was refused: {reason}"));
    }
    if let Some(reason) = shared.traces.trouble() {
        troubles.push(format!("spans of traces are lost: {reason}"));
    }
    let profiles = shared.profiles.load();
    for (name, profile) in profiles.iter() {
        if let Some(reason) = profile.refused() {
            troubles.push(format!(
                "changed files of tls.{name} cannot be used, the previous ones stay in force: {reason}"
            ));
        }
    }
    for (name, certificate) in tls::certificates(&profiles) {
        if certificate.not_after <= SystemTime::now() {
            let names = certificate.names.join(", ");
            troubles.push(format!(
                "the certificate of {names} in tls.{name} has expired"
            ));
        }
    }
    for (IssuedName { profile, name }, figures) in shared.issuance.all() {
        if figures.is_unstored {
            troubles.push(format!(
                "the certificate of {name} in tls.{profile}, or its state, is in memory alone, as `state_dir` cannot be written"
            ));
        }
    }
    troubles
}

/// A limit at which clients are turned away, as the API shows it. `now` is the time since the
/// front's start.
fn reached_limit(limit: Limit, spell: &Spell, now: Duration) -> api::ReachedLimit {
    api::ReachedLimit {
        reason: Reason::new(Culprit::Front, limit.token()).to_string(),
        whom: limit.whom().to_owned(),
        clients: spell.clients,
        since_s: now.saturating_sub(spell.began).as_secs(),
        last_s: now.saturating_sub(spell.last).as_secs(),
        text: limit.words().to_owned(),
    }
}

/// An upstream with its backends, as the API shows it.
pub(super) fn upstream(
    upstream: &Upstream,
    overrides: &Overrides,
    discovered: &DiscoveredMembers,
) -> UpstreamStatus {
    let of_member = |it: &Member| member(upstream, it, overrides, discovered);
    UpstreamStatus {
        name: upstream.name.clone(),
        policy: upstream.config().policy.token().to_owned(),
        sticky: upstream.sticky.is_some(),
        sticky_outcomes: figures::sticky_of_all(upstream),
        ready: health::accepts_new(upstream) && !discovered.awaits(&upstream.name),
        members: discovered.view(&upstream.name).map(found_members),
        panic: upstream.members.iter().any(|it| it.backend.is_in_panic()),
        retries: upstream.config().retries,
        retry_budget: api::RetryBudgetStatus {
            left: upstream.retry_budget.left(),
            max: RetryBudget::MAX,
        },
        backends: upstream.members.iter().map(of_member).collect(),
    }
}

/// The discovered members of an upstream, and the state of their source, as the API shows them.
fn found_members(view: MembersView) -> api::FoundMembers {
    let refusals = view.refused.into_iter();
    let refused = refusals.map(|(name, refusal)| api::RefusedMember {
        name,
        reason: refusal.token().to_owned(),
    });
    api::FoundMembers {
        from: view.source.to_owned(),
        active: view.active,
        drain: view.draining,
        leaving: view.leaving,
        age_s: view.age.map(|age| age.as_secs()),
        failed: view.failed,
        answers: api::MemberAnswers {
            good: view.counts.good,
            failed: view.counts.failed,
        },
        refused: refused.collect(),
    }
}

/// A backend of an upstream, with its settings and changes, as the API shows it.
pub(super) fn member(
    upstream: &Upstream,
    member: &Member,
    overrides: &Overrides,
    discovered: &DiscoveredMembers,
) -> BackendMember {
    let found = discovered.member(&upstream.name, member.name());
    let settings = &member.settings;
    let changes = overrides.get(&upstream.name, member.name());
    BackendMember {
        backend: backend(&member.backend, settings),
        jvm_route: settings.jvm_route.clone(),
        domain: settings.domain.clone(),
        fallback: settings.fallback.clone(),
        version: version(upstream, member, overrides),
        settings: controls(member.controls),
        file: controls(member.file()),
        found: found.map(|found| api::MemberOrigin {
            from: found.source.to_owned(),
            state: found.standing.to_owned(),
            gone_in_s: found.gone_in.map(|left| left.as_secs()),
        }),
        changed: changes.map(override_of),
        drain: changes
            .and_then(|changes| changes.drain)
            .map(|drain| progress(&drain, member)),
        sessions: member.sessions_seen(),
        unknown_ids: member.unknown_ids(),
    }
}

/// The state of a backend, whether the configuration in force has it or a reload has removed it.
fn backend(backend: &Backend, settings: &BackendConfig) -> api::Backend {
    let counts = backend.counts();
    let state = backend.state();
    let snapshot = backend.figures().snapshot();
    let protocol = match settings.protocol {
        Protocol::Ajp => "ajp",
        Protocol::Http if settings.tls.is_some() => "https",
        Protocol::Http => "http",
    };
    api::Backend {
        name: settings.name.clone(),
        upstream: backend.upstream().to_owned(),
        protocol: protocol.to_owned(),
        address: settings.address.to_string(),
        resolution: backend.resolution().map(resolution),
        state: state.to_string(),
        condition: state.token().to_owned(),
        cause: state.cause().map(str::to_owned),
        remarks: backend.remarks(),
        share: counts.share,
        in_flight: counts.in_flight,
        abandoned: counts.abandoned,
        waiting: counts.waiting,
        queue_max: settings.queue_max,
        connections: api::BackendConnections {
            open: counts.open,
            idle: counts.idle,
            max: settings.connections_max,
            dialled: counts.dialled,
            failed: counts.dials_failed,
            reused: counts.reused,
            stale: counts.stale,
        },
        requests: snapshot.attempts,
        bytes: api::BackendBytes {
            sent: counts.sent,
            received: counts.received,
        },
        rates: snapshot.rates.map(figures::rates),
        latency: figures::latency(&snapshot),
        errors: figures::errors(&snapshot),
        server_errors: figures::server_errors(&snapshot),
        sticky: figures::sticky(&snapshot.sticky),
        last_failure: snapshot.last_failure.as_ref().map(figures::last_failure),
        probes: api::ProbeCounts {
            answered: counts.probes_answered,
            failed: counts.probes_failed,
        },
        last_probe: backend.last_probe().as_ref().map(figures::last_probe),
        ejections: counts.ejections,
        suspicions: counts.suspicions,
        down_s: counts.down.as_secs(),
    }
}

fn resolution(known: Resolution) -> api::NameResolution {
    api::NameResolution {
        host: known.host,
        addresses: known.addresses.iter().map(IpAddr::to_string).collect(),
        age_s: known.age.map(|age| age.as_secs()),
        failed: known.failed,
    }
}

/// An event, which is a change or a failure, as the API shows it.
pub(super) fn event(event: Event) -> api::Event {
    api::Event {
        number: event.number,
        at: show_moment(event.at / 1000),
        kind: event.kind.token().to_owned(),
        upstream: event.upstream,
        backend: event.backend,
        text: event.text,
    }
}

fn controls(controls: Controls) -> api::BackendControls {
    api::BackendControls {
        activation: controls.activation.token().to_owned(),
        weight: controls.weight,
        distance: controls.distance,
    }
}

/// What operators have changed about a backend, as the API shows it.
fn override_of(changes: &Override) -> api::Override {
    let activation = changes.activation.map(|set| set.value.token());
    api::Override {
        activation: activation.map(str::to_owned),
        weight: changes.weight.map(|set| set.value),
        distance: changes.distance.map(|set| set.value),
        until: changes.until.map(show_moment),
        reason: changes.reason.clone(),
        by: changes.by.clone(),
        at: show_moment(changes.at),
    }
}

/// The progress of a drain, as the API shows it.
fn progress(drain: &Drain, member: &Member) -> api::DrainProgress {
    let earliest = member.drained_in();
    api::DrainProgress {
        then: drain.then.token().to_owned(),
        began: show_moment(drain.began),
        deadline: show_moment(drain.ends()),
        sessions_at_start: drain.sessions,
        sessions_now: member.sessions_seen(),
        earliest: earliest.map(|left| show_moment(now() + left.as_secs())),
        in_flight: member.backend.in_flight(),
    }
}
