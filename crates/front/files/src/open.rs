//! Opens a file beneath a directory.
//!
//! The kernel itself keeps the path inside (`RESOLVE_BENEATH`), at every step of its walk. To check a path
//! first and to open it afterwards would show files outside to a user who swaps a directory for a link in
//! between.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2, readlinkat};
use rustix::io::Errno;
use thiserror::Error;
use tokio::time::Instant;

use crate::config::{FilesConfig, Links};
use crate::found::FileFacts;

/// Whether the caller may wait for a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only what the kernel has in memory is read; otherwise the call fails with [`OpenError::WouldBlock`].
    Cached,
    /// The caller waits for the disk. Only for threads that may wait.
    Blocking,
}

/// Why a file or directory was not opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The disk would have to be waited for: call again with [`Access::Blocking`].
    #[error("the kernel would have to wait for the disk")]
    WouldBlock,
    /// There is no file of this name, or it is of a kind that is not served.
    #[error("there is none of this name")]
    Missing,
    /// A symbolic link leads outside the directory.
    #[error("a link leads outside of the directory")]
    Outside,
    /// The front has no permission to read the file.
    #[error("it may not be read")]
    Denied,
    /// The process, or the machine, has its maximum number of open files.
    #[error("there are no more descriptors")]
    Descriptors,
    /// The kernel reports another error.
    #[error("the kernel does not open it: {0}")]
    Failed(io::Error),
}

/// The kind of an opened file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenedKind {
    Regular,
    Directory,
    /// A FIFO or a device, which is not served.
    Other,
}

/// An opened file or directory, with its kind and facts.
#[derive(Debug)]
pub(crate) struct OpenedName {
    pub(crate) fd: OwnedFd,
    pub(crate) kind: OpenedKind,
    pub(crate) facts: FileFacts,
}

/// Identifies a directory independently of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RootId {
    device: u64,
    inode: u64,
}

/// An opened directory that is served.
#[derive(Debug)]
pub(crate) struct OpenRoot {
    fd: OwnedFd,
    /// The identity of the directory. It shows whether another directory has taken its path.
    pub(crate) id: RootId,
    opened: Instant,
    /// The directories inside which links may lead; `None`: the kernel keeps them inside.
    inside: Option<Vec<PathBuf>>,
    resolve: ResolveFlags,
}

impl OpenRoot {
    pub(crate) fn open(config: &FilesConfig, access: Access) -> Result<Self, OpenError> {
        let inside = match &config.links {
            Links::Off | Links::Inside => None,
            // Their real paths are read from the disk.
            Links::Also(_) if access == Access::Cached => return Err(OpenError::WouldBlock),
            Links::Also(others) => {
                let real = |path: &PathBuf| path.canonicalize().ok();
                let root = config.root.canonicalize().map_err(OpenError::Failed)?;
                let mut inside = vec![root];
                inside.extend(others.iter().filter_map(real));
                Some(inside)
            }
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = open_at(
            CWD,
            config.root.as_os_str().as_bytes(),
            flags,
            ResolveFlags::empty(),
            access,
        )?;
        let stat = fstat(&fd).map_err(|error| OpenError::Failed(error.into()))?;
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        Ok(Self {
            fd,
            id: RootId {
                device: stat.st_dev,
                inode: stat.st_ino,
            },
            opened: Instant::now(),
            inside,
            resolve: match config.links {
                Links::Off => beneath | ResolveFlags::NO_SYMLINKS,
                Links::Inside => beneath,
                Links::Also(_) => ResolveFlags::NO_MAGICLINKS,
            },
        })
    }

    /// Whether the directory was opened so long ago that its path may lead to another.
    pub(crate) fn is_old(&self) -> bool {
        self.opened.elapsed() >= ROOT_AGE_MAX
    }

    /// Opens the file or directory with this name; an empty name is the directory itself.
    pub(crate) fn open_name(&self, name: &[u8], access: Access) -> Result<OpenedName, OpenError> {
        let path = if name.is_empty() { &b"."[..] } else { name };
        // `NONBLOCK`: a FIFO without a writer is opened without waiting. `NOCTTY`: a terminal does not become the
        // controlling one.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let fd = open_at(self.fd.as_fd(), path, flags, self.resolve, access)?;
        if !self.has(fd.as_fd()) {
            return Err(OpenError::Outside);
        }
        let stat = fstat(&fd).map_err(|error| OpenError::Failed(error.into()))?;
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => OpenedKind::Regular,
            FileType::Directory => OpenedKind::Directory,
            _ => OpenedKind::Other,
        };
        Ok(OpenedName {
            fd,
            kind,
            facts: FileFacts::new(&stat),
        })
    }

    /// Whether the opened file is inside the directories where links may lead. This is asked of the
    /// descriptor, which stays the same however its path changes.
    fn has(&self, fd: BorrowedFd<'_>) -> bool {
        let Some(inside) = &self.inside else {
            return true;
        };
        let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
        let Ok(target) = readlinkat(CWD, link, Vec::new()) else {
            return false;
        };
        let real_path = Path::new(std::ffi::OsStr::from_bytes(CStr::to_bytes(&target)));
        let mut directories = inside.iter();
        directories.any(|directory| real_path.starts_with(directory))
    }
}

/// Opens `name` beneath `directory` with the rules of `resolve`. Repeats an open that a rename disturbed, unless the
/// caller may not wait.
fn open_at(
    directory: BorrowedFd<'_>,
    name: &[u8],
    flags: OFlags,
    resolve: ResolveFlags,
    access: Access,
) -> Result<OwnedFd, OpenError> {
    let (all_resolve, attempts) = match access {
        Access::Cached => (resolve | ResolveFlags::CACHED, 1),
        Access::Blocking => (resolve, ATTEMPTS_MAX),
    };
    let mut last_error = Errno::AGAIN;
    for _ in 0..attempts {
        match openat2(directory, name, flags, Mode::empty(), all_resolve) {
            Ok(fd) => return Ok(fd),
            // A rename came in between, or a signal.
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => {
                last_error = error;
                break;
            }
        }
    }
    Err(match last_error {
        // `INVAL`: kernels before 5.12 do not know `RESOLVE_CACHED`.
        Errno::AGAIN | Errno::INVAL | Errno::INTR if access == Access::Cached => {
            OpenError::WouldBlock
        }
        Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::LOOP => OpenError::Missing,
        // A socket, or a device without a driver.
        Errno::NXIO | Errno::NODEV => OpenError::Missing,
        Errno::XDEV => OpenError::Outside,
        Errno::ACCESS | Errno::PERM => OpenError::Denied,
        Errno::MFILE | Errno::NFILE => OpenError::Descriptors,
        other => OpenError::Failed(other.into()),
    })
}

/// How long an opened directory is used for its path: a release that swaps a link is noticed after this time.
const ROOT_AGE_MAX: Duration = Duration::from_secs(1);

/// How often an open that a rename disturbed is repeated.
const ATTEMPTS_MAX: usize = 64;
