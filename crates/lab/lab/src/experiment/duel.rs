//! Duels: which experiments can be one, what `[duel]` replaces, and the length of blocks.

use std::time::Duration;

use toml::Spanned;

use super::check::check_server;
use super::file::{ExperimentFile, LoadKeys};
use super::read::FileReader;
use super::template::Addresses;
use super::{Experiment, Levels};

impl Experiment {
    /// The number of blocks that each cell has in a start of a duel: as many as fill the measured span, but an even
    /// number, since the cells' order is reversed in every second turn.
    pub(crate) fn turns(&self) -> usize {
        let pairs = self.time().as_millis() / (2 * BLOCK.as_millis());
        // The file limits no time, so the conversion may fail; no run is that long.
        2 * usize::try_from(pairs)
            .unwrap_or(TURNS_MIN)
            .max(TURNS_MIN / 2)
    }

    /// Whether a crowd of clients is connected to a cell's servers besides the load.
    fn has_crowd(&self, levels: &Levels) -> bool {
        let mut addresses = Addresses::new();
        for number in 0..self.servers() {
            if check_server(self, levels, number, &mut addresses).is_err() {
                // The check of all templates reports this.
                return false;
            }
        }
        let load = self.load(levels, &addresses);
        load.is_ok_and(|load| load.crowd.is_some())
    }
}

impl FileReader<'_> {
    /// Makes `file` that of a duel: replaces values by those of `[duel]`, and removes `nest` and the screen. Cells
    /// cannot share servers, since all are up at once.
    pub(super) fn match_up(&mut self, file: &mut ExperimentFile) {
        file.nest.clear();
        file.screen = None;
        if let Some(table) = file.duel.clone() {
            self.replace(file, "duel", table.into_inner());
        }
    }

    /// Checks that the cells of a duel can all be up at once, and that no cell has other work while another one is
    /// measured. Faults are reported at `load`.
    pub(super) fn check_duel(&mut self, load: &Spanned<LoadKeys>, experiment: &Experiment) {
        if !experiment.is_duel {
            return;
        }
        let mut cells = experiment.cells.iter();
        let has_crowd = cells.any(|levels| experiment.has_crowd(levels));
        let mut published = experiment.as_published.iter();
        let other_work = [
            ("`crowd`", has_crowd),
            ("`shares`", !experiment.shares().is_empty()),
            ("[[beside]]", !experiment.beside.is_empty()),
            ("[[action]]", !experiment.action.is_empty()),
            ("`every_round`", published.any(|run| run.is_every_round)),
        ];
        for (key, is_there) in other_work {
            if is_there {
                let what = format!(
                    "{key} does not go with a duel, whose tiers are measured in short blocks in turn"
                );
                self.fault(load, what);
            }
        }
        let count = experiment.cells.len();
        if !(2..=CELLS_MAX).contains(&count) {
            let what = format!(
                "a duel has from 2 to {CELLS_MAX} cells, since all are up at once, and there are {count}: [duel] names \
                 levels of factors, as [quick] does"
            );
            self.fault(load, what);
        }
    }
}

/// The length of a block: short, so that other work on the machine hits neighbouring blocks alike, and long compared
/// with the time to connect.
pub(crate) const BLOCK: Duration = Duration::from_millis(300);

/// The length of the span after the blocks of a start, in which calls, bytes and requests between servers are counted.
pub(crate) const COUNTED: Duration = Duration::from_secs(1);

/// The least number of blocks of each cell in a start.
const TURNS_MIN: usize = 4;

/// The most cells of a duel, whose servers are all up at once.
const CELLS_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Form;

    fn read(text: &str) -> Result<Experiment, String> {
        let form = Form {
            is_duel: true,
            ..Form::default()
        };
        Experiment::read("k.toml", text, form).map_err(|faults| faults.to_string())
    }

    #[test]
    fn a_duel_is_of_few_cells_without_anything_beside() {
        let fault = read(KEEPALIVE).unwrap_err();
        assert!(fault.contains("a duel has from 2 to 8 cells"), "{fault}");
        assert!(fault.contains("`crowd` does not go with a duel"), "{fault}");
        let small = "[duel]\nfactor.idle = [0]\nfactor.mpm = [\"event\"]\nload.time = \"3s\"\n";
        let duel = read(&format!("{KEEPALIVE}\n{small}")).unwrap();
        assert!(duel.is_duel && !duel.is_quick && !duel.counts_apart());
        assert_eq!((duel.cells.len(), duel.turns()), (3, 10));
        // Without the form nothing is replaced.
        let text = format!("{KEEPALIVE}\n{small}");
        let whole = Experiment::read("k.toml", &text, false).unwrap();
        assert_eq!((whole.cells.len(), whole.is_duel), (15, false));
        let misspelt = small.replace("event", "evnt");
        let fault = read(&format!("{KEEPALIVE}\n{misspelt}")).unwrap_err();
        assert!(fault.contains("mpm has no level evnt"), "{fault}");
    }

    #[test]
    fn a_file_can_be_a_duel_by_itself() {
        let text = include_str!("../../../../../docs/lab/planted.toml");
        let form = "form = \"duel\"\ncontrol";
        let duel = Experiment::read("p.toml", &text.replacen("control", form, 1), false).unwrap();
        let rounds = Experiment::read("p.toml", text, false).unwrap();
        assert_eq!((duel.is_duel, rounds.is_duel), (true, false));
    }

    const KEEPALIVE: &str = include_str!("../../fixtures/keepalive.toml");
}
