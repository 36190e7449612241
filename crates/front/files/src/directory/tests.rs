use std::fs::{self, File};
use std::io::Write;
use std::iter;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use catamaran_testkit::without_override;
use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use tempfile::TempDir;

use super::*;
use crate::config::Links;
use crate::found::FoundFile;

/// A temporary directory with one that is served, and one beside it that is not.
struct Tree {
    _top: TempDir,
    root: PathBuf,
    outside: PathBuf,
}

impl Tree {
    fn new() -> Self {
        let top = tempfile::tempdir().unwrap();
        let (root, outside) = (top.path().join("www"), top.path().join("outside"));
        fs::create_dir_all(root.join("dir")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret.txt"), "OUTSIDE").unwrap();
        fs::write(root.join("page.html"), "page").unwrap();
        fs::write(root.join("dir/index.html"), "index").unwrap();
        Self {
            _top: top,
            root,
            outside,
        }
    }

    fn directory(&self, change: impl FnOnce(&mut FilesConfig)) -> Directory {
        let mut config = FilesConfig::new(&self.root);
        change(&mut config);
        Directory::new(config)
    }
}

fn ask(directory: &Directory, path: &[u8], codings: &str) -> Result<Found, FindError> {
    let config = directory.config();
    let query = FileQuery {
        name: FileName::new(path, config).unwrap(),
        codings: AcceptedCodings::of(iter::once(codings.as_bytes()), &config.precompressed),
        ends_in_slash: path.ends_with(b"/"),
        wants_page: true,
    };
    find(directory, &query, Access::Blocking)
}

fn find(directory: &Directory, query: &FileQuery, access: Access) -> Result<Found, FindError> {
    directory.search(query, access)?.choose(query)
}

/// The result for a path in one word, or the first bytes of its file.
fn outcome(directory: &Directory, path: &str) -> String {
    match ask(directory, path.as_bytes(), "") {
        Ok(Found::File(file)) => content(&file),
        Ok(Found::Directory) => "directory".to_owned(),
        Err(FindError::Root(error)) => format!("root: {error:?}"),
        Err(FindError::Open(error)) => format!("{error:?}"),
    }
}

fn descriptor(file: &FoundFile) -> &OwnedFd {
    match &file.content {
        FileContent::Open(fd) => fd,
        FileContent::Memory(_) => panic!("a search reads nothing"),
    }
}

fn content(file: &FoundFile) -> String {
    let mut bytes = [0; 64];
    let read = rustix::io::pread(descriptor(file), &mut bytes[..], 0).unwrap();
    String::from_utf8_lossy(&bytes[..read]).into_owned()
}

#[test]
fn files_and_directories_are_told_apart() {
    let tree = Tree::new();
    fs::create_dir(tree.root.join("bare")).unwrap();
    let directory = tree.directory(|_| {});
    for (path, expected) in [
        ("/page.html", "page"),
        ("/page.html/", "Missing"),
        ("/page.html/x", "Missing"),
        ("/dir", "directory"),
        ("/dir/", "index"),
        ("/bare", "Missing"),
        ("/bare/", "Missing"),
        ("/", "Missing"),
        ("/none", "Missing"),
        ("/none/", "Missing"),
    ] {
        assert_eq!(outcome(&directory, path), expected, "{path}");
    }
}

#[test]
fn links_lead_where_the_rule_lets_them() {
    let tree = Tree::new();
    let root = &tree.root;
    let outside = tree.outside.join("secret.txt");
    symlink("page.html", root.join("in")).unwrap();
    symlink("../page.html", root.join("dir/up")).unwrap();
    symlink("../outside/secret.txt", root.join("out")).unwrap();
    symlink(&outside, root.join("abs")).unwrap();
    symlink(root.join("page.html"), root.join("abs-in")).unwrap();
    symlink("../outside", root.join("outdir")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    symlink("/proc/self/root/etc/passwd", root.join("magic")).unwrap();
    symlink("/proc/self/fd/0", root.join("fd")).unwrap();
    symlink("out", root.join("twice")).unwrap();
    let also = Links::Also(vec![tree.outside.clone()]);
    let nobody = Links::Also(vec![root.join("none")]);
    for (path, inside, off, also_outside, others) in [
        ("/in", "page", "Missing", "page", "page"),
        ("/dir/up", "page", "Missing", "page", "page"),
        ("/out", "Outside", "Missing", "OUTSIDE", "Outside"),
        ("/twice", "Outside", "Missing", "OUTSIDE", "Outside"),
        ("/abs", "Outside", "Missing", "OUTSIDE", "Outside"),
        ("/abs-in", "Outside", "Missing", "page", "page"),
        (
            "/outdir/secret.txt",
            "Outside",
            "Missing",
            "OUTSIDE",
            "Outside",
        ),
        ("/loop", "Missing", "Missing", "Missing", "Missing"),
        ("/magic", "Outside", "Missing", "Missing", "Missing"),
        ("/fd", "Outside", "Missing", "Missing", "Missing"),
    ] {
        for (links, expected) in [
            (Links::Inside, inside),
            (Links::Off, off),
            (also.clone(), also_outside),
            (nobody.clone(), others),
        ] {
            let directory = tree.directory(|config| config.links = links.clone());
            assert_eq!(outcome(&directory, path), expected, "{path} {links:?}");
        }
    }
}

/// Opening such files must not make the caller wait, either.
#[test]
fn only_regular_files_are_served() {
    let tree = Tree::new();
    let fifo = tree.root.join("fifo");
    let mode = Mode::from_raw_mode(0o644);
    mknodat(CWD, &fifo, FileType::Fifo, mode, 0).unwrap();
    let _socket = UnixListener::bind(tree.root.join("socket")).unwrap();
    let directory = tree.directory(|config| config.links = Links::Also(vec!["/dev".into()]));
    symlink("/dev/zero", tree.root.join("zero")).unwrap();
    for path in ["/fifo", "/socket", "/zero"] {
        assert_eq!(outcome(&directory, path), "Missing", "{path}");
    }
}

#[test]
fn names_of_any_bytes_are_found() {
    let tree = Tree::new();
    let directory = tree.directory(|_| {});
    for byte in (1..=255_u8).filter(|byte| !b"/\\.".contains(byte)) {
        let name = [b'x', byte];
        let path = tree.root.join(std::ffi::OsStr::from_bytes(&name));
        fs::write(&path, [byte]).unwrap();
        let asked = format!("/x%{byte:02x}");
        let found = ask(&directory, asked.as_bytes(), "").unwrap();
        assert!(matches!(found, Found::File(_)), "{asked}");
    }
}

#[test]
fn a_file_that_may_not_be_read_is_denied() {
    let tree = Tree::new();
    let path = tree.root.join("page.html");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    let directory = tree.directory(|_| {});
    let denied = without_override(|| outcome(&directory, "/page.html"));
    assert_eq!(denied, "Denied");
}

#[test]
fn the_directory_itself_may_be_swapped_or_missing() {
    let tree = Tree::new();
    let current = tree.root.with_file_name("current");
    let releases = ["one", "two"].map(|name| {
        let release = tree.root.with_file_name(name);
        fs::create_dir(&release).unwrap();
        fs::write(release.join("page.html"), name).unwrap();
        release
    });
    let directory = Directory::new(FilesConfig::new(&current));
    assert_eq!(outcome(&directory, "/page.html"), "root: Missing");
    symlink(&releases[0], &current).unwrap();
    assert_eq!(outcome(&directory, "/page.html"), "one");
    let next = current.with_file_name("next");
    symlink(&releases[1], &next).unwrap();
    fs::rename(&next, &current).unwrap();
    let swapped = SystemTime::now();
    while outcome(&directory, "/page.html") == "one" {
        assert!(swapped.elapsed().unwrap() < Duration::from_secs(10));
        std::thread::yield_now();
    }
    assert_eq!(outcome(&directory, "/page.html"), "two");
}

#[test]
fn compressed_files_beside_the_plain_one_are_chosen() {
    let tree = Tree::new();
    let write = |name: &str, text: &str| fs::write(tree.root.join(name), text).unwrap();
    write("app.js", "plain");
    write("app.js.br", "brotli");
    write("app.js.gz", "gzip");
    write("only.js", "plain");
    write("only.js.gz", "gzip");
    write("gone.js.gz", "gzip");
    fs::create_dir(tree.root.join("page.html.gz")).unwrap();
    let directory = tree.directory(|_| {});
    for (path, codings, expected, varies_by_coding) in [
        ("/app.js", "gzip, br", "brotli", true),
        ("/app.js", "gzip, br;q=0.5", "gzip", true),
        ("/app.js", "", "plain", true),
        ("/only.js", "gzip, br", "gzip", true),
        ("/only.js", "br", "plain", true),
        ("/page.html", "gzip", "page", false),
        ("/app.js.gz", "gzip", "gzip", false),
    ] {
        let Ok(Found::File(file)) = ask(&directory, path.as_bytes(), codings) else {
            panic!("{path}");
        };
        let found = (content(&file), file.varies_by_coding);
        assert_eq!(
            found,
            (expected.to_owned(), varies_by_coding),
            "{path} {codings}"
        );
        assert_eq!(
            file.coding().is_some(),
            expected != "plain" && expected != "page" && path != "/app.js.gz"
        );
    }
    let gone = ask(&directory, b"/gone.js", "gzip");
    assert!(matches!(gone, Err(FindError::Open(OpenError::Missing))));
}

#[test]
fn a_compressed_file_that_was_left_behind_is_not_used() {
    let tree = Tree::new();
    let compressed = tree.root.join("page.html.gz");
    fs::write(&compressed, "old").unwrap();
    let directory = tree.directory(|_| {});
    for (age, is_used) in [(50, true), (70, false)] {
        let at = SystemTime::now() - Duration::from_secs(age);
        File::options()
            .write(true)
            .open(&compressed)
            .unwrap()
            .set_modified(at)
            .unwrap();
        let Ok(Found::File(file)) = ask(&directory, b"/page.html", "gzip") else {
            panic!("it is there");
        };
        assert_eq!(file.coding().is_some(), is_used, "{age}");
        assert_eq!(file.old_sibling().is_none(), is_used, "{age}");
        assert_eq!(file.varies_by_coding, is_used, "{age}");
    }
}

#[test]
fn a_fallback_stands_in_for_a_missing_page() {
    let tree = Tree::new();
    fs::write(tree.root.join("index.html"), "application").unwrap();
    let directory = tree.directory(|config| config.fallback = Some("index.html".to_owned()));
    for (path, expected) in [
        ("/orders/7", "application"),
        ("/orders/", "application"),
        ("/page.html", "page"),
        ("/gone.js", "Missing"),
        ("/dir", "directory"),
    ] {
        assert_eq!(outcome(&directory, path), expected, "{path}");
    }
}

/// A swap of a directory for a link, between two steps of the kernel's walk, shows nothing from outside.
#[test]
fn a_swap_of_directory_and_link_never_shows_the_outside() {
    let tree = Tree::new();
    let (dir, link) = (tree.root.join("swap"), tree.root.join("link"));
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("secret.txt"), "INSIDE").unwrap();
    symlink("../outside", &link).unwrap();
    let directory = tree.directory(|_| {});
    let is_over = AtomicBool::new(false);
    let (mut inside, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                renameat_with(CWD, &dir, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        });
        for _ in 0..20_000 {
            match outcome(&directory, "/swap/secret.txt").as_str() {
                "INSIDE" => inside += 1,
                "OUTSIDE" => panic!("the outside was shown"),
                _ => refused += 1,
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    // The swaps took place.
    assert!(inside > 0 && refused > 0, "{inside} {refused}");
}

/// On the event loop a name that the kernel has in memory is found; one that it does not have is not
/// waited for.
#[test]
fn the_event_loop_never_waits() {
    let tree = Tree::new();
    let directory = tree.directory(|_| {});
    assert_eq!(outcome(&directory, "/page.html"), "page");
    let query = FileQuery {
        name: FileName::new(b"/page.html", directory.config()).unwrap(),
        codings: AcceptedCodings::default(),
        ends_in_slash: false,
        wants_page: false,
    };
    match find(&directory, &query, Access::Cached) {
        Ok(Found::File(file)) => assert_eq!(content(&file), "page"),
        Err(FindError::Open(OpenError::WouldBlock)) => {}
        other => panic!("{other:?}"),
    }
    let also = tree.directory(|config| config.links = Links::Also(vec![tree.outside.clone()]));
    let found = find(&also, &query, Access::Cached);
    assert!(
        matches!(found, Err(FindError::Open(OpenError::WouldBlock))),
        "{found:?}"
    );
}

/// The facts of an opened file do not change when its name gets another file.
#[test]
fn facts_tell_one_version_from_another() {
    let tree = Tree::new();
    let directory = tree.directory(|_| {});
    let path: &Path = &tree.root.join("page.html");
    let found = || match ask(&directory, b"/page.html", "") {
        Ok(Found::File(file)) => file,
        other => panic!("{other:?}"),
    };
    let first = found();
    assert!(first.facts().hold(descriptor(&first)));
    File::options()
        .append(true)
        .open(path)
        .unwrap()
        .write_all(b"more")
        .unwrap();
    assert!(!first.facts().hold(descriptor(&first)));
    let second = found();
    fs::write(tree.root.join("new"), "another").unwrap();
    fs::rename(tree.root.join("new"), path).unwrap();
    assert_eq!(content(&second), "pagemore");
    assert_eq!(content(&found()), "another");
}
