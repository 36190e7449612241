//! A directory that is served: finds the file that a request is for.

use std::io;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use thiserror::Error;

use crate::coding::{AcceptedCodings, FileCoding};
use crate::config::FilesConfig;
use crate::found::{FileFacts, Found, FoundFile};
use crate::media::media_type;
use crate::name::FileName;
use crate::open::{Access, OpenError, OpenRoot, Opened, OpenedKind};

/// A directory that is served, for all threads.
#[derive(Debug)]
pub struct Directory {
    config: FilesConfig,
    root: ArcSwapOption<OpenRoot>,
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
    /// The disk would have to be waited for: ask again with [`Access::Blocking`].
    #[error("the kernel would have to wait for the disk")]
    WouldBlock,
    /// There is no such file, or it is none that is served.
    #[error("there is no such file")]
    Missing,
    /// A link leads outside.
    #[error("a link leads outside of the directory")]
    Outside,
    /// The front has no right to read it.
    #[error("the file may not be read")]
    Denied,
    /// The process, or the machine, has as many files open as it may.
    #[error("there are no more descriptors")]
    Descriptors,
    /// The directory itself cannot be opened.
    #[error("the directory cannot be opened: {0}")]
    Root(io::Error),
    /// The kernel said something else.
    #[error("the file cannot be opened: {0}")]
    Failed(io::Error),
}

impl From<OpenError> for FindError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::WouldBlock => Self::WouldBlock,
            OpenError::Missing => Self::Missing,
            OpenError::Outside => Self::Outside,
            OpenError::Denied => Self::Denied,
            OpenError::Descriptors => Self::Descriptors,
            OpenError::Failed(error) => Self::Failed(error),
        }
    }
}

impl Directory {
    /// A directory; nothing is opened yet.
    #[must_use]
    pub fn new(config: FilesConfig) -> Self {
        Self {
            config,
            root: ArcSwapOption::empty(),
        }
    }

    /// How it is served.
    #[must_use]
    pub fn config(&self) -> &FilesConfig {
        &self.config
    }

    /// Opens the file that a request is for.
    ///
    /// # Errors
    /// There is none, or it cannot be had.
    pub fn find(&self, query: &FileQuery, access: Access) -> Result<Found, FindError> {
        let root = self.root(access)?;
        match (self.find_named(&root, query, access), &self.config.fallback) {
            (Err(FindError::Missing), Some(fallback))
                if query.wants_page && query.name.is_page() =>
            {
                let plain = regular(root.open_name(fallback.as_bytes(), access)?)?;
                let search = Search {
                    directory: self,
                    root: &root,
                    query,
                    access,
                };
                let mut file = search.best_of(fallback.as_bytes(), plain)?;
                file.is_fallback = true;
                Ok(Found::File(file))
            }
            (found, _) => found,
        }
    }

    /// The directory, opened within the last second.
    fn root(&self, access: Access) -> Result<Arc<OpenRoot>, FindError> {
        if let Some(root) = &*self.root.load()
            && !root.is_old()
        {
            return Ok(Arc::clone(root));
        }
        let root = OpenRoot::open(&self.config, access).map_err(|error| match error {
            OpenError::WouldBlock => FindError::WouldBlock,
            OpenError::Descriptors => FindError::Descriptors,
            OpenError::Failed(error) => FindError::Root(error),
            OpenError::Missing | OpenError::Outside => {
                FindError::Root(io::Error::from(io::ErrorKind::NotFound))
            }
            OpenError::Denied => FindError::Root(io::Error::from(io::ErrorKind::PermissionDenied)),
        })?;
        let root = Arc::new(root);
        self.root.store(Some(Arc::clone(&root)));
        Ok(root)
    }

    fn find_named(
        &self,
        root: &OpenRoot,
        query: &FileQuery,
        access: Access,
    ) -> Result<Found, FindError> {
        let search = Search {
            directory: self,
            root,
            query,
            access,
        };
        let name = query.name.relative();
        if query.name.is_directory() {
            return search.index(name);
        }
        let opened = root.open_name(name, access)?;
        match opened.kind {
            OpenedKind::Regular => search.best_of(name, opened).map(Found::File),
            OpenedKind::Directory => search.index(name),
            OpenedKind::Other => Err(FindError::Missing),
        }
    }
}

/// One search for a file.
struct Search<'s> {
    directory: &'s Directory,
    root: &'s OpenRoot,
    query: &'s FileQuery,
    access: Access,
}

impl Search<'_> {
    /// The file that stands for a directory.
    fn index(&self, directory: &[u8]) -> Result<Found, FindError> {
        for index in &self.directory.config.index {
            let mut name = directory.to_vec();
            if !name.is_empty() {
                name.push(b'/');
            }
            name.extend_from_slice(index.as_bytes());
            let opened = self.root.open_name(&name, self.access);
            match opened.map_err(FindError::from).and_then(regular) {
                Ok(_) if !self.query.ends_in_slash => return Ok(Found::Directory),
                Ok(plain) => return self.best_of(&name, plain).map(Found::File),
                Err(FindError::Missing) => {}
                Err(error) => return Err(error),
            }
        }
        Err(FindError::Missing)
    }

    /// The file, or one of its codings that the client would rather have.
    fn best_of(&self, name: &[u8], plain: Opened) -> Result<FoundFile, FindError> {
        let config = &self.directory.config;
        let mut file = FoundFile {
            fd: Arc::new(plain.fd),
            facts: plain.facts,
            coding: None,
            media_type: media_type(name, config),
            has_siblings: false,
            is_fallback: false,
            old_sibling: None,
        };
        for coding in self.query.codings.iter() {
            let Some(sibling) = self.sibling(name, coding)? else {
                continue;
            };
            if is_older(&sibling.facts, &plain.facts) {
                file.old_sibling = Some(coding);
                continue;
            }
            file.fd = Arc::new(sibling.fd);
            file.facts = sibling.facts;
            file.coding = Some(coding);
            file.has_siblings = true;
            return Ok(file);
        }
        for &coding in &config.precompressed {
            let sibling = self.sibling(name, coding)?;
            if sibling.is_some_and(|it| !is_older(&it.facts, &plain.facts)) {
                file.has_siblings = true;
                break;
            }
        }
        Ok(file)
    }

    /// The file of that coding, if there is one.
    fn sibling(&self, name: &[u8], coding: FileCoding) -> Result<Option<Opened>, FindError> {
        let name = [name, coding.suffix().as_bytes()].concat();
        let opened = self.root.open_name(&name, self.access);
        match opened.map_err(FindError::from).and_then(regular) {
            Ok(sibling) => Ok(Some(sibling)),
            Err(error @ (FindError::WouldBlock | FindError::Descriptors)) => Err(error),
            Err(_) => Ok(None),
        }
    }
}

fn regular(opened: Opened) -> Result<Opened, FindError> {
    match opened.kind {
        OpenedKind::Regular => Ok(opened),
        OpenedKind::Directory | OpenedKind::Other => Err(FindError::Missing),
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
