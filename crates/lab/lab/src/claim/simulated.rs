//! Simulates experiments on servers that do not differ, and counts how often a difference is shown.

mod busy;

use std::collections::{BTreeMap, BTreeSet};
use std::f64::consts::TAU;
use std::hash::{DefaultHasher, Hash, Hasher};

use catamaran_stats::looks::{SpentLevel, looks};

use super::rule::{Contender, Question};
use super::starts::StartSpans;
use super::{CaseSubject, Outcome, Runs, Verdict, bias, evaluate_starts, moved, rule};
use crate::builtin;
use crate::experiment::{CellServer, Contrast, Experiment};
use crate::facts::{LatencyFacts, MachineFacts};
use crate::gate;
use crate::measure::{Measure, THROUGHPUT};
use crate::run::{MemoryCount, Run};

/// Servers that do not differ: at most 5 % of questions may show a difference. Of the 40 of an experiment's question that
/// is 2, and more than 8 are as rare as one in 5,000; all together they are near 5 %, or below it.
#[test]
fn no_simulated_plan_shows_differences_that_are_not_there() {
    let (mut all, mut asked) = (0, 0);
    for name in builtin::names() {
        let mut experiment = builtin::experiment(name, false).unwrap();
        // What a screen leaves out is not looked at here.
        experiment.screen = None;
        let (servers, start_spans) = (servers(&experiment), StartSpans::of(&experiment));
        let mut shown: BTreeMap<&str, u64> = BTreeMap::new();
        for seed in 0..TIMES {
            let runs = runs(&experiment, &servers, seed);
            let outcomes = evaluate_starts(&experiment, &start_spans, &runs);
            for (question, is_false) in questions(&outcomes) {
                *shown.entry(question).or_default() += u64::from(is_false);
            }
        }
        assert!(
            shown.values().all(|shown| *shown <= 8),
            "{name}: {shown:?} of {TIMES}"
        );
        all += shown.values().sum::<u64>();
        asked += shown.len() as u64 * TIMES;
    }
    println!("{all} of {asked} questions");
    assert!(all * 100 <= asked * 6, "{all} of {asked}");
}

/// The questions of an experiment, and whether any of their claims is shown.
fn questions(outcomes: &[Outcome]) -> BTreeMap<&'static str, bool> {
    let mut questions = BTreeMap::new();
    for outcome in outcomes {
        *questions.entry(outcome.measure.base()).or_default() |= is_shown(outcome.verdict);
    }
    questions
}

/// The plan of `io-models` with starts in every third round: with rounds as the sample every fifth experiment shows a
/// difference in CPU time that does not exist, with starts none does.
#[test]
fn simulated_rounds_that_share_a_start_are_no_sample() {
    let text = include_str!("../../experiments/io-models.toml");
    let text = text.replacen("core = 1\n", "core = 1\nrestart = 3\n", 1);
    let mut experiment = Experiment::read("io-models.toml", &text, false).unwrap();
    experiment.rounds = 15;
    let (servers, start_spans) = (servers(&experiment), StartSpans::of(&experiment));
    let (mut by_rounds, mut by_starts) = (0, 0);
    for seed in 0..TIMES {
        let runs = runs(&experiment, &servers, seed);
        let mut outcomes = evaluate_starts(&experiment, &start_spans, &runs);
        outcomes.retain(|it| it.sample() < it.ratios.len());
        let once = SpentLevel::of_one_look();
        let p = outcomes.iter().map(|it| Contender {
            question: Question::of(&it.measure, &it.each),
            is_of_source: false,
            p: rule::test(&it.ratios, &once, 0.0).p,
        });
        by_rounds += u64::from(rule::hold(&p.collect::<Vec<_>>()).contains(&true));
        by_starts += u64::from(outcomes.iter().any(|it| is_shown(it.verdict)));
    }
    assert!(by_rounds * 5 > TIMES, "{by_rounds} of {TIMES}");
    assert_eq!(by_starts, 0);
}

/// 1,000 simulated experiments of twelve starts without a difference, of which one side loses 6 % to its load in the mean and
/// the other 2 %: without the bias more than half of them find a difference, with it fewer than 5 %.
#[test]
fn simulated_losses_are_no_difference() {
    let once = SpentLevel::of_one_look();
    let (mut without, mut with) = (0, 0);
    for seed in 0..1000 {
        let kept = |lost: f64, name: &str, start: u64| {
            (1.0 - lost * (1.0 + 0.3 * normal((seed, name, start)))).ln()
        };
        let of_start = |start| kept(0.06, "above", start) - kept(0.02, "below", start);
        let lost: Vec<f64> = (0..12).map(of_start).collect();
        let noise = |start: usize| 0.05 * normal((seed, "start", start as u64));
        let each = lost.iter().enumerate();
        let starts: Vec<f64> = each
            .map(|(start, lost)| (lost + noise(start)).exp())
            .collect();
        let bias = (lost.iter().sum::<f64>() / 12.0).abs();
        without += u32::from(rule::test(&starts, &once, 0.0).p <= 0.05);
        with += u32::from(rule::test(&starts, &once, bias).p <= 0.05);
    }
    println!("without the bias {without}, with it {with} of 1000");
    assert!(without > 500 && with <= 50, "{without} {with}");
}

/// 1,000 simulated experiments of twelve starts on the median latency over a link of 40 ms. The lab raises that of one side
/// by 0 to 2 %. If the servers do not differ, more than half of the experiments find a difference without the bound, and
/// with it fewer than 5 %. If one side takes a second round trip, all of them find that.
#[test]
fn simulated_delays_by_the_lab_are_no_difference() {
    let once = SpentLevel::of_one_look();
    let measure = Measure::parse("p50").unwrap();
    let contrast = Contrast {
        above: vec![0],
        below: vec![1],
    };
    let experiment = |seed: u64, trip_ms: f64| {
        let mut runs = Vec::new();
        let mut ratios = Vec::new();
        for round in 0..12 {
            let value = |name: &str| normal((seed, name, round as u64));
            let raised = 1.0 + 0.01 * (1.0 + 0.5 * value("lab")).clamp(0.0, 2.0);
            let above = delayed(
                0,
                round,
                [trip_ms, raised, 1.0 + 0.002 * value("above").abs()],
            );
            let below = delayed(1, round, [40.0, 1.0, 1.0 + 0.002 * value("below").abs()]);
            ratios.push(above.measures["p50"] / below.measures["p50"]);
            runs.extend([above, below]);
        }
        let keyed: Runs<'_> = runs
            .iter()
            .map(|run| ((run.cell, run.round), run))
            .collect();
        let bound = bias::of_case(std::slice::from_ref(&contrast), &measure, 0..12, &keyed);
        [0.0, bound].map(|known| rule::test(&ratios, &once, known).p <= 0.05)
    };
    let found = |trip_ms: f64| {
        let all = (0..1000).map(|seed| experiment(seed, trip_ms));
        all.fold([0, 0], |[without, with], [one, other]| {
            [without + u32::from(one), with + u32::from(other)]
        })
    };
    let (alike, apart) = (found(40.0), found(80.0));
    println!(
        "without and with the bound: {alike:?} of servers that do not differ, {apart:?} of others"
    );
    assert!(alike[0] > 500 && alike[1] <= 50, "{alike:?}");
    assert_eq!(apart[1], 1000);
}

/// A run over a link with a round trip of so many milliseconds, a median that the lab has raised by a factor, and
/// another factor for what the servers take. The lab took 3 % of the CPU time.
fn delayed(cell: usize, round: usize, [trip_ms, raised, served]: [f64; 3]) -> Run {
    let mut run = Run {
        cell,
        round,
        ..Run::default()
    };
    let median = trip_ms * 1.004 * served;
    run.measures.insert("p50".to_owned(), median * raised);
    run.facts.latency_ms = Some(LatencyFacts {
        min: Some(trip_ms),
        ..LatencyFacts::default()
    });
    run.facts.machine = Some(MachineFacts {
        own_cost: Some(0.03),
        ..MachineFacts::default()
    });
    run.gates = gate::check_run(&run.facts);
    run.gates.retain(|fired| fired.gate == "own-cost");
    run
}

/// Each simulated span has 25 values (200 ms each) with the noise of a shared machine. If no level slows down, or
/// both slow down alike, at most 5 of 100 experiments are expected to be refused. If one level alone runs at 60 % in
/// the first or the middle third, at least 75 of 100 are refused.
#[test]
fn simulated_levels_that_are_cold_alike_are_compared_and_others_are_not() {
    let sides = ClaimSides::on(THROUGHPUT);
    for rounds in [6, 12, 20] {
        for (deviation, correlation) in [(0.10, 0.5), (0.18, 0.7)] {
            let refused = |slow: [f64; 2], third: usize| {
                let is_refused = |seed: &u64| {
                    let noise = Noise {
                        seed: *seed,
                        deviation,
                        correlation,
                    };
                    let runs = slowed(&sides.cells(), rounds, noise, slow, third);
                    sides.is_refused(&runs, rounds, &SpentLevel::of_one_look())
                };
                (0..SPANS).filter(is_refused).count()
            };
            let (steady, alike) = (refused([1.0, 1.0], 0), refused([0.6, 0.6], 0));
            let one = [0, 1].map(|third| refused([0.6, 1.0], third));
            let little = refused([0.8, 1.0], 0);
            let known =
                format!("{rounds} {deviation} {correlation}: {steady} {alike} {little} {one:?}");
            println!("{known} of {SPANS}");
            // More than 12 are as rare as one in 700, if 5 are expected.
            assert!(steady <= 12 && alike <= 12, "{known}");
            assert!(one.iter().all(|refused| *refused >= 75), "{known}");
        }
    }
}

/// Duels of four blocks a start, so that thirds are a block or two, looked at after 8, 12, … starts. If nothing moves, 4 % are
/// expected to be refused at any look, on a quiet machine and on a busy one, also if other work hits single blocks. Of
/// those in which one level is cold in its first block nearly all are.
#[test]
fn simulated_duels_of_few_blocks_are_rarely_refused() {
    let sides = ClaimSides::on(THROUGHPUT);
    for (name, noise) in [("quiet", [0.01, 0.016, 0.0]), ("busy", [0.10, 0.06, 0.2])] {
        for planned in [8, 20] {
            let at = |look: usize| (look, SpentLevel::at(look, planned));
            let levels: Vec<(usize, SpentLevel)> = looks(planned).into_iter().map(at).collect();
            let refused = |cold: f64, duels: u64| {
                let is_refused = |seed: &u64| {
                    let runs = duelled(&sides.cells(), planned, noise, (*seed, cold));
                    let mut made = levels.iter();
                    made.any(|(look, spent)| sides.is_refused(&runs, *look, spent))
                };
                (0..duels).filter(is_refused).count()
            };
            let (steady, cold) = (refused(1.0, DUELS), refused(0.6, 40));
            let known =
                format!("{name}, {planned} starts: {steady} of {DUELS} steady, {cold} of 40 cold");
            println!("{known}");
            // More than 28 are as rare as one in 500, if 16 are expected.
            assert!(steady <= 28, "{known}");
            assert!(cold >= 38, "{known}");
        }
    }
}

/// A claim, with what is looked at to refuse it.
struct ClaimSides {
    experiment: Experiment,
    start_spans: StartSpans,
    /// The number of the claim.
    claim: usize,
}

impl ClaimSides {
    /// The first claim on a measure.
    fn on(measure: &str) -> Self {
        let experiment = super::tests::experiment();
        let start_spans = StartSpans::of(&experiment);
        let mut claims = experiment.claims.iter();
        let claim = claims
            .position(|claim| claim.measure.name() == measure)
            .unwrap();
        Self {
            experiment,
            start_spans,
            claim,
        }
    }

    fn cells(&self) -> Vec<usize> {
        self.start_spans
            .of_case(&self.experiment.claims[self.claim].cases[0])
    }

    /// Whether it is refused at the look after `look` rounds.
    fn is_refused(&self, runs: &[Run], look: usize, spent: &SpentLevel) -> bool {
        let made = runs.iter().filter(|run| run.round < look);
        let subject = CaseSubject {
            experiment: &self.experiment,
            start_spans: &self.start_spans,
            claim: &self.experiment.claims[self.claim],
            case: &self.experiment.claims[self.claim].cases[0],
            runs: &made.map(|run| ((run.cell, run.round), run)).collect(),
            spent,
        };
        moved::check(&subject).is_some()
    }
}

/// The runs of a duel of two cells with four blocks each. Of `noise` the first is what the machine does to neighbouring blocks
/// alike, the second what a block has of its own, and the third by how much one in twenty is slower; `seeded` is a seed, and
/// the level of the first cell in its first block.
fn duelled(cells: &[usize], starts: usize, noise: [f64; 3], seeded: (u64, f64)) -> Vec<Run> {
    let [machine, own, hit] = noise;
    let (seed, cold) = seeded;
    let mut runs = Vec::new();
    for round in 0..starts {
        let of = |what: &str, key: [usize; 2]| normal((seed, what, hash(&(round, key))));
        let mut shared = machine * of("machine", [0, 0]);
        let mut blocks = [const { Vec::new() }; 2];
        for turn in 0..4 {
            for place in 0..2 {
                let side = (place + turn) % 2;
                let fresh = machine * of("machine", [turn + 1, place]);
                shared = 0.7 * shared + (1.0 - 0.49_f64).sqrt() * fresh;
                let is_hit = hash(&(seed, round, turn, place)) % 20 == 0;
                let level = if (side, turn) == (0, 0) { cold } else { 1.0 };
                let off = shared + own * of("own", [turn, place]) - if is_hit { hit } else { 0.0 };
                blocks[side].push(level * off.exp());
            }
        }
        for (cell, values) in cells.iter().zip(&blocks) {
            let thirds = [values[0], f64::midpoint(values[1], values[2]), values[3]];
            runs.push(Run {
                cell: *cell,
                round,
                thirds: BTreeMap::from([("throughput".to_owned(), thirds)]),
                ..Run::default()
            });
        }
    }
    runs
}

/// The size of a value's noise, and its correlation with the noise before.
#[derive(Clone, Copy)]
struct Noise {
    seed: u64,
    deviation: f64,
    correlation: f64,
}

/// Rounds of two cells whose throughput is at a share `slow` of what it is otherwise, in one third of each span.
fn slowed(
    cells: &[usize],
    rounds: usize,
    noise: Noise,
    slow: [f64; 2],
    slow_third: usize,
) -> Vec<Run> {
    let all = (0..rounds).flat_map(|round| cells.iter().zip(slow).map(move |it| (round, it)));
    let run = |(round, (cell, slow)): (usize, (&usize, f64))| {
        let mut off = 0.0;
        let values = (0..VALUES).map(|at| {
            let fresh = normal((noise.seed, "span", hash(&(cell, round, at))));
            off = match at {
                0 => fresh,
                _ => noise.correlation * off + (1.0 - noise.correlation.powi(2)).sqrt() * fresh,
            };
            let level = if (at * 3 / VALUES).min(2) == slow_third {
                slow
            } else {
                1.0
            };
            level * (1.0 + noise.deviation * off).max(0.1)
        });
        let values: Vec<f64> = values.collect();
        let (middle, last) = (VALUES.div_ceil(3), (2 * VALUES).div_ceil(3));
        let thirds = [&values[..middle], &values[middle..last], &values[last..]];
        let thirds = thirds.map(|values| values.iter().sum::<f64>() / values.len() as f64);
        Run {
            cell: *cell,
            round,
            thirds: BTreeMap::from([("throughput".to_owned(), thirds)]),
            ..Run::default()
        }
    };
    all.map(run).collect()
}

fn is_shown(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Differs | Verdict::DiffersLittle)
}

/// The servers of each cell.
fn servers(experiment: &Experiment) -> Vec<Vec<CellServer>> {
    let cells = 0..experiment.cells.len();
    cells.map(|cell| experiment.servers_of(cell)).collect()
}

/// Runs whose measures differ by their servers' starts and by themselves alone.
fn runs(experiment: &Experiment, servers: &[Vec<CellServer>], seed: u64) -> Vec<Run> {
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
    of: (usize, &'a CellServer),
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

/// Values of a span.
const VALUES: usize = 25;

/// Experiments for each noise.
const SPANS: u64 = 100;

/// Duels for each noise.
const DUELS: u64 = 400;

/// Experiments for each plan. All seeds are fixed.
const TIMES: u64 = 40;
