//! Apache httpd, as a front to our connector, with either of its AJP modules or over HTTP/1.1.
//!
//! httpd must be told a port, so it gets one on an address that only this process uses.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::ensure;
use catamaran_testkit::{Address, Deadline, Process, address};

/// A running httpd.
#[derive(Debug)]
pub struct Httpd {
    process: Process,
    address: SocketAddr,
}

const PROGRAM: &str = "/usr/sbin/apache2";
const MODULES: &str = "/usr/lib/apache2/modules";

impl Httpd {
    /// httpd that passes every request to `backend` with `mod_proxy_ajp`.
    ///
    /// # Errors
    /// httpd is not installed or did not start; the message has its log.
    pub fn with_mod_proxy_ajp(backend: SocketAddr) -> anyhow::Result<Self> {
        // Without a pause after a failure: a test's backend fails on purpose.
        let directives = format!("ProxyPass / ajp://{backend}/ retry=0\n");
        Self::start(&["proxy", "proxy_ajp"], &directives)
    }

    /// httpd that passes every request to `backend` with `mod_proxy_http`.
    ///
    /// # Errors
    /// httpd is not installed or did not start; the message has its log.
    pub fn with_mod_proxy_http(backend: SocketAddr) -> anyhow::Result<Self> {
        let directives = format!("ProxyPass / http://{backend}/ retry=0\n");
        Self::start(&["proxy", "proxy_http"], &directives)
    }

    /// httpd that passes every request to `backend` with `mod_jk`.
    ///
    /// # Errors
    /// httpd is not installed or did not start; the message has its log.
    pub fn with_mod_jk(backend: SocketAddr) -> anyhow::Result<Self> {
        let mut directives =
            String::from("JkMount /* app\nJkShmFile jk-runtime-status\nJkLogFile jk.log\n");
        for (key, value) in [
            ("list", "app".to_owned()),
            ("app.type", "ajp13".to_owned()),
            ("app.host", backend.ip().to_string()),
            ("app.port", backend.port().to_string()),
        ] {
            let _ = writeln!(directives, "JkWorkerProperty worker.{key}={value}");
        }
        Self::start(&["jk"], &directives)
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
