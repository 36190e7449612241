//! The file that keeps the overrides for a restart.
//!
//! It is replaced as a whole, by a rename. A file that cannot be understood is renamed, so that it can be examined and
//! is not overwritten; the front then starts with the settings of its configuration.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use crate::site::overrides::Overrides;

#[derive(Debug)]
pub(crate) struct StateFile {
    path: PathBuf,
    /// Whether the file could not be used at the start, and no change was written since.
    unread: AtomicBool,
    /// Whether the last attempt to write the file failed.
    unwritten: AtomicBool,
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
            unread: AtomicBool::new(false),
            unwritten: AtomicBool::new(false),
        }
    }

    /// Reads the overrides; none if there is no file, or if it cannot be used, which is logged.
    pub(crate) fn load(&self) -> Overrides {
        let path = self.path.display();
        let error = match read(&self.path) {
            Ok(overrides) => return overrides,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Overrides::default(),
            Err(error) => error,
        };
        self.unread.store(true, Ordering::Relaxed);
        if error.kind() == io::ErrorKind::InvalidInput {
            // Not a regular file: it is left where it is.
            tracing::error!("the state file {path} cannot be used: {error}");
            return Overrides::default();
        }
        let corrupt = beside(&self.path, "corrupt");
        match fs::rename(&self.path, &corrupt) {
            Ok(()) => tracing::error!(
                "the state file {path} cannot be used: {error}; it is now {}, and the settings of \
                 the configuration hold",
                corrupt.display()
            ),
            Err(rename) => tracing::error!(
                "the state file {path} cannot be used: {error}; it cannot be renamed either: {rename}"
            ),
        }
        Overrides::default()
    }

    /// Replaces the file. A failure is logged, and reported by [`Self::fails`] until a later write succeeds; the
    /// overrides hold nevertheless.
    pub(crate) fn save(&self, overrides: &Overrides) {
        let written = write(&self.path, overrides);
        self.unwritten.store(written.is_err(), Ordering::Relaxed);
        if let Err(error) = written {
            let path = self.path.display();
            tracing::error!(
                "cannot write the state file {path}: {error}; what was changed is lost at a restart"
            );
        }
    }

    /// Saves as [`Self::save`] does, after a change by an operator, who has seen the settings in force. So a file that
    /// could not be used at the start is no longer reported.
    pub(crate) fn save_change(&self, overrides: &Overrides) {
        self.save(overrides);
        if !self.unwritten.load(Ordering::Relaxed) {
            self.unread.store(false, Ordering::Relaxed);
        }
    }

    /// Whether the file cannot be written, or could not be used at the start and no change was written since.
    pub(crate) fn fails(&self) -> bool {
        self.unread.load(Ordering::Relaxed) || self.unwritten.load(Ordering::Relaxed)
    }
}

/// Reads the overrides from a regular file of at most [`BYTES_MAX`] bytes.
fn read(path: &Path) -> io::Result<Overrides> {
    if is_irregular(path) {
        return Err(no_file());
    }
    let file = File::open(path)?;
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

/// Whether the path exists but is not a regular file: opening a pipe would wait for its writer, and a device must not
/// be replaced.
fn is_irregular(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|it| !it.is_file())
}

fn no_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}

/// Replaces the file by one with these overrides, unless it has them already.
fn write(path: &Path, overrides: &Overrides) -> io::Result<()> {
    if is_irregular(path) {
        return Err(no_file());
    }
    let document = Document {
        version: VERSION,
        overrides,
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    if is_written(path, &text) {
        return Ok(());
    }
    // The temporary file has a random name, so nobody can put a link in its place. Only its owner may read it (mode
    // 0600), and it is removed if this fails.
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let name = path.file_name().unwrap_or_default();
    let mut next = tempfile::Builder::new()
        .prefix(name)
        .suffix(".new")
        .tempfile_in(folder)?;
    next.write_all(text.as_bytes())?;
    next.as_file().sync_all()?;
    next.persist(path)?;
    Ok(())
}

/// Whether the file has this text, is no link, and only its owner may read it.
fn is_written(path: &Path, text: &str) -> bool {
    fs::symlink_metadata(path).is_ok_and(|it| {
        it.is_file() && it.mode() & 0o777 == OWNER_ONLY && it.size() == text.len() as u64
    }) && fs::read(path).is_ok_and(|present| present == text.as_bytes())
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}

const VERSION: u32 = 1;

/// The mode of a file that its owner alone may read and write.
const OWNER_ONLY: u32 = 0o600;

/// The most bytes of the file that are read. An override takes some 300 bytes.
const BYTES_MAX: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

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
    fn what_is_written_already_is_left_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("state.json");
        let file = StateFile::new(path.clone());
        let inode = || fs::symlink_metadata(&path).expect("a file").ino();
        file.save(&some());
        let first = inode();
        file.save(&some());
        file.save_change(&some());
        assert_eq!(inode(), first);
        file.save(&Overrides::default());
        assert_eq!(file.load(), Overrides::default());
        // Whatever else became of it is mended.
        fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("open to all");
        file.save(&Overrides::default());
        let mode = fs::symlink_metadata(&path).expect("a file").mode();
        assert_eq!(mode & 0o777, OWNER_ONLY);
        let moved = directory.path().join("moved");
        fs::rename(&path, &moved).expect("moved");
        symlink(&moved, &path).expect("a link");
        file.save(&Overrides::default());
        assert!(fs::symlink_metadata(&path).expect("a file").is_file());
        fs::remove_file(&path).expect("removed");
        file.save(&Overrides::default());
        assert_eq!(file.load(), Overrides::default());
    }

    #[test]
    fn nobody_else_reads_it_and_no_link_is_followed() {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, victim) = ["state.json", "victim"]
            .map(|name| directory.path().join(name))
            .into();
        fs::write(&victim, "precious").expect("written");
        symlink(&victim, beside(&path, "new")).expect("a link");
        fs::write(&path, "{}").expect("written");
        fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("open to all");
        let file = StateFile::new(path.clone());
        file.save(&some());
        assert!(!file.fails());
        assert_eq!(fs::read_to_string(&victim).expect("kept"), "precious");
        let mode = fs::symlink_metadata(&path)
            .expect("a file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(file.load(), some());
        // Nothing is left of it but the file.
        assert_eq!(
            fs::read_dir(directory.path()).expect("a directory").count(),
            3
        );
    }

    #[test]
    fn what_is_no_file_is_neither_waited_for_nor_touched() {
        let directory = tempfile::tempdir().expect("a directory");
        let pipe = directory.path().join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).expect("a pipe");
        for path in [&pipe, directory.path()] {
            let file = StateFile::new(path.to_owned());
            assert!(file.load().is_empty() && file.fails(), "{path:?}");
            file.save_change(&some());
            assert!(file.fails() && path.exists() && !path.is_file(), "{path:?}");
        }
    }

    #[test]
    fn what_cannot_be_understood_is_set_aside() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("state.json");
        for bad in ["", "{", "[]", r#"{"version":9,"overrides":{}}"#, "\u{0}"] {
            fs::write(&path, bad).expect("written");
            let file = StateFile::new(path.clone());
            assert!(file.load().is_empty() && file.fails(), "{bad}");
            let kept = beside(&path, "corrupt");
            assert_eq!(fs::read_to_string(kept).expect("kept"), bad);
            assert!(!path.exists());
            // At the start and by a reload it is written anew, which nobody has noticed.
            file.save(&some());
            assert!(file.fails(), "{bad}");
            file.save_change(&some());
            assert!(!file.fails());
            assert_eq!(file.load(), some());
        }
    }
}
