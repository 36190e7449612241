//! What would become of a request, without its being served: no turn is taken, nothing is counted.
//!
//! The request is read, decided about and encoded by the functions that serve requests, so that what is
//! explained is what would be done: `exchange::verdict` decides for both. What has effects and follows the
//! decision is told by rule ([`Explanation::then`]). What belongs to a connection alone is supposed:
//! unless the question says otherwise, the client speaks HTTP/1.1, came by the listener that its URL fits
//! best, and showed no certificate.

mod cache;
mod choice;
mod files;
mod finder;
pub(crate) mod question;
mod routes;
mod sent;
mod tunnel;

use std::sync::Arc;

pub use cache::CacheShown;
use catamaran_message::RequestHead;
use catamaran_tls::Profile;
pub use choice::{AffinityShown, MemberShown, StepShown};
pub use finder::{FoundRoute, RouteFinder, RouteRequest};
pub use question::Question;
use question::Supposed;
pub use routes::{RouteShown, Runner};
pub use sent::Sent;
use serde::Serialize;
use tunnel::Passed;

use crate::config::{Config, ListenerConfig, Policy};
use crate::control::discovered;
use crate::exchange::compression::CompressionOffer;
use crate::exchange::failure::Failure;
use crate::exchange::forwarded::Sender;
use crate::exchange::outgoing::Outgoing;
use crate::exchange::pages::MAINTENANCE;
use crate::exchange::verdict::{self, Decision, Forward, Grounds, OwnAnswer, OwnContent};
use crate::path;
use crate::request_id::RequestId;
use crate::site::foresight::Foresight;
use crate::site::rules::Rules;
use crate::site::{Site, Upstream};
use crate::tls;

/// What would become of a request. Texts in it may be a client's or the file's.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Explanation {
    /// Of the configuration that was asked.
    pub generation: u64,
    /// All of it in one line.
    pub summary: String,
    /// The request as it was understood; `None` if it is none.
    pub request: Option<RequestShown>,
    /// Its path.
    pub path: Option<PathShown>,
    /// `forward` to a backend, `answer` by the front, or `refused`.
    pub outcome: &'static str,
    /// What the front answers, if it does.
    pub answer: Option<AnswerShown>,
    /// The route that was chosen.
    pub route: Option<RouteShown>,
    /// The routes that come next, the best first; at most three.
    pub others: Vec<Runner>,
    /// What the path becomes, if the route rewrites it.
    pub rewrite: Option<String>,
    /// What the cache of the route would do, if there is one.
    pub cache: Option<CacheShown>,
    /// Where the route leads.
    pub upstream: Option<UpstreamShown>,
    /// What its session says, if sessions are kept.
    pub affinity: Option<AffinityShown>,
    /// The backend that gets it, if there is but one.
    pub backend: Option<String>,
    /// What led there: `session`, `own-cookie`, `fallback`, `domain`, `hash`, `only`, `policy`, or
    /// `nobody`. `None` if it is not forwarded.
    pub by: Option<&'static str>,
    /// Every backend of the upstream.
    pub members: Vec<MemberShown>,
    /// What is sent to [`Self::backend`], or to the first that may get it and can be sent it.
    pub sent: Option<Sent>,
    /// What follows the decision and has effects, a rule each: what is counted, picked, made or read.
    pub then: Vec<String>,
}

/// A request as it was understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RequestShown {
    /// Its method.
    pub method: String,
    /// `http` or `https`: how the client came, here or to a trusted proxy.
    pub scheme: &'static str,
    /// The host it asks for, without port.
    pub host: Option<String>,
    /// The port beside the host, if one is given.
    pub port: Option<u16>,
    /// The path as received.
    pub path: String,
    /// The query without its question mark.
    pub query: Option<String>,
    /// The listener that it is supposed to come by: its name, or else its address.
    pub listener: String,
    /// The address of the connection's other end.
    pub from: String,
    /// The client's address, trusted proxies looked through.
    pub client: String,
    /// Whether the client came over TLS, here or to a trusted proxy.
    pub secure: bool,
}

/// A path on its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PathShown {
    /// As received.
    pub received: String,
    /// Normalised.
    pub normal: String,
    /// In the form that routes are compared with.
    pub compared: String,
    /// As it is sent to a backend.
    pub forwarded: String,
}

/// A response of the front's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AnswerShown {
    /// Its status.
    pub status: u16,
    /// The reason in the log.
    pub reason: String,
    /// Why, in words.
    pub text: String,
    /// Where a redirect leads.
    pub location: Option<String>,
}

/// An upstream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UpstreamShown {
    /// Its name.
    pub name: String,
    /// How a backend is picked.
    pub policy: &'static str,
    /// Whether sessions are kept.
    pub sticky: bool,
    /// Whether more of its weight is unwell than may be out.
    pub panic: bool,
}

/// Explains what a front with this configuration would do with a request while all its backends are
/// up. The files of TLS profiles are read; of a profile that cannot be had it is supposed that it serves
/// every name and asks for no certificate. Members are those that files list.
///
/// # Errors
/// The question cannot be understood, or a route names an upstream that does not exist.
pub fn explain(config: &Config, question: &Question) -> Result<Explanation, String> {
    let mut config = config.clone();
    discovered::fill_from_files(&mut config);
    let config = &config;
    let site = Site::new(config, 1, &mut Vec::new())
        .map_err(|name| format!("a route names the upstream {name:?}, which does not exist"))?;
    explain_on(&site, question, |listener| {
        let name = listener.tls.as_deref()?;
        let profile = config.tls.iter().find(|profile| profile.name == name)?;
        tls::profile(profile)
    })
}

/// Explains what this site would do with a request now. `profile` is what a listener serves TLS with.
pub(crate) fn explain_on(
    site: &Site,
    question: &Question,
    profile: impl FnOnce(&ListenerConfig) -> Option<Arc<Profile>>,
) -> Result<Explanation, String> {
    let supposed = Supposed::new(&site.listeners, question, profile)?;
    let mut explanation = Explanation {
        generation: site.generation,
        ..Explanation::default()
    };
    let (listener, peer) = (supposed.listener, supposed.peer.clone());
    match supposed.read(site) {
        Ok(head) => explanation.judge(
            Grounds {
                site,
                listener,
                peer: &peer,
                // No request has an id yet.
                id: RequestId::from_number(0),
            },
            head,
        ),
        Err(it) => explanation.refuse(it.status.as_u16(), it.token, &it.text),
    }
    Ok(explanation)
}

impl Explanation {
    /// Shows what is decided of the request.
    fn judge(&mut self, grounds: Grounds<'_>, head: Box<RequestHead>) {
        let site = grounds.site;
        let sender = Sender::new(grounds.peer, &head, &site.server.trusted_proxies);
        self.request = Some(RequestShown::new(&grounds, &sender, &head));
        let normal = path::normalise(&head.target.path);
        if let Ok(normal) = &normal {
            self.path = Some(PathShown {
                received: text(&head.target.path),
                normal: text(&normal.forward),
                compared: text(normal.route()),
                forwarded: text(&normal.forward),
            });
            self.others = routes::runners(&grounds, &sender, &head, normal);
        }
        let verdict = verdict::decide(grounds, head);
        let route = verdict.route;
        self.route = route.map(|route| RouteShown::new(&route.config, &site.listeners));
        let passage = verdict.passage.as_deref();
        let compression = passage.and_then(|passage| passage.compression.as_ref());
        let compression = compression.map(CompressionOffer::words);
        match verdict.decision {
            Decision::Refuse(failure) => {
                let why = normal.err().map(|fault| fault.to_string());
                self.fail(failure, why.as_deref().unwrap_or_default());
            }
            Decision::Files(request) => self.show_file(site, route, *request),
            Decision::Answer(answer) => self.show_answer(*answer),
            Decision::Forward(mut forward) => {
                forward.settle();
                let rules = route.and_then(|route| route.rules.as_deref());
                self.forward(site, rules, &forward);
            }
        }
        self.then.extend(compression);
    }

    fn show_answer(&mut self, answer: OwnAnswer) {
        let token = answer.reason.token();
        let why = match answer.guard {
            Some(guard) => guard.why(),
            None => routes::why_answered(token),
        };
        match answer.content {
            OwnContent::Page(status) | OwnContent::FileMethods(status) => {
                self.answer(status.as_u16(), token, why);
                if answer.guard.is_some() || !answer.reason.is_client() {
                    self.outcome = "refused";
                }
            }
            OwnContent::Redirect(status, location) => {
                self.redirect(status.as_u16(), token, why, &text(location.as_bytes()));
            }
            OwnContent::Challenge(file) => {
                self.answer(200, token, why);
                let file = file.display();
                self.then
                    .push(format!("{file} is read; 404 if there is no such file"));
            }
        }
    }

    fn redirect(&mut self, status: u16, token: &'static str, why: &str, location: &str) {
        self.answer(status, token, why);
        self.summary = format!("{status} to {location}");
        self.answer
            .iter_mut()
            .for_each(|it| it.location = Some(location.to_owned()));
    }

    fn forward(&mut self, site: &Site, rules: Option<&Rules>, forward: &Forward<'_>) {
        let (upstream, outgoing) = (forward.upstream, &forward.outgoing);
        self.show_rewrite(&text(&outgoing.facts(rules).path.forward));
        self.upstream = Some(UpstreamShown {
            name: upstream.name.clone(),
            policy: upstream.config().policy.token(),
            sticky: upstream.sticky.is_some(),
            panic: upstream.members.iter().any(|it| it.backend.counts().panic),
        });
        let cache = forward.cache.as_ref();
        self.cache = cache.map(|request| CacheShown::new(request, outgoing));
        self.then = follow(site, rules, forward);
        if let Some(cache) = &self.cache {
            self.then.insert(0, cache.sentence());
        }
        self.outcome = "forward";
        self.pick(upstream, rules, outgoing);
    }

    /// Shows what the path becomes.
    fn show_rewrite(&mut self, forwarded: &str) {
        if let Some(shown) = &mut self.path
            && shown.forwarded != forwarded
        {
            self.rewrite = Some(format!("{} becomes {forwarded}", shown.normal));
            forwarded.clone_into(&mut shown.forwarded);
        }
    }

    /// Foresees the backend, for a tunnel as many as the exchange would ask.
    fn pick(&mut self, upstream: &Upstream, rules: Option<&Rules>, outgoing: &Outgoing<'_>) {
        let tried = rules.map_or(&[][..], Rules::stopped);
        let facts = outgoing.facts(rules);
        let mut foresight = upstream.foresee(facts, tried);
        let ids = choice::ids(upstream, facts.head);
        self.affinity = choice::affinity(upstream, &ids, &foresight);
        let mut passed = Passed::default();
        if outgoing.upgrade().is_some() {
            let retries = rules.and_then(Rules::retries).unwrap_or(upstream.retries);
            (foresight, passed) = tunnel::foresee(upstream, facts, tried, foresight, retries);
        }
        self.members = choice::members(upstream, rules, &foresight, &passed);
        self.by = Some(choice::by(upstream, &foresight));
        let had_members = !foresight.members.is_empty();
        foresight.members.retain(|(it, _)| !passed.refuse(*it));
        if had_members && foresight.members.is_empty() {
            return self.refuse(501, "no-upgrade-url", tunnel::WHY_REFUSED);
        }
        self.choose(upstream, rules, &foresight);
        let (mut sent, mut unsent) = (None, None);
        for choice in foresight.choices() {
            match Sent::new(upstream, rules, &choice, outgoing) {
                Ok(it) => sent = sent.or(Some(it)),
                Err(error) => unsent = unsent.or(Some(error)),
            }
        }
        if sent.is_some() && passed.may_end {
            self.summary += tunnel::MAY_END;
        }
        if let Some(error) = unsent {
            let status = error.status().as_u16();
            match sent {
                Some(_) => self.summary += &format!("; or {status}, as the pick has it: {error}"),
                None => {
                    let why = format!("it cannot be sent: {error}");
                    self.refuse(status, error.token(), &why);
                }
            }
        }
        self.sent = sent;
    }

    fn choose(&mut self, upstream: &Upstream, rules: Option<&Rules>, foresight: &Foresight<'_>) {
        let name = |member: usize| upstream.members[member].name().to_owned();
        match &foresight.members[..] {
            [] => {
                let held = matches!(foresight.decision, Some(Err(_)));
                let (token, why) = match (upstream.is_in_maintenance(rules), held) {
                    (true, _) => (MAINTENANCE, "every backend is stopped"),
                    (false, true) => (
                        "sticky-backend-out",
                        "its session's backend is out, and `force` keeps it",
                    ),
                    (false, false) => ("no-backend", "no backend may get it"),
                };
                self.refuse(503, token, why);
                self.by = Some("nobody");
            }
            [(only, _)] => {
                self.backend = Some(name(*only));
                let why = choice::why(self.by.unwrap_or_default());
                self.summary = format!(
                    "backend {} of upstream {}: {why}",
                    name(*only),
                    upstream.name
                );
            }
            several => {
                let names: Vec<String> = several
                    .iter()
                    .take(NAMES_MAX)
                    .map(|it| name(it.0))
                    .collect();
                let more = match several.len() - names.len() {
                    0 => String::new(),
                    more => format!(" or {more} more"),
                };
                let policy = upstream.config().policy.token();
                let (names, upstream) = (names.join(" or "), &upstream.name);
                self.summary = format!("backend {names}{more} of upstream {upstream}, by {policy}");
            }
        }
    }

    fn fail(&mut self, failure: Failure, why: &str) {
        self.refuse(failure.status.as_u16(), failure.reason.token(), why);
    }

    fn refuse(&mut self, status: u16, token: &str, why: &str) {
        self.answer(status, token, why);
        self.outcome = "refused";
    }

    fn answer(&mut self, status: u16, token: &str, why: &str) {
        self.outcome = "answer";
        let why = if why.is_empty() { token } else { why };
        self.summary = format!("{status}: {why}");
        self.answer = Some(AnswerShown {
            status,
            reason: token.to_owned(),
            text: why.to_owned(),
            location: None,
        });
    }
}

impl RequestShown {
    fn new(grounds: &Grounds<'_>, sender: &Sender, head: &RequestHead) -> Self {
        let client = sender.identity;
        Self {
            method: head.method.to_string(),
            scheme: if client.secure { "https" } else { "http" },
            host: head.authority.as_ref().map(|it| text(&it.host)),
            port: head.authority.as_ref().and_then(|it| it.port),
            path: text(&head.target.path),
            query: head.target.query.as_ref().map(|it| text(it)),
            listener: grounds.listener.label(),
            from: grounds.peer.remote.ip().to_string(),
            client: client.ip.to_string(),
            secure: client.secure,
        }
    }
}

/// What follows a decision to forward a request and has effects, a rule each.
fn follow(site: &Site, rules: Option<&Rules>, forward: &Forward<'_>) -> Vec<String> {
    let upstream = forward.upstream;
    let mut then = Vec::new();
    if let Some(reason) = forward.dropped {
        then.push(format!("{reason} is counted: a field was dropped"));
    }
    match (&forward.given_id, &site.server.request_id) {
        (Some(_), _) => then.push("its id is the one that the trusted proxy gave it".to_owned()),
        (None, Some(name)) => {
            let id = RequestId::from_number(0);
            then.push(format!("an id is made for {name}; here it is {id}"));
        }
        (None, None) => {}
    }
    if upstream.members.len() > 1 {
        let policy = upstream.config().policy.token();
        let equal = match upstream.config().policy {
            Policy::LeastInFlight => "; equally busy ones take turns by weight",
            Policy::RoundRobin | Policy::Sessions | Policy::Traffic | Policy::Hash => "",
        };
        then.push(format!(
            "a backend is picked, by {policy} unless a session decides{equal}"
        ));
    }
    let retries = rules.and_then(Rules::retries).unwrap_or(upstream.retries);
    if retries > 0 {
        then.push(format!(
            "if the backend fails, at most {retries} further attempts, each only if it is safe"
        ));
    }
    then
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Backends that a summary names.
const NAMES_MAX: usize = 3;

#[cfg(test)]
mod tests;
