//! Many connections at once that upload, leave and come again: what a driver keeps of each has to
//! survive the others, and to be gone with the connection.

use std::io::Write;
use std::sync::Mutex;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use catamaran_connector::Request;
use catamaran_testkit::Pattern;

use super::*;

#[test]
fn more_uploads_at_once_than_there_are_buffers_are_all_exact() {
    const CLIENTS: usize = 64;
    const LENGTH: u64 = 100_000;
    on_each_driver(|model| {
        // While the application holds the only worker up, everything arrives.
        let (release, gate) = sync_channel::<()>(1);
        let (gate, app) = (Mutex::new(gate), App::new());
        let handler = move |request: &Request| {
            if &request.path[..] == b"/status/299" {
                let _ = gate.lock().unwrap().recv();
            }
            app.handle(request)
        };
        let tier = Tier::serving(model, handler, |config| {
            config.workers = NonZeroUsize::MIN;
        });
        let mut clients: Vec<HttpClient> = (0..CLIENTS).map(|_| tier.http()).collect();
        for client in &mut clients {
            assert_eq!(client.ask(get("/")).unwrap().status, 200);
        }
        let mut holder = tier.http();
        holder.send(&get("/status/299")).unwrap();
        for client in &mut clients {
            let head =
                format!("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: {LENGTH}\r\n\r\n");
            client.send(head.as_bytes()).unwrap();
            client.send_from(&mut Pattern::new(LENGTH)).unwrap();
        }
        release.send(()).unwrap();
        for client in &mut clients {
            let echo = client.receive().unwrap();
            assert!(echo.body.ends_with(&Pattern::bytes(LENGTH)), "{model:?}");
        }
        assert_eq!(holder.receive().unwrap().status, 299);
    });
}

#[test]
fn clients_that_vanish_at_any_moment_leave_nothing_behind() {
    on_each_driver(|model| {
        let tier = Tier::start(model);
        for round in 0..60 {
            let clients: Vec<HttpClient> = (0..8).map(|stage| vanish(&tier, stage)).collect();
            let orderly = round % 2 == 0;
            for client in clients {
                if !orderly {
                    // The close is a reset.
                    client.socket().set_linger(Some(Duration::ZERO)).unwrap();
                }
                drop(client);
            }
        }
        tier.wait_until_quiet();
        let mut client = tier.http();
        assert_eq!(client.ask(get("/")).unwrap().status, 200);
    });
}

#[test]
fn a_client_that_vanishes_behind_an_unread_upload_is_noticed() {
    on_each_driver(|model| {
        let tier = Tier::start(model);
        let mut client = tier.http();
        client
            .send(b"POST /delay/3600000 HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n")
            .unwrap();
        // Until the connector reads no more: what it holds of a body that nobody reads is bounded.
        client.socket().set_nonblocking(true).unwrap();
        let mut sent = 0;
        let stuck = Deadline::default().poll("the connector to stop reading", || {
            let before = sent;
            while let Ok(count) = client.socket().write(&[b'x'; 64 * 1024]) {
                sent += count;
            }
            (sent == before).then_some(())
        });
        stuck.unwrap();
        assert!(sent < 100_000_000, "{model:?}");
        client.socket().set_linger(Some(Duration::ZERO)).unwrap();
        drop(client);
        tier.wait_until_quiet();
    });
}

/// A client that is at a certain stage of its exchange, about to leave.
fn vanish(tier: &Tier, stage: usize) -> HttpClient {
    let mut client = tier.http();
    let mut send = |bytes: &[u8]| client.send(bytes).unwrap();
    match stage {
        0 => {}
        1 => send(b"GET / HT"),
        2 => send(&get("/")),
        3 => send(&get("/bytes/5000000")),
        4 => send(&get("/stream/100000/1")),
        5 => send(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nbegun"),
        6 => {
            send(b"POST /sink HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
            // The connector may have begun to answer, or even to close.
            let _ = client.socket().write_all(&[b'x'; 200_000]);
        }
        _ => {
            send(&get("/bytes/5000000"));
            assert_eq!(client.receive_head().unwrap().status, 200);
        }
    }
    client
}
