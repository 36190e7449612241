//! The attempts of an exchange on the backends of one upstream, one after the other, as far as a retry is safe.
//!
//! An attempt chooses a backend, leases a connection, sends the request and relays. If it failed,
//! [`crate::exchange::retry`] decides whether another attempt is allowed. The counters of backends are kept
//! here.

mod candidates;
mod failed;

use std::error::Error;
use std::time::SystemTime;

use catamaran_balance::affinity::{self, BackendOut};
use catamaran_message::BodyLength;
use catamaran_upstream::{Culprit, LastFailure, Lease, LeaseError, Leasing, RequestError, Reuse};
use http::StatusCode;
use tokio::time::Instant;

use crate::cache::fill::FetchFacts;
use crate::client::ClientError;
use crate::config::BackendConfig;
use crate::control::events::Kind;
use crate::counters::Reason;
use crate::exchange::attempts::candidates::Candidates;
use crate::exchange::attempts::failed::Failed;
use crate::exchange::downstream::Downstream;
use crate::exchange::failure::{Causes, Failure};
use crate::exchange::leaving::in_time;
use crate::exchange::other_backends::OtherBackends;
use crate::exchange::outgoing::Outgoing;
use crate::exchange::pages::MAINTENANCE;
use crate::exchange::relay::{AttemptEnd, Relay, RelayError, Terms, Timeout};
use crate::exchange::response_policy::{BackendPolicy, ResponsePolicy};
use crate::exchange::retry::{self, Attempt, Retry, Stage};
use crate::exchange::source::{Leased, Source};
use crate::exchange::spans;
use crate::exchange::state::Exchange;
use crate::site::rules::Rules;
use crate::site::{Choice, Member, Told, Upstream};
use crate::traces::Trace;
use crate::version;
use crate::worker::in_flight::Phase;

/// Attempts the exchange on one backend after the other, until one succeeds or a retry is not safe.
pub(crate) async fn try_backends<'a>(
    exchange: &mut Exchange<'a>,
    upstream: &'a Upstream,
    down: &mut Downstream<'_>,
    outgoing: &Outgoing<'_>,
) -> Result<(), Failure> {
    let rules = exchange.decided.rules();
    let retries = upstream.retries_by(rules);
    let mut attempts_max = retries + 1;
    let mut candidates = Candidates::new(upstream, rules);
    let mut tried = candidates.stopped().to_vec();
    // The choice of the last attempt, if the next one is made on the same backend.
    let mut same: Option<Choice<'_>> = None;
    loop {
        // A backend that is asked again is asked on a fresh connection.
        let fresh = same.is_some();
        let choice = match same {
            Some(choice) => choice,
            None => match choose(exchange, &candidates, &tried, outgoing) {
                Ok(choice) => choice,
                Err(failure) if !candidates.are_awaited(&tried) => return Err(failure),
                Err(_) => {
                    // The wait may replace the members, so that all of them may be tried again.
                    Box::pin(candidates.wait(exchange, down, outgoing)).await?;
                    tried = candidates.stopped().to_vec();
                    same = None;
                    continue;
                }
            },
        };
        let index = choice.member;
        let held = choice.decision.is_some_and(|decision| decision.held);
        let member = &candidates.upstream.members[index];
        exchange.attempts.member = Some(member);
        exchange.attempts.first_member.get_or_insert(member);
        exchange.attempts.count += 1;
        let other_backends = OtherBackends {
            upstream: candidates.upstream,
            tried: &tried,
            present: index,
            method: outgoing.method_for_retry(),
            attempts_left: attempts_max.saturating_sub(exchange.attempts.count),
            held,
        };
        let began = exchange.trace.and_then(Trace::clock);
        let attempted = attempt(exchange, &choice, &other_backends, fresh, down, outgoing).await;
        let fault = attempted.as_ref().err().map(|failed| failed.fault());
        spans::note_attempt(exchange, outgoing, began, fault);
        let Err(failed) = attempted else {
            return Ok(());
        };
        if !tried.contains(&index) {
            tried.push(index);
        }
        if failed.refused && retries > 0 {
            // A refused connection takes no time and puts its backend out, so it does not use up an attempt.
            attempts_max += 1;
        }
        let chances = Chances {
            attempts_left: attempts_max.saturating_sub(exchange.attempts.count),
            waits: candidates.are_awaited_after(&failed, &tried),
            // A session that is held to its backend goes to no other one.
            has_others: !held && candidates.upstream.has_others(&tried),
        };
        let decision = plan_retry(exchange, &failed, chances, candidates.upstream, outgoing)?;
        same = (decision == Retry::Fresh).then_some(choice);
    }
}

/// What is left for another attempt.
#[derive(Clone, Copy)]
struct Chances {
    attempts_left: u32,
    /// Whether the request waits for a member that takes new sessions.
    waits: bool,
    /// Whether there is a backend that was not tried yet.
    has_others: bool,
}

/// Decides how a failed attempt is repeated, and counts the retry. The error: it is not repeated.
fn plan_retry(
    exchange: &Exchange<'_>,
    failed: &Failed,
    chances: Chances,
    upstream: &Upstream,
    outgoing: &Outgoing<'_>,
) -> Result<Retry, Failure> {
    let decision = retry::decide(&Attempt {
        stage: failed.stage,
        repeatable: upstream.repeats(outgoing.method_for_retry()),
        replayable: exchange.progress.replay.has_all(exchange.progress.received),
        disconnected: failed.disconnected,
        given_up: failed.given_up,
        dial_timed_out: failed.dial_timed_out,
        reused: failed.reused,
        attempts_left: chances.attempts_left,
        others: chances.waits || chances.has_others,
        blameless: failed.failure.reason.is_client() || failed.is_over,
    });
    if decision == Retry::No {
        return Err(failed.failure);
    }
    // A request that waits for a member adds next to no load.
    let is_free = chances.waits && decision == Retry::Other;
    if !is_free && !upstream.retry_budget.retry() {
        let reason = Reason::new(Culprit::Front, "retry-budget");
        exchange.scene.worker.counters().reason(reason);
        return Err(failed.failure);
    }
    account_retry(exchange, failed, decision);
    Ok(decision)
}

/// Chooses the backend of the next attempt; the error tells why there is none.
fn choose<'o>(
    exchange: &mut Exchange<'_>,
    candidates: &'o Candidates<'o>,
    tried: &[usize],
    outgoing: &'o Outgoing<'_>,
) -> Result<Choice<'o>, Failure> {
    let upstream = candidates.upstream;
    let unavailable = |token| {
        let is_planned = upstream.is_in_maintenance(candidates.stopped());
        let token = if is_planned { MAINTENANCE } else { token };
        Failure::new(Culprit::Front, StatusCode::SERVICE_UNAVAILABLE, token)
    };
    let chosen = upstream.choose(
        exchange.scene.worker.index(),
        candidates.facts(outgoing),
        tried,
        now(exchange),
    );
    let choice = match chosen {
        Ok(Some(choice)) => choice,
        Ok(None) => return Err(unavailable("no-backend")),
        Err(BackendOut { route }) => {
            let is_logged = exchange.scene.worker.access_log().is_on();
            exchange.attempts.session_route = is_logged.then(|| route.into());
            return Err(unavailable("sticky-backend-out"));
        }
    };
    if let Some(decision) = choice.decision {
        note_session(exchange, &decision);
    }
    Ok(choice)
}

/// Notes the outcome for the request's session. The outcome of the last attempt is the one that is counted.
fn note_session(exchange: &mut Exchange<'_>, decision: &affinity::Decision<'_>) {
    // Each attempt decides anew; the first decision is the one that counts the excess.
    if decision.excess && exchange.attempts.sticky.is_none() {
        let reason = Reason::new(Culprit::Client, "sticky-values-max");
        exchange.scene.worker.counters().reason(reason);
    }
    exchange.attempts.sticky = Some(decision.outcome);
    let is_logged = exchange.scene.worker.access_log().is_on();
    exchange.attempts.session_route = decision.route.filter(|_| is_logged).map(Into::into);
}

/// The time at which an attempt begins; for the first one, unless it had to wait, the time of the request's head.
fn now(exchange: &Exchange<'_>) -> Instant {
    let has_waited = exchange.attempts.hold_ends.is_some()
        || exchange.decided.rules().is_some_and(Rules::asks_auth);
    if exchange.attempts.count <= 1 && !has_waited {
        exchange.began
    } else {
        Instant::now()
    }
}

/// Counts a retry, and logs it for the operator.
fn account_retry(exchange: &Exchange<'_>, failed: &Failed, decision: Retry) {
    let (stage, reason) = (failed.stage, failed.failure.reason);
    let counters = exchange.scene.worker.counters();
    counters.retry();
    counters.reason(reason);
    if let Some(member) = exchange.attempts.member {
        let figures = member.backend.figures();
        figures.retried(exchange.scene.worker.index());
    }
    if stage == Stage::Undelivered {
        counters.reason(Reason::new(Culprit::Backend, "undelivered"));
    }
    tracing::info!(request = %exchange.id, ?decision, ?stage, %reason, "retry");
}

/// Makes one attempt on one backend. The error is boxed, so that the result is cheap to move.
async fn attempt(
    exchange: &mut Exchange<'_>,
    choice: &Choice<'_>,
    other_backends: &OtherBackends<'_>,
    fresh: bool,
    down: &mut Downstream<'_>,
    outgoing: &Outgoing<'_>,
) -> Result<(), Box<Failed>> {
    let now = now(exchange);
    let upstream = other_backends.upstream;
    let reuse = if fresh {
        Reuse::Never
    } else if upstream.repeats(&outgoing.head.method) {
        Reuse::Any
    } else {
        // The request cannot be repeated after a pooled connection broke.
        Reuse::Lasting
    };
    let member = &upstream.members[choice.member];
    let settings = &member.settings;
    let end = end_of_attempt(exchange, settings);
    let mut lease = match begin_lease(exchange, member, reuse, now)? {
        Leasing::Done(lease) => lease,
        Leasing::Waiting(leasing) => {
            let leased = in_time(leasing, exchange.scene, down, end.at).await;
            after_wait(exchange, member, leased, end)?
        }
    };
    if let Some(logged) = &mut exchange.logged {
        logged.leased = Some(Instant::now());
    }
    if let Err(error) = send(exchange, upstream, choice, &mut lease, outgoing) {
        lease.finish(now);
        let failed = Failed::unsent(Failure::from_request(&error));
        return Err(reported(exchange, member, failed, &error));
    }
    enter_sent(exchange, outgoing.head.body, choice);
    let backend_policy = BackendPolicy {
        member,
        other_backends,
        pages: exchange.decided.pages.replacing(),
        cookie: upstream.cookie(choice, outgoing.identity.secure),
    };
    let request = exchange.progress.sink.is_some().then_some(outgoing);
    let policy = exchange.decided.policy(Some(backend_policy), request);
    let source = Source::Backend(Leased {
        lease: &mut lease,
        config: settings,
        rules: exchange.decided.rules(),
        other_backends,
        in_flight: exchange.in_flight.as_ref(),
    });
    let terms = terms(exchange, outgoing, end, &policy);
    let relayed = Relay::new(exchange.scene, down, source, terms, &mut exchange.progress)
        .run()
        .await;
    let error = relayed.as_ref().err().map(|error| &**error);
    note_response(exchange, member, now, error);
    match relayed {
        Ok(()) if exchange.progress.upgraded => {
            if let Some(tunnel) = &mut exchange.decided.tunnel {
                tunnel.opened = Some(lease.into_tunnel());
            }
            Ok(())
        }
        Ok(()) => {
            conclude(exchange, member, lease, now);
            Ok(())
        }
        Err(error) => Err(break_off(exchange, down, member, lease, &error)),
    }
}

/// Encodes the request for the chosen backend. Of each attempt the backend gets another parent of its span.
fn send(
    exchange: &Exchange<'_>,
    upstream: &Upstream,
    choice: &Choice<'_>,
    lease: &mut Lease<'_>,
    outgoing: &Outgoing<'_>,
) -> Result<(), RequestError> {
    let number = exchange.attempts.count;
    let parent = exchange.trace.and_then(|trace| trace.next(number));
    let told = Told {
        parent: parent.as_ref(),
        ..upstream.tell(choice)
    };
    let settings = &upstream.members[choice.member].settings;
    outgoing.send(lease, settings, told)
}

/// Notes that the request's head was sent: for administrators, and, with the backend, for readers of a fetch.
#[inline]
fn enter_sent(exchange: &Exchange<'_>, body: BodyLength, choice: &Choice<'_>) {
    if let Some(sink) = &exchange.progress.sink {
        sink.note_facts(FetchFacts {
            // Readers look the index up in the site with which the fetch began. It means nothing there after a move to
            // another site.
            member: (!exchange.attempts.is_moved).then_some(choice.member),
            attempts: exchange.attempts.count,
        });
    }
    if let Some(in_flight) = &exchange.in_flight {
        in_flight.enter(match body {
            BodyLength::Known(0) => Phase::Waiting,
            _ => Phase::Sending,
        });
    }
}

/// Returns the connection that was waited for, or reports the failure of the attempt.
fn after_wait<'m>(
    exchange: &Exchange<'_>,
    member: &'m Member,
    leased: Result<Option<Result<Lease<'m>, LeaseError>>, ClientError>,
    end: AttemptEnd,
) -> Result<Lease<'m>, Box<Failed>> {
    match leased {
        Ok(Some(Ok(lease))) => Ok(lease),
        Ok(Some(Err(error))) => {
            let failed = Failed::from_lease(&error);
            Err(reported(exchange, member, failed, &error))
        }
        // The time of the attempt is over.
        Ok(None) => {
            let error = RelayError::from(end.timeout);
            Err(reported(exchange, member, Failed::late(&error), &error))
        }
        // The client has left.
        Err(error) => {
            let failed = Failed::unsent(Failure::from_client(&error));
            Err(reported(exchange, member, failed, &error))
        }
    }
}

/// Counts an attempt, and begins to lease a connection for it. A tunnel gets a new connection, which is not
/// pooled.
fn begin_lease<'m>(
    exchange: &Exchange<'_>,
    member: &'m Member,
    reuse: Reuse,
    now: Instant,
) -> Result<Leasing<'m>, Box<Failed>> {
    let Member {
        backend, settings, ..
    } = member;
    let worker = exchange.scene.worker.index();
    backend.figures().attempt(worker);
    if let Some(in_flight) = &exchange.in_flight {
        in_flight.attempt(backend.number());
    }
    match &exchange.decided.tunnel {
        None => Ok(backend.lease(settings, worker, reuse, now)),
        Some(_) if settings.takes_tunnels() => Ok(backend.lease_for_tunnel(settings, worker)),
        Some(_) => {
            let failed = Failed::unsent(Failure::no_upgrade_url());
            Err(reported(exchange, member, failed, &NoUpgradeUrl))
        }
    }
}

/// Ends an attempt whose response is complete: notes times and failures of the backend, and gives the
/// connection back.
fn conclude(exchange: &mut Exchange<'_>, member: &Member, lease: Lease<'_>, began: Instant) {
    let Member {
        backend, settings, ..
    } = member;
    let now = exchange.scene.measured();
    if exchange.scene.worker.keeps_times() {
        let after = now.saturating_duration_since(began);
        let worker = exchange.scene.worker.index();
        backend.figures().completed(worker, after);
    }
    let status = exchange.progress.status;
    // To a wrong secret of AJP13, Tomcat answers 403 on the first request of a connection, and closes it.
    let is_forbidden = status == Some(StatusCode::FORBIDDEN);
    if is_forbidden && !lease.is_reused() && !lease.is_reusable() {
        backend.note_refusal();
    }
    lease.finish(now);
    // The client got a status after which another backend would have been asked: a probe looks at this one.
    if status.is_some_and(|status| settings.retries_status(status)) {
        backend.verify();
    }
    if let Some(logged) = &mut exchange.logged {
        logged.ended = Some(now);
    }
    if exchange.progress.replaced {
        exchange.note_reason(Reason::new(Culprit::Backend, "error-replaced"));
    }
}

/// Ends an attempt whose relay failed, and reports the failure.
fn break_off(
    exchange: &Exchange<'_>,
    down: &mut Downstream<'_>,
    member: &Member,
    lease: Lease<'_>,
    error: &RelayError,
) -> Box<Failed> {
    let failed = Failed::from_relay(error, &exchange.progress, &lease);
    report(exchange, member, &failed, error);
    if failed.failure.is_gone() && exchange.progress.status.is_none() {
        down.leave_behind(lease.leave_behind());
    } else {
        // A response that has begun may go on for ever without a byte. A reset tells the backend.
        lease.abort();
    }
    if failed.failure.reason.culprit() == Culprit::Backend {
        member.backend.verify();
    }
    Box::new(failed)
}

/// The time by which an attempt that begins now must be over: the limits of the route, or that of the backend.
fn end_of_attempt(exchange: &Exchange<'_>, backend: &BackendConfig) -> AttemptEnd {
    let exchange_end = AttemptEnd {
        at: exchange.ends(backend.exchange_timeout),
        timeout: Timeout::Exchange,
    };
    let rules = exchange.decided.rules();
    let Some(limit) = rules.and_then(|rules| rules.config().attempt_timeout) else {
        return exchange_end;
    };
    let attempt_end = AttemptEnd {
        at: exchange.scene.now() + limit,
        timeout: Timeout::Attempt,
    };
    if attempt_end.at < exchange_end.at {
        attempt_end
    } else {
        exchange_end
    }
}

/// The facts for the relay of one attempt, which must be over at `end`.
fn terms<'p>(
    exchange: &Exchange<'_>,
    outgoing: &Outgoing<'_>,
    end: AttemptEnd,
    policy: &'p ResponsePolicy<'p>,
) -> Terms<'p> {
    let body_max = Rules::body_max(exchange.decided.rules(), exchange.scene.listener);
    Terms {
        policy,
        takes_interims: version::has_chunks(outgoing.head.version),
        body: outgoing.head.body,
        body_max: body_max.unwrap_or(u64::MAX),
        expect_continue: outgoing.head.expect_continue,
        end,
        timed: exchange.scene.worker.access_log().is_on() || exchange.scene.worker.keeps_times(),
    }
}

/// Counts the response's status, if its head came, and the time until then.
#[inline]
fn note_response(
    exchange: &Exchange<'_>,
    member: &Member,
    began: Instant,
    error: Option<&RelayError>,
) {
    let worker = exchange.scene.worker;
    let status = match error {
        Some(RelayError::Declined(status)) => Some(*status),
        _ => exchange.progress.status,
    };
    if let Some(status) = status {
        member.backend.figures().responded(worker.index(), status);
        if let Some(run_max) = member.settings.eject_after_5xx {
            member.backend.note_status(status, run_max);
        }
    }
    if let Some(at) = exchange.progress.head_at.filter(|_| worker.keeps_times()) {
        let after = at.saturating_duration_since(began);
        member.backend.figures().answered(worker.index(), after);
    }
}

/// Reports an attempt that failed before its relay began, and boxes the failure.
fn reported(
    exchange: &Exchange<'_>,
    member: &Member,
    failed: Failed,
    error: &dyn Error,
) -> Box<Failed> {
    report(exchange, member, &failed, error);
    Box::new(failed)
}

/// Counts a failed attempt and logs it for the operator, unless the client caused it.
fn report(exchange: &Exchange<'_>, member: &Member, failed: &Failed, error: &dyn Error) {
    let (upstream, backend) = (member.backend.upstream(), member.name());
    let (request, reason, causes) = (exchange.id, failed.failure.reason, Causes(error));
    if reason.is_client() {
        tracing::debug!(%request, upstream, backend, %reason, "{causes}");
        return;
    }
    tracing::warn!(%request, upstream, backend, %reason, "{causes}");
    member.backend.figures().failed_as(LastFailure {
        at: SystemTime::now(),
        reason: (reason.culprit(), reason.token()),
        stage: failed.stage.token(),
        request: request.to_string(),
        detail: causes.to_string(),
    });
    let text = format!("{reason}: {causes} (request {request})");
    let events = exchange.scene.worker.events();
    events.push(Kind::Failure, upstream, backend, text);
}

/// The error that a backend over AJP without `upgrade_url` cannot have a tunnel.
#[derive(Debug, thiserror::Error)]
#[error("a tunnel is asked for, and the backend has no `upgrade_url`")]
struct NoUpgradeUrl;
