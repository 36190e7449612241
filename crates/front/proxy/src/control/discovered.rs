//! The discovered members of upstreams, and the state of their sources.
//!
//! `catamaran_discover` has the rules. This module keeps the last list of each upstream, and the facts that the admin
//! API shows, behind one lock. A thread that holds this lock takes no other.

pub(crate) mod record;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use catamaran_discover::{
    Answer, Deadlines, FoundContext, FoundState, McmpCount, Member, MemberPresence, MemberSource,
    Members, NodeTable, Refusal, Rules, WatchFacts, merge,
};
use tokio::time::Instant;

use super::events::{Events, Kind};
use crate::config::{
    Activation, BackendConfig, Config, McmpSource, MembersConfig, RouteConfig, RouteRules,
    RouteTarget,
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
    /// What the source in Kubernetes counts; nothing for other sources.
    watch: Arc<WatchFacts>,
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
    /// How many members there are now.
    pub(crate) members: usize,
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
    /// What the source in Kubernetes has counted; `None` for other sources.
    pub(crate) watch: Option<Arc<WatchFacts>>,
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
                let is_of_file = |name: &str| upstream.backends.iter().any(|it| it.name == name);
                let listed = known.members.iter();
                let others = listed.filter(|member| !is_of_file(&member.found.name));
                // A member that cannot be used is left out.
                upstream.found = others.filter_map(|it| members.backend(it).ok()).collect();
            }
        }
        // `routes` takes the lock again.
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
                watch: Arc::default(),
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
                next.watch = Arc::default();
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
        let mut upstreams = self.lock();
        let Some(known) = upstreams.get_mut(upstream) else {
            return Progress::default();
        };
        let rules = Rules {
            leave: known.config.leave,
            members_max: known.config.members_max,
            is_trusted: known.config.source.is_trusted(),
            is_own: &|ip, port| is_own(&known.own, ip, port),
            is_taken: &|name| known.taken.iter().any(|taken| taken == name),
        };
        let merged = merge(&known.members, answer, now, &rules);
        known.note_outcome(upstream, merged.kept, events);
        known.note_refusals(upstream, merged.refused, events);
        known.replace(upstream, merged.members, events)
    }

    /// Removes the members whose time has passed. Returns whether members changed, and the time of the next removal,
    /// which [`Self::at`] converts.
    pub(crate) fn pass(&self, events: &Events) -> (bool, Option<Duration>) {
        let now = self.origin.elapsed();
        let mut changed = false;
        let mut next_removal: Option<Duration> = None;
        for (upstream, known) in &mut *self.lock() {
            let progress = known.replace(upstream, known.members.pass(now), events);
            changed |= progress.changed;
            let removals = next_removal.into_iter().chain(progress.deadlines.gone);
            next_removal = removals.min();
        }
        (changed, next_removal)
    }

    /// Converts a time of a list of members, which counts from `origin`, to an `Instant`.
    pub(crate) fn at(&self, moment: Duration) -> Instant {
        self.origin + moment
    }

    /// The backends of the members that each upstream has now.
    pub(crate) fn found(&self) -> HashMap<String, Vec<BackendConfig>> {
        let mut found = HashMap::new();
        for (upstream, known) in &*self.lock() {
            found.insert(upstream.clone(), known.backends());
        }
        found
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
        match self.lock().get(upstream) {
            Some(known) => Arc::clone(&known.nodes),
            None => Arc::default(),
        }
    }

    /// What the source of an upstream in Kubernetes counts. It is shared with the source.
    pub(crate) fn watch(&self, upstream: &str) -> Arc<WatchFacts> {
        match self.lock().get(upstream) {
            Some(known) => Arc::clone(&known.watch),
            None => Arc::default(),
        }
    }

    /// The routes that members bring: one for each context. It stops or drains the members where the context is not
    /// enabled.
    pub(crate) fn routes(&self) -> Vec<RouteConfig> {
        let mut routes = Vec::new();
        for (upstream, known) in &*self.lock() {
            routes.extend(known.routes(upstream));
        }
        routes
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
        let is_missing =
            |known: &mut BTreeMap<String, KnownMembers>| known.values().any(|it| !it.answered);
        let guard = self.lock();
        // If the time is over, the front serves with the members that it knows.
        drop(self.first.wait_timeout_while(guard, limit, is_missing));
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
        let upstreams = self.lock();
        let known = upstreams.get(upstream)?;
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
    let mut addresses: Vec<SocketAddr> = config.tcp_addresses().collect();
    for members in config.upstreams.iter().flat_map(|it| &it.members) {
        if let MemberSource::Mcmp(mcmp) = &members.source {
            addresses.push(mcmp.listen);
        }
    }
    addresses
}

impl KnownMembers {
    /// Notes whether the source's answer was good. If that changed, it is logged and becomes an event.
    fn note_outcome(&mut self, upstream: &str, failed: Option<String>, events: &Events) {
        if failed.is_some() {
            self.counts.failed += 1;
        } else {
            self.counts.good += 1;
            self.good = Some(Instant::now());
        }
        if failed == self.failed {
            return;
        }
        let source = self.config.source.token();
        let text = match &failed {
            Some(reason) => format!("members from {source}: {reason}; the last list stays"),
            None => format!("members from {source}: it answers again"),
        };
        match &failed {
            Some(_) => tracing::warn!(upstream, "{text}"),
            None => tracing::info!(upstream, "{text}"),
        }
        events.push(Kind::Health, upstream, "", text);
        self.failed = failed;
    }

    /// Notes which members were refused. Those that the previous answer did not have are logged and become events.
    fn note_refusals(&mut self, upstream: &str, refused: Vec<(String, Refusal)>, events: &Events) {
        // There may be very many.
        let known: HashSet<&(String, Refusal)> = self.refused.iter().collect();
        let mut logged = 0;
        for member in &refused {
            let (name, refusal) = member;
            let index = Refusal::ALL.iter().position(|it| it == refusal);
            self.counts.refused[index.unwrap_or_default()] += 1;
            let is_new = !known.contains(member);
            if is_new && logged < REFUSALS_LOGGED {
                logged += 1;
                let words = refusal.words();
                let text = format!("{name:?} is refused as a member: {words}");
                tracing::warn!(upstream, "{text}");
                events.push(Kind::Health, upstream, "", text);
            }
        }
        self.refused = refused;
    }

    /// Replaces the list of members. Changes are logged and become events.
    fn replace(&mut self, upstream: &str, next: Members, events: &Events) -> Progress {
        let before = std::mem::replace(&mut self.members, next);
        let members = &self.members;
        let mut reports = changes(&before, members);
        let changed = reports.len();
        if changed > LOGGED_SINGLY {
            let text = format!("{changed} members changed; there are {}", members.len());
            reports = vec![(String::new(), text)];
        }
        let source = self.config.source.token();
        for (backend, report) in reports {
            let text = format!("{report}, by {source}");
            tracing::info!(upstream, backend, "member: {text}");
            events.push(Kind::Change, upstream, &backend, text);
        }
        Progress {
            // Not every difference is reported.
            changed: before.iter().ne(members.iter()),
            members: members.len(),
            deadlines: members.deadlines(),
        }
    }

    /// The routes that nodes of MCMP bring: one for each context below the allowed paths. It restricts the members
    /// where the context is not enabled.
    fn routes(&self, upstream: &str) -> Vec<RouteConfig> {
        let MemberSource::Mcmp(McmpSource { paths, .. }) = &self.config.source else {
            return Vec::new();
        };
        let contexts = self.members.iter().flat_map(|it| &it.found.contexts);
        let context_paths: BTreeSet<&str> = contexts.map(|it| &it.path[..]).collect();
        let mut routes = Vec::new();
        for path in context_paths {
            if !paths.iter().any(|allowed| is_below(path, allowed)) {
                continue;
            }
            let members = self.members.iter();
            let activation = members.filter_map(|it| restriction(it, path)).collect();
            let mut route = RouteConfig::new(path, RouteTarget::Upstream(upstream.to_owned()));
            route.rules = Some(Arc::new(RouteRules {
                activation,
                ..RouteRules::default()
            }));
            route.found = true;
            routes.push(route);
        }
        routes
    }

    /// The members as backends. Those with the name of a backend of the file are left out, and so are those that cannot
    /// be used, which is logged.
    fn backends(&self) -> Vec<BackendConfig> {
        let mut backends = Vec::new();
        for member in self.members.iter() {
            let name = &member.found.name;
            if self.taken.contains(name) {
                continue;
            }
            match self.config.backend(member) {
                Ok(backend) => backends.push(backend),
                Err(reason) => tracing::warn!(member = name, "a member is left out: {reason}"),
            }
        }
        backends
    }

    fn view(&self, upstream: &str) -> MembersView {
        let count = |fits: fn(&Member) -> bool| self.members.iter().filter(|it| fits(it)).count();
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
            watch: matches!(self.config.source, MemberSource::Kubernetes(_))
                .then(|| Arc::clone(&self.watch)),
        }
    }
}

/// Whether a path is `base`, or below it in whole segments.
fn is_below(path: &str, base: &str) -> bool {
    let rest = path.strip_prefix(base.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The restricted activation of a member for a context; `None` if the context is enabled there.
fn restriction(member: &Member, path: &str) -> Option<(String, Activation)> {
    let mut contexts = member.found.contexts.iter();
    let state = contexts.find(|it| it.path == path).map(|it| it.state);
    let activation = match state {
        Some(FoundState::Active) => return None,
        Some(FoundState::Drain) => Activation::Drain,
        Some(FoundState::Stopped) | None => Activation::Stopped,
    };
    Some((member.found.name.clone(), activation))
}

/// What changed in the members: for each the name and a text.
fn changes(before: &Members, now: &Members) -> Vec<(String, String)> {
    let mut changes = Vec::new();
    for member in now.iter() {
        let name = &member.found.name;
        let text = match before.get(name) {
            None => Some(format!("it joined at {}", member.found.place)),
            Some(known) => change(known, member),
        };
        if let Some(text) = text {
            changes.push((name.clone(), text));
        }
    }
    for member in before.iter() {
        let name = &member.found.name;
        if now.get(name).is_none() {
            changes.push((name.clone(), "it is gone".to_owned()));
        }
    }
    changes
}

/// Describes what changed in a member; `None` if nothing did that matters to the upstream.
fn change(before: &Member, now: &Member) -> Option<String> {
    let (standing_before, standing_now) = (standing(before), standing(now));
    let mut words = Vec::new();
    if standing_before != standing_now {
        words.push(standing_change(standing_before, standing_now).to_owned());
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
    for FoundContext { path, .. } in &was.contexts {
        if !is.contexts.iter().any(|context| context.path == *path) {
            words.push(format!("context {path} removed"));
        }
    }
    if was.jvm_route != is.jvm_route || was.domain != is.domain {
        words.push("another jvm_route or domain".to_owned());
    }
    (!words.is_empty()).then(|| words.join(", "))
}

/// Says that a member's state is another one. Both are words of [`standing`].
fn standing_change(before: &str, now: &str) -> &'static str {
    match now {
        "leaving" => "it is no longer named and drains",
        "doubted" => {
            "it is one of too many that are no longer named; it stays until a further answer"
        }
        "drain" => "it drains",
        "stopped" => "it is stopped",
        _ if matches!(before, "leaving" | "doubted") => "it returned",
        _ => "it is active",
    }
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
    let is_of_machine = || UdpSocket::bind((ip, 0)).is_ok();
    let is_reached =
        |listening: IpAddr| listening == ip || listening.is_unspecified() && is_of_machine();
    own.iter()
        .any(|address| address.port() == port && is_reached(address.ip()))
}

/// The number of changed members up to which each change is logged by itself.
const LOGGED_SINGLY: usize = 50;

/// The most refusals of one answer that are logged.
const REFUSALS_LOGGED: usize = 50;
