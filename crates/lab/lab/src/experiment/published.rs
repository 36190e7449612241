//! Reads the published figures of a file, and the published runs to repeat.

use std::collections::BTreeMap;

use toml::Spanned;

use super::cells::matches;
use super::file::{AsPublishedKeys, PublishedKeys, RowKeys};
use super::read::FileReader;
use super::{Factor, Level, Levels, OriginalRun, PublishedFigure, PublishedRun};
use crate::published::BUILTIN;

impl FileReader<'_> {
    /// The figures of one `[[published]]` table: one for a text, or one for each row of a table.
    pub(super) fn published(
        &mut self,
        at: &Spanned<PublishedKeys>,
        factors: &[Factor],
        cells: &[Levels],
    ) -> Vec<PublishedRun> {
        let keys = at.get_ref();
        if keys.text.is_some() != keys.table.is_empty() {
            self.fault(at, "published figures are a `text` or a `table`".to_owned());
        }
        if keys.note.is_some() && keys.text.is_none() {
            self.fault(at, "a `note` is of a text, or of a row".to_owned());
        }
        self.check_stand_ins(at, factors);
        let text = keys.text.as_ref();
        let text = text.and_then(|name| {
            let text = self.text_of(at, name)?;
            Some(PublishedRun {
                cell: keys.cell.clone(),
                how: keys.how,
                says: String::new(),
                name: name.clone(),
                figures: PublishedFigure::Text(text),
                note: keys.note.clone(),
                requests: keys.requests,
            })
        });
        let rows = keys.table.iter();
        let mut runs: Vec<PublishedRun> = text.into_iter().collect();
        for row in rows {
            runs.extend(self.row(at, row, factors, cells));
        }
        runs
    }

    /// Reads a row of a published table. A row with `level` is a ratio, any other is a rate.
    fn row(
        &mut self,
        at: &Spanned<PublishedKeys>,
        row: &RowKeys,
        factors: &[Factor],
        cells: &[Levels],
    ) -> Option<PublishedRun> {
        let keys = at.get_ref();
        let ours = |theirs: &Levels| stand_in(theirs, &keys.stands);
        let mut cell = keys.cell.clone();
        cell.extend(ours(&row.cell));
        let (level, over) = (ours(&row.level), ours(&row.over));
        self.check_named(at, factors, &[&cell, &level, &over]);
        let interval = row.low.zip(row.high).map(|(low, high)| [low, high]);
        let named = words(&row.cell, &keys.stands);
        let is_ratio = !level.is_empty();
        let figures = if is_ratio {
            let side = |side: &Levels| {
                let mut wanted = cell.clone();
                wanted.extend(side.clone());
                cells.iter().position(|cell| matches(cell, &wanted))
            };
            PublishedFigure::Ratio {
                ratio: row.ratio,
                interval,
                cells: side(&level).zip(side(&over)).map(Into::into),
                claim: row.claim.clone(),
            }
        } else {
            PublishedFigure::Rate {
                mean: row.tps,
                interval,
            }
        };
        let says = match &row.says {
            Some(says) => says.clone(),
            None if is_ratio => {
                let (level, over) = (
                    words(&row.level, &keys.stands),
                    words(&row.over, &keys.stands),
                );
                format!("{level} over {over} {named}").trim().to_owned()
            }
            None => named,
        };
        Some(PublishedRun {
            cell: if is_ratio { Levels::new() } else { cell },
            how: keys.how,
            says,
            name: keys.says.clone(),
            figures,
            note: row.note.clone(),
            requests: None,
        })
    }

    /// Checks that the levels that stand for levels of the source exist.
    fn check_stand_ins(&mut self, at: &Spanned<PublishedKeys>, factors: &[Factor]) {
        for (factor, stands) in &at.get_ref().stands {
            for level in stands.values() {
                let one = Levels::from([(factor.clone(), level.clone())]);
                self.check_named(at, factors, &[&one]);
            }
        }
    }

    /// Reads a published run to repeat; `None` after a fault.
    pub(super) fn as_published(
        &mut self,
        at: &Spanned<AsPublishedKeys>,
        is_quick: bool,
    ) -> Option<OriginalRun> {
        let keys = at.get_ref();
        let (name, text) = match (&keys.text, &keys.says, &keys.printed) {
            (Some(name), None, None) => (name.clone(), self.text_of(at, name)?.to_owned()),
            (None, Some(says), Some(printed)) => (says.clone(), printed.clone()),
            _ => {
                let what = "a published run has `text`, or `says` and `printed`";
                self.fault(at, what.to_owned());
                return None;
            }
        };
        let mut deviations = keys.deviations.clone();
        let mut requests = keys.requests;
        if is_quick && requests > QUICK_REQUESTS {
            deviations.push(format!("{QUICK_REQUESTS} requests instead of {requests}"));
            requests = QUICK_REQUESTS;
        }
        Some(OriginalRun {
            name,
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
        for (number, at) in runs.iter().enumerate() {
            let keys = at.get_ref();
            let before = number.checked_sub(1).map(|before| runs[before].get_ref());
            let has_same = before.is_some_and(|it| (&it.cell, &it.set) == (&keys.cell, &keys.set));
            if keys.again && !has_same {
                let what = "`again` uses the servers of the run before it, and that run has another `cell` or `set`";
                self.fault(at, what.to_owned());
            }
        }
    }

    fn text_of<T>(&mut self, at: &Spanned<T>, name: &str) -> Option<&'static str> {
        let found = BUILTIN.iter().find(|(known, _)| *known == name);
        if found.is_none() {
            self.fault(at, format!("no published text `{name}`"));
        }
        found.map(|(_, text)| *text)
    }
}

type StandIns = BTreeMap<String, BTreeMap<String, Level>>;

/// Replaces levels of the source by the levels of the file that stand for them.
fn stand_in(theirs: &Levels, stands: &StandIns) -> Levels {
    let theirs = theirs.iter();
    theirs
        .map(|(factor, level)| {
            let ours = stands
                .get(factor)
                .and_then(|of_factor| of_factor.get(&level.to_string()));
            (factor.clone(), ours.unwrap_or(level).clone())
        })
        .collect()
}

/// Levels of the source in words, such as `mpm=worker (here event)`.
fn words(theirs: &Levels, stands: &StandIns) -> String {
    let words = theirs.iter().map(|(factor, level)| {
        let ours = stands
            .get(factor)
            .and_then(|of_factor| of_factor.get(&level.to_string()));
        match ours {
            Some(ours) => format!("{factor}={level} (here {ours})"),
            None => format!("{factor}={level}"),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The most requests of a published run in the short form.
const QUICK_REQUESTS: u64 = 20_000;
