//! Starts a server, acts on it while it runs, and stops it.
//!
//! A server's output goes to one file in its directory, not to a pipe: reading a pipe would take
//! CPU time that is not the server's.

mod ready;

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use catamaran_gauge::jvm::JvmReader;
use catamaran_gauge::{CpuLimit, Group, GroupFault};
use catamaran_toml_file::report::Report;

use crate::needs;
use crate::patience::Patience;
use crate::server::{Action, Need, Server, ServerFile, Way};
use crate::space::{Space, SpaceFault};
use crate::target::{Place, Programs, Settings, Target};
use crate::task::{Job, Priority, Task};

/// The description of a server to start.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The server's name in its space; its directory and its group have it too.
    pub name: &'a str,
    /// The kind of server, which defines its files and its command.
    pub target: &'a Target,
    /// A value for each parameter of the target.
    pub settings: &'a Settings,
    /// Paths of programs that are in no Debian package.
    pub programs: &'a Programs,
    /// The core that all threads of the server are pinned to; `None`: any core.
    pub core: Option<usize>,
    /// The part of its core that the server may have; `None`: all of it. A shared space cannot limit it.
    pub limit: Option<CpuLimit>,
}

/// A running server, which may be several processes. Dropping it stops it.
#[derive(Debug)]
pub struct Process {
    name: String,
    task: Task,
    server: Server,
    addresses: Vec<(String, SocketAddr)>,
    directory: PathBuf,
    jvm: Option<JvmReader>,
    /// The number of bytes of the log that were searched for alarms.
    looked_at: usize,
    /// The number of bytes of the log that were searched for reached maxima.
    looked_at_capped: usize,
}

/// Why a server could not be started, does not serve, or fails an action.
#[derive(Debug, thiserror::Error)]
pub enum StartFault {
    /// The target's file, its templates or its settings are wrong.
    #[error("{0}")]
    Settings(Report),
    /// Packages or programs that the server requires are not installed.
    #[error("{}", needs::message(.0))]
    Missing(Vec<Need>),
    /// An operation on the space failed.
    #[error(transparent)]
    Space(#[from] SpaceFault),
    /// The server's group cannot be made.
    #[error(transparent)]
    Group(#[from] GroupFault),
    /// A file cannot be written, or no port is free.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The command to run is empty.
    #[error("the command is empty")]
    NoCommand,
    /// The server's program cannot be started.
    #[error("cannot start {program}: {source}")]
    Spawn {
        /// The first program of the command; it may be one that starts the actual server.
        program: String,
        /// The system's error.
        source: io::Error,
    },
    /// The server ended before it was ready.
    #[error("{name} ended with {how} before it served\n{log}")]
    Ended {
        /// The name of the server that ended.
        name: String,
        /// The exit status or signal.
        how: String,
        /// The last lines of the server's log.
        log: String,
    },
    /// The wait for the server was interrupted: [`Space::interrupt_by`].
    #[error("interrupted while {name} was starting")]
    Interrupted {
        /// The name of the server.
        name: String,
    },
    /// The server was not ready in time.
    #[error("{name} does not serve after {within:?}: {last}\n{log}")]
    NotReady {
        /// The name of the server that was not ready.
        name: String,
        /// The time that the server had.
        within: Duration,
        /// The result of the last test of whether it serves.
        last: String,
        /// The last lines of the server's log.
        log: String,
    },
    /// The server's target has no such action.
    #[error("the target of {name} has no {action}")]
    NoAction {
        /// The name of the server.
        name: String,
        /// The action: `reload` or `upgrade`.
        action: &'static str,
    },
    /// An action was not done in time.
    #[error("{action} of {name} is not done after {within:?}: its log has no new `{done}`\n{log}")]
    NotDone {
        /// The name of the server.
        name: String,
        /// The action: `reload` or `upgrade`.
        action: &'static str,
        /// The time that the action had.
        within: Duration,
        /// The words that the log has once the action is done.
        done: String,
        /// The last lines of the server's log.
        log: String,
    },
}

impl StartFault {
    /// The fault in one line, if the server was started and failed then; `None` if it could not be
    /// started, which is not the server's fault.
    #[must_use]
    pub fn of_server(&self) -> Option<String> {
        match self {
            Self::Ended { name, how, log } => {
                let last = log.lines().map(str::trim).rfind(|line| !line.is_empty());
                Some(format!(
                    "{name} ended with {how} before it served: {}",
                    last.unwrap_or_default()
                ))
            }
            Self::NotReady {
                name, within, last, ..
            } => Some(format!("{name} did not serve within {within:?}: {last}")),
            Self::NotDone {
                name,
                action,
                within,
                ..
            } => Some(format!("{action} of {name} was not done within {within:?}")),
            _ => None,
        }
    }
}

impl Process {
    /// Writes the server's files, starts it, and waits until it serves.
    pub(crate) fn start(space: &Space, launch: &Launch<'_>) -> Result<Self, StartFault> {
        let Launch {
            name,
            target,
            settings,
            programs,
            core,
            limit,
        } = *launch;
        let addresses = space.addresses(name, target, settings)?;
        let directory = space.directory().join(name);
        let place = Place {
            directory: &directory,
            ports: &addresses,
            programs,
        };
        let server = target.render(settings, &place)?;
        let missing = needs::missing(&server.needs);
        if !missing.is_empty() {
            return Err(StartFault::Missing(missing));
        }
        write(&directory, &server.files)?;
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(directory.join(LOG))?;
        // The log of an earlier server of this name is not searched.
        let log_begins = usize::try_from(log.metadata()?.len()).unwrap_or(usize::MAX);
        let log_for_stderr = log.try_clone()?;
        let job = Job {
            name,
            core,
            priority: Priority::Inherited,
            limit,
            command: &server.command,
        };
        let task = Task::start(space, &job, |command| {
            command.current_dir(&directory);
            command.stdout(log).stderr(log_for_stderr);
        })?;
        let jvm = target.jvm().then(|| JvmReader::new(task.id()));
        let process = Self {
            name: name.to_owned(),
            task,
            server,
            addresses,
            directory,
            jvm,
            looked_at: log_begins,
            looked_at_capped: log_begins,
        };
        process.wait_until_ready()?;
        Ok(process)
    }

    /// Waits until the server serves; its end, its time limit and an interrupt are faults.
    fn wait_until_ready(&self) -> Result<(), StartFault> {
        let ready = &self.server.ready;
        let address = self.address(&ready.port);
        let mut last = String::new();
        let mut test_once = || {
            let Err(what) = ready::ask(address, ready) else {
                return Some(WaitEnd::Ready);
            };
            if let Some(how) = self.task.ended() {
                return Some(WaitEnd::Ended(how));
            }
            if self.task.space().is_interrupted() {
                return Some(WaitEnd::Interrupted);
            }
            last = what;
            None
        };
        let patience = Patience::of(ready.within);
        let end = self.task.space().inside(|| patience.wait(&mut test_once))?;
        let name = self.name.clone();
        match end {
            Some(WaitEnd::Ready) => Ok(()),
            Some(WaitEnd::Interrupted) => Err(StartFault::Interrupted { name }),
            Some(WaitEnd::Ended(how)) => Err(StartFault::Ended {
                name,
                how,
                log: self.last_words(),
            }),
            None => Err(StartFault::NotReady {
                name,
                within: ready.within,
                last,
                log: self.last_words(),
            }),
        }
    }

    /// The server's name in its space, as given in [`Launch`].
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The process id of the process that was started.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.task.id()
    }

    /// The reader of the server's Java virtual machine; `None` if it has none.
    #[must_use]
    pub fn jvm(&self) -> Option<&JvmReader> {
        self.jvm.as_ref()
    }

    /// The group that contains all processes of the server; `None` in a shared space.
    #[must_use]
    pub fn group(&self) -> Option<&Group> {
        self.task.group()
    }

    /// The ids of all processes of the server now.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        self.task.processes()
    }

    /// The first address of the server's port `port`, such as `http`.
    ///
    /// # Panics
    /// The server's target has no such port.
    #[must_use]
    pub fn address(&self, port: &str) -> SocketAddr {
        let mut addresses = self.addresses.iter();
        let (_, address) = addresses
            .find(|(name, _)| name == port)
            .expect("a port of the target");
        *address
    }

    /// The names and addresses of all ports of the server; a target with copies has several addresses of one name.
    #[must_use]
    pub fn addresses(&self) -> &[(String, SocketAddr)] {
        &self.addresses
    }

    /// The first URL of the port `port`, whose name is the scheme: `http://127.0.0.1:8001`.
    ///
    /// # Panics
    /// The same as of [`Process::address`].
    #[must_use]
    pub fn url(&self, port: &str) -> String {
        format!("{port}://{}", self.address(port))
    }

    /// The URLs of all copies of the port `port`.
    #[must_use]
    pub fn urls(&self, port: &str) -> Vec<String> {
        let mut urls = Vec::new();
        for (name, address) in &self.addresses {
            if name == port {
                urls.push(format!("{name}://{address}"));
            }
        }
        urls
    }

    /// The port numbers of all addresses of the server.
    #[must_use]
    pub fn ports(&self) -> Vec<u16> {
        self.addresses
            .iter()
            .map(|(_, address)| address.port())
            .collect()
    }

    /// The files that were written for the server before its start.
    #[must_use]
    pub fn files(&self) -> &[ServerFile] {
        &self.server.files
    }

    /// The server's program and its arguments.
    #[must_use]
    pub fn command(&self) -> &[String] {
        &self.server.command
    }

    /// The directory with the server's files and its log.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The version that the program prints; empty if it prints nothing.
    #[must_use]
    pub fn version(&self) -> String {
        version(&self.server.version)
    }

    /// The server's log: its standard output and standard error.
    #[must_use]
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&self.log_bytes()).into_owned()
    }

    /// The bytes of the log; empty if it cannot be read.
    fn log_bytes(&self) -> Vec<u8> {
        fs::read(self.directory.join(LOG)).unwrap_or_default()
    }

    /// The new lines of the log that make a run with this server worthless: whole lines since the
    /// last call or the start.
    pub fn alarms(&mut self) -> Vec<String> {
        let (mut lines, end) = self.lines_with(&self.server.alarms, self.looked_at);
        self.looked_at = end;
        // A program may log as an error that it has reached a maximum.
        let capped = &self.server.capped;
        lines.retain(|line| !capped.iter().any(|word| line.contains(word.as_str())));
        lines
    }

    /// The new lines of the log that say that the server has reached a maximum of its own, such as
    /// that of its workers: whole lines since the last call or the start.
    pub fn capped(&mut self) -> Vec<String> {
        let (lines, end) = self.lines_with(&self.server.capped, self.looked_at_capped);
        self.looked_at_capped = end;
        lines
    }

    /// The whole lines of the log from byte `from` on that have one of `words`, and the end of the last whole line.
    fn lines_with(&self, words: &[String], from: usize) -> (Vec<String>, usize) {
        let log = self.log_bytes();
        let new = log.get(from..).unwrap_or_default();
        let last_line_end = new.iter().rposition(|byte| *byte == b'\n');
        let whole_lines = &new[..last_line_end.map_or(0, |end| end + 1)];
        let text = String::from_utf8_lossy(whole_lines);
        let mut lines = Vec::new();
        for line in text.lines() {
            if words.iter().any(|word| line.contains(word.as_str())) {
                lines.push(line.to_owned());
            }
        }
        (lines, from + whole_lines.len())
    }

    /// The exit status or signal of the process that was started; `None` while any process of the
    /// server runs, such as the one that an upgrade has started.
    #[must_use]
    pub fn ended(&self) -> Option<String> {
        let how = self.task.ended()?;
        // Without a group, the processes of a server that has ended are not known.
        let has_processes = self.group().is_some() && !self.processes().is_empty();
        (!has_processes).then_some(how)
    }

    /// Makes the server read its configuration anew, and waits until its log says that it has.
    ///
    /// # Errors
    /// The target has no reload, the server cannot be asked, or its log does not say within a minute that it is done.
    pub fn reload(&self) -> Result<(), StartFault> {
        self.act("reload", self.server.reload.as_ref())
    }

    /// Replaces the server's process by another one, and waits until the log says that it is done.
    ///
    /// # Errors
    /// The same as of [`Process::reload`].
    pub fn upgrade(&self) -> Result<(), StartFault> {
        self.act("upgrade", self.server.upgrade.as_ref())
    }

    /// Starts an action, and waits until the log says that it is done.
    fn act(&self, action: &'static str, how: Option<&Action>) -> Result<(), StartFault> {
        let name = self.name.clone();
        let Some(Action { way, done }) = how else {
            return Err(StartFault::NoAction { name, action });
        };
        let log_before = self.log_bytes().len();
        let is_done = || {
            let log = self.log_bytes();
            // `None` if the server has cut its log: then nothing in it is known to be new.
            let new = String::from_utf8_lossy(log.get(log_before..)?);
            new.contains(done).then_some(())
        };
        match way {
            // HAProxy's master loses a signal that comes while it executes itself anew, so it is sent again.
            Way::Signal(signal) => {
                for _ in 0..ACTION.as_secs() / AGAIN.as_secs() {
                    self.task.signal(*signal);
                    if Patience::of(AGAIN).wait(is_done).is_some() {
                        return Ok(());
                    }
                }
            }
            Way::Command(command) => {
                self.command_beside(action, command)?;
                if Patience::of(ACTION).wait(is_done).is_some() {
                    return Ok(());
                }
            }
        }
        Err(StartFault::NotDone {
            name,
            action,
            within: ACTION,
            done: done.clone(),
            log: self.last_words(),
        })
    }

    /// Runs a command in the server's group and network, its output in the server's log.
    fn command_beside(&self, action: &'static str, words: &[String]) -> Result<(), StartFault> {
        let (program, arguments) = words.split_first().ok_or(StartFault::NoCommand)?;
        let mut command = match self.group() {
            Some(group) => group.command(program),
            None => Command::new(program),
        };
        let log = OpenOptions::new()
            .append(true)
            .open(self.directory.join(LOG))?;
        command
            .args(arguments)
            .current_dir(&self.directory)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let result = self.task.space().inside(|| command.status())?;
        let status = result.map_err(|source| StartFault::Spawn {
            program: program.clone(),
            source,
        })?;
        if status.success() {
            return Ok(());
        }
        Err(StartFault::Ended {
            name: format!("{action} of {}", self.name),
            how: status.to_string(),
            log: self.last_words(),
        })
    }

    /// Stops the server as its target says, and kills what is left when the time is over.
    pub fn stop(mut self) {
        self.end();
    }

    /// Sends the target's signal, waits for the end as long as the target says, and kills what is left.
    fn end(&mut self) {
        let stop = self.server.stop;
        self.task.signal(stop.signal);
        Patience::of(stop.patience).wait(|| self.task.ended());
        self.task.kill();
    }

    /// The last lines of the server's log, for messages.
    #[must_use]
    pub fn last_words(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
        let mut words = String::new();
        for line in last {
            // Writing to a string does not fail.
            let _ = writeln!(words, "  {line}");
        }
        if words.is_empty() {
            "  (it said nothing)".to_owned()
        } else {
            words.trim_end().to_owned()
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// The outcome of waiting for a server to serve.
enum WaitEnd {
    Ready,
    /// The server has ended, with this exit status or signal.
    Ended(String),
    Interrupted,
}

fn write(directory: &Path, files: &[ServerFile]) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    for file in files {
        let path = directory.join(&file.path);
        fs::create_dir_all(path.parent().unwrap_or(directory))?;
        fs::write(path, &file.text)?;
    }
    Ok(())
}

/// The output of `command`, which prints a program's version; empty if it is empty or cannot be run.
fn version(command: &[String]) -> String {
    let Some((program, arguments)) = command.split_first() else {
        return String::new();
    };
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output();
    let Ok(output) = output else {
        return String::new();
    };
    // Some programs print their version to standard error.
    let bytes = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

/// The file with the server's standard output and standard error.
const LOG: &str = "output.log";
const LAST_LINES: usize = 20;
/// The time in which an action must be done.
const ACTION: Duration = Duration::from_secs(60);
/// The time without an effect after which a signal is sent again.
const AGAIN: Duration = Duration::from_secs(3);
