//! What a request costs the front in instructions, counted by valgrind's callgrind.
//!
//! A count hardly depends on what else the machine does, so it shows a change of 1 % that no clock on a
//! busy machine would. It says nothing of the kernel or of memory that is waited for: speed is what
//! `catamaran lab` measures. Beside it is the memory of an idle connection, and of a page in the cache.
//!
//! The count of a request is the difference of two runs with [`FEW`] and [`MANY`] requests by the
//! difference of these numbers, so what the front does once is in neither.

mod build;
mod stand;
mod table;

use std::path::Path;

use anyhow::{Context, bail};

use self::build::Build;
use self::stand::Stand;
use self::table::Row;
use crate::needs;
use crate::step::{Steps, say};

/// What is asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// A commit to compare with, as git names it.
    against: Option<String>,
    profile: Profile,
}

/// The profile of Cargo that is built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Profile {
    #[default]
    Release,
    Dist,
}

/// What the client, the backend and the configuration are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    client: Client,
    backend: Backend,
    is_logged: bool,
}

/// What the client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    Http1,
    /// In clear, so that no cipher is counted.
    Http2,
}

/// What the response comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backend {
    Ajp,
    Http,
    /// The front's cache: a backend is asked for the first response alone.
    Cache,
}

impl Options {
    /// From the words behind the command; `None` if they make no sense.
    pub(crate) fn parse(words: &[&str]) -> Option<Self> {
        let mut options = Self::default();
        for pair in words.chunks(2) {
            match pair {
                ["--against", commit] => options.against = Some((*commit).to_owned()),
                ["--profile", "release"] => options.profile = Profile::Release,
                ["--profile", "dist"] => options.profile = Profile::Dist,
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

impl Client {
    fn name(self) -> &'static str {
        match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
        }
    }
}

impl Backend {
    fn name(self) -> &'static str {
        match self {
            Self::Ajp => "AJP13",
            Self::Http => "HTTP/1.1",
            Self::Cache => "the cache",
        }
    }
}

impl Case {
    fn all() -> impl Iterator<Item = Self> {
        let clients = [Client::Http1, Client::Http2].into_iter();
        clients.flat_map(|client| {
            let backends = [Backend::Ajp, Backend::Http, Backend::Cache].into_iter();
            backends.flat_map(move |backend| {
                [false, true].map(|is_logged| Self {
                    client,
                    backend,
                    is_logged,
                })
            })
        })
    }

    fn name(self) -> String {
        let log = if self.is_logged { "on" } else { "off" };
        let (client, backend) = (self.client.name(), self.backend.name());
        format!("{client} to {backend}, log {log}")
    }
}

/// Builds, counts, and prints a row for each case; an error if a row of the working tree is beyond its
/// limit over that of the commit.
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
    let rows = steps.run("count", || count(&new, old.as_ref()))?;
    let over: Vec<&str> = rows
        .iter()
        .filter(|row| row.is_over())
        .map(Row::what)
        .collect();
    if !over.is_empty() {
        bail!("costs more than allowed: {}", over.join("; "));
    }
    Ok(())
}

/// What is measured of a commit with a cache. One before there was any ends instead of serving.
fn of_cache(
    old: Option<&Build>,
    measure: impl FnOnce(&Build) -> anyhow::Result<f64>,
) -> Option<f64> {
    let build = old?;
    let told = |error: &anyhow::Error| {
        let what = error.to_string();
        say(&format!("{} serves no cache: {what}", build.name()));
    };
    measure(build).inspect_err(told).ok()
}

fn count(new: &Build, old: Option<&Build>) -> anyhow::Result<Vec<Row>> {
    let stand = Stand::start(new)?;
    say(&table::header(old.map(Build::name)));
    let mut rows = Vec::new();
    let mut add = |row: Row| {
        say(&row.to_string());
        rows.push(row);
    };
    for case in Case::all() {
        let measure = |build: &Build| stand.instructions(build, case).with_context(|| case.name());
        let old = match case.backend {
            Backend::Cache => of_cache(old, measure),
            Backend::Ajp | Backend::Http => old.map(measure).transpose()?,
        };
        add(Row::instructions(case.name(), measure(new)?, old));
    }
    let idle = old.map(|build| stand.idle_bytes(build)).transpose()?;
    add(Row::bytes(
        "an idle HTTP/1.1 connection",
        stand.idle_bytes(new)?,
        idle,
    ));
    let cached = of_cache(old, |build| stand.cached_bytes(build));
    add(Row::bytes(
        "a page of 347 bytes in the cache",
        stand.cached_bytes(new)?,
        cached,
    ));
    Ok(rows)
}

/// Requests of the two runs. The first ones fill pools and buffers.
const FEW: u64 = 2_000;
const MANY: u64 = 12_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_pairs() {
        let parsed = Options::parse(&["--profile", "dist", "--against", "HEAD~2"]).unwrap();
        assert_eq!(parsed.against.as_deref(), Some("HEAD~2"));
        assert_eq!(parsed.profile, Profile::Dist);
        assert_eq!(Options::parse(&[]), Some(Options::default()));
        for wrong in [
            &["--against"][..],
            &["HEAD"],
            &["--profile", "dev"],
            &["--against", "HEAD", "--profile"],
        ] {
            assert_eq!(Options::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn every_pair_of_protocols_is_counted_with_and_without_a_log() {
        let names: Vec<String> = Case::all().map(Case::name).collect();
        assert_eq!(names.len(), 12, "{names:?}");
        for client in ["HTTP/1.1", "HTTP/2"] {
            for backend in ["AJP13", "HTTP/1.1", "the cache"] {
                for log in ["off", "on"] {
                    let name = format!("{client} to {backend}, log {log}");
                    assert!(names.contains(&name), "{name}");
                }
            }
        }
    }
}
