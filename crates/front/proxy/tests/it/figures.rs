//! What the admin API tells of requests: rates, times, reasons of failures, sessions, and what takes so
//! long at this moment.

use catamaran_proxy::config::{AdminConfig, Protocol};
use catamaran_testkit::{HttpClient, Peer, Script};
use serde_json::Value;

use crate::health::until;
use crate::operate::{read, site};
use crate::sticky::{ask, named};
use crate::{Front, backend, config, get, loopback, start, tcp, to, wait_for_reason};

fn status(running: &Front) -> Value {
    read(running, "/api/v1/status").0
}

fn backend_of<'s>(status: &'s Value, name: &str) -> &'s Value {
    let backends = status["upstreams"][0]["backends"].as_array().unwrap();
    backends.iter().find(|it| it["name"] == name).unwrap()
}

#[test]
fn what_came_of_a_backends_requests_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let (good, closing) = (
        backend("good"),
        Peer::start(Script::new().expect_until(b"\r\n\r\n")),
    );
    let backends = vec![named("good", to(&good)), named("bad", to(&closing))];
    let mut config = site(directory.path(), backends);
    config.upstreams[0].retries = 0;
    let running = start(config).unwrap();
    let own = |route: &str| format!("Cookie: JSESSIONID=1.{route}\r\n");
    for _ in 0..3 {
        assert_eq!(ask(&running, "/", &own("good")).status, 200);
    }
    assert_eq!(ask(&running, "/x", &own("bad")).status, 502);
    until("three answers and a failure to be counted", || {
        let now = running.counters();
        (now.responses[2] == 3 && now.responses[5] == 1).then_some(())
    });
    // What became of a session is counted after the response, and rates need two samples.
    let now = until("sessions and a second sample", || {
        let now = status(&running);
        let counted = now["upstreams"][0]["sticky_outcomes"]["kept"] == 4;
        let sampled = backend_of(&now, "good")["rates"].is_object();
        (counted && sampled).then_some(now)
    });
    let good = backend_of(&now, "good");
    assert_eq!(good["requests"], 3);
    assert_eq!(good["latency"]["count"], 3);
    let (median, p99) = (&good["latency"]["p50_ms"], &good["latency"]["p99_ms"]);
    assert!(
        median.as_f64() <= p99.as_f64() && median.as_f64() > Some(0.0),
        "{good}"
    );
    assert_eq!(good["sticky"]["kept"], 3);
    assert!(good["bytes"]["sent"].as_u64() > Some(100), "{good}");
    assert_eq!(
        (&good["condition"], &good["state"]),
        (&"up".into(), &"up".into())
    );
    assert!(good["last_failure"].is_null() && good["errors"].as_object().unwrap().is_empty());

    let bad = backend_of(&now, "bad");
    assert_eq!(bad["requests"], 1);
    assert!(bad["latency"].is_null(), "nothing was answered");
    let failure = &bad["last_failure"];
    assert_eq!(failure["stage"], "sent");
    let reason = format!("backend:{}", failure["token"].as_str().unwrap());
    assert_eq!(bad["errors"][&reason]["total"], 1, "{bad}");
    assert_eq!(bad["errors"][&reason]["minute"], 1, "{bad}");
    assert_eq!(failure["request"].as_str().unwrap().len(), 16);
    let (events, _) = read(&running, "/api/v1/events");
    let request = format!("(request {})", failure["request"].as_str().unwrap());
    assert!(events.to_string().contains(&request), "{events}");

    let upstream = &now["upstreams"][0];
    assert_eq!(
        (&upstream["policy"], &upstream["panic"]),
        (&"round-robin".into(), &false.into())
    );
    assert_eq!(upstream["sticky_outcomes"]["kept"], 4);
    assert!(upstream["retry_budget"]["left"].as_u64() <= upstream["retry_budget"]["max"].as_u64());
}

/// A cookie that is too long for AJP, and a client that leaves, say nothing of a backend.
#[test]
fn what_clients_cause_is_no_failure_of_a_backend() {
    let directory = tempfile::tempdir().unwrap();
    let silent = Peer::start(Script::new().expect_packet().stall());
    let mut backend = named("ajp", to(&silent));
    backend.protocol = Protocol::Ajp;
    let running = start(site(directory.path(), vec![backend])).unwrap();
    let cookie = format!("Cookie: {}\r\n", "c".repeat(8150));
    assert_eq!(ask(&running, "/", &cookie).status, 431);
    let mut leaving = HttpClient::connect(tcp(&running, 0)).unwrap();
    leaving.send(crate::REQUEST).unwrap();
    until("its request to be sent", || {
        (status(&running)["upstreams"][0]["backends"][0]["requests"] == 2).then_some(())
    });
    drop(leaving);
    for reason in ["client:ajp-head-too-large", "client:gone"] {
        wait_for_reason(&running, reason);
    }
    let now = status(&running);
    let told = backend_of(&now, "ajp");
    assert_eq!(told["requests"], 2);
    assert!(told["errors"].as_object().unwrap().is_empty(), "{told}");
}

#[test]
fn the_slowest_requests_in_flight_are_shown_without_secrets() {
    let directory = tempfile::tempdir().unwrap();
    let silent = Peer::start(Script::new().expect_until(b"\r\n\r\n").stall());
    let running = start(site(directory.path(), vec![named("slow", to(&silent))])).unwrap();
    let ask = |head: &str| {
        let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
        client.send(head.as_bytes()).unwrap();
        client
    };
    let seen = |path: &str, phase: &str| {
        until("the request to be seen", || {
            let now = status(&running);
            let all = now["in_flight"]["slowest"].as_array().unwrap();
            let is_it = |it: &&Value| it["path"] == path && it["phase"] == phase;
            all.iter().find(is_it).cloned()
        })
    };
    let target = "/first;jsessionid=SECRET.slow?password=SECRET";
    let first = ask(&format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
    let waiting = seen("/first", "waiting");
    assert_eq!(waiting["upstream"], "app");
    assert_eq!(waiting["backend"], "slow");
    // A request whose body does not come.
    let second = ask("POST /second HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nxx");
    assert_eq!(seen("/second", "sending")["method"], "POST");

    let now = status(&running);
    assert_eq!(now["in_flight"]["count"], 2);
    let slowest = now["in_flight"]["slowest"].as_array().unwrap();
    let ages = slowest.iter().map(|it| it["age_ms"].as_u64().unwrap());
    assert!(ages.rev().is_sorted(), "{slowest:?}");
    assert!(!now.to_string().contains("SECRET"), "{now}");
    drop((first, second));
    until("nothing to be in flight", || {
        (status(&running)["in_flight"]["count"] == 0).then_some(())
    });
}

#[test]
fn a_probe_may_be_asked_for_and_its_result_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let peer = backend("a");
    let mut config = config(&[loopback()], vec![named("a", to(&peer))]);
    let socket = catamaran_proxy::config::ListenAddress::Unix(directory.path().join("admin.sock"));
    config.admin = Some(AdminConfig::new(vec![socket]));
    let running = start(config).unwrap();
    assert_eq!(get(tcp(&running, 0)).status, 200);
    assert!(backend_of(&status(&running), "a")["last_probe"].is_null());
    let path = "/api/v1/upstreams/app/backends/a/probe";
    let asked = crate::operate::write(&running, "POST", path, "", "");
    assert_eq!(asked.status, 200);
    let asked: Value = serde_json::from_str(&asked.text()).unwrap();
    assert_eq!(
        (&asked["probing"], &asked["number"]),
        (&false.into(), &1.into())
    );
    let probe = backend_of(&status(&running), "a")["last_probe"].clone();
    assert_eq!(probe, asked["probe"]);
    assert_eq!(
        (&probe["answered"], &probe["found"], &probe["kind"]),
        (&true.into(), &"connected".into(), &"connect".into())
    );
    let unproved = probe["unproved"].as_str().unwrap();
    assert!(unproved.contains("kind = \"request\""), "{unproved}");
}
