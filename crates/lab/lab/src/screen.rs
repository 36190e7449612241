//! Chooses the cells of each round: all of them, or with a `[screen]` first those of the screen, then those that
//! survive it.

use std::collections::BTreeSet;

use catamaran_stats::Spread;

use crate::experiment::{Experiment, Keep, Level, Levels, ROUNDS_MIN, Screen};
use crate::measure::Better;
use crate::run::{Run, RunKey};

/// The cells of a round. The levels that survive the screen follow from its valid runs.
#[must_use]
pub fn cells(experiment: &Experiment, round: usize, runs: &[Run]) -> Vec<usize> {
    let Some(screen) = &experiment.screen else {
        return (0..experiment.cells.len()).collect();
    };
    if round < screen.rounds {
        return screen.cells.clone();
    }
    let Some(keep) = &screen.keep else {
        return screen.then.clone();
    };
    let levels = survivors(experiment, keep, screen, runs);
    let mut cells = screen.then.clone();
    cells.retain(|cell| levels.contains(&experiment.cells[*cell][&keep.of]));
    cells
}

/// The number of whole rounds, from the first on. A round is whole if each of its cells has a valid
/// run, or was attempted as often as allowed.
#[must_use]
pub fn whole_rounds(experiment: &Experiment, runs: &[Run]) -> usize {
    let is_cell_done = |cell: usize, round: usize| {
        let of_cell = || {
            let runs = runs.iter();
            runs.filter(|run| run.round == round && run.cell == cell)
        };
        let attempts_max = crate::run::attempts(runs, RunKey { cell, round });
        of_cell().any(Run::is_valid) || of_cell().count() >= attempts_max
    };
    let mut round = 0;
    // A round without runs has not begun.
    while runs.iter().any(|run| run.round == round) {
        let mut cells = cells(experiment, round, runs).into_iter();
        if !cells.all(|cell| is_cell_done(cell, round)) {
            break;
        }
        round += 1;
    }
    round
}

/// Whether so few rounds are made that there is no interval yet, so that the number of rounds may still be changed.
/// Someone who has seen an interval could otherwise add rounds until it shows a difference that does not exist.
#[must_use]
pub fn is_unseen(experiment: &Experiment, runs: &[Run]) -> bool {
    let made = whole_rounds(experiment, runs).saturating_sub(experiment.screened());
    made < ROUNDS_MIN
}

/// Whether all planned rounds are made.
#[must_use]
pub fn is_complete(experiment: &Experiment, runs: &[Run]) -> bool {
    let begun = runs.iter().map(|run| run.round + 1).max().unwrap_or(0);
    let whole = whole_rounds(experiment, runs);
    whole == begun && whole >= experiment.rounds_to_make()
}

/// The levels of a factor that survive the screen: the control's, those that are always kept, and
/// the best of the others.
fn survivors(
    experiment: &Experiment,
    keep: &Keep,
    screen: &Screen,
    runs: &[Run],
) -> BTreeSet<Level> {
    let control = &experiment.cells[experiment.control][&keep.of];
    let mut factors = experiment.factors.iter();
    let factor = factors.find(|factor| factor.name == keep.of);
    let levels = factor.map_or(&[][..], |factor| &factor.levels);
    let compared = common_levels(experiment, &keep.of, levels, &screen.cells);
    let mut survivors: BTreeSet<Level> = keep.always.iter().cloned().collect();
    survivors.insert(control.clone());
    let mut ranked: Vec<(f64, &Level)> = Vec::new();
    for level in levels {
        if survivors.contains(level) {
            continue;
        }
        let cells = screen.cells.iter().filter(|cell| {
            let (own, others) = split_levels(&experiment.cells[**cell], &keep.of);
            own == Some(level) && compared.contains(&others)
        });
        ranked.push((cost(keep, cells, runs, screen.rounds), level));
    }
    // The sort is stable: levels without a figure come last, in the file's order.
    ranked.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let places = keep.count.saturating_sub(survivors.len());
    let best = ranked.into_iter().take(places);
    survivors.extend(best.map(|(_, level)| level.clone()));
    survivors
}

/// The combinations of other factors' levels that were measured with every level of the factor. Levels are ranked by
/// these cells.
fn common_levels(
    experiment: &Experiment,
    factor: &str,
    levels: &[Level],
    screen_cells: &[usize],
) -> BTreeSet<Levels> {
    let measured_with = |level: &Level| -> BTreeSet<Levels> {
        let cells = screen_cells.iter();
        let split = cells.map(|cell| split_levels(&experiment.cells[*cell], factor));
        let with_level = split.filter(|(own, _)| *own == Some(level));
        with_level.map(|(_, others)| others).collect()
    };
    let Some((first, further)) = levels.split_first() else {
        return BTreeSet::new();
    };
    let mut common = measured_with(first);
    for level in further {
        let measured = measured_with(level);
        common.retain(|others| measured.contains(others));
    }
    common
}

/// A cell's level of a factor, and its levels of all other factors.
fn split_levels<'a>(cell: &'a Levels, factor: &str) -> (Option<&'a Level>, Levels) {
    let mut others = cell.clone();
    others.remove(factor);
    (cell.get(factor), others)
}

/// The figure by which levels are ranked, less is better: the mean logarithm of the cells' medians in the rounds of the
/// screen; infinite if a cell has none. Later rounds do not count, so that the choice does not change.
fn cost<'a>(
    keep: &Keep,
    cells: impl Iterator<Item = &'a usize>,
    runs: &[Run],
    rounds: usize,
) -> f64 {
    let mut logs = Vec::new();
    for cell in cells {
        let valid = runs
            .iter()
            .filter(|run| run.cell == *cell && run.round < rounds && run.is_valid());
        let values = valid.filter_map(|run| run.measures.get(keep.by.name()).copied());
        let values: Vec<f64> = values.filter(|value| *value > 0.0).collect();
        match Spread::of(&values) {
            Some(spread) => logs.push(spread.median.ln()),
            None => return f64::INFINITY,
        }
    }
    if logs.is_empty() {
        return f64::INFINITY;
    }
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    match keep.by.record().better {
        Better::More => -mean,
        Better::Less => mean,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = include_str!("../fixtures/keepalive.toml");

    /// An experiment with a screen over MPMs without idle clients; the rounds after it have two of
    /// them, with and without keep-alive.
    fn experiment(screen: &str) -> Experiment {
        let text = format!("{FILE}\n[screen]\nrounds = 6\n{screen}");
        Experiment::read("k.toml", &text, false).unwrap()
    }

    const KEEP: &str = "factor.idle = [0]\n\
        then = { keep = 2, of = \"mpm\", by = \"cpu\", factor.limit = [100] }\n";

    fn run(cell: usize, round: usize, cpu: f64) -> Run {
        Run {
            cell,
            round,
            measures: [("cpu".to_owned(), cpu)].into(),
            ..Run::default()
        }
    }

    fn screened(experiment: &Experiment, cost: impl Fn(&str) -> f64) -> Vec<Run> {
        let mut runs = Vec::new();
        for round in 0..6 {
            for cell in cells(experiment, round, &runs) {
                let mpm = experiment.cells[cell]["mpm"].to_string();
                runs.push(run(cell, round, cost(&mpm)));
            }
        }
        runs
    }

    fn mpms(experiment: &Experiment, cells: &[usize]) -> BTreeSet<String> {
        let levels = cells.iter().map(|cell| &experiment.cells[*cell]["mpm"]);
        levels.map(ToString::to_string).collect()
    }

    #[test]
    fn the_control_and_the_best_go_on() {
        let experiment = experiment(KEEP);
        let first = cells(&experiment, 5, &[]);
        let is_idle = |cell: &usize| experiment.cells[*cell]["idle"] == Level::Count(0);
        assert_eq!(first.len(), 9);
        assert!(first.iter().all(is_idle));
        for (best, other) in [("worker", "event"), ("event", "worker")] {
            let cost = |mpm: &str| if mpm == other { 9.0 } else { 5.0 };
            let runs = screened(&experiment, cost);
            let then = cells(&experiment, 6, &runs);
            let stay = BTreeSet::from(["prefork".to_owned(), best.to_owned()]);
            assert_eq!(mpms(&experiment, &then), stay);
            assert_eq!(then.len(), 6, "closing, kept, kept beside idle clients");
        }
        // What comes after the screen changes nothing.
        let mut runs = screened(&experiment, |mpm| if mpm == "event" { 9.0 } else { 5.0 });
        let then = cells(&experiment, 6, &runs);
        for round in 6..18 {
            runs.extend(then.iter().map(|cell| run(*cell, round, 99.0)));
        }
        assert_eq!(cells(&experiment, 17, &runs), then);
        let throughput = KEEP.replace("\"cpu\"", "\"throughput\"");
        let by_rate = self::experiment(&throughput);
        let mut runs = screened(&by_rate, |mpm| if mpm == "event" { 9.0 } else { 5.0 });
        for run in &mut runs {
            let rate = run.measures["cpu"];
            run.measures.insert("throughput".to_owned(), rate);
        }
        let then = cells(&by_rate, 6, &runs);
        assert!(mpms(&by_rate, &then).contains("event"), "more is better");
    }

    #[test]
    fn rounds_are_planned_anew_until_an_interval_is_seen() {
        let experiment = Experiment::read("k.toml", FILE, false).unwrap();
        let cells = 0..experiment.cells.len();
        let round = |round| cells.clone().map(move |cell| run(cell, round, 5.0));
        let mut runs: Vec<Run> = (0..5).flat_map(round).collect();
        assert!(is_unseen(&experiment, &runs));
        // One that was interrupted has no interval either.
        runs.push(run(0, 5, 5.0));
        assert!(is_unseen(&experiment, &runs));
        runs.extend(round(5).skip(1));
        assert!(!is_unseen(&experiment, &runs));
    }

    #[test]
    fn a_level_stays_that_is_told_to() {
        let experiment = experiment(&KEEP.replace("keep = 2", "keep = 2, always = [\"event\"]"));
        let runs = screened(&experiment, |mpm| if mpm == "event" { 9.0 } else { 5.0 });
        let then = cells(&experiment, 6, &runs);
        let stay = BTreeSet::from(["event".to_owned(), "prefork".to_owned()]);
        assert_eq!(mpms(&experiment, &then), stay);
    }

    #[test]
    fn a_level_without_a_valid_run_goes_out() {
        let experiment = experiment(KEEP);
        let mut runs = screened(&experiment, |mpm| if mpm == "worker" { 1.0 } else { 5.0 });
        for run in &mut runs {
            if experiment.cells[run.cell]["mpm"].to_string() == "worker" {
                run.measures.clear();
            }
        }
        let then = cells(&experiment, 6, &runs);
        assert!(!mpms(&experiment, &then).contains("worker"));
    }

    #[test]
    fn rounds_are_whole_with_the_cells_of_their_pass() {
        let experiment = experiment(KEEP);
        assert_eq!(experiment.rounds_in_all(), 18);
        let mut runs = screened(&experiment, |_| 5.0);
        assert_eq!(whole_rounds(&experiment, &runs), 6);
        for round in 6..18 {
            for cell in cells(&experiment, round, &runs) {
                runs.push(run(cell, round, 5.0));
            }
        }
        assert_eq!(whole_rounds(&experiment, &runs), 18);
        assert!(is_complete(&experiment, &runs));
        let last = runs.pop();
        assert_eq!(whole_rounds(&experiment, &runs), 17);
        assert!(last.is_some() && !is_complete(&experiment, &runs));
    }

    #[test]
    fn claims_rest_on_the_rounds_after_the_screen_where_there_are_any() {
        let experiment = experiment(KEEP);
        // The screen says that kept connections cost more, the rounds after it that they cost less.
        let cost = |cell: usize, round: usize| {
            let is_kept = experiment.cells[cell]["keep"].to_string() == "on";
            match (is_kept, round < 6) {
                (false, _) => 5.0,
                (true, true) => 7.0,
                (true, false) => 3.0,
            }
        };
        let mut runs = Vec::new();
        for round in 0..18 {
            for cell in cells(&experiment, round, &runs) {
                runs.push(run(cell, round, cost(cell, round)));
            }
        }
        let outcomes = crate::claim::evaluate(&experiment, &runs);
        let of_cpu = |mpm: &str| {
            let mut found = outcomes.iter().filter(|it| it.measure.name() == "cpu");
            let level = Level::Text(mpm.to_owned());
            found.find(|it| it.each.get("mpm") == Some(&level)).unwrap()
        };
        let (gone_on, out) = (of_cpu("prefork"), of_cpu("event"));
        assert_eq!((gone_on.ratios.len(), out.ratios.len()), (12, 6));
        assert!(gone_on.ratio.unwrap() < 1.0 && out.ratio.unwrap() > 1.0);
        assert!(gone_on.gates.is_empty());
        assert_eq!(out.gates[0].gate, "screened");
        assert_eq!(
            out.gates[0].words,
            "It rests on the 6 rounds of the screen."
        );
    }

    #[test]
    fn the_quick_form_has_no_screen() {
        let text = format!("{FILE}\n[screen]\nrounds = 6\n{KEEP}");
        let quick = Experiment::read("k.toml", &text, true).unwrap();
        assert_eq!((quick.screened(), quick.rounds), (0, 6));
    }

    #[test]
    fn what_is_wrong_with_a_screen_is_said() {
        for (screen, said) in [
            ("rounds = 5\n", "screen.rounds = 5: it is from 6 to 60"),
            (
                "rounds = 6\nfactor.mpm = [\"best\"]\n",
                "mpm has no level best",
            ),
            (
                "rounds = 6\nfactor.keep = [\"on\"]\n",
                "`control` must be in the screen and in",
            ),
            (
                "rounds = 6\nthen = { keep = 2 }\n",
                "`then.of` the factor that has them",
            ),
            (
                "rounds = 6\nthen = { keep = 2, of = \"mpm\", by = \"joy\" }\n",
                "joy",
            ),
        ] {
            let text = format!("{FILE}\n[screen]\n{screen}");
            let fault = Experiment::read("k.toml", &text, false).unwrap_err();
            assert!(fault.to_string().contains(said), "{fault}");
        }
    }
}
