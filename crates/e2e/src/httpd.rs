//! Apache httpd, as a front to our connector, with either of its AJP modules or over HTTP/1.1.
//!
//! httpd must be told a port, so it gets one on an address that only this process uses.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::{bail, ensure};
use catamaran_testkit::{Address, Deadline, Process, address};

/// A running httpd.
#[derive(Debug)]
pub struct Httpd {
    process: Process,
    address: SocketAddr,
}

/// A module of httpd that reaches a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Module {
    /// `mod_proxy_ajp`, part of httpd.
    ProxyAjp,
    /// `mod_proxy_http`, part of httpd.
    ProxyHttp,
    /// `mod_jk`, Tomcat's own.
    Jk,
}

const PROGRAM: &str = "/usr/sbin/apache2";
const MODULES: &str = "/usr/lib/apache2/modules";

impl Httpd {
    /// httpd that passes every request to `backend` with `mod_proxy_ajp`.
    ///
    /// # Errors
    /// httpd is not installed or did not start; the message has its log.
    pub fn with_mod_proxy_ajp(backend: SocketAddr) -> anyhow::Result<Self> {
        Self::with(Module::ProxyAjp, &backend.into(), &[])
    }

    /// httpd that passes every request to `backend` with `mod_proxy_http`.
    ///
    /// # Errors
    /// httpd is not installed or did not start; the message has its log.
    pub fn with_mod_proxy_http(backend: SocketAddr) -> anyhow::Result<Self> {
        Self::with(Module::ProxyHttp, &backend.into(), &[])
    }

    /// httpd that passes every request to `backend` with `mod_jk`.
    ///
    /// # Errors
    /// httpd is not installed or did not start; the message has its log.
    pub fn with_mod_jk(backend: SocketAddr) -> anyhow::Result<Self> {
        Self::with(Module::Jk, &backend.into(), &[])
    }

    /// httpd that passes every request to `backend` with `module`, which is told `settings` besides:
    /// parameters of `ProxyPass`, or properties of the worker of `mod_jk`. Its log tells what it does
    /// on a connection.
    ///
    /// # Errors
    /// As [`Httpd::with`].
    pub fn talkative(
        module: Module,
        backend: &Address,
        settings: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let level = match module {
            Module::ProxyAjp => "LogLevel proxy_ajp:trace8",
            Module::ProxyHttp => "LogLevel proxy_http:trace8",
            Module::Jk => "JkLogLevel debug",
        };
        Self::run(module, backend, settings, level)
    }

    /// The same with the log of errors only.
    ///
    /// # Errors
    /// httpd is not installed or did not start; the message has its log. `mod_jk` cannot reach a
    /// Unix socket.
    pub fn with(
        module: Module,
        backend: &Address,
        settings: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        Self::run(module, backend, settings, "")
    }

    fn run(
        module: Module,
        backend: &Address,
        settings: &[(&str, &str)],
        level: &str,
    ) -> anyhow::Result<Self> {
        let (modules, directives) = match module {
            Module::ProxyAjp => (
                &["proxy", "proxy_ajp"][..],
                proxy_pass("ajp", backend, settings),
            ),
            Module::ProxyHttp => (
                &["proxy", "proxy_http"][..],
                proxy_pass("http", backend, settings),
            ),
            Module::Jk => (&["jk"][..], jk_mount(backend, settings)?),
        };
        Self::start(modules, &format!("{directives}{level}\n"))
    }

    /// Where httpd listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The process, to look at its log.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }

    fn start(modules: &[&str], directives: &str) -> anyhow::Result<Self> {
        ensure!(
            Path::new(PROGRAM).exists(),
            "{PROGRAM} is missing: `cargo xtask test` installs it"
        );
        let directory = tempfile::tempdir()?;
        let address = address::unused()?;
        let root = directory.path().display();
        let mut config = format!(
            "ServerRoot {root}\nServerName localhost\nListen {address}\nPidFile httpd.pid\n\
             ErrorLog /dev/stderr\nMutex file:{root}\nKeepAlive On\nMaxKeepAliveRequests 0\n"
        );
        for module in ["mpm_event", "authz_core"].iter().chain(modules) {
            let _ = writeln!(
                config,
                "LoadModule {module}_module {MODULES}/mod_{module}.so"
            );
        }
        config.push_str(directives);
        let file = directory.path().join("httpd.conf");
        fs::write(&file, config)?;
        let mut command = Command::new(PROGRAM);
        command.arg("-DFOREGROUND").arg("-f").arg(&file);
        let mut process = Process::spawn_in(&mut command, directory)?;
        let listens = Address::from(address);
        let ended = Deadline::default().poll(format!("httpd on {address}"), || {
            let connected = listens.connect(Deadline::DEFAULT).is_ok();
            let ended = !connected && !matches!(process.try_wait(), Ok(None));
            (connected || ended).then_some(ended)
        })?;
        ensure!(!ended, "httpd did not start: {}", process.stderr());
        Ok(Self { process, address })
    }
}

fn proxy_pass(scheme: &str, backend: &Address, settings: &[(&str, &str)]) -> String {
    let url = match backend {
        Address::Tcp(address) => format!("{scheme}://{address}/"),
        Address::Unix(path) => format!("unix:{}|{scheme}://localhost/", path.display()),
    };
    // Without a pause after a failure: a test's backend fails on purpose.
    let mut directives = format!("ProxyPass / \"{url}\" retry=0");
    for (key, value) in settings {
        let _ = write!(directives, " {key}={value}");
    }
    directives.push('\n');
    directives
}

fn jk_mount(backend: &Address, settings: &[(&str, &str)]) -> anyhow::Result<String> {
    let Address::Tcp(backend) = backend else {
        bail!("mod_jk cannot reach {backend}");
    };
    let mut directives =
        String::from("JkMount /* app\nJkShmFile jk-runtime-status\nJkLogFile /dev/stderr\n");
    let (host, port) = (backend.ip().to_string(), backend.port().to_string());
    let worker = [("type", "ajp13"), ("host", &host), ("port", &port)];
    directives.push_str("JkWorkerProperty worker.list=app\n");
    for (key, value) in worker.iter().chain(settings) {
        let _ = writeln!(directives, "JkWorkerProperty worker.app.{key}={value}");
    }
    Ok(directives)
}
