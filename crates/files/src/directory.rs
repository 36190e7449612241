//! A directory that is served: finds the file that a request is for.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use catamaran_coding::{AcceptedCodings, Coding};
use thiserror::Error;

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
    /// The directory itself cannot be opened, and asking again on a thread does not help.
    #[error("the directory cannot be opened: {0}")]
    Root(OpenError),
    /// Nothing was opened in it.
    #[error(transparent)]
    Open(#[from] OpenError),
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
            (Err(FindError::Open(OpenError::Missing)), Some(fallback))
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
            OpenError::WouldBlock | OpenError::Descriptors => FindError::Open(error),
            error => FindError::Root(error),
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
            return Ok(search.index(name)?);
        }
        let opened = root.open_name(name, access)?;
        match opened.kind {
            OpenedKind::Regular => Ok(Found::File(search.best_of(name, opened)?)),
            OpenedKind::Directory => Ok(search.index(name)?),
            OpenedKind::Other => Err(OpenError::Missing.into()),
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
    fn index(&self, directory: &[u8]) -> Result<Found, OpenError> {
        for index in &self.directory.config.index {
            let mut name = directory.to_vec();
            if !name.is_empty() {
                name.push(b'/');
            }
            name.extend_from_slice(index.as_bytes());
            let opened = self.root.open_name(&name, self.access);
            match opened.and_then(regular) {
                Ok(_) if !self.query.ends_in_slash => return Ok(Found::Directory),
                Ok(plain) => return self.best_of(&name, plain).map(Found::File),
                Err(OpenError::Missing) => {}
                Err(error) => return Err(error),
            }
        }
        Err(OpenError::Missing)
    }

    /// The file, or one of its codings that the client would rather have.
    fn best_of(&self, name: &[u8], plain: Opened) -> Result<FoundFile, OpenError> {
        let config = &self.directory.config;
        let mut file = FoundFile {
            fd: Arc::new(plain.fd),
            facts: plain.facts,
            coding: None,
            media_type: media_type(name, config),
            varies_by_coding: false,
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
            file.varies_by_coding = true;
            return Ok(file);
        }
        for &coding in &config.precompressed {
            let sibling = self.sibling(name, coding)?;
            if sibling.is_some_and(|it| !is_older(&it.facts, &plain.facts)) {
                file.varies_by_coding = true;
                break;
            }
        }
        Ok(file)
    }

    /// The file of that coding, if there is one.
    fn sibling(&self, name: &[u8], coding: Coding) -> Result<Option<Opened>, OpenError> {
        let name = [name, coding.suffix().as_bytes()].concat();
        let opened = self.root.open_name(&name, self.access);
        match opened.and_then(regular) {
            Ok(sibling) => Ok(Some(sibling)),
            Err(error @ (OpenError::WouldBlock | OpenError::Descriptors)) => Err(error),
            Err(_) => Ok(None),
        }
    }
}

fn regular(opened: Opened) -> Result<Opened, OpenError> {
    match opened.kind {
        OpenedKind::Regular => Ok(opened),
        OpenedKind::Directory | OpenedKind::Other => Err(OpenError::Missing),
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
