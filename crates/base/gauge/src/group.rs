//! A group of processes: a cgroup of its own (version 2, no controller needed).
//!
//! With a [`CpuLimit`] it has the `cpu` controller as well: of version 2 where its groups may have it, else of
//! version 1, by a second cgroup of the same name in that hierarchy.
//!
//! Processes that a group's processes start belong to the group, whatever becomes of their parents.
//! So its CPU time is complete, and killing it leaves nothing running. Dropping a [`Group`] kills its
//! processes and removes it. If this process is killed, nothing is dropped; a guard process covers
//! that case.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use procfs::process::Process;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::cpu::Cpu;
use crate::limited::{self, Controller, CpuLimit, Stops};
use crate::process::fault;

/// A cgroup that this process has made.
#[derive(Debug)]
pub struct Group {
    path: PathBuf,
    /// Its path below the group of this process.
    name: PathBuf,
    id: u64,
    /// The controller that limits the group to a part of a core; `None`: there is no limit.
    limited: Option<Controller>,
}

/// Why there is no group, or it does not obey.
#[derive(Debug, thiserror::Error)]
pub enum GroupFault {
    /// Linux has the file system since 4.5.
    #[error("no cgroup2 file system is mounted: `mount -t cgroup2 none /sys/fs/cgroup/unified`")]
    NotMounted,
    /// Without root, or delegation by systemd (`Delegate=yes`), groups cannot be made.
    #[error("cannot {what} {}: {source}; processes are looked up by their parents instead", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// Shares of a core need the controller `cpu`, which belongs to one version of cgroups at a time.
    #[error("no cgroup has the controller `cpu`: {0}")]
    NoCpu(String),
    /// The kernel took longer than 10 s.
    #[error("{} still has processes after {} s", .0.display(), PATIENCE.as_secs())]
    Late(PathBuf),
}

impl Group {
    /// Makes a group below the one that this process is in.
    ///
    /// # Errors
    /// No cgroup2 file system, no permission, or there is a group of that name.
    pub fn create(name: &str) -> Result<Self, GroupFault> {
        Self::create_in(&own()?, Path::new(""), name)
    }

    /// Makes a group below this one.
    ///
    /// # Errors
    /// As [`Group::create`].
    pub fn child(&self, name: &str) -> Result<Self, GroupFault> {
        Self::create_in(&self.path, &self.name, name)
    }

    fn create_in(parent: &Path, below: &Path, name: &str) -> Result<Self, GroupFault> {
        let path = parent.join(name);
        let file = |source| failed("make the cgroup", &path, source);
        fs::create_dir(&path).map_err(file)?;
        let id = fs::metadata(&path).map_err(file)?.ino();
        Ok(Self {
            path,
            name: below.join(name),
            id,
            limited: None,
        })
    }

    /// Holds its processes to a part of a core from now on: those that [`Group::command`] starts and that
    /// [`Group::enter`] takes afterwards.
    ///
    /// # Errors
    /// No permission, or no version of cgroups has the controller `cpu` for it.
    pub fn limit(&mut self, limit: CpuLimit) -> Result<(), GroupFault> {
        let controller = limited::controller(&own()?, &self.name)?;
        controller.set(limit)?;
        self.limited = Some(controller);
        Ok(())
    }

    /// How often its quota has stopped it; `None` where it has no [`CpuLimit`].
    ///
    /// # Errors
    /// The group is gone.
    pub fn stops(&self) -> Result<Option<Stops>, GroupFault> {
        self.limited.as_ref().map(Controller::stops).transpose()
    }

    /// Where groups of version 1 below this one are, if the controller `cpu` is of that version: who removes this
    /// group in the place of this process removes that one, too. It may not exist.
    #[must_use]
    pub fn twin(&self) -> Option<PathBuf> {
        let own = own().ok()?;
        let controller = limited::controller(&own, &self.name).ok()?;
        controller.twin().map(Path::to_owned)
    }

    /// Where it is in the file system.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its number, as BPF programs know it.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// A command that runs `program` in this group from its first instruction on. Arguments may be
    /// added to it.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", ENTER])
            .arg(self.path.join("cgroup.procs"))
            .arg(self.twin_processes().unwrap_or_default())
            .arg(program);
        command
    }

    /// Takes a process that runs already, without its children.
    ///
    /// # Errors
    /// The process is gone, or no permission.
    pub fn enter(&self, id: u32) -> Result<(), GroupFault> {
        let id = id.to_string();
        self.write("cgroup.procs", &id)?;
        let twin = self
            .twin_processes()
            .map(|path| fs::write(&path, &id).map_err(|source| failed("write", &path, source)));
        twin.unwrap_or(Ok(()))
    }

    /// The file that takes processes into its cgroup of version 1.
    fn twin_processes(&self) -> Option<PathBuf> {
        let twin = self.limited.as_ref()?.twin()?;
        Some(twin.join("cgroup.procs"))
    }

    /// The processes in it and in the groups below it.
    ///
    /// # Errors
    /// The group is gone.
    pub fn processes(&self) -> Result<Vec<u32>, GroupFault> {
        let mut processes = Vec::new();
        for path in groups(&self.path)? {
            let text = read(&path.join("cgroup.procs"))?;
            processes.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()));
        }
        Ok(processes)
    }

    /// The CPU time that its processes have used so far, those that have ended included. The total is exact to
    /// the microsecond; how it is divided is a sample's estimate.
    ///
    /// # Errors
    /// The group is gone.
    pub fn cpu(&self) -> Result<Cpu, GroupFault> {
        let text = read(&self.path.join("cpu.stat"))?;
        let time = |name| value(&text, name).map_or(Duration::ZERO, Duration::from_micros);
        let (total, user) = (time("usage_usec"), time("user_usec"));
        Ok(Cpu {
            user: user.min(total),
            system: total.saturating_sub(user),
        })
    }

    /// Kills all its processes and those below at once (SIGKILL); returns when none is left.
    ///
    /// # Errors
    /// The group is gone, or some live on after 10 s. Linux has `cgroup.kill` since 5.14.
    pub fn kill(&self) -> Result<(), GroupFault> {
        self.write("cgroup.kill", "1")?;
        self.wait_until_empty()
    }

    fn write(&self, name: &str, text: &str) -> Result<(), GroupFault> {
        let path = self.path.join(name);
        fs::write(&path, text).map_err(|source| failed("write", &path, source))
    }

    /// The kernel makes `cgroup.events` ready for poll(2) when it differs from what this very file
    /// was read as last.
    fn wait_until_empty(&self) -> Result<(), GroupFault> {
        let path = self.path.join("cgroup.events");
        let file = |source| failed("read", &path, source);
        let events = File::open(&path).map_err(file)?;
        for _ in 0..PATIENCE.as_millis() / PAUSE.as_millis() {
            let mut buffer = [0; 256];
            let length = events.read_at(&mut buffer, 0).map_err(file)?;
            let text = String::from_utf8_lossy(&buffer[..length]);
            if value(&text, "populated") == Some(0) {
                return Ok(());
            }
            let timeout = Timespec::try_from(PAUSE).ok();
            // Interrupted or not, the file is read again.
            let _ = poll(
                &mut [PollFd::new(&events, PollFlags::PRI)],
                timeout.as_ref(),
            );
        }
        Err(GroupFault::Late(self.path.clone()))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Nobody is left to be told; what cannot be killed keeps its group.
        let _ = self.kill();
        for group in groups(&self.path).unwrap_or_default().iter().rev() {
            let _ = fs::remove_dir(group);
        }
        if let Some(controller) = &self.limited {
            controller.remove();
        }
    }
}

/// A group and all below it, outer ones first.
fn groups(path: &Path) -> Result<Vec<PathBuf>, GroupFault> {
    let mut groups = vec![path.to_owned()];
    let mut next = 0;
    while let Some(group) = groups.get(next).cloned() {
        let entries = fs::read_dir(&group).map_err(|source| failed("list", &group, source))?;
        let below = entries
            .flatten()
            .filter(|it| it.file_type().is_ok_and(|kind| kind.is_dir()));
        groups.extend(below.map(|entry| entry.path()));
        next += 1;
    }
    Ok(groups)
}

/// The group of this process.
fn own() -> Result<PathBuf, GroupFault> {
    let of_proc = |error| failed("read", Path::new("/proc/self"), fault(error));
    let process = Process::myself().map_err(of_proc)?;
    let mounts = process.mountinfo().map_err(of_proc)?;
    let unified = mounts.into_iter().find(|mount| mount.fs_type == "cgroup2");
    let mount = unified.ok_or(GroupFault::NotMounted)?.mount_point;
    let groups = process.cgroups().map_err(of_proc)?;
    let own = groups.into_iter().find(|group| group.hierarchy == 0);
    let below = own.map(|own| own.pathname).unwrap_or_default();
    Ok(mount.join(below.trim_start_matches('/')))
}

/// The number behind `name` in a file of lines `name number`.
pub(crate) fn value(text: &str, name: &str) -> Option<u64> {
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    let found = lines.into_iter().find(|(key, _)| *key == name)?;
    found.1.trim().parse().ok()
}

pub(crate) fn read(path: &Path) -> Result<String, GroupFault> {
    fs::read_to_string(path).map_err(|source| failed("read", path, source))
}

pub(crate) fn failed(what: &'static str, path: &Path, source: io::Error) -> GroupFault {
    let path = path.to_owned();
    GroupFault::File { what, path, source }
}

/// How long the kernel has for killing a group.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);

/// Enters the cgroup `$0` and, if it is named, `$1`; then it is the program.
const ENTER: &str =
    r#"echo 0 >"$0" && if [ -n "$1" ]; then echo 0 >"$1"; fi && shift && exec "$@""#;
