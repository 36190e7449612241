//! The gate `survivors`: whether one side of a claim lost more of its runs than the other. Void runs are made again, so
//! a claim rests on those that survived; if they are a selection on one side, the comparison is biased.

use std::collections::BTreeMap;

use catamaran_stats::{Share, fisher};
use serde::{Deserialize, Serialize};

use super::gates::SURVIVORS;
use super::{LEVEL, is_above, is_in, spoiling_gate};
use crate::experiment::{Case, Claim, Experiment, Levels, label};
use crate::gate::{Effect, GateFinding, part_of};
use crate::measure::Measure;
use crate::run::Run;

/// Counts of the runs of one cell in a claim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Survival {
    /// The levels of the cell that differ between cells, in words.
    pub cell: String,
    /// Whether the cell is in the numerator; else it is in the denominator.
    pub is_above: bool,
    /// The number of all runs, with those that were repeated.
    pub runs: u64,
    /// The number of void runs.
    pub void: u64,
    /// The number of valid runs that a gate makes this claim leave out.
    #[serde(default)]
    pub left_out: u64,
    /// The number of void or left-out runs by gate. A run counts for each gate that fired on it.
    pub gates: BTreeMap<String, u64>,
    /// The number of requests that were answered in valid runs.
    pub completed: u64,
    /// The number of requests without a good response in valid runs; above 0 only if the gate `failed` is off.
    pub failed: u64,
}

impl Survival {
    /// Adds a run to the counts. `measure` decides whether a gate makes the claim leave out a valid run.
    fn count(&mut self, run: &Run, measure: &Measure) {
        self.runs += 1;
        if run.is_valid() {
            self.completed += run.facts.completed;
            self.failed += run.facts.failed;
            if let Some(fired) = spoiling_gate(run, measure) {
                self.left_out += 1;
                self.count_gate(fired);
            }
        } else {
            self.void += 1;
            for fired in run
                .gates
                .iter()
                .filter(|fired| fired.effect == Effect::Void)
            {
                self.count_gate(fired);
            }
        }
    }

    fn count_gate(&mut self, fired: &GateFinding) {
        *self.gates.entry(fired.gate.clone()).or_default() += 1;
    }

    /// The reasons for void or left-out runs, such as `died 5, not-ready 4`.
    #[must_use]
    pub fn reasons(&self) -> String {
        reasons(&self.gates)
    }
}

/// The counts of gates in words, such as `died 5, not-ready 4`.
fn reasons(gates: &BTreeMap<String, u64>) -> String {
    let words = gates.iter().map(|(gate, count)| format!("{gate} {count}"));
    words.collect::<Vec<_>>().join(", ")
}

/// The survival of each cell of a case; `runs` includes void ones.
pub(super) fn of_case(
    experiment: &Experiment,
    measure: &Measure,
    case: &Case,
    runs: &[&Run],
) -> Vec<Survival> {
    let mut survivals = Vec::new();
    for cell in (0..experiment.cells.len()).filter(|cell| is_in(&case.contrasts, *cell)) {
        let mut survival = Survival {
            cell: experiment.label(cell),
            is_above: is_above(&case.contrasts, cell),
            ..Survival::default()
        };
        for run in runs.iter().filter(|run| run.cell == cell) {
            survival.count(run, measure);
        }
        survivals.push(survival);
    }
    survivals
}

/// The cells on one side of a claim.
struct ClaimSide<'a> {
    /// The side's levels in words.
    name: String,
    cells: Vec<&'a Survival>,
}

impl ClaimSide<'_> {
    /// The share of the side's runs that `lost` counts.
    fn share(&self, lost: fn(&Survival) -> u64) -> Share {
        Share {
            part: self.cells.iter().map(|cell| lost(cell)).sum(),
            whole: self.cells.iter().map(|cell| cell.runs).sum(),
        }
    }

    /// The reasons for the void or left-out runs of all cells of the side.
    fn reasons(&self) -> String {
        let mut gates: BTreeMap<String, u64> = BTreeMap::new();
        for (gate, count) in self.cells.iter().flat_map(|cell| &cell.gates) {
            *gates.entry(gate.clone()).or_default() += count;
        }
        reasons(&gates)
    }
}

/// Forbids a claim if one side has lost all of its runs, or more than the other side by more than chance explains.
pub(super) fn check(claim: &Claim, cells: &[Survival]) -> Option<GateFinding> {
    let [level, over] = names(claim);
    let above = ClaimSide {
        name: level,
        cells: cells.iter().filter(|cell| cell.is_above).collect(),
    };
    let below = ClaimSide {
        name: over,
        cells: cells.iter().filter(|cell| !cell.is_above).collect(),
    };
    for side in [&above, &below] {
        let void = side.share(|cell| cell.void);
        if void.whole > 0 && void.part == void.whole {
            let words = format!(
                "None of the {} runs with {} was valid ({}).",
                void.whole,
                side.name,
                side.reasons()
            );
            return Some(GateFinding::new(SURVIVORS, Effect::Claim, words));
        }
    }
    let [lost_above, lost_below] =
        [&above, &below].map(|side| side.share(|cell| cell.void + cell.left_out));
    if fisher(lost_above, lost_below) > 1.0 - LEVEL {
        return None;
    }
    // The side that has lost the larger share is named first.
    let is_above = lost_above.part * lost_below.whole > lost_below.part * lost_above.whole;
    let (more, less, lost_more, lost_less) = if is_above {
        (above, below, lost_above, lost_below)
    } else {
        (below, above, lost_below, lost_above)
    };
    let were = if cells.iter().any(|cell| cell.left_out > 0) {
        "were void or left out"
    } else {
        "were void"
    };
    let words = format!(
        "{} runs with {} {were} ({}), {} with {}: only the survivors would be compared.",
        part_of(lost_more.part, lost_more.whole),
        more.name,
        more.reasons(),
        part_of(lost_less.part, lost_less.whole),
        less.name
    );
    Some(GateFinding::new(SURVIVORS, Effect::Claim, words))
}

/// The names of the two sides of a claim.
pub(super) fn names(claim: &Claim) -> [String; 2] {
    // The sides of an interaction are ratios, which have no levels.
    let name = |levels: &Levels, ratio: &str| {
        if levels.is_empty() {
            ratio.to_owned()
        } else {
            label(levels)
        }
    };
    [
        name(&claim.level, "the first ratio"),
        name(&claim.over, "the second ratio"),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::tests::{experiment, outcome, runs};
    use super::super::{Outcome, Verdict, evaluate};
    use super::*;

    /// The claim on CPU time after twelve rounds in which the first `lost` runs of the kept connections' cell, and the
    /// first `of_others` of the others, were void `times` times.
    fn claimed([lost, of_others]: [usize; 2], times: usize, is_replaced: bool) -> Outcome {
        let experiment = experiment();
        let mut made = Vec::new();
        for run in runs(&experiment, 12, |round| 0.5 + round as f64 / 1000.0) {
            let is_kept = run.levels["keep"].to_string() == "on";
            let void = if is_kept { lost } else { of_others };
            let is_void = run.round < void;
            for attempt in (0..times).filter(|_| is_void) {
                let died = GateFinding::new("died", Effect::Void, "httpd ended with signal: 9");
                made.push(Run {
                    attempt,
                    gates: vec![died],
                    ..run.clone()
                });
            }
            if !is_void || is_replaced {
                made.push(run);
            }
        }
        outcome(&evaluate(&experiment, &made), "Keep-alive saves CPU").clone()
    }

    #[test]
    fn a_level_that_lost_runs_is_not_compared_by_the_others() {
        let claim = claimed([9, 0], 1, true);
        assert_eq!(claim.verdict, Verdict::NoClaim);
        assert_eq!(
            claim.sentence,
            "No claim: 9 of 21 runs with keep=on were void (died 9), 0 of 12 with keep=off: only the survivors would \
             be compared."
        );
        let lost: Vec<[u64; 2]> = claim
            .survivors
            .iter()
            .map(|it| [it.void, it.runs])
            .collect();
        assert_eq!(lost.iter().filter(|it| **it == [9, 21]).count(), 1);
        assert_eq!(claim.ratios.len(), 12, "they were replaced");
        // The other way round.
        let claim = claimed([0, 9], 1, true);
        assert!(
            claim
                .sentence
                .starts_with("No claim: 9 of 21 runs with keep=off were void"),
            "{}",
            claim.sentence
        );
    }

    /// Rounds that a gate takes from a claim are told apart by side as void ones are.
    #[test]
    fn what_is_left_out_is_said_and_must_not_be_of_one_level() {
        let claimed = |of_kept: usize, of_others: usize| {
            let experiment = experiment();
            let mut runs = runs(&experiment, 12, |round| 0.5 + round as f64 / 1000.0);
            for run in &mut runs {
                let is_kept = run.levels["keep"].to_string() == "on";
                if run.round < if is_kept { of_kept } else { of_others } {
                    let gate = GateFinding::new("unsteady", Effect::Machine, "It moved.");
                    run.gates.push(gate);
                }
            }
            outcome(&evaluate(&experiment, &runs), "Keep-alive saves CPU").clone()
        };
        let few = claimed(3, 1);
        assert_eq!(few.verdict, Verdict::Differs);
        assert!(
            few.sentence
                .ends_with(", 9 starts. 9 of 12 rounds count; 3 by `unsteady` left out."),
            "{}",
            few.sentence
        );
        let many = claimed(6, 0);
        assert_eq!(
            many.sentence,
            "No claim: 6 of 12 runs with keep=on were void or left out (unsteady 6), 0 of 12 with keep=off: only the \
             survivors would be compared."
        );
    }

    #[test]
    fn levels_that_lost_as_many_are_compared() {
        for lost in [[0, 0], [9, 9], [1, 0], [4, 2]] {
            let claim = claimed(lost, 1, true);
            assert_eq!(
                claim.verdict,
                Verdict::Differs,
                "{lost:?}: {}",
                claim.sentence
            );
        }
    }

    #[test]
    fn a_level_that_never_answers_has_no_claim() {
        for (lost, name) in [([12, 0], "on"), ([12, 12], "on"), ([0, 12], "off")] {
            let claim = claimed(lost, 3, false);
            assert_eq!(claim.verdict, Verdict::NoClaim);
            assert_eq!(
                claim.sentence,
                format!("No claim: None of the 36 runs with keep={name} was valid (died 36).")
            );
        }
    }
}
