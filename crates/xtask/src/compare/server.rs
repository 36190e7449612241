//! Starting a server on a core of its own and stopping it again.
//!
//! Each server has a temporary directory with its configuration and its log. It is stopped when its
//! [`Server`] is dropped, and by the kernel should this process be killed first.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use catamaran_gauge::memory::{self, Shares};
use catamaran_gauge::process;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::pause;

/// A running server, which may be several processes.
#[derive(Debug)]
pub(super) struct Server {
    name: &'static str,
    child: Child,
    directory: TempDir,
}

impl Server {
    /// Starts `command` (a program and its arguments) on `core`. What it prints goes to [`LOG`] in
    /// `directory`.
    pub(super) fn start(
        name: &'static str,
        command: &[&str],
        core: usize,
        directory: TempDir,
    ) -> anyhow::Result<Self> {
        let log = File::create(directory.path().join(LOG))?;
        // Both programs replace themselves by the next, so the child is the server.
        let child = Command::new("taskset")
            .args(["--cpu-list", &core.to_string()])
            .args(["setpriv", "--pdeathsig", "TERM"])
            .args(command)
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stderr(log.try_clone()?)
            .stdout(log)
            .spawn()
            .with_context(|| format!("cannot start {name} with taskset"))?;
        Ok(Self {
            name,
            child,
            directory,
        })
    }

    /// The root of its processes.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The memory of all its processes together.
    pub(super) fn memory(&self) -> anyhow::Result<Shares> {
        Ok(memory::shares(&process::tree(self.pid())?)?)
    }

    /// What it has printed.
    pub(super) fn log(&self) -> String {
        let log = self.directory.path().join(LOG);
        String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned()
    }

    /// Asks `ready` until it has an answer; fails with the server's log when it ends or takes
    /// longer than [`START_LIMIT`].
    pub(super) fn wait_until<T>(
        &mut self,
        mut ready: impl FnMut(&Self) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let mut waited = Duration::ZERO;
        loop {
            let error = match ready(self) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let ended = self.child.try_wait()?;
            if ended.is_some() || waited > START_LIMIT {
                let name = self.name;
                bail!("{name} did not start: {error:#}\n{}", self.log());
            }
            pause(POLL);
            waited += POLL;
        }
    }

    /// Whether it ends within [`STOP_LIMIT`] after `signal`.
    fn ends_on(&mut self, signal: Signal) -> bool {
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            // It may have ended by itself; that is seen below.
            let _ = kill_process(pid, signal);
        }
        let mut waited = Duration::ZERO;
        while waited < STOP_LIMIT {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return true;
            }
            pause(POLL);
            waited += POLL;
        }
        false
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A second TERM tells a front that still drains to quit.
        if self.ends_on(Signal::TERM) || self.ends_on(Signal::TERM) {
            return;
        }
        for pid in process::tree(self.child.id()).unwrap_or_default() {
            if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        let _ = self.child.wait();
    }
}

/// A directory for a server's files, which any user may enter: servers started by root serve as
/// another user.
pub(super) fn directory() -> anyhow::Result<TempDir> {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::Builder::new()
        .prefix("catamaran-compare-")
        .permissions(fs::Permissions::from_mode(0o755))
        .tempdir()?;
    Ok(directory)
}

/// An address that nobody listens on now, for servers that cannot choose one themselves.
pub(super) fn unused_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// Writes a file into a server's directory and returns its path.
pub(super) fn write(directory: &Path, name: &str, text: &str) -> anyhow::Result<String> {
    let path = directory.join(name);
    fs::write(&path, text).with_context(|| path.display().to_string())?;
    Ok(path.to_string_lossy().into_owned())
}

/// Standard output and standard error of a server.
pub(super) const LOG: &str = "output.log";

/// Java on a busy machine takes longest.
const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_ends_fails_with_what_it_said() {
        let command = ["sh", "-c", "echo no such port >&2"];
        let mut server = Server::start("sh", &command, 0, directory().unwrap()).unwrap();
        let never = |_: &Server| -> anyhow::Result<()> { bail!("nobody listens") };
        let error = server.wait_until(never).unwrap_err().to_string();
        assert!(error.contains("nobody listens"), "{error}");
        assert!(error.contains("no such port"), "{error}");
    }

    #[test]
    fn a_dropped_server_is_gone_with_its_directory() {
        let server = Server::start("sleep", &["sleep", "600"], 0, directory().unwrap()).unwrap();
        let (pid, directory) = (server.pid(), server.directory.path().to_owned());
        drop(server);
        assert!(!directory.exists());
        assert!(process::tree(pid).unwrap().is_empty());
    }
}
