//! Runs a process in a space, in a group of its own and, if wanted, pinned to a core.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use catamaran_gauge::{CpuLimit, Group, process};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal as Number, WaitId, WaitIdOptions, WaitIdStatus, kill_process, kill_process_group,
    waitid,
};

use crate::process::StartFault;
use crate::server::Signal;
use crate::space::Space;

/// A program to run in a space, such as a load generator.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The name of the program's group.
    pub name: &'a str,
    /// The core that the program is pinned to; `None`: any core.
    pub core: Option<usize>,
    /// The program's priority among those on its core.
    pub priority: Priority,
    /// The part of its core that the program may have; `None`: all of it. A limit needs a group,
    /// and so an isolated space.
    pub limit: Option<CpuLimit>,
    /// The program and its arguments.
    pub command: &'a [String],
}

/// The priority of a process among those that want the same core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// The same priority as this process.
    #[default]
    Inherited,
    /// A niceness, from -20 (first) to 19 (last).
    Nice(i8),
    /// Priority over all others, by `SCHED_FIFO`; this takes root, or the capability `CAP_SYS_NICE`.
    First,
}

impl Priority {
    /// The words to put before a command to give it this priority.
    fn words(self) -> Vec<String> {
        match self {
            Self::Inherited => Vec::new(),
            Self::Nice(nice) => vec!["nice".to_owned(), "-n".to_owned(), nice.to_string()],
            // The lowest real-time priority is above all others that are not real-time.
            Self::First => ["chrt", "--fifo", "1"].map(str::to_owned).to_vec(),
        }
    }
}

/// A program that runs in a space. Dropping this kills the program and all that it started.
#[derive(Debug)]
pub struct Task {
    /// The process of the program itself: the commands that set its group, core and priority have
    /// been replaced by it (exec).
    pub child: Child,
    group: Option<Group>,
    space: Space,
}

impl Task {
    /// Starts a program whose standard output and standard error are piped.
    pub(crate) fn piped(space: &Space, job: &Job<'_>) -> Result<Self, StartFault> {
        Self::start(space, job, |command| {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        })
    }

    /// Starts a program whose output goes where `output` sets it.
    pub(crate) fn start(
        space: &Space,
        job: &Job<'_>,
        output: impl FnOnce(&mut Command),
    ) -> Result<Self, StartFault> {
        let mut group = match space.group() {
            Some(space_group) => Some(space_group.child(job.name)?),
            None => None,
        };
        if let (Some(group), Some(limit)) = (&mut group, job.limit) {
            group.limit(limit)?;
        }
        let mut words = Vec::new();
        if let Some(core) = job.core {
            words.extend([
                "taskset".to_owned(),
                "--cpu-list".to_owned(),
                core.to_string(),
            ]);
        }
        words.extend(job.priority.words());
        words.extend(job.command.iter().cloned());
        let (program, arguments) = words.split_first().ok_or(StartFault::NoCommand)?;
        let mut command = match &group {
            Some(group) => group.command(program),
            None => Command::new(program),
        };
        command
            .args(arguments)
            .stdin(Stdio::null())
            .process_group(0);
        // A Java virtual machine would print that it uses this variable's options, and they would change the run.
        command.env_remove("JAVA_TOOL_OPTIONS");
        output(&mut command);
        let result = space.inside(|| command.spawn())?;
        let child = result.map_err(|source| StartFault::Spawn {
            program: program.clone(),
            source,
        })?;
        if group.is_none() {
            space.guard().watch(child.id());
        }
        Ok(Self {
            child,
            group,
            space: space.clone(),
        })
    }

    /// The program's process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The group that contains all processes of the program; `None` in a shared space.
    #[must_use]
    pub fn group(&self) -> Option<&Group> {
        self.group.as_ref()
    }

    /// The ids of all processes of the program now.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        let ids = match &self.group {
            Some(group) => group.processes().ok(),
            None => process::tree(self.child.id()).ok(),
        };
        // They cannot be read once the program has ended.
        ids.unwrap_or_default()
    }

    /// The end of the process that was started, such as `exit status 1` or `signal 9`; `None` while
    /// it runs. The process is not reaped, so its number stays its own.
    #[must_use]
    pub fn ended(&self) -> Option<String> {
        match self.exit_status() {
            Ok(status) => status.map(|status| status_words(&status)),
            Err(_) => Some("an end that was waited for already".to_owned()),
        }
    }

    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(self.child.id().cast_signed())
    }

    /// The exit of the process; `None` while it runs. It does not reap the process, so that its
    /// number is not given to another one.
    fn exit_status(&self) -> Result<Option<WaitIdStatus>, Errno> {
        let pid = self.pid().ok_or(Errno::CHILD)?;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(pid), options)
    }

    pub(crate) fn space(&self) -> &Space {
        &self.space
    }

    /// Sends `signal` to the process that was started, unless it has ended.
    pub fn signal(&self, signal: Signal) {
        if let (Ok(None), Some(pid)) = (self.exit_status(), self.pid()) {
            // It may end at this moment; then there is nothing to tell.
            let _ = kill_process(pid, number(signal));
        }
    }

    /// Kills the program and all that it started, and waits until they are gone.
    pub fn kill(&mut self) {
        match &self.group {
            // If its processes cannot be killed in time, the group stays; there is nobody to tell.
            Some(group) => drop(group.kill()),
            None => {
                // Once the process was waited for, its id may belong to another process.
                if let (Ok(_), Some(pid)) = (self.exit_status(), self.pid()) {
                    let _ = kill_process_group(pid, Number::KILL);
                }
                self.space.guard().forget(self.child.id());
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.kill();
    }
}

fn status_words(status: &WaitIdStatus) -> String {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown end".to_owned(),
    }
}

fn number(signal: Signal) -> Number {
    match signal {
        Signal::Term => Number::TERM,
        Signal::Int => Number::INT,
        Signal::Quit => Number::QUIT,
        Signal::Hup => Number::HUP,
        Signal::Usr1 => Number::USR1,
        Signal::Usr2 => Number::USR2,
        Signal::Winch => Number::WINCH,
    }
}
