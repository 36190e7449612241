//! How far a ratio may be wrong because runs lost time to something else than their servers.
//!
//! The load may have waited for its core, the server may have been idle at times, or the lab itself may have used CPU
//! time. Such a run can be used, since its loss is known: without it, a rate would have been higher by at most that
//! share. What both sides lost alike cancels out. By the difference, the claim's interval is made wider at either end.
//!
//! Of a percentile of latency only this is known: without the lab's CPU time it would not have been below the shortest
//! latency of the run. A network with a delay makes that a narrow bound. On either side anything up to the bound may have
//! been lost, so bounds do not cancel out, and the interval is wider by the larger one.

use super::{Runs, of_sides};
use crate::experiment::Contrast;
use crate::facts::Facts;
use crate::gate::{GateFinding, LOAD_BUSY, SERVER_BUSY};
use crate::measure::{Measure, MeasureKind, Spoiler};
use crate::run::Run;

/// The bias of a case: the logarithm by which its ratio may be wrong; 0 if both sides lost the same share.
pub(super) fn of_case(
    contrasts: &[Contrast],
    measure: &Measure,
    rounds: impl Iterator<Item = usize>,
    runs: &Runs<'_>,
) -> f64 {
    if is_percentile(measure) {
        return of_percentiles(contrasts, measure, rounds, runs);
    }
    let log_of_kept = |run: &Run| Some(kept(run, measure).ln());
    let mut logs = Vec::new();
    for round in rounds {
        let ratio_of_kept = of_sides(contrasts, round, runs, log_of_kept);
        logs.extend(ratio_of_kept.map(f64::ln));
    }
    if logs.is_empty() {
        return 0.0;
    }
    (logs.iter().sum::<f64>() / logs.len() as f64).abs()
}

/// The bias of a case on a percentile: in each round the larger of the bounds of both sides, and their mean over the rounds.
fn of_percentiles(
    contrasts: &[Contrast],
    measure: &Measure,
    rounds: impl Iterator<Item = usize>,
    runs: &Runs<'_>,
) -> f64 {
    let mut largest = Vec::new();
    for round in rounds {
        let of_side = |cells: &[usize]| -> f64 {
            let of_cells = cells.iter().filter_map(|cell| runs.get(&(*cell, round)));
            of_cells.map(|run| bound_of_percentile(run, measure)).sum()
        };
        let sides = contrasts
            .iter()
            .map(|contrast| of_side(&contrast.above).max(of_side(&contrast.below)));
        largest.extend(sides.reduce(f64::max));
    }
    if largest.is_empty() {
        return 0.0;
    }
    largest.iter().sum::<f64>() / largest.len() as f64
}

/// The logarithm by which the lab's CPU time may have raised a percentile of a run; 0 if it took too little for its gate.
fn bound_of_percentile(run: &Run, measure: &Measure) -> f64 {
    if !run.gates.iter().any(|fired| fired.gate == OWN_COST) {
        return 0.0;
    }
    above_shortest(run, measure).map_or(0.0, f64::ln)
}

/// A percentile of a run by its shortest latency, at least 1; `None` if either is not known, or if the lab took so much
/// CPU time that it may have delayed all requests.
fn above_shortest(run: &Run, measure: &Measure) -> Option<f64> {
    let own_cost = run.facts.machine.as_ref()?.own_cost?;
    let shortest = run.facts.latency_ms.as_ref()?.min?;
    let percentile = run.measures.get(measure.name())?;
    let is_known = own_cost <= OWN_COST_BOUNDED && shortest > 0.0;
    is_known.then(|| (percentile / shortest).max(1.0))
}

/// Whether the loss that the gate has found is known as a share of the run. Then the bias covers it, and the run can be
/// used for this measure.
pub(super) fn is_bounded(run: &Run, fired: &GateFinding, measure: &Measure) -> bool {
    if is_cold(measure) {
        return false;
    }
    match fired.gate.as_str() {
        "generator" | "idle-server" => is_rate(measure) && idle(&run.facts).is_some(),
        OWN_COST if is_percentile(measure) => above_shortest(run, measure).is_some(),
        OWN_COST => {
            let machine = run.facts.machine.as_ref();
            let is_known = machine.is_some_and(|machine| machine.own_cost.is_some());
            is_known && measure.record().spoiler != Spoiler::Nothing && !is_latency(measure)
        }
        _ => false,
    }
}

/// The share of its time or work that a run kept, from [`KEPT_MIN`] to 1. Losses that are not known count as none.
fn kept(run: &Run, measure: &Measure) -> f64 {
    if is_cold(measure) {
        return 1.0;
    }
    let mut kept = 1.0;
    if measure.record().spoiler != Spoiler::Nothing {
        let machine = run.facts.machine.as_ref();
        let own_cost = machine.and_then(|machine| machine.own_cost);
        kept *= 1.0 - own_cost.unwrap_or_default();
    }
    if is_rate(measure) {
        kept *= 1.0 - run.facts.generator_starved.unwrap_or_default();
        kept *= 1.0 - idle(&run.facts).unwrap_or_default();
    }
    kept.max(KEPT_MIN)
}

/// The share of its part of a core that the server left unused while the load was at its limit, in a closed loop;
/// `None` if that is not known.
fn idle(facts: &Facts) -> Option<f64> {
    // An open loop has no number of clients. Its server may be idle between requests.
    facts.clients?;
    let machine = facts.machine.as_ref()?;
    let tested = machine.shares.values().find(|share| share.is_tested);
    // With a quota, a server that has used nearly all of its part counts as busy. Without one, a server is idle only
    // because of the load if the load itself was busy.
    if let Some(share) = tested {
        let used = share.used / share.declared;
        return Some(if used < SERVER_BUSY { 1.0 - used } else { 0.0 });
    }
    let load = machine.load_core.or(facts.generator_busy)?;
    let server = machine.server_core?;
    Some(if load < LOAD_BUSY { 0.0 } else { 1.0 - server })
}

/// Whether the measure is a number of responses per second in the measured span.
fn is_rate(measure: &Measure) -> bool {
    let record = measure.record();
    record.kind == MeasureKind::Rate && record.spoiler == Spoiler::Times
}

/// Whether the measure is a percentile of all latencies of the measured span.
pub(super) fn is_percentile(measure: &Measure) -> bool {
    PERCENTILES.contains(&measure.name())
}

/// Whether the measure is a latency: a lost share of the time does not limit its error.
fn is_latency(measure: &Measure) -> bool {
    let record = measure.record();
    record.spoiler == Spoiler::Times && record.kind != MeasureKind::Rate
}

/// Whether the measure is taken before the measured span.
fn is_cold(measure: &Measure) -> bool {
    measure.record().is_cold
}

const OWN_COST: &str = "own-cost";

/// The largest share of the measured CPU time for the lab itself beside which some requests surely met no work of the
/// lab: it works once a second.
const OWN_COST_BOUNDED: f64 = 0.25;

const PERCENTILES: [&str; 3] = ["p50", "p90", "p99"];

/// The least share that is assumed to be left of a run, so that its logarithm is finite.
const KEPT_MIN: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::super::tests::{experiment, outcome, runs};
    use super::super::{Outcome, Verdict, evaluate};
    use crate::facts::{LatencyFacts, MachineFacts};
    use crate::gate;
    use crate::run::Run;

    /// The claims after twelve rounds; `change` sets facts of the runs with kept connections (true) and the others.
    fn claimed(change: impl Fn(&mut Run, bool)) -> Vec<Outcome> {
        let experiment = experiment();
        let mut runs = runs(&experiment, 12, |round| 0.5 + round as f64 / 1000.0);
        for run in &mut runs {
            run.facts.clients = Some(100);
            run.facts.machine = Some(MachineFacts {
                load_core: Some(0.95),
                server_core: Some(1.0),
                ..MachineFacts::default()
            });
            let is_kept = run.levels["keep"].to_string() == "on";
            change(run, is_kept);
            run.gates = gate::check_run(&run.facts);
            let of_losses = ["generator", "idle-server", "own-cost"];
            run.gates.retain(|fired| of_losses.contains(&&*fired.gate));
        }
        evaluate(&experiment, &runs)
    }

    #[test]
    fn a_load_that_waited_widens_by_the_difference() {
        let waited = |kept: f64, closed: f64| {
            claimed(move |run, is_kept| {
                run.facts.generator_starved = Some(if is_kept { kept } else { closed });
            })
        };
        let rate = "Keep-alive raises throughput";
        let p99 = "Keep-alive makes the slowest requests slower";
        let outcomes = waited(0.08, 0.04);
        let unequal = outcome(&outcomes, rate);
        assert_eq!((unequal.verdict, unequal.sample()), (Verdict::Differs, 12));
        assert!(
            (unequal.bias - (0.96_f64 / 0.92).ln()).abs() < 1e-9,
            "{unequal:?}"
        );
        assert!(
            unequal.sentence.ends_with(
                "[1.89..2.07] at mpm=prefork, 12 starts. The interval is wider by 4 % on either side: one level lost more \
                 of its time than the other to what was not its servers."
            ),
            "{}",
            unequal.sentence
        );
        // Beyond 5 % the gate fires, and how long a request waited is not known.
        let latency = outcome(&outcomes, p99);
        assert_eq!(latency.verdict, Verdict::NoClaim);
        assert_eq!(outcome(&outcomes, "Keep-alive saves CPU").bias, 0.0);
        let outcomes = waited(0.08, 0.08);
        let alike = outcome(&outcomes, rate);
        assert_eq!((alike.verdict, alike.bias), (Verdict::Differs, 0.0));
    }

    #[test]
    fn a_server_that_was_idle_may_be_as_much_faster() {
        let idle = |share: f64| {
            let outcomes = claimed(move |run, is_kept| {
                let machine = run.facts.machine.as_mut().unwrap();
                machine.server_core = Some(if is_kept { share } else { 1.0 });
            });
            outcome(&outcomes, "Keep-alive raises throughput").clone()
        };
        // Twice as fast, and it might have been four times.
        let half = idle(0.5);
        assert_eq!((half.sample(), half.left_out.len()), (12, 0));
        assert!(
            (half.bias - 2.0_f64.ln()).abs() < 1e-9 && half.high.unwrap() > 3.9,
            "{half:?}"
        );
        assert_eq!(
            half.verdict,
            Verdict::NotShown,
            "the other way round it might be none"
        );
        assert_eq!(idle(0.9).verdict, Verdict::Differs);
    }

    #[test]
    fn what_the_lab_took_is_bounded_too() {
        let outcomes = claimed(|run, is_kept| {
            let machine = run.facts.machine.as_mut().unwrap();
            machine.own_cost = Some(if is_kept { 0.05 } else { 0.02 });
        });
        let cpu = outcome(&outcomes, "Keep-alive saves CPU");
        assert_eq!((cpu.verdict, cpu.sample()), (Verdict::Differs, 12));
        assert!((cpu.bias - (0.98_f64 / 0.95).ln()).abs() < 1e-9, "{cpu:?}");
        assert_eq!(
            outcome(&outcomes, "Keep-alive saves system calls").bias,
            0.0
        );
    }

    /// Half of the round trips over a link: what the lab may have added to either side is known to a few percent.
    #[test]
    fn what_the_lab_may_have_added_to_a_latency_is_bounded_by_the_shortest_one() {
        let p99 = "Keep-alive makes the slowest requests slower";
        let with = |own_cost: f64, shortest: f64| {
            let outcomes = claimed(move |run, is_kept| {
                let p99_ms = run.measures["p99"];
                run.facts.latency_ms = Some(LatencyFacts {
                    min: Some(p99_ms * if is_kept { shortest } else { 0.99 }),
                    ..LatencyFacts::default()
                });
                run.facts.machine.as_mut().unwrap().own_cost = Some(own_cost);
            });
            outcome(&outcomes, p99).clone()
        };
        let bounded = with(0.03, 0.98);
        assert_eq!(bounded.sample(), 12, "{}", bounded.sentence);
        assert!((bounded.bias + 0.98_f64.ln()).abs() < 1e-9, "{bounded:?}");
        assert_eq!(with(0.01, 0.98).bias, 0.0, "the gate does not fire");
        assert_eq!(
            with(0.03, 0.01).verdict,
            Verdict::NotShown,
            "nothing bounds it"
        );
        assert_eq!(with(0.3, 0.98).verdict, Verdict::NoClaim);
    }

    /// Servers that are not pinned: nobody knows how idle they were beside a load that took all of its core.
    #[test]
    fn what_is_not_known_bounds_nothing() {
        let outcomes = claimed(|run, _| {
            run.facts.generator_busy = Some(0.99);
            run.facts.machine.as_mut().unwrap().server_core = None;
        });
        let rate = outcome(&outcomes, "Keep-alive raises throughput");
        assert_eq!(rate.verdict, Verdict::NoClaim, "{}", rate.sentence);
    }
}
