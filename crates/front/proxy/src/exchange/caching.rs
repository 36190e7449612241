//! An exchange on a route with a cache: it is answered from memory, from a fetch for another request, or by a backend.
//!
//! A response that may be stored is fetched by a task of its own ([`crate::exchange::fetch`]), which goes on when a
//! client leaves. All requests that want it read it as it arrives, so none waits for a slow client. A request whose
//! response is probably for itself alone goes to a backend as without a cache; the response is stored on the way if
//! that is allowed.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use catamaran_cache::storable::RequestScope;
use catamaran_cache::verdict::Verdict;
use catamaran_cache::{Millis, vary};
use catamaran_message::name::{ETAG, LAST_MODIFIED, RANGE};
use catamaran_upstream::Culprit;
use http::{Method, StatusCode};

use crate::access_log::CacheLine;
use crate::boxed::{boxed, in_box};
use crate::cache::counts::CacheResult;
use crate::cache::fill::{Fill, FillReader};
use crate::cache::hot::WorkerEntry;
use crate::cache::object::Object;
use crate::cache::store::{Entry, Flight, Found};
use crate::cache::{self, Cache};
use crate::exchange::attempts;
use crate::exchange::cache_hook::{CacheHook, Invalidation, Tee, TeeRequest, millis};
use crate::exchange::cache_request::CacheRequest;
use crate::exchange::downstream::Downstream;
use crate::exchange::failure::Failure;
use crate::exchange::fetch::{self, FetchOrder};
use crate::exchange::outgoing::Outgoing;
use crate::exchange::own_response;
use crate::exchange::relay::RelayError;
use crate::exchange::sink::Sink;
use crate::exchange::source::Source;
use crate::exchange::source::cached::{CacheJob, CacheOutcome, CachedSource};
use crate::exchange::source_error::{CachedError, SourceError};
use crate::exchange::state::Exchange;
use crate::site::Upstream;
use crate::version;

/// A request, the cache entry of its key, and the plan to answer it.
pub(crate) struct RequestPlan<'a> {
    request: Box<CacheRequest<'a>>,
    entry: Option<Arc<WorkerEntry>>,
    plan: Plan,
    now: Millis,
}

/// The plan for a request with a cache.
enum Plan {
    /// Answer from memory.
    Serve(Found, CacheResult),
    /// Answer from memory with a stale response, and fetch it anew.
    Refresh(Found),
    /// Ask a backend for this request alone, and store the response if that is allowed.
    Direct,
    /// Wait for a fetch, which is begun if there is none. A stale response may be used if it fails.
    Await(Option<Found>),
    /// Answer 504: the client accepts stored responses only, and there is none.
    Refuse,
    /// Do not use the cache, for this reason.
    PassBy(&'static str),
}

/// A stored response that answers a request.
pub(crate) struct Hit<'p, 'a> {
    request: &'p CacheRequest<'a>,
    entry: Option<&'p Entry>,
    found: &'p Found,
    result: CacheResult,
    now: Millis,
}

/// The way to a response that a request shares with others.
enum SharedFetch {
    /// A fetch is under way, and this reads what it receives.
    Read(FillReader),
    /// A fetch has ended since the request looked for a stored response, and has stored one.
    Stored,
}

/// The outcome of waiting for a response that is being fetched.
enum Waited {
    Served,
    /// The client must get a response of its own from a backend.
    Alone,
    /// The fetch gave nothing, so a new plan must be made.
    Again,
    Failed(Failure),
}

impl<'a> RequestPlan<'a> {
    /// Makes the plan for a request of a route with a cache.
    pub(crate) fn new(
        request: Box<CacheRequest<'a>>,
        outgoing: &Outgoing<'_>,
        worker: usize,
    ) -> Self {
        let now = cache::now();
        let (entry, plan) = match request.bypass {
            Some(reason) => (None, Plan::PassBy(reason)),
            None => look_up(&request, outgoing, worker, now),
        };
        Self {
            request,
            entry,
            plan,
            now,
        }
    }

    /// The stored response, if the plan is to answer from memory and to do nothing else.
    pub(crate) fn hit(&self) -> Option<Hit<'_, 'a>> {
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

/// Serves a request from memory alone.
pub(crate) async fn serve_hit<'a>(
    exchange: &mut Exchange<'a>,
    down: &mut Downstream<'_>,
    outgoing: &Outgoing<'a>,
    hit: Hit<'_, 'a>,
) -> Result<(), Failure> {
    if let Some(entry) = hit.entry {
        let store = &hit.request.cache.store;
        store.note_use(exchange.scene.worker.index(), entry);
    }
    let outcome = CacheOutcome::default();
    let source = in_box(|| {
        let job = CacheJob {
            request: hit.request,
            outgoing,
            outcome: &outcome,
        };
        CachedSource::stored(job, hit.found, hit.result, hit.now)
    });
    let served = own_response::serve(exchange, down, Source::Cached(source)).await;
    let age = outcome.get().map(|(_, age)| age);
    note_cache(exchange, hit.request.cache, hit.result, None, age);
    served
}

/// Serves a request of a route with a cache.
pub(crate) async fn serve<'a>(
    exchange: &mut Exchange<'a>,
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
    let lookup = CacheLookup {
        upstream,
        outgoing,
        request: &request,
    };
    if let Plan::PassBy(reason) = plan {
        return boxed(|| lookup.pass_by(exchange, down, reason)).await;
    }
    let stale = match lookup.serve(exchange, down, entry, plan).await {
        ControlFlow::Break(served) => return served,
        ControlFlow::Continue(stale) => stale,
    };
    let fetched = boxed(|| lookup.fetch_alone(exchange, down)).await;
    match (fetched, stale) {
        (Err(failure), Some(found))
            if exchange.progress.status.is_none() && !failure.client_gone =>
        {
            // The hook was for the response of the backend. The stale response is stored already.
            exchange.progress.sink = None;
            lookup.serve_stale(exchange, down, &found).await
        }
        (fetched, _) => fetched,
    }
}

/// A request whose response is looked for in a cache.
#[derive(Clone, Copy)]
struct CacheLookup<'q, 'a> {
    upstream: &'a Upstream,
    outgoing: &'q Outgoing<'a>,
    request: &'q CacheRequest<'a>,
}

impl<'a> CacheLookup<'_, 'a> {
    /// Serves a request from memory, or from a fetch that several requests share. `Continue`: a backend is to be asked
    /// for this request alone; the stale response may be used if that fails.
    async fn serve(
        self,
        exchange: &mut Exchange<'a>,
        down: &mut Downstream<'_>,
        mut entry: Option<Arc<WorkerEntry>>,
        mut plan: Plan,
    ) -> ControlFlow<Result<(), Failure>, Option<Found>> {
        let Self {
            outgoing, request, ..
        } = self;
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
                    let served = serve_hit(exchange, down, outgoing, hit).await;
                    return ControlFlow::Break(served);
                }
                Plan::Refresh(found) => {
                    self.refresh(exchange, known);
                    let served = self.serve_stale(exchange, down, &found).await;
                    return ControlFlow::Break(served);
                }
                Plan::Refuse => return ControlFlow::Break(Err(self.refuse_fetch(exchange))),
                Plan::Direct | Plan::PassBy(_) => return ControlFlow::Continue(None),
                Plan::Await(stale) => stale,
            };
            let reader = match self.join(exchange, known, stale.is_some()) {
                None => return ControlFlow::Continue(stale),
                Some(SharedFetch::Read(reader)) => reader,
                Some(SharedFetch::Stored) if rounds < ROUNDS_MAX => {
                    rounds += 1;
                    (entry, plan) = self.look_up_again(exchange);
                    continue;
                }
                Some(SharedFetch::Stored) => return ControlFlow::Continue(None),
            };
            let waited = self.wait_for(exchange, down, reader, stale.as_ref()).await;
            let failure = match waited {
                Waited::Served => return ControlFlow::Break(Ok(())),
                Waited::Alone => return ControlFlow::Continue(stale),
                // The client cannot get another response.
                Waited::Failed(failure)
                    if exchange.progress.status.is_some() || failure.client_gone =>
                {
                    return ControlFlow::Break(Err(failure));
                }
                Waited::Failed(failure) => Some(failure),
                Waited::Again => None,
            };
            if let Some(found) = stale {
                self.note_failed_fetch(known);
                let served = self.serve_stale(exchange, down, &found).await;
                return ControlFlow::Break(served);
            }
            if let Some(failure) = failure {
                note_cache(exchange, request.cache, CacheResult::Miss, None, None);
                return ControlFlow::Break(Err(failure));
            }
            if rounds == ROUNDS_MAX {
                return ControlFlow::Continue(None);
            }
            rounds += 1;
            (entry, plan) = self.look_up_again(exchange);
        }
    }

    fn look_up_again(self, exchange: &Exchange<'a>) -> (Option<Arc<WorkerEntry>>, Plan) {
        let worker = exchange.scene.worker.index();
        look_up(self.request, self.outgoing, worker, cache::now())
    }

    /// Has the backend not asked again for a while, because a stale response is used instead.
    fn note_failed_fetch(self, entry: Option<&Entry>) {
        if let Some(entry) = entry {
            let pause = millis(self.request.cache.config.stale_retry);
            entry.note_failure(cache::now() + pause);
        }
    }

    /// The failure for a client that accepts stored responses only, when there is none.
    fn refuse_fetch(self, exchange: &mut Exchange<'_>) -> Failure {
        let token = "only-if-cached";
        let cache = self.request.cache;
        note_cache(exchange, cache, CacheResult::Miss, Some(token), None);
        Failure::new(Culprit::Client, StatusCode::GATEWAY_TIMEOUT, token)
    }

    /// Sends a request to the backends without the cache. A successful change removes stored responses that it makes
    /// invalid.
    async fn pass_by(
        self,
        exchange: &mut Exchange<'a>,
        down: &mut Downstream<'_>,
        reason: &'static str,
    ) -> Result<(), Failure> {
        let cache = self.request.cache.clone();
        let hook = if self.request.changes {
            CacheHook::Invalidate(Invalidation {
                cache,
                key: self.request.key.clone(),
                sibling_keys: self.request.sibling_keys.clone(),
            })
        } else {
            CacheHook::Tell(cache, reason)
        };
        exchange.progress.sink = Some(Box::new(Sink::Cache(hook)));
        let cache = self.request.cache;
        note_cache(exchange, cache, CacheResult::Bypass, Some(reason), None);
        self.try_backends(exchange, down).await
    }

    /// Asks a backend for the response to this request alone, and stores it on the way if that is allowed.
    async fn fetch_alone(
        self,
        exchange: &mut Exchange<'a>,
        down: &mut Downstream<'_>,
    ) -> Result<(), Failure> {
        let scope = RequestScope::of(&self.outgoing.head.headers);
        let about = self.tee_request(self.outgoing.head.method.clone(), scope);
        let tee = Tee::beside(self.request.cache, self.request.key.clone(), about);
        exchange.progress.sink = Some(Box::new(Sink::Cache(CacheHook::Tee(tee))));
        let served = self.try_backends(exchange, down).await;
        let sink = exchange.progress.sink.as_ref();
        let refusal = sink.and_then(|sink| sink.refusal());
        let result = if refusal.is_some() {
            CacheResult::Uncacheable
        } else {
            CacheResult::Miss
        };
        note_cache(exchange, self.request.cache, result, refusal, None);
        served
    }

    /// Asks backends, and counts the request for the retry budget.
    async fn try_backends(
        self,
        exchange: &mut Exchange<'a>,
        down: &mut Downstream<'_>,
    ) -> Result<(), Failure> {
        let budget = &self.upstream.retry_budget;
        budget.request(exchange.scene.worker.index());
        attempts::try_backends(exchange, self.upstream, down, self.outgoing).await
    }

    /// Sends a stored response that is stale.
    async fn serve_stale(
        self,
        exchange: &mut Exchange<'a>,
        down: &mut Downstream<'_>,
        found: &Found,
    ) -> Result<(), Failure> {
        let hit = Hit {
            request: self.request,
            entry: None,
            found,
            result: CacheResult::Stale,
            now: cache::now(),
        };
        serve_hit(exchange, down, self.outgoing, hit).await
    }

    /// Joins the fetch for the key of the request, or begins one. `None`: `collapse_max` requests already wait for it.
    fn join(
        self,
        exchange: &Exchange<'a>,
        entry: Option<&Entry>,
        has_stale: bool,
    ) -> Option<SharedFetch> {
        let name = self.fetch_key(entry);
        let cache = self.request.cache;
        let fill = match cache.store.join(&name, cache.config.collapse_max)? {
            Flight::Follow(fill) => return Some(SharedFetch::Read(fill.read(false))),
            Flight::Lead(fill) => fill,
        };
        // Between the look for a stored response and now, another worker may have ended a fetch and stored one.
        if let (_, Plan::Serve(found, CacheResult::Hit)) = self.look_up_again(exchange) {
            cache.store.land(&name, &fill);
            fill.finish(Some(Arc::clone(found.object())), false);
            return Some(SharedFetch::Stored);
        }
        let reader = fill.read(true);
        // If too much is under way, the tee is dropped, which tells the readers that nothing will come.
        self.order(exchange, self.tee(name, fill, entry, has_stale));
        Some(SharedFetch::Read(reader))
    }

    /// Notes the use of a stale response, and begins to fetch it anew, unless that is under way.
    fn refresh(self, exchange: &Exchange<'a>, entry: Option<&Entry>) {
        let store = &self.request.cache.store;
        if let Some(entry) = entry {
            store.note_use(exchange.scene.worker.index(), entry);
        }
        let name = self.fetch_key(entry);
        if let Some(Flight::Lead(fill)) = store.join(&name, usize::MAX) {
            fill.want();
            // If too much is under way, the next request tries it again.
            let _ordered = self.order(exchange, self.tee(name, fill, entry, true));
        }
    }

    /// The [`Tee`] for a fetch of this name: it stores the response and passes it to the readers of `fill`.
    fn tee(self, name: Bytes, fill: Arc<Fill>, entry: Option<&Entry>, has_stale: bool) -> Tee {
        let about = self.tee_request(Method::GET, RequestScope::Whole);
        let key = self.request.key.clone();
        let mut tee = Tee::new(self.request.cache, key, Some(name), fill, about);
        // The backend may confirm a stored response that has a validator, instead of sending it again.
        let can_be_validated = |object: &&Arc<Object>| {
            let fields = &object.head.fields;
            fields.contains(ETAG) || fields.contains(LAST_MODIFIED)
        };
        let variants = entry.into_iter().flat_map(Entry::variants);
        let candidates = variants.filter(can_be_validated).cloned().collect();
        tee.validate(candidates, has_stale);
        tee
    }

    /// Starts the task of the fetch. `false`: the worker has too many tasks waiting.
    fn order(self, exchange: &Exchange<'a>, tee: Tee) -> bool {
        let order = FetchOrder::new(exchange, self.upstream, self.outgoing, tee);
        let background = exchange.scene.worker.background();
        background.order(|worker| fetch::run(worker, order))
    }

    /// Sends the response that another task receives, as it arrives. `stale` is sent instead if that fails or takes too
    /// long.
    async fn wait_for(
        self,
        exchange: &mut Exchange<'a>,
        down: &mut Downstream<'_>,
        reader: FillReader,
        stale: Option<&Found>,
    ) -> Waited {
        let leads = reader.leads;
        let config = &self.request.cache.config;
        let patience = if stale.is_some() {
            Some(config.stale_wait)
        } else if leads {
            // The fetch is made for this request, and has the limits of the backend.
            None
        } else {
            Some(config.collapse_wait)
        };
        let outcome = CacheOutcome::default();
        if stale.is_some() {
            // The fetch is to go on although this client may be answered with the stale response.
            reader.fill().want();
        }
        let fill = Arc::clone(reader.fill());
        let job = CacheJob {
            request: self.request,
            outgoing: self.outgoing,
            outcome: &outcome,
        };
        let cached = CachedSource::awaited(job, reader, patience, stale.is_some());
        let source = Source::Cached(Box::new(cached));
        let takes_interims = version::has_chunks(self.outgoing.head.version);
        let relayed = own_response::relay(exchange, down, takes_interims, source).await;
        if let Some((result, age)) = outcome.get() {
            let is_stored = result != CacheResult::Miss && result != CacheResult::Uncacheable;
            let (reason, age) = (outcome.refusal(), is_stored.then_some(age));
            note_cache(exchange, self.request.cache, result, reason, age);
        }
        if leads {
            self.note_fetch(exchange, &fill);
        }
        match relayed {
            Ok(()) => Waited::Served,
            Err(RelayError::Source(SourceError::Cached(error)))
                if exchange.progress.status.is_none() =>
            {
                match *error {
                    CachedError::NotShared => Waited::Alone,
                    CachedError::StaleStatus(_) => Waited::Again,
                    CachedError::Failed(failure) if leads => {
                        Waited::Failed(Failure::from_fill(failure))
                    }
                    // The fetch was made for another request, whose faults are not those of this one.
                    CachedError::Failed(_) => Waited::Again,
                }
            }
            // The patience is over. `Again` sends the stale response.
            Err(RelayError::FirstByteTimeout) if stale.is_some() => Waited::Again,
            Err(RelayError::FirstByteTimeout) => Waited::Alone,
            Err(error) => Waited::Failed(error.failure()),
        }
    }

    /// Notes for the log which backend gave the response that this request had fetched, and the number of attempts.
    fn note_fetch(self, exchange: &mut Exchange<'a>, fill: &Fill) {
        let facts = fill.facts();
        exchange.attempts.count = facts.attempts;
        exchange.attempts.member = facts
            .member
            .and_then(|index| self.upstream.members.get(index));
    }

    /// The key by which requests share one fetch: the cache key and, if the stored response has `Vary`, the request's
    /// values of those fields. Requests with other values do not wait for each other.
    fn fetch_key(self, entry: Option<&Entry>) -> Bytes {
        let key = self.request.key.as_bytes();
        match entry.map(Entry::names) {
            None | Some([]) => Bytes::copy_from_slice(key),
            Some(names) => {
                let values = vary::values(names, self.outgoing);
                [key, b"\n", &values].concat().into()
            }
        }
    }

    /// The [`TeeRequest`] for a request that a backend gets with this method and scope.
    fn tee_request(self, method: Method, scope: RequestScope) -> TeeRequest {
        let facts = self.outgoing.facts(None);
        TeeRequest {
            method,
            path: facts.path.forward.clone(),
            has_query: facts.head.target.query.is_some(),
            no_store: self.request.demand.directives.no_store,
            scope,
            credentials: self.request.demand.credentials,
        }
    }
}

/// Counts the cache's result for a request, and notes it for the log.
fn note_cache(
    exchange: &mut Exchange<'_>,
    cache: &Cache,
    result: CacheResult,
    reason: Option<&'static str>,
    age: Option<u32>,
) {
    let counts = &cache.store.counts;
    counts.result(exchange.scene.worker.index(), result);
    if let Some(reason) = reason {
        counts.reason(result, reason);
    }
    if let Some(logged) = &mut exchange.logged {
        logged.cache = Some(CacheLine {
            result: result.name(),
            reason,
            age,
        });
    }
}

/// The entry of the request's key, and the plan for the request.
fn look_up(
    request: &CacheRequest<'_>,
    outgoing: &Outgoing<'_>,
    worker: usize,
    now: Millis,
) -> (Option<Arc<WorkerEntry>>, Plan) {
    let entry = request.cache.store.entry(worker, &request.key);
    let plan = plan(request, entry.as_ref(), outgoing, now);
    (entry, plan)
}

/// Makes the plan for a request from the entry of its key.
fn plan(
    request: &CacheRequest<'_>,
    entry: Option<&Arc<WorkerEntry>>,
    outgoing: &Outgoing<'_>,
    now: Millis,
) -> Plan {
    let store = &request.cache.store;
    let found = entry.and_then(|entry| store.find(&request.key, entry, outgoing));
    let mut stale = None;
    if let Some(found) = found {
        let stored = found.object().head.stored(found.is_purged);
        match stored.judge(&request.demand, now) {
            Verdict::Fresh(left) if left > 0 => return Plan::Serve(found, CacheResult::Hit),
            Verdict::Fresh(_) => return Plan::Serve(found, CacheResult::Stale),
            Verdict::Stale(usage) => stale = Some((found, usage)),
            // The plan is the same as without a stored response.
            Verdict::Foreign => {}
        }
    }
    let directives = request.demand.directives;
    if directives.only_if_cached {
        return Plan::Refuse;
    }
    // Whether the last response for this key could not be stored.
    let is_uncacheable = entry.is_some_and(|entry| entry.is_uncacheable(now));
    if let Some((found, usage)) = stale {
        let has_failed = entry.is_some_and(|entry| entry.has_failed(now));
        if usage.on_error && has_failed {
            return Plan::Serve(found, CacheResult::Stale);
        }
        // If the response cannot be stored, each request would have it fetched anew, and nobody would get it.
        if usage.at_once && !is_uncacheable {
            return Plan::Refresh(found);
        }
        if directives.no_store {
            return Plan::Direct;
        }
        return Plan::Await(usage.on_error.then_some(found));
    }
    let is_for_one = directives.no_store
        || is_uncacheable
        || request.demand.credentials.any()
        || outgoing.head.method != Method::GET
        || wants_part(outgoing);
    if is_for_one {
        Plan::Direct
    } else {
        Plan::Await(None)
    }
}

/// Whether the request asks for a part only. Then no more is fetched than the part, if nothing is stored.
fn wants_part(outgoing: &Outgoing<'_>) -> bool {
    let mut ranges = outgoing.head.headers.get_all(RANGE);
    !ranges.all(|range| range.eq_ignore_ascii_case(b"bytes=0-"))
}

/// The most times that a request makes a new plan after a fetch that it waited for has failed.
const ROUNDS_MAX: u32 = 2;
