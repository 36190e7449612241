//! Hands the listeners over to a new process of the same command, so that a new binary can be started without losing a
//! request.
//!
//! An environment variable tells the new process that its standard input is its end of the handover. When it has asked,
//! the listening sockets are sent to it there, and it sends the message that it serves. Until that message arrives this
//! process serves as before; if it never arrives, this process goes on. Until it serves, the new process has a process
//! group of its own. That group is killed if the upgrade fails, because whatever started the new process, or was
//! started by it, may hang as well.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fs, io};

use catamaran_proxy::{Inheritance, Offer, Running, TakenListeners};
use rustix::process::{Pid, Signal, getppid, kill_process_group, setpgid};

use crate::failure::Failure;

/// The outcome of an upgrade: the listeners that were taken over and the id of the process that has them, or
/// the reason why it failed.
pub(crate) type Outcome = Result<(TakenListeners, u32), String>;

/// An upgrade that has begun and not ended.
pub(crate) struct PendingUpgrade {
    /// The new process. The mutex lets [`PendingUpgrade::abandon`] signal it while the thread of the upgrade waits
    /// for it.
    child: Arc<Mutex<Child>>,
}

/// As [`begin`], but a failure to start is logged, kept for the status, and returned as `None`.
pub(crate) fn try_begin<E>(running: &Running, report: SyncSender<E>) -> Option<PendingUpgrade>
where
    E: From<Outcome> + Send + 'static,
{
    running.note_upgrade();
    match begin(running, report) {
        Ok(pending) => Some(pending),
        Err(error) => {
            running.note_failed_upgrade(&error.to_string());
            tracing::error!("cannot upgrade: {error}; nothing changed");
            None
        }
    }
}

/// Starts the new process, and a thread that waits for it and sends the outcome to `report`.
fn begin<E>(running: &Running, report: SyncSender<E>) -> io::Result<PendingUpgrade>
where
    E: From<Outcome> + Send + 'static,
{
    let (offer, end_of_child) = running.offer()?;
    let child = Arc::new(Mutex::new(spawn(end_of_child, running.served_since())?));
    let pending = PendingUpgrade {
        child: Arc::clone(&child),
    };
    let thread = std::thread::Builder::new().name("upgrade".into());
    thread.spawn(move || {
        // If this process is about to end, the receiver is gone.
        report.send(wait(offer, &child).into()).ok();
    })?;
    Ok(pending)
}

impl PendingUpgrade {
    /// Asks the new process and what it started to end (SIGTERM); if it serves already, it ends in an orderly way.
    pub(crate) fn abandon(&self) {
        end(&lock(&self.child), Signal::TERM);
    }
}

/// Sends a signal to the process group of the new process.
fn end(child: &Child, signal: Signal) {
    if let Err(error) = kill_process_group(Pid::from_child(child), signal) {
        tracing::debug!(%error, "the new process has ended already");
    }
}

/// Whether another process started this one to be replaced by it.
fn is_successor() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|value| value == STDIN)
}

/// The listeners that the previous process hands over; none if this process was not started to take over.
pub(crate) fn inheritance() -> Result<Inheritance, Failure> {
    if !is_successor() {
        return Ok(Inheritance::default());
    }
    let channel = io::stdin().as_fd().try_clone_to_owned();
    let mut inheritance = channel.and_then(Inheritance::receive).map_err(|error| {
        Failure::Fault(format!(
            "{VARIABLE} is set, but standard input hands no listeners over ({error}); unset it"
        ))
    })?;
    if let Some(since) = std::env::var_os(SINCE).and_then(|value| value.to_str()?.parse().ok()) {
        inheritance.serves_since(since);
    }
    Ok(inheritance)
}

/// The process group of the process that this one is to replace; `None` if this one replaces none.
///
/// Call this before this process serves: then the other process may end at any time, and the parent of this one is
/// another process.
pub(crate) fn group_of_predecessor() -> Option<Pid> {
    group_of(getppid().filter(|_| is_successor())?)
}

/// Moves this process to the process group of its predecessor. Call this when it serves, so that signals to the old
/// group, from a terminal or from a supervisor, reach this process.
pub(crate) fn join_group(group: Pid) {
    // This fails if no process is left in the group; then there is nobody whose signals could matter.
    setpgid(None, Some(group)).ok();
}

/// The process group of a process; `None` if the process has ended, or if its group belongs to another PID namespace.
///
/// rustix's `getpgid` panics in the latter case.
fn group_of(process: Pid) -> Option<Pid> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).ok()?;
    // Fields are separated by spaces: id, `(name)`, state, parent, group. The name may contain any character.
    let (_, behind_name) = stat.rsplit_once(") ")?;
    Pid::from_raw(behind_name.split(' ').nth(2)?.parse().ok()?)
}

/// Waits until the new process says that it serves. If it does not within [`READY_TIMEOUT`], or fails, it is killed.
fn wait(offer: Offer, child: &Mutex<Child>) -> Outcome {
    let refusal = match offer.send_and_wait(READY_TIMEOUT) {
        Ok(taken) => return Ok((taken, lock(child).id())),
        Err(error) => error,
    };
    let mut child = lock(child);
    // The new process may have ended already, which then is the reason. Its id is not reused before `wait`.
    end(&child, Signal::KILL);
    match child.wait() {
        Ok(status) => Err(format!("{refusal} ({status})")),
        Err(error) => Err(format!("{refusal} ({error})")),
    }
}

/// Starts the command with which this process was started.
///
/// The program is looked up as it was called, so that a link or the search path may lead to another version. If that
/// leads nowhere, the file from which this process was loaded is started.
fn spawn(end_of_child: OwnedFd, since: u64) -> io::Result<Child> {
    let mut words = std::env::args_os();
    let program = words.next().unwrap_or_default();
    let arguments: Vec<OsString> = words.collect();
    let start = |program: OsString, stdin: OwnedFd| {
        Command::new(program)
            .args(&arguments)
            .env(VARIABLE, STDIN)
            .env(SINCE, since.to_string())
            .stdin(Stdio::from(stdin))
            .process_group(0)
            .spawn()
    };
    // The first start takes its descriptor, even if it fails.
    let spare = end_of_child.try_clone()?;
    match start(program, end_of_child) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            start(loaded_from()?.into_os_string(), spare)
        }
        result => result,
    }
}

/// The path from which this program was loaded. The file may have been replaced since.
fn loaded_from() -> io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    let text = path.as_os_str().as_bytes();
    match text.strip_suffix(b" (deleted)") {
        Some(text) => Ok(PathBuf::from(OsStr::from_bytes(text))),
        None => Ok(path),
    }
}

fn lock(child: &Mutex<Child>) -> MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The environment variable that tells the new process to take its listeners over from standard input.
const VARIABLE: &str = "CATAMARAN_INHERIT";
const STDIN: &str = "stdin";

/// The environment variable that tells the new process when the first process of this front began to serve, in
/// seconds since 1970.
const SINCE: &str = "CATAMARAN_SERVED_SINCE";

/// How long the new process may take until it serves.
const READY_TIMEOUT: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use rustix::process::{getpgrp, getpid};

    use super::*;

    #[test]
    fn the_group_of_any_process_is_asked_for() {
        assert_eq!(group_of(getpid()), Some(getpgrp()));
        // In a container its group may be one of outside, which is none here.
        let init = group_of(Pid::INIT);
        assert!(init.is_none_or(|group| group.is_init()), "{init:?}");
        let last = Pid::from_raw(i32::MAX).unwrap();
        assert_eq!(group_of(last), None);
    }
}
