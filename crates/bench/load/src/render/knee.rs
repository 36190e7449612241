//! Renders the search for a knee as text: a row for each step, and the result.

use crate::document::knee::{Knee, Step};
use crate::gate::Verdict;

/// The header line above the rows of [`step`].
pub fn header() -> String {
    format!(
        "{:>10} {:>10} {:>10} {:>10} {:>8}  verdict\n",
        "rate/s", "sent/s", "p50 ms", "p99 ms", "unsent"
    )
}

/// Writes one step as a row of the table.
pub fn step(step: &Step) -> String {
    let mut row = format!(
        "{:>10.1} {:>10.1} {:>10.3} {:>10.3} {:>8}  {}",
        step.rate_per_s, step.sent_per_s, step.p50_ms, step.p99_ms, step.unsent, step.verdict
    );
    if !step.broken.is_empty() {
        row = row + ": " + &step.broken.join(", ");
    }
    row.push('\n');
    row
}

/// The result of the search, in one or two sentences.
pub fn conclusion(knee: &Knee) -> String {
    let mut text = sustained(knee);
    text.push_str(&passed_above(knee).unwrap_or_default());
    text
}

/// A sentence on why the highest rate that passed is not the sustained one; `None` if it is.
fn passed_above(knee: &Knee) -> Option<String> {
    let sustained = knee.sustained_per_s.unwrap_or(0.0);
    let steps = knee.steps.iter();
    let above: Vec<&Step> = steps.filter(|step| step.rate_per_s > sustained).collect();
    let passed = above.iter().filter(|step| step.verdict == PASSED);
    let highest = passed.map(|step| step.rate_per_s).reduce(f64::max)?;
    let lowest_not_passed = above
        .iter()
        .filter(|step| step.verdict != PASSED && step.rate_per_s <= highest)
        .min_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s))?;
    Some(format!(
        "{highest:.1}/s passed, too, but proves nothing, because {:.1}/s did not ({})\n",
        lowest_not_passed.rate_per_s, lowest_not_passed.verdict
    ))
}

/// The line with the result: the highest rate that held, and the lowest that broke a limit.
fn sustained(knee: &Knee) -> String {
    match (knee.sustained_per_s, knee.broken_per_s) {
        (Some(low), None) if knee.is_generator => format!(
            "Sustained: {low:.1}/s at least. The generator was late at other rates, which says \
             nothing of the server\n"
        ),
        (None, None) if knee.is_generator => "Sustained: not decided. The generator was late, \
                                              which says nothing of the server\n"
            .to_owned(),
        (Some(low), Some(high)) => {
            format!("Sustained: {low:.1}/s. The knee lies between {low:.1}/s and {high:.1}/s\n")
        }
        (Some(low), None) => {
            format!("Sustained: {low:.1}/s at least. No rate that was tried broke a limit\n")
        }
        (None, Some(high)) => format!("Sustained: nothing. {high:.1}/s broke a limit already\n"),
        (None, None) => "Sustained: not decided. Longer steps (--duration) tell more\n".to_owned(),
    }
}

/// The search as one JSON object, indented, with a line end.
pub fn json(knee: &Knee) -> String {
    super::json::indented(knee)
}

/// The verdict of the search. [`Verdict::Passed`]: the knee was found; [`Verdict::Failed`]: not
/// even the lowest rate is sustained.
pub fn verdict(knee: &Knee) -> Verdict {
    match (knee.sustained_per_s, knee.broken_per_s) {
        (Some(_), Some(_)) => Verdict::Passed,
        (None, Some(_)) => Verdict::Failed,
        _ => Verdict::Undecided,
    }
}

const PASSED: &str = "passed";

#[cfg(test)]
mod tests {
    use super::*;

    /// The result of a search with these steps: rates and verdicts.
    fn knee(steps: &[(f64, &str)], sustained: Option<f64>, broken: Option<f64>) -> Knee {
        let step = |&(rate_per_s, verdict): &(f64, &str)| Step {
            rate_per_s,
            elapsed_s: 1.0,
            sent_per_s: rate_per_s,
            p50_ms: 1.0,
            p99_ms: 2.0,
            unsent: 0,
            verdict: verdict.to_owned(),
            is_generator: verdict == "late",
            broken: Vec::new(),
        };
        Knee {
            schema: String::new(),
            url: String::new(),
            limits: Vec::new(),
            steps: steps.iter().map(step).collect(),
            sustained_per_s: sustained,
            broken_per_s: broken,
            is_generator: broken.is_none() && steps.iter().any(|(_, verdict)| *verdict == "late"),
        }
    }

    #[test]
    fn what_was_found_is_said() {
        let check = |knee: &Knee, expected: &str, found: Verdict| {
            assert_eq!(conclusion(knee), expected);
            assert_eq!(verdict(knee), found);
        };
        check(
            &knee(
                &[(100.0, "passed"), (104.0, "failed")],
                Some(100.0),
                Some(104.0),
            ),
            "Sustained: 100.0/s. The knee lies between 100.0/s and 104.0/s\n",
            Verdict::Passed,
        );
        check(
            &knee(&[(100.0, "passed"), (200.0, "late")], Some(100.0), None),
            "Sustained: 100.0/s at least. The generator was late at other rates, which says \
             nothing of the server\n",
            Verdict::Undecided,
        );
        check(
            &knee(&[(7.0, "failed")], None, Some(7.0)),
            "Sustained: nothing. 7.0/s broke a limit already\n",
            Verdict::Failed,
        );
    }

    /// A rate that passes above one that did not is not sustained, and the reader is told why.
    #[test]
    fn a_rate_that_passed_above_is_explained() {
        let steps = [
            (600.0, "passed"),
            (1200.0, "late"),
            (1149.1, "passed"),
            (1500.0, "passed"),
        ];
        let conclusion = conclusion(&knee(&steps, Some(1149.1), None));
        let expected =
            "1500.0/s passed, too, but proves nothing, because 1200.0/s did not (late)\n";
        assert_eq!(conclusion.lines().count(), 2, "{conclusion}");
        assert!(conclusion.ends_with(expected), "{conclusion}");
    }
}
