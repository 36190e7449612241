//! The processes of a server on this machine, and the CPU time that they use while a part of a comparison runs.

use std::net::{IpAddr, ToSocketAddrs as _};
use std::time::Duration;

use catamaran_gauge::{cpu, process};
use catamaran_load::plan::{Plan, Transport};

/// The processes that listen at a target's port, each with the CPU time that it had used when they were found.
#[derive(Debug)]
pub(crate) struct Server {
    processes: Vec<(u32, Duration)>,
}

impl Server {
    /// The server to which the plan sends its requests; `None` if the plan has several servers, if the server's address
    /// is not a loopback one, or if no process is found at its port whose CPU time may be read.
    pub(crate) fn of(plan: &Plan) -> Option<Self> {
        let [target] = &plan.targets[..] else {
            return None;
        };
        let Transport::Tcp { host, port } = &target.endpoint.transport else {
            return None;
        };
        let address = (host.as_str(), *port).to_socket_addrs().ok()?.next()?;
        if !is_loopback(address.ip()) {
            return None;
        }
        let mut processes = Vec::new();
        for id in process::listeners(*port).ok()? {
            if let Ok(used) = cpu::of_threads(id) {
                processes.push((id, used));
            }
        }
        (!processes.is_empty()).then_some(Self { processes })
    }

    /// The CPU time that the processes have used since they were found by [`Self::of`]; `None` if one of them has
    /// ended. It is also `None` if no time was used, as where the kernel counts none.
    pub(crate) fn used(&self) -> Option<Duration> {
        let mut used = Duration::ZERO;
        for (id, before) in &self.processes {
            let now = cpu::of_threads(*id).ok()?;
            used += now.saturating_sub(*before);
        }
        (!used.is_zero()).then_some(used)
    }
}

/// Whether this is a loopback address, at which only processes of this machine can listen.
fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}
