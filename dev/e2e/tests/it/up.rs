//! `lab up` and `demo --tier`: a tier that is looked at, how, and its end, whatever ends it.

use std::fs;
use std::path::Path;
use std::process::Command;

use catamaran_e2e::catamaran;
use catamaran_testkit::{Deadline, Process, Signal, signal_process};

#[test]
fn a_cell_is_printed_and_ends_in_time() {
    let mut process = up(&["--load", "--for", "6s"]);
    let namespace = namespace(&process);
    let status = process.wait(Deadline::default()).unwrap();
    let said = process.stdout();
    assert_eq!(status.code(), Some(0), "{said}{}", process.stderr());
    for part in [
        "    front (front): http://",
        "    app (app): http://",
        " ajp://",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let front = said.lines().find(|line| line.contains(" front ")).unwrap();
    assert!(
        !front.contains("https://"),
        "nothing listens there: {front}"
    );
    let inside = format!("    ip netns exec {namespace} curl -i 'http://127.0.0.1:");
    assert!(said.contains(&inside), "{said}");
    let answers = said.lines().last().unwrap();
    assert!(
        answers.ends_with(", 0 failed") && !answers.starts_with("0 "),
        "{answers}"
    );
    assert_gone(&namespace);
}

#[test]
fn a_demo_of_a_tier_needs_no_namespace() {
    let mut process = catamaran(&["demo", "--tier", "--for", "3s"]).unwrap();
    let status = process.wait(Deadline::default()).unwrap();
    let said = process.stdout();
    assert_eq!(status.code(), Some(0), "{said}{}", process.stderr());
    assert!(said.contains("app1") && said.contains("app2"), "{said}");
    let build = " build, which is slower than a dist build";
    assert!(process.stderr().contains(build), "{}", process.stderr());
    assert!(!said.contains("netns"), "{said}");
    for pid in pids(&said) {
        assert!(!is_alive(pid), "{pid} of {said}");
    }
}

#[test]
fn the_tier_answers_as_is_printed_until_a_server_dies() {
    let mut process = up(&["--load"]);
    let namespace = namespace(&process);
    let said = said(&process);
    for (command, part) in [
        ("curl", "HTTP/1.1 200 "),
        ("status", "app"),
        ("bench", "1000"),
    ] {
        let is_of = |line: &&str| line.starts_with("    ip netns exec") && line.contains(command);
        let line = said.lines().find(is_of).unwrap();
        let asked = Command::new("sh").args(["-c", line]).output().unwrap();
        let answer = String::from_utf8_lossy(&asked.stdout);
        assert!(answer.contains(part), "{line}: {answer}");
    }

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
        let said = said(&process);
        assert!(said.contains("No load is driven"), "{said}");
        let pids = pids(&said);
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
    let mut process = catamaran(&["demo", "--tier"]).unwrap();
    let pids = pids(&said(&process));
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
    let mut process = catamaran(&["lab", "up", file.to_str().unwrap()]).unwrap();
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
    for (words, part) in [
        (
            ["--cell", "front=iis"],
            "front has no level `iis`; there are ours-ajp, ",
        ),
        (
            ["--cell", "frnt=nginx"],
            "no factor `frnt`; there are front, fields, clients",
        ),
        (["--for", "soon"], "--for"),
    ] {
        let words = [&["lab", "up", "front-page"], &words[..]].concat();
        let mut process = catamaran(&words).unwrap();
        let status = process.wait(Deadline::default()).unwrap();
        let said = process.stderr();
        assert_eq!(status.code(), Some(2), "{words:?}: {said}");
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

/// Our front before our application.
fn up(more: &[&str]) -> Process {
    let words = ["lab", "up", "front-page", "--cell", "front=ours-ajp"];
    catamaran(&[&words, more].concat()).unwrap()
}

/// The first space of a lab has its process' number.
fn namespace(process: &Process) -> String {
    format!("catamaran-lab.{}.1", process.id())
}

/// What is said once the servers are up.
fn said(process: &Process) -> String {
    let end = process.wait_for_line("the end of what is said", |line| {
        line.starts_with("Press ctrl-C").then_some(())
    });
    end.unwrap();
    process.stdout()
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
