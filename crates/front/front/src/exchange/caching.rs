//! An exchange on a route with a cache: an answer from memory, from what another request fetches, or from a
//! backend.
//!
//! What may be stored is fetched by a task of its own ([`crate::exchange::fetch`]), which no client's leaving
//! ends; all that want it read it as it comes. So nobody waits for a slow client. A request whose response is
//! likely for itself alone goes to a backend as it would without a cache, and is stored beside if it may be.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use catamaran_cache::storable::RequestScope;
use catamaran_cache::verdict::{StaleUse, Verdict};
use catamaran_cache::{Millis, vary};
use catamaran_message::name::{ETAG, LAST_MODIFIED, RANGE};
use catamaran_upstream::Culprit;
use http::{Method, StatusCode};

use crate::access_log::CacheLine;
use crate::boxed::{boxed, in_box};
use crate::cache::counts::CacheResult;
use crate::cache::fill::{Fill, FillFailure, FillReader};
use crate::cache::hot::WorkerEntry;
use crate::cache::object::Object;
use crate::cache::store::{Entry, Flight, Found};
use crate::cache::{self, Cache};
use crate::exchange::Exchange;
use crate::exchange::cache_hook::{CacheHook, Invalidation, Tee, TeeRequest, millis};
use crate::exchange::cache_request::CacheRequest;
use crate::exchange::downstream::Downstream;
use crate::exchange::failure::Failure;
use crate::exchange::fetch::{self, FetchOrder};
use crate::exchange::outgoing::Outgoing;
use crate::exchange::relay::RelayError;
use crate::exchange::source::cached::{CacheOutcome, CachedError, CachedSource};
use crate::exchange::source::{Source, SourceError};
use crate::site::Upstream;

/// A request, what is known of its key, and what is done with it.
pub(super) struct RequestPlan<'a> {
    request: Box<CacheRequest<'a>>,
    entry: Option<Arc<WorkerEntry>>,
    plan: Plan,
    now: Millis,
}

/// What is done with a request.
enum Plan {
    /// It is answered with what is stored.
    Serve(Found, CacheResult),
    /// It is answered with what is stored, which is stale and is fetched anew.
    Refresh(Found),
    /// A backend is asked for it alone; what comes is stored if it may be.
    Direct,
    /// It waits for what is fetched. A stale response may be there for when that fails.
    Await(Option<Found>),
    /// The client wants nothing but what is stored, and that is not there.
    Refuse,
    /// The cache has no part in it, for this reason.
    PassBy(&'static str),
}

/// A stored response that answers a request.
pub(super) struct Hit<'p, 'a> {
    request: &'p CacheRequest<'a>,
    entry: Option<&'p Entry>,
    found: &'p Found,
    result: CacheResult,
    now: Millis,
}

/// How a wait for a response ended.
enum Waited {
    Served,
    /// The client gets a response of its own.
    Alone,
    /// Somebody else is to fetch it.
    Again,
    Failed(Failure),
}

impl<'a> RequestPlan<'a> {
    /// What is done with a request of a route with a cache, on this worker.
    pub(super) fn new(
        request: Box<CacheRequest<'a>>,
        outgoing: &Outgoing<'_>,
        worker: usize,
    ) -> Self {
        let now = cache::now();
        let (entry, plan) = match request.bypass {
            Some(reason) => (None, Plan::PassBy(reason)),
            None => look_up(&request, outgoing, (worker, now)),
        };
        Self {
            request,
            entry,
            plan,
            now,
        }
    }

    /// What answers the request from memory, if that is all that is done.
    pub(super) fn hit(&self) -> Option<Hit<'_, 'a>> {
        match &self.plan {
            Plan::Serve(found, result) => Some(Hit {
                request: &self.request,
                entry: self.entry.as_deref().map(|entry| &**entry),
                found,
                result: *result,
                now: self.now,
            }),
            _ => None,
        }
    }
}

impl<'a> Exchange<'a> {
    /// Serves a request from memory alone.
    pub(super) async fn serve_hit(
        &mut self,
        down: &mut Downstream<'_>,
        outgoing: &Outgoing<'a>,
        hit: Hit<'_, 'a>,
    ) -> Result<(), Failure> {
        self.note_use(hit.request, hit.entry);
        let outcome = CacheOutcome::default();
        let of_cache = (hit.request, &outcome);
        let at = (hit.result, hit.now);
        let source = in_box(|| CachedSource::stored(of_cache, outgoing, hit.found, at));
        let source = Source::Cached(source);
        let served = self.serve_own(down, source).await;
        let age = outcome.get().map(|(_, age)| age);
        self.note_cache(hit.request.cache, hit.result, (None, age));
        served
    }

    /// Serves a request of a route with a cache.
    pub(super) async fn serve_cached(
        &mut self,
        upstream: &'a Upstream,
        down: &mut Downstream<'_>,
        outgoing: &Outgoing<'a>,
        planned: RequestPlan<'a>,
    ) -> Result<(), Failure> {
        let RequestPlan {
            request,
            entry,
            plan,
            ..
        } = planned;
        if let Plan::PassBy(reason) = plan {
            return boxed(|| self.pass_by(upstream, down, outgoing, (&request, reason))).await;
        }
        let stale = match self
            .serve_from_cache(upstream, down, outgoing, &request, entry, plan)
            .await
        {
            ControlFlow::Break(served) => return served,
            ControlFlow::Continue(stale) => stale,
        };
        let fetched = boxed(|| self.fetch_alone(upstream, down, outgoing, &request)).await;
        match (fetched, stale) {
            (Err(failure), Some(found))
                if self.progress.status.is_none() && !failure.client_gone =>
            {
                // It has no part in what was stored before.
                self.progress.hook = None;
                self.serve_stale(down, outgoing, &request, &found).await
            }
            (fetched, _) => fetched,
        }
    }

    /// Serves a request from memory, or from what is fetched for several. If it is to be fetched for itself
    /// alone, a stale response may be there for when that fails.
    async fn serve_from_cache(
        &mut self,
        upstream: &'a Upstream,
        down: &mut Downstream<'_>,
        outgoing: &Outgoing<'a>,
        request: &CacheRequest<'a>,
        mut entry: Option<Arc<WorkerEntry>>,
        mut plan: Plan,
    ) -> ControlFlow<Result<(), Failure>, Option<Found>> {
        let mut rounds = 0;
        loop {
            let known = entry.as_deref().map(|entry| &**entry);
            let stale = match plan {
                Plan::Serve(found, result) => {
                    let hit = Hit {
                        request,
                        entry: known,
                        found: &found,
                        result,
                        now: cache::now(),
                    };
                    return ControlFlow::Break(self.serve_hit(down, outgoing, hit).await);
                }
                Plan::Refresh(found) => {
                    self.note_use(request, known);
                    self.refresh(upstream, outgoing, request, known);
                    let served = self.serve_stale(down, outgoing, request, &found).await;
                    return ControlFlow::Break(served);
                }
                Plan::Refuse => return ControlFlow::Break(Err(self.refuse_fetch(request))),
                Plan::Direct | Plan::PassBy(_) => return ControlFlow::Continue(None),
                Plan::Await(stale) => stale,
            };
            let joined = self.join(upstream, outgoing, request, (known, stale.is_some()));
            let Some((leads, reader)) = joined else {
                return ControlFlow::Continue(stale);
            };
            let wait = (leads, reader, stale.as_ref());
            match (self.wait_for(down, outgoing, request, wait).await, stale) {
                (Waited::Served, _) => return ControlFlow::Break(Ok(())),
                (Waited::Failed(failure), _)
                    if self.progress.status.is_some() || failure.client_gone =>
                {
                    return ControlFlow::Break(Err(failure));
                }
                (Waited::Failed(_) | Waited::Again, Some(found)) => {
                    self.note_failure(request, known);
                    let served = self.serve_stale(down, outgoing, request, &found).await;
                    return ControlFlow::Break(served);
                }
                (Waited::Again, None) if rounds < ROUNDS_MAX => rounds += 1,
                (Waited::Failed(failure), None) => {
                    self.note_cache(request.cache, CacheResult::Miss, (None, None));
                    return ControlFlow::Break(Err(failure));
                }
                (Waited::Alone | Waited::Again, stale) => return ControlFlow::Continue(stale),
            }
            let worker = self.scene.worker.index();
            (entry, plan) = look_up(request, outgoing, (worker, cache::now()));
        }
    }

    /// What is stored for a key is of use.
    fn note_use(&self, request: &CacheRequest<'a>, entry: Option<&Entry>) {
        if let Some(entry) = entry {
            let store = &request.cache.store;
            store.note_use(self.scene.worker.index(), entry);
        }
    }

    /// Refuses to fetch for a client that wants nothing but what is stored.
    fn refuse_fetch(&mut self, request: &CacheRequest<'a>) -> Failure {
        let token = "only-if-cached";
        self.note_cache(request.cache, CacheResult::Miss, (Some(token), None));
        Failure::new(Culprit::Client, StatusCode::GATEWAY_TIMEOUT, token)
    }

    /// Leaves a request to the backends; a successful change drops what it has made invalid.
    async fn pass_by(
        &mut self,
        upstream: &'a Upstream,
        down: &mut Downstream<'_>,
        outgoing: &Outgoing<'a>,
        (request, reason): (&CacheRequest<'a>, &'static str),
    ) -> Result<(), Failure> {
        let cache = request.cache.clone();
        self.progress.hook = Some(Box::new(match request.changes {
            true => CacheHook::Invalidate(Invalidation {
                cache,
                key: request.key.clone(),
            }),
            false => CacheHook::Tell(cache, reason),
        }));
        self.note_cache(request.cache, CacheResult::Bypass, (Some(reason), None));
        upstream.retry_budget.request(self.scene.worker.index());
        self.try_backends(upstream, down, outgoing).await
    }

    /// Asks a backend for this client alone.
    async fn fetch_alone(
        &mut self,
        upstream: &'a Upstream,
        down: &mut Downstream<'_>,
        outgoing: &Outgoing<'a>,
        request: &CacheRequest<'a>,
    ) -> Result<(), Failure> {
        let scope = RequestScope::of(&outgoing.facts(None).head.headers);
        let about = tee_request(request, outgoing, outgoing.method().clone(), scope);
        let tee = Tee::beside(request.cache, request.key.clone(), about);
        self.progress.hook = Some(Box::new(CacheHook::Tee(tee)));
        upstream.retry_budget.request(self.scene.worker.index());
        let served = self.try_backends(upstream, down, outgoing).await;
        let refusal = self.progress.hook.as_ref().and_then(|hook| hook.refusal());
        let result = match refusal {
            None => CacheResult::Miss,
            Some(_) => CacheResult::Uncacheable,
        };
        self.note_cache(request.cache, result, (refusal, None));
        served
    }

    /// Sends what is stored and stale.
    async fn serve_stale(
        &mut self,
        down: &mut Downstream<'_>,
        outgoing: &Outgoing<'a>,
        request: &CacheRequest<'a>,
        found: &Found,
    ) -> Result<(), Failure> {
        let hit = Hit {
            request,
            entry: None,
            found,
            result: CacheResult::Stale,
            now: cache::now(),
        };
        self.serve_hit(down, outgoing, hit).await
    }

    /// A place among those who read what is fetched for a key; it is fetched from now on if it was not.
    /// `None` if too many wait.
    fn join(
        &self,
        upstream: &'a Upstream,
        outgoing: &Outgoing<'a>,
        request: &CacheRequest<'a>,
        (entry, has_stale): (Option<&Entry>, bool),
    ) -> Option<(bool, FillReader)> {
        let name = flight_name(request, entry, outgoing);
        let store = &request.cache.store;
        Some(
            match store.join(&name, request.cache.config.collapse_max)? {
                Flight::Follow(fill) => (false, fill.read(false)),
                Flight::Lead(fill) => {
                    let reader = fill.read(true);
                    let tee = self.tee(outgoing, request, (name, fill), (entry, has_stale));
                    self.order(upstream, outgoing, tee);
                    (true, reader)
                }
            },
        )
    }

    /// Has a stale response fetched anew, unless that is under way.
    fn refresh(
        &self,
        upstream: &'a Upstream,
        outgoing: &Outgoing<'a>,
        request: &CacheRequest<'a>,
        entry: Option<&Entry>,
    ) {
        let name = flight_name(request, entry, outgoing);
        if let Some(Flight::Lead(fill)) = request.cache.store.join(&name, usize::MAX) {
            fill.want();
            let tee = self.tee(outgoing, request, (name, fill), (entry, true));
            // If too much is under way, the next request tries it again.
            let _ordered = self.order(upstream, outgoing, tee);
        }
    }

    fn tee(
        &self,
        outgoing: &Outgoing<'a>,
        request: &CacheRequest<'a>,
        named: (Bytes, Arc<Fill>),
        (entry, has_stale): (Option<&Entry>, bool),
    ) -> Tee {
        let about = tee_request(request, outgoing, Method::GET, RequestScope::Whole);
        let mut tee = Tee::leading(request.cache, request.key.clone(), named, about);
        let variants = entry.into_iter().flat_map(Entry::variants);
        let validated = |object: &&Arc<Object>| {
            let fields = &object.head.fields;
            fields.contains(ETAG) || fields.contains(LAST_MODIFIED)
        };
        let candidates = variants.filter(validated).cloned().collect();
        tee.validate(candidates, has_stale);
        tee
    }

    /// Has it fetched. `false` if too much is under way.
    fn order(&self, upstream: &'a Upstream, outgoing: &Outgoing<'a>, tee: Tee) -> bool {
        let order = FetchOrder::new(self, upstream, outgoing, tee);
        let background = self.scene.worker.background();
        background.order(|worker| fetch::run(worker, order))
    }

    /// Sends what another task receives, as soon as it comes.
    async fn wait_for(
        &mut self,
        down: &mut Downstream<'_>,
        outgoing: &Outgoing<'a>,
        request: &CacheRequest<'a>,
        (leads, reader, stale): (bool, FillReader, Option<&Found>),
    ) -> Waited {
        let config = &request.cache.config;
        let patience: Option<Duration> = match (stale, leads) {
            (Some(_), _) => Some(config.stale_wait),
            (None, false) => Some(config.collapse_wait),
            (None, true) => None,
        };
        let outcome = CacheOutcome::default();
        let of_cache = (request, &outcome);
        if stale.is_some() {
            // It goes on when this client is answered otherwise.
            reader.fill().want();
        }
        let fill = Arc::clone(reader.fill());
        let source = CachedSource::awaited(of_cache, outgoing, reader, (patience, stale.is_some()));
        let source = Source::Cached(Box::new(source));
        let relayed = self
            .relay_own(down, outgoing.takes_interims(), source)
            .await;
        if let Some((result, age)) = outcome.get() {
            let age =
                (result != CacheResult::Miss && result != CacheResult::Uncacheable).then_some(age);
            self.note_cache(request.cache, result, (outcome.refusal(), age));
        }
        if leads {
            self.note_fetch(&fill);
        }
        match relayed {
            Ok(()) => Waited::Served,
            Err(RelayError::Source(SourceError::Cached(error)))
                if self.progress.status.is_none() =>
            {
                match *error {
                    CachedError::NotShared => Waited::Alone,
                    CachedError::Failed(_) if !leads => Waited::Again,
                    CachedError::StaleStatus(_) => Waited::Again,
                    CachedError::Failed(failure) => Waited::Failed(Failure::from_fill(failure)),
                }
            }
            Err(RelayError::FirstByteTimeout) => match stale {
                Some(_) => Waited::Again,
                None => Waited::Alone,
            },
            Err(error) => Waited::Failed(Failure::from_relay(&error)),
        }
    }

    /// Keeps for the log who was asked for what this request had fetched.
    fn note_fetch(&mut self, fill: &Fill) {
        let facts = fill.facts();
        let members = self.decided.upstream.map(|upstream| &upstream.members);
        self.attempts.count = facts.attempts;
        self.attempts.member = members
            .zip(facts.member)
            .and_then(|(members, index)| members.get(index));
    }

    /// The backend is not asked again for a while.
    fn note_failure(&self, request: &CacheRequest<'_>, entry: Option<&Entry>) {
        if let Some(entry) = entry {
            entry.note_failure(cache::now() + millis(request.cache.config.stale_retry));
        }
    }

    /// Counts what the cache did, and keeps it for the log.
    fn note_cache(
        &mut self,
        cache: &Cache,
        result: CacheResult,
        (reason, age): (Option<&'static str>, Option<u32>),
    ) {
        let counts = &cache.store.counts;
        counts.result(self.scene.worker.index(), result);
        if let Some(reason) = reason {
            counts.reason(result, reason);
        }
        if let Some(logged) = &mut self.logged {
            logged.cache = Some(CacheLine {
                result: result.name(),
                reason,
                age,
            });
        }
    }
}

/// What is known of a request's key, and what is done with the request.
fn look_up(
    request: &CacheRequest<'_>,
    outgoing: &Outgoing<'_>,
    (worker, now): (usize, Millis),
) -> (Option<Arc<WorkerEntry>>, Plan) {
    let entry = request.cache.store.entry(worker, &request.key);
    let plan = plan(request, entry.as_ref(), outgoing, now);
    (entry, plan)
}

/// What is done with a request.
fn plan(
    request: &CacheRequest<'_>,
    entry: Option<&Arc<WorkerEntry>>,
    outgoing: &Outgoing<'_>,
    now: Millis,
) -> Plan {
    let store = &request.cache.store;
    let found = entry.and_then(|entry| store.find(&request.key, entry, outgoing));
    let has_failed = entry.is_some_and(|entry| entry.has_failed(now));
    let directives = request.demand.directives;
    let verdict = found.as_ref().map(|found| {
        let stored = found.object().head.stored(found.is_purged);
        stored.judge(&request.demand, now)
    });
    match (found, verdict) {
        (Some(found), Some(Verdict::Fresh(left))) => Plan::Serve(
            found,
            match left > 0 {
                true => CacheResult::Hit,
                false => CacheResult::Stale,
            },
        ),
        _ if directives.only_if_cached => Plan::Refuse,
        (Some(found), Some(Verdict::Stale(usage))) if usage.on_error && has_failed => {
            Plan::Serve(found, CacheResult::Stale)
        }
        // What was fetched anew and could not be stored would be fetched again for each request, for nobody.
        (Some(found), Some(Verdict::Stale(StaleUse { at_once: true, .. })))
            if !entry.is_some_and(|entry| entry.is_uncacheable(now)) =>
        {
            Plan::Refresh(found)
        }
        _ if directives.no_store => Plan::Direct,
        (Some(found), Some(Verdict::Stale(usage))) => Plan::Await(usage.on_error.then_some(found)),
        _ if entry.is_some_and(|entry| entry.is_uncacheable(now)) => Plan::Direct,
        _ if request.demand.credentials.any() || *outgoing.method() != Method::GET => Plan::Direct,
        _ if wants_part(outgoing) => Plan::Direct,
        _ => Plan::Await(None),
    }
}

/// Whether less than all is asked for: of what is not stored, nothing more is fetched.
fn wants_part(outgoing: &Outgoing<'_>) -> bool {
    let mut ranges = outgoing.facts(None).head.headers.get_all(RANGE);
    !ranges.all(|range| range.eq_ignore_ascii_case(b"bytes=0-"))
}

/// What a fetch is known by: requests that the stored responses of a key tell apart do not wait for each
/// other.
fn flight_name(
    request: &CacheRequest<'_>,
    entry: Option<&Entry>,
    outgoing: &Outgoing<'_>,
) -> Bytes {
    let key = request.key.as_bytes();
    match entry.map(Entry::names) {
        None | Some([]) => Bytes::copy_from_slice(key),
        Some(names) => {
            let values = vary::values(names, outgoing);
            [key, b"\n", &values].concat().into()
        }
    }
}

/// What storing depends on of a request that a backend gets with this method and scope.
fn tee_request(
    request: &CacheRequest<'_>,
    outgoing: &Outgoing<'_>,
    method: Method,
    scope: RequestScope,
) -> TeeRequest {
    let facts = outgoing.facts(None);
    TeeRequest {
        method,
        path: facts.path.forward.clone(),
        has_query: facts.head.target.query.is_some(),
        no_store: request.demand.directives.no_store,
        scope,
        credentials: request.demand.credentials,
    }
}

impl Failure {
    /// What another task failed with.
    fn from_fill(failure: FillFailure) -> Self {
        Self {
            status: failure.status,
            reason: failure.reason,
            client_gone: false,
        }
    }
}

/// How often a request takes over after the one that it waited for has failed.
const ROUNDS_MAX: u32 = 2;
