//! Searches for doors of the import: random configurations of httpd and nginx run on their own server and, imported,
//! on the front. The front must not serve what the source refuses: a request by which a client gets more from the
//! import than from the source is a door.
//!
//! ```text
//! cargo xtask import-duel --files 10000 --seed 1 --server nginx
//! ```
//!
//! A seed always gives the same configuration: file number n has seed S + n. First the program plants doors, which it
//! must find, and tries those of `doors/`, which must stay closed. A door that is found is shrunk and written, with
//! the request that shows it, into a file of the directory of `--out`.

#![expect(clippy::print_stdout, reason = "its output is what it finds")]

mod ask;
mod backend;
mod corpus;
mod duel;
mod grammar;
mod judge;
mod planted;
mod requests;
mod stage;
mod tree;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use anyhow::{Context as _, bail, ensure};

use crate::corpus::Case;
use crate::duel::{Duel, Finding, Tally};
use crate::judge::Door;
use crate::stage::{Addresses, Kind};

/// The options of the command line.
struct Options {
    files: u64,
    seed: u64,
    kinds: Vec<Kind>,
    /// The directory into which doors are written.
    out: PathBuf,
    /// The number of configurations at a time.
    jobs: usize,
    /// How many doors of a kind are shrunk at most.
    shrink: usize,
}

/// The results of all threads.
#[derive(Default)]
struct Found {
    tally: Tally,
    shrunk: BTreeMap<Door, usize>,
    failures: Vec<String>,
}

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let options = Options::parse(&arguments)?;
    let backends = [backend::start("one")?, backend::start("two")?];
    let addresses = Addresses::new(backends)?;
    planted::check(&options.kinds, &addresses).context("planted doors")?;
    let tried = corpus::run(&doors(), &options.kinds, &addresses)?;
    println!("{}", summary_of_known(&tried));
    let mut total = tried.open_again.len();
    for kind in &options.kinds {
        let shared = Mutex::new(Found::default());
        // The number of the next file; each worker takes one after the other.
        let next = AtomicU64::new(0);
        thread::scope(|scope| {
            let work = || worker(*kind, &options, backends, &next, &shared);
            let workers: Vec<_> = (0..options.jobs).map(|_| scope.spawn(work)).collect();
            let mut results = workers
                .into_iter()
                .map(|worker| worker.join().expect("no worker panics"));
            results.try_for_each(|result| result)
        })?;
        let found = shared.into_inner().expect("no worker panicked");
        println!("{}", summary(*kind, &found.tally));
        for failure in &found.failures {
            println!("not compared: {failure}");
        }
        ensure!(
            found.failures.is_empty(),
            "{} files were not compared",
            found.failures.len()
        );
        total += found.tally.doors.values().sum::<usize>();
    }
    ensure!(
        total == 0,
        "{total} doors; those that were shrunk are in {}",
        options.out.display()
    );
    Ok(())
}

/// What became of the known doors, as text.
fn summary_of_known(tried: &corpus::Tried) -> String {
    let mut text = String::new();
    for (name, finding) in &tried.open_again {
        text += &format!("open again: {name}: {}\n", finding.ours);
    }
    for name in &tried.mended {
        text += &format!("mended: take {name} out of open.txt\n");
    }
    let (again, still) = (tried.open_again.len(), tried.open_still.len());
    text + &format!(
        "{} known doors tried: {again} open again, {still} not mended yet",
        tried.count
    )
}

/// Takes one seed after the other until none is left.
fn worker(
    kind: Kind,
    options: &Options,
    backends: [std::net::SocketAddr; 2],
    next: &AtomicU64,
    found: &Mutex<Found>,
) -> anyhow::Result<()> {
    let addresses = Addresses::new(backends)?;
    let duel = Duel {
        kind,
        addresses: &addresses,
    };
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= options.files {
            return Ok(());
        }
        let seed = options.seed + number;
        let mut tally = Tally::default();
        let result = duel.of_seed(seed, &mut tally);
        // Other workers wait for the lock, so shrinking, which takes long, comes after it.
        let mut to_shrink = Vec::new();
        {
            let mut found = found.lock().expect("no worker panicked");
            found.tally.add(&tally);
            match result {
                Ok((tree, findings)) => {
                    for finding in findings {
                        let count = found.shrunk.entry(finding.door).or_default();
                        *count += 1;
                        if *count <= options.shrink {
                            to_shrink.push((tree.clone(), finding));
                        } else {
                            println!("{}", line(kind, seed, &finding));
                        }
                    }
                }
                Err(error) => found
                    .failures
                    .push(format!("{} seed {seed}: {error:#}", kind.name())),
            }
        }
        for (tree, finding) in to_shrink {
            let small = duel.shrunk(tree, &finding)?;
            println!("{}", line(kind, seed, &small));
            let name = format!("{}-{}-{seed}.conf", small.door.name(), kind.name());
            fs::create_dir_all(&options.out)?;
            fs::write(options.out.join(name), Case::of(kind, seed, &small).text())?;
        }
    }
}

/// A finding as one line.
fn line(kind: Kind, seed: u64, finding: &Finding) -> String {
    let request = match &finding.ask {
        Some(ask) => ask.lines().replace('\n', " | "),
        None => String::new(),
    };
    let ours = finding.ours.lines().next().unwrap_or_default();
    format!(
        "DOOR {} {} seed {seed}: {request}: there {}, here {ours}",
        finding.door.name(),
        kind.name(),
        finding.theirs
    )
}

/// The counts of the files of one server, as one line.
fn summary(kind: Kind, tally: &Tally) -> String {
    let counts = tally.doors.iter();
    let mut doors: Vec<String> = counts
        .map(|(door, count)| format!("{} {count}", door.name()))
        .collect();
    if doors.is_empty() {
        doors.push("none".to_owned());
    }
    let doors_text = doors.join(", ");
    format!(
        "{}: {} files, {} of them refused by the server itself; {} requests, {} served, of which {} closed by the import; \
         {} other differences; files with doors: {doors_text}",
        kind.name(),
        tally.files,
        tally.refused,
        tally.requests,
        tally.served,
        tally.closed,
        tally.other
    )
}

impl Options {
    /// Reads flags, each with a value. Without flags, 40 files of each server are tried from seed 1 on.
    fn parse(arguments: &[String]) -> anyhow::Result<Self> {
        let mut options = Self {
            files: 40,
            seed: 1,
            kinds: Kind::ALL.to_vec(),
            out: std::env::temp_dir().join("import-duel"),
            jobs: 2,
            shrink: 3,
        };
        let mut arguments = arguments.iter();
        while let Some(flag) = arguments.next() {
            let value = arguments
                .next()
                .with_context(|| format!("{flag} needs a value"))?;
            match flag.as_str() {
                "--files" => options.files = value.parse()?,
                "--seed" => options.seed = value.parse()?,
                "--server" => options.kinds = vec![Kind::parse(value).context("httpd or nginx")?],
                "--out" => options.out = PathBuf::from(value),
                "--jobs" => options.jobs = value.parse()?,
                "--shrink" => options.shrink = value.parse()?,
                _ => bail!("unknown flag {flag}"),
            }
        }
        Ok(options)
    }
}

/// The committed doors.
fn doors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin/import_duel/doors")
}
