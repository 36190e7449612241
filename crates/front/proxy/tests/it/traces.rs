//! Traces: what backends are told of them, and which spans a collector gets.

use std::sync::Arc;

use catamaran_proxy::config::{
    Address, AdminConfig, BackendConfig, Config, Protocol, Protocols, RouteConfig, RouteTarget,
    TraceConfig,
};
use catamaran_testkit::http2::{
    END_HEADERS, END_STREAM, Http2Client, Said, block, frame, kind, opening,
};
use catamaran_testkit::{Deadline, HttpClient, Peer, Script, address};
use serde_json::Value;

use crate::admin::{admin, page, status};
use crate::cache::{cache, cached};
use crate::health::until;
use crate::{Front, TURNS, backend, config, loopback, start, tcp, to};

/// The field of a client whose span is recorded.
fn sampled() -> String {
    format!("traceparent: 00-{TRACE}-{PARENT}-01\r\n")
}

/// A collector that takes everything.
fn collector() -> Peer {
    answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
}

/// A collector that gives this answer to each batch.
fn answering(answer: &str) -> Peer {
    let turn = Script::new().expect_until(END).send(answer.as_bytes());
    Peer::start(turn.repeat(TURNS).stall())
}

/// The settings for this collector, by which each trace is recorded.
fn all(collector: &Peer) -> TraceConfig {
    let at = collector.tcp_address();
    TraceConfig {
        sample: 1.0,
        ..TraceConfig::new(Address::Tcp {
            host: at.ip().to_string(),
            port: at.port(),
        })
    }
}

fn traced(backends: Vec<BackendConfig>, trace: TraceConfig) -> Config {
    let mut config = config(&[loopback()], backends);
    config.server.workers = 1.try_into().unwrap();
    config.trace = Some(Arc::new(trace));
    config
}

/// A GET of `target` with these lines of fields.
fn get(running: &Front, target: &str, fields: &str) -> u16 {
    let mut client = HttpClient::connect(tcp(running, 0)).unwrap();
    let request = format!("GET {target} HTTP/1.1\r\nHost: shop.example:81\r\n{fields}\r\n");
    client.ask(request.as_bytes()).unwrap().status
}

/// Ends the front once its collector has so many spans. The end itself does not wait for a slow collector.
fn finish(running: Front, collector: &Peer, count: usize) {
    until("the spans", || {
        (spans(collector).len() >= count).then_some(())
    });
    running.drain();
    running.join();
}

/// All spans that a collector got until now, of whole batches.
fn spans(collector: &Peer) -> Vec<Value> {
    let mut spans = Vec::new();
    for connection in 0..collector.connections() {
        let received = collector.received(connection);
        let text = String::from_utf8(received).unwrap();
        for (at, _) in text.match_indices("{\"resourceSpans\"") {
            let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
            let Some(Ok(batch)) = values.next() else {
                continue;
            };
            let resource = &batch["resourceSpans"][0];
            assert_eq!(
                attribute(&resource["resource"], "service.name"),
                Some("catamaran".to_owned())
            );
            let list = resource["scopeSpans"][0]["spans"].as_array().unwrap();
            spans.extend(list.iter().cloned());
        }
    }
    spans
}

fn attribute(span: &Value, key: &str) -> Option<String> {
    let attributes = span["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|it| it["key"] == key)?;
    let value = found["value"].as_object().unwrap().values().next().unwrap();
    Some(value.as_str().unwrap().to_owned())
}

/// The values of a field that a backend over HTTP received, in all requests of all connections.
fn received(peer: &Peer, field: &str) -> Vec<String> {
    let mut values = Vec::new();
    for connection in 0..peer.connections() {
        let text = String::from_utf8_lossy(&peer.received(connection)).to_lowercase();
        let lines = text.lines().filter_map(|line| line.split_once(": "));
        values.extend(
            lines
                .filter(|(name, _)| *name == field)
                .map(|it| it.1.to_owned()),
        );
    }
    values
}

/// The four parts of a `traceparent`.
fn parts(value: &str) -> Vec<&str> {
    let parts: Vec<&str> = value.split('-').collect();
    assert_eq!(parts.len(), 4, "{value}");
    parts
}

#[test]
fn without_the_table_the_fields_are_passed_on_as_they_are() {
    let app = backend("app");
    let running = start(config(&[loopback()], vec![to(&app)])).unwrap();
    assert_eq!(
        get(&running, "/", "traceparent: odd\r\ntracestate: =\r\n"),
        200
    );
    assert_eq!(received(&app, "traceparent"), ["odd"]);
    assert_eq!(received(&app, "tracestate"), ["="]);
}

#[test]
fn a_trace_goes_on_if_it_is_valid_else_another_begins() {
    let (app, collector) = (backend("app"), collector());
    let running = start(traced(vec![to(&app)], all(&collector))).unwrap();
    let state = "tracestate: a=1\r\ntracestate: b=2\r\n";
    get(&running, "/", &(sampled() + state));
    assert_eq!(received(&app, "tracestate"), ["a=1,b=2"]);
    get(&running, "/", &(sampled().to_uppercase() + state));
    get(&running, "/", &(sampled() + &sampled()));
    get(&running, "/", state);
    let parents = received(&app, "traceparent");
    let [first, others @ ..] = &parents[..] else {
        panic!("{parents:?}");
    };
    assert_eq!(parts(first)[1], TRACE);
    assert_ne!(
        parts(first)[2],
        PARENT,
        "the front's own span is the parent"
    );
    assert_eq!(others.len(), 3);
    for other in others {
        let [version, trace, span, flags] = parts(other)[..] else {
            unreachable!("four parts");
        };
        assert_eq!((version, flags), ("00", "01"));
        assert_ne!(trace, TRACE);
        assert_eq!((trace.len(), span.len()), (32, 16));
    }
    assert_eq!(
        received(&app, "tracestate").len(),
        1,
        "of another trace it is dropped"
    );
}

/// A backend, and the spans of a request to it and of one for which there is no route: of an attempt, and of both
/// exchanges.
fn shop() -> (Peer, [Value; 3]) {
    let (app, collector) = (backend("app"), collector());
    let mut config = traced(vec![to(&app)], all(&collector));
    let target = RouteTarget::Upstream("app".to_owned());
    config.routes = vec![RouteConfig::new("/shop", target)];
    let running = start(config).unwrap();
    let secrets = "Cookie: JSESSIONID=secret\r\nAuthorization: Basic secret\r\n";
    let target = "/shop/a;jsessionid=secret/b?secret=1";
    assert_eq!(get(&running, target, &(sampled() + secrets)), 200);
    assert_eq!(get(&running, "/other", ""), 404);
    finish(running, &collector, 3);
    let text = String::from_utf8(collector.received(0)).unwrap();
    assert!(!text.contains("secret"), "{text}");
    (app, spans(&collector).try_into().unwrap())
}

#[test]
fn the_facts_of_an_exchange_and_of_its_attempt() {
    let (app, [attempt, exchange, other]) = shop();
    let port = app.tcp_address().port().to_string();
    let url = format!("http://127.0.0.1:{port}/shop/a/b");
    for (span, key, expected) in [
        (&exchange, "http.request.method", "GET"),
        (&exchange, "url.path", "/shop/a/b"),
        (&exchange, "url.scheme", "http"),
        (&exchange, "server.address", "shop.example"),
        (&exchange, "http.response.status_code", "200"),
        (&exchange, "network.protocol.version", "1.1"),
        (&exchange, "client.address", "127.0.0.1"),
        (&exchange, "http.route", "/shop"),
        (&attempt, "http.request.method", "GET"),
        (&attempt, "url.full", &url),
        (&attempt, "server.address", "127.0.0.1"),
        (&attempt, "server.port", &port),
        (&attempt, "http.response.status_code", "200"),
        (&attempt, "catamaran.upstream", "app"),
        (&other, "http.response.status_code", "404"),
    ] {
        let said = attribute(span, key);
        assert_eq!(said.as_deref(), Some(expected), "{key} of {span}");
    }
    assert_eq!(attribute(&attempt, "http.request.resend_count"), None);
    assert_eq!(attribute(&other, "error.type"), None, "404 is the client's");
    for (span, name, kind) in [
        (&exchange, "GET /shop", 2),
        (&attempt, "GET", 3),
        (&other, "GET", 2),
    ] {
        assert_eq!((&span["name"], &span["kind"]), (&name.into(), &kind.into()));
    }
}

#[test]
fn a_span_lies_within_its_parent() {
    let (app, [attempt, exchange, other]) = shop();
    assert_eq!(exchange["traceId"], TRACE);
    assert_eq!(exchange["parentSpanId"], PARENT);
    assert_eq!(attempt["parentSpanId"], exchange["spanId"]);
    let told = &received(&app, "traceparent")[0];
    assert_eq!(attempt["spanId"], parts(told)[2], "the backend's parent");
    assert!(other.get("parentSpanId").is_none() && other["traceId"] != TRACE);
    let time = |span: &Value, key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
    let times = [
        time(&exchange, "startTimeUnixNano"),
        time(&attempt, "startTimeUnixNano"),
        time(&attempt, "endTimeUnixNano"),
        time(&exchange, "endTimeUnixNano"),
    ];
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn each_attempt_has_a_span_and_its_backend_knows_it() {
    let broken = Peer::start(Script::new().expect_until(b"\r\n\r\n").finish());
    let (app, collector) = (backend("app"), collector());
    let mut config = traced(vec![to(&broken), to(&app)], all(&collector));
    config.upstreams[0].backends[1].weight = 1;
    config.upstreams[0].backends[0].weight = 100;
    let running = start(config).unwrap();
    assert_eq!(get(&running, "/", &sampled()), 200);
    finish(running, &collector, 3);
    let spans = spans(&collector);
    let [failed, retried, exchange] = &spans[..] else {
        panic!("{spans:?}");
    };
    let told = [
        received(&broken, "traceparent"),
        received(&app, "traceparent"),
    ]
    .concat();
    let told: Vec<Vec<&str>> = told.iter().map(|value| parts(value)).collect();
    assert_eq!(told.len(), 2);
    assert_eq!(
        (&failed["spanId"], &retried["spanId"]),
        (&told[0][2].into(), &told[1][2].into())
    );
    assert_ne!(told[0][2], told[1][2]);
    for span in [failed, retried] {
        assert_eq!(span["parentSpanId"], exchange["spanId"]);
        assert_eq!(span["traceId"], TRACE);
    }
    assert_eq!(attribute(failed, "error.type").as_deref(), Some("closed"));
    assert_eq!(failed["status"]["code"], 2);
    assert_eq!(
        attribute(retried, "http.request.resend_count").as_deref(),
        Some("1")
    );
    assert_eq!(attribute(retried, "error.type"), None);
    assert!(exchange.get("status").is_none(), "the retry made it good");
}

#[test]
fn a_fetch_for_a_cache_is_below_the_request_that_needed_it() {
    let collector = collector();
    let answer = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 0\r\n\r\n";
    let turn = Script::new()
        .expect_until(b"\r\n\r\n")
        .send(answer.as_bytes());
    let app = Peer::start(turn.repeat(2).stall());
    let mut config = cached(to(&app), cache());
    // One worker, so that the spans of the first request come first.
    config.server.workers = 1.try_into().unwrap();
    config.trace = Some(Arc::new(all(&collector)));
    let running = start(config).unwrap();
    for _ in 0..2 {
        assert_eq!(get(&running, "/", ""), 200);
    }
    finish(running, &collector, 3);
    let spans = spans(&collector);
    let [attempt, exchange, hit] = &spans[..] else {
        panic!("{spans:?}");
    };
    let told = received(&app, "traceparent");
    let [told] = &told[..] else {
        panic!("one request: {told:?}");
    };
    assert_eq!(parts(told)[1..3], [&attempt["traceId"], &attempt["spanId"]]);
    assert_eq!(attempt["parentSpanId"], exchange["spanId"]);
    assert_ne!(hit["traceId"], exchange["traceId"], "no backend was asked");
}

#[test]
fn a_failure_is_told_by_its_reason() {
    let collector = collector();
    let nobody = address::refusing().unwrap();
    let gone = BackendConfig::new(
        Protocol::Ajp,
        Address::Tcp {
            host: nobody.ip().to_string(),
            port: nobody.port(),
        },
    );
    let running = start(traced(vec![gone], all(&collector))).unwrap();
    assert_eq!(get(&running, "/", ""), 503);
    finish(running, &collector, 2);
    let spans = spans(&collector);
    let exchange = spans.last().unwrap();
    assert_eq!(
        attribute(exchange, "error.type").as_deref(),
        Some("connect-failed")
    );
    assert_eq!(exchange["status"]["code"], 2);
    assert_eq!(
        attribute(&spans[0], "network.protocol.name").as_deref(),
        Some("ajp")
    );
}

#[test]
fn clients_of_http2_are_traced_alike() {
    let (app, collector) = (backend("app"), collector());
    let mut config = traced(vec![to(&app)], all(&collector));
    config.listeners[0].protocols = Protocols::Both;
    let running = start(config).unwrap();
    let mut client = Http2Client::connect(tcp(&running, 0)).unwrap();
    let parent = format!("00-{TRACE}-{PARENT}-01");
    let fields: [(&[u8], &[u8]); 7] = [
        (b":method", b"GET"),
        (b":scheme", b"http"),
        (b":authority", b"a"),
        (b":path", b"/"),
        (b"traceparent", parent.as_bytes()),
        (b"tracestate", b"a=1"),
        (b"tracestate", b"b=2"),
    ];
    let head = frame(kind::HEADERS, END_HEADERS | END_STREAM, 1, &block(&fields));
    client.send(&[opening(65_535), head].concat(), usize::MAX);
    assert_eq!(
        client.wait(|said| *said == Said::End(1)).unwrap(),
        Some(Said::End(1))
    );
    drop(client);
    finish(running, &collector, 2);
    assert_eq!(parts(&received(&app, "traceparent")[0])[1], TRACE);
    assert_eq!(received(&app, "tracestate"), ["a=1,b=2"]);
    let spans = spans(&collector);
    let exchange = spans.last().unwrap();
    assert_eq!(
        attribute(exchange, "network.protocol.version").as_deref(),
        Some("2")
    );
    assert_eq!(exchange["parentSpanId"], PARENT);
}

#[test]
fn strangers_cannot_have_all_their_requests_recorded() {
    let (app, collector) = (backend("app"), collector());
    let trace = TraceConfig {
        sample: 0.0,
        strangers_per_second: 0,
        ..all(&collector)
    };
    let mut config = traced(vec![to(&app)], trace);
    let flags = |running: &Front| {
        get(running, "/", &sampled());
        let parents = received(&app, "traceparent");
        parts(parents.last().unwrap())[3].to_owned()
    };
    let running = start(config.clone()).unwrap();
    assert_eq!(
        flags(&running),
        "00",
        "the backend is not made to record it, either"
    );
    let reasons = running.counters().reasons;
    let names: Vec<String> = reasons.keys().map(ToString::to_string).collect();
    assert_eq!(names, ["client:trace-strangers"]);
    running.drain();
    running.join();
    assert_eq!(collector.connections(), 0);
    // A proxy that is trusted may.
    config.server.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    let running = start(config).unwrap();
    assert_eq!(flags(&running), "01");
    finish(running, &collector, 2);
    assert_eq!(spans(&collector).len(), 2);
}

#[test]
fn a_collector_that_hangs_or_refuses_costs_requests_nothing() {
    let turn = Script::new()
        .expect_until(b"\r\n\r\n")
        .send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let app = Peer::start(turn.repeat(5 * TURNS).stall());
    let refusing = answering("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    let busy = answering("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
    let garbage = answering("GARBAGE\r\n\r\n");
    let silent = Peer::start(Script::new().stall());
    for (collector, hangs) in [
        (refusing, false),
        (busy, false),
        (garbage, false),
        (silent, true),
    ] {
        let mut config = traced(vec![to(&app)], all(&collector));
        config.admin = Some(AdminConfig::new(vec![loopback()]));
        let running = start(config).unwrap();
        let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
        let mut ask = |requests: usize| {
            for _ in 0..requests {
                assert_eq!(crate::ask(&mut client).status, 200);
            }
        };
        ask(3);
        assert_eq!(dropped(&running), 0);
        collector.wait_connections(1);
        if hangs {
            until("more spans than may wait", || {
                ask(100);
                (dropped(&running) > 0).then_some(())
            });
        }
        drop(client);
        running.drain();
        running.join();
    }
}

/// How many spans found the queue full.
fn dropped(running: &Front) -> u64 {
    let (_, metrics) = page(admin(running), "/metrics");
    let name = "catamaran_trace_spans_total{result=\"dropped\"} ";
    let count = metrics.lines().find_map(|line| line.strip_prefix(name));
    count.expect(&metrics).parse().unwrap()
}

#[test]
fn a_reload_without_the_collector_ends_its_trouble() {
    let app = backend("app");
    let busy = answering("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
    let mut config = traced(vec![to(&app)], all(&busy));
    config.admin = Some(AdminConfig::new(vec![loopback()]));
    let running = start(config.clone()).unwrap();
    get(&running, "/", "");
    let is_told = || status(admin(&running)).contains("spans of traces are lost");
    let told = Deadline::default().poll("a trouble", || is_told().then_some(()));
    told.unwrap();
    config.trace = None;
    running.reload(config).unwrap();
    assert!(!is_told());
}

#[test]
fn a_reload_begins_and_ends_traces() {
    let (app, collector) = (backend("app"), collector());
    let traced = traced(vec![to(&app)], all(&collector));
    let plain = Config {
        trace: None,
        ..traced.clone()
    };
    let running = start(plain.clone()).unwrap();
    get(&running, "/", "");
    assert_eq!(received(&app, "traceparent").len(), 0);
    running.reload(traced).unwrap();
    get(&running, "/", "");
    assert_eq!(received(&app, "traceparent").len(), 1);
    running.reload(plain).unwrap();
    get(&running, "/", "");
    assert_eq!(received(&app, "traceparent").len(), 1);
    finish(running, &collector, 2);
    assert_eq!(spans(&collector).len(), 2);
}

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

const PARENT: &str = "00f067aa0ba902b7";

/// The end of a batch.
const END: &[u8] = b"]}]}]}";
