//! The sentence of a case.

use catamaran_stats::order::{self, MedianInterval};

use super::{CaseEstimate, LEVEL, Verdict, can_only_suggest, number};
use crate::experiment::label;
use crate::gate::Effect;
use crate::measure::{ERRORS, SILENCES};

/// Makes sentences of a case.
pub(super) struct Words<'a> {
    pub(super) drawn: &'a CaseEstimate<'a>,
    /// All claims.
    pub(super) claims: usize,
}

impl Words<'_> {
    pub(super) fn sentence(&self, verdict: Verdict) -> String {
        let starts = self.drawn.starts.len();
        if verdict == Verdict::NoClaim {
            let mut gates = self.drawn.gates.iter();
            let gate = gates.find(|fired| fired.effect != Effect::Note);
            let gate = gate.or(self.drawn.taken.as_ref());
            return format!("No claim: {}", gate.map_or("", |fired| &fired.words));
        }
        let Some(interval) = self.drawn.interval else {
            return self.too_few();
        };
        let margin = self.drawn.claim.margin * 100.0;
        if let Some([above, below]) = self.drawn.counts {
            return self.failures(above, below, starts);
        }
        let ends = format!(" [{}..{}]", number(interval.low), number(interval.high));
        let clause = self.clause(&number(interval.median), &ends);
        match verdict {
            Verdict::Differs => format!("{clause}, {starts} starts."),
            Verdict::DiffersLittle => {
                format!("{clause}, {starts} starts: less than {margin:.0} % apart.")
            }
            // The report says once why.
            Verdict::Suggests if can_only_suggest(starts, self.claims) => {
                format!("Suggests: {clause}.")
            }
            Verdict::Suggests => format!(
                "Suggests: {clause}; beside {} other claims {starts} starts are not enough.",
                self.claims.saturating_sub(1)
            ),
            Verdict::Same => format!("No difference beyond {margin:.0} %: {clause}."),
            _ => {
                let hidden = interval.high.max(1.0 / interval.low);
                let needed = self.starts_needed(interval);
                format!(
                    "No difference shown: {clause}; up to ×{} may be hidden. {needed} would show {margin:.0} %.",
                    number(hidden)
                )
            }
        }
    }

    /// The sentence that starts are too few for an interval, with the ratios that were seen.
    fn too_few(&self) -> String {
        let starts = &self.drawn.starts;
        let few = format!(
            "Too few starts, {} of {}",
            starts.len(),
            order::count_min(LEVEL)
        );
        let [low, high] = [f64::min, f64::max].map(|end| starts.iter().copied().reduce(end));
        match low.zip(high) {
            None => format!("{few}."),
            Some((low, _)) if starts.len() == 1 => {
                format!("{few}: {}.", self.clause(&number(low), ""))
            }
            Some((low, high)) => {
                let times = format!("{} to {}", number(low), number(high));
                format!("{few}: {}.", self.clause(&times, ""))
            }
        }
    }

    /// The number of starts that would show a difference as large as the margin, in words.
    fn starts_needed(&self, interval: MedianInterval) -> String {
        let starts = self.drawn.starts.len();
        let width = (interval.high / interval.low).ln() / 2.0;
        let factor = (width / self.drawn.claim.margin.max(0.01).ln_1p()).powi(2);
        let needed = (starts as f64 * factor).ceil();
        if needed > STARTS_SENSIBLE {
            "No sensible number of starts".to_owned()
        } else {
            format!("About {needed:.0} starts")
        }
    }

    fn failures(&self, above: f64, below: f64, starts: usize) -> String {
        let each = self.case();
        let [none, what] = match self.drawn.claim.measure.base() {
            SILENCES => [
                "No span was without an answer",
                "spans were without an answer",
            ],
            ERRORS => [
                "Every request was answered 2xx",
                "requests were not answered 2xx",
            ],
            _ => ["No request failed", "requests failed"],
        };
        if above == 0.0 && below == 0.0 {
            return format!("{none}{each}, {starts} starts.");
        }
        format!(
            "{above:.0} {what} with {}, {below:.0} with {}{each}, {starts} starts.",
            label(&self.drawn.claim.level),
            label(&self.drawn.claim.over)
        )
    }

    /// Which case it is, with a space in front; empty if there is but one.
    fn case(&self) -> String {
        match &self.drawn.case.each {
            each if each.is_empty() => String::new(),
            each => format!(" at {}", label(each)),
        }
    }

    /// How many `times` as much one level takes as the other; `ends` of the interval follow with a space in front.
    fn clause(&self, times: &str, ends: &str) -> String {
        let claim = self.drawn.claim;
        let [does, what] = claim.measure.words();
        let place = claim.measure.place() + &self.case();
        if claim.level.is_empty() {
            return format!("the ratios of {what} differ by a factor of {times}{ends}{place}");
        }
        let (level, over) = (label(&claim.level), label(&claim.over));
        format!("{level} {does} {times} times the {what} of {over}{ends}{place}")
    }
}

/// More than this nobody runs.
const STARTS_SENSIBLE: f64 = 500.0;
