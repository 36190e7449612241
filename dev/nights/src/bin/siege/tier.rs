//! The servers of a siege: our own applications and the front, and figures of the front from `/metrics` and `/proc`.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use catamaran_e2e::{Front, catamaran};
use catamaran_gauge::{cpu, memory, process};
use catamaran_testkit::{HttpClient, Process};

/// Our application, listening on one address.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) process: Process,
    /// The URL for a configuration.
    pub(crate) url: String,
}

/// A front with an admin listener.
#[derive(Debug)]
pub(crate) struct Besieged {
    pub(crate) front: Front,
    admin: SocketAddr,
    /// The id of the process that was started; upgrades start others.
    pub(crate) id: u32,
}

/// The resources that a process uses at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// CPU time since it started.
    pub(crate) cpu: Duration,
    /// Bytes of resident memory that the process allocated: its heap and stacks.
    pub(crate) private: u64,
    /// All resident bytes.
    pub(crate) resident: u64,
    /// All resident bytes, where memory that n processes share counts one n-th (PSS).
    pub(crate) proportional: u64,
    pub(crate) open_files: usize,
}

impl App {
    /// Starts the application; `protocol` is `ajp` or `http`, `listen` an address as `catamaran app` takes it.
    pub(crate) fn start(protocol: &str, listen: &str) -> anyhow::Result<Self> {
        let process = catamaran(&["app", &format!("--{protocol}"), listen, "--workers", "1"])?;
        let url = process.wait_for_line("an address", |line| {
            line.strip_prefix("listening on ").map(str::to_owned)
        })?;
        Ok(Self { process, url })
    }
}

impl Besieged {
    /// Starts a front. Its file has these keys of `[server]`, a listener on a free port, the admin listener, no
    /// access log, and `tables`.
    pub(crate) fn start(server: &str, tables: &str) -> anyhow::Result<Self> {
        Self::with_config(&config(server, tables))
    }

    /// Starts a front with this file, which must have a listener, and an admin listener over TCP.
    pub(crate) fn with_config(text: &str) -> anyhow::Result<Self> {
        let mut front = Front::with_config(text)?;
        let id = front.process().id();
        let line = front.wait_for_log("admin on http://")?;
        let (_, admin) = line.rsplit_once("http://").context("an address")?;
        let admin = admin.trim().parse()?;
        Ok(Self { front, admin, id })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.front.address()
    }

    /// The sum of a metric's samples. `name` is the metric's name, or the name with all labels of one sample as the
    /// page `/metrics` prints them. Without such a sample the sum is 0.
    ///
    /// # Errors
    /// The front has no metric of this name, or does not answer.
    pub(crate) fn metric(&self, name: &str) -> anyhow::Result<f64> {
        let mut client = HttpClient::connect(self.admin)?;
        let page = client
            .ask(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")?
            .text();
        let family = name.split('{').next().unwrap_or_default();
        ensure!(
            page.contains(&format!("# TYPE {family} ")),
            "the front has no metric {family}"
        );
        let sample = |line: &str| {
            let (labels, value) = line.strip_prefix(name)?.rsplit_once(' ')?;
            // Otherwise the name goes on: it is that of another metric.
            if labels.is_empty() || labels.starts_with('{') {
                value.parse::<f64>().ok()
            } else {
                None
            }
        };
        Ok(page.lines().filter_map(sample).sum())
    }

    /// The status of a change that the admin listener is asked for.
    pub(crate) fn change(&self, path: &str, token: &str, wish: &str) -> anyhow::Result<u16> {
        let mut client = HttpClient::connect(self.admin)?;
        let length = wish.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{wish}",
            self.admin
        );
        client.send(request.as_bytes())?;
        Ok(client.receive()?.status)
    }

    pub(crate) fn usage(&self) -> anyhow::Result<Usage> {
        usage(self.id)
    }

    /// Lines of the front's output with `panic` or `ERROR` in them.
    pub(crate) fn alarms(&self) -> Vec<String> {
        let said = self.front.log();
        let alarming = |line: &&str| line.contains("panic") || line.contains("ERROR");
        said.lines().filter(alarming).map(str::to_owned).collect()
    }
}

/// A whole configuration file; `server` is text for `[server]`, and `tables` comes after the listener.
pub(crate) fn config(server: &str, tables: &str) -> String {
    format!(
        "[server]\nworkers = 2\n{server}[log]\naccess = \"off\"\n[admin]\n\
         address = \"127.0.0.1:0\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n{tables}"
    )
}

/// One upstream that serves every path, with backends of these URLs and `keys` for each of them.
pub(crate) fn upstream(urls: &[&str], keys: &str) -> String {
    let mut tables = String::from("[[route]]\nupstream = \"app\"\n");
    for url in urls {
        let _ = write!(tables, "[[upstream.app.backend]]\nurl = \"{url}\"\n{keys}");
    }
    tables
}

/// The resources that the process `id` uses now.
pub(crate) fn usage(id: u32) -> anyhow::Result<Usage> {
    let memory = memory::of_process(id)?;
    Ok(Usage {
        cpu: cpu::of_process(id)?.total(),
        private: memory.private,
        resident: memory.resident,
        proportional: memory::shares(&[id])?.proportional,
        open_files: process::open_files(id)?,
    })
}

/// Bytes in MiB.
pub(crate) fn mib(bytes: u64) -> f64 {
    bytes as f64 / (1 << 20) as f64
}

/// An event loop for the calling thread.
pub(crate) fn event_loop() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

/// Blocks this thread for `time`; clients on other threads go on.
pub(crate) fn wait(time: Duration) -> anyhow::Result<()> {
    event_loop()?.block_on(pause(time));
    Ok(())
}

/// Waits for `time`; other tasks run meanwhile.
pub(crate) async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}
