//! The measures of a comparison: their values in a block, and the verdict on the ratios of all pairs.

use catamaran_stats::signed_rank::{self, Centre};
use catamaran_stats::{MOVEMENT_MAX, Spread, is_quotable, order, rank};

use super::{BLOCK_MIN, DIFFERS, LEVEL, MOVED, NONE_SHOWN, SUGGESTS, TOO_FEW, median};
use crate::document::versus::{Block, Measure};

/// Reads a measure of a block; `None` if the block does not have it.
type Value = fn(&Block) -> Option<f64>;

/// A measure that is compared.
struct MeasureRecord {
    name: &'static str,
    unit: &'static str,
    value: Value,
    /// Whether every comparison has a row for the measure. CPU time has one only if it is known of a block.
    is_always: bool,
}

/// Judges each measure by the ratios of the pairs; every two blocks after each other are a pair.
pub(super) fn judge(blocks: &[Block]) -> Vec<Measure> {
    // The CPU time of a server on another machine is not known.
    let has_row = |record: &&MeasureRecord| {
        record.is_always || blocks.iter().any(|block| (record.value)(block).is_some())
    };
    let records = MEASURES.iter().filter(has_row);
    let mut measures: Vec<Measure> = records.map(|record| measure(record, blocks)).collect();
    // With several measures, one may well differ by chance: Holm's correction allows for that.
    let mut claims: Vec<&mut Measure> = measures
        .iter_mut()
        .filter(|measure| measure.p < 1.0 && measure.verdict != MOVED)
        .collect();
    let probabilities: Vec<f64> = claims.iter().map(|measure| measure.p).collect();
    let all_hold = order::holm(&probabilities, LEVEL);
    for (measure, holds) in claims.iter_mut().zip(all_hold) {
        if measure.verdict == DIFFERS && !holds {
            measure.verdict = SUGGESTS.to_owned();
        }
    }
    measures
}

/// One measure of the comparison, with the verdict on it before other measures are considered.
fn measure(record: &MeasureRecord, blocks: &[Block]) -> Measure {
    let MeasureRecord {
        name, unit, value, ..
    } = *record;
    let mut ratios = Vec::new();
    if name != "p99" || carries_p99(blocks) {
        let pairs = blocks.chunks_exact(2);
        ratios.extend(pairs.filter_map(|pair| ratio(pair, value)));
    }
    let logs = logarithms(&ratios);
    let interval = signed_rank::centre(&logs, LEVEL);
    let pairs = blocks.len() / 2;
    let (verdict, reason) = match interval {
        Some(_) if let Some(words) = movement(&ratios) => (MOVED, Some(words)),
        None => (TOO_FEW, Some(too_few(name, pairs, ratios.len()))),
        Some(interval) if interval.excludes(0.0) => (DIFFERS, None),
        Some(_) => (NONE_SHOWN, None),
    };
    let finite = |value: f64| value.is_finite().then_some(value);
    let ratio_of =
        |logarithm: fn(Centre) -> f64| interval.and_then(|centre| finite(logarithm(centre).exp()));
    Measure {
        measure: name.to_owned(),
        unit: unit.to_owned(),
        a: median("a", blocks, value).and_then(finite),
        b: median("b", blocks, value).and_then(finite),
        pairs: ratios.len(),
        ratio: ratio_of(|centre| centre.estimate),
        low: ratio_of(|centre| centre.low),
        high: ratio_of(|centre| centre.high),
        level: interval.map(|_| LEVEL),
        p: signed_rank::p_value(&logs),
        verdict: verdict.to_owned(),
        reason,
    }
}

/// A latency of a block; infinite, thus slower than any other, if the block had requests but no responses.
fn latency(block: &Block, millis: Option<f64>) -> Option<f64> {
    millis.or_else(|| (block.requests > 0).then_some(f64::INFINITY))
}

/// Whether a 99th percentile can be compared: the median block of at least one target has enough requests for it. One
/// target suffices, because a target that stalls has few requests in its slow blocks, which must be compared, too.
fn carries_p99(blocks: &[Block]) -> bool {
    ["a", "b"].iter().any(|target| {
        let requests = median(target, blocks, |block| Some(block.requests as f64));
        requests.is_some_and(|requests| is_quotable(99.0, requests as u64))
    })
}

/// The value of `a` divided by that of `b`; `None` if a block has no value. Equal values have the ratio 1, even if both
/// are 0 or infinite.
fn ratio(pair: &[Block], value: Value) -> Option<f64> {
    let value_of = |target: &str| {
        let mut blocks = pair.iter();
        blocks.find(|block| block.target == target).and_then(value)
    };
    let (a, b) = (value_of("a")?, value_of("b")?);
    Some(if a == b { 1.0 } else { a / b })
}

/// The logarithms of ratios. Ratios of 0 and ∞ get logarithms so large that their mean with any other ratio is still 0
/// or ∞. Their mean with each other is 1.
fn logarithms(ratios: &[f64]) -> Vec<f64> {
    let logarithm = |ratio: &f64| ratio.ln().clamp(-FAR, FAR);
    ratios.iter().map(logarithm).collect()
}

/// How the ratio moved from the first half of the pairs to the second; `None` if it did not, or if a ratio is 0 or ∞. A
/// ratio that moved shows that a target was not warm, or changed. What slows both targets alike cancels out.
fn movement(ratios: &[f64]) -> Option<String> {
    let is_plain = |ratio: &f64| ratio.is_finite() && *ratio > 0.0;
    if !ratios.iter().all(is_plain) {
        return None;
    }
    let logs = logarithms(ratios);
    let (before, after) = logs.split_at(logs.len() / 2);
    let change = rank::shift(before, after, MOVED_LEVEL)?;
    let is_real = change.low > 0.0 || change.high < 0.0;
    if !is_real || change.estimate.abs() <= MOVEMENT_MAX.ln_1p() {
        return None;
    }
    let median = |half: &[f64]| Spread::of(half).map(|spread| spread.median.exp());
    Some(format!(
        "the ratio moved from ×{:.2} in the first half of the pairs to ×{:.2} in the second: a target was not warm, or \
         changed; --warmup warms both",
        median(before)?,
        median(after)?
    ))
}

/// Why there are too few ratios (`found`) for an interval, and how to get more.
fn too_few(name: &str, pairs: usize, found: usize) -> String {
    let wanted = signed_rank::count_min(LEVEL);
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

/// The logarithm that stands for an infinite ratio: even half of it exceeds the logarithm of any finite one.
const FAR: f64 = 10_000.0;

/// The confidence level at which ratios count as moved. It is above 95 % because several measures are tested in each
/// run.
const MOVED_LEVEL: f64 = 0.99;

const MEASURES: [MeasureRecord; 5] = [
    MeasureRecord {
        name: "rate",
        unit: "requests/s",
        value: |block| Some(block.requests_per_s),
        is_always: true,
    },
    MeasureRecord {
        name: "p50",
        unit: "ms",
        value: |block| latency(block, block.p50_ms),
        is_always: true,
    },
    MeasureRecord {
        name: "p99",
        unit: "ms",
        value: |block| latency(block, block.p99_ms),
        is_always: true,
    },
    MeasureRecord {
        name: "errors",
        unit: "share",
        value: |block| Some(block.errors),
        is_always: true,
    },
    MeasureRecord {
        name: "cpu",
        unit: "us",
        value: |block| block.cpu_us,
        is_always: false,
    },
];
