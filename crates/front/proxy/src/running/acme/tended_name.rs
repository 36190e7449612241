//! What is known of one certificate that the front orders.

use std::io;
use std::time::SystemTime;

use catamaran_tls::Identity;

use crate::date::unix_seconds;
use crate::tls::acme::dns_hook::take_out;
use crate::tls::acme::order::Attempt;
use crate::tls::acme::schedule::{NameState, Validity};
use crate::tls::acme::store::{ChallengeRecord, RecordFile, Store, StoreLock, StoredFault};

/// A name, as it was read when this process began to order for it: no other process changes it meanwhile.
pub(super) struct TendedName {
    pub(super) state: NameState,
    pub(super) certificate: Option<Identity>,
    /// When the log last told that the certificate ends soon or has ended, in seconds of the Unix epoch.
    alarmed_at: Option<u64>,
    /// Whether an attempt may begin that cannot be stored: one could be before, or this process has run for so long
    /// that it is not one of many that each would make an attempt.
    pub(super) may_be_unstored: bool,
    /// The records that processes before this one have left in the DNS.
    left_records: Vec<RecordFile>,
}

impl TendedName {
    /// Reads what is stored of the certificate of these names. One that lacks a name is served, and due at once, unless
    /// an attempt for the next one has failed.
    ///
    /// # Errors
    /// A file cannot be read now: it may well be there.
    pub(super) fn read(store: &Store, names: &[String]) -> io::Result<Self> {
        let name = names.first().map_or("", |name| name);
        let mut state = store.state(name)?;
        let certificate = match store.identity(name, SystemTime::now()) {
            Ok(Some(certificate)) if !has_all(&certificate, names) => {
                state.note_other_names();
                None
            }
            Ok(certificate) => certificate,
            Err(StoredFault::Unread(error)) => return Err(error),
            // Another one is ordered.
            Err(StoredFault::Unusable(_)) => None,
        };
        Ok(Self {
            state,
            certificate,
            alarmed_at: None,
            may_be_unstored: false,
            left_records: store.records(name)?,
        })
    }

    /// Has records that were left in the DNS taken out once no order needs them.
    pub(super) fn take_out_records(&mut self, attempt: &Attempt<'_>) {
        self.left_records
            .retain(|left| !attempt.has_presented(&left.record));
        if self.left_records.is_empty() || self.state.order.is_some() {
            return;
        }
        let records = std::mem::take(&mut self.left_records);
        take_out_left(&attempt.config.dns_hook, records, None);
    }

    /// Stores the state of the name; `false`: it is in memory alone.
    pub(super) fn keep(&mut self, store: &Store, name: &str) -> bool {
        let is_kept = store.keep_state(name, &self.state);
        self.may_be_unstored |= is_kept;
        is_kept
    }

    pub(super) fn validity(&self) -> Option<Validity> {
        self.certificate.as_ref().map(validity)
    }

    /// The certificate, if the log is to tell of its end at the time `now`.
    pub(super) fn take_alarm(&mut self, now: u64) -> Option<Validity> {
        let certificate = self.validity()?;
        let pause = certificate.alarm_pause(now)?;
        // The clock may have been set back.
        let is_due = self.alarmed_at.is_none_or(|at| now.abs_diff(at) >= pause);
        is_due.then(|| {
            self.alarmed_at = Some(now);
            certificate
        })
    }

    /// When the next attempt begins, in seconds of the Unix epoch.
    pub(super) fn next_attempt(&self) -> u64 {
        let renewal = self
            .validity()
            .map_or(0, |validity| self.state.renewal(validity));
        renewal.max(self.state.next_attempt)
    }
}

/// Has records that were left in the DNS taken out. `lock` as in [`take_out`].
pub(super) fn take_out_left(hook: &[String], records: Vec<RecordFile>, lock: Option<StoreLock>) {
    for RecordFile { record, .. } in &records {
        let ChallengeRecord { name, value } = record;
        tracing::warn!(
            name,
            value,
            "a record of a challenge was left in the DNS; it is taken out"
        );
    }
    take_out(hook, records, lock);
}

fn has_all(certificate: &Identity, names: &[String]) -> bool {
    names
        .iter()
        .all(|name| certificate.facts.names.contains(name))
}

pub(super) fn validity(certificate: &Identity) -> Validity {
    Validity {
        not_before: unix_seconds(certificate.facts.not_before),
        not_after: unix_seconds(certificate.facts.not_after),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use catamaran_testkit::tls::Pair;

    use super::*;
    use crate::tls::acme::schedule::NextStep;
    use crate::tls::acme::{pem_pair, test_config};

    fn names() -> [String; 1] {
        ["a.test".to_owned()]
    }

    #[test]
    fn a_certificate_that_lacks_a_name_is_due() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(&test_config(folder.path()), &Arc::default());
        store.open().unwrap();
        let pair = pem_pair(&Pair::self_signed(&["a.test", "b.test"]));
        assert!(store.install("a.test", &pair));
        let now = unix_seconds(SystemTime::now());
        let step = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            let tended = TendedName::read(&store, &names).unwrap();
            tended.state.next_step(tended.validity(), now)
        };
        // It was issued just now.
        let mut state = NameState::default();
        state.begin(now, 0.0);
        state.succeed(
            now,
            TendedName::read(&store, &names())
                .unwrap()
                .validity()
                .unwrap(),
        );
        assert!(store.keep_state("a.test", &state));
        assert_ne!(step(&["a.test", "b.test"]), NextStep::Order);
        assert_eq!(step(&["a.test", "b.test", "c.test"]), NextStep::Order);
        // A start does not take the pause off that follows a failure.
        state.begin(now, 0.0);
        assert!(store.keep_state("a.test", &state));
        assert_eq!(step(&["a.test", "c.test"]), NextStep::Wait(now + 60));
    }

    #[test]
    fn the_end_of_a_certificate_is_told_each_day_and_then_each_hour() {
        const HOUR: u64 = 60 * 60;
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(&test_config(folder.path()), &Arc::default());
        store.open().unwrap();
        let mut tended = TendedName::read(&store, &names()).unwrap();
        assert_eq!(tended.take_alarm(u64::MAX), None, "there is none");
        let pair = pem_pair(&Pair::self_signed(&["a.test"]));
        assert!(store.install("a.test", &pair));
        tended = TendedName::read(&store, &names()).unwrap();
        let Validity { not_after, .. } = tended.validity().expect("what was installed");
        let mut told = Vec::new();
        for hour in 0..53 {
            let moment = not_after - 50 * HOUR + hour * HOUR;
            told.extend(tended.take_alarm(moment).map(|_| hour));
        }
        assert_eq!(told, [0, 24, 48, 50, 51, 52]);
    }

    #[test]
    fn a_name_whose_files_cannot_be_read_is_not_one_without_a_certificate() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(&test_config(folder.path()), &Arc::default());
        store.open().unwrap();
        let none = TendedName::read(&store, &names()).unwrap();
        assert!(none.certificate.is_none() && none.state == NameState::default());

        let pair = pem_pair(&Pair::self_signed(&["a.test"]));
        assert!(store.install("a.test", &pair));
        let stored = TendedName::read(&store, &names()).unwrap();
        let identity = stored.certificate.expect("what was installed");
        // A directory in place of a file: even root cannot read it.
        for file in ["chain.pem", "key.pem"] {
            let path = identity.facts.chain_file.with_file_name(file);
            let text = fs::read(&path).unwrap();
            fs::remove_file(&path).unwrap();
            fs::create_dir(&path).unwrap();
            assert!(TendedName::read(&store, &names()).is_err(), "{file}");
            fs::remove_dir(&path).unwrap();
            fs::write(&path, text).unwrap();
        }
        // What can be read and is of no use is ordered anew.
        fs::write(&identity.facts.chain_file, "no certificate").unwrap();
        let broken = TendedName::read(&store, &names()).unwrap();
        assert!(broken.certificate.is_none());
    }
}
