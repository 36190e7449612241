//! One exchange: a request, from its head to its log line.
//!
//! The steps are: decide ([`crate::exchange::verdict`]), (pick, lease, send, relay), account. Errors are
//! handled in this file; the steps themselves are elsewhere and have no branches for them. After a failed
//! attempt [`crate::exchange::retry`] decides whether another one is allowed. A failed exchange is
//! answered with a page of the front if no response was begun; otherwise the response is cut visibly.

mod account;
mod cache_hook;
pub(crate) mod cache_request;
mod caching;
pub(crate) mod compression;
mod counted;
pub(crate) mod downstream;
pub(crate) mod elsewhere;
pub(crate) mod failure;
pub(crate) mod fetch;
pub(crate) mod fields;
mod files;
pub(crate) mod grounds;
pub(crate) mod guards;
mod logged;
pub(crate) mod outgoing;
mod own_response;
pub(crate) mod pages;
pub(crate) mod relay;
pub(crate) mod replay;
pub(crate) mod respond;
mod response_policy;
pub(crate) mod retry;
pub(crate) mod scene;
mod secured;
pub(crate) mod source;
pub(crate) mod tunnel;
pub(crate) mod verdict;

use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use caching::RequestPlan;
use catamaran_balance::affinity::{self, BackendOut, Outcome};
use catamaran_message::{BodyLength, RequestHead};
use catamaran_upstream::{Culprit, Lease, LeaseError, Leasing, Reuse};
use downstream::Downstream;
use elsewhere::Elsewhere;
use failure::{Failed, Failure};
use fields::passage::Passage;
use grounds::Grounds;
use http::StatusCode;
use logged::LoggedRequest;
use outgoing::Outgoing;
use pages::{MAINTENANCE, Pages};
use response_policy::{BackendPolicy, ResponsePolicy};
use scene::Scene;
use source::{Answer, Leased, Source};
use tokio::time::Instant;
use verdict::{Decision, Forward, OwnAnswer, OwnContent, Verdict};

use crate::boxed::boxed;
use crate::cache::fill::FetchFacts;
use crate::client::ClientError;
use crate::config::BackendConfig;
use crate::counters::Reason;
use crate::deadlines::Tick;
use crate::exchange::relay::{Progress, Relay, RelayError, Terms};
use crate::exchange::retry::{Attempt, Retry, Stage};
use crate::request_id::RequestId;
use crate::site::route::Route;
use crate::site::rules::Rules;
use crate::site::{Choice, Member, Upstream};
use crate::tunnel_request::TunnelRequest;
use crate::worker::OwnSite;
use crate::worker::in_flight::{Phase, Seen};

/// What happens to the client's connection after an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// The response was sent. The next request may follow if framing allows it; part of this
    /// one's body may have to be discarded first.
    Done,
    /// As [`After::Done`], but the client was too slow: the front waits only a short time for it.
    Late,
    /// It is closed at once, so that the client notices that something is missing.
    Cut,
}

/// One exchange: what is known of it, from its head to its log line.
struct Exchange<'a> {
    scene: Scene<'a>,
    site: &'a Arc<OwnSite>,
    id: RequestId,
    /// What administrators see of it while it lasts.
    seen: Option<Seen<'a>>,
    began: Instant,
    began_tick: Tick,
    /// What the log says of the request, if there is a log.
    logged: Option<Box<LoggedRequest>>,
    /// What was decided of the request.
    decided: Decided<'a>,
    /// What the attempts came to.
    attempts: Attempts<'a>,
    progress: Progress,
    reason: Option<Reason>,
    /// The status in the log if the client left and no status was sent.
    unsent: Option<StatusCode>,
}

/// What the verdict says for as long as the exchange lasts.
struct Decided<'a> {
    /// Who the client is, as far as that is known.
    client_ip: IpAddr,
    /// Pages of the operator's own.
    pages: Pages<'a>,
    upstream: Option<&'a Upstream>,
    /// What the route changes, if it changes anything.
    passage: Option<Box<Passage<'a>>>,
    /// The route, if it has rules.
    route: Option<&'a Route>,
    /// The tunnel that the request asks for, if the route allows it.
    tunnel: Option<Box<TunnelRequest<'a>>>,
    /// The id that a trusted proxy gave the request. Most have none.
    given_id: Option<Bytes>,
}

/// What the attempts of an exchange came to. The last one counts.
#[derive(Default)]
struct Attempts<'a> {
    count: u32,
    member: Option<&'a Member>,
    /// The member of the first attempt.
    first_member: Option<&'a Member>,
    /// What became of the session, if sessions are kept.
    sticky: Option<Outcome>,
    /// The route of the session id that decided, for the log.
    session_route: Option<Box<[u8]>>,
}

/// Serves one request whose head has arrived.
///
/// # Cancel safety
/// The client's connection is left in the middle of messages and must be closed.
pub(crate) async fn serve(
    scene: Scene<'_>,
    down: &mut Downstream<'_>,
    head: Box<RequestHead>,
) -> After {
    let worker = scene.worker;
    worker.counters().request();
    let site = worker.site();
    let mut exchange = Exchange::new(scene, &site, Some(&head));
    let after = match exchange.decide(head) {
        Decision::Forward(forward) => exchange.forward(down, forward).await,
        Decision::Files(request) => Box::pin(exchange.serve_files(down, *request)).await,
        Decision::Answer(answer) => Box::pin(exchange.answer_itself(down, *answer)).await,
        Decision::Refuse(failure) => Box::pin(exchange.fail(down, failure)).await,
    };
    exchange.account(down);
    after
}

/// Answers a request whose head was refused or did not come in time. The connection is to be
/// closed.
pub(crate) async fn refuse(scene: Scene<'_>, down: &mut Downstream<'_>, failure: Failure) -> After {
    let site = scene.worker.site();
    let mut exchange = Exchange::new(scene, &site, None);
    let after = exchange.fail(down, failure).await;
    exchange.account(down);
    after
}

impl<'a> Exchange<'a> {
    /// An exchange of which nothing is decided; of a request that has no `head` nothing will be.
    fn new(scene: Scene<'a>, site: &'a Arc<OwnSite>, head: Option<&RequestHead>) -> Self {
        let id = scene.worker.next_id();
        let (began, began_tick) = (scene.measured(), scene.now());
        let is_logged = scene.worker.access_log().is_on();
        let in_flight = scene.worker.in_flight();
        Self {
            scene,
            site,
            id,
            seen: head.and_then(|head| Some(in_flight?.begin(id, began_tick, head))),
            began,
            began_tick,
            logged: head
                .filter(|_| is_logged)
                .map(|head| Box::new(LoggedRequest::new(head))),
            decided: Decided {
                client_ip: scene.peer.remote.ip(),
                pages: Pages::new(site.error_pages.as_deref(), id),
                upstream: None,
                passage: None,
                route: None,
                tunnel: None,
                given_id: None,
            },
            attempts: Attempts::default(),
            progress: Progress {
                body_complete: head.is_some_and(|head| head.body == BodyLength::Known(0)),
                ..Progress::default()
            },
            reason: None,
            unsent: None,
        }
    }

    /// Decides what becomes of the request, and keeps what lasts of the verdict.
    #[inline]
    fn decide(&mut self, head: Box<RequestHead>) -> Decision<'a> {
        let Scene { listener, peer, .. } = self.scene;
        let Verdict {
            client_ip,
            route,
            passage,
            decision,
        } = verdict::decide(
            Grounds {
                site: self.site,
                listener,
                peer,
                id: self.id,
            },
            head,
        );
        let decided = &mut self.decided;
        decided.client_ip = client_ip;
        let rules = route.and_then(|route| route.rules.as_deref());
        decided.pages.prefer(rules.and_then(Rules::error_pages));
        decided.route = route.filter(|_| passage.is_some());
        decided.passage = passage;
        decision
    }

    /// Forwards a request; a failure is answered or cut.
    async fn forward(&mut self, down: &mut Downstream<'_>, forward: Forward<'a>) -> After {
        match self.run(down, forward).await {
            Ok(after) => after,
            Err(failure) => Box::pin(self.fail(down, failure)).await,
        }
    }

    /// Everything up to the last byte of a backend's response, or of a stored one.
    async fn run(
        &mut self,
        down: &mut Downstream<'_>,
        forward: Forward<'a>,
    ) -> Result<After, Failure> {
        let Forward {
            upstream,
            mut outgoing,
            tunnel,
            cache,
        } = forward;
        self.decided.upstream = Some(upstream);
        self.decided.tunnel = tunnel;
        self.decided.given_id = outgoing.given_id.take();
        if let Some(reason) = outgoing.dropped {
            self.scene.worker.counters().reason(reason);
        }
        // Boxed by itself: a box of at most a kilobyte comes from a free list of the allocator's. Both
        // boxes, this one and that around it, are kept below (tests of their sizes).
        let served = match cache {
            None => {
                upstream.retry_budget.request(self.scene.worker.index());
                outgoing.complete();
                boxed(|| self.try_backends(upstream, down, &outgoing)).await
            }
            // Whether a backend is asked remains to be seen.
            Some(request) => {
                let worker = self.scene.worker.index();
                let planned = RequestPlan::new(request, &outgoing, worker);
                match planned.hit() {
                    Some(hit) => boxed(|| self.serve_hit(down, &outgoing, hit)).await,
                    None => {
                        outgoing.complete();
                        boxed(|| self.serve_cached(upstream, down, &outgoing, planned)).await
                    }
                }
            }
        };
        if let Err(failure) = served {
            down.recycle(outgoing.into_head());
            return Err(failure);
        }
        if let Some(wanted) = self.decided.tunnel.take()
            && let Some(backend) = wanted.opened
        {
            drop(outgoing);
            Box::pin(self.run_tunnel(down, backend, wanted.idle)).await;
            return Ok(After::Cut);
        }
        down.recycle(outgoing.into_head());
        Ok(After::Done)
    }

    /// Attempts the exchange on one backend after the other, as far as a retry is safe.
    async fn try_backends(
        &mut self,
        upstream: &'a Upstream,
        down: &mut Downstream<'_>,
        outgoing: &Outgoing<'_>,
    ) -> Result<(), Failure> {
        let rules = self.decided.passage.as_ref().map(|passage| passage.rules);
        let retries = upstream.retries_by(rules);
        let mut tried = rules.map_or_else(Vec::new, |rules| rules.stopped().to_vec());
        let mut choice = self.choose(upstream, rules, &tried, outgoing)?;
        let (mut fresh, mut refusals) = (false, 0);
        loop {
            let index = choice.member;
            let held = choice.decision.is_some_and(|decision| decision.held);
            let member = &upstream.members[index];
            self.attempts.member = Some(member);
            self.attempts.first_member.get_or_insert(member);
            self.attempts.count += 1;
            let attempts_left = (retries + 1 + refusals).saturating_sub(self.attempts.count);
            let elsewhere = Elsewhere {
                upstream,
                tried: &tried,
                present: index,
                method: outgoing.method_for_retry(),
                attempts_left,
                held,
            };
            let failed = match self
                .attempt(&choice, &elsewhere, fresh, down, outgoing)
                .await
            {
                Ok(()) => return Ok(()),
                Err(failed) => failed,
            };
            if !tried.contains(&index) {
                tried.push(index);
            }
            // Takes no time and puts its backend out: all the others may be asked.
            let free = u32::from(failed.refused && retries > 0);
            refusals += free;
            let decision = retry::decide(&Attempt {
                stage: failed.stage,
                repeatable: upstream.repeats(outgoing.method_for_retry()),
                replayable: self.progress.replay.has_all(self.progress.received),
                disconnected: failed.disconnected,
                backend_out: failed.backend_out,
                dial_timed_out: failed.dial_timed_out,
                reused: failed.reused,
                attempts_left: attempts_left + free,
                others: !held && upstream.has_others(&tried),
                blameless: failed.failure.reason.is_client(),
            });
            if decision == Retry::No {
                return Err(failed.failure);
            }
            if !upstream.retry_budget.retry() {
                let reason = Reason::new(Culprit::Front, "retry-budget");
                self.scene.worker.counters().reason(reason);
                return Err(failed.failure);
            }
            self.account_retry(&failed, decision);
            fresh = decision == Retry::Fresh;
            if !fresh {
                choice = self.choose(upstream, rules, &tried, outgoing)?;
            }
        }
    }

    /// Chooses the backend of the next attempt, or says why there is none.
    fn choose<'o>(
        &mut self,
        upstream: &'o Upstream,
        rules: Option<&'o Rules>,
        tried: &[usize],
        outgoing: &'o Outgoing<'_>,
    ) -> Result<Choice<'o>, Failure> {
        let nobody = |token| {
            let token = match upstream.is_in_maintenance(rules) {
                true => MAINTENANCE,
                false => token,
            };
            Failure::new(Culprit::Front, StatusCode::SERVICE_UNAVAILABLE, token)
        };
        let chosen = upstream.choose(
            self.scene.worker.index(),
            outgoing.facts(rules),
            tried,
            self.now(),
        );
        let choice = match chosen {
            Ok(Some(choice)) => choice,
            Ok(None) => return Err(nobody("no-backend")),
            Err(BackendOut { route }) => {
                self.attempts.session_route =
                    self.scene.worker.access_log().is_on().then(|| route.into());
                return Err(nobody("sticky-backend-out"));
            }
        };
        if let Some(decision) = choice.decision {
            self.note(&decision);
        }
        Ok(choice)
    }

    /// Notes the outcome for the session. The last attempt counts.
    fn note(&mut self, decision: &affinity::Decision<'_>) {
        if decision.excess && self.attempts.sticky.is_none() {
            let reason = Reason::new(Culprit::Client, "sticky-values-max");
            self.scene.worker.counters().reason(reason);
        }
        self.attempts.sticky = Some(decision.outcome);
        let logged = decision
            .route
            .filter(|_| self.scene.worker.access_log().is_on());
        self.attempts.session_route = logged.map(Into::into);
    }

    /// When an attempt begins. The first begins with the head.
    fn now(&self) -> Instant {
        if self.attempts.count <= 1 {
            self.began
        } else {
            Instant::now()
        }
    }

    fn account_retry(&self, failed: &Failed, decision: Retry) {
        let (stage, reason) = (failed.stage, failed.failure.reason);
        let counters = self.scene.worker.counters();
        counters.retry();
        counters.reason(reason);
        if let Some(member) = self.attempts.member {
            let figures = member.backend.figures();
            figures.retried(self.scene.worker.index());
        }
        if stage == Stage::Undelivered {
            counters.reason(Reason::new(Culprit::Backend, "undelivered"));
        }
        tracing::info!(request = %self.id, ?decision, ?stage, %reason, "retry");
    }

    /// One attempt on one backend. A failed one is kept in a box, so that a result is not moved at its cost.
    async fn attempt(
        &mut self,
        choice: &Choice<'_>,
        elsewhere: &Elsewhere<'_>,
        fresh: bool,
        down: &mut Downstream<'_>,
        outgoing: &Outgoing<'_>,
    ) -> Result<(), Box<Failed>> {
        let now = self.now();
        let upstream = elsewhere.upstream;
        let reuse = match upstream.repeats(outgoing.method()) {
            _ if fresh => Reuse::Never,
            true => Reuse::Any,
            false => Reuse::Lasting,
        };
        let member = &upstream.members[choice.member];
        let Member {
            backend, settings, ..
        } = member;
        backend.figures().attempt(self.scene.worker.index());
        self.seen.iter().for_each(|it| it.attempt(backend.number()));
        let mut lease = match self.begin_lease(member, reuse, now)? {
            Leasing::Done(lease) => lease,
            Leasing::Waiting(leasing) => {
                let leased = unless_left(leasing, self.scene, down).await;
                self.leased(member, leased)?
            }
        };
        if let Some(logged) = &mut self.logged {
            logged.leased = Some(Instant::now());
        }
        if let Err(error) = outgoing.send(&mut lease, settings, upstream.tell(choice)) {
            lease.finish(now);
            let failed = Failed::unsent(Failure::from_request(&error));
            return Err(self.reported(member, failed, &error));
        }
        self.enter_sent(outgoing.body(), choice);
        let policy = ResponsePolicy {
            backend: Some(BackendPolicy {
                member,
                elsewhere,
                pages: self.decided.pages.replacing(),
                cookie: upstream.cookie(choice, outgoing.identity().secure),
            }),
            passage: self.decided.passage.as_deref(),
            request: self.progress.hook.is_some().then_some(outgoing),
        };
        let source = Source::Backend(Leased {
            lease: &mut lease,
            config: settings,
            rules: self.decided.passage.as_ref().map(|passage| passage.rules),
            elsewhere,
            seen: self.seen.as_ref(),
        });
        let terms = self.terms(outgoing, settings, &policy);
        let relayed = Relay::new(self.scene, down, source, terms, &mut self.progress)
            .run()
            .await;
        self.note_response(member, now, relayed.as_ref().err().map(|error| &**error));
        match relayed {
            Ok(()) if self.progress.upgraded => {
                if let Some(wanted) = &mut self.decided.tunnel {
                    wanted.opened = Some(lease.into_tunnel());
                }
                Ok(())
            }
            Ok(()) => {
                self.conclude(member, lease, now);
                Ok(())
            }
            Err(error) => Err(self.break_off(down, member, lease, &error)),
        }
    }

    /// Lets administrators see that the request's head was sent, and those who read its response for whom.
    #[inline]
    fn enter_sent(&self, body: BodyLength, choice: &Choice<'_>) {
        if let Some(hook) = &self.progress.hook {
            hook.note_facts(FetchFacts {
                member: Some(choice.member),
                attempts: self.attempts.count,
            });
        }
        if let Some(seen) = &self.seen {
            seen.enter(match body {
                BodyLength::Known(0) => Phase::Waiting,
                _ => Phase::Sending,
            });
        }
    }

    /// What a wait for a connection came to.
    fn leased<'m>(
        &self,
        member: &'m Member,
        leased: Result<Result<Lease<'m>, LeaseError>, ClientError>,
    ) -> Result<Lease<'m>, Box<Failed>> {
        let left = |error| {
            let failed = Failed::unsent(Failure::from_client(&error));
            self.reported(member, failed, &error)
        };
        let unleased = |error| self.reported(member, Failed::from_lease(&error), &error);
        leased.map_err(left)?.map_err(unleased)
    }

    /// Begins to lease a connection: for a tunnel one of its own.
    fn begin_lease<'m>(
        &self,
        member: &'m Member,
        reuse: Reuse,
        now: Instant,
    ) -> Result<Leasing<'m>, Box<Failed>> {
        let Member {
            backend, settings, ..
        } = member;
        let worker = self.scene.worker.index();
        match &self.decided.tunnel {
            None => Ok(backend.lease(settings, worker, reuse, now)),
            Some(_) if settings.takes_tunnels() => Ok(backend.lease_for_tunnel(settings, worker)),
            Some(_) => {
                let failed = Failed::unsent(Failure::no_upgrade_url());
                Err(self.reported(member, failed, &NoUpgradeUrl))
            }
        }
    }

    /// Ends an attempt whose response is complete.
    fn conclude(&mut self, member: &Member, lease: Lease<'_>, began: Instant) {
        let Member {
            backend, settings, ..
        } = member;
        let now = self.scene.measured();
        self.note_end(member, began, now);
        let status = self.progress.status;
        if status == Some(StatusCode::FORBIDDEN) && !lease.is_reused() && !lease.is_reusable() {
            backend.note_refusal();
        }
        lease.finish(now);
        if status.is_some_and(|status| settings.retries_status(status)) {
            backend.verify();
        }
        if let Some(logged) = &mut self.logged {
            logged.ended = Some(now);
        }
        if self.progress.replaced {
            let reason = Reason::new(Culprit::Backend, "error-replaced");
            self.scene.worker.count(reason);
            self.reason = Some(reason);
        }
    }

    /// Ends an attempt whose relay failed.
    fn break_off(
        &self,
        down: &mut Downstream<'_>,
        member: &Member,
        lease: Lease<'_>,
        error: &RelayError,
    ) -> Box<Failed> {
        let failed = Failed::from_relay(error, &self.progress, &lease);
        self.report(member, &failed, error);
        // A response that has begun may go on for ever without a byte. A reset tells the backend.
        if failed.failure.is_gone() && self.progress.status.is_none() {
            down.leave_behind(lease.leave_behind());
        } else {
            lease.abort();
        }
        if failed.failure.reason.culprit() == Culprit::Backend {
            member.backend.verify();
        }
        Box::new(failed)
    }

    fn terms<'p>(
        &self,
        outgoing: &Outgoing<'_>,
        backend: &BackendConfig,
        policy: &'p ResponsePolicy<'p>,
    ) -> Terms<'p> {
        let rules = policy.passage.map(|passage| passage.rules);
        let body_max = Rules::body_max(rules, self.scene.listener);
        Terms {
            policy,
            takes_interims: outgoing.takes_interims(),
            body: outgoing.body(),
            body_max: body_max.unwrap_or(u64::MAX),
            expect_continue: outgoing.expect_continue(),
            deadline: backend
                .exchange_timeout
                .map_or(Tick::NEVER, |limit| self.began_tick + limit),
            timed: self.scene.worker.access_log().is_on() || self.scene.worker.keeps_times(),
        }
    }

    /// A failed exchange: a page if no response was begun, a visible cut otherwise.
    async fn fail(&mut self, down: &mut Downstream<'_>, failure: Failure) -> After {
        self.scene.worker.count(failure.reason);
        self.reason = Some(failure.reason);
        if self.progress.status.is_some() {
            // What the backend did send is worth having; the rest is missing, and seen to be.
            let limit = match failure.is_gone() {
                true => Duration::ZERO,
                false => self.scene.listener.write_timeout,
            };
            down.cut(self.scene.deadline, limit).await;
            return After::Cut;
        }
        if failure.client_gone {
            self.unsent = failure.is_gone().then_some(failure.status);
            return After::Cut;
        }
        if failure.reason.is_client() {
            down.abandon_upload();
        }
        self.send(down, self.page(failure.status)).await
    }

    /// Answers as the listener or the route says.
    async fn answer_itself(&mut self, down: &mut Downstream<'_>, own: OwnAnswer) -> After {
        let mut reason = own.reason;
        let answer = match own.content {
            OwnContent::Page(status) => self.page(status),
            OwnContent::FileMethods(status) => self.page(status).with(files::methods()),
            OwnContent::Redirect(status, location) => Answer::redirect(status, location, self.id),
            OwnContent::Challenge(file) => match secured::read_challenge(file).await {
                Some(bytes) => Answer::text(bytes),
                None => {
                    reason = Reason::new(Culprit::Client, "acme-token");
                    self.page(StatusCode::NOT_FOUND)
                }
            },
        };
        self.scene.worker.count(reason);
        self.reason = Some(reason);
        self.send(down, answer).await
    }

    /// The page of a status, which the operator may have written.
    fn page(&self, status: StatusCode) -> Answer {
        let count = |reason| self.scene.worker.count(reason);
        let (headers, body) = self.decided.pages.answer(status, self.reason, count);
        Answer::new(status, headers, body)
    }
}

/// Waits for a connection to a backend, or for a disk. If the client leaves, its place in the queue is
/// freed, or the dial is cancelled.
async fn unless_left<T>(
    mut awaited: impl Future<Output = T> + Unpin,
    scene: Scene<'_>,
    down: &mut Downstream<'_>,
) -> Result<T, ClientError> {
    poll_fn(|cx| {
        if let Poll::Ready(done) = Pin::new(&mut awaited).poll(cx) {
            return Poll::Ready(Ok(done));
        }
        match down.poll_left(cx, scene.now()) {
            Ok(look_again) => {
                scene.deadline.set(look_again.unwrap_or(Tick::NEVER));
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    })
    .await
}

/// Why a backend that speaks AJP cannot have a tunnel.
#[derive(Debug, thiserror::Error)]
#[error("a tunnel is asked for, and the backend has no `upgrade_url`")]
struct NoUpgradeUrl;

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_future<A, B, C, D, F>(_: fn(A, B, C, D) -> F) -> usize {
        size_of::<F>()
    }

    fn size_of_run<A, B, C, F>(_: fn(A, B, C) -> F) -> usize {
        size_of::<F>()
    }

    /// The allocator's fast path ends at a kilobyte.
    #[test]
    fn an_exchange_is_small() {
        let attempts = size_of_future(Exchange::try_backends);
        assert!(attempts <= 1024, "{attempts} bytes");
        let around = size_of_run(Exchange::run);
        assert!(around <= 512, "{around} bytes");
    }
}
