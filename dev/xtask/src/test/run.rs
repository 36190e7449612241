//! Running test programs several at a time, because most wait rather than compute.
//!
//! The output of a program is shown if it fails; the name of a test that fails is printed at once.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context as _, ensure};

use super::times::{ProgramTimes, Times};
use crate::step::{now, say};

/// A test program to run.
#[derive(Debug)]
pub(super) struct Job {
    name: String,
    command: Command,
}

impl Job {
    pub(super) fn new(name: &str, command: Command) -> Self {
        Self {
            name: name.to_owned(),
            command,
        }
    }

    /// The job for the examples in the documentation. Cargo compiles them when it runs them.
    pub(super) fn of_documentation(root: &Path) -> Self {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command
            .args(["test", "--workspace", "--doc", "--quiet", "--no-fail-fast"])
            .current_dir(root);
        Self::new("documentation", command)
    }

    /// Runs the job; returns its times, and whether it passed.
    fn run(mut self) -> anyhow::Result<(ProgramTimes, bool)> {
        let start = now();
        let (reader, writer) = std::io::pipe()?;
        self.command
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer);
        let mut child = self.command.spawn().with_context(|| self.name.clone())?;
        // The command holds a writing end of the pipe; while it is open, reading would not end.
        drop(self.command);
        let mut times = ProgramTimes::new(&self.name);
        let mut output = String::new();
        for line in BufReader::new(reader).split(b'\n') {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            times.read(&line);
            if line.starts_with("test ") && line.contains(" ... FAILED") {
                say(&format!("{}: {line}", self.name));
            }
            output.push_str(&line);
            output.push('\n');
        }
        let passed = child.wait()?.success();
        times.seconds = now().duration_since(start).as_secs_f64();
        if !passed {
            say(&format!("--- {} failed\n{output}---", self.name));
        }
        say(&times.line(passed));
        Ok((times, passed))
    }
}

/// Runs all jobs: first those of [`ALONE`], one at a time, then the others in their order, a few at a time. An error names
/// those that failed.
pub(super) fn run_all(jobs: Vec<Job>, times: &mut Times) -> anyhow::Result<()> {
    let runs_alone = |job: &Job| ALONE.contains(&&*job.name);
    let (alone, together): (Vec<_>, Vec<_>) = jobs.into_iter().partition(runs_alone);
    let mut results_alone = Vec::new();
    for job in alone {
        results_alone.push(job.run()?);
    }
    let mut results = run_in_lanes(together)?;
    results.extend(results_alone);
    let mut failed = Vec::new();
    for (program, passed) in results {
        if !passed {
            failed.push(program.name.clone());
        }
        times.programs.push(program);
    }
    ensure!(failed.is_empty(), "these failed: {}", failed.join(", "));
    Ok(())
}

/// Runs jobs in several threads, each of which takes the next job when it has finished one.
fn run_in_lanes(jobs: Vec<Job>) -> anyhow::Result<Vec<(ProgramTimes, bool)>> {
    let waiting = Mutex::new(VecDeque::from(jobs));
    let next_job = || {
        let mut queue = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        queue.pop_front()
    };
    let run_lane = || {
        let mut results = Vec::new();
        while let Some(job) = next_job() {
            results.push(job.run()?);
        }
        anyhow::Ok(results)
    };
    thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES).map(|_| scope.spawn(run_lane)).collect();
        let mut results = Vec::new();
        for lane in lanes {
            results.extend(lane.join().expect("no lane panics")?);
        }
        Ok(results)
    })
}

/// How many programs run at a time. One of them, with as many tests at a time as there are cores, keeps a third of two
/// cores busy.
const LANES: usize = 3;

/// Programs that run without others beside them: the lab's tests, which measure, and the end-to-end tests,
/// whose servers and browsers have deadlines.
const ALONE: [&str; 2] = ["lab it", "e2e it"];
