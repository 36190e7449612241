use std::fs::{self, File};
use std::iter;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use catamaran_coding::{AcceptedCodings, Coding};
use tempfile::TempDir;

use super::*;
use crate::config::FilesConfig;
use crate::name::FileName;
use crate::open::Access;

/// A directory, its table, and a clock.
struct Stage {
    top: TempDir,
    directory: Directory,
    table: FileTable,
    limits: TableLimits,
    now: Instant,
}

impl Stage {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut FilesConfig)) -> Self {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().join("www");
        fs::create_dir(&root).unwrap();
        let mut config = FilesConfig::new(root);
        change(&mut config);
        Self {
            top,
            directory: Directory::new(config),
            table: FileTable::default(),
            limits: TableLimits {
                open: 10,
                memory: 1 << 20,
            },
            now: Instant::now(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.top.path().join("www").join(name)
    }

    /// Writes a file whose time is long ago.
    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        set_time(&path, 1_700_000_000);
    }

    fn query(&self, path: &str, codings: &'static str) -> FileQuery {
        let config = self.directory.config();
        FileQuery {
            name: FileName::new(path.as_bytes(), config).unwrap(),
            codings: AcceptedCodings::of(iter::once(codings.as_bytes()), &config.precompressed),
            ends_in_slash: path.ends_with('/'),
            wants_page: true,
        }
    }

    /// The kept result for a path.
    fn find(&mut self, path: &str) -> Option<Result<Found, FindError>> {
        self.find_coded(path, "")
    }

    fn find_coded(
        &mut self,
        path: &str,
        codings: &'static str,
    ) -> Option<Result<Found, FindError>> {
        let query = self.query(path, codings);
        self.table.find(&self.directory, &query, self.now)
    }

    fn look_up(&mut self, path: &str) -> Result<Found, FindError> {
        self.look_up_coded(path, "")
    }

    fn look_up_coded(&mut self, path: &str, codings: &'static str) -> Result<Found, FindError> {
        let query = self.query(path, codings);
        let finding = self.directory.search(&query, Access::Blocking).unwrap();
        let (limits, now) = (self.limits, self.now);
        self.table
            .keep(&self.directory, &query, &finding, limits, now)
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
    }
}

fn set_time(path: &Path, seconds: u64) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds))
        .unwrap();
}

/// The file's bytes if they are in memory, else how it was found.
fn shown(found: Option<Result<Found, FindError>>) -> String {
    match found {
        None => "unknown".to_owned(),
        Some(Err(FindError::Open(error))) => format!("{error:?}"),
        Some(Err(FindError::Root(_))) => "no root".to_owned(),
        Some(Ok(Found::Directory)) => "directory".to_owned(),
        Some(Ok(Found::File(file))) => match file.content {
            FileContent::Memory(body) => String::from_utf8_lossy(&body.bytes).into_owned(),
            FileContent::Open(_) => "open".to_owned(),
        },
    }
}

#[test]
fn a_name_is_known_for_a_second() {
    let mut stage = Stage::new();
    stage.write("page.html", b"page");
    fs::create_dir(stage.path("dir")).unwrap();
    stage.write("dir/index.html", b"index");
    for (path, expected) in [
        ("/page.html", "page"),
        ("/dir/", "index"),
        ("/dir", "directory"),
        ("/none", "Missing"),
        ("/page.html/", "Missing"),
    ] {
        assert_eq!(shown(stage.find(path)), "unknown", "{path}");
        let looked_up = stage.look_up(path);
        assert_eq!(shown(Some(looked_up)), expected, "{path}");
        stage.pass(CHECK_AFTER - Duration::from_millis(1));
        assert_eq!(shown(stage.find(path)), expected, "{path}");
        stage.pass(Duration::from_millis(1));
        assert_eq!(shown(stage.find(path)), "unknown", "{path}");
    }
    assert_eq!(stage.table.open(), 0);
}

#[test]
fn nothing_is_remembered_without_limits() {
    let mut stage = Stage::new();
    stage.write("page.html", b"page");
    stage.limits = TableLimits { open: 0, memory: 0 };
    for path in ["/page.html", "/none"] {
        stage.look_up(path).ok();
        assert_eq!(shown(stage.find(path)), "unknown", "{path}");
    }
    assert_eq!((stage.table.bytes(), stage.table.open()), (0, 0));
    // A reload gives them, and takes them away.
    stage.limits.memory = 1 << 20;
    stage.look_up("/page.html").unwrap();
    assert_eq!(shown(stage.find("/page.html")), "page");
    stage.limits.memory = 0;
    stage.look_up("/page.html").unwrap();
    assert_eq!(shown(stage.find("/page.html")), "unknown");
    assert_eq!(stage.table.bytes(), 0);
}

/// A write that is under way while a file is read leaves the times unchanged.
#[test]
fn what_was_just_written_is_not_kept_in_memory() {
    let mut stage = Stage::new();
    fs::write(stage.path("page.html"), "page").unwrap();
    assert_eq!(shown(Some(stage.look_up("/page.html"))), "open");
    assert_eq!(shown(stage.find("/page.html")), "open");
    set_time(&stage.path("page.html"), 1_700_000_000);
    assert_eq!(shown(stage.find("/page.html")), "unknown", "it has changed");
    stage.look_up("/page.html").unwrap();
    assert_eq!(shown(stage.find("/page.html")), "page");
    assert_eq!(stage.table.open(), 0);
}

#[test]
fn a_large_file_is_kept_open_until_it_changes() {
    let mut stage = Stage::new();
    let large = vec![b'a'; BODY_MAX as usize + 1];
    stage.write("large.bin", &large);
    assert_eq!(shown(Some(stage.look_up("/large.bin"))), "open");
    assert_eq!(shown(stage.find("/large.bin")), "open");
    let file = File::options()
        .write(true)
        .open(stage.path("large.bin"))
        .unwrap();
    file.set_len(10).unwrap();
    assert_eq!(shown(stage.find("/large.bin")), "unknown");
    assert_eq!(stage.table.open(), 0);
}

/// What is kept of a version is never used for another, and is dropped when its name is found to have
/// another.
#[test]
fn another_version_displaces_what_was_kept() {
    let mut stage = Stage::new();
    let large = vec![b'a'; BODY_MAX as usize + 1];
    for (name, bytes) in [("page.html", &b"one"[..]), ("large.bin", &large)] {
        stage.write(name, bytes);
        stage.look_up(&format!("/{name}")).unwrap();
    }
    let before = stage.table.bytes();
    for (name, bytes) in [("page.html", &b"two"[..]), ("large.bin", &large)] {
        stage.write("next", bytes);
        fs::rename(stage.path("next"), stage.path(name)).unwrap();
        // Of the same size and time.
        stage.pass(CHECK_AFTER);
        let path = format!("/{name}");
        stage.look_up(&path).unwrap();
        let expected = if name == "page.html" { "two" } else { "open" };
        assert_eq!(shown(stage.find(&path)), expected);
    }
    assert_eq!(stage.table.bytes(), before);
    assert_eq!(stage.table.open(), 1);
    for name in ["page.html", "large.bin"] {
        fs::remove_file(stage.path(name)).unwrap();
        stage.pass(CHECK_AFTER);
        let path = format!("/{name}");
        assert_eq!(shown(Some(stage.look_up(&path))), "Missing");
        assert_eq!(shown(stage.find(&path)), "Missing");
    }
    assert_eq!(stage.table.open(), 0);
    assert_eq!(stage.table.bodies.len(), 0);
}

/// A name that has the same version as before continues to use the bytes in memory.
#[test]
fn the_same_version_is_not_read_again() {
    let mut stage = Stage::new();
    stage.write("page.html", b"page");
    let body = |found: Result<Found, FindError>| match found {
        Ok(Found::File(file)) => Arc::clone(file.kept().unwrap()),
        other => panic!("{other:?}"),
    };
    let first = body(stage.look_up("/page.html"));
    stage.pass(CHECK_AFTER);
    let second = body(stage.look_up("/page.html"));
    assert!(Arc::ptr_eq(&first, &second));
}

#[test]
fn the_release_of_another_directory_empties_what_is_known() {
    let mut stage = Stage::new();
    stage.write("page.html", b"one");
    stage.look_up("/page.html").unwrap();
    assert_eq!(shown(stage.find("/page.html")), "one");
    let (www, old) = (stage.top.path().join("www"), stage.top.path().join("old"));
    fs::rename(&www, old).unwrap();
    fs::create_dir(&www).unwrap();
    stage.write("page.html", b"two");
    // The directory is opened anew after a second of the real clock.
    let since = Instant::now();
    while shown(stage.find("/page.html")) == "one" {
        assert!(since.elapsed() < Duration::from_secs(10));
        std::thread::yield_now();
    }
    assert_eq!(shown(stage.find("/page.html")), "unknown");
    stage.look_up("/page.html").unwrap();
    assert_eq!(shown(stage.find("/page.html")), "two");
}

#[test]
fn the_coding_that_a_client_takes_is_found() {
    let mut stage = Stage::new();
    for (name, text) in [
        ("app.js", "plain"),
        ("app.js.br", "brotli"),
        ("app.js.gz", "gzip"),
    ] {
        stage.write(name, text.as_bytes());
    }
    for (codings, expected) in [("br, gzip", "brotli"), ("gzip", "gzip"), ("", "plain")] {
        assert_eq!(shown(stage.find_coded("/app.js", codings)), "unknown");
        stage.look_up_coded("/app.js", codings).unwrap();
        assert_eq!(shown(stage.find_coded("/app.js", codings)), expected);
    }
    assert_eq!(shown(stage.find_coded("/app.js", "br")), "brotli");
    let Some(Ok(Found::File(file))) = stage.find_coded("/app.js", "gzip") else {
        panic!("it is known");
    };
    assert!(file.coding() == Some(Coding::Gzip) && file.varies_by_coding);
    assert_eq!(stage.table.names.len(), 1);
}

#[test]
fn a_fallback_is_one_file_for_all_pages() {
    let mut stage = Stage::with(|config| config.fallback = Some("index.html".to_owned()));
    stage.write("index.html", b"application");
    for path in ["/orders/1", "/orders/2"] {
        assert_eq!(shown(stage.find(path)), "unknown");
        assert_eq!(shown(Some(stage.look_up(path))), "application");
        assert_eq!(shown(stage.find(path)), "application");
    }
    assert_eq!(shown(Some(stage.look_up("/gone.js"))), "Missing");
    assert_eq!(shown(stage.find("/gone.js")), "Missing");
    assert_eq!(stage.table.bodies.len(), 1);
}

/// A client that asks for many missing names displaces no files, and takes no memory from others.
#[test]
fn few_missing_names_are_remembered() {
    let mut stage = Stage::new();
    stage.write("page.html", b"page");
    stage.look_up("/page.html").unwrap();
    let long = format!(
        "/{}/{}/{}",
        "a".repeat(200),
        "b".repeat(200),
        "c".repeat(200)
    );
    assert_eq!(shown(Some(stage.look_up(&long))), "Missing");
    assert_eq!(shown(stage.find(&long)), "unknown");
    for at in 0..3 * MISSING_MAX {
        stage.look_up(&format!("/none-{at}")).unwrap_err();
    }
    assert!(stage.table.missing.len() <= MISSING_MAX);
    assert_eq!(shown(stage.find("/page.html")), "page");
}

#[test]
fn files_are_kept_within_the_limits() {
    let mut stage = Stage::new();
    let large = vec![b'a'; BODY_MAX as usize + 1];
    for at in 0..200 {
        stage.write(&format!("small-{at}"), &large[1..]);
        stage.look_up(&format!("/small-{at}")).unwrap();
        stage.write(&format!("large-{at}"), &large);
        stage.look_up(&format!("/large-{at}")).unwrap();
        assert!(stage.table.open() <= stage.limits.open);
        let bodies = stage.table.bodies.weight() + stage.table.names.weight();
        let room = stage.limits.memory + (stage.limits.open * NAME_OVERHEAD) as u64;
        assert!(bodies <= room, "{bodies}");
    }
    assert!(stage.table.open() > 0 && stage.table.bodies.len() > 20);
    // What is too large for the memory is served all the same.
    stage.limits.memory = 1000;
    stage.write("page.html", &large[1..]);
    assert_eq!(
        shown(Some(stage.look_up("/page.html"))).len(),
        BODY_MAX as usize
    );
    assert!(stage.table.bodies.weight() <= 1000);
}

#[test]
fn unused_files_are_closed() {
    let mut stage = Stage::new();
    stage.write("large.bin", &vec![b'a'; BODY_MAX as usize + 1]);
    stage.look_up("/large.bin").unwrap();
    stage.pass(UNUSED_MAX / 2);
    stage.table.sweep(stage.now);
    assert_eq!(stage.table.open(), 1);
    stage.pass(UNUSED_MAX / 2);
    stage.table.sweep(stage.now);
    assert_eq!(stage.table.open(), 0);
    stage.look_up("/large.bin").unwrap();
    assert!(stage.table.close_all() && !stage.table.close_all());
    assert_eq!(shown(stage.find("/large.bin")), "unknown");
}

#[test]
fn a_coding_is_kept_beside_the_bytes_and_counted() {
    let mut stage = Stage::new();
    stage.write("page.html", b"page");
    stage.look_up("/page.html").unwrap();
    let kept = |stage: &mut Stage| match stage.find("/page.html") {
        Some(Ok(Found::File(file))) => file,
        other => panic!("{other:?}"),
    };
    let file = kept(&mut stage);
    let body = file.kept().unwrap();
    assert!(!body.coded().is_wanted_again() && body.coded().is_wanted_again());
    assert_eq!(body.coded().get(Coding::Gzip), None);
    let before = stage.table.bytes();
    let coded = Bytes::from_static(b"in gzip");
    for _ in 0..2 {
        stage.table.keep_coded(&file, Coding::Gzip, coded.clone());
    }
    assert_eq!(stage.table.bytes(), before + coded.len() as u64);
    let body = kept(&mut stage);
    let body = body.kept().unwrap();
    assert_eq!(body.coded().get(Coding::Gzip), Some(&coded));
    assert_eq!(body.coded().get(Coding::Zstd), None);
    assert!(body.coded().is_wanted_again(), "it goes on counting");
}

#[test]
fn what_a_thread_has_read_is_kept_if_it_is_all_of_the_file() {
    let mut stage = Stage::new();
    stage.write("page.html", b"page");
    stage.look_up("/page.html").unwrap();
    let Some(Ok(Found::File(file))) = stage.find("/page.html") else {
        panic!("it is known");
    };
    stage.table.bodies.clear();
    stage.table.keep_body(&file, &Bytes::from_static(b"pag"));
    assert_eq!(stage.table.bodies.len(), 0);
    stage.table.keep_body(&file, &Bytes::from_static(b"page"));
    assert_eq!(shown(stage.find("/page.html")), "page");
}
