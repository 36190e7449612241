//! The 30 server cases of Tomcat's own AJP test suite, written anew from their description.
//!
//! One test for each case, numbered in the suite's order (`TestAbstractAjpProcessor`). The packets
//! are made the way its client makes them: bodies and pings carry a few bytes behind what counts,
//! and a container has to put up with them. Two expectations of the suite are Tomcat's habits and
//! not asked for: digits instead of a reason phrase, and one more GET_BODY_CHUNK after the last
//! byte of a body whose length is known.

use catamaran_ajp::PacketSize;
use catamaran_connector::{Body, Request, Response, Secret};
use catamaran_testkit::ajp::{
    Forward, attribute, coded, field, get as forward, named, text, to_container,
};
use http::{HeaderName, HeaderValue, StatusCode};

use super::*;
use crate::packets::{chunks, field_of};

/// As the suite sets its connector up: no secret, one pattern of attributes, packets of 16,000.
fn tier(io: Model) -> Tier {
    Tier::with(io, fixture)
}

fn fixture(config: &mut Config) {
    config.packet_size = PacketSize::new(16_000).unwrap();
    config.allowed_request_attributes = "MYATTRIBUTE*".parse().unwrap();
}

/// Sends `request` for `/snoop` on each driver; each of `lines` must be in what is seen.
fn snoop(request: Forward, lines: &[&str]) {
    snoop_with(|_| {}, request, lines);
}

fn snoop_with(change: impl Fn(&mut Config), request: Forward, lines: &[&str]) {
    on_each_driver(|io| {
        let tier = Tier::with(io, |config| {
            fixture(config);
            change(config);
        });
        let mut wire = tier.packets();
        let request = if request.uri == text("/") {
            request.clone().uri(text("/snoop"))
        } else {
            request.clone()
        };
        wire.send(&request.packet());
        let response = wire.response();
        assert_eq!((response.status, response.reuse), (200, 1));
        assert_eq!(chunks(&response.packets), 1);
        let seen = String::from_utf8(response.body).unwrap();
        for line in lines {
            assert!(seen.contains(line), "{line} in {seen}");
        }
        wire.ping();
    });
}

/// A body packet with the bytes that Tomcat's client leaves behind it.
fn slack_data(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap().to_be_bytes();
    to_container(&[&length[..], bytes, &[0, 0, 0, 0xff]].concat())
}

/// A request without a Host field, as the suite's client sends it.
fn without_host() -> Forward {
    Forward {
        fields: Vec::new(),
        ..forward()
    }
}

#[test]
fn case_01_server_name() {
    let request = Forward {
        server_name: text("MYSERVERNAME"),
        ..without_host()
    };
    snoop(request, &["\"server_name\": \"MYSERVERNAME\""]);
}

#[test]
fn case_02_server_port() {
    let request = Forward {
        server_port: 8888,
        ..without_host()
    };
    snoop(request, &["\"server_port\": 8888"]);
}

#[test]
fn case_03_local_addr() {
    let request = forward().attribute(named("AJP_LOCAL_ADDR", "10.3.2.1"));
    snoop(request, &["\"local_addr\": \"10.3.2.1\""]);
}

#[test]
fn case_04_remote_port() {
    let request = forward().attribute(named("AJP_REMOTE_PORT", "34567"));
    snoop(request, &["\"remote_port\": 34567"]);
}

#[test]
fn case_05_remote_host() {
    let request = Forward {
        remote_host: text("MYCLIENT"),
        ..forward()
    };
    snoop(request, &["\"remote_host\": \"MYCLIENT\""]);
}

#[test]
fn case_06_remote_addr() {
    let request = Forward {
        remote_addr: text("10.1.2.3"),
        ..forward()
    };
    snoop(request, &["\"remote_addr\": \"10.1.2.3\""]);
}

#[test]
fn case_07_method() {
    snoop(forward().method(13), &["\"method\": \"LOCK\""]);
}

#[test]
fn case_08_uri() {
    on_each_driver(|io| {
        let handler =
            |request: &Request| Response::new(StatusCode::OK, Body::Full(request.path.clone()));
        let tier = Tier::serving(io, handler, fixture);
        let mut wire = tier.packets();
        wire.send(&forward().uri(text("/a/b/c")).packet());
        assert_eq!(wire.response().body, b"/a/b/c");
    });
}

#[test]
fn case_09_protocol() {
    let request = Forward {
        protocol: text("HTTP/1.x"),
        ..forward()
    };
    snoop(request, &["\"protocol\": \"HTTP/1.x\""]);
}

#[test]
fn case_10_secure() {
    let request = Forward {
        is_ssl: 1,
        ..forward()
    };
    snoop(request, &["\"secure\": true", "\"scheme\": \"https\""]);
}

#[test]
fn case_11_query_string() {
    let query = "p1=1&p2=12&p3=123";
    let line = format!("\"query\": \"{query}\"");
    snoop(forward().attribute(attribute(5, query)), &[&line]);
}

#[test]
fn case_12_remote_user() {
    let request = forward().attribute(attribute(3, "MYUSER"));
    snoop(request, &["\"user\": \"MYUSER\""]);
}

#[test]
fn case_13_auth_type() {
    let request = forward().attribute(attribute(4, "MYAUTHTYPE"));
    snoop(request, &["\"auth_type\": \"MYAUTHTYPE\""]);
}

#[test]
fn case_14_one_header() {
    let request = forward().field(field("MYHEADER", "MYHEADER-VALUE"));
    snoop(request, &["[\"myheader\",\"MYHEADER-VALUE\"]"]);
}

#[test]
fn case_15_one_attribute() {
    let request = forward().attribute(named("MYATTRIBUTE", "MYVALUE"));
    snoop(
        request,
        &["\"attributes\": [[\"MYATTRIBUTE\",\"MYVALUE\"]]"],
    );
}

#[test]
fn case_16_all_of_it_together() {
    let request = Forward {
        method: 13,
        protocol: text("HTTP/1.x"),
        remote_addr: text("10.1.2.3"),
        remote_host: text("MYCLIENT"),
        server_name: text("MYSERVERNAME"),
        server_port: 8888,
        is_ssl: 1,
        ..without_host()
    };
    let request = request
        .field(field("MYHEADER1", "MYHEADER1-VALUE"))
        .field(field("MYHEADER2", "MYHEADER2-VALUE"))
        .attribute(named("AJP_LOCAL_ADDR", "10.3.2.1"))
        .attribute(named("AJP_REMOTE_PORT", "34567"))
        .attribute(attribute(3, "MYUSER"))
        .attribute(attribute(4, "MYAUTHTYPE"))
        .attribute(attribute(5, "p1=1"))
        .attribute(named("MYATTRIBUTE1", "MYVALUE1"))
        .attribute(named("MYATTRIBUTE2", "MYVALUE2"));
    let lines = [
        "\"method\": \"LOCK\"",
        "\"protocol\": \"HTTP/1.x\"",
        "\"remote_addr\": \"10.1.2.3\"",
        "\"remote_host\": \"MYCLIENT\"",
        "\"remote_port\": 34567",
        "\"local_addr\": \"10.3.2.1\"",
        "\"server_name\": \"MYSERVERNAME\"",
        "\"server_port\": 8888",
        "\"scheme\": \"https\"",
        "\"user\": \"MYUSER\"",
        "\"auth_type\": \"MYAUTHTYPE\"",
        "\"query\": \"p1=1\"",
        "[[\"myheader1\",\"MYHEADER1-VALUE\"],[\"myheader2\",\"MYHEADER2-VALUE\"]]",
        "[[\"MYATTRIBUTE1\",\"MYVALUE1\"],[\"MYATTRIBUTE2\",\"MYVALUE2\"]]",
    ];
    snoop(request, &lines);
}

/// PUT with `length` bytes, the first packet unasked; the container may ask for more, or know
/// from the length that there is none.
fn put(length: usize) {
    on_each_driver(|io| {
        let tier = tier(io);
        let mut wire = tier.packets();
        let request = forward()
            .method(5)
            .uri(text("/echo"))
            .field(coded(8, length.to_string()));
        wire.send(&request.packet());
        let body = vec![b'B'; length];
        wire.send(&slack_data(&body));
        let response = wire.response_answering(&slack_data(b""));
        assert_eq!((response.status, response.reuse), (200, 1));
        assert!(response.body.ends_with(&body));
        wire.ping();
    });
}

#[test]
fn case_17_small_body() {
    put(100);
}

#[test]
fn case_18_large_body() {
    put(10_000);
}

#[test]
fn case_19_secret() {
    on_each_driver(|io| {
        let tier = Tier::with(io, |config| {
            fixture(config);
            config.secret = Secret::new("RIGHTSECRET");
        });
        let ask = |secret: Option<&str>| {
            let mut wire = tier.packets();
            wire.ping();
            let secret = secret.map_or_else(Vec::new, |secret| attribute(0x0c, secret));
            wire.send(&forward().attribute(secret).packet());
            let response = wire.response();
            if response.reuse == 0 {
                assert_eq!(wire.rest(), b"", "nothing behind the end, and closed");
            }
            (response.status, response.reuse)
        };
        assert_eq!(ask(None), (403, 0));
        assert_eq!(ask(Some("WRONGSECRET")), (403, 0));
        assert_eq!(ask(Some("RIGHTSECRET")), (200, 1));
    });
}

#[test]
fn case_20_keep_alive() {
    on_each_driver(|io| {
        let tier = tier(io);
        let mut wire = tier.packets();
        wire.ping();
        for _ in 0..2 {
            wire.send(&forward().packet());
            let response = wire.response();
            assert_eq!((response.status, response.reuse), (200, 1));
            wire.ping();
        }
        assert_eq!(tier.running.counters().accepted, 1);
    });
}

#[test]
fn case_21_post() {
    on_each_driver(|io| {
        let tier = tier(io);
        let mut wire = tier.packets();
        let form = coded(7, "application/x-www-form-urlencoded");
        let request = forward().method(4).uri(text("/echo")).field(form);
        wire.send(&request.field(coded(8, "9")).packet());
        wire.send(&slack_data(b"test=data"));
        let response = wire.response();
        assert_eq!((response.asks, response.reuse), (0, 1));
        assert!(response.body.ends_with(b"test=data"));
        wire.ping();
    });
}

#[test]
fn case_22_post_with_two_lengths() {
    on_each_driver(|io| {
        let tier = tier(io);
        let mut wire = tier.packets();
        let request = forward().method(4).field(field("Content-Length", "9"));
        let request = request.field(field("content-length", "99"));
        wire.send(&[request.packet(), slack_data(b"test=data")].concat());
        let response = wire.response();
        assert_eq!((response.status, response.reuse), (400, 0));
        assert_eq!(tier.running.counters().requests, 0);
    });
}

#[test]
fn case_23_not_modified_with_a_body() {
    on_each_driver(|io| {
        let handler = |_: &Request| Response::text(StatusCode::NOT_MODIFIED, "a body all the same");
        let tier = Tier::serving(io, handler, fixture);
        let mut wire = tier.packets();
        wire.send(&forward().packet());
        let response = wire.response();
        assert_eq!((response.status, response.reuse), (304, 1));
        assert_eq!(chunks(&response.packets), 0);
        wire.ping();
    });
}

/// A request of this method whose length is 0 and whose body is read.
fn read_nothing(method: u8, path: &str) {
    on_each_driver(|io| {
        let tier = tier(io);
        let mut wire = tier.packets();
        let request = forward().method(method).uri(text(path));
        wire.send(&request.field(coded(8, "0")).packet());
        let response = wire.response();
        assert_eq!(
            (response.status, response.asks, response.reuse),
            (200, 0, 1)
        );
        wire.ping();
    });
}

#[test]
fn case_24_get_of_length_zero_is_drained() {
    read_nothing(2, "/sink");
}

#[test]
fn case_25_get_of_length_zero_is_read() {
    read_nothing(2, "/echo");
}

#[test]
fn case_26_post_of_length_zero_is_drained() {
    read_nothing(4, "/sink");
}

#[test]
fn case_27_post_of_length_zero_is_read() {
    read_nothing(4, "/echo");
}

#[test]
fn case_28_large_response_in_one_chunk() {
    on_each_driver(|io| {
        let body = vec![b'X'; 15_000];
        let handler = {
            let body = body.clone();
            move |_: &Request| Response::new(StatusCode::OK, Body::Full(body.clone().into()))
        };
        let tier = Tier::serving(io, handler, fixture);
        let mut wire = tier.packets();
        wire.send(&forward().packet());
        let response = wire.response();
        assert_eq!((response.reuse, chunks(&response.packets)), (1, 1));
        assert!(response.body == body);
    });
}

/// Tomcat leaves a value out that Latin-1 cannot express. Here a value is bytes, and none that a
/// field may not carry can be put into a response; UTF-8 passes, and so do its neighbours.
#[test]
fn case_29_header_beyond_latin_1() {
    on_each_driver(|io| {
        let handler = |_: &Request| {
            let value = |text: &str| HeaderValue::from_bytes(text.as_bytes()).unwrap();
            Response::text(StatusCode::OK, "")
                .with_header(HeaderName::from_static("x-one"), value("1"))
                .with_header(HeaderName::from_static("x-two"), value("\u{39a}"))
                .with_header(HeaderName::from_static("x-three"), value("3"))
        };
        let tier = Tier::serving(io, handler, fixture);
        let mut wire = tier.packets();
        wire.send(&forward().packet());
        let response = wire.response();
        for (name, value) in [("x-one", "1"), ("x-two", "\u{39a}"), ("x-three", "3")] {
            assert_eq!(field_of(&response.packets, name), value.as_bytes());
        }
        wire.ping();
    });
}

/// The head comes first whatever the application set: without one, mod_proxy_ajp has reused the
/// head of the response before (CVE-2023-34981).
#[test]
fn case_30_flush_without_headers() {
    on_each_driver(|io| {
        let handler = |_: &Request| {
            let body = Body::Stream {
                chunk: "x".into(),
                count: 2,
                every: Duration::from_millis(1),
            };
            Response::new(StatusCode::OK, body)
        };
        let tier = Tier::serving(io, handler, fixture);
        let mut wire = tier.packets();
        wire.send(&forward().packet());
        let response = wire.response();
        let codes: Vec<_> = response.packets.iter().map(|packet| packet[0]).collect();
        if matches!(io.kind, Kind::Inline) {
            assert_eq!(codes, [4, 3, 3, 3, 5], "head, chunk, flush, chunk, end");
            assert_eq!(
                response.packets[2],
                [3, 0, 0, 0],
                "an empty chunk is a flush"
            );
        } else {
            // What the driver sees late of an application that runs elsewhere is sent together.
            assert_eq!((codes.first(), codes.last()), (Some(&4), Some(&5)));
        }
        assert_eq!((response.status, response.reuse), (200, 1));
        wire.ping();
    });
}
