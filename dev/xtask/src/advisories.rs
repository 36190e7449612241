//! Known faults of what is linked, without a network: the advisories of RustSec that name a crate of Cargo.lock lie in
//! `security/advisories`, as their database has them.
//!
//! The index has the names of all crates of which the database has an advisory, so a crate that comes into Cargo.lock
//! later passes if it had none, and otherwise fails until its advisories are held. An advisory that says "unmaintained"
//! or "notice" is printed and does not fail.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use cargo_metadata::semver::{Version, VersionReq};
use serde::{Deserialize, Serialize};

use crate::step::{program, say};

/// Checks Cargo.lock against the advisories that are held.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let folder = root.join(FOLDER);
    let index =
        fs::read_to_string(folder.join(INDEX)).with_context(|| format!("{FOLDER}/{INDEX}"))?;
    let index: Index = toml::from_str(&index).with_context(|| format!("{FOLDER}/{INDEX}"))?;
    let advisories = load(&folder)?;
    let locked = locked(root)?;
    let findings = check(&locked, &advisories, &index);
    let mut faults = 0;
    for finding in &findings {
        let word = if finding.is_fault { "error" } else { "note" };
        say(&format!("{word}: {}", finding.text));
        faults += usize::from(finding.is_fault);
    }
    ensure!(
        faults == 0,
        "faults in what is linked: {faults}; {FOLDER} has the advisories"
    );
    say(&format!(
        "{} crates, {} advisories that name one of them, as of {}: none applies",
        locked.len(),
        advisories.len(),
        index.date
    ));
    Ok(())
}

/// Replaces what is held by what `checkout` has, a clone of RustSec's database.
pub(crate) fn update(root: &Path, checkout: &Path) -> anyhow::Result<()> {
    let crates = checkout.join("crates");
    ensure!(
        crates.is_dir(),
        "{} has no `crates`: clone https://github.com/rustsec/advisory-db",
        checkout.display()
    );
    let said = |format: &str| {
        let place = checkout.to_string_lossy();
        let words = ["-C", &place, "log", "-1", "--date=short", format];
        Ok::<_, anyhow::Error>(program("git", &words).output()?.trim().to_owned())
    };
    let entries = fs::read_dir(&crates)?.collect::<Result<Vec<_>, _>>()?;
    let names = entries
        .iter()
        .filter_map(|it| it.file_name().into_string().ok());
    let index = Index {
        commit: said("--format=%H")?,
        date: said("--format=%cd")?,
        crates: names.collect(),
    };
    let folder = root.join(FOLDER);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let mut count = 0;
    let locked = locked(root)?;
    let names: BTreeSet<&String> = locked.iter().map(|it| &it.name).collect();
    for name in names {
        let from = crates.join(name);
        if !from.is_dir() {
            continue;
        }
        let to = folder.join(name);
        fs::create_dir(&to)?;
        for entry in fs::read_dir(&from)? {
            let entry = entry?;
            fs::copy(entry.path(), to.join(entry.file_name()))?;
            count += 1;
        }
    }
    let head = "# Written by `cargo xtask advisories --update CHECKOUT`.\n\n";
    let index_text = head.to_owned() + &toml::to_string_pretty(&index)?;
    fs::write(folder.join(INDEX), index_text)?;
    say(&format!("{count} advisories of {}", index.date));
    Ok(())
}

/// What the database has, and when.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    /// The database's commit.
    commit: String,
    /// The commit's day.
    date: String,
    /// Every crate that an advisory names, held or not.
    crates: BTreeSet<String>,
}

/// A crate of Cargo.lock that comes from a registry.
#[derive(Debug)]
struct Locked {
    name: String,
    version: Version,
}

/// What an advisory says, of which the check needs this much.
#[derive(Debug, Deserialize)]
struct Advisory {
    advisory: Identity,
    versions: Versions,
    /// The heading of the text behind the table.
    #[serde(skip)]
    title: String,
}

#[derive(Debug, Deserialize)]
struct Identity {
    id: String,
    package: String,
    informational: Option<String>,
    withdrawn: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Versions {
    #[serde(default)]
    patched: Vec<VersionReq>,
    #[serde(default)]
    unaffected: Vec<VersionReq>,
}

#[derive(Debug)]
struct Finding {
    is_fault: bool,
    text: String,
}

impl Advisory {
    fn parse(text: &str) -> anyhow::Result<Self> {
        let rest = text
            .strip_prefix("```toml")
            .context("it does not begin with a table")?;
        let (table, text) = rest.split_once("\n```").context("its table does not end")?;
        let mut advisory: Self = toml::from_str(table)?;
        let title = text.lines().find_map(|line| line.strip_prefix("# "));
        title.unwrap_or_default().clone_into(&mut advisory.title);
        Ok(advisory)
    }

    fn applies_to(&self, locked: &Locked) -> bool {
        let Versions {
            patched,
            unaffected,
        } = &self.versions;
        let mut safe = patched.iter().chain(unaffected);
        self.advisory.package == locked.name
            && self.advisory.withdrawn.is_none()
            && !safe.any(|versions| versions.matches(&locked.version))
    }

    fn is_fault(&self) -> bool {
        let kind = self.advisory.informational.as_deref().map(str::trim);
        !matches!(kind, Some("unmaintained" | "notice"))
    }
}

fn check(locked: &[Locked], advisories: &[Advisory], index: &Index) -> Vec<Finding> {
    let mut findings = Vec::new();
    for locked in locked {
        let Locked { name, version } = locked;
        let mut held = advisories.iter().map(|it| &it.advisory.package);
        if index.crates.contains(name) && !held.any(|it| it == name) {
            let text = format!("{name} has advisories that are not held: {RENEW}");
            findings.push(Finding {
                is_fault: true,
                text,
            });
        }
        for advisory in advisories.iter().filter(|it| it.applies_to(locked)) {
            let (id, title) = (&advisory.advisory.id, &advisory.title);
            let mut text = format!("{name} {version}: {id}, {title}");
            let fixed = advisory.versions.patched.iter();
            let fixed: Vec<String> = fixed.map(ToString::to_string).collect();
            let _ = match fixed.is_empty() {
                true => write!(text, "; no version fixes it"),
                false => write!(text, "; fixed in {}", fixed.join(" or ")),
            };
            let is_fault = advisory.is_fault();
            findings.push(Finding { is_fault, text });
        }
    }
    findings
}

/// Every advisory below `folder`.
fn load(folder: &Path) -> anyhow::Result<Vec<Advisory>> {
    let mut advisories = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if !path.is_dir() {
            continue;
        }
        for entry in fs::read_dir(path)? {
            let path = entry?.path();
            let text = fs::read_to_string(&path)?;
            let advisory = Advisory::parse(&text).with_context(|| path.display().to_string())?;
            advisories.push(advisory);
        }
    }
    if advisories.is_empty() {
        bail!("{} has no advisory: {RENEW}", folder.display());
    }
    Ok(advisories)
}

fn locked(root: &Path) -> anyhow::Result<Vec<Locked>> {
    let text = fs::read_to_string(root.join("Cargo.lock"))?;
    let lock: Lock = toml::from_str(&text).context("Cargo.lock")?;
    let of_registry = lock.package.into_iter().filter(|it| it.source.is_some());
    Ok(of_registry
        .map(|it| Locked {
            name: it.name,
            version: it.version,
        })
        .collect())
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<LockedPackage>,
}

#[derive(Deserialize)]
struct LockedPackage {
    name: String,
    version: Version,
    /// Absent for crates of the workspace.
    source: Option<String>,
}

const FOLDER: &str = "security/advisories";
const INDEX: &str = "index.toml";
const RENEW: &str =
    "clone https://github.com/rustsec/advisory-db and run `cargo xtask advisories --update CLONE`";

#[cfg(test)]
mod tests {
    use super::*;

    const PLANTED: &str = r#"```toml
[advisory]
id = "RUSTSEC-2026-9999"
package = "bytes"
date = "2026-01-02"

[versions]
patched = [">= 1.11.2", "< 1.11.0, >= 1.10.9"]
unaffected = ["< 1.2.0"]
```

# A planted fault

It is not real.
"#;

    fn locked(name: &str, version: &str) -> Locked {
        Locked {
            name: name.to_owned(),
            version: version.parse().unwrap(),
        }
    }

    fn faults(text: &str, locked: &Locked) -> Vec<bool> {
        let index = Index {
            crates: ["bytes".to_owned()].into(),
            ..Index::default()
        };
        let advisory = Advisory::parse(text).unwrap();
        let found = check(std::slice::from_ref(locked), &[advisory], &index);
        found.iter().map(|it| it.is_fault).collect()
    }

    #[test]
    fn an_advisory_fails_where_no_range_excludes_the_version() {
        for (version, expected) in [
            ("1.1.9", &[][..]),
            ("1.2.0", &[true]),
            ("1.10.8", &[true]),
            ("1.10.9", &[]),
            ("1.11.0", &[true]),
            ("1.11.2", &[]),
        ] {
            assert_eq!(
                faults(PLANTED, &locked("bytes", version)),
                expected,
                "{version}"
            );
        }
    }

    #[test]
    fn an_advisory_about_no_fault_is_a_note_and_a_withdrawn_one_nothing() {
        let locked = locked("bytes", "1.2.0");
        let with = |line: &str| PLANTED.replace("\n\n[versions]", &format!("\n{line}\n[versions]"));
        assert_eq!(
            faults(&with("informational = \"unsound\""), &locked),
            [true]
        );
        assert_eq!(
            faults(&with("informational = \"unmaintained\""), &locked),
            [false]
        );
        assert_eq!(
            faults(&with("withdrawn = \"2026-01-03\""), &locked),
            [false; 0]
        );
    }

    #[test]
    fn a_new_crate_fails_if_it_has_advisories_that_are_not_held() {
        let advisory = Advisory::parse(PLANTED).unwrap();
        let advisories = std::slice::from_ref(&advisory);
        let mut index = Index::default();
        let new = [locked("new", "0.1.0")];
        assert!(check(&new, advisories, &index).is_empty());
        index.crates.insert("new".to_owned());
        let found = check(&new, advisories, &index);
        assert!(found.len() == 1 && found[0].is_fault, "{found:?}");
        assert!(found[0].text.contains("--update"), "{found:?}");
    }

    #[test]
    fn a_planted_advisory_is_read_from_its_file() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join(FOLDER);
        fs::create_dir_all(folder.join("bytes")).unwrap();
        fs::write(folder.join("bytes/RUSTSEC-2026-9999.md"), PLANTED).unwrap();
        fs::write(
            folder.join(INDEX),
            "commit = \"\"\ndate = \"2026-01-02\"\ncrates = [\"bytes\"]\n",
        )
        .unwrap();
        let lock = |version: &str| {
            let text = format!(
                "[[package]]\nname = \"bytes\"\nversion = \"{version}\"\nsource = \"a registry\"\n\
                 [[package]]\nname = \"ours\"\nversion = \"0.1.0\"\n"
            );
            fs::write(root.path().join("Cargo.lock"), text).unwrap();
        };
        lock("1.11.1");
        assert!(run(root.path()).is_err());
        lock("1.11.2");
        run(root.path()).unwrap();
    }
}
