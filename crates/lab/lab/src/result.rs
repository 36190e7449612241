//! The result of an experiment as a JSON document: everything that a report shows.

mod answer;
mod over_time;
mod published;
mod stored;

use std::collections::BTreeMap;

use catamaran_stats::Spread;
use serde::{Deserialize, Serialize};

pub use self::answer::answer;
pub use self::over_time::{OverTime, Values};
pub(crate) use self::published::CALLS_MIN;
pub use self::stored::{PrintedRun, StoredResult};
use crate::claim::{
    ControlRatio, Outcome, StoredRounds, Verdict, evaluate, evaluate_again, of_rounds, over_control,
};
use crate::experiment::{
    Claim, Experiment, Factor, Levels, OriginalRun, PublishedRatio, Selection,
};
use crate::gate::{self, Effect, GateFinding};
use crate::host::Host;
use crate::measure::Measure;
use crate::run::{MemoryCount, Run, ServerRecord};

/// The version of the keys' meanings.
pub const SCHEMA: &str = "catamaran-lab/1";

/// A result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultDocument {
    /// [`SCHEMA`].
    pub schema: String,
    /// The experiment's name.
    pub name: String,
    /// The experiment's question.
    pub question: String,
    /// The publication that it repeats.
    pub source: String,
    /// A note on these runs by the person who made them.
    #[serde(default)]
    pub note: String,
    /// The answer in one sentence.
    pub answer: String,
    /// Whether it was the short form, of which all claims are exploratory.
    pub is_quick: bool,
    /// Whether it was the published form, which has the cells and claims of the source alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_published: bool,
    /// Whether all rounds were made.
    pub is_complete: bool,
    /// Rounds that have begun.
    pub rounds: usize,
    /// The seed of the orders of cells.
    pub seed: u64,
    /// The machine that it ran on.
    pub host: Host,
    /// The cell that the others are set beside.
    #[serde(default)]
    pub control: usize,
    /// The factors.
    pub factors: Vec<Factor>,
    /// The result of each cell.
    pub cells: Vec<CellResult>,
    /// The result of each claim in each of its cases.
    pub claims: Vec<Outcome>,
    /// Gates that fired.
    pub gates: Vec<GateResult>,
    /// Gates that were looked at and did not fire.
    pub passed: Vec<String>,
    /// The published figures, beside ours.
    pub published: Vec<PublishedResult>,
    /// Published runs that were made once as they were: theirs and ours.
    #[serde(default)]
    pub as_published: Vec<AsPublishedResult>,
    /// The servers of the first run.
    pub servers: Vec<ServerRecord>,
    /// Which start of servers each round has, the first being 0: rounds that share a start of any server have the same.
    /// Empty of a result by an older version, whose claims counted rounds.
    #[serde(default)]
    pub starts: Vec<usize>,
    /// The way in which memory was counted.
    #[serde(default)]
    pub memory: MemoryCount,
    /// The cells of each round in the order in which they were run.
    pub orders: Vec<Vec<usize>>,
    /// CPU time of the lab by that of servers and load, the worst of all runs.
    pub own_cost: Option<f64>,
}

/// The result of one cell: the measures of its valid runs, and how many runs were void.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// Its levels.
    pub levels: Levels,
    /// The levels that differ between cells, in words.
    pub label: String,
    /// Whether it was looked at in the screen alone.
    #[serde(default)]
    pub screened: bool,
    /// Valid runs.
    pub runs: usize,
    /// Void ones.
    pub void: usize,
    /// The measures of valid runs, by name.
    pub measures: BTreeMap<String, MeasureResult>,
    /// The ratios of its measures to the control's, with gates and void runs as claims have them. Empty of the control,
    /// and of a result by an older version.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub over_control: BTreeMap<String, ControlRatio>,
    /// Calls of each server for one request, the mean of valid runs.
    pub calls: BTreeMap<String, BTreeMap<String, f64>>,
    /// The longest request of all valid runs, in milliseconds; no claim is made on it.
    pub max_ms: Option<f64>,
    /// A run of it second by second; `None` where the runs' samples were not at hand, and of
    /// committed results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_time: Option<OverTime>,
    /// The standard deviation of all their requests' latencies, in milliseconds; nor on that.
    #[serde(default)]
    pub stddev_ms: Option<f64>,
    /// The 5th and the 95th percentile of the answers in a second, of all valid runs.
    #[serde(default)]
    pub by_second: Option<[f64; 2]>,
}

/// A measure of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasureResult {
    /// Its unit.
    pub unit: String,
    /// The middle value.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// The standard deviation; `None` of one value.
    pub stddev: Option<f64>,
    /// The value of each round, in order of rounds.
    pub values: Vec<f64>,
    /// The rounds that they are of, counted from 0.
    #[serde(default)]
    pub rounds: Vec<usize>,
}

/// A gate that fired.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateResult {
    /// Its name.
    pub gate: String,
    /// The effect of the gate.
    pub effect: Effect,
    /// On how many runs.
    pub runs: usize,
    /// The words of its first finding.
    pub words: String,
    /// The cell of that finding.
    pub cell: String,
}

/// A published run beside ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishedResult {
    /// The name of its text, or what its table is about.
    pub name: String,
    /// The levels that it had.
    pub cell: Levels,
    /// Whether it was the only run or the best of several.
    pub how: Selection,
    /// The published figures, in words.
    pub says: String,
    /// Conclusions that it does not support.
    pub found: Vec<GateFinding>,
    /// Our figures for the cell.
    pub ours: Option<String>,
    /// The published ratio, of a row that compares two runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<PublishedRatio>,
    /// Each system call for one request, of a table of system calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallResult>,
}

/// A system call for one request, there and here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallResult {
    /// Its name.
    pub name: String,
    /// The calls for one request in the published table.
    pub theirs: f64,
    /// The published calls that failed.
    pub failed: f64,
    /// The calls for one request in our cell: the mean of valid runs.
    pub ours: f64,
}

/// A published run beside the same run here. No claim is on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AsPublishedResult {
    /// The name of the published text.
    pub name: String,
    /// The published output.
    pub theirs: String,
    /// The output here.
    pub ours: String,
    /// The ways in which it differs from the published run.
    pub deviations: Vec<String>,
    /// The figures that the rounds have for the same cell; `None` if they do not have it.
    #[serde(default)]
    pub rounds: Option<String>,
}

impl ResultDocument {
    /// The result of the runs of a directory.
    #[must_use]
    pub fn of(stored: &StoredResult, is_complete: bool) -> Self {
        let StoredResult {
            experiment,
            host,
            servers,
            runs,
            ..
        } = stored;
        let claims = evaluate(experiment, runs);
        let control = experiment.cells.get(experiment.control);
        let subject = control.filter(|_| !experiment.source.is_empty());
        let rounds = runs.iter().map(|run| run.round + 1).max().unwrap_or(0);
        let over_control = over_control(experiment, runs).into_iter().enumerate();
        let cells: Vec<CellResult> = over_control
            .map(|(cell, over_control)| CellResult {
                over_control,
                ..cell_result(experiment, cell, runs)
            })
            .collect();
        let gates = gates(experiment, runs);
        let has_fired = |name: &&str| gates.iter().any(|gate| gate.gate == *name);
        let applies = |name: &&str| runs.iter().any(|run| gate::applies(name, &run.facts));
        let mut passed = gate::run_gates();
        passed.retain(|name| !has_fired(name) && applies(name));
        Self {
            schema: SCHEMA.to_owned(),
            name: experiment.name.clone(),
            question: experiment.question.clone(),
            source: experiment.source.clone(),
            note: stored.note.clone(),
            answer: answer(&claims, subject),
            is_quick: experiment.is_quick,
            is_published: experiment.is_published,
            is_complete,
            rounds,
            starts: of_rounds(experiment, rounds, runs),
            memory: memory_count(runs),
            seed: experiment.seed,
            host: host.clone(),
            control: experiment.control,
            factors: experiment.factors.clone(),
            passed: passed.into_iter().map(str::to_owned).collect(),
            published: published::results(experiment, &cells, &claims),
            as_published: published::again(stored, &cells),
            servers: servers.clone(),
            orders: orders(runs),
            own_cost: runs
                .iter()
                .filter_map(|run| run.facts.machine.as_ref()?.own_cost)
                .reduce(f64::max),
            cells,
            claims,
            gates,
        }
    }
}

impl ResultDocument {
    /// Applies today's rules: evaluates claims of an older version again, and renews the remarks on published figures
    /// and the answer. `experiment` is the one that the result is of.
    pub(crate) fn by_todays_rules(mut self, experiment: &Experiment) -> Self {
        if self.starts.is_empty() {
            self.claims = self.claims_again(experiment);
            self.starts = of_rounds(experiment, self.rounds, &[]);
        }
        for outcome in &mut self.claims {
            let is_it = |claim: &&Claim| claim.says == outcome.says;
            if let Some(claim) = experiment.claims.iter().find(is_it) {
                outcome.published = claim.published_of(&outcome.each);
            }
        }
        let cells = self.cells.iter().map(|cell| &cell.levels);
        if experiment.cells.iter().eq(cells) {
            self.published = published::results(experiment, &self.cells, &self.claims);
        }
        for run in &mut self.as_published {
            let is_it = |it: &&OriginalRun| it.name == run.name;
            if let Some(today) = experiment.as_published.iter().find(is_it) {
                run.deviations.clone_from(&today.deviations);
            }
        }
        self.answer = answer(&self.claims, self.subject());
        self
    }

    /// The claims by today's rules, drawn from what the cells have of each round.
    pub(crate) fn claims_again(&self, experiment: &Experiment) -> Vec<Outcome> {
        let stored = StoredRounds {
            claims: &self.claims,
            runs: self.runs_of_cells(experiment),
            rounds: self.rounds,
            memory: self.memory,
        };
        evaluate_again(experiment, &stored)
    }

    /// Runs with the values of the cells, by the experiment's numbers of cells.
    fn runs_of_cells(&self, experiment: &Experiment) -> Vec<Run> {
        let mut runs: BTreeMap<(usize, usize), Run> = BTreeMap::new();
        for cell in &self.cells {
            let Some(number) = experiment.cells.iter().position(|it| *it == cell.levels) else {
                continue;
            };
            for (name, measure) in &cell.measures {
                for (round, value) in measure.rounds.iter().zip(&measure.values) {
                    let run = runs.entry((number, *round)).or_insert_with(|| Run {
                        cell: number,
                        levels: cell.levels.clone(),
                        round: *round,
                        memory: self.memory,
                        ..Run::default()
                    });
                    run.measures.insert(name.clone(), *value);
                }
            }
        }
        runs.into_values().collect()
    }

    /// The levels of what the source was about; `None` if nothing is repeated.
    #[must_use]
    pub fn subject(&self) -> Option<&Levels> {
        let control = self.cells.get(self.control);
        control
            .filter(|_| !self.source.is_empty())
            .map(|it| &it.levels)
    }
}

/// The way in which the memory of all runs was counted; proportional if any run's was.
fn memory_count(runs: &[Run]) -> MemoryCount {
    let mut counts = runs.iter().map(|run| run.memory);
    counts
        .find(|count| *count == MemoryCount::Proportional)
        .unwrap_or(MemoryCount::Allocated)
}

fn cell_result(experiment: &Experiment, cell: usize, runs: &[Run]) -> CellResult {
    let of_cell = || runs.iter().filter(|run| run.cell == cell);
    let valid: Vec<&Run> = of_cell().filter(|run| run.is_valid()).collect();
    let mut names: Vec<&String> = valid.iter().flat_map(|run| run.measures.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let measure = |name: &String| {
        let values = valid
            .iter()
            .filter_map(|run| Some((run.round, run.measures.get(name).copied()?)));
        let (rounds, values): (Vec<usize>, Vec<f64>) = values.unzip();
        let spread = Spread::of(&values)?;
        let result = MeasureResult {
            unit: Measure::parse(name)
                .map_or("", |measure| measure.unit())
                .to_owned(),
            median: spread.median,
            min: spread.min,
            max: spread.max,
            stddev: (values.len() > 1).then_some(spread.stddev),
            values,
            rounds,
        };
        Some((name.clone(), result))
    };
    let latencies = valid
        .iter()
        .filter_map(|run| Some(run.facts.latency_ms?.max));
    let screened = of_cell().all(|run| run.round < experiment.screened()) && !valid.is_empty();
    let label = experiment.label(cell);
    CellResult {
        levels: experiment.cells[cell].clone(),
        label: if screened {
            label + " (screened)"
        } else {
            label
        },
        screened,
        runs: valid.len(),
        void: of_cell().count() - valid.len(),
        measures: names.into_iter().filter_map(measure).collect(),
        over_control: BTreeMap::new(),
        calls: calls(&valid),
        max_ms: latencies.reduce(f64::max),
        over_time: None,
        stddev_ms: deviation(&valid),
        by_second: by_second(&valid),
    }
}

/// The standard deviation of all requests of all runs. `None` if a run has none.
fn deviation(runs: &[&Run]) -> Option<f64> {
    let of_run = |run: &&Run| {
        let latency = run.facts.latency_ms?;
        Some((run.facts.completed as f64, latency.mean, latency.stddev?))
    };
    let all = runs.iter().map(of_run).collect::<Option<Vec<_>>>()?;
    let sum = |part: &dyn Fn(&(f64, f64, f64)) -> f64| all.iter().map(part).sum::<f64>();
    let count = sum(&|(count, ..)| *count);
    let mean = sum(&|(count, mean, _)| count * mean) / count;
    let within = sum(&|(count, _, deviation)| count * deviation.powi(2));
    let between = sum(&|(count, of_run, _)| count * (of_run - mean).powi(2));
    (count > 0.0).then(|| ((within + between) / count).sqrt())
}

/// The 5th and the 95th percentile of the answers in each second of the runs.
fn by_second(runs: &[&Run]) -> Option<[f64; 2]> {
    let seconds = runs.iter().flat_map(|run| &run.seconds);
    let mut rates: Vec<u64> = seconds.map(|second| second.completed).collect();
    rates.sort_unstable();
    let last = rates.len().checked_sub(1)?;
    let at = |share: f64| rates[(last as f64 * share).round() as usize] as f64;
    Some([at(0.05), at(0.95)])
}

/// The mean number of calls for a request.
fn calls(runs: &[&Run]) -> BTreeMap<String, BTreeMap<String, f64>> {
    let mut sums: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
    for (server, counts) in runs.iter().flat_map(|run| &run.calls) {
        for (call, count) in counts {
            let sum = sums
                .entry(server.clone())
                .or_default()
                .entry(call.clone())
                .or_default();
            *sum += count / runs.len() as f64;
        }
    }
    sums
}

/// Gates that fired on runs, those that void them first.
fn gates(experiment: &Experiment, runs: &[Run]) -> Vec<GateResult> {
    let mut gates: Vec<GateResult> = Vec::new();
    for run in runs {
        for fired in &run.gates {
            if let Some(known) = gates.iter_mut().find(|gate| gate.gate == fired.gate) {
                known.runs += 1;
                continue;
            }
            gates.push(GateResult {
                gate: fired.gate.clone(),
                effect: fired.effect,
                runs: 1,
                words: fired.words.clone(),
                cell: experiment.label(run.cell),
            });
        }
    }
    gates.sort_by_key(|gate| gate.effect as u8);
    gates
}

fn orders(runs: &[Run]) -> Vec<Vec<usize>> {
    let mut orders: Vec<Vec<usize>> = Vec::new();
    for run in runs.iter().filter(|run| run.attempt == 0) {
        if orders.len() <= run.round {
            orders.resize(run.round + 1, Vec::new());
        }
        orders[run.round].push(run.cell);
    }
    orders
}

impl Verdict {
    /// One word for tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Differs | Self::DiffersLittle => "differs",
            Self::Suggests => "suggests",
            Self::Same => "same",
            Self::NotShown => "not shown",
            Self::TooFew => "too few",
            Self::NoClaim => "no claim",
        }
    }
}
