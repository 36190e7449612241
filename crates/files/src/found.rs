//! A file that was found, and what is known of it.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use catamaran_coding::Coding;
use http::HeaderValue;
use rustix::fs::{Stat, fstat};

/// What a name stands for.
#[derive(Debug)]
pub enum Found {
    /// A file to be sent.
    File(FoundFile),
    /// A directory with a file that stands for it, asked for without the slash at the end.
    Directory,
}

/// A file that was found.
#[derive(Clone, Debug)]
pub struct FoundFile {
    pub(crate) fd: Arc<OwnedFd>,
    pub(crate) facts: FileFacts,
    /// How it is coded.
    pub(crate) coding: Option<Coding>,
    /// Of what it is when it is decoded.
    pub(crate) media_type: HeaderValue,
    /// Whether the response depends on the codings that the client takes.
    pub(crate) varies_by_coding: bool,
    /// Whether it stands in the place of a missing page.
    pub(crate) is_fallback: bool,
    /// A compressed one that is older than the plain one, so that it is not used.
    pub(crate) old_sibling: Option<Coding>,
}

impl FoundFile {
    /// Of what it is when it is decoded.
    #[must_use]
    pub fn media_type(&self) -> &HeaderValue {
        &self.media_type
    }

    /// Takes note that the response may be coded on its way.
    pub fn may_be_coded(&mut self) {
        self.varies_by_coding = true;
    }

    /// A coding of which there is a file, but one so much older than the plain one that it is not used.
    #[must_use]
    pub fn old_sibling(&self) -> Option<Coding> {
        self.old_sibling
    }
}

/// What tells one version of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileFacts {
    /// How many names it has; wide enough for what each architecture calls it.
    names: u128,
    pub(crate) size: u64,
    /// Seconds and nanoseconds.
    pub(crate) modified: (i64, u64),
    changed: (i64, u64),
}

impl FileFacts {
    pub(crate) fn new(stat: &Stat) -> Self {
        Self {
            names: u128::from(stat.st_nlink),
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    /// Whether the bytes of the descriptor are still those. That it has lost its name, because another file
    /// was renamed to it, changes none of them.
    pub(crate) fn hold(&self, fd: &OwnedFd) -> bool {
        let Ok(stat) = fstat(fd) else {
            return false;
        };
        let now = Self::new(&stat);
        let is_renamed = now.names != self.names;
        let has_bytes = (now.size, now.modified) == (self.size, self.modified);
        has_bytes && (now.changed == self.changed || is_renamed)
    }

    /// Whether the time of change says nothing: tools that make images give all files one time.
    pub(crate) fn is_timeless(&self) -> bool {
        self.modified.0 <= 1
    }
}
