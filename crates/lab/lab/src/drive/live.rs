//! Drives a tier under its load while people watch it, without measuring for claims.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use catamaran_load::document::Tick;

use super::bench::{self, LoadCall, SEED};
use super::child::DRIVEN;
use super::crowd::CrowdProcess;
use super::span::go_on;
use super::stage::Stage;
use super::{DriveFault, Driver};
use crate::experiment::{Experiment, Levels, Load};
use crate::extra::{EndOnDrop, echo};

/// The counts of all loads of a cell so far.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// The number of complete responses.
    pub(crate) completed: AtomicU64,
    /// The number of requests that have failed.
    pub(crate) failed: AtomicU64,
}

impl Answers {
    fn add(&self, completed: u64, failed: u64) {
        self.completed.fetch_add(completed, Ordering::Relaxed);
        self.failed.fetch_add(failed, Ordering::Relaxed);
    }
}

/// Drives a cell's loads, its crowd and its actions until `look` returns; faults of loads are sent to `look`.
pub(crate) fn live<T>(
    driver: &Driver,
    stage: &Stage,
    experiment: &Experiment,
    levels: &Levels,
    answers: &Answers,
    look: impl FnOnce(&Receiver<DriveFault>) -> T,
) -> Result<T, DriveFault> {
    let load = experiment.load(levels, &stage.addresses)?;
    let beside = experiment.beside(levels, &stage.addresses)?;
    let acts = experiment.acts(levels, &stage.addresses)?;
    let over = &AtomicBool::new(false);
    let (fault, faults) = sync_channel(beside.len() + acts.len() + 1);
    thread::scope(|scope| {
        // The loads end when `look` ends, also if it panics.
        let ending = EndOnDrop(over);
        let crowd = load.crowd.as_ref();
        let start = |wanted| CrowdProcess::start(&driver.catamaran, &stage.space, &load, wanted);
        let crowd = crowd.map(start).transpose()?;
        let names = (2..).map(|number| format!("{MAIN}{number}"));
        let names = std::iter::once(MAIN.to_owned()).chain(names);
        for (load, name) in std::iter::once(&load).chain(&beside).zip(names) {
            let told = Teller {
                answers,
                over,
                fault: fault.clone(),
            };
            scope.spawn(move || told.drive(driver, stage, load, &name));
        }
        let mut over_acts = Vec::new();
        for act in &acts {
            let (end, ended) = sync_channel::<()>(0);
            over_acts.push(end);
            let fault = fault.clone();
            scope.spawn(move || {
                if let Err(why) = go_on(stage, act, &AtomicU64::new(0), &ended) {
                    // The receiver is gone once `look` has returned.
                    let _ = fault.try_send(why);
                }
            });
        }
        let looked = look(&faults);
        drop(ending);
        drop(over_acts);
        drop(crowd);
        Ok(looked)
    })
}

/// Keeps a load generator running, and counts its responses.
struct Teller<'a> {
    answers: &'a Answers,
    over: &'a AtomicBool,
    fault: SyncSender<DriveFault>,
}

impl Teller<'_> {
    /// Runs the load generator until the tier is over, or sends the fault by which it ended.
    fn drive(&self, driver: &Driver, stage: &Stage, load: &Load, name: &str) {
        let is_echo = echo::EchoRequest::site(&load.url).is_some();
        let call = LoadCall {
            name,
            load,
            time: if is_echo { ECHO } else { LONGEST },
            seed: SEED,
        };
        while !self.over.load(Ordering::Relaxed) {
            let done = if is_echo {
                self.echo(driver, stage, call)
            } else {
                self.bench(driver, stage, call)
            };
            match done {
                Ok(()) | Err(DriveFault::Interrupted) => {}
                Err(fault) => {
                    // Nobody receives it once `look` has returned.
                    let _ = self.fault.try_send(fault);
                    return;
                }
            }
        }
    }

    /// Runs one load generator, and counts its responses at each tick.
    fn bench(&self, driver: &Driver, stage: &Stage, call: LoadCall<'_>) -> Result<(), DriveFault> {
        // A load generator that fails before its first tick would be started again and again, so that is a fault.
        let mut fine: &[i32] = &[];
        let mut before = Tick::default();
        let ended = bench::ticking(driver, stage, call, TICK, self.over, |tick| {
            fine = &DRIVEN;
            self.answers.add(
                tick.completed.saturating_sub(before.completed),
                tick.failed.saturating_sub(before.failed),
            );
            before = tick;
            ControlFlow::Continue(())
        })?;
        ended.check_code(fine)
    }

    /// Runs a load on an echo, in short parts, since it has no ticks.
    fn echo(&self, driver: &Driver, stage: &Stage, call: LoadCall<'_>) -> Result<(), DriveFault> {
        let report = bench::run(driver, stage, call, self.over, None)?;
        let requests = &report.document.requests;
        self.answers.add(requests.completed, requests.failed);
        Ok(())
    }
}

/// The name of the main load; the names of others have a number after it.
const MAIN: &str = "load";
/// The time after which a load generator is started again.
const LONGEST: Duration = Duration::from_secs(600);
/// The duration of a load that is an echo.
const ECHO: Duration = Duration::from_secs(1);
/// The interval between two ticks of a load generator.
const TICK: Duration = Duration::from_secs(1);
