//! Gates on the cases of claims.

use catamaran_stats::looks::SpentLevel;

use super::starts::{Ratio, StartSpans};
use super::{Runs, is_in, moved, number, ratio, rounds_of, rule, silent};
use crate::experiment::{Case, Claim, Experiment};
use crate::gate::{Effect, GateFinding, GateRecord, UNSTEADY};
use crate::measure::{CAPACITY, MEMORY, Measure, THROUGHPUT};
use crate::run::MemoryCount;

/// A case of a claim, with the valid runs that it rests on.
#[derive(Clone, Copy, Debug)]
pub struct CaseSubject<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) start_spans: &'a StartSpans,
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
        check: Some(|subject| {
            let count = memory_count(subject.case, subject.runs);
            shared_pages(subject.experiment, subject.claim, subject.case, count)
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
    let server = claim.measure.of();
    let mut cells = (0..experiment.cells.len()).filter(|cell| is_in(&case.contrasts, *cell));
    if !cells.any(|cell| experiment.reads_memory_of_ours(cell, server)) {
        return None;
    }
    let words = "Memory was counted as PSS: our servers run the same file as the load, so that pages of the program \
                 counted for them in part.";
    Some(GateFinding::new("shared-pages", Effect::Claim, words))
}

/// The way in which the memory of a case's runs was counted; PSS if it was so in any run.
fn memory_count(case: &Case, runs: &Runs<'_>) -> MemoryCount {
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
        start_spans,
        claim,
        case,
        runs,
        ..
    } = *subject;
    if claim.measure.name() != THROUGHPUT {
        return None;
    }
    let capacity_measure = Measure::parse(CAPACITY).ok()?;
    let mut throughputs = Vec::new();
    let mut capacities = Vec::new();
    let mut quotients = Vec::new();
    for round in 0..rounds_of(runs) {
        let ratio_of = |measure| ratio(&case.contrasts, measure, round, runs);
        // Only rounds that have both ratios can be compared.
        let (Some(throughput), Some(capacity)) =
            (ratio_of(&claim.measure), ratio_of(&capacity_measure))
        else {
            continue;
        };
        let of_round = |value| Ratio { round, value };
        throughputs.push(of_round(throughput));
        capacities.push(of_round(capacity));
        quotients.push(of_round(throughput / capacity));
    }
    let interval = |ratios: &[Ratio]| rule::interval(&start_spans.sample(case, ratios, runs));
    let quotient = interval(&quotients)?;
    if !quotient.excludes(1.0) || quotient.ratio.ln().abs() < DISAGREEING {
        return None;
    }
    let words = format!(
        "Throughput has the ratio {}, capacity per core {}: the throughput is not decided by the CPU time of the \
         server in front alone.",
        number(interval(&throughputs)?.ratio),
        number(interval(&capacities)?.ratio)
    );
    Some(GateFinding::new(CAPACITY, Effect::Note, words))
}

pub(super) const SURVIVORS: &str = "survivors";
pub(super) const SCREENED: &str = "screened";
pub(super) const STARTS: &str = "starts";

/// The least difference between the logarithms of both ratios that leads to a remark.
const DISAGREEING: f64 = 0.01;
