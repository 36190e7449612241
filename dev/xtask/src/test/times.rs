//! Reads the number of tests and their times from the output of test programs.

use anyhow::{bail, ensure};

use crate::step::say;

/// The times of a run of tests.
#[derive(Debug, Default)]
pub(super) struct Times {
    pub(super) programs: Vec<ProgramTimes>,
}

/// The counts and times of one test program.
#[derive(Debug, Default)]
pub(super) struct ProgramTimes {
    pub(super) name: String,
    pub(super) seconds: f64,
    passed: u64,
    failed: u64,
    ignored: u64,
    /// The tests by name, with their seconds.
    tests: Vec<(String, f64)>,
}

impl ProgramTimes {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// Reads a line of output.
    pub(super) fn read(&mut self, line: &str) {
        // "ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s"
        let counts = line.strip_prefix("test result: ").unwrap_or_default();
        for part in counts.split(['.', ';']) {
            let mut words = part.split_whitespace();
            let count = words.next().and_then(|count| count.parse::<u64>().ok());
            let total = match words.next() {
                Some("passed") => &mut self.passed,
                Some("failed") => &mut self.failed,
                Some("ignored") => &mut self.ignored,
                _ => continue,
            };
            *total += count.unwrap_or(0);
        }
        self.tests.extend(timed(line));
    }

    /// The line that is printed when the program has ended.
    pub(super) fn line(&self, passed: bool) -> String {
        let outcome = if passed { "ok" } else { "FAILED" };
        let tests = self.passed + self.failed;
        format!(
            "{:>8.1} s  {tests:>5} tests  {outcome:<6}  {}",
            self.seconds, self.name
        )
    }
}

impl Times {
    /// A line for each program, and the slowest tests.
    pub(super) fn print(&self) {
        let mut programs: Vec<_> = self.programs.iter().collect();
        programs.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        say("\n seconds   tests  program");
        for program in &programs {
            let tests = program.passed + program.failed;
            say(&format!(
                "{:>8.1}  {tests:>6}  {}",
                program.seconds, program.name
            ));
        }
        let mut tests: Vec<(f64, String)> = Vec::new();
        for program in &programs {
            for (test, seconds) in &program.tests {
                tests.push((*seconds, format!("{} {test}", program.name)));
            }
        }
        tests.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        say("\n seconds  test");
        for (seconds, test) in tests.iter().take(SLOWEST) {
            say(&format!("{seconds:>8.1}  {test}"));
        }
        say(&format!("\n{}", self.total()));
    }

    /// Checks that at least one test ran, and that none was ignored.
    pub(super) fn verdict(&self) -> anyhow::Result<()> {
        ensure!(self.sum(|program| program.passed) > 0, "no test ran");
        if self.sum(|program| program.ignored) > 0 {
            bail!("every test must run: {}", self.total());
        }
        Ok(())
    }

    fn total(&self) -> String {
        let passed = self.sum(|program| program.passed);
        let failed = self.sum(|program| program.failed);
        let ignored = self.sum(|program| program.ignored);
        format!("{passed} passed, {failed} failed, {ignored} ignored")
    }

    /// The sum of a count over all programs.
    fn sum(&self, of: fn(&ProgramTimes) -> u64) -> u64 {
        self.programs.iter().map(of).sum()
    }
}

/// The test and its seconds in a line such as `test a::b ... ok <0.012s>`.
fn timed(line: &str) -> Option<(String, f64)> {
    let (test, rest) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let (_, time) = rest.split_once('<')?;
    Some((test.to_owned(), time.strip_suffix("s>")?.parse().ok()?))
}

/// How many tests are named as the slowest.
const SLOWEST: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn times(lines: &[&str]) -> Times {
        let mut program = ProgramTimes::new("front it");
        for line in lines {
            program.read(line);
        }
        Times {
            programs: vec![program],
        }
    }

    #[test]
    fn sums_the_closing_lines() {
        let times = times(&[
            "running 3 tests",
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.17s",
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s",
        ]);
        assert_eq!(times.total(), "4 passed, 2 failed, 0 ignored");
        assert!(times.verdict().is_ok());
    }

    #[test]
    fn an_ignored_test_fails_the_run() {
        let line = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; x";
        let error = times(&[line]).verdict().unwrap_err();
        assert!(error.to_string().contains("1 ignored"), "{error}");
    }

    #[test]
    fn a_run_without_tests_fails() {
        assert!(times(&[]).verdict().is_err());
    }

    #[test]
    fn a_test_says_its_seconds() {
        let found = timed("test a::b ... ok <0.012s>");
        assert_eq!(found, Some(("a::b".to_owned(), 0.012)));
        assert_eq!(timed("test a::b ... ok"), None);
    }
}
