//! Ten thousand changes of files under load: renames, swaps of directories and links, truncations and growths.
//! Nobody sees what is outside, and no whole response has bytes of two versions.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use catamaran_proxy::FileResult;
use catamaran_proxy::config::{Config, FilesConfig};
use catamaran_testkit::files::OUTSIDE;
use catamaran_testkit::{Deadline, Failure, HttpClient};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{Client, Tree, address, front};

/// Each version of a file is of one letter, and its length says how it came to be.
#[derive(Clone, Copy)]
struct Letter(u8);

impl Letter {
    fn of(turn: usize) -> Self {
        Self(b'a' + (turn % 23) as u8)
    }

    /// What is written at once.
    fn length(self, unit: usize) -> usize {
        unit + unit / 100 * usize::from(self.0 - b'a')
    }

    /// Every length that a version of this letter has.
    fn lengths(self, unit: usize) -> [usize; 3] {
        let length = self.length(unit);
        [length, length / 2, length / 2 + unit / 4]
    }
}

/// What became of the requests, by what they were for.
#[derive(Default)]
struct Tally(Mutex<BTreeMap<(&'static str, &'static str), usize>>);

impl Tally {
    fn add(&self, kind: &'static str, outcome: &'static str) {
        *self.0.lock().unwrap().entry((kind, outcome)).or_default() += 1;
    }

    fn sum(&self) -> usize {
        self.0.lock().unwrap().values().sum()
    }

    fn of(&self, kind: &str, outcome: &str) -> usize {
        let counts = self.0.lock().unwrap();
        let counts = counts.iter();
        counts
            .filter(|((its, how), _)| *its == kind && *how == outcome)
            .map(|(_, count)| count)
            .sum()
    }
}

/// The directory that is changed.
struct Target {
    root: PathBuf,
}

impl Target {
    fn new(tree: &Tree) -> Self {
        let root = tree.root();
        fs::create_dir(root.join("swapped")).unwrap();
        fs::write(root.join("swapped/secret.txt"), "INSIDE").unwrap();
        symlink("../outside", root.join("to-outside")).unwrap();
        for release in ["one", "two"] {
            fs::create_dir(root.join(release)).unwrap();
            fs::write(root.join(release).join("page"), release.repeat(5000)).unwrap();
        }
        symlink("one", root.join("current")).unwrap();
        let target = Self { root };
        for at in 0..FILES {
            target.rewrite(at, 0);
        }
        for at in 0..RENAMED {
            target.rename("small", SMALL, at, 0);
        }
        target.rename("large", LARGE, 0, 0);
        target
    }

    fn change(&self, turn: usize) {
        let exchange = |one: &str, other: &str| {
            let (one, other) = (self.root.join(one), self.root.join(other));
            renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
        };
        match turn % 4 {
            0 if turn.is_multiple_of(100) => self.rename("large", LARGE, 0, turn),
            0 => self.rename("small", SMALL, turn / 4 % RENAMED, turn),
            1 if turn % 8 == 1 => exchange("swapped", "to-outside"),
            1 => {
                let release = if turn % 16 < 8 { "two" } else { "one" };
                symlink(release, self.root.join("next")).unwrap();
                fs::rename(self.root.join("next"), self.root.join("current")).unwrap();
            }
            2 => self.shorten(turn / 4 % FILES),
            _ if turn % 12 == 3 => self.rewrite(turn / 4 % FILES, turn),
            _ => self.lengthen(turn / 4 % FILES),
        }
    }

    fn rename(&self, name: &str, unit: usize, at: usize, turn: usize) {
        let letter = Letter::of(turn / 4);
        let next = self.root.join("next-file");
        fs::write(&next, vec![letter.0; letter.length(unit)]).unwrap();
        fs::rename(next, self.root.join(format!("{name}-{at}"))).unwrap();
    }

    fn in_place(&self, at: usize) -> PathBuf {
        self.root.join(format!("in-place-{at}"))
    }

    fn rewrite(&self, at: usize, turn: usize) {
        let letter = Letter::of(turn / 4);
        fs::write(self.in_place(at), vec![letter.0; letter.length(SMALL)]).unwrap();
    }

    fn shorten(&self, at: usize) {
        let path = self.in_place(at);
        let letter = Self::letter(&path);
        let file = File::options().write(true).open(path).unwrap();
        file.set_len((letter.length(SMALL) / 2) as u64).unwrap();
    }

    fn lengthen(&self, at: usize) {
        let path = self.in_place(at);
        let letter = Self::letter(&path);
        let mut file = File::options().append(true).open(&path).unwrap();
        if file.metadata().unwrap().len() == (letter.length(SMALL) / 2) as u64 {
            file.write_all(&vec![letter.0; SMALL / 4]).unwrap();
        }
    }

    fn letter(path: &Path) -> Letter {
        Letter(fs::read(path).unwrap()[0])
    }
}

/// What a response was, if it was one that may be.
fn judge(kind: &'static str, status: u16, body: &[u8]) -> &'static str {
    let text = String::from_utf8_lossy(body);
    assert!(!text.contains(OUTSIDE), "{kind}: the outside is shown");
    if status != 200 {
        assert!([404, 503].contains(&status), "{kind}: {status}");
        return "refused";
    }
    let unit = if kind == "large" { LARGE } else { SMALL };
    let is_whole = match kind {
        "link" => text == "INSIDE",
        "release" => ["one", "two"].iter().any(|it| text == it.repeat(5000)),
        _ => {
            let letter = Letter(*body.first().unwrap_or(&b'a'));
            let is_one = body.iter().all(|byte| *byte == letter.0);
            let lengths = letter.lengths(unit);
            // A rewrite begins with nothing.
            is_one && (lengths.contains(&body.len()) || body.is_empty() && kind == "in place")
        }
    };
    assert!(is_whole, "{kind}: a mixture of {} bytes", body.len());
    "whole"
}

/// Asks for everything in turn until the changes are over.
fn load(client: Client, address: std::net::SocketAddr, is_over: &AtomicBool, tally: &Tally) {
    let mut connection = HttpClient::connect(address).unwrap();
    for turn in 0.. {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let (kind, path) = match turn % 5 {
            0 => ("small", format!("/small-{}", turn / 5 % RENAMED)),
            1 => ("link", "/swapped/secret.txt".to_owned()),
            2 => ("release", "/current/page".to_owned()),
            3 => ("in place", format!("/in-place-{}", turn / 5 % FILES)),
            _ => ("large", "/large-0".to_owned()),
        };
        if let Client::Http2 = client {
            let outcome = match Client::get_unless_cut(address, &path) {
                Some(got) => judge(kind, got.status, &got.body),
                None => "cut",
            };
            tally.add(kind, outcome);
            continue;
        }
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
        connection.send(request.as_bytes()).unwrap();
        match connection.receive() {
            Ok(got) => tally.add(kind, judge(kind, got.status, &got.body)),
            Err(Failure::Truncated { .. } | Failure::Reset { .. } | Failure::Closed) => {
                tally.add(kind, "cut");
                connection = HttpClient::connect(address).unwrap();
            }
            Err(other) => panic!("{kind}: {other}"),
        }
    }
}

/// What became of all requests while ten thousand changes were made.
fn storm(change: impl FnOnce(&mut Config)) -> (Tally, [u64; FileResult::ALL.len()]) {
    let tree = Tree::new();
    let target = Target::new(&tree);
    let running = front(FilesConfig::new(tree.root()), change);
    let address = address(&running);
    let (is_over, tally) = (AtomicBool::new(false), Tally::default());
    let deadline = Deadline::default();
    std::thread::scope(|scope| {
        for client in [Client::Http1, Client::Http1, Client::Http2] {
            let (is_over, tally) = (&is_over, &tally);
            scope.spawn(move || load(client, address, is_over, tally));
        }
        for turn in 0..CHANGES {
            target.change(turn);
            // The changes do not run away from the requests.
            while tally.sum() < turn / REQUEST_EACH && deadline.remaining().is_some() {
                std::thread::yield_now();
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    for kind in ["small", "link", "release", "in place", "large"] {
        assert!(tally.of(kind, "whole") > 0, "{kind}");
    }
    assert!(tally.sum() >= CHANGES / REQUEST_EACH - 1, "{}", tally.sum());
    let files = running.counters().files;
    drop(running);
    (tally, files)
}

#[test]
fn ten_thousand_changes_show_no_mixture_and_nothing_outside() {
    let (tally, [hit, ..]) = storm(|config| {
        config.server.files_open = 0;
        config.server.files_memory = 0;
    });
    println!("{CHANGES} changes: {:?}", tally.0.lock().unwrap());
    assert!(tally.of("link", "refused") > 0, "the swaps took place");
    assert_eq!(hit, 0);
}

#[test]
fn the_same_holds_for_what_is_remembered() {
    let (tally, [hit, ..]) = storm(|_| {});
    println!("{CHANGES} changes: {:?}", tally.0.lock().unwrap());
    assert!(hit > 0);
}

/// Renames, swaps, truncations and growths: a quarter each.
const CHANGES: usize = 10_000;

/// There is a response for so many changes at least.
const REQUEST_EACH: usize = 10;

/// Files that are rewritten, made shorter and longer in place. Each has some time between two changes.
const FILES: usize = 1000;

/// Files that others are renamed to.
const RENAMED: usize = 20;

/// The usual size of a small file.
const SMALL: usize = 20_000;

/// That of one which the kernel sends itself.
const LARGE: usize = 400_000;
