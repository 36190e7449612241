//! What requests are served by: the configuration turned into routes and backends.
//!
//! A site is built once and never changed; requests read it without a lock, and one that is in
//! flight keeps the site it began with when a reload puts another in its place. Only the
//! turn-keeping of each upstream is mutable, and that is a worker's own.

pub(crate) mod path;
pub(crate) mod reload;
pub(crate) mod retry_budget;
pub(crate) mod route;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use catamaran_balance::{Members, Schedule};
use catamaran_upstream::{Backend, BackendCounts, Group, Settings};
use tokio::time::Instant;

use crate::config::{BackendConfig, Config, Protocol, ServerConfig, UpstreamConfig};
use crate::exchange::forwarded::Via;
use crate::site::retry_budget::SharedRetryBudget;
use crate::site::route::RouteTable;

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
    /// How much of the weight silence may put out, in percent.
    unwell_max: u8,
    pub(crate) retry_budget: SharedRetryBudget,
    /// Whether there is an HTTP backend.
    has_http: bool,
    /// One for each worker. The mutex is never contended: a worker is one thread.
    schedules: Box<[Mutex<Schedule>]>,
    /// What the schedules count time from.
    built: Instant,
}

/// A backend as a member of an upstream: what this site says of it.
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
    /// What its connections did and are doing, and how it fares.
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
        let weights = || config.backends.iter().map(|it| it.weight);
        let schedule = |_| Mutex::new(Schedule::new(config.policy, weights(), fastrand::u64(..)));
        Self {
            name: config.name.clone(),
            members: config
                .backends
                .iter()
                .map(|it| Member::new(&config.name, it, workers, reusable))
                .collect(),
            retries: config.retries,
            unwell_max: config.unwell_max,
            retry_budget: SharedRetryBudget::new(workers),
            has_http: config
                .backends
                .iter()
                .any(|it| it.protocol == Protocol::Http),
            schedules: (0..workers).map(schedule).collect(),
            built: Instant::now(),
        }
    }

    /// Puts the settings of its backends in force.
    fn configure(&self) {
        let weighed = |member: &Member| (Arc::clone(&member.backend), member.settings.weight);
        let group = Group::new(self.members.iter().map(weighed), self.unwell_max);
        for Member { backend, settings } in &self.members {
            backend.configure(Arc::clone(settings), Arc::clone(&group));
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

    /// Picks a backend that was not tried yet, by its share of the load. `now` may be coarse.
    pub(crate) fn pick(&self, worker: usize, tried: &[usize], now: Instant) -> Option<usize> {
        let picked = match &self.members[..] {
            [only] => (tried.is_empty() && only.backend.share() > 0).then_some(0),
            members => {
                let mut schedule = self.schedules[worker]
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                let now = now.saturating_duration_since(self.built);
                let mut pick = |suspects| schedule.pick(&Asked { members, suspects }, tried, now);
                // Those that are suspect are for want of others.
                pick(false).or_else(|| pick(true))
            }
        };
        if picked.is_none() && tried.is_empty() {
            self.members.iter().for_each(|member| member.backend.want());
        }
        picked
    }
}

/// Members as a schedule asks about them.
struct Asked<'a> {
    members: &'a [Member],
    /// Whether suspects may be picked.
    suspects: bool,
}

impl Members for Asked<'_> {
    fn share(&self, member: usize) -> u8 {
        let backend = &self.members[member].backend;
        if backend.is_suspect() && !self.suspects {
            return 0;
        }
        backend.share()
    }

    fn in_flight(&self, member: usize) -> usize {
        self.members[member].backend.in_flight()
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
