//! The verdict on a request: the one decision between its head and the first byte to a source.
//!
//! [`decide`] is pure but for the limits, which its caller asks or only looks at: it depends on its arguments alone,
//! awaits nothing, counts nothing, and reads neither a clock nor a file. The exchange obeys the verdict and `explain`
//! shows it, so that they always agree. All other effects follow the decision: the exchange counts dropped fields,
//! charges the retry budget, picks and leases a backend, retries, or reads the file of a challenge.

mod files_request;
mod preflight;
mod siblings;

use std::borrow::Cow;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use catamaran_files::Directory;
use catamaran_message::{BodyLength, RequestHead, Scheme};
use catamaran_upstream::Culprit;
pub(crate) use files_request::{FilesRequest, WithoutFile};
use http::{HeaderValue, Method, StatusCode};

use crate::config::{Redirect, RouteConfig, RouteTarget, RouteText};
use crate::counters::Reason;
use crate::exchange::cache_request::{self, CacheRequest, KeyGrounds, SiblingRequest};
use crate::exchange::compression::{self, CompressionOffer};
use crate::exchange::cors::CorsFields;
use crate::exchange::failure::Failure;
use crate::exchange::fields::clean;
use crate::exchange::fields::forwarded::{self, Sender};
use crate::exchange::fields::passage::{Passage, RequestedUrl, Values};
use crate::exchange::grounds::Grounds;
use crate::exchange::guards::Guard;
use crate::exchange::limit_keys::{self, LimitKey, LimitKeys};
use crate::exchange::outgoing::{Outgoing, RequestPurpose};
use crate::exchange::secured;
use crate::path::{self, NormalPath, PathFault};
use crate::peer::PeerFacts;
use crate::site::Upstream;
use crate::site::rewrite::Prefix;
use crate::site::route::{Action, ConditionFacts, Route, Wanted};
use crate::site::rules::Rules;
use crate::tunnel_request::{self, TunnelRequest};

/// The verdict on a request: who answers it, and by which route.
#[derive(Debug)]
pub(crate) struct Verdict<'s> {
    /// The client's address.
    pub(crate) client_ip: IpAddr,
    /// The route that matched; `None`: none was looked for, or none matched.
    pub(crate) route: Option<&'s Route>,
    /// The changes that the route makes to the response; `None`: none, or the request is refused.
    pub(crate) passage: Option<Box<Passage<'s>>>,
    /// The fields of CORS that the response gets, whoever answers; `None`: the route has no `[route.cors]`.
    pub(crate) cors: Option<Box<CorsFields<'s>>>,
    pub(crate) decision: Decision<'s>,
}

impl Verdict<'_> {
    /// Keeps the head of a request that the front answers itself.
    fn with_spent(mut self, head: Box<RequestHead>) -> Self {
        if let Decision::Answer(answer) = &mut self.decision {
            answer.spent = Some(head);
        }
        self
    }
}

/// Asks the limits that a request is subject to. Returns the answer to a request that one of them refuses.
pub(crate) type AskLimits<'q, 's> = &'q mut dyn FnMut(&[LimitKey<'s>]) -> Option<OwnAnswer>;

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

/// An answer of the front's own that is not a failure.
#[derive(Debug)]
pub(crate) struct OwnAnswer {
    pub(crate) content: OwnContent,
    /// The reason to count and log.
    pub(crate) reason: Reason,
    /// The route's guard that refuses the client; `None`: no guard does.
    pub(crate) guard: Option<Guard>,
    /// The request's head, whose memory the next request may use; `None`: it is not kept.
    pub(crate) spent: Option<Box<RequestHead>>,
}

/// The content of the front's own answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OwnContent {
    /// The page for this status.
    Page(StatusCode),
    /// The text of a route, with this status and media type.
    Text(StatusCode, HeaderValue, Bytes),
    /// The page for this status, with these methods in `Allow`.
    Allow(StatusCode, Vec<Method>),
    /// The page for a request beyond a limit, which would pass after so many seconds.
    Limited(u64),
    /// 204 without content, for a preflight of CORS.
    Preflight,
    /// A redirect of this status to this location.
    Redirect(StatusCode, Vec<u8>),
    /// The content of this file, which answers an ACME challenge; 404 if there is no such file.
    Challenge(PathBuf),
}

impl OwnAnswer {
    fn new(content: OwnContent, token: &'static str) -> Self {
        Self {
            content,
            reason: Reason::new(Culprit::Client, token),
            guard: None,
            spent: None,
        }
    }

    fn page(status: StatusCode, token: &'static str) -> Self {
        Self::new(OwnContent::Page(status), token)
    }

    /// The answer to a client that a guard refuses.
    fn guarded(guard: Guard) -> Self {
        Self {
            guard: Some(guard),
            ..Self::page(Guard::STATUS, guard.token())
        }
    }

    /// The answer to a request beyond a limit.
    pub(crate) fn limited(token: &'static str, seconds: u64) -> Self {
        Self::new(OwnContent::Limited(seconds), token)
    }

    pub(crate) fn redirect(status: StatusCode, location: Vec<u8>, token: &'static str) -> Self {
        Self::new(OwnContent::Redirect(status, location), token)
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
    Own(OwnAnswer),
}

impl Target<'_> {
    /// Whether a guard of the route refuses the request.
    fn is_guarded(&self) -> bool {
        matches!(self, Self::Own(answer) if answer.guard.is_some())
    }
}

/// The two paths of a request.
struct Paths {
    /// The normalised path that the client sent.
    sent: Bytes,
    /// The path to forward, which a route may have rewritten, with the one that routes are compared with.
    path: NormalPath,
}

/// Decides who answers a request. The verdict is complete: the exchange only has to obey it. Limits are asked once it is
/// certain that the request is served otherwise, and before anything is made for that.
pub(crate) fn decide<'s>(
    grounds: Grounds<'s>,
    mut head: Box<RequestHead>,
    ask: AskLimits<'_, 's>,
) -> Verdict<'s> {
    let networks = &grounds.site.server.trusted_proxies;
    let sender = Sender::new(grounds.peer, &head, networks);
    let case = Case {
        grounds: &grounds,
        sender: &sender,
    };
    match case.before_routes(&mut head) {
        Ok(None) => case.by_route(head, ask),
        Ok(Some(answer)) => case.answer(None, answer, None, &head),
        Err(failure) => case.refuse(None, failure),
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
}

impl<'s> Case<'_, 's> {
    fn refuse(&self, route: Option<&'s Route>, failure: Failure) -> Verdict<'s> {
        self.verdict(route, None, Decision::Refuse(failure))
    }

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
            let webroot = listener.acme_webroot.as_ref().filter(|_| reads);
            return Ok(webroot.map(|webroot| {
                match secured::challenge_file(webroot, &head.target.path) {
                    Some(file) => OwnAnswer::new(OwnContent::Challenge(file), "acme-challenge"),
                    None => OwnAnswer::page(StatusCode::NOT_FOUND, "acme-token"),
                }
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
    fn by_route(&self, head: Box<RequestHead>, ask: AskLimits<'_, 's>) -> Verdict<'s> {
        let path = match path::normalise(&head.target.path) {
            Ok(path) => path,
            Err(fault) => return self.refuse(None, path_failure(fault)),
        };
        let route = match self.route(&path, &head) {
            Ok(route) => route,
            Err(failure) => return self.refuse(None, failure),
        };
        if self.grounds.site.routes.has_cors()
            && let Some(preflight) = self.preflight(route, &path, &head)
        {
            return self.answer_preflight(preflight, path, &head, ask);
        }
        let cors_config = rules_of(route).and_then(Rules::cors);
        let cors = cors_config.map(|config| Box::new(CorsFields::of_request(config, &head)));
        let verdict = self.on_route(route, path, head, ask);
        Verdict { cors, ..verdict }
    }

    /// Looks the request's route up; `Ok(None)`: none matches.
    #[inline]
    fn route(&self, path: &NormalPath, head: &RequestHead) -> Result<Option<&'s Route>, Failure> {
        let routes = &self.grounds.site.routes;
        let wanted = wanted(self.grounds, self.sender, head)?;
        let index = routes.decide(wanted, path).map_err(path_failure)?;
        Ok(index.map(|index| &routes.routes()[index]))
    }

    /// Makes the verdict on a request whose route is known, but for the fields of CORS.
    #[inline]
    fn on_route(
        &self,
        route: Option<&'s Route>,
        mut path: NormalPath,
        head: Box<RequestHead>,
        ask: AskLimits<'_, 's>,
    ) -> Verdict<'s> {
        if let Some(route) = route {
            capture(route, &mut path);
        }
        let target = match self.target(route, &path, &head) {
            Ok(target) => target,
            Err(failure) => return self.refuse(route, failure),
        };
        let sent = path.forward.clone();
        // The front's own answers are made from the path that the client sent.
        if !matches!(target, Target::Own(_))
            && let Some(rules) = rules_of(route)
            && let Err(fault) = rules.rewrite(&mut path)
        {
            return self.refuse(route, path_failure(fault));
        }
        // A request that a guard refuses uses up no limit.
        if !target.is_guarded()
            && let Some(refusal) = self.limited(route, &head, ask)
        {
            let verdict = self.answer(route, refusal, Some(&path), &head);
            return verdict.with_spent(head);
        }
        let paths = Paths { sent, path };
        match target {
            Target::Upstream(upstream, files) => self.forward(route, upstream, files, paths, head),
            Target::Files(directory) => self.serve_files(route, directory, paths, head),
            Target::Own(answer) => self
                .answer(route, answer, Some(&paths.path), &head)
                .with_spent(head),
        }
    }

    /// Asks the limits of a request. Returns the answer if one of them refuses it.
    #[inline]
    fn limited(
        &self,
        route: Option<&'s Route>,
        head: &RequestHead,
        ask: AskLimits<'_, 's>,
    ) -> Option<OwnAnswer> {
        let mut keys = LimitKeys::new();
        limit_keys::add(&mut keys, self.grounds, self.sender, route, head);
        if keys.is_empty() { None } else { ask(&keys) }
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
            return Ok(Target::Own(OwnAnswer::guarded(guard)));
        }
        check_length(head.body, Rules::body_max(rules, listener))?;
        check_tunnel(route, head)?;
        let no_route = || OwnAnswer::page(StatusCode::NOT_FOUND, "no-route");
        let Some(route) = route else {
            let methods = site
                .routes
                .methods(wanted(self.grounds, self.sender, head)?, path);
            return Ok(Target::Own(if methods.is_empty() {
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
            Action::Status(status) => Target::Own(match rules.and_then(Rules::text) {
                Some(text) => self.text(status, text, path, head),
                None => OwnAnswer::page(status, "route-status"),
            }),
            // Such a route always has this target, as one with `Files` has a directory.
            Action::Redirect => Target::Own(match &route.config.target {
                RouteTarget::Redirect(to) => self.redirect(to, &route.config, path, head),
                _ => no_route(),
            }),
            Action::Files => match rules.and_then(Rules::files) {
                Some(directory) => files_alone(directory, head),
                None => Target::Own(no_route()),
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
        paths: Paths,
        mut head: Box<RequestHead>,
    ) -> Verdict<'s> {
        let Paths { sent, path } = paths;
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
        };
        // A request that changes something also makes what the siblings have stored invalid.
        let siblings = if purpose.is_cached && cache_request::changes(&head.method) {
            self.siblings(route, purpose, &head, &path)
        } else {
            Vec::new()
        };
        let mut outgoing = match Outgoing::new(self.grounds, self.sender, purpose, head, path) {
            Ok(outgoing) => outgoing,
            Err(failure) => return self.refuse(route, failure),
        };
        let passage = rules.and_then(|rules| {
            let mut passage = outgoing.apply_route(rules, self.grounds.id)?;
            passage.compression = compression;
            Some(passage)
        });
        let cache = rules
            .and_then(|rules| self.cache_request(rules, upstream, &sent, &siblings, &outgoing));
        let mut forward = Forward {
            cache,
            upstream,
            outgoing,
            tunnel,
        };
        let Some(directory) = files else {
            forward.settle();
            return self.verdict(route, passage, Decision::Forward(forward));
        };
        let path = forward.outgoing.path.forward.clone();
        let without_file = WithoutFile::Forward(forward);
        let mut request = FilesRequest::new(directory, sent, path, without_file);
        // The query for the file is made, so the cache may change the head.
        if let WithoutFile::Forward(forward) = &mut request.without_file {
            forward.settle();
        }
        self.verdict(route, passage, Decision::Files(request))
    }

    /// The key and the demands for the cache of the route; `None`: it has no cache. `sent` is the path that the client
    /// sent.
    #[inline]
    fn cache_request(
        &self,
        rules: &'s Rules,
        upstream: &'s Upstream,
        sent: &[u8],
        siblings: &[SiblingRequest<'s>],
        outgoing: &Outgoing<'s>,
    ) -> Option<Box<CacheRequest<'s>>> {
        let cache = self.grounds.site.caches.get(rules.cache()?)?;
        let is_changed = rules.changes_path() && sent != &outgoing.path.forward[..];
        let grounds = KeyGrounds {
            upstream,
            digest: rules.digest(),
            sent: is_changed.then_some(sent),
        };
        let request = CacheRequest::new(cache, grounds, siblings, outgoing);
        Some(Box::new(request))
    }

    /// Makes the request for a file on a route without an upstream.
    fn serve_files(
        &self,
        route: Option<&'s Route>,
        directory: &'s Arc<Directory>,
        paths: Paths,
        head: Box<RequestHead>,
    ) -> Verdict<'s> {
        let Paths { sent, path } = paths;
        let mut passage = self.own_passage(route, Some(&path), &head);
        if let (Some(passage), Some(rules)) = (&mut passage, rules_of(route)) {
            passage.compression = self.compression(rules, &head);
        }
        let without_file = WithoutFile::NotFound(head);
        let request = FilesRequest::new(directory, sent, path.forward, without_file);
        self.verdict(route, passage, Decision::Files(request))
    }

    fn verdict(
        &self,
        route: Option<&'s Route>,
        passage: Option<Box<Passage<'s>>>,
        decision: Decision<'s>,
    ) -> Verdict<'s> {
        Verdict {
            client_ip: self.sender.identity.ip,
            route,
            passage,
            cors: None,
            decision,
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

    /// Answers with the text of the route.
    fn text(
        &self,
        status: StatusCode,
        text: &RouteText,
        path: &NormalPath,
        head: &RequestHead,
    ) -> OwnAnswer {
        let content = match text.content.plain() {
            Some(plain) => Bytes::copy_from_slice(plain),
            None => {
                let url = RequestedUrl::new(self.sender, self.grounds.peer.local, head);
                let values = Values {
                    path: &path.forward,
                    ..url.values(self.grounds, head)
                };
                values.fill_text(&text.content).into()
            }
        };
        let content = OwnContent::Text(status, text.media_type.clone(), content);
        OwnAnswer::new(content, "route-status")
    }

    /// Redirects the client as its route says, unless it asked for that very URL already (a loop: 500).
    fn redirect(
        &self,
        to: &Redirect,
        route: &RouteConfig,
        path: &NormalPath,
        head: &RequestHead,
    ) -> OwnAnswer {
        let url = RequestedUrl::new(self.sender, self.grounds.peer.local, head);
        let rest = if to.to.names_rest() {
            Prefix::new(&route.path).rest(&path.forward)
        } else {
            b""
        };
        let values = Values {
            path: &path.forward,
            rest,
            captured: path.captured(),
            ..url.values(self.grounds, head)
        };
        match values.redirect(&to.to) {
            Some(location) => OwnAnswer::redirect(to.status, location, "route-redirect"),
            None => OwnAnswer {
                content: OwnContent::Page(StatusCode::INTERNAL_SERVER_ERROR),
                reason: Reason::new(Culprit::Front, "redirect-loop"),
                guard: None,
                spent: None,
            },
        }
    }

    /// The verdict that the front gives this answer itself.
    fn answer(
        &self,
        route: Option<&'s Route>,
        answer: OwnAnswer,
        path: Option<&NormalPath>,
        head: &RequestHead,
    ) -> Verdict<'s> {
        let passage = self.own_passage(route, path, head);
        self.verdict(route, passage, Decision::Answer(Box::new(answer)))
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
    Target::Own(OwnAnswer::new(OwnContent::Allow(status, methods), token))
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
