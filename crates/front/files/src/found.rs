//! The file or directory that a name stands for, and the facts about such files.

use std::fmt::Write as _;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arrayvec::ArrayVec;
use bytes::Bytes;
use catamaran_coding::{AcceptedCodings, CodedBodies, Coding};
use http::HeaderValue;
use rustix::fs::{Stat, fstat};

use crate::config::{EtagRule, FilesConfig};

/// What a name stands for: a file or a directory.
#[derive(Debug)]
pub enum Found {
    /// A regular file to send.
    File(FoundFile),
    /// A directory with an index file, asked for without the slash at the end.
    Directory,
}

/// A file that was found, in the coding that the client will get.
#[derive(Clone, Debug)]
pub struct FoundFile {
    pub(crate) named: Arc<NamedFile>,
    /// The index of the compressed sibling that is sent; `None`: the plain file is sent.
    pub(crate) sibling: Option<usize>,
    pub(crate) content: FileContent,
    /// Whether the response depends on the codings that the client accepts.
    pub(crate) varies_by_coding: bool,
    /// The coding of a compressed sibling that is not used because it is older than the plain file;
    /// `None`: there is none.
    pub(crate) old_sibling: Option<Coding>,
}

/// The bytes of a file in memory, or its open descriptor.
#[derive(Clone, Debug)]
pub(crate) enum FileContent {
    Memory(Arc<KeptBody>),
    Open(Arc<OwnedFd>),
}

impl FoundFile {
    /// The file that is sent: the plain one, or a compressed sibling.
    pub(crate) fn version(&self) -> &Version {
        match self.sibling.and_then(|i| self.named.siblings.get(i)) {
            Some((_, version)) => version,
            None => &self.named.plain,
        }
    }

    pub(crate) fn facts(&self) -> &FileFacts {
        &self.version().facts
    }

    /// The coding of the file's bytes; `None`: they are not coded.
    pub(crate) fn coding(&self) -> Option<Coding> {
        match self.sibling.and_then(|i| self.named.siblings.get(i)) {
            Some((coding, _)) => Some(*coding),
            None => self.named.coding,
        }
    }

    /// Whether the file's bytes are compressed, so that compressing them again gains nothing.
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        self.named.is_compressed || self.coding().is_some()
    }

    /// The media type of the decoded content.
    #[must_use]
    pub fn media_type(&self) -> &HeaderValue {
        &self.named.media_type
    }

    /// Records that the response may be compressed before it is sent, and so varies by the client's
    /// codings.
    pub fn may_be_coded(&mut self) {
        self.varies_by_coding = true;
    }

    /// The coding of a compressed sibling that is not used because it is much older than the plain file;
    /// `None`: there is none.
    #[must_use]
    pub fn old_sibling(&self) -> Option<Coding> {
        self.old_sibling
    }

    /// How long to wait before the file is read, because it was written a moment ago: another write in the
    /// same tick of the kernel's clock would go unnoticed. `None`: no wait is needed.
    #[must_use]
    pub fn settles_after(&self) -> Option<Duration> {
        match &self.content {
            // A body is kept in memory only if it was read long after the file was written.
            FileContent::Memory(_) => None,
            FileContent::Open(_) => self.facts().is_fresh(SystemTime::now()).then_some(TICK),
        }
    }

    /// Whether the file is still the version that was found.
    #[must_use]
    pub fn holds(&self) -> bool {
        match &self.content {
            FileContent::Memory(_) => true,
            FileContent::Open(fd) => self.facts().hold(fd),
        }
    }

    /// The entity tag of the bytes that are sent. `None` if there is none that distinguishes versions, or
    /// it is not known yet.
    pub(crate) fn entity_tag(&self, config: &FilesConfig) -> Option<&HeaderValue> {
        let version = self.version();
        if version.facts.is_tagged_by_content(config) {
            version.content_tag.get()
        } else {
            version.time_tag.as_ref()
        }
    }

    /// All bytes of the file; `None`: they are not in memory.
    #[must_use]
    pub fn kept(&self) -> Option<&Arc<KeptBody>> {
        match &self.content {
            FileContent::Memory(body) => Some(body),
            FileContent::Open(_) => None,
        }
    }
}

/// All bytes of a small file, kept in memory, with compressed forms of them.
#[derive(Debug)]
pub struct KeptBody {
    pub(crate) bytes: Bytes,
    pub(crate) coded: CodedBodies,
}

impl KeptBody {
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self {
            bytes,
            coded: CodedBodies::default(),
        }
    }

    /// The bytes of the plain file.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The compressed forms of the bytes that were made so far.
    #[must_use]
    pub fn coded(&self) -> &CodedBodies {
        &self.coded
    }

    /// A copy of this with one more compressed form.
    pub(crate) fn with(&self, coding: Coding, bytes: Bytes) -> Self {
        Self {
            bytes: self.bytes.clone(),
            coded: self.coded.with(coding, bytes),
        }
    }
}

/// A plain file, with its siblings that have the same content in other codings.
#[derive(Debug)]
pub(crate) struct NamedFile {
    /// The media type of the decoded content.
    pub(crate) media_type: HeaderValue,
    /// The coding of the plain file by its name; `None`: it has none.
    pub(crate) coding: Option<Coding>,
    /// Whether files with this extension are compressed.
    pub(crate) is_compressed: bool,
    /// Whether the file replaces a missing page.
    pub(crate) is_fallback: bool,
    pub(crate) plain: Version,
    pub(crate) siblings: ArrayVec<(Coding, Version), { Coding::ALL.len() }>,
    /// Codings whose file is too old to be used.
    pub(crate) old_siblings: ArrayVec<Coding, { Coding::ALL.len() }>,
}

/// The choice of one of the files that have the same content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Selection {
    pub(crate) sibling: Option<usize>,
    pub(crate) old_sibling: Option<Coding>,
}

impl NamedFile {
    /// Chooses the file for a client that accepts these codings.
    pub(crate) fn select(&self, codings: &AcceptedCodings) -> Selection {
        let mut old_sibling = None;
        for coding in codings.iter() {
            let sibling = self.siblings.iter().position(|(own, _)| *own == coding);
            if sibling.is_some() {
                return Selection {
                    sibling,
                    old_sibling,
                };
            }
            if self.old_siblings.contains(&coding) {
                old_sibling = Some(coding);
            }
        }
        Selection {
            sibling: None,
            old_sibling,
        }
    }

    /// The plain file and its compressed siblings, as versions.
    pub(crate) fn versions(&self) -> impl Iterator<Item = &Version> {
        let siblings = self.siblings.iter().map(|(_, version)| version);
        std::iter::once(&self.plain).chain(siblings)
    }

    /// The file of this selection, with its content.
    pub(crate) fn found(self: &Arc<Self>, selection: Selection, content: FileContent) -> FoundFile {
        FoundFile {
            named: Arc::clone(self),
            sibling: selection.sibling,
            content,
            varies_by_coding: !self.siblings.is_empty(),
            old_sibling: selection.old_sibling,
        }
    }

    /// The version of the file that a selection means: the plain one, or a sibling.
    pub(crate) fn version(&self, selection: Selection) -> &Version {
        match selection.sibling.and_then(|index| self.siblings.get(index)) {
            Some((_, version)) => version,
            None => &self.plain,
        }
    }
}

/// One version of a file, with the header fields that identify it.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) facts: FileFacts,
    time_tag: Option<HeaderValue>,
    /// The value of `Last-Modified`.
    pub(crate) date: Option<HeaderValue>,
    /// The entity tag of the content; empty until the content was read.
    pub(crate) content_tag: OnceLock<HeaderValue>,
}

impl Version {
    pub(crate) fn new(facts: FileFacts, coding: Option<Coding>) -> Self {
        Self {
            time_tag: facts.time_tag(coding),
            date: facts.date(),
            content_tag: OnceLock::new(),
            facts,
        }
    }
}

/// The facts that distinguish a version of a file from other versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileFacts {
    device: u64,
    inode: u64,
    /// The number of the file's names (hard links); wide enough for every architecture's type.
    names: u128,
    pub(crate) size: u64,
    /// The time of the last change of the content, as seconds and nanoseconds.
    pub(crate) modified: (i64, u64),
    changed: (i64, u64),
}

impl FileFacts {
    pub(crate) fn new(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            names: u128::from(stat.st_nlink),
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    /// Whether the open file still has the bytes of this version. A file whose name was taken by another
    /// file, by a rename, still has the same bytes.
    pub(crate) fn hold(&self, fd: &OwnedFd) -> bool {
        let Ok(stat) = fstat(fd) else {
            return false;
        };
        let present = Self::new(&stat);
        let has_bytes = present.size == self.size && present.modified == self.modified;
        // A rename onto the file's name takes that name from it, which changes `changed`, too.
        let lost_name = present.names != self.names;
        has_bytes && (present.changed == self.changed || lost_name)
    }

    /// Whether the open file `fd` has exactly these facts.
    pub(crate) fn are_of(&self, fd: &OwnedFd) -> bool {
        fstat(fd).is_ok_and(|stat| Self::new(&stat) == *self)
    }

    /// Whether the time of the last change is the beginning of 1970, which tools that make images give all
    /// files, so that it says nothing.
    pub(crate) fn is_timeless(&self) -> bool {
        self.modified.0 <= 1
    }

    pub(crate) fn is_tagged_by_content(&self, config: &FilesConfig) -> bool {
        config.etag == EtagRule::Content || self.is_timeless()
    }

    /// Whether the last write was less than [`TICK`] ago. Another write now might leave all times
    /// unchanged.
    pub(crate) fn is_fresh(&self, now: SystemTime) -> bool {
        let is_near = |time| distance(time, now).is_some_and(|since| since < TICK);
        is_near(self.modified) && is_near(self.changed)
    }

    /// Whether a write that gave the file its time has certainly ended.
    pub(crate) fn is_settled(&self, now: SystemTime) -> bool {
        distance(self.modified, now).is_none_or(|since| since >= SETTLED_AFTER)
    }

    /// The entity tag made of time, size and coding, on which all fronts of a cluster agree. `None` if the
    /// time is useless.
    fn time_tag(&self, coding: Option<Coding>) -> Option<HeaderValue> {
        if self.is_timeless() {
            return None;
        }
        let nanos = i128::from(self.modified.0) * 1_000_000_000 + i128::from(self.modified.1);
        let mut tag = format!("\"{nanos:x}-{:x}", self.size);
        if let Some(coding) = coding {
            tag.push_str(&coding.suffix().replace('.', "-"));
        }
        tag.push('"');
        HeaderValue::from_maybe_shared(Bytes::from(tag)).ok()
    }

    fn date(&self) -> Option<HeaderValue> {
        let seconds = u64::try_from(self.modified.0).ok()?;
        // Years of more than four digits have no date.
        if self.is_timeless() || seconds >= DATES_END {
            return None;
        }
        let at = UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?;
        HeaderValue::from_maybe_shared(Bytes::from(httpdate::fmt_http_date(at))).ok()
    }
}

/// The entity tag of content with this digest.
pub(crate) fn content_tag(digest: &[u8]) -> Option<HeaderValue> {
    let mut tag = String::with_capacity(2 * TAG_BYTES + 2);
    tag.push('"');
    for byte in digest.iter().take(TAG_BYTES) {
        write!(tag, "{byte:02x}").ok()?;
    }
    tag.push('"');
    HeaderValue::from_maybe_shared(Bytes::from(tag)).ok()
}

/// The time between a file's time and now, in either direction; `None` if the file's time is before 1970
/// or too large.
fn distance(time: (i64, u64), now: SystemTime) -> Option<Duration> {
    let seconds = u64::try_from(time.0).ok()?;
    let file_time = UNIX_EPOCH
        .checked_add(Duration::from_secs(seconds))?
        .checked_add(Duration::from_nanos(time.1))?;
    Some(match now.duration_since(file_time) {
        Ok(since) => since,
        Err(until) => until.duration(),
    })
}

/// A time that is longer than a tick of the clock by which the kernel stamps files; a tick is 10 ms at most.
const TICK: Duration = Duration::from_millis(20);

/// A time that is longer than a call that writes a small file takes, and than the resolution of any file
/// system's times.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// The number of bytes of a digest in an entity tag.
const TAG_BYTES: usize = 16;

/// The first second of the year 10000.
const DATES_END: u64 = 253_402_300_800;
