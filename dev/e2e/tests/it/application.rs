//! The built-in application as a process: both protocols behind a front, and what it keeps of connections that are
//! gone, on each I/O model.

use catamaran_e2e::{App, Front};
use catamaran_gauge::memory;
use catamaran_gauge::process::open_files;
use catamaran_testkit::{Deadline, HttpClient, Pattern};

#[test]
fn thousands_of_connections_that_come_and_go_leave_nothing_behind() {
    for model in MODELS {
        let app = App::start(model, &["--workers=1"]).unwrap();
        let id = app.id();
        let idle = open_files(id).unwrap();
        // What is allotted once, for as many as are ever open together.
        come_and_go(&app, 1000);
        let before = settled(id, idle);
        come_and_go(&app, 4000);
        let after = settled(id, idle);
        let grown = after.saturating_sub(before);
        assert!(
            grown < 256 * 1024,
            "{model}: {grown} bytes for 4000 connections"
        );
    }
}

#[test]
fn both_protocols_are_served_through_a_front() {
    let app = App::start("epoll", &[]).unwrap();
    for upstream in [
        format!("http://{}", app.http()),
        format!("ajp://{}", app.ajp()),
    ] {
        let front = Front::to(&[&upstream]).unwrap();
        assert_eq!(front.get("/").unwrap().body.len(), 347);
        for length in [0, 1, 8184, 8185, 65_536, 1_000_000] {
            let answer = front.get(&format!("/bytes/{length}")).unwrap();
            assert!(answer.body == Pattern::bytes(length), "{upstream} {length}");
        }
        assert_eq!(front.get("/status/418").unwrap().status, 418);
        assert_eq!(front.get("/none").unwrap().status, 404);
        let upload = front.head("POST", "/echo", "Content-Length: 20000\r\n");
        let upload = [upload.into_bytes(), Pattern::bytes(20_000)].concat();
        let echo = front.ask(upload).unwrap();
        assert!(echo.body.ends_with(&Pattern::bytes(20_000)), "{upstream}");
        assert_eq!(front.get("/stream/5/1").unwrap().text().lines().count(), 5);
    }
}

/// The memory of process `id` when it has no more files open than before all connections.
fn settled(id: u32, idle: usize) -> u64 {
    let closed = Deadline::default().poll("all connections to be closed", || {
        (open_files(id).unwrap() == idle).then_some(())
    });
    closed.unwrap();
    memory::of_process(id).unwrap().private
}

/// Connections that end in every way there is: by either side, orderly, idle and by a reset.
fn come_and_go(app: &App, count: usize) {
    for number in 0..count {
        let mut client = HttpClient::connect(app.http().clone()).unwrap();
        let (fields, path) = match number % 4 {
            0 => ("Connection: close\r\n", "/"),
            1 => ("", "/"),
            2 => ("", "/bytes/1000000"),
            _ => {
                let linger = Some(std::time::Duration::ZERO);
                client.socket().set_linger(linger).unwrap();
                ("", "/bytes/100000")
            }
        };
        let head = format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        client.send(head.as_bytes()).unwrap();
        if number % 4 < 2 {
            assert_eq!(client.receive().unwrap().status, 200);
        }
    }
}

const MODELS: [&str; 2] = ["epoll", "uring"];
