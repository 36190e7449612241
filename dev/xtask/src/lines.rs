//! How large the code base is: lines of source and of tests in each crate, words of the documents, files.
//!
//! Lines that are blank or comments are not counted. Test code is what [`tidy`](crate::tidy) takes for it, and all
//! code of crates that only tests use.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context;

use crate::step::{program, say};
use crate::tidy::source::Source;

/// Prints the sizes of the working tree, beside those of a commit if one is named.
pub(crate) fn run(root: &Path, against: Option<&str>) -> anyhow::Result<()> {
    let table = Table {
        here: Sizes::of(root, None)?,
        before: against
            .map(|commit| Sizes::of(root, Some(commit)))
            .transpose()?,
    };
    say(&row("crate", "source", "tests"));
    // A crate may be in one of the two only.
    let sizes = table.before.iter().chain([&table.here]);
    let names: BTreeSet<&String> = sizes.flat_map(|sizes| sizes.crates.keys()).collect();
    for name in names {
        let source = table.cell(|sizes| sizes.lines(name).source);
        let tests = table.cell(|sizes| sizes.lines(name).tests);
        say(&row(name, &source, &tests));
    }
    let all_source = table.cell(|sizes| sizes.crates.values().map(|lines| lines.source).sum());
    let all_tests = table.cell(|sizes| sizes.crates.values().map(|lines| lines.tests).sum());
    say(&row("sum", &all_source, &all_tests));
    say(&row("words of docs", &table.cell(|sizes| sizes.words), ""));
    say(&row("files", &table.cell(|sizes| sizes.files), ""));
    Ok(())
}

/// The sizes that are printed.
struct Table {
    here: Sizes,
    before: Option<Sizes>,
}

/// The sizes of a commit or of the working tree.
#[derive(Debug, Default)]
struct Sizes {
    /// Lines by the folder of the crate.
    crates: BTreeMap<String, Lines>,
    /// Words of pages that people write, without the generated reference and without pages beside results of
    /// the lab.
    words: usize,
    /// Files under git's control.
    files: usize,
}

/// Counts of lines that are neither blank nor a comment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lines {
    source: usize,
    tests: usize,
}

impl Table {
    /// A figure of the working tree; with a commit, that of the commit before it.
    fn cell(&self, figure: impl Fn(&Sizes) -> usize) -> String {
        let here = figure(&self.here);
        match &self.before {
            Some(before) => format!("{} → {here}", figure(before)),
            None => here.to_string(),
        }
    }
}

impl Sizes {
    /// The sizes of a commit; without one, those of the working tree.
    fn of(root: &Path, commit: Option<&str>) -> anyhow::Result<Self> {
        let list: &[&str] = match &commit {
            Some(commit) => &["ls-tree", "-r", "--name-only", commit],
            None => &["ls-files"],
        };
        let mut sizes = Self {
            files: git(root, list)?.lines().count(),
            ..Self::default()
        };
        for (path, text) in texts(root, commit)? {
            if path.ends_with(".md") {
                // Generated pages are not counted.
                if path != REFERENCE && !is_of_result(&path) {
                    sizes.words += text.split_whitespace().count();
                }
                continue;
            }
            let source = Source::parse(&path, &text)?;
            let lines = sizes.crates.entry(source.folder().to_owned()).or_default();
            lines.add(&source);
        }
        Ok(sizes)
    }

    fn lines(&self, name: &str) -> Lines {
        self.crates.get(name).copied().unwrap_or_default()
    }
}

impl Lines {
    /// Adds the lines of a file that are neither blank nor comments.
    fn add(&mut self, source: &Source) {
        let is_for_tests = FOR_TESTS
            .iter()
            .any(|folder| source.path.starts_with(folder));
        for (index, line) in source.text.lines().enumerate() {
            let line = line.trim_start();
            if line.is_empty() || line.starts_with("//") {
                continue;
            }
            if is_for_tests || source.is_test_line(index + 1) {
                self.tests += 1;
            } else {
                self.source += 1;
            }
        }
    }
}

/// The texts of Rust files and documents, with their paths.
fn texts(root: &Path, commit: Option<&str>) -> anyhow::Result<BTreeMap<String, String>> {
    // `git grep` with an empty pattern prints every line, with the path before it.
    let mut words = vec!["grep", "--text", "--full-name", "--null", "-e", ""];
    words.extend(commit);
    words.extend(["--", "*.rs", "docs/*.md"]);
    let mut texts = BTreeMap::<String, String>::new();
    for line in git(root, &words)?.split_terminator('\n') {
        let (place, content) = line.split_once('\0').context("git grep names no path")?;
        // With a commit, its name is before the path.
        let path = place.split_once(':').map_or(place, |(_, path)| path);
        let text = texts.entry(path.to_owned()).or_default();
        text.push_str(content);
        text.push('\n');
    }
    Ok(texts)
}

fn git(root: &Path, words: &[&str]) -> anyhow::Result<String> {
    program("git", words).directory(root).output()
}

/// Whether `path` lies below a folder of `docs/lab`.
fn is_of_result(path: &str) -> bool {
    let name = path.strip_prefix("docs/lab/");
    name.is_some_and(|name| name.contains('/'))
}

fn row(name: &str, source: &str, tests: &str) -> String {
    format!("{name:<14}{source:>18}{tests:>18}")
        .trim_end()
        .to_owned()
}

/// The page that is generated from the configuration's records.
const REFERENCE: &str = "docs/reference.md";
/// Folders of crates that no user's binary contains.
const FOR_TESTS: [&str; 4] = ["dev/e2e/", "dev/fuzz/", "dev/nights/", "dev/testkit/"];

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Lines {
        let mut lines = Lines::default();
        lines.add(&Source::parse(path, text).unwrap());
        lines
    }

    #[test]
    fn blank_lines_and_comments_do_not_count_and_test_code_counts_apart() {
        let text = "//! Page.\n\n/// Says.\nfn a() {\n    // Why.\n}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n";
        let [source, tests] = [2, 4];
        assert_eq!(
            lines("crates/wire/ajp/src/a.rs", text),
            Lines { source, tests }
        );
        let [source, tests] = [0, 6];
        assert_eq!(
            lines("crates/wire/ajp/tests/a.rs", text),
            Lines { source, tests }
        );
        assert_eq!(lines("dev/testkit/src/a.rs", text), Lines { source, tests });
    }

    #[test]
    fn words_beside_results_do_not_count() {
        assert!(is_of_result("docs/lab/cache/report.md"));
        assert!(!is_of_result("docs/lab/method.md") && !is_of_result("docs/cache.md"));
    }
}
