//! What a test printed (TAP, the Test Anything Protocol, and what Test::More says of failures), and two servers' compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The subtests of one test with one server.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The titles of the subtests that passed, by number.
    passed: BTreeMap<usize, String>,
    /// The titles of the subtests in which the server answered 2xx or 101 where the test expects an error.
    served: BTreeSet<String>,
    /// Whether `check` refused the imported file.
    pub(crate) is_refused: bool,
}

impl Outcome {
    /// Reads what perl printed on stdout and stderr.
    pub(crate) fn read(stdout: &str, stderr: &str, is_refused: bool) -> Self {
        let passed = stdout.lines().filter_map(|line| {
            let result = line.strip_prefix("ok ")?;
            let (number, title) = result.split_once(" - ").unwrap_or((result, ""));
            Some((number.parse().ok()?, title.trim().to_owned()))
        });
        let failures = stderr.split("#   Failed test '").skip(1);
        let served = failures.filter_map(|failure| {
            let (title, text) = failure.split_once("'\n")?;
            let (response, pattern) = text.split_once("doesn't match '")?;
            let is_served = is_success(response) && names_error(pattern.lines().next()?);
            is_served.then(|| title.to_owned())
        });
        Self {
            passed: passed.collect(),
            served: served.collect(),
            is_refused,
        }
    }
}

/// Whether a response in this text has a status that gives away what was asked for.
fn is_success(got: &str) -> bool {
    [
        "HTTP/1.1 200",
        "HTTP/1.1 206",
        "HTTP/1.1 101",
        "HTTP/1.0 200",
    ]
    .iter()
    .any(|status| got.contains(status))
}

/// Whether an expression names a status from 400 to 599.
fn names_error(expression: &str) -> bool {
    expression
        .split(|it: char| !it.is_ascii_alphanumeric())
        .filter_map(|word| word.parse::<u16>().ok())
        .any(|status| (400..600).contains(&status))
}

/// How the front did what nginx does in one test.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) test: String,
    /// The number of subtests that nginx passes.
    pub(crate) by_nginx: usize,
    /// The number of these that the front passes.
    pub(crate) by_front: usize,
    /// Whether `check` refused the imported file.
    pub(crate) is_refused: bool,
    /// The titles of the subtests in which the front serves what nginx refuses.
    pub(crate) served: Vec<String>,
}

impl Row {
    pub(crate) fn is_whole(&self) -> bool {
        self.by_front == self.by_nginx
    }
}

/// All tests of which nginx passes something.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub(crate) rows: Vec<Row>,
}

impl Comparison {
    /// A row for each test of which nginx passes a subtest.
    pub(crate) fn new(
        nginx: &BTreeMap<String, Outcome>,
        front: &BTreeMap<String, Outcome>,
    ) -> Self {
        let nothing = Outcome::default();
        let mut rows = Vec::new();
        for (test, expected) in nginx {
            let outcome = front.get(test).unwrap_or(&nothing);
            let mut row = Row {
                test: test.clone(),
                by_nginx: 0,
                by_front: 0,
                is_refused: outcome.is_refused,
                served: Vec::new(),
            };
            for (number, title) in &expected.passed {
                if is_of_server(title) {
                    row.by_nginx += 1;
                    row.by_front += usize::from(outcome.passed.contains_key(number));
                }
            }
            let titles: BTreeSet<&String> = expected.passed.values().collect();
            let served = outcome.served.iter().filter(|title| titles.contains(title));
            row.served.extend(served.cloned());
            if row.by_nginx > 0 {
                rows.push(row);
            }
        }
        Self { rows }
    }

    /// The number of subtests that nginx passes, and of these that the front passes.
    pub(crate) fn sums(&self) -> (usize, usize) {
        let by_nginx = self.rows.iter().map(|row| row.by_nginx).sum();
        (by_nginx, self.rows.iter().map(|row| row.by_front).sum())
    }

    /// For people: a line for each test that is not whole, then the sums.
    pub(crate) fn table(&self) -> String {
        let mut text = String::new();
        for row in self.rows.iter().filter(|row| !row.is_whole()) {
            let refused = if row.is_refused {
                ", does not start"
            } else {
                ""
            };
            let _ = writeln!(
                text,
                "{:<34} {:>4} of {:>4}{refused}",
                row.test, row.by_front, row.by_nginx
            );
        }
        let (by_nginx, by_front) = self.sums();
        let whole = self.rows.iter().filter(|row| row.is_whole()).count();
        let _ = write!(
            text,
            "nginx passes {by_nginx} subtests, the front {by_front} of them; {whole} of {} tests are whole",
            self.rows.len()
        );
        text
    }
}

/// Whether a subtest of this title asks the server rather than nginx's own log, or what is known to fail.
fn is_of_server(title: &str) -> bool {
    !["TODO", "no alerts", "sanitizer"]
        .iter()
        .any(|word| title.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUT: &str =
        "1..4\nok 1 - open\nnot ok 2 - closed\nok 3 - no alerts\nok 4 - later # TODO\n";

    fn outcomes(out: &str, err: &str) -> BTreeMap<String, Outcome> {
        BTreeMap::from([("access".to_owned(), Outcome::read(out, err, false))])
    }

    #[test]
    fn what_nginx_passes_is_looked_for() {
        let nginx = outcomes(&OUT.replace("not ok", "ok"), "");
        let comparison = Comparison::new(&nginx, &outcomes(OUT, ""));
        assert_eq!(comparison.sums(), (2, 1));
        assert_eq!(Comparison::new(&nginx, &BTreeMap::new()).sums(), (2, 0));
        assert!(
            comparison
                .table()
                .starts_with("access                                1 of    2\n"),
            "{}",
            comparison.table()
        );
    }

    #[test]
    fn what_is_served_though_nginx_refuses_is_named() {
        let failure = "\n#   Failed test 'closed'\n#   at access.t line 9.\n#                   'HTTP/1.1 200 OK\n# \
                       Server: x\n# \n# secret'\n#     doesn't match '(?^:(?i)403 Forbidden)'\n# Looks like you failed";
        let nginx = outcomes(&OUT.replace("not ok", "ok"), "");
        let served = |err: &str| {
            let rows = Comparison::new(&nginx, &outcomes(OUT, err)).rows;
            rows[0].served.clone()
        };
        assert_eq!(served(failure), ["closed"]);
        assert_eq!(served(&failure.replace("200 OK", "404 No")), [""; 0]);
        assert_eq!(served(&failure.replace("403 Forbidden", "200 OK")), [""; 0]);
        assert_eq!(served(&failure.replace("'closed'", "'other'")), [""; 0]);
    }
}
