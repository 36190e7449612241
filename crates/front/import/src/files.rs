//! Where texts come from. The crate opens no file itself: the caller lends a [`Files`].

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files of the machine that the configuration is from.
pub trait Files {
    /// The bytes of a file.
    ///
    /// # Errors
    /// It cannot be read.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// The files that a pattern of the shell matches, sorted; a directory stands for the files in it.
    fn matching(&self, pattern: &str) -> Vec<PathBuf>;

    /// The names in a directory; `None` if it is not there.
    fn names(&self, directory: &Path) -> Option<Vec<String>>;

    /// Where a file of the source is, by a path that the front can have.
    fn located(&self, path: &Path) -> String {
        path.display().to_string()
    }

    /// A variable of the environment.
    fn variable(&self, name: &str) -> Option<String>;
}

/// Why nothing was converted.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// A file cannot be understood.
    #[error("{file}:{line}: {message}")]
    Syntax {
        /// The file.
        file: Arc<str>,
        /// The line.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// More than is read.
    #[error("more than {0} are read for one configuration; import a part of it")]
    TooMuch(&'static str),
}

/// A text with its name, and what all texts together may have.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) name: Arc<str>,
    pub(crate) path: PathBuf,
    pub(crate) text: Arc<str>,
}

/// Counts what was read.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    files: usize,
    bytes: usize,
}

impl Budget {
    /// Reads a file. What is not UTF-8 is replaced: names of hosts and paths are ASCII in any case.
    pub(crate) fn read(&mut self, files: &dyn Files, path: &Path) -> Result<Text, ImportError> {
        let bytes = files.read(path).map_err(|source| ImportError::Read {
            path: path.display().to_string(),
            source,
        })?;
        self.files += 1;
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.files > FILES_MAX {
            return Err(ImportError::TooMuch("1,000 files"));
        }
        if self.bytes > BYTES_MAX {
            return Err(ImportError::TooMuch("16 MiB"));
        }
        Ok(Text {
            name: path.display().to_string().into(),
            path: path.to_owned(),
            text: String::from_utf8_lossy(&bytes).into(),
        })
    }
}

const FILES_MAX: usize = 1_000;
const BYTES_MAX: usize = 16 << 20;
