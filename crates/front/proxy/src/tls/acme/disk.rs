//! Files and directories for their owner only, which are whole after a crash.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

use tempfile::{NamedTempFile, PersistError};

/// Makes a directory for the owner only, with those above it.
pub(super) fn make_directory(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(path);
    made.map_err(|error| at(path, &error))
}

/// Writes a file beside its place, and renames it when the disk has it. Makes its folder if it is not there.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_beside(path, bytes, |file| file.persist(path))
}

/// Writes a file as [`write()`] does, unless it is there.
///
/// # Errors
/// `AlreadyExists` if it is there.
pub(super) fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_beside(path, bytes, |file| file.persist_noclobber(path))
}

/// Writes a file beside its place, to which `put` renames it when the disk has it.
fn write_beside(
    path: &Path,
    bytes: &[u8],
    put: impl FnOnce(NamedTempFile) -> Result<File, PersistError>,
) -> io::Result<()> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let write = || {
        make_directory(folder)?;
        let mut file = tempfile::Builder::new()
            .permissions(Permissions::from_mode(0o600))
            .tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        put(file).map_err(|error| error.error)?;
        sync_directory(folder)
    };
    write().map_err(|error| at(path, &error))
}

pub(super) fn sync_directory(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The text of a small file; `None`: there is no such file.
pub(super) fn read_text(path: &Path) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(at(path, &error)),
    };
    let mut text = String::new();
    let read = file.take(FILE_MAX).read_to_string(&mut text);
    read.map_err(|error| at(path, &error))?;
    Ok(Some(text))
}

/// Removes a file, which may be gone already.
pub(super) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(at(path, &error)),
        _ => Ok(()),
    }
}

/// The error with the path that it concerns.
pub(super) fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The most bytes of a file that are read. A chain has some kilobytes.
const FILE_MAX: u64 = 1 << 20;
