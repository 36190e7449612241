//! `bench --fail-if` in a shell script: each verdict has its exit code.

use std::fs;
use std::process::Command;
use std::time::Duration;

use catamaran_e2e::{App, binary, catamaran, outcome};
use catamaran_testkit::{Deadline, Peer, Process, Script, Signal, address};
use serde_json::Value;

/// What a script of `sh` says and ends with; `$bench` is the program, `$url` the server.
fn script(text: &str, url: &str) -> (Option<i32>, String, String) {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("script"), text).unwrap();
    let mut command = Command::new("sh");
    command
        .args(["-u", "script"])
        .env("bench", format!("{} bench", binary().unwrap().display()))
        .env("url", url)
        .current_dir(directory.path());
    let process = Process::spawn(&mut command).unwrap();
    outcome(process).unwrap()
}

/// No error is fewer than half, no server answers a billion requests a second, and of 50 requests
/// nobody knows the 99th percentile. Whether the generator was late on a busy machine is waived.
#[test]
fn a_script_learns_whether_it_passed_failed_or_is_undecided() {
    let app = App::start("epoll", &[]).unwrap();
    let url = format!("http://{}/bytes/5", app.http());
    let text = r#"
verdict() {
    code=0
    $bench -k -c 2 --waive invalid "$@" "$url" >out || code=$?
    echo "$code $(grep ^Gate: out)"
}
verdict --duration 2s --fail-if 'errors>50%'
verdict --duration 1s --fail-if 'errors>50%' --fail-if 'rate<1000M'
verdict -n 50 --fail-if 'p50>10m' --fail-if 'p99>10m'
"#;
    let (code, stdout, stderr) = script(text, &url);
    let expected = "0 Gate: passed\n1 Gate: failed\n3 Gate: undecided\n";
    assert_eq!(
        (code, stdout.as_str(), stderr.as_str()),
        (Some(0), expected, "")
    );
}

/// Fast answers of another status than 2xx pass no gate of latency by their speed.
#[test]
fn error_pages_fail_a_gate_of_latency() {
    let app = App::start("epoll", &[]).unwrap();
    let url = format!("http://{}/status/404", app.http());
    let gate = "--json --duration 1s -k -c 2 --fail-if p1>10m --waive invalid";
    for waived in ["", ",non-2xx"] {
        let words = format!("bench {gate}{waived} {url}");
        let mut process = catamaran(&words.split_whitespace().collect::<Vec<_>>()).unwrap();
        let status = process.wait(Deadline::default()).unwrap();
        let report: Value = serde_json::from_str(&process.stdout()).unwrap();
        let conditions = &report["gate"]["conditions"];
        assert_eq!(conditions[0]["condition"], "p1>10m");
        // A second in which the machine's speed drifts is too short for any percentile.
        let by_latency = match conditions[0]["verdict"].as_str() {
            Some("passed") => 0,
            Some("undecided") => 3,
            other => panic!("{other:?}: {}", process.stdout()),
        };
        let expected = if waived.is_empty() { 1 } else { by_latency };
        assert_eq!(status.code(), Some(expected), "{}", process.stdout());
        let own = conditions
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["condition"] == "non-2xx>0");
        assert_eq!(
            own.map(|it| it["verdict"] == "failed"),
            waived.is_empty().then_some(true)
        );
    }
}

/// Stopped for more than a second, the generator says so, and the gate decides nothing.
#[test]
fn a_generator_that_is_stopped_does_not_blame_the_server() {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    let script = Script::new().expect_until(b"\r\n\r\n").send(answer);
    let peer = Peer::start(script.repeat(100_000));
    let url = format!("http://{}/", peer.tcp_address());
    let words = "bench --json -k -c 2 --rate 200 --duration 6s --fail-if p99>20ms";
    let words: Vec<&str> = words.split_whitespace().chain([url.as_str()]).collect();
    let mut process = catamaran(&words).unwrap();
    peer.wait_connections(2);
    process.signal(Signal::Stop).unwrap();
    let stop = Deadline::after(STOPPED);
    let is_over = || stop.remaining().is_none().then_some(());
    Deadline::default()
        .poll("the stop to be over", is_over)
        .unwrap();
    process.signal(Signal::Continue).unwrap();
    let status = process.wait(Deadline::default()).unwrap();
    let report: Value = serde_json::from_str(&process.stdout()).unwrap();
    assert_eq!(status.code(), Some(3), "{report}");
    let warnings = report["warnings"].as_array().unwrap();
    let is_stalled = |it: &Value| it["kind"] == "generator-stalled";
    assert!(warnings.iter().any(is_stalled), "{warnings:?}");
    let condition = &report["gate"]["conditions"][0];
    assert_eq!(condition["verdict"], "undecided", "{condition}");
}

#[test]
fn a_condition_without_sense_is_refused_before_anything_is_sent() {
    let refusing = address::refusing().unwrap();
    let url = format!("http://{refusing}/");
    for (flags, expected) in [
        (
            "--fail-if p99>20",
            "error: --fail-if \"p99>20\" is no condition: \"20\" is not a time with its unit",
        ),
        ("--waive unsent", "error: --waive goes with --fail-if only"),
    ] {
        let words = format!("bench {flags} {url}");
        let mut process = catamaran(&words.split_whitespace().collect::<Vec<_>>()).unwrap();
        let status = process.wait(Deadline::default()).unwrap();
        assert_eq!(status.code(), Some(2), "{flags}");
        assert!(
            process.stderr().starts_with(expected),
            "{}",
            process.stderr()
        );
    }
}

const STOPPED: Duration = Duration::from_millis(1200);
