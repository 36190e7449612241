//! The keys of an experiment's file, as TOML has them.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::Level;

/// Levels by the names of their factors.
pub(super) type Levels = BTreeMap<String, Level>;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// As `lab run` calls it.
    pub(super) name: String,
    pub(super) question: String,
    /// What was published.
    #[serde(default)]
    pub(super) source: String,
    /// The cell that the others are set beside.
    pub(super) control: Spanned<Levels>,
    pub(super) factor: BTreeMap<String, Spanned<Vec<Level>>>,
    #[serde(default)]
    pub(super) except: Vec<Spanned<ExceptKeys>>,
    #[serde(default)]
    pub(super) server: Vec<Spanned<ServerKeys>>,
    pub(super) load: Spanned<LoadKeys>,
    #[serde(default)]
    pub(super) expect: ExpectKeys,
    #[serde(default)]
    pub(super) measure: Option<Spanned<MeasureKeys>>,
    pub(super) run: Spanned<RunKeys>,
    #[serde(default)]
    pub(super) quick: Option<Spanned<QuickKeys>>,
    #[serde(default)]
    pub(super) claim: Vec<Spanned<ClaimKeys>>,
    #[serde(default)]
    pub(super) published: Vec<Spanned<PublishedKeys>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExceptKeys {
    #[serde(rename = "where")]
    pub(super) cells: Levels,
    #[expect(dead_code, reason = "it is for those who read the file")]
    pub(super) why: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerKeys {
    pub(super) name: String,
    /// A template.
    pub(super) target: String,
    pub(super) core: Option<usize>,
    /// Templates, or values as they are.
    #[serde(default)]
    pub(super) set: BTreeMap<String, Level>,
    /// Cells that do without it.
    #[serde(default)]
    pub(super) unless: Levels,
    /// The only cells that have it.
    #[serde(default)]
    pub(super) only: Levels,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LoadKeys {
    pub(super) url: String,
    pub(super) core: Option<usize>,
    pub(super) clients: Level,
    pub(super) keep_alive: Level,
    #[serde(default = "http_1_1")]
    pub(super) http: Level,
    pub(super) time: String,
    pub(super) warm: WarmKeys,
    pub(super) idle: Option<IdleKeys>,
}

fn http_1_1() -> Level {
    Level::Text("1.1".to_owned())
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WarmKeys {
    pub(super) at_least: String,
    pub(super) at_most: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IdleKeys {
    pub(super) clients: Level,
    pub(super) every: String,
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
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunKeys {
    pub(super) rounds: usize,
    pub(super) half_width: Option<f64>,
    pub(super) seed: u64,
}

/// What replaces keys under `--quick`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuickKeys {
    #[serde(default)]
    pub(super) factor: BTreeMap<String, Vec<Level>>,
    #[serde(default)]
    pub(super) run: QuickRunKeys,
    #[serde(default)]
    pub(super) load: QuickLoadKeys,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuickRunKeys {
    pub(super) rounds: Option<usize>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuickLoadKeys {
    pub(super) time: Option<String>,
    pub(super) warm: Option<WarmKeys>,
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
    pub(super) published: Option<f64>,
}

/// The ratio of two ratios: how much more `of` makes at the first level of `across`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InteractionKeys {
    pub(super) of: BTreeMap<String, [Level; 2]>,
    pub(super) across: BTreeMap<String, [Level; 2]>,
}

/// What is expected of a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Expectation {
    /// The ratio is above 1.
    More,
    /// It is below 1.
    Less,
    /// It is 1 within the margin.
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
    pub(super) cell: Levels,
    /// `one run` or `best of several`.
    pub(super) how: How,
    /// A text of those that are built in.
    pub(super) text: String,
}

/// What a published run was one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, serde::Serialize)]
pub enum How {
    /// There was one run.
    #[serde(rename = "one run")]
    OneRun,
    /// The best of several was chosen.
    #[serde(rename = "best of several")]
    BestOfSeveral,
}
