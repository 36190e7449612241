//! Files of nginx with limits and shares, beside nginx: what is imported refuses the same requests, and shares them alike.

use std::net::SocketAddr;

use catamaran_e2e::App;
use catamaran_testkit::{Deadline, HttpClient, Peer, Script};

use crate::import_nginx::Pair;

/// So many requests for a path with these further fields.
type Requests = (&'static str, &'static str, usize);

/// A backend that answers each request with its name.
fn backend(name: &str) -> Peer {
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{name}");
    let script = Script::new()
        .expect_until(b"\r\n\r\n")
        .send(answer.as_bytes())
        .repeat(1000);
    Peer::start(script)
}

/// The statuses of requests, each on a connection of its own. A refusal of either server is 429.
fn statuses(server: SocketAddr, requests: &[Requests]) -> Vec<u16> {
    let mut found = Vec::new();
    for (path, fields, count) in requests {
        let host = if fields.contains("Host: ") {
            ""
        } else {
            "Host: www.example.org\r\n"
        };
        for _ in 0..*count {
            let mut client = HttpClient::connect(server).unwrap();
            let head = format!("GET {path} HTTP/1.1\r\n{host}{fields}\r\n");
            let status = client.ask(head).unwrap().status;
            found.push(if status == 503 { 429 } else { status });
        }
    }
    found
}

/// Both servers refuse the same of these requests, and some but not all.
fn check(outer: &str, servers: &str, requests: &[Requests]) {
    let app = backend("a");
    let conf = format!("{outer}\n{servers}").replace("@PASS@", "proxy_pass http://@BACKEND@;");
    let pair = Pair::start(&conf, app.tcp_address(), false);
    let there = statuses(pair.nginx, requests);
    let here = statuses(pair.front.address(), requests);
    assert_eq!(there, here, "{}\n{}", pair.said, pair.written());
    assert!(there.contains(&429) && there.contains(&200), "{there:?}");
}

#[test]
fn a_login_has_a_burst() {
    check(
        CLIENT,
        "server { listen @LISTEN@; server_name www.example.org;\n\
         location = /login { limit_req zone=client burst=4 nodelay; @PASS@ }\nlocation / { @PASS@ } }",
        &[("/login", "", 8), ("/", "", 4), ("/login", "", 1)],
    );
}

#[test]
fn a_limit_without_a_burst_passes_one() {
    check(
        CLIENT,
        "server { listen @LISTEN@; server_name www.example.org; location / { limit_req zone=client; @PASS@ } }",
        &[("/", "", 3), ("/other", "", 1)],
    );
}

#[test]
fn a_location_replaces_the_limits_of_its_server() {
    check(
        &format!("{CLIENT}\nlimit_req_zone $server_name zone=site:1m rate=1r/m;"),
        "server { listen @LISTEN@; server_name www.example.org; limit_req zone=client burst=2 nodelay;\n\
         location /a/ { @PASS@ }\nlocation /b/ { limit_req zone=site burst=3 nodelay; @PASS@ }\n\
         location /c/ { return 204; } }",
        &[
            ("/a/", "", 2),
            ("/c/", "", 4),
            ("/a/", "", 3),
            ("/b/", "", 6),
        ],
    );
}

#[test]
fn servers_share_the_zone_of_what_is_around_them() {
    check(
        &format!("{CLIENT}\nlimit_req zone=client burst=5 nodelay;"),
        "server { listen @LISTEN@; server_name www.example.org; location / { @PASS@ } }\n\
         server { listen @LISTEN@; server_name other.example.org; location / { @PASS@ } }",
        &[
            ("/", "", 3),
            ("/", "Host: other.example.org\r\n", 5),
            ("/", "", 1),
        ],
    );
}

#[test]
fn the_narrowest_of_two_limits_refuses() {
    check(
        &format!("{CLIENT}\nlimit_req_zone $http_x_key zone=key:1m rate=1r/m;"),
        "server { listen @LISTEN@; server_name www.example.org;\n\
         location / { limit_req zone=client burst=5 nodelay; limit_req zone=key burst=1 nodelay; @PASS@ } }",
        &[
            ("/", "X-Key: one\r\n", 4),
            ("/", "X-Key: two\r\n", 3),
            ("/", "X-Key: three\r\n", 4),
        ],
    );
}

#[test]
fn a_field_and_a_host_are_keys() {
    check(
        "limit_req_zone $http_x_api_key zone=keys:1m rate=1r/m;\nlimit_req_zone $host zone=hosts:1m rate=1r/m;",
        "server { listen @LISTEN@; server_name www.example.org other.example.org;\n\
         location /api/ { limit_req zone=keys burst=1 nodelay; @PASS@ }\n\
         location / { limit_req zone=hosts burst=2 nodelay; @PASS@ } }",
        &[
            ("/api/x", "X-Api-Key: a\r\n", 3),
            ("/api/x", "X-Api-Key: b\r\n", 3),
            ("/", "", 4),
            ("/", "Host: OTHER.example.org\r\n", 2),
            ("/", "Host: other.example.org:80\r\n", 2),
        ],
    );
}

#[test]
fn upgrades_count_as_other_requests_do() {
    check(
        &format!(
            "{CLIENT}\nmap $http_upgrade $connection_upgrade {{ default upgrade; '' close; }}"
        ),
        "server { listen @LISTEN@; server_name www.example.org;\n\
         location /ws/ { limit_req zone=client burst=3 nodelay; proxy_http_version 1.1;\n\
         proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade; @PASS@ }\n\
         location / { @PASS@ } }",
        &[
            ("/ws/x", "", 2),
            ("/ws/x", "Connection: Upgrade\r\nUpgrade: websocket\r\n", 3),
            ("/", "", 2),
            ("/ws/x", "", 1),
        ],
    );
}

#[test]
fn what_nginx_answers_503_is_refused_as_well() {
    check(
        "limit_req_zone $binary_remote_addr zone=client:1m rate=1r/m;\nlimit_req_log_level warn;",
        "server { listen @LISTEN@; server_name www.example.org; location / { limit_req zone=client burst=2 nodelay; @PASS@ } }",
        &[("/", "", 5)],
    );
}

#[test]
fn a_dry_run_refuses_nothing_there_and_here() {
    check(
        &format!("{CLIENT}\nlimit_req_zone $server_name zone=site:1m rate=1r/m;"),
        "server { listen @LISTEN@; server_name www.example.org;\n\
         location /dry/ { limit_req zone=client; limit_req_dry_run on; @PASS@ }\n\
         location / { limit_req zone=site burst=1 nodelay; @PASS@ } }",
        &[("/dry/", "", 4), ("/", "", 3)],
    );
}

#[test]
fn requests_at_the_same_time_have_a_number() {
    // It answers once it has the whole body.
    let app = App::start("epoll", &[]).unwrap();
    let address = app.http().to_string().parse().unwrap();
    let conf = "limit_conn_zone $binary_remote_addr zone=client:1m;\nlimit_conn_status 429;\n\
        server { listen @LISTEN@; server_name www.example.org;\n\
        location / { limit_conn client 1; proxy_pass http://@BACKEND@; } }";
    let pair = Pair::start(conf, address, false);
    for server in [pair.nginx, pair.front.address()] {
        let begun = "POST /echo HTTP/1.1\r\nHost: www.example.org\r\nContent-Length: 4\r\n\r\nab";
        let ask = || statuses(server, &[("/", "", 1)]);
        // The one that only asks may itself be first, so that the other is refused.
        let holds = || {
            let mut holding = HttpClient::connect(server).ok()?;
            holding.send(begun.as_bytes()).ok()?;
            let is_refused = ask() == [429];
            holding.send(b"cd").ok()?;
            let is_served = holding.receive().ok()?.status == 200;
            (is_refused && is_served).then_some(())
        };
        Deadline::default()
            .poll("one served, one refused", holds)
            .unwrap();
        let is_free = || (ask() == [200]).then_some(());
        Deadline::default()
            .poll("the place is free", is_free)
            .unwrap();
    }
}

#[test]
fn shares_of_clients_are_alike() {
    let (most, few) = (backend("a"), backend("b"));
    let conf = format!(
        "upstream most {{ server @BACKEND@; }}\nupstream few {{ server {}; }}\n\
         split_clients $arg_n $variant {{ 90% most; * few; }}\n\
         server {{ listen @LISTEN@; server_name www.example.org; location / {{ proxy_pass http://$variant; }} }}",
        few.tcp_address()
    );
    let pair = Pair::start(&conf, most.tcp_address(), false);
    for server in [pair.nginx, pair.front.address()] {
        let mut client = HttpClient::connect(server).unwrap();
        let mut counts = [0, 0];
        for number in 0..SHARED {
            let head = format!("GET /?n={number} HTTP/1.1\r\nHost: www.example.org\r\n\r\n");
            let answer = client.ask(head).unwrap();
            counts[usize::from(answer.text() == "b")] += 1;
            if answer.header("connection") == Some("close") {
                client = HttpClient::connect(server).unwrap();
            }
        }
        // Ten percent, within one.
        let few = SHARED / 10;
        assert!(
            (few - SHARED / 100..=few + SHARED / 100).contains(&counts[1]),
            "{counts:?}"
        );
    }
}

/// A rate that grants nothing further while a test runs.
const CLIENT: &str =
    "limit_req_zone $binary_remote_addr zone=client:1m rate=1r/m;\nlimit_req_status 429;";

const SHARED: usize = 2000;
