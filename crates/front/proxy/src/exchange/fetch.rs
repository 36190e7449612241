//! A fetch for a cache: an exchange without a client, in a task of the worker.
//!
//! It keeps its site until its end, as every exchange does. It is not logged; the requests that wait for
//! it are.

use std::sync::Arc;

use catamaran_cache::storable::RequestScope;
use catamaran_message::name::{ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};
use http::Method;

use crate::cache::fill::FillFailure;
use crate::cache::object::Object;
use crate::exchange::attempts;
use crate::exchange::cache_hook::{CacheHook, Tee};
use crate::exchange::downstream::Downstream;
use crate::exchange::outgoing::Outgoing;
use crate::exchange::scene::Scene;
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
    hook: Box<CacheHook>,
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
            hook: Box::new(CacheHook::Tee(tee)),
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
        hook,
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
    exchange.progress.hook = Some(hook);
    upstream.retry_budget.request(worker.index());
    let mut nobody = Downstream::Nobody;
    let fetched = attempts::try_backends(&mut exchange, upstream, &mut nobody, &request).await;
    if let (Err(failure), Some(hook)) = (fetched, &mut exchange.progress.hook) {
        hook.fail(FillFailure {
            status: failure.status,
            reason: failure.reason,
        });
    }
}
