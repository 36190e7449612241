//! The thread `acme`, which orders certificates: it looks at each name of each profile, and takes the step that is due.
//!
//! It is one thread for all names, so that the front never makes two attempts at a time, and it has an event loop of
//! its own: no worker waits for an authority. A certificate that was issued is put in force as a changed file is.

mod ordering;
mod removed_names;
mod tended_name;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};
use std::{io, thread};

use tokio::runtime::{self, Runtime};
use tokio::time::Instant;

use self::ordering::{AttemptEnd, NameLocks, ask_window, order};
use self::removed_names::take_out_records;
use self::tended_name::TendedName;
use crate::date::{show_moment, unix_seconds};
use crate::tls::acme::IssuedName;
use crate::tls::acme::memory::MemoryFiles;
use crate::tls::acme::order::Attempt;
use crate::tls::acme::owner::Rivals;
use crate::tls::acme::schedule::NextStep;
use crate::tls::acme::store::Store;
use crate::tls::{LiveProfile, Profiles, Reissue};
use crate::worker::FrontState;

/// The thread, of which the end of the process waits for the end.
#[derive(Debug)]
pub(crate) struct IssuerThread(JoinHandle<()>);

/// Starts the thread, which ends when the front drains: then another process may order.
///
/// # Errors
/// The thread cannot be started.
pub(crate) fn start(shared: &Arc<FrontState>) -> io::Result<IssuerThread> {
    // Weak, so that the thread does not keep the front's state when everything else has ended.
    let weak = Arc::downgrade(shared);
    let runtime = runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let run = move || {
        let mut issuer = Issuer {
            runtime,
            locks: NameLocks::default(),
            rivals: Rivals::default(),
            tended: BTreeMap::new(),
            began: Instant::now(),
            next_storing: Instant::now(),
            unstored_told: None,
        };
        while let Some(shared) = weak.upgrade() {
            if shared.drain.has_begun() {
                break;
            }
            let pause = match catch_unwind(AssertUnwindSafe(|| issuer.tend_all(&shared))) {
                Ok(()) => PERIOD,
                Err(_panic) => {
                    tracing::error!(
                        "the thread that orders certificates panicked; it goes on in a minute"
                    );
                    FAULT_PAUSE
                }
            };
            drop(shared);
            thread::park_timeout(pause);
        }
        if let Some(shared) = weak.upgrade()
            && !shared.issued_memory.is_empty()
            && let Err(error) = shared.issued_memory.store()
        {
            tracing::error!(%error, "what `state_dir` did not take is lost");
        }
        // A request that was left ends by its own deadline; the locks do not wait for it.
        issuer.runtime.shutdown_background();
    };
    let builder = thread::Builder::new().name("acme".to_owned());
    Ok(IssuerThread(builder.spawn(run)?))
}

impl IssuerThread {
    /// Waits until the thread has stored how its attempt ended and has given its locks back, for [`END_MAX`] at most: a
    /// disk may hang. The front must drain.
    pub(crate) fn join(self) {
        let end = Instant::now() + END_MAX;
        self.0.thread().unpark();
        while !self.0.is_finished() {
            if Instant::now() >= end {
                tracing::error!(
                    "the thread that orders certificates has not ended within {END_MAX:?}; what it has not stored is lost"
                );
                return;
            }
            thread::park_timeout(END_LOOK);
        }
        if self.0.join().is_err() {
            tracing::error!("the thread that orders certificates panicked");
        }
    }
}

/// What the thread knows.
struct Issuer {
    runtime: Runtime,
    locks: NameLocks,
    /// What is known of processes on other machines.
    rivals: Rivals,
    /// The profiles that get certificates, by name.
    tended: BTreeMap<String, TendedProfile>,
    began: Instant,
    /// When is tried again to store what is in memory alone.
    next_storing: Instant,
    /// When the log last told that something cannot be stored; `None`: all is stored.
    unstored_told: Option<Instant>,
}

/// A profile, and what is stored of its names.
struct TendedProfile {
    live: Weak<LiveProfile>,
    /// Whether `state_dir` could be used.
    is_open: bool,
    /// The names for which another process orders.
    followed: Vec<String>,
    /// The names of whose locks this process has and whose files were read. Nothing is ordered for another one.
    names: BTreeMap<String, TendedName>,
    /// When locks are tried that could not be had yet; `None`: there are none.
    next_locks: Option<Instant>,
    /// When files are read that could not be read yet; `None`: there are none.
    next_read: Option<Instant>,
    /// When is looked for records in the DNS of names that are not configured any more; `None`: there are none.
    next_removed: Option<Instant>,
    /// What is known of processes on other machines that order for such names.
    removed_rivals: Rivals,
}

impl Issuer {
    /// Takes each step that is due.
    fn tend_all(&mut self, shared: &FrontState) {
        let profiles = shared.profiles.load_full();
        self.forget(shared, &profiles);
        let has_stored = self.store_again(&shared.issued_memory);
        self.locks.renew();
        let has_lost = std::mem::take(&mut self.locks.has_lost);
        for (profile, live) in profiles.iter() {
            let Some(config) = &live.config.acme else {
                continue;
            };
            let store = Store::new(config, &shared.issued_memory);
            if has_lost {
                self.give_up_lost(profile, &store);
            }
            if has_stored {
                put_in_force(shared, profile, live);
            }
            self.take_locks(shared, profile, live, &store);
            self.read_missing(shared, profile, live, &store);
            self.look_for_removed(shared, &profiles, profile, &store);
            for names in config.certificates() {
                if shared.drain.has_begun() {
                    return;
                }
                // A panic on what an authority answers keeps no other name back.
                let tend = AssertUnwindSafe(|| self.tend(shared, live, profile, names));
                if let (Err(_panic), Some(name)) = (catch_unwind(tend), names.first()) {
                    self.note_panic(shared, &issued_name(profile, name));
                }
            }
        }
    }

    /// Forgets profiles and names that are not configured any more.
    fn forget(&mut self, shared: &FrontState, profiles: &Profiles) {
        let acme = |profile: &str| profiles.get(profile)?.config.acme.as_ref();
        self.tended.retain(|profile, _| acme(profile).is_some());
        let lock_files = lock_files(shared, profiles);
        self.locks.by_file.retain(|file, _| {
            let is_configured = lock_files.contains(file);
            if let (false, Some(folder)) = (is_configured, file.parent()) {
                shared.issued_memory.forget(folder);
            }
            is_configured
        });
        let folders: HashSet<&Path> = lock_files.iter().filter_map(|it| it.parent()).collect();
        self.rivals
            .retain(|file| file.parent().is_some_and(|folder| folders.contains(folder)));
        let names = |it: &IssuedName| {
            acme(&it.profile).is_some_and(|acme| acme.first_names().any(|name| *name == it.name))
        };
        shared.issuance.retain(names);
    }

    /// Forgets the names of a profile that another machine has taken over, since this process stood still for long.
    fn give_up_lost(&mut self, profile: &str, store: &Store) {
        let Some(tended) = self.tended.get_mut(profile) else {
            return;
        };
        let locks = &self.locks;
        tended.names.retain(|name, _| {
            let is_held = locks.has(&store.lock_file(name));
            if !is_held {
                store.forget_unstored(name);
                tracing::warn!(
                    profile,
                    name,
                    "a process on another machine has taken over to order"
                );
            }
            is_held
        });
        tended.next_locks = Some(Instant::now());
    }

    /// Tries again to store what the disk did not take. Returns whether all of it is stored now.
    fn store_again(&mut self, memory: &MemoryFiles) -> bool {
        if memory.is_empty() {
            // A challenge's answer needs no storing once it is over.
            self.unstored_told = None;
            return false;
        }
        let now = Instant::now();
        if now < self.next_storing {
            return false;
        }
        self.next_storing = now + STORING_PAUSE;
        match memory.store() {
            Ok(()) => {
                tracing::info!("what `state_dir` did not take is stored");
                self.unstored_told = None;
                return true;
            }
            Err(error) if self.unstored_told.is_none_or(|at| now >= at + TOLD_PAUSE) => {
                tracing::error!(%error, "certificates or their states are in memory alone, as `state_dir` cannot be written: a restart loses them");
                self.unstored_told = Some(now);
            }
            Err(_) => {}
        }
        false
    }

    /// Takes the locks of a profile's names that it can have, and serves what is stored of the others.
    fn take_locks(
        &mut self,
        shared: &FrontState,
        profile: &str,
        live: &Arc<LiveProfile>,
        store: &Store,
    ) {
        let Some(config) = &live.config.acme else {
            return;
        };
        let of_profile = self.tended.entry(profile.to_owned());
        let tended = of_profile.or_insert_with(|| TendedProfile::new(live));
        if !std::ptr::eq(tended.live.as_ptr(), Arc::as_ptr(live)) {
            *tended = TendedProfile::new(live);
        }
        if tended.next_locks.is_none_or(|next| Instant::now() < next) {
            return;
        }
        let opened = tended.open(profile, store);
        let (mut followed, mut hosts) = (Vec::new(), BTreeSet::new());
        let mut fault = None;
        for name in config.first_names() {
            let file = store.lock_file(name);
            if self.locks.has(&file) {
                continue;
            }
            let lock = match &opened {
                Ok(()) => store
                    .lock(name, &mut self.rivals)
                    .map_err(|error| error.to_string()),
                Err(problem) => Err(problem.clone()),
            };
            match lock {
                Ok(Some(lock)) => {
                    self.locks.by_file.insert(file, lock);
                    tended.next_read = Some(Instant::now());
                }
                Ok(None) => {
                    note_followed(shared, &issued_name(profile, name));
                    followed.push(name.clone());
                    let host = self.rivals.host(&store.owner_file(name));
                    hosts.insert(host.unwrap_or("this one").to_owned());
                }
                Err(problem) => {
                    let text = format!("`state_dir` cannot be used: {problem}");
                    note_unready(shared, &issued_name(profile, name), &text);
                    fault = Some(problem);
                }
            }
        }
        let has_all = followed.is_empty() && fault.is_none();
        let pause = if fault.is_some() {
            FAULT_PAUSE
        } else {
            LOCK_PAUSE
        };
        tended.next_locks = (!has_all).then(|| Instant::now() + pause);
        tended.follow(profile, followed, &hosts);
        if let Some(problem) = fault {
            tracing::error!(
                profile,
                problem,
                "no certificate can be ordered, as `state_dir` cannot be used"
            );
        }
        if !has_all {
            put_in_force(shared, profile, live);
        }
    }

    /// Reads what is stored of the names of which it could not be read yet. One that cannot be read now is not taken
    /// for a name without a certificate: nothing is ordered for it.
    fn read_missing(
        &mut self,
        shared: &FrontState,
        profile: &str,
        live: &LiveProfile,
        store: &Store,
    ) {
        let Some(tended) = self.tended.get_mut(profile) else {
            return;
        };
        if tended.next_read.is_none_or(|next| Instant::now() < next) {
            return;
        }
        let mut is_complete = true;
        let acme = live.config.acme.iter();
        for names in acme.flat_map(|acme| acme.certificates()) {
            let Some(name) = names.first() else {
                continue;
            };
            let is_held = self.locks.has(&store.lock_file(name));
            if !is_held || tended.names.contains_key(name) {
                continue;
            }
            match TendedName::read(store, names) {
                Ok(read) => {
                    note_state(shared, &issued_name(profile, name), &read);
                    tended.names.insert(name.clone(), read);
                }
                Err(error) => {
                    is_complete = false;
                    tracing::error!(profile, name, %error, "what is stored of a name cannot be read; it is read again in a minute");
                    note_unready(shared, &issued_name(profile, name), &error.to_string());
                }
            }
        }
        // Another process may have ordered certificates since this one read them.
        let are_served = put_in_force(shared, profile, live);
        let is_over = is_complete && are_served;
        tended.next_read = (!is_over).then(|| Instant::now() + FAULT_PAUSE);
    }

    /// Has records taken out of the DNS whose names are not configured any more.
    fn look_for_removed(
        &mut self,
        shared: &FrontState,
        profiles: &Profiles,
        profile: &str,
        store: &Store,
    ) {
        let config = profiles.get(profile).and_then(|it| it.config.acme.as_ref());
        let (Some(config), Some(tended)) = (config, self.tended.get_mut(profile)) else {
            return;
        };
        let is_due = tended
            .next_removed
            .is_some_and(|next| Instant::now() >= next);
        if !tended.is_open || !is_due {
            return;
        }
        let configured = lock_files(shared, profiles);
        let rivals = &mut tended.removed_rivals;
        let looked = take_out_records(config, store, rivals, &configured);
        let is_complete = looked.unwrap_or_else(|error| {
            tracing::error!(profile, %error, "what is stored of names that were removed cannot be read; it is read again in a minute");
            false
        });
        tended.next_removed = (!is_complete).then(|| Instant::now() + FAULT_PAUSE);
    }

    /// Notes that an attempt for a name panicked. What is stored of it is read again after a pause: an attempt that
    /// began is there as one that failed.
    fn note_panic(&mut self, shared: &FrontState, label: &IssuedName) {
        let IssuedName { profile, name } = label;
        let problem = "the front panicked on what the authority answered";
        tracing::error!(profile, name, "{problem}; it goes on in a minute");
        note_unready(shared, label, problem);
        shared.issuance.note(label, |figures| figures.failed += 1);
        if let Some(tended) = self.tended.get_mut(profile) {
            tended.names.remove(name);
            tended.next_read = Some(Instant::now() + FAULT_PAUSE);
        }
    }

    /// Takes the step that is due for the certificate of these names, if one is.
    fn tend(&mut self, shared: &FrontState, live: &LiveProfile, profile: &str, names: &[String]) {
        let Some(name) = names.first() else {
            return;
        };
        let (
            Some(config),
            Some(TendedProfile {
                names: all_tended,
                next_read,
                ..
            }),
        ) = (&live.config.acme, self.tended.get_mut(profile))
        else {
            return;
        };
        let Some(tended) = all_tended.get_mut(name) else {
            return;
        };
        let may_be_unstored = self.began.elapsed() >= UNSTORED_WAIT;
        let now = unix_seconds(SystemTime::now());
        let label = issued_name(profile, name);
        if shared.issuance.take_request(&label) {
            tended.state.ask(now);
        }
        let store = Store::new(config, &shared.issued_memory);
        let lock_file = store.lock_file(name);
        let claim = self.locks.claim(&lock_file);
        let attempt = Attempt::new(config, &store, profile, names).under(claim);
        let step = tended.state.next_step(tended.validity(), now);
        // What is stored of a name is another's once its lock is lost.
        if step_changes(step) && !self.locks.keeps(&lock_file) {
            return;
        }
        match step {
            NextStep::Order => {
                tended.may_be_unstored |= may_be_unstored;
                let ordered = order(&attempt, tended, &shared.drain, &mut self.locks);
                let end = self.runtime.block_on(ordered);
                shared.issuance.note(&label, |figures| match end {
                    AttemptEnd::Issued => figures.issued += 1,
                    AttemptEnd::Failed => figures.failed += 1,
                    AttemptEnd::Interrupted => {}
                });
                if end == AttemptEnd::Issued && !put_in_force(shared, profile, live) {
                    *next_read = Some(Instant::now() + FAULT_PAUSE);
                }
            }
            NextStep::AskWindow => {
                let asked = ask_window(&attempt, tended, &shared.drain);
                self.runtime.block_on(asked);
            }
            NextStep::Wait(_) => {}
        }
        if step_changes(step) {
            if !self.locks.keeps(&lock_file) {
                return;
            }
            tended.keep(&store, name);
        }
        tended.take_out_records(&attempt);
        note_state(shared, &label, tended);
        let is_unstored = store.is_unstored(name);
        shared
            .issuance
            .note(&label, |figures| figures.is_unstored = is_unstored);
        let now = unix_seconds(SystemTime::now());
        if let Some(certificate) = tended.take_alarm(now) {
            say_end(&attempt, tended, certificate.not_after <= now);
        }
    }
}

/// The files with the locks of all names that are configured.
fn lock_files(shared: &FrontState, profiles: &Profiles) -> HashSet<PathBuf> {
    let configs = profiles.values().filter_map(|it| it.config.acme.as_ref());
    let stores = configs.map(|config| (config, Store::new(config, &shared.issued_memory)));
    stores
        .flat_map(|(config, store)| config.first_names().map(move |name| store.lock_file(name)))
        .collect()
}

/// Logs that a certificate ends soon, or has ended.
fn say_end(attempt: &Attempt<'_>, tended: &TendedName, has_ended: bool) {
    let text = if has_ended {
        "a certificate that is served has ended"
    } else {
        "less than a sixth of a certificate's lifetime is left"
    };
    tracing::error!(
        profile = attempt.profile,
        name = attempt.name,
        problem = tended.state.problem.as_deref().unwrap_or("none"),
        next = show_moment(tended.next_attempt()),
        "{text}"
    );
}

/// Whether a step changes what is stored of a name.
fn step_changes(step: NextStep) -> bool {
    match step {
        NextStep::Order | NextStep::AskWindow => true,
        NextStep::Wait(_) => false,
    }
}

/// Serves the certificates that are stored now; `false`: some cannot be read.
fn put_in_force(shared: &FrontState, profile: &str, live: &LiveProfile) -> bool {
    let Reissue { renewal, unread } = live.reissue();
    for warning in renewal.warnings {
        tracing::error!(profile, "{}; {}", warning.message, warning.hint);
    }
    if !renewal.changes.added.is_empty() {
        shared.counters.certificates_renewed(true);
        tracing::info!(profile, "certificates were replaced; {}", renewal.changes);
    }
    unread == 0
}

/// Notes what is stored of a name.
fn note_state(shared: &FrontState, label: &IssuedName, tended: &TendedName) {
    shared.issuance.note(label, |figures| {
        figures.failures = tended.state.failures;
        figures.next_attempt = tended.next_attempt();
        figures.problem.clone_from(&tended.state.problem);
        figures.asked_at = figures.asked_at.max(tended.state.asked_at);
        figures.is_followed = false;
        figures.is_unready = false;
    });
}

/// Notes why nothing is done for a name before the end of a pause after a fault of this machine.
fn note_unready(shared: &FrontState, label: &IssuedName, problem: &str) {
    let next = unix_seconds(SystemTime::now()) + FAULT_PAUSE.as_secs();
    shared.issuance.note_unready(label, problem, next);
}

/// Notes that another process orders for a name.
fn note_followed(shared: &FrontState, label: &IssuedName) {
    shared.issuance.note(label, |figures| {
        figures.is_followed = true;
        figures.is_unstored = false;
        figures.problem = None;
    });
}

fn issued_name(profile: &str, name: &str) -> IssuedName {
    IssuedName {
        profile: profile.to_owned(),
        name: name.to_owned(),
    }
}

impl TendedProfile {
    fn new(live: &Arc<LiveProfile>) -> Self {
        Self {
            live: Arc::downgrade(live),
            is_open: false,
            followed: Vec::new(),
            names: BTreeMap::new(),
            next_locks: Some(Instant::now()),
            next_read: Some(Instant::now()),
            next_removed: Some(Instant::now()),
            removed_rivals: Rivals::default(),
        }
    }

    /// Makes `state_dir` ready, once.
    ///
    /// # Errors
    /// Why it cannot be used.
    fn open(&mut self, profile: &str, store: &Store) -> Result<(), String> {
        if self.is_open {
            return Ok(());
        }
        for path in store.open().map_err(|error| error.to_string())? {
            let path = path.display();
            tracing::warn!(profile, %path, "others could read what only the front may; their rights were removed");
        }
        self.is_open = true;
        Ok(())
    }

    /// Notes the names for which another process orders, and logs them if they have changed.
    fn follow(&mut self, profile: &str, names: Vec<String>, hosts: &BTreeSet<String>) {
        if !names.is_empty() && names != self.followed {
            let names = names.join(", ");
            let hosts = hosts
                .iter()
                .map(|host| &**host)
                .collect::<Vec<_>>()
                .join(", ");
            tracing::info!(
                profile,
                names,
                hosts,
                "another process orders the certificates of these names; this one serves what is stored of them until that process ends"
            );
        }
        self.followed = names;
    }
}

/// How often the thread looks whether anything is due.
const PERIOD: Duration = Duration::from_secs(1);

/// The pause between two tries to take locks that another process has, and between two looks at its certificates.
const LOCK_PAUSE: Duration = Duration::from_secs(5);

/// How long the end of the process waits for the thread, which leaves an attempt at once.
const END_MAX: Duration = Duration::from_secs(5);

/// How often is looked whether the thread has ended.
const END_LOOK: Duration = Duration::from_millis(10);

/// The pause between two tries to store what the disk did not take.
const STORING_PAUSE: Duration = Duration::from_secs(10);

/// The pause between two lines in the log about that.
const TOLD_PAUSE: Duration = Duration::from_secs(60 * 60);

/// How long a process runs before it makes an attempt that it cannot store, and could never store one before: it may be
/// one of many that a supervisor starts again and again.
const UNSTORED_WAIT: Duration = Duration::from_secs(60 * 60);

/// The pause after a directory could not be used.
const FAULT_PAUSE: Duration = Duration::from_secs(60);
