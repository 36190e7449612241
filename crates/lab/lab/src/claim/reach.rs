//! Computes before an experiment runs what it can show at best.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use catamaran_stats::looks::SpentLevel;
use catamaran_stats::signed_rank;

use super::rule;
use super::starts::StartSpans;
use crate::experiment::Experiment;

/// The number of claims that the planned rounds can show if all starts of servers agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The number of claims; each case counts.
    pub claims: usize,
    /// The number of claims that can be shown, even together with the others of their question.
    pub shown: usize,
    /// The least number of starts that any claim rests on.
    pub starts: usize,
    /// The number of starts that each claim of the largest question needs.
    pub needed: usize,
    /// Whether this is the short form, which can show nothing.
    pub is_quick: bool,
}

/// Computes how many claims of an experiment its planned rounds can show at best.
#[must_use]
pub fn reach(experiment: &Experiment) -> Reach {
    let start_spans = StartSpans::of(experiment);
    let spent = SpentLevel::at(experiment.rounds, experiment.rounds);
    let mut starts = Vec::new();
    let mut contenders = Vec::new();
    for claim in &experiment.claims {
        for case in &claim.cases {
            let cells = start_spans.of_case(case);
            let planned = start_spans.planned(&cells, rounds(experiment, &cells));
            // The p value is that of the best case: all starts agree.
            let is_too_few = planned < rule::starts_min(&spent);
            let p = if is_too_few || experiment.is_quick {
                1.0
            } else {
                spent.p_value(signed_rank::p_value_min(planned))
            };
            starts.push(planned);
            contenders.push(claim.contender(case, p, experiment.subject()));
        }
    }
    let holds = rule::hold(&contenders);
    let mut question_sizes: BTreeMap<rule::Question<'_>, usize> = BTreeMap::new();
    for contender in &contenders {
        *question_sizes.entry(contender.question).or_default() += 1;
    }
    let largest_question = question_sizes.into_values().max().unwrap_or(0);
    Reach {
        claims: contenders.len(),
        shown: holds.iter().filter(|holds| **holds).count(),
        starts: starts.into_iter().min().unwrap_or(0),
        needed: (1..STARTS_MAX)
            .find(|starts| shows_all(*starts, largest_question))
            .unwrap_or(STARTS_MAX),
        is_quick: experiment.is_quick,
    }
}

/// Whether as many rounds, with a start of servers in each, show all claims of a question if all starts agree. Looks
/// before the last one have spent a part of the error probability.
fn shows_all(starts: usize, claims: usize) -> bool {
    let spent = SpentLevel::at(starts, starts);
    let p = spent.p_value(signed_rank::p_value_min(starts));
    p * claims as f64 <= 1.0 - rule::LEVEL
}

/// The rounds that a claim on these cells rests on: those after the screen if all of the cells may take part in them,
/// else those of the screen.
fn rounds(experiment: &Experiment, cells: &[usize]) -> Range<usize> {
    let screened = experiment.screened();
    match &experiment.screen {
        // `then` has the cells that may take part after the screen.
        Some(screen) if !cells.iter().all(|cell| screen.then.contains(cell)) => 0..screened,
        _ => screened..experiment.rounds_in_all(),
    }
}

impl Reach {
    /// Whether no claim can be shown, though there are some.
    #[must_use]
    pub fn is_exploratory(&self) -> bool {
        self.claims > 0 && self.shown == 0
    }
}

/// Writes what cannot be shown, and what would help; nothing if all claims can be shown.
impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            claims,
            shown,
            starts,
            needed,
            is_quick,
        } = self;
        if *is_quick {
            return f.write_str("a short form suggests at most: its warm-up is cut short.");
        }
        let help = match claims {
            1 => format!("it needs {needed} starts of servers"),
            _ => format!("claims on one measure need {needed} starts of servers each"),
        };
        match claims - shown {
            0 => Ok(()),
            not_shown if not_shown == *claims => write!(
                f,
                "no claim can be shown: {help}, and there are {starts}. More rounds help, and `restart = \"round\"`."
            ),
            1 => write!(f, "1 claim cannot be shown: {help}, and it has {starts}."),
            not_shown => write!(
                f,
                "{not_shown} claims cannot be shown: {help}, and some have {starts}."
            ),
        }
    }
}

/// The most starts that are considered: enough for any number of claims.
const STARTS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;

    const FILE: &str = include_str!("../../fixtures/keepalive.toml");

    #[test]
    fn every_whole_form_can_show_its_claims() {
        for name in builtin::names() {
            let experiment = builtin::experiment(name, false).unwrap();
            let reach = reach(&experiment);
            // A screen chooses what is looked at closely: claims on the rest may be open.
            let is_all = reach.shown == reach.claims || experiment.screen.is_some();
            assert!(is_all && !reach.is_exploratory(), "{name}: {reach}");
        }
    }

    /// The look after eight rounds spends a part of the 5 %, so the ninth start hardly helps.
    #[test]
    fn looks_are_considered_in_how_many_starts_are_needed() {
        let shown = [8, 9, 10].map(|starts| [6, 9, 10, 15].map(|claims| shows_all(starts, claims)));
        let expected = [
            [true, false, false, false],
            [true, false, false, false],
            [true, true, true, true],
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_plan_says_what_it_cannot_show() {
        let read = |restart: &str, is_quick| {
            let text = FILE.replacen("core = 1\n", &format!("core = 1\nrestart = {restart}\n"), 1);
            reach(&Experiment::read("k.toml", &text, is_quick).unwrap())
        };
        let whole = read("\"round\"", false);
        assert_eq!(
            (whole.shown, whole.to_string()),
            (whole.claims, String::new())
        );
        let (few, quick) = (read("3", false), read("\"round\"", true));
        for (reach, starts, said) in [
            (few, 4, "no claim can be shown: claims on one measure need "),
            (quick, 6, "a short form suggests at most"),
        ] {
            assert!(reach.is_exploratory());
            assert_eq!(reach.starts, starts);
            assert!(reach.to_string().starts_with(said), "{reach}");
        }
    }
}
