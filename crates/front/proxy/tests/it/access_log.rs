//! Which requests have a line in the access log.

use std::path::Path;
use std::sync::Arc;

use catamaran_proxy::config::{
    AccessLogTarget, LogCondition, RouteConfig, RouteRules, RouteTarget,
};
use catamaran_testkit::HttpClient;
use http::StatusCode;

use crate::{backend, config, loopback, start, tcp, to};

/// Asks for these paths of a front, and returns those that its log has, each with its status. `/quiet` has no line;
/// `/none` is answered 404.
fn logged(only: &[&str], paths: &[&str]) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("access.log");
    let peer = backend("four");
    let mut config = config(&[loopback()], vec![to(&peer)]);
    config.log.access = AccessLogTarget::File(path.clone());
    config.log.only = only
        .iter()
        .map(|text| LogCondition::parse(text).unwrap())
        .collect();
    let target = config.routes[0].target.clone();
    config.routes.push(RouteConfig {
        rules: Some(Arc::new(RouteRules {
            unlogged: true,
            body_max: Some(1),
            ..RouteRules::default()
        })),
        ..RouteConfig::new("/quiet", target)
    });
    let none = RouteTarget::Status(StatusCode::NOT_FOUND);
    config.routes.push(RouteConfig::new("/none", none));
    let running = start(config).unwrap();
    let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
    for path in paths {
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
        client.ask(request.as_bytes()).unwrap();
    }
    // Refused by a rule of the route: it has no line, either.
    client
        .ask(b"POST /quiet HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab")
        .unwrap();
    drop(running);
    lines(&path)
}

fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let told = |line: &str| {
        let (_, request) = line.split_once("\"GET ").unwrap();
        let (path, rest) = request.split_once(" HTTP/1.1\" ").unwrap();
        let (status, _) = rest.split_once(' ').unwrap();
        format!("{path} {status}")
    };
    text.lines().map(told).collect()
}

#[test]
fn a_route_may_keep_its_requests_out_of_the_log() {
    assert_eq!(
        logged(&[], &["/a", "/quiet", "/none", "/b"]),
        ["/a 200", "/none 404", "/b 200"]
    );
}

#[test]
fn only_exchanges_that_meet_a_condition_have_a_line() {
    let paths = ["/a", "/none", "/quiet"];
    assert_eq!(logged(&["status >= 400"], &paths), ["/none 404"]);
    let both = ["bytes == 4", "status == 404"];
    assert_eq!(logged(&both, &paths), ["/a 200", "/none 404"]);
    let none: [&str; 0] = [];
    assert_eq!(logged(&["duration >= 1h"], &paths), none);
}
