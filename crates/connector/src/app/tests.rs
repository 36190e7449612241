use catamaran_message::Fields;
use catamaran_message::name::LOCATION;
use http::Method;

use super::*;
use crate::config::Protocol;
use crate::handler::{Origin, Tls};

fn request(path: &str) -> Request {
    Request {
        method: Method::GET,
        version: Bytes::from_static(b"HTTP/1.1"),
        path: Bytes::copy_from_slice(path.as_bytes()),
        query: Some(Bytes::from_static(b"a=b")),
        headers: Fields::from_iter([(LOCATION, "x")]),
        body: BodyLength::Known(3),
        origin: Origin {
            protocol: Protocol::Http,
            remote_addr: None,
            remote_host: None,
            remote_port: None,
            local_addr: None,
            server_name: Bytes::from_static(b"a"),
            server_port: 80,
            secure: false,
            peer: None,
        },
        tls: Tls::default(),
        user: None,
        auth_type: None,
        route: None,
        attributes: Vec::new(),
    }
}

fn answer(path: &str) -> Response {
    App::new().handle(&request(path))
}

#[test]
fn the_page_has_347_bytes() {
    let Body::Full(page) = answer("/").body else {
        panic!("no page")
    };
    assert_eq!(page.len(), 347);
    assert!(matches!(answer("/;jsessionid=1.r").body, Body::Full(same) if same == page));
}

#[test]
fn numbers_are_digits_and_fit_64_bits() {
    let length = |path: &str| match answer(path).body {
        Body::Repeat { length, .. } => Some(length),
        _ => None,
    };
    assert_eq!(length("/bytes/0"), Some(0));
    assert_eq!(length("/bytes/18446744073709551615"), Some(u64::MAX));
    for path in [
        "/bytes/18446744073709551616",
        "/bytes/",
        "/bytes/+1",
        "/bytes/1x",
        "/delay/-1",
    ] {
        assert_eq!(answer(path).status, StatusCode::BAD_REQUEST, "{path}");
    }
}

#[test]
fn statuses_are_final_ones() {
    for (code, expected) in [
        (200, 200),
        (418, 418),
        (599, 599),
        (199, 400),
        (100, 400),
        (600, 400),
    ] {
        assert_eq!(answer(&format!("/status/{code}")).status.as_u16(), expected);
    }
}

#[test]
fn other_paths_are_not_found() {
    for path in [
        "/x",
        "/bytes/1/2",
        "/echo/x",
        "*",
        "/stream/1/2/3",
        "/bytesx",
        "/Snoop",
    ] {
        assert_eq!(answer(path).status, StatusCode::NOT_FOUND, "{path}");
    }
}

#[test]
fn the_bytes_are_those_of_the_test_pattern() {
    let App { pattern } = App::new();
    assert_eq!(pattern, catamaran_testkit::Pattern::bytes(PATTERN_BYTES));
}

#[test]
fn an_echo_begins_with_the_head() {
    let Body::Echo { prefix } = answer("/echo").body else {
        panic!("no echo")
    };
    assert_eq!(
        prefix,
        "GET /echo?a=b HTTP/1.1\r\nLocation: x\r\nContent-Length: 3\r\n\r\n"
    );
}

#[test]
fn a_delay_is_a_promise_and_no_waiting() {
    assert_eq!(answer("/delay/60000").delay, Duration::from_secs(60));
}

#[test]
fn random_delays_are_spread_around_their_mean() {
    fastrand::seed(13);
    let app = App::new();
    let request = request("/delay/exp:100");
    let delays: Vec<f64> = (0..10_000)
        .map(|_| app.handle(&request).delay.as_secs_f64() * 1000.0)
        .collect();
    let mean = delays.iter().sum::<f64>() / 10_000.0;
    assert!((95.0..105.0).contains(&mean), "{mean}");
    // Of an exponential distribution 1 - 1/e lie below the mean.
    let below = delays.iter().filter(|delay| **delay < 100.0).count();
    assert!((6_100..6_550).contains(&below), "{below}");
    assert_eq!(answer("/delay/exp:0").delay, Duration::ZERO);
    assert_eq!(answer("/delay/exp:x").status, StatusCode::BAD_REQUEST);
}

#[test]
fn a_sink_answers_after_the_body() {
    assert!(answer("/sink").after_body);
    assert!(!answer("/").after_body);
}
