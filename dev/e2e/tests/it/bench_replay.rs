//! `bench --replay`: which requests of a log reach the server, and what is said of the others.

use std::fs;

use catamaran_e2e::{Nginx, catamaran};
use catamaran_testkit::{Deadline, Process};
use serde_json::Value;

fn ended(words: &[&str]) -> (Option<i32>, Process) {
    let mut process = catamaran(words).unwrap();
    let status = process.wait(Deadline::default()).unwrap();
    (status.code(), process)
}

#[test]
fn a_log_is_sent_again() {
    let nginx = Nginx::with_pages().unwrap();
    let url = format!("http://{}/", nginx.address());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("access.log");
    fs::write(&path, LOG).unwrap();
    let path = path.display().to_string();
    let words = ["bench", "--json", "--replay", &path, "--speed", "20x", &url];
    let (_, process) = ended(&words);
    let report: Value = serde_json::from_str(&process.stdout()).unwrap();
    assert_eq!(report["statuses"]["200"], 2, "{report}");
    assert_eq!(report["statuses"]["404"], 1, "{report}");
    assert_eq!(report["requests"]["started"], 3, "{report}");
    assert_eq!(report["latency"]["corrected"]["count"], 3, "{report}");
    let summary =
        "replay: 3 requests; skipped 1 lines with other methods and 1 that are no requests\n";
    assert_eq!(process.stderr(), summary);
}

#[test]
fn a_log_without_requests_is_refused() {
    let words = ["bench", "--replay", "/dev/null", "http://127.0.0.1:9/"];
    let (code, process) = ended(&words);
    assert_eq!(code, Some(2));
    let expected =
        "error: /dev/null has no request to send: it has no line with one of the methods";
    assert!(
        process.stderr().starts_with(expected),
        "{}",
        process.stderr()
    );
}

const LOG: &str = concat!(
    "10.0.0.1 - - [22/Nov/2026:01:02:03 +0100] \"GET / HTTP/1.1\" 200 5 \"-\" \"-\"\n",
    "10.0.0.1 - - [22/Nov/2026:01:02:03 +0100] \"GET /missing?a=1 HTTP/1.1\" 404 5 \"-\" \"-\"\n",
    "10.0.0.1 - - [22/Nov/2026:01:02:03 +0100] \"POST /form HTTP/1.1\" 200 5 \"-\" \"-\"\n",
    "10.0.0.1 - - [22/Nov/2026:01:02:03 +0100] \"\\x16\\x03\" 400 0 \"-\" \"-\"\n",
    "{\"time\":\"2026-11-22T01:02:04+01:00\",\"method\":\"HEAD\",\"path\":\"/\",\"status\":200}\n",
);
