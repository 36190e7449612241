//! `[screen]`: a first pass over many cells, after which the rounds go on with a part of them.

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
        all: Vec<Levels>,
        is_quick: bool,
    ) -> (Vec<Levels>, Option<Screen>) {
        let Some(at) = file.screen.as_ref().filter(|_| !is_quick) else {
            return (all, None);
        };
        let ScreenKeys {
            rounds,
            factor,
            then,
        } = at.get_ref();
        if !(ROUNDS_MIN..=ROUNDS_MAX).contains(rounds) {
            let fault =
                format!("screen.rounds = {rounds}: it is from {ROUNDS_MIN} to {ROUNDS_MAX}");
            self.fault(at, fault);
        }
        let is_of = |cell: &Levels, levels: &std::collections::BTreeMap<String, Vec<Level>>| {
            let mut named = levels.iter();
            named.all(|(name, levels)| cell.get(name).is_some_and(|level| levels.contains(level)))
        };
        let mut cells = all;
        cells.retain(|cell| is_of(cell, factor) || is_of(cell, &then.factor));
        let places = |levels| {
            let found = cells.iter().enumerate();
            found
                .filter(|(_, cell)| is_of(cell, levels))
                .map(|(place, _)| place)
                .collect()
        };
        let screen = Screen {
            rounds: *rounds,
            cells: places(factor),
            then: places(&then.factor),
            keep: self.keep(file, at, then),
        };
        let control = file.control.get_ref();
        let is_in = |part: &[usize]| part.iter().any(|cell| matches(&cells[*cell], control));
        if !is_in(&screen.cells) || !is_in(&screen.then) {
            let what = "`control` must be in the screen and in what follows: all other cells are compared with it";
            self.fault(at, what.to_owned());
        }
        (cells, Some(screen))
    }

    /// Reads the rule by which levels survive; `None` without one, or after a fault.
    fn keep(
        &mut self,
        file: &ExperimentFile,
        at: &toml::Spanned<ScreenKeys>,
        then: &ThenKeys,
    ) -> Option<Keep> {
        let (count, of) = match (then.keep, &then.of) {
            (None, None) => return None,
            (Some(count), Some(of)) if count >= 2 && file.factor.contains_key(of) => (count, of),
            _ => {
                let what = "`then.keep` is a number of levels from 2, and `then.of` the factor that has them";
                self.fault(at, what.to_owned());
                return None;
            }
        };
        let first = file.claim.first().map(|claim| &claim.get_ref().measure);
        let Some(name) = then.by.as_ref().or(first) else {
            self.fault(
                at,
                "`then.by` is the measure by which levels stay".to_owned(),
            );
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
                self.fault(at, what);
                None
            }
        }
    }

    /// Checks that the levels in both passes exist.
    pub(super) fn check_screen(&mut self, file: &ExperimentFile, factors: &[Factor]) {
        let Some(at) = &file.screen else {
            return;
        };
        let ScreenKeys { factor, then, .. } = at.get_ref();
        for (name, level) in factor
            .iter()
            .chain(&then.factor)
            .flat_map(|(name, levels)| levels.iter().map(move |level| (name, level)))
        {
            let one = Levels::from([(name.clone(), level.clone())]);
            self.check_named(at, factors, &[&one]);
        }
        for (of, level) in then
            .of
            .iter()
            .flat_map(|of| then.always.iter().map(move |it| (of, it)))
        {
            let one = Levels::from([(of.clone(), level.clone())]);
            self.check_named(at, factors, &[&one]);
        }
    }
}
