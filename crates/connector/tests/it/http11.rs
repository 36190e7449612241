//! HTTP/1.1 on a socket.

use catamaran_connector::{Body, Request, Response};
use catamaran_testkit::{Deadline, Failure, Pattern, Sha256};
use http::StatusCode;

use super::*;

fn chunked(path: &str) -> Vec<u8> {
    format!("POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").into_bytes()
}

fn post(path: &str, length: u64) -> Vec<u8> {
    format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n").into_bytes()
}

#[test]
fn pages_keep_the_connection() {
    on_each_tier(|tier| {
        let mut client = tier.http();
        for _ in 0..3 {
            let page = client.ask(get("/")).unwrap();
            assert_eq!((page.status, page.body.len()), (200, 347));
            assert_eq!(
                page.header("content-type"),
                Some("text/html; charset=utf-8")
            );
            assert!(page.header("date").is_some());
        }
        let counters = tier.running.counters();
        assert_eq!((counters.accepted, counters.requests), (1, 3));
    });
}

#[test]
fn downloads_of_any_size_are_exact() {
    on_each_tier(|tier| {
        let mut client = tier.http();
        for length in [0, 1, 8184, 8185, 65_536, 20_000_000] {
            client.send(&get(&format!("/bytes/{length}"))).unwrap();
            let mut digest = Sha256::default();
            client.receive_into(&mut digest).unwrap();
            assert_eq!(
                (digest.count(), digest.hex()),
                (length, Pattern::sha256_hex(length))
            );
        }
    });
}

#[test]
fn uploads_come_back_as_they_were() {
    on_each_tier(|tier| {
        for length in [1, 8186, 8_000_000] {
            let mut client = tier.http();
            let mut sender = HttpClient::connect(tier.address(Protocol::Http)).unwrap();
            assert_eq!(client.ask(post("/echo", 0)).unwrap().status, 200);
            // Sent and received at the same time: the echo keeps no more than a few buffers.
            let echoed = std::thread::scope(|scope| {
                sender.send(&post("/echo", length)).unwrap();
                let mut receiver = HttpClientHalf::of(&sender);
                let receiving = scope.spawn(move || receiver.receive());
                sender.send_from(&mut Pattern::new(length)).unwrap();
                receiving.join().unwrap()
            });
            let head = echoed.len() - usize::try_from(length).unwrap();
            assert!(echoed[..head].starts_with(b"POST /echo HTTP/1.1\r\nHost: a\r\n"));
            assert!(
                echoed[head..] == Pattern::bytes(length)[..],
                "the body differs"
            );
        }
    });
}

#[test]
fn chunked_uploads_come_back_chunked() {
    on_each_tier(|tier| {
        let mut client = tier.http();
        client.send(&chunked("/echo")).unwrap();
        client
            .send_chunked(&mut Pattern::new(100_000), 999)
            .unwrap();
        let echo = client.receive().unwrap();
        assert_eq!(echo.header("transfer-encoding"), Some("chunked"));
        assert!(echo.body.ends_with(&Pattern::bytes(100_000)));
        assert_eq!(client.ask(get("/")).unwrap().status, 200);
    });
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    on_each_tier(|tier| {
        let mut client = tier.http();
        let paths: Vec<String> = (200..300).map(|code| format!("/status/{code}")).collect();
        let requests: Vec<u8> = paths.iter().flat_map(|path| get(path)).collect();
        client.send(&requests).unwrap();
        for code in 200..300 {
            assert_eq!(client.receive().unwrap().status, code);
        }
    });
}

#[test]
fn head_has_the_length_and_no_body() {
    on_each_tier(|tier| {
        let mut client = tier.http();
        client
            .send(b"HEAD /bytes/123456789012 HTTP/1.1\r\nHost: a\r\n\r\n")
            .unwrap();
        let head = client.receive_head().unwrap();
        assert_eq!(head.header("content-length"), Some("123456789012"));
        assert_eq!(client.ask(get("/")).unwrap().body.len(), 347);
    });
}

#[test]
fn a_client_is_told_to_continue_when_its_body_is_wanted() {
    on_each_tier(|tier| {
        let mut client = tier.http();
        client
            .send(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
            .unwrap();
        let head = client.receive_head().unwrap();
        assert_eq!((head.interim, head.status), (vec![100], 200));
        client.send(b"ok").unwrap();
    });
}

#[test]
fn a_response_does_not_wait_for_a_body_that_nobody_reads() {
    on_each_tier(|tier| {
        let mut client = tier.http();
        assert_eq!(client.ask(post("/", 10)).unwrap().status, 200);
        client.send(b"0123456789").unwrap();
        assert_eq!(client.ask(get("/status/418")).unwrap().status, 418);

        let mut large = tier.http();
        let refused = large.ask(post("/status/403", 1 << 40)).unwrap();
        assert_eq!(
            (refused.status, refused.header("connection")),
            (403, Some("close"))
        );
        assert_eq!(large.receive_to_end().unwrap(), b"");
    });
}

#[test]
fn the_oldest_clients_are_served_and_closed() {
    on_each_tier(|tier| {
        let mut client = tier.http();
        let page = client.ask(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        assert_eq!((page.status, page.body.len()), (200, 347));
        assert_eq!(client.receive_to_end().unwrap(), b"");
    });
}

#[test]
fn a_client_that_has_finished_sending_is_still_answered() {
    on_each_tier(|tier| {
        let mut client = tier.http();
        client.send(&get("/delay/20")).unwrap();
        client.finish_sending().unwrap();
        assert_eq!(client.receive().unwrap().text(), "waited 20 ms\n");
        assert_eq!(client.receive_to_end().unwrap(), b"");
    });
}

#[test]
fn streams_arrive_piece_by_piece() {
    on_each_tier(|tier| {
        let mut client = tier.http();
        let answer = client.ask(get("/stream/3/10")).unwrap();
        assert_eq!(answer.text().lines().count(), 3);
    });
}

#[test]
fn snoop_tells_the_ends_of_the_connection() {
    on_each_tier(|tier| {
        let mut client = tier.http();
        let port = client
            .socket()
            .local_addr()
            .unwrap()
            .as_socket()
            .unwrap()
            .port();
        let seen = client
            .ask(b"GET /snoop?a=%20b HTTP/1.1\r\nHost: Example:8080\r\nX-A: 1\r\n\r\n")
            .unwrap()
            .text();
        for line in [
            "\"connector\": \"http\"".to_owned(),
            "\"remote_addr\": \"127.0.0.1\"".to_owned(),
            format!("\"remote_port\": {port}"),
            "\"local_addr\": \"127.0.0.1\"".to_owned(),
            "\"server_name\": \"example\"".to_owned(),
            "\"server_port\": 8080".to_owned(),
            "\"query\": \"a=%20b\"".to_owned(),
            "[\"x-a\",\"1\"]".to_owned(),
        ] {
            assert!(seen.contains(&line), "{line} in {seen}");
        }
    });
}

#[test]
fn clients_that_leave_midway_harm_nobody() {
    on_each_tier(|tier| {
        let mut downloading = tier.http();
        downloading.send(&get("/bytes/1000000000000")).unwrap();
        assert_eq!(downloading.receive_head().unwrap().status, 200);
        drop(downloading);
        let mut uploading = tier.http();
        uploading.send(&post("/echo", 1000)).unwrap();
        uploading.send(b"not all of it").unwrap();
        drop(uploading);
        // An end within the body, or a reset for what the client left unread.
        let both = Deadline::default().poll("a count of both", || {
            let refused = tier.running.counters().refused;
            let count = |reason| refused.get(reason).copied().unwrap_or(0);
            (count("truncated-body") + count("peer-gone") == 2).then_some(())
        });
        both.unwrap();
        tier.wait_until_quiet();
        let mut client = tier.http();
        assert_eq!(client.ask(get("/")).unwrap().status, 200);
    });
}

#[test]
fn five_hundred_connections_are_served_together() {
    on_each_tier(|tier| {
        let mut clients: Vec<HttpClient> = (0..500).map(|_| tier.http()).collect();
        for (index, client) in clients.iter_mut().enumerate() {
            client.send(&get(&format!("/bytes/{index}"))).unwrap();
        }
        for (index, client) in clients.iter_mut().enumerate() {
            assert_eq!(client.receive().unwrap().body.len(), index);
        }
        assert_eq!(tier.running.counters().open(), 500);
    });
}

#[test]
fn a_handler_that_panics_answers_500_and_nothing_else_suffers() {
    on_each_driver(|io| {
        let handler = |request: &Request| {
            assert!(&request.path[..] != b"/panic", "asked to");
            Response::text(StatusCode::OK, "fine")
        };
        let tier = Tier::serving(io, handler, |_| {});
        let (mut witness, mut victim) = (tier.http(), tier.http());
        assert_eq!(victim.ask(get("/panic")).unwrap().status, 500);
        assert_eq!(witness.ask(get("/")).unwrap().text(), "fine");
        assert_eq!(tier.refused("handler-panic"), 1);
    });
}

#[test]
fn an_application_is_a_function() {
    on_each_driver(|io| {
        let handler = |request: &Request| {
            Response::new(StatusCode::CREATED, Body::Full(request.path.clone()))
        };
        let tier = Tier::serving(io, handler, |_| {});
        let mut client = tier.http();
        let made = client.ask(get("/made")).unwrap();
        assert_eq!((made.status, made.text().as_str()), (201, "/made"));
    });
}

#[test]
fn a_fault_is_answered_and_the_connection_closed() {
    on_each_tier(|tier| {
        let mut client = tier.http();
        client
            .send(b"GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n")
            .unwrap();
        assert_eq!(client.ask(get("/")).unwrap().status, 400);
        assert!(matches!(client.receive(), Err(Failure::Closed)));
        assert_eq!(tier.running.counters().requests, 0);
    });
}

/// The receiving half of a client, on a second descriptor of its socket.
struct HttpClientHalf(socket2::Socket);

impl HttpClientHalf {
    fn of(client: &HttpClient) -> Self {
        Self(client.socket().try_clone().unwrap())
    }

    /// The body of one response with a Content-Length.
    fn receive(&mut self) -> Vec<u8> {
        use std::io::Read;
        let mut received = Vec::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let text =
                String::from_utf8_lossy(&received[..received.len().min(1000)]).to_lowercase();
            if let Some(head) = text.find("\r\n\r\n") {
                let length = text.split("content-length: ").nth(1).unwrap();
                let length: usize = length.split('\r').next().unwrap().parse().unwrap();
                if received.len() >= head + 4 + length {
                    return received.split_off(head + 4);
                }
            }
            self.0
                .set_read_timeout(Deadline::default().remaining())
                .unwrap();
            let count = self.0.read(&mut buffer).unwrap();
            assert!(count > 0, "the echo was cut short");
            received.extend_from_slice(&buffer[..count]);
        }
    }
}
