//! What the front is counted between: the built-in application behind it, and `bench` with one
//! connection before it. Both are of the working tree, whichever build is counted.

use std::cell::Cell;
use std::fs;
use std::io::Read as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use catamaran_gauge::memory;
use catamaran_http_client::{BlockingClient, ClientRequest, ServerAddress};
use catamaran_tier::{Job, Launch, Priority, Process, Programs, Space, Target, builtin};
use serde_json::Value;

use super::build::Build;
use super::{Backend, Case, Client, FEW, MANY};

/// The backend, and a place for fronts.
#[derive(Debug)]
pub(super) struct Stand {
    /// Before the space, whose end takes the directory along.
    app: Process,
    space: Space,
    program: String,
    /// Fronts started so far: each has a directory of its own.
    started: Cell<u32>,
}

impl Stand {
    pub(super) fn start(own: &Build) -> anyhow::Result<Self> {
        let space = Space::shared()?;
        let target = builtin("app").context("a target of ours")?;
        let programs = programs(own);
        let app = space.start(&Launch {
            name: "app",
            target: &target,
            settings: &target.settings(&[])?,
            programs: &programs,
            core: None,
            limit: None,
        })?;
        Ok(Self {
            app,
            space,
            program: own.binary().display().to_string(),
            started: Cell::new(0),
        })
    }

    /// Instructions of one request, of all threads of the front together.
    pub(super) fn instructions(&self, build: &Build, case: Case) -> anyhow::Result<f64> {
        let few = self.count(build, case, FEW)?;
        let many = self.count(build, case, MANY)?;
        let more = many.checked_sub(few);
        let more = more.with_context(|| format!("{few} instructions, then {many}"))?;
        Ok(more as f64 / (MANY - FEW) as f64)
    }

    /// Instructions from the front's start to its end.
    fn count(&self, build: &Build, case: Case, requests: u64) -> anyhow::Result<u64> {
        let backend = match case.backend {
            Backend::Ajp | Backend::Cache => self.app.url("ajp"),
            Backend::Http => self.app.url("http"),
        };
        let client = match case.client {
            Client::Http1 => "http/1.1",
            Client::Http2 => "h2",
        };
        let set = [
            ("backend", backend.as_str()),
            ("client", client),
            ("access_log", on(case.is_logged)),
            ("cache", on(case.backend == Backend::Cache)),
        ];
        let target = Target::parse("front.toml", include_str!("front.toml"), &[])?;
        let mut front = self.front(&target, build, &set)?;
        self.load(&front, case.client, requests)?;
        let alarms = front.alarms();
        ensure!(alarms.is_empty(), "the front says {alarms:?}");
        let log = front.directory().join("access.log");
        let counted = front.directory().join("callgrind.out");
        front.stop();
        if case.is_logged {
            check_log(&log, requests)?;
        }
        let text = fs::read_to_string(&counted);
        let text = text.with_context(|| counted.display().to_string())?;
        total(&text).with_context(|| format!("no count in {}", counted.display()))
    }

    fn front(
        &self,
        target: &Target,
        build: &Build,
        set: &[(&str, &str)],
    ) -> anyhow::Result<Process> {
        self.started.set(self.started.get() + 1);
        let programs = programs(build);
        Ok(self.space.start(&Launch {
            name: &format!("front-{}", self.started.get()),
            target,
            settings: &target.settings(set)?,
            programs: &programs,
            core: None,
            limit: None,
        })?)
    }

    /// Sends `requests` on one connection, one at a time.
    fn load(&self, front: &Process, client: Client, requests: u64) -> anyhow::Result<()> {
        let url = format!("{}/", front.url("http"));
        let count = requests.to_string();
        let mut words = vec![
            &*self.program,
            "bench",
            "-q",
            "--json",
            "-W",
            "1",
            "-c",
            "1",
        ];
        words.push(match client {
            Client::Http1 => "-k",
            Client::Http2 => "--http2",
        });
        words.extend(["-n", &count, &url]);
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        let mut task = self.space.run(&Job {
            name: "load",
            core: None,
            limit: None,
            priority: Priority::Inherited,
            command: &words,
        })?;
        let stdout = task.child.stdout.take().context("its output is piped")?;
        let mut said = String::new();
        stdout.take(SAID_MAX).read_to_string(&mut said)?;
        task.child.wait()?;
        check_load(&said, requests).with_context(|| format!("bench said {said}"))
    }

    /// Bytes that an HTTP/1.1 connection takes of the front after one request.
    pub(super) fn idle_bytes(&self, build: &Build) -> anyhow::Result<f64> {
        let target = builtin("front").context("a target of ours")?;
        let backend = self.app.url("ajp");
        let set = [("backend", backend.as_str()), ("ready_path", "/")];
        let front = self.front(&target, build, &set)?;
        let address = front.address("http");
        let open = |count: usize| -> anyhow::Result<Vec<BlockingClient>> {
            (0..count).map(|_| connection(address)).collect()
        };
        let anonymous = || memory::shares(&front.processes()).map(|shares| shares.anonymous);
        let first = open(FIRST)?;
        let before = anonymous()?;
        let others = open(OTHERS)?;
        let after = anonymous()?;
        drop((first, others));
        Ok(after.saturating_sub(before) as f64 / OTHERS as f64)
    }

    /// Bytes that a page takes of a front that keeps it in memory: all that the front has more of, whether the cache
    /// counts it or not. Each page is asked for twice, so that what its use takes is there as well.
    pub(super) fn cached_bytes(&self, build: &Build) -> anyhow::Result<f64> {
        let target = builtin("front").context("a target of ours")?;
        let backend = self.app.url("http");
        let set = [
            ("backend", backend.as_str()),
            ("ready_path", "/"),
            ("cache", "on"),
            ("cache_ttl", "1h"),
        ];
        let front = self.front(&target, build, &set)?;
        let address = front.address("http");
        let mut client = connection(address)?;
        let mut ask = |pages: std::ops::Range<usize>| -> anyhow::Result<()> {
            for page in pages {
                for _ in 0..2 {
                    get(&mut client, address, &format!("/?page={page}"))?;
                }
            }
            Ok(())
        };
        let anonymous = || memory::shares(&front.processes()).map(|shares| shares.anonymous);
        ask(0..PAGES_FIRST)?;
        let before = anonymous()?;
        ask(PAGES_FIRST..PAGES_FIRST + PAGES)?;
        let after = anonymous()?;
        Ok(after.saturating_sub(before) as f64 / PAGES as f64)
    }
}

fn on(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

fn programs(build: &Build) -> Programs {
    Programs::from([("catamaran".to_owned(), build.binary().to_owned())])
}

/// A connection that has made one request.
fn connection(address: SocketAddr) -> anyhow::Result<BlockingClient> {
    let mut client = BlockingClient::connect(&ServerAddress::Tcp(address), PATIENCE)?;
    get(&mut client, address, "/")?;
    Ok(client)
}

/// Asks for the application's page.
fn get(client: &mut BlockingClient, address: SocketAddr, target: &str) -> anyhow::Result<()> {
    let host = address.to_string();
    let answer = client.ask(&ClientRequest::get(target, &host), PAGE_MAX, |_| ())?;
    ensure!(
        answer.is_whole && client.can_reuse(),
        "the front closed a connection"
    );
    Ok(())
}

/// Whether all requests were answered, and on one connection.
fn check_load(said: &str, requests: u64) -> anyhow::Result<()> {
    let report: Value = serde_json::from_str(said)?;
    let number = |path| report.pointer(path).and_then(Value::as_u64);
    ensure!(
        number("/requests/ok") == Some(requests),
        "not {requests} requests are ok"
    );
    ensure!(
        number("/requests/non_2xx") == Some(0),
        "a request was refused"
    );
    ensure!(
        number("/connections/opened") == Some(1),
        "more than one connection"
    );
    Ok(())
}

/// Whether each request has a line, as those before the client's have that asked whether the front serves.
fn check_log(path: &Path, requests: u64) -> anyhow::Result<()> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let lines = text.lines().count() as u64;
    ensure!(lines >= requests, "{lines} lines in the access log");
    Ok(())
}

/// What callgrind counted: the sum at the end of its file.
fn total(text: &str) -> Option<u64> {
    let mut sums = text
        .lines()
        .filter_map(|line| line.strip_prefix("totals: "));
    sums.next_back()?.trim().parse().ok()
}

const SAID_MAX: u64 = 1 << 20;
/// More than the application's page.
const PAGE_MAX: u64 = 1 << 20;
/// How long the front may be silent.
const PATIENCE: Duration = Duration::from_secs(30);
/// Connections before memory is looked at, which bring what a front needs once.
const FIRST: usize = 50;
const OTHERS: usize = 2_000;
/// Pages before memory is looked at, and then.
const PAGES_FIRST: usize = 2_000;
const PAGES: usize = 50_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_the_last_line_of_its_kind() {
        let text = "# callgrind format\nevents: Ir\nsummary: 5\n\nfn=(1) main\n1 5\n\ntotals: 42\n";
        assert_eq!(total(text), Some(42));
        assert_eq!(total("events: Ir\nfn=(1) totals: 3\n"), None);
        assert_eq!(total("totals: many\n"), None);
    }

    #[test]
    fn a_load_that_was_not_answered_in_full_is_no_count() {
        let report = |ok: u64, refused: u64, opened: u64| {
            serde_json::json!({
                "requests": { "ok": ok, "non_2xx": refused },
                "connections": { "opened": opened },
            })
            .to_string()
        };
        assert!(check_load(&report(10, 0, 1), 10).is_ok());
        assert!(check_load(&report(9, 0, 1), 10).is_err());
        assert!(check_load(&report(10, 1, 1), 10).is_err());
        assert!(check_load(&report(10, 0, 2), 10).is_err());
        assert!(check_load("", 10).is_err());
    }

    #[test]
    fn the_target_of_the_front_can_be_read() {
        let target = Target::parse("front.toml", include_str!("front.toml"), &[]).unwrap();
        for client in ["http/1.1", "h2"] {
            for cache in ["off", "on"] {
                let set = [
                    ("backend", "ajp://127.0.0.1:1"),
                    ("client", client),
                    ("cache", cache),
                ];
                target.settings(&set).unwrap();
            }
        }
    }
}
