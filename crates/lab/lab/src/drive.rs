//! Makes one run: starts a cell's servers, warms them up, drives the load, and reads all counters.
//!
//! A run has a network namespace, a cgroup for each server and one for the load; they are removed
//! after the last run that uses them. Counters are read right before the load generator starts and
//! right after it has ended.

mod again;
mod bench;
mod by_strace;
mod child;
mod counters;
mod crowd;
mod duel;
mod evidence;
mod live;
mod record;
mod sample;
mod shares;
mod span;
mod stage;
mod thirds;
mod warm;
mod watch;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use catamaran_load::report::ReportFault;
use catamaran_tier::{Programs, SpaceFault, StartFault};
use catamaran_toml_file::report::Report;
use thiserror::Error;

use self::bench::{LoadCall, LoadReport, SEED, TickListener};
use self::by_strace::StraceCount;
use self::counters::Counters;
use self::crowd::CrowdProcess;
pub use self::crowd::READY;
use self::evidence::{Spans, Surroundings, lost};
pub(crate) use self::live::{Answers, live};
use self::record::StableWords;
use self::shares::ShareValues;
use self::span::MeasuredSpan;
pub use self::stage::Stages;
pub(crate) use self::stage::{RunningServer, Stage};
use crate::experiment::{BINARY, Experiment, Levels, Load, OLD, OWN, OriginalRun};
use crate::gate::{Effect, GateFinding, check_run};
use crate::run::{MemoryCount, Run, RunKey, ServerRecord};

/// The programs and paths that runs need.
#[derive(Clone, Debug)]
pub struct Driver {
    /// The path of the `catamaran` binary, whose `bench` is the load generator.
    pub catamaran: PathBuf,
    /// The binary for the level `old` of the factor `binary`; `None` if the experiment has no such factor.
    pub against: Option<PathBuf>,
    /// Paths of programs that servers need and no package has.
    pub programs: Programs,
    /// The first part of the names of spaces, which keeps those of this process apart from others.
    pub space: String,
    /// Set to true when a signal asks for the end; then a server that is starting is given up.
    pub stop: Arc<AtomicBool>,
}

/// The parameters of one run.
#[derive(Clone, Copy, Debug)]
pub struct RunRequest<'a> {
    /// The cell and the round of the run.
    pub at: RunKey,
    /// The run's place in the round, from 0.
    pub place: usize,
    /// The number of earlier attempts at this run; 0 for the first.
    pub attempt: usize,
    /// For each number of clients, the requests per second of the slowest cell: the capacity. Loads
    /// at `shares` of it are driven, too.
    pub capacity: &'a BTreeMap<u64, f64>,
    /// Set to true when a signal asks for the end.
    pub stop: &'a AtomicBool,
}

/// The files of a run besides its record.
#[derive(Clone, Debug, Default)]
pub struct RunFiles {
    /// The report of the load generator, as JSON.
    pub bench: String,
    /// Latencies of each second, as a log for HdrHistogram's tools; empty if the load is an echo.
    pub latency: String,
    /// The samples of each second, one JSON text a line.
    pub samples: String,
    /// The system calls of the servers, as JSON.
    pub traces: String,
    /// The records of the servers: versions, commands and settings.
    pub servers: Vec<ServerRecord>,
    /// The output of ab for published runs that were made on servers just started, with the names of the runs.
    pub printed: Vec<(String, String)>,
}

/// Why a run could not be made.
#[derive(Debug, Error)]
pub enum DriveFault {
    /// A signal has asked for the end.
    #[error("interrupted")]
    Interrupted,
    /// A namespace or a cgroup cannot be made.
    #[error("{0}; `catamaran lab` needs root for network namespaces and cgroups of its own")]
    Space(#[from] SpaceFault),
    /// A server could not be started.
    #[error("{0}")]
    Start(Box<StartFault>),
    /// A server was started but does not serve, or an action on it failed.
    #[error("{fault}")]
    Server {
        /// The name of the gate that voids the run.
        gate: &'static str,
        /// The fault in one line, without paths of this machine.
        words: String,
        /// The fault of the server.
        fault: Box<StartFault>,
    },
    /// A server ended, so that the load could not continue.
    #[error("{0}")]
    Died(String),
    /// The experiment's templates cannot be rendered with the servers' addresses.
    #[error("{0}")]
    Faults(#[from] Report),
    /// The load generator failed; its report is missing.
    #[error("the load generator ended with {how}: {said}")]
    Load {
        /// The exit status of the load generator.
        how: String,
        /// The load generator's output on standard error.
        said: String,
    },
    /// The load generator's report cannot be read.
    #[error("the load generator's report: {0}")]
    Report(#[from] ReportFault),
    /// Counters of the kernel cannot be read.
    #[error("cannot count {what}: {why}; `catamaran lab doctor` says what is missing")]
    Count {
        /// The counter that cannot be read.
        what: &'static str,
        /// The cause, in words.
        why: String,
    },
    /// The clients of the crowd cannot be connected.
    #[error("the clients beside the load: {0}")]
    Crowd(String),
    /// An operation of the system failed, such as one on a file or a process.
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
    /// The fault of a server's start or of an action on it. `gate` voids the run if the server itself is the cause.
    fn of_server(gate: &'static str, fault: StartFault, stable: &StableWords) -> Self {
        match fault.of_server() {
            Some(words) => Self::Server {
                gate,
                words: stable.text(&words),
                fault: Box::new(fault),
            },
            None => fault.into(),
        }
    }

    /// The gate that voids a run in which a server has failed; `None` if the fault is not a server's.
    pub(crate) fn of_run(&self) -> Option<GateFinding> {
        match self {
            Self::Server { gate, words, .. } => Some(GateFinding::new(gate, Effect::Void, words)),
            Self::Died(words) => Some(GateFinding::new(DIED, Effect::Void, words)),
            _ => None,
        }
    }

    /// Turns a fault of the load into [`DriveFault::Died`] if one of the servers has ended, since
    /// that is then the cause.
    fn or_death_of(self, servers: &[RunningServer]) -> Self {
        let is_of_load = matches!(
            self,
            Self::Load { .. } | Self::Report(_) | Self::Count { .. } | Self::Crowd(_) | Self::Io(_)
        );
        if is_of_load {
            for server in servers {
                if let Some(how) = server.process.ended() {
                    let name = server.process.name();
                    return Self::Died(format!("{name} ended with {how}"));
                }
            }
        }
        self
    }
}

impl Driver {
    /// Makes one run of an experiment.
    ///
    /// # Errors
    /// The run could not be made; [`DriveFault`] says why.
    pub fn run(
        &self,
        experiment: &Experiment,
        stages: &mut Stages,
        request: RunRequest<'_>,
    ) -> Result<(Run, RunFiles), DriveFault> {
        let at = request.at;
        let scene = Scene {
            driver: self,
            experiment,
            levels: &experiment.cells[at.cell],
            stop: request.stop,
        };
        let stage = stages.prepare(self, experiment, at)?;
        let result = scene.run(stage, request);
        result.map_err(|fault| fault.or_death_of(&stage.servers))
    }

    /// Makes a published run once, as it was made then, on servers of its own or on those in
    /// `stages` if it continues them. Returns ab's output.
    ///
    /// # Errors
    /// The run could not be made; [`DriveFault`] says why.
    pub fn as_published(
        &self,
        experiment: &Experiment,
        run: &OriginalRun,
        stages: &mut Stages,
        stop: &AtomicBool,
    ) -> Result<String, DriveFault> {
        // An experiment of its own, whose only cell is that of the run.
        let of_run = experiment.of_published(run);
        let stage = stages.prepare(self, &of_run, RunKey { cell: 0, round: 0 })?;
        let load = of_run.load(&run.cell, &stage.addresses)?;
        bench::as_ab(self, stage, &load, run, stop)
    }

    /// The programs of a cell's servers. Our own is the older build in a cell with the level `old` of the factor
    /// `binary`.
    fn programs_of(&self, levels: &Levels) -> Programs {
        let build = levels.get(BINARY).map(ToString::to_string);
        let catamaran = match &self.against {
            Some(old) if build.as_deref() == Some(OLD) => old,
            _ => &self.catamaran,
        };
        let mut programs = self.programs.clone();
        programs.insert(OWN.to_owned(), catamaran.clone());
        programs
    }
}

/// The spans of load that a run consists of.
struct RunSpans {
    timed: MeasuredSpan,
    /// The span in which calls and bytes were counted; `None`: they were counted in `timed`.
    counted_apart: Option<MeasuredSpan>,
    strace: Option<StraceCount>,
}

impl RunSpans {
    /// The span in which calls and bytes were counted.
    fn counting(&self) -> &MeasuredSpan {
        self.counted_apart.as_ref().unwrap_or(&self.timed)
    }

    fn all<'a>(&'a self, load: &'a Load) -> Spans<'a> {
        Spans {
            load,
            timed: &self.timed,
            counting: self.counting(),
            strace: self.strace.as_ref(),
        }
    }

    /// The system calls of the servers as JSON, counted by BPF or strace.
    fn traces(&self) -> String {
        let json = match &self.strace {
            Some(strace) => serde_json::to_string(&strace.traces()),
            None => serde_json::to_string(&self.counting().traces),
        };
        // Such maps always have a form in JSON.
        json.unwrap_or_default()
    }
}

/// The experiment and the cell of a run, with the driver.
#[derive(Clone, Copy)]
struct Scene<'a> {
    driver: &'a Driver,
    experiment: &'a Experiment,
    levels: &'a Levels,
    stop: &'a AtomicBool,
}

impl Scene<'_> {
    /// Makes the run on the servers of `stage`, which serve already.
    fn run(
        self,
        stage: &mut Stage,
        request: RunRequest<'_>,
    ) -> Result<(Run, RunFiles), DriveFault> {
        let load = self.experiment.load(self.levels, &stage.addresses)?;
        // Published runs come before the warm-up, since they were made on servers just started.
        let mut repeated = again::on_new_servers(self, stage, &load)?;
        let warm_up = warm::warm(self.driver, stage, &load, self.stop)?;
        repeated.run_warm(self, stage, &load)?;
        // The crowd stays connected during the spans.
        let (crowd, held) = self.crowd(stage, &load)?;
        let spans = self.spans(stage, &load)?;
        // The responses of the first second are a measure only of virtual machines that were just started.
        let is_first_second_cold = stage.is_fresh && !self.experiment.measure.jvm.is_empty();
        let around = Surroundings {
            lost: crowd.map(CrowdProcess::end).and_then(lost),
            memory: counters::memory(self.experiment, &stage.servers),
            held,
            first: warm_up.first.filter(|_| is_first_second_cold),
            is_published: self.experiment.is_published,
            published: repeated.figures,
            warm_up,
        };
        let run = self.record(stage, request, spans.all(&load), &around)?;
        let files = RunFiles {
            traces: spans.traces(),
            bench: spans.timed.report.text,
            latency: spans.timed.report.latency,
            samples: sample::lines(&spans.timed.samples),
            servers: stage.records(),
            printed: repeated.printed,
        };
        Ok((run, files))
    }

    /// Drives the load once for times, once more if calls and bytes are counted apart from them, and once for strace if
    /// the kernel does not count calls.
    fn spans(&self, stage: &Stage, load: &Load) -> Result<RunSpans, DriveFault> {
        let experiment = self.experiment;
        let is_apart = experiment.counts_apart() && Counters::are_granted(experiment, stage);
        let mut spans = RunSpans {
            timed: self.measure(stage, load, !is_apart)?,
            counted_apart: None,
            strace: None,
        };
        if is_apart {
            let is_counting = true;
            spans.counted_apart = Some(self.measure(stage, load, is_counting)?);
        }
        if spans.counting().spent.lacks_calls() {
            spans.strace = Some(by_strace::count(*self, stage, load)?);
        }
        Ok(spans)
    }

    /// The record of a run from its spans. Also drives the load at shares of the capacity, if the experiment has them.
    fn record(
        &self,
        stage: &mut Stage,
        request: RunRequest<'_>,
        spans: Spans<'_>,
        around: &Surroundings,
    ) -> Result<Run, DriveFault> {
        let facts = self.facts(stage, spans, around)?;
        let mut measures = self.measures(stage, spans, around)?;
        let mut thirds = spans.timed.thirds.clone();
        let at_shares = match request.capacity.get(&spans.load.clients) {
            Some(capacity) => shares::drive(*self, stage, spans.load, *capacity)?,
            None => ShareValues::default(),
        };
        measures.extend(at_shares.measures);
        thirds.extend(at_shares.thirds);
        let mut gates = at_shares.gates;
        gates.extend(gates_of_experiment(check_run(&facts), self.experiment));
        let document = &spans.timed.report.document;
        Ok(Run {
            cell: request.at.cell,
            levels: self.levels.clone(),
            round: request.at.round,
            place: request.place,
            attempt: request.attempt,
            started_at_s: document.started_at.as_secs_f64(),
            measures,
            calls: counters::calls_by_request(spans.calls()),
            facts,
            thirds,
            blocks: BTreeMap::new(),
            gates,
            seconds: bench::seconds(document),
            silences: bench::silences(document),
            starts: stage.starts(),
            memory: MemoryCount::Allocated,
        })
    }

    /// Runs the load generator with the seed of measured loads.
    fn bench(
        &self,
        stage: &Stage,
        load: &Load,
        time: Duration,
        listener: TickListener<'_>,
    ) -> Result<LoadReport, DriveFault> {
        let call = LoadCall {
            name: "load",
            load,
            time,
            seed: SEED,
        };
        bench::run(self.driver, stage, call, self.stop, listener)
    }

    /// Connects the clients of the crowd and warms up the servers with them. Returns the crowd, and the memory that
    /// each client takes: see [`held`].
    fn crowd(
        &self,
        stage: &Stage,
        load: &Load,
    ) -> Result<(Option<CrowdProcess>, BTreeMap<String, f64>), DriveFault> {
        let Some(wanted) = &load.crowd else {
            return Ok((None, BTreeMap::new()));
        };
        let before = counters::memory_of_new(self.experiment, &stage.servers);
        let crowd = CrowdProcess::start(&self.driver.catamaran, &stage.space, load, wanted)?;
        self.bench(stage, load, load.warm.0, None)?;
        let after = counters::memory_of_new(self.experiment, &stage.servers);
        let held = match (before, after) {
            (Some(before), Some(after)) => {
                let has_several = self.experiment.servers() > 1;
                held(&before, &after, crowd.clients, has_several)
            }
            _ => BTreeMap::new(),
        };
        Ok((Some(crowd), held))
    }
}

/// The bytes that each client of a crowd has made servers allocate: of all servers under an empty
/// name, and of each if there are several. `before` and `after` have the bytes of each server.
fn held(
    before: &BTreeMap<String, u64>,
    after: &BTreeMap<String, u64>,
    clients: u64,
    has_several: bool,
) -> BTreeMap<String, f64> {
    let by_client =
        |before: u64, after: u64| ((after as f64 - before as f64) / clients as f64).max(0.0);
    let of_all = by_client(before.values().sum(), after.values().sum());
    let mut held = BTreeMap::from([(String::new(), of_all)]);
    if has_several {
        for (name, bytes_after) in after {
            if let Some(bytes_before) = before.get(name) {
                held.insert(name.clone(), by_client(*bytes_before, *bytes_after));
            }
        }
    }
    held
}

/// The gates of a run as the experiment has them: without those that it turns off. Those that it lets concern only
/// times do not void the run.
fn gates_of_experiment(mut gates: Vec<GateFinding>, experiment: &Experiment) -> Vec<GateFinding> {
    gates.retain(|fired| !experiment.gates_off.contains(&fired.gate));
    for fired in &mut gates {
        if fired.effect == Effect::Void && experiment.gates_of_times.contains(&fired.gate) {
            fired.effect = Effect::Time;
        }
    }
    gates
}

/// The name of the gate on servers that have ended.
const DIED: &str = "died";

/// The name of the gate on servers that do not serve after their start.
const NOT_READY: &str = "not-ready";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_of_times_alone_voids_nothing() {
        let text = include_str!("../experiments/front-idle.toml");
        let experiment = Experiment::read("front-idle.toml", text, true).unwrap();
        let late = GateFinding::new("late", Effect::Void, "late".to_owned());
        let status = GateFinding::new("status", Effect::Void, "404".to_owned());
        let gates = gates_of_experiment(vec![late, status.clone()], &experiment);
        assert_eq!((gates[0].effect, &gates[1]), (Effect::Time, &status));
        let run = Run {
            gates: gates[..1].to_vec(),
            ..Run::default()
        };
        assert!(run.is_valid());
    }

    #[test]
    fn a_crowd_holds_what_servers_have_allocated_more() {
        let bytes = |app: u64, front: u64| {
            BTreeMap::from([("app".to_owned(), app), ("front".to_owned(), front)])
        };
        let held = held(&bytes(1000, 500), &bytes(3000, 400), 100, true);
        let expected = [("", 19.0), ("app", 20.0), ("front", 0.0)];
        let expected = expected.map(|(name, bytes)| (name.to_owned(), bytes));
        assert_eq!(held, BTreeMap::from(expected));
    }
}
