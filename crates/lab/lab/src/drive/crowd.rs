//! The crowd of a run: slow clients in a process of their own, so that they take no time from load and lab.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::ChildStdout;

use catamaran_tier::{Job, Priority, Signal, Space, Task};

use super::DriveFault;
use crate::experiment::{Crowd, Load};
use crate::extra::crowd::Tally;

/// A crowd whose clients are connected.
pub(super) struct CrowdProcess {
    task: Task,
    stdout: BufReader<ChildStdout>,
    pub(super) clients: u64,
}

impl CrowdProcess {
    /// Starts a crowd, and waits until all clients are connected and the idle ones have their first response.
    pub(super) fn start(
        catamaran: &Path,
        space: &Space,
        load: &Load,
        crowd: &Crowd,
    ) -> Result<Self, DriveFault> {
        let every = match crowd.every {
            Some(every) => format!("{}ms", every.as_millis()),
            None => "never".to_owned(),
        };
        let url = crowd.url.as_ref().unwrap_or(&load.url);
        let clients = crowd.clients.to_string();
        let kind = crowd.kind.name();
        let program = catamaran.display().to_string();
        let command = [
            program.as_str(),
            "lab",
            "extra",
            "crowd",
            "--kind",
            kind,
            "--clients",
            &clients,
            "--every",
            &every,
            url,
        ]
        .map(str::to_owned);
        let mut task = space.run(&Job {
            name: "crowd",
            core: load.core,
            priority: crowd.nice.map_or(Priority::Inherited, Priority::Nice),
            limit: None,
            command: &command,
        })?;
        let Some(pipe) = task.child.stdout.take() else {
            let why = "its output cannot be read";
            return Err(DriveFault::Crowd(why.to_owned()));
        };
        let mut stdout = BufReader::new(pipe);
        let mut line = String::new();
        // The first line is printed once all clients are connected.
        let read = stdout.read_line(&mut line);
        if read.is_err() || line.trim() != READY {
            let mut why = String::new();
            if let Some(stderr) = task.child.stderr.take() {
                // An error is ignored: what was read before it is better than nothing.
                let _ = stderr.take(4096).read_to_string(&mut why);
            }
            return Err(DriveFault::Crowd(why.trim().to_owned()));
        }
        Ok(Self {
            task,
            stdout,
            clients: crowd.clients,
        })
    }

    /// Ends all connections of the crowd, and returns its counts; `None` if it has ended before.
    pub(super) fn end(mut self) -> Option<Tally> {
        self.task.signal(Signal::Term);
        let mut line = String::new();
        self.stdout.read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }
}

/// The line that a crowd prints once all its clients are connected.
pub const READY: &str = "ready";
