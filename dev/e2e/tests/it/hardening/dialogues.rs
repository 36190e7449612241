//! The rows of section 1 that are no single string of bytes: the client waits, stalls or goes.

use catamaran_e2e::Front;
use catamaran_testkit::{Failure, HttpClient, Response};

use super::backend::{Backend, Id, Protocol};
use super::row::{chunked, named, post};
use super::site::{Site, Transport};

/// Heads with a part of their bodies: by length, within a chunk, and between two.
fn cut_short() -> [Vec<u8>; 4] {
    [
        post("Content-Length: 10", "hello"),
        post("Content-Length: 10", ""),
        chunked("5\r\nhel"),
        chunked("5\r\nhello\r\n"),
    ]
}

#[test]
fn row_088_client_closes_within_a_body() {
    every_way(|site, transport| {
        for bytes in cut_short() {
            for piece in [usize::MAX, 1] {
                let id = Id::new();
                let mut client = site.connect(transport);
                for bytes in named(&bytes, id.as_str()).chunks(piece) {
                    client.send(bytes).unwrap();
                }
                client.finish_sending().unwrap();
                aborted(&mut client, 400);
                gone(&site.backend, &id);
            }
        }
    });
}

#[test]
fn row_097_expect_waits_for_100() {
    let bodies = [
        ("Content-Length: 5", "hello", "5:hello"),
        (
            "Transfer-Encoding: chunked",
            "5\r\nhello\r\n0\r\n\r\n",
            "?:hello",
        ),
    ];
    every_way(|site, transport| {
        for (framing, body, seen) in bodies {
            let id = Id::new();
            let head = post(format!("Expect: 100-continue\r\n{framing}"), "");
            let mut client = site.connect(transport);
            client.send(&named(&head, id.as_str())).unwrap();
            assert_eq!(client.receive_interim().unwrap(), 100);
            assert_eq!(client.ask(body).unwrap().status, 200);
            let required = format!("POST /{} | host: a | {seen}", id.as_str());
            assert_eq!(site.backend.seen(&id), [required]);
            another(&mut client);
        }
    });
}

#[test]
fn row_116_client_stalls_within_a_body_then_closes() {
    every_way(|site, transport| {
        let id = Id::new();
        let mut client = site.connect(transport);
        let bytes = post("Content-Length: 10", "hello");
        client.send(&named(&bytes, id.as_str())).unwrap();
        // The backend has the request, as far as it goes.
        begun(&site.backend, &id);
        client.finish_sending().unwrap();
        aborted(&mut client, 400);
        gone(&site.backend, &id);
        assert_eq!(
            site.backend.connections_of(&id).len(),
            1,
            "it was sent twice"
        );
    });
}

#[test]
fn row_116_client_stalls_within_a_body_for_good() {
    for protocol in Protocol::ALL {
        let backend = Backend::start(protocol).unwrap();
        let front = Front::with_config(&format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\nbody_timeout = \"100ms\"\n\
             [[route]]\nupstream = \"app\"\n[[upstream.app.backend]]\nurl = \"{}\"\n",
            backend.url()
        ))
        .unwrap();
        for bytes in cut_short() {
            let id = Id::new();
            let mut client = front.connect().unwrap();
            client.send(&named(&bytes, id.as_str())).unwrap();
            let answer = aborted(&mut client, 408).unwrap();
            let page = answer.header("x-request-id").unwrap();
            let line = front.wait_for_log(&format!(" id={page}")).unwrap();
            assert!(line.contains(" reason=client:body-timeout "), "{line}");
            gone(&backend, &id);
            let places = backend.connections_of(&id).len();
            assert!(places <= 1, "{protocol:?}: it was sent twice");
        }
    }
}

fn every_way(check: impl Fn(&Site, Transport)) {
    for protocol in Protocol::ALL {
        for transport in Transport::ALL {
            check(Site::shared(protocol), transport);
        }
    }
}

/// The client is told `status` and that the connection closes, or it is closed without a word.
fn aborted(client: &mut HttpClient, status: u16) -> Option<Response> {
    match client.receive() {
        Ok(answer) => {
            assert_eq!(answer.status, status);
            assert_eq!(answer.header("connection"), Some("close"));
            assert_eq!(client.receive_to_end().unwrap_or_default(), b"");
            Some(answer)
        }
        Err(Failure::Closed | Failure::Reset { .. }) => None,
        Err(failure) => panic!("{failure}"),
    }
}

/// Waits until any of the request has arrived.
fn begun(backend: &Backend, id: &Id) {
    let deadline = catamaran_testkit::Deadline::default();
    let arrived = deadline.poll("the request at the backend", || {
        (!backend.connections_of(id).is_empty()).then_some(())
    });
    arrived.unwrap();
}

/// No backend took the request for complete, and the connection it began on is closed.
fn gone(backend: &Backend, id: &Id) {
    for index in backend.connections_of(id) {
        assert!(backend.wait(index, |it| it.ended), "it stays open");
    }
    assert_eq!(backend.seen(id), [""; 0]);
}

/// Nothing is left over: the connection serves another request.
fn another(client: &mut HttpClient) {
    let id = Id::new();
    let request = format!("GET /{} HTTP/1.1\r\nHost: again\r\n\r\n", id.as_str());
    assert_eq!(client.ask(request).unwrap().text(), id.as_str());
}
