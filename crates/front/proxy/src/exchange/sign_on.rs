//! Asks the sign-on of a route whether a request may be served.
//!
//! It is asked once a request, after the guards and limits and before any source of a response. Nothing is remembered: a
//! key that lacks a part of the request would give one client what another may have. Whatever goes wrong, the request is
//! not served. The body of the request is not read meanwhile, and its client is not told to send it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::config::{AuthKind, ForwardAuth};
use crate::exchange::downstream::Downstream;
use crate::exchange::failure::Failure;
use crate::exchange::fetch::{self, Subrequest, SubrequestError};
use crate::exchange::forward_auth::{self, AuthOutcome};
use crate::exchange::leaving::unless_left;
use crate::exchange::logged::LoggedAuth;
use crate::exchange::state::Exchange;
use crate::exchange::verdict::{OwnAnswer, OwnContent, Verdict};
use crate::site::auth::{AuthResult, SiteAuth};

/// Asks the sign-on, and returns the verdict with what it told, or with the answer to a client that it does not let pass.
pub(crate) async fn authenticate<'a>(
    exchange: &mut Exchange<'a>,
    down: &mut Downstream<'_>,
    mut verdict: Verdict<'a>,
    auth: &'a SiteAuth,
) -> Verdict<'a> {
    let began = Instant::now();
    let outcome = match &auth.config.kind {
        AuthKind::Forward(service) => ask(exchange, down, &verdict, auth, service).await,
    };
    note(exchange, auth, &outcome, began.elapsed());
    match outcome {
        AuthOutcome::Granted(signed_on, cookies) => {
            for cookie in cookies.iter() {
                let fields = exchange.decided.client_fields.get_or_insert_default();
                fields.append(cookie.name_ref(), cookie.value());
            }
            verdict.identify(signed_on);
        }
        AuthOutcome::Answered(answer) => verdict.refuse_by(answer),
        AuthOutcome::Failed(failure) => verdict.fail(failure),
    }
    verdict
}

/// Asks a service.
async fn ask<'a>(
    exchange: &Exchange<'a>,
    down: &mut Downstream<'_>,
    verdict: &Verdict<'a>,
    auth: &SiteAuth,
    service: &ForwardAuth,
) -> AuthOutcome {
    let request = forward_auth::request(verdict, auth, service);
    let subrequest = Subrequest {
        upstream: &exchange.site.upstreams[auth.asked.upstream],
        request: &request,
        time_max: service.timeout,
        body_max: service.answer_max,
    };
    let collecting = Box::pin(fetch::collect(exchange.scene, exchange.sites, subrequest));
    match unless_left(collecting, exchange.scene, down).await {
        Ok(Ok((head, body))) => forward_auth::judge(verdict, auth, service, head, body),
        Ok(Err(SubrequestError::TooLarge)) => {
            AuthOutcome::Failed(forward_auth::bad_gateway("auth-answer"))
        }
        Ok(Err(SubrequestError::Failed(failure))) => {
            AuthOutcome::Failed(forward_auth::unanswered(failure))
        }
        Err(error) => AuthOutcome::Failed(Failure::from_client(&error)),
    }
}

/// Counts the result, and notes for the log who has signed on and how long that took.
fn note(exchange: &mut Exchange<'_>, auth: &SiteAuth, outcome: &AuthOutcome, waited: Duration) {
    let result = match outcome {
        AuthOutcome::Granted(..) => AuthResult::Granted,
        AuthOutcome::Answered(answer) if is_sign_in(answer) => AuthResult::SignIn,
        AuthOutcome::Answered(_) => AuthResult::Denied,
        AuthOutcome::Failed(_) => AuthResult::Failed,
    };
    auth.count(exchange.scene.worker.index(), result, waited);
    if let Some(logged) = exchange.logged.as_deref_mut() {
        let user = match outcome {
            AuthOutcome::Granted(signed_on, _) => signed_on.user.clone(),
            AuthOutcome::Answered(_) | AuthOutcome::Failed(_) => None,
        };
        logged.auth = Some(LoggedAuth {
            config: Arc::clone(&auth.config),
            user,
            waited,
        });
    }
}

fn is_sign_in(answer: &OwnAnswer) -> bool {
    matches!(answer.content, OwnContent::SignIn(_))
}
