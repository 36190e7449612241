//! What may be linked: licences, duplicate versions, banned crates, sources, as `deny.toml` says.
//!
//! cargo-deny checks that when it is installed. Building it takes minutes, so where it is missing
//! the same four rules are checked here over `cargo metadata`; the step says which of the two ran.

mod spdx;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, bail};

use crate::graph::Graph;
use crate::step::{cargo, say};

/// The part of `deny.toml` that both checkers read.
#[derive(Debug, Default, PartialEq, Eq)]
struct Policy {
    licenses: BTreeSet<String>,
    banned: BTreeSet<String>,
    /// Crates of which several versions may be linked.
    duplicated: BTreeSet<String>,
}

/// Checks with cargo-deny, or by hand where it is not installed.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    if cargo(root, &["deny", "--version"]).succeeds() {
        say("checked by cargo-deny");
        return cargo(root, &["deny", "check", "bans", "licenses", "sources"]).finish();
    }
    say("cargo-deny is not installed: xtask's own check of deny.toml over cargo metadata");
    let text = fs::read_to_string(root.join("deny.toml")).context("deny.toml")?;
    let problems = check(&Graph::load(root)?, &Policy::parse(&text)?);
    for problem in &problems {
        say(&format!("error: {problem}"));
    }
    if !problems.is_empty() {
        bail!("{} violations of deny.toml", problems.len());
    }
    Ok(())
}

fn check(graph: &Graph, policy: &Policy) -> Vec<String> {
    let mut problems = Vec::new();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for id in graph.linked() {
        let Some(package) = graph.packages.get(id) else {
            continue;
        };
        let name = &package.name;
        versions.entry(name).or_default().push(&package.version);
        if policy.banned.contains(name) {
            problems.push(format!("{name} is banned by deny.toml"));
        }
        let Some(source) = &package.source else {
            continue;
        };
        if !source.starts_with("registry+") && !source.starts_with("sparse+") {
            problems.push(format!("{name} comes from {source}, not from the registry"));
        }
        let license = package.license.as_deref().unwrap_or_default();
        let allowed = spdx::allowed(license, &|id| policy.licenses.contains(id));
        if allowed != Some(true) {
            problems.push(format!(
                "{name}: licence {license:?} is not allowed by deny.toml"
            ));
        }
    }
    for (name, found) in versions {
        if found.len() > 1 && !policy.duplicated.contains(name) {
            problems.push(format!(
                "{name} is linked in versions {}",
                found.join(" and ")
            ));
        }
    }
    problems
}

impl Policy {
    fn parse(text: &str) -> anyhow::Result<Self> {
        let table: toml::Table = text.parse().context("deny.toml")?;
        let names = |table_name: &str, key: &str| -> BTreeSet<String> {
            let list = table
                .get(table_name)
                .and_then(|table| table.get(key)?.as_array());
            let name = |entry: &toml::Value| {
                let entry = entry.get("crate").unwrap_or(entry);
                let name = entry.as_str()?;
                Some(name.split('@').next().unwrap_or(name).to_owned())
            };
            list.into_iter().flatten().filter_map(name).collect()
        };
        Ok(Self {
            licenses: names("licenses", "allow"),
            banned: names("bans", "deny"),
            duplicated: names("bans", "skip"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> Policy {
        Policy::parse(
            "[licenses]\nallow = ['MIT']\n[bans]\nskip = [{ crate = 'twice@1', reason = 'x' }]\n\
             deny = [{ crate = 'bad' }]",
        )
        .unwrap()
    }

    fn problems(change: impl FnOnce(&mut Graph)) -> Vec<String> {
        let mut graph = Graph::of(&[("ours", &["dep", "twice", "twice2"], &["tests-only"])]);
        for package in graph.packages.values_mut() {
            package.license = Some("MIT OR GPL-3.0".to_owned());
        }
        graph.packages.get_mut("twice2").unwrap().name = "twice".to_owned();
        change(&mut graph);
        check(&graph, &policy())
    }

    #[test]
    fn an_allowed_graph_passes() {
        assert_eq!(problems(|_| {}), Vec::<String>::new());
    }

    #[test]
    fn each_rule_can_fail() {
        let only = |change: fn(&mut crate::graph::Package)| {
            let found = problems(|graph| change(graph.packages.get_mut("dep").unwrap()));
            assert_eq!(found.len(), 1, "{found:?}");
            found.into_iter().next().unwrap()
        };
        assert!(only(|dep| dep.license = Some("GPL-3.0".to_owned())).contains("licence"));
        assert!(only(|dep| dep.license = None).contains("licence"));
        assert!(only(|dep| dep.name = "bad".to_owned()).contains("banned"));
        assert!(only(|dep| dep.source = Some("git+x".to_owned())).contains("comes from"));
    }

    #[test]
    fn an_unlisted_duplicate_fails() {
        let found = problems(|graph| {
            graph.packages.get_mut("twice").unwrap().name = "dep".to_owned();
        });
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("dep is linked in versions"));
    }

    #[test]
    fn test_dependencies_are_not_linked() {
        let found = problems(|graph| {
            graph.packages.get_mut("tests-only").unwrap().license = None;
        });
        assert_eq!(found, Vec::<String>::new());
    }
}
