//! Reads the published figures of a file, and the published runs to repeat.

use std::collections::BTreeMap;

use toml::Spanned;

use super::cells::matches;
use super::file::{AsPublishedKeys, PublishedKeys, RowKeys};
use super::read::FileReader;
use super::{ERA, Factor, Level, Levels, OriginalRun, PublishedFigure, PublishedRun, THEN};
use crate::published::BUILTIN;

impl FileReader<'_> {
    /// The figures of one `[[published]]` table: one for a text, or one for each row of a table.
    pub(super) fn published(
        &mut self,
        entry: &Spanned<PublishedKeys>,
        factors: &[Factor],
        cells: &[Levels],
    ) -> Vec<PublishedRun> {
        let keys = entry.get_ref();
        let has_table = !keys.table.is_empty();
        if keys.text.is_some() == has_table {
            self.fault(
                entry,
                "published figures are a `text` or a `table`".to_owned(),
            );
        }
        if keys.note.is_some() && keys.text.is_none() {
            self.fault(entry, "a `note` is of a text, or of a row".to_owned());
        }
        self.check_stand_ins(entry, factors);
        let mut runs = Vec::new();
        if let Some(name) = &keys.text
            && let Some(text) = self.text_of(entry, name)
        {
            runs.push(PublishedRun {
                cell: keys.cell.clone(),
                how: keys.how,
                says: String::new(),
                name: name.clone(),
                figures: PublishedFigure::Text(text),
                note: keys.note.clone(),
                requests: keys.requests,
            });
        }
        for row in &keys.table {
            runs.push(self.row(entry, row, factors, cells));
        }
        runs
    }

    /// Reads a row of a published table. A row with `level` is a ratio, any other is a rate.
    fn row(
        &mut self,
        entry: &Spanned<PublishedKeys>,
        row: &RowKeys,
        factors: &[Factor],
        cells: &[Levels],
    ) -> PublishedRun {
        let keys = entry.get_ref();
        let ours = |theirs: &Levels| stand_in(theirs, &keys.stands);
        let mut cell = keys.cell.clone();
        cell.extend(ours(&row.cell));
        let (level, over) = (ours(&row.level), ours(&row.over));
        self.check_named(entry, factors, &[&cell, &level, &over]);
        let interval = row.low.zip(row.high).map(|(low, high)| [low, high]);
        let is_ratio = !level.is_empty();
        let figures = if is_ratio {
            let cell_number = |side: &Levels| {
                let mut wanted = cell.clone();
                wanted.extend(side.clone());
                cells.iter().position(|cell| matches(cell, &wanted))
            };
            PublishedFigure::Ratio {
                ratio: row.ratio,
                interval,
                cells: cell_number(&level).zip(cell_number(&over)).map(Into::into),
                claim: row.claim.clone(),
            }
        } else {
            PublishedFigure::Rate {
                mean: row.tps,
                interval,
            }
        };
        PublishedRun {
            cell: if is_ratio { Levels::new() } else { cell },
            how: keys.how,
            says: row_words(row, &keys.stands),
            name: keys.says.clone(),
            figures,
            note: row.note.clone(),
            requests: None,
        }
    }

    /// Checks that the levels that stand for levels of the source exist.
    fn check_stand_ins(&mut self, entry: &Spanned<PublishedKeys>, factors: &[Factor]) {
        for (factor, stands) in &entry.get_ref().stands {
            self.check_levels_of(entry, factors, factor, stands.values());
        }
    }

    /// Reads a published run to repeat; `None` after a fault.
    pub(super) fn as_published(
        &mut self,
        entry: &Spanned<AsPublishedKeys>,
        is_quick: bool,
    ) -> Option<OriginalRun> {
        let keys = entry.get_ref();
        let (name, text) = match (&keys.text, &keys.says, &keys.printed) {
            (Some(name), None, None) => (name.clone(), self.text_of(entry, name)?.to_owned()),
            (None, Some(says), Some(printed)) => (says.clone(), printed.clone()),
            _ => {
                let what = "a published run has `text`, or `says` and `printed`";
                self.fault(entry, what.to_owned());
                return None;
            }
        };
        let run_name = match keys.cell.get(ERA) {
            // The same text may be repeated with the software of both eras.
            Some(era) if era.to_string() == THEN => format!("{name} ({THEN})"),
            _ => name,
        };
        let mut deviations = keys.deviations.clone();
        let mut requests = keys.requests;
        if is_quick && requests > QUICK_REQUESTS {
            deviations.push(format!("{QUICK_REQUESTS} requests instead of {requests}"));
            requests = QUICK_REQUESTS;
        }
        Some(OriginalRun {
            name: run_name,
            text,
            cell: keys.cell.clone(),
            clients: keys.clients,
            requests,
            keep_alive: keys.keep_alive,
            is_again: keys.again,
            is_every_round: keys.every_round,
            deviations,
            set: keys.set.clone(),
        })
    }

    /// Checks that a run with `again` comes directly after one on the same servers with the same settings.
    pub(super) fn check_again(&mut self, runs: &[Spanned<AsPublishedKeys>]) {
        let mut before: Option<&AsPublishedKeys> = None;
        for run in runs {
            let keys = run.get_ref();
            let has_same_servers =
                before.is_some_and(|other| other.cell == keys.cell && other.set == keys.set);
            if keys.again && !has_same_servers {
                let what = "`again` uses the servers of the run before it, and that run has another `cell` or `set`";
                self.fault(run, what.to_owned());
            }
            before = Some(keys);
        }
    }

    /// The built-in published text `name`; a fault is reported at `entry`.
    fn text_of<T>(&mut self, entry: &Spanned<T>, name: &str) -> Option<&'static str> {
        let Some((_, text)) = BUILTIN.iter().find(|(known, _)| *known == name) else {
            self.fault(entry, format!("no published text `{name}`"));
            return None;
        };
        Some(text)
    }
}

/// By factor and level of the source, the level of ours that stands for it.
type StandIns = BTreeMap<String, BTreeMap<String, Level>>;

/// The level of ours that stands for a level of the source; `None`: the file has the same level.
fn stand_in_for<'a>(factor: &str, level: &Level, stands: &'a StandIns) -> Option<&'a Level> {
    stands.get(factor)?.get(&level.to_string())
}

/// Replaces levels of the source by the levels of the file that stand for them.
fn stand_in(theirs: &Levels, stands: &StandIns) -> Levels {
    let mut levels = theirs.clone();
    for (factor, level) in &mut levels {
        if let Some(ours) = stand_in_for(factor, level, stands) {
            *level = ours.clone();
        }
    }
    levels
}

/// A row of a table in words: its own, or those of its levels.
fn row_words(row: &RowKeys, stands: &StandIns) -> String {
    if let Some(says) = &row.says {
        return says.clone();
    }
    let cell = words(&row.cell, stands);
    if row.level.is_empty() {
        return cell;
    }
    let (level, over) = (words(&row.level, stands), words(&row.over, stands));
    format!("{level} over {over} {cell}").trim().to_owned()
}

/// Levels of the source in words, such as `mpm=worker (here event)`.
fn words(theirs: &Levels, stands: &StandIns) -> String {
    let mut words = Vec::new();
    for (factor, level) in theirs {
        words.push(match stand_in_for(factor, level, stands) {
            Some(ours) => format!("{factor}={level} (here {ours})"),
            None => format!("{factor}={level}"),
        });
    }
    words.join(" ")
}

/// The most requests of a published run in the short form.
const QUICK_REQUESTS: u64 = 20_000;
