//! Access to the files of the source. The crate opens no file itself: the caller passes a [`Files`].

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files and environment of the machine that the configuration comes from.
pub trait Files {
    /// The bytes of a file.
    ///
    /// # Errors
    /// The file cannot be read.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// The files that a shell pattern matches, sorted; a directory stands for the files in it and below it.
    fn matching(&self, pattern: &str) -> Vec<PathBuf>;

    /// The names in a directory; `None` if it does not exist.
    fn names(&self, directory: &Path) -> Option<Vec<String>>;

    /// The path under which the front finds a file of the source, as the written file names it.
    fn located(&self, path: &Path) -> String {
        path.display().to_string()
    }

    /// The first error that the front finds in a file with this text, such as a key with a password; `None` if there
    /// is none, or if it cannot be checked.
    fn fault(&self, text: &str) -> Option<String> {
        let _ = text;
        None
    }

    /// An environment variable; `None` if it is not set.
    fn variable(&self, name: &str) -> Option<String>;
}

/// Why a configuration was not converted.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The path of the file.
        path: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A file cannot be understood.
    #[error("{file}:{line}: {message}")]
    Syntax {
        /// The name of the file.
        file: Arc<str>,
        /// The line of the error, the first being 1.
        line: usize,
        /// What is wrong in that line of the file.
        message: String,
    },
    /// The source is larger than the importer reads; the text says which limit it exceeds.
    #[error("more than {0} are read for one configuration; import a part of it")]
    TooMuch(&'static str),
}

/// The text of a file, with its name and path.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) name: Arc<str>,
    pub(crate) path: PathBuf,
    pub(crate) text: Arc<str>,
}

/// Counts the files and bytes read so far, and refuses more than the limits.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    files: usize,
    bytes: usize,
}

impl Budget {
    /// Reads a file. Bytes that are not UTF-8 are replaced: host names and paths are ASCII in any
    /// case.
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
