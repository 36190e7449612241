//! Certificates that an authority issues to the front by ACME (RFC 8555): their files, when they are due, and one
//! attempt to get one. The thread that makes the attempts is `running`'s.

pub(crate) mod order;
pub(crate) mod schedule;
pub(crate) mod store;

mod client;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::SystemTime;

use catamaran_tls::{IssuedCertificates, Part};
use store::Store;

use super::Fault;
use crate::config::AcmeConfig;
use crate::lock::lock;

/// The certificates that are stored for the names of a profile, and the names that have none. Each stored one that
/// cannot be used is a warning.
pub(super) fn issued(
    config: &AcmeConfig,
    now: SystemTime,
    warnings: &mut Vec<Fault>,
) -> IssuedCertificates {
    let store = Store::new(config);
    let mut issued = IssuedCertificates::default();
    for name in &config.names {
        match store.identity(name, now) {
            Ok(Some(identity)) => issued.identities.push(identity),
            Ok(None) => issued.awaited.push(name.clone()),
            Err(reason) => {
                issued.awaited.push(name.clone());
                warnings.push(Fault {
                    part: Part::Profile,
                    message: format!("the stored certificate of {name} cannot be used: {reason}"),
                    hint: "the front orders another one".to_owned(),
                });
            }
        }
    }
    issued
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
}

impl IssuanceFigures {
    /// Changes the figures of a name.
    pub(crate) fn note(&self, name: &IssuedName, change: impl FnOnce(&mut NameFigures)) {
        change(lock(&self.0).entry(name.clone()).or_default());
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
