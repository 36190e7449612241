//! What a request costs the front in instructions, counted by valgrind's callgrind.
//!
//! The number of instructions hardly depends on other load of the machine, so it shows a change of 1 %, which a clock
//! on a busy machine does not. It includes neither the kernel nor waiting for memory; speed is measured by `catamaran
//! lab`. The memory of an idle connection and of a page in the cache is also measured.
//!
//! Each case is run twice, with few and with many requests. The difference of the counts, divided by that of the
//! requests, is the cost of one request; so what the front does only once is not in it. A row is named for the
//! protocols, and for the number of header fields of the request and of the response.

mod backend;
mod build;
mod case;
mod heads;
mod stand;
mod table;

use std::path::Path;

use anyhow::{Context, bail, ensure};

use self::build::Build;
use self::case::Case;
use self::stand::Stand;
use self::table::Row;
use crate::needs;
use crate::step::{Steps, say};

/// The options of `cargo xtask instructions`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// The commit to compare with, as git names it.
    against: Option<String>,
    profile: Profile,
    /// A part of the names of the rows to count. If it is empty, all rows and all bytes are counted.
    only: String,
}

/// The profile of Cargo that is built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Profile {
    #[default]
    Release,
    Dist,
}

impl Options {
    /// Parses the words after the command; `None` if they are not valid.
    pub(crate) fn parse(words: &[&str]) -> Option<Self> {
        let mut options = Self::default();
        for pair in words.chunks(2) {
            match pair {
                ["--against", commit] => options.against = Some((*commit).to_owned()),
                ["--profile", "release"] => options.profile = Profile::Release,
                ["--profile", "dist"] => options.profile = Profile::Dist,
                ["--only", text] => options.only = (*text).to_owned(),
                _ => return None,
            }
        }
        Some(options)
    }
}

impl Profile {
    fn name(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Dist => "dist",
        }
    }
}

/// Builds the binaries, counts, and prints a row for each case. Fails if a row of the working tree exceeds its
/// limit in proportion to the commit's row.
pub(crate) fn run(steps: &mut Steps, root: &Path, options: &Options) -> anyhow::Result<()> {
    steps.run("install valgrind", || needs::install(&[needs::valgrind()]))?;
    let new = steps.run("build the working tree", || {
        Build::of_working_tree(root, options.profile)
    })?;
    let old = match &options.against {
        Some(commit) => Some(steps.run(&format!("build {commit}"), || {
            Build::of_commit(root, commit, options.profile)
        })?),
        None => None,
    };
    let rows = steps.run("count", || count(&new, old.as_ref(), &options.only))?;
    let over = rows.iter().filter(|row| row.is_over());
    let names: Vec<&str> = over.map(Row::what).collect();
    if !names.is_empty() {
        bail!("costs more than allowed: {}", names.join("; "));
    }
    Ok(())
}

/// The figure of the older commit. `None` without such a commit, and if it cannot be measured, for instance because
/// it does not know an option; then the reason is printed.
fn of_commit(
    old: Option<&Build>,
    measure: impl FnOnce(&Build) -> anyhow::Result<f64>,
) -> Option<f64> {
    let build = old?;
    let told = |error: &anyhow::Error| say(&format!("{}: {error:#}", build.name()));
    measure(build).inspect_err(told).ok()
}

/// Counts in the order of the table, and prints each row as soon as it is known. Cases are those with `only` in their
/// name; with an `only`, bytes are not measured.
fn count(new: &Build, old: Option<&Build>, only: &str) -> anyhow::Result<Vec<Row>> {
    let cases = Case::named(only);
    ensure!(!cases.is_empty(), "no row has `{only}` in its name");
    let stand = Stand::start(new)?;
    say(&table::header(old.map(Build::name)));
    let mut rows = Vec::new();
    let mut add = |row: Row| {
        say(&row.to_string());
        rows.push(row);
    };
    for case in cases {
        let measure = |build: &Build| stand.instructions(build, case);
        let new_count = measure(new).with_context(|| case.to_string())?;
        let old_count = of_commit(old, measure);
        add(Row::instructions(case.to_string(), new_count, old_count));
    }
    if !only.is_empty() {
        return Ok(rows);
    }
    let old_idle = of_commit(old, |build| stand.idle_bytes(build));
    let new_idle = stand.idle_bytes(new)?;
    add(Row::bytes(
        "an idle HTTP/1.1 connection",
        new_idle,
        old_idle,
    ));
    let old_cached = of_commit(old, |build| stand.cached_bytes(build));
    let new_cached = stand.cached_bytes(new)?;
    add(Row::bytes(
        "a page of 347 bytes in the cache",
        new_cached,
        old_cached,
    ));
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_pairs() {
        let words = "--profile dist --against HEAD~2 --only cache";
        let words: Vec<&str> = words.split(' ').collect();
        let parsed = Options::parse(&words).unwrap();
        assert_eq!(parsed.only, "cache");
        assert_eq!(parsed.against.as_deref(), Some("HEAD~2"));
        assert_eq!(parsed.profile, Profile::Dist);
        assert_eq!(Options::parse(&[]), Some(Options::default()));
        for wrong in [
            &["--against"][..],
            &["HEAD"],
            &["--profile", "dev"],
            &["--only"],
            &["--against", "HEAD", "--profile"],
        ] {
            assert_eq!(Options::parse(wrong), None, "{wrong:?}");
        }
    }
}
