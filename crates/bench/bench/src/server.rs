//! The processes of a server on this machine, and the CPU time that they use while a part of a comparison runs.

use std::net::{IpAddr, ToSocketAddrs as _};
use std::time::Duration;

use catamaran_gauge::{cpu, process};
use catamaran_load::plan::{Plan, Transport};

/// The processes that listen at a target's port, with the CPU time that they had used.
#[derive(Debug)]
pub(crate) struct Server {
    processes: Vec<(u32, Duration)>,
}

impl Server {
    /// The server that a plan asks; `None` if it has several, if one is not at a loopback address, or if no process is
    /// found that may be looked at.
    pub(crate) fn of(plan: &Plan) -> Option<Self> {
        let [target] = &plan.targets[..] else {
            return None;
        };
        let Transport::Tcp { host, port } = &target.endpoint.transport else {
            return None;
        };
        let address = (host.as_str(), *port).to_socket_addrs().ok()?.next()?;
        is_loopback(address.ip()).then_some(())?;
        let listeners = process::listeners(*port).ok()?.into_iter();
        let used = |id| Some((id, cpu::of_threads(id).ok()?));
        let processes: Vec<_> = listeners.filter_map(used).collect();
        (!processes.is_empty()).then_some(Self { processes })
    }

    /// The CPU time that they have used since; `None` if one has ended, or if the kernel does not say.
    pub(crate) fn used(&self) -> Option<Duration> {
        let each = self.processes.iter().map(|(id, before)| {
            let now = cpu::of_threads(*id).ok()?;
            Some(now.saturating_sub(*before))
        });
        let used: Duration = each.sum::<Option<Duration>>()?;
        (!used.is_zero()).then_some(used)
    }
}

/// Whether an address is of this machine alone, so that its port is of one of its processes.
fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}
