//! One exchange: a request, from its head to its log line.
//!
//! This file directs the exchange: it obtains the verdict ([`crate::exchange::verdict`]), calls the module that carries
//! it out, and accounts for the exchange. A failed exchange is answered with a page of the front if no response was
//! begun; otherwise the response is cut visibly. [`crate::exchange::state`] has the state of an exchange.
//! ARCHITECTURE.md shows the layers of the modules.

mod account;
mod attempts;
mod cache_hook;
pub(crate) mod cache_request;
mod caching;
pub(crate) mod compression;
pub(crate) mod cors;
pub(crate) mod downstream;
pub(crate) mod failure;
pub(crate) mod fetch;
pub(crate) mod fields;
mod files;
pub(crate) mod forward_auth;
pub(crate) mod grounds;
pub(crate) mod guards;
mod hold;
mod leaving;
pub(crate) mod limit_keys;
mod limits;
mod logged;
pub(crate) mod other_backends;
pub(crate) mod outgoing;
mod own_response;
pub(crate) mod pages;
mod progress;
pub(crate) mod relay;
pub(crate) mod replay;
pub(crate) mod respond;
mod response_policy;
pub(crate) mod retry;
pub(crate) mod scene;
mod secured;
pub(crate) mod sign_on;
mod sink;
pub(crate) mod sites;
pub(crate) mod source;
mod source_error;
mod spans;
mod state;
pub(crate) mod tunnel;
pub(crate) mod user_auth;
pub(crate) mod verdict;

use caching::RequestPlan;
use catamaran_message::RequestHead;
use downstream::{After, Downstream};
use failure::Failure;
use grounds::Grounds;
use scene::Scene;
use sites::Sites;
use state::Exchange;
use verdict::{Decision, Forward, Service, Verdict};

use crate::boxed::boxed;
use crate::site::auth::SiteAuth;
use crate::site::rules::Rules;

/// Serves one request whose head has arrived. Returns what the connection must do next.
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
    let sites = Sites::new(worker.site());
    let trace = spans::begin(scene, sites.first(), &head);
    let mut exchange = Exchange::new(scene, &sites, Some(&head), trace.as_deref());
    let decision = match judge(&mut exchange, head) {
        JudgedRequest::Settled(decision) => decision,
        JudgedRequest::AsksAuth(verdict, auth) => {
            Box::pin(authenticate(&mut exchange, down, verdict, auth)).await
        }
    };
    let served = match decision {
        Decision::Forward(forward) => run(&mut exchange, down, forward).await,
        Decision::Files(request) => {
            match Box::pin(files::serve(&mut exchange, down, *request)).await {
                Ok(after) => Ok(after),
                // There is no such file, and the route has an upstream.
                Err(forward) => Box::pin(run(&mut exchange, down, forward)).await,
            }
        }
        Decision::Answer(answer) => {
            Ok(boxed(|| own_response::answer(&mut exchange, down, *answer)).await)
        }
        Decision::Refuse(failure) => Err(failure),
    };
    let after = match served {
        Ok(after) => after,
        Err(failure) => Box::pin(own_response::fail(&mut exchange, down, failure)).await,
    };
    account::account(&exchange, down);
    after
}

/// Answers a request whose head was refused or did not come in time. The connection must then be closed.
pub(crate) async fn refuse(scene: Scene<'_>, down: &mut Downstream<'_>, failure: Failure) -> After {
    let sites = Sites::new(scene.worker.site());
    let mut exchange = Exchange::new(scene, &sites, None, None);
    let after = own_response::fail(&mut exchange, down, failure).await;
    account::account(&exchange, down);
    after
}

/// What becomes of a request once its limits have been asked.
enum JudgedRequest<'a> {
    /// Nothing else is to be asked.
    Settled(Decision<'a>),
    /// The route's sign-on is to be asked about this verdict.
    AsksAuth(Box<Verdict<'a>>, &'a SiteAuth),
}

/// Makes the verdict on the request, keeps the parts that last as long as the exchange, and asks the limits.
///
/// The verdict is large. It stays where it was made, unless a sign-on is to be asked.
#[inline]
fn judge<'a>(exchange: &mut Exchange<'a>, head: Box<RequestHead>) -> JudgedRequest<'a> {
    let Scene {
        worker,
        listener,
        peer,
        ..
    } = exchange.scene;
    let grounds = Grounds {
        site: exchange.site,
        listener,
        peer,
        id: exchange.id,
        trace: exchange.trace,
        worker: Some(worker),
    };
    let mut verdict = verdict::decide(grounds, head);
    let decided = &mut exchange.decided;
    decided.client_ip = verdict.sender.identity.ip;
    decided.route = verdict.route;
    let rules = decided.rules();
    decided.pages.prefer(rules.and_then(Rules::error_pages));
    decided.is_unlogged = rules.is_some_and(|rules| rules.config().unlogged);
    decided.cors = verdict.cors.take();
    if let Some(refusal) = limits::ask(exchange, |keys| verdict.add_limits(keys)) {
        verdict.refuse_by(refusal);
    }
    match verdict.auth() {
        Some(auth) => JudgedRequest::AsksAuth(Box::new(verdict), auth),
        None => JudgedRequest::Settled(settle(exchange, verdict)),
    }
}

/// Asks the sign-on of the route, and then makes what serves the request.
async fn authenticate<'a>(
    exchange: &mut Exchange<'a>,
    down: &mut Downstream<'_>,
    verdict: Box<Verdict<'a>>,
    auth: &'a SiteAuth,
) -> Decision<'a> {
    let answered = sign_on::authenticate(exchange, down, *verdict, auth).await;
    settle(exchange, answered)
}

/// Makes what serves the request, and keeps what lasts as long as the exchange.
#[inline]
fn settle<'a>(exchange: &mut Exchange<'a>, verdict: Verdict<'a>) -> Decision<'a> {
    let Service { passage, decision } = verdict.settle();
    exchange.decided.passage = passage;
    decision
}

/// Serves a request until the last byte of a backend's response, or of a stored one; with a tunnel, until its end.
async fn run<'a>(
    exchange: &mut Exchange<'a>,
    down: &mut Downstream<'_>,
    forward: Forward<'a>,
) -> Result<After, Failure> {
    let Forward {
        upstream,
        mut outgoing,
        tunnel,
        cache,
    } = forward;
    let worker = exchange.scene.worker;
    if let Some(logged) = &mut exchange.logged {
        // The user of the sign-on comes first.
        logged.user = logged.user.take().or_else(|| outgoing.told_user());
    }
    exchange.decided.upstream = Some(upstream);
    exchange.decided.tunnel = tunnel;
    exchange.decided.given_id = outgoing.given_id.take();
    if let Some(reason) = outgoing.dropped {
        worker.counters().reason(reason);
    }
    // These futures are boxed apart from that of `run`: the allocator has free lists for boxes of up to a kilobyte
    // only. A test checks the sizes.
    let served = match cache {
        None => {
            upstream.retry_budget.request(worker.index());
            outgoing.complete();
            boxed(|| attempts::try_backends(exchange, upstream, down, &outgoing)).await
        }
        // The cache decides whether a backend is asked.
        Some(request) => {
            let planned = RequestPlan::new(request, &outgoing, worker.index());
            match planned.hit() {
                Some(hit) => boxed(|| caching::serve_hit(exchange, down, &outgoing, hit)).await,
                None => {
                    outgoing.complete();
                    boxed(|| caching::serve(exchange, upstream, down, &outgoing, planned)).await
                }
            }
        }
    };
    if let Err(failure) = served {
        down.recycle(outgoing.head);
        return Err(failure);
    }
    if let Some(tunnel) = exchange.decided.tunnel.take()
        && let Some(backend) = tunnel.opened
    {
        // A tunnel may stay open for hours, and does not need the request.
        drop(outgoing);
        Box::pin(tunnel::run(exchange, down, backend, tunnel.idle)).await;
        return Ok(After::Cut);
    }
    down.recycle(outgoing.head);
    Ok(After::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_future<A, B, C, D, F>(_: fn(A, B, C, D) -> F) -> usize {
        size_of::<F>()
    }

    fn size_of_run<A, B, C, F>(_: fn(A, B, C) -> F) -> usize {
        size_of::<F>()
    }

    /// A box must not exceed a kilobyte, where the allocator's fast path ends.
    #[test]
    fn an_exchange_is_small() {
        let attempts = size_of_future(attempts::try_backends);
        assert!(attempts <= 1024, "{attempts} bytes");
        let around = size_of_run(run);
        assert!(around <= 512, "{around} bytes");
    }
}
