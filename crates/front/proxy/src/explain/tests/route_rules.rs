//! What is shown of a route's rules for the requests that it forwards.

use std::time::Duration;

use super::*;
use crate::config::{HoldConfig, HostName, KnownNames, Template};

#[test]
fn the_host_and_the_limits_of_a_route_win_over_those_of_the_backend() {
    let mut config = config();
    let backend = &mut config.upstreams[0].backends[0];
    backend.host = SentHost::Named(HostName::new("of-backend").expect("a host"));
    backend.exchange_timeout = Some(Duration::from_secs(60));
    let sent = |config: &Config| {
        let asked = ask(config, "http://x.test/app", &["Cookie: JSESSIONID=1.a"]);
        let sent = asked.sent.expect("it is sent");
        let of = |all: &[(String, String)], name: &str| {
            let found = all.iter().find(|(its, _)| its == name);
            found.map(|(_, value)| value.clone())
        };
        let limits = ["exchange_timeout", "attempt_timeout"].map(|key| of(&sent.timeouts, key));
        let names = ["server_name", "server_port"].map(|key| of(&sent.attributes, key));
        (of(&sent.fields, "host"), names, limits)
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        sent(&config),
        (
            text("of-backend"),
            [text("of-backend"), text("80")],
            [text("1m"), None]
        )
    );
    config.routes[0].rules = Some(Arc::new(RouteRules {
        forward_host: HostName::new("of-route:81").map(Arc::new),
        exchange_timeout: Some(Duration::MAX),
        attempt_timeout: Some(Duration::from_secs(10)),
        ..RouteRules::default()
    }));
    assert_eq!(
        sent(&config),
        (
            text("of-route:81"),
            [text("of-route"), text("81")],
            [None, text("10s")]
        )
    );
}

#[test]
fn a_whole_path_takes_the_place_of_what_is_behind_the_prefix() {
    let mut config = config();
    let new_path = Template::parse_with("/closed", KnownNames::NONE, None).expect("a path");
    config.routes[0].rules = Some(Arc::new(RouteRules {
        new_path: Some(new_path),
        ..RouteRules::default()
    }));
    for (url, expected) in [
        ("/app/x/y?q=1", "/closed?q=1"),
        ("/app", "/closed"),
        ("/app/x;jsessionid=1.a", "/closed;jsessionid=1.a"),
    ] {
        let sent = ask(&config, url, &[]).sent.expect("it is sent");
        assert_eq!(sent.request, format!("GET {expected}"), "{url}");
    }
}

#[test]
fn a_wait_for_a_backend_and_a_missing_line_of_the_log_are_told() {
    let mut config = config();
    config.upstreams[1].hold = Some(HoldConfig {
        wait: Duration::from_secs(10),
        queue_max: 1,
    });
    config.routes[1].rules = Some(Arc::new(RouteRules {
        unlogged: true,
        ..RouteRules::default()
    }));
    let told = ask(&config, "http://shop.example.org/", &[]).then;
    for expected in [
        "while no backend takes new sessions, it waits for one, at most 10s",
        "it has no line in the access log",
    ] {
        assert!(told.iter().any(|it| it == expected), "{told:?}");
    }
    config.upstreams[1].backends.clear();
    let answer = ask(&config, "http://shop.example.org/", &[]).answer;
    let answer = answer.expect("an answer");
    assert_eq!((answer.status, &answer.reason[..]), (503, "hold-timeout"));
}
