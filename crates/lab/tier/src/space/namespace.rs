//! A network namespace: made and deleted by `ip netns`, and entered by threads of this process.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::Command;
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::SpaceFault;

#[derive(Debug)]
pub(crate) struct Namespace {
    name: String,
    file: File,
}

impl Namespace {
    /// Makes the namespace `name`, and sets its loopback interface up.
    pub(super) fn create(name: &str) -> Result<Self, SpaceFault> {
        ip(name, &["netns", "add", name])?;
        let opened = File::open(Path::new("/run/netns").join(name));
        let file = opened.map_err(|error| fault(name, error))?;
        let namespace = Self {
            name: name.to_owned(),
            file,
        };
        if let Err(fault) = ip(name, &["-netns", name, "link", "set", "lo", "up"]) {
            namespace.delete();
            return Err(fault);
        }
        Ok(namespace)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Runs `work` on a thread of its own, which enters the namespace: a thread that has entered cannot return.
    pub(super) fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, SpaceFault> {
        let enter_and_work = || {
            let kind = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(self.file.as_fd(), kind)?;
            Ok::<T, rustix::io::Errno>(work())
        };
        let joined = thread::scope(|scope| scope.spawn(enter_and_work).join());
        let result = joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        result.map_err(|error| fault(&self.name, error))
    }

    /// Deletes the namespace's name. The kernel removes the namespace when its last process and socket are gone.
    pub(super) fn delete(&self) {
        // The space is being removed, so there is nobody to report an error to.
        let _ = ip(&self.name, &["netns", "delete", &self.name]);
    }
}

fn ip(name: &str, arguments: &[&str]) -> Result<(), SpaceFault> {
    let output = Command::new("ip").args(arguments).output();
    let output = output.map_err(|error| fault(name, format!("cannot run ip: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(fault(name, said.trim()))
}

fn fault(name: &str, what: impl ToString) -> SpaceFault {
    SpaceFault::Namespace {
        name: name.to_owned(),
        what: what.to_string(),
    }
}
