//! Plans of experiments on servers that do not differ: how often a difference is shown.

use std::collections::{BTreeMap, BTreeSet};
use std::f64::consts::TAU;
use std::hash::{DefaultHasher, Hash, Hasher};

use catamaran_stats::order;

use super::starts::Lasting;
use super::{LEVEL, Verdict, evaluate_starts};
use crate::builtin;
use crate::experiment::{Experiment, ServerOf};
use crate::run::{MemoryCount, Run};

/// A claim beside so many others is held at 5 % for a whole experiment, so 2 of 40 are expected at most; more than 6 are
/// as rare as one in 300.
#[test]
fn no_simulated_plan_shows_differences_that_are_not_there() {
    let mut all = 0;
    for name in builtin::names() {
        let mut experiment = builtin::experiment(name, false).unwrap();
        // What a screen leaves out is not looked at here.
        experiment.screen = None;
        let (servers, lasting) = (servers(&experiment), Lasting::of(&experiment));
        let is_false = |seed: &u64| {
            let runs = runs(&experiment, &servers, *seed);
            let outcomes = evaluate_starts(&experiment, &lasting, &runs);
            outcomes.iter().any(|outcome| is_shown(outcome.verdict))
        };
        let shown = (0..TIMES).filter(is_false).count();
        assert!(shown <= 6, "{name}: {shown} of {TIMES}");
        all += shown;
    }
    assert!(all <= 30, "{all} of {}", TIMES * 15);
}

/// The plan of `io-models` with starts in every third round: rounds as the sample show what is not there
/// in every fourth experiment, starts in none.
#[test]
fn simulated_rounds_that_share_a_start_are_no_sample() {
    let text = include_str!("../../experiments/io-models.toml");
    let text = text.replacen("core = 1\n", "core = 1\nrestart = 3\n", 1);
    let mut experiment = Experiment::read("io-models.toml", &text, false).unwrap();
    experiment.rounds = 15;
    let (servers, lasting) = (servers(&experiment), Lasting::of(&experiment));
    let (mut by_rounds, mut by_starts) = (0, 0);
    for seed in 0..TIMES {
        let runs = runs(&experiment, &servers, seed);
        let outcomes = evaluate_starts(&experiment, &lasting, &runs);
        let p: Vec<f64> = outcomes
            .iter()
            .map(|it| order::sign_test(&it.ratios))
            .collect();
        by_rounds += u64::from(order::holm(&p, LEVEL).contains(&true));
        by_starts += u64::from(outcomes.iter().any(|it| is_shown(it.verdict)));
    }
    assert!(by_rounds * 5 > TIMES, "{by_rounds} of {TIMES}");
    assert_eq!(by_starts, 0);
}

fn is_shown(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Differs | Verdict::DiffersLittle)
}

/// The servers of each cell.
fn servers(experiment: &Experiment) -> Vec<Vec<ServerOf>> {
    let cells = 0..experiment.cells.len();
    cells.map(|cell| experiment.servers_of(cell)).collect()
}

/// Runs whose measures differ by their servers' starts and by themselves alone.
fn runs(experiment: &Experiment, servers: &[Vec<ServerOf>], seed: u64) -> Vec<Run> {
    let measures = experiment.claims.iter().map(|claim| claim.measure.name());
    let measures: BTreeSet<&str> = measures.collect();
    let all =
        (0..experiment.rounds).flat_map(|round| (0..servers.len()).map(move |it| (round, it)));
    let run = |(round, cell): (usize, usize)| {
        let starts = servers[cell].iter();
        let starts: Vec<u64> = starts
            .map(|server| hash(&start(experiment, (cell, server), round)))
            .collect();
        let value = |name: &&str| {
            let of_run = OF_RUNS * normal((seed, name, hash(&(cell, round))));
            let of_start = starts.iter();
            let of_start = of_start.map(|start| OF_STARTS * normal((seed, name, *start)));
            let sum: f64 = of_start.sum();
            ((*name).to_owned(), (sum + of_run).exp() * 100.0)
        };
        Run {
            cell,
            levels: experiment.cells[cell].clone(),
            round,
            memory: MemoryCount::Allocated,
            measures: measures.iter().map(value).collect::<BTreeMap<_, _>>(),
            ..Run::default()
        }
    };
    all.map(run).collect()
}

/// What tells a start of a server from others: cells that share it have the same.
fn start<'a>(
    experiment: &'a Experiment,
    of: (usize, &'a ServerOf),
    round: usize,
) -> (Vec<String>, &'a str, Vec<(String, String)>, usize) {
    let (cell, server) = of;
    let levels = &experiment.cells[cell];
    let shared = levels
        .iter()
        .filter(|(name, _)| !experiment.is_nested() || experiment.nest.contains(name));
    let shared = shared.map(|(_, level)| level.to_string()).collect();
    let block = round.checked_div(server.rounds).unwrap_or(round);
    (shared, &server.name, server.set.clone(), block)
}

/// A number of the normal distribution for each key (Box and Muller), always the same one.
fn normal(key: (u64, &str, u64)) -> f64 {
    let key = hash(&key);
    let uniform = |which: u8| ((hash(&(key, which)) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    (-2.0 * uniform(0).ln()).sqrt() * (TAU * uniform(1)).cos()
}

fn hash(key: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

/// The deviation of what a start brings, as a share.
const OF_STARTS: f64 = 0.05;

/// The deviation of runs of one start.
const OF_RUNS: f64 = 0.02;

/// Experiments for each plan. All seeds are fixed.
const TIMES: u64 = 40;
