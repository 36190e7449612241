//! Searches for the highest rate that a server sustains: its knee.
//!
//! Each step of the search is a run at one rate, judged by a [`gate`](crate::gate). The rate
//! doubles until a step fails (or halves until one passes); then the interval between the highest
//! rate that passed and the lowest that did not is halved by ratio. An undecided step is repeated
//! once for twice as long. A step at which the generator was late tells nothing about the server:
//! it is repeated up to three times, unless its gate waives lateness.

use crate::document;
use crate::document::knee::{LATE, Step};
use crate::gate::{Gate, Verdict, Waiver};
use crate::report::Report;

/// The state of a search. Rates are in requests per second.
#[derive(Clone, Debug)]
pub struct Search {
    next: Option<f64>,
    /// The highest rate that passed.
    passed: Option<f64>,
    /// The lowest rate that failed.
    failed: Option<f64>,
    /// The lowest rate that did not pass: it failed or was undecided.
    unproven: Option<f64>,
    /// The highest rate that was undecided, or that passed above one that did not.
    undecided: Option<f64>,
    /// Whether the last step was undecided and is repeated.
    is_repeat: bool,
    /// The number of times that the generator was late at the current rate.
    late: u32,
    max: f64,
    halvings: u32,
    /// The number of steps above `unproven`, where the search looks for a rate that surely fails.
    upper_steps: u32,
}

impl Search {
    /// A search that begins at the rate `first`, and tries no rate above `max`.
    pub fn new(first: f64, max: f64) -> Self {
        Self {
            next: Some(first.min(max)),
            passed: None,
            failed: None,
            unproven: None,
            undecided: None,
            is_repeat: false,
            late: 0,
            max,
            halvings: 0,
            upper_steps: 0,
        }
    }

    /// The rate to try next, and whether that is a longer repetition of the last step; `None`: the search is over.
    pub fn next(&self) -> Option<(f64, bool)> {
        self.next.map(|rate| (rate, self.is_repeat))
    }

    /// The highest rate that was sustained; `None`: no rate was.
    pub fn sustained(&self) -> Option<f64> {
        self.passed
    }

    /// The lowest rate that was not sustained; `None`: no rate has failed.
    pub fn broken(&self) -> Option<f64> {
        self.failed
    }

    /// Notes that the generator was late at the last step. The step is repeated; after `LATE_MAX`
    /// times its rate counts as undecided.
    pub fn note_late(&mut self) {
        self.late += 1;
        if self.late > LATE_MAX {
            // An undecided step is repeated only once: this one counts as the repetition.
            self.is_repeat = true;
            self.note(Verdict::Undecided);
        }
    }

    /// Notes the verdict of the step at the rate of [`Self::next()`], and chooses the next rate. A step that is
    /// undecided for the first time is repeated instead.
    pub fn note(&mut self, verdict: Verdict) {
        let Some(rate) = self.next else { return };
        if verdict == Verdict::Undecided && !self.is_repeat {
            self.is_repeat = true;
            return;
        }
        self.is_repeat = false;
        self.late = 0;
        let is_upper = self.unproven.is_some_and(|unproven| rate > unproven);
        match verdict {
            Verdict::Passed if !is_upper => self.passed = Some(rate),
            Verdict::Failed => self.failed = Some(lower(self.failed, rate)),
            // A rate that passes above one that did not pass proves nothing.
            Verdict::Passed | Verdict::Undecided => {
                self.undecided = Some(self.undecided.map_or(rate, |known| known.max(rate)));
            }
        }
        if verdict != Verdict::Passed && !is_upper {
            self.unproven = Some(lower(self.unproven, rate));
        }
        self.next = self.choose();
    }

    /// The next rate: twice the highest that passed, half of the lowest that did not, or their geometric mean. `None`:
    /// the search is over.
    fn choose(&mut self) -> Option<f64> {
        let Some(unproven) = self.unproven else {
            let passed = self.passed?;
            return (passed < self.max).then(|| (passed * 2.0).min(self.max));
        };
        let Some(passed) = self.passed else {
            self.halvings += 1;
            return (self.halvings <= HALVINGS_MAX).then_some(unproven / 2.0);
        };
        if unproven > passed * RATIO {
            Some((passed * unproven).sqrt())
        } else {
            self.choose_above()
        }
    }

    /// The next rate above the undecided ones, to find one that surely fails; `None`: the search is over.
    fn choose_above(&mut self) -> Option<f64> {
        let highest = self.undecided?;
        self.upper_steps += 1;
        if self.upper_steps > UPPER_STEPS_MAX || highest >= self.max {
            return None;
        }
        match self.failed {
            // No rate has failed: half as much again is likely to.
            None => Some((highest * 1.5).min(self.max)),
            Some(failed) if failed > highest * RATIO => Some((highest * failed).sqrt()),
            Some(_) => None,
        }
    }
}

/// The record of the step at `rate` for the JSON document; `gate` judges its run.
pub fn step(rate: f64, report: &Report, gate: &Gate) -> Step {
    let judged = gate.judge(report);
    let seconds = report.elapsed.as_secs_f64();
    // Without a schedule there are no latencies from due times (0). A step has a rate, thus a schedule.
    let percentile_ms = |percent| match report.latency.censored() {
        Some(latencies) => latencies.percentile(percent).at_least.as_secs_f64() * 1e3,
        None => 0.0,
    };
    let is_late = is_only_late(&judged);
    let mut broken = Vec::new();
    for condition in &judged.conditions {
        if condition.verdict != Verdict::Passed.word() {
            broken.push(match &condition.reason {
                Some(reason) => format!("{} ({reason})", condition.condition),
                None => condition.condition.clone(),
            });
        }
    }
    Step {
        rate_per_s: rate,
        elapsed_s: seconds,
        sent_per_s: report.in_span.sent as f64 / seconds.max(f64::MIN_POSITIVE),
        p50_ms: percentile_ms(50.0),
        p99_ms: percentile_ms(99.0),
        unsent: report.unfinished.unsent,
        verdict: if is_late {
            LATE.to_owned()
        } else {
            judged.verdict.clone()
        },
        is_generator: is_late,
        broken,
    }
}

/// Whether the step is undecided only because the generator was late: no condition has failed. A
/// gate that waives lateness has no such condition.
fn is_only_late(judged: &document::Gate) -> bool {
    let undecided = Verdict::Undecided.word();
    let has_late_condition = judged.conditions.iter().any(|condition| {
        condition.condition == Waiver::Invalid.word() && condition.verdict == undecided
    });
    has_late_condition && judged.verdict == undecided
}

fn lower(known: Option<f64>, rate: f64) -> f64 {
    known.map_or(rate, |known| known.min(rate))
}

/// The most times that a step is repeated because the generator was late. A generator that cannot
/// reach the rate is late each time.
const LATE_MAX: u32 = 3;

/// The search ends when the rates on both sides of the knee differ by no more than this factor.
const RATIO: f64 = 1.05;

/// The most times that the first rate is halved before one is sustained: down to a 64th of it.
const HALVINGS_MAX: u32 = 6;

/// The most steps above the undecided rates, in search of one that surely fails.
const UPPER_STEPS_MAX: u32 = 6;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::gate::{self, Condition};
    use crate::report::Warning;

    /// Runs a search in which `judge` decides the verdict of a step by its rate.
    fn search(first: f64, max: f64, judge: impl Fn(f64) -> Verdict) -> (Search, Vec<f64>) {
        let mut search = Search::new(first, max);
        let mut tried = Vec::new();
        while let Some((rate, _)) = search.next() {
            tried.push(rate);
            assert!(tried.len() < 60, "{tried:?}");
            search.note(judge(rate));
        }
        (search, tried)
    }

    fn limit(limit: f64) -> impl Fn(f64) -> Verdict {
        move |rate| {
            if rate <= limit {
                Verdict::Passed
            } else {
                Verdict::Failed
            }
        }
    }

    #[test]
    fn the_knee_lies_between_what_is_sustained_and_what_is_not() {
        for knee in [3.5, 99.0, 100.0, 101.0, 777.0, 123_456.0] {
            let (search, tried) = search(100.0, f64::INFINITY, limit(knee));
            let (low, high) = (search.sustained().unwrap(), search.broken().unwrap());
            assert!(low <= knee && knee < high, "{low} {knee} {high}");
            assert!(high / low <= RATIO + 1e-9, "{low} {high}");
            assert!(tried.len() <= 20, "{tried:?}");
        }
    }

    #[test]
    fn rates_that_do_not_tell_widen_the_interval() {
        let judge = |rate: f64| match rate {
            ..800.0 => Verdict::Passed,
            ..=1000.0 => Verdict::Undecided,
            _ => Verdict::Failed,
        };
        for first in [50.0, 100.0, 900.0, 3000.0] {
            let (search, tried) = search(first, f64::INFINITY, judge);
            let (low, high) = (search.sustained().unwrap(), search.broken().unwrap());
            assert!((760.0..800.0).contains(&low), "{first}: {low}");
            assert!((1000.0..1060.0).contains(&high), "{first}: {high}");
            // Each that does not tell is tried again, once.
            let twice = tried.windows(2).filter(|pair| pair[0] == pair[1]).count();
            let undecided = tried
                .iter()
                .filter(|rate| judge(**rate) == Verdict::Undecided);
            assert_eq!(twice * 2, undecided.count(), "{tried:?}");
        }
    }

    #[test]
    fn a_server_that_sustains_nothing_ends_the_search() {
        let (search, tried) = search(64.0, f64::INFINITY, |_| Verdict::Failed);
        assert_eq!(tried, [64.0, 32.0, 16.0, 8.0, 4.0, 2.0, 1.0]);
        assert_eq!((search.sustained(), search.broken()), (None, Some(1.0)));
        let (search, tried) = search_undecided();
        assert!(tried.len() < 40, "{tried:?}");
        assert_eq!((search.sustained(), search.broken()), (None, None));
    }

    fn search_undecided() -> (Search, Vec<f64>) {
        search(64.0, f64::INFINITY, |_| Verdict::Undecided)
    }

    /// The verdict of a step at which the generator was late by 50 ms at the 99th percentile, with
    /// this number of error pages, and with the median of latency in milliseconds.
    fn verdict_of_late(error_pages: u64, median: u64, waived: &[Waiver]) -> String {
        let mut report = gate::tests::run((0..2000).map(|_| median));
        report.requests.non_2xx = error_pages;
        let p99 = Duration::from_millis(50);
        report.warnings = vec![Warning::GeneratorLate { p99 }];
        let gate = Gate {
            conditions: vec![Condition::parse("p50>30ms").unwrap()],
            waived: waived.to_vec(),
        };
        step(600.0, &report, &gate).verdict
    }

    /// The generator is late by chance at the first and the next rate: no lower rate is tried because of it.
    #[test]
    fn a_late_generator_does_not_lower_the_rate() {
        let mut search = Search::new(600.0, f64::INFINITY);
        let mut tried: Vec<f64> = Vec::new();
        while let Some((rate, _)) = search.next() {
            tried.push(rate);
            let times = tried.iter().filter(|it| **it == rate).count();
            if rate <= 1200.0 && times <= 3 {
                search.note_late();
            } else {
                search.note(limit(1300.0)(rate));
            }
        }
        assert_eq!(
            tried[..8],
            [600.0, 600.0, 600.0, 600.0, 1200.0, 1200.0, 1200.0, 1200.0]
        );
        assert!(tried.iter().all(|rate| *rate >= 600.0), "{tried:?}");
        assert!(search.sustained() >= Some(1200.0), "{search:?}");
    }

    /// A rate that the generator cannot reach ends the search for higher rates.
    #[test]
    fn a_generator_that_is_always_late_does_not_tell() {
        let mut search = Search::new(600.0, f64::INFINITY);
        let mut tried = Vec::new();
        while let Some((rate, _)) = search.next() {
            tried.push(rate);
            assert!(tried.len() < 80, "{tried:?}");
            if rate > 1000.0 {
                search.note_late();
            } else {
                search.note(Verdict::Passed);
            }
        }
        assert!(search.sustained() >= Some(900.0), "{search:?}");
        assert_eq!(search.broken(), None);
    }

    #[test]
    fn a_late_generator_is_a_verdict_of_its_own() {
        assert_eq!(verdict_of_late(0, 5, &[]), "late");
        assert_eq!(verdict_of_late(5, 5, &[]), "failed");
        // What the server is slow by is more than what we were late by, or is not.
        assert_eq!(verdict_of_late(0, 200, &[]), "failed");
        assert_eq!(verdict_of_late(0, 60, &[]), "late");
        assert_eq!(verdict_of_late(0, 5, &[Waiver::Invalid]), "passed");
        assert_eq!(verdict_of_late(5, 5, &[Waiver::Invalid]), "failed");
        assert_eq!(verdict_of_late(0, 60, &[Waiver::Invalid]), "failed");
    }

    #[test]
    fn no_rate_is_above_the_highest_allowed() {
        let (search, tried) = search(100.0, 300.0, |_| Verdict::Passed);
        assert_eq!(tried, [100.0, 200.0, 300.0]);
        assert_eq!((search.sustained(), search.broken()), (Some(300.0), None));
        let (_, tried) = self::search(500.0, 300.0, |_| Verdict::Passed);
        assert_eq!(tried, [300.0]);
    }
}
