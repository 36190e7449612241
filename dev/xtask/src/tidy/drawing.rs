//! Compares the map of crates in ARCHITECTURE.md with the manifests.
//!
//! The map has a line for each crate that depends on others, `front ─► upstream, balance`, or one for several
//! that depend on the same. An arrow that only the map has, or only a manifest, is a problem. Dependencies of
//! tests are not drawn.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context;

use super::Problem;
use crate::graph::Graph;

pub(super) fn check(root: &Path, graph: &Graph) -> anyhow::Result<Vec<Problem>> {
    let text = std::fs::read_to_string(root.join(FILE)).context(FILE)?;
    Ok(compare(&drawn(&text), &declared(graph)))
}

type Arrows<'a> = BTreeSet<(&'a str, &'a str)>;

/// The arrows of the first code block below the heading. A line may have several names on each side, with commas.
fn drawn(text: &str) -> Arrows<'_> {
    let section = text.split_once(HEADING).map_or("", |(_, section)| section);
    let block = section.split("```").nth(1).unwrap_or_default();
    let mut arrows = Arrows::default();
    for line in block.lines() {
        let Some((users, dependencies)) = line.split_once(ARROW) else {
            continue;
        };
        for user in users.split(',') {
            for dependency in dependencies.split(',') {
                arrows.insert((user.trim(), dependency.trim()));
            }
        }
    }
    arrows
}

/// The arrows of the manifests.
fn declared(graph: &Graph) -> Arrows<'_> {
    let mut arrows = Arrows::default();
    for (folder, _, package) in graph.members() {
        for id in &package.normal {
            let dependency = graph.packages.get(id);
            if let Some(dependency) = dependency.and_then(|package| package.folder.as_deref()) {
                arrows.insert((folder, dependency));
            }
        }
    }
    arrows
}

/// Reports the arrows that only one of the two has.
fn compare(drawn: &Arrows<'_>, declared: &Arrows<'_>) -> Vec<Problem> {
    let problem = |(from, to): &(&str, &str), message: &str| {
        Problem::new(FILE, format!("{message}: {from} {ARROW} {to}"))
    };
    let surplus = drawn.difference(declared);
    let missing = declared.difference(drawn);
    surplus
        .map(|arrow| problem(arrow, "the map has an arrow that no manifest has"))
        .chain(missing.map(|arrow| problem(arrow, "the map lacks an arrow of the manifests")))
        .collect()
}

const FILE: &str = "ARCHITECTURE.md";
const HEADING: &str = "### Crates and who may know whom";
const ARROW: &str = "─►";

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(block: &str) -> Vec<String> {
        let text = format!("a ─► z\n{HEADING}\n\n```\n{block}\n```\nb ─► z\n");
        let graph = Graph::of(&[
            ("cli", &["front", "config", "clap"], &["testkit"]),
            ("config", &["front"], &[]),
            ("front", &[], &[]),
            ("testkit", &[], &[]),
        ]);
        let found = compare(&drawn(&text), &declared(&graph));
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_true_map_passes() {
        let found = problems("cli    ─► config, front\nconfig ─► front\nbeside: xtask");
        assert_eq!(found, Vec::<String>::new());
        let found = problems("cli, config ─► front\ncli ─► config");
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn a_missing_arrow_fails() {
        let found = problems("cli ─► config\nconfig ─► front");
        assert_eq!(
            found,
            ["ARCHITECTURE.md: the map lacks an arrow of the manifests: cli ─► front"]
        );
    }

    #[test]
    fn an_arrow_that_no_manifest_has_fails() {
        let found = problems("cli ─► config, front\nconfig ─► front, connector");
        assert_eq!(
            found,
            ["ARCHITECTURE.md: the map has an arrow that no manifest has: config ─► connector"]
        );
    }
}
