//! The keys of an experiment's file, as TOML has them.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::cells::combine;
use super::{Factor, Level, Levels, PublishedRatio};

/// A whole file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExperimentFile {
    /// The name by which `lab run` takes it.
    pub(super) name: String,
    pub(super) question: String,
    /// The publication that the experiment repeats.
    #[serde(default)]
    pub(super) source: String,
    /// Whether it is the published form of an experiment.
    #[serde(default)]
    pub(super) form: FileForm,
    /// The cell that the others are set beside.
    pub(super) control: Spanned<Levels>,
    /// Factors whose levels keep their servers through a round.
    #[serde(default)]
    pub(super) nest: Vec<String>,
    /// Sysctls of the run's network, by name.
    #[serde(default)]
    pub(super) sysctl: BTreeMap<String, String>,
    pub(super) factor: BTreeMap<String, Spanned<Vec<Level>>>,
    /// Levels that need a module of a server which is in no package, by its name.
    #[serde(default)]
    pub(super) module: BTreeMap<String, Spanned<Levels>>,
    #[serde(default)]
    pub(super) except: Vec<Spanned<ExceptKeys>>,
    #[serde(default)]
    pub(super) server: Vec<Spanned<ServerKeys>>,
    /// How servers are held to their `core_share`.
    pub(super) core_share: Option<Spanned<CoreShareKeys>>,
    pub(super) load: Spanned<LoadKeys>,
    /// Loads at the same time.
    #[serde(default)]
    pub(super) beside: Vec<Spanned<BesideKeys>>,
    /// Actions on servers while load is on them.
    #[serde(default)]
    pub(super) action: Vec<Spanned<ActionKeys>>,
    /// Gates that are off, since what they look at is the measure, and such as concern times alone.
    #[serde(default)]
    pub(super) gates: BTreeMap<String, Switch>,
    #[serde(default)]
    pub(super) expect: ExpectKeys,
    #[serde(default)]
    pub(super) measure: Option<Spanned<MeasureKeys>>,
    pub(super) run: Spanned<RunKeys>,
    /// A first pass over many cells.
    #[serde(default)]
    pub(super) screen: Option<Spanned<ScreenKeys>>,
    #[serde(default)]
    pub(super) quick: Option<Spanned<QuickKeys>>,
    #[serde(default)]
    pub(super) duel: Option<Spanned<QuickKeys>>,
    #[serde(default)]
    pub(super) claim: Vec<Spanned<ClaimKeys>>,
    #[serde(default)]
    pub(super) published: Vec<Spanned<PublishedKeys>>,
    /// Published runs, made once as they were.
    #[serde(default)]
    pub(super) as_published: Vec<Spanned<AsPublishedKeys>>,
}

/// Whether a file has the whole experiment or its published form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum FileForm {
    /// All that is looked at.
    #[default]
    Whole,
    /// The cells and claims of the source alone.
    Published,
    /// All that is looked at, in blocks in turn.
    Duel,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExceptKeys {
    #[serde(rename = "where")]
    cells: BTreeMap<String, OneOrMore>,
    #[expect(dead_code, reason = "it is for those who read the file")]
    why: String,
}

/// A level, or several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(Level),
    More(Vec<Level>),
}

impl ExceptKeys {
    /// Each combination that is left out.
    pub(super) fn all(&self) -> Vec<Levels> {
        let factor = |(name, levels): (&String, &OneOrMore)| Factor {
            name: name.clone(),
            levels: match levels {
                OneOrMore::One(level) => vec![level.clone()],
                OneOrMore::More(levels) => levels.clone(),
            },
        };
        combine(&self.cells.iter().map(factor).collect::<Vec<_>>(), &[])
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerKeys {
    pub(super) name: String,
    /// A template.
    pub(super) target: String,
    pub(super) core: Option<usize>,
    /// The part of the core that it may have.
    pub(super) core_share: Option<f64>,
    /// Templates, or values as they are.
    #[serde(default)]
    pub(super) set: BTreeMap<String, Level>,
    /// Cells that do without it.
    #[serde(default)]
    pub(super) unless: Levels,
    /// The only cells that have it.
    #[serde(default)]
    pub(super) only: Levels,
    /// When it is started anew.
    #[serde(default)]
    pub(super) restart: Restart,
    /// A delay between it and the servers before it.
    pub(super) link: Option<LinkKeys>,
    /// The servers behind it, if it is a link itself. It is no key of a file.
    #[serde(skip)]
    pub(super) leads_to: Vec<String>,
}

/// How servers are held to their parts of a core.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CoreShareKeys {
    /// `quota`, `spinner` or `none`; a template.
    pub(super) by: Option<String>,
    /// The period of a quota; a template.
    pub(super) period: Option<String>,
}

/// A network with a delay before a server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkKeys {
    /// The servers on its other side.
    pub(super) to: Names,
    /// The time there and back; a template.
    pub(super) rtt: String,
    pub(super) core: Option<usize>,
}

/// When a server is started anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "toml::Value")]
pub(super) enum Restart {
    /// For each run, or with `nest` once in a round.
    #[default]
    Round,
    /// After this many rounds.
    Rounds(usize),
    /// Never.
    Never,
}

impl TryFrom<toml::Value> for Restart {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<Self, String> {
        let wrong = || format!("restart = {value}: it is \"round\", \"never\" or a number from 2");
        match &value {
            toml::Value::String(text) if text == "round" => Ok(Self::Round),
            toml::Value::String(text) if text == "never" => Ok(Self::Never),
            toml::Value::Integer(rounds) => match usize::try_from(*rounds) {
                Ok(rounds) if rounds >= 2 => Ok(Self::Rounds(rounds)),
                _ => Err(wrong()),
            },
            _ => Err(wrong()),
        }
    }
}

/// What a file changes about a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Switch {
    /// The gate is not checked.
    Off,
    /// The gate voids no run, and forbids claims on times alone.
    Times,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LoadKeys {
    pub(super) url: String,
    pub(super) core: Option<usize>,
    /// Whether it runs before servers that share its core.
    #[serde(default)]
    pub(super) preempts: bool,
    pub(super) clients: Level,
    pub(super) keep_alive: Level,
    #[serde(default = "http_1_1")]
    pub(super) http: Level,
    pub(super) time: String,
    pub(super) warm: WarmKeys,
    /// Requests a second by a schedule; a closed loop without it.
    pub(super) rate: Option<Level>,
    /// Also by a schedule, at these shares of the capacity of the slowest cell with as many clients.
    #[serde(default)]
    pub(super) shares: Vec<f64>,
    /// The fields of each request: `bare` or `browser`; a template.
    #[serde(default = "bare")]
    pub(super) head: Level,
    /// Further fields of each request, as `Name: value`; templates, and an empty one is none.
    #[serde(default)]
    pub(super) headers: Vec<String>,
    /// The length of a body that each request has.
    pub(super) post_bytes: Option<Level>,
    pub(super) crowd: Option<CrowdKeys>,
}

/// A further load.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BesideKeys {
    pub(super) url: String,
    pub(super) clients: Level,
    pub(super) keep_alive: Level,
    pub(super) rate: Level,
}

/// An action on a server while load is on it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ActionKeys {
    pub(super) server: String,
    /// `none`, `reload` or `upgrade`; a template.
    #[serde(rename = "do")]
    pub(super) what: String,
    pub(super) every: String,
}

fn bare() -> Level {
    Level::Text("bare".to_owned())
}

fn http_1_1() -> Level {
    Level::Text("1.1".to_owned())
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WarmKeys {
    pub(super) at_least: String,
    pub(super) at_most: String,
    /// At least so long after a start of servers that `nest` keeps.
    pub(super) first: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CrowdKeys {
    /// `none`, `idle`, `drip` or `sip`; a template.
    pub(super) kind: String,
    pub(super) clients: Level,
    /// `never`, or a time.
    pub(super) every: String,
    /// The URL that the crowd asks for; by default the load's.
    pub(super) url: Option<String>,
    /// The niceness of the crowd's process, from 0 to 19.
    pub(super) nice: Option<i8>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectKeys {
    pub(super) status: Option<Level>,
    pub(super) body_bytes: Option<Level>,
    pub(super) kept: Option<Level>,
    /// After how many requests servers close a kept connection.
    pub(super) kept_requests: Option<Level>,
    /// The least time that an answer takes, by what the experiment puts in.
    pub(super) delay: Option<String>,
    /// Requests that a server gets for each answer to the load, by default 1: a number or a
    /// template.
    #[serde(default)]
    pub(super) asked: BTreeMap<String, Level>,
    /// Whether the bodies of answers may differ; off unless it is given.
    pub(super) varies: Option<Level>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MeasureKeys {
    #[serde(default)]
    pub(super) syscalls: Vec<String>,
    /// `server.port`.
    #[serde(default)]
    pub(super) bytes: Vec<String>,
    #[serde(default)]
    pub(super) memory: Vec<String>,
    /// Java virtual machines whose heap and collections are read.
    #[serde(default)]
    pub(super) jvm: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunKeys {
    pub(super) rounds: usize,
    pub(super) seed: u64,
}

/// A first pass: its rounds and levels, and what the rounds after it have.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScreenKeys {
    pub(super) rounds: usize,
    /// The levels of its cells; all of factors that are not named.
    #[serde(default)]
    pub(super) factor: BTreeMap<String, Vec<Level>>,
    #[serde(default)]
    pub(super) then: ThenKeys,
}

/// The rounds after a first pass.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ThenKeys {
    /// The number of levels of `of` that stay, the control's among them.
    pub(super) keep: Option<usize>,
    pub(super) of: Option<String>,
    /// Levels of `of` that stay as the control's does.
    #[serde(default)]
    pub(super) always: Vec<Level>,
    /// The measure by which they are chosen; the first claim's unless it is given.
    pub(super) by: Option<String>,
    #[serde(default)]
    pub(super) factor: BTreeMap<String, Vec<Level>>,
    #[serde(default)]
    pub(super) run: QuickRunKeys,
}

/// The values of keys under `--quick`, or in a duel.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuickKeys {
    #[serde(default)]
    pub(super) factor: BTreeMap<String, Vec<Level>>,
    #[serde(default)]
    pub(super) run: QuickRunKeys,
    #[serde(default)]
    pub(super) load: QuickLoadKeys,
    #[serde(default)]
    pub(super) server: BTreeMap<String, QuickServerKeys>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuickRunKeys {
    pub(super) rounds: Option<usize>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuickServerKeys {
    pub(super) restart: Option<Restart>,
    /// Settings in place of those of the same names.
    #[serde(default)]
    pub(super) set: BTreeMap<String, Level>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuickLoadKeys {
    pub(super) time: Option<String>,
    pub(super) warm: Option<WarmKeys>,
    pub(super) shares: Option<Vec<f64>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClaimKeys {
    pub(super) says: String,
    pub(super) measure: String,
    #[serde(default)]
    pub(super) level: Levels,
    #[serde(default)]
    pub(super) over: Levels,
    pub(super) interaction: Option<InteractionKeys>,
    #[serde(default, rename = "where")]
    pub(super) cells: Levels,
    #[serde(default)]
    pub(super) each: Names,
    pub(super) expect: Expectation,
    pub(super) margin: Option<f64>,
    #[serde(default)]
    pub(super) published: PublishedOf,
    /// The true ratio, where the servers are made so that it is known.
    pub(super) planted: Option<f64>,
}

/// The published ratio of all cases, or of some.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum PublishedOf {
    All(PublishedRatio),
    Some(Vec<PublishedAt>),
}

/// The published ratio of a case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedAt {
    /// Its levels; of factors that are not named, any.
    pub(super) at: Levels,
    pub(super) ratio: PublishedRatio,
}

impl Default for PublishedOf {
    fn default() -> Self {
        Self::Some(Vec::new())
    }
}

impl PublishedOf {
    /// Each ratio with the levels of its cases.
    pub(super) fn all(&self) -> Vec<(Levels, PublishedRatio)> {
        match self {
            Self::All(ratio) => vec![(Levels::new(), *ratio)],
            Self::Some(cases) => cases.iter().map(|it| (it.at.clone(), it.ratio)).collect(),
        }
    }
}

/// The ratio of two ratios: how much more `of` makes at the first level of `across`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InteractionKeys {
    pub(super) of: BTreeMap<String, [Level; 2]>,
    pub(super) across: BTreeMap<String, [Level; 2]>,
}

/// The expected result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Expectation {
    /// The ratio is above 1.
    More,
    /// The ratio is below 1.
    Less,
    /// The ratio is 1 within the margin.
    Same,
}

/// One name, or several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Names {
    One(String),
    Several(Vec<String>),
}

impl Default for Names {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

impl Names {
    pub(super) fn all(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Several(names) => names,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedKeys {
    /// The subject of a table.
    #[serde(default)]
    pub(super) says: String,
    /// The levels of a text's run, or those that all rows of a table have.
    #[serde(default)]
    pub(super) cell: Levels,
    /// `one run` or `best of several`.
    pub(super) how: Selection,
    /// A text of those that are built in.
    pub(super) text: Option<String>,
    /// Of a text of `strace -c`: how many requests its process answered.
    pub(super) requests: Option<u64>,
    /// A conclusion that a text does not support besides those that gates name.
    pub(super) note: Option<String>,
    #[serde(default)]
    pub(super) table: Vec<RowKeys>,
    /// By factor: a level of the source, and the one of ours that stands for it.
    #[serde(default)]
    pub(super) stands: BTreeMap<String, BTreeMap<String, Level>>,
}

/// A row of a published table: a rate, or a ratio of two.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RowKeys {
    /// Instead of the levels.
    pub(super) says: Option<String>,
    /// The levels, as the source calls them.
    #[serde(default)]
    pub(super) cell: Levels,
    /// Requests a second; none where the source has none.
    pub(super) tps: Option<f64>,
    /// The lowest second or ratio.
    pub(super) low: Option<f64>,
    /// The highest.
    pub(super) high: Option<f64>,
    /// If the row is a ratio of two cells: the levels of the numerator's.
    #[serde(default)]
    pub(super) level: Levels,
    /// If the row is a ratio of two cells: the levels of the denominator's.
    #[serde(default)]
    pub(super) over: Levels,
    pub(super) ratio: Option<f64>,
    /// The claim of the file that tests this ratio here.
    pub(super) claim: Option<String>,
    /// A conclusion that it does not support besides those that gates name.
    pub(super) note: Option<String>,
}

/// How a published run was chosen among several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, serde::Serialize)]
pub enum Selection {
    /// There was one run.
    #[serde(rename = "one run")]
    OneRun,
    /// The best of several was chosen.
    #[serde(rename = "best of several")]
    BestOfSeveral,
}

/// A published run to be made once with the source's own values, by ab's request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AsPublishedKeys {
    /// A text of those that are built in.
    pub(super) text: Option<String>,
    /// Or what it was, and what was printed.
    pub(super) says: Option<String>,
    pub(super) printed: Option<String>,
    /// The cell whose servers it has.
    pub(super) cell: Levels,
    /// Settings of these servers for this run, by server.
    #[serde(default)]
    pub(super) set: BTreeMap<String, BTreeMap<String, Level>>,
    pub(super) clients: u64,
    pub(super) requests: u64,
    pub(super) keep_alive: bool,
    /// Whether it was made on the servers of the run before it, which must be the same.
    #[serde(default)]
    pub(super) again: bool,
    /// Whether each round makes it, on servers that have just been started.
    #[serde(default)]
    pub(super) every_round: bool,
    /// The ways in which it differs from the published run.
    #[serde(default)]
    pub(super) deviations: Vec<String>,
}
