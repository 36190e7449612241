//! `catamaran serve`, the front of the binary under test.
//!
//! It listens on port 0 and prints to stderr where: `listening on http://127.0.0.1:PORT`, one line for each listener.
//! Dropping a [`Front`] kills it; tests of an orderly end use [`Front::process`].

use std::fs::{self, File};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use catamaran_gauge::memory::{self, Memory};
use catamaran_testkit::{HttpClient, Process, Response};
use tempfile::TempDir;

use crate::binary;

/// A running front.
#[derive(Debug)]
pub struct Front {
    process: Process,
    address: SocketAddr,
}

impl Front {
    /// `catamaran serve --listen 127.0.0.1:0 --access-log - --upstream URL…`
    ///
    /// # Errors
    /// The front did not start; the message has its output.
    pub fn to(upstreams: &[&str]) -> anyhow::Result<Self> {
        let mut command = Command::new(binary()?);
        command.args(["serve", "--listen", "127.0.0.1:0", "--access-log", "-"]);
        for upstream in upstreams {
            command.args(["--upstream", upstream]);
        }
        Self::with_command(&mut command, tempfile::tempdir()?)
    }

    /// `catamaran serve` with these arguments and environment variables.
    ///
    /// # Errors
    /// The front did not start; the message has its output.
    pub fn with_arguments(arguments: &[&str], variables: &[(&str, &Path)]) -> anyhow::Result<Self> {
        let mut command = Command::new(binary()?);
        command.arg("serve").args(arguments);
        command.envs(variables.iter().copied());
        Self::with_command(&mut command, tempfile::tempdir()?)
    }

    /// `catamaran serve --config FILE` with a listener on a free port, and `tables` after it.
    ///
    /// # Errors
    /// The front did not start; the message has its output.
    pub fn with_tables(tables: &str) -> anyhow::Result<Self> {
        Self::with_config(&format!("{LISTEN}{tables}"))
    }

    /// As [`Front::with_tables`], for one upstream `app` that serves every path; `tables` has its keys and backends.
    ///
    /// # Errors
    /// The front did not start; the message has its output.
    pub fn to_app(tables: &str) -> anyhow::Result<Self> {
        Self::with_tables(&format!("[[route]]\nupstream = \"app\"\n{tables}"))
    }

    /// `catamaran serve --config FILE`, with `config` as the whole file. `{directory}` in it stands for the directory
    /// of the file, which is removed with the front.
    ///
    /// # Errors
    /// The front did not start; the message has its output.
    pub fn with_config(config: &str) -> anyhow::Result<Self> {
        Self::with_config_and_flags(config, &[])
    }

    /// As [`Front::with_config`], with further flags.
    ///
    /// # Errors
    /// The front did not start; the message has its output.
    pub fn with_config_and_flags(config: &str, flags: &[&str]) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let file = directory.path().join("catamaran.toml");
        let path = directory.path().to_string_lossy();
        fs::write(&file, config.replace("{directory}", &path))?;
        let mut command = Command::new(binary()?);
        command.arg("serve").arg("--config").arg(&file).args(flags);
        Self::with_command(&mut command, directory)
    }

    /// As [`Front::with_config`], but names are resolved only by the file `hosts` in the front's directory; `hosts`
    /// is its content at the start. No name server answers.
    ///
    /// # Errors
    /// The front did not start; the message has its output.
    pub fn with_hosts(config: &str, hosts: &str) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let path = directory.path();
        let own = path.to_string_lossy();
        fs::write(
            path.join("catamaran.toml"),
            config.replace("{directory}", &own),
        )?;
        fs::write(path.join("hosts"), hosts)?;
        fs::write(
            path.join("resolv.conf"),
            "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n",
        )?;
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-ec"])
            .arg(
                "mount --bind hosts /etc/hosts; mount --bind resolv.conf /etc/resolv.conf; \
                 exec \"$0\" serve --config catamaran.toml",
            )
            .arg(binary()?)
            .current_dir(path);
        Self::with_command(&mut command, directory)
    }

    /// As [`Front::with_config`], but `folder` is a disk of its own, of so many KiB, which [`Front::seen`] shows.
    ///
    /// # Errors
    /// The front did not start; the message has its output.
    pub fn with_small_disk(config: &str, folder: &Path, kib: u32) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        fs::write(directory.path().join("catamaran.toml"), config)?;
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-ec"])
            .arg(
                "mount -t tmpfs -o size=$1k tmpfs \"$2\"; \
                 exec \"$0\" serve --config catamaran.toml",
            )
            .arg(binary()?)
            .arg(kib.to_string())
            .arg(folder)
            .current_dir(directory.path());
        Self::with_command(&mut command, directory)
    }

    /// Where this process finds what the front sees at a path.
    #[must_use]
    pub fn seen(&self, path: &Path) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.process.id()));
        root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Changes the addresses of names, for a front of [`Front::with_hosts`], in at most 1024 bytes.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn set_hosts(&self, hosts: &str) -> anyhow::Result<()> {
        // The front does not see another file in this one's place, and may read at any moment. So the file is never
        // emptied or cut: lines without text follow.
        let text = hosts.to_owned() + &"\n".repeat(1024_usize.saturating_sub(hosts.len()));
        let mut file = File::options()
            .write(true)
            .open(self.directory().join("hosts"))?;
        Ok(file.write_all(text.as_bytes())?)
    }

    /// `catamaran serve --config FILE` with a file that stays where it is, and with these environment variables.
    ///
    /// # Errors
    /// The front did not start; the message has its output.
    pub fn with_file(file: &Path, variables: &[(String, String)]) -> anyhow::Result<Self> {
        let mut command = Command::new(binary()?);
        command.arg("serve").arg("--config").arg(file);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        Self::with_command(&mut command, tempfile::tempdir()?)
    }

    /// The address at which the front listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A new connection to the front.
    ///
    /// # Errors
    /// The front accepts no connections.
    pub fn connect(&self) -> anyhow::Result<HttpClient> {
        Ok(HttpClient::connect(self.address)?)
    }

    /// Sends `request` unchanged on a new connection, and reads one response.
    ///
    /// # Errors
    /// The front did not answer.
    pub fn ask(&self, request: impl AsRef<[u8]>) -> anyhow::Result<Response> {
        let mut client = self.connect()?;
        client.send(request.as_ref())?;
        Ok(client.receive()?)
    }

    /// A GET of `target` on a new connection.
    ///
    /// # Errors
    /// The front did not answer.
    pub fn get(&self, target: &str) -> anyhow::Result<Response> {
        self.ask(self.head("GET", target, ""))
    }

    /// The head of a request to this front; `fields` are whole lines, each with its CRLF.
    #[must_use]
    pub fn head(&self, method: &str, target: &str, fields: &str) -> String {
        let host = self.address;
        format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n")
    }

    /// The memory of the front's process at this moment.
    ///
    /// # Errors
    /// The front has ended.
    pub fn memory(&self) -> anyhow::Result<Memory> {
        Ok(memory::of_process(self.process.id())?)
    }

    /// The address of the admin listener. The configuration must have an `[admin]` on TCP.
    ///
    /// # Errors
    /// There is no admin listener.
    pub fn admin_address(&self) -> anyhow::Result<SocketAddr> {
        self.process.wait_for_line("the line `admin on`", |line| {
            let (_, url) = line.split_once("admin on http://")?;
            url.trim().parse().ok()
        })
    }

    /// The response of the admin listener to a GET. The configuration must have an `[admin]` on TCP.
    ///
    /// # Errors
    /// There is no admin listener, or it did not answer.
    pub fn ask_admin(&self, target: &str) -> anyhow::Result<Response> {
        let mut client = HttpClient::connect(self.admin_address()?)?;
        client.send(format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())?;
        Ok(client.receive()?)
    }

    /// The values of a metric's samples, in the order of the page `/metrics`. The configuration must have an
    /// `[admin]` on TCP.
    ///
    /// # Errors
    /// There is no admin listener, or it did not answer.
    pub fn metric(&self, name: &str) -> anyhow::Result<Vec<f64>> {
        let page = self.ask_admin("/metrics")?.text();
        let samples = page.lines().filter_map(|line| {
            let rest = line.strip_prefix(name)?;
            rest.starts_with(['{', ' ']).then_some(())?;
            rest.rsplit_once(' ')?.1.parse().ok()
        });
        Ok(samples.collect())
    }

    /// The front's process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Waits for a line of the access log, or any other output, with `text` in it.
    ///
    /// # Errors
    /// No such line came; the message has all output.
    pub fn wait_for_log(&self, text: &str) -> anyhow::Result<String> {
        let what = format!("a line with {text:?}");
        self.process
            .wait_for_line(&what, |line| line.contains(text).then(|| line.to_owned()))
    }

    /// All output so far: first the access log, then what the front writes to stderr.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.stdout() + &self.process.stderr()
    }

    /// The directory of the configuration file.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.process.directory()
    }

    /// The front that a command starts, which owns `directory`.
    ///
    /// # Errors
    /// The front did not start; the message has its output.
    pub fn with_command(command: &mut Command, directory: TempDir) -> anyhow::Result<Self> {
        let process = Process::spawn_in(command, directory)?;
        let address = process.wait_for_line("the line `listening on`", |line| {
            let (_, url) = line.split_once("listening on http")?;
            let (_, address) = url.split_once("://")?;
            address.split_whitespace().next()?.parse().ok()
        })?;
        Ok(Self { process, address })
    }
}

/// The listener that every configuration of these tests begins with.
const LISTEN: &str = "[[listen]]\naddress = \"127.0.0.1:0\"\n";
