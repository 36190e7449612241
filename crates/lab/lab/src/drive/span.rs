//! Drives one span of load, together with further loads and actions on servers, and counts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;

use catamaran_load::document::Tick;

use super::bench::{self, LoadCall, LoadReport, SEED};
use super::counters::{CounterReading, Counters};
use super::stage::Stage;
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
    /// The point at which CPU time per request, or else the rate, changed its level; `None`: neither did.
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
        // Even a virtual machine that is new in this run has had its warm-up.
        let is_fresh = false;
        let mut watch = LoadWatch::new(load.time, is_fresh);
        let mut thirds = Thirds::default();
        let before = counters.read()?;
        let (report, beside, samples) = thread::scope(|scope| {
            // Sampling and actions end when their senders are dropped.
            let (end_of_sampling, ended) = sync_channel::<()>(0);
            let sampler = scope.spawn(move || sample::watch(stage, &ended));
            let mut ends_of_acts = Vec::new();
            let mut actors = Vec::new();
            for act in &acts {
                let (end, ended) = sync_channel::<()>(0);
                let acted = &acted;
                ends_of_acts.push(end);
                actors.push(scope.spawn(move || go_on(stage, act, acted, &ended)));
            }
            let mut other_loads = Vec::new();
            for (index, load) in others.iter().enumerate() {
                other_loads.push(scope.spawn(move || {
                    let call = LoadCall {
                        name: &format!("load{}", index + 2),
                        load,
                        time: load.time,
                        seed: SEED,
                    };
                    bench::run(self.driver, stage, call, self.stop, None)
                }));
            }
            let mut on_tick = |tick: Tick| {
                let cpus = cpus(stage);
                watch.take(&LoadMoment::of(&tick, &cpus).with_others(stage, load.core));
                thirds.take(&tick, &cpus);
            };
            let report = self.bench(stage, load, load.time, Some(&mut on_tick));
            drop(end_of_sampling);
            drop(ends_of_acts);
            // All threads are joined before any fault is returned. A fault of an action explains others.
            let beside: Result<Vec<_>, _> = other_loads.into_iter().map(join).collect();
            let acts_done: Result<Vec<_>, _> = actors.into_iter().map(join).collect();
            acts_done?;
            let samples = sampler.join().unwrap_or_default();
            Ok::<_, DriveFault>((report?, beside?, samples))
        })?;
        let spent = counters.read()?.since(&before);
        let traces = counters.traces(&spent)?;
        let mut span = MeasuredSpan {
            thirds: ThirdValues::new(),
            traces,
            report,
            beside,
            spent,
            samples,
            acted: acted.into_inner(),
            changed: None,
        };
        // Actions on servers are not spread evenly over the span, so its thirds and its level differ anyway.
        if acts.is_empty() {
            span.thirds = thirds.values(stage, &span.report.document);
            span.changed = watch.changed(load.rate.is_some());
        }
        Ok(span)
    }
}

/// Waits for a thread and returns its result; passes on its panic.
fn join<T>(thread: thread::ScopedJoinHandle<'_, Result<T, DriveFault>>) -> Result<T, DriveFault> {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Repeats an action on a server at its interval, until the sender of `ended` is dropped. Adds each action to `acted`.
pub(super) fn go_on(
    stage: &Stage,
    act: &Act,
    acted: &AtomicU64,
    ended: &Receiver<()>,
) -> Result<(), DriveFault> {
    let mut servers = stage.servers.iter();
    let Some(server) = servers.find(|server| server.record.name == act.server) else {
        // The cell does without the server.
        return Ok(());
    };
    while ended.recv_timeout(act.every) == Err(RecvTimeoutError::Timeout) {
        let result = if act.is_upgrade {
            server.process.upgrade()
        } else {
            server.process.reload()
        };
        result.map_err(|fault| DriveFault::of_server(DIED, fault, &server.stable))?;
        acted.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}
