//! A child process that is waited for, unless a signal asks for the end.

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use catamaran_tier::{Job, Space};

use super::DriveFault;

/// How a child has ended.
pub(super) struct Ended {
    pub(super) code: Option<i32>,
    /// The same in words.
    pub(super) how: String,
    /// What it printed on standard output.
    pub(super) printed: String,
    /// The end of what it said on standard error.
    pub(super) said: String,
}

/// Runs a job in the space until it ends.
pub(super) fn run(space: &Space, job: &Job<'_>, stop: &AtomicBool) -> Result<Ended, DriveFault> {
    let mut task = space.run(job)?;
    let (ended, end) = sync_channel(2);
    let stderr = task.child.stderr.take();
    let stdout = task.child.stdout.take();
    // Both are read to their end, which comes with the child's.
    let readers = [
        stdout.map(|pipe| read(pipe, ended.clone())),
        stderr.map(|pipe| read(pipe, ended)),
    ];
    loop {
        match end.recv_timeout(LOOK) {
            Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                task.kill();
                return Err(DriveFault::Interrupted);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            _ => {}
        }
    }
    let [printed, said] =
        readers.map(|reader| reader.and_then(|it| it.join().ok()).unwrap_or_default());
    let status = task.child.wait();
    let code = status.as_ref().ok().and_then(|status| status.code());
    let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
    Ok(Ended {
        code,
        how,
        printed: String::from_utf8_lossy(&printed).into_owned(),
        said: String::from_utf8_lossy(&said).trim().to_owned(),
    })
}

/// Reads a pipe to its end; the sender is dropped then.
fn read(pipe: impl Read + Send + 'static, ended: SyncSender<()>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What cannot be read has not been said.
        let _ = pipe.take(SAID_MAX).read_to_end(&mut bytes);
        drop(ended);
        bytes
    })
}

/// How often a signal is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// Nothing that we start says more.
const SAID_MAX: u64 = 1 << 20;
