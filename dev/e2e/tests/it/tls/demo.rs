//! `catamaran demo --tls`, tried as it says.

use std::path::Path;
use std::process::Command;

use catamaran_e2e::catamaran;
use catamaran_testkit::{Deadline, Signal};
use serde_json::Value;

#[test]
fn the_demo_serves_with_a_certificate_made_on_the_spot() {
    let mut demo = catamaran(&["demo", "--tls", "--listen", "127.0.0.1:0"]).unwrap();
    let command = demo
        .wait_for_line("how to try it", |line| {
            let line = line.trim();
            (line.starts_with("curl ") && line.ends_with("/snoop")).then(|| line.to_owned())
        })
        .unwrap();
    let output = Command::new("sh")
        .args(["-c", &format!("{command} --silent --show-error")])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let snoop: Value = serde_json::from_slice(&output.stdout).expect(&said);
    assert_eq!(snoop["secure"], true, "{snoop}");
    assert_eq!(snoop["tls_protocol"], "TLSv1.3", "{snoop}");
    assert_eq!(snoop["protocol"], "HTTP/2.0", "{snoop}");
    let (_, trusted) = command.split_once("--cacert ").unwrap();
    let trusted = Path::new(trusted.split_whitespace().next().unwrap());
    assert!(trusted.exists());
    // A client that does not trust it is none the wiser.
    let untrusting = command.replace(&format!("--cacert {} ", trusted.display()), "");
    let status = Command::new("sh").args(["-c", &untrusting]).output();
    assert_eq!(
        status.unwrap().status.code(),
        Some(60),
        "curl does not verify"
    );
    demo.signal(Signal::Terminate).unwrap();
    assert!(demo.wait(Deadline::default()).unwrap().success());
    assert!(!trusted.parent().unwrap().exists(), "its files are gone");
}
