//! Drives one span of load, together with further loads and actions on servers, and counts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;

use catamaran_load::document::Tick;

use super::bench::{self, LoadCall, LoadReport, SEED};
use super::counters::{CounterReading, Counters};
use super::stage::{RunningServer, Stage};
use super::thirds::{ThirdValues, Thirds};
use super::watch::{LoadMoment, LoadWatch, cpus};
use super::{DIED, DriveFault, Scene, sample};
use crate::experiment::{Act, Load};
use crate::facts::LevelChange;
use crate::sample::Sample;
use crate::strace::Traces;

/// The reports, counters and samples of one span of load.
pub(super) struct MeasuredSpan {
    pub(super) report: LoadReport,
    /// The reports of the further loads.
    pub(super) beside: Vec<LoadReport>,
    pub(super) spent: CounterReading,
    pub(super) samples: Vec<Sample>,
    pub(super) traces: Traces,
    /// The number of actions that were done on servers.
    pub(super) acted: u64,
    /// A change of level within the span: see `changed` of the facts about the machine.
    pub(super) changed: Option<LevelChange>,
    /// The measures in each third of the span.
    pub(super) thirds: ThirdValues,
}

impl MeasuredSpan {
    /// The number of requests that were answered, of all loads.
    pub(super) fn requests(&self) -> u64 {
        self.reports()
            .map(|it| it.document.requests.completed)
            .sum()
    }

    /// The number of requests that failed or hung, of all loads.
    pub(super) fn failed(&self) -> u64 {
        let failed = |it: &LoadReport| it.document.requests.failed + it.document.unfinished.hung;
        self.reports().map(failed).sum()
    }

    /// The number of requests that failed or had a response with a status other than 2xx, of all loads.
    pub(super) fn errors(&self) -> u64 {
        let others = self.reports().map(|it| it.document.requests.non_2xx);
        self.failed() + others.sum::<u64>()
    }

    /// The number of connections that all loads have opened.
    pub(super) fn opened(&self) -> u64 {
        self.reports()
            .map(|it| it.document.connections.opened)
            .sum()
    }

    /// The report of the main load, then those of the further loads.
    pub(super) fn reports(&self) -> impl Iterator<Item = &LoadReport> {
        std::iter::once(&self.report).chain(&self.beside)
    }

    /// The number of responses per second, of all loads.
    pub(super) fn rate(&self) -> f64 {
        self.requests() as f64 / self.report.document.elapsed.as_secs_f64().max(1e-9)
    }
}

impl Scene<'_> {
    /// Drives the load, the further loads and the actions on servers; calls and bytes are counted if `is_counting`.
    pub(super) fn measure(
        &self,
        stage: &Stage,
        load: &Load,
        is_counting: bool,
    ) -> Result<MeasuredSpan, DriveFault> {
        let others = self.experiment.beside(self.levels, &stage.addresses)?;
        let acts = self.experiment.acts(self.levels, &stage.addresses)?;
        let counters = Counters::begin(self.experiment, stage, is_counting);
        let acted = AtomicU64::new(0);
        let mut watch = LoadWatch::new(load.time, false);
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
                    let call = LoadCall {
                        name,
                        load,
                        time,
                        seed: SEED,
                    };
                    bench::run(self.driver, stage, call, self.stop, None)
                }));
            }
            let mut hear = |tick: Tick| {
                let cpus = cpus(stage);
                watch.take(&LoadMoment::of(&tick, &cpus));
                thirds.take(&tick, &cpus);
            };
            let report = self.bench(stage, load, load.time, Some(&mut hear));
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
        // Actions on servers are not spread evenly over the span, so its thirds differ anyway.
        let thirds = if acts.is_empty() {
            thirds.values(stage, &report.document)
        } else {
            ThirdValues::new()
        };
        Ok(MeasuredSpan {
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
}

/// Waits for a thread and returns its result; passes on its panic.
fn joined<T>(thread: thread::ScopedJoinHandle<'_, Result<T, DriveFault>>) -> Result<T, DriveFault> {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Repeats an action on a server at its interval, until the sender is dropped.
pub(super) fn go_on(
    stage: &Stage,
    act: &Act,
    acted: &AtomicU64,
    ended: &Receiver<()>,
) -> Result<(), DriveFault> {
    let server = stage.servers.iter().find(|it| it.record.name == act.server);
    let Some(RunningServer {
        process, stable, ..
    }) = server
    else {
        return Ok(());
    };
    while ended.recv_timeout(act.every) == Err(RecvTimeoutError::Timeout) {
        let done = if act.is_upgrade {
            process.upgrade()
        } else {
            process.reload()
        };
        done.map_err(|fault| DriveFault::of_server(DIED, fault, stable))?;
        acted.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}
