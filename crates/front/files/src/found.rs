//! What a name stands for, and what is known of the files that it stands for.

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

/// What a name stands for.
#[derive(Debug)]
pub enum Found {
    /// A file to be sent.
    File(FoundFile),
    /// A directory with a file that stands for it, asked for without the slash at the end.
    Directory,
}

/// A file that was found, in the coding that the client is to have.
#[derive(Clone, Debug)]
pub struct FoundFile {
    pub(crate) named: Arc<NamedFile>,
    /// The sibling that is sent, by its place among them.
    pub(crate) sibling: Option<usize>,
    pub(crate) content: FileContent,
    /// Whether the response depends on the codings that the client takes.
    pub(crate) varies_by_coding: bool,
    /// A compressed one that is older than the plain one, so that it is not used.
    pub(crate) old_sibling: Option<Coding>,
}

/// Where the bytes of a file are.
#[derive(Clone, Debug)]
pub(crate) enum FileContent {
    Memory(Arc<KeptBody>),
    Open(Arc<OwnedFd>),
}

impl FoundFile {
    /// The file that is sent.
    pub(crate) fn version(&self) -> &Version {
        match self.sibling.and_then(|at| self.named.siblings.get(at)) {
            Some((_, version)) => version,
            None => &self.named.plain,
        }
    }

    pub(crate) fn facts(&self) -> &FileFacts {
        &self.version().facts
    }

    /// The coding of the file's bytes; `None`: they are not coded.
    pub(crate) fn coding(&self) -> Option<Coding> {
        let sibling = self.sibling.and_then(|at| self.named.siblings.get(at));
        sibling.map_or(self.named.coding, |(coding, _)| Some(*coding))
    }

    /// Whether its bytes are compressed, so that nothing is gained by doing it again.
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        self.named.is_compressed || self.coding().is_some()
    }

    /// The media type of the decoded content.
    #[must_use]
    pub fn media_type(&self) -> &HeaderValue {
        &self.named.media_type
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

    /// How long to wait before the file is read, because it was written a moment ago: another write in the
    /// same tick of the kernel's clock would not be seen.
    #[must_use]
    pub fn settles_after(&self) -> Option<Duration> {
        match &self.content {
            // It was read long after.
            FileContent::Memory(_) => None,
            FileContent::Open(_) => self.facts().is_fresh(SystemTime::now()).then_some(TICK),
        }
    }

    /// Whether the file is still what it was when it was found.
    #[must_use]
    pub fn holds(&self) -> bool {
        match &self.content {
            FileContent::Memory(_) => true,
            FileContent::Open(fd) => self.facts().hold(fd),
        }
    }

    /// The tag of the bytes that are sent. `None` if there is none that tells versions apart, or it is
    /// not known yet.
    pub(crate) fn entity_tag(&self, config: &FilesConfig) -> Option<&HeaderValue> {
        let version = self.version();
        if version.facts.is_tagged_by_content(config) {
            version.content_tag.get()
        } else {
            version.time_tag.as_ref()
        }
    }

    /// All bytes of the file, if they are in memory.
    #[must_use]
    pub fn kept(&self) -> Option<&Arc<KeptBody>> {
        match &self.content {
            FileContent::Memory(body) => Some(body),
            FileContent::Open(_) => None,
        }
    }
}

/// All bytes of a file, kept in memory, and codings of them.
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

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The codings of them that were made.
    #[must_use]
    pub fn coded(&self) -> &CodedBodies {
        &self.coded
    }

    /// These bytes, and their codings with one more.
    pub(crate) fn with(&self, coding: Coding, bytes: Bytes) -> Self {
        Self {
            bytes: self.bytes.clone(),
            coded: self.coded.with(coding, bytes),
        }
    }
}

/// A file with those that hold the same in other codings.
#[derive(Debug)]
pub(crate) struct NamedFile {
    /// The media type of the decoded content.
    pub(crate) media_type: HeaderValue,
    /// The coding of the plain file, as its name says.
    pub(crate) coding: Option<Coding>,
    /// Whether files of that name are compressed.
    pub(crate) is_compressed: bool,
    /// Whether it stands in the place of a missing page.
    pub(crate) is_fallback: bool,
    pub(crate) plain: Version,
    pub(crate) siblings: ArrayVec<(Coding, Version), { Coding::ALL.len() }>,
    /// Codings of which the file is too old to be used.
    pub(crate) old_siblings: ArrayVec<Coding, { Coding::ALL.len() }>,
}

/// The choice of one of the files that hold the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Selection {
    pub(crate) sibling: Option<usize>,
    pub(crate) old_sibling: Option<Coding>,
}

impl NamedFile {
    /// The file that a client is to have that takes these codings.
    pub(crate) fn select(&self, codings: &AcceptedCodings) -> Selection {
        let mut old_sibling = None;
        for coding in codings.iter() {
            let sibling = self.siblings.iter().position(|(its, _)| *its == coding);
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

    /// The plain file and its siblings in other codings.
    pub(crate) fn versions(&self) -> impl Iterator<Item = &Version> {
        let siblings = self.siblings.iter().map(|(_, version)| version);
        std::iter::once(&self.plain).chain(siblings)
    }

    /// What is sent to a client of this selection, from this content.
    pub(crate) fn found(self: &Arc<Self>, selection: Selection, content: FileContent) -> FoundFile {
        FoundFile {
            named: Arc::clone(self),
            sibling: selection.sibling,
            content,
            varies_by_coding: !self.siblings.is_empty(),
            old_sibling: selection.old_sibling,
        }
    }

    /// The file of a selection.
    pub(crate) fn version(&self, selection: Selection) -> &Version {
        let sibling = selection.sibling.and_then(|at| self.siblings.get(at));
        sibling.map_or(&self.plain, |(_, version)| version)
    }
}

/// One version of a file, with the fields that tell it from others.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) facts: FileFacts,
    time_tag: Option<HeaderValue>,
    /// The value of `Last-Modified`.
    pub(crate) date: Option<HeaderValue>,
    /// The tag of its content, once that was read.
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

/// Facts of a file that tell one version of it from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileFacts {
    device: u64,
    inode: u64,
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
            device: stat.st_dev,
            inode: stat.st_ino,
            names: u128::from(stat.st_nlink),
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    /// Whether the descriptor still has the bytes of this version. A file that has lost its name, because
    /// another file was renamed to it, has the same bytes.
    pub(crate) fn hold(&self, fd: &OwnedFd) -> bool {
        let Ok(stat) = fstat(fd) else {
            return false;
        };
        let now = Self::new(&stat);
        let is_renamed = now.names != self.names;
        let has_bytes = (now.size, now.modified) == (self.size, self.modified);
        has_bytes && (now.changed == self.changed || is_renamed)
    }

    /// Whether nothing at all has changed.
    pub(crate) fn are_of(&self, fd: &OwnedFd) -> bool {
        fstat(fd).is_ok_and(|stat| Self::new(&stat) == *self)
    }

    /// Whether the time of change says nothing, because it is 1970: tools that make images give all files
    /// one time.
    pub(crate) fn is_timeless(&self) -> bool {
        self.modified.0 <= 1
    }

    pub(crate) fn is_tagged_by_content(&self, config: &FilesConfig) -> bool {
        config.etag == EtagRule::Content || self.is_timeless()
    }

    /// Whether the last write was a tick of the kernel's clock ago at most. A write now might leave all
    /// times as they are.
    pub(crate) fn is_fresh(&self, now: SystemTime) -> bool {
        let is_near = |at| distance(at, now).is_some_and(|since| since < TICK);
        is_near(self.modified) && is_near(self.changed)
    }

    /// Whether a write that gave the file this time has certainly ended.
    pub(crate) fn is_settled(&self, now: SystemTime) -> bool {
        distance(self.modified, now).is_none_or(|since| since >= SETTLED_AFTER)
    }

    /// The tag of time, size and coding, on which all fronts of a cluster agree. `None` if the time says
    /// nothing.
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

/// The tag of content with this digest.
pub(crate) fn content_tag(digest: &[u8]) -> Option<HeaderValue> {
    let mut tag = String::with_capacity(2 * TAG_BYTES + 2);
    tag.push('"');
    for byte in digest.iter().take(TAG_BYTES) {
        write!(tag, "{byte:02x}").ok()?;
    }
    tag.push('"');
    HeaderValue::from_maybe_shared(Bytes::from(tag)).ok()
}

/// How far a time of a file is from now; `None` if that is further than any that matters.
fn distance(time: (i64, u64), now: SystemTime) -> Option<Duration> {
    let seconds = u64::try_from(time.0).ok()?;
    let at_second = UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?;
    let at = at_second.checked_add(Duration::from_nanos(time.1))?;
    Some(match now.duration_since(at) {
        Ok(since) => since,
        Err(until) => until.duration(),
    })
}

/// Longer than a tick of the kernel's clock, by which it stamps files: 10 ms at most.
const TICK: Duration = Duration::from_millis(20);

/// Longer than one call may take that writes a small file, and than the grain of any file system's times.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// Bytes of a digest that are in a tag.
const TAG_BYTES: usize = 16;

/// The first second of the year 10000.
const DATES_END: u64 = 253_402_300_800;
