//! Compares two targets fairly in one run.
//!
//! Two runs one after the other differ because the machine also does other work. So both targets
//! are measured in turn in short blocks: a pair of blocks has both, in random order, and the next
//! pair has the reverse order. The ratios within pairs are compared; their median has an interval
//! by order statistics. A difference between two single runs proves nothing.

use std::time::Duration;

use catamaran_stats::blocks::mirrored;
use catamaran_stats::{Share, fisher, is_quotable, order};

use crate::document::versus::{
    Block, Measure, SCHEMA, SilentBlocks, Versus, Warning as WarningFacts,
};
use crate::plan::{Plan, Stop, WarmUp};
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
        }
    }

    /// The plan of the next block; `None`: all blocks are done.
    pub fn next_plan(&self) -> Option<Plan> {
        let target = *self.order.get(self.blocks.len())?;
        let (block, lead) = (block(self.span), lead(self.span));
        let plan = self.plans[target].clone();
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

    /// The number of all blocks.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.order.len()
    }

    /// The number of blocks that are done.
    #[must_use]
    pub fn done(&self) -> usize {
        self.blocks.len()
    }

    /// Adds the report of the block whose plan [`Self::next_plan`] returned last.
    pub fn add(&mut self, report: &Report) {
        let Some(&target) = self.order.get(self.blocks.len()) else {
            return;
        };
        self.started_at_s
            .get_or_insert(report.started_at.as_secs_f64());
        for warning in report.warnings.iter().filter(|warning| matters(warning)) {
            self.warn(target, warning);
        }
        self.blocks
            .push(block_of(report, self.blocks.len() / 2, target));
    }

    /// The result of the comparison, once all blocks are done.
    #[must_use]
    pub fn finish(self) -> Versus {
        Versus {
            started_at_s: self.started_at_s.unwrap_or(0.0),
            block_s: block(self.span).as_secs_f64(),
            lead_s: lead(self.span).as_secs_f64(),
            warnings: self.warnings,
            ..conclude(self.urls, self.blocks)
        }
    }

    fn warn(&mut self, target: usize, warning: &Warning) {
        let kind = warning.token();
        let known = self.warnings.iter().position(|known| known.kind == kind);
        let at = known.unwrap_or_else(|| {
            self.warnings.push(WarningFacts {
                kind: kind.to_owned(),
                text: warning.text(),
                a: 0,
                b: 0,
            });
            self.warnings.len() - 1
        });
        let [first, second] = [usize::from(target == 0), usize::from(target == 1)];
        self.warnings[at].a += first;
        self.warnings[at].b += second;
    }
}

/// The result of the comparison as far as the blocks alone determine it.
fn conclude([a, b]: [String; 2], blocks: Vec<Block>) -> Versus {
    let measures = judge(&blocks);
    let pairs = blocks.len() / 2;
    let silences = ["a", "b"].map(|target| silent_blocks(target, &blocks));
    let mut sentence = sentence(&measures, pairs);
    if let Some(words) = unequal_silences(&silences, pairs) {
        sentence = format!("{sentence} {words}");
    }
    Versus {
        schema: SCHEMA.to_owned(),
        a,
        b,
        started_at_s: 0.0,
        block_s: 0.0,
        lead_s: 0.0,
        pairs,
        measures,
        silences: silences.to_vec(),
        blocks,
        warnings: Vec::new(),
        sentence,
    }
}

/// Whether a warning of a block matters for the comparison. That a block is short, for instance, is on purpose.
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
        target: ["a", "b"][target].to_owned(),
        requests: counts.started,
        requests_per_s: report.in_span.completed as f64 / report.elapsed.as_secs_f64().max(1e-9),
        p50_ms: percentile(50.0),
        p99_ms: percentile(99.0),
        errors: errors as f64 / counts.started.max(1) as f64,
        silences: report.silences.len(),
        longest_silence_ms: report
            .longest_silence
            .map(|silence| silence.length().as_secs_f64() * 1000.0),
    }
}

fn silent_blocks(target: &str, blocks: &[Block]) -> SilentBlocks {
    let of = || blocks.iter().filter(|block| block.target == target);
    SilentBlocks {
        target: target.to_owned(),
        blocks: of().filter(|block| block.silences > 0).count(),
        count: of().map(|block| block.silences).sum(),
        longest_ms: of()
            .filter_map(|block| block.longest_silence_ms)
            .fold(0.0, f64::max),
    }
}

/// A sentence if one of the two targets was silent in more blocks than chance explains; else `None`.
fn unequal_silences([a, b]: &[SilentBlocks; 2], pairs: usize) -> Option<String> {
    let share = |of: &SilentBlocks| Share {
        part: of.blocks as u64,
        whole: pairs as u64,
    };
    (fisher(share(a), share(b)) <= 1.0 - LEVEL).then(|| {
        format!(
            "But A gave no answer for up to {:.0} ms in {} of {pairs} blocks, B for up to {:.0} ms in {}: no p99 of \
             blocks shows that.",
            a.longest_ms, a.blocks, b.longest_ms, b.blocks
        )
    })
}

/// A function that reads a measure of a block; `None` if the block does not have it.
type Value = fn(&Block) -> Option<f64>;

/// Compares the measures of blocks, of which each two are a pair.
fn judge(blocks: &[Block]) -> Vec<Measure> {
    let mut measures: Vec<Measure> = MEASURES
        .iter()
        .map(|(name, unit, value)| measure(name, unit, *value, blocks))
        .collect();
    // Among several measures one may differ by chance, so each must be surer.
    let claims: Vec<usize> = (0..measures.len())
        .filter(|&at| measures[at].p < 1.0)
        .collect();
    let probabilities: Vec<f64> = claims.iter().map(|&at| measures[at].p).collect();
    let holds = order::holm(&probabilities, LEVEL);
    for (&at, holds) in claims.iter().zip(holds) {
        if measures[at].verdict == DIFFERS && !holds {
            measures[at].verdict = SUGGESTS.to_owned();
        }
    }
    measures
}

fn measure(name: &str, unit: &str, value: Value, blocks: &[Block]) -> Measure {
    let of = |target: &str| {
        let blocks = blocks.iter().filter(|block| block.target == target);
        let values: Vec<f64> = blocks.filter_map(value).collect();
        catamaran_stats::Spread::of(&values).map(|spread| spread.median)
    };
    let is_carried = name != "p99" || carries_p99(blocks);
    let ratios: Vec<f64> = blocks
        .chunks_exact(2)
        .filter(|_| is_carried)
        .filter_map(|pair| ratio(pair, value))
        .collect();
    let interval = order::median_interval(&ratios, LEVEL);
    let pairs = blocks.len() / 2;
    let (verdict, reason) = match interval {
        None => (TOO_FEW, Some(too_few(name, pairs, ratios.len()))),
        Some(interval) if interval.excludes(1.0) => (DIFFERS, None),
        Some(_) => (NONE_SHOWN, None),
    };
    let finite = |value: f64| value.is_finite().then_some(value);
    Measure {
        measure: name.to_owned(),
        unit: unit.to_owned(),
        a: of("a").and_then(finite),
        b: of("b").and_then(finite),
        pairs: ratios.len(),
        ratio: interval.and_then(|it| finite(it.median)),
        low: interval.and_then(|it| finite(it.low)),
        high: interval.and_then(|it| finite(it.high)),
        level: interval.map(|it| it.level),
        p: order::sign_test(&ratios),
        verdict: verdict.to_owned(),
        reason,
    }
}

/// A latency of a block in milliseconds. It is infinite if the block's requests had no response at all.
fn latency(block: &Block, millis: Option<f64>) -> Option<f64> {
    millis.or_else(|| (block.requests > 0).then_some(f64::INFINITY))
}

/// Whether the blocks have enough requests for a 99th percentile: most blocks of one target must. A
/// target that stalls has few requests in its slow blocks, which count as much as its fast ones.
fn carries_p99(blocks: &[Block]) -> bool {
    ["a", "b"].iter().any(|target| {
        let of = blocks.iter().filter(|block| block.target == *target);
        let requests: Vec<f64> = of.map(|block| block.requests as f64).collect();
        let spread = catamaran_stats::Spread::of(&requests);
        spread.is_some_and(|spread| is_quotable(99.0, spread.median as u64))
    })
}

/// The value of `a` divided by that of `b`; `None` if one of them has no value. Zero by zero is 1: they do not differ.
fn ratio(pair: &[Block], value: Value) -> Option<f64> {
    let of = |target: &str| {
        pair.iter()
            .find(|block| block.target == target)
            .and_then(value)
    };
    let (a, b) = (of("a")?, of("b")?);
    Some(if a == b { 1.0 } else { a / b })
}

fn too_few(name: &str, pairs: usize, found: usize) -> String {
    let wanted = order::count_min(LEVEL);
    if pairs < wanted {
        return format!(
            "{pairs} pairs of blocks say nothing, {wanted} are needed: --duration {:.1}s or more",
            (2 * BLOCK_MIN).as_secs_f64() * wanted as f64
        );
    }
    if name == "p99" && found == 0 {
        return "p99 takes 1,000 requests in most blocks of a target, which a longer --duration or more \
                clients give"
            .to_owned();
    }
    format!("{found} of {pairs} pairs have requests in both blocks; {wanted} are needed")
}

fn sentence(measures: &[Measure], pairs: usize) -> String {
    let of = |verdict: &str| {
        let found = measures.iter().filter(|measure| measure.verdict == verdict);
        found.map(claim).collect::<Vec<_>>().join("; ")
    };
    let (differs, suggests) = (of(DIFFERS), of(SUGGESTS));
    if !differs.is_empty() {
        format!("A has {differs}.")
    } else if !suggests.is_empty() {
        format!(
            "No difference shown. Suggested, but not beside the other measures: A has {suggests}."
        )
    } else if measures.iter().all(|measure| measure.verdict == TOO_FEW) {
        let reason = measures.first().and_then(|measure| measure.reason.clone());
        format!("No verdict: {}.", reason.unwrap_or_default())
    } else {
        format!("No difference shown in {pairs} pairs of blocks.")
    }
}

fn claim(measure: &Measure) -> String {
    let number = |value: Option<f64>| value.map_or_else(|| "∞".to_owned(), |it| format!("{it:.3}"));
    format!(
        "{} times the {} of B [{} .. {}]",
        number(measure.ratio),
        measure.measure,
        number(measure.low),
        number(measure.high)
    )
}

/// The verdict for a difference that holds even with several measures compared.
pub const DIFFERS: &str = "differs";

/// The verdict for a difference that holds only if its measure is seen alone.
pub const SUGGESTS: &str = "suggests";

/// The verdict if the interval contains 1.
pub const NONE_SHOWN: &str = "none-shown";

/// The verdict if there are too few pairs.
pub const TOO_FEW: &str = "too-few";

const LEVEL: f64 = 0.95;

/// The number of blocks in a run, unless they would be too short or too long.
const BLOCKS: u32 = 24;

const BLOCK_MIN: Duration = Duration::from_millis(100);

const BLOCK_MAX: Duration = Duration::from_secs(2);

/// The most pairs of blocks: those of a run of days.
const PAIRS_MAX: usize = 100_000;

const MEASURES: [(&str, &str, Value); 4] = [
    ("rate", "requests/s", |block| Some(block.requests_per_s)),
    ("p50", "ms", |block| latency(block, block.p50_ms)),
    ("p99", "ms", |block| latency(block, block.p99_ms)),
    ("errors", "share", |block| Some(block.errors)),
];

#[cfg(test)]
mod tests;
