//! A child process that a test can watch and that cannot outlive it.
//!
//! Output is captured line by line while the child runs. Dropping a [`Process`] kills its whole
//! process group and waits for it. A [`Process`] in a static is never dropped, and a test binary may itself be
//! killed. Therefore each child has a guard: a shell that waits for the end of a pipe that only this process holds
//! open, and then kills the group and removes the child's directory.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use anyhow::{Context, anyhow, bail};
use tempfile::TempDir;

use crate::{Deadline, Expired};

/// A running child process with captured output.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    guard: Child,
    captured: Arc<Captured>,
    readers: Vec<JoinHandle<()>>,
    directory: Option<TempDir>,
}

/// The signals that tests send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM
    Terminate,
    /// SIGINT
    Interrupt,
    /// SIGHUP
    Hangup,
    /// SIGUSR1
    User1,
    /// SIGUSR2
    User2,
    /// SIGKILL
    Kill,
    /// SIGSTOP: the process stands still, its sockets stay open
    Stop,
    /// SIGCONT
    Continue,
}

#[derive(Debug, Default)]
struct Captured {
    // A std mutex: held to push or copy lines, never while waiting for the child.
    state: Mutex<Lines>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Lines {
    stdout: Vec<String>,
    stderr: Vec<String>,
    /// The number of output pipes that are still being read.
    open: usize,
}

#[derive(Clone, Copy)]
enum Stream {
    Out,
    Err,
}

impl Process {
    /// Starts `command` with captured output and no input.
    ///
    /// # Errors
    /// The program cannot be started; the message has its name.
    pub fn spawn(command: &mut Command) -> anyhow::Result<Self> {
        Self::start(command, None)
    }

    /// Like [`Process::spawn`]; the child owns `directory`, which is removed when the [`Process`] is dropped.
    ///
    /// # Errors
    /// The program cannot be started; the message has its name.
    pub fn spawn_in(command: &mut Command, directory: TempDir) -> anyhow::Result<Self> {
        Self::start(command, Some(directory))
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The directory given to [`Process::spawn_in`].
    ///
    /// # Panics
    /// When the process was started without one.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory
            .as_ref()
            .expect("only asked of a process with a directory")
            .path()
    }

    /// Waits for the first line on stdout or stderr for which `wanted` says `Some`.
    ///
    /// # Errors
    /// The child closed both outputs or the deadline passed; the message has all output so far.
    pub fn wait_for_line<T>(
        &self,
        what: &str,
        mut wanted: impl FnMut(&str) -> Option<T>,
    ) -> anyhow::Result<T> {
        let deadline = Deadline::default();
        let mut state = self.captured.lock();
        loop {
            let mut lines = state.stdout.iter().chain(&state.stderr);
            if let Some(value) = lines.find_map(|line| wanted(line)) {
                return Ok(value);
            }
            if state.open == 0 {
                let error = anyhow!("{} ended without {what}", self.name);
                return Err(error.context(state.text()));
            }
            let Some(left) = deadline.remaining() else {
                let error = anyhow!("{}: {}", self.name, Expired(what.to_owned()));
                return Err(error.context(state.text()));
            };
            let result = self.captured.changed.wait_timeout(state, left);
            state = result.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// All text written to stdout so far.
    #[must_use]
    pub fn stdout(&self) -> String {
        joined(&self.captured.lock().stdout)
    }

    /// All text written to stderr so far.
    #[must_use]
    pub fn stderr(&self) -> String {
        joined(&self.captured.lock().stderr)
    }

    /// Sends `signal` to the process itself, not to its children.
    ///
    /// # Errors
    /// The process has ended, or `kill` is missing.
    pub fn signal(&mut self, signal: Signal) -> anyhow::Result<()> {
        if self.child.try_wait()?.is_some() {
            bail!("{} has already ended", self.name);
        }
        send(signal, &self.child.id().to_string())
    }

    /// The exit status if the process has ended.
    ///
    /// # Errors
    /// The system cannot tell.
    pub fn try_wait(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Waits for the end of the process and of its output.
    ///
    /// # Errors
    /// It still runs at the deadline; the message has all output so far.
    pub fn wait(&mut self, deadline: Deadline) -> anyhow::Result<ExitStatus> {
        let child = &mut self.child;
        let status = deadline
            .poll(format!("the end of {}", self.name), || {
                child.try_wait().transpose()
            })
            .with_context(|| self.captured.lock().text())??;
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
        Ok(status)
    }

    fn start(command: &mut Command, directory: Option<TempDir>) -> anyhow::Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let guard = match guard(child.id(), directory.as_ref().map(TempDir::path)) {
            Ok(guard) => guard,
            Err(error) => {
                child.kill()?;
                child.wait()?;
                return Err(error);
            }
        };
        let captured = Arc::new(Captured::default());
        captured.lock().open = 2;
        let stdout = child
            .stdout
            .take()
            .map(|pipe| captured.read(pipe, Stream::Out));
        let stderr = child
            .stderr
            .take()
            .map(|pipe| captured.read(pipe, Stream::Err));
        Ok(Self {
            name,
            child,
            guard,
            captured,
            readers: stdout.into_iter().chain(stderr).collect(),
            directory,
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The guard is ended first, because it kills by process id, which another process may get soon.
        let _ = self.guard.kill();
        let _ = self.guard.wait();
        // The group, because servers such as httpd have children of their own. Its id is not given
        // to another process while it has members or its leader has not been waited for.
        if send(Signal::Kill, &format!("-{}", self.child.id())).is_err() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

impl Captured {
    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(self: &Arc<Self>, pipe: impl Read + Send + 'static, stream: Stream) -> JoinHandle<()> {
        let captured = Arc::clone(self);
        thread::spawn(move || {
            let mut pipe = BufReader::new(pipe);
            let mut line = Vec::new();
            while matches!(pipe.read_until(b'\n', &mut line), Ok(1..)) {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                line.clear();
                let mut state = captured.lock();
                match stream {
                    Stream::Out => state.stdout.push(text),
                    Stream::Err => state.stderr.push(text),
                }
                captured.changed.notify_all();
            }
            captured.lock().open -= 1;
            captured.changed.notify_all();
        })
    }
}

impl Lines {
    fn text(&self) -> String {
        let mut text = String::new();
        let _ = write!(
            text,
            "--- stdout\n{}--- stderr\n{}",
            joined(&self.stdout),
            joined(&self.stderr)
        );
        text
    }
}

impl Signal {
    fn name(self) -> &'static str {
        match self {
            Self::Terminate => "TERM",
            Self::Interrupt => "INT",
            Self::Hangup => "HUP",
            Self::User1 => "USR1",
            Self::User2 => "USR2",
            Self::Kill => "KILL",
            Self::Stop => "STOP",
            Self::Continue => "CONT",
        }
    }
}

fn joined(lines: &[String]) -> String {
    lines.iter().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{line}");
        text
    })
}

/// Sends `signal` to a process that is not a child of this one, such as the one that took a child's
/// place.
///
/// # Errors
/// There is no such process, or `kill` is missing.
pub fn signal_process(id: u32, signal: Signal) -> anyhow::Result<()> {
    send(signal, &id.to_string())
}

/// Sends a signal by the shell's own `kill`, because the standard library can only send SIGKILL.
fn send(signal: Signal, target: &str) -> anyhow::Result<()> {
    let output = Command::new("sh")
        .args([
            "-c",
            "kill -s \"$1\" -- \"$2\"",
            "sh",
            signal.name(),
            target,
        ])
        .output()
        .context("cannot run sh")?;
    if !output.status.success() {
        bail!("kill: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// Starts a shell that ends the process group `id` and removes `directory` when this process is gone.
fn guard(id: u32, directory: Option<&Path>) -> anyhow::Result<Child> {
    let mut command = Command::new("sh");
    command
        .args([
            "-c",
            "read -r _; kill -s KILL -- \"-$1\"; rm -rf -- \"${2-}\"",
            "sh",
        ])
        .arg(id.to_string())
        .args(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    command.spawn().context("cannot start sh")
}

#[cfg(test)]
mod tests;
