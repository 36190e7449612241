//! The verdict on a request: the one decision between its head and the first byte to a source.
//!
//! [`decide`] is pure: it depends on its arguments alone, awaits nothing, counts nothing, and reads neither a clock nor a
//! file. Its verdict names what is still to be asked before the request is served: limits, and then the route's sign-on.
//! The exchange asks them, and [`Verdict::settle`], which is pure as well, makes the request for a backend or the answer.
//! So nothing is made for a request that is refused. The exchange obeys the verdict and `explain` shows it, so that they
//! always agree. All other effects follow the decision: the exchange counts dropped fields, charges the retry budget,
//! picks and leases a backend, retries, or reads the file of a challenge.

mod files_request;
mod own_answer;
mod preflight;
mod siblings;

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use catamaran_files::Directory;
use catamaran_message::{BodyLength, RequestHead, Scheme};
use catamaran_upstream::Culprit;
pub(crate) use files_request::{FilesRequest, WithoutFile, wants_page};
use http::{Method, StatusCode};
pub(crate) use own_answer::{OwnAnswer, OwnContent};

use crate::config::RouteTarget;
use crate::exchange::cache_request::{self, CacheRequest, KeyGrounds, SiblingRequest};
use crate::exchange::compression::{self, CompressionOffer};
use crate::exchange::cors::CorsFields;
use crate::exchange::failure::Failure;
use crate::exchange::fields::clean;
use crate::exchange::fields::forwarded::{self, Sender};
use crate::exchange::fields::passage::{Passage, RequestedUrl, Values};
use crate::exchange::fields::signed_on::SignedOn;
use crate::exchange::grounds::Grounds;
use crate::exchange::guards::Guard;
use crate::exchange::limit_keys::{self, LimitKeys, SignedRequest};
use crate::exchange::outgoing::{Outgoing, RequestPurpose};
use crate::exchange::secured;
use crate::path::{self, NormalPath, PathFault};
use crate::peer::PeerFacts;
use crate::site::Upstream;
use crate::site::auth::SiteAuth;
use crate::site::route::{Action, ConditionFacts, Route, Wanted};
use crate::site::rules::Rules;
use crate::tunnel_request::{self, TunnelRequest};

/// The verdict on a request: who answers it, by which route, and what is to be asked before.
#[derive(Debug)]
pub(crate) struct Verdict<'s> {
    pub(crate) grounds: Grounds<'s>,
    pub(crate) sender: Sender,
    /// The route that matched; `None`: none was looked for, or none matched.
    pub(crate) route: Option<&'s Route>,
    /// The fields of CORS that the response gets, whoever answers; `None`: the route has no `[route.cors]`.
    pub(crate) cors: Option<Box<CorsFields<'s>>>,
    pub(crate) head: Box<RequestHead>,
    judgement: Judgement<'s>,
    /// What the route's sign-on told; `None`: nothing.
    signed_on: Option<Box<SignedOn>>,
}

/// Who answers a request once everything is asked.
#[derive(Debug)]
enum Judgement<'s> {
    /// The front refuses the request, whatever its route is.
    Refused(Failure),
    /// The front answers before any route.
    BeforeRoutes(Box<OwnAnswer>),
    /// The route says who answers, or no route matches. The path is the one to forward, which the route may have
    /// rewritten.
    OnRoute(Target<'s>, NormalPath),
}

/// How a request is served.
#[derive(Debug)]
pub(crate) struct Service<'s> {
    /// The changes that the route makes to the response; `None`: none, or the request is refused.
    pub(crate) passage: Option<Box<Passage<'s>>>,
    pub(crate) decision: Decision<'s>,
}

/// Who answers a request, with what is needed for it.
#[derive(Debug)]
pub(crate) enum Decision<'s> {
    /// A backend answers.
    Forward(Forward<'s>),
    /// A file is sent, if there is one.
    Files(Box<FilesRequest<'s>>),
    /// The front answers itself.
    Answer(Box<OwnAnswer>),
    /// The front refuses the request.
    Refuse(Failure),
}

/// A request for a backend of `upstream`. The backend is picked later, by the upstream's policy and
/// [`Outgoing::facts`].
#[derive(Debug)]
pub(crate) struct Forward<'s> {
    pub(crate) upstream: &'s Upstream,
    pub(crate) outgoing: Box<Outgoing<'s>>,
    /// The tunnel that the request asks for, if the route allows it.
    pub(crate) tunnel: Option<Box<TunnelRequest<'s>>>,
    /// The key and the demands for the route's cache; `None`: the route has no cache.
    pub(crate) cache: Option<Box<CacheRequest<'s>>>,
}

impl Forward<'_> {
    /// Makes requests with the same cache key equal for the backend.
    #[inline]
    fn settle(&mut self) {
        if let Some(cache) = &self.cache {
            cache.settle(&mut self.outgoing);
        }
    }
}

/// Where a request goes, as its route and method decide.
#[derive(Debug)]
enum Target<'s> {
    /// A backend of this upstream; before it, if there is a directory, a file in it.
    Upstream(&'s Upstream, Option<&'s Arc<Directory>>),
    /// A file in this directory only.
    Files(&'s Arc<Directory>),
    /// The front's own answer.
    Own(Box<OwnAnswer>),
}

/// Decides who answers a request, and what is to be asked before.
#[inline]
pub(crate) fn decide<'s>(grounds: Grounds<'s>, mut head: Box<RequestHead>) -> Verdict<'s> {
    let networks = &grounds.site.server.trusted_proxies;
    let sender = Sender::new(grounds.peer, &head, networks);
    let case = Case {
        grounds: &grounds,
        sender: &sender,
        signed_on: None,
    };
    let RouteVerdict {
        route,
        cors,
        judgement,
    } = match case.before_routes(&mut head) {
        Ok(None) => case.by_route(&head),
        Ok(Some(answer)) => Judgement::BeforeRoutes(Box::new(answer)).into(),
        Err(failure) => Judgement::Refused(failure).into(),
    };
    Verdict {
        grounds,
        sender,
        route,
        cors,
        head,
        judgement,
        signed_on: None,
    }
}

impl<'s> Verdict<'s> {
    /// Adds the limits that the request is subject to. A request that is refused in any case, or answered before any
    /// route, uses up none.
    #[inline]
    pub(crate) fn add_limits<'r>(&'r self, keys: &mut LimitKeys<'s, 'r>) {
        match &self.judgement {
            Judgement::OnRoute(target, _) if !target.is_guarded() => {
                limit_keys::add(keys, &self.grounds, &self.sender, self.route, &self.head);
            }
            Judgement::OnRoute(..) | Judgement::BeforeRoutes(_) | Judgement::Refused(_) => {}
        }
    }

    /// Adds the limits by user, once the route's sign-on has let the request pass.
    pub(crate) fn add_user_limits<'r>(&'r self, keys: &mut LimitKeys<'s, 'r>) {
        if let Some(signed_on) = &self.signed_on {
            let request = SignedRequest {
                head: &self.head,
                user: signed_on.user.as_ref(),
            };
            limit_keys::add_by_user(keys, &self.grounds, &self.sender, self.route, request);
        }
    }

    /// The sign-on that clients of the route need. It is asked once the limits have let the request pass.
    #[inline]
    pub(crate) fn auth(&self) -> Option<&'s SiteAuth> {
        let rules = rules_of(self.route).filter(|rules| rules.asks_auth())?;
        match &self.judgement {
            Judgement::OnRoute(Target::Own(answer), _) if answer.precedes_auth() => None,
            Judgement::OnRoute(..) => self.grounds.site.auth(rules),
            Judgement::BeforeRoutes(_) | Judgement::Refused(_) => None,
        }
    }

    /// The normalised path that the client sent.
    pub(crate) fn sent_path(&self) -> &Bytes {
        match &self.judgement {
            Judgement::OnRoute(_, path) => path.asked(),
            Judgement::BeforeRoutes(_) | Judgement::Refused(_) => &self.head.target.path,
        }
    }

    /// Notes what the route's sign-on told of the client.
    pub(crate) fn identify(&mut self, signed_on: Box<SignedOn>) {
        self.signed_on = Some(signed_on);
    }

    /// Refuses the request, because something that was asked gave no answer.
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.judgement = Judgement::Refused(failure);
    }

    /// Answers the request so instead, because something that was asked refuses it.
    pub(crate) fn refuse_by(&mut self, answer: OwnAnswer) {
        if let Judgement::OnRoute(target, _) = &mut self.judgement {
            *target = Target::own(answer);
        }
    }

    /// Makes what serves the request: the request for a backend or a file, or the answer.
    #[inline]
    pub(crate) fn settle(self) -> Service<'s> {
        let Self {
            grounds,
            sender,
            route,
            cors: _,
            head,
            judgement,
            signed_on,
        } = self;
        let case = Case {
            grounds: &grounds,
            sender: &sender,
            signed_on: signed_on.as_deref(),
        };
        match judgement {
            Judgement::Refused(failure) => Service::refused(failure),
            Judgement::BeforeRoutes(answer) => case.answer(None, answer, None, &head),
            Judgement::OnRoute(target, path) => match target {
                Target::Upstream(upstream, files) => {
                    case.forward(route, upstream, files, path, head)
                }
                Target::Files(directory) => case.serve_files(route, directory, path, head),
                Target::Own(answer) => case
                    .answer(route, answer, Some(&path), &head)
                    .with_spent(head),
            },
        }
    }
}

impl Target<'_> {
    fn own(answer: OwnAnswer) -> Self {
        Self::Own(Box::new(answer))
    }

    /// Whether a guard of the route refuses the request.
    fn is_guarded(&self) -> bool {
        matches!(self, Self::Own(answer) if answer.guard.is_some())
    }
}

impl Service<'_> {
    /// Keeps the head of a request that the front answers itself.
    fn with_spent(mut self, head: Box<RequestHead>) -> Self {
        if let Decision::Answer(answer) = &mut self.decision {
            answer.spent = Some(head);
        }
        self
    }

    fn refused(failure: Failure) -> Self {
        Self {
            passage: None,
            decision: Decision::Refuse(failure),
        }
    }
}

/// The part of a verdict that depends on the request's route.
struct RouteVerdict<'s> {
    route: Option<&'s Route>,
    cors: Option<Box<CorsFields<'s>>>,
    judgement: Judgement<'s>,
}

impl<'s> From<Judgement<'s>> for RouteVerdict<'s> {
    /// The verdict on a request for which no route was found.
    fn from(judgement: Judgement<'s>) -> Self {
        Self {
            route: None,
            cors: None,
            judgement,
        }
    }
}

/// The facts besides the path by which a request's route is looked up.
pub(crate) fn wanted<'h>(
    grounds: &Grounds<'_>,
    sender: &Sender,
    head: &'h RequestHead,
) -> Result<Wanted<'h>, Failure> {
    let site = grounds.site;
    let mut wanted = Wanted {
        host: head.authority.as_ref().map(|authority| &authority.host[..]),
        listener: None,
        secure: sender.identity.secure,
        method: tunnel_request::method_for_routes(head),
        conditions: ConditionFacts::Of(head, sender.identity.ip),
        with_parameters: None,
    };
    if site.parts_listeners {
        // If a reload has removed the listener, nothing says which routes are its own.
        let removed = || Failure::client(StatusCode::MISDIRECTED_REQUEST, "listener-removed");
        wanted.listener = Some(site.listener(grounds.listener).ok_or_else(removed)?);
    }
    Ok(wanted)
}

/// A request for which a verdict is being made.
#[derive(Clone, Copy)]
struct Case<'c, 's> {
    grounds: &'c Grounds<'s>,
    sender: &'c Sender,
    /// What the route's sign-on told; `None`: nothing.
    signed_on: Option<&'c SignedOn>,
}

impl<'s> Case<'_, 's> {
    /// Answers or refuses a request without looking for a route; `Ok(None)`: the route decides.
    fn before_routes(&self, head: &mut RequestHead) -> Result<Option<OwnAnswer>, Failure> {
        if head.method == Method::TRACE || head.method.as_str() == "TRACK" {
            // Both would send the fields of the request back to a script (RFC 9110, section 9.3.8).
            let status = StatusCode::METHOD_NOT_ALLOWED;
            return Ok(Some(OwnAnswer::page(status, "method-trace")));
        }
        if head.method == Method::OPTIONS && !clean::count_forwards(&mut head.headers) {
            let status = StatusCode::NO_CONTENT;
            return Ok(Some(OwnAnswer::page(status, "max-forwards")));
        }
        self.check_names(head)?;
        self.by_listener(head)
    }

    /// Refuses a host or scheme that must not be used on this connection.
    fn check_names(&self, head: &RequestHead) -> Result<(), Failure> {
        let misdirected = |token| Failure::client(StatusCode::MISDIRECTED_REQUEST, token);
        let connection = self.grounds.peer;
        if !stands_for(connection, head) {
            return Err(misdirected("sni-mismatch"));
        }
        let Some(scheme) = head.target.scheme else {
            return Ok(());
        };
        if (scheme == Scheme::Https) == connection.secure {
            return Ok(());
        }
        // Only a trusted peer may name another scheme than its connection has (RFC 9110, section 7.4).
        if self.sender.peer.trusted && forwarded::reported_scheme(head).is_some() {
            Ok(())
        } else {
            Err(misdirected("scheme-mismatch"))
        }
    }

    /// The listener's own answer, before any route; `None`: there is none.
    fn by_listener(&self, head: &RequestHead) -> Result<Option<OwnAnswer>, Failure> {
        let listener = self.grounds.listener;
        if secured::is_challenge(&head.target.path) {
            // A challenge is fetched in clear text, before the front has a certificate: it is never redirected.
            let reads = matches!(head.method, Method::GET | Method::HEAD);
            if !reads || (listener.acme_webroot.is_none() && listener.acme_pending.is_empty()) {
                return Ok(None);
            }
            let files = secured::challenge_files(listener, &head.target.path);
            return Ok(Some(match files {
                Some(files) => OwnAnswer::new(OwnContent::Challenge(files), "acme-challenge"),
                None => OwnAnswer::page(StatusCode::NOT_FOUND, "acme-token"),
            }));
        }
        let Some(port) = listener.redirect_https else {
            return Ok(None);
        };
        if self.sender.identity.secure {
            return Ok(None);
        }
        let Some(authority) = &head.authority else {
            let status = StatusCode::BAD_REQUEST;
            return Err(Failure::client(status, "redirect-no-host"));
        };
        let location = secured::location(authority, &head.target, port);
        let status = StatusCode::PERMANENT_REDIRECT;
        let answer = OwnAnswer::redirect(status, location, "redirect-https");
        Ok(Some(answer))
    }

    /// Makes the verdict by the request's route.
    #[inline]
    fn by_route(&self, head: &RequestHead) -> RouteVerdict<'s> {
        let path = match path::normalise(&head.target.path) {
            Ok(path) => path,
            Err(fault) => return Judgement::Refused(path_failure(fault)).into(),
        };
        let route = match self.route(&path, head) {
            Ok(route) => route,
            Err(failure) => return Judgement::Refused(failure).into(),
        };
        if self.grounds.site.routes.has_cors()
            && let Some(preflight) = self.preflight(route, &path, head)
        {
            return self.answer_preflight(preflight, path);
        }
        let cors_config = rules_of(route).and_then(Rules::cors);
        let cors = cors_config.map(|config| Box::new(CorsFields::of_request(config, head)));
        let judgement = match self.on_route(route, path, head) {
            Ok((target, path)) => Judgement::OnRoute(target, path),
            Err(failure) => Judgement::Refused(failure),
        };
        RouteVerdict {
            route,
            cors,
            judgement,
        }
    }

    /// Looks the request's route up; `Ok(None)`: none matches.
    #[inline]
    fn route(&self, path: &NormalPath, head: &RequestHead) -> Result<Option<&'s Route>, Failure> {
        let routes = &self.grounds.site.routes;
        let wanted = wanted(self.grounds, self.sender, head)?;
        let index = routes.decide(wanted, path).map_err(path_failure)?;
        Ok(index.map(|index| &routes.routes()[index]))
    }

    /// Where a request goes whose route is known, and its path as that route has it.
    #[inline]
    fn on_route(
        &self,
        route: Option<&'s Route>,
        mut path: NormalPath,
        head: &RequestHead,
    ) -> Result<(Target<'s>, NormalPath), Failure> {
        if let Some(route) = route {
            capture(route, &mut path);
        }
        let target = self.target(route, &path, head)?;
        // The front's own answers are made from the path that the client sent.
        if !matches!(target, Target::Own(_))
            && let Some(rules) = rules_of(route)
        {
            rules.rewrite(&mut path).map_err(path_failure)?;
        }
        Ok((target, path))
    }

    /// Where a request of this route goes.
    fn target(
        &self,
        route: Option<&'s Route>,
        path: &NormalPath,
        head: &RequestHead,
    ) -> Result<Target<'s>, Failure> {
        let Grounds {
            site,
            listener,
            peer,
            ..
        } = *self.grounds;
        let rules = rules_of(route);
        let client = &self.sender.identity;
        if let Some(guard) = rules.and_then(|rules| Guard::refusing(rules, peer, client)) {
            return Ok(Target::own(OwnAnswer::guarded(guard)));
        }
        // A sign-on that the site does not have lets nobody pass.
        if let Some(rules) = rules.filter(|rules| rules.asks_auth())
            && site.auth(rules).is_none()
        {
            let status = StatusCode::SERVICE_UNAVAILABLE;
            return Err(Failure::new(Culprit::Front, status, "auth-unknown"));
        }
        check_length(head.body, Rules::body_max(rules, listener))?;
        check_tunnel(route, head)?;
        let no_route = || OwnAnswer::page(StatusCode::NOT_FOUND, "no-route");
        let Some(route) = route else {
            let methods = site
                .routes
                .methods(wanted(self.grounds, self.sender, head)?, path);
            return Ok(Target::own(if methods.is_empty() {
                no_route()
            } else {
                let content = OwnContent::Allow(StatusCode::METHOD_NOT_ALLOWED, methods);
                OwnAnswer::new(content, "route-method")
            }));
        };
        Ok(match route.action {
            Action::Upstream(index) => self.upstream(index, rules, head),
            Action::Split(split) => {
                let index = self.upstream_of_split(split, rules, head);
                self.upstream(index, rules, head)
            }
            Action::Status(status) => Target::own(match rules.and_then(Rules::text) {
                Some(text) => self.text(status, text, path, head),
                None => OwnAnswer::page(status, "route-status"),
            }),
            // Such a route always has this target, as one with `Files` has a directory.
            Action::Redirect => Target::own(match &route.config.target {
                RouteTarget::Redirect(to) => self.redirect(to, &route.config, path, head),
                _ => no_route(),
            }),
            Action::Files => match rules.and_then(Rules::files) {
                Some(directory) => files_alone(directory, head),
                None => Target::own(no_route()),
            },
        })
    }

    /// The upstream with this index; before it the files of the route, if a file may answer.
    fn upstream(&self, index: usize, rules: Option<&'s Rules>, head: &RequestHead) -> Target<'s> {
        let directory = rules.and_then(Rules::files);
        let files = directory.filter(|_| may_be_file(rules, head));
        Target::Upstream(&self.grounds.site.upstreams[index], files)
    }

    /// The index of the upstream of a split route that gets the request: the one that has the member of its session,
    /// else one chosen by weight.
    fn upstream_of_split(&self, split: usize, rules: Option<&Rules>, head: &RequestHead) -> usize {
        let split = self.grounds.site.routes.split(split);
        let is_sticky = rules.is_none_or(|rules| !rules.config().unsticky);
        if is_sticky {
            for index in split.upstreams() {
                let sticky = self.grounds.site.upstreams[index].sticky.as_ref();
                if sticky.is_some_and(|sticky| sticky.has_member(head)) {
                    return index;
                }
            }
        }
        split.pick(self.grounds.id.number())
    }

    /// Makes the request for a backend, or first for a file.
    fn forward(
        &self,
        route: Option<&'s Route>,
        upstream: &'s Upstream,
        files: Option<&'s Arc<Directory>>,
        path: NormalPath,
        mut head: Box<RequestHead>,
    ) -> Service<'s> {
        let rules = rules_of(route);
        let tunnel = rules.and_then(|rules| rules.tunnel(&head)).map(Box::new);
        let compression = rules.and_then(|rules| self.compression(rules, &head));
        if compression.is_some() {
            compression::strengthen(&mut head.headers);
        }
        let purpose = RequestPurpose {
            upstream,
            upgrade: tunnel.as_ref().map(|tunnel| tunnel.token),
            is_cached: rules.and_then(Rules::cache).is_some(),
            asks_auth: rules.is_some_and(Rules::asks_auth),
            signed_on: self.signed_on,
        };
        // A request that changes something also makes what the siblings have stored invalid.
        let siblings = if purpose.is_cached && cache_request::changes(&head.method) {
            self.siblings(route, purpose, &head, &path)
        } else {
            Vec::new()
        };
        let mut outgoing = match Outgoing::new(self.grounds, self.sender, purpose, head, path) {
            Ok(outgoing) => outgoing,
            Err(failure) => return Service::refused(failure),
        };
        let passage = rules.and_then(|rules| {
            let mut passage = outgoing.apply_route(rules, self.grounds.id)?;
            passage.compression = compression;
            Some(passage)
        });
        let cache =
            rules.and_then(|rules| self.cache_request(rules, upstream, &siblings, &outgoing));
        let mut forward = Forward {
            cache,
            upstream,
            outgoing,
            tunnel,
        };
        let Some(directory) = files else {
            forward.settle();
            return Service {
                passage,
                decision: Decision::Forward(forward),
            };
        };
        let path = &forward.outgoing.path;
        let (sent, path) = (path.asked().clone(), path.forward.clone());
        let without_file = WithoutFile::Forward(forward);
        let mut request = FilesRequest::new(directory, sent, path, without_file);
        // The query for the file is made, so the cache may change the head.
        if let WithoutFile::Forward(forward) = &mut request.without_file {
            forward.settle();
        }
        Service {
            passage,
            decision: Decision::Files(request),
        }
    }

    /// The key and the demands for the cache of the route; `None`: it has no cache.
    #[inline]
    fn cache_request(
        &self,
        rules: &'s Rules,
        upstream: &'s Upstream,
        siblings: &[SiblingRequest<'s>],
        outgoing: &Outgoing<'s>,
    ) -> Option<Box<CacheRequest<'s>>> {
        let cache = self.grounds.site.caches.get(rules.cache()?)?;
        let sent = outgoing.path.asked();
        let is_changed = rules.changes_path() && *sent != outgoing.path.forward;
        let grounds = KeyGrounds {
            upstream,
            digest: rules.digest(),
            sent: is_changed.then_some(&sent[..]),
        };
        let request = CacheRequest::new(cache, grounds, siblings, outgoing);
        Some(Box::new(request))
    }

    /// Makes the request for a file on a route without an upstream.
    fn serve_files(
        &self,
        route: Option<&'s Route>,
        directory: &'s Arc<Directory>,
        path: NormalPath,
        head: Box<RequestHead>,
    ) -> Service<'s> {
        let mut passage = self.own_passage(route, Some(&path), &head);
        if let (Some(passage), Some(rules)) = (&mut passage, rules_of(route)) {
            passage.compression = self.compression(rules, &head);
        }
        let without_file = WithoutFile::NotFound(head);
        let sent = path.asked().clone();
        let request = FilesRequest::new(directory, sent, path.forward, without_file);
        Service {
            passage,
            decision: Decision::Files(request),
        }
    }

    /// The changes that the route makes to an answer of the front's own; `None`: none. `path` is `None` if no route was
    /// looked for.
    fn own_passage(
        &self,
        route: Option<&'s Route>,
        path: Option<&NormalPath>,
        head: &RequestHead,
    ) -> Option<Box<Passage<'s>>> {
        let rules = rules_of(route).filter(|rules| rules.changes_responses())?;
        let url = RequestedUrl::new(self.sender, self.grounds.peer.local, head);
        let of_url = url.values(self.grounds, head);
        let values = path.map_or(of_url, |path| Values {
            path: path.asked(),
            captured: path.captured(),
            ..of_url
        });
        Some(Box::new(Passage::new(rules, values, url.authority.clone())))
    }

    /// The offer to compress the response, if the route wants that. It uses the head as the client sent it, because
    /// the route may change the `Accept-Encoding` that backends see.
    fn compression(&self, rules: &'s Rules, head: &RequestHead) -> Option<CompressionOffer<'s>> {
        let config = rules.compress()?;
        let memory_max = self.grounds.site.server.compress_memory;
        Some(CompressionOffer::new(config, memory_max, head))
    }

    /// The front gives this answer itself.
    fn answer(
        &self,
        route: Option<&'s Route>,
        answer: Box<OwnAnswer>,
        path: Option<&NormalPath>,
        head: &RequestHead,
    ) -> Service<'s> {
        Service {
            passage: self.own_passage(route, path, head),
            decision: Decision::Answer(answer),
        }
    }
}

/// Whether a file may answer a request that otherwise goes to a backend: it is a GET or HEAD, and asks for no tunnel.
fn may_be_file(rules: Option<&Rules>, head: &RequestHead) -> bool {
    let reads = matches!(head.method, Method::GET | Method::HEAD);
    reads && rules.and_then(|rules| rules.tunnel(head)).is_none()
}

/// Where a request goes on a route that has files and no upstream.
fn files_alone<'s>(directory: &'s Arc<Directory>, head: &RequestHead) -> Target<'s> {
    let (status, token) = match head.method {
        Method::GET | Method::HEAD => return Target::Files(directory),
        Method::OPTIONS => (StatusCode::NO_CONTENT, "file-options"),
        _ => (StatusCode::METHOD_NOT_ALLOWED, "file-method"),
    };
    let methods = vec![Method::GET, Method::HEAD, Method::OPTIONS];
    Target::own(OwnAnswer::new(OwnContent::Allow(status, methods), token))
}

fn rules_of(route: Option<&Route>) -> Option<&Rules> {
    route?.rules.as_deref()
}

/// Notes what the route's expression captures of the path, if that is used.
fn capture(route: &Route, path: &mut NormalPath) {
    if route.captures
        && let Some(expression) = &route.config.regex
    {
        path.capture(|path| expression.captured(path));
    }
}

/// Whether the connection's certificate, and the name for which its client was verified, are valid for the request's
/// host.
fn stands_for(peer: &PeerFacts, head: &RequestHead) -> bool {
    let Some(session) = peer.tls.as_deref() else {
        return true;
    };
    let (Some(profile), Some(authority)) = (session.profile.as_deref(), &head.authority) else {
        return true;
    };
    let host: Cow<'_, str> = String::from_utf8_lossy(&authority.host);
    profile.allows(&host, session.facts.sni.as_deref())
}

/// Refuses a CONNECT with a protocol that the route does not allow. A request with `Upgrade` can be served without a
/// tunnel; such a CONNECT cannot.
fn check_tunnel(route: Option<&Route>, head: &RequestHead) -> Result<(), Failure> {
    if !tunnel_request::is_extended_connect(head) {
        return Ok(());
    }
    // Only a backend serves a tunnel.
    let forwarding = route.filter(|route| route.config.target.forwards());
    match rules_of(forwarding).and_then(|rules| rules.tunnel(head)) {
        Some(_) => Ok(()),
        None => Err(Failure::client(
            StatusCode::NOT_IMPLEMENTED,
            "connect-protocol",
        )),
    }
}

/// Refuses a body whose announced length is above the maximum. The relay counts bodies of unknown length.
fn check_length(body: BodyLength, max: Option<u64>) -> Result<(), Failure> {
    if let (BodyLength::Known(length), Some(max)) = (body, max)
        && length > max
    {
        let status = StatusCode::PAYLOAD_TOO_LARGE;
        return Err(Failure::client(status, "body-too-large"));
    }
    Ok(())
}

/// The failure of a request whose path is not allowed.
fn path_failure(fault: PathFault) -> Failure {
    Failure::client(fault.status(), fault.token())
}
