//! Why a test fails with the front: `reasons.txt`, with a line for each such test.

use std::collections::BTreeMap;

use anyhow::{Context, bail};

use crate::nginx_tests::outcome::{Comparison, Row};

/// The number of nginx's subtests that the front passes at least.
pub(crate) const PASSED_MIN: usize = 700;

/// Why the front does otherwise than nginx.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The front cannot do it yet.
    Unbuilt,
    /// The front neither delays requests nor slows bodies down, so it serves what nginx refuses.
    Limits,
    /// The front serves what nginx refuses, but not because of who asks for what.
    Unguarded,
    /// The importer closes the place, or leaves it to the old server.
    Closed,
    /// The front does otherwise on purpose.
    Decision,
}

impl Reason {
    fn read(word: &str) -> Option<Self> {
        Some(match word {
            "unbuilt" => Self::Unbuilt,
            "limits" => Self::Limits,
            "unguarded" => Self::Unguarded,
            "closed" => Self::Closed,
            "decision" => Self::Decision,
            _ => return None,
        })
    }
}

/// The reasons by the tests' names.
pub(crate) struct Reasons(BTreeMap<&'static str, Reason>);

impl Reasons {
    /// Reads `reasons.txt`: each line has the test's name, the reason, and words that explain it.
    pub(crate) fn read() -> anyhow::Result<Self> {
        let mut reasons = BTreeMap::new();
        for line in include_str!("reasons.txt").lines() {
            let mut words = line.split_whitespace();
            let (Some(test), Some(word), Some(_)) = (words.next(), words.next(), words.next())
            else {
                bail!("reasons.txt: `{line}` is not a test, a reason and words");
            };
            let reason = Reason::read(word)
                .with_context(|| format!("reasons.txt: `{word}` is no reason (`{line}`)"))?;
            if reasons.insert(test, reason).is_some() {
                bail!("reasons.txt: {test} has two lines");
            }
        }
        Ok(Self(reasons))
    }

    /// What must not be, a line each.
    pub(crate) fn faults(&self, comparison: &Comparison) -> Vec<String> {
        let mut faults: Vec<String> = comparison
            .rows
            .iter()
            .flat_map(|row| self.faults_of(row))
            .collect();
        let (_, passed) = comparison.sums();
        if passed < PASSED_MIN {
            faults.push(format!(
                "the front passes {passed} subtests; {PASSED_MIN} is the least"
            ));
        }
        faults
    }

    fn faults_of(&self, row: &Row) -> Vec<String> {
        let test = &row.test;
        let reason = self.0.get(&test[..]);
        let mut faults = Vec::new();
        if row.is_refused {
            faults.push(format!("{test}: check refuses the file that import wrote"));
        }
        // With these reasons, the front is known to serve more than nginx.
        if !matches!(reason, Some(Reason::Limits | Reason::Unguarded)) {
            for title in &row.served {
                faults.push(format!("{test}: served though nginx refuses: {title}"));
            }
        }
        if row.is_whole() && reason.is_some() {
            faults.push(format!("{test}: passes, so its line in reasons.txt can go"));
        }
        if !row.is_whole() && reason.is_none() {
            faults.push(format!("{test}: fails without a line in reasons.txt"));
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(by_front: usize) -> Row {
        Row {
            test: "access".to_owned(),
            by_nginx: PASSED_MIN + 1,
            by_front,
            is_refused: false,
            served: Vec::new(),
        }
    }

    fn faults(reasons: &[(&'static str, Reason)], row: Row) -> Vec<String> {
        let reasons = Reasons(reasons.iter().copied().collect());
        reasons.faults(&Comparison { rows: vec![row] })
    }

    #[test]
    fn the_table_can_be_read() {
        assert!(Reasons::read().is_ok());
    }

    #[test]
    fn each_failure_has_a_reason_and_each_reason_a_failure() {
        let known = [("access", Reason::Closed)];
        assert_eq!(faults(&[], row(PASSED_MIN + 1)), [""; 0]);
        assert_eq!(faults(&known, row(PASSED_MIN)), [""; 0]);
        assert_eq!(
            faults(&[], row(PASSED_MIN)),
            ["access: fails without a line in reasons.txt"]
        );
        assert_eq!(
            faults(&known, row(PASSED_MIN + 1)),
            ["access: passes, so its line in reasons.txt can go"]
        );
        assert_eq!(
            faults(&known, row(1)),
            [format!(
                "the front passes 1 subtests; {PASSED_MIN} is the least"
            )]
        );
    }

    #[test]
    fn nothing_that_nginx_refuses_is_served_but_for_limits() {
        let open = Row {
            served: vec!["closed".to_owned()],
            ..row(PASSED_MIN)
        };
        assert_eq!(
            faults(&[("access", Reason::Closed)], open),
            ["access: served though nginx refuses: closed"]
        );
        let open = Row {
            served: vec!["closed".to_owned()],
            is_refused: true,
            ..row(PASSED_MIN)
        };
        assert_eq!(
            faults(&[("access", Reason::Limits)], open),
            ["access: check refuses the file that import wrote"]
        );
    }
}
