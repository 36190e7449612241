//! Each cell over the control, by the rules of claims. Nobody has claimed it, so reports do not show it; comparisons of
//! two results need it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Passes;
use super::starts::StartSpans;
use crate::experiment::{Case, Claim, Contrast, Expectation, Experiment, Levels};
use crate::measure::{MEMORY, Measure, SYSCALLS, THROUGHPUT};
use crate::run::Run;

/// A measure of a cell over the control's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ControlRatio {
    /// The ratio of each start of servers.
    pub starts: Vec<f64>,
    /// Why there is no verdict: a gate forbids it, or starts are too few.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_verdict: Option<String>,
    /// See [`Outcome::bias`](super::Outcome).
    #[serde(default, skip_serializing_if = "super::is_none")]
    pub bias: f64,
}

/// The ratios of each cell by measure, as far as any run has the measure; none of the control itself.
pub(crate) fn over_control(
    experiment: &Experiment,
    runs: &[Run],
) -> Vec<BTreeMap<String, ControlRatio>> {
    let lasting = StartSpans::of(experiment);
    let passes = Passes::of(experiment, runs);
    let is_measured = |name: &&str| runs.iter().any(|run| run.measures.contains_key(*name));
    let measured: Vec<&str> = MEASURES.into_iter().filter(is_measured).collect();
    let ratio = |cell: usize, name: &str| {
        let claim = claim(experiment, cell, Measure::parse(name).ok()?);
        let estimate = passes.estimate(experiment, &lasting, (&claim, &claim.cases[0]));
        let outcome = estimate.finish(true, 1);
        let ratio = ControlRatio {
            without_verdict: outcome.without_verdict().map(str::to_owned),
            bias: outcome.bias,
            starts: outcome.starts,
        };
        Some((name.to_owned(), ratio))
    };
    let of_cell = |cell| {
        if cell == experiment.control {
            BTreeMap::new()
        } else {
            measured
                .iter()
                .filter_map(|name| ratio(cell, name))
                .collect()
        }
    };
    (0..experiment.cells.len()).map(of_cell).collect()
}

/// A claim that compares a cell with the control, as a file would have it.
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

/// Measures of servers by themselves say the same again.
const MEASURES: [&str; 5] = ["cpu", MEMORY, "p99", SYSCALLS, THROUGHPUT];
