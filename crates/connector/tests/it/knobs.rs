//! What can be set of a connector and shows at a socket: each knob on every driver.

use std::fs;
use std::num::{NonZeroU16, NonZeroU64};
use std::os::unix::fs::PermissionsExt;

use catamaran_connector::{Secret, UriForm};
use catamaran_testkit::ajp::{
    Forward, attribute, coded, data, field, get as forward, text, to_container,
};

use super::*;
use crate::packets::GET_BODY_CHUNK;

/// A request for `/snoop` that claims a user and TLS.
fn claim() -> Forward {
    let claim = Forward {
        is_ssl: 1,
        ..forward().uri(text("/snoop"))
    };
    claim
        .attribute(attribute(3, "mary"))
        .attribute(attribute(4, "BASIC"))
        .attribute(attribute(8, "TLS_AES_128_GCM_SHA256"))
}

/// Which of the claims the application is told.
fn believed(tier: &Tier, claim: &Forward) -> (bool, bool) {
    let mut wire = tier.packets();
    wire.send(&claim.packet());
    let seen = String::from_utf8(wire.response().body).unwrap();
    let all = |lines: &[&str]| lines.iter().all(|line| seen.contains(line));
    let any = |lines: &[&str]| lines.iter().any(|line| seen.contains(line));
    assert_eq!(all(&USER), any(&USER), "{seen}");
    assert_eq!(all(&TLS), any(&TLS), "{seen}");
    (all(&USER), all(&TLS))
}

#[test]
fn only_listed_peers_are_believed() {
    on_each_driver(|io| {
        for (list, expected) in [
            ("127.0.0.1", true),
            ("127.0.0.0/8, unix", true),
            ("192.0.2.7, unix", false),
            ("none", false),
        ] {
            let tier = Tier::with(io, |config| config.trusted_peers = list.parse().unwrap());
            assert_eq!(believed(&tier, &claim()), (expected, expected), "{list}");
        }
    });
}

#[test]
fn a_peer_on_a_unix_socket_is_believed_if_listed() {
    on_each_driver(|io| {
        let directory = tempfile::tempdir().unwrap();
        for (index, (list, expected)) in [("unix", true), ("127.0.0.1", false)].iter().enumerate() {
            let path = directory.path().join(index.to_string());
            let tier = Tier::with(io, |config| {
                config.listeners = vec![unix(Protocol::Ajp, &path)];
                config.trusted_peers = list.parse().unwrap();
            });
            assert_eq!(believed(&tier, &claim()), (*expected, *expected), "{list}");
        }
    });
}

#[test]
fn whoever_proved_the_secret_is_believed() {
    on_each_driver(|io| {
        let tier = Tier::with(io, |config| {
            config.secret = Secret::new("s");
            config.trusted_peers = "none".parse().unwrap();
        });
        let claim = claim().attribute(attribute(0x0c, "s"));
        assert_eq!(believed(&tier, &claim), (true, true));
    });
}

#[test]
fn an_application_that_authenticates_is_told_of_tls_and_not_of_users() {
    on_each_driver(|io| {
        let tier = Tier::with(io, |config| config.tomcat_authentication = true);
        assert_eq!(believed(&tier, &claim()), (false, true));
    });
}

#[test]
fn decoded_paths_are_escaped_once() {
    on_each_driver(|io| {
        let seen = |uri: UriForm, path: &[u8]| {
            let tier = Tier::with(io, |config| config.uri = uri);
            let mut wire = tier.packets();
            let echo = [b"/echo;", path].concat();
            wire.send(&forward().uri(text(&echo)).field(coded(8, "0")).packet());
            let response = wire.response();
            let body = String::from_utf8(response.body).unwrap();
            let line = body.lines().next().unwrap_or_default().to_owned();
            (response.status, line)
        };
        let served = |path: &str| (200, format!("GET /echo;{path} HTTP/1.1"));
        let decoded = |path: &[u8]| seen(UriForm::Decoded, path);
        assert_eq!(decoded(b"a=b c"), served("a=b%20c"));
        assert_eq!(decoded(b"100%zz?x#y"), served("100%25zz%3Fx%23y"));
        assert_eq!(decoded(b"%2e%2e"), served("%252e%252e"));
        assert_eq!(decoded("caf\u{e9}\\".as_bytes()), served("caf%C3%A9%5C"));
        assert_eq!(decoded(b"a\r\nb").0, 400);
        let encoded = |path: &[u8]| seen(UriForm::Encoded, path);
        assert_eq!(encoded(b"%2e%2e"), served("%2e%2e"));
        assert_eq!(encoded(b"100%zz").0, 400);
    });
}

#[test]
fn bare_bodies_have_no_count() {
    on_each_driver(|io| {
        let tier = Tier::with(io, |config| config.bare_body = true);
        let mut wire = tier.packets();
        let post = |length: usize| {
            let request = forward().method(4).uri(text("/echo"));
            request.field(coded(8, length.to_string())).packet()
        };
        wire.send(&[post(5), to_container(b"hello")].concat());
        let response = wire.response();
        assert!(response.body.ends_with(b"hello"));
        // What lighttpd sends behind every request, and the largest packet it sends.
        wire.send(&to_container(&[]));
        let large = vec![b'x'; 8188];
        wire.send(&[post(large.len() + 2), to_container(&large)].concat());
        let response = wire.response_answering(&to_container(b"yz"));
        assert!(response.body.ends_with(&[&large[..], b"yz"].concat()));
        assert_eq!((response.asks, response.reuse), (1, 1));
    });
}

#[test]
fn a_body_that_is_too_long_is_refused_before_it_is_served() {
    on_each_driver(|io| {
        let tier = limited(io);
        let mut client = tier.http();
        client.send(&upload("/echo", 5)).unwrap();
        assert_eq!(client.ask(b"hello").unwrap().status, 200);
        let refusal = client.ask(upload("/echo", 6)).unwrap();
        assert_eq!(
            (refusal.status, refusal.header("connection")),
            (413, Some("close"))
        );
        let mut wire = tier.packets();
        wire.send(&forward().method(4).field(coded(8, "6")).packet());
        let refusal = wire.response();
        assert_eq!((refusal.status, refusal.reuse), (413, 0));
        assert_eq!(wire.rest(), b"");
        assert_eq!(tier.running.counters().requests, 1);
        tier.wait_for_refused("body-too-large", 2);
    });
}

#[test]
fn a_body_that_turns_out_too_long_is_cut_off() {
    on_each_driver(|io| {
        let tier = limited(io);
        let mut client = tier.http();
        let head = b"POST /sink HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        client.send(head).unwrap();
        assert_eq!(client.ask(b"5\r\nhello\r\n1\r\n!\r\n").unwrap().status, 413);
        let mut wire = tier.packets();
        let chunked = field("transfer-encoding", "chunked");
        wire.send(
            &forward()
                .method(4)
                .uri(text("/sink"))
                .field(chunked)
                .packet(),
        );
        assert_eq!(wire.packet().map(|packet| packet[0]), Some(GET_BODY_CHUNK));
        wire.send(&data(b"hello!"));
        let refusal = wire.response();
        assert_eq!((refusal.status, refusal.reuse), (413, 0));
        tier.wait_for_refused("body-too-large", 2);
    });
}

fn limited(io: Model) -> Tier {
    Tier::with(io, |config| config.max_post_size = NonZeroU64::new(5))
}

fn upload(path: &str, length: u64) -> Vec<u8> {
    format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n").into_bytes()
}

#[test]
fn confidential_paths_are_redirected_to_tls() {
    on_each_driver(|io| {
        let tier = Tier::with(io, |config| {
            config.confidential = "/snoop, /admin/*".parse().unwrap();
            config.redirect_port = NonZeroU16::new(8443).unwrap();
        });
        let mut client = tier.http();
        let answer = client
            .ask(b"GET /%73noop?q=1 HTTP/1.1\r\nHost: A.example:8080\r\n\r\n")
            .unwrap();
        let location = answer.header("location");
        assert_eq!(answer.status, 302);
        assert_eq!(location, Some("https://a.example:8443/%73noop?q=1"));
        // A body that nobody wants does not cost the connection.
        client.send(&upload("/admin/x", 5)).unwrap();
        assert_eq!(client.ask(b"hello").unwrap().status, 302);
        assert_eq!(client.ask(get("/")).unwrap().status, 200);
        assert_eq!(tier.running.counters().requests, 1);
        let mut wire = tier.packets();
        wire.send(&forward().uri(text("/snoop")).packet());
        let answer = wire.response();
        assert_eq!((answer.status, answer.reuse), (302, 1));
        let place = text("https://localhost:8443/snoop");
        let mut head = answer.packets[0].windows(place.len());
        assert!(head.any(|window| window == place));
        wire.send(&claim().packet());
        assert_eq!(wire.response().status, 200);
    });
}

#[test]
fn nobody_is_redirected_to_a_host_that_is_none() {
    on_each_driver(|io| {
        let tier = Tier::with(io, |config| config.confidential = "/".parse().unwrap());
        let mut wire = tier.packets();
        let request = Forward {
            server_name: text("a/b@evil"),
            fields: Vec::new(),
            ..forward()
        };
        wire.send(&request.packet());
        assert_eq!(wire.response().status, 403);
    });
}

#[test]
fn socket_files_have_the_mode_asked_for() {
    on_each_driver(|io| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ajp");
        let tier = Tier::with(io, |config| {
            config.listeners = vec![unix(Protocol::Ajp, &path)];
            config.unix_socket_mode = "0600".parse().unwrap();
        });
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(tier.ajp().get("/").status, 200);
    });
}

const USER: [&str; 2] = ["\"user\": \"mary\"", "\"auth_type\": \"BASIC\""];
const TLS: [&str; 3] = [
    "\"scheme\": \"https\"",
    "\"secure\": true",
    "\"tls_cipher\": \"TLS_AES_128_GCM_SHA256\"",
];
