//! The discovered members of upstreams, and the state of their sources.
//!
//! `catamaran_discover` has the rules. This module keeps the last list of each upstream, and the facts that the admin
//! API shows. A thread that holds this lock takes no other.

pub(crate) mod record;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use catamaran_discover::{
    Answer, Deadlines, FoundContext, FoundState, McmpCount, Member, MemberPresence, MemberSource,
    Members, NodeTable, Refusal, Rules, merge,
};
use tokio::time::Instant;

use super::events::{Events, Kind};
use crate::config::{
    Activation, BackendConfig, Config, ListenAddress, McmpSource, MembersConfig, RouteConfig,
    RouteRules, RouteTarget,
};
use crate::lock::lock;
use crate::site::add_routes;

/// The discovered members, for each upstream that has a source.
#[derive(Debug)]
pub(crate) struct DiscoveredMembers {
    known: Mutex<BTreeMap<String, KnownMembers>>,
    /// Wakes [`Self::wait_for_first`] when the first answer of a source has been put in force.
    first: Condvar,
    /// The moment at which the times in the lists of members begin to count.
    origin: Instant,
}

/// The discovered members of one upstream, and the state of its source.
#[derive(Debug)]
struct KnownMembers {
    config: Arc<MembersConfig>,
    /// The names of the file's backends, which no member may have.
    taken: Vec<String>,
    /// The front's own listening addresses, which no member may have.
    own: Arc<[SocketAddr]>,
    members: Members,
    /// The nodes that announced themselves; empty for sources without announcements.
    nodes: Arc<NodeTable>,
    /// Whether the source has given its first answer, good or bad, and its result is in force.
    answered: bool,
    /// The time of the last good answer; `None`: there was none.
    good: Option<Instant>,
    /// The reason why the last answer failed, so that the last list was kept; `None`: it was good.
    failed: Option<String>,
    refused: Vec<(String, Refusal)>,
    counts: AnswerCounts,
}

/// Counts of the answers of one source since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AnswerCounts {
    pub(crate) good: u64,
    /// The number of failed answers, after which the last list of members stayed.
    pub(crate) failed: u64,
    /// The numbers of members that were refused, in the order of [`Refusal::ALL`].
    pub(crate) refused: [u64; Refusal::ALL.len()],
    /// The numbers of messages of nodes that were accepted, by command.
    pub(crate) messages: BTreeMap<&'static str, u64>,
    /// The numbers of messages of nodes that were refused, by reason.
    pub(crate) refused_messages: BTreeMap<&'static str, u64>,
}

/// The result of an answer, or of the passing of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Whether members changed, so that a new site must be made.
    pub(crate) changed: bool,
    pub(crate) deadlines: Deadlines,
}

/// The members of an upstream and the state of their source, as the admin API shows them.
#[derive(Clone, Debug, Default)]
pub(crate) struct MembersView {
    pub(crate) upstream: String,
    pub(crate) source: &'static str,
    /// The numbers of members that are active, that drain, and that are leaving, in this and the next two fields.
    pub(crate) active: usize,
    pub(crate) draining: usize,
    pub(crate) leaving: usize,
    /// How long ago the last good answer came; `None` if there was none.
    pub(crate) age: Option<Duration>,
    pub(crate) failed: Option<String>,
    pub(crate) refused: Vec<(String, Refusal)>,
    pub(crate) counts: AnswerCounts,
}

/// A discovered member, as the admin API shows it.
#[derive(Clone, Debug)]
pub(crate) struct FoundView {
    pub(crate) source: &'static str,
    pub(crate) standing: &'static str,
    /// The time until the member is removed; `None` if it is not leaving.
    pub(crate) gone_in: Option<Duration>,
}

impl Default for DiscoveredMembers {
    fn default() -> Self {
        Self {
            known: Mutex::default(),
            first: Condvar::new(),
            origin: Instant::now(),
        }
    }
}

impl DiscoveredMembers {
    /// Adds the members known so far to the upstreams of a configuration before it is put in force.
    pub(crate) fn fill(&self, config: &mut Config) {
        let known = self.lock();
        for upstream in &mut config.upstreams {
            if let (Some(members), Some(known)) = (&upstream.members, known.get(&upstream.name)) {
                let own: Vec<&str> = upstream.backends.iter().map(|it| &it.name[..]).collect();
                let known_members = known.members.iter();
                let list = known_members.filter(|it| !own.contains(&&it.found.name[..]));
                upstream.found = list.filter_map(|it| members.backend(it).ok()).collect();
            }
        }
        drop(known);
        add_routes(&mut config.routes, self.routes());
    }

    /// Takes over the sources of the configuration in force. Where a source has changed, the members of the previous
    /// source stay until the first answer of the new one.
    pub(crate) fn follow(&self, sources: &[SourcedUpstream], own: &[SocketAddr]) {
        let own: Arc<[SocketAddr]> = own.into();
        let mut known = self.lock();
        let mut before = std::mem::take(&mut *known);
        for SourcedUpstream {
            upstream,
            config,
            taken,
        } in sources
        {
            let mut next = before.remove(upstream).unwrap_or_else(|| KnownMembers {
                config: Arc::clone(config),
                taken: Vec::new(),
                own: Arc::clone(&own),
                members: Members::default(),
                nodes: Arc::default(),
                answered: false,
                good: None,
                failed: None,
                refused: Vec::new(),
                counts: AnswerCounts::default(),
            });
            if next.config.source != config.source {
                next.members = next.members.superseded();
                next.good = None;
                next.failed = None;
                next.answered = false;
            }
            next.config = Arc::clone(config);
            next.taken.clone_from(taken);
            next.own = Arc::clone(&own);
            known.insert(upstream.clone(), next);
        }
    }

    /// Merges an answer of a source into the members of an upstream.
    pub(crate) fn answer(&self, upstream: &str, answer: &Answer, events: &Events) -> Progress {
        let now = self.origin.elapsed();
        let mut all = self.lock();
        let Some(known) = all.get_mut(upstream) else {
            return Progress::default();
        };
        let merged = {
            let (own, taken) = (&known.own, &known.taken);
            let rules = Rules {
                leave: known.config.leave,
                members_max: known.config.members_max,
                is_trusted: known.config.source.is_trusted(),
                is_own: &|ip, port| is_own(own, ip, port),
                is_taken: &|name| taken.iter().any(|it| it == name),
            };
            merge(&known.members, answer, now, &rules)
        };
        known.note(upstream, merged.kept, merged.refused, events);
        known.replace(upstream, merged.members, events)
    }

    /// Removes the members whose time has passed. Returns whether members changed, and the time of the next removal,
    /// which [`Self::at`] converts.
    pub(crate) fn pass(&self, events: &Events) -> (bool, Option<Duration>) {
        let now = self.origin.elapsed();
        let mut changed = false;
        let mut next: Option<Duration> = None;
        for (upstream, known) in &mut *self.lock() {
            let progress = known.replace(upstream, known.members.pass(now), events);
            changed |= progress.changed;
            next = next.into_iter().chain(progress.deadlines.gone).min();
        }
        (changed, next)
    }

    /// Converts a time of a list of members, which counts from `origin`, to an `Instant`.
    pub(crate) fn at(&self, moment: Duration) -> Instant {
        self.origin + moment
    }

    /// The backends of the members that each upstream has now.
    pub(crate) fn found(&self) -> HashMap<String, Vec<BackendConfig>> {
        let known = self.lock();
        let of = |(upstream, known): (&String, &KnownMembers)| (upstream.clone(), known.backends());
        known.iter().map(of).collect()
    }

    /// Counts a message of a node of an upstream, or its refusal.
    pub(crate) fn count(&self, upstream: &str, count: McmpCount) {
        if let Some(known) = self.lock().get_mut(upstream) {
            let (counts, key) = match count {
                McmpCount::Message(command) => (&mut known.counts.messages, command),
                McmpCount::Refused(reason) => (&mut known.counts.refused_messages, reason),
            };
            *counts.entry(key).or_default() += 1;
        }
    }

    /// The table of the nodes that announced themselves to an upstream. It is shared with the source, which adds to it.
    pub(crate) fn nodes(&self, upstream: &str) -> Arc<NodeTable> {
        let known = self.lock();
        let nodes = known.get(upstream).map(|it| Arc::clone(&it.nodes));
        nodes.unwrap_or_default()
    }

    /// The routes that members bring: one for each context. It stops or drains the members where the context is not
    /// enabled.
    pub(crate) fn routes(&self) -> Vec<RouteConfig> {
        let known = self.lock();
        known
            .iter()
            .flat_map(|(upstream, known)| known.routes(upstream))
            .collect()
    }

    /// Notes that the first answer of a source is in force, and wakes [`Self::wait_for_first`].
    pub(crate) fn note_answered(&self, upstream: &str) {
        if let Some(known) = self.lock().get_mut(upstream) {
            known.answered = true;
        }
        self.first.notify_all();
    }

    /// Waits until the first answer of every source is in force, but no longer than `limit`.
    pub(crate) fn wait_for_first(&self, limit: Duration) {
        let waits =
            |known: &mut BTreeMap<String, KnownMembers>| known.values().any(|it| !it.answered);
        let guard = self.lock();
        // If the time is over, the front serves with the members that it knows.
        drop(self.first.wait_timeout_while(guard, limit, waits));
    }

    /// Whether an upstream still waits for the first good answer of its present source.
    pub(crate) fn awaits(&self, upstream: &str) -> bool {
        let known = self.lock();
        known.get(upstream).is_some_and(|it| it.good.is_none())
    }

    /// The view of each upstream that has a source, for the admin API.
    pub(crate) fn views(&self) -> Vec<MembersView> {
        let known = self.lock();
        known.iter().map(|(name, known)| known.view(name)).collect()
    }

    /// The view of one upstream; `None` if it has no source.
    pub(crate) fn view(&self, upstream: &str) -> Option<MembersView> {
        let known = self.lock();
        known.get(upstream).map(|it| it.view(upstream))
    }

    /// The view of one discovered member; `None` if no source has named it.
    pub(crate) fn member(&self, upstream: &str, backend: &str) -> Option<FoundView> {
        let all = self.lock();
        let known = all.get(upstream)?;
        let member = known.members.get(backend)?;
        let now = self.origin.elapsed();
        let gone_in = match member.standing {
            MemberPresence::Leaving { until } => Some(until.saturating_sub(now)),
            MemberPresence::Present | MemberPresence::Doubted => None,
        };
        Some(FoundView {
            source: known.config.source.token(),
            standing: standing(member),
            gone_in,
        })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, KnownMembers>> {
        lock(&self.known)
    }
}

/// An upstream with a source of members.
#[derive(Clone, Debug)]
pub(crate) struct SourcedUpstream {
    pub(crate) upstream: String,
    pub(crate) config: Arc<MembersConfig>,
    taken: Vec<String>,
}

impl SourcedUpstream {
    /// The upstreams of a configuration that have a source of members.
    pub(crate) fn all(config: &Config) -> Vec<Self> {
        let upstreams = config.upstreams.iter().filter_map(|upstream| {
            Some(Self {
                upstream: upstream.name.clone(),
                config: Arc::clone(upstream.members.as_ref()?),
                taken: upstream.backends.iter().map(|it| it.name.clone()).collect(),
            })
        });
        upstreams.collect()
    }
}

/// Adds the members that files list, to a configuration that is only examined and never served.
pub(crate) fn fill_from_files(config: &mut Config) {
    let discovered = DiscoveredMembers::default();
    discovered.follow(&SourcedUpstream::all(config), &[]);
    for upstream in &config.upstreams {
        if let Some(MemberSource::File(file)) = upstream.members.as_ref().map(|it| &it.source) {
            let answer = match (file.read)(&file.path) {
                Ok(found) => Answer::members(found),
                Err(faults) => Answer::Failed(faults),
            };
            discovered.answer(&upstream.name, &answer, &Events::default());
        }
    }
    discovered.fill(config);
}

/// All TCP addresses on which a front with this configuration listens.
pub(crate) fn own_addresses(config: &Config) -> Vec<SocketAddr> {
    let admin = config.admin.iter().flat_map(|it| &it.addresses);
    let all = config.listeners.iter().map(|it| &it.address).chain(admin);
    let tcp = all.filter_map(|address| match address {
        ListenAddress::Tcp(address) => Some(*address),
        ListenAddress::Unix(_) => None,
    });
    let mcmp = config
        .upstreams
        .iter()
        .filter_map(|it| match &it.members.as_ref()?.source {
            MemberSource::Mcmp(mcmp) => Some(mcmp.listen),
            MemberSource::File(_) | MemberSource::Dns(_) => None,
        });
    tcp.chain(mcmp).collect()
}

impl KnownMembers {
    /// Notes whether the source's answer was good, and which members were refused. What changed is logged and becomes
    /// an event.
    fn note(
        &mut self,
        upstream: &str,
        failed: Option<String>,
        refused: Vec<(String, Refusal)>,
        events: &Events,
    ) {
        let source = self.config.source.token();
        match &failed {
            None => {
                self.counts.good += 1;
                self.good = Some(Instant::now());
            }
            Some(_) => self.counts.failed += 1,
        }
        if failed != self.failed {
            let text = match &failed {
                Some(reason) => format!("members from {source}: {reason}; the last list stays"),
                None => format!("members from {source}: it answers again"),
            };
            match &failed {
                Some(_) => tracing::warn!(upstream, "{text}"),
                None => tracing::info!(upstream, "{text}"),
            }
            events.push(Kind::Health, upstream, "", text);
        }
        let mut told = 0;
        for (name, refusal) in &refused {
            let place = Refusal::ALL.iter().position(|it| it == refusal);
            self.counts.refused[place.unwrap_or_default()] += 1;
            let known = (name.clone(), *refusal);
            if !self.refused.contains(&known) && told < REFUSED_TOLD {
                told += 1;
                let words = refusal.words();
                let text = format!("{name:?} is refused as a member: {words}");
                tracing::warn!(upstream, "{text}");
                events.push(Kind::Health, upstream, "", text);
            }
        }
        self.failed = failed;
        self.refused = refused;
    }

    /// Replaces the list of members. Changes are logged and become events.
    fn replace(&mut self, upstream: &str, next: Members, events: &Events) -> Progress {
        let before = std::mem::replace(&mut self.members, next);
        let next = &self.members;
        let differs = before.iter().ne(next.iter());
        let mut said = changes(&before, next);
        let changed = said.len();
        let source = self.config.source.token();
        if changed > EACH_TOLD {
            let text = format!("{changed} members changed; there are {}", next.len());
            said = vec![(String::new(), text)];
        }
        for (backend, text) in said {
            let text = format!("{text}, by {source}");
            tracing::info!(upstream, backend, "member: {text}");
            events.push(Kind::Change, upstream, &backend, text);
        }
        Progress {
            changed: differs,
            deadlines: next.deadlines(),
        }
    }

    /// The routes that nodes of MCMP bring: one for each context below the allowed paths. It restricts the members
    /// where the context is not enabled.
    fn routes(&self, upstream: &str) -> Vec<RouteConfig> {
        let MemberSource::Mcmp(McmpSource { paths, .. }) = &self.config.source else {
            return Vec::new();
        };
        let is_below = |path: &str| {
            let below = |base: &String| {
                let rest = path.strip_prefix(base.trim_end_matches('/'));
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            paths.iter().any(below)
        };
        let contexts = self.members.iter().flat_map(|it| &it.found.contexts);
        let all: BTreeSet<&str> = contexts.map(|it| &it.path[..]).collect();
        let route = |path: &str| {
            let mut route = RouteConfig::new(path, RouteTarget::Upstream(upstream.to_owned()));
            let activation = self
                .members
                .iter()
                .filter_map(|it| restriction(it, path))
                .collect();
            route.rules = Some(Arc::new(RouteRules {
                activation,
                ..RouteRules::default()
            }));
            route.found = true;
            route
        };
        all.into_iter()
            .filter(|path| is_below(path))
            .map(route)
            .collect()
    }

    /// The members as backends. Those with the name of a backend of the file are left out, and so are those that cannot
    /// be used, which is logged.
    fn backends(&self) -> Vec<BackendConfig> {
        let all = self.members.iter();
        let list = all.filter(|it| !self.taken.contains(&it.found.name));
        let backend = |member: &Member| {
            let made = self.config.backend(member);
            made.inspect_err(|reason| {
                tracing::warn!(member = member.found.name, "a member is left out: {reason}");
            })
            .ok()
        };
        list.filter_map(backend).collect()
    }

    fn view(&self, upstream: &str) -> MembersView {
        let count =
            |is_meant: fn(&Member) -> bool| self.members.iter().filter(|it| is_meant(it)).count();
        MembersView {
            upstream: upstream.to_owned(),
            source: self.config.source.token(),
            active: count(|it| !it.drains()),
            draining: count(|it| it.drains() && !it.is_leaving()),
            leaving: count(Member::is_leaving),
            age: self.good.map(|good| good.elapsed()),
            failed: self.failed.clone(),
            refused: self.refused.clone(),
            counts: self.counts.clone(),
        }
    }
}

/// The restricted activation of a member for a context; `None` if the context is enabled there.
fn restriction(member: &Member, path: &str) -> Option<(String, Activation)> {
    let mut contexts = member.found.contexts.iter();
    let own = contexts.find(|it| it.path == path).map(|it| it.state);
    let activation = match own {
        Some(FoundState::Active) => return None,
        Some(FoundState::Drain) => Activation::Drain,
        Some(FoundState::Stopped) | None => Activation::Stopped,
    };
    Some((member.found.name.clone(), activation))
}

/// What changed in the members, by name.
fn changes(before: &Members, now: &Members) -> Vec<(String, String)> {
    let mut said = Vec::new();
    for member in now.iter() {
        let name = &member.found.name;
        let text = match before.get(name) {
            None => Some(format!("it joined at {}", member.found.place)),
            Some(known) => change(known, member),
        };
        said.extend(text.map(|text| (name.clone(), text)));
    }
    let names = before.iter().map(|it| &it.found.name);
    let gone = names.filter(|name| now.get(name).is_none());
    said.extend(gone.map(|name| (name.clone(), "it is gone".to_owned())));
    said
}

/// Describes what changed in a member; `None` if nothing did that matters to the upstream.
fn change(before: &Member, now: &Member) -> Option<String> {
    let (one, other) = (standing(before), standing(now));
    let mut words = Vec::new();
    if one != other {
        words.push(match (one, other) {
            (_, "leaving") => "it is no longer named and drains".to_owned(),
            (_, "doubted") => {
                "it is one of too many that are no longer named; it stays until a further answer"
                    .to_owned()
            }
            (_, "drain") => "it drains".to_owned(),
            (_, "stopped") => "it is stopped".to_owned(),
            ("leaving" | "doubted", _) => "it returned".to_owned(),
            _ => "it is active".to_owned(),
        });
    }
    let (was, is) = (&before.found, &now.found);
    if was.place != is.place || was.speech != is.speech {
        words.push(format!("it is at {}", is.place));
    }
    // Nodes with contexts report their load every few seconds: such changes are not described.
    if was.weight != is.weight && now.found.contexts.is_empty() {
        words.push(format!("weight {}", is.weight));
    }
    if was.distance != is.distance {
        words.push(format!("distance {}", is.distance));
    }
    for context in &is.contexts {
        if !was.contexts.contains(context) {
            let FoundContext { path, state } = context;
            words.push(format!("context {path} {}", state_word(*state)));
        }
    }
    let has = |path: &str| is.contexts.iter().any(|it| it.path == path);
    let gone = was.contexts.iter().filter(|it| !has(&it.path));
    words.extend(gone.map(|it| format!("context {} removed", it.path)));
    if (&was.jvm_route, &was.domain) != (&is.jvm_route, &is.domain) {
        words.push("another jvm_route or domain".to_owned());
    }
    (!words.is_empty()).then(|| words.join(", "))
}

/// The member's state in one word, for the log and the admin API.
fn standing(member: &Member) -> &'static str {
    match member.standing {
        MemberPresence::Leaving { .. } => "leaving",
        MemberPresence::Doubted => "doubted",
        MemberPresence::Present => match member.found.state {
            FoundState::Active => "active",
            FoundState::Drain => "drain",
            FoundState::Stopped => "stopped",
        },
    }
}

fn state_word(state: FoundState) -> &'static str {
    match state {
        FoundState::Active => "enabled",
        FoundState::Drain => "disabled",
        FoundState::Stopped => "stopped",
    }
}

/// Whether one of these listeners accepts connections to an address. A listener on `0.0.0.0` or `[::]` accepts those to
/// any address of this machine, which is an address to which a socket can be bound.
fn is_own(own: &[SocketAddr], ip: IpAddr, port: u16) -> bool {
    let here = || UdpSocket::bind((ip, 0)).is_ok();
    own.iter()
        .filter(|it| it.port() == port)
        .any(|it| match it.ip() {
            listening if listening.is_unspecified() => here(),
            listening => listening == ip,
        })
}

/// The number of changed members up to which each change is logged by itself.
const EACH_TOLD: usize = 50;

/// The most refusals of one answer that are logged.
const REFUSED_TOLD: usize = 50;
