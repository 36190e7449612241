//! `bench memcached://` against Debian's memcached: what it counts is what the server counts.

use std::io::Write as _;
use std::process::Command;

use catamaran_e2e::{Memcached, catamaran};
use catamaran_gauge::memory;
use catamaran_testkit::{Address, Deadline, Process};
use serde_json::Value;

/// Runs `bench` with these words to its end.
fn bench(words: &str) -> (Option<i32>, String, String) {
    catamaran_e2e::bench(words).unwrap()
}

fn report(words: &str) -> (Option<i32>, Value) {
    let (code, stdout, stderr) = bench(&format!("--json {words}"));
    let value = serde_json::from_str(&stdout);
    let value = value.unwrap_or_else(|error| panic!("{words}: {error}: {stdout}{stderr}"));
    (code, value)
}

/// Gets, hits, misses and sets: of the server, since it was started.
fn server_totals(server: &Memcached) -> [u64; 4] {
    let stats = server.stats().unwrap();
    ["cmd_get", "get_hits", "get_misses", "cmd_set"].map(|name| stats[name])
}

/// The same of a report.
fn totals(report: &Value) -> [u64; 4] {
    let found = &report["memcached"];
    ["gets", "hits", "misses", "sets"].map(|name| found[name].as_u64().unwrap())
}

fn minus(later: [u64; 4], before: [u64; 4]) -> [u64; 4] {
    std::array::from_fn(|place| later[place] - before[place])
}

#[test]
fn totals_are_those_of_the_servers_stats() {
    let server = Memcached::start(64).unwrap();
    let url = format!("memcached://{}/", server.address());
    for flags in [
        "-c 20 -n 500",
        "-c 20 -n 500 --protocol text",
        "-c 5 -n 1000 --pipeline 16 --mix get=1,set=1 --keys 300 --zipf 0.99",
        "-c 5 -n 1000 --pipeline 16 --value 10k --protocol text",
        "-c 3 -n 200 --mix set=1 --value 1000000",
    ] {
        let before = server_totals(&server);
        let (code, report) = report(&format!("{flags} {url}"));
        assert_eq!(code, Some(0), "{flags}: {report}");
        let found = totals(&report);
        assert_eq!(found, minus(server_totals(&server), before), "{flags}");
        let all = found[0] + found[3];
        assert_eq!(report["requests"]["ok"], all, "{flags}");
        assert_eq!(report["requests"]["non_2xx"], 0, "{flags}");
    }
}

/// What was stored beforehand is found, and is in no count.
#[test]
fn prefilled_keys_are_all_hits() {
    let server = Memcached::start(64).unwrap();
    let url = format!("memcached://{}/", server.address());
    let (code, report) = report(&format!("--prefill --keys 2k -c 10 -n 400 {url}"));
    assert_eq!(code, Some(0), "{report}");
    let [gets, hits, misses, sets] = totals(&report);
    assert_eq!((gets, misses), (hits, 0));
    assert_eq!(gets + sets, 4000);
    assert_eq!(report["memcached"]["prefilled"], 2000);
    assert_eq!(server_totals(&server), [gets, hits, 0, sets + 2000]);
    assert_eq!(server.stat("curr_items").unwrap(), 2000);
}

/// Somebody else has stored other bytes under the keys.
#[test]
fn a_value_that_was_not_stored_by_bench_is_a_failure() {
    let server = Memcached::start(64).unwrap();
    let stored = b"set catamaran:0 0 0 21 noreply\r\ncatamaran:0 00000000 \r\n";
    let mut other = Address::from(server.address())
        .connect(Deadline::DEFAULT)
        .unwrap();
    other.write_all(stored).unwrap();
    Deadline::default()
        .poll("the value", || {
            (server.stat("curr_items").unwrap() == 1).then_some(())
        })
        .unwrap();
    let words = format!(
        "--keys 1 --mix get=1 -n 5 memcached://{}/",
        server.address()
    );
    let (code, report) = report(&words);
    assert_eq!(code, Some(1));
    assert_eq!(report["failures"]["wrong-value"], 5, "{report}");
    assert_eq!(totals(&report), [0; 4]);
}

#[test]
fn a_value_that_the_server_refuses_has_its_words() {
    let server = Memcached::start(64).unwrap();
    let url = format!("memcached://{}/", server.address());
    let words = format!("--mix set=1 --value 2MiB -n 3 {url}");
    let (code, report) = report(&words);
    assert_eq!(code, Some(1));
    assert_eq!(report["failures"]["server-error"], 3, "{report}");
    let reason = report["failure_reasons"]["server-error"].as_str().unwrap();
    assert!(reason.contains("too large"), "{reason}");
    let (code, _, stderr) = bench(&format!("--prefill --keys 20 --value 2MiB -n 3 {url}"));
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains("--prefill: only 0 of 20 values"),
        "{stderr}"
    );
}

#[test]
fn it_is_spoken_over_unix_sockets() {
    let directory = tempfile::tempdir().unwrap();
    // So that a memcached that runs as somebody else may make its socket there.
    let path = directory.path().join("memcached.sock");
    let mut command = Command::new("/usr/bin/memcached");
    command.args(["-u", "root", "-s"]).arg(&path);
    let process = Process::spawn(&mut command).unwrap();
    let address = Address::Unix(path.clone());
    Deadline::default()
        .poll("memcached's socket", || {
            address.connect(Deadline::DEFAULT).ok()
        })
        .unwrap();
    let url = format!("memcached+unix:{}", path.display());
    let (code, report) = report(&format!("-c 5 -n 100 --prefill --keys 50 {url}"));
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["memcached"]["misses"], 0);
    assert_eq!(report["requests"]["ok"], 500);
    drop(process);
}

#[test]
fn the_report_names_what_was_done() {
    let server = Memcached::start(64).unwrap();
    let words = format!(
        "-q -c 2 -n 100 --zipf 1.1 --fail-if errors>0 memcached://{}",
        server.address()
    );
    let (code, stdout, stderr) = bench(&words);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    for line in [
        "Protocol:               memcached (meta)\n",
        "Operations:             get=9, set=1\n",
        "Keys:                   10000, by Zipf's law with exponent 1.1\n",
        "Complete requests:      200\n",
        "  passed     errors>0",
    ] {
        assert!(stdout.contains(line), "{line}: {stdout}");
    }
    for (words, expected) in [
        (
            "--keys 5 http://127.0.0.1:1/",
            "--keys goes with a memcached:// URL only",
        ),
        ("-H A:b memcached://127.0.0.1:1", "does not go with -H"),
        (
            "--value 5 memcached://127.0.0.1:1",
            "a value has 24 bytes at least",
        ),
        (
            "--mix get=1,delete=1 memcached://h",
            "operations and their weights",
        ),
        ("memcached://h/key", "keys and no paths"),
    ] {
        let (code, _, stderr) = bench(words);
        assert_eq!(code, Some(2), "{words}");
        assert!(stderr.contains(expected), "{words}: {stderr}");
    }
}

/// After 1,000,000 operations `bench` has no more memory than after 100,000. Half a million follow, so that it still runs when it is
/// looked at.
#[test]
fn a_million_operations_take_no_more_memory_than_a_hundred_thousand() {
    let server = Memcached::start(256).unwrap();
    let url = format!("memcached://{}/", server.address());
    let words = [
        "bench",
        "--json",
        "--ticks",
        "50ms",
        "-c",
        "50",
        "-n",
        "30000",
        "--pipeline",
        "8",
        "--keys",
        "100k",
        &url,
    ];
    let mut process = catamaran(&words).unwrap();
    let anonymous_at = |done: u64| {
        let what = format!("{done} operations");
        process
            .wait_for_line(&what, |line| {
                let tick: Value = serde_json::from_str(line).ok()?;
                (tick["completed"].as_u64()? >= done).then_some(())
            })
            .unwrap();
        memory::of_process(process.id()).unwrap().private
    };
    let (early, late) = (anonymous_at(100_000), anonymous_at(1_000_000));
    let status = process.wait(Deadline::default()).unwrap();
    assert_eq!(status.code(), Some(0), "{}", process.stderr());
    let report: Value = serde_json::from_str(&process.stdout()).unwrap();
    assert_eq!(report["requests"]["ok"], 1_500_000);
    assert_eq!(totals(&report), server_totals(&server));
    println!("anonymous memory after 100,000 operations {early}, after 1,000,000 {late}");
    // The timeline has an entry for each 100 ms.
    assert!(
        late < early + 2 * 1024 * 1024,
        "{early} B after 100,000 operations, {late} B after 1,000,000"
    );
}
