//! Backends that are wrong, down, silent or broken: what the client gets, and that nothing of one
//! exchange reaches the next.

use std::fmt::Write as _;

use catamaran_e2e::{Connector, Front, Tomcat};
use catamaran_testkit::{Address, Failure, Outcome, Peer, Script, address};

fn ajp_answer() -> Vec<u8> {
    [AJP_HEAD, AJP_BODY, AJP_END].concat()
}

/// Reads one request, whatever the protocol.
fn request(protocol: &str) -> Script {
    match protocol {
        "ajp" => Script::new().expect_packet(),
        _ => Script::new().expect_until(b"\r\n\r\n"),
    }
}

fn url(protocol: &str, peer: &Peer) -> String {
    match peer.address() {
        Address::Tcp(address) => format!("{protocol}://{address}"),
        Address::Unix(path) => format!("{protocol}+unix:{}", path.display()),
    }
}

/// A front to one backend; `keys` are lines of its table.
fn front_to(url: &str, keys: &str) -> Front {
    Front::to_app(&format!(
        "[[upstream.app.backend]]\nurl = \"{url}\"\n{keys}"
    ))
    .unwrap()
}

#[test]
fn a_wrong_or_missing_secret_is_refused_by_tomcat() {
    let url = Tomcat::shared().unwrap().url(Connector::AjpSecret);
    for keys in ["secret = \"wrong\"\n", ""] {
        let front = front_to(&url, keys);
        for _ in 0..3 {
            assert_eq!(front.get("/page.html").unwrap().status, 403, "{keys}");
        }
        let hint = match keys {
            "" => "it may want a `secret`, and none is configured",
            _ => "`secret` may be wrong",
        };
        let line = front.wait_for_log(hint).unwrap();
        assert!(line.contains("upstream=\"app\" backend=\"ajp://"), "{line}");
        assert_eq!(front.log().matches("403 was the answer").count(), 1);
    }
}

#[test]
fn a_backend_that_is_down_is_told_at_once() {
    let nobody = address::refusing().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing.sock");
    for url in [
        format!("ajp://{nobody}"),
        format!("http://{nobody}"),
        format!("ajp+unix:{}", missing.display()),
        format!("http+unix:{}", missing.display()),
    ] {
        let front = front_to(&url, "");
        for method in ["GET", "POST"] {
            let fields = "Content-Length: 0\r\n";
            let answer = front.ask(front.head(method, "/", fields)).unwrap();
            assert_eq!(answer.status, 503, "{url} {answer:?}");
            assert!(answer.header("retry-after").is_some(), "{url} {answer:?}");
        }
    }
}

#[test]
fn another_backend_takes_over() {
    let tomcat = Tomcat::shared().unwrap();
    let nobody = address::refusing().unwrap();
    let mut tables = format!("[[upstream.app.backend]]\nurl = \"ajp://{nobody}\"\n");
    tables.push_str(&tomcat.backend_table("app", Connector::Ajp));
    let front = Front::to_app(&tables).unwrap();
    for _ in 0..20 {
        assert_eq!(front.get("/page.html").unwrap().status, 200);
        let upload = front.ask(front.head("POST", "/upload.jsp", "Content-Length: 3\r\n") + "abc");
        assert_eq!(upload.unwrap().status, 200);
    }
}

#[test]
fn a_silent_backend_is_a_504() {
    for protocol in ["ajp", "http"] {
        let peer = Peer::start(request(protocol).stall());
        let front = front_to(&url(protocol, &peer), "first_byte_timeout = \"100ms\"\n");
        let answer = front.get("/").unwrap();
        assert_eq!(answer.status, 504, "{protocol}");
        // The connection is left: a late answer must not reach anybody.
        let outcome = peer.wait_outcome(0);
        assert!(
            matches!(outcome, Outcome::Completed | Outcome::Failed(_)),
            "{outcome:?}"
        );
    }
}

#[test]
fn a_backend_that_falls_silent_truncates_the_response() {
    let half = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhi".to_vec();
    let cases = [("ajp", [AJP_HEAD, &AJP_BODY[..8]].concat()), ("http", half)];
    for (protocol, half) in cases {
        let peer = Peer::start(request(protocol).send(&half).stall());
        let front = front_to(&url(protocol, &peer), "idle_body_timeout = \"100ms\"\n");
        let failure = front.get("/").unwrap_err().downcast::<Failure>().unwrap();
        let truncated = matches!(
            failure,
            Failure::Truncated {
                status: Some(200),
                ..
            }
        );
        assert!(
            truncated || matches!(failure, Failure::Reset { .. }),
            "{protocol} {failure:?}"
        );
    }
}

#[test]
fn a_backend_that_closes_early_is_a_502_or_a_visible_cut() {
    let answers = [("ajp", ajp_answer()), ("http", HTTP_ANSWER.to_vec())];
    for (protocol, answer) in answers {
        for cut in 0..answer.len() {
            let peer = Peer::start(request(protocol).send(&answer[..cut]).finish());
            let front = front_to(&url(protocol, &peer), "");
            match front.ask(front.head("POST", "/", "Content-Length: 0\r\n")) {
                // Only END is missing: the client has been given all that it was promised.
                Ok(answer) if protocol == "ajp" && cut >= AJP_HEAD.len() + AJP_BODY.len() => {
                    assert_eq!(answer.text(), "hi", "cut at {cut}");
                }
                Ok(answer) => assert_eq!(answer.status, 502, "{protocol} cut at {cut}: {answer:?}"),
                Err(error) => {
                    let failure = error.downcast::<Failure>().unwrap();
                    let visible =
                        matches!(failure, Failure::Truncated { .. } | Failure::Reset { .. });
                    assert!(visible, "{protocol} cut at {cut}: {failure:?}");
                }
            }
        }
    }
}

#[test]
fn bytes_after_a_response_never_reach_the_next_client() {
    let stolen = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen".to_vec();
    let answers = [
        ("ajp", ajp_answer(), ajp_answer()),
        ("http", HTTP_ANSWER.to_vec(), stolen),
    ];
    for (protocol, answer, extra) in answers {
        let both = [answer.clone(), extra].concat();
        let script = move |index: usize| match index {
            0 => request(protocol).send(&both).stall(),
            _ => request(protocol).send(&answer).stall(),
        };
        let peer = Peer::start_with(script);
        let front = front_to(&url(protocol, &peer), "");
        let first = front.get("/").unwrap();
        assert_eq!(
            (first.status, first.text().as_str()),
            (200, "hi"),
            "{protocol}"
        );
        let second = front.get("/").unwrap();
        assert_eq!(
            (second.status, second.text().as_str()),
            (200, "hi"),
            "{protocol}"
        );
        assert_eq!(
            peer.connections(),
            2,
            "{protocol}: the tainted connection was used again"
        );
    }
}

#[test]
fn a_sound_connection_is_used_again() {
    let answers = [("ajp", ajp_answer()), ("http", HTTP_ANSWER.to_vec())];
    for (protocol, answer) in answers {
        let exchange = request(protocol).send(&answer);
        let script = (0..5).fold(Script::new(), |script, _| script.then(exchange.clone()));
        let peer = Peer::start(script.stall());
        let config = single_worker(&url(protocol, &peer));
        let front = Front::with_config(&config).unwrap();
        for _ in 0..5 {
            assert_eq!(front.get("/").unwrap().text(), "hi");
        }
        assert_eq!(peer.connections(), 1, "{protocol}");
    }
}

/// Pools belong to workers: with one worker, one connection serves one request after another.
fn single_worker(url: &str) -> String {
    let mut config = String::from("[server]\nworkers = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n");
    let _ = write!(
        config,
        "[[route]]\nupstream = \"app\"\n[[upstream.app.backend]]\nurl = \"{url}\"\n"
    );
    config
}

#[test]
fn a_connection_closed_while_idle_costs_no_request() {
    let answers = [("ajp", ajp_answer()), ("http", HTTP_ANSWER.to_vec())];
    for (protocol, answer) in answers {
        let peer = Peer::start(request(protocol).send(&answer).finish());
        let front = Front::with_config(&single_worker(&url(protocol, &peer))).unwrap();
        for turn in 0..20 {
            let method = if turn % 2 == 0 { "GET" } else { "POST" };
            let answer = front
                .ask(front.head(method, "/", "Content-Length: 0\r\n"))
                .unwrap();
            assert_eq!(
                (answer.status, answer.text().as_str()),
                (200, "hi"),
                "{protocol} {turn}"
            );
            let _ = peer.wait_outcome(turn);
        }
    }
}

#[test]
fn requests_of_clients_that_left_the_queue_are_not_begun() {
    for protocol in ["ajp", "http"] {
        let peer = Peer::start(request(protocol).stall());
        let keys = "connections_max = 1\nqueue_timeout = \"1h\"\n";
        let front = front_to(&url(protocol, &peer), keys);
        let mut clients = Vec::new();
        for turn in 0..5 {
            let mut client = front.connect().unwrap();
            let head = front.head("GET", &format!("/turn{turn}"), "");
            client.send(head.as_bytes()).unwrap();
            if turn == 0 {
                // The only connection there may be.
                let _ = peer.wait_received(0, 1);
            }
            clients.push(client);
        }
        // Those that wait leave first, so that none of them can get the connection.
        while let Some(client) = clients.pop() {
            drop(client);
            let target = format!("\"GET /turn{} HTTP/1.1\" 499 0 ", clients.len());
            let line = front.wait_for_log(&target).unwrap();
            assert!(line.contains(" reason=client:gone "), "{line}");
        }
        assert_eq!(peer.wait_outcome(0), Outcome::Completed, "{protocol}");
        assert_eq!(peer.connections(), 1, "{protocol}");
        let begun = String::from_utf8_lossy(&peer.received(0)).into_owned();
        assert_eq!(begun.matches("/turn").count(), 1, "{begun}");
    }
}

/// SEND_HEADERS 200 with Content-Length 2, as in ajp13.md 1.9.
const AJP_HEAD: &[u8] = b"AB\0\x10\x04\0\xc8\0\x02OK\0\0\x01\xa0\x03\0\x012\0";
/// SEND_BODY_CHUNK "hi" and END_RESPONSE (reuse).
const AJP_BODY: &[u8] = b"AB\0\x06\x03\0\x02hi\0";
const AJP_END: &[u8] = b"AB\0\x02\x05\x01";

const HTTP_ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
