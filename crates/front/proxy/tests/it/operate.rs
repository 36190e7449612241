//! What operators change over the admin API, and what becomes of it: the Unix socket unless TCP is what
//! is tested.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use catamaran_proxy::config::{
    Activation, AdminConfig, BackendConfig, Config, FieldName, FieldRule, HiddenValue, KnownNames,
    ListenAddress, Protocol, RouteRules, Secret, StickyConfig, Template,
};
use catamaran_proxy::{BoundAddress, Inheritance, OperatorCommands, start_inheriting};
use catamaran_testkit::{Address, HttpClient, Response};
use serde_json::Value;

use crate::health::until;
use crate::probes::{Changing, asking, probed};
use crate::sticky::{ask, named};
use crate::{Front, backend, config, loopback, start, to};

/// A front that keeps the sessions of these backends, with an admin socket in the directory.
pub(crate) fn site(directory: &Path, backends: Vec<BackendConfig>) -> Config {
    let mut config = config(&[loopback()], backends);
    config.upstreams[0].sticky = Some(StickyConfig::default());
    let socket = ListenAddress::Unix(directory.join("admin.sock"));
    config.admin = Some(AdminConfig::new(vec![socket, loopback()]));
    config
}

fn admin(running: &Front) -> Address {
    match &running.admin_addresses()[0] {
        BoundAddress::Unix(path) => path.clone().into(),
        BoundAddress::Tcp(address) => (*address).into(),
    }
}

fn send(running: &Front, request: &str) -> Response {
    let mut client = HttpClient::connect(admin(running)).unwrap();
    client.ask(request).unwrap()
}

/// The page of metrics.
pub(crate) fn scrape(running: &Front) -> String {
    let answer = send(running, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(answer.status, 200);
    answer.text()
}

pub(crate) fn read(running: &Front, path: &str) -> (Value, String) {
    let answer = send(
        running,
        &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    );
    assert_eq!(answer.status, 200, "{}", answer.text());
    let etag = answer.header("etag").unwrap_or_default().to_owned();
    (json(&answer), etag)
}

#[test]
fn an_upgrade_can_be_asked_for_from_the_beginning_and_once_until_it_fails() {
    let directory = tempfile::tempdir().unwrap();
    let config = site(directory.path(), vec![to(&backend("app"))]);
    let commands = OperatorCommands {
        upgrade: Some(Box::new(|| true)),
        ..OperatorCommands::default()
    };
    let running = start_inheriting(config, Inheritance::default(), commands).unwrap();
    let running = Front(Some(running));
    let ask = || {
        let request = "POST /api/v1/upgrade HTTP/1.1\r\nHost: localhost\r\nIf-Match: *\r\n\
                       Content-Type: application/json\r\nContent-Length: 0\r\n\r\n";
        let answer = send(&running, request);
        (answer.status, json(&answer)["number"].as_u64())
    };
    assert_eq!(ask(), (202, Some(1)));
    assert_eq!(ask(), (409, None));
    running.note_upgrade();
    assert_eq!(ask(), (409, None));
    running.note_failed_upgrade("it ended");
    assert_eq!(ask(), (202, Some(2)));
}

/// What a variable said is not for every user of this machine; whoever runs the front can read it anyway.
#[test]
fn what_is_explained_has_no_value_of_a_variable_for_those_who_have_no_token() {
    let app = backend("app");
    let directory = tempfile::tempdir().unwrap();
    let mut config = site(directory.path(), vec![to(&app)]);
    let value = Template::parse("Basic hunter2", KnownNames::NONE).unwrap();
    let rules = RouteRules {
        request_headers: vec![FieldRule::Set(
            FieldName::from_static("Authorization"),
            value,
        )],
        ..RouteRules::default()
    };
    config.routes[0].rules = Some(Arc::new(rules));
    let admin = config.admin.as_mut().unwrap();
    admin.token = Some(Secret::new("0123456789abcdef0123456789abcdef".to_owned()));
    admin.hidden = vec![HiddenValue {
        value: Secret::new("hunter2".to_owned()),
        name: "${SECRET}".to_owned(),
    }];
    let running = start(config).unwrap();
    let explained = |address: Address, fields: &str| {
        let mut client = HttpClient::connect(address).unwrap();
        let target = "/api/v1/explain?url=http://a/";
        let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
        client.ask(request).unwrap().text()
    };
    let tcp: Address = match &running.admin_addresses()[1] {
        BoundAddress::Tcp(address) => (*address).into(),
        other => panic!("{other:?}"),
    };
    let anybody = explained(tcp.clone(), "");
    assert!(
        anybody.contains("Basic ${SECRET}") && !anybody.contains("hunter2"),
        "{anybody}"
    );
    let token = "Authorization: Bearer 0123456789abcdef0123456789abcdef\r\n";
    assert!(explained(tcp, token).contains("Basic hunter2"));
    // This test runs as the front does.
    assert!(explained(self::admin(&running), "").contains("Basic hunter2"));
}

fn json(answer: &Response) -> Value {
    serde_json::from_str(&answer.text()).unwrap()
}

pub(crate) fn write(running: &Front, method: &str, path: &str, etag: &str, body: &str) -> Response {
    let length = body.len();
    let condition = match etag {
        "" => String::new(),
        etag => format!("If-Match: {etag}\r\n"),
    };
    send(
        running,
        &format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{condition}\
             Content-Length: {length}\r\n\r\n{body}"
        ),
    )
}

fn change(running: &Front, backend: &str, body: &str) -> Response {
    let path = format!("{BACKENDS}/{backend}");
    write(running, "PATCH", &path, "*", body)
}

/// The token of a refusal.
fn refused(answer: &Response) -> (u16, String) {
    let token = json(answer)["token"].as_str().unwrap().to_owned();
    (answer.status, token)
}

fn settings(running: &Front, backend: &str) -> (String, u64) {
    let (value, _) = read(running, &format!("{BACKENDS}/{backend}"));
    let settings = &value["settings"];
    (
        settings["activation"].as_str().unwrap().to_owned(),
        settings["weight"].as_u64().unwrap(),
    )
}

#[test]
fn a_backend_drains_stops_and_returns_without_losing_its_connections() {
    let directory = tempfile::tempdir().unwrap();
    let (a, b) = (backend("a"), backend("b"));
    let backends = vec![named("a", to(&a)), named("b", to(&b))];
    let running = start(site(directory.path(), backends)).unwrap();
    let own = "Cookie: JSESSIONID=1.a\r\n";
    assert_eq!(ask(&running, "/", own).text(), "a");

    assert_eq!(
        change(&running, "a", r#"{"activation":"drain"}"#).status,
        200
    );
    for _ in 0..10 {
        assert_eq!(ask(&running, "/", "").text(), "b", "no new session");
        assert_eq!(ask(&running, "/", own).text(), "a", "its own stay");
    }
    assert_eq!(
        change(&running, "a", r#"{"activation":"stopped"}"#).status,
        200
    );
    assert_eq!(ask(&running, "/", own).text(), "b");
    // What was pooled is closed.
    until("connections to be closed", || {
        (running.backends()[0].counts.open == 0).then_some(())
    });

    assert_eq!(change(&running, "a", r#"{"activation":null}"#).status, 200);
    let served = || (ask(&running, "/", "").text() == "a").then_some(());
    until("new sessions to come again", served);
    let (value, _) = read(&running, &format!("{BACKENDS}/a"));
    assert!(value["override"].is_null(), "{value}");
    let (events, _) = read(&running, "/api/v1/events?after=1");
    let events = events["events"].as_array().unwrap();
    assert_eq!(events.len(), 2, "{events:?}");
    let text = events[0]["text"].as_str().unwrap();
    assert!(text.starts_with("activation=stopped, by uid "), "{text}");
    drop(running);
    assert!(!directory.path().join("admin.sock").exists());
}

#[test]
fn stopped_and_draining_backends_are_probed_on() {
    for activation in ["stopped", "drain"] {
        let directory = tempfile::tempdir().unwrap();
        let (a, b) = (Changing::new(Protocol::Http), backend("b"));
        let watched = probed(named("a", to(&a.peer)), asking(|_| {}), 1);
        let backends = vec![watched, named("b", to(&b))];
        let running = start(site(directory.path(), backends)).unwrap();
        let body = format!("{{\"activation\":\"{activation}\"}}");
        assert_eq!(change(&running, "a", &body).status, 200);
        let state = || read(&running, &format!("{BACKENDS}/a")).0["condition"].clone();
        a.answer(503);
        until("it to be out", || (state() == "out").then_some(()));
        let probe = || {
            let answer = write(&running, "POST", &format!("{BACKENDS}/a/probe"), "", "");
            json(&answer)["probe"].clone()
        };
        let wrong = probe();
        assert_eq!(wrong["answered"], false, "{wrong}");
        assert_eq!(wrong["found"], "status 503");
        assert_eq!(
            (&wrong["kind"], &wrong["path"]),
            (&"request".into(), &"/health?full".into())
        );
        a.answer(200);
        until("it to be up", || (state() == "up").then_some(()));
        assert_eq!(settings(&running, "a").0, activation);
        let right = probe();
        assert_eq!(right["answered"], true, "{right}");
        assert!(right["unproved"].is_null(), "{right}");
        assert!(right["number"].as_u64() > wrong["number"].as_u64());
    }
}

#[test]
fn a_drain_ends_beside_a_client_that_invents_session_ids() {
    let directory = tempfile::tempdir().unwrap();
    let peers = [backend("a"), backend("b")];
    let backends = vec![named("a", to(&peers[0])), named("b", to(&peers[1]))];
    let mut config = site(directory.path(), backends);
    let sticky = config.upstreams[0].sticky.as_mut().unwrap();
    sticky.session_timeout = Duration::from_millis(200);
    let running = start(config).unwrap();
    let visit = |id: &str| ask(&running, "/", &format!("Cookie: JSESSIONID={id}.a\r\n")).text();
    let status = || read(&running, &format!("{BACKENDS}/a")).0;
    let mut invented = 0;
    // At first each is believed: it may be older than this front.
    until("an invented id not to count", || {
        invented += 1;
        assert_eq!(visit(&format!("first{invented}")), "a");
        (status()["unknown_ids"].as_u64() > Some(0)).then_some(())
    });
    let drain = r#"{"activation":"drain","then":"stopped"}"#;
    let begun = change(&running, "a", drain);
    assert_eq!(begun.status, 200);
    let begun = json(&begun);
    assert!(
        begun["drain"]["deadline"].is_string(),
        "it has one in any case: {begun}"
    );
    until("the end of the drain", || {
        invented += 1;
        visit("constant");
        visit(&format!("then{invented}"));
        (settings(&running, "a").0 == "stopped").then_some(())
    });
}

#[test]
fn the_last_backend_is_not_taken_out_unless_forced() {
    let directory = tempfile::tempdir().unwrap();
    let peers = [backend("a"), backend("b")];
    let backends = vec![named("a", to(&peers[0])), named("b", to(&peers[1]))];
    let running = start(site(directory.path(), backends)).unwrap();
    let stopping = r#"{"activation":"stopped"}"#;
    assert_eq!(change(&running, "a", stopping).status, 200);
    let drain = r#"{"activation":"drain"}"#;
    let last = (409, "last-backend".to_owned());
    assert_eq!(refused(&change(&running, "b", drain)), last);
    assert_eq!(settings(&running, "b").0, "active");
    let ready = |running: &Front| {
        let request = "GET /readyz?upstream=app HTTP/1.1\r\nHost: localhost\r\n\r\n";
        send(running, request).status
    };
    assert_eq!(ready(&running), 200);
    let forced = r#"{"activation":"drain","force":true}"#;
    assert_eq!(change(&running, "b", forced).status, 200);
    assert_eq!(ready(&running), 503);
    assert_eq!(ask(&running, "/", "").status, 503);
    // Both at once, or neither.
    let both = r#"{"backends":{"a":{"activation":"active"},"b":{"weight":0}}}"#;
    let path = "/api/v1/upstreams/app";
    assert_eq!(write(&running, "PATCH", path, "*", both).status, 400);
    assert_eq!(settings(&running, "a").0, "stopped");
    let both = both.replace("\"weight\":0", "\"activation\":null,\"weight\":9");
    assert_eq!(write(&running, "PATCH", path, "*", &both).status, 200);
    assert_eq!(settings(&running, "a"), ("active".to_owned(), 1));
    assert_eq!(settings(&running, "b"), ("active".to_owned(), 9));
}

#[test]
fn who_has_not_seen_the_present_settings_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let peers = [backend("a"), backend("b")];
    let backends = vec![named("a/1 %", to(&peers[0])), named("b", to(&peers[1]))];
    let running = start(site(directory.path(), backends)).unwrap();
    let path = format!("{BACKENDS}/a%2F1%20%25");
    let (_, seen) = read(&running, &path);
    let patch = |etag: &str, body: &str| write(&running, "PATCH", &path, etag, body);
    assert_eq!(
        refused(&patch("", r#"{"weight":2}"#)),
        (428, "if-match".to_owned())
    );
    let changed = patch(&seen, r#"{"weight":2}"#);
    assert_eq!(changed.status, 200);
    let stale = patch(&seen, r#"{"weight":3}"#);
    assert_eq!(refused(&stale), (412, "stale".to_owned()));
    assert_eq!(stale.header("etag"), changed.header("etag"));
    assert_eq!(settings(&running, "a%2F1%20%25").1, 2);
    for (path, body, said) in [
        (&path[..], "[]", (400, "syntax")),
        (&path, "{\"weight\":\"2\"}", (400, "syntax")),
        (&format!("{BACKENDS}/nobody"), "{}", (404, "no-backend")),
        ("/api/v1/upstreams/x/backends/a", "{}", (404, "no-upstream")),
    ] {
        let answer = refused(&write(&running, "PATCH", path, "*", body));
        assert_eq!((answer.0, &answer.1[..]), said, "{path} {body}");
    }
    let large = format!("{{\"reason\":\"{}\"}}", "x".repeat(70_000));
    assert_eq!(
        refused(&patch("*", &large)),
        (413, "body-too-large".to_owned())
    );
    // A text that is hostile to a page stays a text.
    let reason = r#"{"weight":4,"reason":"</script><img src=x onerror=alert(1)>\u0000\n"}"#;
    assert_eq!(patch("*", reason).status, 200);
    let (value, _) = read(&running, &path);
    let said = value["override"]["reason"].as_str().unwrap();
    assert_eq!(said, "</script><img src=x onerror=alert(1)>\u{0}\n");
}

#[test]
fn a_reload_keeps_what_was_changed_unless_the_file_says_something_new() {
    let directory = tempfile::tempdir().unwrap();
    let peers = [backend("a"), backend("b"), backend("c")];
    let member = |name: &str, index: usize| named(name, to(&peers[index]));
    let backends = vec![member("a", 0), member("b", 1), member("c", 2)];
    let mut config = site(directory.path(), backends);
    let running = start(config.clone()).unwrap();
    for name in ["a", "b"] {
        let body = r#"{"activation":"drain","weight":7}"#;
        assert_eq!(change(&running, name, body).status, 200);
    }
    let generation = |running: &Front| read(running, "/api/v1/status").0["generation"].clone();
    let before = generation(&running);
    config.upstreams[0].backends[2].weight = 5;
    running.reload(config.clone()).unwrap();
    assert!(generation(&running).as_u64() > before.as_u64());
    assert_eq!(settings(&running, "a"), ("drain".to_owned(), 7));
    assert_eq!(settings(&running, "c"), ("active".to_owned(), 5));

    config.upstreams[0].backends[0].weight = 3;
    config.upstreams[0].backends[1].activation = Activation::Stopped;
    running.reload(config).unwrap();
    assert_eq!(settings(&running, "a"), ("drain".to_owned(), 3));
    assert_eq!(settings(&running, "b"), ("stopped".to_owned(), 7));
    let (events, _) = read(&running, "/api/v1/events");
    let dropped = "an operator's setting was dropped: the file's `weight` was changed";
    assert!(events.to_string().contains(dropped), "{events}");
    let reset = format!("{BACKENDS}/b/reset");
    assert_eq!(write(&running, "POST", &reset, "*", "").status, 200);
    assert_eq!(settings(&running, "b"), ("stopped".to_owned(), 1));
}

#[test]
fn a_restart_keeps_what_the_state_file_has() {
    let directory = tempfile::tempdir().unwrap();
    let peers = [backend("a"), backend("b")];
    let backends = vec![named("a", to(&peers[0])), named("b", to(&peers[1]))];
    let mut config = site(directory.path(), backends);
    let path = directory.path().join("state.json");
    config.admin.as_mut().unwrap().state_file = Some(path.clone());
    let running = start(config.clone()).unwrap();
    assert_eq!(
        change(&running, "a", r#"{"activation":"drain"}"#).status,
        200
    );
    drop(running);
    let running = start(config.clone()).unwrap();
    assert_eq!(settings(&running, "a").0, "drain");
    drop(running);
    // The file was changed while nobody ran.
    config.upstreams[0].backends[0].activation = Activation::Stopped;
    let running = start(config.clone()).unwrap();
    assert_eq!(settings(&running, "a").0, "stopped");
    drop(running);
    std::fs::write(&path, "{\"version\":1,").unwrap();
    let running = start(config).unwrap();
    assert_eq!(ask(&running, "/", "").text(), "b", "it serves all the same");
    let fails = |times: u8| {
        let metrics = scrape(&running);
        let line = format!("\ncatamaran_state_file_fails {times}\n");
        assert!(metrics.contains(&line), "{metrics}");
    };
    // It was written anew since, and what it said is lost all the same.
    fails(1);
    assert_eq!(change(&running, "b", r#"{"weight":2}"#).status, 200);
    fails(0);
    assert!(directory.path().join("state.json.corrupt").exists());
}

#[test]
fn over_tcp_nothing_is_changed_without_a_token() {
    let directory = tempfile::tempdir().unwrap();
    let peer = backend("a");
    let running = start(site(directory.path(), vec![named("a", to(&peer))])).unwrap();
    let BoundAddress::Tcp(address) = running.admin_addresses()[1].clone() else {
        panic!("a TCP address");
    };
    let ask = |text: String| {
        let mut client = HttpClient::connect(address).unwrap();
        client.ask(text).unwrap()
    };
    let status = ask(format!(
        "GET /api/v1/status HTTP/1.1\r\nHost: {address}\r\n\r\n"
    ));
    assert_eq!(status.status, 200);
    let policy = status.header("content-security-policy").unwrap();
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    assert_eq!(status.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(status.header("access-control-allow-origin"), None);
    let body = r#"{"weight":2}"#;
    let request = |host: &str| {
        format!(
            "PATCH {BACKENDS}/a HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
             If-Match: *\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    assert_eq!(
        refused(&ask(request(&address.to_string()))),
        (403, "no-token".to_owned())
    );
    assert_eq!(
        refused(&ask(request("rebound.example"))),
        (421, "host".to_owned())
    );
    assert_eq!(settings(&running, "a").1, 1);
}

const BACKENDS: &str = "/api/v1/upstreams/app/backends";
