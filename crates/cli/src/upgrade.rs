//! Handing the listeners over to a new process of the same command, so that a new binary is started
//! without a lost request.
//!
//! An environment variable tells the new process that its standard input is its end of the handover.
//! When it has asked, the listening sockets and the message that it serves pass through it. Until that message arrives
//! this process serves as before; if it never arrives, this process goes on. Until it serves, the new process has a
//! process group of its own, which is killed then: what it was started by, and what it started, may have hung as well.

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

/// How an upgrade ended: what was taken over and by which process, or why nothing was.
pub(crate) type Outcome = Result<(TakenListeners, u32), String>;

/// An upgrade under way.
pub(crate) struct PendingUpgrade {
    /// The mutex is for the rare case that this process is asked to stop meanwhile.
    child: Arc<Mutex<Child>>,
}

/// As [`begin`]; why there is none is said in the log and to administrators.
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

/// Starts the new process. How that ends is sent to `report`.
fn begin<E>(running: &Running, report: SyncSender<E>) -> io::Result<PendingUpgrade>
where
    E: From<Outcome> + Send + 'static,
{
    let (offer, theirs) = running.offer()?;
    let child = Arc::new(Mutex::new(spawn(theirs, running.served_since())?));
    let pending = PendingUpgrade {
        child: Arc::clone(&child),
    };
    let thread = std::thread::Builder::new().name("upgrade".into());
    thread.spawn(move || {
        // Nobody listens any more when this process is about to end.
        report.send(wait(offer, &child).into()).ok();
    })?;
    Ok(pending)
}

impl PendingUpgrade {
    /// Ends the new process, in order if it serves already.
    pub(crate) fn abandon(&self) {
        end(&lock(&self.child), Signal::TERM);
    }
}

/// Ends the new process and all that it started.
fn end(child: &Child, signal: Signal) {
    if let Err(error) = kill_process_group(Pid::from_child(child), signal) {
        tracing::debug!(%error, "the new process has ended already");
    }
}

/// Whether another process started this one to take over.
fn is_successor() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|value| value == STDIN)
}

/// What the process before this one hands over, if it started this one to take over.
pub(crate) fn inheritance() -> Result<Inheritance, Failure> {
    if !is_successor() {
        return Ok(Inheritance::default());
    }
    let channel = io::stdin().as_fd().try_clone_to_owned();
    let inheritance = channel.and_then(Inheritance::receive).map_err(|error| {
        Failure::Fault(format!(
            "{VARIABLE} is set, but standard input hands no listeners over ({error}); unset it"
        ))
    });
    let mut inheritance = inheritance?;
    let since = std::env::var_os(SINCE).and_then(|it| it.to_str()?.parse().ok());
    since
        .into_iter()
        .for_each(|since| inheritance.serves_since(since));
    Ok(inheritance)
}

/// The process group of the process that started this one to take over, if it did. To be asked for before this one
/// serves: then the other one may end at once, and its parent is another process afterwards.
pub(crate) fn group_of_predecessor() -> Option<Pid> {
    group_of(getppid().filter(|_| is_successor())?)
}

/// Goes to that group, now that this process serves: a terminal, and the process that started the front, reach it there.
pub(crate) fn join_group(group: Pid) {
    // It is gone if the last of its processes has ended and was waited for.
    setpgid(None, Some(group)).ok();
}

/// `None` if the process has ended, or if its group belongs to another PID namespace. rustix's `getpgid` takes that for
/// impossible, and panics.
fn group_of(process: Pid) -> Option<Pid> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).ok()?;
    // The name before it may have any character. Then state, parent, group.
    let (_, behind_name) = stat.rsplit_once(") ")?;
    Pid::from_raw(behind_name.split(' ').nth(2)?.parse().ok()?)
}

fn wait(offer: Offer, child: &Mutex<Child>) -> Outcome {
    let refused = match offer.send_and_wait(READY_TIMEOUT) {
        Ok(taken) => return Ok((taken, lock(child).id())),
        Err(error) => error,
    };
    let mut child = lock(child);
    // It may have ended by itself, which is why. Until it is waited for, nobody else has its number.
    end(&child, Signal::KILL);
    match child.wait() {
        Ok(status) => Err(format!("{refused} ({status})")),
        Err(error) => Err(format!("{refused} ({error})")),
    }
}

/// Starts the command that this process was started by. By its own words, so that a link or the
/// search path may lead to another version; if that leads nowhere, by the file it was loaded from.
fn spawn(theirs: OwnedFd, since: u64) -> io::Result<Child> {
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
    let spare = theirs.try_clone()?;
    match start(program, theirs) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            start(loaded_from()?.into_os_string(), spare)
        }
        started => started,
    }
}

/// The path of this program's file, which may have been replaced since.
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

/// Tells the new process where its end of the handover is.
const VARIABLE: &str = "CATAMARAN_INHERIT";
const STDIN: &str = "stdin";

/// Tells the new process when the first one of this front began.
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
