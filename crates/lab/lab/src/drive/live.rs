//! A tier under its load for as long as somebody looks at it: nothing is measured for claims.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use catamaran_load::document::Tick;

use super::bench::{self, LoadCall, SEED};
use super::child::DRIVEN;
use super::crowd::Crowd;
use super::span::go_on;
use super::stage::Stage;
use super::{DriveFault, Driver};
use crate::experiment::{Experiment, Levels, Load};
use crate::extra::echo;

/// What the loads do now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Traffic {
    /// Requests a second of all loads; `None` before the first second.
    pub(crate) rate: Option<f64>,
    /// Latency of the main load in the last second.
    pub(crate) p50_ms: Option<f64>,
    /// See [`Traffic::p50_ms`].
    pub(crate) p99_ms: Option<f64>,
    /// Answers of all loads so far.
    pub(crate) completed: u64,
    /// Requests of all loads that have failed so far.
    pub(crate) failed: u64,
}

/// What a cell's loads have told.
#[derive(Debug, Default)]
pub(crate) struct Board(Mutex<BTreeMap<String, LoadTicks>>);

#[derive(Clone, Copy, Debug, Default)]
struct LoadTicks {
    last: Tick,
    rate: Option<f64>,
    /// Of load generators that have ended.
    completed: u64,
    failed: u64,
}

impl Board {
    /// What all of them do now.
    pub(crate) fn traffic(&self) -> Traffic {
        let told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut traffic = Traffic::default();
        for (name, it) in told.iter() {
            if let Some(rate) = it.rate {
                traffic.rate = Some(traffic.rate.unwrap_or(0.0) + rate);
            }
            traffic.completed += it.completed + it.last.completed;
            traffic.failed += it.failed + it.last.failed;
            if name == MAIN {
                traffic.p50_ms = it.last.p50_ms;
                traffic.p99_ms = it.last.p99_ms;
            }
        }
        traffic
    }

    /// A load generator's next line.
    fn tick(&self, name: &str, tick: Tick) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let it = told.entry(name.to_owned()).or_default();
        // Another generator has begun.
        if tick.elapsed_s < it.last.elapsed_s {
            it.completed += it.last.completed;
            it.failed += it.last.failed;
            it.last = Tick::default();
        }
        let seconds = tick.elapsed_s - it.last.elapsed_s;
        if seconds > 0.0 {
            let answers = tick.completed.saturating_sub(it.last.completed);
            it.rate = Some(answers as f64 / seconds);
        }
        it.last = tick;
    }
}

/// Drives a cell's loads, with what is beside them and what is done meanwhile, while `look` looks on: until
/// it returns. It is told why a load has failed.
pub(crate) fn live<T>(
    driver: &Driver,
    stage: &Stage,
    (experiment, levels): (&Experiment, &Levels),
    board: &Board,
    look: impl FnOnce(&Receiver<DriveFault>) -> T,
) -> Result<T, DriveFault> {
    let load = experiment.load(levels, &stage.addresses)?;
    let beside = experiment.beside(levels, &stage.addresses)?;
    let acts = experiment.acts(levels, &stage.addresses)?;
    let over = &AtomicBool::new(false);
    let (fault, faults) = sync_channel(beside.len() + acts.len() + 1);
    thread::scope(|scope| {
        // Whatever ends the looking ends the loads.
        let ending = EndOnDrop(over);
        let crowd = load.crowd.as_ref();
        let start = |wanted| Crowd::start(&driver.catamaran, &stage.space, &load, wanted);
        let crowd = crowd.map(start).transpose()?;
        let names = (2..).map(|number| format!("{MAIN}{number}"));
        let names = std::iter::once(MAIN.to_owned()).chain(names);
        for (load, name) in std::iter::once(&load).chain(&beside).zip(names) {
            let told = Teller {
                board,
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
                    // Nobody hears it who looks no more.
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

/// Says that it is over when it is dropped, whatever the reason.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A load generator that is started again whenever it ends.
struct Teller<'a> {
    board: &'a Board,
    over: &'a AtomicBool,
    fault: SyncSender<DriveFault>,
}

impl Teller<'_> {
    fn drive(&self, driver: &Driver, stage: &Stage, load: &Load, name: &str) {
        while !self.over.load(Ordering::Relaxed) {
            let done = if echo::EchoRequest::site(&load.url).is_some() {
                self.echo(driver, stage, load, name)
            } else {
                self.bench(driver, stage, load, name)
            };
            if let Err(fault) = done {
                // Nobody hears it who looks no more.
                let _ = self.fault.try_send(fault);
                return;
            }
        }
    }

    /// One load generator; its ticks are told as they come.
    fn bench(
        &self,
        driver: &Driver,
        stage: &Stage,
        load: &Load,
        name: &str,
    ) -> Result<(), DriveFault> {
        let time = LONGEST;
        let call = LoadCall {
            name,
            load,
            time,
            seed: SEED,
        };
        // One that fails before it tells anything would be started again without end.
        let mut fine: &[i32] = &[];
        let ended = bench::ticking(driver, stage, call, (TICK, self.over), |tick| {
            fine = &DRIVEN;
            self.board.tick(name, tick);
            ControlFlow::Continue(())
        });
        match ended {
            Ok(ended) => ended.unless(fine),
            Err(DriveFault::Interrupted) => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// The load on an echo tells nothing on its way: it is a short one, again and again.
    fn echo(
        &self,
        driver: &Driver,
        stage: &Stage,
        load: &Load,
        name: &str,
    ) -> Result<(), DriveFault> {
        let time = Duration::from_secs(1);
        let call = LoadCall {
            name,
            load,
            time,
            seed: SEED,
        };
        let document = match bench::run(driver, stage, call, (self.over, None)) {
            Ok(report) => report.document,
            Err(DriveFault::Interrupted) => return Ok(()),
            Err(fault) => return Err(fault),
        };
        let millis = |micros: u64| Some(micros as f64 / 1000.0);
        let tick = Tick {
            elapsed_s: document.elapsed.as_secs_f64(),
            completed: document.requests.completed,
            failed: document.requests.failed,
            p50_ms: millis(document.latency.total.p50_us),
            p99_ms: millis(document.latency.total.p99_us),
            ..Tick::default()
        };
        self.board.tick(name, Tick::default());
        self.board.tick(name, tick);
        Ok(())
    }
}

/// The name of the load that latency is of.
const MAIN: &str = "load";
/// A load generator is started again after so long.
const LONGEST: Duration = Duration::from_secs(600);
/// How often a load generator tells how far it is.
const TICK: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn tick(elapsed_s: f64, completed: u64, failed: u64) -> Tick {
        Tick {
            elapsed_s,
            completed,
            failed,
            p50_ms: Some(elapsed_s),
            ..Tick::default()
        }
    }

    #[test]
    fn rates_are_of_the_last_tick_and_sums_outlive_a_generator() {
        let board = Board::default();
        assert_eq!(board.traffic(), Traffic::default());
        board.tick("load", tick(1.0, 100, 0));
        board.tick("load", tick(3.0, 300, 2));
        board.tick("load2", tick(1.0, 50, 0));
        let expected = Traffic {
            rate: Some(150.0),
            p50_ms: Some(3.0),
            p99_ms: None,
            completed: 350,
            failed: 2,
        };
        assert_eq!(board.traffic(), expected);
        // It has begun anew.
        board.tick("load", tick(1.0, 40, 1));
        let traffic = board.traffic();
        assert_eq!(
            (traffic.rate, traffic.completed, traffic.failed),
            (Some(90.0), 390, 3)
        );
    }
}
