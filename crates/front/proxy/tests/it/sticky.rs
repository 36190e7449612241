//! Sessions stay with their backend; what moves them, what must not, and the front's own cookie.

use catamaran_proxy::Outcome;
use catamaran_proxy::config::{BackendConfig, Config, StickyConfig, StickyCookie, UpstreamConfig};
use catamaran_testkit::{HttpClient, Peer, Response, Script, address};

use crate::health::until;
use crate::{Front, backend, config, loopback, start, tcp, to};

pub(crate) fn named(name: &str, backend: BackendConfig) -> BackendConfig {
    BackendConfig {
        name: name.to_owned(),
        jvm_route: name.to_owned(),
        ..backend
    }
}

/// A front that keeps sessions with these backends.
fn front(backends: Vec<BackendConfig>, change: impl FnOnce(&mut UpstreamConfig)) -> Front {
    let mut config: Config = config(&[loopback()], backends);
    config.upstreams[0].sticky = Some(StickyConfig::default());
    change(&mut config.upstreams[0]);
    start(config).unwrap()
}

fn sticky(upstream: &mut UpstreamConfig) -> &mut StickyConfig {
    upstream.sticky.get_or_insert_default()
}

pub(crate) fn ask(running: &Front, target: &str, fields: &str) -> Response {
    let mut client = HttpClient::connect(tcp(running, 0)).unwrap();
    let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    client.ask(request).unwrap()
}

/// Waits until so many exchanges had this outcome: they are counted once they are over.
fn counted(running: &Front, outcome: Outcome, expected: u64) {
    until("the outcomes", || {
        (running.counters().sticky[&outcome] == expected).then_some(())
    });
}

/// A backend that nobody listens at.
pub(crate) fn nobody(name: &str, like: &Peer) -> BackendConfig {
    let refusing = address::refusing().unwrap();
    let mut backend = named(name, to(like));
    backend.address = catamaran_proxy::config::Address::Tcp {
        host: refusing.ip().to_string(),
        port: refusing.port(),
    };
    backend
}

#[test]
fn each_session_stays_with_its_backend() {
    let peers = [backend("a"), backend("b"), backend("c")];
    let names = ["a", "b", "c"];
    let backends = names
        .iter()
        .zip(&peers)
        .map(|(name, peer)| named(name, to(peer)));
    let running = front(backends.collect(), |_| {});
    for _ in 0..5 {
        for name in names {
            let cookie = format!("Cookie: x=1; JSESSIONID=3F2A.{name}\r\n");
            assert_eq!(ask(&running, "/", &cookie).text(), name);
            let path = format!("/page;jsessionid=3F2A.{name}?q");
            assert_eq!(ask(&running, &path, "").text(), name);
            // The cookie is the one that Tomcat believes.
            let other = format!("/page;jsessionid=3F2A.{name}");
            assert_eq!(
                ask(&running, &other, "Cookie: JSESSIONID=9.b\r\n").text(),
                "b"
            );
        }
    }
    counted(&running, Outcome::Kept, 45);
    for (fields, outcome) in [
        ("", Outcome::New),
        ("Cookie: JSESSIONID=3F2A.z\r\n", Outcome::Unknown),
        ("Cookie: JSESSIONID=3F2A\r\n", Outcome::Ignored),
    ] {
        assert_eq!(ask(&running, "/", fields).status, 200);
        counted(&running, outcome, 1);
    }
}

#[test]
fn sessions_of_a_backend_that_is_gone_move_to_its_fallback_then_its_domain() {
    let (fallback, kin, other) = (backend("fallback"), backend("kin"), backend("other"));
    let mut gone = nobody("gone", &fallback);
    gone.fallback = Some("fallback".to_owned());
    let mut lone = nobody("lone", &fallback);
    lone.domain = Some("g".to_owned());
    let mut kin = named("kin", to(&kin));
    kin.domain = Some("g".to_owned());
    let backends = vec![
        gone,
        lone,
        named("fallback", to(&fallback)),
        kin,
        named("other", to(&other)),
    ];
    let running = front(backends, |_| {});
    for _ in 0..4 {
        for (route, served) in [("gone", "fallback"), ("lone", "kin"), ("g.new", "kin")] {
            let cookie = format!("Cookie: JSESSIONID=1.{route}\r\n");
            assert_eq!(ask(&running, "/", &cookie).text(), served, "{route}");
        }
    }
    counted(&running, Outcome::Moved, 12);
}

#[test]
fn force_answers_503_and_leaves_no_known_session_to_others() {
    let peer = backend("up");
    let backends = vec![nobody("gone", &peer), named("up", to(&peer))];
    let running = front(backends, |upstream| sticky(upstream).force = true);
    for _ in 0..3 {
        let held = ask(&running, "/", "Cookie: JSESSIONID=1.gone\r\n");
        assert_eq!(held.status, 503);
        assert!(held.header("retry-after").is_some());
        assert_eq!(
            ask(&running, "/", "Cookie: JSESSIONID=1.other\r\n").text(),
            "up"
        );
        assert_eq!(ask(&running, "/", "").text(), "up");
    }
    let reasons = running.counters().reasons;
    let token = |reason: &&catamaran_proxy::Reason| reason.token() == "sticky-backend-out";
    assert!(reasons.keys().any(|reason| token(&reason)), "{reasons:?}");
}

#[test]
fn a_higher_distance_serves_only_when_no_lower_one_can() {
    let (near, far) = (backend("near"), backend("far"));
    let standby = BackendConfig {
        distance: 1,
        ..named("far", to(&far))
    };
    let running = front(vec![standby.clone(), named("near", to(&near))], |_| {});
    for _ in 0..10 {
        assert_eq!(ask(&running, "/", "").text(), "near");
    }
    // Its own sessions stay with it.
    assert_eq!(
        ask(&running, "/", "Cookie: JSESSIONID=1.far\r\n").text(),
        "far"
    );
    drop(running);
    let running = front(vec![standby, nobody("near", &near)], |_| {});
    for _ in 0..10 {
        assert_eq!(ask(&running, "/", "").text(), "far");
    }
}

#[test]
fn hostile_cookies_are_read_to_a_limit() {
    let peers = [backend("a"), backend("b")];
    let backends = vec![named("a", to(&peers[0])), named("b", to(&peers[1]))];
    let running = front(backends, |_| {});
    let many = "JSESSIONID=1.z;".repeat(500);
    let answer = ask(&running, "/", &format!("Cookie: {many}\r\n"));
    assert_eq!(answer.status, 200);
    counted(&running, Outcome::Unknown, 1);
    let reasons = running.counters().reasons;
    let found = reasons
        .keys()
        .any(|reason| reason.token() == "sticky-values-max");
    assert!(found, "{reasons:?}");
}

/// A backend that answers with these fields and tells the cookies that it got.
fn telling(fields: &'static str) -> Peer {
    let answer = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 0\r\n\r\n");
    let turn = Script::new()
        .expect_until(b"\r\n\r\n")
        .send(answer.as_bytes());
    Peer::start(turn.clone().then(turn).stall())
}

#[test]
fn a_cookie_of_our_own_leads_back_and_is_not_passed_on() {
    let peers = [telling(""), telling("")];
    let backends = vec![named("a", to(&peers[0])), named("b", to(&peers[1]))];
    let running = front(backends, |upstream| {
        sticky(upstream).set_cookie = Some(StickyCookie::new("ROUTEID"));
    });
    let first = ask(&running, "/", "");
    let cookie = first.header("set-cookie").expect("a cookie").to_owned();
    let attributes = "; Path=/; HttpOnly; SameSite=Lax";
    let pair = cookie.strip_suffix(attributes).expect("attributes");
    assert!(pair.starts_with("ROUTEID="), "{cookie}");
    let again = ask(&running, "/", &format!("Cookie: x=1; {pair}\r\n"));
    assert_eq!(again.header("set-cookie"), None);
    counted(&running, Outcome::Kept, 1);
    let got: Vec<_> = peers.iter().filter(|peer| peer.connections() > 0).collect();
    let [served] = got[..] else {
        panic!("both requests were served by one backend");
    };
    let all = (0..served.connections()).flat_map(|index| served.received(index));
    let text = String::from_utf8(all.collect())
        .unwrap()
        .to_ascii_lowercase();
    assert!(
        text.contains("cookie: x=1\r\n") && !text.contains("routeid"),
        "{text}"
    );
}

#[test]
fn a_response_for_shared_caches_gets_no_cookie() {
    let peer = telling("Cache-Control: public, max-age=60\r\n");
    let running = front(vec![named("a", to(&peer))], |upstream| {
        sticky(upstream).set_cookie = Some(StickyCookie::new("ROUTEID"));
    });
    let answer = ask(&running, "/", "");
    assert_eq!((answer.status, answer.header("set-cookie")), (200, None));
}
