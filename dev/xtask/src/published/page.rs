//! The page's text.

use std::fmt::Write as _;

use anyhow::Context;
use catamaran_stats::repetition::Finding;

use super::Judged;
use super::evidence::{PageVerdict, cell, count_in_words, ratio_in_words};
use super::source::{CellPlace, Direction, PrintedText, Published, Reason, Source, number};
use super::text::{Figure, figures};
use crate::figures::{LabCell, LabClaim, LabResult, rounded};

/// The page of all sources.
///
/// # Errors
///
/// A source names a cell that its result does not have.
pub(super) fn write(
    judged: &[(&Source, Vec<Judged<'_>>)],
    results: &[(String, LabResult)],
) -> anyhow::Result<String> {
    let mut page = INTRODUCTION.to_owned();
    page += &counts(judged)?;
    page += RULES;
    for reason in Reason::ALL {
        let _ = writeln!(page, "- {}", reason.words());
    }
    page += MISSING;
    for (source, claims) in judged {
        page += &section(source, claims, results)?;
    }
    Ok(page)
}

/// How many claims of each source, and of each kind, came to what.
fn counts(judged: &[(&Source, Vec<Judged<'_>>)]) -> anyhow::Result<String> {
    let mut kinds: [(&str, Tally); 3] = [
        ("ratios", Tally::default()),
        ("directions", Tally::default()),
        ("counts of bytes, calls or answers", Tally::default()),
    ];
    let mut all = Tally::default();
    let mut rows = String::new();
    for (source, claims) in judged {
        let mut of_source = Tally::default();
        for Judged { claim, answer } in claims {
            of_source.add(answer.verdict);
            all.add(answer.verdict);
            let kind = match claim.published(source)? {
                Some(Published::Ratio(_) | Published::Range(_)) => 0,
                Some(Published::Direction(_)) => 1,
                Some(Published::Count(_)) => 2,
                None => continue,
            };
            kinds[kind].1.add(answer.verdict);
        }
        let name = format!("[{}]({})", source.test, anchor(source));
        rows += &of_source.row(&name);
    }
    let mut text = format!(
        "**{} of {} claims are decided ({:.0} %): {} reproduced, {} refuted, {} open.** {} more cannot be \
         compared.\n\n{HEADS}{rows}{}",
        all.decided(),
        all.claims(),
        100.0 * all.decided() as f64 / all.claims().max(1) as f64,
        all.reproduced,
        all.refuted,
        all.open,
        all.not_comparable,
        all.row("all")
    );
    for (name, tally) in &kinds {
        text += &tally.row(&format!("of these, {name}"));
    }
    Ok(text)
}

/// The numbers of verdicts, by kind.
#[derive(Default)]
struct Tally {
    reproduced: usize,
    refuted: usize,
    open: usize,
    not_comparable: usize,
}

impl Tally {
    fn add(&mut self, verdict: PageVerdict) {
        let count = match verdict {
            PageVerdict::Decided(Finding::Reproduced) => &mut self.reproduced,
            PageVerdict::Decided(Finding::Refuted) => &mut self.refuted,
            PageVerdict::Decided(Finding::Open) => &mut self.open,
            PageVerdict::NotComparable(_) => &mut self.not_comparable,
        };
        *count += 1;
    }

    /// The number of claims that could be decided.
    fn claims(&self) -> usize {
        self.decided() + self.open
    }

    fn decided(&self) -> usize {
        self.reproduced + self.refuted
    }

    fn row(&self, name: &str) -> String {
        format!(
            "| {name} | {} | {} | {} | {} | {} |\n",
            self.claims(),
            self.reproduced,
            self.refuted,
            self.open,
            self.not_comparable
        )
    }
}

fn section(
    source: &Source,
    claims: &[Judged<'_>],
    results: &[(String, LabResult)],
) -> anyhow::Result<String> {
    let mut text = format!(
        "\n## {}: {}\n\nPublished: {}. The experiment `{}` repeats it.\n\n| claim, and where it stands | published | here | verdict |\n\
         |---|---|---|---|\n",
        source.test, source.title, source.ran, source.experiment
    );
    for judged in claims {
        text += &row(source, judged)?;
    }
    let is_open = |it: &Judged<'_>| it.answer.verdict == PageVerdict::Decided(Finding::Open);
    let is_repeated = |it: &Judged<'_>| {
        let mut here = it.claim.here.iter();
        here.any(|it| it.result.ends_with(REPETITION))
    };
    if claims.iter().any(is_open) {
        let open = claims.iter().filter(|it| is_open(it) && !is_repeated(it));
        let left: Vec<&str> = open.map(|it| it.claim.id.as_str()).collect();
        let left = match left.as_slice() {
            [] => String::new(),
            left => format!(" It has nothing of {}.", left.join(", ")),
        };
        let _ = writeln!(
            text,
            "\nFor the open claims: `{}`, whose cells are the source's alone.{left}",
            source.repeat
        );
    }
    text += "\nWhat is to be known of its figures:\n\n";
    for remark in &source.remarks {
        let _ = writeln!(text, "- {remark}");
    }
    text += &compared(source, results)?;
    text += &numbers(source, results)?;
    Ok(text)
}

fn row(source: &Source, Judged { claim, answer }: &Judged<'_>) -> anyhow::Result<String> {
    let published = match claim.published(source)? {
        None => String::new(),
        Some(Published::Ratio(ratio)) if claim.is_one_number() => format!("×{ratio}"),
        Some(Published::Ratio(ratio)) => ratio_in_words(ratio),
        Some(Published::Range([from, to])) => format!("×{from} to ×{to}"),
        Some(Published::Count(count)) => count_in_words(count),
        Some(Published::Direction(Direction::More)) => "more".to_owned(),
        Some(Published::Direction(Direction::Less)) => "less".to_owned(),
    };
    let result = answer.result.as_ref();
    let link = result.map(|name| format!(" ([{name}](lab/{name}/report.md))"));
    let verdict = match answer.verdict {
        PageVerdict::Decided(Finding::Reproduced) => "**reproduced**".to_owned(),
        PageVerdict::Decided(Finding::Refuted) => "**refuted here**".to_owned(),
        PageVerdict::Decided(Finding::Open) => "open".to_owned(),
        PageVerdict::NotComparable(reason) => format!("not comparable: {}", reason.words()),
    };
    let mut here = answer.here.clone() + &link.unwrap_or_default();
    if let Some(note) = &claim.note {
        let is_sentence = here.is_empty() || here.ends_with('.');
        here += if is_sentence { "" } else { "." };
        here = format!("{here} {note}").trim_start().to_owned();
    }
    Ok(format!(
        "| {} {} *({})* | {published} | {here} | {verdict} |\n",
        claim.id, claim.says, claim.at
    ))
}

/// The table that shows the same claims of several results side by side.
fn compared(source: &Source, results: &[(String, LabResult)]) -> anyhow::Result<String> {
    let Some(compare) = &source.compare else {
        return Ok(String::new());
    };
    let mut sides = Vec::new();
    for name in &compare.results {
        let result = results.iter().find(|(folder, _)| folder == name);
        sides.push(&result.with_context(|| format!("docs/lab has no {name}"))?.1);
    }
    let mut text = format!("\n{}\n\n| claim |", compare.says);
    for name in &compare.results {
        let _ = write!(text, " [{name}](lab/{name}/report.md) |");
    }
    text += "\n|---|";
    text += &"---|".repeat(sides.len());
    text += "\n";
    let first = sides.first().context("`compare` names no result")?;
    let named = first
        .claims
        .iter()
        .filter(|it| compare.claims.contains(&it.says));
    for claim in named {
        let _ = write!(text, "| {} ({}) |", claim.says, claim.case());
        for side in &sides {
            let is_same = |it: &&LabClaim| it.says == claim.says && it.case() == claim.case();
            let figure = side.claims.iter().find(is_same).map(of_starts);
            let _ = write!(text, " {} |", figure.unwrap_or_default());
        }
        text += "\n";
    }
    Ok(text)
}

/// The interval of a claim; without one, the lowest and the highest value of its starts.
fn of_starts(claim: &LabClaim) -> String {
    if let (Some(ratio), Some(low), Some(high)) = (claim.ratio, claim.low, claim.high) {
        return format!("×{} [{}..{}]", rounded(ratio), rounded(low), rounded(high));
    }
    let starts = claim.starts.iter().copied();
    match (starts.clone().reduce(f64::min), starts.reduce(f64::max)) {
        (Some(low), Some(high)) => format!(
            "×{} to ×{}, {} starts",
            rounded(low),
            rounded(high),
            claim.starts.len()
        ),
        _ => "no claim".to_owned(),
    }
}

/// All numbers of a source beside ours, in a part of the page that is folded.
fn numbers(source: &Source, results: &[(String, LabResult)]) -> anyhow::Result<String> {
    let mut text =
        "\n<details><summary>Every number of the source, and ours beside it</summary>\n".to_owned();
    let (tables, blocks): (Vec<&PrintedText>, Vec<&PrintedText>) =
        source.texts.iter().partition(|it| it.requests.is_some());
    text += &table_of_blocks(&blocks, results);
    for table in tables {
        text += &table_of_calls(table, results)?;
    }
    if source.numbers.iter().any(|it| it.from.is_some()) {
        text += "\nBrackets in this table are the source's interval, and the lowest and the highest of our runs.\n";
    }
    if !source.numbers.is_empty() {
        text += "\n| number | where it stands | published | here |\n|---|---|---|---|\n";
    }
    for it in &source.numbers {
        let interval = it.from.zip(it.to);
        let interval = interval.map_or_else(String::new, |(from, to)| format!(" [{from}..{to}]"));
        let ours = throughput(&it.here, results)?;
        let _ = writeln!(
            text,
            "| {} | {} | {}{interval} | {ours} |",
            it.what, it.at, it.value
        );
    }
    text += "\n| setting | where it stands | published |\n|---|---|---|\n";
    for [what, value, at] in &source.settings {
        let _ = writeln!(text, "| {what} | {at} | {value} |");
    }
    text += "\n</details>\n";
    Ok(text)
}

/// A table of ab's printed fields: for each published text a column, and beside it one for ours.
fn table_of_blocks(blocks: &[&PrintedText], results: &[(String, LabResult)]) -> String {
    let Some(first) = blocks.first() else {
        return String::new();
    };
    let mut text = "\nab's numbers, each of one run; ours with the source's own values, made once.\n\n| number |"
        .to_owned();
    let ours: Vec<_> = blocks
        .iter()
        .map(|block| repeated_figures(block, results))
        .collect();
    for block in blocks {
        let _ = write!(text, " {}, {} | here |", block.name, block.at);
    }
    text += "\n|---|";
    text += &"---|---|".repeat(blocks.len());
    text += "\n";
    for Figure { name, .. } in &first.figures {
        let _ = write!(text, "| {name} |");
        let printed = |figures: &[Figure]| {
            let found = figures.iter().find(|it| it.name == *name);
            found.map_or_else(String::new, |it| it.printed.clone())
        };
        for (block, ours) in blocks.iter().zip(&ours) {
            let _ = write!(text, " {} | {} |", printed(&block.figures), printed(ours));
        }
        text += "\n";
    }
    // Fields that only later blocks have, such as answers on kept connections.
    let is_new = |name: &str| number(&first.figures, name).is_none();
    for (place, block) in blocks.iter().enumerate() {
        for figure in block.figures.iter().filter(|it| is_new(&it.name)) {
            let mut cells = vec![String::new(); blocks.len() * 2];
            cells[place * 2].clone_from(&figure.printed);
            let here = ours[place].iter().find(|it| it.name == figure.name);
            cells[place * 2 + 1] = here.map_or_else(String::new, |it| it.printed.clone());
            let _ = writeln!(text, "| {} | {} |", figure.name, cells.join(" | "));
        }
    }
    text
}

/// The figures that ab printed when the run of `block` was repeated; empty if no committed result has it.
fn repeated_figures(block: &PrintedText, results: &[(String, LabResult)]) -> Vec<Figure> {
    let repeated = block.here.iter().find_map(|name| {
        let (_, result) = results.iter().find(|(folder, _)| folder == name)?;
        let mut runs = result.as_published.iter();
        runs.find(|run| run.name == block.name)
    });
    repeated.map_or_else(Vec::new, |run| figures(&run.ours))
}

/// A table of the calls that strace counted, with our calls per request beside them.
fn table_of_calls(table: &PrintedText, results: &[(String, LabResult)]) -> anyhow::Result<String> {
    let per = table.requests.as_deref().unwrap_or_default();
    let requests = number(&table.figures, per);
    let requests = requests.with_context(|| format!("{} has no call {per}", table.name))?;
    let ours = first_cell(&table.calls, results)?;
    let ours = ours.map_or_else(Vec::new, |cell| cell.calls.values().collect());
    let mut text = format!(
        "\n{}, {}; for a request: by `{per}`, of which there is one each.\n\n| call | calls | errors | for a \
         request | here | % of time | seconds | µs a call |\n|---|---|---|---|---|---|---|---|\n",
        table.name, table.at
    );
    let calls = table.figures.iter().filter(|it| !it.name.contains(", "));
    for call in calls {
        let beside = |column: &str| {
            let name = format!("{}, {column}", call.name);
            let found = table.figures.iter().find(|it| it.name == name);
            found.map_or_else(String::new, |it| it.printed.clone())
        };
        let count: f64 = ours.iter().filter_map(|of| of.get(&call.name)).sum();
        let here = if count > 0.0 {
            format!("{count:.3}")
        } else {
            String::new()
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.3} | {here} | {} | {} | {} |",
            call.name,
            call.printed,
            beside("errors"),
            call.value / requests,
            beside("% of time"),
            beside("seconds"),
            beside("µs a call")
        );
    }
    let is_new = |name: &str| number(&table.figures, name).is_none();
    let others = ours.iter().flat_map(|of| of.iter());
    let others = others.filter(|(name, count)| is_new(name) && **count >= CALLS_MIN);
    for (name, count) in others {
        let _ = writeln!(text, "| {name} | | | | {count:.3} | | | |");
    }
    Ok(text)
}

/// Our cell at the first of `places` whose result is committed.
fn first_cell<'a>(
    places: &[CellPlace],
    results: &'a [(String, LabResult)],
) -> anyhow::Result<Option<&'a LabCell>> {
    let committed = places.iter().find_map(|place| {
        let (_, result) = results.iter().find(|(folder, _)| *folder == place.result)?;
        Some(cell(result, &place.cell))
    });
    committed.transpose()
}

/// Our throughput in a cell: the median, then the lowest and the highest run.
fn throughput(places: &[CellPlace], results: &[(String, LabResult)]) -> anyhow::Result<String> {
    let ours = first_cell(places, results)?;
    let rate = ours.and_then(|cell| cell.measures.get("throughput"));
    let rate = rate.map(|it| format!("{:.0} [{:.0}..{:.0}]", it.median, it.min, it.max));
    Ok(rate.unwrap_or_default())
}

/// The place of a source's section on the page.
fn anchor(source: &Source) -> String {
    let title = format!("{}: {}", source.test, source.title).to_lowercase();
    let kept = title
        .chars()
        .filter(|it| it.is_alphanumeric() || [' ', '-', '_'].contains(it));
    format!("#{}", kept.collect::<String>().replace(' ', "-"))
}

/// How the names of results of published forms end.
const REPETITION: &str = "-repetition";

/// Calls that are rarer than this, per request, are left out.
const CALLS_MIN: f64 = 0.005;

const HEADS: &str = "\
| test | claims | reproduced | refuted here | open | not comparable |
|---|---|---|---|---|---|
";

const INTRODUCTION: &str = "\
# Five published tests, claim by claim

The lab repeats five published tests of Apache httpd, nginx, Tomcat and AJP13. This page has every claim of theirs that a
repetition can decide, with our figure and a verdict, and below each test every number of its text. `cargo xtask figures`
writes it from the [numbers of the sources](../crates/lab/lab/published/README.md) and the
[committed results](measured.md).

";

const RULES: &str = "
A claim is a ratio, a direction, or a count of bytes, calls or answers. Absolute rates and times are of their machines: they
stand beside ours and are not counted.

- Like is compared with like: ab's bytes with ab's bytes, near applications with near ones. A range stays a range.
- Brackets are an interval of 95 % over at least six starts of servers, by [the rule](lab.md#how-a-claim-is-decided) of all
  pages. With fewer starts, or if a gate of [the lab](lab.md#the-gates) forbids the claim, it is open.
- **Ratio**: published ratios are of single runs. So one is held against the ratio that *one more start* of ours would have
  with a probability of 95 % (Student's prediction interval of the logarithms), and not against the interval of all starts,
  which gets as narrow as one likes. Outside of it the ratio is *refuted here*. Inside it is *reproduced* if our own result
  decides the claim and one more start would differ, too; else it is open. A ratio of the longest requests of two runs is
  open: other runs have others.
- **Range**: reproduced if it holds our whole interval, refuted if it holds nothing of it; open if our result only suggests
  or does not show a difference.
- **Direction**, *more* or *less* of what the claim names: reproduced if the difference is shown, refuted if the other
  direction is shown or no difference beyond 5 % (0.1 % of free memory); open as a range is.
- A sentence about several cases has the weakest word of them: it is open unless all agree.
- **Count**: reproduced within 1 % of ours, refuted beyond. A count has no noise of a clock, so one run is enough. Both
  hold for the ratio of two counts, too.

*Not comparable* has one of these reasons, and is counted apart:

";

const MISSING: &str = "
Not to be had are WebLogic, Windows, JBoss 4.2.1 and 5, SIP hardware and the replication of state by JGroups.
";
