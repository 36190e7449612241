//! The built-in application behind the web servers that people have: Apache httpd with
//! mod_proxy_ajp and with mod_jk, and nginx over HTTP/1.1.

use std::net::SocketAddr;

use catamaran_e2e::{Httpd, Nginx, catamaran};
use catamaran_testkit::{HttpClient, Pattern, Process};

/// The application, with the addresses of AJP and of HTTP/1.1.
fn application() -> (Process, SocketAddr, SocketAddr) {
    let arguments = [
        "app",
        "--ajp",
        "127.0.0.1:0",
        "--http",
        "127.0.0.1:0",
        "--io",
        "epoll",
    ];
    let process = catamaran(&arguments).unwrap();
    let address = |scheme: &str| {
        let wanted = format!("listening on {scheme}://");
        process
            .wait_for_line(&wanted, |line| {
                line.split_once(&wanted)?
                    .1
                    .split_whitespace()
                    .next()?
                    .parse()
                    .ok()
            })
            .unwrap()
    };
    let (ajp, http) = (address("ajp"), address("http"));
    (process, ajp, http)
}

#[test]
fn mod_proxy_ajp_is_served() {
    let (_process, ajp, _) = application();
    exchange_bodies(Httpd::with_mod_proxy_ajp(ajp).unwrap().address());
}

#[test]
fn mod_jk_is_served() {
    let (_process, ajp, _) = application();
    exchange_bodies(Httpd::with_mod_jk(ajp).unwrap().address());
}

#[test]
fn nginx_is_served() {
    let (_process, _, http) = application();
    exchange_bodies(Nginx::to(http).unwrap().address());
}

/// Bodies of awkward lengths both ways, on one connection to `server`.
fn exchange_bodies(server: SocketAddr) {
    let mut client = HttpClient::connect(server).unwrap();
    for length in [0, 1, 8183, 8184, 8185, 65_536, 1_000_000] {
        client
            .send(&head("GET", &format!("/bytes/{length}"), ""))
            .unwrap();
        let answer = client.receive().unwrap();
        assert!(answer.body == Pattern::bytes(length), "{length}");
    }
    for length in [0, 1, 8185, 8186, 8187, 65_536] {
        client
            .send(&head(
                "POST",
                "/echo",
                &format!("Content-Length: {length}\r\n"),
            ))
            .unwrap();
        client.send_from(&mut Pattern::new(length)).unwrap();
        echoed(&mut client, length);
        client
            .send(&head("POST", "/echo", "Transfer-Encoding: chunked\r\n"))
            .unwrap();
        client
            .send_chunked(&mut Pattern::new(length), 5000)
            .unwrap();
        echoed(&mut client, length);
    }
    client.send(&head("GET", "/status/404", "")).unwrap();
    assert_eq!(client.receive().unwrap().status, 404);
    client.send(&head("HEAD", "/", "")).unwrap();
    assert_eq!(client.receive_head().unwrap().status, 200);
    client.send(&head("GET", "/", "")).unwrap();
    assert_eq!(client.receive().unwrap().body.len(), 347);
}

fn head(method: &str, target: &str, fields: &str) -> Vec<u8> {
    format!("{method} {target} HTTP/1.1\r\nHost: app.example\r\n{fields}\r\n").into_bytes()
}

#[track_caller]
fn echoed(client: &mut HttpClient, length: u64) {
    let answer = client.receive().unwrap();
    assert_eq!(answer.status, 200, "{length}");
    assert!(answer.body.ends_with(&Pattern::bytes(length)), "{length}");
}
