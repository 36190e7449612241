//! The shape of a file: its length, its header, its name.

use super::Problem;
use super::source::Source;

pub(super) fn check(source: &Source) -> Vec<Problem> {
    let mut problems = check_length(source, LONGER);
    problems.extend(check_header(source));
    problems.extend(check_name(source));
    problems
}

/// Finds allowances for files that do not exist any more.
pub(super) fn check_allowances(sources: &[Source]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, _) in LONGER {
        if !sources.iter().any(|source| source.path == *path) {
            problems.push(Problem::new(path, "is listed as long but does not exist"));
        }
    }
    problems
}

/// Checks the number of lines without tests. A file of `longer` may have as many as its entry says, no more and no
/// fewer.
fn check_length(source: &Source, longer: &[(&str, usize)]) -> Vec<Problem> {
    if source.is_test() {
        return Vec::new();
    }
    let count = source.text.lines().count();
    let lines = (1..=count)
        .filter(|line| !source.is_test_line(*line))
        .count();
    let entry = longer.iter().find(|(path, _)| *path == source.path);
    let message = match entry {
        Some((_, listed)) if lines < *listed => {
            format!("has {lines} lines now: lower or remove its entry in tidy/shape.rs")
        }
        Some((_, listed)) if lines > *listed => {
            format!("grew from {listed} to {lines} lines: it may only shrink")
        }
        None if lines > LINES_MAX => {
            format!("{lines} lines without tests, at most {LINES_MAX}: which two concepts is it?")
        }
        _ => return Vec::new(),
    };
    vec![Problem::new(&source.path, message)]
}

/// Checks that a file begins with a `//!` header. Test modules need none, because the file next to them says what
/// they test.
fn check_header(source: &Source) -> Option<Problem> {
    let mut lines = source.text.lines();
    let first = lines
        .find(|line| !line.starts_with("#![no_main]"))
        .unwrap_or_default();
    if source.path.ends_with("/tests.rs") || first.starts_with("//! ") {
        return None;
    }
    let message = "must open with `//!`: what it owns, what it does not, one invariant";
    Some(Problem::new(&source.path, message))
}

/// Finds a folder or file with a name that says nothing of its content.
fn check_name(source: &Source) -> Option<Problem> {
    let mut parts = source.path.split('/');
    let file = parts.next_back()?;
    let stem = file.strip_suffix(".rs").unwrap_or(file);
    let mut names = parts.chain([stem]);
    let bad = names.find(|name| NOBODYS_NAMES.contains(name))?;
    let what = format!("nobody owns `{bad}`: name it for what it holds");
    Some(Problem::new(&source.path, what))
}

/// The most lines of a file, not counting its tests.
const LINES_MAX: usize = 800;

/// Files that may be longer, each with its accepted number of lines. A number may only be lowered.
const LONGER: &[(&str, usize)] = &[];

/// Names of files that say nothing, because anything fits them.
const NOBODYS_NAMES: [&str; 12] = [
    "util",
    "utils",
    "helper",
    "helpers",
    "common",
    "manager",
    "misc",
    "types",
    "globals",
    "constants",
    "shared",
    "prelude",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source::parse(path, text).unwrap()
    }

    fn long(lines: usize) -> String {
        format!("//! Long.\n{}", "\n".repeat(lines - 1))
    }

    #[test]
    fn a_tidy_file_passes() {
        let tidy = source("crates/a/src/pool.rs", "//! Holds connections.\n");
        assert_eq!(check(&tidy), []);
    }

    #[test]
    fn a_long_file_fails_but_tests_do_not_count() {
        let too_long = source("crates/a/src/b.rs", &long(801));
        assert_eq!(check_length(&too_long, &[]).len(), 1);
        let text = format!("{}#[cfg(test)]\nmod tests {{\n\n\n}}\n", long(800));
        assert_eq!(check_length(&source("crates/a/src/b.rs", &text), &[]), []);
        assert_eq!(
            check_length(&source("crates/a/tests/it/b.rs", &long(900)), &[]),
            []
        );
    }

    #[test]
    fn a_listed_file_may_only_shrink() {
        let listed = [("b.rs", 900)];
        assert_eq!(check_length(&source("b.rs", &long(900)), &listed), []);
        let grown = check_length(&source("b.rs", &long(901)), &listed);
        assert!(grown[0].what.contains("grew"), "{grown:?}");
        let shrunk = check_length(&source("b.rs", &long(899)), &listed);
        assert!(shrunk[0].what.contains("lower"), "{shrunk:?}");
    }

    #[test]
    fn a_file_without_a_header_fails() {
        for text in ["fn a() {}\n", "", "// a comment\n", "//!\n"] {
            assert_eq!(
                check(&source("crates/a/src/b.rs", text)).len(),
                1,
                "{text:?}"
            );
        }
        assert_eq!(check(&source("crates/a/src/b/tests.rs", "fn a() {}\n")), []);
        let fuzz = "#![no_main]\n//! Feeds packets.\n";
        assert_eq!(check(&source("dev/fuzz/fuzz_targets/packet.rs", fuzz)), []);
    }

    #[test]
    fn nobodys_names_fail() {
        for path in ["crates/a/src/util.rs", "crates/a/src/helpers/b.rs"] {
            assert_eq!(check(&source(path, "//! A header.\n")).len(), 1, "{path}");
        }
    }
}
