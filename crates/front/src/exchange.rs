//! The life of a request, from its head to its log line.
//!
//! route → clean → (pick → lease → send → relay) → account. All branching on what may go wrong is
//! here; each step is straight-line elsewhere. A failed attempt asks [`crate::exchange::retry`] what may be
//! done; a failed exchange is answered with a page of our own if no response was begun, and cut
//! visibly if one was.

pub(crate) mod elsewhere;
pub(crate) mod failure;
pub(crate) mod forwarded;
pub(crate) mod header;
pub(crate) mod id;
mod logged;
mod outgoing;
pub(crate) mod relay;
pub(crate) mod replay;
pub(crate) mod respond;
pub(crate) mod retry;

use std::error::Error;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, SystemTime};

use catamaran_message::{BodyLength, RequestHead, Response, Scheme};
use catamaran_upstream::{Culprit, Lease, LeaseError, Reuse};
use http::{Method, StatusCode};
use tokio::time::Instant;

use crate::access_log::Record;
use crate::client::{ClientConn, ClientError};
use crate::config::{BackendConfig, ListenerConfig, QueryForm};
use crate::exchange::id::RequestId;
use crate::exchange::relay::{Progress, Relay, Terms};
use crate::exchange::retry::{Attempt, Retry, Stage};
use crate::site::path::{self, NormalPath, PathFault};
use crate::site::route::Action;
use crate::site::{Member, Site, Upstream};
use crate::worker::Worker;
use crate::worker::counters::Reason;
use crate::worker::deadlines::Tick;
use elsewhere::Elsewhere;
use failure::{Failed, Failure};
use logged::LoggedRequest;
use outgoing::Outgoing;

/// What becomes of the client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// The response was sent. The next request may follow if framing allows it; part of this
    /// one's body may have to be discarded first.
    Done,
    /// As [`After::Done`], but the client was too slow: it is not waited for much longer.
    Late,
    /// It is closed at once, so that the client notices that something is missing.
    Cut,
}

/// One exchange: what its log line will tell.
struct Exchange<'a> {
    worker: &'a Worker,
    listener: &'a ListenerConfig,
    id: RequestId,
    began: Instant,
    began_tick: Tick,
    /// Who the client is, as far as that is known.
    client_ip: IpAddr,
    progress: Progress,
    upstream: Option<&'a Upstream>,
    member: Option<&'a Member>,
    attempts: u32,
    leased: Option<Instant>,
    ended: Option<Instant>,
    reason: Option<Reason>,
    /// What the log has for a status, if the client left and was sent none.
    unsent: Option<StatusCode>,
}

/// Serves one request whose head has arrived.
///
/// # Cancel safety
/// The client's connection is left in the middle of messages and must be closed.
pub(crate) async fn serve(
    worker: &Worker,
    listener: &ListenerConfig,
    client: &mut ClientConn,
    head: Box<RequestHead>,
) -> After {
    worker.counters().request();
    let site = worker.site();
    let logged = worker
        .access_log()
        .is_on()
        .then(|| Box::new(LoggedRequest::new(&head)));
    let mut exchange = Exchange::new(worker, listener, client);
    exchange.progress.body_complete = head.body == BodyLength::Known(0);
    let after = match exchange.run(&site, client, head).await {
        Ok(()) => After::Done,
        Err(failure) => Box::pin(exchange.fail(client, failure)).await,
    };
    exchange.account(client, logged.as_deref());
    after
}

/// Answers a request whose head was refused or did not come in time. The connection is to be
/// closed.
pub(crate) async fn refuse(
    worker: &Worker,
    listener: &ListenerConfig,
    client: &mut ClientConn,
    failure: Failure,
) -> After {
    let mut exchange = Exchange::new(worker, listener, client);
    let after = exchange.fail(client, failure).await;
    exchange.account(client, None);
    after
}

impl<'a> Exchange<'a> {
    fn new(worker: &'a Worker, listener: &'a ListenerConfig, client: &ClientConn) -> Self {
        Self {
            worker,
            listener,
            id: worker.next_id(),
            began: clock(worker, client),
            began_tick: client.watched().now(),
            client_ip: client.remote().ip(),
            progress: Progress::default(),
            upstream: None,
            member: None,
            attempts: 0,
            leased: None,
            ended: None,
            reason: None,
            unsent: None,
        }
    }

    /// Everything up to the last byte of a backend's response.
    async fn run(
        &mut self,
        site: &'a Site,
        client: &mut ClientConn,
        mut head: Box<RequestHead>,
    ) -> Result<(), Failure> {
        if head.method == Method::TRACE {
            // It would send the fields of the request back to a script (RFC 9110, section 9.3.8).
            return Err(Failure::answer(
                StatusCode::METHOD_NOT_ALLOWED,
                "method-trace",
            ));
        }
        if head.method == Method::OPTIONS && !header::count_forwards(&mut head.headers) {
            return Err(Failure::answer(StatusCode::NO_CONTENT, "max-forwards"));
        }
        let (upstream, path) = self.route(site, &head)?;
        self.upstream = Some(upstream);
        upstream.retry_budget.request(self.worker.index());
        if self.listener.query == QueryForm::Escaped {
            head.target.escape_query();
        }
        let outgoing = Outgoing::new(self.worker, (site, upstream), client, head, path)?;
        self.client_ip = outgoing.identity.ip;
        let served = self.try_backends(upstream, client, &outgoing).await;
        client.recycle(outgoing.into_head());
        served
    }

    /// Decides where the request goes, or why nowhere.
    fn route(
        &self,
        site: &'a Site,
        head: &RequestHead,
    ) -> Result<(&'a Upstream, NormalPath), Failure> {
        if head.target.scheme == Some(Scheme::Https) {
            // On a connection without TLS (RFC 9110, section 7.4).
            return Err(Failure::client(
                StatusCode::MISDIRECTED_REQUEST,
                "scheme-mismatch",
            ));
        }
        if let (BodyLength::Known(length), Some(max)) = (head.body, self.listener.body_max)
            && length > max
        {
            return Err(Failure::client(
                StatusCode::PAYLOAD_TOO_LARGE,
                "body-too-large",
            ));
        }
        let refused = |fault: PathFault| Failure::client(StatusCode::BAD_REQUEST, fault.token());
        let path = path::normalise(&head.target.path).map_err(refused)?;
        let host = head.authority.as_ref().map(|authority| &authority.host[..]);
        match site.routes.decide(host, &path).map_err(refused)? {
            Some(Action::Upstream(index)) => Ok((&site.upstreams[index], path)),
            Some(Action::Status(status)) => Err(Failure::answer(status, "route-status")),
            None => Err(Failure::answer(StatusCode::NOT_FOUND, "no-route")),
        }
    }

    /// Attempts the exchange on one backend after the other, as far as that is safe.
    async fn try_backends(
        &mut self,
        upstream: &'a Upstream,
        client: &mut ClientConn,
        outgoing: &Outgoing,
    ) -> Result<(), Failure> {
        let mut tried = Vec::new();
        let mut fresh = None;
        loop {
            let pick = || upstream.pick(self.worker.index(), &tried, self.now());
            let Some(index) = fresh.or_else(pick) else {
                let status = StatusCode::SERVICE_UNAVAILABLE;
                return Err(Failure::new(Culprit::Front, status, "no-backend"));
            };
            let member = &upstream.members[index];
            self.member = Some(member);
            self.attempts += 1;
            let attempts_left = (upstream.retries + 1).saturating_sub(self.attempts);
            let elsewhere = Elsewhere {
                upstream,
                tried: &tried,
                method: outgoing.method(),
                attempts_left,
            };
            let failed = match self
                .attempt((member, elsewhere), fresh.is_some(), client, outgoing)
                .await
            {
                Ok(()) => return Ok(()),
                Err(failed) => failed,
            };
            if !tried.contains(&index) {
                tried.push(index);
            }
            let decision = retry::decide(&Attempt {
                stage: failed.stage,
                method: outgoing.method(),
                replayable: self.progress.replay.has_all(self.progress.received),
                disconnected: failed.disconnected,
                backend_out: failed.backend_out,
                dial_timed_out: failed.dial_timed_out,
                reused: failed.reused,
                attempts_left,
                others: upstream.has_others(&tried),
                blameless: failed.failure.reason.is_client(),
            });
            fresh = match decision {
                Retry::No => return Err(failed.failure),
                Retry::Fresh => Some(index),
                Retry::Other => None,
            };
            if !upstream.retry_budget.retry() {
                let reason = Reason::new(Culprit::Front, "retry-budget");
                self.worker.counters().reason(reason);
                return Err(failed.failure);
            }
            self.account_retry(&failed, decision);
        }
    }

    /// When an attempt begins. The first follows at once upon the head.
    fn now(&self) -> Instant {
        if self.attempts <= 1 {
            self.began
        } else {
            Instant::now()
        }
    }

    fn account_retry(&self, failed: &Failed, decision: Retry) {
        let (stage, reason) = (failed.stage, failed.failure.reason);
        let counters = self.worker.counters();
        counters.retry();
        counters.reason(reason);
        if stage == Stage::Undelivered {
            counters.reason(Reason::new(Culprit::Backend, "undelivered"));
        }
        tracing::info!(request = %self.id, ?decision, ?stage, %reason, "retry");
    }

    /// One attempt on one backend.
    async fn attempt(
        &mut self,
        (member, elsewhere): (&'a Member, Elsewhere<'_>),
        fresh: bool,
        client: &mut ClientConn,
        outgoing: &Outgoing,
    ) -> Result<(), Failed> {
        let worker = self.worker.index();
        let now = self.now();
        let reuse = match outgoing.method().is_idempotent() {
            _ if fresh => Reuse::Never,
            true => Reuse::Any,
            false => Reuse::Lasting,
        };
        let Member { backend, settings } = member;
        let leasing = backend.lease(settings, worker, reuse, now);
        let leased = lease_unless_left(leasing, client).await.map_err(|error| {
            let failed = Failed::unsent(Failure::gone());
            self.report(member, failed.failure, &error);
            failed
        })?;
        let mut lease = leased.map_err(|error| {
            let failed = Failed::from_lease(&error);
            self.report(member, failed.failure, &error);
            failed
        })?;
        self.leased = self.worker.access_log().is_on().then(Instant::now);
        if let Err(error) = outgoing.send(&mut lease, settings) {
            lease.finish(now);
            let failed = Failed::unsent(Failure::from_request(&error));
            self.report(member, failed.failure, &error);
            return Err(failed);
        }
        let terms = self.terms(outgoing, settings, elsewhere);
        let relayed = Relay::new(client, &mut lease, terms, &mut self.progress)
            .run()
            .await;
        let Err(error) = relayed else {
            let now = clock(self.worker, client);
            if self.progress.status == Some(StatusCode::FORBIDDEN)
                && !lease.is_reused()
                && !lease.is_reusable()
            {
                backend.note_refusal();
            }
            lease.finish(now);
            self.ended = Some(now);
            return Ok(());
        };
        let failed = Failed::from_relay(&error, &self.progress, &lease);
        self.report(member, failed.failure, &error);
        if failed.failure.is_gone() {
            client.leave_behind(lease);
        } else {
            lease.abort();
        }
        if failed.failure.reason.culprit() == Culprit::Backend {
            backend.verify();
        }
        Err(failed)
    }

    fn terms<'t>(
        &self,
        outgoing: &Outgoing,
        backend: &'t BackendConfig,
        elsewhere: Elsewhere<'t>,
    ) -> Terms<'t>
    where
        'a: 't,
    {
        Terms {
            elsewhere,
            listener: self.listener,
            backend,
            version: outgoing.version(),
            body: outgoing.body(),
            expect_continue: outgoing.expect_continue(),
            deadline: backend
                .exchange_timeout
                .map_or(Tick::NEVER, |limit| self.began_tick + limit),
            timed: self.worker.access_log().is_on(),
        }
    }

    /// Tells the operator what happened to an attempt. What clients do is their own affair.
    fn report(&self, member: &Member, failure: Failure, error: &dyn Error) {
        let (upstream, backend) = (member.backend.upstream(), member.name());
        let (request, reason, causes) = (self.id, failure.reason, Causes(error));
        if reason.is_client() {
            tracing::debug!(%request, upstream, backend, %reason, "{causes}");
        } else {
            tracing::warn!(%request, upstream, backend, %reason, "{causes}");
        }
    }

    /// A failed exchange: a page if no response was begun, a visible cut otherwise.
    async fn fail(&mut self, client: &mut ClientConn, failure: Failure) -> After {
        self.worker.counters().reason(failure.reason);
        self.reason = Some(failure.reason);
        if self.progress.status.is_some() {
            // What the backend did send is worth having; the rest is missing, and seen to be.
            let limit = match failure.is_gone() {
                true => Duration::ZERO,
                false => self.listener.write_timeout,
            };
            client.give_up(limit).await;
            return After::Cut;
        }
        if failure.client_gone {
            self.unsent = failure.is_gone().then_some(failure.status);
            return After::Cut;
        }
        let is_fault = failure.reason.is_client() && !failure.is_answer;
        if is_fault || !self.progress.body_complete {
            client.close_after();
        }
        let page = respond::page(failure.status, self.id);
        let fields = respond::fields(failure.status, self.id);
        let head = Response {
            status: failure.status,
            reason: None,
            headers: &fields,
            extra: &[],
            body: BodyLength::Known(page.len() as u64),
        };
        if client.send_head(&head).is_err() {
            return After::Cut;
        }
        self.progress.status = Some(failure.status);
        client.send_data(page.into());
        let ended = client.send_end();
        if !client.flush(self.listener.write_timeout).await || ended.is_err() {
            After::Cut
        } else if failure.status == StatusCode::REQUEST_TIMEOUT {
            After::Late
        } else {
            After::Done
        }
    }

    /// The status that the client was sent, or what the log has in its place.
    fn logged_status(&self) -> Option<StatusCode> {
        self.progress.status.or(self.unsent)
    }

    /// Counts the exchange and writes its line.
    fn account(&self, client: &ClientConn, request: Option<&LoggedRequest>) {
        self.worker.counters().response(self.progress.status);
        let log = self.worker.access_log();
        if !log.is_on() {
            return;
        }
        let since = |at: Instant| at.saturating_duration_since(self.began);
        let record = Record {
            ended: SystemTime::now(),
            id: self.id,
            client: self.client_ip,
            request: request.map(LoggedRequest::line),
            status: self.logged_status().map(|status| status.as_u16()),
            received: self.progress.received,
            sent: if self.progress.status.is_some() {
                client.sent()
            } else {
                0
            },
            upstream: self.upstream.map(|upstream| upstream.name.as_str()),
            backend: self.member.map(Member::name),
            attempts: self.attempts,
            lease: self.leased.map(since),
            first_byte: self.progress.head_at.map(since),
            total: since(self.ended.unwrap_or_else(Instant::now)),
            reason: self.reason,
        };
        log.write(self.worker.index(), &record);
    }
}

/// Waits for a connection to a backend, unless the client leaves: then its place in the queue is
/// left, or the dial given up.
async fn lease_unless_left(
    leasing: impl Future<Output = Result<Lease, LeaseError>>,
    client: &mut ClientConn,
) -> Result<Result<Lease, LeaseError>, ClientError> {
    let mut leasing = pin!(leasing);
    poll_fn(|cx| {
        if let Poll::Ready(leased) = leasing.as_mut().poll(cx) {
            return Poll::Ready(Ok(leased));
        }
        match client.poll_left(cx) {
            Ok(look_again) => {
                client.watched().set(look_again.unwrap_or(Tick::NEVER));
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    })
    .await
}

/// The time: to the point if it will be written to the log, else by the coarse clock, which does for
/// the age of connections and costs nothing.
fn clock(worker: &Worker, client: &ClientConn) -> Instant {
    match worker.access_log().is_on() {
        true => Instant::now(),
        false => client.watched().instant(),
    }
}

/// An error and what caused it, on one line.
struct Causes<'a>(&'a dyn Error);

impl std::fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(cause) = source {
            write!(f, ": {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}
