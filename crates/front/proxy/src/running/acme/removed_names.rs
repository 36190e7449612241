//! Names that were removed from the configuration while a record of theirs was in the DNS.
//!
//! An attempt that was killed, or left at a stop, leaves its record to the next one for the name, of which there is none.

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;

use super::tended_name::take_out_left;
use crate::config::AcmeConfig;
use crate::tls::acme::owner::Rivals;
use crate::tls::acme::store::Store;

/// Has the records taken out of the DNS that are stored of names without a lock among `configured`. Returns whether that
/// were all: another process may order for such a name.
///
/// # Errors
/// Something that is stored cannot be read.
pub(super) fn take_out_records(
    config: &AcmeConfig,
    store: &Store,
    rivals: &mut Rivals,
    configured: &HashSet<PathBuf>,
) -> io::Result<bool> {
    let mut is_complete = true;
    for name in store.stored_names()? {
        if configured.contains(&store.lock_file(&name)) || store.records(&name)?.is_empty() {
            continue;
        }
        match store.lock(&name, rivals)? {
            // The process that had it until now may have taken some out.
            Some(lock) => {
                take_out_left(&config.dns_hook, store.records(&name)?, Some(lock));
            }
            None => is_complete = false,
        }
    }
    Ok(is_complete)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use catamaran_testkit::Deadline;

    use super::*;
    use crate::tls::acme::store::ChallengeRecord;
    use crate::tls::acme::test_config;

    #[test]
    fn records_of_names_that_nobody_orders_for_are_taken_out() {
        let folder = tempfile::tempdir().unwrap();
        let said_file = folder.path().join("said");
        let mut config = test_config(&folder.path().join("acme"));
        let script = format!("echo \"$1 $3\" >> {}", said_file.display());
        config.dns_hook = ["/bin/sh", "-c", &script, "hook"]
            .map(str::to_owned)
            .to_vec();
        let store = Store::new(&config, &Arc::default());
        store.open().unwrap();
        for name in ["a.test", "*.b.test", "c.test"] {
            let record = ChallengeRecord {
                name: format!("_acme-challenge.{name}"),
                value: format!("of-{name}"),
            };
            store.keep_record(name, record);
        }
        let configured = HashSet::from([store.lock_file("a.test")]);
        let mut rivals = Rivals::default();
        let of_another = store.lock("c.test", &mut rivals).unwrap();
        assert!(of_another.is_some());
        let mut look = || take_out_records(&config, &store, &mut rivals, &configured).unwrap();
        assert!(!look(), "another process orders for c.test");
        drop(of_another);
        let is_complete = || look().then_some(());
        Deadline::default().poll("the locks", is_complete).unwrap();
        let are_taken_out = || {
            let names = ["*.b.test", "c.test"];
            let left = names.map(|name| store.records(name).unwrap().len());
            (left == [0, 0]).then_some(())
        };
        Deadline::default().poll("the hook", are_taken_out).unwrap();
        assert_eq!(store.records("a.test").unwrap().len(), 1);
        let said = fs::read_to_string(said_file).unwrap();
        let mut lines: Vec<&str> = said.lines().collect();
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines, ["cleanup of-*.b.test", "cleanup of-c.test"]);
    }
}
