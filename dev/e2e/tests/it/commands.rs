//! The command line as its users meet it: output, exit codes, faults of a file.

use std::fs;
use std::process::Command;

use catamaran_e2e::{binary, catamaran, outcome};
use catamaran_testkit::{Deadline, HttpClient, Pattern, Process, Signal};

/// Runs a command to its end: exit code, stdout, stderr.
fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let process = catamaran(arguments).unwrap();
    outcome(process).unwrap()
}

/// Runs `check` on a file with this text.
fn check(text: &str) -> (Option<i32>, String) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("catamaran.toml");
    fs::write(&file, text).unwrap();
    let (code, stdout, stderr) = run(&["check", "--config", &file.to_string_lossy()]);
    (code, stdout + &stderr)
}

/// The line `listening on SCHEME://ADDRESS` of a started process.
fn listening(process: &Process, scheme: &str) -> std::net::SocketAddr {
    let wanted = format!("listening on {scheme}://");
    process
        .wait_for_line(&wanted, |line| {
            let (_, rest) = line.split_once(&wanted)?;
            rest.split_whitespace().next()?.parse().ok()
        })
        .unwrap()
}

fn get(address: std::net::SocketAddr, target: &str) -> catamaran_testkit::Response {
    let mut client = HttpClient::connect(address).unwrap();
    let request = format!("GET {target} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    client.ask(request).unwrap()
}

fn ends_well(mut process: Process) {
    process.signal(Signal::Terminate).unwrap();
    let status = process.wait(Deadline::default()).unwrap();
    assert_eq!(status.code(), Some(0), "{}", process.stderr());
}

#[test]
fn check_passes_a_good_file() {
    let (code, output) = check(GOOD);
    assert_eq!(code, Some(0), "{output}");
}

#[test]
fn check_reports_all_faults_of_a_file_with_their_lines() {
    let faults = GOOD
        .replace("127.0.0.1:8080", "nowhere")
        .replace("ajp://", "gopher://")
        .replace("upstream = \"app\"", "upstream = \"ap\"")
        + "conect_timeout = \"1s\"\n";
    let (code, output) = check(&faults);
    assert_eq!(code, Some(1), "{output}");
    for expected in [
        "nowhere",
        "gopher",
        "conect_timeout",
        "connect_timeout",
        "ap",
    ] {
        assert!(output.contains(expected), "{expected} in {output}");
    }
    for line in [2, 4, 6, 7] {
        assert!(
            output.contains(&format!("catamaran.toml:{line}")),
            "line {line} in {output}"
        );
    }
}

/// By its name, from standard input and as JSON, it is said of a file what is said with `--config`.
#[test]
fn check_takes_a_file_in_each_form() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("catamaran.toml");
    fs::write(&file, GOOD.replace("ajp://", "gopher://")).unwrap();
    let name = file.to_string_lossy();
    let (code, _, by_name) = run(&["check", &name]);
    assert_eq!(code, Some(1), "{by_name}");
    assert!(by_name.contains("catamaran.toml:6:7: fault: "), "{by_name}");
    let mut piped = Command::new(binary().unwrap());
    let piped = piped.args(["check", "-"]);
    let piped = piped
        .stdin(fs::File::open(&file).unwrap())
        .output()
        .unwrap();
    assert_eq!(piped.status.code(), Some(1));
    let piped = String::from_utf8(piped.stderr).unwrap();
    assert_eq!(piped, by_name.replace(&*name, "standard input"));
    let (code, json, stderr) = run(&["check", "--json", &name]);
    assert_eq!((code, stderr.as_str()), (Some(1), ""));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let finding = &json["findings"][0];
    assert_eq!(
        (&json["usable"], &json["faults"]),
        (&false.into(), &1.into())
    );
    assert_eq!(
        (&finding["line"], &finding["column"]),
        (&6.into(), &7.into())
    );
    assert_eq!(finding["severity"], "fault");
    fs::write(&file, GOOD).unwrap();
    let (code, json, _) = run(&["check", "--json", &name]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &json["usable"]), (Some(0), &true.into()));
    assert_eq!(json["counts"]["routes"], 1);
}

#[test]
fn serve_refuses_a_faulty_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("catamaran.toml");
    fs::write(&file, "[[listen]]\naddress = 5\n").unwrap();
    let (code, _, stderr) = run(&["serve", "--config", &file.to_string_lossy()]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("catamaran.toml:2"), "{stderr}");
}

#[test]
fn a_missing_file_is_named() {
    let missing = "no/such/file.toml";
    for command in ["check", "serve"] {
        let (code, _, stderr) = run(&[command, "--config", missing]);
        assert_eq!(code, Some(1), "{stderr}");
        assert!(stderr.contains(missing), "{stderr}");
    }
}

#[test]
fn wrong_usage_exits_with_2() {
    for arguments in [
        &["serve"][..],
        &[
            "serve",
            "--listen",
            "nowhere",
            "--upstream",
            "ajp://127.0.0.1:1",
        ],
        &[
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--upstream",
            "gopher://x",
        ],
        &["serve", "--no-such-option"],
        &["no-such-command"],
        &["check"],
    ] {
        let (code, _, stderr) = run(arguments);
        assert_eq!(code, Some(2), "{arguments:?} {stderr}");
        assert!(!stderr.is_empty());
    }
}

#[test]
fn help_and_version_are_no_faults() {
    let (code, help, _) = run(&["--help"]);
    assert_eq!(code, Some(0));
    for command in ["serve", "check", "app", "demo"] {
        assert!(help.contains(command), "{command} in {help}");
    }
    let (code, version, _) = run(&["--version"]);
    assert_eq!(code, Some(0));
    assert!(version.starts_with("catamaran "), "{version}");
}

#[test]
fn demo_answers_through_ajp() {
    let process = catamaran(&["demo"]).unwrap();
    let front = process
        .wait_for_line("the front's address", |line| {
            let (_, rest) = line.split_once("front http://")?;
            rest.split_whitespace().next()?.parse().ok()
        })
        .unwrap();
    let page = get(front, "/");
    assert_eq!((page.status, page.body.len()), (200, 347));
    let snoop = get(front, "/snoop");
    let snoop: serde_json::Value = serde_json::from_slice(&snoop.body).unwrap();
    assert_eq!(snoop["connector"], "ajp", "{snoop}");
    ends_well(process);
}

#[test]
fn the_application_serves_both_protocols() {
    let arguments = [
        "app",
        "--ajp",
        "127.0.0.1:0",
        "--http",
        "127.0.0.1:0",
        "--io",
        "epoll",
    ];
    let process = catamaran(&arguments).unwrap();
    let http = listening(&process, "http");
    let ajp = listening(&process, "ajp");
    for upstream in [format!("http://{http}"), format!("ajp://{ajp}")] {
        let front = catamaran_e2e::Front::to(&[&upstream]).unwrap();
        assert_eq!(front.get("/").unwrap().body.len(), 347);
        for length in [0, 1, 8184, 8185, 65_536, 1_000_000] {
            let answer = front.get(&format!("/bytes/{length}")).unwrap();
            assert!(answer.body == Pattern::bytes(length), "{upstream} {length}");
        }
        assert_eq!(front.get("/status/418").unwrap().status, 418);
        assert_eq!(front.get("/none").unwrap().status, 404);
        let upload = front
            .head("POST", "/echo", "Content-Length: 20000\r\n")
            .into_bytes();
        let upload = [upload, Pattern::bytes(20_000)].concat();
        let echo = front.ask(upload).unwrap();
        assert!(echo.body.ends_with(&Pattern::bytes(20_000)), "{upstream}");
        assert_eq!(front.get("/stream/5/1").unwrap().text().lines().count(), 5);
    }
    ends_well(process);
}

const GOOD: &str = "[[listen]]\naddress = \"127.0.0.1:8080\"\n\
                    [[route]]\nupstream = \"app\"\n\
                    [[upstream.app.backend]]\nurl = \"ajp://127.0.0.1:8009\"\n";
