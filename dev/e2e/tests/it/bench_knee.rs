//! `bench knee`: where the search goes, what it says of it, and its exit codes.
//!
//! The limits are such that every server meets them, or none, so that no time decides.

use std::fs;

use catamaran_e2e::{Nginx, catamaran, outcome};
use catamaran_testkit::address;
use serde_json::Value;

fn knee(words: &str) -> (Option<i32>, String, String) {
    let words = format!("bench knee --duration 200ms --warmup 50ms -k {words}");
    let process = catamaran(&words.split_whitespace().collect::<Vec<_>>()).unwrap();
    outcome(process).unwrap()
}

fn rates(knee: &Value) -> Vec<f64> {
    let steps = knee["steps"].as_array().unwrap().iter();
    steps
        .filter_map(|step| step["rate_per_s"].as_f64())
        .collect()
}

/// Error pages break the limit at any rate: the search goes down, and says that nothing is
/// sustained.
#[test]
fn a_server_that_sustains_nothing() {
    let nginx = Nginx::with_pages().unwrap();
    let url = format!("http://{}/missing", nginx.address());
    let flags = "--rate 25600 --fail-if p50>10m --waive unsent,failed,invalid";
    let (code, stdout, stderr) = knee(&format!("--json {flags} {url}"));
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    let knee: Value = serde_json::from_str(&stdout).unwrap();
    let expected = [25600.0, 12800.0, 6400.0, 3200.0, 1600.0, 800.0, 400.0];
    // On a busy machine a step may get no answer in its time, and is done again.
    let mut tried = rates(&knee);
    tried.dedup();
    assert_eq!(tried, expected);
    assert_eq!(knee["schema"], "catamaran-bench-knee/1");
    assert_eq!(knee["sustained_per_s"], Value::Null);
    assert_eq!(knee["broken_per_s"], 400.0);
    assert_eq!(knee["limits"][0], "p50>10m");
}

/// What never breaks is not called the knee, and the rows, the report and the last lines agree. Where
/// the search goes is tested in `load`: a machine without time for the load makes it try other rates.
#[test]
fn a_limit_that_nothing_breaks() {
    let nginx = Nginx::with_pages().unwrap();
    let url = format!("http://{}/", nginx.address());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("knee.json");
    // Errors up to any share pass, whatever a busy machine does to the connections.
    let flags =
        "--rate 1000 --rate-max 1500 --fail-if p50>60m --waive non-2xx,unsent,failed,invalid";
    let (code, stdout, stderr) = knee(&format!("--json={} {flags} {url}", path.display()));
    assert_eq!(code, Some(3), "{stdout}{stderr}");
    let knee: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(knee["broken_per_s"], Value::Null, "{knee}");
    assert!(rates(&knee).iter().all(|rate| *rate <= 1500.0), "{knee}");
    let rows = stdout.lines().skip(3).take(rates(&knee).len());
    for (row, step) in rows.zip(knee["steps"].as_array().unwrap()) {
        let verdict = step["verdict"].as_str().unwrap();
        assert!(["passed", "undecided"].contains(&verdict), "{knee}");
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words[5].trim_end_matches(':'), verdict, "{stdout}");
    }
    let expected = match knee["sustained_per_s"].as_f64() {
        Some(rate) => format!("\nSustained: {rate:.1}/s at least. No rate that was tried broke"),
        None => "\nSustained: not decided.".to_owned(),
    };
    assert!(stdout.contains(&expected), "{stdout}");
}

#[test]
fn a_port_where_nobody_listens_ends_the_search() {
    let refusing = address::refusing().unwrap();
    let (code, _, stderr) = knee(&format!("http://{refusing}/"));
    assert_eq!(code, Some(2));
    assert!(stderr.contains("Connection refused"), "{stderr}");
    let (code, _, stderr) = knee(&format!("-n 5 http://{refusing}/"));
    assert_eq!(code, Some(2));
    assert!(stderr.contains("does not go with -n"), "{stderr}");
}
