//! The dependencies between packages, reduced from `cargo metadata` to what the checks need.
//!
//! Because of the reduction, tests can write a small graph by hand to show that a check fails on it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context;
use cargo_metadata::{DependencyKind, MetadataCommand};

/// All packages, by their ids.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(crate) packages: BTreeMap<String, Package>,
}

/// A package with its direct dependencies, given by their ids.
#[derive(Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// The name of the package's folder, if it is a member of the workspace.
    pub(crate) folder: Option<String>,
    /// Dependencies of the crate and of its build script.
    pub(crate) normal: BTreeSet<String>,
    /// Dependencies of the crate's tests only.
    pub(crate) dev: BTreeSet<String>,
}

impl Graph {
    /// The graph of the workspace at `root`, for all platforms.
    pub(crate) fn load(root: &Path) -> anyhow::Result<Self> {
        let metadata = MetadataCommand::new()
            .current_dir(root)
            .exec()
            .context("cargo metadata")?;
        let mut packages = BTreeMap::new();
        for package in &metadata.packages {
            let is_member = metadata.workspace_members.contains(&package.id);
            let manifest = &package.manifest_path;
            let folder = manifest.parent().and_then(|path| path.file_name());
            packages.insert(
                package.id.repr.clone(),
                Package {
                    name: package.name.to_string(),
                    folder: folder.filter(|_| is_member).map(str::to_owned),
                    ..Package::default()
                },
            );
        }
        let resolve = metadata
            .resolve
            .context("cargo metadata has no resolve graph")?;
        for node in resolve.nodes {
            let package = packages
                .get_mut(&node.id.repr)
                .with_context(|| format!("{} is resolved but not listed", node.id))?;
            for dependency in node.deps {
                let mut kinds = dependency.dep_kinds.iter().filter(|kind| {
                    // Build dependencies are not linked. Nor are those for the target `cfg(any())`, which is never
                    // built and only ties versions together.
                    let target = kind.target.as_ref().map(ToString::to_string);
                    let is_linked = kind.kind != DependencyKind::Build;
                    is_linked && target.as_deref() != Some("cfg(any())")
                });
                let Some(first) = kinds.next() else {
                    continue;
                };
                let is_for_tests = first.kind == DependencyKind::Development
                    && kinds.all(|kind| kind.kind == DependencyKind::Development);
                let dependencies = if is_for_tests {
                    &mut package.dev
                } else {
                    &mut package.normal
                };
                dependencies.insert(dependency.pkg.repr);
            }
        }
        Ok(Self { packages })
    }

    /// The crates of this repository, by folder name.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&str, &str, &Package)> {
        self.packages
            .iter()
            .filter_map(|(id, package)| Some((package.folder.as_deref()?, id.as_str(), package)))
    }

    /// The packages that `id` depends on directly or indirectly, without `id`. The dependencies of packages that are named
    /// in `ends` are left out.
    pub(crate) fn closure(&self, id: &str, ends: &[&str]) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            let Some(package) = self.packages.get(id) else {
                continue;
            };
            if ends.contains(&package.name.as_str()) {
                continue;
            }
            for dependency in &package.normal {
                if found.insert(dependency.as_str()) {
                    open.push(dependency);
                }
            }
        }
        found
    }
}

#[cfg(test)]
impl Graph {
    /// A graph of members: `("folder", normal, dev)`, every name its own id and folder; names
    /// that are no row become packages from a registry.
    pub(crate) fn of(rows: &[(&str, &[&str], &[&str])]) -> Self {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let mut graph = Self::default();
        for (folder, normal, dev) in rows {
            let package = Package {
                name: (*folder).to_owned(),
                folder: Some((*folder).to_owned()),
                normal: owned(normal),
                dev: owned(dev),
            };
            graph.packages.insert((*folder).to_owned(), package);
        }
        for (_, normal, dev) in rows {
            for name in normal.iter().chain(*dev) {
                let entry = graph.packages.entry((*name).to_owned());
                entry.or_insert_with(|| Package {
                    name: (*name).to_owned(),
                    ..Package::default()
                });
            }
        }
        graph
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closure_follows_normal_dependencies_only() {
        let graph = Graph::of(&[
            ("a", &["b"], &["d"]),
            ("b", &["c"], &[]),
            ("c", &["b"], &[]),
        ]);
        assert_eq!(graph.closure("a", &[]), BTreeSet::from(["b", "c"]));
    }

    #[test]
    fn loads_this_workspace() {
        let graph = Graph::load(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        let (_, id, _) = graph
            .members()
            .find(|(folder, ..)| *folder == "xtask")
            .unwrap();
        let names = graph.closure(id, &[]);
        assert!(
            names
                .iter()
                .any(|id| graph.packages[*id].name == "cargo_metadata")
        );
    }
}
