//! Watches the files of the configuration, so that the front reloads when they change.
//!
//! The files are looked at by `stat` once in a period, which also sees a change behind symbolic links: a ConfigMap of
//! Kubernetes is replaced by another link. A change is told when the files have stayed the same for one more period, or
//! at the latest after [`LOOKS_MAX`] periods.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use catamaran_proxy::{Stamp, stamp};

/// The files that the configuration in force was read from, with their stamps from just before.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchedFiles(Arc<Mutex<Vec<(PathBuf, Stamp)>>>);

impl WatchedFiles {
    /// Watches these files from now on.
    pub(crate) fn set(&self, files: Vec<(PathBuf, Stamp)>) {
        *self.lock() = files;
    }

    /// Starts a thread that calls `tell` after each change. If `tell` returns `false`, it is called again a period later.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start(&self, tell: impl Fn() -> bool + Send + 'static) -> io::Result<()> {
        let files = self.clone();
        let thread = std::thread::Builder::new().name("config-watch".to_owned());
        thread.spawn(move || {
            let mut watch = ChangeWatch::default();
            loop {
                std::thread::park_timeout(PERIOD);
                let (read, present) = files.stamps();
                if watch.has_settled(&read, &present) && tell() {
                    watch.told = Some(present);
                }
            }
        })?;
        Ok(())
    }

    /// The stamps with which the files were read, and those that they have now.
    fn stamps(&self) -> (Vec<Stamp>, Vec<Stamp>) {
        let files = self.lock().clone();
        let now = files.iter().map(|(path, _)| stamp(path)).collect();
        (files.into_iter().map(|(_, stamp)| stamp).collect(), now)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(PathBuf, Stamp)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was seen of a change that was not told yet.
#[derive(Debug, Default)]
struct ChangeWatch {
    /// The stamps at the last look if they differed from those that were read, and how many looks found a difference.
    changed: Option<(Vec<Stamp>, u32)>,
    /// The stamps of the change that was told last. A configuration with faults is not read again until it changes.
    told: Option<Vec<Stamp>>,
}

impl ChangeWatch {
    /// Whether the files differ from what was read and told, and have settled.
    fn has_settled(&mut self, read: &[Stamp], present: &[Stamp]) -> bool {
        if present == read || self.told.as_deref() == Some(present) {
            self.changed = None;
            return false;
        }
        let (is_same, looks) = match &self.changed {
            Some((seen, looks)) => (seen == present, looks + 1),
            None => (false, 1),
        };
        self.changed = Some((present.to_vec(), looks));
        is_same || looks >= LOOKS_MAX
    }
}

const PERIOD: Duration = Duration::from_secs(1);

/// How many looks at files that keep changing are waited for.
const LOOKS_MAX: u32 = 10;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;

    /// The stamps of files with these texts.
    fn stamps(directory: &Path, texts: &[&str]) -> Vec<Stamp> {
        let stamp_of = |(index, text): (usize, &&str)| {
            let path = directory.join(index.to_string());
            fs::write(&path, text).unwrap();
            stamp(&path)
        };
        texts.iter().enumerate().map(stamp_of).collect()
    }

    #[test]
    fn a_change_is_told_once_when_it_has_settled() {
        let directory = tempfile::tempdir().unwrap();
        let of = |text: &str| stamps(directory.path(), &["same", text]);
        let (read, next, last) = (of("a"), of("bb"), of("ccc"));
        let mut watch = ChangeWatch::default();
        assert!(!watch.has_settled(&read, &read));
        assert!(!watch.has_settled(&read, &next), "it may go on");
        assert!(!watch.has_settled(&read, &last));
        assert!(watch.has_settled(&read, &last));
        assert!(watch.has_settled(&read, &last), "nobody took it");
        watch.told = Some(last.clone());
        assert!(!watch.has_settled(&read, &last), "it has faults");
        assert!(!watch.has_settled(&last, &last), "it was read");
        assert!(!watch.has_settled(&read, &read), "it was taken back");
    }

    #[test]
    fn files_that_never_settle_are_read_at_last() {
        let directory = tempfile::tempdir().unwrap();
        let read = stamps(directory.path(), &["a"]);
        let mut watch = ChangeWatch::default();
        let mut text = "b".to_owned();
        let mut settled = (1..=LOOKS_MAX).map(|_| {
            text.push('b');
            watch.has_settled(&read, &stamps(directory.path(), &[&text]))
        });
        assert_eq!(settled.position(|it| it), Some(9));
    }

    #[test]
    fn a_link_to_another_directory_is_a_change() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for version in ["one", "two"] {
            fs::create_dir(at(version)).unwrap();
            fs::write(at(version).join("file"), version).unwrap();
        }
        symlink("one", at("..data")).unwrap();
        symlink("..data/file", at("file")).unwrap();
        let before = stamp(&at("file"));
        symlink("two", at("next")).unwrap();
        fs::rename(at("next"), at("..data")).unwrap();
        assert_ne!(stamp(&at("file")), before);
    }
}
