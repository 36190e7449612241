//! A load generator that is waited for, unless a signal asks for the end; it may tell on its way how far it
//! is.

use std::io::{BufRead as _, BufReader, Read as _};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use catamaran_load::document::Tick;
use catamaran_tier::{Job, Signal, Space};

use super::DriveFault;
use crate::extra::now;

/// How a child has ended.
pub(super) struct ChildExit {
    pub(super) code: Option<i32>,
    /// Its exit code or signal in words.
    pub(super) how: String,
    /// What it printed on standard output.
    pub(super) printed: String,
    /// Its standard error, without the lines of progress.
    pub(super) said: String,
    /// Whether we have asked it to end.
    was_told: bool,
}

impl ChildExit {
    /// Returns a fault unless its exit code is one of `fine`, or we have asked it to end.
    pub(super) fn unless(self, fine: &[i32]) -> Result<(), DriveFault> {
        if self.was_told || self.code.is_some_and(|code| fine.contains(&code)) {
            return Ok(());
        }
        let Self { how, said, .. } = self;
        Err(DriveFault::Load { how, said })
    }
}

/// Runs a job in the space until it ends, or until `heard` breaks when it tells how far it is.
pub(super) fn run(
    space: &Space,
    job: &Job<'_>,
    stop: &AtomicBool,
    mut heard: impl FnMut(Tick) -> ControlFlow<()>,
) -> Result<ChildExit, DriveFault> {
    let mut task = space.run(job)?;
    let (sender, lines) = sync_channel(LINES);
    let stderr = task.child.stderr.take();
    let stdout = task.child.stdout.take();
    // Both are read to their end, which comes with the child's: a full pipe would hold it up.
    let open = sender.clone();
    let printing = thread::spawn(move || {
        let mut bytes = Vec::new();
        // What cannot be read has not been printed.
        let _ = stdout.map(|pipe| pipe.take(PRINTED_MAX).read_to_end(&mut bytes));
        drop(open);
        bytes
    });
    thread::spawn(move || {
        let lines = stderr
            .into_iter()
            .flat_map(|pipe| BufReader::new(pipe).lines());
        for line in lines.map_while(Result::ok) {
            // When nobody hears it any more, it still goes on reading.
            let _ = sender.send(line);
        }
    });
    let mut said = String::new();
    let mut told = None;
    loop {
        if stop.load(Ordering::Relaxed) {
            task.kill();
            return Err(DriveFault::Interrupted);
        }
        if told.is_some_and(|at| now().duration_since(at) > PATIENCE) {
            task.kill();
        }
        let line = match lines.recv_timeout(LOOK) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        match serde_json::from_str(&line) {
            Ok(tick) if told.is_none() && heard(tick).is_break() => {
                task.signal(Signal::Term);
                told = Some(now());
            }
            Ok(_) => {}
            Err(_) if said.len() < SAID_MAX => said += &(line + "\n"),
            Err(_) => {}
        }
    }
    // A reader that has panicked has nothing to tell either.
    let printed = printing.join().unwrap_or_default();
    let status = task.child.wait();
    let code = status.as_ref().ok().and_then(|status| status.code());
    Ok(ChildExit {
        code,
        how: status.map_or_else(|error| error.to_string(), |status| status.to_string()),
        printed: String::from_utf8_lossy(&printed).into_owned(),
        said: said.trim().to_owned(),
        was_told: told.is_some(),
    })
}

/// Exit codes of a load that was driven: 1 tells of failed requests, which gates judge.
pub(super) const DRIVEN: [i32; 2] = [0, 1];
/// The interval at which we check for a signal.
const LOOK: Duration = Duration::from_millis(100);
/// The time that it has to end once it is asked to.
const PATIENCE: Duration = Duration::from_secs(3);
/// Lines that wait to be heard.
const LINES: usize = 16;
/// The most bytes of standard output that are read; nothing that we start prints more.
const PRINTED_MAX: u64 = 1 << 20;
/// The most bytes of standard error that are kept.
const SAID_MAX: usize = 1 << 16;
