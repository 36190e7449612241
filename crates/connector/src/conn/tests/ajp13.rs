//! Transcripts of AJP13.

use std::net::{IpAddr, Ipv4Addr};

use catamaran_message::name::{HOST, LOCATION};
use http::Version;

use super::*;

fn ajp13() -> Play {
    Play::new(Protocol::Ajp)
}

/// The packets with which a front sends a request, written by the client role of the
/// codec.
fn encode(request: &ajp::Request<'_>, facts: &ajp::Facts<'_>) -> Vec<u8> {
    let mut out = BytesMut::new();
    ajp::Client::new(ajp::ClientConfig::default())
        .send_request(request, facts, &mut out)
        .expect("the request fits a packet");
    out.to_vec()
}

fn plain<'a>(method: &'a Method, path: &'a str, headers: &'a Fields) -> ajp::Request<'a> {
    ajp::Request {
        method,
        path: path.as_bytes(),
        query: None,
        host: b"a.example",
        headers,
        body: NO_BODY,
    }
}

pub(super) fn request(
    method: &Method,
    path: &str,
    body: BodyLength,
    attributes: &[ajp::Attribute<'_>],
) -> Vec<u8> {
    let headers = Fields::new();
    let request = ajp::Request {
        body,
        ..plain(method, path, &headers)
    };
    let facts = ajp::Facts {
        attributes,
        ..FACTS
    };
    encode(&request, &facts)
}

fn request_with(headers: &Fields, path: &str) -> Vec<u8> {
    encode(&plain(&Method::GET, path, headers), &FACTS)
}

pub(super) fn get(path: &str) -> Vec<u8> {
    request(&Method::GET, path, NO_BODY, &[])
}

pub(super) fn post(path: &str, body: BodyLength) -> Vec<u8> {
    request(&Method::POST, path, body, &[])
}

fn with_attributes(path: &str, attributes: &[ajp::Attribute<'_>]) -> Vec<u8> {
    request(&Method::GET, path, NO_BODY, attributes)
}

pub(super) fn data(bytes: &[u8]) -> Vec<u8> {
    let size = u16::try_from(bytes.len()).unwrap();
    let mut packet = vec![0x12, 0x34];
    packet.extend_from_slice(&(size + 2).to_be_bytes());
    packet.extend_from_slice(&size.to_be_bytes());
    packet.extend_from_slice(bytes);
    packet
}

/// Splits an answer into its packets: for each its code and the payload after it.
pub(super) fn packets(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut packets = Vec::new();
    while let [b'A', b'B', high, low, rest @ ..] = bytes {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        packets.push((rest[0], rest[1..length].to_vec()));
        bytes = &rest[length..];
    }
    assert_eq!(bytes, [0u8; 0], "whole packets only");
    packets
}

pub(super) fn codes(bytes: &[u8]) -> Vec<u8> {
    packets(bytes).iter().map(|(code, _)| *code).collect()
}

pub(super) fn status(bytes: &[u8]) -> u16 {
    let packets = packets(bytes);
    let (_, head) = packets
        .iter()
        .find(|(code, _)| *code == HEAD)
        .expect("a head");
    u16::from_be_bytes([head[0], head[1]])
}

pub(super) fn body(bytes: &[u8]) -> Vec<u8> {
    let chunks = packets(bytes)
        .into_iter()
        .filter(|(code, _)| *code == CHUNK);
    chunks
        .flat_map(|(_, chunk)| chunk[2..chunk.len() - 1].to_vec())
        .collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(body(bytes)).unwrap()
}

pub(super) const NO_BODY: BodyLength = BodyLength::Known(0);

fn far_peer() -> Peer {
    let remote: SocketAddr = FAR_PEER.parse().unwrap();
    Peer::Tcp {
        remote,
        local: "192.0.2.2:8009".parse().unwrap(),
    }
}

fn with_secret(secret: &'static str) -> Config {
    Config {
        secret: Secret::new(secret),
        ..Config::default()
    }
}

#[test]
fn a_page_is_head_chunk_and_end() {
    let mut play = ajp13();
    let page = play.feed(get("/")).sent();
    assert_eq!(codes(&page), [HEAD, CHUNK, END]);
    assert_eq!((status(&page), body(&page).len()), (200, 347));
    assert!(page.ends_with(&END_KEEP));
    assert_eq!(play.awaiting(), Some(WaitClass::NextRequest));
}

#[test]
fn the_same_bytes_get_the_same_answers_however_they_arrive() {
    let echo = [
        post("/echo", BodyLength::Known(5)),
        data(b"he"),
        data(b"llo"),
    ]
    .concat();
    let requests = [
        get("/"),
        get("/bytes/30000"),
        get("/stream/2/1"),
        echo,
        PING.repeat(3),
    ];
    for request in requests {
        check_splits(Protocol::Ajp, &request);
    }
}

#[test]
fn pings_are_answered_without_a_secret_and_count_as_a_sign_of_life() {
    let mut play = Play::with(Protocol::Ajp, with_secret("s"), far_peer());
    assert_eq!(play.awaiting(), Some(WaitClass::FirstByte));
    assert_eq!(play.feed(PING).sent(), PONG);
    assert_eq!(play.feed(PING.repeat(2)).sent(), PONG.repeat(2));
    assert_eq!(play.awaiting(), Some(WaitClass::NextRequest));
}

#[test]
fn the_secret_has_to_be_right() {
    let proof = |proof: &'static [u8]| with_attributes("/", &[ajp::Attribute::Secret(proof)]);
    let play = || Play::with(Protocol::Ajp, with_secret("right"), Peer::Unix);

    let mut right = play();
    let answer = right.feed(proof(b"right")).sent();
    assert_eq!(status(&answer), 200);
    assert!(answer.ends_with(&END_KEEP));

    let cases: [(Vec<u8>, &str); 5] = [
        (get("/"), "secret-missing"),
        (proof(b"wrong"), "secret-wrong"),
        (proof(b"righ"), "secret-wrong"),
        (proof(b"right "), "secret-wrong"),
        (proof(b""), "secret-wrong"),
    ];
    for (request, reason) in cases {
        let mut play = play();
        let answer = play.feed(&request).sent();
        assert_eq!(status(&answer), 403);
        assert!(answer.ends_with(&END_CLOSE));
        assert_eq!(
            play.closed(),
            Some(Close {
                linger: true,
                reason: Some(reason)
            })
        );
    }
}

#[test]
fn identity_and_tls_are_believed_only_with_proof_or_from_this_machine() {
    let attributes = [
        ajp::Attribute::RemoteUser(b"mary"),
        ajp::Attribute::SslCert(b"-----BEGIN"),
        ajp::Attribute::SslKeySize(256),
        ajp::Attribute::Request {
            name: b"AJP_SSL_PROTOCOL",
            value: b"TLSv1.3",
        },
    ];
    let proved = [&attributes[..], &[ajp::Attribute::Secret(b"s")]].concat();
    let believed = [
        "\"user\": \"mary\"",
        "BEGIN",
        "256",
        "TLSv1.3",
        "\"secure\": true",
    ];
    let snoop = |config: Config, peer: Peer, attributes: &[ajp::Attribute<'_>]| {
        text(
            &Play::with(Protocol::Ajp, config, peer)
                .feed(with_attributes("/snoop", attributes))
                .sent(),
        )
    };
    for seen in [
        snoop(Config::default(), Peer::Unix, &attributes),
        snoop(with_secret("s"), far_peer(), &proved),
    ] {
        for word in believed {
            assert!(seen.contains(word), "{word} in {seen}");
        }
    }
    let seen = snoop(Config::default(), far_peer(), &attributes);
    for word in believed {
        assert!(!seen.contains(word), "{word} in {seen}");
    }
    assert!(seen.contains("\"secure\": false"), "{seen}");
}

#[test]
fn the_fields_of_the_front_reach_the_application() {
    let attributes = [
        ajp::Attribute::Request {
            name: b"AJP_REMOTE_PORT",
            value: b"4711",
        },
        ajp::Attribute::Request {
            name: b"AJP_LOCAL_ADDR",
            value: b"192.0.2.80",
        },
        ajp::Attribute::Request {
            name: b"JK_LB_ACTIVATION",
            value: b"ACT",
        },
        ajp::Attribute::JvmRoute(b"r1"),
    ];
    let seen = text(&ajp13().feed(with_attributes("/snoop", &attributes)).sent());
    for line in [
        "\"connector\": \"ajp\"",
        "\"remote_addr\": \"192.0.2.7\"",
        "\"remote_port\": 4711",
        "\"local_addr\": \"192.0.2.80\"",
        "\"server_name\": \"a.example\"",
        "\"server_port\": 443",
        "\"scheme\": \"https\"",
        "\"route\": \"r1\"",
        "\"attributes\": [[\"JK_LB_ACTIVATION\",\"ACT\"]]",
    ] {
        assert!(seen.contains(line), "{line} in {seen}");
    }
}

#[test]
fn paths_obey_the_rules_of_a_request_line() {
    // Our own encoder refuses some of these, so they take the place of a harmless path.
    let get_raw = |path: &str| {
        let stand_in = "/".repeat(path.len());
        let mut packet = get(&stand_in);
        let place = packet
            .windows(path.len())
            .position(|window| window == stand_in.as_bytes());
        let place = place.expect("the path is in the packet");
        packet[place..place + path.len()].copy_from_slice(path.as_bytes());
        packet
    };
    let path = |path: &str| {
        let answer = ajp13().feed(get_raw(path)).sent();
        (status(&answer), answer.ends_with(&END_KEEP))
    };
    for refused in ["/%zz", "/%2", "/a#b", "/a b", "/a?b", "/a\\b"] {
        assert_eq!(path(refused), (400, false), "{refused}");
    }
    for served in ["/%2f", "/a%5Cb", "/..;/x", "/%00"] {
        assert_eq!(path(served), (404, true), "{served}: as over HTTP");
    }
    let seen = text(&ajp13().feed(get_raw("/echo;caf\u{e9}<")).sent());
    assert!(
        seen.starts_with("GET /echo;caf%C3%A9%3C HTTP/1.1\r\n"),
        "{seen}"
    );
}

#[test]
fn connect_is_refused_as_over_http() {
    let mut play = ajp13();
    let connect = request(&Method::CONNECT, "/", NO_BODY, &[]);
    assert_eq!(status(&play.feed(connect).sent()), 405);
    assert_eq!(play.reason(), Some("connect"));
}

#[test]
fn the_host_field_names_the_server_and_has_to_be_one() {
    let with_hosts = |hosts: &[&'static str]| {
        let headers = hosts.iter().map(|host| (HOST, host)).collect();
        ajp13().feed(request_with(&headers, "/snoop")).sent()
    };
    for (host, name, port) in [
        ("Shop.Example.", "shop.example", 443),
        ("b:8443", "b", 8443),
        ("[::1]:1", "[::1]", 1),
    ] {
        let seen = text(&with_hosts(&[host]));
        assert!(
            seen.contains(&format!("\"server_name\": \"{name}\"")),
            "{seen}"
        );
        assert!(seen.contains(&format!("\"server_port\": {port}")), "{seen}");
    }
    for hosts in [&["a", "a"][..], &["a, a"], &["a:0"], &["u@a"]] {
        assert_eq!(status(&with_hosts(hosts)), 400, "{hosts:?}");
    }
}

#[test]
fn attributes_that_are_not_allowed_refuse_the_request() {
    let named = |name: &'static [u8]| {
        with_attributes("/", &[ajp::Attribute::Request { name, value: b"x" }])
    };
    let all = || Config {
        allowed_request_attributes: "*".parse().unwrap(),
        ..Config::default()
    };
    let cases = [
        (Config::default(), &b"MYATTRIBUTE"[..], 403),
        (all(), b"MYATTRIBUTE", 200),
        (all(), b"javax.servlet.include.request_uri", 403),
    ];
    for (config, name, expected) in cases {
        let mut play = Play::with(Protocol::Ajp, config, Peer::Unix);
        let answer = play.feed(named(name)).sent();
        assert_eq!(status(&answer), expected);
        assert_eq!(answer.ends_with(&END_CLOSE), expected == 403);
    }
}

#[test]
fn a_sink_asks_for_all_before_it_answers() {
    let mut play = ajp13();
    let asked = play.feed(post("/sink", BodyLength::Known(6))).sent();
    assert_eq!(asked, b"", "the first packet of a body comes unasked");
    assert_eq!(codes(&play.feed(data(b"abc")).sent()), [ASK]);
    let answer = play.feed(data(b"def")).sent();
    assert_eq!(status(&answer), 200);
    assert!(answer.ends_with(&END_KEEP));
}

#[test]
fn an_echo_asks_for_what_it_reads() {
    let mut play = ajp13();
    let start = play.feed(post("/echo", BodyLength::Known(6))).sent();
    assert!(
        !codes(&start).contains(&ASK),
        "the first packet comes unasked"
    );
    assert_eq!(play.awaiting(), Some(WaitClass::Body));
    assert_eq!(codes(&play.feed(data(b"abc")).sent()), [CHUNK, ASK]);
    let rest = play.feed(data(b"def")).sent();
    assert_eq!(
        (body(&rest), rest.ends_with(&END_KEEP)),
        (b"def".to_vec(), true)
    );

    let asked = play.feed(post("/echo", BodyLength::Unknown)).sent();
    assert_eq!(codes(&asked).last(), Some(&ASK), "nothing comes unasked");
    play.feed(data(b"abc"));
    let end = play.feed([0x12, 0x34, 0, 0]).sent();
    assert!(end.ends_with(&END_KEEP));
}

#[test]
fn the_end_of_an_unread_request_waits_for_the_packet_that_is_owed() {
    let request = post("/", BodyLength::Known(5));
    let mut play = ajp13();
    assert_eq!(codes(&play.feed(&request).sent()), [HEAD, CHUNK]);
    assert_eq!(play.awaiting(), Some(WaitClass::Leftover));
    assert_eq!(play.feed(data(b"hello")).sent(), END_KEEP);
    assert_eq!(status(&play.feed(get("/")).sent()), 200);

    let mut silent = ajp13();
    silent.feed(&request).sent();
    assert_eq!(silent.time_out().sent(), END_CLOSE);
    assert_eq!(silent.reason(), Some("leftover-timeout"));
}

#[test]
fn a_request_in_the_place_of_the_owed_packet_is_never_served() {
    let mut play = ajp13();
    play.feed(post("/", BodyLength::Known(5))).sent();
    let rest = play.feed(get("/status/299")).sent();
    assert!(
        !rest.windows(2).any(|pair| pair == 299u16.to_be_bytes()),
        "{rest:?}"
    );
    assert!(play.reason().is_some());
}

#[test]
fn bytes_behind_a_request_that_asked_for_none_close_the_connection() {
    let mut play = ajp13();
    let answer = play.feed([get("/"), get("/status/299")].concat()).sent();
    assert_eq!(codes(&answer), [HEAD, CHUNK, END]);
    assert!(answer.ends_with(&END_CLOSE));
    assert!(play.closed().is_some());
}

#[test]
fn head_204_and_304_have_no_chunk() {
    for (method, path) in [
        (Method::HEAD, "/bytes/1000000000000000000"),
        (Method::GET, "/status/204"),
        (Method::GET, "/status/304"),
    ] {
        let answer = ajp13().feed(request(&method, path, NO_BODY, &[])).sent();
        assert_eq!(codes(&answer), [HEAD, END], "{method} {path}");
    }
}

#[test]
fn each_line_of_a_stream_is_flushed() {
    let mut play = ajp13();
    let answer = play.feed(get("/stream/2/5")).sent();
    assert_eq!(play.waits, [Duration::from_millis(5)]);
    let chunks: Vec<usize> = packets(&answer)
        .iter()
        .filter(|(code, _)| *code == CHUNK)
        .map(|(_, chunk)| chunk.len() - 3)
        .collect();
    assert_eq!(chunks, [42, 0, 42]);
}

#[test]
fn a_front_that_closes_during_an_exchange_has_given_it_up() {
    let mut conn = Conn::new(Protocol::Ajp, Peer::Unix, Arc::new(Config::default()));
    let (mut input, mut out) = (BytesMut::from(&get("/delay/9")[..]), Output::default());
    let mut io = Io {
        input: &mut input,
        out: &mut out,
        date: Some(DATE),
    };
    assert!(conn.handle_hangup(&mut io).is_none());
    let Action::Serve(request) = conn.poll(&mut io) else {
        panic!("no request")
    };
    assert!(matches!(
        conn.respond(App::new().handle(&request), &mut io),
        Action::Wait(_)
    ));
    assert!(matches!(
        conn.handle_hangup(&mut io),
        Some(Action::Close(_))
    ));
}

#[test]
fn cut_requests_are_dropped_without_a_word() {
    let request = get("/");
    for length in 1..request.len() {
        let mut play = ajp13();
        play.feed(&request[..length]);
        assert_eq!(play.awaiting(), Some(WaitClass::Head), "{length}");
        assert_eq!(play.eof().sent(), b"", "{length}");
        assert!(play.reason().is_some(), "{length}");
        let mut play = ajp13();
        assert_eq!(
            play.feed(&request[..length]).time_out().sent(),
            b"",
            "{length}"
        );
        assert_eq!(play.reason(), Some("head-timeout"));
    }
}

#[test]
fn bad_packets_are_refused_or_dropped() {
    let mut bad_method = get("/");
    bad_method[5] = 200;
    let oversized = vec![0x12, 0x34, 0xff, 0xff];
    for (name, input, refused) in [
        ("foreign magic", b"GET / HTTP/1.1\r\n\r\n".to_vec(), false),
        ("the wrong direction", PONG.to_vec(), false),
        ("an unknown code", vec![0x12, 0x34, 0, 1, 77], false),
        ("an unknown method", bad_method, true),
        ("an oversized packet", oversized, true),
    ] {
        let mut play = ajp13();
        let answer = play.feed(&input).sent();
        assert_eq!(answer.ends_with(&END_CLOSE), refused, "{name}: {answer:?}");
        assert_eq!(answer.is_empty(), !refused, "{name}");
        assert!(play.reason().is_some(), "{name}");
    }
}

#[test]
fn a_response_head_that_fits_no_packet_becomes_a_500() {
    let mut conn = Conn::new(Protocol::Ajp, Peer::Unix, Arc::new(Config::default()));
    let (mut input, mut out) = (BytesMut::from(&get("/")[..]), Output::default());
    let mut io = Io {
        input: &mut input,
        out: &mut out,
        date: Some(DATE),
    };
    assert!(matches!(conn.poll(&mut io), Action::Serve(_)));
    let response =
        Response::new(StatusCode::OK, Body::Full(Bytes::new())).with_header(LOCATION, [b'x'; 9000]);
    assert!(matches!(conn.respond(response, &mut io), Action::Close(_)));
    let out = written(&mut out);
    assert_eq!(status(&out), 500);
    assert!(out.ends_with(&END_CLOSE));
}

#[test]
fn a_body_of_known_length_is_asked_for_ahead() {
    let asked = |body_ahead| {
        let config = Config {
            body_ahead,
            ..Config::default()
        };
        let mut play = Play::with(Protocol::Ajp, config, Peer::Unix);
        play.feed(post("/sink", BodyLength::Known(100_000)));
        let asked = codes(&play.sent());
        let mut left = 100_000;
        while left > 0 {
            let size = left.min(8186);
            play.feed(data(&vec![b'b'; size]));
            left -= size;
        }
        assert!(play.sent().ends_with(&END_KEEP));
        asked
    };
    assert_eq!(asked(0), b"", "the first packet comes unasked");
    assert_eq!(asked(3), [ASK; 3]);
}

#[test]
fn an_early_answer_waits_for_all_that_was_asked_ahead() {
    let mut play = ajp13();
    let mut piped = piped::Script::begin(&mut play, post("/", BodyLength::Known(1_000_000)));
    piped.refuse_while_reading(&mut play);
    assert_eq!(play.awaiting(), Some(WaitClass::Leftover));
    play.sent();
    for packet in 0..16 {
        assert_eq!(play.sent(), b"", "after {packet}");
        play.feed(data(b"unread"));
    }
    assert_eq!(play.sent(), END_KEEP);
    assert_eq!(play.awaiting(), Some(WaitClass::NextRequest));
}

const FACTS: ajp::Facts<'_> = ajp::Facts {
    version: Version::HTTP_11,
    remote_ip: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)),
    server_name: b"a.example",
    server_port: 443,
    is_ssl: true,
    announce_chunked: false,
    attributes: &[],
};

const CHUNK: u8 = 3;
const HEAD: u8 = 4;
const END: u8 = 5;
const ASK: u8 = 6;
const PING: [u8; 5] = [0x12, 0x34, 0, 1, 10];
const PONG: [u8; 5] = [b'A', b'B', 0, 1, 9];
const END_KEEP: [u8; 6] = [b'A', b'B', 0, 2, END, 1];
const END_CLOSE: [u8; 6] = [b'A', b'B', 0, 2, END, 0];
/// An address from the range for documentation, which is not a loopback address.
const FAR_PEER: &str = "192.0.2.1:40000";
