//! What the kernel allows, beside what a load needs: open files, ports, queues, threads.
//!
//! Nothing is changed here: each [`Limit`] has the command that changes it.

use std::path::Path;
use std::{fs, io};

use rustix::process::{Resource, getrlimit};

/// What a load needs of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Connections that one process has open at once: the load generator's, or a front's to clients
    /// and backends.
    pub connections: u64,
    /// Connections that come at once to a listener.
    pub burst: u64,
    /// Connections to one address that are dialled within a minute, each of which keeps its port for
    /// that long.
    pub dials: u64,
    /// Threads of all servers.
    pub threads: u64,
}

/// One limit and what is needed of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// As the system calls it.
    pub name: &'static str,
    /// What it limits.
    pub meaning: &'static str,
    /// What is allowed.
    pub value: u64,
    /// What is needed.
    pub need: u64,
    /// What raises it.
    pub command: String,
}

impl Limit {
    /// Whether it allows what is needed.
    #[must_use]
    pub fn suffices(&self) -> bool {
        self.value >= self.need
    }
}

/// The limits that `demand` may meet. `sysctl` reads those of the network in which the servers are:
/// [`sysctl`] for the machine's own.
///
/// # Errors
/// A limit cannot be read; the message names it.
pub fn check(
    demand: &Demand,
    sysctl: impl Fn(&str) -> io::Result<String>,
) -> io::Result<Vec<Limit>> {
    let read = |name: &'static str| {
        let text =
            sysctl(name).map_err(|error| io::Error::new(error.kind(), named(name, &error)))?;
        let number = |word: &str| word.parse::<u64>().ok();
        let numbers: Option<Vec<u64>> = text.split_whitespace().map(number).collect();
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, named(name, &text));
        numbers
            .filter(|numbers| !numbers.is_empty())
            .ok_or_else(wrong)
    };
    let of_sysctl = |name, meaning, need| {
        let value = read(name)?[0];
        let command = format!("sysctl -w {name}={need}");
        Ok::<_, io::Error>(Limit {
            name,
            meaning,
            value,
            need,
            command,
        })
    };
    Ok(vec![
        open_files(demand.connections + SPARE_FILES),
        ports(&read(PORTS)?, demand.dials),
        of_sysctl(
            "net.core.somaxconn",
            "connections that wait to be accepted",
            demand.burst,
        )?,
        of_sysctl(
            "net.ipv4.tcp_max_syn_backlog",
            "handshakes under way",
            demand.burst,
        )?,
        of_sysctl(
            "kernel.threads-max",
            "threads of the whole machine",
            demand.threads,
        )?,
        // A Java thread has its stack and that stack's guard pages.
        of_sysctl(
            "vm.max_map_count",
            "mappings of one process",
            2 * demand.threads,
        )?,
    ])
}

/// The sysctl `name`, with dots, as this process sees it.
///
/// # Errors
/// There is none, or it may not be read.
pub fn sysctl(name: &str) -> io::Result<String> {
    let path = Path::new("/proc/sys").join(name.replace('.', "/"));
    Ok(fs::read_to_string(path)?.trim().to_owned())
}

/// That of this process, which those that it starts inherit.
fn open_files(need: u64) -> Limit {
    let limit = getrlimit(Resource::Nofile);
    let hard = limit.maximum.unwrap_or(u64::MAX);
    let command = if hard >= need {
        format!("ulimit -n {need}")
    } else {
        format!("as root: prlimit --pid $$ --nofile={need}")
    };
    Limit {
        name: "open files",
        meaning: "connections and files of one process",
        value: limit.current.unwrap_or(u64::MAX),
        need,
        command,
    }
}

fn ports(range: &[u64], need: u64) -> Limit {
    let value = match range {
        [first, last] => (last + 1).saturating_sub(*first),
        _ => 0,
    };
    Limit {
        name: PORTS,
        meaning: "ports for connections to one address",
        value,
        need,
        command: format!("sysctl -w {PORTS}=\"1024 65535\""),
    }
}

fn named(name: &str, what: &dyn std::fmt::Display) -> String {
    format!("sysctl {name}: {what}")
}

const PORTS: &str = "net.ipv4.ip_local_port_range";
/// Listeners, logs, libraries, and what a runtime opens for itself.
const SPARE_FILES: u64 = 200;

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(name: &str) -> io::Result<String> {
        Ok(match name {
            PORTS => "32768\t60999".to_owned(),
            _ => "4096".to_owned(),
        })
    }

    #[test]
    fn what_does_not_suffice_is_told_with_a_command() {
        let demand = Demand {
            connections: 100,
            burst: 5000,
            dials: 30_000,
            threads: 2049,
        };
        let limits = check(&demand, fixed).unwrap();
        let found: Vec<_> = limits.iter().filter(|limit| !limit.suffices()).collect();
        let names: Vec<_> = found.iter().map(|limit| limit.name).collect();
        assert_eq!(
            names,
            [
                PORTS,
                "net.core.somaxconn",
                "net.ipv4.tcp_max_syn_backlog",
                "vm.max_map_count"
            ]
        );
        assert_eq!(found[0].value, 28_232);
        assert_eq!(found[1].command, "sysctl -w net.core.somaxconn=5000");
    }

    #[test]
    fn this_machine_has_limits() {
        let limits = check(&Demand::default(), sysctl).unwrap();
        assert!(limits.iter().all(|limit| limit.value > 0), "{limits:?}");
    }

    #[test]
    fn a_limit_that_cannot_be_read_is_named() {
        let none = |_: &str| Err(io::ErrorKind::NotFound.into());
        let fault = check(&Demand::default(), none).unwrap_err().to_string();
        assert!(fault.starts_with(&format!("sysctl {PORTS}: ")), "{fault}");
        let odd = |_: &str| Ok("many".to_owned());
        let fault = check(&Demand::default(), odd).unwrap_err().to_string();
        assert_eq!(fault, format!("sysctl {PORTS}: many"));
    }
}
