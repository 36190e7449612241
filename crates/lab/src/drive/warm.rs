//! The warm-up of a run: it lasts until throughput and CPU time of a request are steady and no Java
//! virtual machine compiles much, but at least and at most so long as the experiment says.
//!
//! One that still compiles then is waited for, up to the time that the file gives to those that have just
//! started: each cell asks it for other code, of which the start of the first one knows nothing.
//!
//! A value is of 200 ms, so that a few seconds tell of a trend. Those of a virtual machine that has just
//! started are of whole seconds, since its collections and its compilers' bursts would be most of what
//! shorter ones show.
//!
//! On a shared machine the noise may be larger than what is looked for: a value of 200 ms of nginx under
//! 100 clients has a standard deviation of 10 to 18 %, neighbours a correlation of 0.5 to 0.7, and no
//! minute would show that the rate moves by less than 5 %. So a server that does not visibly move is not
//! waited for longer than a trend needs to be seen; the run notes what the noise would have hidden.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use catamaran_gauge::{Group, jvm};
use catamaran_stats::{WarmUp as Verdict, warm_up};

use super::bench::{self, Call};
use super::stage::Stage;
use super::ticking::{DRIVEN, Heard, Ticking};
use super::{DriveFault, Driver};
use crate::experiment::Load;
use crate::extra::echo;
use crate::gate::COMPILING_MAX;

/// How a warm-up has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Warmed {
    /// How long it lasted, in seconds.
    pub(super) lasted_s: f64,
    /// As [`MachineFacts::moving`].
    ///
    /// [`MachineFacts::moving`]: crate::gate::MachineFacts::moving
    pub(super) moving: Option<f64>,
    /// As [`MachineFacts::hidden`].
    ///
    /// [`MachineFacts::hidden`]: crate::gate::MachineFacts::hidden
    pub(super) hidden: Option<f64>,
    /// Answers of the first second.
    pub(super) first: Option<f64>,
}

/// Warms up; all of it is of the load generator of the run to come.
pub(super) fn warm(
    driver: &Driver,
    stage: &Stage,
    load: &Load,
    stop: &AtomicBool,
) -> Result<Warmed, DriveFault> {
    let limits = Limits::of(load, stage);
    let name = "load";
    if echo::Asked::site(&load.url).is_some() {
        let time = limits.at_least;
        bench::run(driver, stage, Call { name, load, time }, stop)?;
        return Ok(Warmed {
            lasted_s: time.as_secs_f64(),
            ..Warmed::default()
        });
    }
    let time = limits.longest();
    let mut ticking = Ticking::start(driver, stage, Call { name, load, time }, TICK)?;
    let mut watch = Watch::new(load.time, stage.is_fresh);
    let mut lasted_s = 0.0;
    loop {
        let heard = ticking.next(LOOK);
        if stop.load(Ordering::Relaxed) {
            ticking.end();
            return Err(DriveFault::Interrupted);
        }
        match heard {
            Heard::Nothing => {}
            Heard::Tick(tick) => {
                lasted_s = tick.elapsed_s;
                watch.take(&Moment {
                    elapsed_s: tick.elapsed_s,
                    completed: tick.completed,
                    cpu_s: cpu(stage),
                    compiling_s: compiling(stage),
                });
                if limits.are_met(&watch, Duration::from_secs_f64(lasted_s)) {
                    ticking.end();
                    break;
                }
            }
            Heard::Ended => {
                ticking.ended(&DRIVEN)?;
                break;
            }
        }
    }
    let (moving, hidden) = match limits.is_watched().then(|| watch.verdict()) {
        Some(Verdict::Steady) => (Some(0.0), None),
        Some(Verdict::Moving(share)) => (Some(share), None),
        Some(Verdict::Unclear(share)) => (None, Some(share.min(1.0))),
        None => (None, None),
    };
    Ok(Warmed {
        lasted_s,
        moving,
        hidden,
        first: watch.first,
    })
}

/// How long a warm-up may take.
#[derive(Clone, Copy, Debug)]
struct Limits {
    at_least: Duration,
    at_most: Duration,
    /// So long for a virtual machine that still compiles; `None` without one.
    compiling: Option<Duration>,
}

impl Limits {
    /// That of a virtual machine that has just started is at least as long as the file says of such ones.
    fn of(load: &Load, stage: &Stage) -> Self {
        let (at_least, at_most) = load.warm;
        let at_least = if stage.is_fresh {
            at_least.max(load.first_warm)
        } else {
            at_least
        };
        let has_jvm = stage.servers.iter().any(|it| it.process.jvm().is_some());
        Self {
            at_least,
            at_most: at_most.max(at_least),
            compiling: has_jvm.then_some(load.first_warm),
        }
    }

    fn longest(&self) -> Duration {
        self.at_most.max(self.compiling.unwrap_or_default())
    }

    /// Whether it is looked at how steady servers are.
    fn is_watched(&self) -> bool {
        self.at_least < self.at_most
    }

    fn are_met(&self, watch: &Watch, lasted: Duration) -> bool {
        let is_warm = self.is_watched() && lasted >= self.at_least && watch.is_warm();
        is_warm || lasted >= self.at_most && !(self.compiling.is_some() && watch.compiles())
    }
}

/// CPU time of all servers in seconds; `None` if they have no groups.
fn cpu(stage: &Stage) -> Option<f64> {
    let groups = stage.servers.iter().map(|it| it.process.group());
    let of = |group: Option<&Group>| Some(group?.cpu().ok()?.total().as_secs_f64());
    groups.map(of).sum()
}

/// The seconds that compilers of all virtual machines have taken.
fn compiling(stage: &Stage) -> f64 {
    let machines = stage.servers.iter().filter_map(|it| it.process.jvm());
    let of = |id| Some(jvm::read(id).ok()?.compiling?.as_secs_f64());
    machines.filter_map(of).sum()
}

/// What is read at a tick: sums since the beginning.
#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    elapsed_s: f64,
    completed: u64,
    cpu_s: Option<f64>,
    compiling_s: f64,
}

/// What a warm-up has shown so far.
#[derive(Debug)]
struct Watch {
    /// The shortest span of a value, in seconds.
    value_s: f64,
    /// What will be measured, in values.
    span: f64,
    before: Option<Moment>,
    throughput: Vec<f64>,
    /// CPU time of a request; empty if it is not known.
    cpu: Vec<f64>,
    /// Virtual machines' threads that compiled at a time.
    compiling: Vec<f64>,
    first: Option<f64>,
}

impl Watch {
    fn new(time: Duration, is_fresh: bool) -> Self {
        let value = if is_fresh { SECOND } else { TICK };
        Self {
            value_s: value.as_secs_f64() - EARLY,
            span: time.as_secs_f64() / value.as_secs_f64(),
            before: None,
            throughput: Vec::new(),
            cpu: Vec::new(),
            compiling: Vec::new(),
            first: None,
        }
    }

    /// Takes a tick; one that is too short for a value, or without answers, is part of the next.
    fn take(&mut self, now: &Moment) {
        if self.first.is_none() && now.elapsed_s >= 1.0 {
            self.first = Some(now.completed as f64 / now.elapsed_s);
        }
        // Connecting is part of the first tick: values begin at its end.
        let Some(before) = self.before else {
            self.before = Some(*now);
            return;
        };
        let seconds = now.elapsed_s - before.elapsed_s;
        let answers = now.completed.saturating_sub(before.completed) as f64;
        if seconds < self.value_s || answers == 0.0 {
            return;
        }
        self.throughput.push(answers / seconds);
        if let (Some(before), Some(now)) = (before.cpu_s, now.cpu_s) {
            self.cpu.push((now - before) / answers);
        }
        let compiling = (now.compiling_s - before.compiling_s) / seconds;
        self.compiling.push(compiling);
        self.before = Some(*now);
    }

    /// Whether virtual machines compile, as far as is known.
    fn compiles(&self) -> bool {
        let last = &self.compiling[self.compiling.len().saturating_sub(COMPILING_VALUES)..];
        let compiling = last.iter().sum::<f64>() / last.len().max(1) as f64;
        last.len() < COMPILING_VALUES_MIN || compiling >= COMPILING_MAX
    }

    fn is_warm(&self) -> bool {
        let is_still = match self.verdict() {
            Verdict::Steady => true,
            Verdict::Moving(_) => false,
            Verdict::Unclear(_) => self.throughput.len() >= UNCLEAR_VALUES,
        };
        is_still && !self.compiles()
    }

    fn verdict(&self) -> Verdict {
        let of = |series: &[f64]| {
            let recent = series.len().saturating_sub(VALUES_MAX);
            warm_up(&series[recent..], self.span)
        };
        let throughput = of(&self.throughput);
        if self.cpu.is_empty() {
            throughput
        } else {
            throughput.and(of(&self.cpu))
        }
    }
}

const SECOND: Duration = Duration::from_secs(1);
/// How often the load generator tells how far it is.
const TICK: Duration = Duration::from_millis(200);
/// How often the end is looked for.
const LOOK: Duration = Duration::from_millis(100);
/// A tick may come so many seconds early.
const EARLY: f64 = 0.05;
/// No trend of the last twenty seconds is told by what was before them.
const VALUES_MAX: usize = 100;
/// So many values show a movement that is larger than the noise.
const UNCLEAR_VALUES: usize = 20;
/// Over so many of the last values compiling is averaged.
const COMPILING_VALUES: usize = 10;
/// Fewer values say nothing of it.
const COMPILING_VALUES_MIN: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    /// A warm-up whose rate, CPU time of a request and compiling threads are these at a second.
    fn watched(seconds: f64, [rate, cpu, compiling]: [fn(f64) -> f64; 3], is_fresh: bool) -> Watch {
        let mut watch = Watch::new(Duration::from_secs(5), is_fresh);
        let mut now = Moment {
            cpu_s: Some(0.0),
            ..Moment::default()
        };
        while now.elapsed_s < seconds {
            now.elapsed_s += 0.2;
            let answers = rate(now.elapsed_s) * 0.2;
            now.completed += answers as u64;
            now.cpu_s = now.cpu_s.map(|sum| sum + answers * cpu(now.elapsed_s));
            now.compiling_s += compiling(now.elapsed_s) * 0.2;
            watch.take(&now);
        }
        watch
    }

    const STEADY: fn(f64) -> f64 = |_| 10_000.0;
    const CPU: fn(f64) -> f64 = |_| 20e-6;
    const QUIET: fn(f64) -> f64 = |_| 0.0;

    #[test]
    fn a_steady_server_is_warm_in_a_few_seconds() {
        let warm = watched(5.0, [STEADY, CPU, QUIET], false);
        assert!(warm.is_warm(), "{warm:?}");
        assert_eq!(
            (warm.verdict(), warm.first),
            (Verdict::Steady, Some(10_000.0))
        );
    }

    #[test]
    fn few_values_tell_nothing() {
        let early = watched(2.0, [STEADY, CPU, QUIET], false);
        assert!(!early.is_warm());
        assert_eq!(early.verdict(), Verdict::Unclear(f64::INFINITY));
        // Twenty-four values of a fifth of a second are five of a second.
        assert!(!watched(5.0, [STEADY, CPU, QUIET], true).is_warm());
        assert!(watched(25.0, [STEADY, CPU, QUIET], true).is_warm());
    }

    #[test]
    fn it_is_not_warm_while_anything_moves() {
        let rising = watched(8.0, [|at| 10_000.0 + 300.0 * at, CPU, QUIET], false);
        assert!(!rising.is_warm());
        assert!(matches!(rising.verdict(), Verdict::Moving(share) if share > 0.05));
        let cheaper = watched(8.0, [STEADY, |at| 20e-6 - 5e-7 * at, QUIET], false);
        assert!(!cheaper.is_warm());
        assert!(matches!(cheaper.verdict(), Verdict::Moving(share) if share < -0.05));
        let compiles = watched(8.0, [STEADY, CPU, |_| 0.3], false);
        assert!(!compiles.is_warm());
        let compiled = watched(
            8.0,
            [STEADY, CPU, |at| if at < 5.0 { 2.0 } else { 0.0 }],
            false,
        );
        assert!(compiled.is_warm());
    }

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

    #[test]
    fn noise_that_hides_a_movement_is_not_waited_for() {
        let noisy: fn(f64) -> f64 = |at| 10_000.0 + 2_000.0 * (at * 5.0 * 2.4).sin();
        let early = watched(3.6, [noisy, CPU, QUIET], false);
        assert!(matches!(early.verdict(), Verdict::Unclear(share) if share > 0.05));
        assert!(!early.is_warm());
        assert!(watched(4.6, [noisy, CPU, QUIET], false).is_warm());
    }

    #[test]
    fn a_server_without_answers_or_groups_is_judged_by_the_rest() {
        let dead = watched(8.0, [|_| 0.0, CPU, QUIET], false);
        assert_eq!((dead.is_warm(), dead.first), (false, Some(0.0)));
        let mut without = Watch::new(Duration::from_secs(5), false);
        for tick in 1..40_u32 {
            without.take(&Moment {
                elapsed_s: f64::from(tick) * 0.2,
                completed: u64::from(tick) * 100,
                ..Moment::default()
            });
        }
        assert!(without.is_warm());
    }
}
