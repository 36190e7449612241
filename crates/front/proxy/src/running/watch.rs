//! A thread that renews TLS profiles and users of sign-ons when their files change, and ticket keys in time.
//!
//! Changed files are read when they have stayed the same for one more period, because they are
//! rarely replaced all at once.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use std::{io, thread};

use tokio::time::Instant;

use crate::local_file::Stamp;
use crate::tls::{self, LiveProfile};
use crate::users::{self, LiveUsers};
use crate::worker::FrontState;

/// The thread's records of what it renews, by name.
#[derive(Debug, Default)]
struct Watch {
    profiles: HashMap<String, WatchedProfile>,
    users: HashMap<String, WatchedFiles<LiveUsers>>,
}

/// The thread's record of one TLS profile.
#[derive(Debug)]
struct WatchedProfile {
    files: WatchedFiles<LiveProfile>,
    next_rotation: Instant,
}

/// The thread's record of the files of one profile, or of the users of one sign-on.
#[derive(Debug)]
struct WatchedFiles<T> {
    owner: Weak<T>,
    /// The stamps of the files from just before they were read.
    read: Vec<Stamp>,
    /// The stamps of the files at the last look, if they differed from `read`.
    changed: Option<Vec<Stamp>>,
    next_look: Instant,
}

/// Starts the thread, which ends when the front drains.
///
/// # Errors
/// The thread cannot be started.
pub(crate) fn start(shared: &Arc<FrontState>) -> io::Result<()> {
    // Weak, so that the thread does not keep the front's state when everything else has ended.
    let weak = Arc::downgrade(shared);
    let run = move || {
        let mut watch = Watch::default();
        while let Some(shared) = weak.upgrade() {
            if shared.drain.has_begun() {
                return;
            }
            let now = Instant::now();
            renew_profiles(&shared, &mut watch.profiles, now);
            renew_users(&shared, &mut watch.users, now);
            drop(shared);
            thread::park_timeout(PERIOD);
        }
    };
    thread::Builder::new()
        .name("file-watch".to_owned())
        .spawn(run)?;
    Ok(())
}

/// Rotates ticket keys and renews certificates of all profiles for which that is due.
fn renew_profiles(
    shared: &FrontState,
    watched: &mut HashMap<String, WatchedProfile>,
    now: Instant,
) {
    let profiles = shared.profiles.load_full();
    watched.retain(|name, _| profiles.contains_key(name));
    for (name, profile) in profiles.iter() {
        let rotation = profile.config.settings.ticket_rotation;
        let known = watched
            .entry(name.clone())
            .or_insert_with(|| WatchedProfile {
                files: WatchedFiles::new(profile, &profile.built_of, now),
                next_rotation: now + rotation,
            });
        // A reload keeps the ticket keys, so the time of their rotation stays.
        known.files.follow(profile, &profile.built_of);
        if now >= known.next_rotation {
            known.next_rotation = now + rotation;
            profile.rotate();
        }
        if let Some(period) = profile.config.certificate_watch
            && known.files.is_due(now, period)
            && known.files.has_settled(tls::stamps(&profile.config))
        {
            renew(shared, name, profile);
        }
    }
}

/// Reads the users of all sign-ons whose files have changed.
fn renew_users(
    shared: &FrontState,
    watched: &mut HashMap<String, WatchedFiles<LiveUsers>>,
    now: Instant,
) {
    let site = shared.site.load_full();
    let all = || site.auths.iter().flat_map(|auths| auths.users());
    watched.retain(|name, _| all().any(|users| users.name == *name));
    for users in all() {
        let known = watched
            .entry(users.name.clone())
            .or_insert_with(|| WatchedFiles::new(users, &users.read_of, now));
        known.follow(users, &users.read_of);
        if known.is_due(now, USERS_PERIOD) && known.has_settled(users::stamps(&users.config)) {
            read_again(users);
        }
    }
}

impl<T> WatchedFiles<T> {
    /// `read` has the stamps of the files from before they were read.
    fn new(owner: &Arc<T>, read: &[Stamp], now: Instant) -> Self {
        Self {
            owner: Arc::downgrade(owner),
            read: read.to_vec(),
            changed: None,
            next_look: now,
        }
    }

    /// Watches the files that a reload has read anew, if one has.
    fn follow(&mut self, owner: &Arc<T>, read: &[Stamp]) {
        if !std::ptr::eq(self.owner.as_ptr(), Arc::as_ptr(owner)) {
            self.read = read.to_vec();
            self.changed = None;
            self.owner = Arc::downgrade(owner);
        }
    }

    /// Whether it is time to look at the files, which is so once in a period.
    fn is_due(&mut self, now: Instant, period: Duration) -> bool {
        let is_due = now >= self.next_look;
        if is_due {
            self.next_look = now + period;
        }
        is_due
    }

    /// Whether the files changed and then stayed the same for a period; `true` once for each change.
    fn has_settled(&mut self, present: Vec<Stamp>) -> bool {
        if present == self.read {
            self.changed = None;
            return false;
        }
        if self.changed.as_ref() != Some(&present) {
            // They changed since the last look, perhaps not all of them yet.
            self.changed = Some(present);
            return false;
        }
        self.changed = None;
        self.read = present;
        true
    }
}

/// Reads the files of a profile again; counts and logs whether the new ones are used.
fn renew(shared: &FrontState, name: &str, profile: &LiveProfile) {
    match profile.renew() {
        Ok(renewal) => {
            shared.counters.certificates_renewed(true);
            let changes = &renewal.changes;
            if changes.are_doubtful() {
                tracing::warn!(profile = name, "certificates were replaced; {changes}");
            } else {
                tracing::info!(profile = name, "certificates were replaced; {changes}");
            }
            for warning in renewal.warnings {
                tracing::warn!(profile = name, "{}; {}", warning.message, warning.hint);
            }
        }
        Err(faults) => {
            shared.counters.certificates_renewed(false);
            for fault in faults {
                tracing::error!(
                    profile = name,
                    "changed files cannot be used, the previous ones stay in force: {}; {}",
                    fault.message,
                    fault.hint
                );
            }
        }
    }
}

/// Reads the files of users of a sign-on again, and logs whether the new ones are used.
fn read_again(users: &LiveUsers) {
    let name = &users.name;
    match users.renew() {
        Ok(warnings) => {
            tracing::info!(auth = name, "the users were read again");
            for warning in warnings {
                tracing::warn!(auth = name, "{}; {}", warning.message, warning.hint);
            }
        }
        Err(error) => {
            for fault in error.faults {
                tracing::error!(
                    auth = name,
                    "changed files cannot be used, the previous users stay in force: {}; {}",
                    fault.message,
                    fault.hint
                );
            }
        }
    }
}

/// How often the thread looks at the files of users.
const USERS_PERIOD: Duration = Duration::from_secs(1);

/// How often the thread checks whether anything is due.
const PERIOD: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use catamaran_testkit::tls::Pair;

    use super::*;
    use crate::config::{CertificateConfig, TlsConfig};
    use crate::local_file::FileVersion;
    use crate::tls::profiles;

    #[test]
    fn files_that_change_before_the_first_look_have_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name| folder.path().join(name);
        let write = |pair: Pair| {
            std::fs::write(path("chain.pem"), pair.chain).unwrap();
            std::fs::write(path("key.pem"), pair.key).unwrap();
        };
        write(Pair::self_signed(&["a.test"]));
        let certificate = CertificateConfig {
            chain: path("chain.pem"),
            key: path("key.pem"),
            default: true,
        };
        let config = TlsConfig::new("www", vec![certificate]);
        let built = profiles(&[config], &[], |_| None, None, &Arc::default()).unwrap();
        write(Pair::self_signed(&["a.test", "of-another-size.test"]));

        let profile = &built["www"];
        let mut watched = WatchedFiles::new(profile, &profile.built_of, Instant::now());

        let now = tls::stamps(&profile.config);
        assert!(!watched.has_settled(now.clone()), "not yet");
        assert!(watched.has_settled(now));
    }

    #[test]
    fn a_change_counts_when_it_has_lasted_for_a_period() {
        let stamp = |inode| {
            vec![Some(FileVersion {
                device: 1,
                inode,
                size: 3,
                modified: [4, 5],
                changed: [4, 5],
            })]
        };
        let mut watched = WatchedFiles::<LiveProfile> {
            owner: Weak::new(),
            read: stamp(1),
            changed: None,
            next_look: Instant::now(),
        };
        for (now, settled) in [
            (stamp(1), false),
            (stamp(2), false),
            (vec![None], false),
            (stamp(3), false),
            (stamp(3), true),
            (stamp(3), false),
            (stamp(4), false),
            (stamp(3), false),
            (stamp(4), false),
            (stamp(4), true),
        ] {
            assert_eq!(watched.has_settled(now.clone()), settled, "{now:?}");
        }
    }
}
