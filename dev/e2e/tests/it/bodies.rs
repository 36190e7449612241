//! Bodies of every awkward length, both ways, whole to the byte and in constant memory.
//!
//! 8186 is the most a DATA packet of AJP holds by default, 8184 the most of a SEND_BODY_CHUNK;
//! what happens one byte beside a limit is where codecs go wrong.

use std::thread;
use std::time::Duration;

use catamaran_e2e::{Connector, Front};
use catamaran_testkit::{Deadline, HttpClient, Pattern, Peer, Script, Sha256};

use crate::through::{connectors, every_connector, front, value};

#[test]
fn downloads_of_every_length() {
    every_way(|front, _| {
        let mut client = front.connect().unwrap();
        for length in LENGTHS {
            let target = format!("/download.jsp?bytes={length}");
            let answer = client.ask(front.head("GET", &target, "")).unwrap();
            assert_eq!(
                answer.header("content-length"),
                Some(length.to_string().as_str())
            );
            assert!(answer.body == Pattern::bytes(length), "{length}");
        }
    });
}

#[test]
fn downloads_of_unknown_length() {
    every_way(|front, _| {
        let mut client = front.connect().unwrap();
        for length in LENGTHS {
            let target = format!("/download.jsp?bytes={length}&framing=chunked");
            let answer = client.ask(front.head("GET", &target, "")).unwrap();
            assert_eq!(answer.header("x-bytes"), Some(length.to_string().as_str()));
            assert!(answer.body == Pattern::bytes(length), "{length}");
        }
    });
}

#[test]
fn uploads_of_every_length() {
    every_way(|front, _| {
        let mut client = front.connect().unwrap();
        for length in LENGTHS {
            upload(front, &mut client, length);
            let text = client.receive().unwrap().text();
            check_upload(&text, length);
            assert_eq!(value(&text, "content_length"), length.to_string());
        }
    });
}

#[test]
fn chunked_uploads_of_every_length_and_chunk_size() {
    every_way(|front, _| {
        let mut client = front.connect().unwrap();
        for length in LENGTHS {
            for chunk in [777, 8186, 70_000] {
                let fields = "Transfer-Encoding: chunked\r\n";
                client
                    .send(front.head("POST", "/upload.jsp", fields).as_bytes())
                    .unwrap();
                client
                    .send_chunked(&mut Pattern::new(length), chunk)
                    .unwrap();
                check_upload(&client.receive().unwrap().text(), length);
            }
        }
    });
}

#[test]
fn an_upload_may_wait_for_100_continue() {
    every_way(|front, _| {
        let mut client = front.connect().unwrap();
        let fields = "Content-Length: 10000\r\nExpect: 100-continue\r\n";
        client
            .send(front.head("POST", "/upload.jsp", fields).as_bytes())
            .unwrap();
        let go_ahead = client.receive_interim().unwrap();
        assert_eq!(go_ahead, 100);
        client.send_from(&mut Pattern::new(10_000)).unwrap();
        check_upload(&client.receive().unwrap().text(), 10_000);
    });
}

#[test]
fn an_upload_that_nobody_reads_does_not_disturb_the_next_request() {
    every_way(|front, _| {
        for length in [1, 8186, 8187, 30_000] {
            let mut client = front.connect().unwrap();
            let fields = format!("Content-Length: {length}\r\n");
            client
                .send(front.head("POST", "/ignore.jsp", &fields).as_bytes())
                .unwrap();
            client.send_from(&mut Pattern::new(length)).unwrap();
            assert_eq!(client.receive().unwrap().text(), "ignored");
            // Whether or not this connection is still good, the backend's must be.
            for _ in 0..3 {
                assert_eq!(front.get("/page.html").unwrap().status, 200);
            }
        }
    });
}

#[test]
fn a_gibibyte_down_in_constant_memory() {
    connectors(&LARGE, |front, _| {
        constant_memory(front, || {
            let mut digest = Sha256::default();
            let mut client = patient(front);
            let target = format!("/download.jsp?bytes={GIBIBYTE}");
            client
                .send(front.head("GET", &target, "").as_bytes())
                .unwrap();
            client.receive_into(&mut digest).unwrap();
            assert_eq!(digest.count(), GIBIBYTE);
            assert_eq!(digest.hex(), gibibyte_digest());
        });
    });
}

#[test]
fn a_gibibyte_up_in_constant_memory() {
    connectors(&LARGE, |front, _| {
        constant_memory(front, || {
            let mut client = patient(front);
            upload(front, &mut client, GIBIBYTE);
            let text = client.receive().unwrap().text();
            assert_eq!(value(&text, "length"), GIBIBYTE.to_string());
            assert_eq!(value(&text, "sha256"), gibibyte_digest());
        });
    });
}

#[test]
fn a_chunked_gibibyte_up_in_constant_memory() {
    connectors(&[Connector::Ajp, Connector::Http], |front, _| {
        constant_memory(front, || {
            let mut client = patient(front);
            let fields = "Transfer-Encoding: chunked\r\n";
            client
                .send(front.head("POST", "/upload.jsp", fields).as_bytes())
                .unwrap();
            client
                .send_chunked(&mut Pattern::new(GIBIBYTE), 100_000)
                .unwrap();
            let text = client.receive().unwrap().text();
            assert_eq!(value(&text, "length"), GIBIBYTE.to_string());
            assert_eq!(value(&text, "sha256"), gibibyte_digest());
        });
    });
}

#[test]
fn a_client_that_does_not_read_is_not_buffered_for() {
    connectors(&[Connector::Ajp, Connector::Http], |front, _| {
        constant_memory(front, || {
            let mut client = front.connect().unwrap();
            let target = format!("/download.jsp?bytes={GIBIBYTE}");
            client
                .send(front.head("GET", &target, "").as_bytes())
                .unwrap();
            client.receive_head().unwrap();
            // Others are served meanwhile, and long enough for a front without back-pressure to
            // fill its memory.
            for _ in 0..300 {
                assert_eq!(
                    front.get("/download.jsp?bytes=65536").unwrap().body.len(),
                    65_536
                );
            }
        });
    });
}

#[test]
fn uploads_and_downloads_at_the_same_time() {
    let front = front(Connector::Ajp);
    thread::scope(|scope| {
        for turn in 0..16 {
            let front = &front;
            scope.spawn(move || {
                let mut client = front.connect().unwrap();
                for length in [8186, 65_536, 1_000_000 + turn] {
                    upload(front, &mut client, length);
                    check_upload(&client.receive().unwrap().text(), length);
                    let target = format!("/download.jsp?bytes={length}");
                    assert!(
                        client.ask(front.head("GET", &target, "")).unwrap().body
                            == Pattern::bytes(length)
                    );
                }
            });
        }
    });
}

/// Runs `test` with a front for each of Tomcat's connectors, and for the one over TLS.
fn every_way(test: impl Fn(&Front, Connector)) {
    every_connector(&test);
    connectors(&[Connector::Https], test);
}

fn upload(front: &Front, client: &mut HttpClient, length: u64) {
    let fields = format!("Content-Length: {length}\r\n");
    client
        .send(front.head("POST", "/upload.jsp", &fields).as_bytes())
        .unwrap();
    client.send_from(&mut Pattern::new(length)).unwrap();
}

#[track_caller]
fn check_upload(text: &str, length: u64) {
    assert_eq!(value(text, "length"), length.to_string());
    assert_eq!(value(text, "sha256"), Pattern::sha256_hex(length));
}

/// The front keeps what it received of a body until the backend answers, for another attempt.
#[test]
fn a_body_in_tiny_chunks_is_kept_in_little_memory() {
    const CLIENTS: usize = 20;
    const END: &[u8] = b"0\r\n\r\n";
    let peer = Peer::start(Script::new().stall());
    let front = Front::to(&[&format!("http://{}", peer.tcp_address())]).unwrap();
    let before = front.memory().unwrap().resident;
    let body = [&b"1\r\nx\r\n".repeat(60_000)[..], END].concat();
    let clients: Vec<HttpClient> = (0..CLIENTS)
        .map(|_| {
            let mut client = front.connect().unwrap();
            let head = front.head("POST", "/", "Transfer-Encoding: chunked\r\n");
            client.send(head.as_bytes()).unwrap();
            client.send(&body).unwrap();
            client
        })
        .collect();
    let arrived = |index| peer.received(index).ends_with(END);
    Deadline::default()
        .poll("all bodies", || (0..CLIENTS).all(arrived).then_some(()))
        .unwrap();
    let grown = front.memory().unwrap().resident.saturating_sub(before);
    println!("{grown} bytes for {CLIENTS} bodies");
    assert!(grown < 16 << 20, "{grown} bytes for {CLIENTS} bodies");
    drop(clients);
}

/// Fails if the front's peak of memory grows by more than [`GROWTH_MAX`] during `work`.
fn constant_memory(front: &Front, work: impl FnOnce()) {
    // Buffers and pools exist after a first exchange.
    assert_eq!(front.get("/download.jsp?bytes=200000").unwrap().status, 200);
    let before = front.memory().unwrap();
    work();
    // The system counts pages in batches, so a peak may lag behind the present by a few.
    let peak = front.memory().unwrap().resident_peak;
    let growth = peak.saturating_sub(before.resident);
    println!("the front grew by {growth} bytes");
    assert!(growth <= GROWTH_MAX, "the front grew by {growth} bytes");
}

/// A connection with time for a gibibyte on a machine that does much else.
fn patient(front: &Front) -> HttpClient {
    let mut client = front.connect().unwrap();
    client.set_deadline(Deadline::after(Duration::from_secs(300)));
    client
}

fn gibibyte_digest() -> String {
    use std::sync::OnceLock;
    static DIGEST: OnceLock<String> = OnceLock::new();
    DIGEST.get_or_init(|| Pattern::sha256_hex(GIBIBYTE)).clone()
}

const LENGTHS: [u64; 10] = [0, 1, 8183, 8184, 8185, 8186, 8187, 65_526, 65_536, 200_000];
const GIBIBYTE: u64 = 1 << 30;

/// What a front may grow by while gibibytes pass: some buffers for each connection, nothing that
/// depends on a body's length.
const GROWTH_MAX: u64 = 16 << 20;

/// The ways a gibibyte goes; the others differ only in what the small bodies show.
const LARGE: [Connector; 4] = [
    Connector::Ajp,
    Connector::AjpLarge,
    Connector::AjpUnix,
    Connector::Http,
];
