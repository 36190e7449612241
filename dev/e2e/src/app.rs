//! `catamaran app`, the built-in application of the binary under test.
//!
//! It serves AJP13 and HTTP/1.1 at the same time, on free ports or on Unix sockets, and prints the addresses to
//! stderr. With `--log-level debug` it also prints why it refused a request or closed a connection.

use std::net::SocketAddr;
use std::process::Command;

use catamaran_testkit::{Address, Process};

use crate::binary;

/// A running application.
#[derive(Debug)]
pub struct App {
    process: Process,
    ajp: Address,
    http: Address,
}

impl App {
    /// `catamaran app --io MODEL` with AJP13 and HTTP/1.1 on free ports, and further `options`.
    ///
    /// # Errors
    /// The application did not start; the message has its output.
    pub fn start(model: &str, options: &[&str]) -> anyhow::Result<Self> {
        Self::on_free_ports(&mut command(model)?, options)
    }

    /// As [`App::start`], with one worker and a limit of `files` open files.
    ///
    /// # Errors
    /// As [`App::start`].
    pub fn start_with_files(model: &str, files: usize) -> anyhow::Result<Self> {
        let app = command(model)?;
        let mut limited = Command::new("prlimit");
        limited.arg(format!("--nofile={files}:{files}"));
        limited.arg(app.get_program()).args(app.get_args());
        Self::on_free_ports(&mut limited, &["--workers=1"])
    }

    fn on_free_ports(command: &mut Command, options: &[&str]) -> anyhow::Result<Self> {
        command
            .args(["--ajp=127.0.0.1:0", "--http=127.0.0.1:0"])
            .args(options);
        let process = Process::spawn_in(command, tempfile::tempdir()?)?;
        let address = |scheme: &str| {
            let wanted = format!("listening on {scheme}://");
            process.wait_for_line(&wanted, |line| {
                let (_, behind) = line.split_once(&wanted)?;
                let word = behind.split_whitespace().next()?;
                let address: SocketAddr = word.parse().ok()?;
                Some(address.into())
            })
        };
        let (ajp, http) = (address("ajp")?, address("http")?);
        Ok(Self { process, ajp, http })
    }

    /// As [`App::start`], on two Unix sockets.
    ///
    /// # Errors
    /// As [`App::start`].
    pub fn start_on_unix_sockets(model: &str) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let path = |name: &str| directory.path().join(name);
        let (ajp, http) = (path("ajp"), path("http"));
        let options = [
            format!("--ajp=unix:{}", ajp.display()),
            format!("--http=unix:{}", http.display()),
        ];
        let process = Process::spawn_in(command(model)?.args(options), directory)?;
        process.wait_for_line("both sockets", |line| {
            line.contains("http+unix:").then_some(())
        })?;
        Ok(Self {
            process,
            ajp: ajp.into(),
            http: http.into(),
        })
    }

    /// The address for AJP13.
    #[must_use]
    pub fn ajp(&self) -> &Address {
        &self.ajp
    }

    /// The address for HTTP/1.1.
    #[must_use]
    pub fn http(&self) -> &Address {
        &self.http
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Waits for a line of output with `text` in it.
    ///
    /// # Errors
    /// No such line came; the message has all output.
    pub fn wait_for_log(&self, text: &str) -> anyhow::Result<()> {
        let found = |line: &str| line.contains(text).then_some(());
        self.process.wait_for_line(text, found)
    }

    /// Waits until the application logs that it gave up a request or connection for a reason that begins with
    /// `reason`.
    ///
    /// # Errors
    /// No such line came; the message has all output.
    pub fn wait_until_gave_up(&self, reason: &str) -> anyhow::Result<()> {
        self.wait_for_log(&format!("reason=\"{reason}"))
    }
}

fn command(model: &str) -> anyhow::Result<Command> {
    let mut command = Command::new(binary()?);
    command.args(["app", "--log-level", "debug", "--io", model]);
    Ok(command)
}
