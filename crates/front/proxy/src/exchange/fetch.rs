//! Exchanges without a client: a fetch for a cache, in a task of the worker, and a request that the front itself makes for
//! another exchange, in the task of that.
//!
//! They keep their site until their end, as every exchange does. They are not logged; the requests that wait for
//! them are.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use catamaran_cache::storable::RequestScope;
use catamaran_message::ResponseHead;
use catamaran_message::name::{ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};
use http::Method;

use crate::cache::fill::FillFailure;
use crate::cache::object::Object;
use crate::exchange::attempts;
use crate::exchange::cache_hook::{CacheHook, Tee};
use crate::exchange::downstream::Downstream;
use crate::exchange::failure::Failure;
use crate::exchange::outgoing::Outgoing;
use crate::exchange::pages::Pages;
use crate::exchange::scene::Scene;
use crate::exchange::sink::{Collector, Sink};
use crate::exchange::sites::Sites;
use crate::exchange::state::Exchange;
use crate::site::Upstream;
use crate::traces::Trace;
use crate::worker::{OwnSite, Worker};

/// The task of a fetch, with everything that it needs.
#[derive(Debug)]
pub(crate) struct FetchOrder {
    site: Arc<OwnSite>,
    /// The index of the upstream in the site.
    upstream: usize,
    route: Option<usize>,
    listener: usize,
    request: Outgoing<'static>,
    trace: Option<Trace>,
    sink: Box<Sink>,
}

impl FetchOrder {
    /// An order to fetch the response for which an exchange asks.
    pub(crate) fn new(
        exchange: &Exchange<'_>,
        upstream: &Upstream,
        outgoing: &Outgoing<'_>,
        tee: Tee,
    ) -> Self {
        let site = exchange.site;
        let mut request = outgoing.detach();
        let trace = exchange.trace.map(|of_exchange| {
            let trace = of_exchange.of_fetch();
            let parent = trace.instead_of(of_exchange);
            parent.apply(&mut request.head.headers);
            trace
        });
        generalise(&mut request, tee.validating(), outgoing);
        let mut upstreams = site.upstreams.iter();
        let upstream = upstreams.position(|candidate| std::ptr::eq(&**candidate, upstream));
        let routes = site.routes.routes();
        Self {
            // The exchange asks an upstream of its own site.
            upstream: upstream.unwrap_or_default(),
            route: (exchange.decided.route).and_then(|route| routes.element_offset(route)),
            // A reload may have removed the listener. Then the settings of the first one apply.
            listener: site.listener(exchange.scene.listener).unwrap_or_default(),
            site: Arc::clone(site),
            request,
            trace,
            sink: Box::new(Sink::Cache(CacheHook::Tee(tee))),
        }
    }
}

/// Makes the request a GET of the whole response, with conditions by which the backend may confirm the stored responses
/// `validating`. `original` is the request of the client.
fn generalise(request: &mut Outgoing<'_>, validating: &[Arc<Object>], original: &Outgoing<'_>) {
    let head = &mut request.head;
    head.method = Method::GET;
    head.headers
        .retain(|field| RequestScope::of_field(field) == RequestScope::Whole);
    let fields = validating.iter().map(|object| &object.head.fields);
    let tags: Vec<&[u8]> = fields.filter_map(|fields| fields.get(ETAG)).collect();
    if !tags.is_empty() {
        head.headers.insert(IF_NONE_MATCH, tags.join(&b", "[..]));
    }
    // A date is sent only for a single response that answers this request: a date cannot tell several responses apart.
    if let [only] = validating
        && only.head.answers(original)
        && let Some(last_modified) = only.head.fields.get(LAST_MODIFIED)
    {
        head.headers.insert(IF_MODIFIED_SINCE, last_modified);
    }
}

/// Fetches the response, and passes a failure to the requests that wait for it.
pub(crate) async fn run(worker: Arc<Worker>, order: FetchOrder) {
    let FetchOrder {
        site,
        upstream,
        route,
        listener,
        request,
        trace,
        sink,
    } = order;
    let sites = Sites::new(site);
    let site = sites.first();
    let deadline = worker.deadlines().join();
    deadline.attach().await;
    let (Some(upstream), Some(listener)) =
        (site.upstreams.get(upstream), site.listeners.get(listener))
    else {
        return;
    };
    let scene = Scene {
        worker: &worker,
        listener,
        deadline: &deadline,
        peer: &request.client,
    };
    let mut exchange = Box::new(Exchange::new(scene, &sites, None, trace.as_ref()));
    exchange.decided.route = route.map(|route| &site.routes.routes()[route]);
    let rules = exchange.decided.rules();
    exchange.decided.upstream = Some(upstream);
    exchange.decided.passage = rules.and_then(|rules| request.passage(rules, exchange.id));
    exchange
        .decided
        .pages
        .prefer(rules.and_then(|rules| rules.error_pages()));
    exchange.progress.body_complete = true;
    exchange.progress.sink = Some(sink);
    upstream.retry_budget.request(worker.index());
    let mut nobody = Downstream::Nobody;
    let fetched = attempts::try_backends(&mut exchange, upstream, &mut nobody, &request).await;
    if let (Err(failure), Some(sink)) = (fetched, &mut exchange.progress.sink) {
        sink.fail(FillFailure {
            status: failure.status,
            reason: failure.reason,
        });
    }
}

/// A request of the front's own, made for another exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subrequest<'r> {
    pub(crate) upstream: &'r Upstream,
    pub(crate) request: &'r Outgoing<'r>,
    /// The longest time for the whole response.
    pub(crate) time_max: Duration,
    /// The most bytes of the response's body.
    pub(crate) body_max: usize,
}

/// Why a subrequest has no response.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SubrequestError {
    /// The response is larger than allowed.
    TooLarge,
    Failed(Failure),
}

/// Makes a request of the front's own, and returns the whole response. `scene` and `sites` are those of the exchange that
/// waits for it.
pub(crate) async fn collect(
    scene: Scene<'_>,
    sites: &Sites,
    subrequest: Subrequest<'_>,
) -> Result<(ResponseHead, Bytes), SubrequestError> {
    let Subrequest {
        upstream,
        request,
        time_max,
        body_max,
    } = subrequest;
    let worker = scene.worker;
    // The exchange that waits uses its own deadline meanwhile, to notice that its client leaves.
    let deadline = worker.deadlines().join();
    deadline.attach().await;
    let own_scene = Scene {
        deadline: &deadline,
        ..scene
    };
    let mut exchange = Box::new(Exchange::new(own_scene, sites, None, None));
    exchange.decided.upstream = Some(upstream);
    // The response is for the front: no page of the operator replaces it.
    exchange.decided.pages = Pages::new(None, exchange.id);
    exchange.progress.body_complete = true;
    let collector = Collector::new(body_max, time_max);
    exchange.progress.sink = Some(Box::new(Sink::Collect(collector)));
    upstream.retry_budget.request(worker.index());
    let mut nobody = Downstream::Nobody;
    let fetched = attempts::try_backends(&mut exchange, upstream, &mut nobody, request).await;
    let sink = exchange.progress.sink.take();
    if sink.as_ref().is_some_and(|sink| sink.is_abandoned()) {
        return Err(SubrequestError::TooLarge);
    }
    fetched.map_err(SubrequestError::Failed)?;
    let collected = sink.and_then(|sink| sink.into_collected());
    collected.ok_or(SubrequestError::TooLarge)
}
