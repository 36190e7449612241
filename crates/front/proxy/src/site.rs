//! The routes and backends that serve requests, built from the configuration.
//!
//! A site is built once and never changed, and requests read it without a lock. A request in flight keeps its site when
//! a reload, or a change by an operator, installs another. The site after an operator's change shares all but the
//! changed upstream. The schedules of each upstream are the only mutable part, and each belongs to one worker.

pub(crate) mod auth;
mod clients_max;
pub(crate) mod foresight;
mod hash_key;
pub(crate) mod hold;
pub(crate) mod limits;
pub(crate) mod member;
pub(crate) mod overrides;
pub(crate) mod retired;
pub(crate) mod retry_budget;
pub(crate) mod rewrite;
pub(crate) mod route;
pub(crate) mod rules;
pub(crate) mod split;
pub(crate) mod sticky;
mod turns;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use catamaran_balance::affinity::{BackendOut, Decision, MemberStates, Outcome};
use catamaran_balance::hash::Key;
use catamaran_message::RequestHead;
use catamaran_upstream::{Backend, BackendCounts, FiguresTotals, Group};
use http::Method;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::cache::Cache;
use crate::config::{
    Activation, BackendConfig, Config, ErrorPages, ListenerConfig, Policy, Protocol, RouteConfig,
    ServerConfig, TraceConfig, UpstreamConfig,
};
use crate::path::NormalPath;
use crate::site::auth::{SiteAuth, SiteAuths};
use crate::site::clients_max::WantedLimits;
use crate::site::hold::HoldQueue;
use crate::site::limits::SiteLimits;
pub(crate) use crate::site::member::{Controls, Member};
use crate::site::overrides::Overrides;
use crate::site::retry_budget::SharedRetryBudget;
use crate::site::route::RouteTable;
use crate::site::rules::Rules;
use crate::site::sticky::Sticky;
use crate::site::sticky::own_cookie::Own;
use crate::site::turns::Turns;
use crate::traces::NextParent;
use crate::users::UsersError;
use crate::via::Via;

#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) routes: Arc<RouteTable>,
    pub(crate) upstreams: Vec<Arc<Upstream>>,
    pub(crate) caches: Arc<[Cache]>,
    /// The limits of requests; `None`: there are none.
    pub(crate) limits: Option<Arc<SiteLimits>>,
    /// The sign-ons; `None`: there are none.
    pub(crate) auths: Option<Arc<SiteAuths>>,
    /// The server settings; `connections_max` is lowered to what the limit of open files allows.
    pub(crate) server: Arc<ServerConfig>,
    wanted: WantedLimits,
    /// The listeners' settings, unchanged from the file.
    pub(crate) listeners: Arc<[ListenerConfig]>,
    /// Whether a route may depend on the listener, in this site or in the previous one, from which connections may
    /// still be open.
    pub(crate) parts_listeners: bool,
    pub(crate) via: Option<Arc<Via>>,
    /// The operator's error pages, for routes that have none of their own; `None`: the built-in pages are used.
    pub(crate) error_pages: Option<Arc<ErrorPages>>,
    /// How requests are traced; `None`: they are not.
    pub(crate) trace: Option<Arc<TraceConfig>>,
    /// The number of this site: one more than that of the site that it replaced.
    pub(crate) generation: u64,
}

/// A named group of backends, with all that is needed to pick one for a request.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) name: String,
    config: Arc<UpstreamConfig>,
    workers: usize,
    pub(crate) members: Vec<Member>,
    pub(crate) retry_budget: Arc<SharedRetryBudget>,
    /// Whether there is a backend that speaks HTTP.
    has_http: bool,
    has_ajp: bool,
    turns: Turns,
    /// How sessions are kept on their members; `None`: they are not kept.
    pub(crate) sticky: Option<Arc<Sticky>>,
    /// The requests that wait for a first member; `None`: none does.
    hold: Option<Arc<HoldQueue>>,
    /// Wakes requests that wait for a first member: one may serve, or this site was replaced. It belongs to the
    /// upstream's name.
    pub(crate) changed: Arc<Notify>,
}

/// The status of one backend at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendStatus {
    /// The name of the backend's upstream.
    pub upstream: String,
    /// The backend's name, unique in that upstream.
    pub backend: String,
    /// The backend's current counts and health.
    pub counts: BackendCounts,
    /// How long ago the addresses of the backend's host name were resolved; `None`: it has no name, or it was not
    /// resolved.
    pub name_age: Option<Duration>,
    /// Counters and times of the backend's requests since the start.
    pub totals: FiguresTotals,
    /// Whether its `activation`, set by the file or an operator, is `active`, so that it takes new sessions.
    pub active: bool,
    /// Whether a reload removed the backend; it is listed until its last exchange ends.
    pub retired: bool,
}

impl BackendStatus {
    pub(crate) fn of(upstream: &str, name: &str, backend: &Backend) -> Self {
        Self {
            upstream: upstream.to_owned(),
            backend: name.to_owned(),
            counts: backend.counts(),
            name_age: backend.resolution().and_then(|it| it.age),
            totals: backend.figures().totals(),
            active: false,
            retired: false,
        }
    }
}

impl Site {
    /// Builds a site for `workers` workers. The error is the name of an upstream that a route names and that does not
    /// exist.
    ///
    /// A backend in `reusable` with the same upstream, protocol and address is taken from there, with its connections,
    /// health and counters; those left in `reusable` are not part of the site. The settings of taken backends stay as
    /// they are until [`Self::configure`].
    pub(crate) fn new(
        config: &Config,
        workers: usize,
        reusable: &mut Vec<Arc<Backend>>,
    ) -> Result<Self, String> {
        let names = config.upstreams.iter().map(|it| it.name.as_str());
        let indices: HashMap<&str, usize> = names.zip(0..).collect();
        let mut routes = RouteTable::new(&config.routes, |name| indices.get(name).copied())?;
        routes.resolve(|upstream, name| {
            let mut backends = config.upstreams[upstream].all();
            backends.position(|backend| backend.name == name)
        });
        routes.resolve_caches(|name| config.caches.iter().position(|cache| cache.name == name));
        let limits = SiteLimits::new(config, workers);
        routes.resolve_limits(|name| limits.as_ref()?.index(name));
        let auths = SiteAuths::new(config, workers, |name| indices.get(name).copied())?;
        routes.resolve_auths(|name| auths.as_ref()?.index(name));
        let caches = config.caches.iter();
        let site = Self {
            caches: caches.map(|cache| Cache::new(cache, workers)).collect(),
            limits: limits.map(Arc::new),
            auths: auths.map(Arc::new),
            parts_listeners: routes.has_listeners(),
            routes: Arc::new(routes),
            upstreams: config
                .upstreams
                .iter()
                .map(|it| Arc::new(Upstream::new(it, workers, reusable)))
                .collect(),
            server: Arc::new(config.server.clone()),
            wanted: WantedLimits::of(config),
            listeners: config.listeners.as_slice().into(),
            via: config.server.via.as_deref().map(Via::new).map(Arc::new),
            error_pages: config.error_pages.clone(),
            trace: config.trace.clone(),
            generation: 0,
        };
        Ok(site.fitted())
    }

    /// Builds the next site, with these overrides of members. Upstreams whose members do not change are shared with
    /// this one.
    pub(crate) fn controlled(&self, overrides: &Overrides) -> Self {
        let mut upstreams = Vec::with_capacity(self.upstreams.len());
        for upstream in &self.upstreams {
            let controls = overrides.controls_of(upstream);
            let present = upstream.members.iter().map(|member| &member.controls);
            upstreams.push(if present.eq(&controls) {
                Arc::clone(upstream)
            } else {
                Arc::new(upstream.controlled(&controls))
            });
        }
        self.with_upstreams(upstreams)
    }

    /// Builds the next site, in which each upstream has the members of `found` as its discovered ones. Backends with
    /// the same name and address are taken from `reusable`, as by [`Self::new`].
    pub(crate) fn with_found(
        &self,
        mut found: HashMap<String, Vec<BackendConfig>>,
        reusable: &mut HashMap<String, Vec<Arc<Backend>>>,
    ) -> Self {
        let mut upstreams = Vec::with_capacity(self.upstreams.len());
        for upstream in &self.upstreams {
            upstreams.push(match found.remove(&upstream.name) {
                Some(members) if members != upstream.config.found => {
                    Arc::new(upstream.with_found(members, reusable))
                }
                _ => Arc::clone(upstream),
            });
        }
        self.with_upstreams(upstreams).fitted()
    }

    /// Replaces the routes that discovered members bring by `found`. Returns this site unchanged if these routes and
    /// the members of `before` are the same; other members have other indices, which routes refer to.
    pub(crate) fn with_routes(self, before: &Self, found: Vec<RouteConfig>) -> Self {
        let given = self.routes.given().iter().map(|route| &route.config);
        let (known, own): (Vec<_>, Vec<_>) = given.partition(|config| config.found);
        let has_same_members = found.is_empty() || self.member_names().eq(before.member_names());
        // Routes of members differ in these parts alone.
        let parts = |it: &RouteConfig| (it.path.clone(), it.target.clone(), it.rules.clone());
        let has_same_routes = known.into_iter().map(parts).eq(found.iter().map(parts));
        if has_same_members && has_same_routes {
            return self;
        }
        let mut configs: Vec<RouteConfig> = own.into_iter().cloned().collect();
        add_routes(&mut configs, found);
        let index = |name: &str| self.upstreams.iter().position(|it| it.name == name);
        // An error cannot occur: all names of upstreams were known before.
        let Ok(mut table) = RouteTable::new(&configs, index) else {
            return self;
        };
        table.resolve(|upstream, name| self.upstreams[upstream].member(name).map(|it| it.0));
        table.resolve_caches(|name| self.caches.iter().position(|it| it.config.name == name));
        table.resolve_limits(|name| self.limits.as_ref()?.index(name));
        table.resolve_auths(|name| self.auths.as_ref()?.index(name));
        for (brought, of_file) in table.overruled() {
            let context = &brought.config.path;
            let place = of_file.config.place.as_ref().map(|it| format!(" ({it})"));
            tracing::warn!(
                "members get no requests for their context {context}: the route {}{} of the file has it",
                of_file.config.path,
                place.unwrap_or_default()
            );
        }
        Self {
            routes: Arc::new(table),
            ..self
        }
    }

    /// Whether this site and `other` come from the same reading of the file, and differ at most in what was found or
    /// changed since.
    pub(crate) fn is_of_file_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.listeners, &other.listeners)
    }

    /// The names of all members, in their order.
    fn member_names(&self) -> impl Iterator<Item = &str> {
        self.members().map(Member::name)
    }

    fn with_upstreams(&self, upstreams: Vec<Arc<Upstream>>) -> Self {
        Self {
            upstreams,
            generation: self.generation + 1,
            ..self.clone()
        }
    }

    /// Takes over from the site that this one replaces: its generation, whether its routes depend on listeners, the
    /// contents of caches of the same name, what clients owe to limits, the counts of sign-ons, and the requests that wait
    /// for a member.
    pub(crate) fn follow(&mut self, before: &Self) {
        self.generation = before.generation;
        self.parts_listeners |= before.routes.has_listeners();
        let caches = self.caches.iter().map(|cache| {
            let mut next = cache.clone();
            if let Some(previous) = before.cache(&cache.config.name) {
                next.follow(previous);
            }
            next
        });
        self.caches = caches.collect();
        for upstream in &mut self.upstreams {
            if let Some(previous) = before.upstream(&upstream.name)
                // This site is not in force yet, so nobody shares its upstreams.
                && let Some(own) = Arc::get_mut(upstream)
            {
                own.follow_hold(previous);
            }
        }
        if let (Some(own), Some(previous)) = (&mut self.limits, &before.limits) {
            Arc::make_mut(own).follow(previous);
        }
        if let (Some(own), Some(previous)) = (&mut self.auths, &before.auths) {
            Arc::make_mut(own).follow(previous);
        }
    }

    /// The index of the listener that had these settings when it accepted a connection: the one at the
    /// same address, or of several with port 0 the one of the same name. `None` if a reload has removed it.
    pub(crate) fn listener(&self, accepted: &ListenerConfig) -> Option<usize> {
        let listeners = self.listeners.iter().enumerate();
        let mut at_address = listeners.filter(|(_, it)| it.address == accepted.address);
        let (first, listener) = at_address.next()?;
        let is_only = at_address.clone().next().is_none();
        if is_only || listener.name == accepted.name {
            return Some(first);
        }
        let (index, _) = at_address.find(|(_, it)| it.name == accepted.name)?;
        Some(index)
    }

    /// The cache with this name.
    pub(crate) fn cache(&self, name: &str) -> Option<&Cache> {
        self.caches.iter().find(|cache| cache.config.name == name)
    }

    /// The sign-on of a route's rules; `None`: they have none, or the site does not have it.
    pub(crate) fn auth(&self, rules: &Rules) -> Option<&SiteAuth> {
        self.auths.as_ref()?.at(rules.auth()?)
    }

    /// Reads the files of users of all sign-ons. Before that these let nobody pass.
    ///
    /// # Errors
    /// The first sign-on whose files cannot be used.
    pub(crate) fn read_users(&self) -> Result<(), UsersError> {
        for users in self.auths.iter().flat_map(|auths| auths.users()) {
            users.renew()?;
        }
        Ok(())
    }

    /// The upstream with this name.
    pub(crate) fn upstream(&self, name: &str) -> Option<&Arc<Upstream>> {
        self.upstreams.iter().find(|it| it.name == name)
    }

    /// Every backend of every upstream.
    pub(crate) fn backends(&self) -> impl Iterator<Item = &Arc<Backend>> {
        self.members().map(|member| &member.backend)
    }

    /// Every member of every upstream.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Member> {
        self.upstreams.iter().flat_map(|upstream| &upstream.members)
    }

    /// Puts this site in force in the place of another, and wakes the requests that wait for a member there.
    pub(crate) fn put_in_force(self, in_force: &ArcSwap<Self>) {
        let before = in_force.swap(Arc::new(self));
        for upstream in &before.upstreams {
            upstream.changed.notify_waiters();
        }
    }

    /// Applies the site's settings to all its backends.
    pub(crate) fn configure(&self) {
        for upstream in &self.upstreams {
            upstream.configure();
        }
    }

    /// The status of every backend.
    pub(crate) fn status(&self) -> Vec<BackendStatus> {
        let mut statuses = Vec::new();
        for upstream in &self.upstreams {
            for member in &upstream.members {
                statuses.push(BackendStatus {
                    active: member.controls.activation == Activation::Active,
                    ..BackendStatus::of(&upstream.name, member.name(), &member.backend)
                });
            }
        }
        statuses
    }

    /// Closes the worker's backend connections that were idle for too long, and frees cache entries that it no longer
    /// needs.
    pub(crate) fn sweep(&self, worker: usize) {
        for backend in self.backends() {
            backend.sweep(worker);
        }
        for cache in self.caches.iter() {
            cache.store.sweep(worker);
        }
    }
}

impl Upstream {
    /// How often a request may be retried: `retries` of its route, or else of the upstream.
    #[inline]
    pub(crate) fn retries_by(&self, rules: Option<&Rules>) -> u32 {
        let own = rules.and_then(|rules| rules.config().retries);
        own.unwrap_or(self.config.retries)
    }

    /// Whether a request with this method may be sent again after a backend may have received it.
    pub(crate) fn repeats(&self, method: &Method) -> bool {
        self.config.retry_sent.allows(method)
    }

    fn new(config: &UpstreamConfig, workers: usize, reusable: &mut Vec<Arc<Backend>>) -> Self {
        let members: Vec<Member> = config
            .all()
            .map(|it| Member::new(&config.name, it, workers, reusable))
            .collect();
        let turns = Turns::new(config, &members, workers);
        let retry_budget = Arc::new(SharedRetryBudget::new(workers));
        Self::of(
            Arc::new(config.clone()),
            workers,
            members,
            turns,
            retry_budget,
        )
    }

    /// Builds an upstream of these parts, without requests that wait for a member.
    fn of(
        config: Arc<UpstreamConfig>,
        workers: usize,
        members: Vec<Member>,
        turns: Turns,
        retry_budget: Arc<SharedRetryBudget>,
    ) -> Self {
        let speaks = |protocol| match &config.members {
            // Without members, the source tells what those to come may speak.
            Some(source) if members.is_empty() => source.may_speak(protocol),
            _ => config.all().any(|it| it.protocol == protocol),
        };
        Self {
            name: config.name.clone(),
            has_http: speaks(Protocol::Http),
            has_ajp: speaks(Protocol::Ajp),
            hold: config.hold.map(|_| Arc::new(HoldQueue::new(workers))),
            changed: Arc::default(),
            sticky: Sticky::new(&config).map(Arc::new),
            config,
            workers,
            members,
            turns,
            retry_budget,
        }
    }

    /// Builds this upstream with `found` as its discovered members, besides those of the file. A backend of the same
    /// name and address is taken from `reusable`.
    fn with_found(
        &self,
        found: Vec<BackendConfig>,
        reusable: &mut HashMap<String, Vec<Arc<Backend>>>,
    ) -> Self {
        let config = UpstreamConfig {
            found,
            ..UpstreamConfig::clone(&self.config)
        };
        let mut members = self.members[..config.backends.len()].to_vec();
        for found in &config.found {
            let mut none = Vec::new();
            let known = reusable.get_mut(&found.name).unwrap_or(&mut none);
            members.push(Member::new(&self.name, found, self.workers, known));
        }
        let turns = Turns::new(&config, &members, self.workers);
        let retry_budget = Arc::clone(&self.retry_budget);
        let is_empty = members.is_empty();
        let mut next = Self::of(Arc::new(config), self.workers, members, turns, retry_budget);
        next.hold.clone_from(&self.hold);
        next.changed = Arc::clone(&self.changed);
        if is_empty {
            // Members to come are taken to speak what the last ones did.
            (next.has_http, next.has_ajp) = (self.has_http, self.has_ajp);
        }
        next
    }

    /// How many members the file lists; they come before the discovered ones.
    pub(crate) fn of_file(&self) -> usize {
        self.config.backends.len()
    }

    /// Builds this upstream with these controls, one for each member, in their order.
    fn controlled(&self, controls: &[Controls]) -> Self {
        let mut members = self.members.clone();
        for (member, controls) in members.iter_mut().zip(controls) {
            member.controls = *controls;
        }
        let (config, workers) = (Arc::clone(&self.config), self.workers);
        let turns = self.turns.controlled(&config, &members, workers);
        let retry_budget = Arc::clone(&self.retry_budget);
        Self {
            sticky: self.sticky.clone(),
            hold: self.hold.clone(),
            changed: Arc::clone(&self.changed),
            ..Self::of(config, workers, members, turns, retry_budget)
        }
    }

    /// The member with this name, and its index.
    pub(crate) fn member(&self, name: &str) -> Option<(usize, &Member)> {
        let mut members = self.members.iter().enumerate();
        members.find(|(_, member)| member.name() == name)
    }

    /// The configuration of the upstream.
    pub(crate) fn config(&self) -> &UpstreamConfig {
        &self.config
    }

    /// Applies the settings and controls of its members to their backends.
    fn configure(&self) {
        let with_weight = |member: &Member| (Arc::clone(&member.backend), member.controls.weight);
        let serves = |member: &&Member| member.controls.activation != Activation::Stopped;
        let serving = self.members.iter().filter(serves);
        let unwell_max = self.config.unwell_max;
        let changed = Arc::clone(&self.changed);
        let group = Group::new(serving.map(with_weight), unwell_max, changed);
        for member in &self.members {
            let Member {
                backend, settings, ..
            } = member;
            backend.configure(Arc::clone(settings), Arc::clone(&group));
            let sticky = self.sticky.as_ref();
            backend.count_sessions(sticky.map(|sticky| sticky.config.session_timeout));
            backend.keep_load(self.config.policy.reads_in_flight());
            match member.controls.activation {
                Activation::Stopped => backend.stop(),
                Activation::Active | Activation::Drain => backend.resume(),
            }
        }
    }

    /// Whether some backend speaks HTTP, and so is told about the client in header fields; AJP13 has its own.
    pub(crate) fn wants_forwarded_fields(&self) -> bool {
        self.has_http
    }

    /// Whether some backend speaks AJP13, and so is told which address of the front the client connected to.
    pub(crate) fn tells_local_address(&self) -> bool {
        self.has_ajp
    }

    /// Whether another backend may be picked: one that is not in `tried` and has a share of the load.
    pub(crate) fn has_others(&self, tried: &[usize]) -> bool {
        let mut members = self.members.iter().enumerate();
        members.any(|(index, member)| !tried.contains(&index) && member.share() > 0)
    }

    /// Chooses a backend that is not in `tried`: the session's, or else one by the policy; `None`: no backend may get
    /// the request. `now` may be coarse.
    ///
    /// # Errors
    /// The session's backend is out, and `force` forbids another.
    pub(crate) fn choose<'r>(
        &'r self,
        worker: usize,
        facts: Facts<'r>,
        tried: &[usize],
        now: Instant,
    ) -> Result<Option<Choice<'r>>, BackendOut<'r>> {
        let Some(sticky) = self.sticky.as_ref().filter(|_| !facts.unsticky) else {
            let chosen = |member| Choice {
                member,
                decision: None,
            };
            return Ok(self.pick(worker, &facts, tried, now).map(chosen));
        };
        let mut asking = UpstreamMembers {
            upstream: self,
            worker,
            facts,
            tried,
        };
        let decision = sticky.decide(facts.head, facts.own, &mut asking, &mut ())?;
        // The policy counts this request, which its session has decided, against the member's turns.
        if let Some(member) = decision.member
            && decision.outcome == Outcome::Kept
            && self.members.len() > 1
            && self.members[member].controls.activation.takes_new()
        {
            self.turns.note(worker, &self.members, member);
        }
        if let (Some(id), Some(member)) = (decision.id, decision.member) {
            let backend = &self.members[member].backend;
            match decision.outcome {
                Outcome::Kept if !sticky.config.count_unknown => backend.note_claim(id, now),
                _ => backend.note_session(id, now),
            }
        }
        let by_policy = || self.pick(worker, &facts, tried, now);
        let member = decision.member.or_else(by_policy);
        Ok(member.map(|member| Choice {
            member,
            decision: Some(decision),
        }))
    }

    /// The attributes that tell an AJP backend its route and activation; empty if sessions are not kept.
    pub(crate) fn tell(&self, choice: &Choice<'_>) -> Told<'_> {
        let Some(decision) = choice.decision else {
            return Told::default();
        };
        // The activation is told only for requests that their session brought here. Tomcat's LoadBalancerDrainingValve
        // redirects a request with an invalid session, so that it comes back without one; any other request would be
        // redirected for ever.
        let by_session = decision.outcome == Outcome::Kept && decision.route.is_some();
        let Member {
            settings, controls, ..
        } = &self.members[choice.member];
        let domain = settings.domain.as_ref().filter(|_| decision.by_domain);
        Told {
            route: Some(domain.unwrap_or(&settings.jvm_route)),
            activation: Some(if by_session {
                controls.activation
            } else {
                Activation::Active
            }),
            parent: None,
        }
    }

    /// The `Set-Cookie` that the response gets if the request's session was not kept on its backend; else `None`.
    pub(crate) fn cookie(&self, choice: &Choice<'_>, secure: bool) -> Option<&Bytes> {
        if choice.decision?.outcome == Outcome::Kept {
            return None;
        }
        let cookies = &self.sticky.as_ref()?.response_cookies;
        cookies.own(choice.member, secure)
    }

    /// The hash key of the request; `None` if the policy is not `hash`, or if the request lacks the part to hash.
    fn key(&self, facts: &Facts<'_>) -> Option<Key> {
        match self.config.policy {
            Policy::Hash => hash_key::key(&self.config.hash_by, facts),
            _ => None,
        }
    }

    /// Picks a backend that is not in `tried` and not drained by the route, by the policy. `now` may be coarse.
    fn pick(
        &self,
        worker: usize,
        facts: &Facts<'_>,
        tried: &[usize],
        now: Instant,
    ) -> Option<usize> {
        let excluded = &*facts.without(tried);
        let picked = match &self.members[..] {
            [only] => (excluded.is_empty() && only.share() > 0).then_some(0),
            members => {
                let key = self.key(facts);
                self.turns.pick(worker, members, excluded, key, now)
            }
        };
        if picked.is_none() && excluded.is_empty() {
            self.want();
        }
        picked
    }
}

/// Adds the routes that discovered members bring. A route is left out if the file has one for any host and the same
/// path, unless that one is exact or has a suffix, a pattern, an expression or methods.
pub(crate) fn add_routes(routes: &mut Vec<RouteConfig>, found: Vec<RouteConfig>) {
    let taken: HashSet<_> = routes
        .iter()
        .filter(|it| it.hosts.is_empty() && it.is_prefix() && it.methods.is_empty())
        .map(RouteConfig::compared_path)
        .collect();
    for route in found {
        if !taken.contains(&route.compared_path()) {
            routes.push(route);
        }
    }
}

/// The parts of a request on which the choice of a member depends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'r> {
    pub(crate) head: &'r RequestHead,
    pub(crate) path: &'r NormalPath,
    /// The client's address, which trusted proxies may have given.
    pub(crate) client: IpAddr,
    /// The member that the front's own session cookie names, if the request has that cookie.
    pub(crate) own: Own,
    /// Whether the route ignores sessions (`sticky = false`).
    pub(crate) unsticky: bool,
    /// Members that get only requests of their own sessions on this route.
    pub(crate) drained: &'r [usize],
}

impl Facts<'_> {
    /// The members that must not be picked by policy: those that were tried, and those that the route drains.
    fn without<'t>(&self, tried: &'t [usize]) -> Cow<'t, [usize]> {
        match self.drained {
            [] => Cow::Borrowed(tried),
            drained => Cow::Owned([tried, drained].concat()),
        }
    }
}

/// A member that was chosen for a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice<'r> {
    pub(crate) member: usize,
    /// The decision by the session; `None` if sessions are not kept.
    pub(crate) decision: Option<Decision<'r>>,
}

/// The parts of a request that depend on the attempt: attributes that tell an AJP backend its route and its activation,
/// and the parent of its span.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told<'a> {
    pub(crate) route: Option<&'a str>,
    pub(crate) activation: Option<Activation>,
    /// The change of `traceparent`; `None`: it is right, or there is none.
    pub(crate) parent: Option<&'a NextParent>,
}

/// Answers the questions of `balance::affinity` about the members of an upstream, for one request.
struct UpstreamMembers<'a> {
    upstream: &'a Upstream,
    worker: usize,
    facts: Facts<'a>,
    tried: &'a [usize],
}

impl MemberStates for UpstreamMembers<'_> {
    fn is_usable(&self, member: usize) -> bool {
        let Member {
            backend, controls, ..
        } = &self.upstream.members[member];
        !self.tried.contains(&member) && controls.activation.takes_own() && backend.share() > 0
    }

    fn is_eligible(&self, member: usize) -> bool {
        let Member {
            backend, controls, ..
        } = &self.upstream.members[member];
        let takes_new = controls.activation.takes_new() && !self.facts.drained.contains(&member);
        self.is_usable(member) && takes_new && !backend.is_suspect()
    }

    fn is_draining(&self, member: usize) -> bool {
        self.upstream.members[member].controls.activation == Activation::Drain
    }

    fn pick_among(&mut self, members: &[usize]) -> Option<usize> {
        let Upstream {
            turns,
            members: all,
            ..
        } = self.upstream;
        let key = self.upstream.key(&self.facts);
        let without = self.facts.without(self.tried);
        turns.pick_among(self.worker, all, members, &without, key)
    }
}

#[cfg(test)]
mod tests;
