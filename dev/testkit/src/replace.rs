//! A change of a file that others watch.

use std::path::Path;
use std::{fs, io};

/// Writes a file in one piece, as editors and deployments do: whoever reads it meanwhile finds the whole old or the
/// whole new one. [`fs::write`] empties it first, and a server that looks at that moment takes it for a change. A file
/// that is there keeps its permissions.
///
/// # Errors
/// The file cannot be written.
pub fn replace_file(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".next");
    let next = Path::new(&name);
    fs::write(next, content)?;
    if let Ok(known) = fs::metadata(path) {
        fs::set_permissions(next, known.permissions())?;
    }
    fs::rename(next, path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_replaced_file_is_another_with_the_same_permissions() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        replace_file(&path, "one").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let before = fs::File::open(&path).unwrap();
        replace_file(&path, "two").unwrap();
        assert_eq!(io::read_to_string(before).unwrap(), "one");
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
