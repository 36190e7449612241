//! Checks whether a machine suffices for a configuration, before a front serves there. It changes nothing.
//!
//! `catamaran-gauge` examines the machine. This module computes what the configuration needs, and checks what it
//! names: addresses, files, certificates, backends.

mod members;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use members::{SourceReport, find_members};

pub use catamaran_gauge::machine::{Check, Machine, Unit, Verdict};
use catamaran_gauge::machine::{SPARE_FILES, ServerDemand};
use catamaran_upstream::ProbeQuestion;
use catamaran_upstream::config::BackendConfig;

use crate::config::{AccessLogTarget, Config};
use crate::tls;

/// Checks everything except the backends, with the members that were `found`. `secrets` are files that only the
/// front's user and root should read.
#[must_use]
pub fn examine(
    config: &Config,
    found: &[SourceReport],
    machine: &Machine,
    secrets: &[PathBuf],
) -> Vec<Check> {
    let unit = machine.unit(UNIT);
    let demand = demand(config);
    let mut checks = machine.examine(&demand, unit.as_ref());
    let limit = machine.open_files(unit.as_ref());
    checks.extend(members::checks(config, found, demand.files, limit));
    checks.extend(addresses(config, unit.is_some()));
    checks.extend(stop(config, unit.as_ref()));
    checks.extend(clock(config, machine));
    checks.extend(certificates(config));
    checks.extend(secret_files(config, secrets));
    checks.extend(space(config));
    checks
}

/// Connects to every backend and probes it, by CPING, a request, or the connection alone.
///
/// # Errors
/// The event loop cannot be started.
pub fn dial(config: &Config) -> std::io::Result<Vec<Check>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut checks = Vec::new();
    for upstream in &config.upstreams {
        for backend in upstream.all() {
            let answer = runtime.block_on(catamaran_upstream::examine(backend));
            checks.push(backend_check(&upstream.name, backend, answer));
        }
    }
    Ok(checks)
}

/// The check of a backend that was asked `question`, or could not be reached.
fn backend_check(
    upstream: &str,
    backend: &BackendConfig,
    answer: Result<ProbeQuestion, String>,
) -> Check {
    let subject = format!("backend {upstream}/{}", backend.name);
    match answer {
        Ok(question) => {
            let asked = match question {
                ProbeQuestion::Request { method, target } => format!("{method} {target}"),
                ProbeQuestion::Cping => "CPING".to_owned(),
                ProbeQuestion::Connection => "a connection".to_owned(),
            };
            Check::of(true, subject, "answered", asked)
        }
        Err(reason) => {
            let address = &backend.address;
            let command = format!("look whether the container listens at {address}");
            Check::of(false, subject, reason, "an answer needed").by(command)
        }
    }
}

/// The resources that all clients and backends need together.
fn demand(config: &Config) -> ServerDemand {
    let backends = config.upstreams.iter().flat_map(|it| it.all());
    let mut dials = BTreeMap::<String, u64>::new();
    let mut connections = 0;
    for backend in backends {
        let max = backend.connections_max as u64;
        connections += max;
        if let crate::config::Address::Tcp { .. } = backend.address {
            *dials.entry(backend.address.to_string()).or_default() += max;
        }
    }
    let clients = config.server.clients_max() as u64;
    let has_tls = config.listeners.iter().any(|it| it.tls.is_some());
    let idle = if has_tls { IDLE_TLS } else { IDLE };
    ServerDemand {
        clients,
        backends: connections,
        files: clients + connections + config.files_kept_open() as u64 + SPARE_FILES,
        burst: clients.min(BURST),
        dials: dials.into_iter().collect(),
        workers: config.server.workers.get() as u64,
        memory: PROGRAM + clients * idle + connections * BUFFERS,
    }
}

/// Checks that the TCP addresses are free, by listening at each of them for a moment.
fn addresses(config: &Config, has_unit: bool) -> Vec<Check> {
    let addresses = config.tcp_addresses();
    addresses
        .map(|address| address_check(address, has_unit))
        .collect()
}

/// Checks that a TCP address is free. `has_unit`: a systemd unit starts the front, with capabilities that this process
/// lacks.
fn address_check(address: SocketAddr, has_unit: bool) -> Check {
    let subject = format!("address {address}");
    let Err(error) = TcpListener::bind(address) else {
        return Check::of(true, subject, "free", "to listen there");
    };
    match error.kind() {
        ErrorKind::AddrInUse => {
            let needed = "another process listens there: a front, which an upgrade would replace, or another server";
            let command = format!("ss -ltnp 'sport = :{}'", address.port());
            Check::of(false, subject, "taken", needed).by(command)
        }
        // The unit gives the capability to the front, and not to this process.
        ErrorKind::PermissionDenied if has_unit => {
            Check::of(true, subject, "for the unit", "CAP_NET_BIND_SERVICE")
        }
        ErrorKind::PermissionDenied => {
            let needed =
                "ports below net.ipv4.ip_unprivileged_port_start need CAP_NET_BIND_SERVICE";
            Check::of(false, subject, "not allowed", needed)
                .by("start it by docs/examples/catamaran.service, or as root")
        }
        _ => Check::of(false, subject, error, "an address of this machine")
            .by("ip address; sysctl net.ipv6.conf.all.disable_ipv6"),
    }
}

/// Checks that systemd waits longer for the front to stop than a drain takes; `None` without a unit.
fn stop(config: &Config, unit: Option<&Unit>) -> Option<Check> {
    let unit = unit?;
    let drain = config.server.drain_delay + config.server.drain_timeout;
    let timeout = unit.stop_timeout.unwrap_or(STOP_TIMEOUT);
    let needed = format!("more than {drain:?} needed: `drain_delay` + `drain_timeout`");
    let subject = format!("TimeoutStopSec of {}", unit.path.display());
    let value = format!("{} s", timeout.as_secs());
    // Some seconds more, to close connections and to end.
    let enough = drain.as_secs() + 10;
    let command = format!("systemctl edit catamaran: [Service] TimeoutStopSec={enough}");
    Some(Check::of(timeout > drain, subject, value, needed).by(command))
}

/// Checks whether the clock is synchronised, if the configuration has TLS. In a container nobody can tell.
fn clock(config: &Config, machine: &Machine) -> Option<Check> {
    if config.tls.is_empty() {
        return None;
    }
    let needed = "certificates and `until` depend on the clock";
    Some(if machine.is_clock_set() {
        Check::of(true, "clock", "synchronised", needed)
    } else {
        Check::new(Verdict::Note, "clock", "no sign of synchronisation", needed)
            .by("timedatectl, chronyc tracking")
    })
}

/// Checks the files of TLS: certificates that end soon or have ended, and files that cannot be used.
fn certificates(config: &Config) -> Vec<Check> {
    let mut checks = Vec::new();
    for profile in &config.tls {
        let subject = format!("certificates of [tls.{}]", profile.name);
        // Files that cannot be used, or else certificates that end soon.
        let faults = tls::check(profile).unwrap_or_else(|faults| faults);
        if faults.is_empty() {
            let needed = "for more than 14 days";
            checks.push(Check::of(true, subject.clone(), "valid", needed));
        }
        for fault in faults {
            let check = Check::of(false, subject.clone(), fault.message, "valid files needed");
            checks.push(check.by(fault.hint));
        }
    }
    checks
}

/// Checks that only their user and group may use the files with secrets and the admin's state file. Files that cannot
/// be looked at are left out. Keys of certificates are checked with the certificates.
fn secret_files(config: &Config, secrets: &[PathBuf]) -> Vec<Check> {
    let state = config.admin.as_ref().and_then(|it| it.state_file.as_ref());
    let mut checks = Vec::new();
    for path in secrets.iter().chain(state) {
        let Ok(metadata) = path.metadata() else {
            continue;
        };
        let path = path.display();
        let mode = metadata.permissions().mode() & 0o777;
        let is_closed = mode & 0o007 == 0;
        let subject = format!("mode of {path}");
        let needed = "no access for others than its user and group, such as 0640";
        let value = format!("{mode:04o}");
        checks.push(Check::of(is_closed, subject, value, needed).by(format!("chmod 640 {path}")));
    }
    checks
}

/// Checks the free space where the access log and the state file are written.
fn space(config: &Config) -> Vec<Check> {
    let log = match &config.log.access {
        AccessLogTarget::File(path) => Some(path),
        AccessLogTarget::Off | AccessLogTarget::Stdout | AccessLogTarget::Syslog(_) => None,
    };
    let hosts = config.log.hosts.iter().map(|(path, _)| path);
    let state = config.admin.as_ref().and_then(|it| it.state_file.as_ref());
    let mut folders: Vec<&Path> = log
        .into_iter()
        .chain(hosts)
        .chain(state)
        .filter_map(|path| path.parent())
        .collect();
    folders.sort();
    folders.dedup();
    folders.into_iter().map(space_check).collect()
}

fn space_check(folder: &Path) -> Check {
    let subject = format!("space in {}", folder.display());
    let Ok(found) = rustix::fs::statvfs(folder) else {
        return Check::of(false, subject, "no such directory", "to write there")
            .by("create it, or let systemd do so with LogsDirectory and StateDirectory");
    };
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let needed = "128 MiB needed: a log that is full loses lines";
    let value = format!("{} MiB", free >> 20);
    Check::of(free >= SPACE, subject, value, needed).by("logrotate, or another directory")
}

const UNIT: &str = "catamaran.service";
/// How long systemd waits for a service to stop unless `TimeoutStopSec` is set.
const STOP_TIMEOUT: Duration = Duration::from_secs(90);
/// The new clients within one second for which a listen queue should have room; most machines allow that by default.
const BURST: u64 = 1024;
/// The memory of an idle client without TLS, in bytes; `IDLE_TLS` is that of one with TLS.
const IDLE: u64 = 1 << 10;
const IDLE_TLS: u64 = 5 << 10;
/// The memory of an exchange with a backend, in bytes: a packet of AJP13 each way, and bytes read ahead.
const BUFFERS: u64 = 32 << 10;
/// The memory of the program before it serves, in bytes.
const PROGRAM: u64 = 32 << 20;
const SPACE: u64 = 128 << 20;
