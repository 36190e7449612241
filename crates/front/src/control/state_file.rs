//! The overrides in a file, so that a restart keeps them.
//!
//! The file is replaced whole, by a rename. One that cannot be understood is renamed, so that it can
//! be looked at and is not overwritten, and the front starts with the settings of its configuration.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use crate::site::overrides::Overrides;

#[derive(Debug)]
pub(crate) struct StateFile {
    path: PathBuf,
    /// The last attempt to read or write it failed.
    fails: AtomicBool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document<T> {
    version: u32,
    overrides: T,
}

impl StateFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            fails: AtomicBool::new(false),
        }
    }

    /// What the file says; nothing if there is none, or if it cannot be understood.
    pub(crate) fn load(&self) -> Overrides {
        let path = self.path.display();
        let error = match read(&self.path) {
            Ok(overrides) => return overrides,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Overrides::default(),
            Err(error) => error,
        };
        self.fails.store(true, Ordering::Relaxed);
        let aside = aside(&self.path);
        match fs::rename(&self.path, &aside) {
            Ok(()) => tracing::error!(
                "the state file {path} cannot be used: {error}; it is now {}, and the settings of \
                 the configuration hold",
                aside.display()
            ),
            Err(rename) => tracing::error!(
                "the state file {path} cannot be used: {error}; it cannot be renamed either: {rename}"
            ),
        }
        Overrides::default()
    }

    /// Writes it anew. A failure is said, and changes nothing else.
    pub(crate) fn save(&self, overrides: &Overrides) {
        let written = write(&self.path, overrides);
        self.fails.store(written.is_err(), Ordering::Relaxed);
        if let Err(error) = written {
            let path = self.path.display();
            tracing::error!(
                "cannot write the state file {path}: {error}; what was changed is lost at a restart"
            );
        }
    }

    /// Whether the last attempt to read or write it failed.
    pub(crate) fn fails(&self) -> bool {
        self.fails.load(Ordering::Relaxed)
    }
}

fn read(path: &Path) -> io::Result<Overrides> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    file.take(BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > BYTES_MAX {
        return Err(io::Error::other("it is too large"));
    }
    let document: Document<Overrides> = serde_json::from_str(&text)?;
    match document.version {
        VERSION => Ok(document.overrides),
        version => Err(io::Error::other(format!("it is of version {version}"))),
    }
}

fn write(path: &Path, overrides: &Overrides) -> io::Result<()> {
    let document = Document {
        version: VERSION,
        overrides,
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    let next = beside(path, "new");
    let mut file = File::create(&next)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&next, path)
}

fn aside(path: &Path) -> PathBuf {
    beside(path, "corrupt")
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}

const VERSION: u32 = 1;

/// An override takes some 300 bytes.
const BYTES_MAX: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Activation;
    use crate::site::Controls;
    use crate::site::overrides::Override;

    fn some() -> Overrides {
        let file = Controls {
            activation: Activation::Active,
            weight: 1,
            distance: 0,
        };
        let mut said = Override::default();
        said.activate(Some(Activation::Drain), file);
        let mut all = Overrides::default();
        all.put("u", "b", said);
        all
    }

    #[test]
    fn what_is_written_is_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = StateFile::new(directory.path().join("state.json"));
        assert!(file.load().is_empty() && !file.fails());
        file.save(&some());
        assert_eq!(file.load(), some());
    }

    #[test]
    fn what_cannot_be_understood_is_set_aside() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("state.json");
        for bad in ["", "{", "[]", r#"{"version":9,"overrides":{}}"#, "\u{0}"] {
            fs::write(&path, bad).expect("written");
            let file = StateFile::new(path.clone());
            assert!(file.load().is_empty() && file.fails(), "{bad}");
            assert_eq!(fs::read_to_string(aside(&path)).expect("kept"), bad);
            assert!(!path.exists());
            file.save(&some());
            assert!(!file.fails());
            assert_eq!(file.load(), some());
        }
    }
}
