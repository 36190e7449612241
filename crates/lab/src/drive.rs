//! One run: starts a cell's servers, warms them up, drives the load, and reads all counters.
//!
//! A run has a network namespace, a cgroup for each server and one for the load; with its last run they
//! are gone. Counters are read right before the load generator starts and right after it has ended.

mod again;
mod bench;
mod by_strace;
mod child;
mod counters;
mod crowd;
mod live;
mod record;
mod sample;
mod stage;
mod thirds;
mod warm;
mod watch;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;
use std::{io, thread};

use catamaran_load::document::{DocumentFault, Tick};
use catamaran_tier::{Faults, Programs, SpaceFault, StartFault};
use thiserror::Error;

use self::bench::{Call, Hearing, Report};
use self::counters::{Counters, Reading};
use self::crowd::Crowd;
pub use self::crowd::READY;
pub(crate) use self::live::{Board, Traffic, live};
pub(crate) use self::record::OWN;
use self::record::Stable;
pub use self::sample::{CoreSample, DiskSample, InterfaceSample, JvmSample, MemorySample, Sample};
pub use self::stage::Stages;
pub(crate) use self::stage::{Running, Stage};
use self::thirds::{ThirdValues, Thirds};
use self::watch::{Moment, Watch, cpus};
use crate::experiment::{Act, AsPublished, Experiment, Levels, Load};
use crate::extra::crowd::Tally;
use crate::gate::{AskedFacts, Changed, Effect, Facts, Fired, MachineFacts, check_run};
use crate::measure::{CAPACITY, Measure};
use crate::run::{MemoryCount, Run};
use crate::strace::Traces;

/// What drives runs.
#[derive(Clone, Debug)]
pub struct Driver {
    /// The `catamaran` binary: its `bench` is the load.
    pub catamaran: PathBuf,
    /// The binary of the level `old` of the factor `binary`, if there is such a factor.
    pub against: Option<PathBuf>,
    /// Programs of servers that no package has.
    pub programs: Programs,
    /// Distinguishes the spaces of this process.
    pub space: String,
    /// Becomes true when a signal asks for the end: a server that is starting is given up then.
    pub stop: Arc<AtomicBool>,
}

/// A run's cell and its round, both counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// The cell.
    pub cell: usize,
    /// The round.
    pub round: usize,
}

/// What a run is given.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// What the slowest cell with so many clients does in a second, of which `shares` are driven as
    /// well.
    pub capacity: &'a BTreeMap<u64, f64>,
    /// Becomes true when a signal asks for the end.
    pub stop: &'a AtomicBool,
}

/// What a run has left beside its record.
#[derive(Clone, Debug, Default)]
pub struct Left {
    /// The report of the load generator.
    pub bench: String,
    /// Latencies of each second, as a log for HdrHistogram's tools; empty of an echo.
    pub latency: String,
    /// What was sampled in each second, a JSON text a line.
    pub samples: String,
    /// What the servers have called, as JSON.
    pub traces: String,
    /// What the servers were made of.
    pub servers: Vec<ServerRecord>,
    /// What ab prints of published runs that were made on the servers' first requests, by their names.
    pub printed: Vec<(String, String)>,
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
    /// Its command; here and below `RUN` is the directory of the run, and our own program `catamaran`.
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
    /// A server could not be started.
    #[error("{0}")]
    Start(Box<StartFault>),
    /// A server was started and did not serve, or did not do what it was told.
    #[error("{fault}")]
    Server {
        /// The gate that says so of a run.
        gate: &'static str,
        /// What became of it, in one line without paths of this machine.
        words: String,
        /// The whole of it.
        fault: Box<StartFault>,
    },
    /// A server ended, and what was driven at it could not go on.
    #[error("{0}")]
    Died(String),
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
    /// The clients beside the load cannot be connected.
    #[error("the clients beside the load: {0}")]
    Crowd(String),
    /// What a second thread does cannot be waited for.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<StartFault> for DriveFault {
    fn from(fault: StartFault) -> Self {
        match fault {
            StartFault::Interrupted { .. } => Self::Interrupted,
            fault => Self::Start(Box::new(fault)),
        }
    }
}

impl DriveFault {
    /// A fault of a server's start, or of what it was told: `gate` if it is the server's own doing.
    fn of_server(gate: &'static str, fault: StartFault, stable: &Stable) -> Self {
        match fault.of_server() {
            Some(words) => Self::Server {
                gate,
                words: stable.text(&words),
                fault: Box::new(fault),
            },
            None => fault.into(),
        }
    }

    /// What a run comes to that a server has ended: it is void. `None` if the fault is not a server's.
    pub(crate) fn of_run(&self) -> Option<Fired> {
        match self {
            Self::Server { gate, words, .. } => Some(Fired::new(gate, Effect::Void, words)),
            Self::Died(words) => Some(Fired::new(DIED, Effect::Void, words)),
            _ => None,
        }
    }

    /// The same, unless one of the servers has ended and that is why.
    fn beside(self, servers: &[Running]) -> Self {
        let is_of_load = matches!(
            self,
            Self::Load { .. } | Self::Report(_) | Self::Count { .. } | Self::Crowd(_) | Self::Io(_)
        );
        let ended = |server: &Running| {
            let how = server.process.ended()?;
            Some(format!("{} ended with {how}", server.process.name()))
        };
        match servers.iter().find_map(ended).filter(|_| is_of_load) {
            Some(words) => Self::Died(words),
            None => self,
        }
    }
}

/// What one span of load has shown.
struct Measured {
    report: Report,
    /// Of loads beside.
    beside: Vec<Report>,
    spent: Reading,
    samples: Vec<Sample>,
    traces: Traces,
    /// Actions that were done.
    acted: u64,
    /// As [`MachineFacts::changed`].
    changed: Option<Changed>,
    /// As [`Run::thirds`].
    thirds: ThirdValues,
}

impl Measured {
    /// Requests that were answered, those of loads beside included.
    fn requests(&self) -> u64 {
        let all = std::iter::once(&self.report).chain(&self.beside);
        all.map(|it| it.document.requests.completed).sum()
    }

    /// So many in a second.
    fn rate(&self) -> f64 {
        self.requests() as f64 / self.report.document.elapsed_s.max(1e-9)
    }
}

impl Driver {
    /// Makes a run; its place in the round and its attempt are the caller's.
    ///
    /// # Errors
    /// [`DriveFault`].
    pub fn run(
        &self,
        experiment: &Experiment,
        at: At,
        stages: &mut Stages,
        asked: Asked<'_>,
    ) -> Result<(Run, Left), DriveFault> {
        let Asked { capacity, stop } = asked;
        let scene = Scene {
            driver: self,
            experiment,
            levels: &experiment.cells[at.cell],
            stop,
        };
        let stage = stages.prepare(self, experiment, at)?;
        let made = self.on_stage(scene, stage, at, capacity);
        made.map_err(|fault| fault.beside(&stage.servers))
    }

    /// Makes a run with servers that serve.
    fn on_stage(
        &self,
        scene: Scene<'_>,
        stage: &mut Stage,
        at: At,
        capacity: &BTreeMap<u64, f64>,
    ) -> Result<(Run, Left), DriveFault> {
        let Scene {
            experiment,
            levels,
            stop,
            ..
        } = scene;
        let load = experiment.load(levels, &stage.addresses)?;
        let mut again = again::first(scene, stage, &load)?;
        let warm = warm::warm(self, stage, &load, stop)?;
        again.settle(scene, stage, &load)?;
        let is_first_second = stage.is_fresh && !experiment.measure.jvm.is_empty();
        let first = warm.first.filter(|_| is_first_second);
        let (crowd, held) = scene.crowd(stage, &load)?;
        let is_apart = experiment.counts_apart() && Counters::are_granted(experiment, stage);
        let main = scene.measure(stage, &load, !is_apart)?;
        let apart = is_apart.then(|| scene.measure(stage, &load, true));
        let apart = apart.transpose()?;
        let counting = apart.as_ref().unwrap_or(&main);
        let lacks_calls = counting.spent.lacks_calls();
        let by_strace = lacks_calls.then(|| by_strace::count(scene, stage, &load));
        let by_strace = by_strace.transpose()?;
        let tally = crowd.map(Crowd::end);
        let mut run = scene.record(stage, &load, (&main, counting))?;
        if let Some(counted) = &by_strace {
            counted.put(scene, &mut run);
        }
        let traces = by_strace.map(|counted| counted.traces());
        let traces = traces.as_ref().unwrap_or(&counting.traces);
        let traces = serde_json::to_string(traces).unwrap_or_default();
        run.measures
            .extend(first.map(|rate| ("first".to_owned(), rate)));
        run.measures.extend(held);
        run.measures.extend(again.measures);
        if experiment.is_published {
            run.measures.extend(sample::machine_measures(&main.samples));
        }
        let machine = run.facts.machine.get_or_insert_default();
        (machine.moving, machine.hidden) = (warm.moving, warm.hidden);
        machine.warmed_s = Some(warm.lasted_s);
        machine.alarms.extend(tally.and_then(lost));
        for share in &load.shares {
            let Some(capacity) = capacity.get(&load.clients) else {
                continue;
            };
            let rate = Some(capacity * share);
            let open = Load {
                rate,
                ..load.clone()
            };
            let part = scene.measure(stage, &open, false)?;
            let other = scene.record(stage, &open, (&part, &part))?;
            take_share(&mut run, other, *share, &experiment.gates_off);
        }
        run.gates.extend(judged(check_run(&run.facts), experiment));
        run.cell = at.cell;
        run.round = at.round;
        let left = Left {
            bench: main.report.text,
            latency: main.report.latency,
            samples: sample::lines(&main.samples),
            traces,
            servers: stage.servers.iter().map(|it| it.record.clone()).collect(),
            printed: again.printed,
        };
        Ok((run, left))
    }

    /// Makes a published run once as it was, on servers of its own unless it goes on with those in `stages`, and
    /// gives what ab prints of it.
    ///
    /// # Errors
    /// [`DriveFault`].
    pub fn as_published(
        &self,
        experiment: &Experiment,
        run: &AsPublished,
        stages: &mut Stages,
        stop: &AtomicBool,
    ) -> Result<String, DriveFault> {
        let own = experiment.of_published(run);
        let stage = stages.prepare(self, &own, At { cell: 0, round: 0 })?;
        let load = own.load(&run.cell, &stage.addresses)?;
        bench::as_ab(self, stage, (&load, run), stop)
    }

    /// The programs of a cell's servers.
    fn programs_of(&self, levels: &Levels) -> Programs {
        let mut programs = self.programs.clone();
        let is_old = levels
            .get(BINARY)
            .is_some_and(|level| level.to_string() == OLD);
        let own = match &self.against {
            Some(against) if is_old => against,
            _ => &self.catamaran,
        };
        programs.insert(OWN.to_owned(), own.clone());
        programs
    }
}

/// What a run is about.
#[derive(Clone, Copy)]
struct Scene<'a> {
    driver: &'a Driver,
    experiment: &'a Experiment,
    levels: &'a Levels,
    stop: &'a AtomicBool,
}

impl Scene<'_> {
    fn bench(
        &self,
        stage: &Stage,
        (load, time): (&Load, Duration),
        hearing: Hearing<'_>,
    ) -> Result<Report, DriveFault> {
        let name = "load";
        let call = Call { name, load, time };
        bench::run(self.driver, stage, call, (self.stop, hearing))
    }

    /// Connects the clients beside the load, and warms up with them; what each of them takes of the
    /// servers' memory.
    fn crowd(
        &self,
        stage: &Stage,
        load: &Load,
    ) -> Result<(Option<Crowd>, BTreeMap<String, f64>), DriveFault> {
        let Some(wanted) = &load.crowd else {
            return Ok((None, BTreeMap::new()));
        };
        let before = counters::held(self.experiment, &stage.servers);
        let crowd = Crowd::start(&self.driver.catamaran, &stage.space, load, wanted)?;
        self.bench(stage, (load, load.warm.0), None)?;
        let after = counters::held(self.experiment, &stage.servers);
        let held = after.into_iter().filter_map(|(name, after)| {
            let bytes = after - before.get(&name)?;
            Some((name, (bytes / crowd.clients as f64).max(0.0)))
        });
        let held = held.collect();
        Ok((Some(crowd), held))
    }

    /// Drives the load, those beside it, and what is done to servers meanwhile; calls and bytes are counted if
    /// `is_counting`.
    fn measure(
        &self,
        stage: &Stage,
        load: &Load,
        is_counting: bool,
    ) -> Result<Measured, DriveFault> {
        let others = self.experiment.beside(self.levels, &stage.addresses)?;
        let acts = self.experiment.acts(self.levels, &stage.addresses)?;
        let counters = Counters::begin(self.experiment, stage, is_counting);
        let acted = AtomicU64::new(0);
        let mut watch = Watch::new(load.time, false);
        let mut thirds = Thirds::default();
        let before = counters.read()?;
        let (report, beside, samples) = thread::scope(|scope| {
            let (end, ended) = sync_channel::<()>(0);
            let sampling = scope.spawn(move || sample::watch(stage, &ended));
            let mut over = Vec::new();
            let mut acting = Vec::new();
            for act in &acts {
                let (end, ended) = sync_channel::<()>(0);
                let acted = &acted;
                over.push(end);
                acting.push(scope.spawn(move || go_on(stage, act, acted, &ended)));
            }
            let mut beside = Vec::new();
            for (number, load) in others.iter().enumerate() {
                let time = load.time;
                beside.push(scope.spawn(move || {
                    let name = &format!("load{}", number + 2);
                    let call = Call { name, load, time };
                    bench::run(self.driver, stage, call, (self.stop, None))
                }));
            }
            let mut hear = |tick: Tick| {
                let cpus = cpus(stage);
                watch.take(&Moment::of(&tick, &cpus));
                thirds.take(&tick, &cpus);
            };
            let report = self.bench(stage, (load, load.time), Some(&mut hear));
            drop(end);
            drop(over);
            let beside: Result<Vec<_>, _> = beside.into_iter().map(joined).collect();
            let acting: Result<Vec<_>, _> = acting.into_iter().map(joined).collect();
            acting?;
            let samples = sampling.join().unwrap_or_default();
            Ok::<_, DriveFault>((report?, beside?, samples))
        })?;
        let spent = counters.read()?.since(&before);
        let traces = counters.traces(&spent)?;
        // What is done to servers is not spread evenly over the span.
        let thirds = match acts.is_empty() {
            true => thirds.values(stage, &report.document),
            false => ThirdValues::new(),
        };
        Ok(Measured {
            thirds,
            traces,
            report,
            beside,
            spent,
            samples,
            acted: acted.into_inner(),
            changed: watch
                .changed(load.rate.is_some())
                .filter(|_| acts.is_empty()),
        })
    }

    /// How often each of several servers was asked, and should have been.
    fn asked(
        &self,
        stage: &Stage,
        measured: &Measured,
        counting: &Measured,
    ) -> Result<BTreeMap<String, AskedFacts>, DriveFault> {
        if stage.servers.len() < 2 {
            return Ok(BTreeMap::new());
        }
        let expected = self.experiment.asked(self.levels, &stage.addresses)?;
        let counted = counting.spent.asked(counting.requests());
        let of = |server: &Running| {
            let name = server.record.name.clone();
            let facts = AskedFacts {
                expected: expected.get(&name).copied().unwrap_or(1.0),
                counted: counted.get(&name).copied(),
                cpu_us: measured.spent.cpu_us(&name, measured.requests()),
            };
            (name, facts)
        };
        Ok(stage.servers.iter().map(of).collect())
    }

    /// What a span comes to, but for gates; calls and bytes are those of `counting`, which may be another one.
    fn record(
        &self,
        stage: &mut Stage,
        load: &Load,
        (measured, counting): (&Measured, &Measured),
    ) -> Result<Run, DriveFault> {
        let (experiment, levels) = (self.experiment, self.levels);
        let document = &measured.report.document;
        let all = std::iter::once(&measured.report).chain(&measured.beside);
        let requests = measured.requests();
        let opened: u64 = all.clone().map(|it| it.document.connections.opened).sum();
        let failed =
            |report: &Report| report.document.requests.failed + report.document.unfinished.hung;
        let failed: u64 = all.map(failed).sum();
        let spent = &measured.spent;
        let mut facts = Facts::of_document(document);
        facts.expect = experiment.expect(levels, &stage.addresses)?;
        facts.failed = failed;
        facts.dials = spent.dials(&stage.servers, opened, requests);
        facts.asked = self.asked(stage, measured, counting)?;
        facts.machine = Some(MachineFacts {
            capped: capped(&mut stage.servers),
            alarms: alarms(&mut stage.servers),
            compiling: sample::compiling(&measured.samples),
            changed: measured.changed.clone(),
            uncounted: counting.spent.uncounted(),
            shares: spent.shares(&stage.servers, (requests, measured.rate())),
            ..spent.machine(load, &stage.servers)
        });
        let mut measures = bench::measures(document);
        let tested = stage.servers.last().filter(|it| it.core_share.is_some());
        let cpu_us = tested.and_then(|it| spent.cpu_us(&it.record.name, requests));
        if let Some(cpu_us) = cpu_us.filter(|cpu_us| *cpu_us > 0.0) {
            measures.insert(CAPACITY.to_owned(), 1e6 / cpu_us);
        }
        measures.insert("failed".to_owned(), failed as f64);
        let all = std::iter::once(&measured.report).chain(&measured.beside);
        let others: u64 = all.map(|it| it.document.requests.non_2xx).sum();
        measures.insert("errors".to_owned(), (failed + others) as f64);
        measures.extend(counters::memory(experiment, &stage.servers));
        measures.extend(sample::jvm_measures(
            &measured.samples,
            &experiment.measure.jvm,
        ));
        if measured.acted > 0 {
            measures.insert("acted".to_owned(), measured.acted as f64);
        }
        spent.measures(experiment, requests, &mut measures);
        let (counted, counts) = (&counting.spent, counting.requests());
        counted.counts(experiment, &stage.servers, counts, &mut measures);
        if counted.lacks_bytes() && load.crowd.is_none() {
            let beside = experiment.beside(levels, &stage.addresses)?;
            let loads = std::iter::once(load).chain(&beside);
            let reports = std::iter::once(&measured.report).chain(&measured.beside);
            let loads: Vec<_> = loads.zip(reports).collect();
            measures.extend(bench::bytes(experiment, &stage.addresses, &loads, requests));
        }
        Ok(Run {
            levels: levels.clone(),
            started_at_s: document.started_at_s,
            calls: counted.calls(counts),
            seconds: bench::seconds(document),
            thirds: measured.thirds.clone(),
            measures,
            facts,
            starts: stage.starts(),
            memory: MemoryCount::Allocated,
            ..Run::default()
        })
    }
}

/// What a thread has come to.
fn joined<T>(thread: thread::ScopedJoinHandle<'_, Result<T, DriveFault>>) -> Result<T, DriveFault> {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Does it again and again until the sender is gone.
fn go_on(
    stage: &Stage,
    act: &Act,
    acted: &AtomicU64,
    ended: &Receiver<()>,
) -> Result<(), DriveFault> {
    let server = stage.servers.iter().find(|it| it.record.name == act.server);
    let Some(Running {
        process, stable, ..
    }) = server
    else {
        return Ok(());
    };
    while ended.recv_timeout(act.every) == Err(RecvTimeoutError::Timeout) {
        let done = match act.is_upgrade {
            true => process.upgrade(),
            false => process.reload(),
        };
        done.map_err(|fault| DriveFault::of_server(DIED, fault, stable))?;
        acted.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// The gates of a run, but those that are off; those that concern times alone void nothing.
fn judged(mut gates: Vec<Fired>, experiment: &Experiment) -> Vec<Fired> {
    gates.retain(|fired| !experiment.gates_off.contains(&fired.gate));
    let of_times = |fired: &&mut Fired| {
        fired.effect == Effect::Void && experiment.gates_of_times.contains(&fired.gate)
    };
    for fired in gates.iter_mut().filter(of_times) {
        fired.effect = Effect::Time;
    }
    gates
}

/// Adds what an open loop at a share of the capacity has shown, unless a gate that is not `off` says
/// that the loop was none: then the run is without these measures.
fn take_share(run: &mut Run, part: Run, share: f64, off: &[String]) {
    let mut is_loop = true;
    for fired in check_run(&part.facts) {
        let is_of_loop = ["late", "failed", "status", "generator"].contains(&fired.gate.as_str());
        if !is_of_loop || fired.effect == Effect::Note || off.contains(&fired.gate) {
            continue;
        }
        is_loop = false;
        let (share, words) = (share * 100.0, fired.words);
        let words = format!("Nothing is measured at {share:.0} % of the capacity: {words}");
        run.gates.push(Fired::new(&fired.gate, Effect::Note, words));
    }
    let Run {
        measures, thirds, ..
    } = part;
    for (name, value) in measures.into_iter().filter(|_| is_loop) {
        if Measure::has_shares(&name) {
            run.measures.insert(format!("{name}@{share}"), value);
        }
    }
    for (name, values) in thirds.into_iter().filter(|_| is_loop) {
        if Measure::has_shares(&name) {
            run.thirds.insert(format!("{name}@{share}"), values);
        }
    }
}

/// What servers complain about, and whether they still run.
fn alarms(servers: &mut [Running]) -> Vec<String> {
    let mut alarms = Vec::new();
    for server in servers {
        let name = server.process.name().to_owned();
        if let Some(how) = server.process.ended() {
            alarms.push(format!("{name} ended with {how}"));
        }
        let lines = server.process.alarms();
        let stable = &server.stable;
        alarms.extend(
            lines
                .iter()
                .map(|line| format!("{name} says: {}", stable.text(line))),
        );
    }
    alarms
}

/// Lines of servers that say that a maximum was reached.
fn capped(servers: &mut [Running]) -> Vec<String> {
    let lines = |server: &mut Running| {
        let name = server.process.name().to_owned();
        let lines = server.process.capped();
        let line = |line: String| format!("{name}: {}", server.stable.text(&line));
        lines.into_iter().map(line).collect::<Vec<_>>()
    };
    servers.iter_mut().flat_map(lines).collect()
}

/// What idle clients have lost, as an alarm.
fn lost(tally: Option<Tally>) -> Option<String> {
    match tally {
        None => Some("the clients beside the load ended early".to_owned()),
        Some(Tally { lost: 0, .. }) => None,
        Some(Tally { lost, .. }) => Some(format!(
            "{lost} requests of idle clients had no answer, or no connection"
        )),
    }
}

/// The gate on servers that do not live.
const DIED: &str = "died";

/// The gate on servers that do not serve when they are started.
const NOT_READY: &str = "not-ready";

/// The factor that tells two of our binaries apart, and the level of the older one.
pub const BINARY: &str = "binary";
/// See [`BINARY`].
pub const OLD: &str = "old";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_of_times_alone_voids_nothing() {
        let text = include_str!("../experiments/front-idle.toml");
        let experiment = Experiment::read("front-idle.toml", text, true).unwrap();
        let late = Fired::new("late", Effect::Void, "late".to_owned());
        let status = Fired::new("status", Effect::Void, "404".to_owned());
        let gates = judged(vec![late, status.clone()], &experiment);
        assert_eq!((gates[0].effect, &gates[1]), (Effect::Time, &status));
        let run = Run {
            gates: gates[..1].to_vec(),
            ..Run::default()
        };
        assert!(run.is_valid());
    }

    #[test]
    fn a_loop_that_was_late_is_left_out_and_the_run_stays() {
        let part = |warning: Option<&str>| {
            let mut part = Run::default();
            for name in ["p99", "throughput"] {
                part.measures.insert(name.to_owned(), 2.0);
            }
            part.facts.completed = 1000;
            let warnings = warning.map(|kind| (kind.to_owned(), "late".to_owned()));
            part.facts.warnings.extend(warnings);
            part
        };
        let mut run = Run::default();
        take_share(&mut run, part(None), 0.5, &[]);
        assert_eq!(
            run.measures,
            BTreeMap::from([("p99@0.5".to_owned(), 2.0)]),
            "no more than has a meaning there"
        );
        // What the same gate says of the run itself does not hide it.
        run.gates
            .push(Fired::new("late", Effect::Note, "late, too".to_owned()));
        take_share(&mut run, part(Some("generator-late")), 0.9, &[]);
        assert!(!run.measures.contains_key("p99@0.9"));
        let [_, fired] = &run.gates[..] else {
            panic!("{:?}", run.gates)
        };
        assert_eq!((fired.gate.as_str(), fired.effect), ("late", Effect::Note));
        assert!(fired.words.starts_with("Nothing is measured at 90 %"));
        assert!(run.is_valid());
        let off = ["late".to_owned()];
        take_share(&mut run, part(Some("generator-late")), 0.9, &off);
        assert!(run.measures.contains_key("p99@0.9"), "the gate is off");
    }
}
