//! What would become of a request, without its being served: no turn is taken, nothing is counted.
//!
//! The request is read, judged, cleaned and encoded by the functions that serve requests, so that
//! what is explained is what would be done. What belongs to a connection alone is supposed: unless the
//! question says otherwise, the client came by the listener that its URL fits best, and showed no
//! certificate.

mod choice;
pub(crate) mod question;
mod routes;
mod sent;
mod tunnel;

use catamaran_message::RequestHead;
pub use choice::{AffinityShown, MemberShown, StepShown};
pub use question::Question;
use question::Supposed;
pub use routes::{RouteShown, Runner};
pub use sent::Sent;
use serde::Serialize;
use tunnel::Passed;

use crate::config::Config;
use crate::exchange::failure::Failure;
use crate::exchange::guards::Guard;
use crate::exchange::id::RequestId;
use crate::exchange::outgoing::Outgoing;
use crate::exchange::pages::MAINTENANCE;
use crate::exchange::passage::Asked;
use crate::exchange::verdict::{self, Decision, Verdict};
use crate::site::foresight::Foresight;
use crate::site::path::{self, NormalPath};
use crate::site::rules::Rules;
use crate::site::{Site, Upstream};

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
    /// What is sent to [`Self::backend`], or to the first that may get it.
    pub sent: Option<Sent>,
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
/// up.
///
/// # Errors
/// The question cannot be understood, or a route names an upstream that does not exist.
pub fn explain(config: &Config, question: &Question) -> Result<Explanation, String> {
    let site = Site::new(config, 1, &mut Vec::new())
        .map_err(|name| format!("a route names the upstream {name:?}, which does not exist"))?;
    explain_on(&site, question)
}

/// Explains what this site would do with a request now.
pub(crate) fn explain_on(site: &Site, question: &Question) -> Result<Explanation, String> {
    let supposed = Supposed::new(&site.listeners, question)?;
    let mut explanation = Explanation {
        generation: site.generation,
        ..Explanation::default()
    };
    match supposed.read() {
        Ok(head) => explanation.judge(site, &supposed, head),
        Err(fault) => {
            let status = fault.status().as_u16();
            explanation.refuse(status, fault.token(), &format!("it is no request: {fault}"));
        }
    }
    Ok(explanation)
}

impl Explanation {
    /// Follows the request as an exchange does.
    fn judge(&mut self, site: &Site, supposed: &Supposed<'_>, mut head: Box<RequestHead>) {
        let asked = Asked::new(&site.server, &supposed.peer, &head);
        self.request = Some(RequestShown::new(&head, &asked, supposed));
        let received = head.target.path.clone();
        let normal = path::normalise(&received);
        if let Ok(normal) = &normal {
            self.path = Some(PathShown {
                received: text(&received),
                normal: text(&normal.forward),
                compared: text(normal.route()),
                forwarded: text(&normal.forward),
            });
            self.others = routes::runners(site, supposed, &head, normal);
        }
        let verdict = verdict::decide(site, supposed.listener, &supposed.peer, &mut head);
        let Verdict { route, decision } = match verdict {
            Ok(verdict) => verdict,
            Err(failure) => {
                let why = normal.err().map(|fault| fault.to_string());
                return self.fail(failure, why.as_deref().unwrap_or_default());
            }
        };
        self.route = route.map(|route| RouteShown::new(&route.config, &site.listeners));
        let rules = route.and_then(|route| route.rules.as_deref());
        match decision {
            Decision::Answer(status, token) => {
                self.answer(status.as_u16(), token, routes::why_answered(token));
            }
            Decision::Refuse(guard) => {
                self.refuse(Guard::STATUS.as_u16(), guard.token(), guard.why());
            }
            Decision::Redirect(redirection) => {
                let values = asked.values(RequestId::from_number(0), &head);
                match redirection.location(values) {
                    Some(location) => {
                        let found = ("route-redirect", "the route redirects");
                        let status = redirection.to.status.as_u16();
                        self.redirect(status, found, &text(location.as_bytes()));
                    }
                    None => self.refuse(500, "redirect-loop", "it would lead to itself"),
                }
            }
            Decision::Https(location) => {
                let found = ("redirect-https", "`redirect_https` of the listener");
                self.redirect(308, found, &text(location.as_bytes()));
            }
            Decision::Challenge(_) => {
                let why = "`acme_webroot` of the listener; 404 if there is no such file";
                self.answer(200, "acme-challenge", why);
            }
            Decision::Forward(upstream, path) => {
                self.forward(site, supposed, (upstream, rules), (head, path));
            }
        }
    }

    fn redirect(&mut self, status: u16, (token, why): (&'static str, &str), location: &str) {
        self.answer(status, token, why);
        self.summary = format!("{status} to {location}");
        self.answer
            .iter_mut()
            .for_each(|it| it.location = Some(location.to_owned()));
    }

    fn forward(
        &mut self,
        site: &Site,
        supposed: &Supposed<'_>,
        (upstream, rules): (&Upstream, Option<&Rules>),
        (head, path): (Box<RequestHead>, NormalPath),
    ) {
        let forwarded = text(&path.forward);
        if let Some(shown) = &mut self.path
            && shown.forwarded != forwarded
        {
            self.rewrite = Some(format!("{} becomes {forwarded}", shown.normal));
            shown.forwarded = forwarded;
        }
        self.upstream = Some(UpstreamShown {
            name: upstream.name.clone(),
            policy: upstream.config().policy.token(),
            sticky: upstream.sticky.is_some(),
            panic: upstream.members.iter().any(|it| it.backend.counts().panic),
        });
        let ids = choice::ids(upstream, &head);
        // No request has an id yet.
        let id = RequestId::from_number(0);
        let place = (site, upstream, id);
        let tunnel = rules.and_then(|rules| rules.tunnel(&head));
        let token = tunnel.map(|tunnel| tunnel.token);
        let cleaned = Outgoing::new(|_| {}, place, &supposed.peer, (head, path), token);
        let mut outgoing = match cleaned {
            Ok((outgoing, _)) => outgoing,
            Err(failure) => return self.fail(failure, ""),
        };
        if let Some(rules) = rules {
            drop(outgoing.pass(rules, id));
        }
        self.outcome = "forward";
        self.pick((upstream, rules), &ids, (&outgoing, token));
    }

    /// Foresees the backend, for a tunnel as many as the exchange would ask.
    fn pick(
        &mut self,
        (upstream, rules): (&Upstream, Option<&Rules>),
        ids: &[choice::Id],
        (outgoing, tunnel): (&Outgoing<'_>, Option<&str>),
    ) {
        let tried = rules.map_or(&[][..], Rules::stopped);
        let facts = outgoing.facts(rules);
        let mut foresight = upstream.foresee(facts, tried);
        self.affinity = choice::affinity(upstream, ids, &foresight);
        let mut passed = Passed::default();
        if tunnel.is_some() {
            let retries = rules.and_then(Rules::retries).unwrap_or(upstream.retries);
            (foresight, passed) = tunnel::foresee(upstream, (facts, tried), foresight, retries);
        }
        self.members = choice::members(upstream, rules, &foresight, &passed);
        self.by = Some(choice::by(upstream, &foresight));
        let had_members = !foresight.members.is_empty();
        foresight.members.retain(|(it, _)| !passed.refuse(*it));
        if had_members && foresight.members.is_empty() {
            return self.refuse(501, "no-upgrade-url", tunnel::WHY_REFUSED);
        }
        self.choose((upstream, rules), &foresight);
        if let Some(choice) = foresight.choice() {
            if passed.may_end {
                self.summary += tunnel::MAY_END;
            }
            self.sent = Some(Sent::new(upstream, rules, &choice, outgoing, tunnel));
        }
    }

    fn choose(
        &mut self,
        (upstream, rules): (&Upstream, Option<&Rules>),
        foresight: &Foresight<'_>,
    ) {
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
    fn new(head: &RequestHead, asked: &Asked, supposed: &Supposed<'_>) -> Self {
        Self {
            method: head.method.to_string(),
            scheme: if asked.secure { "https" } else { "http" },
            host: head.authority.as_ref().map(|it| text(&it.host)),
            path: text(&head.target.path),
            query: head.target.query.as_ref().map(|it| text(it)),
            listener: supposed.listener.label(),
            from: supposed.peer.remote.ip().to_string(),
            client: asked.client.to_string(),
            secure: asked.secure,
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Backends that a summary names.
const NAMES_MAX: usize = 3;

#[cfg(test)]
mod tests;
