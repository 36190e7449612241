//! `lab up` and `demo --tier`: a tier that is looked at, its page, and its end, whatever ends it.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;

use catamaran_e2e::{catamaran, curl};
use catamaran_testkit::{Deadline, Process, Signal, signal_process};

#[test]
fn a_cell_is_drawn_and_its_page_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("page.html");
    let mut process = up(&["--load", "--for", "3s", "--save", file.to_str().unwrap()]);
    let namespace = namespace(&process);
    let status = process.wait(Deadline::default()).unwrap();
    let said = process.stdout();
    assert_eq!(status.code(), Some(0), "{said}{}", process.stderr());
    for part in ["│ front ", "▼ http", "▼ ajp", "│ app ", " failed\n"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let inside = format!("ip netns exec {namespace} curl -i 'http://127.0.0.1:");
    assert!(said.contains(&inside), "{said}");
    check_page(
        &file,
        &["front=ours-ajp", "system calls", "front → app <em>ajp</em>"],
        3,
    );
    assert_gone(&namespace);
}

#[test]
fn a_demo_of_a_tier_needs_no_namespace() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("page.html");
    let kept = file.to_str().unwrap();
    let words = [
        "demo",
        "--tier",
        "--for",
        "3s",
        "--save",
        kept,
        "--page",
        "127.0.0.1:0",
    ];
    let mut process = catamaran(&words).unwrap();
    let status = process.wait(Deadline::default()).unwrap();
    let said = process.stdout();
    assert_eq!(status.code(), Some(0), "{said}{}", process.stderr());
    assert!(said.contains("app1") && said.contains("app2"), "{said}");
    let build = " build, which is slower than a dist build";
    assert!(process.stderr().contains(build), "{}", process.stderr());
    assert!(!said.contains("netns"), "{said}");
    check_page(&file, &["front → app2 <em>ajp</em>", "for root alone"], 4);
    for pid in pids(&said) {
        assert!(!is_alive(pid), "{pid} of {said}");
    }
}

#[test]
fn the_page_and_the_tier_are_there_until_a_server_dies() {
    let mut process = up(&["--load"]);
    let namespace = namespace(&process);
    let page = page(&process);
    // Answers have come, whenever that is.
    let text = Deadline::default().poll("a page with a rate", || {
        let text = fetch(page, "localhost");
        (text.contains("</b> /s") && !text.contains("no load")).then_some(text)
    });
    let text = text.unwrap();
    assert!(
        text.contains("HTTP/1.1 200") && text.contains("http-equiv=\"refresh\""),
        "{text}"
    );
    assert!(text.contains("default-src 'none'"), "{text}");
    let rebound = fetch(page, "rebound.example");
    assert!(rebound.starts_with("HTTP/1.1 421 "), "{rebound}");

    let said = process.stdout();
    let line = said
        .lines()
        .find_map(|line| line.strip_prefix("Ask it yourself by  "));
    let asked = Command::new("sh")
        .args(["-c", line.unwrap()])
        .output()
        .unwrap();
    let answer = String::from_utf8_lossy(&asked.stdout);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");

    let front = pids(&said)[0];
    signal_process(front, Signal::Kill).unwrap();
    let status = process.wait(Deadline::default()).unwrap();
    assert_eq!(status.code(), Some(1));
    let why = process.stderr();
    assert!(why.contains("error: front ended with signal 9"), "{why}");
    assert_gone(&namespace);
}

#[test]
fn nothing_is_left_after_an_interrupt_or_a_kill() {
    for signal in [Signal::Interrupt, Signal::Kill] {
        let mut process = up(&[]);
        let namespace = namespace(&process);
        let page = page(&process);
        assert!(fetch(page, "127.0.0.1").contains("not driven (--load)"));
        let pids = pids(&process.stdout());
        assert_eq!(pids.len(), 2);
        process.signal(signal).unwrap();
        let status = process.wait(Deadline::default()).unwrap();
        if signal == Signal::Interrupt {
            assert_eq!(status.code(), Some(0), "it is how one ends it");
        }
        let gone = || (!pids.iter().any(|pid| is_alive(*pid)) && is_gone(&namespace)).then_some(());
        Deadline::default()
            .poll("servers, namespace and cgroup to be gone", gone)
            .unwrap();
    }
}

#[test]
fn nothing_is_left_of_a_demo_that_was_killed() {
    let mut process = catamaran(&["demo", "--tier", "--page", "127.0.0.1:0"]).unwrap();
    page(&process);
    let pids = pids(&process.stdout());
    assert_eq!(pids.len(), 3);
    process.signal(Signal::Kill).unwrap();
    process.wait(Deadline::default()).unwrap();
    let gone = || (!pids.iter().any(|pid| is_alive(*pid))).then_some(());
    Deadline::default()
        .poll("the servers to be gone", gone)
        .unwrap();
}

#[test]
fn an_interrupt_does_not_wait_for_a_server_that_is_starting() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("never.toml");
    fs::write(&file, NEVER_READY).unwrap();
    let mut process =
        catamaran(&["lab", "up", file.to_str().unwrap(), "--page", "127.0.0.1:0"]).unwrap();
    let namespace = namespace(&process);
    let is_made = || {
        Path::new("/run/netns")
            .join(&namespace)
            .exists()
            .then_some(())
    };
    Deadline::default().poll("the namespace", is_made).unwrap();
    process.signal(Signal::Interrupt).unwrap();
    let status = process.wait(Deadline::default()).unwrap();
    assert_eq!(status.code(), Some(130), "{}", process.stderr());
    assert_gone(&namespace);
}

#[test]
fn what_cannot_be_is_said_before_anything_is_started() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (words, code, part) in [
        (
            &["--cell", "front=iis"][..],
            2,
            "front has no level `iis`; there are ours-ajp, ",
        ),
        (
            &["--cell", "frnt=nginx"],
            2,
            "no factor `frnt`; there are front, clients",
        ),
        (
            &["--page", "0.0.0.0:8081"],
            2,
            "it needs a loopback address",
        ),
        (&["--page", &taken], 1, "already in use"),
        (&["--for", "soon"], 2, "--for"),
        (
            &["--save", "/nowhere/page.html"],
            1,
            "cannot write /nowhere/page.html",
        ),
    ] {
        let words = [&["lab", "up", "front-page"], words].concat();
        let mut process = catamaran(&words).unwrap();
        let status = process.wait(Deadline::default()).unwrap();
        let said = process.stderr();
        assert_eq!(status.code(), Some(code), "{words:?}: {said}");
        assert!(
            said.contains(part) && !said.contains("starting"),
            "{words:?}: {said}"
        );
    }
    let mut process = catamaran(&["demo", "--for", "1s"]).unwrap();
    let status = process.wait(Deadline::default()).unwrap();
    assert_eq!(status.code(), Some(2));
    assert!(process.stderr().contains("--tier"));
}

/// Our front before our application, its page on a free port.
fn up(more: &[&str]) -> Process {
    let words = [
        "lab",
        "up",
        "front-page",
        "--cell",
        "front=ours-ajp",
        "--page",
        "127.0.0.1:0",
    ];
    catamaran(&[&words, more].concat()).unwrap()
}

/// The first space of a lab has its process' number.
fn namespace(process: &Process) -> String {
    format!("catamaran-lab.{}.1", process.id())
}

fn page(process: &Process) -> SocketAddr {
    let page = process.wait_for_line("the end of what is said", |line| {
        line.starts_with("Press ctrl-C").then_some(())
    });
    page.unwrap();
    let said = process.stdout();
    let url = said
        .lines()
        .find_map(|line| line.strip_prefix("What it does is at  http://"));
    url.unwrap().trim_end_matches('/').parse().unwrap()
}

/// Head and page as a browser that calls the host so gets them.
fn fetch(page: SocketAddr, host: &str) -> String {
    let to = format!("{host}:{}:127.0.0.1", page.port());
    let url = format!("http://{host}:{}/", page.port());
    let output = curl()
        .args(["--include", "--resolve", &to, &url])
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Of the servers, from the front to the backmost.
fn pids(said: &str) -> Vec<u32> {
    let mut pids = Vec::new();
    for rest in said.split("pid ").skip(1) {
        let digits = rest
            .chars()
            .take_while(char::is_ascii_digit)
            .collect::<String>();
        pids.extend(digits.parse::<u32>());
    }
    pids
}

fn is_alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn is_gone(namespace: &str) -> bool {
    let groups = Command::new("find")
        .args(["/sys/fs/cgroup", "-name", namespace])
        .output();
    let groups = groups.unwrap().stdout;
    !Path::new("/run/netns").join(namespace).exists() && groups.is_empty()
}

fn assert_gone(namespace: &str) {
    assert!(is_gone(namespace), "{namespace} is left");
}

/// A kept page has these parts, so many cards, and nothing that loads it anew.
fn check_page(file: &Path, parts: &[&str], cards: usize) {
    let page = fs::read_to_string(file).unwrap();
    for part in parts.iter().chain(&["ended after", "</html>"]) {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert_eq!(page.matches("class=\"card\"").count(), cards, "{page}");
    assert!(
        !page.contains("http-equiv") && !page.contains("<script"),
        "{page}"
    );
}

/// Its page has another status than what is waited for, for as long as a server is waited for.
const NEVER_READY: &str = r#"
name = "never"
question = "Does it end?"
control = {}
[factor]
[[server]]
name = "app"
target = "app"
[[server]]
name = "front"
target = "front"
set = { backend = "{{ server.app.ajp }}", ready_path = "/status/503" }
[load]
url = "{{ server.front.http }}/"
clients = 1
keep_alive = "on"
time = "1s"
warm = { at_least = "1s", at_most = "1s" }
[run]
rounds = 6
seed = 1
"#;
