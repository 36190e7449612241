//! Addresses that are taken or not permitted: exit code 1 and a plain line.

use std::net::TcpListener;

use catamaran_testkit::Process;

use super::{catamaran, outcome};

/// A port that somebody listens on, for as long as the listener lives.
fn taken() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    (listener, address)
}

#[test]
fn serve_says_that_a_port_is_in_use() {
    let (_listener, address) = taken();
    let upstream = "ajp://127.0.0.1:8009";
    let (code, stdout, stderr) = outcome(&[
        "serve",
        "--listen",
        &address,
        "--upstream",
        upstream,
        "--log-level",
        "off",
    ]);
    assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
    assert!(
        stderr.starts_with("error: ") && stderr.lines().count() == 1,
        "{stderr}"
    );
    assert!(
        stderr.contains(&address) && stderr.contains("in use"),
        "{stderr}"
    );
}

#[test]
fn app_says_that_a_port_is_in_use() {
    let (_listener, address) = taken();
    let (code, _, stderr) = outcome(&["app", "--http", &address, "--log-level", "off"]);
    assert_eq!(code, Some(1));
    let expected = format!(
        "error: http://{address} is in use: another process listens there; stop it or choose \
         another address\n"
    );
    assert_eq!(stderr, expected);
}

#[test]
fn app_refuses_open_ajp_without_a_secret() {
    let (code, _, stderr) = outcome(&["app", "--ajp", "0.0.0.0:0"]);
    assert_eq!(code, Some(1));
    assert!(
        stderr.starts_with("error: AJP on 0.0.0.0:0 without a secret"),
        "{stderr}"
    );
}

#[test]
fn serve_does_not_share_a_port_with_another_front() {
    let upstream = "ajp://127.0.0.1:8009";
    let first = ["serve", "--listen", "127.0.0.1:0", "--upstream", upstream];
    let first = Process::spawn(&mut catamaran(&first)).unwrap();
    let address = |line: &str| Some(line.strip_prefix("listening on http://")?.to_owned());
    let address = first.wait_for_line("an address", address).unwrap();
    let (code, _, stderr) = outcome(&["serve", "--listen", &address, "--upstream", upstream]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(
        stderr.contains(&address) && stderr.contains("in use"),
        "{stderr}"
    );
}
