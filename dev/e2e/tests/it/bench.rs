//! `bench` beside the real `ab`: called as `ab`, it says the same of the same server.
//!
//! Both run with the same command line against the same nginx or the same misbehaving peer. What
//! was measured is masked, everything else (labels, order, counts, bytes, files, exit codes) must
//! be equal line by line.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use catamaran_e2e::{Nginx, binary};
use catamaran_testkit::{Deadline, Peer, Process, Script, address};

/// What a run left behind.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    code: Option<i32>,
    stdout: Vec<String>,
    stderr: Vec<String>,
    /// The files of `-e` and `-g`.
    files: Vec<Vec<String>>,
}

/// Runs a program as `ab` in a directory of its own.
fn run(program: &Path, arguments: &str) -> Outcome {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("body"), "hello").unwrap();
    let mut command = Command::new(program);
    command
        .arg0("ab")
        .args(arguments.split_whitespace())
        .current_dir(directory.path());
    let mut process = Process::spawn(&mut command).unwrap();
    let status = process.wait(Deadline::default()).unwrap();
    let file = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap_or_default();
    Outcome {
        code: status.code(),
        stdout: masked(&process.stdout()),
        stderr: masked(&process.stderr()),
        files: vec![
            masked(&file("percentiles.csv")),
            masked(&file("gnuplot.tsv")),
        ],
    }
}

/// Runs both; says how many lines of standard output there are, so that two empty ones do not pass.
fn same(arguments: &str) -> Outcome {
    assert!(
        Path::new(AB).exists(),
        "{AB} is missing: `cargo xtask test` installs it"
    );
    let theirs = run(Path::new(AB), arguments);
    let ours = run(&binary().unwrap(), arguments);
    assert_eq!(ours, theirs, "ab {arguments}");
    ours
}

/// The lines, without what was measured. ab's doubts depend on that, and go, as do OpenSSL's words.
fn masked(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let doubt = DOUBTS.iter().any(|start| line.starts_with(start));
        if !doubt && !line.contains(":error:") {
            lines.push(mask(line));
        }
    }
    lines
}

fn mask(line: &str) -> String {
    let in_html = |label: &str| line.contains(&format!(">{label}:</th>"));
    let measured = MEASURED.iter().any(|start| line.starts_with(start))
        || MEASURED_HTML.iter().any(|label| in_html(label))
        || is_row_of_percent(line)
        || line.contains(" kb/s ");
    if !measured {
        return with_masked_time(line);
    }
    let mut text = String::new();
    for letter in line.chars() {
        // Values of different length have different blanks before them.
        match letter {
            '0'..='9' | ' ' if text.ends_with('#') => {}
            '0'..='9' => {
                text.truncate(text.trim_end().len());
                text.push('#');
            }
            _ => text.push(letter),
        }
    }
    text
}

/// Of the table, and of the file.
fn is_row_of_percent(line: &str) -> bool {
    let rest = line
        .trim_start()
        .trim_start_matches(|digit: char| digit.is_ascii_digit());
    rest.len() < line.trim_start().len() && rest.starts_with(['%', ','])
}

/// The line of a file of requests, which begins with a date.
fn with_masked_time(line: &str) -> String {
    let columns = line.split('\t').count();
    if columns == 6 && !line.starts_with("starttime") {
        return "a request".to_owned();
    }
    line.to_owned()
}

/// How many lines contain this.
fn count(lines: &[String], part: &str) -> usize {
    lines.iter().filter(|line| line.contains(part)).count()
}

#[test]
fn masking_leaves_what_was_not_measured() {
    let text = "Complete requests:      200\nTime per request:       0.127 [ms] (mean)\n\
                Total:          0   12   0.1      0       0\n  50%      0\n";
    let expected = [
        "Complete requests:      200",
        "Time per request:#.#[ms] (mean)",
        "Total:#.#",
        "#%#",
    ];
    assert_eq!(masked(text), expected);
}

#[test]
fn pages_without_and_with_keep_alive() {
    let nginx = Nginx::with_pages().unwrap();
    let url = format!("http://{}/", nginx.address());
    for flags in [
        "",
        "-n 3",
        "-n 200 -c 10",
        "-k -n 200 -c 10",
        "-n200 -kc 10",
        "-q -n 200 -c 10",
        "-d -n 20",
        "-S -n 20 -c 2",
        "-dS -n 20",
        "-l -k -n 50",
        "-i -n 50 -c 5",
        "-i -k -n 50 -c 5",
        "-n 20 -C a=1 -C b=2 -H X-A:1 -A u:p -P u:p",
        "-n 20 -m OPTIONS",
        // 50,000 requests are the end of it, on a slow machine too.
        "-k -n 10 -t 300",
        "-t 5 -n 10",
        "-v 1 -n 10",
        "-B 127.0.0.1 -n 10 -b 65536",
    ] {
        let outcome = same(&format!("{flags} {url}"));
        assert_eq!(outcome.code, Some(0));
        assert_eq!(count(&outcome.stdout, "Failed requests:        0"), 1);
    }
}

#[test]
fn what_is_no_page() {
    let nginx = Nginx::with_pages().unwrap();
    let address = nginx.address();
    for (flags, path, non_2xx) in [
        ("-n 50 -c 5", "missing", "50"),
        ("-k -n 50 -c 5", "missing", "50"),
        ("-n 50 -c 5", "redirect", "50"),
        ("-k -n 50 -c 5", "bare", "50"),
        ("-n 50 -c 5", "bare", "50"),
    ] {
        let outcome = same(&format!("{flags} http://{address}/{path}"));
        let line = format!("Non-2xx responses:      {non_2xx}");
        assert_eq!(count(&outcome.stdout, &line), 1, "{path}: {outcome:?}");
    }
    same(&format!("-n 50 -c 5 http://{address}/empty"));
    same(&format!("-k -n 50 -c 5 http://{address}/empty"));
}

#[test]
fn bodies_are_sent() {
    let nginx = Nginx::with_pages().unwrap();
    let url = format!("http://{}/post", nginx.address());
    for flags in [
        "-n 50 -c 5 -p body",
        "-k -n 50 -c 5 -p body -T text/css",
        "-n 50 -u body",
        "-n 50 -p body -m PATCH",
    ] {
        let outcome = same(&format!("{flags} {url}"));
        assert_eq!(count(&outcome.stdout, "Total body sent:"), 1, "{outcome:?}");
    }
}

#[test]
fn html_and_files() {
    let nginx = Nginx::with_pages().unwrap();
    let url = format!("http://{}/", nginx.address());
    for flags in [
        "-w -n 20",
        "-w -k -n 200",
        "-x border=1 -y align=left -z nowrap -n 5",
        "-w -n 5 -p body",
    ] {
        let outcome = same(&format!("{flags} {url}"));
        assert_eq!(count(&outcome.stdout, "</table>"), 1, "{outcome:?}");
    }
    let outcome = same(&format!("-n 30 -e percentiles.csv -g gnuplot.tsv {url}"));
    assert_eq!(outcome.files[0].len(), 102, "{outcome:?}");
    assert_eq!(outcome.files[1].len(), 31, "{outcome:?}");
    for flag in ["-e", "-g"] {
        let outcome = same(&format!("-n 3 {flag} no/such/file {url}"));
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
    }
}

#[test]
fn a_proxy_is_asked() {
    let nginx = Nginx::with_pages().unwrap();
    let outcome = same(&format!("-n 5 -X {} http://shop.example/", nginx.address()));
    assert_eq!(count(&outcome.stdout, "[through "), 1, "{outcome:?}");
}

#[test]
fn servers_that_fail() {
    let unused = address::refusing().unwrap();
    for (flags, url, code) in [
        ("-n 1", format!("http://{unused}/"), 111),
        ("-n 5", format!("http://{unused}/"), 111),
        ("-n 5 -c 5", format!("http://{unused}/"), 111),
        ("-n 5 -k", format!("http://{unused}/"), 111),
        ("-n 20 -c 2", format!("http://{unused}/"), 111),
        ("-t 300", format!("http://{unused}/"), 111),
        ("-n 5 -w", format!("http://{unused}/"), 111),
        ("-n 5 -v 4", format!("http://{unused}/"), 111),
        ("-n 5 -p body", format!("http://{unused}/"), 111),
        ("-n 5 -e no/such/file", format!("http://{unused}/"), 111),
        ("-n 5 -B 127.0.0.1", format!("http://{unused}/"), 111),
        ("-n 5", format!("http://[::1]:{}/", unused.port()), 111),
        ("-n 5 -X 127.0.0.1", "http://h.invalid/".to_owned(), 111),
        ("-n 5 -X 127.0.0.1:x", "http://h.invalid/".to_owned(), 111),
        ("-n 20", "http://no.such.host.invalid/".to_owned(), 50),
        ("-n 5", "https://no.such.host.invalid/".to_owned(), 50),
        ("-n 5 -X no.host.invalid:1", format!("http://{unused}/"), 50),
        ("-n 20 -B no.host.invalid", format!("http://{unused}/"), 50),
        ("-n 5 -B 192.0.2.1", format!("http://{unused}/"), 99),
        ("-n 5", "http://255.255.255.255/".to_owned(), 101),
        ("-n 50 -c 3", "http://255.255.255.255/".to_owned(), 101),
    ] {
        let outcome = same(&format!("{flags} {url}"));
        assert_eq!(outcome.code, Some(code), "{flags} {url} {outcome:?}");
    }
}

/// ab reads from a refused connection twice, and then takes the request for complete.
#[test]
fn refused_connects_are_counted_with_r() {
    let unused = address::refusing().unwrap();
    for (flags, counts) in [
        ("-r -n 1", "Receive: 2, Length: 0, Exceptions: 1"),
        ("-r -n 5", "Receive: 6, Length: 0, Exceptions: 3"),
        ("-r -n 50 -c 10", "Receive: 50, Length: 0, Exceptions: 25"),
    ] {
        let outcome = same(&format!("{flags} http://{unused}/"));
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert_eq!(count(&outcome.stdout, counts), 1, "{outcome:?}");
    }
}

/// To ab a request whose handshake failed is complete, and no failure.
#[test]
fn https_with_and_without_a_server_for_it() {
    let unused = address::refusing().unwrap();
    for flags in ["-n 1", "-n 5", "-r -n 5", "-n 50 -c 5"] {
        let outcome = same(&format!("{flags} https://{unused}/"));
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert!(count(&outcome.stderr, "SSL read failed (5)") > 0);
    }
    let clear = Nginx::with_pages().unwrap();
    let url = format!("https://{}/", clear.address());
    for flags in ["-n 5", "-k -n 20 -c 4", "-r -n 5"] {
        let outcome = same(&format!("{flags} {url}"));
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert_eq!(count(&outcome.stdout, "Failed requests:        0"), 1);
        assert!(count(&outcome.stderr, "SSL handshake failed (1).") > 0);
    }
    let secure = crate::bench_http2::Nginx::start(1000);
    for flags in ["-n 5", "-k -n 20 -c 4", "-f TLS1.2 -n 5", "-f NOPE -n 5"] {
        let outcome = same(&format!("{flags} https://{}/", secure.only_http1));
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
    }
}

/// What ab takes for zero, for ever, or for no limit.
#[test]
fn odd_numbers() {
    let nginx = Nginx::with_pages().unwrap();
    let url = format!("http://{}/", nginx.address());
    for (flags, code) in [
        ("-n 5x", 0),
        ("-n 5 -c 0", 22),
        ("-n 5 -c x", 22),
        ("-n 5 -s -1", 0),
        ("-n 5 -b x", 0),
        ("-n 5 -b -5", 0),
        ("-n 5 -v x", 0),
        ("-t x -n 5", 0),
        ("-n 5 -A nocolon -P nocolon", 0),
    ] {
        let outcome = same(&format!("{flags} {url}"));
        assert_eq!(outcome.code, Some(code), "{flags} {outcome:?}");
    }
}

/// No number is 0, and ab waits no longer than that.
#[test]
fn a_server_that_never_answers() {
    for flags in ["-n 5 -s 0", "-n 5 -s x", "-n 5 -c 2 -s 1"] {
        let outcome = same_of(flags, |_| Script::new().expect_until(b"\r\n\r\n").stall());
        assert_eq!(outcome.code, Some(119), "{flags} {outcome:?}");
    }
}

fn answers(bytes: &'static [u8]) -> Script {
    Script::new().expect_until(b"\r\n\r\n").send(bytes)
}

/// A server for each of both programs, so that both meet the same connections.
fn same_of(arguments: &str, script: impl Fn(usize) -> Script + Clone + Send + 'static) -> Outcome {
    let [ours, theirs] = [true, false].map(|ours| {
        let peer = Peer::start_with(script.clone());
        let line = format!("{arguments} http://{}/", peer.tcp_address());
        let program = if ours { binary().unwrap() } else { AB.into() };
        let mut outcome = run(&program, &line);
        let port = peer.tcp_address().port().to_string();
        for line in &mut outcome.stdout {
            *line = line.replace(&port, "PORT");
        }
        outcome
    });
    assert_eq!(ours, theirs, "ab {arguments}");
    ours
}

#[test]
fn resets_end_the_run_or_are_counted() {
    let script = |connection: usize| match connection {
        3.. => Script::new().expect_until(b"\r\n\r\n").reset(),
        _ => answers(ANSWER),
    };
    let outcome = same_of("-n 10", script);
    assert_eq!(outcome.code, Some(104), "{outcome:?}");
    assert_eq!(count(&outcome.stdout, "Total of 3 requests completed"), 1);
    let outcome = same_of("-r -n 10", script);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(count(&outcome.stdout, "Complete requests:      10"), 1);
}

#[test]
fn bodies_of_other_lengths_fail_unless_told() {
    let script = |connection: usize| match connection % 2 {
        0 => answers(ANSWER),
        _ => answers(b"HTTP/1.0 200 OK\r\nServer: peer\r\nContent-Length: 7\r\n\r\nlonger!"),
    };
    let outcome = same_of("-n 10", script);
    assert_eq!(count(&outcome.stdout, "Length: 5"), 1, "{outcome:?}");
    let outcome = same_of("-l -n 10", script);
    assert_eq!(
        count(&outcome.stdout, "Document Length:        Variable"),
        1
    );
}

#[test]
fn an_early_end_is_a_length() {
    let script = |connection: usize| match connection {
        4 => answers(b"HTTP/1.0 200 OK\r\nServer: peer\r\nContent-Length: 5\r\n\r\nhe"),
        5 => Script::new().expect_until(b"\r\n\r\n"),
        _ => answers(ANSWER),
    };
    let outcome = same_of("-n 10", script);
    assert_eq!(
        count(&outcome.stdout, "Failed requests:        2"),
        1,
        "{outcome:?}"
    );
}

/// ab takes the end of a kept connection for an answer of no length, and sends nothing again, neither a page's
/// request nor a POST.
#[test]
fn requests_on_kept_connections_that_end_are_not_sent_again() {
    let kept = b"HTTP/1.0 200 OK\r\nServer: peer\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello";
    for (flags, end) in [
        ("-k -n 30", &b"\r\n\r\n"[..]),
        ("-k -p body -n 30", b"\r\n\r\nhello"),
    ] {
        let asked = Script::new().expect_until(end);
        let script = asked.clone().send(kept).repeat(3).then(asked);
        let outcome = same_of(flags, move |_| script.clone());
        let failed = "Failed requests:        7";
        assert_eq!(count(&outcome.stdout, failed), 1, "{flags} {outcome:?}");
    }
}

#[test]
fn command_lines_that_make_no_sense() {
    for arguments in [
        "",
        "-h",
        "-V",
        "-w -V",
        "-n 0 http://h/",
        "-n x http://h/",
        "-n",
        "-J",
        "-Jk http://h/",
        "http://h",
        "http://h/ http://h/",
        "http://h/ -k",
        "-c 3 -n 2 http://h/",
        "-c -1 http://h/",
        "-c 300000 -n 300000 http://h/",
        "-c 2 http://h/",
        "-n -5 http://h/",
        "-n 99999999999999999999 http://h/",
        "-n 0 -V",
        "-n x -h",
        "-V -n x",
        "-n 5 -h",
        "-n 5 -z",
        "-p no/such/file http://h/",
        "-u no/such/file http://h/",
        "-p . http://h/",
        "-p body -u body http://h/",
        "http://:80/",
        "http://h:65536/",
        "-p body -i http://h/",
        "-m GET -u body http://h/",
        "http://h:0/",
        "http://[::1/",
    ] {
        let outcome = same(arguments);
        assert!(
            !(outcome.stdout.is_empty() && outcome.stderr.is_empty()),
            "{arguments}"
        );
    }
    let nginx = Nginx::with_pages().unwrap();
    let outcome = same(&format!("-J http://{}/", nginx.address()));
    assert_eq!(outcome.stderr, ["ab: illegal option -- J"]);
}

const AB: &str = "/usr/bin/ab";

const MEASURED: [&str; 8] = [
    "Time taken for tests:",
    "Requests per second:",
    "Time per request:",
    "Transfer rate:",
    "Connect:",
    "Processing:",
    "Waiting:",
    "Total:",
];

const MEASURED_HTML: [&str; 6] = [
    "Time taken for tests",
    "Requests per second",
    "Transfer rate",
    "Connect",
    "Processing",
    "Total",
];

const DOUBTS: [&str; 4] = [
    "WARNING: The",
    "ERROR: The",
    "        These",
    "       deviation",
];

const ANSWER: &[u8] = b"HTTP/1.0 200 OK\r\nServer: peer\r\nContent-Length: 5\r\n\r\nhello";
