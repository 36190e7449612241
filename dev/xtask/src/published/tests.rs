use std::path::{Path, PathBuf};

use catamaran_stats::repetition::Finding;

use super::evidence::{PageVerdict, cases};
use super::source::{Published, Source};
use super::*;
use crate::figures;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources() -> Vec<Source> {
    source::load(&root().join(FOLDER)).unwrap()
}

#[test]
fn the_page_is_what_sources_and_committed_results_give() {
    let results = figures::load(&root().join("docs/lab")).unwrap();
    let page = page(&root(), &results).unwrap();
    let committed = std::fs::read_to_string(root().join("docs/published.md")).unwrap();
    assert!(
        page == committed,
        "docs/published.md is stale: run `cargo xtask figures`"
    );
}

#[test]
fn a_page_of_another_result_is_stale() {
    let mut results = figures::load(&root().join("docs/lab")).unwrap();
    let before = page(&root(), &results).unwrap();
    // Whichever of them answers: a claim goes to the published form's result once that is committed.
    for (_, result) in &mut results {
        for claim in &mut result.claims {
            claim.high = claim.high.map(|high| high + 4.0);
        }
    }
    assert_ne!(page(&root(), &results).unwrap(), before);
}

/// A page that decides more than the results do would refute what they leave open. A ratio of single runs alone can be
/// refuted by what one more start of ours would have.
#[test]
fn no_claim_is_decided_that_its_result_leaves_open() {
    let results = figures::load(&root().join("docs/lab")).unwrap();
    let mut left_open = 0;
    for source in sources() {
        for claim in &source.claims {
            let answer = answer(&source, claim, &results).unwrap();
            let here = claim
                .here
                .iter()
                .find(|it| Some(&it.result) == answer.result.as_ref());
            let says = here.and_then(|it| Some((it, it.claim.as_ref()?)));
            let Some((here, says)) = says else { continue };
            let (_, result) = results.iter().find(|it| it.0 == here.result).unwrap();
            let is_ratio = matches!(claim.published(&source), Ok(Some(Published::Ratio(_))));
            for found in cases(here, says, result) {
                let verdict = &found.verdict.as_str();
                let is_decided = ["differs", "differs-little", "same"].contains(verdict);
                let has_starts = ["suggests", "not-shown"].contains(verdict);
                // Nor does the longest request of one run decide anything.
                if is_decided && !found.measure.ends_with("longest") {
                    continue;
                }
                let is_allowed = match answer.verdict {
                    PageVerdict::Decided(Finding::Open) => true,
                    PageVerdict::Decided(Finding::Refuted) => is_ratio && has_starts,
                    _ => false,
                };
                assert!(is_allowed, "{}: {verdict} {:?}", claim.id, answer.verdict);
                left_open += 1;
            }
        }
    }
    assert!(left_open > 10, "{left_open}");
}

/// The figures after `×` in a sentence, with their digits after the point.
fn ratios(text: &str) -> Vec<(f64, usize)> {
    let parts = text.split('×').skip(1);
    let number = |part: &str| {
        let end = part.find(|it: char| !it.is_ascii_digit() && it != '.');
        let text = part[..end.unwrap_or(part.len())].trim_end_matches('.');
        let digits = text.split_once('.').map_or(0, |(_, digits)| digits.len());
        Some((text.parse().ok()?, digits))
    };
    parts.filter_map(number).collect()
}

fn is_rounded(value: f64, (shown, digits): (f64, usize)) -> bool {
    (value - shown).abs() <= 0.5 * 10_f64.powi(-i32::try_from(digits).unwrap()) + 1e-9
}

#[test]
fn claims_have_the_figures_of_their_sources() {
    let mut checked = 0;
    for source in sources() {
        for claim in &source.claims {
            let shown = ratios(&claim.says);
            match claim.published(&source).unwrap() {
                Some(Published::Ratio(ratio)) => {
                    assert!(is_rounded(ratio, shown[0]), "{}: {ratio}", claim.id);
                }
                Some(Published::Range(ends)) => {
                    assert_eq!(shown.len(), 2, "{}", claim.id);
                    let is_end = |(end, shown)| is_rounded(end, shown);
                    assert!(ends.into_iter().zip(shown).all(is_end), "{}", claim.id);
                }
                Some(Published::Count(count)) => {
                    let words = claim.says.replace(',', "");
                    let mut words = words.split_whitespace();
                    let is_count = |word: &str| {
                        let digits = word.split_once('.').map_or(0, |(_, digits)| digits.len());
                        let shown: Option<f64> = word.parse().ok();
                        // A share is told as so many of so many.
                        shown.is_some_and(|shown| {
                            is_rounded(count, (shown, digits))
                                || is_rounded(count * 5000.0, (shown, 0))
                                || is_rounded(count * 1e6, (shown, 0))
                        })
                    };
                    assert!(words.any(is_count), "{}: {count}", claim.id);
                }
                Some(Published::Direction(_)) | None => continue,
            }
            checked += 1;
        }
    }
    assert!(checked > 20, "{checked}");
}

#[test]
fn the_bytes_of_ab_are_held_against_the_bytes_of_ab() {
    let results = figures::load(&root().join("docs/lab")).unwrap();
    let sources = sources();
    let verdict = |id: &str| {
        let source = sources.iter().find(|it| id.starts_with(&it.test)).unwrap();
        let claim = source.claims.iter().find(|it| it.id == id).unwrap();
        answer(source, claim, &results).unwrap()
    };
    let bytes = verdict("004.8");
    assert_eq!(bytes.verdict, PageVerdict::Decided(Finding::Reproduced));
    assert_eq!(bytes.here, "×1.022, two runs");
}

#[test]
fn open_claims_name_claims_of_their_experiment() {
    let mut named = 0;
    for source in sources() {
        let file = root().join(format!(
            "crates/lab/lab/experiments/{}.published.toml",
            source.experiment
        ));
        let text = std::fs::read_to_string(file).unwrap();
        for claim in &source.claims {
            let repetitions = claim
                .here
                .iter()
                .filter(|it| it.result.ends_with("-repetition"));
            for says in repetitions.filter_map(|it| it.claim.as_ref()) {
                assert!(
                    text.contains(&format!("says = \"{says}\"")),
                    "{}: {says}",
                    claim.id
                );
                named += 1;
            }
        }
    }
    assert!(named > 10, "{named}");
}

#[test]
fn a_number_that_is_not_in_the_source_is_an_error() {
    let sources = sources();
    let source = &sources[0];
    assert!(
        source
            .value("000-ajp:Total transferred / 000-http:Total transferred")
            .is_ok()
    );
    assert!(source.value("000-ajp:Total transfered").is_err());
    assert!(source.value("#nothing").is_err());
}
