//! The index of the posts, and the README's list of their answers.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::language::Language;
use super::page::PostPage;
use super::source::Reason;
use super::verdict::SentenceVerdict;

/// How many sentences got each verdict.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct VerdictTally {
    counts: BTreeMap<SentenceVerdict, usize>,
}

impl VerdictTally {
    pub(super) fn of(page: &PostPage<'_>) -> Self {
        let mut tally = Self::default();
        for judged in page.claims {
            *tally.counts.entry(judged.answer.verdict).or_default() += 1;
        }
        tally
    }

    fn add(&mut self, other: &Self) {
        for (verdict, count) in &other.counts {
            *self.counts.entry(*verdict).or_default() += count;
        }
    }

    pub(super) fn sum(tallies: impl Iterator<Item = Self>) -> Self {
        tallies.fold(Self::default(), |mut sum, one| {
            sum.add(&one);
            sum
        })
    }

    pub(super) fn count(&self, verdict: SentenceVerdict) -> usize {
        self.counts.get(&verdict).copied().unwrap_or(0)
    }

    pub(super) fn not_comparable(&self) -> usize {
        let reasons = Reason::ALL.into_iter();
        reasons
            .map(|it| self.count(SentenceVerdict::NotComparable(it)))
            .sum()
    }

    /// The number of sentences that can be compared.
    pub(super) fn claims(&self) -> usize {
        VERDICTS.into_iter().map(|it| self.count(it)).sum()
    }

    fn row(&self, name: &str) -> String {
        let counts = VERDICTS.map(|verdict| self.count(verdict).to_string());
        format!(
            "| {name} | {} | {} | {} |\n",
            self.claims(),
            counts.join(" | "),
            self.not_comparable()
        )
    }
}

/// The index, from the English pages.
///
/// # Errors
///
/// A text refers to a figure that does not exist.
pub(super) fn text(pages: &[PostPage<'_>]) -> anyhow::Result<String> {
    let mut text = INTRODUCTION.to_owned();
    let mut rows = String::new();
    for page in pages {
        let test = &page.source.test;
        let texts = page.source.texts_in(page.language);
        let _ = write!(
            text,
            "\n## [{test}: {}](published/{test}.md)\n\n{}\n\n[In Chinese, 中文](published/{test}{}.md)\n",
            texts.title,
            page.filled(&texts.answer)?,
            Language::Chinese.suffix(),
        );
        rows += &VerdictTally::of(page).row(&format!("[{test}](published/{test}.md)"));
    }
    let all = VerdictTally::sum(pages.iter().map(VerdictTally::of));
    let _ = write!(
        text,
        "\n## What came of {} sentences\n\n{HEADS}{rows}{}{RULES}",
        all.claims(),
        all.row("all")
    );
    for reason in Reason::ALL {
        let _ = writeln!(text, "- {}", Language::English.reason(reason));
    }
    text += MISSING;
    Ok(text)
}

/// The README's list: one line for each post.
pub(super) fn list(pages: &[PostPage<'_>]) -> String {
    let each = pages.iter().map(|page| {
        let test = &page.source.test;
        let answer = &page.source.texts_in(page.language).short_answer;
        format!("- [{test}](docs/published/{test}.md): {answer}\n")
    });
    each.collect()
}

/// The verdicts of the table, in the order of its columns.
const VERDICTS: [SentenceVerdict; 5] = [
    SentenceVerdict::HoldsThenAndNow,
    SentenceVerdict::HoldsNow,
    SentenceVerdict::HoldsThen,
    SentenceVerdict::DoesNotHold,
    SentenceVerdict::Undecided,
];

const HEADS: &str = "\
| post | sentences | hold then and now | hold now | hold then | do not hold | undecided | not comparable |
|---|---|---|---|---|---|---|---|
";

const INTRODUCTION: &str = "\
# Five published tests, five answers

This project began with five published tests of Apache httpd, nginx, Tomcat and AJP13. Each page answers one: whether it was
right with the software of its time, whether it holds today, and what to do. `cargo xtask figures` writes the pages from the
[texts and numbers of the posts](../crates/lab/lab/published/README.md) and the [committed results](measured.md).
";

const RULES: &str = "
A sentence is judged by its direction or order, and the size stands beside it: the published figure, and ours with its
interval of 95 % by [the rule](lab.md#how-a-claim-is-decided) of all results.

- **Then**: the post's own software, run today: figures that are the same on any machine, or the
  [same rounds](lab.md#then-and-now) as today's software. What was not run says so, and decides nothing.
- **Now**: today's software. A sentence holds if our interval lies on its side of 1. It does not hold if the interval lies on
  the other side, or within 5 % of 1. Anything else is undecided: too few starts, a gate that forbids the claim, or a
  difference that may be chance beside the post's other sentences.
- **A count of a version**, such as system calls of Apache 2.0.63, is compared with that version. Today's figure stands
  beside it.
- **Speed** is judged by what limited the post's own layout. Where that is a server's CPU time, it is the capacity: one over
  the CPU time of a request. A measured throughput that another limit shaped stands beside it.
- A sentence with several cases is decided only if they agree.
- Bytes, calls and answers have no noise of a clock, so one run is enough, and 1 % apart is the same.
- Absolute rates and times are of their machines. They stand on the pages and are not counted.

*Not comparable* has one of these reasons, and is counted apart:

";

const MISSING: &str = "
Not to be had are WebLogic, Windows, JBoss 4.2.1 and 5, SIP hardware and the replication of state by JGroups.

`cargo xtask published --check` counts the sentences and says what would decide each undecided one, compares the pages with
[measured.md](measured.md), and checks that both languages have the same figures.
";
