//! What becomes of a request: the one decision between its head and the first byte to a source.
//!
//! [`decide`] is pure: it depends on its arguments alone, takes no turn, counts nothing, and reads no
//! clock and no file. The exchange obeys it and `explain` shows it, so what is explained is what is done.
//! What has effects follows the decision: the exchange counts what was dropped, charges the retry budget,
//! picks and leases a backend, retries, or reads the file of a challenge.

use std::borrow::Cow;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use catamaran_files::Directory;
use catamaran_message::{BodyLength, RequestHead, Scheme};
use catamaran_upstream::Culprit;
use http::{Method, StatusCode, Version};

use crate::config::{ListenerConfig, Redirect, RouteConfig, RouteTarget};
use crate::counters::Reason;
use crate::exchange::cache_request::{CacheRequest, KeyGrounds};
use crate::exchange::compression::{self, CompressionOffer};
use crate::exchange::failure::Failure;
use crate::exchange::fields::clean;
use crate::exchange::fields::forwarded::{self, Sender};
use crate::exchange::fields::passage::{Passage, RequestedUrl, Values};
use crate::exchange::guards::Guard;
use crate::exchange::outgoing::{Original, Outgoing};
use crate::exchange::secured;
use crate::path::{self, NormalPath, PathFault};
use crate::peer::PeerFacts;
use crate::request_id::RequestId;
use crate::site::rewrite::Prefix;
use crate::site::route::{Action, Route, Wanted};
use crate::site::rules::Rules;
use crate::site::{Site, Upstream};
use crate::tunnel_request::{self, TunnelRequest};

/// What decides about a request besides its head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grounds<'s> {
    pub(crate) site: &'s Site,
    /// The settings of the listener when it accepted the connection.
    pub(crate) listener: &'s ListenerConfig,
    pub(crate) peer: &'s PeerFacts,
    /// The id that the request has, unless a trusted proxy gave it one.
    pub(crate) id: RequestId,
}

/// What becomes of a request.
#[derive(Debug)]
pub(crate) struct Verdict<'s> {
    /// The client's address.
    pub(crate) client_ip: IpAddr,
    /// The route that matched, if one was sought and found.
    pub(crate) route: Option<&'s Route>,
    /// What the route changes of the response, if it changes anything. A refused request has none.
    pub(crate) passage: Option<Box<Passage<'s>>>,
    pub(crate) decision: Decision<'s>,
}

/// Who answers a request.
#[derive(Debug)]
pub(crate) enum Decision<'s> {
    /// A backend.
    Forward(Forward<'s>),
    /// A file, if there is one.
    Files(Box<FilesRequest<'s>>),
    /// The front itself.
    Answer(Box<OwnAnswer>),
    /// The front, which refuses the request.
    Refuse(Failure),
}

/// A request for a backend. A backend of `upstream` remains to be picked, by its policy and by
/// [`Outgoing::facts`].
#[derive(Debug)]
pub(crate) struct Forward<'s> {
    pub(crate) upstream: &'s Upstream,
    pub(crate) outgoing: Box<Outgoing<'s>>,
    /// The tunnel that the request asks for, if the route allows it.
    pub(crate) tunnel: Option<Box<TunnelRequest<'s>>>,
    /// The id that a trusted proxy gave the request. Most have none.
    pub(crate) given_id: Option<Bytes>,
    /// What is to be counted besides.
    pub(crate) dropped: Option<Reason>,
    /// What the request is to the cache of its route, if there is one.
    pub(crate) cache: Option<Box<CacheRequest<'s>>>,
}

impl Forward<'_> {
    /// Makes the request the one that a cache's clients share, since no file is served.
    #[inline]
    pub(crate) fn settle(&mut self) {
        if let Some(cache) = &self.cache {
            cache.settle(&mut self.outgoing);
        }
    }
}

/// A GET or a HEAD of what may be a file.
#[derive(Debug)]
pub(crate) struct FilesRequest<'s> {
    pub(crate) directory: &'s Arc<Directory>,
    /// The path that the client sent, normalised and not rewritten.
    pub(crate) sent: Bytes,
    pub(crate) origin: FilesOrigin<'s>,
}

/// Whether a request for a file ends at the front.
#[derive(Debug)]
pub(crate) enum FilesOrigin<'s> {
    /// Without a file it is answered 404. The path is the one to be looked up.
    Alone(Box<RequestHead>, Bytes),
    /// Without a file it goes to an upstream.
    Before(Forward<'s>),
}

impl FilesRequest<'_> {
    /// The request's head.
    pub(crate) fn head(&self) -> &RequestHead {
        match &self.origin {
            FilesOrigin::Alone(head, _) => head,
            FilesOrigin::Before(forward) => forward.outgoing.facts(None).head,
        }
    }

    /// The path to be looked up.
    pub(crate) fn path(&self) -> &Bytes {
        match &self.origin {
            FilesOrigin::Alone(_, path) => path,
            FilesOrigin::Before(forward) => &forward.outgoing.facts(None).path.forward,
        }
    }
}

/// A response of the front's own that is no failure.
#[derive(Debug)]
pub(crate) struct OwnAnswer {
    /// The client's version.
    pub(crate) version: Version,
    pub(crate) content: OwnContent,
    /// For the log.
    pub(crate) reason: Reason,
    /// The guard of the route that refuses the client, if one does.
    pub(crate) guard: Option<Guard>,
}

/// What the front answers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OwnContent {
    /// The page of this status.
    Page(StatusCode),
    /// The page of this status, with the methods that files have.
    FileMethods(StatusCode),
    /// A redirect of this status to this place.
    Redirect(StatusCode, Vec<u8>),
    /// This file's answer to one of ACME's challenges; 404 if there is no such file.
    Challenge(PathBuf),
}

/// Who is to answer.
#[derive(Debug)]
enum Target<'s> {
    /// A backend of this upstream.
    Upstream(&'s Upstream),
    Files(FilesTarget<'s>),
    Own(OwnTarget<'s>),
}

/// A file that is to answer, if there is one.
#[derive(Debug)]
struct FilesTarget<'s> {
    directory: &'s Arc<Directory>,
    /// Who else may answer.
    upstream: Option<&'s Upstream>,
}

/// What the front itself is to answer.
#[derive(Debug)]
enum OwnTarget<'s> {
    /// The page of a status, and the reason for the log.
    Page(StatusCode, &'static str),
    /// That this guard of the route refuses the client.
    Guard(Guard),
    /// That a client in clear is to go to this place at `https://`.
    Https(Vec<u8>),
    /// This file's answer to one of ACME's challenges.
    Challenge(PathBuf),
    /// That the client is to go elsewhere.
    Redirect(Redirection<'s>),
    /// Which methods files have, with this status and reason.
    FileMethods(StatusCode, &'static str),
}

/// Where a client is sent, as its route says.
#[derive(Debug)]
struct Redirection<'s> {
    to: &'s Redirect,
    /// The one that the client sent.
    path: Bytes,
    /// What is behind the route's path, if the redirect asks for it.
    rest: Bytes,
}

impl<'s> Redirection<'s> {
    fn new(to: &'s Redirect, route: &RouteConfig, path: &NormalPath) -> Self {
        let path = path.forward.clone();
        let rest = to
            .to
            .names_rest()
            .then(|| path.slice_ref(Prefix::new(&route.path).rest(&path)));
        Self {
            to,
            rest: rest.unwrap_or_default(),
            path,
        }
    }

    /// The value of `Location`; `None` if it is what the client asked for. Of `values` its paths are left
    /// out.
    fn location(&self, values: Values<'_>) -> Option<Vec<u8>> {
        let values = Values {
            path: &self.path,
            rest: &self.rest,
            ..values
        };
        values.redirect(&self.to.to)
    }
}

/// Decides what becomes of a request.
pub(crate) fn decide<'s>(grounds: Grounds<'s>, mut head: Box<RequestHead>) -> Verdict<'s> {
    let networks = &grounds.site.server.trusted_proxies;
    let sender = Sender::new(grounds.peer, &head, networks);
    let case = Case {
        grounds: &grounds,
        sender: &sender,
    };
    match case.before_routes(&mut head) {
        Ok(None) => case.by_route(head),
        Ok(Some(target)) => case.conclude(None, target, head),
        Err(failure) => case.refuse(None, failure),
    }
}

/// What the route of a request is looked up by, besides its path.
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
    };
    if site.parts_listeners {
        // Of one that a reload removed nothing says which routes are its own.
        let removed = || Failure::client(StatusCode::MISDIRECTED_REQUEST, "listener-removed");
        wanted.listener = Some(site.listener(grounds.listener).ok_or_else(removed)?);
    }
    Ok(wanted)
}

/// A request that is being decided about.
#[derive(Clone, Copy)]
struct Case<'c, 's> {
    grounds: &'c Grounds<'s>,
    sender: &'c Sender,
}

impl<'s> Case<'_, 's> {
    fn refuse(&self, route: Option<&'s Route>, failure: Failure) -> Verdict<'s> {
        Verdict {
            client_ip: self.sender.identity.ip,
            route,
            passage: None,
            decision: Decision::Refuse(failure),
        }
    }

    /// What is decided before a route is sought.
    fn before_routes(&self, head: &mut RequestHead) -> Result<Option<OwnTarget<'s>>, Failure> {
        if head.method == Method::TRACE {
            // It would send the fields of the request back to a script (RFC 9110, section 9.3.8).
            let status = StatusCode::METHOD_NOT_ALLOWED;
            return Ok(Some(OwnTarget::Page(status, "method-trace")));
        }
        if head.method == Method::OPTIONS && !clean::count_forwards(&mut head.headers) {
            return Ok(Some(OwnTarget::Page(
                StatusCode::NO_CONTENT,
                "max-forwards",
            )));
        }
        self.check_names(head)?;
        self.by_listener(head)
    }

    /// Refuses a host or scheme that the connection does not stand for.
    fn check_names(&self, head: &RequestHead) -> Result<(), Failure> {
        let misdirected = |token| Failure::client(StatusCode::MISDIRECTED_REQUEST, token);
        let connection = self.grounds.peer;
        if !stands_for(connection, head) {
            return Err(misdirected("sni-mismatch"));
        }
        match head.target.scheme {
            // Not the connection's own (RFC 9110, section 7.4).
            Some(scheme) if (scheme == Scheme::Https) != connection.secure => {
                match forwarded::told_scheme(head).is_some() && self.sender.peer.trusted {
                    true => Ok(()),
                    false => Err(misdirected("scheme-mismatch")),
                }
            }
            _ => Ok(()),
        }
    }

    /// What the listener itself answers, before any route.
    fn by_listener(&self, head: &RequestHead) -> Result<Option<OwnTarget<'s>>, Failure> {
        let listener = self.grounds.listener;
        let reads = matches!(head.method, Method::GET | Method::HEAD);
        let is_challenge = secured::is_challenge(&head.target.path);
        if is_challenge
            && reads
            && let Some(webroot) = &listener.acme_webroot
        {
            let file = secured::challenge_file(webroot, &head.target.path);
            let no_token = OwnTarget::Page(StatusCode::NOT_FOUND, "acme-token");
            return Ok(Some(file.map_or(no_token, OwnTarget::Challenge)));
        }
        let redirect = listener.redirect_https.filter(|_| !is_challenge);
        let Some(port) = redirect.filter(|_| !self.sender.identity.secure) else {
            return Ok(None);
        };
        let location = head.authority.as_ref();
        let location = location.map(|it| secured::location(it, &head.target, port));
        let nowhere = || Failure::client(StatusCode::BAD_REQUEST, "redirect-no-host");
        Ok(Some(OwnTarget::Https(location.ok_or_else(nowhere)?)))
    }

    /// What the route says.
    fn by_route(&self, head: Box<RequestHead>) -> Verdict<'s> {
        let refused = |fault: PathFault| Failure::client(StatusCode::BAD_REQUEST, fault.token());
        let path = match path::normalise(&head.target.path) {
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
        match self.target(route, &path, &head) {
            Ok(Target::Upstream(upstream)) => self.forward(route, upstream, path, head),
            Ok(Target::Files(target)) => self.serve_files(route, target, path, head),
            Ok(Target::Own(target)) => self.conclude(route, target, head),
            Err(failure) => self.refuse(route, failure),
        }
    }

    /// Who answers a request of this route.
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
            return Ok(Target::Own(OwnTarget::Guard(guard)));
        }
        check_length(head.body, Rules::body_max(rules, listener))?;
        check_tunnel(route, head)?;
        let no_route = || OwnTarget::Page(StatusCode::NOT_FOUND, "no-route");
        let Some(route) = route else {
            return Ok(Target::Own(no_route()));
        };
        Ok(match (route.action, &route.config.target) {
            (Action::Upstream(index), _) => {
                let upstream = &site.upstreams[index];
                match rules.and_then(Rules::files) {
                    Some(directory) if may_be_file(rules, head) => Target::Files(FilesTarget {
                        directory,
                        upstream: Some(upstream),
                    }),
                    _ => Target::Upstream(upstream),
                }
            }
            (Action::Status(status), _) => Target::Own(OwnTarget::Page(status, "route-status")),
            (Action::Redirect, RouteTarget::Redirect(to)) => {
                let redirection = Redirection::new(to, &route.config, path);
                Target::Own(OwnTarget::Redirect(redirection))
            }
            (Action::Files, _) => match rules.and_then(Rules::files) {
                Some(directory) => files_alone(directory, head),
                None => Target::Own(no_route()),
            },
            (Action::Redirect, _) => Target::Own(no_route()),
        })
    }

    /// Makes the request for a backend. The path is the one that the client sent.
    fn forward(
        &self,
        route: Option<&'s Route>,
        upstream: &'s Upstream,
        mut path: NormalPath,
        mut head: Box<RequestHead>,
    ) -> Verdict<'s> {
        let rules = rules_of(route);
        let cache = rules.and_then(Rules::cache);
        let is_changed = rules.is_some_and(|rules| rules.rewrite.is_some());
        let sent = (cache.is_some() && is_changed).then(|| path.forward.clone());
        rewrite(&mut path, rules);
        let tunnel = rules.and_then(|rules| rules.tunnel(&head)).map(Box::new);
        let compression = rules.and_then(|rules| self.compression(rules, &head));
        if compression.is_some() {
            compression::strengthen(&mut head.headers);
        }
        let original = Original {
            grounds: self.grounds,
            sender: self.sender,
            upstream,
            head,
            upgrade: tunnel.as_ref().map(|tunnel| tunnel.token),
            is_cached: cache.is_some(),
        };
        let mut made = match original.clean(path) {
            Ok(made) => made,
            Err(failure) => return self.refuse(route, failure),
        };
        let passage = rules.map(|rules| {
            let passage = made.outgoing.pass(rules, self.grounds.id);
            passage.with_compression(compression)
        });
        let cache = rules.zip(cache).and_then(|(rules, cache)| {
            let cache = self.grounds.site.caches.get(cache)?;
            let forwarded = &made.outgoing.facts(None).path.forward;
            let grounds = KeyGrounds {
                upstream,
                digest: rules.digest(),
                sent: sent.as_deref().filter(|sent| sent != forwarded),
            };
            Some(Box::new(CacheRequest::new(cache, grounds, &made.outgoing)))
        });
        Verdict {
            client_ip: self.sender.identity.ip,
            route,
            passage,
            decision: Decision::Forward(Forward {
                cache,
                upstream,
                outgoing: made.outgoing,
                tunnel,
                given_id: made.given_id,
                dropped: made.dropped,
            }),
        }
    }

    /// Makes the request for a file. The path is the one that the client sent.
    fn serve_files(
        &self,
        route: Option<&'s Route>,
        target: FilesTarget<'s>,
        mut path: NormalPath,
        head: Box<RequestHead>,
    ) -> Verdict<'s> {
        let FilesTarget {
            directory,
            upstream,
        } = target;
        let sent = path.forward.clone();
        let request = |origin| {
            Decision::Files(Box::new(FilesRequest {
                directory,
                sent,
                origin,
            }))
        };
        if let Some(upstream) = upstream {
            let verdict = self.forward(route, upstream, path, head);
            return Verdict {
                decision: match verdict.decision {
                    Decision::Forward(forward) => request(FilesOrigin::Before(forward)),
                    other => other,
                },
                ..verdict
            };
        }
        rewrite(&mut path, rules_of(route));
        Verdict {
            client_ip: self.sender.identity.ip,
            route,
            passage: self.own_passage(route, &head),
            decision: request(FilesOrigin::Alone(head, path.forward)),
        }
    }

    /// What the route changes of an answer of the front's own.
    fn own_passage(
        &self,
        route: Option<&'s Route>,
        head: &RequestHead,
    ) -> Option<Box<Passage<'s>>> {
        let url = RequestedUrl::new(self.sender, self.grounds.peer.local, head);
        let values = url.values(self.grounds.id, head);
        let rules = rules_of(route)?;
        let passage = Box::new(Passage::new(rules, values, url.host()));
        Some(passage.with_compression(self.compression(rules, head)))
    }

    /// What compresses the response, if the route wants that. It goes by what the client sent: the route may
    /// hide from backends which codings the client takes.
    fn compression(&self, rules: &'s Rules, head: &RequestHead) -> Option<CompressionOffer<'s>> {
        let config = rules.compress()?;
        let memory_max = self.grounds.site.server.compress_memory;
        Some(CompressionOffer::new(config, memory_max, head))
    }

    /// Makes the front's own answer.
    fn conclude(
        &self,
        route: Option<&'s Route>,
        target: OwnTarget<'s>,
        head: Box<RequestHead>,
    ) -> Verdict<'s> {
        let url = RequestedUrl::new(self.sender, self.grounds.peer.local, &head);
        let values = url.values(self.grounds.id, &head);
        let guard = match target {
            OwnTarget::Guard(guard) => Some(guard),
            _ => None,
        };
        let mut culprit = Culprit::Client;
        let (content, token) = match target {
            OwnTarget::Page(status, token) => (OwnContent::Page(status), token),
            OwnTarget::Guard(guard) => (OwnContent::Page(Guard::STATUS), guard.token()),
            OwnTarget::Https(location) => {
                let status = StatusCode::PERMANENT_REDIRECT;
                (OwnContent::Redirect(status, location), "redirect-https")
            }
            OwnTarget::FileMethods(status, token) => (OwnContent::FileMethods(status), token),
            OwnTarget::Challenge(file) => (OwnContent::Challenge(file), "acme-challenge"),
            OwnTarget::Redirect(redirection) => match redirection.location(values) {
                Some(location) => {
                    let status = redirection.to.status;
                    (OwnContent::Redirect(status, location), "route-redirect")
                }
                None => {
                    culprit = Culprit::Front;
                    let status = StatusCode::INTERNAL_SERVER_ERROR;
                    (OwnContent::Page(status), "redirect-loop")
                }
            },
        };
        let passage =
            rules_of(route).map(|rules| Box::new(Passage::new(rules, values, url.host())));
        Verdict {
            client_ip: self.sender.identity.ip,
            route,
            passage,
            decision: Decision::Answer(Box::new(OwnAnswer {
                version: head.version,
                content,
                reason: Reason::new(culprit, token),
                guard,
            })),
        }
    }
}

/// Whether a file may answer a request that else goes to a backend: it reads, and asks for no tunnel.
fn may_be_file(rules: Option<&Rules>, head: &RequestHead) -> bool {
    let reads = matches!(head.method, Method::GET | Method::HEAD);
    reads && rules.and_then(|rules| rules.tunnel(head)).is_none()
}

/// Who answers on a route that has files and no upstream.
fn files_alone<'s>(directory: &'s Arc<Directory>, head: &RequestHead) -> Target<'s> {
    match head.method {
        Method::GET | Method::HEAD => Target::Files(FilesTarget {
            directory,
            upstream: None,
        }),
        Method::OPTIONS => {
            let status = StatusCode::NO_CONTENT;
            Target::Own(OwnTarget::FileMethods(status, "file-options"))
        }
        _ => {
            let status = StatusCode::METHOD_NOT_ALLOWED;
            Target::Own(OwnTarget::FileMethods(status, "file-method"))
        }
    }
}

fn rules_of(route: Option<&Route>) -> Option<&Rules> {
    route?.rules.as_deref()
}

/// Whether the connection's certificate, and the name its client was verified for, stand for the host.
fn stands_for(peer: &PeerFacts, head: &RequestHead) -> bool {
    let session = peer.tls.as_deref();
    let profile = session.and_then(|session| Some((&session.facts, session.profile.as_deref()?)));
    let (Some((facts, profile)), Some(authority)) = (profile, &head.authority) else {
        return true;
    };
    let host: Cow<'_, str> = String::from_utf8_lossy(&authority.host);
    profile.allows(&host, facts.sni.as_deref())
}

/// Refuses a CONNECT for a protocol that the route does not allow: unlike a request with `Upgrade` it
/// means nothing else.
fn check_tunnel(route: Option<&Route>, head: &RequestHead) -> Result<(), Failure> {
    if !tunnel_request::is_extended_connect(head) {
        return Ok(());
    }
    let forwards = route.filter(|route| matches!(route.action, Action::Upstream(_)));
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

fn rewrite(path: &mut NormalPath, rules: Option<&Rules>) {
    if let Some(rewrite) = rules.and_then(|rules| rules.rewrite.as_ref()) {
        rewrite.forward(path);
    }
}
