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
    /// For each cell, the lifetimes of its servers in rounds, each above 1 once.
    lifetimes: Vec<BTreeSet<usize>>,
}

impl StartSpans {
    pub(super) fn of(experiment: &Experiment) -> Self {
        let cells = 0..experiment.cells.len();
        Self {
            lifetimes: cells.map(|cell| experiment.lifetimes(cell)).collect(),
        }
    }

    /// The sample of a case: the median ratio of each start of its servers, in order.
    pub(super) fn sample(&self, case: &Case, ratios: &[Ratio], runs: &Runs<'_>) -> Vec<f64> {
        let cells = self.of_case(case);
        let lifetimes = self.lifetimes_of(&cells);
        let groups = grouped(ratios, |ratio| {
            let run_of = |cell: &usize| runs.get(&(*cell, ratio.round)).copied();
            starts(ratio.round, &lifetimes, cells.iter().filter_map(run_of))
        });
        let mut medians = Vec::new();
        for group in groups {
            let values: Vec<f64> = group.iter().map(|ratio| ratio.value).collect();
            medians.extend(Spread::of(&values).map(|spread| spread.median));
        }
        medians
    }

    /// The numbers of the cells of a case.
    pub(super) fn of_case(&self, case: &Case) -> Vec<usize> {
        let cells = 0..self.lifetimes.len();
        cells.filter(|cell| is_in(&case.contrasts, *cell)).collect()
    }

    /// The number of starts that the servers of `cells` have in `rounds`, if no run is void.
    pub(super) fn planned(&self, cells: &[usize], rounds: Range<usize>) -> usize {
        let lifetimes = self.lifetimes_of(cells);
        let rounds: Vec<usize> = rounds.collect();
        grouped(&rounds, |round| starts(*round, &lifetimes, [].into_iter())).len()
    }

    /// The lifetimes of the servers of any of these cells.
    fn lifetimes_of(&self, cells: &[usize]) -> BTreeSet<usize> {
        cells
            .iter()
            .flat_map(|cell| self.lifetimes[*cell].clone())
            .collect()
    }
}

/// For each round of an experiment the number of its start, from 0; rounds that share a start have the same number.
pub(crate) fn of_rounds(experiment: &Experiment, rounds: usize, runs: &[Run]) -> Vec<usize> {
    let all_cells: Vec<usize> = (0..experiment.cells.len()).collect();
    let lifetimes = StartSpans::of(experiment).lifetimes_of(&all_cells);
    let all_rounds: Vec<usize> = (0..rounds).collect();
    let groups = grouped(&all_rounds, |round| {
        let of_round = |run: &&Run| run.round == *round && run.is_valid();
        starts(*round, &lifetimes, runs.iter().filter(of_round))
    });
    let mut start_of_round = vec![0; rounds];
    for (start, group) in groups.iter().enumerate() {
        for round in group {
            start_of_round[**round] = start;
        }
    }
    start_of_round
}

/// The identities of a round's starts: those that its runs have recorded, and those that the file plans.
fn starts<'a>(
    round: usize,
    lifetimes: &BTreeSet<usize>,
    runs: impl Iterator<Item = &'a Run>,
) -> Keys {
    let mut keys = Keys::new();
    for lifetime in lifetimes {
        keys.insert((format!("{lifetime} rounds"), (round / lifetime) as u64));
    }
    for (server, start) in runs.flat_map(|run| &run.starts) {
        keys.insert((server.clone(), *start));
    }
    keys
}

/// Groups things by shared starts, transitively: if A and B share a start, and B and C another, all three are in one
/// group.
fn grouped<T>(things: &[T], starts: impl Fn(&T) -> Keys) -> Vec<Vec<&T>> {
    let mut groups: Vec<(Keys, Vec<&T>)> = Vec::new();
    for thing in things {
        let mut keys = starts(thing);
        let mut members = Vec::new();
        // Groups that share a start with the thing are merged into the thing's new group.
        groups.retain_mut(|(group_keys, group_members)| {
            let is_linked = !group_keys.is_disjoint(&keys);
            if is_linked {
                keys.append(group_keys);
                members.append(group_members);
            }
            !is_linked
        });
        members.push(thing);
        groups.push((keys, members));
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
            let start_spans = StartSpans::of(&experiment);
            assert_eq!(
                start_spans.planned(&cells, 0..rounds),
                expected,
                "{restart}"
            );
        }
    }

    const FILE: &str = include_str!("../../fixtures/keepalive.toml");
}
