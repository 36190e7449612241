//! `cargo xtask published --check`: checks the committed pages.
//!
//! It reads them as a reader does, and compares the number of sentences, the rows of `docs/measured.md` with those of
//! the posts, and the figures of both languages. For each undecided sentence it says what would decide it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail, ensure};

use super::eras::{Era, Eras};
use super::evidence::{CaseAnswer, CaseSize};
use super::index::VerdictTally;
use super::language::Language;
use super::page::PostPage;
use super::source::{Direction, Here};
use super::verdict::{NowVerdict, SentenceVerdict};
use super::{FOLDER, Judged, judge, source, undecided};
use crate::figures;
use crate::step::say;

/// Checks the committed pages.
///
/// # Errors
///
/// A page is stale, the number of sentences is not [`CLAIMS`], more than [`UNDECIDED_MAX`] are undecided, a page contradicts `docs/measured.md`, the languages
/// have different figures, or a page is too long.
pub(crate) fn check(root: &Path) -> anyhow::Result<()> {
    let stale = figures::stale(root)?;
    ensure!(
        stale.is_empty(),
        "{} are stale: run `cargo xtask figures`",
        stale.join(", ")
    );
    let results = figures::load(&root.join("docs/lab"))?;
    let library = source::load(&root.join(FOLDER))?;
    let eras = Eras::of(&results);
    let judged = judge(&library, &eras)?;
    let measured_text = fs::read_to_string(root.join("docs/measured.md"))?;
    let measured = MeasuredPage::read(&measured_text);
    let mut tallies = Vec::new();
    let mut problems = Vec::new();
    let mut remedies = Vec::new();
    let mut compared = 0;
    for (source, claims) in &judged {
        let page = |language| PostPage {
            source,
            claims,
            results: &eras.now,
            phrases: &library.phrases,
            language,
        };
        tallies.push(VerdictTally::of(&page(Language::English)));
        for claim in claims {
            if let Some(words) = undecided::remedy(source, claim) {
                remedies.push(format!("undecided: {}, {words}", claim.claim.id));
            }
            let comparison = measured.contradictions(claim);
            compared += comparison.compared;
            problems.extend(comparison.problems);
        }
        let text = |language| {
            let name = format!("docs/published/{}", page(language).name());
            fs::read_to_string(root.join(&name)).context(name)
        };
        let (english, chinese) = (text(Language::English)?, text(Language::Chinese)?);
        problems.extend(same_figures(&source.test, &english, &chinese));
        problems.extend(too_long(&source.test, &english));
    }
    let sum = VerdictTally::sum(tallies.into_iter());
    if sum.claims() != CLAIMS {
        problems.push(format!(
            "there are {} sentences, not {CLAIMS}",
            sum.claims()
        ));
    }
    problems.extend(too_many_undecided(sum.count(SentenceVerdict::Undecided)));
    say_counts(&sum, compared);
    for words in &remedies {
        say(words);
    }
    for problem in &problems {
        say(&format!("error: {problem}"));
    }
    if !problems.is_empty() {
        bail!("{} problems", problems.len());
    }
    Ok(())
}

/// Prints how many sentences have each verdict. `compared` of them rest on claims of the lab.
fn say_counts(sum: &VerdictTally, compared: usize) {
    say(&format!(
        "claims {}: {} hold then and now, {} hold now, {} hold then, {} do not hold, {} undecided; {} not comparable\n\
         {compared} of them rest on claims of docs/measured.md or of a report",
        sum.claims(),
        sum.count(SentenceVerdict::HoldsThenAndNow),
        sum.count(SentenceVerdict::HoldsNow),
        sum.count(SentenceVerdict::HoldsThen),
        sum.count(SentenceVerdict::DoesNotHold),
        sum.count(SentenceVerdict::Undecided),
        sum.not_comparable(),
    ));
}

/// The rows of `docs/measured.md`: by result and by claim with its case, the verdict and the ratio as they are
/// written.
pub(super) struct MeasuredPage<'a> {
    rows: BTreeMap<(&'a str, &'a str), [&'a str; 2]>,
}

/// The result of comparing a sentence with `docs/measured.md`.
#[derive(Debug, Default)]
pub(super) struct PageComparison {
    /// The number of its places of evidence that are claims of the lab.
    compared: usize,
    pub(super) problems: Vec<String>,
}

impl<'a> MeasuredPage<'a> {
    /// Reads the rows of the page. A heading is `## RESULT: QUESTION`, a row `| claim | measure | verdict | ratio
    /// |`.
    pub(super) fn read(page: &'a str) -> Self {
        let mut rows = BTreeMap::new();
        let mut result = "";
        for line in page.lines() {
            if let Some(heading) = line.strip_prefix("## ") {
                result = heading.split(':').next().unwrap_or_default();
            }
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            if let [_, claim, _, verdict, ratio, _] = cells.as_slice() {
                rows.insert((result, *claim), [*verdict, *ratio]);
            }
        }
        Self { rows }
    }

    /// Compares a sentence with the rows of the claims that answer it.
    pub(super) fn contradictions(&self, judged: &Judged<'_>) -> PageComparison {
        let mut comparison = PageComparison::default();
        let claim = judged.claim;
        for here in claim.here.iter().chain(&claim.and) {
            let Some(says) = &here.claim else { continue };
            let answer = &judged.answer;
            for (era, cases) in [(Era::Then, &answer.then_cases), (Era::Now, &answer.cases)] {
                let mut cases = cases.iter();
                let is_of_place = |case: &&CaseAnswer| case.result == here.result;
                let Some(case) = cases.find(is_of_place) else {
                    continue;
                };
                if here.era.is_some_and(|own| own != era) {
                    continue;
                }
                comparison.compared += 1;
                let problem = match self.row(here, says, era) {
                    Some([verdict, ratio]) => disagreement(answer.side, case, verdict, ratio),
                    None if case.now == NowVerdict::Undecided => None,
                    None => Some("docs/measured.md does not decide it".to_owned()),
                };
                if let Some(problem) = problem {
                    let place = format!("{}, docs/lab/{}, {says:?}", claim.id, here.result);
                    comparison.problems.push(format!("{place}: {problem}"));
                }
            }
        }
        comparison
    }

    /// The verdict and ratio of the lab's claim `says` at an era, in the case that has all levels that `here` names. A
    /// row without an era is of today's software.
    fn row(&self, here: &Here, says: &str, era: Era) -> Option<&[&'a str; 2]> {
        let row = self.rows.iter().find(|((result, name), _)| {
            let (base, case) = name.split_once(" (").unwrap_or((name, ""));
            let levels: Vec<&str> = case.trim_end_matches(')').split(' ').collect();
            let mut wanted = here.case.split_whitespace();
            let of_row = if levels.contains(&THEN) {
                Era::Then
            } else {
                Era::Now
            };
            *result == here.result
                && base == says
                && of_row == era
                && wanted.all(|level| levels.contains(&level))
        });
        row.map(|(_, cells)| cells)
    }
}

/// How a row of `docs/measured.md` contradicts the answer of a case; `None` if it does not. `side` is the side of 1
/// on which the sentence says that the ratio lies.
fn disagreement(
    side: Option<Direction>,
    case: &CaseAnswer,
    verdict: &str,
    ratio: &str,
) -> Option<String> {
    let CaseSize::Ratio { ends, .. } = &case.size else {
        return Some(format!(
            "docs/measured.md has {ratio}, and the page no ratio"
        ));
    };
    let [low, centre, high] = *ends;
    let written = numbers(ratio);
    // A ratio is written as its estimate, then the ends of its interval.
    let mut pairs = [centre, low, high].into_iter().zip(&written);
    if written.len() != 3 || !pairs.all(|(own, text)| is_rounded(own, text)) {
        return Some(format!(
            "docs/measured.md has {ratio}, and the page {ends:?}"
        ));
    }
    let side = side?;
    let is_on_side = side.has(low) && side.has(high);
    let is_beyond_margin = verdict.starts_with("shown") && !verdict.contains("margin");
    let expected = if is_beyond_margin && is_on_side {
        NowVerdict::Holds
    } else {
        NowVerdict::DoesNotHold
    };
    (case.now != expected).then(|| {
        format!(
            "docs/measured.md says {verdict:?}, and the page {:?}",
            case.now
        )
    })
}

/// Whether a number is written as `written`, with as many digits as that has.
fn is_rounded(number: f64, written: &str) -> bool {
    let digits = written.split_once('.').map_or(0, |(_, it)| it.len());
    let half = 0.5 * 10_f64.powi(-i32::try_from(digits).unwrap_or(0));
    let parsed: Result<f64, _> = written.parse();
    parsed.is_ok_and(|it| (it - number).abs() <= half + 1e-9)
}

/// Messages about figures that only one of the two languages of a page has.
pub(super) fn same_figures(test: &str, english: &str, chinese: &str) -> Vec<String> {
    let count = |text: &str| {
        let mut counts: BTreeMap<String, i64> = BTreeMap::new();
        for number in numbers(text) {
            *counts.entry(number).or_default() += 1;
        }
        counts
    };
    let mut in_chinese = count(chinese);
    let mut problems = Vec::new();
    for (number, times) in count(english) {
        let chinese_times = in_chinese.remove(&number).unwrap_or(0);
        if chinese_times != times {
            problems.push(format!(
                "{test}: {number} stands {times} times on the English page and {chinese_times} times on the Chinese one"
            ));
        }
    }
    for number in in_chinese.into_keys() {
        problems.push(format!("{test}: {number} stands on the Chinese page alone"));
    }
    problems
}

/// The numbers of a text, without commas between thousands.
fn numbers(text: &str) -> Vec<String> {
    let mut numbers = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        rest = &rest[start..];
        let bytes = rest.as_bytes();
        let is_digit = |index: usize| bytes.get(index).is_some_and(u8::is_ascii_digit);
        // A dot or a comma belongs to the number only if a digit follows.
        let is_inner_sign = |index: usize| {
            bytes.get(index).is_some_and(|byte| b".,".contains(byte)) && is_digit(index + 1)
        };
        let mut end = 0;
        while is_digit(end) || is_inner_sign(end) {
            end += 1;
        }
        numbers.push(rest[..end].replace(',', ""));
        rest = &rest[end..];
    }
    numbers
}

/// A message if a page has more than [`WORDS_MAX`] visible words.
pub(super) fn too_long(test: &str, page: &str) -> Option<String> {
    let visible = page.split("<details>").next().unwrap_or_default();
    let is_word = |it: &&str| it.contains(char::is_alphanumeric);
    let words = visible.split_whitespace().filter(is_word).count();
    (words > WORDS_MAX).then(|| format!("{test}: {words} visible words, and {WORDS_MAX} may be"))
}

/// A message if more sentences are undecided than were when the number was last written down.
fn too_many_undecided(count: usize) -> Option<String> {
    (count > UNDECIDED_MAX).then(|| {
        format!("{count} sentences are undecided, and at most {UNDECIDED_MAX} may be; {UNDECIDED_AIM} is the aim")
    })
}

/// The number of sentences that a repetition can decide, so that none is lost unnoticed.
const CLAIMS: usize = 53;

/// The most sentences that may be undecided. It is lowered when new results decide some, and never raised.
const UNDECIDED_MAX: usize = 11;

/// How many may be undecided in the end.
const UNDECIDED_AIM: usize = 5;

/// The level of the factor `era` for the post's own software, as rows of `docs/measured.md` name it.
const THEN: &str = "era=then";

/// The most words of a page that are not folded away.
const WORDS_MAX: usize = 1200;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::evidence::EvidenceWeight;

    #[test]
    fn a_figure_of_one_language_is_named() {
        let one = "×1.14 [1.08..1.20] of 5,000 with 2.0.63";
        assert_eq!(numbers(one), ["1.14", "1.08", "1.20", "5000", "2.0.63"]);
        assert!(same_figures("000", one, "2.0.63 的 5,000：×1.14 [1.08..1.20]").is_empty());
        assert_eq!(
            same_figures("000", one, "×1.14 [1.08..1.20] 2.0.63").len(),
            1
        );
        assert_eq!(same_figures("000", "1", "1 2").len(), 1);
    }

    #[test]
    fn a_page_that_says_otherwise_than_a_row_contradicts_it() {
        let case = |ends, now| CaseAnswer {
            result: "a".to_owned(),
            case: String::new(),
            measure: "cpu".to_owned(),
            size: CaseSize::Ratio {
                ends,
                is_capacity: false,
                starts_to_decide: None,
                weight: EvidenceWeight::Decides,
            },
            now,
        };
        let less = case([0.612, 0.676, 0.689], NowVerdict::Holds);
        let found = |case: &CaseAnswer, verdict, ratio| {
            disagreement(Some(Direction::Less), case, verdict, ratio).is_some()
        };
        assert!(!found(&less, "shown", "×0.68 [0.61..0.69]"));
        assert!(found(
            &less,
            "the same within the margin",
            "×0.68 [0.61..0.69]"
        ));
        assert!(found(&less, "shown", "×0.67 [0.61..0.69]"));
        let refuted = case([0.977, 0.985, 0.993], NowVerdict::DoesNotHold);
        assert!(!found(
            &refuted,
            "shown, less than the margin",
            "×0.985 [0.98..0.993]"
        ));
    }

    #[test]
    fn the_number_of_undecided_sentences_does_not_grow() {
        assert_eq!(too_many_undecided(UNDECIDED_MAX), None);
        let words = too_many_undecided(UNDECIDED_MAX + 1).unwrap();
        assert!(words.contains("5 is the aim"), "{words}");
    }

    #[test]
    fn folded_words_are_not_counted() {
        let words = "word ".repeat(WORDS_MAX);
        assert_eq!(
            too_long("000", &format!("{words}| --- | <details> word")),
            None
        );
        assert!(too_long("000", &format!("{words}word")).is_some());
    }
}
