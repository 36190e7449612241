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
    said: BufReader<ChildStdout>,
    pub(super) clients: u64,
}

impl CrowdProcess {
    /// Starts a crowd, and waits until all clients are connected and the idle ones have their first response.
    pub(super) fn start(
        catamaran: &Path,
        space: &Space,
        load: &Load,
        wanted: &Crowd,
    ) -> Result<Self, DriveFault> {
        let every = wanted.every.map_or_else(
            || "never".to_owned(),
            |every| format!("{}ms", every.as_millis()),
        );
        let url = wanted.url.as_ref().unwrap_or(&load.url);
        let clients = wanted.clients.to_string();
        let kind = wanted.kind.name();
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
            priority: wanted.nice.map_or(Priority::Inherited, Priority::Nice),
            limit: None,
            command: &command,
        })?;
        let fault = |what: String| DriveFault::Crowd(what);
        let stdout = task.child.stdout.take();
        let stdout = stdout.ok_or_else(|| fault("its output cannot be read".to_owned()))?;
        let mut said = BufReader::new(stdout);
        let mut line = String::new();
        let read = said.read_line(&mut line);
        if read.is_err() || line.trim() != READY {
            let mut why = String::new();
            if let Some(stderr) = task.child.stderr.take() {
                // An error is ignored: what was read before it is better than nothing.
                let _ = stderr.take(4096).read_to_string(&mut why);
            }
            return Err(fault(why.trim().to_owned()));
        }
        Ok(Self {
            task,
            said,
            clients: wanted.clients,
        })
    }

    /// Ends all connections of the crowd, and returns its counts; `None` if it has ended before.
    pub(super) fn end(mut self) -> Option<Tally> {
        self.task.signal(Signal::Term);
        let mut line = String::new();
        self.said.read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }
}

/// The line that a crowd prints once all its clients are connected.
pub const READY: &str = "ready";
