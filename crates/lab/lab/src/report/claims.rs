//! The words for claims and published figures that all forms of reports use.

use catamaran_units::show_count;

use crate::claim::{Outcome, Survival, Verdict, can_only_suggest, number};
use crate::experiment::{PublishedRatio, label};
use crate::gate::{self, GateFinding};
use crate::measure::CAPACITY;
use crate::result::{CellResult, ResultDocument};

/// The levels of the claim's case in words; empty if the claim has only one case.
pub(super) fn case(claim: &Outcome) -> String {
    label(&claim.each)
}

/// The claim in words, with its case.
pub(super) fn named(claim: &Outcome) -> String {
    match case(claim) {
        none if none.is_empty() => claim.says.clone(),
        case => format!("{} ({case})", claim.says),
    }
}

/// The ratio with its interval; empty if there is none.
pub(super) fn ratio(claim: &Outcome) -> String {
    match (claim.ratio, claim.low, claim.high) {
        (Some(ratio), Some(low), Some(high)) => {
            format!("{} [{}..{}]", number(ratio), number(low), number(high))
        }
        _ => String::new(),
    }
}

/// The published ratio, such as `×1.10`; empty if there is none.
pub(super) fn published(claim: &Outcome) -> String {
    claim
        .published
        .map_or_else(String::new, PublishedRatio::words)
}

/// Sentences that tell whether throughput and capacity per core agree; empty where no server has a
/// declared part of a core, or no claim is about throughput.
pub(super) fn disagreements(result: &ResultDocument) -> Vec<String> {
    let has_capacity = |cell: &CellResult| cell.measures.contains_key(CAPACITY);
    let is_throughput =
        |claim: &&Outcome| claim.measure.name() == "throughput" && claim.ratio.is_some();
    let claims: Vec<&Outcome> = result.claims.iter().filter(is_throughput).collect();
    if claims.is_empty() || !result.cells.iter().any(has_capacity) {
        return Vec::new();
    }
    let words = |claim: &&Outcome| {
        let fired = claim.gates.iter().find(|fired| fired.gate == CAPACITY)?;
        Some(format!("{}: {}", named(claim), fired.words))
    };
    let found: Vec<String> = claims.iter().filter_map(words).collect();
    if found.is_empty() {
        return vec!["Throughput and capacity per core disagree in no claim.".to_owned()];
    }
    found
}

/// The rows of the table with [`PLANTED_HEADS`]; empty if no claim has a planted ratio.
pub(super) fn planted(result: &ResultDocument) -> Vec<Vec<String>> {
    let row = |claim: &Outcome| {
        let planted = claim.planted?;
        let off = claim.off().map(|off| format!("{:+.2} %", off * 100.0));
        let truly = claim.is_told_truly();
        let told = claim.ratio.zip(claim.low.zip(claim.high));
        let told = told.map(|(ratio, (low, high))| format!("{ratio:.3} [{low:.3}..{high:.3}]"));
        let after = planted.decided_after.map(|starts| starts.to_string());
        Some(vec![
            named(claim),
            format!("{:.3}", planted.ratio),
            told.unwrap_or_default(),
            off.unwrap_or_default(),
            truly
                .map_or("", |truly| if truly { "yes" } else { "**no**" })
                .to_owned(),
            after.unwrap_or_else(|| "open".to_owned()),
        ])
    };
    result.claims.iter().filter_map(row).collect()
}

/// The title of the table of planted ratios.
pub(super) const PLANTED: &str = "Planted, and told";

/// The explanation below the table of planted ratios.
pub(super) const PLANTED_LEGEND: &str = "The servers are made so that the true ratios are known. Truly: the interval has the planted ratio, or the median is \
     within 0.5 % of it. Starts: after so many starts of servers the verdict was the last one, beside all claims.";

pub(super) const PLANTED_HEADS: [&str; 6] = [
    "claim",
    "planted",
    "told, interval of 95 %",
    "off by",
    "truly",
    "starts",
];

/// For each side of a claim, the runs that it lost, and the failed requests in its other runs; empty if there are none,
/// or it is not known.
pub(super) fn survivors(claim: &Outcome) -> String {
    let lost = |of: fn(&Survival) -> [u64; 2], what: &str| {
        let known = || claim.survivors.iter();
        let words = known().filter(|cell| of(cell)[0] > 0).map(|cell| {
            let [part, whole] = of(cell);
            let name = match &cell.cell {
                none if none.is_empty() => String::new(),
                cell => format!(" with {cell}"),
            };
            let why = match cell.reasons() {
                why if why.is_empty() || what != RUNS => String::new(),
                why => format!(" ({why})"),
            };
            format!("{}{name}{why}", gate::of(part, whole))
        });
        let words: Vec<String> = words.collect();
        let others: u64 = known()
            .map(of)
            .filter(|[part, _]| *part == 0)
            .map(|[_, whole]| whole)
            .sum();
        match words[..] {
            [] => String::new(),
            _ if others == 0 => format!("{what}: {}.", words.join(", ")),
            _ => format!(
                "{what}: {}, none of {} others.",
                words.join(", "),
                show_count(others)
            ),
        }
    };
    let parts = [
        lost(|cell| [cell.void, cell.runs], RUNS),
        lost(
            |cell| [cell.failed, cell.completed + cell.failed],
            "Failed requests",
        ),
    ];
    let said = parts.iter().filter(|words| !words.is_empty());
    said.map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// The gates of a claim that its sentence does not name.
pub(super) fn gates(claim: &Outcome) -> impl Iterator<Item = &GateFinding> {
    let is_new = |fired: &&GateFinding| !claim.sentence.contains(&fired.words);
    claim.gates.iter().filter(is_new)
}

/// A remark on all claims together; empty if none is needed.
pub(super) fn remark(result: &ResultDocument) -> String {
    let suggested = result
        .claims
        .iter()
        .filter(|claim| claim.verdict == Verdict::Suggests);
    let mut sizes = suggested.map(|claim| (claim.sample(), claim.question));
    match sizes.find(|(starts, claims)| can_only_suggest(*starts, *claims)) {
        Some((starts, claims)) => format!(
            "“Suggests”: the interval excludes 1, but among {claims} claims on one measure chance alone may do that in \
             {starts} starts of servers. More of them can show it."
        ),
        None => String::new(),
    }
}

/// The conclusions that no published figure supports, if there are several figures; else empty.
pub(super) fn shared(result: &ResultDocument) -> Vec<&GateFinding> {
    let [first, others @ ..] = &result.published[..] else {
        return Vec::new();
    };
    if others.is_empty() {
        return Vec::new();
    }
    let is_shared = |fired: &&GateFinding| others.iter().all(|run| run.found.contains(fired));
    first.found.iter().filter(is_shared).collect()
}

/// The title for void runs, which were made again.
const RUNS: &str = "Void runs";
