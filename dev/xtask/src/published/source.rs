//! The file of a source: its numbers, its claims, and where our results answer them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::eras::Era;
use super::expression;
use super::language::Language;
use super::reproduced::{ThenFigures, ThenPlace};
use super::text::{Figure, figures};
use super::texts::{Phrases, Texts};

/// A published test.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Source {
    /// The number of the test, such as `004`.
    pub(super) test: String,
    /// The command that repeats the test: `catamaran lab run NAME` with its options.
    pub(super) repeat: String,
    /// The post's own software, with which `catamaran lab prepare NAME --check` reproduces figures.
    pub(super) software: Option<String>,
    pub(super) post: Post,
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
    /// Claims of ours about our own front in the post's place.
    #[serde(default)]
    pub(super) own: Vec<OwnRow>,
    #[serde(skip)]
    words: BTreeMap<Language, Texts>,
    /// The figures that its software gives today; `None` if they were not reproduced.
    #[serde(skip)]
    pub(super) reproduced: Option<ThenFigures>,
}

/// What the source says about itself. `None`: it does not say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Post {
    pub(super) title: Option<String>,
    pub(super) author: Option<String>,
    /// The day on which it was written.
    pub(super) date: Option<String>,
    /// The day of the copy that we have, if it is a copy.
    pub(super) copied: Option<String>,
    pub(super) address: Option<String>,
}

/// A claim of a result about our front or our connector.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OwnRow {
    pub(super) result: String,
    pub(super) claim: String,
    #[serde(default)]
    pub(super) case: String,
}

/// A text that ab or strace printed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PrintedText {
    /// The name of the file with the text.
    pub(super) name: String,
    /// The place of the text in the source, such as a heading.
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
    /// The place of the statement in the source.
    pub(super) at: String,
    #[serde(default)]
    pub(super) published: PublishedKeys,
    /// Expressions whose value must equal the published count.
    #[serde(default)]
    pub(super) same: Vec<String>,
    /// Whether the published count is that of one version of the software, so that another count of today's version
    /// refutes nothing.
    #[serde(default)]
    pub(super) of_version: bool,
    /// The figure of the post's own software today that answers the claim; `None` if there is none.
    pub(super) then: Option<ThenPlace>,
    /// The places of our evidence, in order of preference: the first one whose result is committed is used.
    #[serde(default)]
    pub(super) here: Vec<Here>,
    /// Evidence on further cases of the sentence, which must agree with the first.
    #[serde(default)]
    pub(super) and: Vec<Here>,
    /// Places whose figures are shown in addition and decide nothing.
    #[serde(default)]
    pub(super) beside: Vec<Here>,
    /// Why no repetition on our machines can decide the claim.
    pub(super) not_comparable: Option<Reason>,
}

/// The published statement as written in the file: exactly one of `ratio`, `range`, `count` and `direction`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedKeys {
    ratio: Option<String>,
    range: Option<[String; 2]>,
    count: Option<String>,
    direction: Option<Direction>,
    /// For `direction`: the expression that shows it.
    of: Option<String>,
}

/// The published statement with its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Published {
    /// A ratio of two numbers.
    Ratio(f64),
    /// A ratio somewhere between these two.
    Range([f64; 2]),
    /// A number for each request or answer.
    Count(f64),
    /// Only that a ratio is above 1, or below 1.
    Direction(Direction),
}

impl Published {
    /// The side of 1 on which the sentence says that the ratio lies; `None` for a count.
    pub(super) fn side(&self) -> Option<Direction> {
        match self {
            Self::Ratio(ratio) | Self::Range([ratio, _]) if *ratio > 1.0 => Some(Direction::More),
            Self::Ratio(_) | Self::Range(_) => Some(Direction::Less),
            Self::Count(_) => None,
            Self::Direction(direction) => Some(*direction),
        }
    }
}

/// The side of 1 on which a ratio lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Direction {
    More,
    Less,
}

impl Direction {
    /// Whether a ratio lies on this side.
    pub(super) fn has(self, ratio: f64) -> bool {
        match self {
            Self::More => ratio > 1.0,
            Self::Less => ratio < 1.0,
        }
    }
}

/// The reason why a claim cannot be decided on our machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Reason {
    /// The answer depends on other hardware.
    Hardware,
    /// The figures were in a picture or a table that is lost.
    Picture,
    /// The product cannot be obtained.
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
}

/// Where our evidence is: a claim or a cell of a committed result. Exactly one of `claim`, `measure`, `capacity` and
/// `again` is given.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Here {
    /// The folder below `docs/lab`.
    pub(super) result: String,
    /// The only era that it is evidence on; `None`: both, if the result has them.
    pub(super) era: Option<Era>,
    /// The sentence of a claim in the result. `case` has levels of it as `factor=level`, with spaces between; all
    /// cases of the claim with these levels must agree.
    pub(super) claim: Option<String>,
    #[serde(default)]
    pub(super) case: String,
    /// A measure without noise: of one cell, or the ratio of the cells with the levels `level` and `over`. With a
    /// `divisor` it may also be one of the outputs of ab.
    pub(super) measure: Option<String>,
    /// A measure of CPU time of servers that were the limit in the post's layout. The ratio of capacities at the
    /// levels `level` and `over` is compared; a capacity is the inverse of the CPU time.
    pub(super) capacity: Option<String>,
    /// For `capacity`: the ratio at the first of these levels is divided by the ratio at the second.
    pub(super) across: Option<[Levels; 2]>,
    #[serde(default)]
    pub(super) cell: Levels,
    /// A measure of the same cell by which `measure` is divided; another output of ab if `measure` is one.
    pub(super) divisor: Option<String>,
    #[serde(default, rename = "where")]
    pub(super) cells: Levels,
    #[serde(default)]
    pub(super) level: Levels,
    #[serde(default)]
    pub(super) over: Levels,
    /// Whether the claim's expressions are computed from what ab printed when its runs were repeated.
    #[serde(default)]
    pub(super) again: bool,
}

/// All sources, and the dictionary of their phrases.
#[derive(Debug)]
pub(super) struct Library {
    /// In the order of their numbers.
    pub(super) sources: Vec<Source>,
    pub(super) phrases: Phrases,
}

/// Loads all sources.
///
/// # Errors
///
/// A file cannot be read, or [`Source::check`] finds a fault.
pub(super) fn load(folder: &Path) -> anyhow::Result<Library> {
    let mut sources = Vec::new();
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let file_name = entry?.file_name();
        let name = file_name.to_string_lossy();
        // A source is named by the number of its test; files of its texts have a language in their names as well.
        let test = name.strip_suffix(".toml").unwrap_or_default();
        if !test.is_empty() && test.bytes().all(|byte| byte.is_ascii_digit()) {
            sources.push(Source::load(folder, test).with_context(|| name.to_string())?);
        }
    }
    sources.sort_by(|a, b| a.test.cmp(&b.test));
    Ok(Library {
        sources,
        phrases: read(&folder.join(PHRASES))?,
    })
}

/// Reads a TOML file.
fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    toml::from_str(&text).with_context(|| path.display().to_string())
}

impl Source {
    /// Reads the file of a test, its texts in each language, its expected figures and its printed texts, and checks
    /// them.
    fn load(folder: &Path, test: &str) -> anyhow::Result<Self> {
        let mut source: Self = read(&folder.join(format!("{test}.toml")))?;
        for language in Language::ALL {
            let texts: Texts = read(&folder.join(format!("{test}.{}.toml", language.code())))?;
            source.words.insert(language, texts);
        }
        if let Some(software) = &source.software {
            let file = folder.join(format!("then/{software}.toml"));
            source.reproduced = Some(read(&file)?);
        }
        for printed in &mut source.texts {
            let file = folder.join(format!("{}.txt", printed.name));
            let text = fs::read_to_string(&file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            printed.figures = figures(&text);
        }
        source.check()?;
        Ok(source)
    }

    /// The texts in this language.
    pub(super) fn texts_in(&self, language: Language) -> &Texts {
        &self.words[&language]
    }

    /// The value of an expression of published numbers: `#ID` is a number of the source, `TEXT:FIELD` a field of a
    /// printed text.
    ///
    /// # Errors
    ///
    /// There is no such number.
    pub(super) fn value(&self, expression: &str) -> anyhow::Result<f64> {
        expression::value(expression, |name| {
            if let Some(id) = name.strip_prefix('#') {
                let published = self.numbers.iter().find(|published| published.id == id);
                return published.map(|published| published.value);
            }
            let (text, field) = name.split_once(':')?;
            let printed = self.texts.iter().find(|printed| printed.name == text)?;
            number(&printed.figures, field)
        })
    }

    /// Checks that each claim makes one statement, from numbers that exist, under an id of its own, and has its sentence
    /// in each language.
    fn check(&self) -> anyhow::Result<()> {
        for texts in self.words.values() {
            texts.check(self)?;
        }
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

/// The number of the figure `name` in a printed text. `None` if there is none: ab prints the number of kept
/// connections only if they were asked for.
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

    /// Whether the published ratio is one number of the source and not computed, so that it has only as many digits
    /// as the source prints.
    pub(super) fn is_one_number(&self) -> bool {
        let ratio = self.published.ratio.as_ref();
        ratio.is_some_and(|it| it.starts_with('#') && !it.contains(['*', '/']))
    }

    /// Whether all places of evidence are on today's software alone.
    pub(super) fn is_of_now(&self) -> bool {
        let is_of_now = |here: &Here| here.era == Some(Era::Now);
        !self.here.is_empty() && self.here.iter().all(is_of_now)
    }

    /// The expressions that give our figure from our own texts.
    pub(super) fn expressions(&self) -> impl Iterator<Item = &String> {
        let keys = &self.published;
        let own = [&keys.ratio, &keys.count, &keys.of];
        own.into_iter().flatten().chain(&self.same)
    }
}

/// The dictionary of phrases that all tests share.
const PHRASES: &str = "terms.zh.toml";
