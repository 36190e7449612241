//! Runs a load generator to its end, or until a signal asks for the end, and passes on the lines of
//! progress that it prints.

use std::io::{BufRead as _, BufReader, Read as _};
use std::ops::ControlFlow;
use std::process::{ChildStderr, ChildStdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use catamaran_load::document::Tick;
use catamaran_tier::{Job, Signal, Space};

use super::DriveFault;
use crate::extra::now;

/// The exit of a child process, with its output.
pub(super) struct ChildExit {
    pub(super) code: Option<i32>,
    /// The exit code or signal in words.
    pub(super) how: String,
    /// The child's standard output.
    pub(super) printed: String,
    /// The child's standard error, without the lines of progress.
    pub(super) said: String,
    /// Whether this program has asked the child to end.
    is_ended_by_us: bool,
}

impl ChildExit {
    /// A fault if the exit code is not in `fine`, unless this program has asked the child to end.
    pub(super) fn check_code(self, fine: &[i32]) -> Result<(), DriveFault> {
        if self.is_ended_by_us || self.code.is_some_and(|code| fine.contains(&code)) {
            return Ok(());
        }
        let Self { how, said, .. } = self;
        Err(DriveFault::Load { how, said })
    }
}

/// Runs a job in the space until it ends, a signal asks for the end, or `on_tick` breaks at a line of progress.
pub(super) fn run(
    space: &Space,
    job: &Job<'_>,
    stop: &AtomicBool,
    mut on_tick: impl FnMut(Tick) -> ControlFlow<()>,
) -> Result<ChildExit, DriveFault> {
    let mut task = space.run(job)?;
    // Only `lines` carries data. Standard output has a sender so that its end, too, is waited for.
    let (sender, lines) = sync_channel(LINES);
    let (stdout, stderr) = (task.child.stdout.take(), task.child.stderr.take());
    // Both pipes are read to their end, since a full pipe would block the child. `lines` ends when both threads have
    // dropped their sender.
    let stdout_reader = read_stdout(stdout, sender.clone());
    forward_lines(stderr, sender);
    let mut said = String::new();
    let mut term_sent_at = None;
    loop {
        if stop.load(Ordering::Relaxed) {
            task.kill();
            return Err(DriveFault::Interrupted);
        }
        if term_sent_at.is_some_and(|at| now().duration_since(at) > PATIENCE) {
            task.kill();
        }
        let line = match lines.recv_timeout(LOOK) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        // A line that is not a tick is a message.
        match serde_json::from_str(&line) {
            Ok(tick) => {
                if term_sent_at.is_none() && on_tick(tick).is_break() {
                    task.signal(Signal::Term);
                    term_sent_at = Some(now());
                }
            }
            Err(_) if said.len() < SAID_MAX => said += &(line + "\n"),
            Err(_) => {}
        }
    }
    // If the reader has panicked, the output counts as empty.
    let printed = stdout_reader.join().unwrap_or_default();
    let status = task.child.wait();
    let code = status.as_ref().ok().and_then(|status| status.code());
    Ok(ChildExit {
        code,
        how: status.map_or_else(|error| error.to_string(), |status| status.to_string()),
        printed: String::from_utf8_lossy(&printed).into_owned(),
        said: said.trim().to_owned(),
        is_ended_by_us: term_sent_at.is_some(),
    })
}

/// Reads the standard output of a child to its end, or up to [`PRINTED_MAX`]. Then drops `sender`, to which it sends
/// nothing: its receiver learns that the output has ended.
fn read_stdout(stdout: Option<ChildStdout>, sender: SyncSender<String>) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // If the pipe cannot be read, it counts as empty.
        let _ = stdout.map(|pipe| pipe.take(PRINTED_MAX).read_to_end(&mut bytes));
        drop(sender);
        bytes
    })
}

/// Sends each line of a child's standard error, until its end.
fn forward_lines(stderr: Option<ChildStderr>, sender: SyncSender<String>) {
    thread::spawn(move || {
        let Some(pipe) = stderr else {
            return;
        };
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            // Reading continues without a receiver, so that the pipe does not fill up.
            let _ = sender.send(line);
        }
    });
}

/// The exit codes of `bench` after a load that ran to its end: 1 means that requests failed, which gates judge.
pub(super) const DRIVEN: [i32; 2] = [0, 1];
/// The interval at which signals are checked for.
const LOOK: Duration = Duration::from_millis(100);
/// The time that the child has to end after it was asked to.
const PATIENCE: Duration = Duration::from_secs(3);
/// The most lines of progress that wait to be handled.
const LINES: usize = 16;
/// The most bytes of standard output that are read; no child here prints more.
const PRINTED_MAX: u64 = 1 << 20;
/// The most bytes of standard error that are kept.
const SAID_MAX: usize = 1 << 16;
