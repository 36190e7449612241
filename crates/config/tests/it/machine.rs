//! What is said of the machine that a file is for: the directories of its log and of its sockets.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use catamaran_config::load;

/// What is said of a file with these tables in that directory.
fn said(directory: &Path, tables: &str) -> String {
    let path = directory.join("catamaran.toml");
    let needed = "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nstatus = 404\n";
    fs::write(&path, format!("{needed}{tables}")).expect("a directory that can be written");
    let said = match load(&path) {
        Ok(loaded) => loaded.report.to_string(),
        Err(error) => error.to_string(),
    };
    said.replace(&format!("{}/", directory.display()), "")
}

#[test]
fn the_directory_of_the_log_must_be_there() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    for (access, expected) in [
        ("access.log", ""),
        (
            "none/access.log",
            "fault: there is no directory none; create it",
        ),
        (
            "catamaran.toml/access.log",
            "fault: there is no directory catamaran.toml;",
        ),
        (
            "logs",
            "fault: `access` is logs, a directory; write the path of a file",
        ),
        ("logs/access.log", ""),
    ] {
        fs::create_dir_all(at.join("logs")).unwrap();
        let said = said(at, &format!("[log]\naccess = \"{access}\"\n"));
        assert_eq!(said.is_empty(), expected.is_empty(), "{access}: {said}");
        assert!(said.contains(expected), "{access}: {said}");
    }
}

#[test]
fn a_log_that_this_user_cannot_write_is_warned_of() {
    let directory = tempfile::tempdir().unwrap();
    let logs = directory.path().join("logs");
    fs::create_dir(&logs).unwrap();
    fs::set_permissions(&logs, Permissions::from_mode(0o555)).unwrap();
    let may_write = fs::write(logs.join("probe"), "").is_ok();
    let said = said(directory.path(), "[log]\naccess = \"logs/access.log\"\n");
    let warned = said.contains("warning: logs cannot be written to: Permission denied");
    assert_eq!(warned, !may_write, "root may write anywhere: {said}");
}

#[test]
fn two_paths_to_one_socket_are_one() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("run")).unwrap();
    symlink("run", directory.path().join("var-run")).unwrap();
    let at = directory.path().display();
    let listen = |path: &str| format!("[[listen]]\naddress = \"unix:{at}/{path}\"\n");
    let both = listen("run/front.sock") + &listen("var-run/front.sock");
    let fault = ":8:11: fault: line 6 listens there already";
    assert!(said(directory.path(), &both).contains(fault));
    let other = listen("run/front.sock") + &listen("var-run/other.sock");
    assert_eq!(said(directory.path(), &other), "");
}
