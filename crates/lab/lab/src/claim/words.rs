//! Writes the sentence on the outcome of a case.

use super::bias;
use super::rule::RatioInterval;
use super::{CaseEstimate, Verdict, can_only_suggest, number};
use crate::experiment::label;
use crate::gate::Effect;
use crate::measure::{ERRORS, SILENCES};

/// Writes the sentence on one case.
pub(super) struct Words<'a> {
    pub(super) estimate: &'a CaseEstimate<'a>,
    /// The number of cases in its question.
    pub(super) question_size: usize,
}

impl Words<'_> {
    /// The whole sentence: the verdict, then the rounds that were left out and by how much the interval was widened.
    pub(super) fn sentence(&self, verdict: Verdict) -> String {
        let verdict_words = self.verdict_words(verdict);
        match verdict {
            Verdict::NoClaim => verdict_words,
            _ => verdict_words + &self.left_out() + &self.widened(),
        }
    }

    /// The verdict in words.
    fn verdict_words(&self, verdict: Verdict) -> String {
        let starts = self.estimate.starts.len();
        if verdict == Verdict::NoClaim {
            let mut gates = self.estimate.gates.iter();
            let forbidding = gates.find(|fired| fired.effect != Effect::Note);
            let reason = forbidding.or(self.estimate.left_out_by.as_ref());
            return format!("No claim: {}", reason.map_or("", |fired| &fired.words));
        }
        let Some(interval) = self.estimate.interval else {
            return self.too_few();
        };
        if let Some([above, below]) = self.estimate.counts {
            return self.sums(above, below);
        }
        let margin = percent(self.estimate.claim.margin);
        let ends = format!(" [{}..{}]", number(interval.low), number(interval.high));
        let clause = self.clause(&number(interval.ratio), &ends);
        match verdict {
            Verdict::Differs => format!("{clause}, {starts} starts."),
            Verdict::DiffersLittle => {
                format!("{clause}, {starts} starts: less than {margin} apart.")
            }
            // The report explains this once for all claims.
            Verdict::Suggests if can_only_suggest(starts, self.question_size) => {
                format!("Suggests: {clause}.")
            }
            Verdict::Suggests => format!(
                "Suggests: {clause}; beside {} other claims on the same measure {starts} starts are not enough.",
                self.question_size.saturating_sub(1)
            ),
            Verdict::Same => format!("No difference beyond {margin}: {clause}."),
            // The other two have returned above.
            Verdict::NotShown | Verdict::TooFew | Verdict::NoClaim => {
                let hidden = interval.high.max(1.0 / interval.low);
                let needed = self.starts_needed(interval);
                format!(
                    "No difference shown: {clause}; up to ×{} may be hidden. {needed} would decide it.",
                    number(hidden)
                )
            }
        }
    }

    /// The rounds that are left out, by gate, after a space; empty if there are none.
    fn left_out(&self) -> String {
        let left_out = &self.estimate.left_out;
        if left_out.is_empty() {
            return String::new();
        }
        let gates = left_out.iter();
        let gates: Vec<String> = gates
            .map(|(gate, rounds)| format!("{rounds} by `{gate}`"))
            .collect();
        let counted = self.estimate.ratios.len();
        let made = counted + left_out.values().sum::<usize>();
        format!(
            " {counted} of {made} rounds count; {} left out.",
            gates.join(", ")
        )
    }

    /// By how much the interval is wider because of what both sides lost, after a space; empty if that is less than
    /// [`BIAS_SAID`].
    fn widened(&self) -> String {
        let bias = self.estimate.bias;
        if bias < BIAS_SAID {
            return String::new();
        }
        let why = if bias::is_percentile(&self.estimate.claim.measure) {
            "the lab's own work may have made answers of one level come later"
        } else {
            "one level lost more of its time than the other to what was not its servers"
        };
        format!(
            " The interval is wider by {} on either side: {why}.",
            percent(bias.exp_m1())
        )
    }

    /// The sentence that there are too few starts for an interval, with the lowest and the highest ratio.
    fn too_few(&self) -> String {
        let starts = &self.estimate.starts;
        let few = format!(
            "Too few starts, {} of {}",
            starts.len(),
            self.estimate.starts_min
        );
        let times = match starts[..] {
            [] => return format!("{few}."),
            [ratio] => number(ratio),
            _ => {
                let low = starts.iter().copied().fold(f64::INFINITY, f64::min);
                let high = starts.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                format!("{} to {}", number(low), number(high))
            }
        };
        format!("{few}: {}.", self.clause(&times, ""))
    }

    /// The number of starts after which the interval would exclude 1 or lie within the margin, if it only became
    /// narrower around the same ratio.
    fn starts_needed(&self, interval: RatioInterval) -> String {
        let starts = self.estimate.starts.len() as f64;
        let bias = self.estimate.bias;
        // More starts make the interval narrower, but not the part of it that is the bias.
        let half_width = (interval.high / interval.low).ln() / 2.0 - bias;
        let to_one = interval.ratio.ln().abs();
        let to_margin = self.estimate.claim.margin.ln_1p() - to_one;
        let half_width_wanted = to_one.max(to_margin) - bias;
        // The width shrinks with the root of the number of starts.
        let growth = (half_width / half_width_wanted).powi(2);
        let needed = (starts * growth).ceil().max(starts + 1.0);
        if half_width_wanted > 0.0 && needed <= STARTS_SENSIBLE {
            format!("About {needed:.0} starts")
        } else {
            "No sensible number of starts".to_owned()
        }
    }

    /// The sentence on a count that is mostly 0: the sums of both sides.
    fn sums(&self, above: f64, below: f64) -> String {
        let starts = self.estimate.starts.len();
        let case = self.case();
        let [none, happened] = match self.estimate.claim.measure.base() {
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
            return format!("{none}{case}, {starts} starts.");
        }
        format!(
            "{above:.0} {happened} with {}, {below:.0} with {}{case}, {starts} starts.",
            label(&self.estimate.claim.level),
            label(&self.estimate.claim.over)
        )
    }

    /// The levels of the case, after a space; empty if the claim has only one case.
    fn case(&self) -> String {
        let each = &self.estimate.case.each;
        if each.is_empty() {
            return String::new();
        }
        format!(" at {}", label(each))
    }

    /// The comparison: how many `times` as much one side has as the other, with the interval `ends`, which begin with a
    /// space.
    fn clause(&self, times: &str, ends: &str) -> String {
        let claim = self.estimate.claim;
        let [does, what] = claim.measure.words();
        let place = claim.measure.place() + &self.case();
        if claim.level.is_empty() {
            return format!("the ratios of {what} differ by a factor of {times}{ends}{place}");
        }
        let (level, over) = (label(&claim.level), label(&claim.over));
        format!("{level} {does} {times} times the {what} of {over}{ends}{place}")
    }
}

/// A share in per cent, with a digit after the decimal point below 1 %.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    // From 0.95 on, one digit would be rounded to 1.0.
    if percent.abs() >= 0.95 {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.1} %")
    }
}

/// The bias from which the sentence mentions it.
const BIAS_SAID: f64 = 0.001;

/// The number of starts above which nobody would run an experiment.
const STARTS_SENSIBLE: f64 = 500.0;
