//! One run: starts a cell's servers, warms them up, drives the load, and reads all counters.
//!
//! A run has a network namespace, a cgroup for each server and one for the load, and ends with all of
//! them gone. Counters are read right before the load generator starts and right after it has ended.

mod child;
mod counters;
mod crowd;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use std::{fs, io};

use catamaran_load::document::{Document, DocumentFault};
use catamaran_tier::{Faults, Launch, Process, Programs, Space, SpaceFault, StartFault};
use thiserror::Error;

use self::child::Ended;
use self::counters::Counters;
use self::crowd::Crowd;
use crate::check;
use crate::experiment::{Experiment, Load, ServerOf};
use crate::gate::{Facts, MachineFacts, check_run};
use crate::run::{Run, Second};
use crate::template::Addresses;

/// What drives runs.
#[derive(Clone, Debug)]
pub struct Driver {
    /// The `catamaran` binary: its `bench` is the load, its `serve` and `app` are servers.
    pub catamaran: PathBuf,
    /// Distinguishes the spaces of this process.
    pub space: String,
}

/// What a run has left beside its record.
#[derive(Clone, Debug, Default)]
pub struct Left {
    /// The report of the load generator.
    pub bench: String,
    /// What the servers were made of.
    pub servers: Vec<ServerRecord>,
}

/// What one server was made of.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ServerRecord {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub target: String,
    /// What its program says of its version.
    pub version: String,
    /// Its command.
    pub command: Vec<String>,
    /// All its parameters.
    pub settings: BTreeMap<String, String>,
    /// Its configuration: names and texts.
    pub files: BTreeMap<String, String>,
}

/// Why a run could not be made.
#[derive(Debug, Error)]
pub enum DriveFault {
    /// A signal has asked for the end.
    #[error("interrupted")]
    Interrupted,
    /// No namespace or cgroup.
    #[error("{0}; `catamaran lab` needs root for network namespaces and cgroups of its own")]
    Space(#[from] SpaceFault),
    /// A server did not start.
    #[error("{0}")]
    Start(Box<StartFault>),
    /// Templates do not render with the servers' addresses.
    #[error("{0}")]
    Faults(#[from] Faults),
    /// The load generator failed.
    #[error("the load generator ended with {how}: {said}")]
    Load {
        /// Its exit status.
        how: String,
        /// What it said.
        said: String,
    },
    /// Its report cannot be read.
    #[error("the load generator's report: {0}")]
    Report(#[from] DocumentFault),
    /// Counters of the kernel cannot be read.
    #[error("cannot count {what}: {why}; `catamaran lab doctor` says what is missing")]
    Count {
        /// What was to be counted.
        what: &'static str,
        /// Why it cannot be.
        why: String,
    },
    /// The idle clients cannot be connected.
    #[error("idle clients: {0}")]
    Crowd(io::Error),
}

impl From<StartFault> for DriveFault {
    fn from(fault: StartFault) -> Self {
        Self::Start(Box::new(fault))
    }
}

/// A server that runs, and what it was made of.
struct Running {
    process: Process,
    record: ServerRecord,
    core: Option<usize>,
}

impl Driver {
    /// Makes a run of `cell`; its place in the order is the caller's.
    ///
    /// # Errors
    /// [`DriveFault`]. Nothing of the run is left then.
    pub fn run(
        &self,
        experiment: &Experiment,
        cell: usize,
        stop: &AtomicBool,
    ) -> Result<(Run, Left), DriveFault> {
        let levels = &experiment.cells[cell];
        let space = Space::isolated(&self.space)?;
        let mut addresses = Addresses::new();
        let mut servers = Vec::new();
        for number in 0..experiment.servers() {
            if let Some(server) = experiment.server(levels, number, &addresses)? {
                let running = self.start(&space, &server)?;
                addresses.insert(server.name.clone(), urls(&running.process, &server)?);
                servers.push(running);
            }
        }
        let load = experiment.load(levels, &addresses)?;
        let crowd = load.idle.filter(|idle| idle.clients > 0);
        let crowd = crowd
            .map(|idle| Crowd::start(&space, &load.url, idle))
            .transpose()?;
        let warm = self.bench(&space, &load, &warm_up(&load), stop)?;
        let counters = Counters::begin(experiment, &space, &servers)?;
        let span = ["--duration".to_owned(), millis(load.time)];
        let before = counters.read()?;
        let bench = self.bench(&space, &load, &span, stop)?;
        let after = counters.read()?;
        drop(counters);
        let memory = counters::memory(experiment, &servers);
        let lost = crowd.map_or(0, Crowd::end);
        let expect = experiment.expect(levels, &addresses)?;
        let document = Document::parse(&bench)?;
        let mut facts = Facts::of_document(&document);
        facts.expect = expect;
        let spent = after.since(&before);
        facts.machine = Some(MachineFacts {
            moving: moving(&Document::parse(&warm)?),
            capped: capped(&mut servers),
            alarms: alarms(&mut servers, lost),
            ..spent.machine(&load, &servers)
        });
        let (requests, opened) = (document.requests.completed, document.connections.opened);
        facts.dials = spent.dials(&servers, opened, requests);
        let mut measures = measures(&document);
        measures.extend(memory);
        spent.measures(
            experiment,
            &servers,
            document.requests.completed,
            &mut measures,
        );
        let run = Run {
            cell,
            levels: levels.clone(),
            started_at_s: document.started_at_s,
            calls: spent.calls(document.requests.completed),
            gates: check_run(&facts),
            seconds: seconds(&document),
            measures,
            facts,
            ..Run::default()
        };
        let servers = servers.into_iter().map(|server| server.record).collect();
        Ok((run, Left { bench, servers }))
    }

    fn start(&self, space: &Space, server: &ServerOf) -> Result<Running, DriveFault> {
        let (target, settings) = check::prepare(server)?;
        let programs = Programs::from([("catamaran".to_owned(), self.catamaran.clone())]);
        let process = space.start(&Launch {
            name: &server.name,
            target: &target,
            settings: &settings,
            programs: &programs,
            core: server.core,
        })?;
        let files = process.files().iter();
        let record = ServerRecord {
            name: server.name.clone(),
            target: server.target.clone(),
            version: process.version(),
            command: process.command().to_vec(),
            settings: settings
                .iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            files: files
                .filter(|file| file.text.len() <= FILE_SHOWN_MAX)
                .map(|file| (file.path.display().to_string(), file.text.clone()))
                .collect(),
        };
        Ok(Running {
            process,
            record,
            core: server.core,
        })
    }

    /// Runs `bench` with the load's options and these; gives its report.
    fn bench(
        &self,
        space: &Space,
        load: &Load,
        options: &[String],
        stop: &AtomicBool,
    ) -> Result<String, DriveFault> {
        let report = space.directory().join("bench.json");
        let command = command(&self.catamaran, load, options, &report);
        // Exit code 1 tells of failed requests, which gates judge.
        let Ended { code, how, said } = child::run(space, load.core, &command, stop)?;
        let text = fs::read_to_string(&report);
        // A report of the warm-up must not pass for the next one.
        let _ = fs::remove_file(&report);
        match (code, text) {
            (Some(0 | 1), Ok(text)) => Ok(text),
            _ => Err(DriveFault::Load { how, said }),
        }
    }
}

/// URLs of a server's ports; several of one name have spaces between them.
fn urls(process: &Process, server: &ServerOf) -> Result<BTreeMap<String, String>, DriveFault> {
    let (target, settings) = check::prepare(server)?;
    let url = |port: String| {
        let urls = process.urls(&port).join(" ");
        (port, urls)
    };
    Ok(target.ports(&settings)?.into_iter().map(url).collect())
}

/// The command line of the load generator.
fn command(catamaran: &Path, load: &Load, options: &[String], report: &Path) -> Vec<String> {
    let mut words = vec![
        catamaran.display().to_string(),
        "bench".to_owned(),
        "--quiet".to_owned(),
    ];
    let mut add = |more: &[&str]| words.extend(more.iter().map(|word| (*word).to_owned()));
    add(&["-c", &load.clients.to_string(), "-W", "1"]);
    if load.keep_alive {
        add(&["-k"]);
    }
    if load.http_1_0 {
        add(&["--http1-0"]);
    }
    add(&[&format!("--json={}", report.display())]);
    words.extend(options.iter().cloned());
    words.push(load.url.clone());
    words
}

/// Options of the warm-up: of a fixed length, or until it is steady.
fn warm_up(load: &Load) -> Vec<String> {
    let (at_least, at_most) = load.warm;
    let mut options = vec!["--duration".to_owned(), millis(at_least)];
    if at_most > at_least {
        options.extend(["--warmup", "auto", "--warmup-max"].map(str::to_owned));
        options.push(millis(at_most.saturating_sub(at_least)));
    }
    options
}

fn millis(time: Duration) -> String {
    format!("{}ms", time.as_millis())
}

/// By how much the warm-up still moved, if it was watched.
fn moving(warm: &Document) -> Option<f64> {
    warm.warm_up.verdict.as_ref()?;
    let unclear = warm.warm_up.verdict.as_deref() == Some("unclear");
    Some(if unclear {
        f64::INFINITY
    } else {
        warm.warm_up.movement.unwrap_or(0.0)
    })
}

/// What the load generator has measured.
fn measures(document: &Document) -> BTreeMap<String, f64> {
    let total = &document.latency.total;
    let mut measures =
        BTreeMap::from([("throughput".to_owned(), document.throughput.requests_per_s)]);
    for (name, percent, micros) in [
        ("p50", 50.0, total.p50_us),
        ("p90", 90.0, total.p90_us),
        ("p99", 99.0, total.p99_us),
    ] {
        if total.percentile_max.is_some_and(|max| max >= percent) {
            measures.insert(name.to_owned(), micros as f64 / 1000.0);
        }
    }
    // Two values have a deviation, but it says next to nothing.
    let seconds = document.throughput.per_second.as_ref();
    if let Some(spread) = seconds.filter(|spread| spread.seconds >= SECONDS_MIN) {
        measures.insert("variation".to_owned(), spread.variation);
    }
    measures
}

fn seconds(document: &Document) -> Vec<Second> {
    let second = |facts: &catamaran_load::document::SecondFacts| Second {
        completed: facts.completed,
        p99_ms: facts.p99_us.map(|micros| micros as f64 / 1000.0),
    };
    let whole = document.elapsed_s as usize;
    document.seconds.iter().take(whole).map(second).collect()
}

/// What servers complain about, and whether they still run.
fn alarms(servers: &mut [Running], lost: usize) -> Vec<String> {
    let mut alarms = Vec::new();
    for server in servers {
        let name = server.process.name().to_owned();
        if let Some(how) = server.process.ended() {
            alarms.push(format!("{name} ended with {how}"));
        }
        let lines = server.process.alarms();
        alarms.extend(lines.iter().map(|line| format!("{name} says: {line}")));
    }
    if lost > 0 {
        alarms.push(format!(
            "{lost} idle clients lost their connection or had no answer"
        ));
    }
    alarms
}

/// Lines of servers that say that a maximum was reached.
fn capped(servers: &mut [Running]) -> Vec<String> {
    let lines = |server: &mut Running| {
        let name = server.process.name().to_owned();
        let lines = server.process.capped().into_iter();
        lines.map(move |line| format!("{name}: {line}"))
    };
    servers.iter_mut().flat_map(lines).collect()
}

/// Longer files are pages that are served.
const FILE_SHOWN_MAX: usize = 16 << 10;

/// Fewer seconds have no variation worth a claim.
const SECONDS_MIN: usize = 5;
