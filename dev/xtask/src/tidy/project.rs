//! What must stand beside the code: a changelog with a place for the next entry, and a corpus for
//! every fuzz target. (That the reference of the configuration is up to date is a test of
//! `config`, which generates it.)

use std::fs;
use std::path::Path;

use catamaran_testkit::read_corpus;

use super::Problem;
use crate::fuzz;

/// Checks the changelog, the length of ARCHITECTURE.md, and the corpora if there are fuzz targets.
pub(super) fn check(root: &Path) -> anyhow::Result<Vec<Problem>> {
    let mut problems = Vec::new();
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap_or_default();
    problems.extend(check_changelog(&read("CHANGELOG.md")));
    problems.extend(check_architecture(&read("ARCHITECTURE.md")));
    if root.join("dev/fuzz/Cargo.toml").exists() {
        let targets = fuzz::targets(root)?;
        problems.extend(check_corpora(&targets, |target| {
            read_corpus(&fuzz::corpus(root, target)).map_or(0, |inputs| inputs.len())
        }));
    }
    Ok(problems)
}

fn check_changelog(text: &str) -> Option<Problem> {
    let found = text.lines().any(|line| line.starts_with("## Unreleased"));
    let what = "needs a section `## Unreleased` for what users will notice next";
    (!found).then(|| Problem::new("CHANGELOG.md", what))
}

/// Checks that the page is short enough for one sitting. Drawings are not counted.
fn check_architecture(text: &str) -> Option<Problem> {
    let blocks = text.split("```").step_by(2);
    let what = match blocks.map(|block| block.lines().count()).sum() {
        0 => "is missing: one drawing, the life of a request, the code map, the invariants",
        161.. => {
            "has more than 160 lines beside its drawings: what is not architecture belongs into the code"
        }
        _ => return None,
    };
    Some(Problem::new("ARCHITECTURE.md", what))
}

/// Finds targets whose corpus is empty; `entries` gives the number of inputs of a target.
fn check_corpora(targets: &[String], entries: impl Fn(&str) -> usize) -> Vec<Problem> {
    let mut problems = Vec::new();
    for target in targets {
        if entries(target) == 0 {
            let message = "has no corpus: commit seeds, and replay them in a test";
            problems.push(Problem::new(
                format_args!("dev/fuzz/corpus/{target}.txt"),
                message,
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changelog_without_unreleased_fails() {
        assert!(check_changelog("# Changelog\n\n## 1.0.0\n").is_some());
        assert!(check_changelog("# Changelog\n\n## Unreleased\n").is_none());
    }

    #[test]
    fn an_architecture_must_be_there_and_short() {
        assert!(check_architecture("").is_some());
        let drawn = format!(
            "{}```\n{}```\n",
            "line\n".repeat(159),
            "drawn\n".repeat(100)
        );
        assert!(check_architecture(&drawn).is_none());
        assert!(check_architecture(&"line\n".repeat(161)).is_some());
        assert!(check_architecture(&"line\n".repeat(160)).is_none());
    }

    #[test]
    fn a_target_without_corpus_fails() {
        let targets = ["full".to_owned(), "empty".to_owned()];
        let found = check_corpora(&targets, |target| usize::from(target == "full"));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place, "dev/fuzz/corpus/empty.txt");
    }
}
