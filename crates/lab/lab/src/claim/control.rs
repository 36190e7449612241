//! The ratio of each cell to the control, by the rules of claims. Reports do not show these ratios, since no claim is
//! about them; comparisons of two results need them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Passes;
use super::starts::StartSpans;
use crate::experiment::{Case, Claim, Contrast, Expectation, Experiment, Levels};
use crate::measure::{MEMORY, Measure, SYSCALLS, THROUGHPUT};
use crate::run::Run;

/// The ratio of one measure of a cell to that of the control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ControlRatio {
    /// The ratio for each start of servers.
    pub starts: Vec<f64>,
    /// Why there is no verdict: a gate forbids one, or there are too few starts. `None`: there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_verdict: Option<String>,
    /// How far the ratio may be wrong: see [`Outcome::bias`](super::Outcome).
    #[serde(default, skip_serializing_if = "super::is_none")]
    pub bias: f64,
}

/// The ratios of each cell to the control by measure, without measures that no run has; empty for the control itself.
pub(crate) fn over_control(
    experiment: &Experiment,
    runs: &[Run],
) -> Vec<BTreeMap<String, ControlRatio>> {
    let start_spans = StartSpans::of(experiment);
    let passes = Passes::of(experiment, runs);
    let is_measured = |name: &&str| runs.iter().any(|run| run.measures.contains_key(*name));
    let measured: Vec<&str> = MEASURES.into_iter().filter(is_measured).collect();
    let mut ratios_of_cells = vec![BTreeMap::new(); experiment.cells.len()];
    for (cell, ratios) in ratios_of_cells.iter_mut().enumerate() {
        if cell == experiment.control {
            continue;
        }
        for name in &measured {
            let Ok(measure) = Measure::parse(name) else {
                continue;
            };
            let claim = claim(experiment, cell, measure);
            let estimate = passes.estimate(experiment, &start_spans, &claim, &claim.cases[0]);
            // Comparisons of results correct for the number of claims themselves.
            let outcome = estimate.finish(true, 1);
            let ratio = ControlRatio {
                without_verdict: outcome.without_verdict().map(str::to_owned),
                bias: outcome.bias,
                starts: outcome.starts,
            };
            ratios.insert((*name).to_owned(), ratio);
        }
    }
    ratios_of_cells
}

/// A claim that compares a cell with the control.
fn claim(experiment: &Experiment, cell: usize, measure: Measure) -> Claim {
    let [level, over] = [cell, experiment.control].map(|cell| experiment.cells[cell].clone());
    let contrast = Contrast {
        above: vec![cell],
        below: vec![experiment.control],
    };
    Claim {
        says: String::new(),
        measure,
        level,
        over,
        // These decide between verdicts, and here only counts whether there is one.
        expect: Expectation::Same,
        margin: 0.0,
        published: Vec::new(),
        planted: None,
        names_reuse: false,
        cases: vec![Case {
            each: Levels::new(),
            contrasts: vec![contrast],
        }],
    }
}

/// The measures that are compared; those of single servers would tell nothing more.
const MEASURES: [&str; 5] = ["cpu", MEMORY, "p99", SYSCALLS, THROUGHPUT];
