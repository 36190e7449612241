//! The routes and backends that serve requests, built from the configuration.
//!
//! A site is built once and never changed. Requests read it without a lock. A request in flight keeps
//! its site when a reload installs another. The schedules of each upstream are the only mutable part,
//! and each belongs to one worker.

mod hash_key;
pub(crate) mod path;
pub(crate) mod reload;
pub(crate) mod retry_budget;
pub(crate) mod route;
pub(crate) mod sticky;
mod turns;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use catamaran_balance::affinity::{BackendOut, Decision, Outcome, Standing};
use catamaran_balance::hash::Key;
use catamaran_message::RequestHead;
use catamaran_upstream::{Backend, BackendCounts, Group, Settings};
use http::HeaderValue;
use tokio::time::Instant;

use crate::config::{
    BackendConfig, Config, HashBy, Policy, Protocol, ServerConfig, UpstreamConfig,
};
use crate::exchange::forwarded::Via;
use crate::site::path::NormalPath;
use crate::site::retry_budget::SharedRetryBudget;
use crate::site::route::RouteTable;
use crate::site::sticky::{Own, Sticky};
use crate::site::turns::Turns;

#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) routes: RouteTable,
    pub(crate) upstreams: Vec<Upstream>,
    pub(crate) server: ServerConfig,
    pub(crate) via: Option<Via>,
}

/// A group of backends, ready to be picked from.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) name: String,
    pub(crate) members: Vec<Member>,
    pub(crate) retries: u32,
    policy: Policy,
    /// How much of the weight may be out because of missing answers, in percent.
    unwell_max: u8,
    pub(crate) retry_budget: SharedRetryBudget,
    /// Whether there is an HTTP backend.
    has_http: bool,
    turns: Turns,
    /// What leads to a backend, if the policy asks for it.
    hash_by: Option<HashBy>,
    /// How sessions stay with their members, if they do.
    pub(crate) sticky: Option<Sticky>,
}

/// A backend as a member of an upstream, with the settings of this site.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) backend: Arc<Backend>,
    /// In force once the site is, and for exchanges that began with the site.
    pub(crate) settings: Arc<Settings>,
}

/// One backend at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendStatus {
    /// The upstream it is a member of.
    pub upstream: String,
    /// Its name, unique in that upstream.
    pub backend: String,
    /// Its counts and its health.
    pub counts: BackendCounts,
}

impl Site {
    /// Builds a site for so many workers; the error names an upstream that no route may name.
    ///
    /// A backend in `reusable` of the same upstream, protocol and address is taken from there, with
    /// its connections, health and counters; what is left is not part of the site. Its settings
    /// stay as they are until [`Self::configure`].
    pub(crate) fn new(
        config: &Config,
        workers: usize,
        reusable: &mut Vec<Arc<Backend>>,
    ) -> Result<Self, String> {
        let names = config.upstreams.iter().map(|it| it.name.as_str());
        let indices: HashMap<&str, usize> = names.zip(0..).collect();
        Ok(Self {
            routes: RouteTable::new(&config.routes, |name| indices.get(name).copied())?,
            upstreams: config
                .upstreams
                .iter()
                .map(|it| Upstream::new(it, workers, reusable))
                .collect(),
            server: config.server.clone(),
            via: config.server.via.as_deref().and_then(Via::new),
        })
    }

    /// Every backend of every upstream.
    pub(crate) fn backends(&self) -> impl Iterator<Item = &Arc<Backend>> {
        self.members().map(|member| &member.backend)
    }

    /// Every member of every upstream.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Member> {
        self.upstreams.iter().flat_map(|upstream| &upstream.members)
    }

    /// Puts the site's settings of all backends in force.
    pub(crate) fn configure(&self) {
        self.upstreams.iter().for_each(Upstream::configure);
    }

    pub(crate) fn status(&self) -> Vec<BackendStatus> {
        let of_upstream = |upstream: &Upstream| {
            let name = upstream.name.clone();
            let of_member = move |member: &Member| BackendStatus {
                upstream: name.clone(),
                backend: member.name().to_owned(),
                counts: member.backend.counts(),
            };
            upstream.members.iter().map(of_member).collect::<Vec<_>>()
        };
        self.upstreams.iter().flat_map(of_upstream).collect()
    }

    /// Closes what is unused for too long on `worker`.
    pub(crate) fn sweep(&self, worker: usize) {
        for backend in self.backends() {
            backend.sweep(worker);
        }
    }
}

impl Upstream {
    fn new(config: &UpstreamConfig, workers: usize, reusable: &mut Vec<Arc<Backend>>) -> Self {
        Self {
            name: config.name.clone(),
            members: config
                .backends
                .iter()
                .map(|it| Member::new(&config.name, it, workers, reusable))
                .collect(),
            retries: config.retries,
            policy: config.policy,
            unwell_max: config.unwell_max,
            retry_budget: SharedRetryBudget::new(workers),
            has_http: config
                .backends
                .iter()
                .any(|it| it.protocol == Protocol::Http),
            turns: Turns::new(config, workers),
            hash_by: (config.policy == Policy::Hash).then(|| config.hash_by.clone()),
            sticky: Sticky::new(config),
        }
    }

    /// Puts the settings of its backends in force.
    fn configure(&self) {
        let weighed = |member: &Member| (Arc::clone(&member.backend), member.settings.weight);
        let group = Group::new(self.members.iter().map(weighed), self.unwell_max);
        for Member { backend, settings } in &self.members {
            backend.configure(Arc::clone(settings), Arc::clone(&group));
            backend.keep_load(self.policy.reads_in_flight());
        }
    }

    /// Whether a backend is told about the client in header fields; AJP13 has its own.
    pub(crate) fn wants_forwarded_fields(&self) -> bool {
        self.has_http
    }

    /// Whether there is a backend that may be picked and was not tried yet.
    pub(crate) fn has_others(&self, tried: &[usize]) -> bool {
        let mut members = self.members.iter().enumerate();
        members.any(|(index, member)| !tried.contains(&index) && member.backend.share() > 0)
    }

    /// Chooses a backend that was not tried yet: the session's, or by policy. `now` may be coarse.
    ///
    /// # Errors
    /// The session's backend is out, and the session must not move.
    pub(crate) fn choose<'r>(
        &'r self,
        worker: usize,
        facts: Facts<'r>,
        tried: &[usize],
        now: Instant,
    ) -> Result<Option<Choice<'r>>, BackendOut<'r>> {
        let Some(sticky) = &self.sticky else {
            let chosen = |member| Choice {
                member,
                decision: None,
            };
            return Ok(self.pick(worker, &facts, tried, now).map(chosen));
        };
        let mut asking = Asking {
            upstream: self,
            worker,
            facts,
            tried,
        };
        let decision = sticky.decide(facts.head, facts.own, &mut asking)?;
        if let Some(member) = decision.member
            && decision.outcome == Outcome::Kept
            && self.members.len() > 1
        {
            self.turns.note(worker, &self.members, member);
        }
        let by_policy = || self.pick(worker, &facts, tried, now);
        let member = decision.member.or_else(by_policy);
        Ok(member.map(|member| Choice {
            member,
            decision: Some(decision),
        }))
    }

    /// The route that an AJP backend is told, if sessions are kept.
    pub(crate) fn told_route(&self, choice: &Choice<'_>) -> Option<&str> {
        let by_domain = choice.decision.is_some_and(|decision| decision.by_domain);
        self.sticky.as_ref()?.told_route(choice.member, by_domain)
    }

    /// The `Set-Cookie` that a response gets, if its session was not kept.
    pub(crate) fn cookie(&self, choice: &Choice<'_>, secure: bool) -> Option<&HeaderValue> {
        let kept = choice.decision?.outcome == Outcome::Kept;
        let sticky = self.sticky.as_ref().filter(|_| !kept)?;
        sticky.cookie(choice.member, secure)
    }

    /// What leads to a backend under the policy `hash`.
    fn key(&self, facts: &Facts<'_>) -> Option<Key> {
        hash_key::key(self.hash_by.as_ref()?, facts)
    }

    /// Picks a backend that was not tried yet, by its share of the load. `now` may be coarse.
    fn pick(
        &self,
        worker: usize,
        facts: &Facts<'_>,
        tried: &[usize],
        now: Instant,
    ) -> Option<usize> {
        let picked = match &self.members[..] {
            [only] => (tried.is_empty() && only.backend.share() > 0).then_some(0),
            members => {
                let key = self.key(facts);
                self.turns.pick(worker, members, (tried, key), now)
            }
        };
        if picked.is_none() && tried.is_empty() {
            self.members.iter().for_each(|member| member.backend.want());
        }
        picked
    }
}

/// What of a request the choice of a member depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'r> {
    pub(crate) head: &'r RequestHead,
    pub(crate) path: &'r NormalPath,
    /// Who the client is, trusted proxies looked through.
    pub(crate) client: IpAddr,
    /// What the front's own cookie said.
    pub(crate) own: Own,
}

/// A member chosen for a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice<'r> {
    pub(crate) member: usize,
    /// What its session said, if sessions are kept.
    pub(crate) decision: Option<Decision<'r>>,
}

/// The members of an upstream as affinity asks about them.
struct Asking<'a> {
    upstream: &'a Upstream,
    worker: usize,
    facts: Facts<'a>,
    tried: &'a [usize],
}

impl Standing for Asking<'_> {
    fn is_usable(&self, member: usize) -> bool {
        !self.tried.contains(&member) && self.upstream.members[member].backend.share() > 0
    }

    fn is_eligible(&self, member: usize) -> bool {
        self.is_usable(member) && !self.upstream.members[member].backend.is_suspect()
    }

    fn pick_among(&mut self, members: &[usize]) -> Option<usize> {
        let Upstream {
            turns,
            members: all,
            ..
        } = self.upstream;
        let key = self.upstream.key(&self.facts);
        turns.pick_among(self.worker, all, members, (self.tried, key))
    }
}

impl Member {
    fn new(
        upstream: &str,
        config: &BackendConfig,
        workers: usize,
        reusable: &mut Vec<Arc<Backend>>,
    ) -> Self {
        let known = reusable.iter().position(|it| it.is_at(upstream, config));
        let backend = match known {
            // In their order, for an address that an upstream has twice.
            Some(index) => reusable.remove(index),
            None => Backend::new(upstream, config.clone(), workers),
        };
        Self {
            settings: backend.plan(config),
            backend,
        }
    }

    /// Its name, unique in the upstream.
    pub(crate) fn name(&self) -> &str {
        &self.settings.name
    }
}
