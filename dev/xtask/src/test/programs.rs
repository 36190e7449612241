//! The test programs of the workspace, and which of their tests need servers, root, or much time.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context, ensure};
use cargo_metadata::{Artifact, Message, TargetKind};

use super::bare::Bare;
use super::run::Job;
use super::{BINARY, Selection};
use crate::step::cargo;

/// What a test needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Nothing: it is one of the fast tests.
    Nothing,
    /// Ten seconds of CPU time or more, which cannot be reduced.
    Time,
    /// Servers or root.
    Servers,
}

/// A built program of tests, or a part of one: its tests with the same need.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// The crate and the target of the program, such as `front it`.
    name: String,
    /// The folder of the program's crate.
    folder: PathBuf,
    executable: PathBuf,
    /// The names of its tests that are to be run; none if it is a benchmark, which is only run once.
    tests: Vec<String>,
    /// Whether the program also has tests that do not belong to this part.
    is_part: bool,
    is_benchmark: bool,
    /// What the tests of this part need.
    pub(super) need: Need,
}

/// Builds all test programs. Those of `tests` folders come first, because they take longest; among them those with
/// the most tests.
pub(super) fn build(root: &Path) -> anyhow::Result<Vec<Program>> {
    let build = ["test", "--workspace", "--no-run", "--quiet"];
    let messages = cargo(root, &build)
        .args(&["--message-format", "json-render-diagnostics"])
        .output_beside_stderr()?;
    let mut programs = Vec::new();
    for message in Message::parse_stream(messages.as_bytes()) {
        if let Message::CompilerArtifact(artifact) = message?
            && artifact.profile.test
            && let Some(executable) = &artifact.executable
        {
            let program = Program::of_artifact(&artifact, PathBuf::from(executable))?;
            programs.extend(program.split());
        }
    }
    check_needy(&programs)?;
    programs.sort_by_key(|program| {
        let is_unit = program.name.ends_with(" unit");
        (is_unit, std::cmp::Reverse(program.tests.len()))
    });
    Ok(programs)
}

/// Checks that each row of [`NEEDY`] has a test.
fn check_needy(programs: &[Program]) -> anyhow::Result<()> {
    for (name, parts, _) in NEEDY {
        for part in *parts {
            let mut programs = programs.iter().filter(|program| program.name == *name);
            let has_test =
                programs.any(|program| program.tests.iter().any(|test| test.contains(part)));
            ensure!(
                has_test,
                "NEEDY: no test of {name} has {part:?} in its name"
            );
        }
    }
    Ok(())
}

impl Program {
    /// Splits the program by what its tests need.
    fn split(self) -> Vec<Self> {
        if self.is_benchmark {
            return vec![self];
        }
        let need_of = |test: &str| {
            let row = NEEDY.iter().find(|(program, parts, _)| {
                *program == self.name && parts.iter().any(|part| test.contains(part))
            });
            row.map_or(Need::Nothing, |(.., need)| *need)
        };
        let mut parts = Vec::new();
        for need in [Need::Nothing, Need::Time, Need::Servers] {
            let needing = self.tests.iter().filter(|test| need_of(test) == need);
            let tests: Vec<String> = needing.cloned().collect();
            if !tests.is_empty() {
                parts.push(Self {
                    is_part: tests.len() < self.tests.len(),
                    tests,
                    need,
                    ..self.clone()
                });
            }
        }
        parts
    }

    /// The program that Cargo built, named by its folder and its file in `tests`, with its tests.
    fn of_artifact(artifact: &Artifact, executable: PathBuf) -> anyhow::Result<Self> {
        let manifest = &artifact.manifest_path;
        let folder = manifest.parent().context("a manifest has a folder")?;
        let is_benchmark = artifact.target.kind.contains(&TargetKind::Bench);
        let target = match artifact.target.kind[0] {
            TargetKind::Test | TargetKind::Bench => &artifact.target.name,
            _ => "unit",
        };
        Ok(Self {
            name: format!("{} {target}", folder.file_name().unwrap_or_default()),
            folder: folder.into(),
            tests: tests(&executable, is_benchmark)?,
            executable,
            is_part: false,
            is_benchmark,
            need: Need::Nothing,
        })
    }

    /// Keeps the tests of `selection`; returns `false` if there are none.
    pub(super) fn select(&mut self, selection: Selection<'_>) -> bool {
        match selection {
            Selection::All => true,
            Selection::Fast => self.need == Need::Nothing,
            Selection::Named(names) => {
                let is_named = |test: &String| names.iter().any(|name| test.contains(name));
                self.tests.retain(is_named);
                self.is_part = true;
                !self.tests.is_empty()
            }
        }
    }

    /// The job that runs these tests. Tests that need no servers and no root run where both are absent.
    pub(super) fn job(&self, bare: &Bare, binary: Option<&Path>) -> Job {
        let mut words: Vec<OsString> = vec![self.executable.clone().into()];
        if !self.is_benchmark {
            words.extend(["-Zunstable-options", "--report-time"].map(OsString::from));
        }
        if self.is_part {
            words.push("--exact".into());
            words.extend(self.tests.iter().map(OsString::from));
        }
        let mut threads = cores();
        if self.need != Need::Servers {
            threads *= THREADS_WITHOUT_SERVERS;
            words = bare.wrap(words);
        }
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .current_dir(&self.folder)
            // Without this variable a stable compiler's test programs cannot print the time of each test.
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUST_TEST_THREADS", threads.to_string())
            .env("CARGO_MANIFEST_DIR", &self.folder);
        if let Some(binary) = binary {
            command.env(BINARY, binary);
        }
        Job::new(&self.name, command)
    }
}

/// The names of the tests in a program.
fn tests(executable: &Path, is_benchmark: bool) -> anyhow::Result<Vec<String>> {
    if is_benchmark {
        return Ok(Vec::new());
    }
    let output = Command::new(executable)
        .arg("--list")
        .output()
        .with_context(|| executable.display().to_string())?;
    let lines = String::from_utf8(output.stdout)?;
    let names = lines.lines().filter_map(|line| line.strip_suffix(": test"));
    Ok(names.map(str::to_owned).collect())
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// How many tests without servers run at a time for each core: most of them wait.
const THREADS_WITHOUT_SERVERS: usize = 3;

/// A test program, parts of the names of some of its tests, and what those tests need.
type Needy = (&'static str, &'static [&'static str], Need);

/// The tests that need something. All tests that are not listed with [`Need::Servers`] run without servers and
/// without root ([`Bare`]), so a test that is missing here fails.
const NEEDY: &[Needy] = &[
    // Cgroups and network namespaces; completions in the shells that are installed.
    ("cli it", &["doctor::each_l", "generate::"], Need::Servers),
    ("e2e it", &[""], Need::Servers),
    // The kernel may refuse a filter to others than root.
    (
        "proxy it",
        &["drain::whoever_could_connect_is_served"],
        Need::Servers,
    ),
    ("gauge it", &[""], Need::Servers),
    ("gauge unit", &["strace::"], Need::Servers),
    ("lab it", &[""], Need::Servers),
    // Configurations of thousands of directives, and a configuration for each directive that is known.
    (
        "import unit",
        &["growth::twice", "planted::what_is_planted"],
        Need::Time,
    ),
    // Hundreds of simulated experiments.
    (
        "lab unit",
        &["no_simulated_plan_shows", "core_share::simulated"],
        Need::Time,
    ),
    ("tier it", &[""], Need::Servers),
];
