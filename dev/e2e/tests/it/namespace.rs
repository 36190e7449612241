//! Tests that run themselves again in namespaces of their own.

use std::ffi::OsStr;
use std::process::Command;

/// Whether this process has namespaces of these kinds (options of `unshare`). If not, it has run the test with this name
/// in a process that has, after `script` of the shell has set them up. The script has `argument` as `$0`, and ends with
/// `exec "$@"`.
pub(crate) fn has_namespaces(
    kinds: &[&str],
    script: &str,
    argument: impl AsRef<OsStr>,
    test: &str,
) -> bool {
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let status = Command::new("unshare")
        .args(kinds)
        .args(["sh", "-ec", script])
        .arg(argument)
        .arg(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(MARK, "1")
        .status()
        .unwrap();
    assert!(status.success(), "{test} failed in its namespace");
    false
}

/// Set in a process that has its namespaces.
const MARK: &str = "CATAMARAN_TEST_HAS_NAMESPACES";
