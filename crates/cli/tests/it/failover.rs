//! Applications that are killed, stopped and started again, behind one front.

#![expect(
    clippy::unwrap_used,
    reason = "the whole file is a test; clippy exempts only the functions marked as one"
)]

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use catamaran_testkit::{Deadline, HttpClient, Process, Signal};

use super::catamaran;

/// Three applications on Unix sockets, and a front with an admin listener.
struct Tier {
    directory: tempfile::TempDir,
    apps: Vec<Process>,
    front: Process,
    http: SocketAddr,
    admin: SocketAddr,
}

impl Tier {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let apps = NAMES.map(|name| app(directory.path(), name)).into();
        let mut config = String::from(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nupstream = \"app\"\n\
             [admin]\naddress = \"127.0.0.1:0\"\n\
             [upstream.app]\nfirst_byte_timeout = \"1h\"\nslow_start = \"0s\"\n",
        );
        for name in NAMES {
            let url = format!("ajp+unix:{}", socket(directory.path(), name));
            let table = format!("[[upstream.app.backend]]\nname = \"{name}\"\nurl = \"{url}\"\n");
            config.push_str(&table);
        }
        let file = directory.path().join("front.toml");
        std::fs::write(&file, config).unwrap();
        let arguments = [
            "serve",
            "--config",
            file.to_str().unwrap(),
            "--access-log",
            "off",
        ];
        let front = Process::spawn(&mut catamaran(&arguments)).unwrap();
        let address = |said: &'static str| {
            let address = move |line: &str| line.strip_prefix(said)?.parse().ok();
            front.wait_for_line(said, address).unwrap()
        };
        let http = address("listening on http://");
        let admin = address("admin on http://");
        Self {
            directory,
            apps,
            front,
            http,
            admin,
        }
    }

    /// Waits until the front says that the backend `name` is up, or is not.
    fn wait_until(&self, name: &str, up: bool) {
        let line = format!(
            "catamaran_backend_up{{upstream=\"app\",backend=\"{name}\"}} {}",
            u8::from(up)
        );
        let told = || {
            let metrics = get(self.admin, "/metrics").1;
            metrics.lines().any(|it| it == line).then_some(())
        };
        Deadline::default().poll(&line, told).unwrap();
    }

    fn stop(mut self) {
        self.front.signal(Signal::Terminate).unwrap();
        let status = self.front.wait(Deadline::default()).unwrap();
        assert_eq!(status.code(), Some(0), "{}", self.front.stderr());
    }
}

#[test]
fn f2_killing_and_restarting_one_of_three_fails_no_request() {
    let mut tier = Tier::start();
    let http = tier.http;
    // The thread that says so may have failed.
    let (over, limit) = (AtomicBool::new(false), Deadline::after(LIMIT));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) && limit.remaining().is_some() {
                    let mut client = HttpClient::connect(http).unwrap();
                    for _ in 0..20 {
                        assert_eq!(client.ask(REQUEST).unwrap().status, 200);
                    }
                }
            });
        }
        for _ in 0..2 {
            tier.apps[0].signal(Signal::Kill).unwrap();
            tier.apps[0].wait(Deadline::default()).unwrap();
            tier.wait_until(NAMES[0], false);
            tier.apps[0] = app(tier.directory.path(), NAMES[0]);
            tier.wait_until(NAMES[0], true);
        }
        over.store(true, Ordering::Relaxed);
    });
    tier.stop();
}

#[test]
fn f3_an_application_that_stands_still_is_left_out_until_it_moves() {
    let mut tier = Tier::start();
    tier.apps[0].signal(Signal::Stop).unwrap();
    let out = |line: &str| line.contains("backend is out").then_some(());
    let (over, limit) = (AtomicBool::new(false), Deadline::after(LIMIT));
    let http = tier.http;
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) && limit.remaining().is_some() {
                // Requests that wait for it are served by another when it is out.
                assert_eq!(get(http, "/").0, 200);
            }
        });
        tier.front.wait_for_line("an ejection", out).unwrap();
        over.store(true, Ordering::Relaxed);
    });
    tier.wait_until(NAMES[0], false);
    for _ in 0..50 {
        assert_eq!(get(tier.http, "/").0, 200, "nobody waits for it any more");
    }
    assert_eq!(get(tier.admin, "/readyz").0, 200, "the others serve");
    tier.apps[0].signal(Signal::Continue).unwrap();
    tier.wait_until(NAMES[0], true);
    tier.stop();
}

fn app(directory: &Path, name: &str) -> Process {
    let listen = format!("unix:{}", socket(directory, name));
    let app = Process::spawn(&mut catamaran(&["app", "--ajp", &listen])).unwrap();
    let said = |line: &str| line.starts_with("listening on ").then_some(());
    app.wait_for_line("an address", said).unwrap();
    app
}

fn socket(directory: &Path, name: &str) -> String {
    let path = directory.join(format!("{name}.sock"));
    path.to_str().unwrap().to_owned()
}

fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let mut client = HttpClient::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    let response = client.ask(request).unwrap();
    (response.status, response.text())
}

/// For all that a test waits for.
const LIMIT: Duration = Duration::from_secs(120);
const NAMES: [&str; 3] = ["a", "b", "c"];
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
