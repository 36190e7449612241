//! Files of this machine that the front reads whole and watches: certificates, users.

use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};

/// The version of a file; `None`: there is no such file. It comes from `stat` and not from inotify, which misses changes
/// behind a symbolic link or by another machine.
pub type Stamp = Option<FileVersion>;

/// What `stat` tells of a file, as far as it differs if the content or the permissions do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileVersion {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    /// The time at which the content was modified, in seconds and nanoseconds.
    pub(crate) modified: [i64; 2],
    /// The time at which the content, the owner or the permissions were changed, in seconds and nanoseconds.
    pub(crate) changed: [i64; 2],
}

/// The content and the permissions of a file.
pub(crate) struct LocalFile {
    pub(crate) bytes: Vec<u8>,
    pub(crate) mode: u32,
}

/// The stamp of a file as it is now.
#[must_use]
pub fn stamp(path: &Path) -> Stamp {
    let it = std::fs::metadata(path).ok()?;
    Some(FileVersion {
        device: it.dev(),
        inode: it.ino(),
        size: it.size(),
        modified: [it.mtime(), it.mtime_nsec()],
        changed: [it.ctime(), it.ctime_nsec()],
    })
}

impl LocalFile {
    /// Reads a regular file of at most so many MiB.
    pub(crate) fn read(path: &Path, max_mib: u64) -> io::Result<Self> {
        // Opening a pipe would wait for its writer otherwise.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = std::fs::File::from(open(path, flags, Mode::empty())?);
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let max = max_mib << 20;
        let mut bytes = Vec::new();
        file.take(max + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > max {
            let message = format!("it is larger than {max_mib} MiB");
            return Err(io::Error::other(message));
        }
        Ok(Self {
            bytes,
            mode: metadata.mode(),
        })
    }

    /// Whether every user of the machine may read the file.
    pub(crate) fn is_public(&self) -> bool {
        self.mode & 0o004 != 0
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    use catamaran_testkit::Deadline;

    use super::*;

    #[test]
    fn a_pipe_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::from_raw_mode(0o600)).unwrap();
        let error = LocalFile::read(&path, 1).map(|_| ()).unwrap_err();
        assert_eq!(error.to_string(), "it is not a regular file");
        let nothing = LocalFile::read(&folder.path().join("none"), 1).map(|_| ());
        assert_eq!(nothing.unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn other_permissions_are_another_version() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("users");
        assert_eq!(stamp(&path), None);
        std::fs::write(&path, "x").unwrap();
        set_permissions(&path, Permissions::from_mode(0o200)).unwrap();
        let before = stamp(&path).unwrap();
        // The clock of a file system may have steps of some milliseconds.
        let repair = || {
            set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
            stamp(&path).filter(|now| *now != before)
        };
        let after = Deadline::default().poll("another version", repair).unwrap();
        assert_eq!(after.modified, before.modified);
    }
}
