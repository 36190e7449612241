//! Gates that look at samples: whether there are enough of them, and what single ones stand for.

use catamaran_units::show_count;

use super::{Effect, Facts, GateFinding, GateRecord, Look};
use crate::experiment::{PublishedFigure, PublishedRun, Selection};

pub(super) static GATES: &[GateRecord] = &[
    GateRecord {
        name: "few-samples",
        words: "fewer than ten requests lie beyond the 99th percentile",
        rank: 180,
        look: Look::Run {
            applies: |_| true,
            check: few_samples,
        },
    },
    GateRecord {
        name: "maximum",
        words: "the longest request took ten times the median",
        rank: 200,
        look: Look::Run {
            applies: |_| true,
            check: maximum,
        },
    },
    GateRecord {
        name: "maximum",
        words: "two maxima are set side by side",
        rank: 30,
        look: Look::Pair(maxima),
    },
    GateRecord {
        name: "silences",
        words: "no answer came for 100 ms or longer although requests waited",
        rank: 210,
        look: Look::Run {
            applies: |facts| facts.silences.is_some(),
            check: silences,
        },
    },
    GateRecord {
        name: "published",
        words: "a mean lies outside its own interval",
        rank: 10,
        look: Look::Row(|row, _| outside(row)),
    },
    GateRecord {
        name: "published",
        words: "a figure stands in two cells",
        rank: 20,
        look: Look::Row(twice),
    },
    GateRecord {
        name: "published",
        words: "the experiment's file has a `note` on the figure",
        rank: 30,
        look: Look::Row(|row, _| Some(limit(row.note.clone()?))),
    },
    GateRecord {
        name: "published",
        words: "there is one run, or the best of several",
        rank: 40,
        look: Look::Row(|row, _| Some(limit(limit_of(row.how).to_owned()))),
    },
];

/// Whether there are requests enough for percentiles.
fn few_samples(facts: &Facts) -> Option<GateFinding> {
    // The median has ten values beyond it from twenty on; the 99th percentile needs a thousand.
    let few = facts.completed > 0 && !catamaran_stats::is_quotable(99.0, facts.completed);
    few.then(|| {
        let words = format!(
            "{} requests are too few for a 99th percentile: it needs 1,000.",
            show_count(facts.completed)
        );
        GateFinding::new("few-samples", Effect::Note, words)
    })
}

/// Whether the longest request stands for anything.
fn maximum(facts: &Facts) -> Option<GateFinding> {
    let latency = facts.latency_ms?;
    let median = latency.median.filter(|median| *median > 0.0)?;
    let times = latency.max / median;
    let at_least = (latency.max - latency.rounding) / (median + latency.rounding);
    (at_least >= MAXIMUM_TIMES_MIN).then(|| {
        let words = format!(
            "The longest request took {:.0} ms, {times:.0} times the median: it is one of {} and \
             says nothing of the others.",
            latency.max,
            show_count(facts.completed)
        );
        GateFinding::new("maximum", Effect::Note, words)
    })
}

/// Maxima are single requests.
fn maxima(one: &Facts, other: &Facts) -> Option<GateFinding> {
    let (one, other) = (one.latency_ms?.max, other.latency_ms?.max);
    let (low, high) = (one.min(other), one.max(other));
    (low > 0.0 && high / low >= MAXIMA_MIN).then(|| {
        let words = format!(
            "The maxima differ by a factor of {:.0} ({low:.0} and {high:.0} ms): each is one request, so \
             that nothing follows.",
            high / low
        );
        GateFinding::new("maximum", Effect::Note, words)
    })
}

/// Whether there were spans in which no answer came although requests waited for one.
fn silences(facts: &Facts) -> Option<GateFinding> {
    let silences = facts.silences.as_ref().filter(|it| it.count > 0)?;
    let meaning = match facts.clients {
        Some(_) => ": clients that wait send nothing, so that percentiles hide it",
        None => "",
    };
    let (longest, from, min) = (silences.longest_ms, silences.from_s, silences.min_ms);
    let others = match silences.count {
        1 => String::new(),
        count => format!(", in {} spans of {min:.0} ms or more", show_count(count)),
    };
    let words = format!("No answer came for {longest:.0} ms from {from:.1} s on{others}{meaning}.");
    Some(GateFinding::new("silences", Effect::Note, words))
}

/// What a figure cannot carry because of how it was chosen.
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

/// A mean that its own interval does not hold.
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

/// The same figure with the same interval in another cell: one of them may have been copied.
fn twice(row: &PublishedRun, all: &[PublishedRun]) -> Option<GateFinding> {
    let PublishedFigure::Rate {
        mean: Some(mean),
        interval: Some(_),
    } = row.figures
    else {
        return None;
    };
    // A row that several tables repeat has the same levels.
    let same = |other: &&PublishedRun| other.figures == row.figures && other.cell != row.cell;
    let other = all.iter().find(same)?;
    Some(limit(format!(
        "{mean}, with the same interval, also stands for {}: one of the two may have been copied.",
        other.says
    )))
}

/// From how many times the median on a maximum is worth a remark.
const MAXIMUM_TIMES_MIN: f64 = 10.0;

/// From which factor on two maxima are worth one.
const MAXIMA_MIN: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Level, Levels};
    use crate::gate::{Subject, check};

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
            let found = check(&Subject::Row(&rows[place], &rows)).into_iter();
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
