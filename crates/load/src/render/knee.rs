//! The search for a knee, for people: a row for each step, and what it came to.

use crate::document::knee::{Knee, Step};
use crate::gate::Verdict;

/// The columns of [`step`].
pub fn header() -> String {
    format!(
        "{:>10} {:>10} {:>10} {:>10} {:>8}  verdict\n",
        "rate/s", "sent/s", "p50 ms", "p99 ms", "unsent"
    )
}

/// A row.
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

/// The last line.
pub fn conclusion(knee: &Knee) -> String {
    let lowest = knee.steps.iter().map(|step| step.rate_per_s);
    let lowest = lowest.fold(f64::INFINITY, f64::min);
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
        (None, Some(_)) => format!("Sustained: nothing. {lowest:.1}/s broke a limit already\n"),
        (None, None) => "Sustained: not decided. Longer steps (--duration) tell more\n".to_owned(),
    }
}

/// One object, indented, with a line end.
pub fn json(knee: &Knee) -> String {
    let mut text = serde_json::to_string_pretty(knee).expect("all keys are strings");
    text.push('\n');
    text
}

/// Whether the knee was found; [`Verdict::Failed`]: the lowest rate is not sustained.
pub fn verdict(knee: &Knee) -> Verdict {
    match (knee.sustained_per_s, knee.broken_per_s) {
        (Some(_), Some(_)) => Verdict::Passed,
        (None, Some(_)) => Verdict::Failed,
        _ => Verdict::Undecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_said() {
        for (sustained_per_s, broken_per_s, is_generator, expected, found) in [
            (
                Some(100.0),
                Some(104.0),
                false,
                "Sustained: 100.0/s. The knee lies between 100.0/s and 104.0/s\n",
                Verdict::Passed,
            ),
            (
                Some(100.0),
                None,
                true,
                "Sustained: 100.0/s at least. The generator was late at other rates, which says \
                 nothing of the server\n",
                Verdict::Undecided,
            ),
            (
                None,
                Some(7.0),
                false,
                "Sustained: nothing. 7.0/s broke a limit already\n",
                Verdict::Failed,
            ),
        ] {
            let knee = Knee {
                schema: String::new(),
                url: String::new(),
                limits: Vec::new(),
                steps: vec![Step {
                    rate_per_s: 7.0,
                    elapsed_s: 1.0,
                    sent_per_s: 7.0,
                    p50_ms: 1.0,
                    p99_ms: 2.0,
                    unsent: 0,
                    verdict: "failed".to_owned(),
                    is_generator,
                    broken: Vec::new(),
                }],
                sustained_per_s,
                broken_per_s,
                is_generator,
            };
            assert_eq!(conclusion(&knee), expected);
            assert_eq!(verdict(&knee), found);
        }
    }
}
