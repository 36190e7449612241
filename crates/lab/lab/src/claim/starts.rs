//! Starts of servers, which are the sample of a claim.
//!
//! The effects of a start, such as where memory lies or what a virtual machine has compiled, are in all rounds until
//! the next start. So rounds that share a start of any server count once, by the median of their ratios. Rounds with
//! starts of their own each count.

use std::collections::BTreeSet;
use std::ops::Range;

use catamaran_stats::Spread;

use super::{Runs, is_in};
use crate::experiment::{Case, Experiment};
use crate::run::Run;

/// The ratio of a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ratio {
    /// The round, counted from 0.
    pub(super) round: usize,
    pub(super) value: f64,
}

/// Identities of starts: the server's name with the time of the start, or a number of rounds with the number of the
/// start that the file plans.
type Keys = BTreeSet<(String, u64)>;

/// For how many rounds the servers of each cell run.
#[derive(Debug)]
pub(super) struct StartSpans {
    /// For each cell, the numbers of rounds for which its servers run, each number above 1 once.
    cells: Vec<BTreeSet<usize>>,
}

impl StartSpans {
    pub(super) fn of(experiment: &Experiment) -> Self {
        let cells = 0..experiment.cells.len();
        Self {
            cells: cells.map(|cell| experiment.lasting(cell)).collect(),
        }
    }

    /// The sample of a case: the median ratio of each start of its servers, in order.
    pub(super) fn sample(&self, case: &Case, ratios: &[Ratio], runs: &Runs<'_>) -> Vec<f64> {
        let cells: Vec<usize> = self.of_case(case);
        let lasting = self.together(&cells);
        let groups = grouped(ratios, |ratio| {
            let of_cell = |cell: &usize| runs.get(&(*cell, ratio.round)).copied();
            starts(ratio.round, &lasting, cells.iter().filter_map(of_cell))
        });
        let median = |group: Vec<&Ratio>| {
            let values: Vec<f64> = group.iter().map(|ratio| ratio.value).collect();
            Spread::of(&values).map(|spread| spread.median)
        };
        groups.into_iter().filter_map(median).collect()
    }

    /// The numbers of the cells of a case.
    pub(super) fn of_case(&self, case: &Case) -> Vec<usize> {
        let cells = 0..self.cells.len();
        cells.filter(|cell| is_in(&case.contrasts, *cell)).collect()
    }

    /// The number of starts that the servers of `cells` have in `rounds`, if no run is void.
    pub(super) fn planned(&self, cells: &[usize], rounds: Range<usize>) -> usize {
        let lasting = self.together(cells);
        let rounds: Vec<usize> = rounds.collect();
        grouped(&rounds, |round| starts(*round, &lasting, [].into_iter())).len()
    }

    /// The numbers of rounds for which servers of any of these cells run.
    fn together(&self, cells: &[usize]) -> BTreeSet<usize> {
        cells
            .iter()
            .flat_map(|cell| self.cells[*cell].clone())
            .collect()
    }
}

/// For each round of an experiment the number of its start, from 0; rounds that share a start have the same number.
pub(crate) fn of_rounds(experiment: &Experiment, rounds: usize, runs: &[Run]) -> Vec<usize> {
    let known = StartSpans::of(experiment);
    let cells: Vec<usize> = (0..experiment.cells.len()).collect();
    let lasting = known.together(&cells);
    let rounds: Vec<usize> = (0..rounds).collect();
    let groups = grouped(&rounds, |round| {
        let of_round = |run: &&Run| run.round == *round && run.is_valid();
        starts(*round, &lasting, runs.iter().filter(of_round))
    });
    let mut numbers = vec![0; rounds.len()];
    for (number, group) in groups.iter().enumerate() {
        for round in group {
            numbers[**round] = number;
        }
    }
    numbers
}

/// The identities of a round's starts: those that its runs have recorded, and those that the file plans.
fn starts<'a>(
    round: usize,
    lasting: &BTreeSet<usize>,
    runs: impl Iterator<Item = &'a Run>,
) -> Keys {
    let blocks = lasting.iter();
    let planned = blocks.map(|rounds| (format!("{rounds} rounds"), (round / rounds) as u64));
    let of_run = |run: &'a Run| {
        run.starts
            .iter()
            .map(|(name, start)| (name.clone(), *start))
    };
    planned.chain(runs.flat_map(of_run)).collect()
}

/// Groups things so that two that share a start are in one group, also if only other things link them.
fn grouped<T>(things: &[T], starts: impl Fn(&T) -> Keys) -> Vec<Vec<&T>> {
    let mut groups: Vec<(Keys, Vec<&T>)> = Vec::new();
    for thing in things {
        let mut known = starts(thing);
        let mut members = Vec::new();
        groups.retain_mut(|(of_group, before)| {
            let is_linked = !of_group.is_disjoint(&known);
            if is_linked {
                known.append(of_group);
                members.append(before);
            }
            !is_linked
        });
        members.push(thing);
        groups.push((known, members));
    }
    groups.into_iter().map(|(_, members)| members).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_that_share_a_start_are_one() {
        let starts = |thing: &u64| BTreeSet::from([("a".to_owned(), thing / 10)]);
        let things = [1, 5, 11, 23, 24];
        assert_eq!(
            grouped(&things, starts),
            [vec![&1, &5], vec![&11], vec![&23, &24]]
        );
        // The last one links two that were apart.
        let starts = |thing: &u64| match thing {
            99 => BTreeSet::from([("a".to_owned(), 0), ("a".to_owned(), 1)]),
            thing => BTreeSet::from([("a".to_owned(), thing / 10)]),
        };
        let things = [1, 11, 21, 99];
        assert_eq!(grouped(&things, starts), [vec![&21], vec![&1, &11, &99]]);
    }

    #[test]
    fn a_file_plans_starts() {
        for (restart, rounds, expected) in [
            ("\"round\"", 12, 12),
            ("3", 12, 4),
            ("3", 13, 5),
            ("\"never\"", 20, 1),
        ] {
            let text = FILE.replacen("core = 1\n", &format!("core = 1\nrestart = {restart}\n"), 1);
            let experiment = Experiment::read("k.toml", &text, false).unwrap();
            // A cell with idle clients beside has new servers in each run, but where they are never started anew.
            let is_quiet = |cell: &usize| experiment.cells[*cell]["idle"].to_string() == "0";
            let cells: Vec<usize> = (0..experiment.cells.len()).filter(is_quiet).collect();
            let lasting = StartSpans::of(&experiment);
            assert_eq!(lasting.planned(&cells, 0..rounds), expected, "{restart}");
        }
    }

    const FILE: &str = include_str!("../../fixtures/keepalive.toml");
}
