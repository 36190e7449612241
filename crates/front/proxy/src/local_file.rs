//! Files of this machine that the front reads whole and watches: certificates, users.

use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Identifies the version of a file by its device, inode, size and time of modification; `None`: there is no such
/// file. It comes from `stat` and not from inotify, which misses changes behind a symbolic link or by another
/// machine.
pub(crate) type Stamp = Option<(u64, u64, u64, i64, i64)>;

/// The content and the permissions of a file.
pub(crate) struct LocalFile {
    pub(crate) bytes: Vec<u8>,
    pub(crate) mode: u32,
}

/// The stamp of a file as it is now.
pub(crate) fn stamp(path: &Path) -> Stamp {
    let it = std::fs::metadata(path).ok()?;
    Some((it.dev(), it.ino(), it.size(), it.mtime(), it.mtime_nsec()))
}

impl LocalFile {
    /// Reads a regular file of at most so many MiB.
    pub(crate) fn read(path: &Path, max_mib: u64) -> io::Result<Self> {
        let file = std::fs::File::open(path)?;
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
