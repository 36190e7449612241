//! Deadlines: each test waits for what the connector does when one passes.

use std::io::{ErrorKind, Read, Write};
use std::mem::MaybeUninit;

use catamaran_ajp::BodyLength;
use catamaran_testkit::{Failure, Response};

use super::*;
use crate::ajp_client::Exchange;

#[test]
fn a_silent_connection_is_closed_without_a_word() {
    on_each_driver(|io| {
        let tier = Tier::with(io, |config| config.connection_timeout = SOON);
        assert_eq!(tier.http().receive_to_end().unwrap(), b"");
        assert_eq!(tier.ajp().receive_to_end(), b"");
        assert!(
            tier.running.counters().refused.is_empty(),
            "that is no fault"
        );
    });
}

#[test]
fn an_idle_http_connection_is_closed_and_an_idle_ajp_connection_is_not() {
    on_each_driver(|io| {
        let tier = Tier::with(io, |config| {
            config.http_keep_alive_timeout = SOON;
            config.connection_timeout = AMPLE;
        });
        let mut ajp = begun("a page over AJP13", || {
            let mut ajp = tier.ajp();
            ajp.try_send_head(&Exchange::get("/")).ok()?;
            let left = Deadline::default().remaining();
            ajp.socket.set_read_timeout(left).unwrap();
            // In the place of a page there may be the end.
            let is_page = matches!(ajp.socket.peek(&mut [MaybeUninit::uninit()]), Ok(1));
            is_page.then_some(ajp)
        });
        assert!(ajp.receive(&mut std::io::empty()).reuse);
        let mut http = begun("a page over HTTP", || {
            let mut http = tier.http();
            http.send(&get("/")).ok()?;
            assert_eq!(in_time(http.receive())?.status, 200);
            Some(http)
        });
        assert_eq!(http.receive_to_end().unwrap(), b"");
        // Connections that say nothing are closed after their time, which has then passed here, too.
        assert_eq!(tier.ajp().receive_to_end(), b"");
        assert!(ajp.get("/").reuse);
    });
}

#[test]
fn a_head_that_never_ends_is_given_up() {
    on_each_driver(|io| {
        let tier = Tier::with(io, |config| config.connection_timeout = SOON);
        let head = || {
            let mut http = tier.http();
            http.send(b"GET / HTTP/1.1\r\nHost: a\r\n").ok()?;
            in_time(http.receive())
        };
        assert_eq!(begun("a status", head).status, 408);
        let head = || {
            let mut ajp = tier.ajp();
            ajp.socket.write_all(&[0x12, 0x34, 0]).ok()?;
            assert_eq!(ajp.receive_to_end(), b"");
            counted(&tier, "head-timeout", 2)
        };
        begun("a count", head);
    });
}

/// The deadline counts from the head's first byte: single bytes do not prolong it.
#[test]
fn a_head_that_drips_is_given_up() {
    on_each_driver(|io| {
        let tier = Tier::with(io, |config| config.connection_timeout = SOON);
        let http = || {
            let said = drip(tier.http().socket().try_clone().unwrap(), b"GET /", b'a')?;
            (!said.is_empty()).then_some(said)
        };
        assert!(begun("a status", http).starts_with(b"HTTP/1.1 408 "));
        let ajp = || {
            let head = [0x12, 0x34, 0x1f, 0xf0, 2, 2];
            assert_eq!(drip(tier.ajp().socket, &head, 0)?, b"");
            counted(&tier, "head-timeout", 2)
        };
        begun("a count", ajp);
    });
}

/// What comes of a connection that begins to say something. One that a busy machine lets begin too late is
/// closed without a word; then another one begins.
fn begun<T>(what: &str, begin: impl FnMut() -> Option<T>) -> T {
    Deadline::default().poll(what, begin).unwrap()
}

/// Whether a reason was counted so often when all connections had ended.
fn counted(tier: &Tier, reason: &str, times: u64) -> Option<()> {
    tier.wait_until_quiet();
    let counters = tier.running.counters();
    (counters.refused.get(reason) == Some(&times)).then_some(())
}

/// What the connector made of a request; `None` if its connection had been closed before it.
fn in_time(answer: Result<Response, Failure>) -> Option<Response> {
    match answer {
        Err(Failure::Closed | Failure::Reset { .. }) => None,
        answer => Some(answer.unwrap()),
    }
}

/// Sends `head`, then `byte` again and again until the peer has had enough, and gives what it said; `None`
/// if it had enough before.
fn drip(mut socket: socket2::Socket, head: &[u8], byte: u8) -> Option<Vec<u8>> {
    let (deadline, mut answer, mut buffer) = (Deadline::default(), Vec::new(), [0; 1024]);
    socket.write_all(head).ok()?;
    socket.set_read_timeout(Some(SOON / 10)).unwrap();
    while deadline.remaining().is_some() {
        match socket.read(&mut buffer) {
            Ok(0) => return Some(answer),
            Ok(count) => answer.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                // Fails once the peer has closed, which the next read tells.
                let _ = socket.write_all(&[byte]);
            }
            // What was sent after the end is answered with a reset.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Some(answer),
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the peer takes a byte now and then for ever");
}

#[test]
fn a_body_that_stops_is_given_up() {
    on_each_driver(|io| {
        let tier = Tier::with(io, |config| config.connection_timeout = SOON);
        let http = || {
            let mut http = tier.http();
            let request = b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab";
            http.send(request).ok()?;
            assert!(http.receive().is_err(), "the echo is cut short");
            counted(&tier, "body-timeout", 1)
        };
        begun("a cut echo", http);
        let ajp = || {
            let mut ajp = tier.ajp();
            ajp.try_send_head(&Exchange::post("/echo", BodyLength::Unknown))
                .ok()?;
            let cut = ajp.receive_to_end();
            assert!(
                !cut.ends_with(&[5, 1]) && !cut.ends_with(&[5, 0]),
                "no END_RESPONSE: {cut:?}"
            );
            counted(&tier, "body-timeout", 2)
        };
        begun("another", ajp);
    });
}

#[test]
fn the_owed_packet_is_not_waited_for_for_ever() {
    on_each_driver(|io| {
        let tier = Tier::with(io, |config| config.connection_timeout = SOON);
        let answer = begun("an answer", || {
            let mut client = tier.ajp();
            client
                .try_send_head(&Exchange::post("/", BodyLength::Known(5)))
                .ok()?;
            let answer = client.receive_to_end();
            (!answer.is_empty()).then_some(answer)
        });
        assert!(answer.ends_with(&[b'A', b'B', 0, 2, 5, 0]), "{answer:?}");
        assert_eq!(tier.refused("leftover-timeout"), 1);
    });
}

#[test]
fn a_client_that_reads_nothing_is_given_up() {
    on_each_driver(|io| {
        let tier = Tier::with(io, |config| config.write_timeout = SOON);
        let mut client = tier.http();
        client.send(&get("/bytes/1000000000000")).unwrap();
        assert_eq!(tier.refused("write-timeout"), 1);
        tier.wait_until_quiet();
    });
}

#[test]
fn delays_do_not_hold_each_other_up() {
    on_each_tier(|tier| {
        let mut slow: Vec<HttpClient> = (0..200).map(|_| tier.http()).collect();
        for client in &mut slow {
            client.send(&get("/delay/200")).unwrap();
        }
        let mut fast = tier.http();
        assert_eq!(fast.ask(get("/")).unwrap().status, 200);
        for client in &mut slow {
            assert_eq!(client.receive().unwrap().text(), "waited 200 ms\n");
        }
    });
}

/// Time enough for a client to begin, and little enough to be waited for.
const AMPLE: Duration = Duration::from_secs(1);
