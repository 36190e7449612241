//! The verdict on a request: the one decision between its head and the first byte to a source.
//!
//! [`decide`] is pure but for the limits, which its caller asks or only looks at: it depends on its arguments alone,
//! awaits nothing, counts nothing, and reads neither a clock nor a file. The exchange obeys the verdict and `explain`
//! shows it, so that they always agree. All other effects follow the decision: the exchange counts dropped fields,
//! charges the retry budget, picks and leases a backend, retries, or reads the file of a challenge.

mod preflight;
mod siblings;

use std::borrow::Cow;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use catamaran_coding::AcceptedCodings;
use catamaran_files::{Directory, FileName, FileQuery, NameFault};
use catamaran_message::name::{ACCEPT, ACCEPT_ENCODING};
use catamaran_message::{BodyLength, RequestHead, Scheme};
use catamaran_upstream::Culprit;
use http::{HeaderValue, Method, StatusCode};

use crate::config::{Redirect, RouteConfig, RouteTarget, RouteText};
use crate::counters::Reason;
use crate::exchange::cache_request::{self, CacheRequest, KeyGrounds};
use crate::exchange::compression::{self, CompressionOffer};
use crate::exchange::cors::CorsFields;
use crate::exchange::failure::Failure;
use crate::exchange::fields::clean;
use crate::exchange::fields::forwarded::{self, Sender};
use crate::exchange::fields::passage::{Passage, RequestedUrl, Values};
use crate::exchange::grounds::Grounds;
use crate::exchange::guards::Guard;
use crate::exchange::limit_keys::{self, LimitKey};
use crate::exchange::outgoing::{Outgoing, Wishes};
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
    fn share(&mut self) {
        if let Some(cache) = &self.cache {
            cache.settle(&mut self.outgoing);
        }
    }
}

/// A GET or HEAD request that a file may answer.
#[derive(Debug)]
pub(crate) struct FilesRequest<'s> {
    pub(crate) directory: &'s Arc<Directory>,
    /// The query for the file, or the reason why no file can have such a name.
    pub(crate) query: Result<FileQuery, NameFault>,
    /// The path of the file to look up: the path as it would be forwarded.
    pub(crate) path: Bytes,
    /// The path that the client sent, normalised and not rewritten.
    sent: Bytes,
    /// The query that the client sent.
    sent_query: Option<Bytes>,
    pub(crate) without_file: WithoutFile<'s>,
}

/// What happens to a request for a file if the file does not exist.
#[derive(Debug)]
pub(crate) enum WithoutFile<'s> {
    /// The request is answered 404.
    NotFound(Box<RequestHead>),
    /// The request goes to an upstream.
    Forward(Forward<'s>),
}

impl<'s> FilesRequest<'s> {
    /// Makes the query for a file from the head as the client sent it, before a cache changes the head. `sent` is the
    /// path in the client's request.
    fn new(
        directory: &'s Arc<Directory>,
        sent: Bytes,
        path: Bytes,
        without_file: WithoutFile<'s>,
    ) -> Box<Self> {
        let head = without_file.head();
        let config = directory.config();
        let is_alone = matches!(without_file, WithoutFile::NotFound(_));
        let query = FileName::new(&path, config).map(|name| {
            let accepted = head.headers.get_all(ACCEPT_ENCODING);
            FileQuery {
                name,
                codings: AcceptedCodings::of(accepted, &config.precompressed),
                ends_in_slash: sent.ends_with(b"/"),
                wants_page: is_alone && wants_page(head),
            }
        });
        let sent_query = head.target.query.clone();
        Box::new(Self {
            directory,
            query,
            path,
            sent,
            sent_query,
            without_file,
        })
    }

    /// The request's head.
    pub(crate) fn head(&self) -> &RequestHead {
        self.without_file.head()
    }

    /// The location to which a request for a directory is redirected: the path that the client sent, a slash, and the
    /// query. It begins with a single slash, so it is on this host.
    pub(crate) fn directory_location(&self) -> Vec<u8> {
        let mut location = [&self.sent[..], b"/"].concat();
        if let Some(query) = &self.sent_query {
            location.push(b'?');
            location.extend_from_slice(query);
        }
        location
    }
}

impl WithoutFile<'_> {
    fn head(&self) -> &RequestHead {
        match self {
            Self::NotFound(head) => head,
            Self::Forward(forward) => &forward.outgoing.head,
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
        match head.target.scheme {
            // The scheme differs from the connection's, which only a trusted peer may say (RFC 9110, section 7.4).
            Some(scheme) if (scheme == Scheme::Https) != connection.secure => {
                if forwarded::told_scheme(head).is_some() && self.sender.peer.trusted {
                    Ok(())
                } else {
                    Err(misdirected("scheme-mismatch"))
                }
            }
            _ => Ok(()),
        }
    }

    /// The listener's own answer, before any route; `None`: there is none.
    fn by_listener(&self, head: &RequestHead) -> Result<Option<OwnAnswer>, Failure> {
        let listener = self.grounds.listener;
        let reads = matches!(head.method, Method::GET | Method::HEAD);
        let is_challenge = secured::is_challenge(&head.target.path);
        if is_challenge
            && reads
            && let Some(webroot) = &listener.acme_webroot
        {
            let file = secured::challenge_file(webroot, &head.target.path);
            return Ok(Some(match file {
                Some(file) => OwnAnswer::new(OwnContent::Challenge(file), "acme-challenge"),
                None => OwnAnswer::page(StatusCode::NOT_FOUND, "acme-token"),
            }));
        }
        let redirect = listener.redirect_https.filter(|_| !is_challenge);
        let Some(port) = redirect.filter(|_| !self.sender.identity.secure) else {
            return Ok(None);
        };
        let location = head.authority.as_ref();
        let location = location.map(|it| secured::location(it, &head.target, port));
        let nowhere = || Failure::client(StatusCode::BAD_REQUEST, "redirect-no-host");
        let (status, location) = (
            StatusCode::PERMANENT_REDIRECT,
            location.ok_or_else(nowhere)?,
        );
        let answer = OwnAnswer::redirect(status, location, "redirect-https");
        Ok(Some(answer))
    }

    /// Makes the verdict by the request's route.
    fn by_route(&self, head: Box<RequestHead>, ask: AskLimits<'_, 's>) -> Verdict<'s> {
        let refused = |fault: PathFault| Failure::client(fault.status(), fault.token());
        let mut path = match path::normalise(&head.target.path) {
            Ok(path) => path,
            Err(fault) => return self.refuse(None, refused(fault)),
        };
        let routes = &self.grounds.site.routes;
        let wanted = wanted(self.grounds, self.sender, &head);
        let found = wanted.and_then(|wanted| routes.decide(wanted, &path).map_err(refused));
        let route = match found {
            Ok(index) => index.map(|index| &routes.routes()[index]),
            Err(failure) => return self.refuse(None, failure),
        };
        if routes.has_cors()
            && let Some(preflight) = self.preflight(route, &path, &head)
        {
            return self.answer_preflight(preflight, path, &head, ask);
        }
        if let Some(route) = route {
            capture(route, &mut path);
        }
        let cors_config = rules_of(route).and_then(Rules::cors);
        let cors = cors_config.map(|config| Box::new(CorsFields::of_request(config, &head)));
        let target = self.target(route, &path, &head);
        let sent = path.forward.clone();
        let is_forwarded = matches!(target, Ok(Target::Upstream(..) | Target::Files(_)));
        if is_forwarded
            && let Some(rules) = rules_of(route)
            && let Err(fault) = rules.rewrite(&mut path)
        {
            return Verdict {
                cors,
                ..self.refuse(route, refused(fault))
            };
        }
        let paths = Paths { sent, path };
        if let Ok(target) = &target
            && !target.is_guarded()
            && let Some(refusal) = self.limited(route, &head, ask)
        {
            return Verdict {
                cors,
                ..self.answer(route, refusal, Some(&paths.path), &head)
            };
        }
        let verdict = match target {
            Ok(Target::Upstream(upstream, files)) => {
                self.forward(route, upstream, files, paths, head)
            }
            Ok(Target::Files(directory)) => self.serve_files(route, directory, paths, head),
            Ok(Target::Own(answer)) => self.answer(route, answer, Some(&paths.path), &head),
            Err(failure) => self.refuse(route, failure),
        };
        Verdict { cors, ..verdict }
    }

    /// Asks the limits of a request. Returns the answer if one of them refuses it.
    #[inline]
    fn limited(
        &self,
        route: Option<&'s Route>,
        head: &RequestHead,
        ask: AskLimits<'_, 's>,
    ) -> Option<OwnAnswer> {
        let keys = limit_keys::of_request(self.grounds, self.sender, rules_of(route), head);
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
        Ok(match (route.action, &route.config.target) {
            (Action::Upstream(index), _) => self.upstream(index, rules, head),
            (Action::Split(split), _) => self.upstream(self.share(split, rules, head), rules, head),
            (Action::Status(status), _) => Target::Own(match rules.and_then(Rules::text) {
                Some(text) => self.text(status, text, path, head),
                None => OwnAnswer::page(status, "route-status"),
            }),
            (Action::Redirect, RouteTarget::Redirect(to)) => {
                Target::Own(self.redirect(to, &route.config, path, head))
            }
            (Action::Files, _) => match rules.and_then(Rules::files) {
                Some(directory) => files_alone(directory, head),
                None => Target::Own(no_route()),
            },
            (Action::Redirect, _) => Target::Own(no_route()),
        })
    }

    /// The upstream with this index; before it the files of the route, if a file may answer.
    fn upstream(&self, index: usize, rules: Option<&'s Rules>, head: &RequestHead) -> Target<'s> {
        let files = rules.and_then(Rules::files);
        let files = files.filter(|_| may_be_file(rules, head));
        Target::Upstream(&self.grounds.site.upstreams[index], files)
    }

    /// The index of the upstream of a split route that gets the request: the one that has the member of its session,
    /// else one chosen by weight.
    fn share(&self, split: usize, rules: Option<&Rules>, head: &RequestHead) -> usize {
        let split = self.grounds.site.routes.split(split);
        let is_sticky = rules.is_none_or(|rules| !rules.config().unsticky);
        let has_member = |index: &usize| {
            let sticky = self.grounds.site.upstreams[*index].sticky.as_ref();
            sticky.is_some_and(|sticky| sticky.has_member(head))
        };
        let of_session = split.upstreams().filter(|_| is_sticky).find(has_member);
        of_session.unwrap_or_else(|| split.pick(self.grounds.id.number()))
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
        let cache = rules.and_then(Rules::cache);
        let is_changed = rules.is_some_and(Rules::changes_path);
        let tunnel = rules.and_then(|rules| rules.tunnel(&head)).map(Box::new);
        let compression = rules.and_then(|rules| self.compression(rules, &head));
        if compression.is_some() {
            compression::strengthen(&mut head.headers);
        }
        let wishes = Wishes {
            upstream,
            upgrade: tunnel.as_ref().map(|tunnel| tunnel.token),
            is_cached: cache.is_some(),
        };
        // What a request that changes something makes invalid. Most have no cache, or change nothing.
        let is_change = wishes.is_cached && cache_request::changes(&head.method);
        let siblings = is_change.then(|| self.siblings(route, wishes, &head, &path));
        let mut outgoing = match Outgoing::new(self.grounds, self.sender, wishes, head, path) {
            Ok(outgoing) => outgoing,
            Err(failure) => return self.refuse(route, failure),
        };
        let passage = rules.and_then(|rules| {
            let mut passage = outgoing.apply_route(rules, self.grounds.id)?;
            passage.compression = compression;
            Some(passage)
        });
        let cache = rules.zip(cache).and_then(|(rules, cache)| {
            let cache = self.grounds.site.caches.get(cache)?;
            let forwarded = &outgoing.path.forward;
            let grounds = KeyGrounds {
                upstream,
                digest: rules.digest(),
                sent: Some(&sent[..]).filter(|sent| is_changed && sent != forwarded),
            };
            let siblings = siblings.as_deref().unwrap_or_default();
            let request = CacheRequest::new(cache, grounds, siblings, &outgoing);
            Some(Box::new(request))
        });
        let forward = Forward {
            cache,
            upstream,
            outgoing,
            tunnel,
        };
        let decision = match files {
            None => {
                let mut forward = forward;
                forward.share();
                Decision::Forward(forward)
            }
            Some(directory) => {
                let path = forward.outgoing.path.forward.clone();
                let without_file = WithoutFile::Forward(forward);
                let mut request = FilesRequest::new(directory, sent, path, without_file);
                if let WithoutFile::Forward(forward) = &mut request.without_file {
                    forward.share();
                }
                Decision::Files(request)
            }
        };
        self.verdict(route, passage, decision)
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
        let passage = self.own_passage(route, Some(&path), &head);
        let passage = passage.zip(rules_of(route)).map(|(mut passage, rules)| {
            passage.compression = self.compression(rules, &head);
            passage
        });
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
        let of_url = url.values(self.grounds.id, head);
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
                    ..url.values(self.grounds.id, head)
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
            ..url.values(self.grounds.id, head)
        };
        match values.redirect(&to.to) {
            Some(location) => OwnAnswer::redirect(to.status, location, "route-redirect"),
            None => OwnAnswer {
                reason: Reason::new(Culprit::Front, "redirect-loop"),
                ..OwnAnswer::page(StatusCode::INTERNAL_SERVER_ERROR, "")
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

/// Whether a browser asks for a page, rather than for an image, script or style of one.
fn wants_page(head: &RequestHead) -> bool {
    head.headers.elements(ACCEPT).any(|element| {
        let mut parts = element.split(|&byte| byte == b';');
        let name = parts.next().unwrap_or_default().trim_ascii();
        name.eq_ignore_ascii_case(b"text/html")
    })
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
    let session = peer.tls.as_deref();
    let profile = session.and_then(|session| Some((&session.facts, session.profile.as_deref()?)));
    let (Some((facts, profile)), Some(authority)) = (profile, &head.authority) else {
        return true;
    };
    let host: Cow<'_, str> = String::from_utf8_lossy(&authority.host);
    profile.allows(&host, facts.sni.as_deref())
}

/// Refuses a CONNECT with a protocol that the route does not allow. A request with `Upgrade` can be served without a
/// tunnel; such a CONNECT cannot.
fn check_tunnel(route: Option<&Route>, head: &RequestHead) -> Result<(), Failure> {
    if !tunnel_request::is_extended_connect(head) {
        return Ok(());
    }
    let forwards = route.filter(|route| route.config.target.forwards());
    let rules = forwards.and_then(|route| route.rules.as_deref());
    match rules.and_then(|rules| rules.tunnel(head)) {
        Some(_) => Ok(()),
        None => Err(Failure::client(
            StatusCode::NOT_IMPLEMENTED,
            "connect-protocol",
        )),
    }
}

fn check_length(body: BodyLength, max: Option<u64>) -> Result<(), Failure> {
    match (body, max) {
        (BodyLength::Known(length), Some(max)) if length > max => Err(Failure::client(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body-too-large",
        )),
        _ => Ok(()),
    }
}
