//! Certificates that an authority issues to the front by ACME (RFC 8555): their files, when they are due, and one
//! attempt to get one. The thread that makes the attempts is `running`'s.

pub(crate) mod challenges;
pub(crate) mod dns_hook;
pub(crate) mod memory;
pub(crate) mod online;
pub(crate) mod order;
pub(crate) mod owner;
pub(crate) mod schedule;
pub(crate) mod store;

mod client;
mod disk;
#[cfg(test)]
mod faulty_authority;
mod preflight;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use catamaran_tls::{IssuedCertificates, Part};
use memory::MemoryFiles;
use store::{Store, StoredFault};

use super::Fault;
use crate::config::AcmeConfig;
use crate::lock::lock;

/// What is stored for the names of a profile.
#[derive(Debug, Default)]
pub(super) struct StoreContents {
    /// The certificates, and the names for which none can be used.
    pub(super) issued: IssuedCertificates,
    /// A warning for each stored certificate that cannot be used.
    pub(super) warnings: Vec<Fault>,
    /// How many of them cannot be read now, and may be good.
    pub(super) unread: usize,
}

/// Reads what is stored for the names of a profile.
pub(super) fn issued(
    config: &AcmeConfig,
    memory: &Arc<MemoryFiles>,
    now: SystemTime,
) -> StoreContents {
    let store = Store::new(config, memory);
    let mut contents = StoreContents::default();
    for name in &config.names {
        let mut served = contents.issued.identities.iter();
        if config.together && served.any(|it| it.facts.names.contains(name)) {
            continue;
        }
        // Of names together, those that their certificate lacks may have one from before.
        let fault = match store.identity(name, now) {
            Ok(Some(identity)) => {
                contents.issued.identities.push(identity);
                continue;
            }
            Ok(None) => None,
            Err(fault) => Some(fault),
        };
        contents.issued.awaited.push(name.clone());
        let Some(fault) = fault else {
            continue;
        };
        let hint = match fault {
            StoredFault::Unread(_) => {
                contents.unread += 1;
                "the front reads it again in a minute; a certificate that is served stays in use"
            }
            StoredFault::Unusable(_) => "the front orders another one",
        };
        contents.warnings.push(Fault {
            part: Part::Profile,
            message: format!("the stored certificate of {name} cannot be used: {fault}"),
            hint: hint.to_owned(),
        });
    }
    contents
}

/// What administrators see of the names that get certificates by ACME.
#[derive(Debug, Default)]
pub(crate) struct IssuanceFigures(Mutex<BTreeMap<IssuedName, NameFigures>>);

/// A name of a TLS profile.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IssuedName {
    pub(crate) profile: String,
    pub(crate) name: String,
}

/// The figures of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NameFigures {
    /// Attempts of this process that led to a certificate.
    pub(crate) issued: u64,
    /// Attempts of this process that failed.
    pub(crate) failed: u64,
    /// Attempts that failed in a row, those of earlier processes too.
    pub(crate) failures: u32,
    /// When the next attempt begins, in seconds of the Unix epoch.
    pub(crate) next_attempt: u64,
    /// Why the last attempt failed; `None`: it did not.
    pub(crate) problem: Option<String>,
    /// Whether another process orders for this name.
    pub(crate) is_followed: bool,
    /// When an administrator last asked for a new certificate, in seconds of the Unix epoch; 0: never.
    pub(crate) asked_at: u64,
    /// Whether the attempt for which the administrator asked has not begun yet.
    pub(crate) is_asked: bool,
    /// Whether what is stored of the name, or its lock, cannot be used now.
    pub(crate) is_unready: bool,
    /// Whether the certificate or the state of the name is in memory alone.
    pub(crate) is_unstored: bool,
}

/// Why a new certificate is not ordered for an administrator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RenewalRefusal {
    /// No name of a profile is called so.
    Unknown,
    /// Another process orders for this name.
    Elsewhere,
    /// What is stored of this name, or its lock, cannot be used now.
    Unready,
    /// One was asked for lately; another may be after this time.
    TooSoon(Duration),
}

impl IssuanceFigures {
    /// Changes the figures of a name.
    pub(crate) fn note(&self, name: &IssuedName, change: impl FnOnce(&mut NameFigures)) {
        change(lock(&self.0).entry(name.clone()).or_default());
    }

    /// Notes why nothing is ordered for a name before the moment `next`: what is stored of it, or its lock, cannot be used.
    pub(crate) fn note_unready(&self, name: &IssuedName, problem: &str, next: u64) {
        self.note(name, |figures| {
            figures.problem = Some(problem.to_owned());
            figures.next_attempt = next;
            figures.is_followed = false;
            figures.is_unready = true;
        });
    }

    /// Has the thread that orders get a new certificate for a name, even if it waits after a failure.
    ///
    /// # Errors
    /// Nothing is ordered.
    pub(crate) fn ask(&self, name: &str, now: u64) -> Result<(), RenewalRefusal> {
        let mut all = lock(&self.0);
        let of_name = all.iter_mut().find(|(issued, _)| issued.name == name);
        let (_, figures) = of_name.ok_or(RenewalRefusal::Unknown)?;
        if figures.is_followed {
            return Err(RenewalRefusal::Elsewhere);
        }
        // It is not known when one was asked for last.
        if figures.is_unready {
            return Err(RenewalRefusal::Unready);
        }
        let left = (figures.asked_at + REQUEST_PAUSE).saturating_sub(now);
        // One that is further ahead than the pause was noted under another clock.
        if (1..=REQUEST_PAUSE).contains(&left) {
            return Err(RenewalRefusal::TooSoon(Duration::from_secs(left)));
        }
        figures.asked_at = now;
        figures.is_asked = true;
        Ok(())
    }

    /// Takes an administrator's request for a new certificate; `false`: there is none.
    pub(crate) fn take_request(&self, name: &IssuedName) -> bool {
        let mut all = lock(&self.0);
        let figures = all.get_mut(name);
        figures.is_some_and(|it| std::mem::take(&mut it.is_asked))
    }

    /// Forgets the names that are not configured any more.
    pub(crate) fn retain(&self, is_configured: impl Fn(&IssuedName) -> bool) {
        lock(&self.0).retain(|name, _| is_configured(name));
    }

    /// The figures of all names, in the order of profiles and names.
    pub(crate) fn all(&self) -> Vec<(IssuedName, NameFigures)> {
        let figures = lock(&self.0);
        figures
            .iter()
            .map(|(name, it)| (name.clone(), it.clone()))
            .collect()
    }
}

/// Settings of one name, `a.test`.
#[cfg(test)]
pub(crate) fn test_config(state_dir: &std::path::Path) -> AcmeConfig {
    AcmeConfig {
        names: vec!["a.test".to_owned()],
        together: false,
        directory: crate::config::LETS_ENCRYPT.to_owned(),
        contact: Vec::new(),
        state_dir: state_dir.to_owned(),
        challenges: vec![crate::config::AcmeChallenge::Http01],
        dns_hook: Vec::new(),
        preflight: false,
        key_type: crate::config::IssuedKeyType::P256,
        profile: None,
        external_account: None,
        roots: catamaran_tls::Roots::none(),
    }
}

/// A certificate with its key, as the store has it.
#[cfg(test)]
pub(crate) fn pem_pair(pair: &catamaran_testkit::tls::Pair) -> memory::PemPair {
    memory::PemPair {
        chain: pair.chain.clone(),
        key: pair.key.clone(),
    }
}

/// The seconds between two requests of administrators for a name. Let's Encrypt allows five failures an hour, of which the
/// schedule makes three.
const REQUEST_PAUSE: u64 = 60 * 60;

#[cfg(test)]
mod tests {
    use std::fs;

    use catamaran_testkit::tls::Pair;

    use super::*;
    use crate::config::TlsConfig;
    use crate::tls::{Profiles, in_place_of, profiles};

    #[test]
    fn an_administrator_gets_one_certificate_an_hour() {
        const NOW: u64 = 1_900_000_000;
        let name = IssuedName {
            profile: "www".to_owned(),
            name: "a.test".to_owned(),
        };
        let figures = IssuanceFigures::default();
        assert_eq!(figures.ask("a.test", NOW), Err(RenewalRefusal::Unknown));
        figures.note(&name, |_| {});
        assert!(!figures.take_request(&name));
        assert_eq!(figures.ask("a.test", NOW), Ok(()));
        assert!(figures.take_request(&name) && !figures.take_request(&name));
        let left = |seconds| Err(RenewalRefusal::TooSoon(Duration::from_secs(seconds)));
        assert_eq!(figures.ask("a.test", NOW), left(3600));
        assert_eq!(figures.ask("a.test", NOW + 3599), left(1));
        assert_eq!(
            figures.ask("a.test", NOW - 1),
            Ok(()),
            "the clock was set back"
        );
        assert_eq!(figures.ask("a.test", NOW + 3600), Ok(()));
        figures.note_unready(&name, "its state cannot be read", NOW);
        let ask_later = || figures.ask("a.test", NOW + 7200);
        assert_eq!(ask_later(), Err(RenewalRefusal::Unready));
        figures.note(&name, |it| it.is_followed = true);
        assert_eq!(ask_later(), Err(RenewalRefusal::Elsewhere));
    }

    #[test]
    fn names_together_are_served_by_what_they_have() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = test_config(folder.path());
        config.names = ["a.test", "b.test", "c.test"].map(str::to_owned).to_vec();
        let memory = Arc::default();
        let store = Store::new(&config, &memory);
        store.open().unwrap();
        let install = |folder: &str, names: &[&str]| {
            assert!(store.install(folder, &pem_pair(&Pair::self_signed(names))));
        };
        let served = |config: &AcmeConfig| {
            let issued = issued(config, &memory, SystemTime::now()).issued;
            let names = issued.identities.iter().map(|it| it.facts.names.join(" "));
            (names.collect::<Vec<_>>(), issued.awaited)
        };
        let texts = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        install("a.test", &["a.test"]);
        install("b.test", &["b.test"]);
        let each = (texts(&["a.test", "b.test"]), texts(&["c.test"]));
        assert_eq!(served(&config), each);
        config.together = true;
        assert_eq!(served(&config), each, "until they have one together");
        install("a.test", &["a.test", "b.test", "c.test"]);
        assert_eq!(
            served(&config),
            (texts(&["a.test b.test c.test"]), Vec::new())
        );
        let firsts: Vec<&String> = config.first_names().collect();
        assert_eq!(firsts, ["a.test"]);
        assert_eq!(config.first_name_of("c.test"), Some(&"a.test".to_owned()));
        assert_eq!(config.first_name_of("d.test"), None);
        config.together = false;
        assert_eq!(config.first_names().count(), 3);
    }

    #[test]
    fn a_certificate_is_served_on_while_its_files_cannot_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let acme = test_config(folder.path());
        let memory = Arc::default();
        let store = Store::new(&acme, &memory);
        store.open().unwrap();
        let pair = pem_pair(&Pair::self_signed(&["a.test"]));
        assert!(store.install("a.test", &pair));
        let config = TlsConfig {
            acme: Some(acme),
            ..TlsConfig::new("www", Vec::new())
        };
        let built =
            || profiles(std::slice::from_ref(&config), &[], |_| None, None, &memory).unwrap();
        let served = built();
        let digests = |profiles: &Profiles| {
            let current = profiles["www"].current();
            let digests = current.certificates().iter().map(|it| it.sha256.clone());
            (
                digests.collect::<Vec<_>>(),
                current.issued().awaited.clone(),
            )
        };
        let before = digests(&served);
        assert!(before.0.len() == 1 && before.1.is_empty(), "{before:?}");

        let key = store
            .identity("a.test", SystemTime::now())
            .unwrap()
            .expect("what was installed")
            .facts
            .key_file;
        let elsewhere = folder.path().join("key.pem");
        fs::rename(&key, &elsewhere).unwrap();
        // Without the file, and with one that even root cannot read.
        for unread in [0, 1] {
            if unread == 1 {
                fs::create_dir(&key).unwrap();
            }
            let reissue = served["www"].reissue();
            assert_eq!(reissue.unread, unread);
            assert_eq!(reissue.renewal.warnings.len(), 1);
            assert_eq!(digests(&served), before, "issued anew");
            served["www"].renew().unwrap();
            assert_eq!(digests(&served), before, "changed files");
            let next = built();
            assert_eq!(digests(&next).1, ["a.test"], "a start has none");
            let reloaded = in_place_of(&served, next).unwrap();
            assert_eq!(digests(&reloaded), before, "a reload");
        }
        fs::remove_dir(&key).unwrap();
        fs::rename(&elsewhere, &key).unwrap();
        assert_eq!(served["www"].reissue().unread, 0);
        assert_eq!(digests(&served), before);
    }
}
