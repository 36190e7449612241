//! Gates on the rows of a published table.

use crate::experiment::{PublishedFigure, PublishedRun, Selection};
use crate::gate::{Effect, GateFinding, GateRecord};

/// A gate on a row; the second argument is all rows of the source.
type RowGate = GateRecord<fn(&PublishedRun, &[PublishedRun]) -> Option<GateFinding>>;

/// Gates on published rows, in the order in which they are named.
pub static ROW_GATES: &[RowGate] = &[
    GateRecord {
        name: "published",
        words: "a mean lies outside its own interval",
        rank: 10,
        check: |row, _| outside(row),
    },
    GateRecord {
        name: "published",
        words: "a figure stands in two cells",
        rank: 20,
        check: twice,
    },
    GateRecord {
        name: "published",
        words: "the experiment's file has a `note` on the figure",
        rank: 30,
        check: |row, _| Some(limit(row.note.clone()?)),
    },
    GateRecord {
        name: "published",
        words: "there is one run, or the best of several",
        rank: 40,
        check: |row, _| Some(limit(limit_of(row.how).to_owned())),
    },
];

/// The findings on a row; `rows` has all rows of its source.
pub(crate) fn check_row(row: &PublishedRun, rows: &[PublishedRun]) -> Vec<GateFinding> {
    let gates = ROW_GATES.iter();
    gates.filter_map(|gate| (gate.check)(row, rows)).collect()
}

/// A sentence on the conclusion that a figure does not support because of how its run was selected.
#[must_use]
pub(crate) fn limit_of(how: Selection) -> &'static str {
    match how {
        Selection::OneRun => "One run: nothing shows how far a second one would be from it.",
        Selection::BestOfSeveral => {
            "The best of several runs: how the others came out is not said."
        }
    }
}

fn limit(words: String) -> GateFinding {
    GateFinding::new("published", Effect::Note, words)
}

/// A finding if a mean is outside of its own interval.
fn outside(row: &PublishedRun) -> Option<GateFinding> {
    let PublishedFigure::Rate { mean, interval } = row.figures else {
        return None;
    };
    let (mean, [low, high]) = (mean?, interval?);
    let is_outside = !(low..=high).contains(&mean);
    is_outside.then(|| {
        limit(format!(
            "{mean} lies outside its own interval [{low}..{high}]."
        ))
    })
}

/// A finding if another cell has the same figure with the same interval: one of them may have been copied.
fn twice(row: &PublishedRun, rows: &[PublishedRun]) -> Option<GateFinding> {
    let PublishedFigure::Rate {
        mean: Some(mean),
        interval: Some(_),
    } = row.figures
    else {
        return None;
    };
    // Several tables may repeat a row; then it has the same levels.
    let mut rows = rows.iter();
    let other = rows.find(|other| other.figures == row.figures && other.cell != row.cell)?;
    Some(limit(format!(
        "{mean}, with the same interval, also stands for {}: one of the two may have been copied.",
        other.says
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Level, Levels};

    fn row(says: &str, mean: f64, low: f64, high: f64) -> PublishedRun {
        let level = Level::Text(says.trim_end_matches(" again").to_owned());
        PublishedRun {
            says: says.to_owned(),
            cell: Levels::from([("server".to_owned(), level)]),
            how: Selection::OneRun,
            name: "table".to_owned(),
            figures: PublishedFigure::Rate {
                mean: Some(mean),
                interval: Some([low, high]),
            },
            note: None,
            requests: None,
        }
    }

    #[test]
    fn a_mean_outside_and_a_figure_that_stands_twice() {
        let rows = [
            row("bio", 1615.0, 1550.0, 1700.0),
            row("apr, old client", 1615.0, 1550.0, 1700.0),
            row("mod_jk", 2485.0, 2650.0, 2800.0),
            row("apr", 1705.0, 1600.0, 1900.0),
            // The same cell in a second table is no second figure, whatever that table calls it.
            row("apr again", 1705.0, 1600.0, 1900.0),
        ];
        let words = |place: usize| {
            let found = check_row(&rows[place], &rows).into_iter();
            found.map(|it| it.words).collect::<Vec<_>>().join(" ")
        };
        assert!(
            words(0).contains("also stands for apr, old client"),
            "{}",
            words(0)
        );
        assert!(
            words(2).starts_with("2485 lies outside its own interval [2650..2800]."),
            "{}",
            words(2)
        );
        assert_eq!(
            words(3),
            "One run: nothing shows how far a second one would be from it."
        );
        let noted = PublishedRun {
            note: Some("Its picture is lost.".to_owned()),
            ..rows[3].clone()
        };
        for gate in ROW_GATES {
            let is_fired = rows
                .iter()
                .chain([&noted])
                .any(|row| (gate.check)(row, &rows).is_some());
            assert!(is_fired, "no row fires {}: {}", gate.name, gate.words);
        }
        let [_, _, of_notes, _] = ROW_GATES else {
            panic!("{} gates", ROW_GATES.len())
        };
        assert_eq!(
            (of_notes.check)(&noted, &rows),
            Some(limit("Its picture is lost.".to_owned()))
        );
        assert_eq!((of_notes.check)(&rows[3], &rows), None);
    }
}
