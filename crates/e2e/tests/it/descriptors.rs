//! F13: no further file may be opened.

use std::process::Command;

use catamaran_e2e::Front;
use catamaran_gauge::process::open_files;
use catamaran_testkit::{Deadline, HttpClient};

use crate::reload::{application, file};

#[test]
fn without_descriptors_clients_are_refused_and_the_front_recovers() {
    let (_application, url) = application();
    let mut front = Front::with_config(&file(&url, "")).unwrap();
    // The connection to the backend stays in its pool.
    assert_eq!(front.get("/").unwrap().status, 200);
    let id = front.process().id();
    let limit = open_files(id).unwrap() + 3;
    let lowered = Command::new("prlimit")
        .args(["--pid", &id.to_string(), &format!("--nofile={limit}:")])
        .status()
        .unwrap();
    assert!(lowered.success());

    let mut held = Vec::new();
    let mut refused = 0;
    for _ in 0..40 {
        let mut client = front.connect().unwrap();
        if asks(&front, &mut client) {
            held.push(client);
        } else {
            refused += 1;
        }
    }
    assert!(refused > 0 && !held.is_empty(), "{} held", held.len());
    front.wait_for_log("cannot accept connections").unwrap();
    // Those who have been idle for long make room.
    let recovered = || {
        Deadline::default().poll("another client to be served", || {
            let mut client = front.connect().ok()?;
            asks(&front, &mut client).then_some(())
        })
    };
    recovered().unwrap();
    drop(held);
    recovered().unwrap();
}

/// Whether a request on this connection is answered; if not, the connection was closed.
fn asks(front: &Front, client: &mut HttpClient) -> bool {
    let sent = client.send(front.head("GET", "/", "").as_bytes());
    sent.is_ok() && client.receive().is_ok_and(|answer| answer.status == 200)
}
