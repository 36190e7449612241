//! Asks the sign-on of a route whether a request may be served.
//!
//! It is asked once a request, after the guards and limits and before any source of a response. What a service answers is
//! not remembered: a key that lacks a part of the request would give one client what another may have. A right password
//! is remembered by [`crate::worker::passwords`]. Whatever goes wrong, the request is not served. The body of the request
//! is not read meanwhile, and its client is not told to send it. The admin listener asks by the same functions
//! ([`ask`], [`check_user`]).

use std::sync::Arc;
use std::time::Duration;

use catamaran_upstream::Culprit;
use http::StatusCode;
use tokio::time::Instant;

use crate::exchange::downstream::Downstream;
use crate::exchange::failure::Failure;
use crate::exchange::fetch::{self, Subrequest, SubrequestError};
use crate::exchange::forward_auth::{self, AuthOutcome, AuthRequest};
use crate::exchange::leaving::{in_time, unless_left};
use crate::exchange::logged::LoggedAuth;
use crate::exchange::scene::Scene;
use crate::exchange::sites::Sites;
use crate::exchange::state::Exchange;
use crate::exchange::verdict::{OwnAnswer, Verdict};
use crate::exchange::{limits, user_auth};
use crate::site::auth::{AskedService, SiteAuth, SiteAuthKind};
use crate::users::LiveUsers;
use crate::worker::passwords::{PasswordCheck, PasswordQuestion, PasswordVerdict, Passwords};

/// Asks the sign-on, and returns the verdict with what it told, or with the answer to a client that it does not let pass.
pub(crate) async fn authenticate<'a>(
    exchange: &mut Exchange<'a>,
    down: &mut Downstream<'_>,
    mut verdict: Verdict<'a>,
    auth: &'a SiteAuth,
) -> Verdict<'a> {
    let began = Instant::now();
    let request = AuthRequest::of(&verdict);
    let scene = exchange.scene;
    let outcome = match &auth.kind {
        SiteAuthKind::Forward(service) => {
            ask(scene, exchange.sites, down, request, auth, service).await
        }
        SiteAuthKind::Users(users) => {
            let passwords = scene.worker.passwords();
            check_user(request, auth, users, passwords, move |check| {
                wait_for_hash(check, scene, down)
            })
            .await
        }
    };
    note(exchange, auth, &outcome, began.elapsed());
    match outcome {
        AuthOutcome::Granted(signed_on, cookies) => {
            for cookie in cookies.iter() {
                let fields = exchange.decided.client_fields.get_or_insert_default();
                fields.append(cookie.name_ref(), cookie.value());
            }
            verdict.identify(signed_on);
            if let Some(refusal) = limits::ask(exchange, |keys| verdict.add_user_limits(keys)) {
                verdict.refuse_by(refusal);
            }
        }
        AuthOutcome::Answered(answer) => verdict.refuse_by(answer),
        AuthOutcome::Failed(failure) => verdict.fail(failure),
    }
    verdict
}

/// Asks a service about a request. `scene` and `sites` are those of the exchange that waits for it, or of the front's own
/// if no client waits (`down`).
pub(crate) async fn ask(
    scene: Scene<'_>,
    sites: &Sites,
    down: &mut Downstream<'_>,
    request: AuthRequest<'_, '_>,
    auth: &SiteAuth,
    service: &AskedService,
) -> AuthOutcome {
    let outgoing = forward_auth::request(request, service);
    let subrequest = Subrequest {
        upstream: &sites.first().upstreams[service.upstream],
        request: &outgoing,
        time_max: service.config.timeout,
        body_max: service.config.answer_max,
    };
    let collecting = Box::pin(fetch::collect(scene, sites, subrequest));
    match unless_left(collecting, scene, down).await {
        Ok(Ok((head, body))) => forward_auth::judge(request, auth, &service.config, head, body),
        Ok(Err(SubrequestError::TooLarge)) => {
            AuthOutcome::Failed(forward_auth::bad_gateway("auth-answer"))
        }
        Ok(Err(SubrequestError::Failed(failure))) => {
            AuthOutcome::Failed(forward_auth::unanswered(failure))
        }
        Err(error) => AuthOutcome::Failed(Failure::from_client(&error)),
    }
}

/// Looks a user up in the file, and has the password checked. `wait` waits for the check, as long as the client may wait.
pub(crate) async fn check_user<F>(
    request: AuthRequest<'_, '_>,
    auth: &SiteAuth,
    users: &LiveUsers,
    passwords: &Passwords,
    wait: impl FnOnce(PasswordCheck) -> F,
) -> AuthOutcome
where
    F: Future<Output = Result<PasswordVerdict, Failure>>,
{
    let Some(credentials) = user_auth::credentials(request.head) else {
        return user_auth::deny(&users.config);
    };
    let Some(read) = users.current() else {
        return AuthOutcome::Failed(unavailable("auth-unknown"));
    };
    let user = credentials.as_ref().map(|it| it.user().to_owned()).ok();
    let site = request.grounds.site;
    let question = PasswordQuestion {
        site,
        auth: &users.name,
        users: &read,
        client: request.sender.identity.ip,
    };
    let checked = match wait(passwords.check(question, credentials)).await {
        Ok(checked) => checked,
        Err(failure) => return AuthOutcome::Failed(failure),
    };
    match (checked, user) {
        (PasswordVerdict::Right, Some(user)) if read.permits(&user) => {
            user_auth::grant(site, auth, &users.config, &user)
        }
        (PasswordVerdict::Right, _) => user_auth::deny(&users.config),
        (PasswordVerdict::Wrong, _) => user_auth::refuse_password(&users.config),
        (PasswordVerdict::Limited(wait), _) => {
            let seconds = limits::whole_seconds(wait);
            AuthOutcome::Answered(OwnAnswer::limited("auth-limited", seconds))
        }
        (PasswordVerdict::Busy, _) => AuthOutcome::Failed(unavailable("auth-busy")),
    }
}

/// Waits for a hash, unless the client leaves.
async fn wait_for_hash(
    check: PasswordCheck,
    scene: Scene<'_>,
    down: &mut Downstream<'_>,
) -> Result<PasswordVerdict, Failure> {
    let until = scene.now() + HASH_WAIT_MAX;
    let checked = in_time(check, scene, down, until).await;
    let verdict = checked.map_err(|error| Failure::from_client(&error))?;
    Ok(verdict.unwrap_or(PasswordVerdict::Busy))
}

/// The failure of a request that the front cannot decide about.
pub(crate) fn unavailable(token: &'static str) -> Failure {
    Failure::new(Culprit::Front, StatusCode::SERVICE_UNAVAILABLE, token)
}

/// Counts the result, and notes for the log who has signed on and how long that took.
fn note(exchange: &mut Exchange<'_>, auth: &SiteAuth, outcome: &AuthOutcome, waited: Duration) {
    auth.count(exchange.scene.worker.index(), outcome.result(), waited);
    if let Some(logged) = exchange.logged.as_deref_mut() {
        logged.user = match outcome {
            AuthOutcome::Granted(signed_on, _) => signed_on.user.clone(),
            AuthOutcome::Answered(_) | AuthOutcome::Failed(_) => None,
        };
        logged.auth = Some(LoggedAuth {
            config: Arc::clone(&auth.config),
            waited,
        });
    }
}

/// The longest time for which a request waits for the hash of its password.
const HASH_WAIT_MAX: Duration = Duration::from_secs(10);
