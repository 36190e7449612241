//! `serve --tls`: TLS without a file.

use std::fs;
use std::process::Command;

use catamaran_e2e::{Front, Pebble, binary, curl};
use catamaran_testkit::Deadline;

use crate::reload::application;

/// The status that curl gets for a name, as it trusts anybody.
fn status(front: &Front, name: &str) -> String {
    let (ip, port) = (front.address().ip(), front.address().port());
    let resolve = format!("{name}:{port}:{ip}");
    let output = curl()
        .args(["--insecure", "--resolve", &resolve])
        .args(["--write-out", "%{stderr}%{http_code} %{http_version}"])
        .arg(format!("https://{name}:{port}/"))
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_name_on_the_command_line_gets_its_certificate() {
    let pebble = Pebble::start(&[]).unwrap();
    let state = tempfile::tempdir().unwrap();
    let (_application, url) = application();
    let listen = pebble.tls_challenges().to_string();
    let (directory, ca_file) = (pebble.directory_url(), pebble.ca_file());
    let ca_file = ca_file.to_string_lossy();
    let arguments = [
        ["--tls", "www.example.org"],
        ["--tls", "example.org"],
        ["--listen", &listen],
        ["--upstream", &url],
        ["--acme-directory", &directory],
        ["--acme-ca-file", &ca_file],
    ];
    let mut arguments = arguments.concat();
    arguments.push("--agree-terms");
    let variables = [("STATE_DIRECTORY", state.path())];
    let front = Front::with_arguments(&arguments, &variables).unwrap();
    for name in ["www.example.org", "example.org"] {
        let is_served = || (status(&front, name) == "200 2").then_some(());
        let served = Deadline::default().poll(name, is_served);
        assert!(served.is_ok(), "{}\n{}", front.log(), pebble.log());
    }
    assert!(status(&front, "other.example.org").contains("(35)"));
    let stored = fs::read_dir(state.path().join("acme")).unwrap();
    assert_eq!(stored.count(), 2, "what is pending, and the authority's");
}

#[test]
fn the_terms_must_be_agreed_to() {
    let serve = [
        "serve",
        "--tls",
        "www.example.org",
        "--upstream",
        "ajp://127.0.0.1:8009",
    ];
    let mut command = Command::new(binary().unwrap());
    let output = command.args(serve).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("https://letsencrypt.org/repository/, and add --agree-terms"),
        "{said}"
    );
}

#[test]
fn a_reload_keeps_the_self_signed_certificate() {
    let (_application, url) = application();
    let arguments = [
        "--tls",
        "shop.test",
        "--listen",
        "127.0.0.1:0",
        "--upstream",
        &url,
    ];
    let mut front = Front::with_arguments(&arguments, &[]).unwrap();
    assert_eq!(status(&front, "shop.test"), "200 2");
    front
        .process()
        .signal(catamaran_testkit::Signal::Hangup)
        .unwrap();
    let line = front.wait_for_log("reloaded; ").unwrap();
    assert!(line.contains("certificates: 1 kept"), "{line}");
    assert_eq!(
        front
            .log()
            .matches("self-signed certificate for shop.test")
            .count(),
        1
    );
    assert_eq!(status(&front, "shop.test"), "200 2");
}
