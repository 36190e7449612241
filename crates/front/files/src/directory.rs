//! A directory that is served: finds the file that a request asks for.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwapOption;
use arrayvec::ArrayVec;
use catamaran_coding::{AcceptedCodings, Coding};
use thiserror::Error;

use crate::config::FilesConfig;
use crate::found::{FileContent, FileFacts, Found, NamedFile, Version};
use crate::media::{is_compressed, media_type, own_coding};
use crate::name::FileName;
use crate::open::{Access, OpenError, OpenRoot, OpenedKind, OpenedName, RootId};
use crate::tags::ContentTags;

/// A directory that is served, shared by all threads.
#[derive(Debug)]
pub struct Directory {
    config: FilesConfig,
    /// A number that no other directory of the process has had.
    pub(crate) id: u64,
    root: ArcSwapOption<OpenRoot>,
    pub(crate) tags: ContentTags,
}

/// A search for a file: its name, and what the client accepts.
#[derive(Clone, Debug)]
pub struct FileQuery {
    /// The name, decoded from the path that would be forwarded.
    pub name: FileName,
    /// The codings that the client accepts.
    pub codings: AcceptedCodings,
    /// Whether the path that the client sent ends in a slash, on which relative links of a directory's page
    /// depend.
    pub ends_in_slash: bool,
    /// Whether the client asks for a page, so that `fallback` may replace a missing one.
    pub wants_page: bool,
}

/// Why there is no file to send.
#[derive(Debug, Error)]
pub enum FindError {
    /// The directory itself cannot be opened, and another attempt on a thread does not help.
    #[error("the directory cannot be opened: {0}")]
    Root(OpenError),
    /// The file in the directory cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// The result of a search: what the name stands for, for clients with any codings.
#[derive(Debug)]
pub struct Finding {
    pub(crate) root: RootId,
    pub(crate) named: NameTarget,
    /// The file that replaces a missing page; `None`: the page is not missing, or there is no fallback.
    pub(crate) fallback: Option<Arc<NamedFile>>,
    /// The files that the search opened.
    opened: ArrayVec<(FileFacts, Arc<OwnedFd>), { 1 + Coding::ALL.len() }>,
}

/// What a name stands for: a file, a directory, or nothing.
#[derive(Clone, Debug)]
pub(crate) enum NameTarget {
    File(Arc<NamedFile>),
    /// A directory with an index, whose path lacks the slash at its end.
    Directory,
    Missing,
}

impl Directory {
    /// Makes a directory; nothing is opened yet.
    #[must_use]
    pub fn new(config: FilesConfig) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            config,
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            root: ArcSwapOption::empty(),
            tags: ContentTags::default(),
        }
    }

    /// The settings by which the directory is served.
    #[must_use]
    pub fn config(&self) -> &FilesConfig {
        &self.config
    }

    /// Opens the file that a request asks for.
    ///
    /// # Errors
    /// Why it cannot be opened. A missing file is not an error.
    pub fn search(&self, query: &FileQuery, access: Access) -> Result<Finding, FindError> {
        let root = self.root(access)?;
        let mut search = Search {
            config: &self.config,
            root: &root,
            access,
            opened: ArrayVec::new(),
        };
        let named = search.named(query)?;
        let fallback = match (&named, self.fallback_for(query)) {
            (NameTarget::Missing, Some(fallback)) => search.fallback(fallback)?,
            _ => None,
        };
        Ok(Finding {
            root: root.id,
            named,
            fallback,
            opened: search.opened,
        })
    }

    /// The name of the file that replaces a missing page, if the client asks for a page.
    pub(crate) fn fallback_for(&self, query: &FileQuery) -> Option<&[u8]> {
        let fallback = self.config.fallback.as_ref()?;
        (query.wants_page && query.name.is_page()).then_some(fallback.as_bytes())
    }

    /// The identity of the directory at the path, at most a second old; `None` if it cannot be known
    /// without waiting, or there is no directory.
    pub(crate) fn present_root(&self) -> Option<RootId> {
        self.root(Access::Cached).ok().map(|root| root.id)
    }

    /// The directory, opened at most a second ago.
    fn root(&self, access: Access) -> Result<Arc<OpenRoot>, FindError> {
        if let Some(root) = &*self.root.load()
            && !root.is_old()
        {
            return Ok(Arc::clone(root));
        }
        let open_root = OpenRoot::open(&self.config, access).map_err(|error| match error {
            OpenError::WouldBlock | OpenError::Descriptors => FindError::Open(error),
            error => FindError::Root(error),
        })?;
        let root = Arc::new(open_root);
        self.root.store(Some(Arc::clone(&root)));
        Ok(root)
    }
}

impl Finding {
    /// Chooses the file in the coding that the client accepts; [`Found::Directory`] if the name is a directory's.
    ///
    /// # Errors
    /// There is no file of this name.
    pub fn choose(&self, query: &FileQuery) -> Result<Found, FindError> {
        let file = match (&self.named, &self.fallback) {
            (NameTarget::File(file), _) | (NameTarget::Missing, Some(file)) => file,
            (NameTarget::Directory, _) => return Ok(Found::Directory),
            (NameTarget::Missing, None) => return Err(OpenError::Missing.into()),
        };
        let selection = file.select(&query.codings);
        let facts = &file.version(selection).facts;
        let opened = self.opened.iter().find(|(own, _)| own == facts);
        let (_, fd) = opened.ok_or(OpenError::Missing)?;
        let content = FileContent::Open(Arc::clone(fd));
        Ok(Found::File(file.found(selection, content)))
    }
}

/// One search for a file, with the files that it has opened.
struct Search<'s> {
    config: &'s FilesConfig,
    root: &'s OpenRoot,
    access: Access,
    opened: ArrayVec<(FileFacts, Arc<OwnedFd>), { 1 + Coding::ALL.len() }>,
}

impl Search<'_> {
    /// Finds out what the name stands for, and opens it.
    fn named(&mut self, query: &FileQuery) -> Result<NameTarget, OpenError> {
        let name = query.name.relative();
        if query.name.is_directory() {
            return self.index(name, query.ends_in_slash);
        }
        let Some(opened) = self.open(name)? else {
            return Ok(NameTarget::Missing);
        };
        match opened.kind {
            OpenedKind::Regular => Ok(NameTarget::File(self.with_siblings(name, opened, false)?)),
            OpenedKind::Directory => self.index(name, query.ends_in_slash),
            OpenedKind::Other => Ok(NameTarget::Missing),
        }
    }

    /// Opens the file that replaces a missing page; `None`: it does not exist.
    fn fallback(&mut self, name: &[u8]) -> Result<Option<Arc<NamedFile>>, OpenError> {
        match self.open_regular(name)? {
            Some(plain) => Ok(Some(self.with_siblings(name, plain, true)?)),
            None => Ok(None),
        }
    }

    /// Opens the file that is served for a directory, the first of `index` that exists.
    fn index(&mut self, directory: &[u8], ends_in_slash: bool) -> Result<NameTarget, OpenError> {
        let config = self.config;
        for index in &config.index {
            let mut name = directory.to_vec();
            if !name.is_empty() {
                name.push(b'/');
            }
            name.extend_from_slice(index.as_bytes());
            match self.open_regular(&name)? {
                // The client is sent to the path with a slash.
                Some(_) if !ends_in_slash => return Ok(NameTarget::Directory),
                Some(plain) => {
                    return Ok(NameTarget::File(self.with_siblings(&name, plain, false)?));
                }
                None => {}
            }
        }
        Ok(NameTarget::Missing)
    }

    /// Makes the entry of a file, with its compressed siblings.
    fn with_siblings(
        &mut self,
        name: &[u8],
        plain: OpenedName,
        is_fallback: bool,
    ) -> Result<Arc<NamedFile>, OpenError> {
        let config = self.config;
        let mut file = NamedFile {
            media_type: media_type(name, config),
            coding: own_coding(name),
            is_compressed: is_compressed(name),
            is_fallback,
            plain: Version::new(plain.facts, None),
            siblings: ArrayVec::new(),
            old_siblings: ArrayVec::new(),
        };
        // A file that has a coding of its own would need two.
        let precompressed = match file.coding {
            None => &config.precompressed[..],
            Some(_) => &[],
        };
        for &coding in precompressed {
            let Some(sibling) = self.sibling(name, coding)? else {
                continue;
            };
            if is_older(&sibling.facts, &plain.facts) {
                file.old_siblings.try_push(coding).ok();
                continue;
            }
            let version = Version::new(sibling.facts, Some(coding));
            if file.siblings.try_push((coding, version)).is_ok() {
                self.hold(sibling);
            }
        }
        self.hold(plain);
        Ok(Arc::new(file))
    }

    /// Keeps an opened file until the client's codings decide which of the files is sent.
    fn hold(&mut self, opened: OpenedName) {
        let held = (opened.facts, Arc::new(opened.fd));
        self.opened.try_push(held).ok();
    }

    /// Opens the sibling of a file in this coding; `None`: there is none.
    fn sibling(&self, name: &[u8], coding: Coding) -> Result<Option<OpenedName>, OpenError> {
        let sibling_name = [name, coding.suffix().as_bytes()].concat();
        match self.open_regular(&sibling_name) {
            // Another attempt may succeed.
            Err(error @ (OpenError::WouldBlock | OpenError::Descriptors)) => Err(error),
            // The plain file is served in its place.
            Err(_) => Ok(None),
            Ok(opened) => Ok(opened),
        }
    }

    fn open_regular(&self, name: &[u8]) -> Result<Option<OpenedName>, OpenError> {
        let opened = self.open(name)?;
        Ok(opened.filter(|it| it.kind == OpenedKind::Regular))
    }

    /// Opens the file or directory with this name; `None` if it does not exist.
    fn open(&self, name: &[u8]) -> Result<Option<OpenedName>, OpenError> {
        match self.root.open_name(name, self.access) {
            Ok(opened) => Ok(Some(opened)),
            Err(OpenError::Missing) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Whether a compressed file was probably forgotten when the plain one was replaced.
fn is_older(sibling: &FileFacts, plain: &FileFacts) -> bool {
    sibling.modified.0 < plain.modified.0.saturating_sub(SIBLING_LAG_MAX)
}

/// The seconds by which a compressed file may be older than the plain one: tools that copy both do so in
/// any order.
const SIBLING_LAG_MAX: i64 = 60;

#[cfg(test)]
mod tests;
