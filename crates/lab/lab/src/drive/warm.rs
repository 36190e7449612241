//! The warm-up of a run. It lasts until throughput and CPU time per request are steady and no Java
//! virtual machine compiles much, within the shortest and longest time that the experiment gives.
//!
//! If a virtual machine still compiles then, it gets more time, up to what the file gives to those
//! just started: each cell makes it run other code, which the start of the first cell has not
//! compiled.

use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use catamaran_stats::WarmUp as Verdict;

use super::bench::{self, LoadCall, WARM_UP_SEED};
use super::child::DRIVEN;
use super::stage::Stage;
use super::watch::{LoadMoment, LoadWatch, TICK, cpus};
use super::{DriveFault, Driver};
use crate::experiment::Load;
use crate::extra::echo;

/// The results of a warm-up: its length, and how steady the servers were at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct WarmUpFigures {
    /// The length in seconds; `None` if there was no warm-up.
    pub(super) lasted_s: Option<f64>,
    /// The movement that is left after the warm-up: see [`MachineFacts::moving`].
    ///
    /// [`MachineFacts::moving`]: crate::facts::MachineFacts::moving
    pub(super) moving: Option<f64>,
    /// The movement that noise would have hidden: see [`MachineFacts::hidden`].
    ///
    /// [`MachineFacts::hidden`]: crate::facts::MachineFacts::hidden
    pub(super) hidden: Option<f64>,
    /// The responses per second in the first second of the load; `None`: not measured.
    pub(super) first: Option<f64>,
}

/// Drives a warm-up with the load of the coming run.
pub(super) fn warm(
    driver: &Driver,
    stage: &Stage,
    load: &Load,
    stop: &AtomicBool,
) -> Result<WarmUpFigures, DriveFault> {
    let limits = Limits::of(load, stage);
    let call = |time| LoadCall {
        name: "load",
        load,
        time,
        seed: WARM_UP_SEED,
    };
    // The load generator of an echo has no ticks to watch.
    if echo::EchoRequest::site(&load.url).is_some() {
        let time = limits.at_least;
        bench::run(driver, stage, call(time), stop, None)?;
        return Ok(WarmUpFigures {
            lasted_s: Some(time.as_secs_f64()),
            ..WarmUpFigures::default()
        });
    }
    let time = limits.longest();
    let mut watch = LoadWatch::new(load.time, stage.is_fresh);
    let mut lasted_s = 0.0;
    let ended = bench::ticking(driver, stage, call(time), TICK, stop, |tick| {
        lasted_s = tick.elapsed_s;
        watch.take(&LoadMoment::of(&tick, &cpus(stage)).with_compiling(stage));
        if limits.are_met(&watch, Duration::from_secs_f64(lasted_s)) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    ended.check_code(&DRIVEN)?;
    let mut figures = WarmUpFigures {
        lasted_s: Some(lasted_s),
        moving: None,
        hidden: None,
        first: watch.first,
    };
    if limits.is_watched() {
        match watch.verdict() {
            Verdict::Steady => figures.moving = Some(0.0),
            Verdict::Moving(share) => figures.moving = Some(share),
            Verdict::Unclear(share) => figures.hidden = Some(share.min(1.0)),
        }
    }
    Ok(figures)
}

/// The shortest and longest time of a warm-up.
#[derive(Clone, Copy, Debug)]
struct Limits {
    at_least: Duration,
    at_most: Duration,
    /// The time that a virtual machine has for compiling; `None` without one.
    compiling: Option<Duration>,
}

impl Limits {
    /// The limits for the servers of `stage`; the shortest time is at least `first_warm` if a Java
    /// virtual machine has just been started.
    fn of(load: &Load, stage: &Stage) -> Self {
        let (mut at_least, at_most) = load.warm;
        if stage.is_fresh {
            at_least = at_least.max(load.first_warm);
        }
        let has_jvm = stage.servers.iter().any(|it| it.process.jvm().is_some());
        Self {
            at_least,
            at_most: at_most.max(at_least),
            compiling: has_jvm.then_some(load.first_warm),
        }
    }

    /// The time after which the load generator ends by itself.
    fn longest(&self) -> Duration {
        self.at_most.max(self.compiling.unwrap_or_default())
    }

    /// Whether the warm-up depends on how steady the servers are, so that its length varies.
    fn is_watched(&self) -> bool {
        self.at_least < self.at_most
    }

    /// Whether a warm-up that has lasted so long is over: the servers are warm, or its longest time is over and no
    /// virtual machine compiles.
    fn are_met(&self, watch: &LoadWatch, lasted: Duration) -> bool {
        if self.is_watched() && lasted >= self.at_least && watch.is_warm() {
            return true;
        }
        let is_compiling = self.compiling.is_some() && watch.compiles();
        lasted >= self.at_most && !is_compiling
    }
}

#[cfg(test)]
mod tests {
    use super::super::watch::tests::{CPU, QUIET, STEADY, watched};
    use super::*;

    #[test]
    fn a_machine_that_compiles_is_waited_for() {
        let second = Duration::from_secs(1);
        let limits = |compiling| Limits {
            at_least: second,
            at_most: second,
            compiling,
        };
        let busy = watched(2.0, [STEADY, CPU, |_| 0.3], false);
        assert!(!limits(Some(20 * second)).are_met(&busy, 2 * second));
        assert_eq!(limits(Some(20 * second)).longest(), 20 * second);
        assert!(limits(None).are_met(&busy, 2 * second));
        assert_eq!(limits(None).longest(), second);
        let quiet = watched(2.0, [STEADY, CPU, QUIET], false);
        assert!(limits(Some(20 * second)).are_met(&quiet, 2 * second));
        assert!(!limits(Some(20 * second)).are_met(&quiet, second / 2));
    }
}
