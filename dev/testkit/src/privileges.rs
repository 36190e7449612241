//! Lets tests that run as root see permissions of files as other users do.

use std::panic::resume_unwind;
use std::thread;

use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

/// Calls `work` on a thread to which the permissions of files apply, although the process is root's. They also apply
/// to threads that `work` starts; the caller's thread is not changed.
///
/// # Panics
/// The kernel does not take the capabilities away, or `work` panics.
pub fn without_override<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mut sets = capabilities(None).expect("what this thread may do");
            let overriding = CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
            sets.effective.remove(overriding);
            set_capabilities(None, sets).expect("to give up a right is allowed");
            work()
        });
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{File, Permissions, set_permissions};
    use std::io::ErrorKind;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_without_rights_is_denied_to_root_too() {
        let file = tempfile::NamedTempFile::new().unwrap();
        set_permissions(file.path(), Permissions::from_mode(0o000)).unwrap();
        let before = File::open(file.path()).is_ok();
        let denied = || {
            thread::scope(|scope| {
                let opened = scope.spawn(|| File::open(file.path()));
                opened.join().unwrap().unwrap_err().kind()
            })
        };
        assert_eq!(without_override(denied), ErrorKind::PermissionDenied);
        assert_eq!(File::open(file.path()).is_ok(), before);
    }
}
