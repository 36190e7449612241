//! The sign-on of the admin listener (`auth` of `[admin]`), which is asked as that of a route is.
//!
//! A client over TCP that does not have the token must sign on: by a user and a password, which are looked up here, so that
//! operators get in when the workers are busy; or at a service, which a worker asks, since connections to upstreams belong
//! to workers. Wrong passwords are counted with those of the sign-on's routes. The Unix socket needs none of this: who may
//! open it may do everything.

use std::sync::Arc;
use std::time::Duration;

use catamaran_message::{Fields, RequestHead};
use catamaran_upstream::Culprit;
use http::StatusCode;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::reply::Reply;
use super::request::Peer;
use super::{Desk, access};
use crate::config::{AdminConfig, ListenAddress, ListenerConfig};
use crate::exchange::downstream::Downstream;
use crate::exchange::failure::Failure;
use crate::exchange::fields::forwarded::Sender;
use crate::exchange::forward_auth::{AuthOutcome, AuthRequest};
use crate::exchange::grounds::Grounds;
use crate::exchange::scene::Scene;
use crate::exchange::sign_on::{self, unavailable};
use crate::exchange::sites::Sites;
use crate::exchange::verdict::{OwnAnswer, OwnContent};
use crate::listener::BoundAddress;
use crate::peer::PeerFacts;
use crate::site::Site;
use crate::site::auth::{SiteAuth, SiteAuthKind};
use crate::users::LiveUsers;
use crate::worker::Worker;
use crate::worker::passwords::{PasswordCheck, PasswordVerdict};

/// Who sends a request, as far as the sign-on of the listener tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    /// The listener has no sign-on, or the client has the token.
    NotAsked,
    /// A client that may pass, and its user; `None`: the service did not name one.
    SignedOn(Option<String>),
}

/// A request to the admin listener about which its sign-on is asked.
#[derive(Debug)]
struct AdminQuestion {
    /// The name of the sign-on.
    auth: String,
    listener: ListenerConfig,
    peer: PeerFacts,
    head: Box<RequestHead>,
}

/// Looks up who sends a request, and the cookies that its answer sets for the sign-on. The error is the answer that refuses
/// the request.
pub(super) async fn caller(
    desk: &Desk,
    config: &AdminConfig,
    bound: &BoundAddress,
    peer: Peer,
    head: &RequestHead,
) -> Result<(Caller, Fields), Reply> {
    let (Some(auth), Peer::Tcp(remote)) = (&config.auth, peer) else {
        return Ok((Caller::NotAsked, Fields::new()));
    };
    if access::has_token(config, &head.headers) {
        return Ok((Caller::NotAsked, Fields::new()));
    }
    let local = match bound {
        BoundAddress::Tcp(local) => *local,
        BoundAddress::Unix(_) => remote,
    };
    let question = AdminQuestion {
        auth: auth.clone(),
        listener: ListenerConfig::new(ListenAddress::Tcp(local)),
        peer: PeerFacts {
            remote,
            local,
            secure: false,
            tls: None,
        },
        head: Box::new(head.clone()),
    };
    match question.ask(desk).await {
        AuthOutcome::Granted(signed_on, cookies) => {
            let user = signed_on.user.as_deref();
            let name = user.map(|user| String::from_utf8_lossy(user).into_owned());
            Ok((Caller::SignedOn(name), cookies))
        }
        AuthOutcome::Answered(answer) => Err(refusal(answer)),
        AuthOutcome::Failed(failure) => Err(failed(failure)),
    }
}

impl AdminQuestion {
    /// Asks the sign-on, and counts the result.
    async fn ask(self, desk: &Desk) -> AuthOutcome {
        let site = desk.shared.site.load_full();
        let Some(auth) = self.sign_on(&site).cloned() else {
            return unknown();
        };
        let began = Instant::now();
        let outcome = match &auth.kind {
            SiteAuthKind::Users(users) => self.check_user(desk, &site, &auth, users).await,
            SiteAuthKind::Forward(_) => self.have_asked(&desk.worker).await,
        };
        let (result, waited) = (outcome.result(), began.elapsed());
        // Only a worker may count.
        let count = move |worker: Arc<Worker>| async move {
            auth.count(worker.index(), result, waited);
        };
        if !desk.worker.background().order(count) {
            tracing::debug!("the sign-on of an administrator is not counted: the worker is busy");
        }
        outcome
    }

    /// Looks up a user in the file of the sign-on.
    async fn check_user(
        &self,
        desk: &Desk,
        site: &Site,
        auth: &SiteAuth,
        users: &LiveUsers,
    ) -> AuthOutcome {
        let wait = |check: PasswordCheck| async {
            let checked = timeout(WAIT_MAX, check).await;
            Ok(checked.unwrap_or(PasswordVerdict::Busy))
        };
        let grounds = self.grounds(site, &desk.worker);
        let sender = self.sender(site);
        let request = self.request(&grounds, &sender);
        sign_on::check_user(request, auth, users, &desk.shared.passwords, wait).await
    }

    /// Has a worker ask the service. If this future is dropped, the worker stops asking.
    async fn have_asked(self, worker: &Worker) -> AuthOutcome {
        let (answer, answered) = oneshot::channel();
        let asks = move |worker| async move { self.ask_service(worker, answer).await };
        if !worker.background().order(asks) {
            return AuthOutcome::Failed(unavailable("auth-busy"));
        }
        match timeout(WAIT_MAX, answered).await {
            Ok(Ok(outcome)) => outcome,
            // The worker has ended.
            Ok(Err(_)) => AuthOutcome::Failed(unavailable("auth-busy")),
            Err(_) => {
                let status = StatusCode::GATEWAY_TIMEOUT;
                AuthOutcome::Failed(Failure::new(Culprit::Backend, status, "auth-timeout"))
            }
        }
    }

    /// Asks the service, on its worker.
    async fn ask_service(self, worker: Arc<Worker>, mut answer: oneshot::Sender<AuthOutcome>) {
        let sites = Sites::new(worker.site());
        let site = sites.first();
        let Some(auth) = self.sign_on(site) else {
            answer.send(unknown()).ok();
            return;
        };
        // A reload may have changed its kind.
        let SiteAuthKind::Forward(service) = &auth.kind else {
            answer.send(unknown()).ok();
            return;
        };
        let deadline = worker.deadlines().join();
        deadline.attach().await;
        let scene = Scene {
            worker: &worker,
            listener: &self.listener,
            deadline: &deadline,
            peer: &self.peer,
        };
        let grounds = self.grounds(site, &worker);
        let sender = self.sender(site);
        let request = self.request(&grounds, &sender);
        let mut nobody = Downstream::Nobody;
        let asking = sign_on::ask(scene, &sites, &mut nobody, request, auth, service);
        tokio::select! {
            // An error means that the client has left.
            outcome = asking => { answer.send(outcome).ok(); }
            () = answer.closed() => {}
        }
    }

    /// The sign-on; `None`: the site does not have it.
    fn sign_on<'s>(&self, site: &'s Site) -> Option<&'s SiteAuth> {
        site.auths.as_ref()?.named(&self.auth)
    }

    fn grounds<'s>(&'s self, site: &'s Site, worker: &'s Worker) -> Grounds<'s> {
        Grounds {
            site,
            listener: &self.listener,
            peer: &self.peer,
            id: worker.next_id(),
            trace: None,
            worker: Some(worker),
        }
    }

    fn sender(&self, site: &Site) -> Sender {
        Sender::new(&self.peer, &self.head, &site.server.trusted_proxies)
    }

    fn request<'q, 's>(
        &'q self,
        grounds: &'q Grounds<'s>,
        sender: &'q Sender,
    ) -> AuthRequest<'q, 's> {
        AuthRequest {
            grounds,
            sender,
            head: &self.head,
            // Paths of this listener are not normalised.
            path: &self.head.target.path,
        }
    }
}

/// The outcome if the front does not have the sign-on: it lets nobody pass.
fn unknown() -> AuthOutcome {
    AuthOutcome::Failed(unavailable("auth-unknown"))
}

/// The answer to a client that the sign-on does not let pass.
fn refusal(answer: OwnAnswer) -> Reply {
    let token = answer.reason.token();
    match answer.content {
        OwnContent::Unauthorized(challenge) => {
            let detail = match token {
                "auth-password" => "the user or the password is wrong",
                _ => "send a user and a password of the sign-on that [admin] names, or the token",
            };
            Reply::challenge(&challenge, token, detail)
        }
        OwnContent::Limited(seconds) => {
            let detail = "this address has sent too many wrong passwords";
            let status = StatusCode::TOO_MANY_REQUESTS;
            Reply::problem(status, token, detail).retry_after(seconds)
        }
        OwnContent::SignIn(location) => Reply::sign_in(&location),
        OwnContent::Service(status, fields, body) => Reply::of_service(status, &fields, &body),
        OwnContent::Page(_)
        | OwnContent::Text(..)
        | OwnContent::Allow(..)
        | OwnContent::Preflight
        | OwnContent::Redirect(..)
        | OwnContent::Challenge(_) => failed(unavailable(token)),
    }
}

/// The answer to a client whose sign-on gave no valid answer.
fn failed(failure: Failure) -> Reply {
    let token = failure.reason.token();
    let detail = match token {
        "auth-unknown" => "`auth` of [admin] names a sign-on that the front does not have; reload",
        "auth-busy" => "too many wait to sign on",
        _ => "the service of the sign-on gave no valid answer",
    };
    Reply::problem(failure.status, token, detail)
}

/// The longest time for which a request waits for its sign-on.
const WAIT_MAX: Duration = Duration::from_secs(5);
