//! What the front tells a service manager, in the words of sd_notify(3).

use std::os::unix::net::UnixDatagram;

use catamaran_testkit::{Deadline, Process, Signal, signal_process};

use super::catamaran;

/// Takes the next messages: each of `expected` once, in whatever order they come.
fn expect(manager: &UnixDatagram, expected: &[&str]) {
    let mut left = expected.to_vec();
    while !left.is_empty() {
        let mut buffer = [0; 256];
        let length = manager.recv(&mut buffer).expect("a message");
        let message = String::from_utf8_lossy(&buffer[..length]);
        let word = message.lines().next().expect("a line");
        let at = left.iter().position(|it| *it == word);
        left.remove(at.unwrap_or_else(|| panic!("{message:?}, not one of {left:?}")));
    }
}

#[test]
fn the_service_manager_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notify.sock");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(Deadline::DEFAULT)).unwrap();
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--upstream"];
    let mut command = catamaran(&arguments);
    command
        .arg("http://127.0.0.1:9")
        .env("NOTIFY_SOCKET", &path);
    let mut front = Process::spawn(&mut command).unwrap();
    expect(&manager, &["READY=1"]);
    front.signal(Signal::Hangup).unwrap();
    expect(&manager, &["RELOADING=1"]);
    expect(&manager, &["READY=1"]);
    front.signal(Signal::User2).unwrap();
    let successor = front
        .wait_for_line("a successor", |line| {
            let (_, process) =
                line.rsplit_once("another process has taken over; draining process=")?;
            process.parse::<u32>().ok()
        })
        .unwrap();
    // The one says that it serves, the other which it is.
    expect(&manager, &["READY=1", &format!("MAINPID={successor}")]);
    signal_process(successor, Signal::Terminate).unwrap();
    expect(&manager, &["STOPPING=1"]);
}
