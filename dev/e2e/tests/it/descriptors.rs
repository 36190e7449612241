//! F13: no further file may be opened, or no further client may connect.

use std::fs;
use std::process::Command;

use catamaran_e2e::{Front, binary, catamaran, outcome};
use catamaran_gauge::process::open_files;
use catamaran_testkit::{Deadline, HttpClient, Process};

use crate::reload::{application, file};

#[test]
fn without_descriptors_clients_are_refused_and_the_front_recovers() {
    let (_application, url) = application();
    let mut front = Front::with_config(&file(&url, "")).unwrap();
    // The connection to the backend stays in its pool.
    assert_eq!(front.get("/").unwrap().status, 200);
    let id = front.process().id();
    let files = open_files(id).unwrap() + 3;
    limit(id, &files.to_string());

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

/// A client that is connected is told, and is served once files may be opened again.
#[test]
fn without_descriptors_a_file_is_refused_and_counted() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("page.html"), "page").unwrap();
    let mut front = Front::with_tables(&format!(
        "[server]\nfiles_open = 0\nfiles_memory = \"0B\"\n\
         [[route]]\nfiles = \"{}\"\n[admin]\naddress = \"127.0.0.1:0\"\n",
        directory.path().display()
    ))
    .unwrap();
    let id = front.process().id();
    let request = front.head("GET", "/page.html", "");
    let mut client = front.connect().unwrap();
    let mut ask = || client.ask(&request).unwrap();
    assert_eq!(ask().text(), "page");
    // What is open stays so; the limit is of what is opened.
    limit(id, "3");
    for _ in 0..2 {
        assert_eq!(ask().status, 503);
    }
    limit(id, "1024");
    assert_eq!(ask().text(), "page");
    front.wait_for_log("front:files-descriptors").unwrap();
    let metrics = front.ask_admin("/metrics").unwrap().text();
    for (metric, label, count) in [
        ("catamaran_files_requests_total", "failed", "2"),
        ("catamaran_reasons_total", "files-descriptors", "2"),
    ] {
        let line = metrics
            .lines()
            .find(|line| line.starts_with(metric) && line.contains(&format!("\"{label}\"")));
        let value = line.and_then(|line| line.rsplit_once(' '));
        assert_eq!(value.map(|(_, value)| value), Some(count), "{metrics}");
    }
}

/// A client that is turned away sees no status and has no line in the access log: whoever operates the front must
/// learn of it all the same.
#[test]
fn clients_that_are_turned_away_are_told_of_by_log_status_readiness_and_events() {
    for (key, first) in [
        ("connections_max", "ready, but turns clients away"),
        (
            "connections_per_address",
            "ready, but turns clients of an address away",
        ),
    ] {
        let (_application, url) = application();
        let tables = format!("[server]\n{key} = 2\n[admin]\naddress = \"127.0.0.1:0\"\n");
        let front = Front::with_config(&file(&url, &tables)).unwrap();
        let mut held = [(); 2].map(|()| front.connect().unwrap());
        assert!(held.iter_mut().all(|client| asks(&front, client)));
        for _ in 0..5 {
            assert!(!asks(&front, &mut front.connect().unwrap()));
        }
        let line = front.wait_for_log(&format!("`{key}` is reached")).unwrap();
        let token = key.replace('_', "-");
        assert!(line.contains(&format!("reason=front:{token} ")), "{line}");
        assert_eq!(
            front.log().matches("is reached").count(),
            1,
            "limited in rate"
        );

        let admin = front.wait_for_log("admin on http://").unwrap();
        let (_, admin) = admin.split_once("admin on http://").unwrap();
        let asked = catamaran(&["status", "--admin", admin]).unwrap();
        let (code, said, _) = outcome(asked).unwrap();
        assert_eq!(code, Some(0), "{said}");
        assert!(
            said.starts_with(&format!("{first}; 2 requests, 2 clients connected\n")),
            "{said}"
        );
        assert!(said.contains(&format!("`{key}` is reached")), "{said}");
        assert!(said.contains("5 clients were turned away within"), "{said}");
        let ready = front.ask_admin("/readyz").unwrap();
        let told = format!("ready\nclients are turned away: {token}\n");
        assert_eq!((ready.status, ready.text()), (200, told));
        let events = front.ask_admin("/api/v1/events").unwrap();
        assert!(events.text().contains(&format!("`{key}` is reached")));
    }
}

/// Whoever has set no limit has none that does not fit: that is no cause for a warning.
#[test]
fn the_default_of_connections_max_is_what_the_limit_of_files_leaves() {
    let mut command = Command::new("prlimit");
    command.arg("--nofile=1064:1064").arg(binary().unwrap());
    command.args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--upstream",
        "ajp://127.0.0.1:1",
    ]);
    let front = Process::spawn_in(&mut command, tempfile::tempdir().unwrap()).unwrap();
    let said = "1064 files may be open, so clients may have 800 connections; a higher limit";
    let line = front.wait_for_line(said, |line| line.contains(said).then(|| line.to_owned()));
    let line = line.unwrap();
    assert!(line.contains(" INFO "), "{line}");
}

/// Members come and go, and the limit of files does not: it is told at the start alone.
#[test]
fn a_change_of_members_does_not_tell_of_the_limit_of_files_again() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let list = |count: usize| {
        let member = |number| {
            format!("[[member]]\nname = \"m{number}\"\nurl = \"ajp://127.0.0.1:{number}\"\n")
        };
        fs::write(at("next"), (1..=count).map(member).collect::<String>()).unwrap();
        fs::rename(at("next"), at("members.toml")).unwrap();
    };
    list(1);
    let config = "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nupstream = \"app\"\n\
                  [upstream.app.members]\nfrom = \"file\"\npath = \"members.toml\"\nleave = \"0s\"\n";
    fs::write(at("catamaran.toml"), config).unwrap();
    let mut command = Command::new("prlimit");
    command.arg("--nofile=1064:1064").arg(binary().unwrap());
    command
        .args(["serve", "--config"])
        .arg(at("catamaran.toml"));
    let front = Process::spawn_in(&mut command, tempfile::tempdir().unwrap()).unwrap();
    let wait_for = |text: &str| {
        let found = |line: &str| line.contains(text).then_some(());
        front.wait_for_line(text, found).unwrap();
    };
    wait_for("listening on");
    list(2);
    wait_for("it joined at 127.0.0.1:2");
    list(3);
    wait_for("it joined at 127.0.0.1:3");
    let said = front.stdout() + &front.stderr();
    assert_eq!(said.matches("files may be open").count(), 1, "{said}");
}

/// Sets how many files the process may open; the hard limit stays.
fn limit(id: u32, files: &str) {
    let changed = Command::new("prlimit")
        .args(["--pid", &id.to_string(), &format!("--nofile={files}:")])
        .status()
        .unwrap();
    assert!(changed.success());
}

/// Whether a request on this connection is answered; if not, the connection was closed.
fn asks(front: &Front, client: &mut HttpClient) -> bool {
    let sent = client.send(front.head("GET", "/", "").as_bytes());
    sent.is_ok() && client.receive().is_ok_and(|answer| answer.status == 200)
}
