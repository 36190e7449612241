//! A directory that is served: finds the file that a request is for.

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

/// A directory that is served, for all threads.
#[derive(Debug)]
pub struct Directory {
    config: FilesConfig,
    /// Tells it from all others that the process has had.
    pub(crate) id: u64,
    root: ArcSwapOption<OpenRoot>,
    pub(crate) tags: ContentTags,
}

/// What is looked for.
#[derive(Clone, Debug)]
pub struct FileQuery {
    /// The name, as it would be forwarded.
    pub name: FileName,
    /// The codings that the client takes.
    pub codings: AcceptedCodings,
    /// Whether the path that the client sent ends in a slash: relative links of a directory's page depend
    /// on it.
    pub ends_in_slash: bool,
    /// Whether the client wants a page, so that `fallback` stands in for a missing one.
    pub wants_page: bool,
}

/// Why there is nothing to send.
#[derive(Debug, Error)]
pub enum FindError {
    /// The directory itself cannot be opened, and asking again on a thread does not help.
    #[error("the directory cannot be opened: {0}")]
    Root(OpenError),
    /// Nothing was opened in it.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// The result of a search: what the name stands for, whatever codings the client takes.
#[derive(Debug)]
pub struct Finding {
    pub(crate) root: RootId,
    pub(crate) named: NameTarget,
    /// What stands in for a missing page.
    pub(crate) fallback: Option<Arc<NamedFile>>,
    /// The files that were opened.
    opened: ArrayVec<(FileFacts, Arc<OwnedFd>), { 1 + Coding::ALL.len() }>,
}

/// What a name stands for.
#[derive(Clone, Debug)]
pub(crate) enum NameTarget {
    File(Arc<NamedFile>),
    /// A directory, and the path lacks the slash at its end.
    Directory,
    Missing,
}

impl Directory {
    /// A directory; nothing is opened yet.
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

    /// Opens what a request is for.
    ///
    /// # Errors
    /// It cannot be opened. A missing file is no error.
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

    /// The name of the file that stands in for a missing page, if the client asks for a page.
    pub(crate) fn fallback_for(&self, query: &FileQuery) -> Option<&[u8]> {
        let fallback = self.config.fallback.as_ref()?;
        (query.wants_page && query.name.is_page()).then_some(fallback.as_bytes())
    }

    /// Which directory the path leads to, as of the last second; `None` if that is not known without a
    /// wait, or there is none.
    pub(crate) fn present_root(&self) -> Option<RootId> {
        self.root(Access::Cached).ok().map(|root| root.id)
    }

    /// The directory, opened within the last second.
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
    /// What the client gets.
    ///
    /// # Errors
    /// There is none.
    pub fn choose(&self, query: &FileQuery) -> Result<Found, FindError> {
        let file = match (&self.named, &self.fallback) {
            (NameTarget::File(file), _) | (NameTarget::Missing, Some(file)) => file,
            (NameTarget::Directory, _) => return Ok(Found::Directory),
            (NameTarget::Missing, None) => return Err(OpenError::Missing.into()),
        };
        let selection = file.select(&query.codings);
        let facts = &file.version(selection).facts;
        let opened = self.opened.iter().find(|(its, _)| its == facts);
        let (_, fd) = opened.ok_or(OpenError::Missing)?;
        let content = FileContent::Open(Arc::clone(fd));
        Ok(Found::File(file.found(selection, content)))
    }
}

/// One search for a file.
struct Search<'s> {
    config: &'s FilesConfig,
    root: &'s OpenRoot,
    access: Access,
    opened: ArrayVec<(FileFacts, Arc<OwnedFd>), { 1 + Coding::ALL.len() }>,
}

impl Search<'_> {
    /// What the name stands for.
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

    /// What stands in for a missing page.
    fn fallback(&mut self, name: &[u8]) -> Result<Option<Arc<NamedFile>>, OpenError> {
        let plain = self.open_regular(name)?;
        plain
            .map(|plain| self.with_siblings(name, plain, true))
            .transpose()
    }

    /// The file that stands for a directory.
    fn index(&mut self, directory: &[u8], ends_in_slash: bool) -> Result<NameTarget, OpenError> {
        let config = self.config;
        for index in &config.index {
            let mut name = directory.to_vec();
            if !name.is_empty() {
                name.push(b'/');
            }
            name.extend_from_slice(index.as_bytes());
            match self.open_regular(&name)? {
                Some(_) if !ends_in_slash => return Ok(NameTarget::Directory),
                Some(plain) => {
                    return Ok(NameTarget::File(self.with_siblings(&name, plain, false)?));
                }
                None => {}
            }
        }
        Ok(NameTarget::Missing)
    }

    /// The file, and its codings.
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

    /// Keeps what was opened until the client's codings choose.
    fn hold(&mut self, opened: OpenedName) {
        let held = (opened.facts, Arc::new(opened.fd));
        self.opened.try_push(held).ok();
    }

    /// The file of that coding, if there is one.
    fn sibling(&self, name: &[u8], coding: Coding) -> Result<Option<OpenedName>, OpenError> {
        let name = [name, coding.suffix().as_bytes()].concat();
        match self.open_regular(&name) {
            Err(error @ (OpenError::WouldBlock | OpenError::Descriptors)) => Err(error),
            Err(_) => Ok(None),
            opened => opened,
        }
    }

    fn open_regular(&self, name: &[u8]) -> Result<Option<OpenedName>, OpenError> {
        let opened = self.open(name)?;
        Ok(opened.filter(|it| it.kind == OpenedKind::Regular))
    }

    /// What has the name; `None` if nothing does.
    fn open(&self, name: &[u8]) -> Result<Option<OpenedName>, OpenError> {
        match self.root.open_name(name, self.access) {
            Ok(opened) => Ok(Some(opened)),
            Err(OpenError::Missing) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Whether a compressed file was left behind when the plain one was replaced.
fn is_older(sibling: &FileFacts, plain: &FileFacts) -> bool {
    sibling.modified.0 < plain.modified.0.saturating_sub(SIBLING_LAG_MAX)
}

/// Seconds by which a compressed file may be older than the plain one: tools that copy both do it in any
/// order.
const SIBLING_LAG_MAX: i64 = 60;

#[cfg(test)]
mod tests;
