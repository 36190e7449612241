//! `bench --versus`: two targets in mirrored pairs of blocks.

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
    for (flag, name) in [
        ("-n 5", "-n"),
        ("--stage 1s=5", "--stage"),
        ("--fail-if p99>1s", "--fail-if"),
    ] {
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
