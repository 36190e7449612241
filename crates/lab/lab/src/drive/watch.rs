//! Judges whether a run is warm: whether the rate and the CPU time per request are steady, by the load generator's
//! ticks and the servers' CPU time.
//!
//! Each value covers 200 ms, so that a few seconds show a trend. If a virtual machine has just started, a value covers
//! a whole second, since collections and bursts of the compilers would dominate shorter ones.
//!
//! On a shared machine, noise may exceed the trend. Values of 200 ms of nginx under 100 clients have a standard
//! deviation of 10 to 18 % and a correlation of 0.5 to 0.7 between neighbours; even a minute would not show that the
//! rate moves by less than 5 %. So a server without a visible trend is watched only for the time in which a large trend
//! would show. The run records the movement that noise may have hidden.

use std::collections::BTreeSet;
use std::time::Duration;

use catamaran_gauge::system;
use catamaran_load::document::Tick;
use catamaran_stats::{Spread, WarmUp as Verdict, change, warm_up};

use super::stage::{RunningServer, Stage};
use crate::facts::{CPU_OF_REQUEST, LevelChange, RATE};
use crate::gate::COMPILING_MAX;

/// Sums since the beginning of the load, at one tick.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LoadMoment {
    elapsed_s: f64,
    completed: u64,
    cpu_s: Option<f64>,
    compiling_s: f64,
    /// The time of the servers' cores that others took, as the mean of these cores; `None`: not known.
    others_s: Option<f64>,
}

/// The CPU time of each server in seconds; `None` for a server without a group.
pub(super) type Cpus = Vec<Option<f64>>;

impl LoadMoment {
    /// The sums at a tick of the load generator; `cpus` is the servers' CPU time at that moment.
    pub(super) fn of(tick: &Tick, cpus: &Cpus) -> Self {
        Self {
            elapsed_s: tick.elapsed_s,
            completed: tick.completed,
            cpu_s: cpus.iter().copied().sum(),
            compiling_s: 0.0,
            others_s: None,
        }
    }

    /// Adds what others took of the servers' cores. `load_core` is the core of the load.
    pub(super) fn with_others(self, stage: &Stage, load_core: Option<usize>) -> Self {
        let others_s = others(stage, load_core, self.cpu_s);
        Self { others_s, ..self }
    }

    /// Adds the CPU time of the virtual machines' compilers to the sums.
    pub(super) fn with_compiling(self, stage: &Stage) -> Self {
        let compiling_s = compiling(stage);
        Self {
            compiling_s,
            ..self
        }
    }
}

/// The CPU time that each server has used so far.
pub(super) fn cpus(stage: &Stage) -> Cpus {
    let cpu_s =
        |server: &RunningServer| Some(server.process.group()?.cpu().ok()?.total().as_secs_f64());
    stage.servers.iter().map(cpu_s).collect()
}

/// The time in seconds that others than the servers have used of the servers' cores, and a hypervisor has withheld, as
/// the mean of these cores; `None` if a server is not pinned, or runs on the load's core.
fn others(stage: &Stage, load_core: Option<usize>, cpu_s: Option<f64>) -> Option<f64> {
    let pinned: Option<BTreeSet<usize>> = stage.servers.iter().map(|it| it.core).collect();
    let cores = pinned.filter(|cores| !cores.is_empty())?;
    if load_core.is_none_or(|core| cores.contains(&core)) {
        return None;
    }
    let all = system::cores().ok()?;
    let mut taken_s = 0.0;
    for core in &cores {
        let core = all.get(*core)?;
        taken_s += (core.busy() + core.steal).as_secs_f64();
    }
    Some((taken_s - cpu_s?) / cores.len() as f64)
}

/// The CPU time in seconds that the compilers of all virtual machines have used.
fn compiling(stage: &Stage) -> f64 {
    let seconds = |server: &RunningServer| {
        let jvm = server.process.jvm()?.read().ok()?;
        Some(jvm.compiling?.as_secs_f64())
    };
    stage.servers.iter().filter_map(seconds).sum()
}

/// The series of values of a load so far, by which its warm-up is judged.
#[derive(Debug)]
pub(super) struct LoadWatch {
    /// The least time that a value covers, in seconds.
    value_s: f64,
    /// The length of the coming span, as a number of values.
    span: f64,
    before: Option<LoadMoment>,
    /// The time at which each value begins, in seconds.
    begins: Vec<f64>,
    throughput: Vec<f64>,
    /// The CPU time per request, in each value; empty if it is not known.
    cpu: Vec<f64>,
    /// The mean number of virtual machines' threads that compiled, in each value.
    compiling: Vec<f64>,
    /// The share of the servers' cores that others took, in each value; empty if it is not known.
    others: Vec<f64>,
    /// The responses per second in the first second of the load; `None` before its end.
    pub(super) first: Option<f64>,
}

impl LoadWatch {
    /// A watch before a span of length `time`; `is_fresh`: a virtual machine has just started.
    pub(super) fn new(time: Duration, is_fresh: bool) -> Self {
        let value = if is_fresh { SECOND } else { TICK };
        Self {
            value_s: value.as_secs_f64() - EARLY,
            span: time.as_secs_f64() / value.as_secs_f64(),
            before: None,
            begins: Vec::new(),
            throughput: Vec::new(),
            cpu: Vec::new(),
            compiling: Vec::new(),
            others: Vec::new(),
            first: None,
        }
    }

    /// Adds a tick. A tick that is too short for a value or has no responses is joined to the next.
    pub(super) fn take(&mut self, now: &LoadMoment) {
        if self.first.is_none() && now.elapsed_s >= 1.0 {
            self.first = Some(now.completed as f64 / now.elapsed_s);
        }
        // The first tick contains the connecting: values begin at its end.
        let Some(before) = self.before else {
            self.before = Some(*now);
            return;
        };
        let seconds = now.elapsed_s - before.elapsed_s;
        let answers = now.completed.saturating_sub(before.completed) as f64;
        if seconds < self.value_s || answers == 0.0 {
            return;
        }
        self.begins.push(before.elapsed_s);
        self.throughput.push(answers / seconds);
        if let (Some(before), Some(now)) = (before.cpu_s, now.cpu_s) {
            self.cpu.push((now - before) / answers);
        }
        if let (Some(before), Some(now)) = (before.others_s, now.others_s) {
            self.others.push((now - before) / seconds);
        }
        let compiling = (now.compiling_s - before.compiling_s) / seconds;
        self.compiling.push(compiling);
        self.before = Some(*now);
    }

    /// Whether virtual machines still compile; also `true` while there are too few values.
    pub(super) fn compiles(&self) -> bool {
        let last = &self.compiling[self.compiling.len().saturating_sub(COMPILING_VALUES)..];
        if last.len() < COMPILING_VALUES_MIN {
            return true;
        }
        let mean = last.iter().sum::<f64>() / last.len() as f64;
        mean >= COMPILING_MAX
    }

    /// Whether the series are steady, as far as noise allows to see it, and nothing compiles.
    pub(super) fn is_warm(&self) -> bool {
        let is_still = match self.verdict() {
            Verdict::Steady => true,
            Verdict::Moving(_) => false,
            Verdict::Unclear(_) => self.throughput.len() >= UNCLEAR_VALUES,
        };
        is_still && !self.compiles()
    }

    /// Whether the rate and the CPU time per request are steady.
    pub(super) fn verdict(&self) -> Verdict {
        let verdict_on = |series: &[f64]| {
            let first = series.len().saturating_sub(VALUES_MAX);
            warm_up(&series[first..], self.span)
        };
        let on_throughput = verdict_on(&self.throughput);
        if self.cpu.is_empty() {
            on_throughput
        } else {
            on_throughput.and(verdict_on(&self.cpu))
        }
    }

    /// The point at which the CPU time per request, or else the rate, has changed its level; `None`
    /// if neither has. The rate of an open loop is not checked, since the schedule decides it.
    pub(super) fn changed(&self, is_open: bool) -> Option<LevelChange> {
        let change_of = |series: &[f64], what: &str| {
            let change = change(series)?;
            Some(LevelChange {
                what: what.to_owned(),
                after_s: *self.begins.get(change.after)?,
                shift: change.shift,
                others: self.others_around(change.after),
            })
        };
        let cpu_change = change_of(&self.cpu, CPU_OF_REQUEST);
        if cpu_change.is_some() || is_open {
            return cpu_change;
        }
        change_of(&self.throughput, RATE)
    }

    /// The mean share of the servers' cores that others took in the values before the one with the index `after`, and
    /// from it on; `None` if it is not known of each value.
    fn others_around(&self, after: usize) -> Option<[f64; 2]> {
        if self.others.len() != self.throughput.len() {
            return None;
        }
        let (before, then) = self.others.split_at_checked(after)?;
        // What was taken is known in steps of 10 ms, so a value may be below 0.
        let mean = |part: &[f64]| Some(Spread::of(part)?.mean.clamp(0.0, 1.0));
        Some([mean(before)?, mean(then)?])
    }
}

/// The interval between two ticks of the load generator.
pub(super) const TICK: Duration = Duration::from_millis(200);
const SECOND: Duration = Duration::from_secs(1);
/// The time by which a tick may be early, in seconds.
const EARLY: f64 = 0.05;
/// The most values that are judged: a trend is one of the last twenty seconds.
const VALUES_MAX: usize = 100;
/// The number of values that would show any movement larger than the noise.
const UNCLEAR_VALUES: usize = 20;
/// The number of last values over which compiling is averaged.
const COMPILING_VALUES: usize = 10;
/// The least number of values; with fewer, a virtual machine counts as compiling.
const COMPILING_VALUES_MIN: usize = 3;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A watch after `seconds`, with the rate, the CPU time per request and the compiling threads as functions of time.
    pub(crate) fn watched(
        seconds: f64,
        [rate, cpu, compiling]: [fn(f64) -> f64; 3],
        is_fresh: bool,
    ) -> LoadWatch {
        let mut watch = LoadWatch::new(Duration::from_secs(5), is_fresh);
        let mut now = LoadMoment {
            cpu_s: Some(0.0),
            ..LoadMoment::default()
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

    pub(crate) const STEADY: fn(f64) -> f64 = |_| 10_000.0;
    pub(crate) const CPU: fn(f64) -> f64 = |_| 20e-6;
    pub(crate) const QUIET: fn(f64) -> f64 = |_| 0.0;

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
        let mut without = LoadWatch::new(Duration::from_secs(5), false);
        for tick in 1..40_u32 {
            without.take(&LoadMoment {
                elapsed_s: f64::from(tick) * 0.2,
                completed: u64::from(tick) * 100,
                ..LoadMoment::default()
            });
        }
        assert!(without.is_warm());
    }

    /// Another program takes half of the servers' core from the second second on.
    #[test]
    fn a_change_is_told_with_what_others_took() {
        let mut watch = LoadWatch::new(Duration::from_secs(5), false);
        let mut now = LoadMoment {
            others_s: Some(0.0),
            ..LoadMoment::default()
        };
        for tick in 1..=25_u32 {
            let is_shared = tick > 10;
            now.elapsed_s = f64::from(tick) * 0.2;
            now.completed += if is_shared { 1000 } else { 2000 };
            now.others_s = now
                .others_s
                .map(|sum| sum + if is_shared { 0.1 } else { 0.002 });
            watch.take(&now);
        }
        let changed = watch.changed(false).unwrap();
        let [before, after] = changed.others.unwrap();
        assert!(
            (before - 0.01).abs() < 1e-9 && (after - 0.5).abs() < 1e-9,
            "{changed:?}"
        );
        assert!(changed.is_of_others());
        let of = |what: &str, shift: f64, others| LevelChange {
            what: what.to_owned(),
            shift,
            others,
            ..LevelChange::default()
        };
        for (change, expected) in [
            (of(RATE, -0.4, Some([0.01, 0.5])), true),
            (of(RATE, 0.4, Some([0.5, 0.01])), true),
            (of(CPU_OF_REQUEST, 0.1, Some([0.01, 0.5])), true),
            (of(CPU_OF_REQUEST, -0.1, Some([0.5, 0.01])), true),
            // The other way round, or hardly anything.
            (of(RATE, 0.4, Some([0.01, 0.5])), false),
            (of(CPU_OF_REQUEST, -0.3, Some([0.01, 0.5])), false),
            (of(RATE, -0.4, Some([0.30, 0.33])), false),
            (of(RATE, -0.4, None), false),
        ] {
            assert_eq!(change.is_of_others(), expected, "{change:?}");
        }
    }

    #[test]
    fn a_change_within_a_run_is_told_with_its_moment() {
        let half: fn(f64) -> f64 = |at| if at < 2.05 { 10_000.0 } else { 5_000.0 };
        let dearer: fn(f64) -> f64 = |at| if at < 2.05 { 20e-6 } else { 25e-6 };
        assert_eq!(
            watched(4.0, [STEADY, CPU, QUIET], false).changed(false),
            None
        );
        let slower = watched(4.0, [half, CPU, QUIET], false);
        let changed = slower.changed(false).unwrap();
        assert_eq!(changed.what, "rate");
        assert!((changed.after_s - 2.0).abs() < 0.01, "{changed:?}");
        assert!((changed.shift + 0.5).abs() < 0.01, "{changed:?}");
        // A second without answers is one value.
        let silent: fn(f64) -> f64 = |at| match at {
            at if (1.05..2.05).contains(&at) => 0.0,
            at if at < 3.05 => 10_000.0,
            _ => 5_000.0,
        };
        let changed = watched(6.0, [silent, CPU, QUIET], false).changed(false);
        assert!((changed.unwrap().after_s - 3.0).abs() < 0.01);
        // By a schedule there are as many requests as it says.
        assert_eq!(slower.changed(true), None);
        let changed = watched(4.0, [half, dearer, QUIET], false)
            .changed(true)
            .unwrap();
        assert_eq!(changed.what, "CPU time of a request");
        assert!((changed.shift - 0.25).abs() < 0.01, "{changed:?}");
        // Of so few values nothing is concluded.
        assert_eq!(
            watched(2.1, [half, dearer, QUIET], false).changed(false),
            None
        );
    }
}
