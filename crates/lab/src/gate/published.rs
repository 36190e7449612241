//! What published figures that are no program's text cannot carry: rows of tables.

use super::{Effect, Fired};
use crate::experiment::{Figures, How, PublishedRun};

/// What is to be said of `row`, which stands in a table among `all` rows of the source.
#[must_use]
pub fn check(row: &PublishedRun, all: &[PublishedRun]) -> Vec<Fired> {
    let mut words: Vec<String> = outside(row).into_iter().collect();
    words.extend(twice(row, all));
    words.extend(row.note.clone());
    words.push(how(row.how).to_owned());
    words.into_iter().map(fired).collect()
}

/// What a figure cannot carry because of how it was chosen.
#[must_use]
pub fn how(how: How) -> &'static str {
    match how {
        How::OneRun => "One run: nothing shows how far a second one would be from it.",
        How::BestOfSeveral => "The best of several runs: how the others came out is not said.",
    }
}

fn fired(words: String) -> Fired {
    Fired::new("published", Effect::Note, words)
}

/// A mean that its own interval does not hold.
fn outside(row: &PublishedRun) -> Option<String> {
    let Figures::Rate { mean, interval } = row.figures else {
        return None;
    };
    let (mean, [low, high]) = (mean?, interval?);
    let is_outside = !(low..=high).contains(&mean);
    is_outside.then(|| format!("{mean} lies outside its own interval [{low}..{high}]."))
}

/// The same figure with the same interval in another cell: one of them may have been copied.
fn twice(row: &PublishedRun, all: &[PublishedRun]) -> Option<String> {
    let Figures::Rate {
        mean: Some(mean),
        interval: Some(_),
    } = row.figures
    else {
        return None;
    };
    // A row that several tables repeat has the same levels.
    let same = |other: &&PublishedRun| other.figures == row.figures && other.cell != row.cell;
    let other = all.iter().find(same)?;
    Some(format!(
        "{mean}, with the same interval, also stands for {}: one of the two may have been copied.",
        other.says
    ))
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
            how: How::OneRun,
            name: "table".to_owned(),
            figures: Figures::Rate {
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
            let found = check(&rows[place], &rows).into_iter();
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
    }
}
