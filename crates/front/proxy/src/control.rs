//! The changes that operators make to members while the front runs.
//!
//! Each change makes a new site, which shares everything but the changed upstream, and puts it in force as a reload
//! does. Changes, reloads and ends of drains never overlap: the mutex of the overrides is held from reading the site
//! to replacing it. Each change is logged as one line of the audit, and is one event.

pub(crate) mod discovered;
pub(crate) mod events;
pub(crate) mod patch;
pub(crate) mod state_file;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use arc_swap::ArcSwap;
use catamaran_upstream::Backend;
use discovered::DiscoveredMembers;
use events::{Events, Kind};
use patch::Patch;
use sha2::{Digest as _, Sha256};
use state_file::StateFile;
use thiserror::Error;
use tokio::sync::oneshot;

use crate::config::{Activation, AdminConfig};
use crate::date::unix_seconds;
use crate::lock::lock;
use crate::site::overrides::{Override, Overrides};
use crate::site::retired::RetiredBackends;
use crate::site::{Controls, Member, Site, Upstream};

/// The overrides in force, and the state that operators change or ask for.
#[derive(Debug, Default)]
pub(crate) struct Control {
    overrides: Mutex<Overrides>,
    /// Whether changes are refused, because another process takes over, or has, and would not learn of them.
    frozen: AtomicBool,
    state_file: Option<StateFile>,
    commands: OperatorCommands,
    upgrades: Mutex<Upgrades>,
    /// The reason why the last reload was refused; `None`: it was not.
    refused_reload: Mutex<Option<String>>,
    pub(crate) events: Events,
    /// The discovered members.
    pub(crate) discovered: DiscoveredMembers,
}

/// The functions that carry out commands of operators for the whole process. They must not block. A command without
/// a function is refused.
#[derive(Default)]
pub struct OperatorCommands {
    /// Reads the configuration again, and answers the request with the outcome.
    pub reload: Option<Box<dyn Fn(ReloadRequest) + Send + Sync>>,
    /// Starts another process in place of this one; `false` if too many commands wait already.
    pub upgrade: Option<Box<dyn Fn() -> bool + Send + Sync>>,
}

impl fmt::Debug for OperatorCommands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OperatorCommands(..)")
    }
}

/// The upgrades of this process, which are its replacements by another process.
#[derive(Debug, Default)]
struct Upgrades {
    /// Whether an upgrade was asked for and has not failed.
    is_under_way: bool,
    /// The number of upgrades that were begun.
    number: u64,
    /// The reason why the last upgrade failed; `None`: it has not.
    failed: Option<String>,
}

/// An administrator's request to read the configuration again. It must be answered.
#[derive(Debug)]
pub struct ReloadRequest(oneshot::Sender<Result<String, String>>);

impl ReloadRequest {
    /// Answers with a report of what was changed, or with the faults of the configuration.
    pub fn answer(self, outcome: Result<String, String>) {
        // An error means that the caller has left.
        self.0.send(outcome).ok();
    }
}

/// The reason why a change was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Refusal {
    #[error("there is no upstream {0:?}")]
    NoUpstream(String),
    #[error("upstream {upstream:?} has no backend {backend:?}")]
    NoBackend { upstream: String, backend: String },
    #[error("somebody changed it since; its version is {version} now")]
    Stale { version: String },
    #[error(
        "{backend:?} is the last backend of upstream {upstream:?} that takes new sessions; force it \
         if that is meant"
    )]
    LastBackend { upstream: String, backend: String },
    #[error("another process takes over; ask that one")]
    HandedOver,
}

/// A change of some members of one upstream.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    pub(crate) upstream: &'a str,
    /// Whether `version` is the version of the upstream, not of a backend.
    pub(crate) whole: bool,
    /// The patches, each with the name of its backend.
    pub(crate) patches: Vec<(String, Patch)>,
    /// The version that the settings must still have, else the change is refused; `None`: any.
    pub(crate) version: Option<&'a str>,
    pub(crate) force: bool,
    /// The operator who makes the change, for the audit.
    pub(crate) by: &'a str,
}

impl Control {
    /// Starts with the overrides of the previous process, or else with those of the state file. Without an admin
    /// listener there are none, since nobody could remove them.
    pub(crate) fn start(
        admin: Option<&AdminConfig>,
        inherited: Option<Overrides>,
        commands: OperatorCommands,
    ) -> Self {
        let Some(admin) = admin else {
            return Self::default();
        };
        let state_file = admin.state_file.clone().map(StateFile::new);
        let kept = || state_file.as_ref().map(StateFile::load);
        Self {
            overrides: Mutex::new(inherited.or_else(kept).unwrap_or_default()),
            state_file,
            commands,
            ..Self::default()
        }
    }

    /// The site to start with: `site` with the overrides that still hold.
    pub(crate) fn settle_at_start(&self, site: &Site) -> Site {
        self.settle(site, &mut self.lock())
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Overrides> {
        lock(&self.overrides)
    }

    /// Reads the configuration again, and returns the outcome; `None` if this front cannot.
    pub(crate) async fn reload(&self) -> Option<Result<String, String>> {
        let (reply, replied) = oneshot::channel();
        self.commands.reload.as_ref()?(ReloadRequest(reply));
        replied.await.ok()
    }

    /// Starts another process, and returns the number that this upgrade will have. `None`: this front cannot, too
    /// many commands wait, or an upgrade is under way.
    pub(crate) fn upgrade(&self) -> Option<u64> {
        let mut upgrades = self.upgrades();
        if upgrades.is_under_way {
            return None;
        }
        upgrades.is_under_way = self.commands.upgrade.as_ref()?();
        // `note_upgrade` counts it when it begins.
        upgrades.is_under_way.then_some(upgrades.number + 1)
    }

    /// Counts an upgrade that has begun.
    pub(crate) fn note_upgrade(&self) {
        let mut upgrades = self.upgrades();
        upgrades.number += 1;
        upgrades.failed = None;
        upgrades.is_under_way = true;
    }

    /// Keeps the reason why an upgrade failed, makes it an event, and lets the next upgrade begin.
    pub(crate) fn note_failed_upgrade(&self, reason: String) {
        let text = format!("an upgrade failed: {reason}");
        self.events.push(Kind::Change, "", "", text);
        let mut upgrades = self.upgrades();
        upgrades.failed = Some(reason);
        upgrades.is_under_way = false;
    }

    /// The number of upgrades that were begun, and the reason why the last one failed, if it did.
    pub(crate) fn last_upgrade(&self) -> (u64, Option<String>) {
        let upgrades = self.upgrades();
        (upgrades.number, upgrades.failed.clone())
    }

    /// Notes the outcome of a reload: why it was refused, or `None`.
    pub(crate) fn note_reload(&self, refused: Option<String>) {
        *self.lock_refused_reload() = refused;
    }

    /// The reason why the last reload was refused; `None`: it was not.
    pub(crate) fn refused_reload(&self) -> Option<String> {
        self.lock_refused_reload().clone()
    }

    fn lock_refused_reload(&self) -> MutexGuard<'_, Option<String>> {
        lock(&self.refused_reload)
    }

    fn upgrades(&self) -> MutexGuard<'_, Upgrades> {
        lock(&self.upgrades)
    }

    /// Refuses changes from now on (`true`), or accepts them again (`false`).
    pub(crate) fn freeze(&self, frozen: bool) {
        self.frozen.store(frozen, Ordering::SeqCst);
    }

    /// Whether the state file could not be used; see [`StateFile::fails`].
    pub(crate) fn state_file_fails(&self) -> bool {
        self.state_file.as_ref().is_some_and(StateFile::fails)
    }

    /// Makes the next site: `site` with these overrides. Overrides that no longer fit are dropped and logged.
    pub(crate) fn settle(&self, site: &Site, overrides: &mut Overrides) -> Site {
        for dropped in overrides.reconcile(site) {
            let (upstream, backend, why) = (&dropped.upstream, &dropped.backend, dropped.why);
            tracing::warn!(upstream, backend, "an operator's setting is dropped: {why}");
            let text = format!("an operator's setting was dropped: {why}");
            self.events.push(Kind::Change, upstream, backend, text);
        }
        if let Some(file) = &self.state_file {
            file.save(overrides);
        }
        site.controlled(overrides)
    }

    /// Changes the overrides of members of the site in force: all that `change` names, or none.
    pub(crate) fn change(
        &self,
        in_force: &ArcSwap<Site>,
        change: &Change<'_>,
    ) -> Result<(), Refusal> {
        let mut overrides = self.lock();
        if self.frozen.load(Ordering::SeqCst) {
            return Err(Refusal::HandedOver);
        }
        let site = in_force.load_full();
        let upstream = find_upstream(&site, change.upstream)?;
        check_version(change, upstream, &overrides)?;
        let now = now();
        let mut next = overrides.clone();
        for (backend, patch) in &change.patches {
            let member = find_member(upstream, backend)?;
            let before = next.get(&upstream.name, backend).cloned();
            let mut patched = before.unwrap_or_default();
            patch.apply(&mut patched, member, now);
            patched.by = change.by.to_owned();
            patched.at = now;
            next.put(&upstream.name, backend, patched);
        }
        if !change.force {
            check_active(upstream, &overrides, &next)?;
        }
        self.follow(&site, &mut overrides, next)
            .put_in_force(in_force);
        for (backend, patch) in &change.patches {
            self.note_change(change.by, &upstream.name, backend, &patch.to_string());
        }
        Ok(())
    }

    /// Puts in force a site with the members discovered so far. Overrides also hold for members that return.
    pub(crate) fn publish(&self, in_force: &ArcSwap<Site>, retired: &RetiredBackends) {
        let overrides = self.lock();
        let site = in_force.load_full();
        let found = self.discovered.found();
        let mut present: Vec<Arc<Backend>> = Vec::new();
        for upstream in &site.upstreams {
            if found.contains_key(&upstream.name) {
                // The members behind those of the file are the discovered ones.
                let members = upstream.members.iter().skip(upstream.of_file());
                present.extend(members.map(|member| Arc::clone(&member.backend)));
            }
        }
        // A member that left and comes back keeps its backend, with the exchanges that are still in flight.
        let mut reusable: HashMap<String, Vec<Arc<Backend>>> = HashMap::new();
        for backend in present.iter().cloned().chain(retired.in_use()) {
            let name = backend.settings().name.clone();
            reusable.entry(name).or_default().push(backend);
        }
        let with_members = site.with_found(found, &mut reusable);
        let with_routes = with_members.with_routes(&site, self.discovered.routes());
        let next = with_routes.controlled(&overrides);
        next.configure();
        let kept: HashSet<*const Backend> = next.backends().map(Arc::as_ptr).collect();
        let mut gone = present;
        gone.retain(|backend| !kept.contains(&Arc::as_ptr(backend)));
        next.put_in_force(in_force);
        retired.add(&gone, &in_force.load());
    }

    /// Ends drains that have nothing left to wait for, and drops overrides whose time is over.
    pub(crate) fn tick(&self, in_force: &ArcSwap<Site>) {
        let mut overrides = self.lock();
        if overrides.is_empty() || self.frozen.load(Ordering::SeqCst) {
            return;
        }
        let site = in_force.load_full();
        let now = now();
        let mut next = overrides.clone();
        let mut reports = Vec::new();
        for (upstream, backend, present) in overrides.iter() {
            let Some(member) = member_of(&site, upstream, backend) else {
                continue;
            };
            let text = if present.until.is_some_and(|until| until <= now) {
                next.remove(upstream, backend);
                "its time is over: the file's settings hold".to_owned()
            } else if let Some((then, reason)) = drain_end(present, member, now) {
                let mut ended = present.clone();
                ended.activate(Some(then), member.file());
                next.put(upstream, backend, ended);
                format!("drained ({reason}): {}", then.token())
            } else {
                continue;
            };
            reports.push((upstream.to_owned(), backend.to_owned(), text));
        }
        if reports.is_empty() {
            return;
        }
        self.follow(&site, &mut overrides, next)
            .put_in_force(in_force);
        for (upstream, backend, text) in reports {
            self.note_change("catamaran", &upstream, &backend, &text);
        }
    }

    /// Keeps the overrides `next`, also in the state file, and returns the site that has them.
    fn follow(&self, site: &Site, overrides: &mut Overrides, next: Overrides) -> Site {
        let next_site = site.controlled(&next);
        *overrides = next;
        if let Some(file) = &self.state_file {
            file.save_change(overrides);
        }
        next_site.configure();
        next_site
    }

    fn note_change(&self, by: &str, upstream: &str, backend: &str, text: &str) {
        tracing::info!(target: "audit", by, upstream, backend, "change: {text}");
        let text = format!("{text}, by {by}");
        self.events.push(Kind::Change, upstream, backend, text);
    }
}

/// The activation that follows a drain, and why the drain is over; `None` if it is not over.
fn drain_end(present: &Override, member: &Member, now: u64) -> Option<(Activation, &'static str)> {
    let drain = present.drain?;
    if drain.ends() <= now {
        Some((drain.then, "deadline"))
    } else if member.is_drained() && member.backend.in_flight() == 0 {
        Some((drain.then, "nothing is left"))
    } else {
        None
    }
}

/// Refuses a change that would leave an upstream without a backend for new sessions.
fn check_active(upstream: &Upstream, before: &Overrides, after: &Overrides) -> Result<(), Refusal> {
    let takes_new = |overrides: &Overrides, member: &Member| {
        let controls = overrides.controls(upstream, member);
        controls.activation.takes_new()
    };
    let mut members = upstream.members.iter();
    if members.any(|member| takes_new(after, member) && member.backend.share() > 0) {
        return Ok(());
    }
    // None serves afterwards. That is refused only if this change is the cause for one of them.
    for member in &upstream.members {
        if takes_new(before, member) && !takes_new(after, member) {
            return Err(Refusal::LastBackend {
                upstream: upstream.name.clone(),
                backend: member.name().to_owned(),
            });
        }
    }
    Ok(())
}

/// Refuses a change if the settings that it concerns have another version than the one that the operator has seen.
fn check_version(
    change: &Change<'_>,
    upstream: &Upstream,
    overrides: &Overrides,
) -> Result<(), Refusal> {
    let Some(version_seen) = change.version else {
        return Ok(());
    };
    let version = match &change.patches[..] {
        [(backend, _)] if !change.whole => {
            version(upstream, find_member(upstream, backend)?, overrides)
        }
        _ => version_of_all(upstream, overrides),
    };
    if version_seen != version {
        return Err(Refusal::Stale { version });
    }
    Ok(())
}

/// The version of a member's settings: a digest, which changes whenever they change.
pub(crate) fn version(upstream: &Upstream, member: &Member, overrides: &Overrides) -> String {
    let mut digest = Sha256::new();
    digest_member(&mut digest, upstream, member, overrides);
    short(digest)
}

/// The version of the settings of all members of an upstream: a digest like that of [`version`].
pub(crate) fn version_of_all(upstream: &Upstream, overrides: &Overrides) -> String {
    let mut digest = Sha256::new();
    for member in &upstream.members {
        digest_member(&mut digest, upstream, member, overrides);
    }
    short(digest)
}

/// Adds everything to the digest that decides a member's settings: the file's controls and the override.
fn digest_member(digest: &mut Sha256, upstream: &Upstream, member: &Member, overrides: &Overrides) {
    let Controls {
        activation,
        weight,
        distance,
    } = member.file();
    let name = member.name();
    // Texts and numbers can always be written as JSON.
    let changes = serde_json::to_string(&overrides.get(&upstream.name, name)).unwrap_or_default();
    let activation = activation.token();
    digest.update(format!(
        "{name}\0{activation}\0{weight}\0{distance}\0{changes}\0"
    ));
}

/// The first 8 bytes of a digest, in hexadecimal.
fn short(digest: Sha256) -> String {
    let mut text = String::new();
    for byte in &digest.finalize()[..8] {
        write!(text, "{byte:02x}").expect("a string takes all");
    }
    text
}

pub(crate) fn find_upstream<'s>(site: &'s Site, name: &str) -> Result<&'s Arc<Upstream>, Refusal> {
    site.upstream(name)
        .ok_or_else(|| Refusal::NoUpstream(name.to_owned()))
}

pub(crate) fn find_member<'s>(upstream: &'s Upstream, name: &str) -> Result<&'s Member, Refusal> {
    let missing = || Refusal::NoBackend {
        upstream: upstream.name.clone(),
        backend: name.to_owned(),
    };
    upstream.member(name).map(|it| it.1).ok_or_else(missing)
}

fn member_of<'s>(site: &'s Site, upstream: &str, backend: &str) -> Option<&'s Member> {
    site.upstream(upstream)?.member(backend).map(|it| it.1)
}

/// The present time, in seconds of the Unix epoch.
pub(crate) fn now() -> u64 {
    unix_seconds(SystemTime::now())
}
