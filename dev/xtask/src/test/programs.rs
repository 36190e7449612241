//! The test programs of the workspace, and which of their tests need servers or root.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::Context;
use cargo_metadata::{Message, TargetKind};

use super::bare::Bare;
use super::run::Job;
use super::{BINARY, Selection};
use crate::step::cargo;

/// A built program of tests, or a part of one: its tests that need servers or root, or its other tests.
#[derive(Debug)]
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
    /// Whether the tests of this part need servers or root.
    pub(super) needs_servers: bool,
}

/// Builds all test programs: first those of `tests` folders, which take the longest, those with the most tests first.
pub(super) fn build(root: &Path) -> anyhow::Result<Vec<Program>> {
    let build = ["test", "--workspace", "--no-run", "--quiet"];
    let messages = cargo(root, &build)
        .args(&["--message-format", "json-render-diagnostics"])
        .output_beside_stderr()?;
    let mut programs = Vec::new();
    for message in Message::parse_stream(messages.as_bytes()) {
        let Message::CompilerArtifact(artifact) = message? else {
            continue;
        };
        if let Some(executable) = &artifact.executable
            && artifact.profile.test
        {
            let folder = artifact
                .manifest_path
                .parent()
                .context("a manifest has a folder")?;
            let is_benchmark = artifact.target.kind.contains(&TargetKind::Bench);
            let target = match artifact.target.kind[0] {
                TargetKind::Test | TargetKind::Bench => &artifact.target.name,
                _ => "unit",
            };
            let executable = PathBuf::from(executable);
            let program = Program {
                name: format!("{} {target}", folder.file_name().unwrap_or_default()),
                folder: folder.into(),
                tests: tests(&executable, is_benchmark)?,
                executable,
                is_part: false,
                is_benchmark,
                needs_servers: false,
            };
            programs.extend(program.split());
        }
    }
    programs.sort_by_key(|program| {
        let is_unit = program.name.ends_with(" unit");
        (is_unit, std::cmp::Reverse(program.tests.len()))
    });
    Ok(programs)
}

impl Program {
    /// Splits the program into its tests that need servers or root, and the others.
    fn split(mut self) -> impl Iterator<Item = Self> {
        let row = NEEDY.iter().find(|(program, _)| *program == self.name);
        let parts = row.map_or(&[][..], |(_, parts)| *parts);
        let is_needy = |test: &String| parts.iter().any(|part| test.contains(part));
        let (needy, others): (Vec<_>, Vec<_>) = self.tests.drain(..).partition(is_needy);
        let is_part = !needy.is_empty() && !others.is_empty();
        let needy = Self {
            name: self.name.clone(),
            folder: self.folder.clone(),
            executable: self.executable.clone(),
            tests: needy,
            is_part,
            is_benchmark: false,
            needs_servers: true,
        };
        let others = Self {
            tests: others,
            is_part,
            ..self
        };
        let all = [needy, others].into_iter();
        all.filter(|program| program.is_benchmark || !program.tests.is_empty())
    }

    /// Keeps the tests of `selection`; returns `false` if there are none.
    pub(super) fn select(&mut self, selection: Selection<'_>) -> bool {
        match selection {
            Selection::All => true,
            Selection::Fast => !self.needs_servers,
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
        if !self.needs_servers {
            threads *= THREADS_WITHOUT_SERVERS;
            words = bare.wrap(words);
        }
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .current_dir(&self.folder)
            // Without it a stable compiler's tests do not say their times.
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
    let output = Command::new(executable).arg("--list").output();
    let output = output.with_context(|| executable.display().to_string())?;
    let lines = String::from_utf8(output.stdout)?;
    let names = lines.lines().filter_map(|line| line.strip_suffix(": test"));
    Ok(names.map(str::to_owned).collect())
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// How many such tests run at a time for each core: most of them wait.
const THREADS_WITHOUT_SERVERS: usize = 3;

/// The test programs with tests that need servers or root, and parts of the names of those tests. All others are run
/// without both ([`Bare`]), so a test that ought to be here fails.
const NEEDY: &[(&str, &[&str])] = &[
    // Cgroups and network namespaces; completions in the shells that are installed.
    ("cli it", &["doctor::each_l", "generate::"]),
    ("e2e it", &[""]),
    // The kernel may refuse a filter to others than root.
    ("proxy it", &["drain::whoever_could_connect_is_served"]),
    ("gauge it", &[""]),
    ("gauge unit", &["strace::"]),
    ("lab it", &[""]),
    ("tier it", &[""]),
];
