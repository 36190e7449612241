//! The result of an experiment as a JSON document, with everything that a report shows.

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
use crate::experiment::{Experiment, Factor, Layout, Levels, PublishedRatio, Selection};
use crate::gate::{self, Effect, GateFinding};
use crate::host::Host;
use crate::measure::Measure;
use crate::run::{MemoryCount, Run, ServerRecord};

/// The schema of the document, with the version of its keys.
pub const SCHEMA: &str = "catamaran-lab/1";

/// The result of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultDocument {
    /// The schema of the document: [`SCHEMA`].
    pub schema: String,
    /// The experiment's name.
    pub name: String,
    /// The experiment's question.
    pub question: String,
    /// The publication that the experiment repeats; empty if there is none.
    pub source: String,
    /// A note on these runs by the person who made them; empty if there is none.
    #[serde(default)]
    pub note: String,
    /// The answer to the question in one sentence.
    pub answer: String,
    /// Whether the short form ran, whose claims are only exploratory.
    pub is_quick: bool,
    /// Whether the published form ran, which has only the cells and claims of the source.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_published: bool,
    /// Whether all cells were up at once, and measured in blocks in turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_duel: bool,
    /// Whether all rounds were made.
    pub is_complete: bool,
    /// The number of rounds that have begun.
    pub rounds: usize,
    /// The seed of the random orders of cells.
    pub seed: u64,
    /// The machine on which the experiment ran.
    pub host: Host,
    /// The number of the cell with which the others are compared.
    #[serde(default)]
    pub control: usize,
    /// Which programs shared a core, and what was the limit in the source; `None`: the experiment's file did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
    /// The factors with their levels.
    pub factors: Vec<Factor>,
    /// The result of each cell.
    pub cells: Vec<CellResult>,
    /// The result of each claim in each of its cases.
    pub claims: Vec<Outcome>,
    /// The gates that fired on runs.
    pub gates: Vec<GateResult>,
    /// The names of gates that were checked and did not fire.
    pub passed: Vec<String>,
    /// The published figures, each beside ours.
    pub published: Vec<PublishedResult>,
    /// Published runs that were made once in their original form: their output and ours.
    #[serde(default)]
    pub as_published: Vec<AsPublishedResult>,
    /// The servers of all runs, each name and kind once: versions, commands and settings.
    pub servers: Vec<ServerRecord>,
    /// For each round, which start of servers it has, numbered from 0: rounds that share a start of
    /// any server have the same number. Empty in a result by an older version, whose claims counted
    /// rounds.
    #[serde(default)]
    pub starts: Vec<usize>,
    /// How the memory of servers was counted.
    #[serde(default)]
    pub memory: MemoryCount,
    /// The cells of each round in the order in which they were run.
    pub orders: Vec<Vec<usize>>,
    /// The largest CPU time of the lab in any run, divided by that of servers and load; `None`: not known.
    pub own_cost: Option<f64>,
}

/// The result of one cell: the measures of its valid runs, and the number of void ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// The levels of the cell.
    pub levels: Levels,
    /// The levels of the cell that differ between cells, in words.
    pub label: String,
    /// Whether the cell took part in the screen alone.
    #[serde(default)]
    pub screened: bool,
    /// The number of valid runs.
    pub runs: usize,
    /// The number of void runs.
    pub void: usize,
    /// The measures of valid runs, by name.
    pub measures: BTreeMap<String, MeasureResult>,
    /// The ratios of its measures to the control's, with gates and void runs as for claims. Empty
    /// for the control, and in a result by an older version.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub over_control: BTreeMap<String, ControlRatio>,
    /// The number of each system call for one request, by server: the mean of valid runs.
    pub calls: BTreeMap<String, BTreeMap<String, f64>>,
    /// The longest request of all valid runs, in milliseconds. No claim is made on it. `None`: not known.
    pub max_ms: Option<f64>,
    /// The cell's median run, second by second; `None` where the samples of runs are missing, as in committed results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_time: Option<OverTime>,
    /// The standard deviation of the latencies of all requests, in milliseconds. No claim is made
    /// on it. `None`: not known.
    #[serde(default)]
    pub stddev_ms: Option<f64>,
    /// The 5th and the 95th percentile of the number of responses per second, over the seconds of all valid runs.
    #[serde(default)]
    pub by_second: Option<[f64; 2]>,
}

/// The values of one measure in one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasureResult {
    /// The unit of the measure.
    pub unit: String,
    /// The median of the runs' values.
    pub median: f64,
    /// The smallest value of a run.
    pub min: f64,
    /// The largest value of a run.
    pub max: f64,
    /// The standard deviation; `None` for a single value.
    pub stddev: Option<f64>,
    /// The value of each valid run, in the order of rounds.
    pub values: Vec<f64>,
    /// The rounds of these values, counted from 0.
    #[serde(default)]
    pub rounds: Vec<usize>,
}

/// A gate that fired, on one or several runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateResult {
    /// The name of the gate.
    pub gate: String,
    /// The effect of the gate.
    pub effect: Effect,
    /// The number of runs on which the gate fired.
    pub runs: usize,
    /// The words of the gate's first finding.
    pub words: String,
    /// The cell of the first finding.
    pub cell: String,
}

/// A published figure with ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishedResult {
    /// The name of the published text, or the subject of the table.
    pub name: String,
    /// The levels of the published run.
    pub cell: Levels,
    /// How the publication selected the run: whether it was the only run or the best of several.
    pub how: Selection,
    /// The published figures as a text.
    pub says: String,
    /// The conclusions that the published figures do not support.
    pub found: Vec<GateFinding>,
    /// Our figures for the same cell, in words; `None` if there are none.
    pub ours: Option<String>,
    /// The published ratio of a row that compares two runs; `None` for other rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<PublishedRatio>,
    /// The system calls for one request, if it is a table of system calls; else empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallResult>,
}

/// One system call for one request, published and here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallResult {
    /// The name of the call.
    pub name: String,
    /// The number of calls for one request in the published table.
    pub theirs: f64,
    /// The number of published calls for one request that failed.
    pub failed: f64,
    /// The number of calls for one request in our cell: the mean of valid runs.
    pub ours: f64,
}

/// The output of a published run, and that of the same run here. No claim is made on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AsPublishedResult {
    /// The name of the published text.
    pub name: String,
    /// The published output of ab.
    pub theirs: String,
    /// The output of the same run, made here.
    pub ours: String,
    /// The ways in which the run here differs from the published one.
    pub deviations: Vec<String>,
    /// The figures of the rounds for the same cell; `None` if they do not have that cell.
    #[serde(default)]
    pub rounds: Option<String>,
}

impl ResultDocument {
    /// Makes the result of the runs in a directory.
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
        let subject = experiment.subject();
        let rounds = runs.iter().map(|run| run.round + 1).max().unwrap_or(0);
        let mut cells = Vec::new();
        for (cell, over_control) in over_control(experiment, runs).into_iter().enumerate() {
            cells.push(CellResult {
                over_control,
                ..cell_result(experiment, cell, runs)
            });
        }
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
            is_duel: experiment.is_duel,
            is_complete,
            rounds,
            starts: of_rounds(experiment, rounds, runs),
            memory: memory_count(runs),
            seed: experiment.seed,
            host: host.clone(),
            control: experiment.control,
            layout: experiment.layout.clone(),
            factors: experiment.factors.clone(),
            passed: passed.into_iter().map(str::to_owned).collect(),
            published: published::results(experiment, &cells, &claims),
            as_published: published::repeated_runs(stored, &cells),
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
    /// Applies today's rules to the result: evaluates claims of an older version again, and renews
    /// the remarks on published figures and the answer. `experiment` is the result's own.
    pub(crate) fn by_todays_rules(mut self, experiment: &Experiment) -> Self {
        // Claims of an older rule do not say how many their question has, so that the number is 0.
        if self.claims.iter().any(|claim| claim.question == 0) {
            self.claims = self.claims_again(experiment);
        }
        if self.starts.is_empty() {
            // Without runs, starts are those that the experiment's file plans.
            self.starts = of_rounds(experiment, self.rounds, &[]);
        }
        for outcome in &mut self.claims {
            let mut claims = experiment.claims.iter();
            if let Some(claim) = claims.find(|claim| claim.says == outcome.says) {
                outcome.published = claim.published_of(&outcome.each);
            }
        }
        // The published figures name cells by their numbers.
        let cells = self.cells.iter().map(|cell| &cell.levels);
        if experiment.cells.iter().eq(cells) {
            self.published = published::results(experiment, &self.cells, &self.claims);
        }
        for run in &mut self.as_published {
            let mut original_runs = experiment.as_published.iter();
            if let Some(original) = original_runs.find(|original| original.name == run.name) {
                run.deviations.clone_from(&original.deviations);
            }
        }
        self.answer = answer(&self.claims, self.subject());
        self
    }

    /// Evaluates the claims by today's rules from the values that the cells have for each round.
    pub(crate) fn claims_again(&self, experiment: &Experiment) -> Vec<Outcome> {
        let stored = StoredRounds {
            claims: &self.claims,
            runs: self.runs_of_cells(experiment),
            rounds: self.rounds,
            memory: self.memory,
        };
        evaluate_again(experiment, &stored)
    }

    /// Runs with the values of the cells; cells are numbered as in the experiment.
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

    /// The levels that the source is about; `None` if the experiment repeats no publication.
    #[must_use]
    pub fn subject(&self) -> Option<&Levels> {
        if self.source.is_empty() {
            return None;
        }
        Some(&self.cells.get(self.control)?.levels)
    }
}

/// How the memory of all runs was counted: proportionally if it was so in any run.
fn memory_count(runs: &[Run]) -> MemoryCount {
    let mut counts = runs.iter().map(|run| run.memory);
    counts
        .find(|count| *count == MemoryCount::Proportional)
        .unwrap_or(MemoryCount::Allocated)
}

/// The result of a cell: the spread of each measure over its valid runs.
fn cell_result(experiment: &Experiment, cell: usize, runs: &[Run]) -> CellResult {
    let of_cell = || runs.iter().filter(|run| run.cell == cell);
    let valid: Vec<&Run> = of_cell().filter(|run| run.is_valid()).collect();
    let mut names: Vec<&String> = valid.iter().flat_map(|run| run.measures.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let measure = |name: &String| Some((name.clone(), measure_result(name, &valid)?));
    let latencies = valid.iter().filter_map(|run| run.facts.latency_ms);
    let screened = of_cell().all(|run| run.round < experiment.screened()) && !valid.is_empty();
    let mut label = experiment.label(cell);
    if screened {
        label += " (screened)";
    }
    CellResult {
        levels: experiment.cells[cell].clone(),
        label,
        screened,
        runs: valid.len(),
        void: of_cell().count() - valid.len(),
        measures: names.into_iter().filter_map(measure).collect(),
        over_control: BTreeMap::new(),
        calls: calls(&valid),
        max_ms: latencies.map(|latency| latency.max).reduce(f64::max),
        over_time: None,
        stddev_ms: deviation(&valid),
        by_second: by_second(&valid),
    }
}

/// The values of the measure `name` in the runs that have it; `None` if none has.
fn measure_result(name: &str, runs: &[&Run]) -> Option<MeasureResult> {
    let (mut rounds, mut values) = (Vec::new(), Vec::new());
    for run in runs {
        if let Some(value) = run.measures.get(name) {
            rounds.push(run.round);
            values.push(*value);
        }
    }
    let spread = Spread::of(&values)?;
    Some(MeasureResult {
        unit: Measure::parse(name)
            .map_or("", |measure| measure.unit())
            .to_owned(),
        median: spread.median,
        min: spread.min,
        max: spread.max,
        stddev: (values.len() > 1).then_some(spread.stddev),
        values,
        rounds,
    })
}

/// The standard deviation of the latencies of all requests of all runs; `None` if a run does not have it.
fn deviation(runs: &[&Run]) -> Option<f64> {
    // The deviation of all requests follows from the deviations within the runs, and that of the runs' means.
    let (mut count, mut sum, mut within) = (0.0_f64, 0.0_f64, 0.0_f64);
    for run in runs {
        let latency = run.facts.latency_ms?;
        let requests = run.facts.completed as f64;
        count += requests;
        sum += requests * latency.mean;
        within += requests * latency.stddev?.powi(2);
    }
    let mean = sum / count;
    let mut between = 0.0;
    for run in runs {
        let difference = run.facts.latency_ms?.mean - mean;
        between += run.facts.completed as f64 * difference.powi(2);
    }
    (count > 0.0).then(|| ((within + between) / count).sqrt())
}

/// The 5th and the 95th percentile of the number of responses in each second of the runs.
fn by_second(runs: &[&Run]) -> Option<[f64; 2]> {
    let seconds = runs.iter().flat_map(|run| &run.seconds);
    let mut rates: Vec<u64> = seconds.map(|second| second.completed).collect();
    rates.sort_unstable();
    let last = rates.len().checked_sub(1)?;
    let percentile = |share: f64| rates[(last as f64 * share).round() as usize] as f64;
    Some([percentile(0.05), percentile(0.95)])
}

/// The mean number of each system call for one request, by server.
fn calls(runs: &[&Run]) -> BTreeMap<String, BTreeMap<String, f64>> {
    let mut sums: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
    for (server, counts) in runs.iter().flat_map(|run| &run.calls) {
        let of_server = sums.entry(server.clone()).or_default();
        for (call, count) in counts {
            let sum = of_server.entry(call.clone()).or_default();
            // A run without the call counts as 0.
            *sum += count / runs.len() as f64;
        }
    }
    sums
}

/// The gates that fired on runs; those that void runs first.
fn gates(experiment: &Experiment, runs: &[Run]) -> Vec<GateResult> {
    let mut gates: Vec<GateResult> = Vec::new();
    for run in runs {
        for (number, fired) in run.gates.iter().enumerate() {
            // Several causes of one gate are one run.
            let mut before = run.gates[..number].iter();
            if before.any(|other| other.gate == fired.gate) {
                continue;
            }
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
    // Effects are declared from the strongest to the weakest.
    gates.sort_by_key(|gate| gate.effect as u8);
    gates
}

/// The cells of each round in the order of their first attempts.
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
    /// The verdict as one word, for tables.
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
