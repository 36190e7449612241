//! The files that one worker keeps: results of lookups, small bodies, and open descriptors.
//!
//! A name is looked up again after a second. Bytes and descriptors are kept by version ([`FileFacts`]): a
//! name that still stands for the same version continues to use them, and another version never does. A
//! body is kept in memory only if the file was the same before and after it was read, and had not been
//! written to for some time: a write that was under way then would go unnoticed.
//!
//! Every part has a limit. Entries that were asked for once are displaced by those that are asked for
//! often.

use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::io::IoSliceMut;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use catamaran_coding::Coding;
use quick_cache::unsync::{Cache, DefaultLifecycle};
use quick_cache::{Equivalent, UnitWeighter, Weighter};
use rustix::io::{ReadWriteFlags, preadv2};
use tokio::time::Instant;

use crate::directory::{Directory, FileQuery, FindError, Finding, NameTarget};
use crate::found::{FileContent, FileFacts, Found, FoundFile, KeptBody, NamedFile};
use crate::open::{OpenError, RootId};

/// The limits on what one worker keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableLimits {
    /// The most files that are kept open.
    pub open: usize,
    /// The most bytes of memory for bodies and names.
    pub memory: u64,
}

/// The files that one worker keeps: names, bodies and descriptors.
pub struct FileTable {
    limits: TableLimits,
    names: Cache<NameKey, KnownName, NameWeight, RandomState>,
    /// Names of missing files. They are separate, so that a client that asks for many displaces no file.
    missing: Cache<NameKey, KnownName, UnitWeighter, RandomState>,
    bodies: Cache<FileFacts, Arc<KeptBody>, BodyWeight, RandomState>,
    descriptors: Cache<FileFacts, KeptDescriptor, UnitWeighter, RandomState>,
}

impl Default for FileTable {
    /// A table that keeps nothing until it is given limits.
    fn default() -> Self {
        let (hasher, unit) = (RandomState::new(), UnitWeighter);
        Self {
            limits: TableLimits { open: 0, memory: 0 },
            names: Cache::with(ITEMS, 0, NameWeight, hasher.clone(), lifecycle()),
            missing: Cache::with(MISSING_MAX, 0, unit.clone(), hasher.clone(), lifecycle()),
            bodies: Cache::with(ITEMS, 0, BodyWeight, hasher.clone(), lifecycle()),
            descriptors: Cache::with(ITEMS, 0, unit, hasher, lifecycle()),
        }
    }
}

fn lifecycle<K, V>() -> DefaultLifecycle<K, V> {
    DefaultLifecycle::default()
}

impl FileTable {
    /// The kept result for a request's name; `None` if the name must be looked up.
    pub fn find(
        &mut self,
        directory: &Directory,
        query: &FileQuery,
        now: Instant,
    ) -> Option<Result<Found, FindError>> {
        if self.names.is_empty() && self.missing.is_empty() {
            return None;
        }
        let root = directory.present_root()?;
        let file = match self.known(NameRef::of(directory, query), root, now)? {
            NameTarget::File(file) => file,
            NameTarget::Directory => return Some(Ok(Found::Directory)),
            NameTarget::Missing => {
                let Some(fallback) = directory.fallback_for(query) else {
                    return Some(Err(OpenError::Missing.into()));
                };
                match self.known(NameRef::of_fallback(directory, fallback), root, now)? {
                    NameTarget::File(file) => file,
                    // Only found fallbacks are kept.
                    NameTarget::Directory | NameTarget::Missing => return None,
                }
            }
        };
        let selection = file.select(&query.codings);
        let content = self.content(&file.version(selection).facts, now)?;
        Some(Ok(Found::File(file.found(selection, content))))
    }

    /// Keeps the result of a lookup, within these limits, and returns what the client gets.
    ///
    /// # Errors
    /// There is no file of this name.
    pub fn keep(
        &mut self,
        directory: &Directory,
        query: &FileQuery,
        finding: &Finding,
        limits: TableLimits,
        now: Instant,
    ) -> Result<Found, FindError> {
        self.resize(limits);
        let known = |named: &NameTarget| KnownName {
            root: finding.root,
            checked: now,
            named: named.clone(),
        };
        self.keep_name(NameRef::of(directory, query), known(&finding.named));
        if let (Some(file), Some(name)) = (&finding.fallback, directory.fallback_for(query)) {
            let fallback = NameRef::of_fallback(directory, name);
            self.keep_name(fallback, known(&NameTarget::File(Arc::clone(file))));
        }
        let mut found = finding.choose(query)?;
        if let Found::File(file) = &mut found
            && let FileContent::Open(fd) = &file.content
        {
            let (fd, facts) = (Arc::clone(fd), *file.facts());
            file.content = self.keep_content(facts, fd, now);
        }
        Ok(found)
    }

    /// Keeps all bytes of a file that the caller has read, if the file is small.
    pub fn keep_body(&mut self, file: &FoundFile, bytes: &Bytes) {
        let facts = *file.facts();
        let is_whole = bytes.len() as u64 == facts.size;
        if is_whole && is_small(&facts) && facts.is_settled(SystemTime::now()) {
            self.descriptors.remove(&facts);
            // A copy: the caller's buffer may have unused room.
            let body = KeptBody::new(Bytes::copy_from_slice(bytes));
            self.bodies.insert(facts, Arc::new(body));
        }
    }

    /// Keeps a compressed form of a file whose bytes are in memory.
    pub fn keep_coded(&mut self, file: &FoundFile, coding: Coding, bytes: Bytes) {
        let facts = file.facts();
        if let Some(body) = self.bodies.peek(facts) {
            let with_coding = Arc::new(body.with(coding, bytes));
            self.bodies.insert(*facts, with_coding);
        }
    }

    /// Closes all kept files, because descriptors run out. `false` if none was open.
    pub fn close_all(&mut self) -> bool {
        let had_any = !self.descriptors.is_empty();
        self.descriptors.clear();
        had_any
    }

    /// Closes files that no request has asked for lately, so that they can be unmounted or deleted.
    pub fn sweep(&mut self, now: Instant) {
        if !self.descriptors.is_empty() {
            let is_used = |it: &KeptDescriptor| now.duration_since(it.used.get()) < UNUSED_MAX;
            self.descriptors.retain(|_, it| is_used(it));
        }
    }

    /// The bytes of memory that bodies and names take.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let missing = self.missing.len() * NAME_OVERHEAD;
        self.bodies.weight() + self.names.weight() + missing as u64
    }

    /// The number of files that are kept open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.descriptors.len()
    }

    /// Applies new limits.
    fn resize(&mut self, limits: TableLimits) {
        if limits == self.limits {
            return;
        }
        self.limits = limits;
        let of_names = limits.memory / NAMES_SHARE;
        let is_off = limits.memory == 0 && limits.open == 0;
        let names = of_names + (limits.open * NAME_OVERHEAD) as u64;
        self.names.set_capacity(names);
        let missing = if is_off { 0 } else { MISSING_MAX };
        self.missing.set_capacity(missing as u64);
        self.bodies.set_capacity(limits.memory - of_names);
        self.descriptors.set_capacity(limits.open as u64);
    }

    /// What a name stands for in this directory, if it was looked up within the last second.
    fn known(&self, name: NameRef<'_>, root: RootId, now: Instant) -> Option<NameTarget> {
        let is_valid = |known: &&KnownName| {
            known.root == root && now.saturating_duration_since(known.checked) < CHECK_AFTER
        };
        let existing = self.names.get(&name).filter(is_valid);
        let known = existing.or_else(|| self.missing.get(&name).filter(is_valid));
        known.map(|known| known.named.clone())
    }

    /// Keeps the result of a lookup. Bytes and descriptors of versions that it no longer names are dropped.
    fn keep_name(&mut self, name: NameRef<'_>, known: KnownName) {
        if let Some(before) = self.names.peek(&name) {
            for facts in before.named.replaced_by(&known.named) {
                self.bodies.remove(&facts);
                self.descriptors.remove(&facts);
            }
        }
        match known.named {
            NameTarget::Missing => {
                self.names.remove(&name);
                if name.name.len() <= MISSING_NAME_MAX {
                    self.missing.insert(name.to_key(), known);
                }
            }
            NameTarget::File(_) | NameTarget::Directory => {
                self.missing.remove(&name);
                self.names.insert(name.to_key(), known);
            }
        }
    }

    /// The kept bytes or descriptor of a version; `None`: there are none.
    fn content(&mut self, facts: &FileFacts, now: Instant) -> Option<FileContent> {
        if let Some(body) = self.bodies.get(facts) {
            return Some(FileContent::Memory(Arc::clone(body)));
        }
        let kept = self.descriptors.get(facts)?;
        let fd = Arc::clone(&kept.fd);
        if !facts.are_of(&fd) {
            self.descriptors.remove(facts);
            return None;
        }
        kept.used.set(now);
        if !is_small(facts) {
            return Some(FileContent::Open(fd));
        }
        // It was not in memory, or had just been written, when it was opened.
        Some(self.keep_content(*facts, fd, now))
    }

    /// Keeps the bytes of a small file if the kernel has them in memory, else its descriptor.
    fn keep_content(&mut self, facts: FileFacts, fd: Arc<OwnedFd>, now: Instant) -> FileContent {
        if let Some(body) = self.bodies.get(&facts) {
            return FileContent::Memory(Arc::clone(body));
        }
        let may_keep = self.limits.memory > 0 && is_small(&facts);
        if may_keep
            && facts.is_settled(SystemTime::now())
            && let Some(bytes) = read_now(&fd, &facts)
        {
            let body = Arc::new(KeptBody::new(bytes));
            self.descriptors.remove(&facts);
            self.bodies.insert(facts, Arc::clone(&body));
            return FileContent::Memory(body);
        }
        let kept = KeptDescriptor {
            fd: Arc::clone(&fd),
            used: Cell::new(now),
        };
        self.descriptors.insert(facts, kept);
        FileContent::Open(fd)
    }
}

impl std::fmt::Debug for FileTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileTable")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Reads all bytes of a file from the kernel's memory; `None` if they are not there, or are of several
/// versions.
fn read_now(fd: &OwnedFd, facts: &FileFacts) -> Option<Bytes> {
    let mut bytes = vec![0; usize::try_from(facts.size).ok()?];
    let read = if bytes.is_empty() {
        0
    } else {
        let mut slices = [IoSliceMut::new(&mut bytes)];
        preadv2(fd, &mut slices, 0, ReadWriteFlags::NOWAIT).ok()?
    };
    if read < bytes.len() || !facts.are_of(fd) {
        return None;
    }
    Some(bytes.into())
}

fn is_small(facts: &FileFacts) -> bool {
    facts.size <= BODY_MAX
}

/// The result of a lookup of a name, and when it was made.
#[derive(Debug)]
struct KnownName {
    root: RootId,
    checked: Instant,
    named: NameTarget,
}

impl NameTarget {
    /// The versions of this result that another result lacks.
    fn replaced_by(&self, other: &Self) -> Vec<FileFacts> {
        fn versions(named: &NameTarget) -> impl Iterator<Item = &FileFacts> {
            let file: Option<&Arc<NamedFile>> = match named {
                NameTarget::File(file) => Some(file),
                NameTarget::Directory | NameTarget::Missing => None,
            };
            let versions = file.into_iter().flat_map(|file| file.versions());
            versions.map(|version| &version.facts)
        }
        let mut replaced = Vec::new();
        for facts in versions(self) {
            if !versions(other).any(|kept| kept == facts) {
                replaced.push(*facts);
            }
        }
        replaced
    }
}

#[derive(Debug)]
struct KeptDescriptor {
    fd: Arc<OwnedFd>,
    used: Cell<Instant>,
}

/// The key of a name: the directory, the kind of lookup, and the name in the request.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NameKey {
    directory: u64,
    kind: NameKind,
    name: Box<[u8]>,
}

/// A [`NameKey`] with a borrowed name, for lookups.
#[derive(Clone, Copy, Hash)]
struct NameRef<'q> {
    directory: u64,
    kind: NameKind,
    name: &'q [u8],
}

/// The kind of a lookup: for a request's own path, or for the page that replaces a missing one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum NameKind {
    /// Whether the path to look up ends in a slash, and whether the client's path does.
    Asked(bool, bool),
    Fallback,
}

impl<'q> NameRef<'q> {
    fn of(directory: &Directory, query: &'q FileQuery) -> Self {
        Self {
            directory: directory.id,
            kind: NameKind::Asked(query.name.is_directory(), query.ends_in_slash),
            name: query.name.relative(),
        }
    }

    fn of_fallback(directory: &Directory, name: &'q [u8]) -> Self {
        Self {
            directory: directory.id,
            kind: NameKind::Fallback,
            name,
        }
    }

    fn to_key(self) -> NameKey {
        NameKey {
            directory: self.directory,
            kind: self.kind,
            name: self.name.into(),
        }
    }
}

impl Equivalent<NameKey> for NameRef<'_> {
    fn equivalent(&self, key: &NameKey) -> bool {
        let is_same = self.directory == key.directory && self.kind == key.kind;
        is_same && *self.name == *key.name
    }
}

#[derive(Clone, Debug)]
struct NameWeight;

impl Weighter<NameKey, KnownName> for NameWeight {
    fn weight(&self, key: &NameKey, _: &KnownName) -> u64 {
        (key.name.len() + NAME_OVERHEAD) as u64
    }
}

#[derive(Clone, Debug)]
struct BodyWeight;

impl Weighter<FileFacts, Arc<KeptBody>> for BodyWeight {
    fn weight(&self, _: &FileFacts, body: &Arc<KeptBody>) -> u64 {
        (body.bytes.len() + body.coded.len() + BODY_OVERHEAD) as u64
    }
}

/// The largest body in bytes that is kept in memory. From 64 KiB on it is cheaper if the kernel sends the
/// file.
const BODY_MAX: u64 = 32 * 1024;

/// How long the result of a lookup is used.
const CHECK_AFTER: Duration = Duration::from_secs(1);

/// How long a file that no request asks for is kept open.
const UNUSED_MAX: Duration = Duration::from_secs(10);

/// The most names of missing files that are kept.
const MISSING_MAX: usize = 1000;

/// The longest name in bytes of a missing file that is kept.
const MISSING_NAME_MAX: usize = 512;

/// The memory is divided by this number to get the part for names.
const NAMES_SHARE: u64 = 8;

/// The memory that a name takes besides its own bytes: facts, tags and types of its files.
const NAME_OVERHEAD: usize = 768;

/// The memory that a body takes besides its own bytes.
const BODY_OVERHEAD: usize = 296;

/// The number of entries for which room is allocated at first.
const ITEMS: usize = 1024;

#[cfg(test)]
mod tests;
