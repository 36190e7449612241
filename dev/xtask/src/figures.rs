//! The figures of pages, from committed results of the lab.
//!
//! Each figure of a page comes from a committed result. [`fn@write`] makes `docs/measured.md`, the pages of published
//! tests with their pictures, and two parts of the README from the `result.json` files below `docs/lab`, and the tables
//! of [`planted`] from its runs. [`stale`] names the pages that differ from what [`fn@write`] would write. The README's table shows only claims with the
//! verdict *shown*.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use serde::Deserialize;

use crate::planted;
use crate::published::{self, PageFile};

/// The members of a lab's `result.json` that pages show.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct LabResult {
    pub(crate) name: String,
    pub(crate) question: String,
    pub(crate) answer: String,
    #[serde(default)]
    pub(crate) is_quick: bool,
    #[serde(default)]
    pub(crate) is_published: bool,
    pub(crate) claims: Vec<LabClaim>,
    #[serde(default)]
    pub(crate) cells: Vec<LabCell>,
    /// For each round, the number of the start of servers that it belongs to.
    #[serde(default)]
    pub(crate) starts: Vec<usize>,
    #[serde(default)]
    pub(crate) as_published: Vec<LabPrinted>,
    /// Which CPU times were the limit by the experiment's file; `None`: it did not say.
    #[serde(default)]
    pub(crate) layout: Option<LabLayout>,
}

/// The layout of an experiment, as far as verdicts depend on it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct LabLayout {
    /// The measures of CPU time whose inverse is the capacity.
    pub(crate) limits: Vec<String>,
}

/// A claim of a result, with the verdict on it.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct LabClaim {
    pub(crate) says: String,
    /// The measure that the claim compares, such as `syscalls`.
    #[serde(default)]
    pub(crate) measure: String,
    /// The levels of the claim's case.
    #[serde(default)]
    pub(crate) each: serde_json::Map<String, serde_json::Value>,
    pub(crate) ratio: Option<f64>,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    /// The ratio of each start of servers, in their order.
    #[serde(default)]
    pub(crate) starts: Vec<f64>,
    pub(crate) verdict: String,
    /// Whether the verdict is the one that the experiment expects; `None` if the claim is not decided.
    #[serde(default)]
    pub(crate) as_expected: Option<bool>,
    pub(crate) sentence: String,
    /// The gates that forbid the claim.
    #[serde(default)]
    pub(crate) gates: Vec<LabGate>,
    /// The cells that the claim is about.
    #[serde(default)]
    pub(crate) survivors: Vec<LabSurvivors>,
}

/// A gate that forbids a claim.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct LabGate {
    pub(crate) gate: String,
    /// What it forbids: `time`, `machine` (CPU time, too) or `claim`.
    pub(crate) effect: String,
}

/// The runs of a cell that a claim counts.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct LabSurvivors {
    /// The label of the cell.
    pub(crate) cell: String,
}

/// A cell of a result, with its measurements.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct LabCell {
    pub(crate) levels: BTreeMap<String, serde_json::Value>,
    #[serde(default)]
    pub(crate) label: String,
    #[serde(default)]
    pub(crate) measures: BTreeMap<String, LabMeasure>,
    /// System calls for each request, by server and by name.
    #[serde(default)]
    pub(crate) calls: BTreeMap<String, BTreeMap<String, f64>>,
}

/// A measure of a cell, by round.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct LabMeasure {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) values: Vec<f64>,
    #[serde(default)]
    pub(crate) rounds: Vec<usize>,
}

/// A published run that was made again.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct LabPrinted {
    pub(crate) name: String,
    /// The text that ab printed in our repetition.
    pub(crate) ours: String,
}

/// A line of the README's table.
struct ReadmeFigure {
    /// The comparison, in words for a newcomer.
    text: &'static str,
    /// The folder below `docs/lab`, the claim of its result, and the claim's case as `factor=level` with spaces
    /// between.
    result: &'static str,
    claim: &'static str,
    case: &'static str,
}

/// Writes `docs/measured.md`, the pages of published tests, and the README's table and answers.
///
/// # Errors
///
/// A result cannot be read, no result has the claim of a figure of [`FIGURES`], or the README lacks the marks between
/// which these parts are written.
pub(crate) fn write(root: &Path) -> anyhow::Result<()> {
    for (name, text) in pages(root)? {
        let file = root.join(&name);
        let folder = file.parent().context("a page lies in a folder")?;
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        fs::write(file, text).with_context(|| format!("cannot write {name}"))?;
    }
    Ok(())
}

/// The names of pages that differ from what [`fn@write`] would write.
///
/// # Errors
///
/// As those of [`fn@write`].
pub(crate) fn stale(root: &Path) -> anyhow::Result<Vec<String>> {
    let pages = pages(root)?.into_iter();
    let differs =
        |(name, text): &PageFile| fs::read_to_string(root.join(name)).unwrap_or_default() != *text;
    Ok(pages.filter(differs).map(|(name, _)| name).collect())
}

/// The lines of the README that contain a ratio or an interval outside the table.
///
/// # Errors
///
/// As those of [`fn@write`].
pub(crate) fn untraced(root: &Path) -> anyhow::Result<Vec<String>> {
    let readme = fs::read_to_string(root.join(README)).context("cannot read README.md")?;
    let bare = between(&readme, FIGURES_MARKS, "")?;
    Ok(bare
        .lines()
        .filter(|line| has_figure(line))
        .map(str::to_owned)
        .collect())
}

/// Whether a line has a ratio, an interval or a quantity of time or memory with its unit.
fn has_figure(line: &str) -> bool {
    let words: Vec<&str> = line.split([' ', '(', '[', ',']).collect();
    let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    let is_unit = |word: &str| UNITS.contains(&word.trim_end_matches(['.', ';', ':', ')', '|']));
    let is_interval_or_percentage =
        |word: &&str| is_number(word) && (word.contains("..") || word.ends_with('%'));
    let is_quantity = |pair: &[&str]| is_number(pair[0]) && is_unit(pair[1]);
    line.contains('×')
        || words.iter().any(is_interval_or_percentage)
        || words.windows(2).any(is_quantity)
}

/// All pages with figures, each with its name and its text.
fn pages(root: &Path) -> anyhow::Result<Vec<PageFile>> {
    let results = load(&root.join("docs/lab"))?;
    let published = published::files(root, &results)?;
    let before = fs::read_to_string(root.join(README)).context("cannot read README.md")?;
    let with_table = between(&before, FIGURES_MARKS, &table(&results)?)?;
    let readme = between(&with_table, ANSWERS_MARKS, &published.answers)?;
    let mut files = published.files;
    files.push((README.to_owned(), readme));
    files.push((MEASURED.to_owned(), measured(&results)));
    files.push(planted::page(root)?);
    Ok(files)
}

/// Loads all results; each comes with the name of its folder.
pub(crate) fn load(folder: &Path) -> anyhow::Result<Vec<(String, LabResult)>> {
    let mut results = Vec::new();
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let entry = entry?;
        let file = entry.path().join("result.json");
        if !file.exists() {
            continue;
        }
        let text = fs::read_to_string(&file)?;
        let result: LabResult = serde_json::from_str(&text)
            .with_context(|| format!("{} is no result", file.display()))?;
        ensure!(
            !result.is_quick,
            "{} is of a short form, which decides nothing: commit one of a whole or published form",
            file.display()
        );
        results.push((entry.file_name().to_string_lossy().into_owned(), result));
    }
    results.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(results)
}

/// Makes the table of the README from those of [`FIGURES`] whose claim is decided.
fn table(results: &[(String, LabResult)]) -> anyhow::Result<String> {
    let mut table = String::from("| | ratio | report |\n|---|---|---|\n");
    for figure in FIGURES {
        let found = results.iter().find(|(folder, _)| folder == figure.result);
        let (_, result) = found.with_context(|| format!("docs/lab has no {}", figure.result))?;
        let has_name_and_case =
            |claim: &&LabClaim| claim.says == figure.claim && claim.case() == figure.case;
        let claim = result
            .claims
            .iter()
            .find(has_name_and_case)
            .with_context(|| {
                format!(
                    "docs/lab/{} has no claim {:?} ({})",
                    figure.result, figure.claim, figure.case
                )
            })?;
        if claim.verdict == SHOWN {
            let (text, ratio, name) = (figure.text, claim.ratio(), figure.result);
            writeln!(
                table,
                "| {text} | {ratio} | [{name}](docs/lab/{name}/report.md) |"
            )?;
        }
    }
    Ok(table)
}

/// Returns a page with `text` in place of what was between two marks.
pub(crate) fn between(page: &str, [begin, end]: [&str; 2], text: &str) -> anyhow::Result<String> {
    let parts = page.split_once(begin);
    let (before, rest) = parts.with_context(|| format!("the page has no mark {begin:?}"))?;
    let behind = rest.split_once(end);
    let (_, after) = behind.with_context(|| format!("the page has no mark {end:?}"))?;
    Ok(format!("{before}{begin}\n{text}{end}{after}"))
}

/// The page of all results.
fn measured(results: &[(String, LabResult)]) -> String {
    let mut page = String::from(INTRODUCTION);
    for (folder, result) in results {
        let decided = result.claims.iter().filter(|claim| claim.is_decided());
        let rows: Vec<String> = decided.map(LabClaim::row).collect();
        let form = if result.is_published {
            "published form"
        } else {
            "whole form"
        };
        let _ = write!(
            page,
            "\n## {folder}: {}\n\n[Report](lab/{folder}/report.md), {form} of `{}`. {} of {} claims are decided.\n",
            result.question,
            result.name,
            rows.len(),
            result.claims.len(),
        );
        let _ = if rows.is_empty() {
            writeln!(page, "\n{}", result.answer)
        } else {
            writeln!(
                page,
                "\n| claim | measure | verdict | ratio |\n|---|---|---|---|\n{}",
                rows.join("\n")
            )
        };
    }
    page.push_str(OTHERS);
    page
}

impl LabClaim {
    /// The levels of the claim's case, written as in [`FIGURES`].
    pub(crate) fn case(&self) -> String {
        let level = |(factor, level): (&String, &serde_json::Value)| {
            format!(
                "{factor}={}",
                level
                    .as_str()
                    .map_or_else(|| level.to_string(), str::to_owned)
            )
        };
        self.each.iter().map(level).collect::<Vec<_>>().join(" ")
    }

    /// How many starts would decide a claim that is open, as the claim's sentence estimates; `None` if it does not
    /// say.
    pub(crate) fn starts_to_decide(&self) -> Option<usize> {
        let (before, _) = self.sentence.split_once(" starts would decide it")?;
        before.rsplit(' ').next()?.parse().ok()
    }

    pub(crate) fn is_decided(&self) -> bool {
        WORDS.iter().any(|(verdict, _)| *verdict == self.verdict)
    }

    /// The claim's ratio with its interval, as text.
    fn ratio(&self) -> String {
        match (self.ratio, self.low, self.high) {
            (Some(ratio), Some(low), Some(high)) => {
                format!("×{} [{}..{}]", rounded(ratio), rounded(low), rounded(high))
            }
            _ => String::new(),
        }
    }

    /// The row of the claim in `docs/measured.md`. Claims that were expected to be the other way say so.
    fn row(&self) -> String {
        let word = match WORDS.iter().find(|(verdict, _)| *verdict == self.verdict) {
            Some((_, word)) => word,
            None => "",
        };
        let against = match self.as_expected {
            Some(false) => ", against it",
            Some(true) | None => "",
        };
        let mut case = self.case();
        if !case.is_empty() {
            case = format!(" ({case})");
        }
        format!(
            "| {}{case} | {} | {word}{against} | {} |",
            self.says,
            self.measure,
            self.ratio()
        )
    }
}

/// Writes a ratio with enough digits to tell it from 1, as the lab's reports do.
pub(crate) fn rounded(ratio: f64) -> String {
    if (ratio - 1.0).abs() < 0.02 {
        format!("{ratio:.3}")
    } else {
        format!("{ratio:.2}")
    }
}

const README: &str = "README.md";
const MEASURED: &str = "docs/measured.md";

/// The marks in the README before and after the table of figures.
const FIGURES_MARKS: [&str; 2] = [
    "<!-- figures: `cargo xtask figures` writes them -->",
    "<!-- end of figures -->",
];

/// The marks in the README before and after the answers to the published tests.
const ANSWERS_MARKS: [&str; 2] = [
    "<!-- answers: `cargo xtask figures` writes them -->",
    "<!-- end of answers -->",
];

/// The units that make a number of the README a measured figure. `%` is not among them: it also stands for the
/// confidence of an interval.
const UNITS: [&str; 9] = [
    "µs", "ms", "s", "B", "KiB", "MiB", "req/s", "times", "requests",
];

/// The verdict of a claim that is shown: its interval excludes 1, also considering the experiment's other
/// claims.
const SHOWN: &str = "differs";

/// The verdicts that decide a claim, each with the word of the lab's reports.
const WORDS: [(&str, &str); 3] = [
    (SHOWN, "shown"),
    ("differs-little", "shown, less than the margin"),
    ("same", "the same within the margin"),
];

/// The comparisons of the README in order, whether they are in our favour or not.
const FIGURES: &[ReadmeFigure] = &[
    ReadmeFigure {
        text: "CPU time of a browser's request, our front over AJP13 / httpd with mod_jk",
        result: "front-page",
        claim: "Our front takes less CPU than mod_jk",
        case: "fields=15+13",
    },
    ReadmeFigure {
        text: "CPU time of a browser's request, our front over HTTP/1.1 / nginx",
        result: "front-page",
        claim: "Our front takes less CPU than nginx, over HTTP/1.1",
        case: "fields=15+13",
    },
    ReadmeFigure {
        text: "CPU time of a browser's request, our front over HTTP/1.1 / HAProxy",
        result: "front-page",
        claim: "Our front takes less CPU than HAProxy",
        case: "fields=15+13",
    },
    ReadmeFigure {
        text: "CPU time of a browser's request, our front over HTTP/1.1 / a relay of bytes",
        result: "front-page",
        claim: "Understanding HTTP costs CPU beside moving bytes",
        case: "fields=15+13",
    },
    ReadmeFigure {
        text: "Bytes from our front to the application, AJP13 / HTTP/1.1",
        result: "ajp-vs-http",
        claim: "AJP moves fewer bytes to the application",
        case: "front=ours",
    },
    ReadmeFigure {
        text: "CPU time of a request, our connector on blocking threads / on epoll, 50 kept clients",
        result: "io-models",
        claim: "Our threads cost more than our epoll",
        case: "clients=50 keep=on",
    },
    ReadmeFigure {
        text: "System calls of a request on Apache's prefork, kept connections of clients / closed ones",
        result: "keepalive",
        claim: "Keep-alive saves system calls",
        case: "server=prefork",
    },
];

const INTRODUCTION: &str = "\
# What was measured

This page lists each committed result of [the lab](lab.md) with the claims that it decides, by
[the rule](lab.md#how-a-claim-is-decided) of all pages. A ratio is that of two levels over starts of servers, with the interval
that holds it with 95 % confidence; [the lab](lab.md#templates-and-measures) explains the measures. `against it` stands where a claim is refuted. One that is not decided is only in the report.
`catamaran lab run NAME` repeats an experiment; `cargo xtask figures` writes this page from `docs/lab/*/result.json`.
";

const OTHERS: &str = "
## Results of other commands

- [TLS and HTTP/2](lab/tls.md): the front beside nginx and HAProxy, by an example of the end-to-end tests.
- [Long runs under fire](lab/siege.md): what the front withstands, and how to repeat it.
- [HTTP/2](lab/http2.md): system calls, CPU time and memory.
- [The load generator](lab/bench.md) beside ab, wrk, h2load, wrk2 and oha.
- [The lab's method](lab/method.md): servers whose difference is known.

Other pages read several results together: [five published tests](published.md), one page each, and
[blocking and readiness](lab/blocking-and-readiness.md).
";

#[cfg(test)]
mod tests {
    use super::*;

    fn result(verdict: &str) -> Vec<(String, LabResult)> {
        let results = FIGURES.iter().map(|figure| {
            let claim = LabClaim {
                says: figure.claim.to_owned(),
                each: figure
                    .case
                    .split_whitespace()
                    .filter_map(|level| level.split_once('='))
                    .map(|(factor, level)| (factor.to_owned(), level.into()))
                    .collect(),
                ratio: Some(0.25),
                low: Some(0.2),
                high: Some(1.004),
                verdict: verdict.to_owned(),
                sentence: "A sentence.".to_owned(),
                ..LabClaim::default()
            };
            (figure.result.to_owned(), claim)
        });
        let mut folders: Vec<(String, LabResult)> = Vec::new();
        for (folder, claim) in results {
            match folders.iter_mut().find(|(name, _)| *name == folder) {
                Some((_, result)) => result.claims.push(claim),
                None => folders.push((
                    folder.clone(),
                    LabResult {
                        name: folder,
                        question: "Why?".to_owned(),
                        answer: "Because.".to_owned(),
                        claims: vec![claim],
                        ..LabResult::default()
                    },
                )),
            }
        }
        folders
    }

    #[test]
    fn the_readme_has_what_is_shown_and_nothing_else() {
        let rows = |verdict| table(&result(verdict)).unwrap().lines().count() - 2;
        assert_eq!(rows("differs"), FIGURES.len());
        for verdict in [
            "differs-little",
            "suggests",
            "same",
            "not-shown",
            "too-few",
            "no-claim",
        ] {
            assert_eq!(rows(verdict), 0, "{verdict}");
        }
        let table = table(&result("differs")).unwrap();
        assert!(
            table.contains("| ×0.25 [0.20..1.004] | [front-page](docs/lab/front-page/report.md) |"),
            "{table}"
        );
    }

    #[test]
    fn a_figure_without_a_claim_is_an_error() {
        let mut results = result("differs");
        results[0].1.claims.clear();
        assert!(table(&results).is_err());
        assert!(table(&[]).is_err());
    }

    #[test]
    fn an_open_claim_says_how_many_starts_would_decide_it() {
        let claim = |sentence: &str| LabClaim {
            sentence: sentence.to_owned(),
            ..LabClaim::default()
        };
        let open = claim("up to ×1.15 may be hidden. About 25 starts would decide it. 9 of 12");
        assert_eq!(open.starts_to_decide(), Some(25));
        let never = claim("No sensible number of starts would decide it.");
        assert_eq!(never.starts_to_decide(), None);
    }

    #[test]
    fn the_page_has_what_is_decided_with_its_verdict() {
        let page = measured(&result("same"));
        assert!(
            page.contains("| the same within the margin | ×0.25"),
            "{page}"
        );
        let mut refuted = result("differs");
        refuted[0].1.claims[0].as_expected = Some(false);
        let page = measured(&refuted);
        assert!(page.contains("| shown, against it | ×0.25"), "{page}");
        let page = measured(&result("suggests"));
        assert!(!page.contains("×0.25"), "{page}");
        assert!(page.contains("0 of 1 claims are decided"), "{page}");
    }

    #[test]
    fn a_figure_is_known_by_its_form() {
        for line in [
            "takes ×0.25 of it",
            "0.25 [0.22..0.31]",
            "needs 14 µs.",
            "a fifth, 20% less",
            "192 requests",
        ] {
            assert!(has_figure(line), "{line}");
        }
        for line in [
            "HTTP/1.1 and HTTP/2",
            "version 0.1.0",
            "port 8009 on 127.0.0.1",
        ] {
            assert!(!has_figure(line), "{line}");
        }
    }

    #[test]
    fn the_table_stands_between_its_marks() {
        let [begin, end] = FIGURES_MARKS;
        let readme = format!("a\n{begin}\nold\n{end}\nb\n");
        let written = between(&readme, FIGURES_MARKS, "new\n").unwrap();
        assert_eq!(written, format!("a\n{begin}\nnew\n{end}\nb\n"));
        assert!(between("a", FIGURES_MARKS, "new").is_err());
    }
}
