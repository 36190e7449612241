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

/// Drives a cell's loads, its crowd and its actions until `look` returns, and returns its value. Faults of loads and
/// actions are sent to `look`, which decides whether to go on.
///
/// # Errors
/// A template does not render, or the crowd cannot be connected; `look` is then not called.
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
    let is_over = &AtomicBool::new(false);
    // Each load and each action sends at most one fault.
    let (fault_sender, faults) = sync_channel(beside.len() + acts.len() + 1);
    thread::scope(|scope| {
        // The loads end when `look` ends, also if it panics.
        let end_of_loads = EndOnDrop(is_over);
        let mut crowd = None;
        if let Some(clients) = &load.crowd {
            let process = CrowdProcess::start(&driver.catamaran, &stage.space, &load, clients)?;
            crowd = Some(process);
        }
        for (index, load) in std::iter::once(&load).chain(&beside).enumerate() {
            let name = match index {
                0 => MAIN.to_owned(),
                _ => format!("{MAIN}{}", index + 1),
            };
            let live_load = LiveLoad {
                answers,
                is_over,
                faults: fault_sender.clone(),
            };
            scope.spawn(move || live_load.drive(driver, stage, load, &name));
        }
        let mut ends_of_acts = Vec::new();
        for act in &acts {
            let (end, ended) = sync_channel::<()>(0);
            ends_of_acts.push(end);
            let faults = fault_sender.clone();
            scope.spawn(move || {
                if let Err(fault) = go_on(stage, act, &AtomicU64::new(0), &ended) {
                    // The receiver is gone once `look` has returned.
                    let _ = faults.try_send(fault);
                }
            });
        }
        let value = look(&faults);
        drop(end_of_loads);
        drop(ends_of_acts);
        drop(crowd);
        Ok(value)
    })
}

/// A load generator that is kept running, and whose responses are counted.
struct LiveLoad<'a> {
    answers: &'a Answers,
    is_over: &'a AtomicBool,
    faults: SyncSender<DriveFault>,
}

impl LiveLoad<'_> {
    /// Runs the load generator until the tier is over, or sends the fault by which it ended.
    fn drive(&self, driver: &Driver, stage: &Stage, load: &Load, name: &str) {
        let is_echo = echo::EchoRequest::site(&load.url).is_some();
        let call = LoadCall {
            name,
            load,
            time: if is_echo { ECHO } else { LONGEST },
            seed: SEED,
        };
        while !self.is_over.load(Ordering::Relaxed) {
            let result = if is_echo {
                self.echo(driver, stage, call)
            } else {
                self.bench(driver, stage, call)
            };
            match result {
                // The end of the tier interrupts it.
                Ok(()) | Err(DriveFault::Interrupted) => {}
                Err(fault) => {
                    // Nobody receives it once `look` has returned.
                    let _ = self.faults.try_send(fault);
                    return;
                }
            }
        }
    }

    /// Runs one load generator, and counts its responses at each tick.
    fn bench(&self, driver: &Driver, stage: &Stage, call: LoadCall<'_>) -> Result<(), DriveFault> {
        // Before the first tick no exit code is fine: a load generator that never ticks would be started again and
        // again.
        let mut fine: &[i32] = &[];
        let mut before = Tick::default();
        let exit = bench::ticking(driver, stage, call, TICK, self.is_over, |tick| {
            fine = &DRIVEN;
            self.answers.add(
                tick.completed.saturating_sub(before.completed),
                tick.failed.saturating_sub(before.failed),
            );
            before = tick;
            ControlFlow::Continue(())
        })?;
        exit.check_code(fine)
    }

    /// Runs a load on an echo, in short parts, since it has no ticks.
    fn echo(&self, driver: &Driver, stage: &Stage, call: LoadCall<'_>) -> Result<(), DriveFault> {
        let report = bench::run(driver, stage, call, self.is_over, None)?;
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
