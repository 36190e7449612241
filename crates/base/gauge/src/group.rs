//! A group of processes: a cgroup (version 2) of its own, which needs no controller.
//!
//! With a [`CpuLimit`] the group uses the `cpu` controller as well: that of version 2 if it is available to the
//! group, or else that of version 1, in a second cgroup of the same name in that hierarchy.
//!
//! Processes that are started by a group's processes belong to the group, whatever becomes of their parents. So
//! the group's CPU time is complete, and killing the group leaves nothing running. Dropping a [`Group`] kills its
//! processes and removes it. If this process is killed, nothing is dropped; a guard process covers that case.

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

/// A cgroup that this process has made. Dropping it kills all its processes and removes it.
#[derive(Debug)]
pub struct Group {
    path: PathBuf,
    /// The path of the cgroup below that of this process.
    name: PathBuf,
    id: u64,
    /// The controller that limits the group's CPU time; `None` if there is no limit.
    limited: Option<Controller>,
}

/// Why a group could not be made or controlled.
#[derive(Debug, thiserror::Error)]
pub enum GroupFault {
    /// The cgroup2 file system is not mounted. Linux has it since 4.5.
    #[error("no cgroup2 file system is mounted: `mount -t cgroup2 none /sys/fs/cgroup/unified`")]
    NotMounted,
    /// A file of the group could not be accessed. Making groups needs root, or delegation by systemd
    /// (`Delegate=yes`).
    #[error("cannot {what} {}: {source}; processes are looked up by their parents instead", path.display())]
    File {
        /// The operation, such as `read`.
        what: &'static str,
        /// The file concerned.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The controller `cpu`, which a limit on CPU time needs, is not available to the group; the text says why. The
    /// kernel gives the controller to cgroups of version 1 or of version 2, never to both.
    #[error("no cgroup has the controller `cpu`: {0}")]
    NoCpu(String),
    /// The kernel took longer than 10 s to kill the processes of this group.
    #[error("{} still has processes after {} s", .0.display(), PATIENCE.as_secs())]
    Late(PathBuf),
}

impl Group {
    /// Makes a group called `name` below the cgroup that this process is in.
    ///
    /// # Errors
    /// The cgroup2 file system is not mounted, the permission is lacking, or a group of that name exists.
    pub fn create(name: &str) -> Result<Self, GroupFault> {
        Self::create_in(&own_cgroup()?, Path::new(""), name)
    }

    /// Makes a group called `name` below this one.
    ///
    /// # Errors
    /// As for [`Group::create`].
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

    /// Limits the CPU time of the group from now on: of processes that [`Group::command`] starts or
    /// [`Group::enter`] takes in afterwards.
    ///
    /// # Errors
    /// The permission is lacking, or no version of cgroups offers it the controller `cpu`.
    pub fn limit(&mut self, limit: CpuLimit) -> Result<(), GroupFault> {
        let controller = limited::controller(&own_cgroup()?, &self.name)?;
        controller.set(limit)?;
        self.limited = Some(controller);
        Ok(())
    }

    /// How often the quota has stopped the group; `None` if the group has no [`CpuLimit`].
    ///
    /// # Errors
    /// The group does not exist any longer.
    pub fn stops(&self) -> Result<Option<Stops>, GroupFault> {
        self.limited.as_ref().map(Controller::stops).transpose()
    }

    /// The cgroup of version 1 that accompanies this one; `None` unless the controller `cpu` belongs to version
    /// 1.
    ///
    /// Whoever removes this group on behalf of this process must remove that one as well. It may not exist.
    #[must_use]
    pub fn twin(&self) -> Option<PathBuf> {
        let own = own_cgroup().ok()?;
        let controller = limited::controller(&own, &self.name).ok()?;
        controller.twin().map(Path::to_owned)
    }

    /// The group's directory in the cgroup2 file system.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The group's number, by which BPF programs know it.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// A command that runs `program` in this group from its first instruction on. The caller may add arguments.
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

    /// Moves a running process into the group, without its children.
    ///
    /// # Errors
    /// The process is gone, or the permission is lacking.
    pub fn enter(&self, id: u32) -> Result<(), GroupFault> {
        let id = id.to_string();
        self.write("cgroup.procs", &id)?;
        if let Some(path) = self.twin_processes() {
            fs::write(&path, &id).map_err(|source| failed("write", &path, source))?;
        }
        Ok(())
    }

    /// The file of the accompanying cgroup of version 1 to which processes are written; `None` without one.
    fn twin_processes(&self) -> Option<PathBuf> {
        let twin = self.limited.as_ref()?.twin()?;
        Some(twin.join("cgroup.procs"))
    }

    /// The ids of the processes in the group and in the groups below it.
    ///
    /// # Errors
    /// The group does not exist any longer.
    pub fn processes(&self) -> Result<Vec<u32>, GroupFault> {
        let mut processes = Vec::new();
        for path in groups(&self.path)? {
            let text = read(&path.join("cgroup.procs"))?;
            processes.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()));
        }
        Ok(processes)
    }

    /// The CPU time that the group's processes have used so far, including those that have ended.
    ///
    /// The total is exact to the microsecond; the division into user and system time is the kernel's estimate
    /// from samples.
    ///
    /// # Errors
    /// The group does not exist any longer.
    pub fn cpu(&self) -> Result<Cpu, GroupFault> {
        let text = read(&self.path.join("cpu.stat"))?;
        let time = |name| value(&text, name).map_or(Duration::ZERO, Duration::from_micros);
        let (total, user) = (time("usage_usec"), time("user_usec"));
        Ok(Cpu {
            user: user.min(total),
            system: total.saturating_sub(user),
        })
    }

    /// Kills all processes of the group and of those below it at once (SIGKILL), and returns when none is left.
    ///
    /// # Errors
    /// The group is gone, some processes live on after 10 s, or the kernel has no `cgroup.kill` (Linux has it
    /// since 5.14).
    pub fn kill(&self) -> Result<(), GroupFault> {
        self.write("cgroup.kill", "1")?;
        self.wait_until_empty()
    }

    fn write(&self, name: &str, text: &str) -> Result<(), GroupFault> {
        let path = self.path.join(name);
        fs::write(&path, text).map_err(|source| failed("write", &path, source))
    }

    /// Waits until the group has no processes. The kernel makes `cgroup.events` ready for poll(2) when its
    /// content differs from what was last read through this very file descriptor.
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
        // An error cannot be reported here. A group whose processes could not be killed stays.
        let _ = self.kill();
        for group in groups(&self.path).unwrap_or_default().iter().rev() {
            let _ = fs::remove_dir(group);
        }
        if let Some(controller) = &self.limited {
            controller.remove();
        }
    }
}

/// The paths of a group and of all groups below it, outer ones first.
fn groups(path: &Path) -> Result<Vec<PathBuf>, GroupFault> {
    let mut groups = vec![path.to_owned()];
    let mut unlisted = 0;
    while let Some(group) = groups.get(unlisted).cloned() {
        let entries = fs::read_dir(&group).map_err(|source| failed("list", &group, source))?;
        for entry in entries.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                groups.push(entry.path());
            }
        }
        unlisted += 1;
    }
    Ok(groups)
}

/// The path of the cgroup that this process is in.
fn own_cgroup() -> Result<PathBuf, GroupFault> {
    let proc_fault = |error| failed("read", Path::new("/proc/self"), fault(error));
    let process = Process::myself().map_err(proc_fault)?;
    let mounts = process.mountinfo().map_err(proc_fault)?;
    let unified = mounts.into_iter().find(|mount| mount.fs_type == "cgroup2");
    let mount_point = unified.ok_or(GroupFault::NotMounted)?.mount_point;
    let groups = process.cgroups().map_err(proc_fault)?;
    // The hierarchy of version 2 has the number 0.
    let own = groups.into_iter().find(|group| group.hierarchy == 0);
    let below_mount = own.map(|own| own.pathname).unwrap_or_default();
    Ok(mount_point.join(below_mount.trim_start_matches('/')))
}

/// The number after `name` in a text whose lines are `name number`.
pub(crate) fn value(text: &str, name: &str) -> Option<u64> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(' '));
    let (_, number) = pairs.find(|(key, _)| *key == name)?;
    number.trim().parse().ok()
}

pub(crate) fn read(path: &Path) -> Result<String, GroupFault> {
    fs::read_to_string(path).map_err(|source| failed("read", path, source))
}

pub(crate) fn failed(what: &'static str, path: &Path, source: io::Error) -> GroupFault {
    let path = path.to_owned();
    GroupFault::File { what, path, source }
}

/// How long to wait until the kernel has killed a group.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);

/// A shell script that moves itself into the cgroup whose file is `$0` and, if `$1` is not empty, into that of
/// `$1`; then it becomes the program.
const ENTER: &str =
    r#"echo 0 >"$0" && if [ -n "$1" ]; then echo 0 >"$1"; fi && shift && exec "$@""#;
