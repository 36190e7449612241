//! The attempts of the thread `acme`, each of which ends when the front drains or another machine takes over.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use catamaran_tls::{Identity, RenewalId};
use tokio::time::sleep;

use super::tended_name::{TendedName, validity};
use crate::config::AcmeChallenge;
use crate::date::{show_moment, unix_seconds};
use crate::listener::drain::Drain;
use crate::tls::acme::order::{Attempt, AttemptFault};
use crate::tls::acme::owner::OwnerClaim;
use crate::tls::acme::schedule::NameState;
use crate::tls::acme::store::StoreLock;

/// The locks of names that this process has.
#[derive(Default)]
pub(super) struct NameLocks {
    pub(super) by_file: HashMap<PathBuf, StoreLock>,
    /// Whether one was lost that this thread does not know of yet.
    pub(super) has_lost: bool,
}

impl NameLocks {
    pub(super) fn has(&self, file: &Path) -> bool {
        self.by_file.contains_key(file)
    }

    /// By what an attempt learns that the lock of its name is lost; `None`: this process does not have it.
    pub(super) fn claim(&self, file: &Path) -> Option<OwnerClaim> {
        self.by_file.get(file).map(StoreLock::claim)
    }

    /// Whether this process has a lock, as its file says now. One that another machine has taken over is given up.
    pub(super) fn keeps(&mut self, file: &Path) -> bool {
        let Some(lock) = self.by_file.get(file) else {
            return false;
        };
        let is_kept = lock.claim().holds();
        if !is_kept {
            self.by_file.remove(file);
            self.has_lost = true;
        }
        is_kept
    }

    /// Tells other machines that this process goes on, and gives up what they have taken over.
    pub(super) fn renew(&mut self) {
        let held = self.by_file.len();
        self.by_file.retain(|_, lock| lock.renew());
        self.has_lost |= self.by_file.len() < held;
    }
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptEnd {
    /// With a certificate, which is stored unless the disk does not take it.
    Issued,
    Failed,
    /// The front drains, or another machine has taken over: the process that orders next goes on with the order.
    Interrupted,
}

/// Makes one attempt, which ends when the front drains, or when its lock among `locks` is lost.
pub(super) async fn order(
    attempt: &Attempt<'_>,
    tended: &mut TendedName,
    drain: &Drain,
    locks: &mut NameLocks,
) -> AttemptEnd {
    let now = unix_seconds(SystemTime::now());
    tended.state.begin(now, fastrand::f64());
    // If this cannot be stored, a process that is killed would try again at once.
    if !tended.keep(attempt.store, attempt.name) && !tended.may_be_unstored {
        tended.state.problem = Some("the state of the name cannot be stored".to_owned());
        return AttemptEnd::Failed;
    }
    let number = tended.state.failures;
    let replaces = tended.certificate.as_ref().and_then(Identity::renewal_id);
    let left = async {
        tokio::select! {
            _ = drain.begun() => {}
            () = lost(attempt, locks) => {}
        }
        attempt.store.leave_answers();
    };
    let result = tokio::select! {
        biased;
        () = left => None,
        result = run(attempt, &mut tended.state, replaces) => Some(result),
    };
    // What another machine has taken over is its own, however the attempt ended here.
    let result = result.filter(|_| locks.keeps(&attempt.store.lock_file(attempt.name)));
    let now = unix_seconds(SystemTime::now());
    match result {
        None => {
            tended.state.interrupt(now);
            AttemptEnd::Interrupted
        }
        Some(Ok(certificate)) => {
            tended.state.succeed(now, validity(&certificate));
            tended.certificate = Some(certificate);
            AttemptEnd::Issued
        }
        Some(Err(fault)) => {
            note_fault(attempt, &mut tended.state, &fault);
            say_fault(attempt, &tended.state, &fault, number);
            AttemptEnd::Failed
        }
    }
}

/// Renews all locks until that of the attempt is lost.
async fn lost(attempt: &Attempt<'_>, locks: &mut NameLocks) {
    let own = attempt.store.lock_file(attempt.name);
    while locks.has(&own) {
        sleep(RENEWAL_LOOK).await;
        locks.renew();
    }
}

/// Gets a certificate, and begins again if the authority refuses nonces.
async fn run(
    attempt: &Attempt<'_>,
    state: &mut NameState,
    replaces: Option<RenewalId>,
) -> Result<Identity, AttemptFault> {
    let mut result = attempt.run(state, replaces.clone()).await;
    // An attempt goes on with what the one before has reached.
    for _ in 0..NONCES_MAX {
        if !result.as_ref().is_err_and(AttemptFault::is_of_nonce) {
            break;
        }
        result = attempt.run(state, replaces.clone()).await;
    }
    result
}

fn note_fault(attempt: &Attempt<'_>, state: &mut NameState, fault: &AttemptFault) {
    let problem = match &fault.problem {
        Some(problem) => format!("{}: {problem}: {}", fault.step, fault.detail),
        None => format!("{}: {}", fault.step, fault.detail),
    };
    let now = unix_seconds(SystemTime::now());
    state.fail(now, problem, fault.retry_after);
    if fault.ends_order(state.failures) {
        state.order = None;
    }
    if fault.is_of_unknown_account() {
        attempt.forget_account();
    }
}

fn say_fault(attempt: &Attempt<'_>, state: &NameState, fault: &AttemptFault, number: u32) {
    let challenge = attempt.challenge(state);
    tracing::error!(
        profile = attempt.profile,
        name = attempt.name,
        step = fault.step,
        attempt = number,
        challenge = challenge.map_or("none", AcmeChallenge::name),
        problem = fault.problem.as_deref().unwrap_or("none"),
        detail = fault.detail,
        next = show_moment(state.next_attempt),
        hint = fault.hint(challenge).unwrap_or_default(),
        "acme"
    );
}

/// Asks when the certificate is to be renewed, unless the front drains.
pub(super) async fn ask_window(attempt: &Attempt<'_>, tended: &mut TendedName, drain: &Drain) {
    let id = tended.certificate.as_ref().and_then(Identity::renewal_id);
    let asked = async {
        match id {
            Some(id) => attempt.window(id).await,
            None => None,
        }
    };
    let answer = tokio::select! {
        biased;
        _ = drain.begun() => return,
        answer = asked => answer,
    };
    let now = unix_seconds(SystemTime::now());
    let (window, holds) = answer.unzip();
    tended
        .state
        .note_window(window, now, holds, fastrand::f64());
}

/// How often an attempt goes on after the authority refused nonces.
const NONCES_MAX: usize = 10;

/// How often an attempt looks whether locks are to be renewed.
const RENEWAL_LOOK: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::TcpListener;
    use std::sync::Arc;

    use tokio::runtime;

    use super::*;
    use crate::listener::drain::Ending;
    use crate::tls::acme::owner::Rivals;
    use crate::tls::acme::store::Store;
    use crate::tls::acme::test_config;

    fn names() -> [String; 1] {
        ["a.test".to_owned()]
    }

    /// The authority accepts the connection and says nothing, for which the attempt would wait ten seconds.
    #[test]
    fn an_attempt_is_left_at_once_when_the_front_drains() {
        let folder = tempfile::tempdir().unwrap();
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut config = test_config(folder.path());
        config.directory = format!("https://{}/directory", silent.local_addr().unwrap());
        let store = Store::new(&config, &Arc::default());
        store.open().unwrap();
        let mut tended = TendedName::read(&store, &names()).unwrap();
        let drain = Drain::default();
        let runtime = runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let attempt = Attempt::new(&config, &store, "www", &config.names);
        let lock = store.lock("a.test", &mut Rivals::default()).unwrap();
        let lock = lock.expect("nobody has it");
        let mut locks = NameLocks::default();
        locks.by_file.insert(store.lock_file("a.test"), lock);
        let (end, connection) = runtime.block_on(async {
            let accepted = tokio::task::spawn_blocking(move || silent.accept());
            let begin_drain = async {
                let connection = accepted.await;
                drain.begin(Ending::Closed);
                connection
            };
            tokio::join!(
                order(&attempt, &mut tended, &drain, &mut locks),
                begin_drain
            )
        });
        assert_eq!(end, AttemptEnd::Interrupted);
        // It waited for nothing: the authority's side is still open, and the attempt does not count.
        assert!(connection.is_ok() && tended.state.failures == 0);
        runtime.shutdown_background();
    }

    #[test]
    fn a_lock_that_another_machine_has_taken_over_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(&test_config(folder.path()), &Arc::default());
        store.open().unwrap();
        let lock = store.lock("a.test", &mut Rivals::default()).unwrap();
        let (file, owner_file) = (store.lock_file("a.test"), store.owner_file("a.test"));
        let mut locks = NameLocks::default();
        assert!(!locks.keeps(&file) && !locks.has_lost);
        locks
            .by_file
            .insert(file.clone(), lock.expect("nobody has it"));
        assert!(locks.keeps(&file) && !locks.has_lost);
        fs::write(&owner_file, r#"{"claim": "another"}"#).unwrap();
        assert!(!locks.keeps(&file) && !locks.has(&file) && locks.has_lost);
        assert!(owner_file.exists(), "it is the other one's");
    }

    #[test]
    fn without_a_place_for_the_state_nothing_is_ordered() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = test_config(folder.path());
        config.directory = "https://127.0.0.1:1/directory".to_owned();
        let store = Store::new(&config, &Arc::default());
        store.open().unwrap();
        let mut tended = TendedName::read(&store, &names()).unwrap();
        // A file in place of the name's directory.
        let lock_file = store.lock_file("a.test");
        fs::write(lock_file.parent().expect("a directory"), "").unwrap();
        let attempt = Attempt::new(&config, &store, "www", &config.names);
        let runtime = runtime::Builder::new_current_thread().build().unwrap();
        let drain = Drain::default();
        let end = runtime.block_on(order(
            &attempt,
            &mut tended,
            &drain,
            &mut NameLocks::default(),
        ));
        assert_eq!(end, AttemptEnd::Failed);
        let problem = "the state of the name cannot be stored";
        assert_eq!(tended.state.problem.as_deref(), Some(problem));
    }
}
