//! Gates on the cases of claims.

use catamaran_stats::looks::SpentLevel;

use super::starts::{Ratio, StartSpans};
use super::{Runs, is_in, moved, number, ratio, rule, silent};
use crate::experiment::{Case, Claim, Experiment};
use crate::gate::{Effect, GateFinding, GateRecord, UNSTEADY};
use crate::measure::{CAPACITY, MEMORY, Measure, THROUGHPUT};
use crate::run::MemoryCount;

/// A case of a claim, with the valid runs that it rests on.
#[derive(Clone, Copy, Debug)]
pub struct CaseSubject<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) lasting: &'a StartSpans,
    pub(super) claim: &'a Claim,
    pub(super) case: &'a Case,
    pub(super) runs: &'a Runs<'a>,
    /// How much of the error probability the look after these runs may spend.
    pub(super) spent: &'a SpentLevel,
}

impl CaseSubject<'_> {
    /// The findings of all gates with a function.
    pub(super) fn check(&self) -> Vec<GateFinding> {
        let gates = GATES.iter().filter_map(|gate| gate.check);
        gates.filter_map(|check| check(self)).collect()
    }
}

/// A gate on a case. Without a function, it is fired by its name from other code, which knows more than the case.
type CaseGate = GateRecord<Option<fn(&CaseSubject<'_>) -> Option<GateFinding>>>;

/// All gates on cases. Those with a function are checked in this order, and their findings are listed in it.
pub static GATES: &[CaseGate] = &[
    GateRecord {
        name: "shared-pages",
        words: "an older result counted memory as PSS, and one of the servers is our program",
        rank: 10,
        check: Some(|it| {
            shared_pages(it.experiment, it.claim, it.case, count_of(it.case, it.runs))
        }),
    },
    GateRecord {
        name: CAPACITY,
        words: "throughput and capacity per core have ratios that differ by over 1 %",
        rank: 20,
        check: Some(capacity),
    },
    GateRecord {
        name: UNSTEADY,
        words: "the ratio of a claim moved by over 5 % within the span",
        rank: 30,
        check: Some(moved::check),
    },
    GateRecord {
        name: "silences",
        words: "one level of a claim had that in more runs than the other",
        rank: 40,
        check: Some(silent::check),
    },
    // `survivors` fires it: it needs all runs of a case, void ones included.
    GateRecord {
        name: SURVIVORS,
        words: "one level of a claim lost more of its runs than the other, or all of them",
        rank: 0,
        check: None,
    },
    // `Passes` fires it: it knows whether a case rests on the screen.
    GateRecord {
        name: SCREENED,
        words: "a claim is on cells that only the screen measured",
        rank: 0,
        check: None,
    },
    // `stored` fires it: it is about results that are stored without their runs.
    GateRecord {
        name: STARTS,
        words: "it is not known how often the servers of an older result were started",
        rank: 0,
        check: None,
    },
];

/// A finding if memory was counted as PSS, and includes our own server's: the load runs the same program, and shares
/// its pages.
pub(super) fn shared_pages(
    experiment: &Experiment,
    claim: &Claim,
    case: &Case,
    count: MemoryCount,
) -> Option<GateFinding> {
    if claim.measure.base() != MEMORY || count == MemoryCount::Allocated {
        return None;
    }
    let of = claim.measure.of();
    let mut cells = (0..experiment.cells.len()).filter(|cell| is_in(&case.contrasts, *cell));
    let is_ours = cells.any(|cell| experiment.reads_memory_of_ours(cell, of));
    is_ours.then(|| {
        let words = "Memory was counted as PSS: our servers run the same file as the load, so that pages of the program \
                     counted for them in part.";
        GateFinding::new("shared-pages", Effect::Claim, words)
    })
}

/// The way in which the memory of a case's runs was counted.
fn count_of(case: &Case, runs: &Runs<'_>) -> MemoryCount {
    let mut of_case = runs
        .iter()
        .filter(|((cell, _), _)| is_in(&case.contrasts, *cell));
    if of_case.any(|(_, run)| run.memory == MemoryCount::Proportional) {
        MemoryCount::Proportional
    } else {
        MemoryCount::Allocated
    }
}

/// A remark if the ratio of throughputs differs from the ratio of capacities per core. Only servers with a declared
/// part of a core have a capacity.
fn capacity(subject: &CaseSubject<'_>) -> Option<GateFinding> {
    let CaseSubject {
        lasting,
        claim,
        case,
        runs,
        ..
    } = *subject;
    if claim.measure.name() != THROUGHPUT {
        return None;
    }
    let capacity = Measure::parse(CAPACITY).ok()?;
    let rounds = runs.keys().map(|(_, round)| round + 1).max().unwrap_or(0);
    let both = |round| {
        let [throughput, capacity] =
            [&claim.measure, &capacity].map(|it| ratio(&case.contrasts, it, round, runs));
        Some((round, throughput?, capacity?))
    };
    let both: Vec<(usize, f64, f64)> = (0..rounds).filter_map(both).collect();
    let interval = |of: &dyn Fn(f64, f64) -> f64| {
        let ratios = both.iter().map(|&(round, throughput, capacity)| Ratio {
            round,
            value: of(throughput, capacity),
        });
        let starts = lasting.sample(case, &ratios.collect::<Vec<_>>(), runs);
        rule::interval(&starts)
    };
    let apart = interval(&|throughput, capacity| throughput / capacity)?;
    if !apart.excludes(1.0) || apart.ratio.ln().abs() < DISAGREEING {
        return None;
    }
    let [throughput, capacity] = [
        interval(&|throughput, _| throughput)?,
        interval(&|_, capacity| capacity)?,
    ];
    let words = format!(
        "Throughput has the ratio {}, capacity per core {}: the throughput is not decided by the CPU time of the \
         server in front alone.",
        number(throughput.ratio),
        number(capacity.ratio)
    );
    Some(GateFinding::new(CAPACITY, Effect::Note, words))
}

pub(super) const SURVIVORS: &str = "survivors";
pub(super) const SCREENED: &str = "screened";
pub(super) const STARTS: &str = "starts";

/// The least difference between the logarithms of both ratios that leads to a remark.
const DISAGREEING: f64 = 0.01;
