//! Explains what the front would do with a request, without serving it: nothing is sent and no count
//! changes.
//!
//! The functions that serve requests also read, decide and encode this one, so that the explanation agrees
//! with what would happen: `exchange::verdict` decides for both. Later steps that have effects are listed
//! as sentences ([`Explanation::then`]). Properties of the connection are assumed: unless the question
//! gives others, the client speaks HTTP/1.1, connected to the listener that fits the URL best, and showed
//! no certificate.

mod auth;
mod cache;
mod choice;
mod files;
mod finder;
pub(crate) mod hidden;
mod limits;
pub(crate) mod question;
mod routes;
mod sent;
mod trace;
mod tunnel;

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

pub use catamaran_admin_api::Explanation;
use catamaran_admin_api::{
    ExplainedRequest, FrontAnswer, LimitOutlook, PathForms, UpstreamOutlook,
};
use catamaran_message::{RequestHead, ResponseHead};
use catamaran_tls::Profile;
use catamaran_units::show_duration;
pub use finder::{FoundRoute, RouteFinder, RouteRequest};
pub use question::Question;
use question::SupposedRequest;
pub(crate) use routes::status as route_status;
use tunnel::TunnelRefusals;

use crate::config::{Config, ListenerConfig, Policy, RouteTarget};
use crate::control::discovered;
use crate::exchange::compression::CompressionOffer;
use crate::exchange::cors::CorsFields;

use crate::exchange::fields::forwarded::Sender;
use crate::exchange::grounds::Grounds;
use crate::exchange::limit_keys::LimitKeys;
use crate::exchange::outgoing::Outgoing;
use crate::exchange::pages::MAINTENANCE;
use crate::exchange::verdict::{self, Decision, Forward, OwnAnswer, OwnContent, Service, Verdict};
use crate::path;
use crate::request_id::RequestId;
use crate::site::foresight::Foresight;
use crate::site::hold::LeftOut;
use crate::site::route::Route;
use crate::site::rules::Rules;
use crate::site::{Site, Upstream};
use crate::tls;
use crate::traces::Trace;

/// An [`Explanation`] whose parts are filled in one after another.
struct Draft(Explanation);

impl Deref for Draft {
    type Target = Explanation;

    fn deref(&self) -> &Explanation {
        &self.0
    }
}

impl DerefMut for Draft {
    fn deref_mut(&mut self) -> &mut Explanation {
        &mut self.0
    }
}

/// Explains what a front with this configuration would do with a request while all its backends are up.
/// The files of TLS profiles are read; a profile that cannot be read is assumed to serve every name and to
/// ask for no certificate. Of members that are discovered, only those listed in files are known.
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

/// Explains what this site would do with a request now. `profile` returns the TLS profile of a listener;
/// `None`: it has none.
pub(crate) fn explain_on(
    site: &Site,
    question: &Question,
    profile: impl FnOnce(&ListenerConfig) -> Option<Arc<Profile>>,
) -> Result<Explanation, String> {
    let supposed = SupposedRequest::new(&site.listeners, question, profile)?;
    let mut draft = Draft(Explanation {
        generation: site.generation,
        ..Explanation::default()
    });
    let supposed_answer = auth::read_answer(&question.auth)?;
    let (listener, peer) = (supposed.listener, supposed.peer.clone());
    match supposed.read(site) {
        Ok(head) => {
            let traced = site.trace.as_ref();
            let trace = traced.map(|_| Trace::supposed(&head.headers));
            let grounds = Grounds {
                site,
                listener,
                peer: &peer,
                // No request has an id yet.
                id: RequestId::from_number(0),
                trace: trace.as_ref(),
                worker: None,
            };
            draft.judge(grounds, head, supposed_answer);
        }
        Err(fault) => draft.refuse(fault.status.as_u16(), fault.token, &fault.text),
    }
    Ok(draft.0)
}

impl Draft {
    /// Fills in the request, the decision about it (refuse, serve a file, answer or forward) and the
    /// reasons.
    fn judge(
        &mut self,
        grounds: Grounds<'_>,
        head: Box<RequestHead>,
        supposed_answer: Option<ResponseHead>,
    ) {
        let site = grounds.site;
        let sender = Sender::new(grounds.peer, &head, &site.server.trusted_proxies);
        self.request = Some(request_of(&grounds, &sender, &head));
        let normal = path::normalise(&head.target.path);
        if let Ok(normal) = &normal {
            self.path = Some(PathForms {
                received: text(&head.target.path),
                normal: text(&normal.forward),
                compared: text(normal.route()),
                forwarded: text(&normal.forward),
            });
            self.others = routes::runners(&grounds, &sender, &head, normal);
        }
        let trace_config = site.trace.as_deref();
        let traced = trace_config.map(|config| trace::sentence(config, &sender, &head.headers));
        let mut verdict = verdict::decide(grounds, head);
        let (route, cors) = (verdict.route, verdict.cors.take());
        self.route = route.map(|route| route_status(&route.config, &site.listeners));
        // The limits that would be asked are only looked at: none is charged.
        let Some(mut asked) = self.look_at_limits(site, |keys| verdict.add_limits(keys)) else {
            return;
        };
        asked.extend(self.ask(&mut verdict, supposed_answer));
        match self.look_at_limits(site, |keys| verdict.add_user_limits(keys)) {
            Some(sentences) => asked.extend(sentences),
            None => return,
        }
        let Service { passage, decision } = verdict.settle();
        match decision {
            Decision::Refuse(failure) => {
                // A path that cannot be normalised is the cause, if there is one.
                let why = normal.err().map(|fault| fault.to_string());
                let (status, token) = (failure.status.as_u16(), failure.reason.token());
                self.refuse(status, token, &why.unwrap_or_default());
            }
            Decision::Files(request) => self.show_file(site, route, *request),
            Decision::Answer(answer) => self.show_answer(*answer),
            Decision::Forward(mut forward) => {
                self.forward(site, route, &mut forward);
            }
        }
        let offer = passage
            .as_deref()
            .and_then(|passage| passage.compression.as_ref());
        self.then.extend(offer.map(CompressionOffer::words));
        self.then.extend(cors.as_deref().map(CorsFields::words));
        self.then.extend(traced);
        let rules = route.and_then(|route| route.rules.as_deref());
        if rules.is_some_and(|rules| rules.config().unlogged) {
            let text = "it has no line in the access log".to_owned();
            self.then.push(text);
        }
        // Limits are asked first, then the sign-on, then limits by user.
        self.then.splice(..0, asked);
    }

    /// Fills in the limits that `add` adds, as they stand now. Returns a sentence about each; `None`, with the refusal filled
    /// in, if one of them refuses the request.
    fn look_at_limits<'s, 'r>(
        &mut self,
        site: &Site,
        add: impl FnOnce(&mut LimitKeys<'s, 'r>),
    ) -> Option<Vec<String>> {
        let mut keys = LimitKeys::new();
        add(&mut keys);
        let outlooks = limits::outlooks(site, &keys);
        let sentences: Vec<String> = outlooks.iter().map(limits::sentence).collect();
        let refuses = |limit: &LimitOutlook| limit.enforced && limit.exceeded;
        let refusing = outlooks.iter().position(refuses);
        self.limits.extend(outlooks);
        match refusing {
            Some(index) => {
                let token = keys[index].limit.config.token();
                self.refuse(429, token, &sentences[index]);
                None
            }
            None => Some(sentences),
        }
    }

    /// Fills in what the route's sign-on is asked, and has the verdict be the one after an answer that is supposed. Returns
    /// a sentence about it.
    fn ask(
        &mut self,
        verdict: &mut Verdict<'_>,
        supposed_answer: Option<ResponseHead>,
    ) -> Option<String> {
        let auth = verdict.auth()?;
        let outlook = auth::outlook(verdict, auth, supposed_answer.as_ref());
        let sentence = auth::sentence(&outlook, &verdict.head);
        self.auth = Some(outlook);
        auth::suppose(verdict, auth, supposed_answer);
        Some(sentence)
    }

    /// Fills in that the front answers itself.
    fn show_answer(&mut self, answer: OwnAnswer) {
        let token = answer.reason.token();
        let why = match answer.guard {
            Some(guard) => guard.why(),
            None => routes::why_answered(token),
        };
        match answer.content {
            OwnContent::Page(status)
            | OwnContent::Text(status, ..)
            | OwnContent::Allow(status, _) => {
                self.answer(status.as_u16(), token, why);
                if answer.guard.is_some() || !answer.reason.is_client() {
                    self.outcome = "refused".to_owned();
                }
            }
            OwnContent::Preflight => self.answer(204, token, why),
            OwnContent::Service(status, ..) => self.answer(status.as_u16(), token, why),
            OwnContent::Unauthorized(_) => self.answer(401, token, why),
            OwnContent::SignIn(location) => self.redirect(302, token, why, &text(&location)),
            // What limits say is shown beside the decision.
            OwnContent::Limited(_) => self.answer(429, token, why),
            OwnContent::Redirect(status, location) => {
                self.redirect(status.as_u16(), token, why, &text(&location));
            }
            OwnContent::Challenge(files) => {
                self.answer(200, token, why);
                let paths: Vec<String> = files.iter().map(|it| it.display().to_string()).collect();
                let first = paths.join(", else ");
                self.then
                    .push(format!("{first} is read; 404 if there is no such file"));
            }
        }
    }

    fn redirect(&mut self, status: u16, token: &'static str, why: &str, location: &str) {
        self.answer(status, token, why);
        self.summary = format!("{status} to {location}");
        if let Some(answer) = &mut self.answer {
            answer.location = Some(location.to_owned());
        }
    }

    /// Fills in that the request is forwarded: the path, the cache, the backend, and the steps that follow.
    fn forward(&mut self, site: &Site, route: Option<&Route>, forward: &mut Forward<'_>) {
        let rules = route.and_then(|route| route.rules.as_deref());
        // The policy may hash one of the front's own fields.
        forward.outgoing.complete();
        let (upstream, outgoing) = (forward.upstream, &forward.outgoing);
        self.show_rewrite(&text(&outgoing.facts(rules).path.forward));
        self.upstream = Some(UpstreamOutlook {
            name: upstream.name.clone(),
            policy: upstream.config().policy.token().to_owned(),
            sticky: upstream.sticky.is_some(),
            panic: upstream.members.iter().any(|it| it.backend.counts().panic),
        });
        let cache = forward.cache.as_ref();
        self.cache = cache.map(|request| cache::outlook(request, outgoing));
        self.then = follow(site, rules, forward);
        if let Some(RouteTarget::Split(parts)) = route.map(|route| &route.config.target) {
            let sentence = format!(
                "an upstream is chosen, by the {}, unless a session decides; here it is {}",
                routes::shares(parts),
                upstream.name
            );
            self.then.insert(0, sentence);
        }
        if let Some(outlook) = &self.cache {
            let sentence = cache::sentence(outlook);
            self.then.insert(0, sentence);
        }
        self.outcome = "forward".to_owned();
        self.pick(upstream, rules, outgoing);
    }

    /// Shows the path that is forwarded, if it differs from the client's.
    fn show_rewrite(&mut self, forwarded: &str) {
        let explanation = &mut self.0;
        if let Some(path) = &mut explanation.path
            && path.forwarded != forwarded
        {
            explanation.rewrite = Some(format!("{} becomes {forwarded}", path.normal));
            forwarded.clone_into(&mut path.forwarded);
        }
    }

    /// Fills in the backend that would be picked, or those that may be. For a tunnel it follows the
    /// retries of the exchange, which skip backends that take no tunnels.
    fn pick(&mut self, upstream: &Upstream, rules: Option<&Rules>, outgoing: &Outgoing<'_>) {
        let stopped = rules.map_or(&[][..], Rules::stopped);
        let facts = outgoing.facts(rules);
        let mut foresight = upstream.foresee(facts, stopped);
        let ids = choice::ids(upstream, facts.head);
        self.affinity = choice::affinity(upstream, &ids, &foresight);
        let mut refusals = TunnelRefusals::default();
        if outgoing.upgrade.is_some() {
            let retries = upstream.retries_by(rules);
            (foresight, refusals) = tunnel::foresee(upstream, facts, stopped, foresight, retries);
        }
        self.members = choice::members(upstream, rules, &foresight, &refusals);
        self.by = Some(choice::by(upstream, &foresight).to_owned());
        let had_members = !foresight.members.is_empty();
        foresight
            .members
            .retain(|(member, _)| !refusals.refuse(*member));
        if had_members && foresight.members.is_empty() {
            return self.refuse(501, "no-upgrade-url", tunnel::WHY_REFUSED);
        }
        self.choose(upstream, rules, &foresight);
        // The request to the first member that can be sent it, and the error of the first that cannot.
        let (mut sent, mut unsent) = (None, None);
        for choice in foresight.choices() {
            match sent::request(upstream, rules, &choice, outgoing) {
                Ok(request) => sent = sent.or(Some(request)),
                Err(error) => unsent = unsent.or(Some(error)),
            }
        }
        if sent.is_some() && refusals.may_end {
            self.summary += tunnel::MAY_END;
        }
        if let Some(error) = unsent {
            let status = error.status().as_u16();
            let hint = match &self.auth {
                Some(auth) if status == 431 && auth.users_file.is_none() => format!(
                    "; `hide_cookies` of [auth.{}] keeps its service's cookies from backends",
                    auth.name
                ),
                _ => String::new(),
            };
            match sent {
                Some(_) => {
                    self.summary += &format!("; or {status}, as the pick has it: {error}{hint}");
                }
                None => {
                    let why = format!("it cannot be sent: {error}{hint}");
                    self.refuse(status, error.token(), &why);
                }
            }
        }
        self.sent = sent;
    }

    /// Says which of the members that may get the request are chosen, or why there are none.
    fn choose(&mut self, upstream: &Upstream, rules: Option<&Rules>, foresight: &Foresight<'_>) {
        let name = |member: usize| upstream.members[member].name().to_owned();
        match &foresight.members[..] {
            [] => {
                let (token, why) = why_nobody(upstream, rules, foresight);
                self.refuse(503, token, why);
                self.by = Some("nobody".to_owned());
            }
            [(only, _)] => {
                self.backend = Some(name(*only));
                let why = choice::why(self.by.as_deref().unwrap_or_default());
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
                    unnamed => format!(" or {unnamed} more"),
                };
                let policy = upstream.config().policy.token();
                let (names, upstream) = (names.join(" or "), &upstream.name);
                self.summary = format!("backend {names}{more} of upstream {upstream}, by {policy}");
            }
        }
    }

    fn refuse(&mut self, status: u16, token: &str, why: &str) {
        self.answer(status, token, why);
        self.outcome = "refused".to_owned();
    }

    fn answer(&mut self, status: u16, token: &str, why: &str) {
        self.outcome = "answer".to_owned();
        let why = if why.is_empty() { token } else { why };
        self.summary = format!("{status}: {why}");
        self.answer = Some(FrontAnswer {
            status,
            reason: token.to_owned(),
            text: why.to_owned(),
            location: None,
        });
    }
}

/// The token and the sentence for a request that no member may get.
fn why_nobody(
    upstream: &Upstream,
    rules: Option<&Rules>,
    foresight: &Foresight<'_>,
) -> (&'static str, &'static str) {
    let stopped = rules.map_or(&[][..], Rules::stopped);
    if upstream.holds(LeftOut::of(rules), stopped) {
        let why = "no backend may get it, unless one comes within `hold`";
        ("hold-timeout", why)
    } else if upstream.is_in_maintenance(stopped) {
        (MAINTENANCE, "every backend is stopped")
    } else if matches!(foresight.decision, Some(Err(_))) {
        let why = "its session's backend is out, and `force` keeps it";
        ("sticky-backend-out", why)
    } else {
        ("no-backend", "no backend may get it")
    }
}

/// Describes a request as the front reads it: method, scheme, host, path, listener and client.
fn request_of(grounds: &Grounds<'_>, sender: &Sender, head: &RequestHead) -> ExplainedRequest {
    let client = sender.identity;
    let scheme = if client.secure { "https" } else { "http" };
    ExplainedRequest {
        method: head.method.to_string(),
        scheme: scheme.to_owned(),
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

/// Lists in sentences the steps that follow the decision to forward a request: counting, making an id,
/// picking, retrying.
fn follow(site: &Site, rules: Option<&Rules>, forward: &Forward<'_>) -> Vec<String> {
    let upstream = forward.upstream;
    let mut then = Vec::new();
    if let Some(reason) = forward.outgoing.dropped {
        then.push(format!("{reason} is counted: a field was dropped"));
    }
    if forward.outgoing.given_id.is_some() {
        then.push("its id is the one that the trusted proxy gave it".to_owned());
    } else if let Some(name) = &site.server.request_id {
        let id = RequestId::from_number(0);
        then.push(format!("an id is made for {name}; here it is {id}"));
    }
    if upstream.members.len() > 1 {
        let policy = upstream.config().policy.token();
        let among_equals = match upstream.config().policy {
            Policy::LeastInFlight => "; equally busy ones take turns by weight",
            Policy::RoundRobin | Policy::Sessions | Policy::Traffic | Policy::Hash => "",
        };
        then.push(format!(
            "a backend is picked, by {policy} unless a session decides{among_equals}"
        ));
    }
    if let Some((hold, _)) = upstream.hold() {
        let wait = show_duration(hold.wait);
        then.push(format!(
            "while no backend takes new sessions, it waits for one, at most {wait}"
        ));
    }
    let retries = upstream.retries_by(rules);
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

/// How many backends a summary names; the others are only counted.
const NAMES_MAX: usize = 3;

#[cfg(test)]
mod tests;
