//! Tests each defence with a request that it must stop and one that it must let through.

use std::net::SocketAddr;

use bytes::BytesMut;
use catamaran_http1::{Limits, Server, ServerEvent};

use super::*;
use crate::config::Secret;

fn head(text: &str) -> Box<RequestHead> {
    let mut input = BytesMut::from(text.as_bytes());
    match Server::new(Limits::request()).receive(&mut input) {
        Ok(Some(ServerEvent::Head(head))) => head,
        other => panic!("{text}: {other:?}"),
    }
}

fn tcp(text: &str) -> (BoundAddress, Peer) {
    let bound: SocketAddr = text.parse().expect("an address");
    let peer = ([192, 0, 2, 7], 5000).into();
    (BoundAddress::Tcp(bound), Peer::Tcp(peer))
}

/// The token of the refusal of a request to a listener without a sign-on, or `ok`.
fn decide(config: &AdminConfig, at: &(BoundAddress, Peer), request: &str) -> String {
    decide_for(config, at, &Caller::NotAsked, request)
}

/// The token of the refusal of a request, or `ok`.
fn decide_for(
    config: &AdminConfig,
    (bound, peer): &(BoundAddress, Peer),
    caller: &Caller,
    request: &str,
) -> String {
    let head = head(request);
    let named = check_names(config, bound, *peer, &head);
    match named.and_then(|()| check(config, bound, *peer, caller, &head)) {
        Ok(()) => "ok".to_owned(),
        Err(reply) => reply.token(),
    }
}

fn config(token: bool) -> AdminConfig {
    AdminConfig {
        token: token.then(|| Secret::new(TOKEN.to_owned())),
        hosts: vec!["front.example".to_owned()],
        ..AdminConfig::new(Vec::new())
    }
}

fn get(host: &str, fields: &str) -> String {
    format!("GET /api/v1/status HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n")
}

fn patch(host: &str, fields: &str) -> String {
    let common = "Content-Type: application/json; charset=utf-8\r\nContent-Length: 2\r\n";
    format!("PATCH /api/v1/upstreams/u HTTP/1.1\r\nHost: {host}\r\n{common}{fields}\r\n{{}}")
}

fn bearer(token: &str) -> String {
    format!("Authorization: bearer {token}\r\n")
}

#[test]
fn who_has_signed_on_may_do_what_the_token_allows() {
    let config = config(true);
    let (local, far) = (tcp("127.0.0.1:9090"), tcp("10.0.0.1:9090"));
    let page = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let foreign = "Origin: https://evil.example\r\n";
    for user in [Some("ann".to_owned()), None] {
        let caller = Caller::SignedOn(user);
        for (at, request, said) in [
            (&local, page, "ok"),
            (&far, &get("10.0.0.1", ""), "ok"),
            (&far, &patch("10.0.0.1", ""), "ok"),
            (&far, &patch("10.0.0.1", foreign), "origin"),
            (&far, &get("evil.example", ""), "host"),
        ] {
            let decided = decide_for(&config, at, &caller, request);
            assert_eq!(decided, said, "{caller:?} {request}");
        }
    }
}

#[test]
fn a_host_that_is_not_ours_is_refused() {
    let (config, local) = (config(false), tcp("127.0.0.1:9090"));
    for (host, said) in [
        ("127.0.0.1:9090", "ok"),
        ("127.8.8.8", "ok"),
        ("localhost:1", "ok"),
        ("LOCALHOST", "ok"),
        ("[::1]:9090", "ok"),
        ("front.example:9090", "ok"),
        ("evil.example", "host"),
        ("127.0.0.1.evil.example", "host"),
        ("localhost.evil.example", "host"),
        ("10.0.0.1", "host"),
    ] {
        assert_eq!(decide(&config, &local, &get(host, "")), said, "{host}");
    }
    let any = tcp("0.0.0.0:9090");
    let config = self::config(true);
    let with_token = bearer(TOKEN);
    for (host, said) in [("10.0.0.1", "ok"), ("evil.example", "host")] {
        assert_eq!(
            decide(&config, &any, &get(host, &with_token)),
            said,
            "{host}"
        );
    }
}

#[test]
fn values_are_for_the_token_the_own_user_and_root() {
    const OWN: u32 = 990;
    let (_, remote) = tcp("127.0.0.1:9090");
    let sees = |config: &AdminConfig, peer: Peer, fields: &str| {
        let request = Request {
            head: head(&get("localhost", fields)),
            body: Vec::new(),
            peer,
            caller: Caller::NotAsked,
        };
        sees_values(config, &request, OWN)
    };
    let right = bearer(TOKEN);
    for (has_token, peer, fields, expected) in [
        (true, remote, "", false),
        (true, remote, &right[..], true),
        (
            true,
            remote,
            &bearer("0123456789abcdef0123456789abcdeX"),
            false,
        ),
        (false, remote, "", false),
        (false, remote, &right, false),
        (true, Peer::Unix(Some(0)), "", true),
        (true, Peer::Unix(Some(OWN)), "", true),
        (true, Peer::Unix(Some(1000)), "", false),
        (true, Peer::Unix(None), "", false),
    ] {
        assert_eq!(
            sees(&config(has_token), peer, fields),
            expected,
            "{peer} {fields}"
        );
    }
}

/// Over TCP, keys of a cache need the token, since they name URLs of clients; however the path is
/// written.
#[test]
fn keys_of_a_cache_are_guarded_as_writes_are() {
    let local = tcp("127.0.0.1:9090");
    let right = bearer(TOKEN);
    for path in ["caches/pages/keys", "caches/p/%6beys", "c%61ches/p/keys"] {
        let ask = |fields: &str| {
            format!("GET /api/v1/{path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n")
        };
        assert_eq!(decide(&config(true), &local, &ask("")), "token", "{path}");
        assert_eq!(decide(&config(true), &local, &ask(&right)), "ok", "{path}");
        assert_eq!(
            decide(&config(false), &local, &ask("")),
            "no-token",
            "{path}"
        );
    }
    let all = "GET /api/v1/caches HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert_eq!(decide(&config(true), &local, all), "ok");
}

#[test]
fn the_token_guards_writes_and_all_that_others_can_reach() {
    let (local, open) = (tcp("127.0.0.1:9090"), tcp("10.0.0.1:9090"));
    let (with, without) = (config(true), config(false));
    let (right, wrong) = (bearer(TOKEN), bearer("0123456789abcdef0123456789abcdeX"));
    let longer = bearer(&format!("{TOKEN}0"));
    let rows = [
        (&without, &local, "", "ok", "no-token"),
        (&without, &open, "", "no-token", "no-token"),
        (&without, &open, &right[..], "no-token", "no-token"),
        (&with, &local, "", "ok", "token"),
        (&with, &open, "", "token", "token"),
        (&with, &local, &right, "ok", "ok"),
        (&with, &open, &right, "ok", "ok"),
        (&with, &local, &wrong, "token", "token"),
        (&with, &open, &longer, "token", "token"),
        (
            &with,
            &open,
            "Authorization: Basic eDp5\r\n",
            "token",
            "token",
        ),
        (&with, &open, "Authorization: x\r\n", "token", "token"),
    ];
    for (config, address, fields, read, write) in rows {
        let host = if *address == local {
            "127.0.0.1"
        } else {
            "10.0.0.1"
        };
        assert_eq!(
            decide(config, address, &get(host, fields)),
            read,
            "{fields}"
        );
        assert_eq!(
            decide(config, address, &patch(host, fields)),
            write,
            "{fields}"
        );
    }
}

#[test]
fn what_a_foreign_page_can_send_is_refused() {
    let (config, local) = (config(true), tcp("127.0.0.1:9090"));
    let own = "127.0.0.1:9090";
    let ask = |fields: &str| decide(&config, &local, &patch(own, &(bearer(TOKEN) + fields)));
    for (origin, said) in [
        ("http://127.0.0.1:9090", "ok"),
        ("https://127.0.0.1:9090", "ok"),
        ("http://127.0.0.1:9091", "origin"),
        ("http://evil.example", "origin"),
        ("null", "origin"),
        ("", "origin"),
    ] {
        assert_eq!(ask(&format!("Origin: {origin}\r\n")), said, "{origin}");
    }
    assert_eq!(ask(""), "ok", "programs send none");
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonp",
        "",
    ] {
        let token = bearer(TOKEN);
        let request = format!(
            "POST /x HTTP/1.1\r\nHost: {own}\r\n{token}Content-Type: {kind}\r\nContent-Length: 2\r\n\r\n{{}}"
        );
        assert_eq!(decide(&config, &local, &request), "content-type", "{kind}");
    }
}

#[test]
fn the_unix_socket_needs_neither_and_heeds_read_only() {
    let bound = BoundAddress::Unix("/run/admin.sock".into());
    let door = (bound, Peer::Unix(Some(0)));
    let mut config = config(true);
    assert_eq!(decide(&config, &door, &get("localhost", "")), "ok");
    assert_eq!(decide(&config, &door, &patch("front.example", "")), "ok");
    config.read_only = true;
    assert_eq!(decide(&config, &door, &get("localhost", "")), "ok");
    assert_eq!(decide(&config, &door, &patch("localhost", "")), "read-only");
}

/// `ssh -L 9090:/run/catamaran/admin.sock` brings a browser here, and whatever page it has open.
#[test]
fn a_forwarded_unix_socket_is_not_reached_by_rebinding() {
    let bound = BoundAddress::Unix("/run/admin.sock".into());
    let door = (bound, Peer::Unix(Some(0)));
    let config = config(false);
    for (host, said) in [
        ("localhost:9090", "ok"),
        ("127.0.0.1:9090", "ok"),
        ("evil.example:9090", "host"),
        ("10.0.0.1", "host"),
    ] {
        let origin = format!("Origin: http://{host}\r\n");
        assert_eq!(decide(&config, &door, &get(host, "")), said, "{host}");
        assert_eq!(
            decide(&config, &door, &patch(host, &origin)),
            said,
            "{host}"
        );
    }
}

#[test]
fn the_files_of_the_page_need_no_token_and_hold_nothing() {
    let (config, open) = (config(true), tcp("10.0.0.1:9090"));
    let file = |method: &str, path: &str, host: &str| {
        let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        decide(&config, &open, &request)
    };
    for path in ["/", "/page.css", "/page.js"] {
        assert_eq!(file("GET", path, "10.0.0.1"), "ok", "{path}");
        assert_eq!(file("POST", path, "10.0.0.1"), "token", "{path}");
        assert_eq!(file("GET", path, "evil.example"), "host", "{path}");
    }
    assert_eq!(file("GET", "/page.html", "10.0.0.1"), "token");
}

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
