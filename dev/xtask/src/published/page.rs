//! The page of a post in one language.

use std::fmt::Write as _;

use anyhow::{Context, bail};

use super::evidence::{Answer, CaseAnswer};
use super::language::{Language, filled};
use super::source::{Claim, OwnRow, Published, Source};
use super::texts::{Phrases, phrase};
use super::verdict::{NowVerdict, ThenVerdict};
use super::{Judged, figure_words, numbers};
use crate::figures::{LabClaim, LabResult};

/// A page that is written: of a post, in a language.
#[derive(Clone, Copy)]
pub(super) struct PostPage<'a> {
    pub(super) source: &'a Source,
    pub(super) claims: &'a [Judged<'a>],
    pub(super) results: &'a [(String, LabResult)],
    pub(super) phrases: &'a Phrases,
    pub(super) language: Language,
}

impl PostPage<'_> {
    /// The name of the page below `docs/published`.
    pub(super) fn name(&self) -> String {
        format!("{}{}.md", self.source.test, self.language.suffix())
    }

    /// The whole text.
    ///
    /// # Errors
    ///
    /// A text refers to a figure that does not exist, a phrase is not translated, or a result lacks a cell.
    pub(super) fn text(&self) -> anyhow::Result<String> {
        let (words, texts) = (self.language.words(), self.source.texts_in(self.language));
        let test = &self.source.test;
        let other = format!("{test}{}.md", self.language.other().suffix());
        let mut page = format!(
            "# {test}{}{}\n\n{}\n\n{} · {}\n\n",
            words.colon,
            texts.title,
            self.filled(&texts.answer)?,
            words.index,
            filled(words.other_language, &[&other]),
        );
        page += &self.post();
        let suffix = self.language.suffix();
        let _ = write!(
            page,
            "\n{}\n\n![{}](../pictures/published/{test}-layout{suffix}.svg)\n\n{}\n\n\
             ![{}](../pictures/published/{test}{suffix}.svg)\n\n## {}\n\n{}",
            texts.did,
            words.layout,
            texts.layout.limit,
            words.picture,
            words.sentences,
            words.sentence_heads,
        );
        for judged in self.claims {
            page += &self.row(judged)?;
        }
        if let Some(software) = &self.source.software {
            page += "\n";
            page += &filled(words.reproduced_by, &[software]);
            page += "\n";
        }
        page += &self.own()?;
        let _ = write!(page, "\n## {}\n\n", words.explains);
        for text in &texts.explains {
            let _ = writeln!(page, "- {}", self.filled(text)?);
        }
        let _ = writeln!(page, "\n{}", filled(words.repeat, &[&self.source.repeat]));
        page += &numbers::folded(self)?;
        Ok(page)
    }

    /// A phrase in the page's language.
    pub(super) fn phrase<'a>(&'a self, english: &'a str) -> anyhow::Result<&'a str> {
        phrase(self.phrases, self.language, english)
    }

    /// The title, author, date and address of the source, as far as it names them.
    fn post(&self) -> String {
        let (words, post) = (self.language.words(), &self.source.post);
        let or_unknown =
            |text: &Option<String>| text.clone().unwrap_or_else(|| words.unknown.into());
        let date = match (&post.date, &post.copied) {
            (Some(date), _) => date.clone(),
            (None, Some(copied)) => filled(words.copy_of, &[copied]),
            (None, None) => words.unknown.to_owned(),
        };
        let address = post.address.as_ref().map(|address| format!("<{address}>"));
        format!(
            "{}| {} | {} | {date} | {} |\n",
            words.post_heads,
            or_unknown(&post.title),
            or_unknown(&post.author),
            or_unknown(&address),
        )
    }

    /// The row of a sentence: what it says, then the published figure, and what was found then and now.
    fn row(&self, judged: &Judged<'_>) -> anyhow::Result<String> {
        let Judged { claim, answer } = judged;
        let words = self.language.words();
        let texts = &self.source.texts_in(self.language).claim[&claim.id];
        let published = match claim.published(self.source)? {
            Some(figure) => figure_words::published(claim, &figure, self.language),
            None => String::new(),
        };
        let (then, mut now) = match claim.not_comparable {
            Some(_) => (String::new(), String::new()),
            None => (self.then(judged), self.now(answer)),
        };
        if let Some(note) = &texts.note {
            if !now.is_empty() {
                now += words.stop;
            }
            now += note;
        }
        Ok(format!(
            "| {} {} *({})* | {published} | {then} | {} | {} |\n",
            claim.id,
            texts.says,
            self.phrase(&claim.at)?,
            now.trim_end(),
            self.language.verdict(answer.verdict),
        ))
    }

    /// What a repetition with the software of that time found.
    fn then(&self, Judged { claim, answer }: &Judged<'_>) -> String {
        let words = self.language.words();
        if answer.then == ThenVerdict::NotRun && claim.is_of_now() {
            return words.absent_then.to_owned();
        }
        let verdict = self.language.then(answer.then);
        let Some(figure) = &answer.then_figure else {
            let cases = answer.then_cases.iter();
            let figures: Vec<String> = cases
                .map(|case| figure_words::case(case, self.language))
                .collect();
            if figures.is_empty() {
                return verdict.to_owned();
            }
            return format!("{verdict}{}{}", words.colon, figures.join(words.semicolon));
        };
        let (own, published) = (figure.ours.words(), figure.published.words());
        let figures = filled(words.then_figure, &[&own, &published]);
        format!("{verdict}{}{figures}", words.colon)
    }

    /// What today's software was measured to do, with a link to the first result.
    fn now(&self, answer: &Answer) -> String {
        let words = self.language.words();
        if answer.cases.is_empty() {
            return words.nothing_committed.to_owned();
        }
        let figure = |case: &CaseAnswer| figure_words::case(case, self.language);
        let cases: Vec<String> = answer.cases.iter().map(figure).collect();
        let mut text = cases.join(words.semicolon);
        let result = &answer.cases[0].result;
        let _ = write!(text, " ([{result}](../lab/{result}/report.md))");
        if answer.now == NowVerdict::OtherVersion {
            text += words.comma;
            text += self.language.now(answer.now);
        }
        if !answer.beside.is_empty() {
            let with_measure = |case: &CaseAnswer| format!("`{}` {}", case.measure, figure(case));
            let beside: Vec<String> = answer.beside.iter().map(with_measure).collect();
            text += words.stop;
            text += words.beside;
            text += &beside.join(words.semicolon);
        }
        text
    }

    /// The table of claims about our own front in the post's place.
    fn own(&self) -> anyhow::Result<String> {
        let (words, texts) = (self.language.words(), self.source.texts_in(self.language));
        let mut text = format!("\n## {}\n\n", words.own);
        if self.source.own.is_empty() {
            return Ok(text + words.own_none + "\n");
        }
        text += words.own_heads;
        for (row, says) in self.source.own.iter().zip(&texts.own) {
            let claim = own_claim(row, self.results)?;
            let (Some(low), Some(ratio), Some(high)) = (claim.low, claim.ratio, claim.high) else {
                bail!("{}: a decided claim has an interval", claim.says);
            };
            let ratio = figure_words::interval([low, ratio, high]);
            let result = &row.result;
            let _ = writeln!(
                text,
                "| {says} | {ratio} ([{result}](../lab/{result}/report.md)) |"
            );
        }
        Ok(text)
    }

    /// `text` with figures in place of names in braces: `{ID}` is our figure of the claim, `{ID|1}` that of its
    /// second case, `{ID|then}` and `{ID|then|1}` those of the post's own software, `{ID|beside}` the one that is shown
    /// in addition, `{ID|there}` the published one.
    pub(super) fn filled(&self, text: &str) -> anyhow::Result<String> {
        let mut filled_text = String::new();
        let mut remaining = text;
        while let Some((before, after)) = remaining.split_once('{') {
            let (name, after_name) = after.split_once('}').context("a brace is not closed")?;
            filled_text += before;
            filled_text += &self
                .named_figure(name)
                .with_context(|| format!("{{{name}}}"))?;
            remaining = after_name;
        }
        Ok(filled_text + remaining)
    }

    /// The figure of a name as [`Self::filled`] describes it; without a part it is that of the first case.
    fn named_figure(&self, name: &str) -> anyhow::Result<String> {
        let (id, part) = name.split_once('|').unwrap_or((name, "0"));
        let sentence = self.claims.iter().find(|judged| judged.claim.id == id);
        let Judged { claim, answer } = sentence.context("there is no such sentence")?;
        let case = match part {
            "there" => return self.there(claim),
            "beside" => answer.beside.first(),
            "0" => answer.cases.first(),
            "1" => answer.cases.get(1),
            "then" => answer.then_cases.first(),
            "then|1" => answer.then_cases.get(1),
            other => bail!("{other:?} is none of there, beside, 1, then, then|1"),
        };
        let case = case.context("it has no such figure")?;
        Ok(figure_words::figure(case, self.language))
    }

    fn there(&self, claim: &Claim) -> anyhow::Result<String> {
        let found: Option<Published> = claim.published(self.source)?;
        let published = found.context("nothing was published of it")?;
        Ok(figure_words::published(claim, &published, self.language))
    }
}

/// The claim of a row about our own front. It is an error if it is not decided.
fn own_claim<'a>(row: &OwnRow, results: &'a [(String, LabResult)]) -> anyhow::Result<&'a LabClaim> {
    let found = results.iter().find(|(folder, _)| *folder == row.result);
    let (_, result) = found.with_context(|| format!("docs/lab has no {}", row.result))?;
    let mut claims = result.claims.iter();
    let claim = claims.find(|claim| claim.says == row.claim && claim.case() == row.case);
    claim.filter(|claim| claim.is_decided()).with_context(|| {
        format!(
            "docs/lab/{} does not decide {:?} ({})",
            row.result, row.claim, row.case
        )
    })
}
