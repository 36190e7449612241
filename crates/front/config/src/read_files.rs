//! The files that a configuration was read from, and whether they have changed since.
//!
//! They are recorded while a configuration is loaded, also if it has faults. A version is from just before the file is
//! read, so a change in the meantime is noticed later.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher as _};
use std::path::{Path, PathBuf};

use catamaran_proxy::{Stamp, stamp};

use crate::include::pattern::IncludePattern;

/// The files that a configuration was read from. Files that the front watches itself are not among them: certificates
/// of listeners, users, members.
#[derive(Clone, Debug, Default)]
pub struct ReadFiles {
    versions: FileVersions,
    content: DefaultHasher,
}

/// The versions of files, and the paths that match patterns of `include`. The same files with equal versions have the
/// same content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileVersions {
    files: BTreeMap<PathBuf, Stamp>,
    /// Other files of a directory come and go, such as those that the front writes, so its own version tells nothing.
    patterns: BTreeMap<IncludePattern, Result<Vec<PathBuf>, String>>,
}

impl ReadFiles {
    /// The versions from just before the files were read.
    #[must_use]
    pub fn versions(&self) -> &FileVersions {
        &self.versions
    }

    /// A digest of everything that was read, which tells files that were written again as they were. It is not made
    /// against an adversary.
    #[must_use]
    pub fn content(&self) -> u64 {
        self.content.finish()
    }

    /// Records a file that is about to be read. The first version counts if it is read several times.
    pub(crate) fn note(&mut self, path: &Path) {
        let files = &mut self.versions.files;
        files.entry(path.to_owned()).or_insert_with(|| stamp(path));
    }

    /// Records the bytes that were read of a file.
    pub(crate) fn note_content(&mut self, path: &Path, bytes: &[u8]) {
        for part in [path.as_os_str().as_encoded_bytes(), bytes] {
            self.content.write_usize(part.len());
            self.content.write(part);
        }
    }

    /// Records the files that match a pattern, or why they cannot be found.
    pub(crate) fn note_pattern(
        &mut self,
        pattern: IncludePattern,
        found: Result<Vec<PathBuf>, String>,
    ) {
        self.versions.patterns.entry(pattern).or_insert(found);
    }
}

impl FileVersions {
    /// The versions that the same files have now.
    #[must_use]
    pub fn now(&self) -> Self {
        let files = self.files.keys();
        let patterns = self.patterns.keys();
        Self {
            files: files.map(|path| (path.clone(), stamp(path))).collect(),
            patterns: patterns.map(|it| (it.clone(), it.files())).collect(),
        }
    }
}
