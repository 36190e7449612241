//! One exchange: a request, from its head to its log line.
//!
//! The steps are: route, clean, (pick, lease, send, relay), account. Errors are handled in this file;
//! the steps themselves are elsewhere and have no branches for them. After a failed attempt
//! [`crate::exchange::retry`] decides whether another one is allowed. A failed exchange is answered
//! with a page of the front if no response was begun; otherwise the response is cut visibly.

mod attributes;
pub(crate) mod certificate;
mod cookie_flags;
mod counted;
pub(crate) mod downstream;
pub(crate) mod elsewhere;
pub(crate) mod failure;
pub(crate) mod forwarded;
pub(crate) mod guards;
pub(crate) mod header;
pub(crate) mod id;
mod logged;
pub(crate) mod outgoing;
pub(crate) mod own_fields;
pub(crate) mod pages;
pub(crate) mod passage;
pub(crate) mod relay;
pub(crate) mod replay;
pub(crate) mod respond;
pub(crate) mod retry;
mod reverse;
pub(crate) mod scene;
mod secured;
pub(crate) mod source;
pub(crate) mod tunnel;
pub(crate) mod verdict;

use std::error::Error;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, SystemTime};

use catamaran_balance::affinity::{self, BackendOut, Outcome};
use catamaran_message::{BodyLength, RequestHead};
use catamaran_upstream::{Culprit, LastFailure, Lease, LeaseError, Leasing, Reuse};
use downstream::Downstream;
use elsewhere::Elsewhere;
use failure::{Causes, Failed, Failure, Stopped};
use guards::Guard;
use http::{HeaderValue, StatusCode, Version};
use logged::LoggedRequest;
use outgoing::Outgoing;
use pages::{MAINTENANCE, Pages};
use passage::{Asked, Passage};
use scene::Scene;
use source::{Answer, Leased, Source};
use tokio::time::Instant;
use verdict::Decision;

use crate::access_log::{Record, SessionLine};
use crate::boxed::boxed;
use crate::client::ClientError;
use crate::config::{BackendConfig, ErrorPages, QueryForm};
use crate::control::events::Kind;
use crate::exchange::id::RequestId;
use crate::exchange::relay::{Progress, Relay, RelayError, Terms};
use crate::exchange::retry::{Attempt, Retry, Stage};
use crate::site::rules::Rules;
use crate::site::{Choice, Member, Site, Upstream};
use crate::worker::counters::Reason;
use crate::worker::deadlines::Tick;
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

/// One exchange: the values for its log line.
struct Exchange<'a> {
    scene: Scene<'a>,
    id: RequestId,
    /// What administrators see of it while it lasts.
    seen: Option<Seen<'a>>,
    began: Instant,
    began_tick: Tick,
    /// Who the client is, as far as that is known.
    client_ip: IpAddr,
    progress: Progress,
    /// What the route changes, if it changes anything.
    passage: Option<Box<Passage<'a>>>,
    /// The tunnel that the request asks for, if the route allows it.
    tunnel: Option<Box<tunnel::Wanted<'a>>>,
    /// What the log says of the request, if there is a log.
    logged: Option<Box<LoggedRequest>>,
    upstream: Option<&'a Upstream>,
    member: Option<&'a Member>,
    /// The member of the first attempt.
    first_member: Option<&'a Member>,
    /// What became of the session, if sessions are kept.
    sticky: Option<Outcome>,
    /// The route of the session id that decided, for the log.
    session_route: Option<Box<[u8]>>,
    /// Pages of the operator's own.
    pages: Pages<'a>,
    /// The id that a trusted proxy gave the request. Most have none.
    given_id: Option<Box<HeaderValue>>,
    attempts: u32,
    reason: Option<Reason>,
    /// The status in the log if the client left and no status was sent.
    unsent: Option<StatusCode>,
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
    let mut exchange = Exchange::new(scene, site.error_pages.as_deref());
    let is_logged = worker.access_log().is_on();
    exchange.logged = is_logged.then(|| Box::new(LoggedRequest::new(&head)));
    let in_flight = worker.in_flight();
    exchange.seen = in_flight.map(|it| it.begin(exchange.id, exchange.began_tick, &head));
    exchange.progress.body_complete = head.body == BodyLength::Known(0);
    let after = match exchange.run(&site, down, head).await {
        Ok(after) => after,
        Err(stopped) => Box::pin(exchange.end(&site, down, stopped)).await,
    };
    exchange.account(down);
    after
}

/// Answers a request whose head was refused or did not come in time. The connection is to be
/// closed.
pub(crate) async fn refuse(scene: Scene<'_>, down: &mut Downstream<'_>, failure: Failure) -> After {
    let site = scene.worker.site();
    let mut exchange = Exchange::new(scene, site.error_pages.as_deref());
    let after = exchange.fail(down, failure).await;
    exchange.account(down);
    after
}

impl<'a> Exchange<'a> {
    fn new(scene: Scene<'a>, pages: Option<&'a ErrorPages>) -> Self {
        let id = scene.worker.next_id();
        Self {
            scene,
            id,
            pages: Pages::new(pages, id),
            seen: None,
            began: scene.measured(),
            began_tick: scene.now(),
            client_ip: scene.peer.remote.ip(),
            progress: Progress::default(),
            passage: None,
            tunnel: None,
            logged: None,
            upstream: None,
            member: None,
            first_member: None,
            sticky: None,
            session_route: None,
            given_id: None,
            attempts: 0,
            reason: None,
            unsent: None,
        }
    }

    /// Everything up to the last byte of a backend's response.
    async fn run(
        &mut self,
        site: &'a Site,
        down: &mut Downstream<'_>,
        mut head: Box<RequestHead>,
    ) -> Result<After, Stopped<'a>> {
        let scene = self.scene;
        let verdict = verdict::decide(site, scene.listener, scene.peer, &mut head)?;
        let (upstream, path, rules) = match verdict.into_forward() {
            Ok(forward) => forward,
            Err((decision, rules)) => return Err(Stopped::Decided(decision, rules, head)),
        };
        self.pages.prefer(rules.and_then(Rules::error_pages));
        self.upstream = Some(upstream);
        upstream.retry_budget.request(self.scene.worker.index());
        if self.scene.listener.query == QueryForm::Escaped {
            head.target.escape_query();
        }
        self.tunnel = rules.and_then(|rules| rules.tunnel(&head)).map(Box::new);
        let (worker, peer) = (scene.worker, scene.peer);
        let token = self.tunnel.as_ref().map(|tunnel| tunnel.token);
        let count = |reason| worker.counters().reason(reason);
        let (mut outgoing, given_id) =
            Outgoing::new(count, (site, upstream, self.id), peer, (head, path), token)?;
        self.client_ip = outgoing.identity.ip;
        self.given_id = given_id.map(Box::new);
        self.passage = rules.map(|rules| outgoing.pass(rules, self.id));
        // Boxed by itself: a box of at most a kilobyte comes from a free list of the allocator's. Both
        // boxes, this one and that around it, are kept below (tests of their sizes).
        let served = boxed(|| self.try_backends(upstream, down, &outgoing)).await;
        if let Some(wanted) = self.tunnel.take()
            && let Some(backend) = wanted.opened
        {
            drop(outgoing);
            Box::pin(self.run_tunnel(down, backend, wanted.idle)).await;
            return Ok(After::Cut);
        }
        down.recycle(outgoing.into_head());
        served?;
        Ok(After::Done)
    }

    /// What follows if no backend gave the response.
    async fn end(
        &mut self,
        site: &'a Site,
        down: &mut Downstream<'_>,
        stopped: Stopped<'a>,
    ) -> After {
        let failure = match stopped {
            Stopped::Failed(failure) => failure,
            Stopped::Decided(decision, rules, head) => {
                self.pages.prefer(rules.and_then(Rules::error_pages));
                let answer = self.answer_decided(down, (site, rules), head, *decision);
                match answer.await {
                    Ok(after) => return after,
                    Err(failure) => failure,
                }
            }
        };
        self.fail(down, failure).await
    }

    /// Attempts the exchange on one backend after the other, as far as a retry is safe.
    async fn try_backends(
        &mut self,
        upstream: &'a Upstream,
        down: &mut Downstream<'_>,
        outgoing: &Outgoing<'_>,
    ) -> Result<(), Failure> {
        let rules = self.passage.as_ref().map(|passage| passage.rules);
        let retries = rules.and_then(Rules::retries).unwrap_or(upstream.retries);
        let mut tried = rules.map_or_else(Vec::new, |rules| rules.stopped().to_vec());
        let mut choice = self.choose((upstream, rules), &tried, outgoing)?;
        let (mut fresh, mut refusals) = (false, 0);
        loop {
            let index = choice.member;
            let held = choice.decision.is_some_and(|decision| decision.held);
            let member = &upstream.members[index];
            self.member = Some(member);
            self.first_member.get_or_insert(member);
            self.attempts += 1;
            let attempts_left = (retries + 1 + refusals).saturating_sub(self.attempts);
            let elsewhere = Elsewhere {
                upstream,
                tried: &tried,
                present: index,
                method: outgoing.method_for_retry(),
                attempts_left,
                held,
            };
            let failed = match self
                .attempt((&choice, elsewhere), fresh, down, outgoing)
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
                method: outgoing.method_for_retry(),
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
                choice = self.choose((upstream, rules), &tried, outgoing)?;
            }
        }
    }

    /// Chooses the backend of the next attempt, or says why there is none.
    fn choose<'o>(
        &mut self,
        (upstream, rules): (&'o Upstream, Option<&'o Rules>),
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
                self.session_route = self.scene.worker.access_log().is_on().then(|| route.into());
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
        if decision.excess && self.sticky.is_none() {
            let reason = Reason::new(Culprit::Client, "sticky-values-max");
            self.scene.worker.counters().reason(reason);
        }
        self.sticky = Some(decision.outcome);
        let logged = decision
            .route
            .filter(|_| self.scene.worker.access_log().is_on());
        self.session_route = logged.map(Into::into);
    }

    /// When an attempt begins. The first begins with the head.
    fn now(&self) -> Instant {
        if self.attempts <= 1 {
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
        if let Some(member) = self.member {
            let figures = member.backend.figures();
            figures.retried(self.scene.worker.index());
        }
        if stage == Stage::Undelivered {
            counters.reason(Reason::new(Culprit::Backend, "undelivered"));
        }
        tracing::info!(request = %self.id, ?decision, ?stage, %reason, "retry");
    }

    /// One attempt on one backend.
    async fn attempt(
        &mut self,
        (choice, elsewhere): (&Choice<'_>, Elsewhere<'_>),
        fresh: bool,
        down: &mut Downstream<'_>,
        outgoing: &Outgoing<'_>,
    ) -> Result<(), Failed> {
        let worker = self.scene.worker.index();
        let now = self.now();
        let reuse = match outgoing.method().is_idempotent() {
            _ if fresh => Reuse::Never,
            true => Reuse::Any,
            false => Reuse::Lasting,
        };
        let upstream = elsewhere.upstream;
        let member = &upstream.members[choice.member];
        let Member {
            backend, settings, ..
        } = member;
        backend.figures().attempt(worker);
        if let Some(seen) = &self.seen {
            seen.attempt(backend.number());
        }
        let leasing = self.begin_lease(member, reuse, now)?;
        let leased = match leasing {
            Leasing::Done(lease) => Ok(Ok(lease)),
            Leasing::Waiting(leasing) => lease_unless_left(leasing, self.scene, down).await,
        };
        let left = |error| {
            let failed = Failed::unsent(Failure::from_client(&error));
            self.reported(member, failed, &error)
        };
        let unleased = |error| self.reported(member, Failed::from_lease(&error), &error);
        let mut lease = leased.map_err(left)?.map_err(unleased)?;
        if let Some(logged) = &mut self.logged {
            logged.leased = Some(Instant::now());
        }
        if let Err(error) = outgoing.send(&mut lease, settings, upstream.tell(choice)) {
            lease.finish(now);
            let failed = Failed::unsent(Failure::from_request(&error));
            return Err(self.reported(member, failed, &error));
        }
        let terms = self.terms(outgoing, settings);
        if let Some(seen) = &self.seen {
            seen.enter(match terms.body {
                BodyLength::Known(0) => Phase::Waiting,
                _ => Phase::Sending,
            });
        }
        let source = Source::Backend(Leased {
            lease: &mut lease,
            config: settings,
            elsewhere,
            cookie: upstream.cookie(choice, outgoing.identity.secure),
            seen: self.seen.as_ref(),
            passage: self.passage.as_deref(),
            pages: self.pages.replacing(),
        });
        let relayed = Relay::new(self.scene, down, source, terms, &mut self.progress)
            .run()
            .await;
        self.note_response(member, now, relayed.as_ref().err());
        match relayed {
            Ok(()) if self.progress.upgraded => {
                if let Some(wanted) = &mut self.tunnel {
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

    /// Begins to lease a connection: for a tunnel one of its own.
    fn begin_lease<'m>(
        &self,
        member: &'m Member,
        reuse: Reuse,
        now: Instant,
    ) -> Result<Leasing<'m>, Failed> {
        let Member {
            backend, settings, ..
        } = member;
        let worker = self.scene.worker.index();
        match &self.tunnel {
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
    ) -> Failed {
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
        failed
    }

    fn terms(&self, outgoing: &Outgoing<'_>, backend: &BackendConfig) -> Terms {
        Terms {
            version: outgoing.version(),
            body: outgoing.body(),
            expect_continue: outgoing.expect_continue(),
            deadline: backend
                .exchange_timeout
                .map_or(Tick::NEVER, |limit| self.began_tick + limit),
            timed: self.scene.worker.access_log().is_on() || self.scene.worker.keeps_times(),
        }
    }

    /// An attempt that failed before its relay began, counted and logged.
    fn reported(&self, member: &Member, failed: Failed, error: &dyn Error) -> Failed {
        self.report(member, &failed, error);
        failed
    }

    /// Counts a failed attempt, and logs it for the operator unless the client caused it.
    fn report(&self, member: &Member, failed: &Failed, error: &dyn Error) {
        let (upstream, backend) = (member.backend.upstream(), member.name());
        let (request, reason, causes) = (self.id, failed.failure.reason, Causes(error));
        let figures = member.backend.figures();
        let counted = (reason.culprit(), reason.token());
        if reason.is_client() {
            tracing::debug!(%request, upstream, backend, %reason, "{causes}");
            figures.failed(counted);
        } else {
            tracing::warn!(%request, upstream, backend, %reason, "{causes}");
            figures.failed_as(LastFailure {
                at: SystemTime::now(),
                reason: counted,
                stage: failed.stage.token(),
                request: request.to_string(),
                detail: causes.to_string(),
            });
            let text = format!("{reason}: {causes} (request {request})");
            let events = self.scene.worker.events();
            events.push(Kind::Failure, upstream, backend, text);
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
        self.answer(down, Version::HTTP_11, failure.status).await
    }

    /// Answers as the route table says.
    async fn answer_decided(
        &mut self,
        down: &mut Downstream<'_>,
        (site, rules): (&Site, Option<&'a Rules>),
        head: Box<RequestHead>,
        decision: Decision<'_>,
    ) -> Result<After, Failure> {
        let asked = Asked::new(&site.server, self.scene.peer, &head);
        self.client_ip = asked.client;
        let values = asked.values(self.id, &head);
        self.passage = rules.map(|rules| Box::new(Passage::new(rules, values)));
        let (version, id) = (head.version, self.id);
        let (answer, token) = match decision {
            Decision::Answer(status, token) => (self.page(status), token),
            Decision::Refuse(guard) => (self.page(Guard::STATUS), guard.token()),
            Decision::Redirect(redirection) => {
                let location = redirection.location(values).ok_or_else(|| {
                    let status = StatusCode::INTERNAL_SERVER_ERROR;
                    Failure::new(Culprit::Front, status, "redirect-loop")
                })?;
                let status = redirection.to.status;
                (Answer::redirect(status, location, id), "route-redirect")
            }
            Decision::Https(location) => {
                let status = StatusCode::PERMANENT_REDIRECT;
                (Answer::redirect(status, location, id), "redirect-https")
            }
            Decision::Challenge(file) => match secured::read_challenge(file).await {
                Some(bytes) => (Answer::text(bytes), "acme-challenge"),
                None => (self.page(StatusCode::NOT_FOUND), "acme-token"),
            },
            // Not decided here.
            Decision::Forward(..) => (self.page(StatusCode::NOT_FOUND), "no-route"),
        };
        let reason = Reason::new(Culprit::Client, token);
        self.scene.worker.count(reason);
        self.reason = Some(reason);
        Ok(self.send(down, version, answer).await)
    }

    /// The page of a status, which the operator may have written.
    fn page(&self, status: StatusCode) -> Answer {
        let count = |reason| self.scene.worker.count(reason);
        Answer::new(status, self.pages.answer(status, self.reason, count))
    }

    /// Sends a page of ours.
    async fn answer(
        &mut self,
        down: &mut Downstream<'_>,
        version: Version,
        status: StatusCode,
    ) -> After {
        self.send(down, version, self.page(status)).await
    }

    /// Sends an answer of ours, changed as the route wants.
    async fn send(
        &mut self,
        down: &mut Downstream<'_>,
        version: Version,
        mut answer: Answer,
    ) -> After {
        if let Some(passage) = &self.passage {
            passage.edit(answer.headers_mut());
        }
        let status = answer.status();
        if !self.progress.body_complete {
            down.abandon_upload();
        }
        let source = Source::Answer(answer);
        let terms = Terms {
            version,
            body: BodyLength::Known(0),
            expect_continue: false,
            deadline: Tick::NEVER,
            timed: false,
        };
        let relayed = Relay::new(self.scene, down, source, terms, &mut self.progress)
            .run()
            .await;
        match relayed {
            Err(_) => After::Cut,
            Ok(()) if status == StatusCode::REQUEST_TIMEOUT => After::Late,
            Ok(()) => After::Done,
        }
    }

    /// The status that was sent to the client, or the one for the log.
    fn logged_status(&self) -> Option<StatusCode> {
        self.progress.status.or(self.unsent)
    }

    /// Counts the exchange and writes its line.
    fn account(&self, down: &Downstream<'_>) {
        self.scene.worker.counters().response(self.progress.status);
        if let Some(outcome) = self.sticky {
            self.scene.worker.counters().sticky(outcome);
            if let Some(member) = self.member {
                let worker = self.scene.worker.index();
                member.backend.figures().sticky(worker, outcome);
            }
        }
        let log = self.scene.worker.access_log();
        if !log.is_on() {
            return;
        }
        let since = |at: Instant| at.saturating_duration_since(self.began);
        let request = self.logged.as_deref();
        let ended = request.and_then(|it| it.ended);
        let record = Record {
            ended: SystemTime::now(),
            id: self.id,
            given_id: self.given_id.as_deref(),
            client: self.client_ip,
            request: request.map(LoggedRequest::line),
            status: self.logged_status().map(|status| status.as_u16()),
            received: self.progress.received,
            sent: if self.progress.status.is_some() {
                down.sent()
            } else {
                0
            },
            upstream: self.upstream.map(|upstream| upstream.name.as_str()),
            backend: self.member.map(Member::name),
            session: self.sticky.map(|outcome| SessionLine {
                outcome,
                route: self.session_route.as_deref(),
                first_backend: self.first_member.map(Member::name),
            }),
            attempts: self.attempts,
            lease: request.and_then(|it| it.leased).map(since),
            upload: self.progress.uploaded_at.map(since),
            first_byte: self.progress.head_at.map(since),
            total: since(ended.unwrap_or_else(Instant::now)),
            reason: self.reason,
            protocol: down.protocol(),
            stream: down.stream(),
            tls: self.scene.peer.tls.as_deref().map(|session| &session.facts),
        };
        log.write(self.scene.worker.index(), &record);
    }
}

/// Waits for a connection to a backend. If the client leaves, its place in the queue is freed, or the
/// dial is cancelled.
async fn lease_unless_left<'b>(
    mut leasing: impl Future<Output = Result<Lease<'b>, LeaseError>> + Unpin,
    scene: Scene<'_>,
    down: &mut Downstream<'_>,
) -> Result<Result<Lease<'b>, LeaseError>, ClientError> {
    poll_fn(|cx| {
        if let Poll::Ready(leased) = Pin::new(&mut leasing).poll(cx) {
            return Poll::Ready(Ok(leased));
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

    /// The allocator's fast path ends at a kilobyte.
    #[test]
    fn an_exchange_is_small() {
        let attempts = size_of_future(Exchange::try_backends);
        assert!(attempts <= 1024, "{attempts} bytes");
        let around = size_of_future(Exchange::run);
        assert!(around <= 512, "{around} bytes");
    }
}
