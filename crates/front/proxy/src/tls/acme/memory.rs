//! What the disk does not take, because it is full, say: it stays in memory until the disk takes it.
//!
//! Other processes do not see it, and the end of this one loses it.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::disk::{at, create, make_directory, remove_if_there, sync_directory, write};
use crate::lock::lock;

/// Changes of files that the disk did not take, by their paths.
// A std mutex: it is held to look something up or to change it, never while the disk is waited for.
#[derive(Debug, Default)]
pub(crate) struct MemoryFiles(Mutex<MemoryContents>);

#[derive(Debug, Default)]
struct MemoryContents {
    /// What files have; `None`: the file is removed.
    files: BTreeMap<PathBuf, Option<Vec<u8>>>,
    /// Certificates, by the folders of their names.
    certificates: BTreeMap<PathBuf, PemPair>,
}

/// A chain of certificates and its key, as PEM. Its `Debug` does not show the key.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PemPair {
    pub(crate) chain: String,
    pub(crate) key: String,
}

impl std::fmt::Debug for PemPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("PemPair");
        shown.field("chain", &self.chain).finish_non_exhaustive()
    }
}

impl MemoryFiles {
    /// What a file has, `Some(None)` if it is removed; `None`: the disk has it as it is.
    pub(crate) fn file(&self, path: &Path) -> Option<Option<Vec<u8>>> {
        lock(&self.0).files.get(path).cloned()
    }

    /// The certificate of a name's folder; `None`: the disk has it, if there is one.
    pub(super) fn certificate(&self, folder: &Path) -> Option<PemPair> {
        lock(&self.0).certificates.get(folder).cloned()
    }

    /// Whether anything of a name's folder is in memory alone.
    pub(crate) fn has_any_of(&self, folder: &Path) -> bool {
        let contents = lock(&self.0);
        let mut files = contents.files.keys();
        contents.certificates.contains_key(folder) || files.any(|path| path.starts_with(folder))
    }

    /// Writes a file, to the disk if that takes it. Returns whether it did.
    pub(super) fn write(&self, path: &Path, bytes: &[u8]) -> bool {
        let written = write(path, bytes);
        let change = written.is_err().then(|| Some(bytes.to_vec()));
        self.note(path, change);
        said(path, written)
    }

    /// Writes a file unless another process has made it. Returns whether none has: what the disk does not take is kept in
    /// memory.
    pub(super) fn create(&self, path: &Path, bytes: &[u8]) -> bool {
        if self.file(path).is_some() {
            // What the disk has, if anything, was to be replaced or removed.
            self.write(path, bytes);
            return true;
        }
        let created = create(path, bytes);
        // A file in place of its folder is there already, too.
        if matches!(&created, Err(error) if error.kind() == ErrorKind::AlreadyExists)
            && path.exists()
        {
            return false;
        }
        let change = created.is_err().then(|| Some(bytes.to_vec()));
        self.note(path, change);
        said(path, created);
        true
    }

    /// Removes a file, which may be gone already. Returns whether the disk has it no more.
    pub(super) fn remove(&self, path: &Path) -> bool {
        let mut removed = remove_if_there(path);
        // A file system that is read-only refuses to remove even what is not there.
        if fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            removed = Ok(());
        }
        self.note(path, removed.is_err().then_some(None));
        said(path, removed)
    }

    /// Puts a certificate in place of the one of a name's folder. Returns whether the disk took it.
    pub(super) fn install(&self, folder: &Path, pair: &PemPair) -> bool {
        let installed = install(folder, pair);
        let mut contents = lock(&self.0);
        match &installed {
            Ok(()) => contents.certificates.remove(folder),
            Err(_) => {
                let folder = folder.to_owned();
                contents.certificates.insert(folder, pair.clone())
            }
        };
        drop(contents);
        said(folder, installed)
    }

    /// Notes what the disk did not take of a file; `None`: it has taken all.
    fn note(&self, path: &Path, change: Option<Option<Vec<u8>>>) {
        let mut contents = lock(&self.0);
        match change {
            Some(change) => contents.files.insert(path.to_owned(), change),
            None => contents.files.remove(path),
        };
    }

    /// Whether the disk has all.
    pub(crate) fn is_empty(&self) -> bool {
        let contents = lock(&self.0);
        contents.files.is_empty() && contents.certificates.is_empty()
    }

    /// Writes to the disk what it did not take before.
    ///
    /// # Errors
    /// Why it still does not take something.
    pub(crate) fn store(&self) -> io::Result<()> {
        let (files, certificates) = {
            let contents = lock(&self.0);
            (contents.files.clone(), contents.certificates.clone())
        };
        let mut outcome = Ok(());
        for (path, change) in files {
            let stored = match &change {
                Some(bytes) => write(&path, bytes),
                None => remove_if_there(&path),
            };
            match stored {
                Ok(()) => self.note(&path, None),
                Err(error) => outcome = Err(error),
            }
        }
        for (folder, pair) in certificates {
            match install(&folder, &pair) {
                Ok(()) => drop(lock(&self.0).certificates.remove(&folder)),
                Err(error) => outcome = Err(error),
            }
        }
        outcome
    }

    /// Forgets what is below a folder: another process may write there from now on.
    pub(crate) fn forget(&self, folder: &Path) {
        let mut contents = lock(&self.0);
        contents.files.retain(|path, _| !path.starts_with(folder));
        contents.certificates.remove(folder);
    }
}

/// Logs why the disk does not take a change of a file. Returns whether it took it.
fn said(path: &Path, changed: io::Result<()>) -> bool {
    if let Err(error) = &changed {
        tracing::error!(path = %path.display(), %error, "`state_dir` cannot be written; what could not be stored is kept in memory until it can");
    }
    changed.is_ok()
}

/// Puts a certificate in place of the current one of a name's folder. The previous one stays beside it. What cannot be
/// removed once the new one is in place is only logged. Of two processes that do so at a time each has a directory of its
/// own, so that no chain gets the other one's key.
///
/// # Errors
/// The disk does not take it. Nothing of it stays there.
fn install(folder: &Path, pair: &PemPair) -> io::Result<()> {
    make_directory(folder)?;
    let number = make_numbered(folder)?;
    let place = folder.join(number.to_string());
    let put = || {
        write(&place.join("chain.pem"), pair.chain.as_bytes())?;
        write(&place.join("key.pem"), pair.key.as_bytes())?;
        let link = folder.join(format!(".current-{number}"));
        remove_if_there(&link)?;
        std::os::unix::fs::symlink(number.to_string(), &link)?;
        fs::rename(&link, folder.join("current"))
    };
    if let Err(error) = put() {
        // It would be one more with each further try.
        fs::remove_dir_all(&place).ok();
        return Err(error);
    }
    let cleaned = sync_directory(folder).and_then(|()| {
        let numbers = numbers(folder)?;
        for old in numbers.iter().filter(|old| *old + 1 < number) {
            fs::remove_dir_all(folder.join(old.to_string()))?;
        }
        Ok(())
    });
    if let Err(error) = cleaned {
        let folder = folder.display();
        tracing::warn!(%folder, %error, "a certificate is in place, but what it replaced cannot be removed");
    }
    Ok(())
}

/// Makes the directory of the next certificate, which no other process has made, and returns its number.
fn make_numbered(folder: &Path) -> io::Result<u64> {
    let mut number = numbers(folder)?.last().map_or(1, |last| last + 1);
    loop {
        let place = folder.join(number.to_string());
        match DirBuilder::new().mode(0o700).create(&place) {
            Ok(()) => return Ok(number),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(at(&place, &error)),
        }
    }
}

/// The numbers of a name's certificates, in order.
pub(super) fn numbers(folder: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        numbers.extend(
            entry?
                .file_name()
                .to_str()
                .and_then(|name| name.parse::<u64>().ok()),
        );
    }
    numbers.sort_unstable();
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(text: &str) -> PemPair {
        let [chain, key] = ["chain", "key"].map(|part| format!("{part} of {text}"));
        PemPair { chain, key }
    }

    /// A disk that takes nothing: a file is where the folder would be.
    #[test]
    fn what_the_disk_does_not_take_is_stored_later() {
        let root = tempfile::tempdir().unwrap();
        let (folder, other) = (root.path().join("a.test"), root.path().join("b.test"));
        fs::write(&folder, "in the way").unwrap();
        let memory = MemoryFiles::default();
        let file = folder.join("state.json");
        assert!(!memory.write(&file, b"one") && !memory.write(&file, b"two"));
        assert!(!memory.remove(&folder.join("next.pem")));
        assert!(!memory.install(&folder, &pair("a")));
        assert!(memory.install(&other, &pair("b")));
        assert_eq!(memory.file(&file), Some(Some(b"two".to_vec())));
        assert_eq!(memory.file(&folder.join("next.pem")), Some(None));
        assert_eq!(memory.certificate(&folder), Some(pair("a")));
        assert_eq!(memory.certificate(&other), None);
        assert!(memory.has_any_of(&folder) && !memory.has_any_of(&other));
        assert!(memory.store().is_err() && memory.has_any_of(&folder));

        fs::remove_file(&folder).unwrap();
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("next.pem"), "of an order before").unwrap();
        memory.store().unwrap();
        assert!(memory.is_empty() && memory.file(&file).is_none());
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert!(!folder.join("next.pem").exists());
        let stored = fs::read_to_string(folder.join("current/key.pem")).unwrap();
        assert_eq!(stored, "key of a");
    }

    #[test]
    fn a_file_is_created_once() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("ca/account.json");
        let memory = MemoryFiles::default();
        assert!(memory.create(&file, b"one") && !memory.create(&file, b"two"));
        assert_eq!(fs::read(&file).unwrap(), b"one");
        // The disk did not take that it was removed.
        memory.note(&file, Some(None));
        assert!(memory.create(&file, b"two") && memory.is_empty());
        assert_eq!(fs::read(&file).unwrap(), b"two");
        // A file in place of the folder.
        let unwritable = file.join("account.json");
        assert!(memory.create(&unwritable, b"three"));
        assert_eq!(memory.file(&unwritable), Some(Some(b"three".to_vec())));
    }

    #[test]
    fn a_certificate_that_cannot_be_installed_leaves_nothing() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a.test");
        // It cannot be replaced by a link.
        fs::create_dir_all(folder.join("current/x")).unwrap();
        let memory = MemoryFiles::default();
        for _ in 0..3 {
            assert!(!memory.install(&folder, &pair("a")));
            assert!(numbers(&folder).unwrap().is_empty());
        }
        memory.forget(&folder);
        assert!(memory.is_empty());
    }

    #[test]
    fn certificates_of_two_processes_do_not_mix() {
        for _ in 0..20 {
            let root = tempfile::tempdir().unwrap();
            let both_begin = std::sync::Barrier::new(2);
            let install_pair = |text: &str| {
                both_begin.wait();
                MemoryFiles::default().install(root.path(), &pair(text))
            };
            let installed = std::thread::scope(|scope| {
                let other = scope.spawn(|| install_pair("b"));
                (install_pair("a"), other.join().unwrap())
            });
            assert_eq!(installed, (true, true));
            let mut found = Vec::new();
            for place in ["1", "2", "current"] {
                let [chain, key] = ["chain.pem", "key.pem"]
                    .map(|file| fs::read_to_string(root.path().join(place).join(file)).unwrap());
                let whose = chain.trim_start_matches("chain of ").to_owned();
                assert_eq!(key, format!("key of {whose}"), "{place}");
                found.push(whose);
            }
            found.truncate(2);
            found.sort();
            assert_eq!(found, ["a", "b"]);
        }
    }

    #[test]
    fn a_key_is_not_shown() {
        let shown = format!("{:?}", pair("a"));
        assert!(
            shown.contains("chain of a") && !shown.contains("key of a"),
            "{shown}"
        );
    }
}
