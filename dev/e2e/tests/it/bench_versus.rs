//! `bench --versus`: two targets in mirrored pairs of blocks.

use std::io::{BufRead as _, BufReader, Write as _};

use catamaran_e2e::App;
use catamaran_testkit::address;
use serde_json::Value;

/// Runs `bench` with these words to its end.
fn bench(words: &str) -> (Option<i32>, String, String) {
    catamaran_e2e::bench(words).unwrap()
}

#[test]
fn error_pages_differ_from_pages_in_their_errors() {
    let app = App::start("epoll", &[]).unwrap();
    let url = |path: &str| format!("http://{}{path}", app.http());
    let words = format!(
        "--json -k -c 2 --duration 2400ms {} --versus {}",
        url("/status/404"),
        url("/bytes/5")
    );
    let (code, stdout, stderr) = bench(&words);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    let result: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(result["schema"], "catamaran-bench-versus/1");
    assert_eq!(
        (&result["pairs"], &result["block_s"]),
        (&12.into(), &0.1.into())
    );
    let blocks = result["blocks"].as_array().unwrap();
    let order: Vec<&str> = blocks
        .iter()
        .map(|block| block["target"].as_str().unwrap())
        .collect();
    assert_eq!(order.len(), 24);
    for pairs in order.chunks_exact(4) {
        assert_ne!(pairs[0], pairs[1]);
        assert_eq!([pairs[0], pairs[1]], [pairs[3], pairs[2]], "mirrored");
    }
    let errors = &result["measures"][3];
    assert_eq!(errors["measure"], "errors");
    assert_eq!((&errors["a"], &errors["b"]), (&1.0.into(), &0.0.into()));
    assert_eq!(errors["verdict"], "differs");
    assert!(
        result["sentence"]
            .as_str()
            .unwrap()
            .contains("∞ times the errors of B")
    );
    assert_eq!(result["warnings"][0]["kind"], "non-2xx");
    assert_eq!(
        (&result["warnings"][0]["a"], &result["warnings"][0]["b"]),
        (&12.into(), &0.into())
    );
}

#[test]
fn a_short_comparison_says_how_long_it_would_take() {
    let app = App::start("epoll", &[]).unwrap();
    let url = format!("http://{}/bytes/5", app.http());
    let (code, stdout, _) = bench(&format!("-k -c 2 --duration 1s {url} --versus {url}"));
    assert_eq!(code, Some(3));
    let expected =
        "No verdict: 5 pairs of blocks say nothing, 6 are needed: --duration 1.2s or more.\n";
    assert!(stdout.starts_with(expected), "{stdout}");
    assert!(
        stdout.contains("\n5 pairs of blocks of 100 ms, in mirrored order"),
        "{stdout}"
    );
}

#[test]
fn what_does_not_go_with_it_is_refused() {
    let url = format!("http://{}/", address::refusing().unwrap());
    for (flag, name) in [("-n 5", "-n"), ("--stage 1s=5", "--stage")] {
        let (code, _, stderr) = bench(&format!("{flag} {url} --versus {url}"));
        assert_eq!(code, Some(2), "{flag}");
        assert!(
            stderr.contains(&format!("it does not go with {name};")),
            "{stderr}"
        );
    }
    let (code, _, stderr) = bench(&format!(
        "--duration 2s http://no.such.host.invalid/ --versus {url}"
    ));
    // Nothing was measured: it could not be done.
    assert_eq!(code, Some(2));
    assert!(
        stderr.starts_with("error: no.such.host.invalid: "),
        "{stderr}"
    );
}

#[test]
fn error_pages_on_both_sides_are_invalid() {
    let app = App::start("epoll", &[]).unwrap();
    let url = |path: &str| format!("http://{}{path}", app.http());
    let (missing, broken) = (url("/status/404"), url("/status/500"));
    let words = format!("-k -c 2 --duration 1200ms {missing} --versus {broken}");
    let (code, stdout, _) = bench(&words);
    assert_eq!(code, Some(1), "{stdout}");
    assert!(
        stdout.starts_with(
            "Invalid: 100 % of the requests of A and 100 % of those of B had an error page"
        ),
        "{stdout}"
    );
}

#[test]
fn warmed_targets_of_other_bodies_and_cpu_time() {
    let app = App::start("epoll", &[]).unwrap();
    let url = |path: &str| format!("http://{}{path}", app.http());
    let (short, long) = (url("/bytes/5"), url("/bytes/50000"));
    let words = format!("--json -k -c 2 --warmup 200ms --duration 1200ms {short} --versus {long}");
    let (code, stdout, stderr) = bench(&words);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    let result: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(result["warm_up_s"].as_array().unwrap().len(), 2);
    assert_eq!(result["body_bytes"], serde_json::json!([5.0, 50000.0]));
    let sentence = result["sentence"].as_str().unwrap();
    assert!(
        sentence.contains("bodies of A have 5 bytes, those of B 50000"),
        "{sentence}"
    );
    let cpu = &result["measures"][4];
    assert_eq!(
        (&cpu["measure"], &cpu["unit"]),
        (&"cpu".into(), &"us".into())
    );
    assert!(cpu["a"].as_f64().unwrap() > 0.0, "{cpu}");
}

#[test]
fn a_limit_of_a_ratio_decides_the_exit_code() {
    let app = App::start("epoll", &[]).unwrap();
    let url = |path: &str| format!("http://{}{path}", app.http());
    // Bodies of one length.
    let (page, slow) = (url("/bytes/13"), url("/delay/20"));
    // Few requests have no 99th percentile.
    for (condition, other, code, verdict) in [
        ("rate<0.95x", &page, 1, "failed"),
        ("rate>0.95x", &page, 0, "passed"),
        ("p99>2x", &slow, 3, "undecided"),
    ] {
        let line =
            format!("-k -c 2 --duration 1200ms --fail-if {condition} {slow} --versus {other}");
        let (found, stdout, _) = bench(&line);
        assert_eq!(found, Some(code), "{condition}: {stdout}");
        assert!(stdout.contains(&format!("\nGate: {verdict}\n")), "{stdout}");
    }
    for (line, words) in [
        (
            format!("--fail-if rate<0.95x {page}"),
            "goes with --versus only",
        ),
        (
            format!("--fail-if p99>1s {page} --versus {page}"),
            "--versus takes limits of ratios",
        ),
    ] {
        let (code, _, stderr) = bench(&line);
        assert_eq!(code, Some(2));
        assert!(stderr.contains(words), "{stderr}");
    }
}

/// Answers on `connections` connections, one after the other, and then no longer listens.
fn mortal(connections: usize) -> std::net::SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(connections) {
            let stream = stream.unwrap();
            let mut lines = BufReader::new(&stream).lines();
            while let Some(Ok(line)) = lines.next() {
                if line.is_empty() {
                    let _ = (&stream).write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
                }
            }
        }
    });
    address
}

#[test]
fn a_target_that_dies_is_named_and_its_blocks_are_kept() {
    let app = App::start("epoll", &[]).unwrap();
    let (page, mortal) = (
        format!("http://{}/bytes/5", app.http()),
        format!("http://{}/", mortal(3)),
    );
    let words = format!("--json -k -c 1 --duration 1200ms {page} --versus {mortal}");
    let (code, stdout, _) = bench(&words);
    assert_eq!(code, Some(3), "{stdout}");
    let result: Value = serde_json::from_str(&stdout).unwrap();
    let died = &result["died"];
    assert_eq!(
        (&died["target"], &died["url"]),
        (&"b".into(), &mortal.as_str().into())
    );
    let blocks = result["blocks"].as_array().unwrap();
    assert_eq!(
        blocks.iter().filter(|block| block["target"] == "b").count(),
        3
    );
    assert_eq!(died["blocks"], blocks.len());
    let sentence = result["sentence"].as_str().unwrap();
    assert!(
        sentence.starts_with(&format!("B died: {mortal} gave no more answers")),
        "{sentence}"
    );
}
