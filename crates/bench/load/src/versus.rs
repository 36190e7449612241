//! Compares two targets fairly in one run.
//!
//! Two runs one after the other differ because the machine also does other work. So both targets
//! are measured in turn in short blocks: a pair of blocks has both, in random order, and the next
//! pair has the reverse order. The ratios within pairs are compared by Wilcoxon's signed ranks, as
//! starts are in the lab. A difference between two single runs proves nothing.

mod limit;
mod measures;

use std::time::Duration;

use catamaran_stats::blocks::mirrored;
use catamaran_stats::{Share, Spread, fisher};

pub use self::limit::{RatioFault, RatioLimit};
use self::measures::judge;
use crate::document::versus::{
    Block, Death, Measure, SCHEMA, SilentBlocks, Versus, Warning as WarningFacts,
};
use crate::plan::{LengthCheck, Plan, Stop, WarmUp};
use crate::report::{Report, Warning};

/// The state of a comparison: which block is next, and the results of the blocks so far.
#[derive(Debug)]
pub struct Duel {
    urls: [String; 2],
    plans: [Plan; 2],
    span: Duration,
    /// The target of each block, in the order of the run: two for each pair.
    order: Vec<usize>,
    blocks: Vec<Block>,
    warnings: Vec<WarningFacts>,
    started_at_s: Option<f64>,
    /// The length of each target's warm-up in seconds, of `a`, then of `b`, as far as these were made.
    warmed_s: Vec<f64>,
    died: Option<Death>,
}

/// The length of a block in a run of `span`: a 24th of it, from 100 ms to 2 s.
#[must_use]
pub fn block(span: Duration) -> Duration {
    (span / BLOCKS).clamp(BLOCK_MIN, BLOCK_MAX)
}

/// The number of whole pairs of blocks in a run of `span`.
#[must_use]
pub fn pairs(span: Duration) -> usize {
    let pair = 2 * block(span).as_nanos();
    usize::try_from(span.as_nanos() / pair)
        .unwrap_or(PAIRS_MAX)
        .min(PAIRS_MAX)
}

impl Duel {
    /// A comparison of two targets with these URLs and plans, in a run of `span`. The plans' ends
    /// and warm-ups are replaced.
    #[must_use]
    pub fn new(urls: [String; 2], plans: [Plan; 2], span: Duration) -> Self {
        let order = mirrored(2, pairs(span), plans[0].seed);
        Self {
            urls,
            plans,
            span,
            order: order.concat(),
            blocks: Vec::new(),
            warnings: Vec::new(),
            started_at_s: None,
            warmed_s: Vec::new(),
            died: None,
        }
    }

    /// The plan of the next block; `None`: all blocks are done.
    pub fn next_plan(&self) -> Option<Plan> {
        let target = self.next_target()?;
        let plan = self.plans[target].clone();
        if self.is_warming() {
            // Only the warm-up counts: the shortest block ends it.
            return Some(Plan {
                stop: Stop {
                    requests: None,
                    duration: Some(BLOCK_MIN),
                    ..plan.stop
                },
                ..plan
            });
        }
        let (block, lead) = (block(self.span), lead(self.span));
        Some(Plan {
            warm_up: WarmUp::For(lead),
            stop: Stop {
                requests: None,
                duration: Some(block.saturating_sub(lead)),
                ..plan.stop
            },
            // Both blocks of a pair have the same schedule.
            seed: plan.seed.wrapping_add((self.blocks.len() / 2) as u64),
            ..plan
        })
    }

    /// The target of the next block or warm-up, 0 or 1; `None`: there is none.
    #[must_use]
    pub fn next_target(&self) -> Option<usize> {
        if self.died.is_some() {
            return None;
        }
        if self.is_warming() {
            return Some(self.warmed_s.len());
        }
        self.order.get(self.blocks.len()).copied()
    }

    fn is_warming(&self) -> bool {
        self.plans[0].warm_up != WarmUp::None && self.warmed_s.len() < self.plans.len()
    }

    /// The number of blocks.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.order.len()
    }

    /// The number of blocks that are done.
    #[must_use]
    pub fn done(&self) -> usize {
        self.blocks.len()
    }

    /// Takes the report of the block whose plan was given last, and the CPU time that the target used meanwhile if that
    /// is known.
    pub fn add(&mut self, report: &Report, cpu: Option<Duration>) {
        let Some(target) = self.next_target() else {
            return;
        };
        if self.is_warming() {
            self.warmed_s.push(report.warm_up.duration.as_secs_f64());
            let is_cold = |warning: &&Warning| matches!(warning, Warning::NotSteady(_));
            for warning in report.warnings.iter().filter(is_cold) {
                self.warn(target, warning);
            }
            return;
        }
        self.started_at_s
            .get_or_insert(report.started_at.as_secs_f64());
        for warning in report.warnings.iter().filter(|warning| matters(warning)) {
            self.warn(target, warning);
        }
        let block = Block {
            cpu_us: cpu.and_then(|cpu| cpu_of_request(report, cpu)),
            ..block_of(report, self.blocks.len() / 2, target)
        };
        self.blocks.push(block);
    }

    /// Ends the comparison because the target of the next block does not respond any more; `message` is the error.
    pub fn die(&mut self, message: &str) {
        let Some(target) = self.next_target() else {
            return;
        };
        self.died = Some(Death {
            target: TARGETS[target].to_owned(),
            url: self.urls[target].clone(),
            blocks: self.blocks.len(),
            message: message.to_owned(),
        });
    }

    /// The result of the comparison, once all blocks are done.
    #[must_use]
    pub fn finish(self) -> Versus {
        let lengths = self.plans[0].checks.body_length;
        let mut result = conclude(self.urls, self.blocks, lengths);
        if let Some(died) = &self.died {
            result.sentence = format!(
                "{} died: {} gave no more answers after {} blocks ({}). {}",
                died.target.to_uppercase(),
                died.url,
                died.blocks,
                died.message,
                result.sentence
            );
        }
        Versus {
            started_at_s: self.started_at_s.unwrap_or(0.0),
            block_s: block(self.span).as_secs_f64(),
            lead_s: lead(self.span).as_secs_f64(),
            warm_up_s: self.warmed_s,
            died: self.died,
            warnings: self.warnings,
            ..result
        }
    }

    /// Counts a warning about a block or warm-up of a target.
    fn warn(&mut self, target: usize, warning: &Warning) {
        let kind = warning.token();
        let known = self.warnings.iter().position(|known| known.kind == kind);
        let index = known.unwrap_or_else(|| {
            self.warnings.push(WarningFacts {
                kind: kind.to_owned(),
                text: warning.text(),
                a: 0,
                b: 0,
            });
            self.warnings.len() - 1
        });
        let facts = &mut self.warnings[index];
        if target == 0 {
            facts.a += 1;
        } else {
            facts.b += 1;
        }
    }
}

/// The result of the blocks; [`Duel::finish`] adds times and warnings.
fn conclude([a, b]: [String; 2], blocks: Vec<Block>, lengths: LengthCheck) -> Versus {
    let measures = judge(&blocks);
    let pairs = blocks.len() / 2;
    let silences = TARGETS.map(|target| silent_blocks(target, &blocks));
    let body_bytes = TARGETS.map(|target| median(target, &blocks, |block| block.body_bytes));
    let invalid = errors_alone(&blocks);
    let mut sentence = match &invalid {
        Some(why) => format!("Invalid: {why}."),
        None => sentence(&measures, pairs),
    };
    let unequal_bodies = unequal_bodies(body_bytes).filter(|_| lengths != LengthCheck::Ignored);
    if let Some(clause) = &unequal_bodies {
        sentence += &format!(" But {clause}: the two do not do the same work.");
    }
    if let Some(remark) = unequal_silences(&silences, pairs) {
        sentence = format!("{sentence} {remark}");
    }
    Versus {
        schema: SCHEMA.to_owned(),
        a,
        b,
        started_at_s: 0.0,
        block_s: 0.0,
        lead_s: 0.0,
        warm_up_s: Vec::new(),
        pairs,
        body_bytes,
        unequal_bodies,
        invalid,
        died: None,
        gate: None,
        measures,
        silences: silences.to_vec(),
        blocks,
        warnings: Vec::new(),
        sentence,
    }
}

/// Whether a warning about a block is repeated in the comparison. Warnings that a block is short are not: blocks are
/// short on purpose.
fn matters(warning: &Warning) -> bool {
    !matches!(
        warning,
        Warning::Short
            | Warning::FewSamples { .. }
            | Warning::LittlesLaw { .. }
            | Warning::NotSteady(_)
            | Warning::Build(_)
    )
}

/// The beginning of each block, which is not measured, since connections are opened in it.
fn lead(span: Duration) -> Duration {
    block(span) / 10
}

/// The figures of a block, without CPU time. In an open loop, latency counts from when requests were due.
fn block_of(report: &Report, pair: usize, target: usize) -> Block {
    let counts = &report.requests;
    let errors = counts.failed + counts.non_2xx + report.unfinished.total();
    let percentile = |percent: f64| {
        let latency = match report.latency.censored() {
            Some(corrected) => corrected.percentile(percent).at_least,
            None => report.latency.total.histogram.percentile(percent),
        };
        (counts.completed > 0).then_some(latency.as_secs_f64() * 1000.0)
    };
    Block {
        pair,
        target: TARGETS[target].to_owned(),
        requests: counts.started,
        requests_per_s: report.in_span.completed as f64 / report.elapsed.as_secs_f64().max(1e-9),
        p50_ms: percentile(50.0),
        p99_ms: percentile(99.0),
        errors: errors as f64 / counts.started.max(1) as f64,
        body_bytes: (counts.completed > 0)
            .then(|| report.bytes.received_bodies as f64 / counts.completed as f64),
        cpu_us: None,
        silences: report.silences.len(),
        longest_silence_ms: report
            .longest_silence
            .map(|silence| silence.length().as_secs_f64() * 1000.0),
    }
}

/// The target's CPU time per request in microseconds; `None` without requests. `cpu` includes the lead of the block, so
/// the requests of the lead are counted, too.
fn cpu_of_request(report: &Report, cpu: Duration) -> Option<f64> {
    let requests = report.warm_up.requests + report.requests.completed;
    (requests > 0).then(|| cpu.as_secs_f64() * 1e6 / requests as f64)
}

/// The median over the blocks of a target that have this value.
fn median(target: &str, blocks: &[Block], value: fn(&Block) -> Option<f64>) -> Option<f64> {
    let of_target = blocks.iter().filter(|block| block.target == target);
    let values: Vec<f64> = of_target.filter_map(value).collect();
    Spread::of(&values).map(|spread| spread.median)
}

/// Why the comparison is invalid: more than `ERRORS_MAX` of the requests of both targets had an error page or no
/// response. `None` if that is not so, or not known of a target.
fn errors_alone(blocks: &[Block]) -> Option<String> {
    let [a, b] = TARGETS.map(|target| median(target, blocks, |block| Some(block.errors)));
    let (a, b) = (a?, b?);
    (a > ERRORS_MAX && b > ERRORS_MAX).then(|| {
        format!(
            "{:.0} % of the requests of A and {:.0} % of those of B had an error page or no answer",
            a * 100.0,
            b * 100.0
        )
    })
}

/// A clause on how the mean lengths of bodies differ; `None` if they differ by no more than [`BODIES_APART_MAX`], or
/// are not known.
fn unequal_bodies([a, b]: [Option<f64>; 2]) -> Option<String> {
    let (a, b) = (a?, b?);
    (a.max(b) > a.min(b).max(1.0) * BODIES_APART_MAX)
        .then(|| format!("bodies of A have {a:.0} bytes, those of B {b:.0}"))
}

/// The silences in the blocks of one target.
fn silent_blocks(target: &str, blocks: &[Block]) -> SilentBlocks {
    let of_target = blocks.iter().filter(|block| block.target == target);
    let longest = of_target
        .clone()
        .filter_map(|block| block.longest_silence_ms);
    let silences = of_target.map(|block| block.silences);
    SilentBlocks {
        target: target.to_owned(),
        blocks: silences.clone().filter(|count| *count > 0).count(),
        count: silences.sum(),
        longest_ms: longest.fold(0.0, f64::max),
    }
}

/// A sentence if one of the two targets was silent in more blocks than chance explains; else `None`.
fn unequal_silences([a, b]: &[SilentBlocks; 2], pairs: usize) -> Option<String> {
    let share = |silent: &SilentBlocks| Share {
        part: silent.blocks as u64,
        whole: pairs as u64,
    };
    // The probability that chance alone makes such a difference.
    (fisher(share(a), share(b)) <= 1.0 - LEVEL).then(|| {
        format!(
            "But A gave no answer for up to {:.0} ms in {} of {pairs} blocks, B for up to {:.0} ms in {}: no p99 of \
             blocks shows that.",
            a.longest_ms, a.blocks, b.longest_ms, b.blocks
        )
    })
}

/// The result in one sentence: the differences that are shown, else those that are suggested, else how large a
/// difference may be hidden.
fn sentence(measures: &[Measure], pairs: usize) -> String {
    let claims = |verdict: &str| {
        let with_verdict = measures.iter().filter(|measure| measure.verdict == verdict);
        with_verdict.map(claim).collect::<Vec<_>>().join("; ")
    };
    let (differs, suggests) = (claims(DIFFERS), claims(SUGGESTS));
    let moved = measures.iter().find(|measure| measure.verdict == MOVED);
    let moved_sentence = moved.map(|measure| {
        let reason = measure.reason.as_deref().unwrap_or_default();
        format!("No verdict on {}: {reason}.", measure.measure)
    });
    if !differs.is_empty() {
        match moved_sentence {
            Some(words) => format!("A has {differs}. {words}"),
            None => format!("A has {differs}."),
        }
    } else if !suggests.is_empty() {
        format!(
            "No difference shown. Suggested, but not beside the other measures: A has {suggests}."
        )
    } else if let Some(words) = moved_sentence {
        words
    } else if measures.iter().all(|measure| measure.verdict == TOO_FEW) {
        let reason = measures.first().and_then(|measure| measure.reason.clone());
        format!("No verdict: {}.", reason.unwrap_or_default())
    } else {
        let bounds: Vec<String> = measures.iter().filter_map(bound).collect();
        let hidden = if bounds.is_empty() {
            String::new()
        } else {
            format!(": up to {} may be hidden", bounds.join(", "))
        };
        format!("No difference shown in {pairs} pairs of blocks{hidden}.")
    }
}

/// The factor of [`hidden_factor`] with the name of the measure, such as `×1.04 in rate`.
fn bound(measure: &Measure) -> Option<String> {
    let factor = hidden_factor(measure)?;
    Some(format!("×{} in {}", short(factor), measure.measure))
}

/// The largest factor by which the targets may differ in a measure that shows no difference: the end of its interval
/// that is farther from 1. `None` for other verdicts, and if all pairs were alike.
#[must_use]
pub fn hidden_factor(measure: &Measure) -> Option<f64> {
    if measure.verdict != NONE_SHOWN {
        return None;
    }
    let low = measure.low?;
    let high = measure.high.unwrap_or(f64::INFINITY);
    let factor = high.max(1.0 / low);
    (factor > 1.0).then_some(factor)
}

/// A factor with two digits after the decimal point, or none from 10 on.
#[must_use]
pub fn short(factor: f64) -> String {
    match factor {
        _ if factor.is_infinite() => "∞".to_owned(),
        10.0.. => format!("{factor:.0}"),
        _ => format!("{factor:.2}"),
    }
}

/// A difference in words: the ratio of a measure with its interval.
fn claim(measure: &Measure) -> String {
    let number = |value: Option<f64>| match value {
        Some(value) => format!("{value:.3}"),
        None => "∞".to_owned(),
    };
    format!(
        "{} times the {} of B [{} .. {}]",
        number(measure.ratio),
        measure.measure,
        number(measure.low),
        number(measure.high)
    )
}

/// The verdict on a difference that is shown, even when all measures are considered together (Holm's correction).
pub const DIFFERS: &str = "differs";

/// The verdict on a difference that would be shown if its measure were the only one.
pub const SUGGESTS: &str = "suggests";

/// The verdict if the ratio's interval contains 1.
pub const NONE_SHOWN: &str = "none-shown";

/// The verdict if the ratio changed from the first half of the pairs to the second.
pub const MOVED: &str = "moved";

/// The verdict if there are too few pairs for an interval.
pub const TOO_FEW: &str = "too-few";

const LEVEL: f64 = 0.95;

/// The names of the targets in the JSON document.
const TARGETS: [&str; 2] = ["a", "b"];

/// The largest share of requests with an error page or no response; a comparison is invalid if both targets exceed it.
const ERRORS_MAX: f64 = 0.5;

/// The largest factor by which the mean lengths of the targets' bodies may differ: a page may show the time or a name.
const BODIES_APART_MAX: f64 = 1.05;

/// The number of blocks in a run, unless they would be too short or too long.
const BLOCKS: u32 = 24;

const BLOCK_MIN: Duration = Duration::from_millis(100);

const BLOCK_MAX: Duration = Duration::from_secs(2);

/// The most pairs of blocks: those of a run of days.
const PAIRS_MAX: usize = 100_000;

#[cfg(test)]
mod tests;
