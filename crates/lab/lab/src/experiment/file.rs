//! The keys of an experiment's file, as TOML has them.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::cells::combine;
use super::{Factor, Level, Levels, PublishedRatio};

/// An experiment's whole file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExperimentFile {
    /// The name by which `lab run` takes it.
    pub(super) name: String,
    pub(super) question: String,
    /// The publication that the experiment repeats; empty if there is none.
    #[serde(default)]
    pub(super) source: String,
    /// The form of the experiment that the file has.
    #[serde(default)]
    pub(super) form: FileForm,
    /// The levels of the cell with which the others are compared.
    pub(super) control: Spanned<Levels>,
    /// Factors by which cells share servers: within a round, cells with the same levels of these factors use the same
    /// servers.
    #[serde(default)]
    pub(super) nest: Vec<String>,
    /// Sysctls of the run's network, by name.
    #[serde(default)]
    pub(super) sysctl: BTreeMap<String, String>,
    pub(super) factor: BTreeMap<String, Spanned<Vec<Level>>>,
    /// By the name of a server's module that is in no package, the levels that need it.
    #[serde(default)]
    pub(super) module: BTreeMap<String, Spanned<Levels>>,
    #[serde(default)]
    pub(super) except: Vec<Spanned<ExceptKeys>>,
    #[serde(default)]
    pub(super) server: Vec<Spanned<ServerKeys>>,
    /// What shared a machine in the source, and what was the limit there.
    pub(super) layout: Option<Spanned<LayoutKeys>>,
    /// How servers are held to their `core_share`; by quotas if it is missing.
    pub(super) core_share: Option<Spanned<CoreShareKeys>>,
    pub(super) load: Spanned<LoadKeys>,
    /// Loads that run at the same time as `load`.
    #[serde(default)]
    pub(super) beside: Vec<Spanned<BesideKeys>>,
    /// Actions that are repeated on servers while load is on them.
    #[serde(default)]
    pub(super) action: Vec<Spanned<ActionKeys>>,
    /// Changes to gates, by the gate's name: for example a gate is off if it would fire on what the experiment
    /// measures.
    #[serde(default)]
    pub(super) gates: BTreeMap<String, Switch>,
    #[serde(default)]
    pub(super) expect: ExpectKeys,
    #[serde(default)]
    pub(super) measure: Option<Spanned<MeasureKeys>>,
    pub(super) run: Spanned<RunKeys>,
    /// A first pass over many cells, which chooses the cells of the rounds.
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
    /// Published runs that are repeated with the source's own values.
    #[serde(default)]
    pub(super) as_published: Vec<Spanned<AsPublishedKeys>>,
}

/// The form of the experiment that a file has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum FileForm {
    /// The whole experiment.
    #[default]
    Whole,
    /// Only the cells and claims of the source.
    Published,
    /// The whole experiment as a duel: all cells are up at once, and are measured in turn in short blocks.
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

/// A level, or a list of levels.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(Level),
    More(Vec<Level>),
}

impl ExceptKeys {
    /// Each combination of levels that is left out: one for each choice from the lists.
    pub(super) fn all(&self) -> Vec<Levels> {
        let factor = |(name, levels): (&String, &OneOrMore)| Factor {
            name: name.clone(),
            levels: match levels {
                OneOrMore::One(level) => vec![level.clone()],
                OneOrMore::More(levels) => levels.clone(),
            },
        };
        let no_exceptions = [];
        combine(
            &self.cells.iter().map(factor).collect::<Vec<_>>(),
            &no_exceptions,
        )
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerKeys {
    pub(super) name: String,
    /// The name of the target; a template.
    pub(super) target: String,
    pub(super) core: Option<usize>,
    /// The part of the core that the server may have, from 0.001 to 0.999; without it, all.
    pub(super) core_share: Option<f64>,
    /// Settings of the target; texts are templates.
    #[serde(default)]
    pub(super) set: BTreeMap<String, Level>,
    /// Cells with these levels do without the server; empty: none does.
    #[serde(default)]
    pub(super) unless: Levels,
    /// Only cells with these levels have the server; empty: all have it.
    #[serde(default)]
    pub(super) only: Levels,
    /// When the server is started anew.
    #[serde(default)]
    pub(super) restart: Restart,
    /// A network with a delay between the server and servers behind it.
    pub(super) link: Option<LinkKeys>,
    /// The names of the servers behind it, if this server is a link; it is not a key of the file.
    #[serde(skip)]
    pub(super) leads_to: Vec<String>,
}

/// What shared a machine in the source, and what was the limit there.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LayoutKeys {
    /// What shared a machine in the source, in words.
    pub(super) there: String,
    /// The measures of CPU time whose inverse is the capacity: `cpu`, or `cpu.SERVER`.
    pub(super) limit: Names,
}

/// How servers are held to their parts of a core.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CoreShareKeys {
    /// `quota` (the default), `spinner` or `none`; a template.
    pub(super) by: Option<String>,
    /// The period of quotas, 10 ms by default; a template.
    pub(super) period: Option<String>,
}

/// A network with a delay between a server and servers behind it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkKeys {
    /// The names of the servers behind the link.
    pub(super) to: Names,
    /// The time of a round trip; a template.
    pub(super) rtt: String,
    pub(super) core: Option<usize>,
}

/// When a server is started anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "toml::Value")]
pub(super) enum Restart {
    /// For each run; with `nest`, once in a round for the cells that share it.
    #[default]
    Round,
    /// After this number of rounds.
    Rounds(usize),
    /// Never: it runs until the experiment ends.
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

/// A change to a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Switch {
    /// The gate is not checked.
    Off,
    /// The gate does not make runs void; it only forbids claims on times.
    Times,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LoadKeys {
    pub(super) url: String,
    pub(super) core: Option<usize>,
    /// Whether the load generator has priority over servers on its core.
    #[serde(default)]
    pub(super) preempts: bool,
    pub(super) clients: Level,
    pub(super) keep_alive: Level,
    #[serde(default = "http_1_1")]
    pub(super) http: Level,
    pub(super) time: String,
    pub(super) warm: WarmKeys,
    /// The requests per second of an open loop; without it, the loop is closed.
    pub(super) rate: Option<Level>,
    /// The shares of the capacity at which the load is also driven by a schedule. The capacity is the throughput of the
    /// slowest cell with as many clients.
    #[serde(default)]
    pub(super) shares: Vec<f64>,
    /// The header fields of each request: `bare` (the default) or `browser`; a template.
    #[serde(default = "bare")]
    pub(super) head: Level,
    /// Further header fields of each request, as `Name: value`. They are templates; one that renders to nothing is left
    /// out.
    #[serde(default)]
    pub(super) headers: Vec<String>,
    /// The length of each request's body in bytes; without it, requests have no body.
    pub(super) post_bytes: Option<Level>,
    pub(super) crowd: Option<CrowdKeys>,
}

/// A load besides the main one.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BesideKeys {
    pub(super) url: String,
    pub(super) clients: Level,
    pub(super) keep_alive: Level,
    pub(super) rate: Level,
}

/// An action that is repeated on a server while load is on it.
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
    /// The shortest warm-up if a Java virtual machine has just been started, and the time that its compilers get; 0 by
    /// default.
    pub(super) first: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CrowdKeys {
    /// The behaviour of the clients: `none`, `idle`, `drip` or `sip`; a template.
    pub(super) kind: String,
    pub(super) clients: Level,
    /// The time between two steps of a client, or `never`.
    pub(super) every: String,
    /// The URL that the clients request; by default the load's.
    pub(super) url: Option<String>,
    /// The niceness of the clients' process, from 0 to 19.
    pub(super) nice: Option<i8>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectKeys {
    pub(super) status: Option<Level>,
    pub(super) body_bytes: Option<Level>,
    pub(super) kept: Option<Level>,
    /// The number of requests after which servers close a kept connection.
    pub(super) kept_requests: Option<Level>,
    /// The least time of a response, because of delays that the experiment sets.
    pub(super) delay: Option<String>,
    /// By server, the number of requests that it receives for each response to the load, 1 by default: a number or a
    /// template.
    #[serde(default)]
    pub(super) asked: BTreeMap<String, Level>,
    /// Whether the bodies of responses may differ: `on` or `off`, the default.
    pub(super) varies: Option<Level>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MeasureKeys {
    #[serde(default)]
    pub(super) syscalls: Vec<String>,
    /// Hops whose bytes are counted, as `SERVER.PORT`.
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

/// A first pass over many cells, and what the rounds after it have.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScreenKeys {
    pub(super) rounds: usize,
    /// The levels of its cells, by factor; a factor that is not named has all of its levels.
    #[serde(default)]
    pub(super) factor: BTreeMap<String, Vec<Level>>,
    #[serde(default)]
    pub(super) then: ThenKeys,
}

/// What the rounds after a first pass have.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ThenKeys {
    /// The number of levels of the factor `of` that survive, the control's included.
    pub(super) keep: Option<usize>,
    pub(super) of: Option<String>,
    /// Levels of the factor `of` that always survive, as the control's does.
    #[serde(default)]
    pub(super) always: Vec<Level>,
    /// The measure by which levels are ranked; by default the first claim's.
    pub(super) by: Option<String>,
    #[serde(default)]
    pub(super) factor: BTreeMap<String, Vec<Level>>,
    #[serde(default)]
    pub(super) run: QuickRunKeys,
}

/// Values that replace others in the short form, or in a duel.
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
    /// Settings that replace those of the same names.
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
    /// The true ratio, if the servers are made so that it is known.
    pub(super) planted: Option<f64>,
}

/// The published ratios of a claim: one for all of its cases, or some with the levels of their cases.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum PublishedOf {
    All(PublishedRatio),
    Some(Vec<PublishedAt>),
}

/// A published ratio of some cases.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedAt {
    /// The levels of the cases; a factor that is not named may have any level.
    pub(super) at: Levels,
    pub(super) ratio: PublishedRatio,
}

impl Default for PublishedOf {
    fn default() -> Self {
        Self::Some(Vec::new())
    }
}

impl PublishedOf {
    /// Each ratio with the levels of its cases; no levels: all cases.
    pub(super) fn all(&self) -> Vec<(Levels, PublishedRatio)> {
        match self {
            Self::All(ratio) => vec![(Levels::new(), *ratio)],
            Self::Some(cases) => cases.iter().map(|it| (it.at.clone(), it.ratio)).collect(),
        }
    }
}

/// The ratio of two ratios: the effect of the factor `of` at the first level of `across`, divided by its effect at the
/// second.
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

/// One name, or a list of names.
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
    /// The subject of the table; for a text, empty.
    #[serde(default)]
    pub(super) says: String,
    /// The levels of the text's run, or those that all rows of the table have.
    #[serde(default)]
    pub(super) cell: Levels,
    /// How the published run was selected: `one run` or `best of several`.
    pub(super) how: Selection,
    /// The name of a built-in text.
    pub(super) text: Option<String>,
    /// For a text of `strace -c`, the number of requests that the process answered.
    pub(super) requests: Option<u64>,
    /// A conclusion that the text does not support, in addition to those that gates find.
    pub(super) note: Option<String>,
    #[serde(default)]
    pub(super) table: Vec<RowKeys>,
    /// By factor and level of the source, the level of ours that stands for it.
    #[serde(default)]
    pub(super) stands: BTreeMap<String, BTreeMap<String, Level>>,
}

/// A row of a published table: a rate, or a ratio of two rates.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RowKeys {
    /// The row in words; by default its levels.
    pub(super) says: Option<String>,
    /// The levels of the row, as the source calls them.
    #[serde(default)]
    pub(super) cell: Levels,
    /// The requests per second; missing if the source does not give them.
    pub(super) tps: Option<f64>,
    /// The lowest rate of a second, or the lowest ratio.
    pub(super) low: Option<f64>,
    /// The highest rate of a second, or the highest ratio.
    pub(super) high: Option<f64>,
    /// For a ratio of two cells, the levels of the numerator.
    #[serde(default)]
    pub(super) level: Levels,
    /// For a ratio of two cells, the levels of the denominator.
    #[serde(default)]
    pub(super) over: Levels,
    pub(super) ratio: Option<f64>,
    /// The words of the claim that tests this ratio.
    pub(super) claim: Option<String>,
    /// A conclusion that the row does not support, in addition to those that gates find.
    pub(super) note: Option<String>,
}

/// How a published run was selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, serde::Serialize)]
pub enum Selection {
    /// It was the only run.
    #[serde(rename = "one run")]
    OneRun,
    /// It was the best of several runs.
    #[serde(rename = "best of several")]
    BestOfSeveral,
}

/// A published run that is repeated with the source's own values, by ab's kind of load.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AsPublishedKeys {
    /// The name of a built-in text; else `says` and `printed` are given.
    pub(super) text: Option<String>,
    /// A description of the run; `printed` is its output.
    pub(super) says: Option<String>,
    pub(super) printed: Option<String>,
    /// The levels of the cell on whose servers the run is made.
    pub(super) cell: Levels,
    /// Settings of servers for this run, by server.
    #[serde(default)]
    pub(super) set: BTreeMap<String, BTreeMap<String, Level>>,
    pub(super) clients: u64,
    pub(super) requests: u64,
    pub(super) keep_alive: bool,
    /// Whether the run is made on the servers of the published run before it, which must have the same cell and
    /// settings.
    #[serde(default)]
    pub(super) again: bool,
    /// Whether each round repeats the run, on servers that have just been started.
    #[serde(default)]
    pub(super) every_round: bool,
    /// The ways in which the repeated run differs from the published one.
    #[serde(default)]
    pub(super) deviations: Vec<String>,
}
