//! A WebSocket whose route has a sign-on: the service is asked by a plain GET, and then the tunnel begins.

use catamaran_e2e::Front;
use catamaran_testkit::http2 as frames;
use catamaran_testkit::http2::{END_HEADERS, Http2Client, Said, block, kind, opening};

use super::Service;
use crate::websocket::{ECHO, HANDSHAKE, TEXT, frame, masked, tomcat, ways};

/// Runs a test with a front before Tomcat's echo for each protocol of backends.
fn each(test: impl Fn(&Front, &Service)) {
    // Over HTTP, and beside AJP.
    for (connector, keys) in [0, 2].map(|place| ways()[place].clone()) {
        let service = Service::start();
        let backend = tomcat().backend_table("app", connector);
        let front = Front::with_config(&format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\nprotocols = [\"h2\", \"http/1.1\"]\n\
             [auth.staff]\nupstream = \"sso\"\npath = \"/auth\"\nuser = \"X-Auth-User\"\n\
             [upstream.sso]\n[[upstream.sso.backend]]\nurl = \"http://{}\"\n\
             [[route]]\nupstream = \"app\"\nauth = \"staff\"\nupgrade = [\"websocket\"]\n{backend}{keys}\n",
            service.address,
        ));
        test(&front.unwrap(), &service);
    }
}

/// Checks that the service was asked once, by a request that asks for no tunnel.
fn check_asked(service: &Service) {
    let asked = service.only();
    assert!(asked.starts_with("get /auth http/1.1\r\n"), "{asked}");
    for wanted in [
        "x-forwarded-method: get\r\n".to_owned(),
        format!("x-forwarded-uri: {ECHO}\r\n").to_lowercase(),
    ] {
        assert!(asked.contains(&wanted), "{wanted}: {asked}");
    }
    for unwanted in ["upgrade", "sec-websocket"] {
        assert!(!asked.contains(unwanted), "{unwanted}: {asked}");
    }
}

#[test]
fn a_tunnel_over_http_1_begins_once_the_client_has_signed_on() {
    each(|front, service| {
        for (case, status) in [("none", 401), ("ann", 101)] {
            let mut client = front.connect().unwrap();
            let fields = format!("{HANDSHAKE}Cookie: case={case}\r\n");
            let head = front.head("GET", ECHO, &fields);
            client.send(head.as_bytes()).unwrap();
            let head = client.receive_head().unwrap();
            assert_eq!(head.status, status, "{head:?}");
            check_asked(service);
            if status == 101 {
                client.send(&masked(TEXT, b"hello")).unwrap();
                assert_eq!(frame(&client), (TEXT, b"hello".to_vec()));
            }
        }
    });
}

#[test]
fn a_tunnel_over_http_2_begins_once_the_client_has_signed_on() {
    each(|front, service| {
        for (case, status) in [("none", 401), ("ann", 200)] {
            let mut client = Http2Client::connect(front.address()).unwrap();
            let cookie = format!("case={case}");
            let fields = [
                (":method", "CONNECT"),
                (":protocol", "websocket"),
                (":scheme", "http"),
                (":authority", "a"),
                (":path", ECHO),
                ("sec-websocket-version", "13"),
                ("cookie", &cookie),
            ];
            let fields = fields.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
            let head = frames::frame(kind::HEADERS, END_HEADERS, 1, &block(&fields));
            client.send(&[opening(65_535), head].concat(), usize::MAX);
            assert_eq!(client.next_said().unwrap(), Said::Status(1, status));
            check_asked(service);
            if status == 200 {
                let hello = masked(TEXT, b"hello");
                client.send(&frames::frame(kind::DATA, 0, 1, &hello), usize::MAX);
                let head = client.read_body(2).unwrap();
                assert_eq!(head[0] & 0x0f, TEXT);
                assert_eq!(client.read_body(usize::from(head[1])).unwrap(), b"hello");
            }
        }
    });
}
