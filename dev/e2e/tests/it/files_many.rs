//! Many files, names of all kinds, and a release under load.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use catamaran_e2e::{Connector, Front, Tomcat};
use catamaran_gauge::process::open_files;
use catamaran_testkit::Deadline;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tokio::time::Instant;

use crate::kubernetes::OnDrop;
use crate::through::value;

fn front(root: &Path, keys: &str) -> Front {
    Front::with_tables(&format!(
        "[server]\nworkers = 1\n[[route]]\nfiles = \"{}\"\n{keys}\
         [log]\naccess = \"off\"\n[admin]\naddress = \"127.0.0.1:0\"\n",
        root.display()
    ))
    .unwrap()
}

/// Of many each is asked for once: what is remembered of them stays within its limits.
#[test]
fn a_hundred_thousand_files_are_served_within_the_limits() {
    let files = tempfile::tempdir().unwrap();
    let at = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    for directory in 0..FILES / IN_DIRECTORY {
        let directory = files.path().join(format!("d{directory}"));
        fs::create_dir(&directory).unwrap();
        for file in 0..IN_DIRECTORY {
            let path = directory.join(format!("f{file}.txt"));
            let mut file = File::create(&path).unwrap();
            file.write_all(path.as_os_str().as_bytes()).unwrap();
            file.set_modified(at).unwrap();
        }
        // These are too large for the memory, so they are kept open.
        for large in 0..LARGE_IN_DIRECTORY {
            let file = File::create(directory.join(format!("large{large}.bin"))).unwrap();
            file.set_len(100_000).unwrap();
            file.set_modified(at).unwrap();
        }
    }
    let mut front = front(files.path(), "");
    let id = front.process().id();
    let before = front.memory().unwrap().private;
    for directory in 0..FILES / IN_DIRECTORY {
        let mut client = front.connect().unwrap();
        let mut ask = |path: &str| {
            let request = front.head("GET", path, "");
            client.ask(request).unwrap()
        };
        for file in (0..IN_DIRECTORY).step_by(ASKED_EACH) {
            let path = format!("/d{directory}/f{file}.txt");
            let body = ask(&path).body;
            assert!(body.ends_with(path.as_bytes()), "{path}");
        }
        for large in 0..LARGE_IN_DIRECTORY {
            let path = format!("/d{directory}/large{large}.bin");
            assert_eq!(ask(&path).body.len(), 100_000, "{path}");
        }
    }
    let bytes = front.metric("catamaran_files_bytes").unwrap()[0];
    let open = open_files(id).unwrap();
    let grown = front.memory().unwrap().private.saturating_sub(before);
    println!(
        "{FILES} files: {bytes} bytes kept, {open} descriptors, {grown} bytes more are private"
    );
    assert!(bytes > 1e6 && bytes <= f64::from(17 << 20), "{bytes}");
    assert!(open <= 1000 + 64, "{open}");
    assert!(grown <= 64 << 20, "{grown}");
}

/// Names in all bytes but control characters, which no path may have, and what is no file: a FIFO, a socket, a device, a loop. None of
/// them holds up the others.
#[test]
fn all_names_are_found_and_what_is_no_file_is_not() {
    let files = tempfile::tempdir().unwrap();
    let root = files.path();
    let bytes = || (1..=u8::MAX).filter(|byte| !b"/\\".contains(byte));
    for byte in bytes() {
        fs::write(root.join(OsStr::from_bytes(&[b'x', byte])), [byte]).unwrap();
    }
    let mode = Mode::from_raw_mode(0o644);
    mknodat(CWD, root.join("fifo"), FileType::Fifo, mode, 0).unwrap();
    let _socket = UnixListener::bind(root.join("socket")).unwrap();
    symlink("/dev/zero", root.join("zero")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    symlink("/proc/self/environ", root.join("magic")).unwrap();
    let front = front(root, "links = [\"/dev\", \"/proc\"]\n");
    let mut client = front.connect().unwrap();
    let mut ask = |path: &str| {
        let request = front.head("GET", path, "");
        client.ask(request).unwrap()
    };
    let mut found = 0;
    for byte in bytes() {
        for path in ["/fifo", "/socket", "/zero", "/loop"] {
            assert_eq!(ask(path).status, 404, "{path}");
        }
        let path = format!("/x%{byte:02X}");
        if byte.is_ascii_control() {
            assert_eq!(front.get(&path).unwrap().status, 400, "{path}");
            continue;
        }
        let answer = ask(&path);
        assert_eq!(
            (answer.status, &answer.body[..]),
            (200, &[byte][..]),
            "{path}"
        );
        found += 1;
    }
    // Its size is 0, whatever it says when it is read: nothing is sent of it.
    assert!(!ask("/magic").text().contains("PATH"));
    assert_eq!(found, 221);
}

/// Asks a page of Tomcat's again and again.
fn ask_tomcat(front: &Front, is_over: &AtomicBool, served: &AtomicUsize) {
    let mut client = front.connect().unwrap();
    while !is_over.load(Ordering::SeqCst) {
        let request = front.head("GET", "/snoop.jsp?a=1", "");
        client.send(request.as_bytes()).unwrap();
        assert_eq!(value(&client.receive().unwrap().text(), "query"), "a=1");
        served.fetch_add(1, Ordering::SeqCst);
    }
}

/// A release before a real Tomcat, under load: every page is whole and of one release, and new for all requests
/// that begin a second after the swap. What is no file is Tomcat's throughout.
#[test]
fn a_release_under_load_is_new_within_a_second() {
    let top = tempfile::tempdir().unwrap();
    let app = top.path();
    let page = |release: usize| format!("release {release}\n").repeat(3000);
    for release in 0..=RELEASES {
        let directory = app.join(format!("release-{release}"));
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("index.html"), page(release)).unwrap();
    }
    symlink("release-0", app.join("current")).unwrap();
    let tomcat = Tomcat::shared().unwrap();
    let tables = format!(
        "[[route]]\nfiles = \"{}\"\nupstream = \"app\"\n{}",
        app.join("current").display(),
        tomcat.backend_table("app", Connector::Ajp)
    );
    let front = Front::with_tables(&tables).unwrap();
    let (released, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (served, of_tomcat) = (AtomicUsize::new(0), AtomicUsize::new(0));
    // The release that must be seen: whoever swaps sets it a second later.
    let due = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut client = front.connect().unwrap();
                let mut asked = 0;
                while !is_over.load(Ordering::SeqCst) {
                    // A fast machine reaches `keep_alive_requests`.
                    asked += 1;
                    if asked % 1000 == 0 {
                        client = front.connect().unwrap();
                    }
                    let oldest = due.load(Ordering::SeqCst);
                    let text = client.ask(front.head("GET", "/", "")).unwrap().text();
                    let newest = released.load(Ordering::SeqCst);
                    let seen = (oldest..=newest).find(|release| text == page(*release));
                    assert!(
                        seen.is_some(),
                        "from {oldest} to {newest}: {:?}",
                        text.get(..20)
                    );
                    served.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        scope.spawn(|| ask_tomcat(&front, &is_over, &of_tomcat));
        let _end = OnDrop(&is_over);
        for release in 1..=RELEASES {
            let next = app.join("next");
            symlink(format!("release-{release}"), &next).unwrap();
            released.store(release, Ordering::SeqCst);
            fs::rename(next, app.join("current")).unwrap();
            let swapped = Instant::now();
            let before = served.load(Ordering::SeqCst);
            Deadline::default()
                .poll("a second, and some requests", || {
                    let is_late = swapped.elapsed() >= Duration::from_secs(1);
                    (is_late && served.load(Ordering::SeqCst) > before + 20).then_some(())
                })
                .unwrap();
            due.store(release, Ordering::SeqCst);
        }
        let before = served.load(Ordering::SeqCst);
        Deadline::default()
            .poll("pages of the last release", || {
                (served.load(Ordering::SeqCst) > before + 20).then_some(())
            })
            .unwrap();
    });
    let (served, of_tomcat) = (served.into_inner(), of_tomcat.into_inner());
    println!("{RELEASES} releases: {served} pages of files, {of_tomcat} of Tomcat");
    assert!(of_tomcat > 0);
}

/// All files.
const FILES: usize = 100_000;

const IN_DIRECTORY: usize = 1000;

/// One of so many is asked for.
const ASKED_EACH: usize = 5;

/// Large ones besides: more of them all than are kept open.
const LARGE_IN_DIRECTORY: usize = 12;

/// How often there is a new release.
const RELEASES: usize = 3;
