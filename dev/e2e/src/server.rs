//! Starts servers that `tier` describes, each at an address that only this process uses, because they must be told a
//! port.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use anyhow::{Context, bail, ensure};
use catamaran_testkit::{Address, Deadline, Process, address};
use catamaran_tier::{Place, Programs, builtin, needs};

/// The URL of `address`, as the parameter `backend` of a target takes it.
pub(crate) fn url(scheme: &str, address: &Address) -> String {
    match address {
        Address::Tcp(address) => format!("{scheme}://{address}"),
        Address::Unix(path) => format!("{scheme}+unix:{}", path.display()),
    }
}

/// Starts the target `name` with these settings, and waits until it accepts connections on its port
/// `http`.
///
/// # Errors
/// The server is not installed, a setting is wrong, or the server did not start; the message has its log.
pub(crate) fn start(name: &str, set: &[(&str, &str)]) -> anyhow::Result<(Process, SocketAddr)> {
    start_on(name, "http", set)
}

/// As [`start`], for a target whose first port has another name.
///
/// # Errors
/// As [`start`].
pub(crate) fn start_on(
    name: &str,
    main: &str,
    set: &[(&str, &str)],
) -> anyhow::Result<(Process, SocketAddr)> {
    let target = builtin(name).with_context(|| format!("there is no target {name}"))?;
    let directory = tempfile::tempdir()?;
    let address = address::unused()?;
    let settings = target.settings(set)?;
    let mut ports = vec![(main.to_owned(), address)];
    for port in target.ports(&settings)? {
        if port != main {
            ports.push((port, address::unused()?));
        }
    }
    let place = Place {
        directory: directory.path(),
        ports: &ports,
        programs: &Programs::new(),
    };
    let server = target.render(&settings, &place)?;
    if let Some(need) = needs::missing(&server.needs).first() {
        let proof = need.proof.display();
        bail!("{proof} is missing: `cargo xtask needs` installs it");
    }
    for file in &server.files {
        let path = directory.path().join(&file.path);
        fs::create_dir_all(path.parent().unwrap_or_else(|| directory.path()))?;
        fs::write(path, &file.text)?;
    }
    let (program, arguments) = server.command.split_first().context("an empty command")?;
    let mut process = Process::spawn_in(Command::new(program).args(arguments), directory)?;
    let listener = Address::from(address);
    let is_running = Deadline::default().poll(format!("{name} on {address}"), || {
        if listener.connect(Deadline::DEFAULT).is_ok() {
            return Some(true);
        }
        match process.try_wait() {
            Ok(None) => None,
            Ok(Some(_)) | Err(_) => Some(false),
        }
    })?;
    ensure!(is_running, "{name} did not start: {}", process.stderr());
    Ok((process, address))
}
