//! Tests of each flag by its effect, and of each refusal by its message and by ab's.

use std::time::Duration;

use catamaran_load::plan::{Arrivals, TlsVersion, WarmUp};

use super::*;
use crate::flag::output::Sink;
use crate::refusal::{AbEnd, Body};

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn read_line(mode: Mode, line: &str) -> Settings {
    read(&words(line), mode).unwrap_or_else(|refusal| panic!("{line}: {refusal}"))
}

fn ours(line: &str) -> Settings {
    read_line(Mode::Ours, line)
}

fn refusal(mode: Mode, line: &str) -> Refusal {
    match read(&words(line), mode) {
        Err(refusal) => refusal,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn how_much_and_how_fast() {
    let load = ours("-n 10k -c 5 -t 3 -s 2 -W 4 -R 20 --seed 9 U").load;
    assert_eq!((load.requests, load.concurrency), (Some(10_000), Some(5)));
    assert_eq!(load.duration, Some(Duration::from_secs(3)));
    assert_eq!(load.timeout, Some(Duration::from_secs(2)));
    assert_eq!((load.threads, load.seed), (Some(4), 9));
    assert_eq!(load.spacing, Duration::from_millis(20));
    let load =
        ours("--rate 1.5k --arrivals constant --duration 1m --ramp 10s --warmup auto U").load;
    assert_eq!(
        (load.rate, load.arrivals),
        (Some(1500.0), Some(Arrivals::Constant))
    );
    assert_eq!(load.duration, Some(Duration::from_secs(60)));
    assert_eq!(load.ramp, Some(Duration::from_secs(10)));
    assert_eq!(
        load.warm_up,
        WarmUp::Detect {
            max: Duration::from_secs(60)
        }
    );
    let load = ours("--stage 1s..5,2s=5 --stages 1s..0 --warmup 500ms U").load;
    assert_eq!(load.stages.len(), 3);
    assert_eq!(load.warm_up, WarmUp::For(Duration::from_millis(500)));
}

/// `-z` is a time in oha and hey; in ab mode it sets an attribute of cells.
#[test]
fn a_time_is_no_attribute_of_cells() {
    let found = refusal(Mode::Ours, "-z 10s U");
    assert!(found.to_string().ends_with("--duration 10s"), "{found}");
    assert_eq!(
        read_line(Mode::Ab, "-z 10s U").output.attributes.cell,
        "10s"
    );
    assert_eq!(ours("-z nowrap U").output.attributes.cell, "nowrap");
}

/// In ab 2.4, `-n` counts only after `-t`.
#[test]
fn a_time_limit_sets_the_number_of_requests_in_ab_only() {
    let requests = |mode, line| read_line(mode, line).load.requests;
    assert_eq!(requests(Mode::Ab, "-t 3 U"), Some(50_000));
    assert_eq!(requests(Mode::Ab, "-n 10 -t 3 U"), Some(50_000));
    assert_eq!(requests(Mode::Ab, "-t 3 -n 10 U"), Some(10));
    assert_eq!(requests(Mode::Ours, "-n 10 -t 3 U"), Some(10));
    assert_eq!(requests(Mode::Ours, "-t 3 U"), None);
}

#[test]
fn a_file_of_requests_is_no_number_of_them() {
    let settings = ours("-n mix.jsonl U");
    let file = settings.load.requests_file.as_deref();
    assert_eq!((settings.load.requests, file), (None, Some("mix.jsonl")));
    let names: Vec<&str> = settings.flags.iter().map(|flag| flag.long).collect();
    assert_eq!(names, ["requests-file"]);
}

#[test]
fn what_is_asked() {
    let request = ours("-m PATCH -C a=1 -C b=2 -H X:1 -H Y:2 -T text/css --secret s U").request;
    assert_eq!(request.method.as_deref(), Some("PATCH"));
    assert_eq!(request.cookies, ["a=1", "b=2"]);
    assert_eq!(request.headers, ["X:1", "Y:2"]);
    assert_eq!(request.content_type.as_deref(), Some("text/css"));
    assert_eq!(request.secret.as_deref(), Some("s"));
    let request = ours("-A u:p -P v:q -X proxy:3128 --http1.0 U").request;
    let expected = [
        ("Authorization", "Basic dTpw".to_owned()),
        ("Proxy-Authorization", "Basic djpx".to_owned()),
    ];
    assert_eq!(request.credentials, expected);
    assert_eq!(request.proxy, Some(("proxy".to_owned(), 3128)));
    assert!(request.http10);
    let request = ours("--data hello -m PUT U").request;
    assert_eq!(
        (request.body, request.content.as_slice()),
        (Some(Body::Post), &b"hello"[..])
    );
    assert_eq!(ours("-i U").request.body, Some(Body::Head));
}

#[test]
fn bodies_come_from_files() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "hello").unwrap();
    let path = file.path().to_str().unwrap();
    for (line, body) in [
        (format!("-p {path} U"), Body::Post),
        (format!("-u {path} U"), Body::Put),
        (format!("--data @{path} U"), Body::Post),
    ] {
        let request = ours(&line).request;
        assert_eq!(
            (request.body, request.content.as_slice()),
            (Some(body), &b"hello"[..])
        );
    }
}

#[test]
fn urls_come_from_a_file_too() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "http://a/\n\n# not this\n  http://b/x\n").unwrap();
    let settings = ours(&format!("--urls {} http://c/", file.path().display()));
    assert_eq!(settings.urls, ["http://a/", "http://b/x", "http://c/"]);
}

#[test]
fn in_ab_the_last_cookie_counts() {
    assert_eq!(
        read_line(Mode::Ab, "-C a=1 -C b=2 U").request.cookies,
        ["b=2"]
    );
}

#[test]
fn how_connections_are_made() {
    let line =
        "-k --pipeline 4 --requests-per-connection 100 -B 127.0.0.1,127.0.0.2 -o ::1 -b 4096 U";
    let connection = ours(line).connection;
    assert!(connection.keep_alive);
    assert_eq!(
        (connection.pipeline, connection.requests_max),
        (Some(4), Some(100))
    );
    assert_eq!(connection.sources.len(), 3);
    assert_eq!(connection.buffer, Some(4096));
}

#[test]
fn tls_as_asked_for() {
    let tls = ours("-Z A:B,C -f tls1.3 -I --verify U").tls;
    assert_eq!(tls.ciphers, ["A", "B", "C"]);
    assert_eq!(tls.versions, [TlsVersion::Tls13]);
    assert!(tls.no_sni && tls.verify);
    assert_eq!(ours("-f ALL U").tls.versions.len(), 2);
    // ab passes over what it does not know.
    assert!(read_line(Mode::Ab, "-f QUIC U").tls.versions.is_empty());
}

#[test]
fn what_is_said() {
    let output = ours("-v 2 -q -d -S -Q -D -g G -e E --hdr H --json --csv=C --ticks 1s U").output;
    assert_eq!(output.verbosity, 2);
    assert!(output.quiet && output.no_percentiles && output.no_confidence);
    assert!(output.no_banner && output.watchdog && !output.html);
    assert_eq!(output.gnuplot.as_deref(), Some("G"));
    assert_eq!(output.percentiles.as_deref(), Some("E"));
    assert_eq!(output.hdr.as_deref(), Some("H"));
    assert_eq!(output.ticks, Some(Duration::from_secs(1)));
    assert_eq!(output.json, Some(Sink::Stdout));
    assert_eq!(output.csv, Some(Sink::File("C".to_owned())));
    for line in ["-w U", "-x border=1 U", "-y a U", "-z b U"] {
        assert!(ours(line).output.html, "{line}");
    }
    let attributes = ours("-x t -y r -z c U").output.attributes;
    assert_eq!(
        (
            attributes.table.as_str(),
            attributes.row.as_str(),
            attributes.cell.as_str()
        ),
        ("t", "r", "c")
    );
    let settings = ours("-l -r U");
    assert!(settings.checks.variable_length && settings.checks.receive_errors);
}

#[test]
fn help_and_version_come_at_once() {
    for mode in [Mode::Ab, Mode::Ours] {
        let information = |line| read_line(mode, line).information;
        assert_eq!(information("-h -n x"), Some(Information::Help));
        let version = Information::Version { html: true };
        assert_eq!(information("-w -V -n x"), Some(version));
        assert_eq!(information("-w U"), None);
    }
}

#[test]
fn ours_are_refused_with_what_would_be_right() {
    for (line, expected) in [
        (
            "-n 0 U",
            "-n takes a number of requests above zero, not \"0\"",
        ),
        (
            "-n x U",
            "-n takes a number of requests above zero, not \"x\"",
        ),
        (
            "-c 200001 U",
            "-c takes a number of clients from 0 to 200000",
        ),
        (
            "-t x U",
            "-t (--time-limit) takes a time such as 10s or 500ms, not \"x\"",
        ),
        (
            "--duration x U",
            "--duration takes a time such as 10s or 500ms, not \"x\"",
        ),
        ("--rate 0 U", "--rate takes requests per second, not \"0\""),
        (
            "--arrivals x U",
            "--arrivals takes constant or poisson, not \"x\"",
        ),
        (
            "--stage 5 U",
            "--stage takes stages such as 30s=100 or 30s..100, not \"5\"",
        ),
        (
            "--warmup x U",
            "--warmup takes a time such as 10s, or auto, not \"x\"",
        ),
        (
            "-W x U",
            "-W (--threads) takes a number of threads, not \"x\"",
        ),
        ("-X :80 U", "-X (--proxy) takes HOST[:PORT], not \":80\""),
        ("-b x U", "-b (--buffer) takes a number of bytes, not \"x\""),
        (
            "-f SSL3 U",
            "SSL3 is not available: the TLS library has TLS1.2 and TLS1.3 only",
        ),
        (
            "-f QUIC U",
            "-f (--tls) takes TLS1.2, TLS1.3 or ALL, not \"QUIC\"",
        ),
        ("--compat wrk U", "--compat takes ab, not \"wrk\""),
        (
            "-p /no/such U",
            "cannot read /no/such: No such file or directory",
        ),
        (
            "-E /no/such U",
            "cannot read /no/such: No such file or directory",
        ),
        (
            "-i --data x U",
            "POST conflicts with another method or body: choose one of -i, -p, -u and --data",
        ),
    ] {
        assert_eq!(refusal(Mode::Ours, line).to_string(), expected, "{line}");
    }
}

#[test]
fn ab_is_refused_in_its_own_words() {
    let fatal = |words: &str| AbEnd::Fatal(words.to_owned());
    for (line, expected) in [
        ("-n 0 U", fatal("Invalid number of requests\n")),
        ("-n x U", fatal("Invalid number of requests\n")),
        ("-m GET -i U", fatal("Cannot mix HEAD with other methods\n")),
        (
            "-p /no/such U",
            fatal("ab: Could not open POST data file (/no/such): No such file or directory"),
        ),
        (
            "-c -1 U",
            AbEnd::Usage("Invalid Concurrency [Range 0..200000]".to_owned()),
        ),
    ] {
        assert_eq!(refusal(Mode::Ab, line).as_ab(), expected, "{line}");
    }
    let long = format!("-A {} U", "x".repeat(800));
    let expected = fatal("Authentication credentials too long\n");
    assert_eq!(refusal(Mode::Ab, &long).as_ab(), expected);
}
