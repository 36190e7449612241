//! The kinds of load, and the tools that make them: our own `bench`, which speaks AJP13, too, and
//! wrk as a second opinion over HTTP.

use std::fmt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use super::super::wrk;
use super::served::{Protocol, Server};

/// Who asks, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::compare) enum Load {
    /// So many clients that keep their connections.
    Kept(usize),
    /// So many clients that open a connection for each request. Over HTTP they ask the server to
    /// close it, over AJP13 they have to do that themselves.
    Closing(usize),
    /// The same, but whatever the protocol it is the client that closes, unannounced.
    Leaving(usize),
    /// Clients that keep their connections, among others that do nothing.
    AmongIdle { active: usize, idle: usize },
}

impl Load {
    pub(in crate::compare) const ALL: [Self; 6] = [
        Self::Kept(10),
        Self::Kept(100),
        Self::Kept(500),
        Self::Closing(500),
        Self::Leaving(500),
        Self::AmongIdle {
            active: 100,
            idle: 5000,
        },
    ];

    /// As it is written on the command line.
    pub(in crate::compare) fn key(&self) -> String {
        match self {
            Self::Kept(clients) => clients.to_string(),
            Self::Closing(_) => "closing".to_owned(),
            Self::Leaving(_) => "leaving".to_owned(),
            Self::AmongIdle { .. } => "idle".to_owned(),
        }
    }

    pub(super) fn idle(self) -> usize {
        match self {
            Self::AmongIdle { idle, .. } => idle,
            Self::Kept(_) | Self::Closing(_) | Self::Leaving(_) => 0,
        }
    }

    fn clients(self) -> usize {
        match self {
            Self::Kept(clients) | Self::Closing(clients) | Self::Leaving(clients) => clients,
            Self::AmongIdle { active, .. } => active,
        }
    }

    /// Whether clients keep their connections.
    pub(super) fn keeps(self) -> bool {
        !matches!(self, Self::Closing(_))
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kept(clients) => write!(f, "{clients} kept"),
            Self::Closing(clients) => write!(f, "{clients} closing"),
            Self::Leaving(clients) => write!(f, "{clients} leaving"),
            Self::AmongIdle { active, idle } => write!(f, "{active} among {idle} idle"),
        }
    }
}

/// What a tool saw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Report {
    pub(super) requests: u64,
    pub(super) per_second: f64,
    pub(super) p50: Duration,
    pub(super) p99: Duration,
    pub(super) failed: u64,
}

/// Which program makes the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::compare) enum ToolKind {
    Bench,
    Wrk,
}

impl ToolKind {
    pub(in crate::compare) fn name(self) -> &'static str {
        match self {
            Self::Bench => "bench",
            Self::Wrk => "wrk",
        }
    }
}

/// A program that makes the load.
#[derive(Debug)]
pub(super) struct Tool<'a> {
    kind: ToolKind,
    binary: &'a Path,
}

/// A load that runs.
#[derive(Debug)]
pub(super) struct Running {
    kind: ToolKind,
    child: Child,
}

impl<'a> Tool<'a> {
    pub(super) fn new(kind: ToolKind, binary: &'a Path) -> Self {
        Self { kind, binary }
    }

    /// wrk's clients do not leave a connection that may be kept.
    pub(super) fn makes(&self, load: Load) -> bool {
        self.kind == ToolKind::Bench || !matches!(load, Load::Leaving(_))
    }

    pub(super) fn speaks(&self, protocol: Protocol) -> bool {
        self.kind == ToolKind::Bench || protocol == Protocol::Http
    }

    /// Runs to the end.
    pub(super) fn run(
        &self,
        server: &Server,
        protocol: Protocol,
        load: Load,
        seconds: u32,
    ) -> anyhow::Result<Report> {
        self.start(server, protocol, load, seconds)?.finish()
    }

    /// One thread, on the core this process is on.
    pub(super) fn start(
        &self,
        server: &Server,
        protocol: Protocol,
        load: Load,
        seconds: u32,
    ) -> anyhow::Result<Running> {
        let url = format!(
            "{protocol}://{}{}",
            server.address(protocol)?,
            server.path()
        );
        let mut command = match self.kind {
            ToolKind::Bench => self.bench(load, seconds),
            ToolKind::Wrk => wrk::command(load.clients(), seconds, load.keeps()),
        };
        command.arg(url).stdin(Stdio::null());
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        Ok(Running {
            kind: self.kind,
            child: child.with_context(|| self.to_string())?,
        })
    }

    fn bench(&self, load: Load, seconds: u32) -> Command {
        let mut command = Command::new(self.binary);
        command.args(["bench", "--json", "--quiet", "--threads", "1"]);
        command.args(["--concurrency", &load.clients().to_string()]);
        command.args(["--duration", &format!("{seconds}s")]);
        match load {
            Load::Closing(_) => {}
            Load::Leaving(_) => {
                command.args(["--requests-per-connection", "1"]);
            }
            Load::Kept(_) | Load::AmongIdle { .. } => {
                command.arg("--keep-alive");
            }
        }
        command
    }
}

impl fmt::Display for Tool<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())
    }
}

impl Running {
    /// Waits for its end.
    pub(super) fn finish(self) -> anyhow::Result<Report> {
        let output = self.child.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        match self.kind {
            ToolKind::Bench => parse(&said).with_context(|| {
                let complaint = String::from_utf8_lossy(&output.stderr);
                format!("bench said {said:?} and {complaint:?}")
            }),
            ToolKind::Wrk => {
                ensure!(output.status.success(), "wrk: {}", output.status);
                let wrk::Report {
                    requests,
                    per_second,
                    p50,
                    p99,
                    socket_errors,
                    bad_statuses,
                } = wrk::parse(&said)?;
                Ok(Report {
                    requests,
                    per_second,
                    p50,
                    p99,
                    failed: socket_errors + bad_statuses,
                })
            }
        }
    }
}

/// Reads the JSON of `bench`.
fn parse(text: &str) -> anyhow::Result<Report> {
    let json: serde_json::Value = serde_json::from_str(text)?;
    let number = |pointer: &str| {
        let found = json.pointer(pointer);
        found.with_context(|| format!("no {pointer} in the report"))
    };
    let count = |pointer: &str| number(pointer)?.as_u64().context("not a count");
    let micros = |pointer: &str| Ok::<_, anyhow::Error>(Duration::from_micros(count(pointer)?));
    let requests = count("/requests/ok")?;
    if requests == 0 {
        bail!("not one request was answered");
    }
    Ok(Report {
        requests,
        per_second: number("/throughput/requests_per_s")?
            .as_f64()
            .context("not a rate")?,
        p50: micros("/latency/total/p50_us")?,
        p99: micros("/latency/total/p99_us")?,
        failed: count("/requests/failed")? + count("/requests/non_2xx")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_of_bench_is_read() {
        let text = r#"{
            "requests": {"ok": 1000, "failed": 1, "non_2xx": 2},
            "throughput": {"requests_per_s": 333.5},
            "latency": {"total": {"p50_us": 1500, "p99_us": 9000}}
        }"#;
        let expected = Report {
            requests: 1000,
            per_second: 333.5,
            p50: Duration::from_micros(1500),
            p99: Duration::from_micros(9000),
            failed: 3,
        };
        assert_eq!(parse(text).unwrap(), expected);
        assert!(parse("{}").is_err());
        assert!(parse(&text.replace("1000", "0")).is_err());
    }

    #[test]
    fn loads_have_names() {
        let names = Load::ALL.map(|load| load.to_string());
        let expected = [
            "10 kept",
            "100 kept",
            "500 kept",
            "500 closing",
            "500 leaving",
            "100 among 5000 idle",
        ];
        assert_eq!(names, expected);
    }
}
