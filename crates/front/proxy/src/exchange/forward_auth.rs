//! Forward-auth: the request by which a service is asked whether a client has signed on, and what its answer means.
//!
//! Pure: the exchange sends the request ([`crate::exchange::sign_on`]), `explain` shows it. The service gets the client's
//! fields that are listed here or in the configuration, and no others: with `Range` or `If-None-Match` it would answer 206
//! or 304, and a field that only the front may send would say who has signed on.

use bytes::Bytes;
use catamaran_message::name::{
    ACCEPT, ACCEPT_LANGUAGE, AUTHORIZATION, COOKIE, ORIGIN, REFERER, SEC_FETCH_MODE, SET_COOKIE,
    USER_AGENT, X_FORWARDED_FOR, X_FORWARDED_HOST, X_REQUESTED_WITH,
};
use catamaran_message::{Fields, Id, RequestHead, ResponseHead, Target};
use catamaran_upstream::{Culprit, IpText};
use http::{Method, StatusCode};

use crate::config::{ForwardAuth, Template};
use crate::exchange::failure::Failure;
use crate::exchange::fields::body::forbid_sharing;
use crate::exchange::fields::forwarded::Sender;
use crate::exchange::fields::passage::{RequestedUrl, Values, scheme};
use crate::exchange::fields::signed_on::{ClaimRules, SignedOn};
use crate::exchange::grounds::Grounds;
use crate::exchange::outgoing::Outgoing;
use crate::exchange::verdict::{OwnAnswer, OwnContent, Verdict, wants_page};
use crate::site::Site;
use crate::site::auth::{AskedService, AuthResult, SiteAuth};
use crate::tunnel_request;

/// A client's request about which a sign-on is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AuthRequest<'q, 's> {
    pub(crate) grounds: &'q Grounds<'s>,
    pub(crate) sender: &'q Sender,
    pub(crate) head: &'q RequestHead,
    /// The path by which it is decided who may have what is asked for.
    pub(crate) path: &'q Bytes,
}

/// What the answer of a sign-on means for a request.
#[derive(Debug)]
pub(crate) enum AuthOutcome {
    /// The request is served. The cookies go with the response.
    Granted(Box<SignedOn>, Fields),
    /// The client gets this answer instead.
    Answered(OwnAnswer),
    /// There was no valid answer.
    Failed(Failure),
}

impl<'q, 's> AuthRequest<'q, 's> {
    /// The request to which a verdict belongs.
    pub(crate) fn of(verdict: &'q Verdict<'s>) -> Self {
        Self {
            grounds: &verdict.grounds,
            sender: &verdict.sender,
            head: &verdict.head,
            path: verdict.sent_path(),
        }
    }
}

impl AuthOutcome {
    /// The result to count.
    pub(crate) fn result(&self) -> AuthResult {
        match self {
            Self::Granted(..) => AuthResult::Granted,
            Self::Answered(answer) if matches!(answer.content, OwnContent::SignIn(_)) => {
                AuthResult::SignIn
            }
            Self::Answered(_) => AuthResult::Denied,
            Self::Failed(_) => AuthResult::Failed,
        }
    }
}

/// The request to the service about a client's request.
pub(crate) fn request<'s>(about: AuthRequest<'_, 's>, service: &AskedService) -> Box<Outgoing<'s>> {
    let AuthRequest {
        grounds,
        sender,
        head: asked,
        path: asked_path,
    } = about;
    let mut headers = Fields::new();
    let mut copy = |name: Id| {
        for value in asked.headers.get_all(name) {
            headers.append(name, value);
        }
    };
    SENT.into_iter().for_each(&mut copy);
    if sender.peer.trusted {
        REPORTED.into_iter().for_each(&mut copy);
    }
    for name in &service.config.request_fields {
        for value in asked.headers.get_all(name) {
            headers.append(name, value);
        }
    }
    headers.join_cookies();
    let url = RequestedUrl::new(sender, grounds.peer.local, asked);
    let method = tunnel_request::method_for_routes(asked).as_str();
    let path_query = match &asked.target.query {
        Some(query) => [&asked_path[..], b"?", query].concat(),
        None => asked_path.to_vec(),
    };
    let origin = scheme(sender.identity.secure);
    headers.insert("X-Forwarded-Method", method);
    headers.insert("X-Original-Method", method);
    headers.insert("X-Forwarded-Uri", &path_query);
    headers.insert("X-Original-URI", &path_query);
    headers.insert("X-Real-IP", IpText::new(sender.identity.ip).as_bytes());
    let whole = [origin, b"://", &url.authority[..], &path_query].concat();
    headers.insert("X-Original-URL", whole);
    let path = service.path.clone();
    let head = RequestHead {
        method: Method::GET,
        target: Target {
            path: path.forward.clone(),
            query: None,
            scheme: None,
        },
        version: asked.version,
        headers,
        authority: asked.authority.clone(),
        ..RequestHead::empty()
    };
    Outgoing::about(grounds, sender, Box::new(head), path)
}

/// What the service's answer means for a request.
pub(crate) fn judge(
    about: AuthRequest<'_, '_>,
    auth: &SiteAuth,
    service: &ForwardAuth,
    head: ResponseHead,
    body: Bytes,
) -> AuthOutcome {
    let status = head.status;
    // Nothing was asked for that a part of it could answer.
    if status.is_success() && status != StatusCode::PARTIAL_CONTENT {
        return grant(about.grounds.site, auth, service, &head.headers);
    }
    if status == StatusCode::UNAUTHORIZED
        && let Some(sign_in) = &service.sign_in
        && navigates(about.head)
    {
        return AuthOutcome::Answered(OwnAnswer::sign_in(location(about, sign_in)));
    }
    // The first is about a stored response, the second about the front's own request.
    let is_of_others = [StatusCode::NOT_MODIFIED, StatusCode::REQUEST_TIMEOUT].contains(&status);
    if is_of_others || !(status.is_redirection() || status.is_client_error()) {
        return AuthOutcome::Failed(bad_gateway("auth-status"));
    }
    let mut fields = head.headers;
    // The answer is for this client and this moment.
    forbid_sharing(&mut fields, "no-store");
    AuthOutcome::Answered(OwnAnswer::of_service(status, fields, body))
}

/// The failure of a request whose service gave an answer that the front does not take.
pub(crate) fn bad_gateway(token: &'static str) -> Failure {
    Failure::new(Culprit::Backend, StatusCode::BAD_GATEWAY, token)
}

/// The failure of a request whose subrequest failed.
pub(crate) fn unanswered(failure: Failure) -> Failure {
    match failure.status {
        StatusCode::GATEWAY_TIMEOUT => {
            Failure::new(Culprit::Backend, failure.status, "auth-timeout")
        }
        StatusCode::BAD_GATEWAY => bad_gateway("auth-answer"),
        // No backend was reached, or the request is too large for it.
        _ => failure,
    }
}

/// Takes what a 2xx tells of the client.
fn grant(site: &Site, auth: &SiteAuth, service: &ForwardAuth, answer: &Fields) -> AuthOutcome {
    let auths = site.auths.as_deref();
    let rules = ClaimRules {
        user: service.user.as_ref(),
        fields: &service.fields,
        told: auths.map_or(&[], |auths| auths.told()),
    };
    let Ok(signed_on) = SignedOn::new(&auth.config, rules, answer) else {
        return AuthOutcome::Failed(bad_gateway("auth-claim"));
    };
    let mut cookies = Fields::new();
    for cookie in answer.get_all(SET_COOKIE) {
        cookies.append(SET_COOKIE, cookie);
    }
    AuthOutcome::Granted(Box::new(signed_on), cookies)
}

/// Whether a browser navigates by this request, so that it shows a page where one can sign on. A script gets the 401.
fn navigates(head: &RequestHead) -> bool {
    if !matches!(head.method, Method::GET | Method::HEAD) {
        return false;
    }
    match head.headers.get(SEC_FETCH_MODE) {
        Some(mode) => mode == b"navigate",
        None => wants_page(head),
    }
}

/// Where the client can sign on. What it asked for is percent-encoded, so that it stays within a parameter of the query.
fn location(about: AuthRequest<'_, '_>, sign_in: &Template) -> Vec<u8> {
    let AuthRequest {
        grounds,
        sender,
        head,
        path,
    } = about;
    let url = RequestedUrl::new(sender, grounds.peer.local, head);
    let values = Values {
        path,
        ..url.values(grounds, head)
    };
    values.fill_encoded(sign_in)
}

/// The fields of the client's request that the service gets.
const SENT: [Id; 9] = [
    COOKIE,
    AUTHORIZATION,
    ACCEPT,
    ACCEPT_LANGUAGE,
    USER_AGENT,
    ORIGIN,
    REFERER,
    X_REQUESTED_WITH,
    SEC_FETCH_MODE,
];

/// The fields of a trusted proxy to which the front adds its own.
const REPORTED: [Id; 2] = [X_FORWARDED_FOR, X_FORWARDED_HOST];
