use std::path::{Path, PathBuf};

use super::eras::Results;
use super::evidence::{CaseSize, EvidenceWeight, cases};
use super::source::{Published, Source};
use super::verdict::{NowVerdict, SentenceVerdict, ThenVerdict};
use super::*;
use crate::figures;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources() -> Vec<Source> {
    source::load(&root().join(FOLDER)).unwrap().sources
}

fn results() -> Vec<(String, LabResult)> {
    figures::load(&root().join("docs/lab")).unwrap()
}

fn answer_to(id: &str) -> Answer {
    let (sources, results) = (sources(), results());
    let source = sources.iter().find(|it| id.starts_with(&it.test)).unwrap();
    let claim = source.claims.iter().find(|it| it.id == id).unwrap();
    answer_by(source, claim, &results)
}

fn answer_by(source: &Source, claim: &Claim, results: &Results) -> Answer {
    let eras = Eras::of(results);
    let [then, now] =
        [Era::Then, Era::Now].map(|era| Evidence::of(source, eras.results_of(era)).unwrap());
    answer(source, claim, &then, &now).unwrap()
}

#[test]
fn committed_pages_pass_the_check() {
    check(&root()).unwrap();
}

#[test]
fn a_page_of_another_result_is_stale() {
    let mut results = results();
    let before = files(&root(), &results).unwrap().files;
    // Whichever of them answers: a claim goes to the published form's result once that is committed.
    for (_, result) in &mut results {
        for claim in &mut result.claims {
            claim.high = claim.high.map(|high| high + 4.0);
        }
    }
    assert_ne!(files(&root(), &results).unwrap().files, before);
}

/// A page that decides more than the results do would refute what they leave open.
#[test]
fn no_sentence_is_decided_that_its_result_leaves_open() {
    let results = results();
    let of_now = Eras::of(&results).now;
    let mut left_open = 0;
    for source in sources() {
        for claim in &source.claims {
            let answer = answer_by(&source, claim, &results);
            for here in &claim.here {
                let result = of_now.iter().find(|it| it.0 == here.result);
                let says = result.zip(here.claim.as_ref());
                let Some(((folder, result), says)) = says else {
                    continue;
                };
                let answers = answer.cases.iter().any(|it| it.result == *folder);
                let is_open = |it: &figures::LabClaim| !it.is_decided();
                if answers && cases(here, says, result).any(is_open) {
                    assert_eq!(answer.now, NowVerdict::Undecided, "{}", claim.id);
                    left_open += 1;
                }
            }
        }
    }
    assert!(left_open > 3, "{left_open}");
}

#[test]
fn six_starts_show_the_first_sentence_on_cpu_time_and_no_other() {
    let mut results = results();
    let cells = results.iter_mut().flat_map(|(_, result)| &mut result.cells);
    for measure in cells.flat_map(|cell| cell.measures.values_mut()) {
        let kept = measure.rounds.partition_point(|round| *round < 6);
        measure.rounds.truncate(kept);
        measure.values.truncate(kept);
    }
    let sources = sources();
    let source = sources.iter().find(|it| it.test == "001").unwrap();
    let weights_of = |id: &str| {
        let claim = source.claims.iter().find(|it| it.id == id).unwrap();
        let each = answer_by(source, claim, &results).cases.into_iter();
        let weights = each.map(|it| match it.size {
            CaseSize::Ratio { weight, .. } => weight,
            other => panic!("{id}: {other:?}"),
        });
        weights.collect::<Vec<_>>()
    };
    assert_eq!(weights_of("001.1"), [EvidenceWeight::Decides]);
    assert_eq!(weights_of("001.2"), [EvidenceWeight::MayBeChance; 2]);
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

/// Whether a sentence has a count, as it is or as so many of so many.
fn has_count(says: &str, count: f64) -> bool {
    let plain = says.replace(',', "");
    let mut words = plain.split(|it: char| !it.is_ascii_digit() && it != '.');
    words.any(|word| {
        let word = word.trim_end_matches('.');
        let digits = word.split_once('.').map_or(0, |(_, digits)| digits.len());
        let shown: Option<f64> = word.parse().ok();
        shown.is_some_and(|shown| {
            is_rounded(count, (shown, digits))
                || is_rounded(count * 5000.0, (shown, 0))
                || is_rounded(count * 1e6, (shown, 0))
        })
    })
}

#[test]
fn sentences_have_the_figures_of_their_sources() {
    let mut checked = 0;
    for source in sources() {
        for claim in &source.claims {
            let published = claim.published(&source).unwrap();
            for language in Language::ALL {
                let says = &source.texts_in(language).claim[&claim.id].says;
                let shown = ratios(says);
                match &published {
                    Some(Published::Ratio(ratio)) => {
                        assert!(is_rounded(*ratio, shown[0]), "{}: {ratio}", claim.id);
                    }
                    Some(Published::Range(ends)) => {
                        assert_eq!(shown.len(), 2, "{}", claim.id);
                        let is_end = |(end, shown): (&f64, _)| is_rounded(*end, shown);
                        assert!(ends.iter().zip(shown).all(is_end), "{}", claim.id);
                    }
                    Some(Published::Count(count)) => {
                        assert!(has_count(says, *count), "{}: {count}", claim.id);
                    }
                    Some(Published::Direction(_)) | None => continue,
                }
                checked += 1;
            }
        }
    }
    assert!(checked > 40, "{checked}");
}

#[test]
fn the_bytes_of_ab_are_held_against_the_bytes_of_ab() {
    let bytes = answer_to("004.8");
    assert_eq!(bytes.verdict, SentenceVerdict::HoldsThenAndNow);
    let CaseSize::Runs { counts, is_ratio } = &bytes.cases[0].size else {
        panic!("{bytes:?}");
    };
    assert!(*is_ratio && is_rounded(counts[0], (1.022, 3)), "{counts:?}");
}

#[test]
fn a_count_of_a_version_is_compared_with_that_version() {
    let calls = answer_to("004.5");
    assert_eq!(calls.then, ThenVerdict::Holds);
    assert_eq!(calls.now, NowVerdict::OtherVersion);
    assert_eq!(calls.verdict, SentenceVerdict::HoldsThen);
    // Nobody has run Apache 2.2 yet.
    assert_eq!(answer_to("000.8").verdict, SentenceVerdict::Undecided);
}

/// A sentence on speed, with a result of both eras in place of the committed one.
#[test]
fn a_result_of_both_eras_answers_for_both() {
    let sources = sources();
    let source = sources.iter().find(|it| it.test == "004").unwrap();
    let claim = source.claims.iter().find(|it| it.id == "004.1").unwrap();
    let by = |then: f64, now: f64| {
        let result = eras::tests::result_of_both(then, now);
        let folder = claim.here[0].result.clone();
        answer_by(source, claim, &[(folder, result)])
    };
    let answer = by(3.0, 1.5);
    assert_eq!(answer.then, ThenVerdict::Holds);
    assert_eq!(answer.verdict, SentenceVerdict::HoldsThenAndNow);
    assert_eq!(answer.then_cases.len(), 1);
    let answer = by(3.0, 0.7);
    assert_eq!(answer.then, ThenVerdict::Holds);
    assert_eq!(answer.verdict, SentenceVerdict::DoesNotHold);
}

#[test]
fn a_sentence_on_two_layouts_is_decided_only_if_they_agree() {
    let front = answer_to("003.3");
    let each: Vec<NowVerdict> = front.cases.iter().map(|it| it.now).collect();
    assert_eq!(each.len(), 2);
    let expected = if each[0] == each[1] {
        each[0]
    } else {
        NowVerdict::Undecided
    };
    assert_eq!(front.now, expected);
}

#[test]
fn sentences_name_claims_of_their_experiment() {
    let mut named = 0;
    for source in sources() {
        for claim in &source.claims {
            for here in claim.here.iter().chain(&claim.and) {
                let experiment = here.result.strip_suffix("-repetition");
                let Some((experiment, says)) = experiment.zip(here.claim.as_deref()) else {
                    continue;
                };
                let name = format!("crates/lab/lab/experiments/{experiment}.published.toml");
                let text = std::fs::read_to_string(root().join(name)).unwrap();
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
