//! Writes the sentence on the outcome of a case.

use super::rule::RatioInterval;
use super::{CaseEstimate, Verdict, can_only_suggest, number};
use crate::experiment::label;
use crate::gate::Effect;
use crate::measure::{ERRORS, SILENCES};

/// Writes the sentence on one case.
pub(super) struct Words<'a> {
    pub(super) drawn: &'a CaseEstimate<'a>,
    /// The number of claims in its question.
    pub(super) claims: usize,
}

impl Words<'_> {
    /// The whole sentence: the verdict, then the rounds that were left out and by how much the interval was widened.
    pub(super) fn sentence(&self, verdict: Verdict) -> String {
        let said = self.said(verdict);
        match verdict {
            Verdict::NoClaim => said,
            _ => said + &self.left_out() + &self.widened(),
        }
    }

    /// The verdict in words.
    fn said(&self, verdict: Verdict) -> String {
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
        let margin = percent(self.drawn.claim.margin);
        if let Some([above, below]) = self.drawn.counts {
            return self.failures(above, below, starts);
        }
        let ends = format!(" [{}..{}]", number(interval.low), number(interval.high));
        let clause = self.clause(&number(interval.ratio), &ends);
        match verdict {
            Verdict::Differs => format!("{clause}, {starts} starts."),
            Verdict::DiffersLittle => {
                format!("{clause}, {starts} starts: less than {margin} apart.")
            }
            // The report explains this once for all claims.
            Verdict::Suggests if can_only_suggest(starts, self.claims) => {
                format!("Suggests: {clause}.")
            }
            Verdict::Suggests => format!(
                "Suggests: {clause}; beside {} other claims on the same measure {starts} starts are not enough.",
                self.claims.saturating_sub(1)
            ),
            Verdict::Same => format!("No difference beyond {margin}: {clause}."),
            _ => {
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
        let words = |(gate, rounds): (&String, &usize)| format!("{rounds} by `{gate}`");
        let gates: Vec<String> = self.drawn.left_out.iter().map(words).collect();
        let counted = self.drawn.ratios.len();
        let made = counted + self.drawn.left_out.values().sum::<usize>();
        match gates[..] {
            [] => String::new(),
            _ => format!(
                " {counted} of {made} rounds count; {} left out.",
                gates.join(", ")
            ),
        }
    }

    /// By how much the interval is wider because of what both sides lost, after a space; empty if that is less than
    /// [`BIAS_SAID`].
    fn widened(&self) -> String {
        match self.drawn.bias {
            little if little < BIAS_SAID => String::new(),
            bias => format!(
                " The interval is wider by {} on either side: one level lost more of its time than the other to what was \
                 not its servers.",
                percent(bias.exp_m1())
            ),
        }
    }

    /// The sentence that there are too few starts for an interval, with the lowest and the highest ratio.
    fn too_few(&self) -> String {
        let starts = &self.drawn.starts;
        let few = format!(
            "Too few starts, {} of {}",
            starts.len(),
            self.drawn.starts_min
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

    /// The number of starts after which the interval would exclude 1 or lie within the margin, if it only became
    /// narrower around the same ratio.
    fn starts_needed(&self, interval: RatioInterval) -> String {
        let starts = self.drawn.starts.len() as f64;
        let width = (interval.high / interval.low).ln() / 2.0 - self.drawn.bias;
        let off = interval.ratio.ln().abs();
        let wanted = off.max(self.drawn.claim.margin.ln_1p() - off) - self.drawn.bias;
        let needed = (starts * (width / wanted).powi(2)).ceil().max(starts + 1.0);
        if wanted > 0.0 && needed <= STARTS_SENSIBLE {
            format!("About {needed:.0} starts")
        } else {
            "No sensible number of starts".to_owned()
        }
    }

    /// The sentence on a count that is mostly 0: the sums of both sides.
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

    /// The levels of the case, after a space; empty if the claim has only one case.
    fn case(&self) -> String {
        match &self.drawn.case.each {
            each if each.is_empty() => String::new(),
            each => format!(" at {}", label(each)),
        }
    }

    /// The comparison: how many `times` as much one side has as the other, with the interval `ends`, which begin with a
    /// space.
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

/// A share in per cent, with a digit after the decimal point below 1 %.
fn percent(share: f64) -> String {
    match share * 100.0 {
        whole if whole.abs() >= 0.95 => format!("{whole:.0} %"),
        part => format!("{part:.1} %"),
    }
}

/// The bias from which the sentence mentions it.
const BIAS_SAID: f64 = 0.001;

/// The number of starts above which nobody would run an experiment.
const STARTS_SENSIBLE: f64 = 500.0;
