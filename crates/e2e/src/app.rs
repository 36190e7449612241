//! The built binary as an application, from `catamaran app`.
//!
//! It serves AJP13 and HTTP/1.1 at the same time, on free ports or on Unix sockets, and says on
//! stderr where. With `--log-level debug` it also says why it gave a request or connection up.

use std::net::SocketAddr;

use anyhow::Context;
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
    /// It did not start; the message has its output.
    pub fn start(model: &str, options: &[&str]) -> anyhow::Result<Self> {
        let addresses = ["--ajp=127.0.0.1:0", "--http=127.0.0.1:0"];
        let process = spawn(model, addresses, options, tempfile::tempdir()?)?;
        let address = |scheme: &str| {
            let wanted = format!("listening on {scheme}://");
            process.wait_for_line(&wanted, |line| {
                let (_, address) = line.split_once(&wanted)?;
                let address = address.split_whitespace().next()?;
                address
                    .parse()
                    .ok()
                    .map(|address: SocketAddr| address.into())
            })
        };
        let (ajp, http) = (address("ajp")?, address("http")?);
        Ok(Self { process, ajp, http })
    }

    /// The same on two Unix sockets.
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
        let process = spawn(model, [&options[0], &options[1]], &[], directory)?;
        process.wait_for_line("both sockets", |line| {
            line.contains("http+unix:").then_some(())
        })?;
        Ok(Self {
            process,
            ajp: ajp.into(),
            http: http.into(),
        })
    }

    /// Where it speaks AJP13.
    #[must_use]
    pub fn ajp(&self) -> &Address {
        &self.ajp
    }

    /// Where it speaks HTTP/1.1.
    #[must_use]
    pub fn http(&self) -> &Address {
        &self.http
    }

    /// Waits until it has given a request or connection up for a reason that begins with `reason`.
    ///
    /// # Errors
    /// It did not say so; the message has what it said.
    pub fn wait_until_gave_up(&self, reason: &str) -> anyhow::Result<()> {
        let reason = format!("reason=\"{reason}");
        let gave_up = |line: &str| line.contains(&reason).then_some(());
        self.process.wait_for_line(&reason, gave_up)
    }
}

fn spawn(
    model: &str,
    addresses: [&str; 2],
    options: &[&str],
    directory: tempfile::TempDir,
) -> anyhow::Result<Process> {
    let mut command = std::process::Command::new(binary()?);
    command.args(["app", "--log-level", "debug", "--io", model]);
    command.args(addresses).args(options);
    Process::spawn_in(&mut command, directory).with_context(|| format!("app --io {model}"))
}
