//! The thread `acme`, which orders certificates: it looks at each name of each profile, and takes the step that is due.
//!
//! It is one thread for all names, so that the front never makes two attempts at a time, and it has an event loop of
//! its own: no worker waits for an authority. A certificate that was issued is put in force as a changed file is.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};
use std::{io, thread};

use catamaran_tls::Identity;
use tokio::runtime::{self, Runtime};
use tokio::time::Instant;

use crate::date::{show_moment, unix_seconds};
use crate::tls::acme::IssuedName;
use crate::tls::acme::order::{Attempt, AttemptFault};
use crate::tls::acme::schedule::{NameState, NextStep, Validity};
use crate::tls::acme::store::{Store, StoreLock};
use crate::tls::{LiveProfile, Profiles};
use crate::worker::FrontState;

/// Starts the thread, which ends when the front drains: then another process may order.
///
/// # Errors
/// The thread cannot be started.
pub(crate) fn start(shared: &Arc<FrontState>) -> io::Result<()> {
    // Weak, so that the thread does not keep the front's state when everything else has ended.
    let weak = Arc::downgrade(shared);
    let runtime = runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let run = move || {
        let mut issuer = Issuer {
            runtime,
            locks: HashMap::new(),
            tended: BTreeMap::new(),
            followed: HashMap::new(),
        };
        while let Some(shared) = weak.upgrade() {
            if shared.drain.has_begun() {
                return;
            }
            issuer.tend_all(&shared);
            drop(shared);
            thread::park_timeout(PERIOD);
        }
    };
    thread::Builder::new().name("acme".to_owned()).spawn(run)?;
    Ok(())
}

/// What the thread knows.
struct Issuer {
    runtime: Runtime,
    /// The locks of the directories with certificates.
    locks: HashMap<PathBuf, HeldLock>,
    /// The profiles that get certificates, by name.
    tended: BTreeMap<String, TendedProfile>,
    /// The profiles for which another process orders, each with the time at which its certificates are read next.
    followed: HashMap<String, Instant>,
}

/// The lock of one `state_dir`.
enum HeldLock {
    /// This process orders.
    Held { _lock: StoreLock },
    /// Another process has it, or it cannot be had. It is tried again at this time.
    Missed { next_try: Instant },
}

/// A profile, and what is stored of its names.
struct TendedProfile {
    live: Weak<LiveProfile>,
    names: BTreeMap<String, TendedName>,
}

/// A name, as it was read when this process began to order for it: no other process changes it meanwhile.
#[derive(Default)]
struct TendedName {
    state: NameState,
    certificate: Option<Identity>,
}

impl Issuer {
    /// Takes each step that is due.
    fn tend_all(&mut self, shared: &FrontState) {
        let profiles = shared.profiles.load_full();
        self.forget(shared, &profiles);
        for (profile, live) in profiles.iter() {
            let Some(config) = &live.config.acme else {
                continue;
            };
            let store = Store::new(config);
            if !self.may_order(shared, profile, live, &store) {
                continue;
            }
            for name in &config.names {
                if shared.drain.has_begun() {
                    return;
                }
                self.tend(shared, live, profile, name);
            }
        }
    }

    /// Forgets profiles and directories that are not configured any more.
    fn forget(&mut self, shared: &FrontState, profiles: &Profiles) {
        let acme = |profile: &str| profiles.get(profile)?.config.acme.as_ref();
        self.tended.retain(|profile, _| acme(profile).is_some());
        self.followed.retain(|profile, _| acme(profile).is_some());
        let configs = profiles.values().filter_map(|it| it.config.acme.as_ref());
        let state_dirs: Vec<&PathBuf> = configs.map(|it| &it.state_dir).collect();
        self.locks
            .retain(|state_dir, _| state_dirs.contains(&state_dir));
        let names =
            |it: &IssuedName| acme(&it.profile).is_some_and(|acme| acme.names.contains(&it.name));
        shared.issuance.retain(names);
    }

    /// Whether this process orders for a profile. If it begins to, it reads what is stored.
    fn may_order(
        &mut self,
        shared: &FrontState,
        profile: &str,
        live: &Arc<LiveProfile>,
        store: &Store,
    ) -> bool {
        let Some(config) = &live.config.acme else {
            return false;
        };
        let holds = self.holds(&config.state_dir, profile, store);
        let is_known = self
            .tended
            .get(profile)
            .is_some_and(|it| std::ptr::eq(it.live.as_ptr(), Arc::as_ptr(live)));
        if holds && !is_known {
            let names = config.names.iter();
            let read = names.map(|name| (name.clone(), TendedName::read(store, name)));
            let tended = TendedProfile {
                live: Arc::downgrade(live),
                names: read.collect(),
            };
            self.tended.insert(profile.to_owned(), tended);
            // Another process may have ordered certificates since this one read them.
            put_in_force(shared, profile, live);
        }
        if holds {
            self.followed.remove(profile);
        } else {
            self.tended.remove(profile);
            self.follow(shared, profile, live);
        }
        holds
    }

    /// Serves the certificates that another process orders.
    fn follow(&mut self, shared: &FrontState, profile: &str, live: &LiveProfile) {
        let next = self.followed.get(profile);
        if next.is_some_and(|next| Instant::now() < *next) {
            return;
        }
        let next_look = Instant::now() + LOCK_PAUSE;
        self.followed.insert(profile.to_owned(), next_look);
        put_in_force(shared, profile, live);
        for name in live.config.acme.iter().flat_map(|acme| &acme.names) {
            shared
                .issuance
                .note(&issued_name(profile, name), |figures| {
                    figures.is_followed = true;
                });
        }
    }

    /// Whether this process has the lock of a directory, which it takes if it can.
    fn holds(&mut self, state_dir: &Path, profile: &str, store: &Store) -> bool {
        match self.locks.get(state_dir) {
            Some(HeldLock::Held { .. }) => return true,
            Some(HeldLock::Missed { next_try }) if Instant::now() < *next_try => return false,
            Some(HeldLock::Missed { .. }) | None => {}
        }
        let lock = store.open().and_then(|narrowed| {
            for path in narrowed {
                let path = path.display();
                tracing::warn!(profile, %path, "others could read what only the front may; their rights were removed");
            }
            store.lock()
        });
        let missed = |after| HeldLock::Missed {
            next_try: Instant::now() + after,
        };
        let (holds, held) = match lock {
            Ok(Some(lock)) => (true, HeldLock::Held { _lock: lock }),
            Ok(None) => (false, missed(LOCK_PAUSE)),
            Err(error) => {
                tracing::error!(profile, %error, "no certificate can be ordered, as `state_dir` cannot be used");
                (false, missed(FAULT_PAUSE))
            }
        };
        self.locks.insert(state_dir.to_owned(), held);
        holds
    }

    /// Takes the step that is due for a name, if one is.
    fn tend(&mut self, shared: &FrontState, live: &LiveProfile, profile: &str, name: &str) {
        let (Some(config), Some(tended)) = (
            &live.config.acme,
            self.tended
                .get_mut(profile)
                .and_then(|it| it.names.get_mut(name)),
        ) else {
            return;
        };
        let now = unix_seconds(SystemTime::now());
        let store = Store::new(config);
        let attempt = Attempt::new(config, &store, profile, name);
        let step = tended.state.next_step(tended.validity(), now);
        match step {
            NextStep::Order => {
                let issued = self.runtime.block_on(order(&attempt, tended));
                let label = issued_name(profile, name);
                shared.issuance.note(&label, |figures| {
                    if issued {
                        figures.issued += 1;
                    } else {
                        figures.failed += 1;
                    }
                });
                if issued {
                    tended.certificate = stored_certificate(&store, name);
                    put_in_force(shared, profile, live);
                }
            }
            NextStep::AskWindow => self.runtime.block_on(ask_window(&attempt, tended)),
            NextStep::Wait(_) => {}
        }
        if step_changes(step) {
            keep(&attempt, &tended.state);
        }
        let next_attempt = tended.next_attempt();
        shared
            .issuance
            .note(&issued_name(profile, name), |figures| {
                figures.failures = tended.state.failures;
                figures.next_attempt = next_attempt;
                figures.problem.clone_from(&tended.state.problem);
                figures.is_followed = false;
            });
    }
}

/// Makes one attempt, and says whether it led to a certificate.
async fn order(attempt: &Attempt<'_>, tended: &mut TendedName) -> bool {
    let now = unix_seconds(SystemTime::now());
    tended.state.begin(now, fastrand::f64());
    // If this cannot be stored, a process that is killed would try again at once: so it is not tried at all.
    if !keep(attempt, &tended.state) {
        return false;
    }
    let number = tended.state.failures;
    let replaces = tended.certificate.as_ref().and_then(Identity::renewal_id);
    let mut result = attempt.run(&mut tended.state, replaces.clone()).await;
    // An attempt goes on with what the one before has reached.
    for _ in 0..NONCES_MAX {
        if !result.as_ref().is_err_and(AttemptFault::is_of_nonce) {
            break;
        }
        result = attempt.run(&mut tended.state, replaces.clone()).await;
    }
    match result {
        Ok(()) => {
            tended.state.succeed();
            true
        }
        Err(fault) => {
            note_fault(attempt, &mut tended.state, &fault);
            say_fault(attempt, &tended.state, &fault, number);
            false
        }
    }
}

fn note_fault(attempt: &Attempt<'_>, state: &mut NameState, fault: &AttemptFault) {
    let problem = match &fault.problem {
        Some(problem) => format!("{}: {problem}: {}", fault.step, fault.detail),
        None => format!("{}: {}", fault.step, fault.detail),
    };
    let now = unix_seconds(SystemTime::now());
    state.fail(now, problem, fault.retry_after);
    if fault.is_of_unknown_account() {
        state.order = None;
        if let Err(error) = attempt.store.forget_account() {
            tracing::error!(profile = attempt.profile, %error, "the account cannot be forgotten");
        }
    }
}

fn say_fault(attempt: &Attempt<'_>, state: &NameState, fault: &AttemptFault, number: u32) {
    tracing::error!(
        profile = attempt.profile,
        name = attempt.name,
        step = fault.step,
        attempt = number,
        challenge = "http-01",
        problem = fault.problem.as_deref().unwrap_or("none"),
        detail = fault.detail,
        next = show_moment(state.next_attempt),
        hint = fault.hint().unwrap_or_default(),
        "acme"
    );
}

async fn ask_window(attempt: &Attempt<'_>, tended: &mut TendedName) {
    let id = tended.certificate.as_ref().and_then(Identity::renewal_id);
    let answer = match id {
        Some(id) => attempt.window(id).await,
        None => None,
    };
    let now = unix_seconds(SystemTime::now());
    let (window, holds) = answer.unzip();
    tended
        .state
        .note_window(window, now, holds, fastrand::f64());
}

/// Whether a step changes what is stored of a name.
fn step_changes(step: NextStep) -> bool {
    match step {
        NextStep::Order | NextStep::AskWindow => true,
        NextStep::Wait(_) => false,
    }
}

/// Stores the state of a name; `false`: it cannot be stored.
fn keep(attempt: &Attempt<'_>, state: &NameState) -> bool {
    let kept = attempt.store.keep_state(attempt.name, state);
    if let Err(error) = &kept {
        let (profile, name) = (attempt.profile, attempt.name);
        tracing::error!(profile, name, %error, "the state of a name cannot be stored");
    }
    kept.is_ok()
}

/// Serves the certificates that are stored now.
fn put_in_force(shared: &FrontState, profile: &str, live: &LiveProfile) {
    let renewal = live.reissue();
    for warning in renewal.warnings {
        tracing::error!(profile, "{}; {}", warning.message, warning.hint);
    }
    if renewal.changes.added.is_empty() {
        return;
    }
    shared.counters.certificates_renewed(true);
    tracing::info!(profile, "certificates were replaced; {}", renewal.changes);
}

fn issued_name(profile: &str, name: &str) -> IssuedName {
    IssuedName {
        profile: profile.to_owned(),
        name: name.to_owned(),
    }
}

/// The stored certificate of a name; `None`: there is none that can be used.
fn stored_certificate(store: &Store, name: &str) -> Option<Identity> {
    store.identity(name, SystemTime::now()).ok().flatten()
}

impl TendedName {
    fn read(store: &Store, name: &str) -> Self {
        let state = store.state(name).unwrap_or_else(|error| {
            tracing::error!(name, %error, "what is stored of a name cannot be read");
            NameState::default()
        });
        Self {
            state,
            certificate: stored_certificate(store, name),
        }
    }

    fn validity(&self) -> Option<Validity> {
        let facts = &self.certificate.as_ref()?.facts;
        Some(Validity {
            not_before: unix_seconds(facts.not_before),
            not_after: unix_seconds(facts.not_after),
        })
    }

    /// When the next attempt begins, in seconds of the Unix epoch.
    fn next_attempt(&self) -> u64 {
        let renewal = self
            .validity()
            .map_or(0, |validity| self.state.renewal(validity));
        renewal.max(self.state.next_attempt)
    }
}

/// How often the thread looks whether anything is due.
const PERIOD: Duration = Duration::from_secs(1);

/// How often an attempt goes on after the authority refused nonces.
const NONCES_MAX: usize = 10;

/// The pause between two tries to take a lock that another process has, and between two looks at its certificates.
const LOCK_PAUSE: Duration = Duration::from_secs(5);

/// The pause after a directory could not be used.
const FAULT_PAUSE: Duration = Duration::from_secs(60);
