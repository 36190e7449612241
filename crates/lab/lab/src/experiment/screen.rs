//! `[screen]`: a first pass over many cells, after which the rounds go on with a part of them.

use std::collections::BTreeMap;

use super::cells::matches;
use super::file::{ExperimentFile, ScreenKeys, ThenKeys};
use super::read::FileReader;
use super::{Experiment, Factor, Level, Levels, ROUNDS_MAX, ROUNDS_MIN};
use crate::measure::Measure;

/// A first pass over many cells. The rounds after it have only some of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Screen {
    /// The number of rounds of this pass, which are made before the planned rounds of the experiment.
    pub rounds: usize,
    /// The numbers of the cells in this pass.
    pub cells: Vec<usize>,
    /// The numbers of the cells in the rounds after this pass, before levels are left out by `keep`.
    pub then: Vec<usize>,
    /// The rule by which levels are left out after this pass; `None`: none are.
    pub keep: Option<Keep>,
}

/// The rule by which levels of a factor survive a screen: the control's, those of `always`, and then the best ones up
/// to `count`.
#[derive(Clone, Debug, PartialEq)]
pub struct Keep {
    /// The number of levels that stay, the control's and those of `always` among them.
    pub count: usize,
    /// The name of the factor.
    pub of: String,
    /// Levels that always stay.
    pub always: Vec<Level>,
    /// The measure by which levels are ranked: the highest is best for throughput, the lowest for all others.
    pub by: Measure,
}

impl Experiment {
    /// The number of rounds of the screen; 0 without one.
    #[must_use]
    pub fn screened(&self) -> usize {
        self.screen.as_ref().map_or(0, |screen| screen.rounds)
    }

    /// The number of planned rounds, with those of the screen.
    #[must_use]
    pub fn rounds_in_all(&self) -> usize {
        self.screened() + self.rounds
    }

    /// The number of rounds after which the experiment is complete: fewer than planned if all claims were decided
    /// before.
    #[must_use]
    pub fn rounds_to_make(&self) -> usize {
        self.screened() + self.decided_after.unwrap_or(self.rounds)
    }
}

impl FileReader<'_> {
    /// Removes from all combinations the cells that neither pass has; returns the cells that are left, and the screen.
    pub(super) fn screen(
        &mut self,
        file: &ExperimentFile,
        mut cells: Vec<Levels>,
        is_quick: bool,
    ) -> (Vec<Levels>, Option<Screen>) {
        // The short form has no screen.
        let Some(table) = file.screen.as_ref().filter(|_| !is_quick) else {
            return (cells, None);
        };
        let ScreenKeys {
            rounds,
            factor,
            then,
        } = table.get_ref();
        if !(ROUNDS_MIN..=ROUNDS_MAX).contains(rounds) {
            let fault =
                format!("screen.rounds = {rounds}: it is from {ROUNDS_MIN} to {ROUNDS_MAX}");
            self.fault(table, fault);
        }
        cells.retain(|cell| has_levels(cell, factor) || has_levels(cell, &then.factor));
        let cells_with = |levels| {
            let numbers = 0..cells.len();
            numbers
                .filter(|number| has_levels(&cells[*number], levels))
                .collect()
        };
        let screen = Screen {
            rounds: *rounds,
            cells: cells_with(factor),
            then: cells_with(&then.factor),
            keep: self.keep(file, table, then),
        };
        let control = file.control.get_ref();
        let has_control = |pass: &[usize]| pass.iter().any(|cell| matches(&cells[*cell], control));
        if !has_control(&screen.cells) || !has_control(&screen.then) {
            let what = "`control` must be in the screen and in what follows: all other cells are compared with it";
            self.fault(table, what.to_owned());
        }
        (cells, Some(screen))
    }

    /// Reads the rule by which levels survive; `None` without one, or after a fault.
    fn keep(
        &mut self,
        file: &ExperimentFile,
        table: &toml::Spanned<ScreenKeys>,
        then: &ThenKeys,
    ) -> Option<Keep> {
        let (count, of) = match (then.keep, &then.of) {
            (None, None) => return None,
            (Some(count), Some(of)) if count >= 2 && file.factor.contains_key(of) => (count, of),
            _ => {
                let what = "`then.keep` is a number of levels from 2, and `then.of` the factor that has them";
                self.fault(table, what.to_owned());
                return None;
            }
        };
        let first_claim = file.claim.first();
        let default_measure = first_claim.map(|claim| &claim.get_ref().measure);
        let Some(name) = then.by.as_ref().or(default_measure) else {
            let what = "`then.by` is the measure by which levels stay";
            self.fault(table, what.to_owned());
            return None;
        };
        match Measure::parse(name) {
            Ok(by) => Some(Keep {
                count,
                of: of.clone(),
                always: then.always.clone(),
                by,
            }),
            Err(what) => {
                self.fault(table, what);
                None
            }
        }
    }

    /// Checks that the levels in both passes exist.
    pub(super) fn check_screen(&mut self, file: &ExperimentFile, factors: &[Factor]) {
        let Some(table) = &file.screen else {
            return;
        };
        let ScreenKeys { factor, then, .. } = table.get_ref();
        for (name, levels) in factor.iter().chain(&then.factor) {
            self.check_levels_of(table, factors, name, levels);
        }
        if let Some(name) = &then.of {
            self.check_levels_of(table, factors, name, &then.always);
        }
    }
}

/// Whether a cell has one of the levels of each factor in `levels`.
fn has_levels(cell: &Levels, levels: &BTreeMap<String, Vec<Level>>) -> bool {
    let mut factors = levels.iter();
    factors.all(|(name, levels)| cell.get(name).is_some_and(|level| levels.contains(level)))
}
