//! The PROXY protocol before HTTP: whom the front believes, and what it makes of the header.

use std::num::NonZeroUsize;
use std::time::Duration;

use catamaran_proxy::config::{Config, Protocols};
use catamaran_testkit::http2::{
    END_HEADERS, END_STREAM, Http2Client, Said, block, frame, kind, opening,
};
use catamaran_testkit::{HttpClient, Peer, Script};

use crate::{Front, config, loopback, tcp, to, unix, wait_for_reason};

/// A backend that answers each request with 200.
fn backend() -> Peer {
    let turn = Script::new()
        .expect_until(b"\r\n\r\n")
        .send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    Peer::start(turn.repeat(500).stall())
}

fn front(backend: &Peer, change: impl FnOnce(&mut Config)) -> Front {
    let mut config = config(&[loopback()], vec![to(backend)]);
    let listener = &mut config.listeners[0];
    listener.proxy_protocol = true;
    listener.proxy_protocol_from = vec!["127.0.0.0/8".parse().unwrap()];
    listener.head_timeout = Duration::from_secs(20);
    change(&mut config);
    crate::start(config).unwrap()
}

fn binary(command: u8, source: [u8; 4]) -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n".to_vec();
    header.extend([0x20 | command, 0x11, 0, 12]);
    header.extend(source);
    header.extend([198, 51, 100, 1, 0x30, 0x39, 1, 0xbb]);
    header
}

/// What backends are told of the client.
fn told(backend: &Peer) -> String {
    told_as(backend, "x-forwarded-for")
}

/// The last that they are told by this field.
fn told_as(backend: &Peer, field: &str) -> String {
    let all = (0..backend.connections()).map(|index| backend.received(index));
    let text = String::from_utf8(all.collect::<Vec<_>>().concat()).unwrap();
    let mut values = text.lines().rev().filter_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case(field).then_some(value)
    });
    values.next().unwrap_or_default().to_owned()
}

#[test]
fn the_header_tells_who_the_client_is_however_it_is_cut() {
    let backend = backend();
    let running = front(&backend, |_| {});
    for (header, client) in [
        (LINE.to_vec(), "192.0.2.7"),
        (binary(1, [192, 0, 2, 8]), "192.0.2.8"),
        (binary(0, [192, 0, 2, 9]), "127.0.0.1"),
        (b"PROXY UNKNOWN\r\n".to_vec(), "127.0.0.1"),
    ] {
        let whole = [&header[..], REQUEST].concat();
        for cut in 1..=header.len() {
            let mut client_end = HttpClient::connect(tcp(&running, 0)).unwrap();
            client_end.socket().set_tcp_nodelay(true).unwrap();
            client_end.send(&whole[..cut]).unwrap();
            std::thread::yield_now();
            let answer = client_end.ask(&whole[cut..]).unwrap();
            assert_eq!(answer.status, 200, "cut at {cut}");
        }
        assert_eq!(told(&backend), client);
    }
    // Byte by byte.
    let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
    client.socket().set_tcp_nodelay(true).unwrap();
    for byte in [LINE, REQUEST].concat() {
        client.send(&[byte]).unwrap();
    }
    assert_eq!(client.receive().unwrap().status, 200);
    assert!(
        running.counters().reasons.is_empty(),
        "{:?}",
        running.counters()
    );
}

#[test]
fn what_is_no_header_is_closed_and_reaches_no_backend() {
    let backend = backend();
    let running = front(&backend, |_| {});
    let mut oversized = binary(1, [1, 2, 3, 4]);
    oversized[14] = 9;
    let mut version = binary(1, [1, 2, 3, 4]);
    version[12] = 0x11;
    for bytes in [
        REQUEST.to_vec(),
        b"\x16\x03\x01\x02\x00".to_vec(),
        b"PROXY TCP4 192.0.2.7\r\n".to_vec(),
        [b"PROXY UNKNOWN ".to_vec(), vec![b'x'; 200]].concat(),
        oversized,
        version,
    ] {
        let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
        client.send(&bytes).unwrap();
        assert_eq!(
            client.receive_to_end().unwrap_or_default(),
            b"",
            "{bytes:?}"
        );
    }
    wait_for_reason(&running, "client:proxy-header");
    assert_eq!(backend.connections(), 0);
}

#[test]
fn only_those_who_are_named_are_believed() {
    let backend = backend();
    let running = front(&backend, |config| {
        config.listeners[0].proxy_protocol_from = vec!["192.0.2.0/24".parse().unwrap()];
    });
    let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
    client.send(&[LINE, REQUEST].concat()).ok();
    assert_eq!(client.receive_to_end().unwrap_or_default(), b"");
    wait_for_reason(&running, "client:proxy-untrusted");
    assert_eq!(backend.connections(), 0);
}

#[test]
fn who_says_nothing_is_closed() {
    let backend = backend();
    let running = front(&backend, |config| {
        config.listeners[0].head_timeout = Duration::from_millis(200);
    });
    let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
    client.send(b"PROXY TCP4 ").unwrap();
    // Unread bytes make the close a reset.
    assert_eq!(client.receive_to_end().unwrap_or_default(), b"");
    wait_for_reason(&running, "client:proxy-timeout");
}

#[test]
fn connections_are_counted_for_the_address_that_is_told() {
    let backend = backend();
    let running = front(&backend, |config| {
        config.server.connections_per_address = NonZeroUsize::new(2);
    });
    let open = |source: u8| {
        let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
        client.send(&binary(1, [192, 0, 2, source])).unwrap();
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        client
    };
    let mut kept = [open(1), open(1), open(2)];
    for client in &mut kept {
        assert_eq!(client.receive().unwrap().status, 200);
    }
    let mut third = open(1);
    assert!(third.receive().is_err());
    wait_for_reason(&running, "front:connections-per-address");
}

#[test]
fn a_unix_socket_is_believed_by_its_mode() {
    let directory = tempfile::tempdir().unwrap();
    let backend = backend();
    let mut config = config(&[unix(directory.path())], vec![to(&backend)]);
    config.listeners[0].proxy_protocol = true;
    let _running = crate::start(config).unwrap();
    let path = directory.path().join("front.sock");
    let mut client = HttpClient::connect(catamaran_testkit::Address::Unix(path)).unwrap();
    assert_eq!(client.ask([LINE, REQUEST].concat()).unwrap().status, 200);
    assert_eq!(told(&backend), "192.0.2.7");
}

/// A header of version 2 whose proxy tells of TLS: that the client came over it or not, and how.
fn of_tls(client: u8) -> Vec<u8> {
    let text = |kind: u8, text: &[u8]| [&[kind, 0, text.len() as u8], text].concat();
    let (version, cipher) = (
        text(0x21, b"TLSv1.3"),
        text(0x23, b"TLS_AES_128_GCM_SHA256"),
    );
    let told = [&[client, 0, 0, 0, 0], &version[..], &cipher].concat();
    let mut header = binary(1, [192, 0, 2, 7]);
    header.extend(text(0x20, &told));
    header[15] = (header.len() - 16) as u8;
    header
}

/// The status of a request over HTTP/2 with this `:scheme`, on a connection that begins with `header`.
fn ask_http2(running: &Front, header: &[u8], scheme: &[u8]) -> Said {
    let fields: [(&[u8], &[u8]); 4] = [
        (b":method", b"GET"),
        (b":scheme", scheme),
        (b":authority", b"a"),
        (b":path", b"/"),
    ];
    let flags = END_HEADERS | END_STREAM;
    let request = frame(kind::HEADERS, flags, 1, &block(&fields));
    let mut client = Http2Client::connect(tcp(running, 0)).unwrap();
    client.send(&[header, &opening(65_535), &request].concat(), usize::MAX);
    client.next_said().unwrap()
}

#[test]
fn tls_that_the_proxy_ends_is_the_clients() {
    let backend = backend();
    let running = front(&backend, |config| {
        config.listeners[0].protocols = Protocols::Both;
    });
    let (tls, clear) = (of_tls(1), of_tls(0));
    let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
    let answer = client.ask([&tls[..], REQUEST].concat()).unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(told_as(&backend, "x-forwarded-proto"), "https");
    for (header, scheme, status) in [
        (&tls, "https", 200),
        (&tls, "http", 421),
        (&clear, "http", 200),
        (&clear, "https", 421),
    ] {
        let said = ask_http2(&running, header, scheme.as_bytes());
        assert_eq!(said, Said::Status(1, status), "{scheme}");
    }
}

#[test]
fn proxies_that_do_not_tell_of_tls_may_be_said_to_end_it() {
    let backend = backend();
    let running = front(&backend, |config| {
        config.listeners[0].protocols = Protocols::Both;
        config.listeners[0].proxy_protocol_tls = true;
    });
    for (header, scheme, status) in [
        (binary(1, [192, 0, 2, 7]), "https", 200),
        (LINE.to_vec(), "https", 200),
        (LINE.to_vec(), "http", 421),
        // The proxy itself, such as a health check.
        (binary(0, [0; 4]), "http", 200),
        (binary(0, [0; 4]), "https", 421),
        // What a header tells wins.
        (of_tls(0), "http", 200),
        (of_tls(0), "https", 421),
    ] {
        let said = ask_http2(&running, &header, scheme.as_bytes());
        assert_eq!(said, Said::Status(1, status), "{scheme}");
    }
}

#[test]
fn fields_that_only_look_like_a_proxys_are_removed() {
    for is_trusted in [false, true] {
        let backend = backend();
        let running = front(&backend, |config| {
            config.listeners[0].proxy_protocol = false;
            let listed = ["x_forwarded_for", "ssl_client_verify", "ssl_client-verify"];
            config.server.underscore_fields = listed.map(str::to_owned).to_vec();
            if is_trusted {
                config.server.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
            }
        });
        let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
        let disguised = [
            "X.Forwarded.For",
            "X-Real.IP",
            "True.Client-IP",
            "SSL.Client-Verify",
        ];
        let disguised = [&disguised[..], &["X_Forwarded_For", "SSL_Client-Verify"]].concat();
        let spelt = ["X-Real-IP", "SSL-Client-Cert", "SSL_CLIENT_VERIFY", "$WSRA"];
        let claims = disguised
            .iter()
            .chain(&spelt)
            .map(|name| format!("{name}: 1\r\n"));
        let claims: String = claims.collect();
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{claims}X-Own: 1\r\n\r\n");
        assert_eq!(client.ask(request).unwrap().status, 200);
        let sent = String::from_utf8(backend.received(0))
            .unwrap()
            .to_lowercase();
        let has = |name: &str| sent.contains(&format!("\r\n{}: 1\r\n", name.to_lowercase()));
        for claim in disguised {
            assert!(!has(claim), "{claim}: {sent}");
        }
        for claim in spelt {
            assert_eq!(has(claim), is_trusted, "{claim}: {sent}");
        }
        assert!(has("X-Own"), "{sent}");
    }
}

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

const LINE: &[u8] = b"PROXY TCP4 192.0.2.7 198.51.100.1 12345 443\r\n";
