//! The limits of requests of a site.
//!
//! What keys owe is in one table, which all workers share. It outlives reloads: a limit keeps what its keys owe as long
//! as its name stays and `limit_memory` does not change. A site without limits has no table, and its requests pay
//! nothing.

use std::hash::{BuildHasher as _, Hash, RandomState};
use std::mem::discriminant;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use arrayvec::ArrayVec;
use catamaran_limit::{
    ASKS_MAX, Ask, Judgement, Network, Outcome, Quota, RefusedKey, Sketch, Table,
};
use catamaran_transport::{Count, PerWorker};
use nix::sys::time::TimeValLike as _;
use nix::time::{ClockId, clock_gettime};

use crate::config::{
    AuthConfig, AuthKind, Config, LimitBy, LimitConfig, ListenAddress, ListenerConfig,
};

/// The limits of a site, and what keys owe to them.
#[derive(Clone, Debug)]
pub(crate) struct SiteLimits {
    /// All limits, in the order of the file.
    limits: Vec<SiteLimit>,
    /// For each listener the indices of its limits.
    of_listeners: Vec<Box<[usize]>>,
    /// Whether some listener has limits.
    has_listeners: bool,
    /// The listeners with a limit of new connections, and its number in the table.
    connections: Vec<(ListenAddress, Quota, u16)>,
    /// The sign-ons with a limit of wrong passwords, and its number in the table.
    failures: Vec<(String, Quota, u16)>,
    memory: u64,
    ledger: Ledger,
}

/// A limit of a site.
#[derive(Clone, Debug)]
pub(crate) struct SiteLimit {
    pub(crate) config: Arc<LimitConfig>,
    /// Its number in the table.
    pub(crate) number: u16,
    /// Whether a request that passes is only to be counted: it frees nothing later, and its client is told nothing. A
    /// limit that is not enforced may say that a request does not pass which does.
    pub(crate) is_settled_by_pass: bool,
    /// Whether it counts every request to its client's address, whatever the method and the client.
    pub(crate) is_by_client_alone: bool,
    counts: Arc<PerWorker<LimitCounts>>,
}

/// What keys owe, and to which limits. The sites before and after a reload share it.
#[derive(Clone, Debug)]
struct Ledger {
    table: Arc<Table>,
    sketch: Arc<Sketch>,
    /// The name of the limit with each number. Limits that a reload removed keep theirs.
    names: Vec<String>,
    /// The quota of the limit with each number.
    quotas: Vec<Quota>,
}

/// One worker's counts of requests, by what a limit answered. Only the worker's thread changes them.
#[derive(Debug, Default)]
struct LimitCounts {
    passed: Count,
    refused: Count,
    /// Requests that a limit with `dry_run` would have refused.
    dry: Count,
}

/// The result of asking a limit about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitResult {
    Passed,
    Refused,
    /// It would have been refused, but the limit is not enforced.
    Dry,
}

/// What the admin listener reports about one limit: its requests by result, and its state now.
#[derive(Clone, Debug)]
pub(crate) struct LimitFigures {
    pub(crate) config: Arc<LimitConfig>,
    /// Requests by result, in the order of [`LimitResult::ALL`].
    pub(crate) requests: [u64; LimitResult::ALL.len()],
    /// Keys that owe something now.
    pub(crate) keys: u64,
    /// Requests in flight now; `None` if the limit is a rate.
    pub(crate) in_flight: Option<u64>,
}

/// The charge for a password that may be wrong. It stays, unless it is refunded.
#[derive(Debug)]
pub(crate) struct FailureCharge {
    limits: Arc<SiteLimits>,
    ask: Ask,
    quota: Quota,
}

impl FailureCharge {
    /// Charges a client's address for a wrong password at the sign-on of this name. The error is the time until it may
    /// send another. A sign-on whose limit is not known lets nobody try.
    pub(crate) fn take(
        limits: Option<&Arc<SiteLimits>>,
        auth: &str,
        client: IpAddr,
    ) -> Result<Self, Duration> {
        let limits = limits.ok_or(Duration::MAX)?;
        let mut failures = limits.failures.iter();
        let known = failures.find(|(name, ..)| name == auth);
        let (_, quota, number) = known.ok_or(Duration::MAX)?;
        let ask = limits.ask_of(*number, client);
        let outcome = limits.take(&[ask]);
        if !outcome.passes() {
            return Err(outcome.wait());
        }
        Ok(Self {
            limits: Arc::clone(limits),
            ask,
            quota: *quota,
        })
    }

    /// Gives the charge back, because the password was right or was not hashed.
    pub(crate) fn refund(self) {
        let Ask { limit, key, .. } = self.ask;
        self.limits.ledger.table.refund(limit, key, self.quota);
    }
}

/// The places that a request takes at limits of requests in flight; dropping this frees them.
pub(crate) struct Flights<'s> {
    limits: &'s SiteLimits,
    taken: ArrayVec<Ask, ASKS_MAX>,
}

impl<'s> Flights<'s> {
    /// The places that these asks took.
    pub(crate) fn new(limits: &'s SiteLimits, taken: ArrayVec<Ask, ASKS_MAX>) -> Self {
        Self { limits, taken }
    }

    /// Adds the places that further asks took. All limits of a listener and of a route have room.
    pub(crate) fn add(&mut self, taken: ArrayVec<Ask, ASKS_MAX>) {
        self.taken.extend(taken);
    }
}

impl Drop for Flights<'_> {
    fn drop(&mut self) {
        for ask in &self.taken {
            self.limits.ledger.table.give_back(ask.limit, ask.key);
        }
    }
}

impl LimitResult {
    pub(crate) const ALL: [Self; 3] = [Self::Passed, Self::Refused, Self::Dry];

    /// The name in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Refused => "refused",
            Self::Dry => "dry",
        }
    }
}

impl SiteLimits {
    /// The limits of a configuration; `None`: it has none.
    pub(crate) fn new(config: &Config, workers: usize) -> Option<Self> {
        // `enter` sets the numbers, which are 0 here.
        let rate = |it: &ListenerConfig| Some((it.address.clone(), it.connection_rate?, 0));
        let connections: Vec<_> = config.listeners.iter().filter_map(rate).collect();
        let of_users = |it: &AuthConfig| match &it.kind {
            AuthKind::Users(users) => Some((it.name.clone(), users.failures, 0)),
            AuthKind::Forward(_) => None,
        };
        let failures: Vec<_> = config.auths.iter().filter_map(of_users).collect();
        let index = |name: &String| config.limits.iter().position(|it| it.name == *name);
        let listeners = config.listeners.iter();
        let of_listeners: Vec<Box<[usize]>> = listeners
            .map(|it| it.request_limits.iter().filter_map(index).collect())
            .collect();
        if config.limits.is_empty() && connections.is_empty() && failures.is_empty() {
            return None;
        }
        let memory = config.server.limit_memory;
        let limit = |limit: &LimitConfig| SiteLimit {
            number: 0,
            is_settled_by_pass: limit.enforce
                && !limit.fields
                && matches!(limit.quota, Quota::Rate { .. }),
            is_by_client_alone: limit.by == LimitBy::Client
                && limit.methods.is_empty()
                && limit.except.is_empty(),
            config: Arc::new(limit.clone()),
            counts: Arc::new(PerWorker::new(workers, |_| LimitCounts::default())),
        };
        let mut limits = Self {
            limits: config.limits.iter().map(limit).collect(),
            has_listeners: of_listeners.iter().any(|it| !it.is_empty()),
            of_listeners,
            connections,
            failures,
            memory,
            ledger: Ledger::new(memory),
        };
        limits.enter();
        Some(limits)
    }

    /// Gives each limit its number in the ledger.
    fn enter(&mut self) {
        for limit in &mut self.limits {
            let LimitConfig { name, quota, .. } = &*limit.config;
            limit.number = self.ledger.number(name, *quota);
        }
        for (address, quota, number) in &mut self.connections {
            // No limit of the file has this name, because no limit's name has a space.
            *number = self.ledger.number(&format!("listen {address}"), *quota);
        }
        for (auth, quota, number) in &mut self.failures {
            *number = self.ledger.number(&format!("auth {auth}"), *quota);
        }
    }

    /// Whether a further connection of this client is within the listener's `connection_rate`. If it is, it is charged.
    pub(crate) fn admits(&self, listener: &ListenAddress, client: IpAddr) -> bool {
        let mut limits = self.connections.iter();
        let Some((.., number)) = limits.find(|(address, ..)| address == listener) else {
            return true;
        };
        self.take(&[self.ask_of(*number, client)]).passes()
    }

    /// Asks the limit with this number about the address of a client.
    fn ask_of(&self, number: u16, client: IpAddr) -> Ask {
        let network = network_of(client);
        Ask {
            limit: number,
            key: self.ledger.table.key(number, &network),
            enforced: true,
        }
    }

    /// Whether listeners or routes may have limits.
    #[inline]
    pub(crate) fn concern_requests(&self) -> bool {
        !self.limits.is_empty()
    }

    /// Takes over what keys owe to limits of the site before, and the counts of limits with the same name.
    pub(super) fn follow(&mut self, before: &Self) {
        for limit in &mut self.limits {
            if let Some(known) = before.find(&limit.config.name) {
                limit.counts = Arc::clone(&known.counts);
            }
        }
        let numbers = before.ledger.names.len() + self.ledger.names.len();
        // Numbers are never used again, so many reloads with other limits may use them up.
        let is_full = numbers > usize::from(u16::MAX);
        if self.memory != before.memory || is_full {
            return;
        }
        self.ledger = before.ledger.clone();
        self.enter();
    }

    /// The index of the limit with this name.
    pub(super) fn index(&self, name: &str) -> Option<usize> {
        self.limits.iter().position(|it| it.config.name == name)
    }

    /// The limit with this name.
    pub(crate) fn find(&self, name: &str) -> Option<&SiteLimit> {
        self.limits.iter().find(|it| it.config.name == name)
    }

    /// The limit with this index.
    pub(crate) fn at(&self, index: usize) -> &SiteLimit {
        &self.limits[index]
    }

    /// Whether some listener has limits.
    pub(crate) fn has_listeners(&self) -> bool {
        self.has_listeners
    }

    /// The indices of the limits of a listener, by its index.
    pub(crate) fn of_listener(&self, listener: usize) -> &[usize] {
        self.of_listeners.get(listener).map_or(&[], |it| it)
    }

    /// The key of a subject for a limit.
    pub(crate) fn key(&self, limit: &SiteLimit, subject: &(impl Hash + ?Sized)) -> u64 {
        self.ledger.table.key(limit.number, subject)
    }

    /// Asks limits for a request, and charges it if it passes.
    pub(crate) fn take(&self, asks: &[Ask]) -> Outcome {
        let Ledger { table, quotas, .. } = &self.ledger;
        table.take(asks, quotas, Ledger::now())
    }

    /// Asks one limit for a request, and charges it if it passes.
    #[inline]
    pub(crate) fn take_one(&self, ask: &Ask) -> Judgement {
        let Ledger { table, quotas, .. } = &self.ledger;
        table.take_one(ask, quotas, Ledger::now())
    }

    /// What [`Self::take`] would say now; nothing is charged.
    pub(crate) fn look(&self, asks: &[Ask]) -> Outcome {
        let Ledger { table, quotas, .. } = &self.ledger;
        table.look(asks, quotas, Ledger::now())
    }

    /// Counts the result of asking a limit about a request.
    pub(crate) fn count(&self, worker: usize, limit: &SiteLimit, result: LimitResult) {
        let counts = &limit.counts[worker];
        match result {
            LimitResult::Passed => counts.passed.increment(),
            LimitResult::Refused => counts.refused.increment(),
            LimitResult::Dry => counts.dry.increment(),
        }
    }

    /// Notes that a key was refused, or would have been.
    pub(crate) fn note(&self, ask: Ask, label: impl FnOnce() -> String) {
        self.ledger.sketch.note(ask.limit, ask.key, label);
    }

    /// Forgets what a key owes to a limit, and how often it was refused. Returns whether it was known.
    pub(crate) fn forget(&self, limit: &SiteLimit, key: u64) -> bool {
        self.ledger.sketch.forget(limit.number, key);
        self.ledger.table.forget(limit.number, key)
    }

    /// The keys refused most often, with the names of the limits that refused them.
    pub(crate) fn refused(&self, count: usize) -> Vec<(&str, RefusedKey)> {
        let mut refused = Vec::with_capacity(count);
        for key in self.ledger.sketch.top(count) {
            if let Some(name) = self.ledger.names.get(usize::from(key.limit)) {
                refused.push((name.as_str(), key));
            }
        }
        refused
    }

    /// The figures of all limits. It looks at the whole table.
    pub(crate) fn figures(&self) -> Vec<LimitFigures> {
        let Ledger { table, quotas, .. } = &self.ledger;
        let counts = table.counts(quotas, Ledger::now());
        let figures = |limit: &SiteLimit| {
            // How many keys owe something, and how much they owe together.
            let (keys, sum) = counts[usize::from(limit.number)];
            let counts_flights = matches!(limit.config.quota, Quota::InFlight(_));
            LimitFigures {
                config: Arc::clone(&limit.config),
                requests: limit.requests(),
                keys,
                in_flight: counts_flights.then_some(sum),
            }
        };
        self.limits.iter().map(figures).collect()
    }

    pub(crate) fn table(&self) -> &Table {
        &self.ledger.table
    }
}

impl SiteLimit {
    /// Requests by result, in the order of [`LimitResult::ALL`].
    fn requests(&self) -> [u64; LimitResult::ALL.len()] {
        let sum = |count: fn(&LimitCounts) -> &Count| {
            let counts = self.counts.iter().map(|it| count(it).read());
            counts.sum()
        };
        [
            sum(|it| &it.passed),
            sum(|it| &it.refused),
            sum(|it| &it.dry),
        ]
    }
}

impl Ledger {
    /// An empty table of this many bytes.
    fn new(memory: u64) -> Self {
        let bytes = usize::try_from(memory).unwrap_or(usize::MAX);
        // The standard library's keys are from the system's source of randomness.
        let random = RandomState::new();
        let seed = (random.hash_one(0), random.hash_one(1));
        Self {
            table: Arc::new(Table::new(bytes, seed)),
            sketch: Arc::default(),
            names: Vec::new(),
            quotas: Vec::new(),
        }
    }

    /// The number of the limit with this name, which has this quota from now on. A limit that was a rate and now is one
    /// of requests in flight, or the other way round, gets another number: what keys owe to it means something else.
    fn number(&mut self, name: &str, quota: Quota) -> u16 {
        let mut known = self.names.iter().zip(&mut self.quotas);
        let is_same_kind = |had: &Quota| discriminant(had) == discriminant(&quota);
        let number = match known.position(|(it, had)| it == name && is_same_kind(had)) {
            Some(number) => {
                self.quotas[number] = quota;
                number
            }
            None => {
                self.names.push(name.to_owned());
                self.quotas.push(quota);
                self.names.len() - 1
            }
        };
        u16::try_from(number).unwrap_or(u16::MAX)
    }

    /// The present time. It is exact: the coarse clock would refuse requests that come at just the rate, and those of two
    /// workers differ, so that the last request of a burst would be refused. It is read as a number, because the
    /// arithmetic of [`std::time::Instant`] costs more than the clock.
    fn now() -> u64 {
        let since_boot = clock_gettime(ClockId::CLOCK_MONOTONIC).map(|time| time.num_nanoseconds());
        // A clock that fails stands: then no debt is ever paid.
        since_boot.map_or(0, |nanos| u64::try_from(nanos).unwrap_or(0))
    }
}

/// The network by which connections, wrong passwords and hashes of a client are counted.
pub(crate) fn network_of(client: IpAddr) -> Network {
    Network::new(client, ADDRESS_PREFIX)
}

/// The bits of an address of IPv4 and of IPv6 that [`network_of`] keeps.
const ADDRESS_PREFIX: [u8; 2] = [32, 64];
