//! The file of a source: its numbers, its claims, and where our results answer them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use serde::Deserialize;

use super::expression;
use super::text::{Figure, figures};

/// A published test.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Source {
    /// Its number, such as `004`.
    pub(super) test: String,
    pub(super) title: String,
    /// What ran there.
    pub(super) ran: String,
    /// The experiment that repeats it.
    pub(super) experiment: String,
    /// The command that closes open claims.
    pub(super) repeat: String,
    /// What its figures do not support, and what is to be known of them.
    pub(super) remarks: Vec<String>,
    /// What was configured: what, value, place.
    pub(super) settings: Vec<[String; 3]>,
    /// What programs printed.
    #[serde(default, rename = "text")]
    pub(super) texts: Vec<PrintedText>,
    /// Numbers that stand in no such text.
    #[serde(default, rename = "number")]
    pub(super) numbers: Vec<Number>,
    #[serde(rename = "claim")]
    pub(super) claims: Vec<Claim>,
    /// Claims of several results side by side.
    pub(super) compare: Option<Comparison>,
}

/// Claims that several results have.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Comparison {
    /// What is to be known of them together.
    pub(super) says: String,
    pub(super) claims: Vec<String>,
    pub(super) results: Vec<String>,
}

/// What ab or strace printed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PrintedText {
    /// Of the file with it.
    pub(super) name: String,
    /// Where it stands in the source.
    pub(super) at: String,
    /// Results that have the same run made again; the first of them is shown.
    #[serde(default)]
    pub(super) here: Vec<String>,
    /// Of strace: the call that there is one of for each request.
    pub(super) requests: Option<String>,
    /// Of strace: our cell, the first of these whose result is committed.
    #[serde(default)]
    pub(super) calls: Vec<CellPlace>,
    #[serde(skip)]
    pub(super) figures: Vec<Figure>,
}

/// A number of a source.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Number {
    #[serde(default)]
    pub(super) id: String,
    pub(super) what: String,
    pub(super) value: f64,
    /// Of a rate: the source's interval.
    pub(super) from: Option<f64>,
    pub(super) to: Option<f64>,
    /// Where it stands in the source.
    pub(super) at: String,
    /// Our cell, whose throughput stands beside it: the first of these whose result is committed.
    #[serde(default)]
    pub(super) here: Vec<CellPlace>,
}

/// A cell of a result.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CellPlace {
    pub(super) result: String,
    pub(super) cell: Levels,
}

/// Levels by factor.
pub(super) type Levels = BTreeMap<String, toml::Value>;

/// What the source says and a repetition may decide.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Claim {
    pub(super) id: String,
    pub(super) says: String,
    /// Where it stands in the source.
    pub(super) at: String,
    #[serde(default)]
    pub(super) published: PublishedKeys,
    /// Expressions that have the same value as a published count.
    #[serde(default)]
    pub(super) same: Vec<String>,
    /// What answers: the first of these whose result is committed.
    #[serde(default)]
    pub(super) here: Vec<Here>,
    /// Why no repetition here could decide it.
    pub(super) not_comparable: Option<Reason>,
    /// What is to be known of the answer.
    pub(super) note: Option<String>,
}

/// What was published: one of these.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedKeys {
    ratio: Option<String>,
    range: Option<[String; 2]>,
    count: Option<String>,
    direction: Option<Direction>,
    /// Of a direction: the numbers that show it.
    of: Option<String>,
}

/// What was published.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Published {
    /// A ratio of two numbers.
    Ratio(f64),
    /// A ratio between two ends.
    Range([f64; 2]),
    /// A number for each request or answer.
    Count(f64),
    /// That something is more, or less.
    Direction(Direction),
}

/// Which side of 1 a ratio is said to be on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Direction {
    More,
    Less,
}

/// Why a claim cannot be decided on any machine of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Reason {
    /// Other hardware decides it.
    Hardware,
    /// It was in a picture or a table that is lost.
    Picture,
    /// The product is not to be had.
    Product,
    /// The source contradicts itself.
    Contradiction,
}

impl Reason {
    pub(super) const ALL: [Self; 4] = [
        Self::Hardware,
        Self::Picture,
        Self::Product,
        Self::Contradiction,
    ];

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Hardware => "other hardware decides it",
            Self::Picture => "its picture or table is lost",
            Self::Product => "the product is not to be had",
            Self::Contradiction => "the source contradicts itself",
        }
    }
}

/// Where a result answers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Here {
    /// The folder below `docs/lab`.
    pub(super) result: String,
    /// A claim of it, and the levels of its cases as `factor=level` by spaces: if several cases have them, the weakest
    /// word is the answer.
    pub(super) claim: Option<String>,
    #[serde(default)]
    pub(super) case: String,
    /// A measure without the noise of a clock: of one cell, or of two that differ in `level` and `over`. With a
    /// `divisor` also one of ab's runs.
    pub(super) measure: Option<String>,
    #[serde(default)]
    pub(super) cell: Levels,
    /// Another measure of the same cell that divides `measure`: of one of ab's runs, that of another one.
    pub(super) divisor: Option<String>,
    #[serde(default, rename = "where")]
    pub(super) cells: Levels,
    #[serde(default)]
    pub(super) level: Levels,
    #[serde(default)]
    pub(super) over: Levels,
    /// The same expression over what ab printed here.
    #[serde(default)]
    pub(super) again: bool,
}

/// All sources, in the order of their numbers.
///
/// # Errors
///
/// A file that cannot be read, and whatever [`Source::check`] finds.
pub(super) fn load(folder: &Path) -> anyhow::Result<Vec<Source>> {
    let mut sources = Vec::new();
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_none_or(|it| it != "toml") {
            continue;
        }
        let place = path.display();
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {place}"))?;
        let mut source: Source = toml::from_str(&text).with_context(|| format!("{place}"))?;
        for printed in &mut source.texts {
            let file = folder.join(format!("{}.txt", printed.name));
            let text = fs::read_to_string(&file);
            let text = text.with_context(|| format!("{place}: cannot read {}", file.display()))?;
            printed.figures = figures(&text);
        }
        source.check().with_context(|| format!("{place}"))?;
        sources.push(source);
    }
    sources.sort_by(|one, other| one.test.cmp(&other.test));
    Ok(sources)
}

impl Source {
    /// The value of an expression of published numbers.
    ///
    /// # Errors
    ///
    /// There is no such number.
    pub(super) fn value(&self, expression: &str) -> anyhow::Result<f64> {
        expression::value(expression, |name| match name.strip_prefix('#') {
            Some(id) => self
                .numbers
                .iter()
                .find(|it| it.id == id)
                .map(|it| it.value),
            None => {
                let (text, field) = name.split_once(':')?;
                let text = self.texts.iter().find(|it| it.name == text)?;
                number(&text.figures, field)
            }
        })
    }

    /// That each claim says one thing, of numbers that are there, and in its own figures.
    fn check(&self) -> anyhow::Result<()> {
        for claim in &self.claims {
            let id = &claim.id;
            ensure!(
                id.starts_with(&format!("{}.", self.test)),
                "{id} is of another test"
            );
            let is_same = |other: &&Claim| other.id == *id;
            ensure!(
                self.claims.iter().filter(is_same).count() == 1,
                "{id} is there twice"
            );
            let published = claim.published(self)?;
            ensure!(
                published.is_some() != claim.not_comparable.is_some(),
                "{id} is `published`, or `not_comparable` for a reason"
            );
            if let Some(Published::Count(count)) = published {
                for other in &claim.same {
                    ensure!(
                        self.value(other)? == count,
                        "{id}: {other} is another number"
                    );
                }
            }
        }
        Ok(())
    }
}

/// A number of a text by its name; how many answers were kept is none at all in ab's text if none was asked to be.
pub(super) fn number(figures: &[Figure], name: &str) -> Option<f64> {
    figures.iter().find(|it| it.name == name).map(|it| it.value)
}

impl Claim {
    /// What was published; `None` of what cannot be compared.
    ///
    /// # Errors
    ///
    /// It is not one thing, or of numbers that are not there.
    pub(super) fn published(&self, source: &Source) -> anyhow::Result<Option<Published>> {
        let keys = &self.published;
        let value = |expression: &String| source.value(expression);
        let published = match (&keys.ratio, &keys.range, &keys.count, keys.direction) {
            (Some(ratio), None, None, None) => Published::Ratio(value(ratio)?),
            (None, Some([from, to]), None, None) => Published::Range([value(from)?, value(to)?]),
            (None, None, Some(count), None) => Published::Count(value(count)?),
            (None, None, None, Some(direction)) => Published::Direction(direction),
            (None, None, None, None) => return Ok(None),
            _ => anyhow::bail!(
                "{}: `published` is one of ratio, range, count, direction",
                self.id
            ),
        };
        Ok(Some(published))
    }

    /// Whether its ratio is one number of the source, which says it with as few digits as it has.
    pub(super) fn is_one_number(&self) -> bool {
        let ratio = self.published.ratio.as_ref();
        ratio.is_some_and(|it| it.starts_with('#') && !it.contains(['*', '/']))
    }

    /// The expressions that give our figure from our own texts.
    pub(super) fn expressions(&self) -> impl Iterator<Item = &String> {
        let keys = &self.published;
        let own = [&keys.ratio, &keys.count, &keys.of];
        own.into_iter().flatten().chain(&self.same)
    }
}
