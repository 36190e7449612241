//! Who answers a request: the route table's word, and what comes before it.
//!
//! It reads the head alone, so that it can be asked without a request being served.

use std::borrow::Cow;
use std::path::PathBuf;

use bytes::Bytes;
use catamaran_message::{BodyLength, RequestHead, Scheme};
use http::{HeaderValue, Method, StatusCode};

use crate::config::{ListenerConfig, Redirect, RouteConfig, RouteTarget};
use crate::exchange::failure::Failure;
use crate::exchange::forwarded::{self, Peer};
use crate::exchange::guards::Guard;
use crate::exchange::passage::Values;
use crate::exchange::scene::PeerFacts;
use crate::exchange::{header, secured, tunnel};
use crate::site::path::{self, NormalPath, PathFault};
use crate::site::rewrite::Prefix;
use crate::site::route::{Action, Route, Wanted};
use crate::site::rules::Rules;
use crate::site::{Site, Upstream};

/// What becomes of a request.
#[derive(Debug)]
pub(crate) struct Verdict<'s> {
    /// The route that matched, if one did.
    pub(crate) route: Option<&'s Route>,
    pub(crate) decision: Decision<'s>,
}

/// Who answers a request.
#[derive(Debug)]
pub(crate) enum Decision<'s> {
    /// The front, with a page of this status, and the reason for the log.
    Answer(StatusCode, &'static str),
    /// The front, which tells the client that this guard of the route refuses it.
    Refuse(Guard),
    /// The front, which sends a client in clear to this place at `https://`.
    Https(HeaderValue),
    /// The front, with this file's answer to one of ACME's challenges.
    Challenge(PathBuf),
    /// The front, which sends the client elsewhere.
    Redirect(Redirection<'s>),
    /// A backend of this upstream; the path is the one to be forwarded.
    Forward(&'s Upstream, NormalPath),
}

/// Where a client is sent, as its route says.
#[derive(Debug)]
pub(crate) struct Redirection<'s> {
    pub(crate) to: &'s Redirect,
    /// The one that the client sent.
    path: NormalPath,
    /// What is behind the route's path, if the redirect asks for it.
    rest: Bytes,
}

impl<'s> Redirection<'s> {
    fn new(to: &'s Redirect, route: &RouteConfig, path: NormalPath) -> Self {
        let rest = to.to.names_rest().then(|| {
            let prefix = Prefix::new(&route.path);
            path.forward.slice_ref(prefix.rest(&path.forward))
        });
        Self {
            to,
            rest: rest.unwrap_or_default(),
            path,
        }
    }

    /// The value of `Location`; `None` if it is what the client asked for. Of `values` its paths are left
    /// out.
    pub(crate) fn location(&self, values: Values<'_>) -> Option<HeaderValue> {
        let values = Values {
            path: &self.path.forward,
            rest: &self.rest,
            ..values
        };
        values.redirect(&self.to.to)
    }
}

impl<'s> Verdict<'s> {
    /// What the route asks for, if it asks for anything.
    pub(crate) fn rules(&self) -> Option<&'s Rules> {
        self.route?.rules.as_deref()
    }

    /// What is to be forwarded, otherwise the decision; both with what the route asks for. Taken apart
    /// at once, since a future would keep whatever it borrowed of a verdict.
    pub(crate) fn into_forward(self) -> Result<Forward<'s>, Own<'s>> {
        let rules = self.rules();
        match self.decision {
            Decision::Forward(upstream, path) => Ok((upstream, path, rules)),
            decision => Err((Box::new(decision), rules)),
        }
    }
}

/// Who answers, the path to be forwarded, and what the route asks for.
type Forward<'s> = (&'s Upstream, NormalPath, Option<&'s Rules>);

/// How the front itself answers, and what the route asks for.
type Own<'s> = (Box<Decision<'s>>, Option<&'s Rules>);

/// Decides who answers a request, or why it is refused.
pub(crate) fn decide<'s>(
    site: &'s Site,
    listener: &ListenerConfig,
    peer: &PeerFacts,
    head: &mut RequestHead,
) -> Result<Verdict<'s>, Failure> {
    let own = |decision| {
        Ok(Verdict {
            route: None,
            decision,
        })
    };
    let early = |status, token| own(Decision::Answer(status, token));
    if head.method == Method::TRACE {
        // It would send the fields of the request back to a script (RFC 9110, section 9.3.8).
        return early(StatusCode::METHOD_NOT_ALLOWED, "method-trace");
    }
    if head.method == Method::OPTIONS && !header::count_forwards(&mut head.headers) {
        return early(StatusCode::NO_CONTENT, "max-forwards");
    }
    check_names(site, peer, head)?;
    if let Some(decision) = by_listener(site, listener, peer, head)? {
        return own(decision);
    }
    let refused = |fault: PathFault| Failure::client(StatusCode::BAD_REQUEST, fault.token());
    let path = path::normalise(&head.target.path).map_err(refused)?;
    let wanted = wanted(site, listener, peer, head)?;
    let index = site.routes.decide(wanted, &path).map_err(refused)?;
    let route = index.map(|index| &site.routes.routes()[index]);
    let rules = route.and_then(|route| route.rules.as_deref());
    if let Some(guard) = rules.and_then(|it| Guard::refusing(it, &site.server, peer, head)) {
        let decision = Decision::Refuse(guard);
        return Ok(Verdict { route, decision });
    }
    let body_max = rules.and_then(Rules::body_max).or(listener.body_max);
    check_length(head.body, body_max)?;
    check_tunnel(route, head)?;
    let decision = match route.map(|route| (route.action, &route.config)) {
        Some((Action::Upstream(index), _)) => Decision::Forward(
            &site.upstreams[index],
            rewritten(path, rules.filter(|rules| rules.rewrite.is_some())),
        ),
        Some((Action::Status(status), _)) => Decision::Answer(status, "route-status"),
        Some((Action::Redirect, route)) => match &route.target {
            RouteTarget::Redirect(to) => Decision::Redirect(Redirection::new(to, route, path)),
            _ => Decision::Answer(StatusCode::NOT_FOUND, "no-route"),
        },
        None => Decision::Answer(StatusCode::NOT_FOUND, "no-route"),
    };
    Ok(Verdict { route, decision })
}

/// What the listener itself answers, before any route.
fn by_listener<'s>(
    site: &Site,
    listener: &ListenerConfig,
    peer: &PeerFacts,
    head: &RequestHead,
) -> Result<Option<Decision<'s>>, Failure> {
    let reads = matches!(head.method, Method::GET | Method::HEAD);
    let is_challenge = secured::is_challenge(&head.target.path);
    if is_challenge
        && reads
        && let Some(webroot) = &listener.acme_webroot
    {
        let file = secured::challenge_file(webroot, &head.target.path);
        return Ok(Some(match file {
            Some(file) => Decision::Challenge(file),
            None => Decision::Answer(StatusCode::NOT_FOUND, "acme-token"),
        }));
    }
    let redirect = listener.redirect_https.filter(|_| !is_challenge);
    let Some(port) = redirect.filter(|_| !is_secure(site, peer, head)) else {
        return Ok(None);
    };
    let location = head.authority.as_ref();
    let location = location.and_then(|it| secured::location(it, &head.target, port));
    let nowhere = || Failure::client(StatusCode::BAD_REQUEST, "redirect-no-host");
    let location = location.ok_or_else(nowhere)?;
    Ok(Some(Decision::Https(location)))
}

/// Whether the client came over TLS: here, or to a trusted proxy that says so.
fn is_secure(site: &Site, peer: &PeerFacts, head: &RequestHead) -> bool {
    let networks = &site.server.trusted_proxies;
    forwarded::is_secure(Peer::new(peer, head, networks), &head.headers)
}

/// Refuses a host or scheme that the connection does not stand for.
fn check_names(site: &Site, peer: &PeerFacts, head: &RequestHead) -> Result<(), Failure> {
    let misdirected = |token| Failure::client(StatusCode::MISDIRECTED_REQUEST, token);
    if !stands_for(peer, head) {
        return Err(misdirected("sni-mismatch"));
    }
    match head.target.scheme {
        // Not the connection's own (RFC 9110, section 7.4).
        Some(scheme) if (scheme == Scheme::Https) != peer.tls.is_some() => {
            let networks = &site.server.trusted_proxies;
            let told = forwarded::told_scheme(head);
            match told.is_some() && forwarded::is_trusted(networks, peer.remote.ip()) {
                true => Ok(()),
                false => Err(misdirected("scheme-mismatch")),
            }
        }
        _ => Ok(()),
    }
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

/// What the route of a request is looked up by, besides its path.
pub(crate) fn wanted<'h>(
    site: &Site,
    listener: &ListenerConfig,
    peer: &PeerFacts,
    head: &'h RequestHead,
) -> Result<Wanted<'h>, Failure> {
    let mut wanted = Wanted {
        host: head.authority.as_ref().map(|authority| &authority.host[..]),
        listener: None,
        secure: site.routes.has_schemes() && is_secure(site, peer, head),
    };
    if site.parts_listeners {
        // Of one that a reload removed nothing says which routes are its own.
        let removed = || Failure::client(StatusCode::MISDIRECTED_REQUEST, "listener-removed");
        wanted.listener = Some(site.listener(listener).ok_or_else(removed)?);
    }
    Ok(wanted)
}

/// Refuses a CONNECT for a protocol that the route does not allow: unlike a request with `Upgrade` it
/// means nothing else.
fn check_tunnel(route: Option<&Route>, head: &RequestHead) -> Result<(), Failure> {
    if !tunnel::is_extended_connect(head) {
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

fn rewritten(mut path: NormalPath, rules: Option<&Rules>) -> NormalPath {
    if let Some(rewrite) = rules.and_then(|rules| rules.rewrite.as_ref()) {
        rewrite.forward(&mut path);
    }
    path
}
