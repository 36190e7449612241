//! What `bench` says by itself: reports that count everything once, warnings, files, exit codes.
//!
//! The servers are nginx, our own application over AJP13 and Unix sockets, and peers that misbehave
//! in one exact way.

use std::fs;
use std::process::Command;

use catamaran_e2e::{App, Nginx, binary, catamaran, outcome};
use catamaran_testkit::{Peer, Process, Script, Signal, address};
use serde_json::Value;

/// Runs `bench` with these words to its end.
fn bench(words: &str) -> (Option<i32>, String, String) {
    catamaran_e2e::bench(words).unwrap()
}

/// The report as JSON, and the exit code.
fn report(words: &str) -> (Option<i32>, Value) {
    let (code, stdout, stderr) = bench(&format!("--json {words}"));
    let value = serde_json::from_str(&stdout);
    (
        code,
        value.unwrap_or_else(|error| panic!("{words}: {error}: {stdout}{stderr}")),
    )
}

fn warnings(report: &Value) -> Vec<&str> {
    let warnings = report["warnings"].as_array().unwrap().iter();
    warnings
        .filter_map(|warning| warning["kind"].as_str())
        .collect()
}

fn answers(bytes: &'static [u8]) -> Script {
    Script::new().expect_until(b"\r\n\r\n").send(bytes)
}

#[test]
fn a_run_without_faults() {
    let nginx = Nginx::with_pages().unwrap();
    let url = format!("http://{}/", nginx.address());
    let (code, report) = report(&format!("-k -n 300 -c 10 {url}"));
    assert_eq!(code, Some(0));
    assert_eq!(report["schema"], "catamaran-bench/1");
    assert_eq!(report["url"], url);
    assert_eq!(report["statuses"]["200"], 300);
    assert_eq!(report["requests"]["kept_alive"], 300);
    assert_eq!(report["connections"]["opened"], 10);
    assert_eq!(report["bytes"]["received_bodies"], 300 * 347);
    assert_eq!(report["latency"]["total"]["count"], 300);
    assert_eq!(report["latency"]["corrected"], Value::Null);
    let (code, stdout, stderr) = bench(&format!("-n 3 {url}"));
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(stdout.contains("\nComplete requests:      3\n"), "{stdout}");
}

#[test]
fn a_schedule_has_corrected_latencies() {
    let nginx = Nginx::with_pages().unwrap();
    let url = format!("http://{}/", nginx.address());
    let (code, report) = report(&format!("-k --rate 500 -n 100 --arrivals constant {url}"));
    // A machine that is busy with other things makes the generator late, and the run invalid.
    let is_late = warnings(&report).contains(&"generator-late");
    assert_eq!(code, Some(i32::from(is_late)), "{report}");
    for times in ["total", "corrected", "lateness"] {
        assert_eq!(report["latency"][times]["count"], 100, "{times}");
    }
}

#[test]
fn over_ajp13_and_unix_sockets() {
    let tcp = App::start("epoll", &[]).unwrap();
    let unix = App::start_on_unix_sockets("epoll").unwrap();
    for url in [
        format!("http://{}", tcp.http()),
        format!("ajp://{}", tcp.ajp()),
        format!("http+{}", unix.http()),
        format!("ajp+{}", unix.ajp()),
    ] {
        for flags in ["-n 100 -c 5", "-k -n 100 -c 5", "-n 20 --data hello"] {
            let (code, report) = report(&format!("{flags} {url}"));
            assert_eq!(code, Some(0), "{flags} {url}: {report}");
            let answered = &report["requests"]["completed"];
            assert_eq!(*answered, report["statuses"]["200"], "{flags} {url}");
        }
    }
}

#[test]
fn what_ab_hides_is_warned_of() {
    let nginx = Nginx::with_pages().unwrap();
    let redirect = format!("-k -n 50 http://{}/redirect", nginx.address());
    let (code, redirected) = report(&redirect);
    assert_eq!(code, Some(0));
    assert!(warnings(&redirected).contains(&"non-2xx"), "{redirected}");
    let peer = Peer::start(answers(
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi",
    ));
    let (code, closed) = report(&format!("-k -n 20 http://{}/", peer.address()));
    assert_eq!(code, Some(0));
    assert!(
        warnings(&closed).contains(&"keep-alive-refused"),
        "{closed}"
    );
}

#[test]
fn every_failure_is_counted_once_with_its_cause() {
    type Play = fn(usize) -> Script;
    let plays: [(&str, Play); 6] = [
        ("reset", |_| Script::new().expect_until(b"\r\n\r\n").reset()),
        ("early-close", |_| Script::new().expect_until(b"\r\n\r\n")),
        ("truncated-head", |_| answers(b"HTTP/1.1 200 OK\r\nServ")),
        ("truncated-body", |_| {
            answers(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe")
        }),
        ("bad-head", |_| answers(b"nonsense\r\n\r\n")),
        ("timeout", |_| Script::new().stall()),
    ];
    for (kind, play) in plays {
        let peer = Peer::start_with(play);
        // No answer of a busy machine is too late, where it is not to be.
        let patience = if kind == "timeout" { "200ms" } else { "20s" };
        let words = format!("-n 4 -c 2 -s {patience} http://{}/", peer.address());
        let (code, report) = report(&words);
        assert_eq!(code, Some(1), "{kind}");
        assert_eq!(report["failures"][kind], 4, "{kind}: {report}");
        assert_eq!(report["requests"]["failed"], 4, "{kind}: {report}");
    }
    let unused = address::refusing().unwrap();
    let (code, report) = report(&format!("-n 4 http://{unused}/"));
    // Nobody is there: one refusal says it all.
    assert_eq!(
        (code, &report["failures"]["refused"]),
        (Some(1), &Value::from(1))
    );
    assert_eq!(report["error"]["kind"], "refused", "{report}");
}

#[test]
fn descriptors_that_run_out_fail_requests_and_not_the_run() {
    let nginx = Nginx::with_pages().unwrap();
    let mut command = Command::new("prlimit");
    command.arg("--nofile=50:50").arg(binary().unwrap());
    command.args("bench --json -k -n 300 -c 100 --threads 1".split(' '));
    command.arg(format!("http://{}/", nginx.address()));
    let (code, stdout, stderr) = outcome(Process::spawn(&mut command).unwrap()).unwrap();
    let report: Value =
        serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"));
    assert_eq!(code, Some(1), "{report}");
    let failed = report["failures"]["descriptors"].as_u64().unwrap();
    assert!(failed > 0, "{report}");
    assert_eq!(report["requests"]["failed"], failed, "{report}");
    assert_eq!(report["requests"]["completed"], 300 - failed, "{report}");
}

#[test]
fn a_name_that_is_not_found_ends_the_run_with_a_report() {
    let (code, report) = report("-n 4 http://no.such.host.invalid/");
    assert_eq!(code, Some(1));
    assert_eq!(report["ending"], "failure");
    assert_eq!(report["error"]["kind"], "name");
}

#[test]
fn files_are_written_and_rows_add_up() {
    let nginx = Nginx::with_pages().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (csv, json, hdr) = (path("runs.csv"), path("run.json"), path("run.hlog"));
    let line = format!(
        "-n 20 --csv={csv} --json={json} --hdr {hdr} -e {} http://{}/",
        path("percentiles"),
        nginx.address()
    );
    for _ in 0..2 {
        let (code, stdout, stderr) = bench(&line);
        assert_eq!(code, Some(0), "{stderr}");
        assert!(stdout.contains("Complete requests:      20\n"), "{stdout}");
    }
    let rows = fs::read_to_string(&csv).unwrap();
    assert_eq!(rows.lines().count(), 3, "{rows}");
    assert!(rows.starts_with("verdict,started_at_s,"), "{rows}");
    let value: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(value["requests"]["completed"], 20);
    let log = fs::read_to_string(&hdr).unwrap();
    assert!(
        log.starts_with("#[Histogram log format version 1.3]\n"),
        "{log}"
    );
    assert!(log.contains("\nTag=total,0.000,"), "{log}");
    let rows = fs::read_to_string(path("percentiles")).unwrap();
    assert_eq!(rows.lines().count(), 102, "{rows}");
    let other = path("other.csv");
    fs::write(&other, "url,rate\n").unwrap();
    for (flag, file, expected) in [
        ("--hdr ", "/no/such/file", "No such file or directory"),
        (
            "--csv=",
            other.as_str(),
            "it has other columns; name a new file, or one that this version began",
        ),
    ] {
        let (code, stdout, stderr) = bench(&format!("{flag}{file} http://{}/", nginx.address()));
        let expected = format!("error: cannot write {file}: {expected}\n");
        assert_eq!((code, stdout.as_str(), stderr), (Some(2), "", expected));
    }
    assert_eq!(fs::read_to_string(&other).unwrap(), "url,rate\n");
}

/// The logs of two generators are one, which can be merged again.
#[test]
fn logs_of_several_runs_are_merged() {
    let nginx = Nginx::with_pages().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (one, other, both) = (path("a.hdr"), path("b.hdr"), path("both.hdr"));
    for (log, requests) in [(&one, 20), (&other, 30)] {
        let line = format!("-n {requests} --hdr {log} http://{}/", nginx.address());
        let (code, _, stderr) = bench(&line);
        assert_eq!(code, Some(0), "{stderr}");
    }
    let (code, table, stderr) = bench(&format!("merge {one} {other} --hdr {both}"));
    assert_eq!(code, Some(0), "{stderr}");
    let total = table.lines().find(|line| line.starts_with("total "));
    let count = total.and_then(|line| line.split_whitespace().nth(1));
    assert_eq!(count, Some("50"), "{table}");
    let (code, again, stderr) = bench(&format!("merge {both}"));
    assert_eq!((code, again), (Some(0), table), "{stderr}");
}

#[test]
fn what_is_no_log_is_not_merged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("no.hdr").display().to_string();
    fs::write(&path, "{}\n").unwrap();
    for (line, expected) in [
        ("merge".to_owned(), "bench merge A.hdr B.hdr"),
        ("merge --hdr".to_owned(), "bench merge A.hdr B.hdr"),
        (format!("merge -k {path}"), "bench merge A.hdr B.hdr"),
        (
            "merge /no/such".to_owned(),
            "cannot read /no/such: No such file or directory",
        ),
        (
            format!("merge {path}"),
            "no.hdr: line 1: this is no interval of an HdrHistogram log",
        ),
    ] {
        let (code, stdout, stderr) = bench(&line);
        assert!(stderr.contains(expected), "{line}: {stderr}");
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{line}");
    }
}

/// Without a gate: 1 for runs of which something was not answered or nothing was good.
#[test]
fn the_exit_code_judges_what_came() {
    let other = |number: usize| match number % 2 {
        0 => answers(ANSWER),
        _ => answers(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"),
    };
    let error = |_| answers(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n");
    let mixed = |number: usize| match number {
        0 => answers(b"HTTP/1.1 500 No\r\nContent-Length: 5\r\n\r\nhello"),
        _ => answers(ANSWER),
    };
    let moved = |_| answers(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n");
    let stalling = |_| answers(ANSWER).then(Script::new().stall());
    let (lengths, errors) = (Peer::start_with(other), Peer::start_with(error));
    let (some, redirects) = (Peer::start_with(mixed), Peer::start_with(moved));
    let stalls = Peer::start_with(stalling);
    for (flags, peer, expected) in [
        ("-n 4", &lengths, 0),
        ("-n 4 -l", &lengths, 0),
        ("-n 4", &errors, 1),
        ("-n 4", &some, 0),
        ("-n 4", &redirects, 0),
        ("-k -c 1 --rate 20 --duration 2s -s 500ms", &stalls, 1),
        ("-k -c 1 --rate 1 --stage 2s=50", &stalls, 1),
    ] {
        let line = format!("--json {flags} http://{}/", peer.address());
        let (code, stdout, stderr) = bench(&line);
        assert_eq!(code, Some(expected), "{flags}: {stdout}{stderr}");
    }
    let (_, report) = report(&format!("-n 4 http://{}/", lengths.address()));
    assert_eq!(report["requests"]["other_length"], 2, "{report}");
    assert_eq!(warnings(&report)[0], "body-length-changed");
}

#[test]
fn an_interrupt_ends_with_the_report_of_what_was_done() {
    let peer = Peer::start_with(|connection| match connection {
        0..3 => answers(ANSWER),
        _ => Script::new().stall(),
    });
    let url = format!("http://{}/", peer.address());
    for (flags, code, expected) in [
        ("", 130, "\nWARNING: the run was stopped by hand\n"),
        ("--compat ab", 1, "\nComplete requests:      0\n"),
    ] {
        let before = peer.connections();
        let line = format!("bench {flags} -n 10 {url}");
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let mut process = catamaran(&arguments).unwrap();
        // The first run gets three answers, and both then wait for one that does not come.
        let last = before.max(3);
        let _ = peer.wait_received(last, 20);
        process.signal(Signal::Interrupt).unwrap();
        let (ended, stdout, stderr) = outcome(process).unwrap();
        assert_eq!(ended, Some(code), "{flags} {stdout}{stderr}");
        assert!(stdout.contains(expected), "{flags} {stdout}");
    }
}

#[test]
fn a_line_that_makes_no_sense_is_one_line_and_exit_code_2() {
    for (words, expected) in [
        (
            "",
            "there is no URL: give one, or a file of them with --urls",
        ),
        (
            "-n 0 http://h/",
            "-n takes a number of requests above zero, not \"0\"",
        ),
        ("--whatever http://h/", "--whatever is no flag of bench"),
        (
            "--latency http://h/",
            "--latency is no flag of bench: percentiles are in every report",
        ),
        (
            "--pipeline 2 ajp://h/",
            "AJP13 has no pipelining: one request at a time",
        ),
    ] {
        let (code, stdout, stderr) = bench(words);
        let expected = format!("error: {expected}; `catamaran bench --help` lists the flags\n");
        assert_eq!(
            (code, stdout.as_str(), stderr),
            (Some(2), "", expected),
            "{words}"
        );
    }
    let (code, stdout, _) = bench("--help");
    assert_eq!(code, Some(0));
    assert!(stdout.contains("\n  -n, --requests N"), "{stdout}");
}

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nServer: peer\r\nContent-Length: 5\r\n\r\nhello";
