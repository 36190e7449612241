//! Claims of a file, and the cells that each of them compares.

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::cells::matches;
use super::file::{ClaimKeys, ServerKeys};
use super::{Expectation, Factor, Levels};
use crate::measure::Measure;

/// A claim of a file, with its cases: one for each combination of the levels in `each`.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The claim, in words.
    pub says: String,
    /// The measure that is compared.
    pub measure: Measure,
    /// The levels of the numerator; for an interaction, those of the first ratio.
    pub level: Levels,
    /// The levels of the denominator; for an interaction, those of the second ratio.
    pub over: Levels,
    /// The expected result.
    pub expect: Expectation,
    /// The difference that counts as none, such as 0.05.
    pub margin: f64,
    /// The published ratios, each with the levels of the cases that it is about; factors that are not named may have
    /// any level.
    pub published: Vec<(Levels, PublishedRatio)>,
    /// The true ratio, if the servers are made so that it is known; else `None`.
    pub planted: Option<f64>,
    /// Whether the claim compares levels of a factor that decides if connections to the application are reused.
    /// Otherwise a difference in reuse would be another explanation of the ratio.
    pub names_reuse: bool,
    /// The cases of the claim, at least one.
    pub cases: Vec<Case>,
}

/// A published ratio, or the range that the source gives instead.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PublishedRatio {
    /// A single ratio, such as 1.102.
    One(f64),
    /// A range: its lower and its upper end.
    Range([f64; 2]),
}

impl Claim {
    /// The published ratio of the case with these levels.
    pub(crate) fn published_of(&self, each: &Levels) -> Option<PublishedRatio> {
        let is_of_case = |levels: &Levels| {
            let mut levels = levels.iter();
            // A factor that the case does not name is not in question.
            levels.all(|(name, level)| each.get(name).is_none_or(|of_case| of_case == level))
        };
        let mut published = self.published.iter();
        let (_, ratio) = published.find(|(levels, _)| is_of_case(levels))?;
        Some(*ratio)
    }
}

/// A case of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The levels of the factors in `each`.
    pub each: Levels,
    /// The pairs of cells that are compared; the case's ratio is the geometric mean of theirs. There are several if
    /// cells also differ in factors that the claim does not name.
    pub contrasts: Vec<Contrast>,
}

/// Cells that are divided by each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contrast {
    /// The numbers of the cells in the numerator: one, or two for an interaction. Their values are multiplied.
    pub above: Vec<usize>,
    /// The numbers of the cells in the denominator, as many.
    pub below: Vec<usize>,
}

/// All levels that the keys of a claim name, for a check that they exist.
pub(super) fn levels_of(keys: &ClaimKeys) -> Vec<Levels> {
    let mut levels = vec![keys.level.clone(), keys.over.clone(), keys.cells.clone()];
    if let Some(interaction) = &keys.interaction {
        for side in [&interaction.of, &interaction.across] {
            levels.extend([levels_at(side, 0), levels_at(side, 1)]);
        }
    }
    levels
}

/// Whether a claim compares levels of a factor that decides if connections to the application are reused.
pub(super) fn names_reuse(keys: &ClaimKeys, servers: &[Spanned<ServerKeys>]) -> bool {
    let mut compared: Vec<&String> = keys.level.keys().collect();
    if let Some(interaction) = &keys.interaction {
        compared.extend(interaction.of.keys().chain(interaction.across.keys()));
    }
    let mut templates = servers
        .iter()
        .filter_map(|server| server.get_ref().set.get("reuse"));
    templates.any(|template| {
        let factors = factors_in(&template.to_string());
        factors.iter().any(|factor| compared.contains(&factor))
    })
}

/// The factors that a template names, as `factor.NAME`.
pub(super) fn factors_in(template: &str) -> Vec<String> {
    // Each part but the first begins with a name.
    let parts = template.split("factor.").skip(1);
    let name = |part: &str| {
        let end = part.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
        part[..end.unwrap_or(part.len())].to_owned()
    };
    parts.map(name).collect()
}

/// The cases of a claim over `cells`; none if no cells fit.
pub(super) fn cases(keys: &ClaimKeys, factors: &[Factor], cells: &[Levels]) -> Vec<Case> {
    let names = keys.each.all();
    let mut each_factors = factors.to_vec();
    each_factors.retain(|factor| names.contains(&factor.name));
    let mut cases = Vec::new();
    // Exceptions are not needed here: a case without cells is left out.
    for each in super::cells::combine(&each_factors, &[]) {
        let contrasts = contrasts(keys, &each, cells);
        if !contrasts.is_empty() {
            cases.push(Case { each, contrasts });
        }
    }
    cases
}

/// The pairs of cells that a claim compares in the case `each`: cells that differ only in the claim's levels.
fn contrasts(keys: &ClaimKeys, each: &Levels, cells: &[Levels]) -> Vec<Contrast> {
    let (above, below) = match &keys.interaction {
        None => (vec![keys.level.clone()], vec![keys.over.clone()]),
        Some(interaction) => {
            let corner = |of, across| {
                let mut corner = levels_at(&interaction.of, of);
                corner.extend(levels_at(&interaction.across, across));
                corner
            };
            // The effect of `of` at the first level of `across`, over that at the second one.
            (
                vec![corner(0, 0), corner(1, 1)],
                vec![corner(1, 0), corner(0, 1)],
            )
        }
    };
    let mut contrasts = Vec::new();
    for cell in cells {
        let mut wanted = [&above[0], &keys.cells, each].into_iter();
        let is_first_above = wanted.all(|levels| matches(cell, levels));
        if !is_first_above {
            continue;
        }
        // The other cells of the contrast have all other levels in common with this one.
        let number_at = |corner: &Levels| {
            let mut other = cell.clone();
            other.extend(corner.clone());
            cells.iter().position(|cell| *cell == other)
        };
        let numbers =
            |corners: &[Levels]| corners.iter().map(number_at).collect::<Option<Vec<_>>>();
        // A pair is left out if one of its cells is an exception.
        if let (Some(above), Some(below)) = (numbers(&above), numbers(&below)) {
            contrasts.push(Contrast { above, below });
        }
    }
    contrasts
}

/// The levels of one side of an interaction: the first (`place` 0) or the second (1) of each of its factors.
fn levels_at(side: &std::collections::BTreeMap<String, [super::Level; 2]>, place: usize) -> Levels {
    let mut levels = Levels::new();
    for (name, pair) in side {
        levels.insert(name.clone(), pair[place].clone());
    }
    levels
}
