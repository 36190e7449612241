//! The words for claims and published figures that all forms of reports use.

use catamaran_stats::Share;
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
    if claim.each.is_empty() {
        return claim.says.clone();
    }
    format!("{} ({})", claim.says, case(claim))
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
    let mut sentences = Vec::new();
    for claim in claims {
        if let Some(fired) = claim.gates.iter().find(|fired| fired.gate == CAPACITY) {
            sentences.push(format!("{}: {}", named(claim), fired.words));
        }
    }
    if sentences.is_empty() {
        sentences.push("Throughput and capacity per core disagree in no claim.".to_owned());
    }
    sentences
}

/// The rows of the table with [`PLANTED_HEADS`]; empty if no claim has a planted ratio.
pub(super) fn planted(result: &ResultDocument) -> Vec<Vec<String>> {
    let row = |claim: &Outcome| {
        let planted = claim.planted?;
        let measured = match (claim.ratio, claim.low, claim.high) {
            (Some(ratio), Some(low), Some(high)) => format!("{ratio:.3} [{low:.3}..{high:.3}]"),
            _ => String::new(),
        };
        let error = claim.off().map(|error| format!("{:+.2} %", error * 100.0));
        let is_true = match claim.is_told_truly() {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "",
        };
        let decided_after = planted.decided_after.map(|starts| starts.to_string());
        Some(vec![
            named(claim),
            format!("{:.3}", planted.ratio),
            measured,
            error.unwrap_or_default(),
            is_true.to_owned(),
            decided_after.unwrap_or_else(|| "open".to_owned()),
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
    let runs = losses(claim, RUNS, |cell| Share {
        part: cell.void,
        whole: cell.runs,
    });
    let requests = losses(claim, "Failed requests", |cell| Share {
        part: cell.failed,
        whole: cell.completed + cell.failed,
    });
    let sentences: Vec<String> = [runs, requests].into_iter().flatten().collect();
    sentences.join(" ")
}

/// A sentence on the cells that lost a share of `what`; `None` if none did.
fn losses(claim: &Outcome, what: &str, lost: fn(&Survival) -> Share) -> Option<String> {
    let mut parts = Vec::new();
    let mut of_others = 0;
    for cell in &claim.survivors {
        let Share { part, whole } = lost(cell);
        if part == 0 {
            of_others += whole;
            continue;
        }
        let mut words = gate::part_of(part, whole);
        if !cell.cell.is_empty() {
            words += &format!(" with {}", cell.cell);
        }
        // The gates are those of runs.
        let reasons = cell.reasons();
        if what == RUNS && !reasons.is_empty() {
            words += &format!(" ({reasons})");
        }
        parts.push(words);
    }
    let parts = parts.join(", ");
    match of_others {
        _ if parts.is_empty() => None,
        0 => Some(format!("{what}: {parts}.")),
        _ => {
            let others = show_count(of_others);
            Some(format!("{what}: {parts}, none of {others} others."))
        }
    }
}

/// The gates of a claim that its sentence does not name.
pub(super) fn gates(claim: &Outcome) -> impl Iterator<Item = &GateFinding> {
    let is_new = |fired: &&GateFinding| !claim.sentence.contains(&fired.words);
    claim.gates.iter().filter(is_new)
}

/// What the claim's verdict on speed rests on by the layout, such as `capacity is 1 / cpu`; empty for other claims, and
/// without a layout.
pub(super) fn limit(result: &ResultDocument, claim: &Outcome) -> String {
    let layout = result.layout.as_ref();
    let limit = layout.and_then(|layout| layout.limit_of(&claim.measure));
    limit.unwrap_or_default()
}

/// The layout in a line; empty if the experiment's file has none.
pub(super) fn layout(result: &ResultDocument) -> String {
    let layout = result.layout.as_ref();
    layout.map_or_else(String::new, |layout| layout.sentences().join(" "))
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
