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
    /// The number of the test, such as `004`.
    pub(super) test: String,
    pub(super) title: String,
    /// The software that was tested.
    pub(super) ran: String,
    /// The name of the experiment that repeats the test.
    pub(super) experiment: String,
    /// The command that closes open claims.
    pub(super) repeat: String,
    /// Remarks for the reader, such as which conclusions the figures do not support.
    pub(super) remarks: Vec<String>,
    /// The configuration: for each setting its name, its value, and its place in the source.
    pub(super) settings: Vec<[String; 3]>,
    /// The texts that programs printed.
    #[serde(default, rename = "text")]
    pub(super) texts: Vec<PrintedText>,
    /// Numbers that the source gives outside of printed texts.
    #[serde(default, rename = "number")]
    pub(super) numbers: Vec<Number>,
    #[serde(rename = "claim")]
    pub(super) claims: Vec<Claim>,
    /// A comparison of the claims of several results.
    pub(super) compare: Option<Comparison>,
}

/// Claims that are compared across several results.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Comparison {
    /// The conclusion from the compared claims together.
    pub(super) says: String,
    pub(super) claims: Vec<String>,
    pub(super) results: Vec<String>,
}

/// A text that ab or strace printed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PrintedText {
    /// The name of the file with the text.
    pub(super) name: String,
    /// The place of the text in the source.
    pub(super) at: String,
    /// The results that repeat the run. The first committed one is shown.
    #[serde(default)]
    pub(super) here: Vec<String>,
    /// For strace: the name of the call that happens once for each request.
    pub(super) requests: Option<String>,
    /// For strace: the places of our cell. The first one whose result is committed is shown.
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
    /// For a rate: the interval that the source gives.
    pub(super) from: Option<f64>,
    pub(super) to: Option<f64>,
    /// The place of the number in the source.
    pub(super) at: String,
    /// The places of our cell, whose throughput is shown beside the number. The first one whose result is
    /// committed is shown.
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

/// The levels of a cell, by factor.
pub(super) type Levels = BTreeMap<String, toml::Value>;

/// A statement of the source that a repetition may decide.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Claim {
    pub(super) id: String,
    pub(super) says: String,
    /// The place of the statement in the source.
    pub(super) at: String,
    #[serde(default)]
    pub(super) published: PublishedKeys,
    /// Expressions whose value must equal the published count.
    #[serde(default)]
    pub(super) same: Vec<String>,
    /// The places of our evidence. The first one whose result is committed answers.
    #[serde(default)]
    pub(super) here: Vec<Here>,
    /// Why no repetition on our machines can decide the claim.
    pub(super) not_comparable: Option<Reason>,
    /// A note on the answer.
    pub(super) note: Option<String>,
}

/// The published statement as written in the file: exactly one of `ratio`, `range`, `count` and `direction`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedKeys {
    ratio: Option<String>,
    range: Option<[String; 2]>,
    count: Option<String>,
    direction: Option<Direction>,
    /// For `direction`: the numbers that show it.
    of: Option<String>,
}

/// The published statement with its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Published {
    /// A ratio of two numbers.
    Ratio(f64),
    /// A ratio between two ends.
    Range([f64; 2]),
    /// A number for each request or answer.
    Count(f64),
    /// A statement that one side is more, or less, than the other.
    Direction(Direction),
}

/// The side of 1 on which a ratio lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Direction {
    More,
    Less,
}

/// The reason why a claim cannot be decided on our machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Reason {
    /// The answer depends on other hardware.
    Hardware,
    /// The figures were in a picture or a table that is lost.
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

/// A place of our evidence: a claim or a cell of a committed result.
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
    /// A measure of the same cell by which `measure` is divided. If `measure` is of one of ab's runs, this is
    /// of another one.
    pub(super) divisor: Option<String>,
    #[serde(default, rename = "where")]
    pub(super) cells: Levels,
    #[serde(default)]
    pub(super) level: Levels,
    #[serde(default)]
    pub(super) over: Levels,
    /// Whether the published expression is computed again, from ab's texts of our repetition.
    #[serde(default)]
    pub(super) again: bool,
}

/// Loads all sources, in the order of their numbers.
///
/// # Errors
///
/// A file cannot be read, or [`Source::check`] finds a fault.
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

    /// Checks that each claim makes one statement, from numbers that exist, under an id of its own.
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
    /// The published statement; `None` for a claim that cannot be compared.
    ///
    /// # Errors
    ///
    /// The claim makes more than one statement, or names a number that does not exist.
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
