//! What the front is measured with: behind it backends with fixed responses or the built-in application, before it
//! `bench`. `bench` and the application are of the working tree, also when another build of the front is counted.

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

use super::backend::{BackendProtocol, FixedBackend};
use super::build::Build;
use super::case::{Case, ClientProtocol, Extras, ResponseSource};
use super::heads::ResponseHead;

/// The backends, and a place for fronts.
#[derive(Debug)]
pub(super) struct Stand {
    backends: Vec<FixedBackend>,
    /// The application. It is declared before the space, because dropping the space removes the directory.
    app: Process,
    space: Space,
    program: String,
    /// The number of fronts started so far. Each front has a directory of its own.
    started: Cell<u32>,
}

impl Stand {
    /// Starts the application, and a backend for each protocol and each head of responses.
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
        let mut backends = Vec::new();
        for head in ResponseHead::ALL {
            for protocol in [BackendProtocol::Ajp, BackendProtocol::Http] {
                backends.push(FixedBackend::start(protocol, head)?);
            }
        }
        Ok(Self {
            backends,
            app,
            space,
            program: own.binary().display().to_string(),
            started: Cell::new(0),
        })
    }

    /// The instructions that all threads of the front together execute for one request.
    pub(super) fn instructions(&self, build: &Build, case: Case) -> anyhow::Result<f64> {
        let (few, many) = case.requests();
        let (first, second) = (
            self.count(build, case, few)?,
            self.count(build, case, many)?,
        );
        let more = second.checked_sub(first);
        let more = more.with_context(|| format!("{first} instructions, then {second}"))?;
        Ok(more as f64 / (many - few) as f64)
    }

    /// The instructions that the front executes from its start to its end.
    fn count(&self, build: &Build, case: Case, requests: u64) -> anyhow::Result<u64> {
        let protocol = match case.source {
            ResponseSource::Backend(protocol) => protocol,
            // Misses of the cache go to this backend, and so does the first request, which the limit lets pass.
            ResponseSource::Cache | ResponseSource::Refusal => BackendProtocol::Http,
        };
        let backend = self.backend(protocol, case.response)?;
        let other = match case.extras {
            Extras::Subrequest => self.backend(BackendProtocol::Http, ResponseHead::Bare)?,
            // Requests have a session of the first backend, so that the second one gets none.
            _ => self.backend(protocol, ResponseHead::Application)?,
        };
        let (backend_url, other_url) = (backend.url(), other.url());
        let settings = settings(case, &backend_url, &other_url);
        let target = Target::parse("front.toml", include_str!("front.toml"), &[])?;
        let mut front = self.front(&target, build, &settings)?;
        let before = backend.answered();
        self.load(&front, case, requests)?;
        check_backend(case.source, backend.answered() - before, requests)?;
        let alarms = front.alarms();
        ensure!(alarms.is_empty(), "the front says {alarms:?}");
        let log = front.directory().join("access.log");
        let callgrind = front.directory().join("callgrind.out");
        // Valgrind writes its count, and the front its log, when they end.
        front.stop();
        if case.extras.log() != "off" {
            check_log(&log, requests)?;
        }
        let text =
            fs::read_to_string(&callgrind).with_context(|| callgrind.display().to_string())?;
        total(&text).with_context(|| format!("no count in {}", callgrind.display()))
    }

    fn backend(
        &self,
        protocol: BackendProtocol,
        head: ResponseHead,
    ) -> anyhow::Result<&FixedBackend> {
        let mut backends = self.backends.iter();
        let found = backends.find(|backend| backend.is(protocol, head));
        found.context("there is a backend of each kind")
    }

    /// Starts the front of `build` with the settings `set`. Each process has a name of its own.
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

    /// Sends `requests` requests with exactly the fields of the case.
    fn load(&self, front: &Process, case: Case, requests: u64) -> anyhow::Result<()> {
        let mut words = format!("bench -q --json -W 1 -c {CLIENTS} -n {requests} ");
        words.push_str(match case.client {
            ClientProtocol::Http1 => "-k",
            ClientProtocol::Http2 => "--http2 --streams 10",
        });
        let mut command = vec![self.program.clone()];
        command.extend(words.split(' ').map(str::to_owned));
        for field in case.request.fields() {
            command.extend(["-H".to_owned(), field]);
        }
        if case.extras == Extras::Password {
            command.extend(["-A", "ann:secret"].map(str::to_owned));
        }
        command.push(format!("{}/", front.url("http")));
        let mut task = self.space.run(&Job {
            name: "load",
            core: None,
            limit: None,
            priority: Priority::Inherited,
            command: &command,
        })?;
        let stdout = task.child.stdout.take().context("its output is piped")?;
        let mut output = String::new();
        stdout.take(SAID_MAX).read_to_string(&mut output)?;
        task.child.wait()?;
        check_load(&output, case.source, requests).with_context(|| format!("bench said {output}"))
    }

    /// The bytes of memory that an idle HTTP/1.1 connection takes in the front after one request.
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
        // The first connections make the front allocate what it allocates only once.
        let first = open(FIRST)?;
        let before = anonymous()?;
        let others = open(OTHERS)?;
        let after = anonymous()?;
        // They stay open until the memory was measured.
        drop((first, others));
        Ok(after.saturating_sub(before) as f64 / OTHERS as f64)
    }

    /// The bytes of memory that the front takes for a page in its cache, whether the cache counts them or not.
    /// Each page is requested twice, so that memory for its use is included.
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

/// Opens a connection and makes one request on it.
fn connection(address: SocketAddr) -> anyhow::Result<BlockingClient> {
    let mut client = BlockingClient::connect(&ServerAddress::Tcp(address), PATIENCE)?;
    get(&mut client, address, "/")?;
    Ok(client)
}

/// Requests the application's page.
fn get(client: &mut BlockingClient, address: SocketAddr, target: &str) -> anyhow::Result<()> {
    let host = address.to_string();
    let answer = client.ask(&ClientRequest::get(target, &host), PAGE_MAX, |_| ())?;
    ensure!(
        answer.is_whole && client.can_reuse(),
        "the front closed a connection"
    );
    Ok(())
}

/// Checks that the load got `requests` responses, all refused if a limit is the source and none otherwise, over
/// [`CLIENTS`] connections that stayed open.
fn check_load(output: &str, source: ResponseSource, requests: u64) -> anyhow::Result<()> {
    let report: Value = serde_json::from_str(output)?;
    let number = |path| report.pointer(path).and_then(Value::as_u64);
    ensure!(
        number("/requests/ok") == Some(requests),
        "not {requests} requests are ok"
    );
    let refused = match source {
        ResponseSource::Backend(_) | ResponseSource::Cache => 0,
        ResponseSource::Refusal => requests,
    };
    ensure!(
        number("/requests/non_2xx") == Some(refused),
        "not {refused} requests were refused"
    );
    ensure!(
        number("/connections/opened") == Some(CLIENTS),
        "not {CLIENTS} connections were opened"
    );
    Ok(())
}

/// Checks how many requests reached the backend: all of them; none if a limit refuses them; at most a tenth with a
/// cache, where the requests that are under way before the first response is stored may all miss.
fn check_backend(source: ResponseSource, asked: u64, requests: u64) -> anyhow::Result<()> {
    let is_right = match source {
        ResponseSource::Backend(_) => asked >= requests,
        ResponseSource::Cache => asked <= requests / 10,
        ResponseSource::Refusal => asked == 0,
    };
    ensure!(
        is_right,
        "the backend was asked {asked} times for {requests} requests"
    );
    Ok(())
}

/// Checks that the access log has a line for each request. It may have more: before the load, the front is asked
/// whether it serves.
fn check_log(path: &Path, requests: u64) -> anyhow::Result<()> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let lines = text.lines().count() as u64;
    ensure!(lines >= requests, "{lines} lines in the access log");
    Ok(())
}

/// The settings of the front for a case, given the addresses of both backends.
fn settings<'a>(case: Case, backend: &'a str, other: &'a str) -> [(&'static str, &'a str); 10] {
    let client = match case.client {
        ClientProtocol::Http1 => "http/1.1",
        ClientProtocol::Http2 => "h2",
    };
    let limit = if case.source == ResponseSource::Refusal {
        "refuses"
    } else if case.extras == Extras::Limit {
        "passes"
    } else {
        "off"
    };
    let (sign_on, ready_path) = match case.extras {
        Extras::Subrequest => ("service", "/"),
        Extras::Password => ("users", "/ready"),
        _ => ("off", "/"),
    };
    [
        ("backend", backend),
        ("other", other),
        ("sign_on", sign_on),
        ("ready_path", ready_path),
        ("client", client),
        ("access_log", case.extras.log()),
        ("limit", limit),
        ("matches", on(case.extras == Extras::FieldMatch)),
        ("cache", on(case.source == ResponseSource::Cache)),
        ("in_use", on(case.extras == Extras::InUse)),
    ]
}

/// The total that callgrind counted, which is at the end of its file.
fn total(text: &str) -> Option<u64> {
    let mut sums = text
        .lines()
        .filter_map(|line| line.strip_prefix("totals: "));
    sums.next_back()?.trim().parse().ok()
}

/// The number of connections of the load, each with one request at a time over HTTP/1.1 and ten over HTTP/2. Under
/// callgrind the front is so slow that all of them always wait for it, so each turn of its event loop does the same
/// work.
const CLIENTS: u64 = 10;
const SAID_MAX: u64 = 1 << 20;
/// A limit that is larger than the application's page.
const PAGE_MAX: u64 = 1 << 20;
/// How long to wait while the front sends nothing.
const PATIENCE: Duration = Duration::from_secs(30);
/// The connections that are open before memory is first read, so that what the front allocates only once is not
/// counted.
const FIRST: usize = 50;
const OTHERS: usize = 2_000;
/// The numbers of pages requested before memory is first read, and after that.
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
        let is_full = |source, text: &str| check_load(text, source, 20).is_ok();
        let cache = ResponseSource::Cache;
        assert!(is_full(cache, &report(20, 0, 10)));
        assert!(!is_full(cache, &report(19, 0, 10)));
        assert!(!is_full(cache, &report(20, 1, 10)));
        assert!(!is_full(cache, &report(20, 0, 11)));
        assert!(!is_full(cache, ""));
        assert!(is_full(ResponseSource::Refusal, &report(20, 20, 10)));
        assert!(!is_full(ResponseSource::Refusal, &report(20, 19, 10)));
    }

    #[test]
    fn hits_ask_no_backend() {
        let backend = ResponseSource::Backend(BackendProtocol::Ajp);
        assert!(check_backend(backend, 1_001, 1_000).is_ok());
        assert!(check_backend(backend, 999, 1_000).is_err());
        assert!(check_backend(ResponseSource::Cache, 100, 1_000).is_ok());
        assert!(check_backend(ResponseSource::Cache, 101, 1_000).is_err());
        assert!(check_backend(ResponseSource::Refusal, 1, 1_000).is_err());
    }

    #[test]
    fn the_target_of_the_front_can_be_read() {
        let target = Target::parse("front.toml", include_str!("front.toml"), &[]).unwrap();
        let backend = ("backend", "ajp://127.0.0.1:1");
        for set in [
            ("access_log", "template"),
            ("limit", "passes"),
            ("limit", "refuses"),
            ("matches", "on"),
        ] {
            target.settings(&[backend, set]).unwrap();
        }
    }
}
