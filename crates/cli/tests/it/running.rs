//! Commands that run until a signal.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};

use catamaran_testkit::{Address, Deadline, HttpClient, Process, Response, Signal};

use super::catamaran;

pub(super) fn deadline() -> Deadline {
    Deadline::after(Deadline::DEFAULT)
}

pub(super) fn start(arguments: &[&str]) -> Process {
    Process::spawn(&mut catamaran(arguments)).expect("the built binary starts")
}

/// The address behind `listening on` and a scheme.
fn listening(process: &Process, scheme: &str) -> SocketAddr {
    let prefix = format!("listening on {scheme}://");
    let address = |line: &str| line.strip_prefix(&prefix)?.parse().ok();
    process
        .wait_for_line("an address", address)
        .expect("the address is announced")
}

fn get(address: SocketAddr, path: &str) -> Response {
    let mut client = HttpClient::connect(address).expect("it accepts connections");
    client.set_deadline(deadline());
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    client.send(request.as_bytes()).expect("it takes a request");
    client.receive().expect("it answers")
}

fn stop(mut process: Process, signal: Signal) -> String {
    process.signal(signal).expect("it still runs");
    let status = process.wait(deadline()).expect("it ends");
    assert_eq!(status.code(), Some(0), "{}", process.stderr());
    process.stderr()
}

#[test]
fn app_answers_and_ends_on_each_io_model() {
    for io in ["epoll", "threads"] {
        let app = start(&["app", "--ajp=127.0.0.1:0", "--http=127.0.0.1:0", "--io", io]);
        let http = listening(&app, "http");
        let response = get(http, "/");
        assert_eq!((response.status, response.body.len()), (200, 347));
        let status = get(http, "/_status").text();
        assert!(status.contains(&format!("\"io\": \"{io}\"")), "{status}");
        stop(app, Signal::Terminate);
    }
}

#[test]
fn app_takes_its_secret_from_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ajp.secret");
    std::fs::write(&path, "hunter2\n").unwrap();
    let file = path.to_str().unwrap();
    let app = start(&["app", "--ajp", "127.0.0.1:0", "--secret-file", file]);
    listening(&app, "ajp");
    let stderr = stop(app, Signal::Interrupt);
    assert!(!stderr.contains("hunter2"), "{stderr}");
}

#[test]
fn app_redirects_confidential_paths() {
    let app = start(&[
        "app",
        "--http",
        "127.0.0.1:0",
        "--confidential=/snoop",
        "--redirect-port=8443",
    ]);
    let http = listening(&app, "http");
    let response = get(http, "/snoop?q");
    let location = response.header("location");
    assert_eq!(
        (response.status, location),
        (302, Some("https://127.0.0.1:8443/snoop?q"))
    );
    assert_eq!(get(http, "/").status, 200);
    stop(app, Signal::Terminate);
}

#[test]
fn hangup_changes_nothing() {
    let mut app = start(&["app", "--http", "127.0.0.1:0"]);
    let http = listening(&app, "http");
    app.signal(Signal::Hangup).unwrap();
    let said = |line: &str| {
        line.ends_with("there is nothing to reload or to upgrade; nothing changed")
            .then_some(())
    };
    app.wait_for_line("the answer to SIGHUP", said).unwrap();
    assert_eq!(get(http, "/status/204").status, 204);
    stop(app, Signal::Terminate);
}

#[test]
fn a_second_signal_quits_at_once() {
    let mut app = start(&["app", "--http", "127.0.0.1:0"]);
    let http = listening(&app, "http");
    // A request that takes longer than any deadline here keeps the drain from ending.
    let mut client = HttpClient::connect(http).unwrap();
    client
        .send(b"GET /stream/1000/60000 HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    client.receive_head().unwrap();
    app.signal(Signal::Terminate).unwrap();
    let draining = |line: &str| line.contains("draining").then_some(());
    app.wait_for_line("the drain", draining).unwrap();
    app.signal(Signal::Terminate).unwrap();
    assert_eq!(app.wait(deadline()).unwrap().code(), Some(1));
}

#[test]
fn an_application_may_hold_threads() {
    let holds = |arguments: &[&str]| {
        let app = start(arguments);
        let http = listening(&app, "http");
        assert_eq!(get(http, "/delay/1").text(), "waited 1 ms\n");
        let tasks = std::fs::read_dir(format!("/proc/{}/task", app.id())).unwrap();
        let names = tasks.filter_map(|task| {
            let name = task.unwrap().path().join("comm");
            // A thread may have ended since it was listed.
            std::fs::read_to_string(name).ok()
        });
        let executor = names.filter(|name| name == "connector-exec\n").count();
        stop(app, Signal::Terminate);
        executor > 0
    };
    assert!(holds(&["app", "--http=127.0.0.1:0", "--blocking-delay"]));
    assert!(!holds(&["app", "--http=127.0.0.1:0"]));
}

#[test]
fn serve_hands_requests_to_an_application() {
    let app = start(&["app", "--ajp", "127.0.0.1:0"]);
    let ajp = listening(&app, "ajp");
    let upstream = format!("ajp://{ajp}");
    let mut front = start(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--upstream",
        &upstream,
        "--workers",
        "1",
    ]);
    let http = listening(&front, "http");
    let response = get(http, "/bytes/1000");
    assert_eq!((response.status, response.body.len()), (200, 1000));
    front.signal(Signal::Terminate).unwrap();
    assert_eq!(front.wait(deadline()).unwrap().code(), Some(0));
    // The access log went to standard output.
    assert!(
        front.stdout().contains("\"GET /bytes/1000 HTTP/1.1\" 200"),
        "{}",
        front.stdout()
    );
    stop(app, Signal::Terminate);
}

#[test]
fn unix_sockets_from_end_to_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (app_path, front_path) = (path("app.sock"), path("front.sock"));
    let bound = |process: &Process, line: String| {
        let said = |it: &str| (it == line).then_some(());
        process
            .wait_for_line("an address", said)
            .expect("the address is announced");
    };
    let app = start(&["app", "--ajp", &format!("unix:{app_path}")]);
    bound(&app, format!("listening on ajp+unix:{app_path}"));
    let listen = format!("unix:{front_path}");
    let upstream = format!("ajp+unix:{app_path}");
    let front = start(&["serve", "--listen", &listen, "--upstream", &upstream]);
    bound(&front, format!("listening on http+unix:{front_path}"));
    let mut client = HttpClient::connect(Address::Unix(front_path.into())).unwrap();
    let answer = client
        .ask(b"GET /bytes/5 HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    assert_eq!(answer.body.len(), 5);
    stop(front, Signal::Terminate);
    stop(app, Signal::Terminate);
}

#[test]
fn serve_takes_a_file() {
    let app = start(&["app", "--ajp", "127.0.0.1:0", "--secret", "hunter2"]);
    let ajp = listening(&app, "ajp");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("front.toml");
    let log = directory.path().join("access.log");
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[upstream.app]\nsecret = \"hunter2\"\n\
         [[upstream.app.backend]]\nurl = \"ajp://{ajp}\"\n\
         [[route]]\npath = \"/status\"\nupstream = \"app\"\n\
         [log]\naccess = \"access.log\"\nformat = \"json\"\n"
    );
    std::fs::write(&path, text).unwrap();
    let front = start(&["serve", "--config", path.to_str().unwrap()]);
    let http = listening(&front, "http");
    assert_eq!(get(http, "/status/201").status, 201);
    assert_eq!(get(http, "/elsewhere").status, 404);
    stop(front, Signal::Terminate);
    let lines = std::fs::read_to_string(log).unwrap();
    assert_eq!(
        lines.lines().filter(|line| line.starts_with('{')).count(),
        2,
        "{lines}"
    );
    stop(app, Signal::Terminate);
}

#[test]
fn demo_says_what_to_open_and_that_works() {
    let demo = start(&["demo", "--listen", "127.0.0.1:0"]);
    let url = |line: &str| {
        let url = line
            .trim()
            .strip_prefix("curl http://")?
            .strip_suffix("/snoop")?;
        url.parse::<SocketAddr>().ok()
    };
    let http = demo.wait_for_line("the address", url).unwrap();
    assert_eq!(get(http, "/").body.len(), 347);
    let snoop = get(http, "/snoop");
    assert_eq!(snoop.status, 200);
    let text = snoop.text();
    assert!(
        text.contains("127.0.0.1") && !text.contains("hunter2"),
        "{text}"
    );
    assert!(text.contains("\"connector\": \"ajp\""), "{text}");
    let status = demo.wait_for_line("the connector's status", |line| {
        let (_, path) = line.trim().strip_prefix("http://")?.split_once('/')?;
        (path == "_status").then_some(())
    });
    status.unwrap();
    let status = get(http, "/_status");
    assert_eq!(status.status, 200);
    assert!(status.text().contains("127.0.0.1:"), "{}", status.text());
    let admin = demo.wait_for_line("the front's page", |line| {
        let address = line.trim().strip_prefix("http://")?.strip_suffix('/')?;
        address.parse::<SocketAddr>().ok()
    });
    let page = get(admin.unwrap(), "/");
    assert_eq!(page.status, 200);
    assert!(page.text().contains("<title>"), "{}", page.text());
    stop(demo, Signal::Interrupt);
}

#[test]
fn a_command_that_is_stopped_and_goes_on_has_its_answer() {
    let front = TcpListener::bind("127.0.0.1:0").unwrap();
    front.set_nonblocking(true).unwrap();
    let address = front.local_addr().unwrap();
    let mut reload = start(&["reload", "--admin", &address.to_string()]);
    let accepted = deadline().poll("a connection", || front.accept().ok());
    let (mut client, _) = accepted.unwrap();
    client.set_nonblocking(false).unwrap();
    assert!(client.read(&mut [0; 4096]).unwrap() > 0);
    let stat = format!("/proc/{}/stat", reload.id());
    let is = |states: &[char]| {
        let stat = std::fs::read_to_string(&stat).unwrap();
        let (_, state) = stat.rsplit_once(") ").unwrap();
        state.starts_with(states).then_some(())
    };
    let waits = || is(&['S']);
    deadline().poll("a read", waits).unwrap();
    reload.signal(Signal::Stop).unwrap();
    deadline().poll("a stop", || is(&['T'])).unwrap();
    reload.signal(Signal::Continue).unwrap();
    // One that failed has ended.
    let goes_on = || is(&['S', 'Z']);
    deadline().poll("another read", goes_on).unwrap();
    let body = "{\"report\":\"nothing changed\"}";
    let length = body.len();
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
    client.write_all(answer.as_bytes()).unwrap();
    let status = reload.wait(deadline()).unwrap();
    assert_eq!(status.code(), Some(0), "{}", reload.stderr());
    assert_eq!(reload.stdout(), "reloaded; nothing changed\n");
}
