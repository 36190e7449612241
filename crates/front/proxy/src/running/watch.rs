//! A thread that renews TLS profiles: their certificates when files change, and their ticket keys in
//! time.
//!
//! Changed files are read when they have stayed the same for one more period, because they are
//! rarely replaced all at once.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use std::{io, thread};

use tokio::time::Instant;

use crate::tls::{LiveProfile, Stamp, stamps};
use crate::worker::FrontState;

/// The thread's record of one TLS profile.
#[derive(Debug)]
struct WatchedProfile {
    profile: Weak<LiveProfile>,
    /// The stamps of the profile's files from just before they were read.
    built: Vec<Stamp>,
    /// The stamps of the files at the last look, if they differed from `built`.
    changed: Option<Vec<Stamp>>,
    next_look: Instant,
    next_rotation: Instant,
}

/// Starts the thread, which ends when the front drains.
///
/// # Errors
/// The thread cannot be started.
pub(crate) fn start(shared: &Arc<FrontState>) -> io::Result<()> {
    // Weak, so that the thread does not keep the front's state when everything else has ended.
    let weak = Arc::downgrade(shared);
    let run = move || {
        let mut watched = HashMap::new();
        while let Some(shared) = weak.upgrade() {
            if shared.drain.has_begun() {
                return;
            }
            renew_due(&shared, &mut watched, Instant::now());
            drop(shared);
            thread::park_timeout(PERIOD);
        }
    };
    thread::Builder::new()
        .name("tls-watch".to_owned())
        .spawn(run)?;
    Ok(())
}

/// Rotates ticket keys and renews certificates of all profiles for which that is due.
fn renew_due(shared: &FrontState, watched: &mut HashMap<String, WatchedProfile>, now: Instant) {
    let profiles = shared.profiles.load_full();
    watched.retain(|name, _| profiles.contains_key(name));
    for (name, profile) in profiles.iter() {
        let known = watched
            .entry(name.clone())
            .or_insert_with(|| WatchedProfile::new(profile, now));
        known.follow(profile);
        if now >= known.next_rotation {
            known.next_rotation = now + profile.config.settings.ticket_rotation;
            profile.rotate();
        }
        if let Some(period) = profile.config.certificate_watch
            && now >= known.next_look
        {
            known.next_look = now + period;
            if known.has_settled(stamps(&profile.config)) {
                renew(shared, name, profile);
            }
        }
    }
}

impl WatchedProfile {
    fn new(profile: &Arc<LiveProfile>, now: Instant) -> Self {
        Self {
            profile: Arc::downgrade(profile),
            built: profile.built_of.clone(),
            changed: None,
            next_look: now,
            next_rotation: now + profile.config.settings.ticket_rotation,
        }
    }

    /// Watches the files of the profile that a reload has built anew, if one has. It keeps the ticket keys, so the time
    /// of their rotation stays.
    fn follow(&mut self, profile: &Arc<LiveProfile>) {
        if !std::ptr::eq(self.profile.as_ptr(), Arc::as_ptr(profile)) {
            self.built.clone_from(&profile.built_of);
            self.changed = None;
            self.profile = Arc::downgrade(profile);
        }
    }

    /// Whether the files changed and then stayed the same for a period; `true` once for each change.
    fn has_settled(&mut self, present: Vec<Stamp>) -> bool {
        if present == self.built {
            self.changed = None;
            return false;
        }
        if self.changed.as_ref() != Some(&present) {
            // They changed since the last look, perhaps not all of them yet.
            self.changed = Some(present);
            return false;
        }
        self.changed = None;
        self.built = present;
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

/// How often the thread checks whether anything is due.
const PERIOD: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use catamaran_testkit::tls::Pair;

    use super::*;
    use crate::config::{CertificateConfig, TlsConfig};
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
        let built = profiles(&[config], &[], |_| None, None).unwrap();
        write(Pair::self_signed(&["a.test", "of-another-size.test"]));

        let mut watched = WatchedProfile::new(&built["www"], Instant::now());

        let now = stamps(&built["www"].config);
        assert!(!watched.has_settled(now.clone()), "not yet");
        assert!(watched.has_settled(now));
    }

    #[test]
    fn a_change_counts_when_it_has_lasted_for_a_period() {
        let stamp = |inode| vec![Some((1, inode, 3, 4, 5))];
        let mut watched = WatchedProfile {
            profile: Weak::new(),
            built: stamp(1),
            changed: None,
            next_look: Instant::now(),
            next_rotation: Instant::now(),
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
