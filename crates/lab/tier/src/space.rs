//! The environment of the servers of one run: a network namespace, a group of processes, a directory.
//!
//! An isolated space has its own ports, TIME_WAIT, counters and sysctls, and a cgroup with one
//! below it for each server and each task; it needs root. A shared space uses the machine's
//! network, and its processes are known by their process groups. A guard kills what runs in a space
//! and removes the space, even if this process is killed: it waits for the end of a pipe that only
//! this process holds. A space that is dropped is removed in the same way, once its servers and
//! tasks are dropped.

mod guard;
mod namespace;
mod ports;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::{fs, io};

use catamaran_gauge::{Group, GroupFault};
use catamaran_toml_file::report::Report;
use tempfile::TempDir;

use self::guard::Guard;
use self::namespace::Namespace;
use self::ports::Ports;
use crate::process::{Launch, Process, StartFault};
use crate::target::{Settings, Target};
use crate::task::{Job, Task};

/// The environment that the servers of one run share: a network, a cgroup and a directory.
#[derive(Clone, Debug)]
pub struct Space(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The guard process. It is the first to be dropped, since it removes everything else.
    guard: Guard,
    namespace: Option<Namespace>,
    group: Option<Group>,
    directory: TempDir,
    // A std mutex: held to give addresses, never while waiting.
    ports: Mutex<Ports>,
    /// The flag that interrupts waiting for servers; empty until [`Space::interrupt_by`].
    stop: OnceLock<Arc<AtomicBool>>,
}

/// Why a space cannot be made, or an operation on it fails.
#[derive(Debug, thiserror::Error)]
pub enum SpaceFault {
    /// A network namespace cannot be made or entered.
    #[error(
        "network namespace {name}: {what}; it needs root and the command `ip` (Debian's iproute2)"
    )]
    Namespace {
        /// The name of the namespace.
        name: String,
        /// The step that failed, and why.
        what: String,
    },
    /// A cgroup cannot be made.
    #[error(transparent)]
    Group(#[from] GroupFault),
    /// A sysctl cannot be read or set in the namespace.
    #[error("sysctl {name}: {source}")]
    Sysctl {
        /// The name of the sysctl, with dots.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// The directory cannot be made, or the guard cannot be started.
    #[error("{what}: {source}")]
    Io {
        /// The step that failed.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

impl Space {
    /// Makes a space with a network namespace and a cgroup, both called `name`.
    ///
    /// # Errors
    /// This process is not root, the command `ip` is missing, or there is a space of that name already.
    pub fn isolated(name: &str) -> Result<Self, SpaceFault> {
        let group = Group::create(name)?;
        let namespace = Namespace::create(name)?;
        let space = Self::make(Some(namespace), Some(group))?;
        // A client's port could otherwise be one that a server is about to take.
        space.set_sysctl("net.ipv4.ip_local_reserved_ports", Ports::RESERVED)?;
        Ok(space)
    }

    /// Makes a space in the machine's own network, without a cgroup.
    ///
    /// # Errors
    /// There is no temporary directory, or no shell.
    pub fn shared() -> Result<Self, SpaceFault> {
        Self::make(None, None)
    }

    /// Makes the directory and the guard of a space.
    fn make(namespace: Option<Namespace>, group: Option<Group>) -> Result<Self, SpaceFault> {
        let directory = directory().map_err(failed("cannot make a temporary directory"))?;
        let guard = Guard::start(namespace.as_ref(), group.as_ref(), directory.path());
        let guard = guard.map_err(failed("cannot start sh, which guards the processes"))?;
        let ports = Mutex::new(Ports::new(namespace.is_some()));
        Ok(Self(Arc::new(Inner {
            guard,
            namespace,
            group,
            directory,
            ports,
            stop: OnceLock::new(),
        })))
    }

    /// The temporary directory of the space. Every user may enter it, since servers that root
    /// starts may serve as another user.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.0.directory.path()
    }

    /// The name of the network namespace, as `ip netns exec` takes it; `None` in a shared space.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.0.namespace.as_ref().map(Namespace::name)
    }

    /// The group that contains all processes of the space; this process is not in it. `None` in a shared space.
    #[must_use]
    pub fn group(&self) -> Option<&Group> {
        self.0.group.as_ref()
    }

    /// The id of a process that is in the space's network as long as the space exists: its
    /// `/proc/ID/net` has the figures of that network.
    #[must_use]
    pub fn anchor(&self) -> u32 {
        self.0.guard.id()
    }

    /// Runs `work` on a thread in the space's network: sockets that it opens and processes that it
    /// starts are in that network.
    ///
    /// # Errors
    /// The namespace cannot be entered.
    ///
    /// # Panics
    /// If `work` does.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, SpaceFault> {
        match &self.0.namespace {
            Some(namespace) => namespace.inside(work),
            None => Ok(work()),
        }
    }

    /// Reads the sysctl `name`, such as `net.ipv4.ip_local_port_range`, and returns its value as processes in this
    /// space see it.
    ///
    /// # Errors
    /// There is no such sysctl, or it may not be read.
    pub fn sysctl(&self, name: &str) -> Result<String, SpaceFault> {
        let result = self.inside(|| fs::read_to_string(sysctl_file(name)))?;
        let text = result.map_err(|source| SpaceFault::Sysctl {
            name: name.to_owned(),
            source,
        })?;
        Ok(text.trim().to_owned())
    }

    /// Sets the sysctl `name` in the space's network.
    ///
    /// # Errors
    /// There is no such sysctl, or its value is wrong; it is not one of a network (`net.`); or the
    /// space is shared, so that it would change the whole machine.
    pub fn set_sysctl(&self, name: &str, value: &str) -> Result<(), SpaceFault> {
        let result = if self.0.namespace.is_none() || !name.starts_with("net.") {
            let what = "it would be set for the whole machine, which a run does not do";
            Err(io::Error::new(io::ErrorKind::PermissionDenied, what))
        } else {
            self.inside(|| fs::write(sysctl_file(name), value))?
        };
        result.map_err(|source| SpaceFault::Sysctl {
            name: name.to_owned(),
            source,
        })
    }

    /// The addresses of the ports of the server `name`: each call returns the same ones.
    ///
    /// # Errors
    /// The target's number of copies cannot be rendered, or the network has no free port.
    pub fn addresses(
        &self,
        name: &str,
        target: &Target,
        settings: &Settings,
    ) -> Result<Vec<(String, SocketAddr)>, StartFault> {
        let wanted = target.ports(settings)?;
        let mut ports = self.0.ports.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(ports.addresses(name, &wanted)?)
    }

    /// Starts a server and waits until it serves.
    ///
    /// # Errors
    /// The server cannot be started or does not serve; [`StartFault`] says why, with the server's log and what to do.
    pub fn start(&self, launch: &Launch<'_>) -> Result<Process, StartFault> {
        Process::start(self, launch)
    }

    /// Starts a program whose output the caller reads from pipes, such as a load generator.
    ///
    /// # Errors
    /// The program cannot be started, or its group cannot be made.
    pub fn run(&self, job: &Job<'_>) -> Result<Task, StartFault> {
        Task::piped(self, job)
    }

    /// Makes starts of servers fail with [`StartFault::Interrupted`] once `stop` is true. Only the
    /// first call has an effect.
    pub fn interrupt_by(&self, stop: Arc<AtomicBool>) {
        // A second one changes nothing.
        let _ = self.0.stop.set(stop);
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        let stop = self.0.stop.get();
        stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    pub(crate) fn guard(&self) -> &Guard {
        &self.0.guard
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.guard.end() {
            return;
        }
        // Somebody killed the guard: the group and the directory go by themselves.
        if let Some(namespace) = &self.namespace {
            namespace.delete();
        }
    }
}

impl From<Report> for StartFault {
    fn from(report: Report) -> Self {
        Self::Settings(report)
    }
}

/// Makes the temporary directory of a space, which every user may enter: see [`Space::directory`].
fn directory() -> io::Result<TempDir> {
    use std::os::unix::fs::PermissionsExt as _;
    tempfile::Builder::new()
        .prefix("catamaran-")
        .permissions(fs::Permissions::from_mode(0o755))
        .tempdir()
}

fn sysctl_file(name: &str) -> std::path::PathBuf {
    Path::new("/proc/sys").join(name.replace('.', "/"))
}

fn failed(what: &'static str) -> impl FnOnce(io::Error) -> SpaceFault {
    move |source| SpaceFault::Io { what, source }
}
