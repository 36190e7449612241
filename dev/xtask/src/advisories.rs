//! Known vulnerabilities of linked crates, without a network. `security/advisories` holds the advisories of RustSec's
//! database that name a crate of Cargo.lock; [`deny`](crate::deny) reads them.
//!
//! The index lists every crate that the database has an advisory for. So a crate that is new in Cargo.lock passes if
//! the list does not name it; otherwise the check fails until its advisories are added.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

use crate::step::{program, say};

/// Checks that this repository holds all advisories that name a crate of Cargo.lock, and prints the date of the
/// advisories.
///
/// # Errors
/// Advisories are missing; the message says how to add them.
pub(crate) fn check_complete(root: &Path) -> anyhow::Result<()> {
    let path = root.join(INDEX);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let index: Index = toml::from_str(&text).context(INDEX)?;
    let folder = root.join(FOLDER);
    let locked = locked(root)?;
    let new = locked.intersection(&index.crates);
    let missing: Vec<&String> = new.filter(|name| !folder.join(name).is_dir()).collect();
    ensure!(
        missing.is_empty(),
        "the advisories that name {missing:?} are not held: clone https://github.com/rustsec/advisory-db and run \
         `cargo xtask advisories --update CLONE`"
    );
    say(&format!("advisories as of {}", index.date));
    Ok(())
}

/// Replaces the advisories of this repository by those of `checkout`, a clone of RustSec's database.
pub(crate) fn update(root: &Path, checkout: &Path) -> anyhow::Result<()> {
    let crates = checkout.join("crates");
    ensure!(
        crates.is_dir(),
        "{} has no `crates`: clone https://github.com/rustsec/advisory-db",
        checkout.display()
    );
    let last_commit = |format: &str| {
        let repository = checkout.to_string_lossy();
        let words = ["-C", &repository, "log", "-1", "--date=short", format];
        Ok::<_, anyhow::Error>(program("git", &words).output()?.trim().to_owned())
    };
    let entries = fs::read_dir(&crates)?.collect::<Result<Vec<_>, _>>()?;
    let names = entries.iter().map(|entry| entry.file_name().into_string());
    let index = Index {
        commit: last_commit("--format=%H")?,
        date: last_commit("--format=%cd")?,
        crates: names.filter_map(Result::ok).collect(),
    };
    let folder = root.join(FOLDER);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let mut count = 0;
    for name in locked(root)?.intersection(&index.crates) {
        let to = folder.join(name);
        fs::create_dir_all(&to)?;
        for entry in fs::read_dir(crates.join(name))? {
            let entry = entry?;
            fs::copy(entry.path(), to.join(entry.file_name()))?;
            count += 1;
        }
    }
    let head = "# Written by `cargo xtask advisories --update CHECKOUT`.\n\n";
    let index_text = head.to_owned() + &toml::to_string_pretty(&index)?;
    fs::write(root.join(INDEX), index_text)?;
    say(&format!("{count} advisories of {}", index.date));
    Ok(())
}

/// Where the advisories were taken from, and of which day they are.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    /// The database's commit.
    commit: String,
    /// The commit's day.
    date: String,
    /// Every crate for which the database has an advisory, also those whose advisories are not held here.
    crates: BTreeSet<String>,
}

/// The crates of Cargo.lock that come from a registry.
fn locked(root: &Path) -> anyhow::Result<BTreeSet<String>> {
    let text = fs::read_to_string(root.join("Cargo.lock"))?;
    let lock: Lock = toml::from_str(&text).context("Cargo.lock")?;
    let of_registry = lock.package.into_iter().filter(|it| it.source.is_some());
    Ok(of_registry.map(|it| it.name).collect())
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<LockedPackage>,
}

#[derive(Deserialize)]
struct LockedPackage {
    name: String,
    /// The registry of the crate. Crates of the workspace have none.
    source: Option<String>,
}

/// The folder of the advisories. Its name is the one that cargo-deny derives from the database's address.
const FOLDER: &str = "security/advisories/advisory-db-3157b0e258782691/crates";
const INDEX: &str = "security/advisories/index.toml";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_crate_fails_if_it_has_advisories_that_are_not_held() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let folder = root.join(FOLDER);
        fs::create_dir_all(folder.join("bytes")).unwrap();
        let index = "commit = \"\"\ndate = \"2026-01-02\"\ncrates = [\"bytes\", \"new\"]\n";
        fs::write(root.join(INDEX), index).unwrap();
        let lock = |names: &[&str]| {
            let package = |name| {
                format!(
                    "[[package]]\nname = \"{name}\"\nsource = \"a registry\"\n[[package]]\nname = \"ours\"\n"
                )
            };
            let packages: Vec<String> = names.iter().map(package).collect();
            fs::write(root.join("Cargo.lock"), packages.concat()).unwrap();
        };
        lock(&["bytes", "other"]);
        check_complete(root).unwrap();
        lock(&["bytes", "new"]);
        let error = check_complete(root).unwrap_err().to_string();
        assert!(
            error.contains("[\"new\"]") && error.contains("--update"),
            "{error}"
        );
        fs::create_dir(folder.join("new")).unwrap();
        check_complete(root).unwrap();
    }
}
