//! Which traces are recorded, and what becomes of spans.

use std::time::Duration;

use super::queue::SPANS_MAX;
use super::span::{Period, Span};
use super::*;
use crate::config::Address;

fn settings(sample: f64, strangers_per_second: u32) -> TraceConfig {
    let host = "127.0.0.1".to_owned();
    TraceConfig {
        sample,
        strangers_per_second,
        ..TraceConfig::new(Address::Tcp { host, port: 4318 })
    }
}

/// The fields of a client with this flag; `None`: it sends none.
fn fields(flag: Option<u8>) -> Fields {
    let value = flag.map(|flag| (TRACEPARENT, format!("{GIVEN}{flag}")));
    value.into_iter().collect()
}

fn at(seconds: u64) -> Began {
    Began {
        time: SystemTime::UNIX_EPOCH + Duration::from_secs(seconds),
        instant: Instant::now(),
    }
}

#[test]
fn whether_a_trace_is_recorded() {
    use TraceSender::{Stranger, Trusted};
    let traces = Traces::default();
    for (flag, sender, sample, strangers, expected) in [
        (None, Stranger, 1.0, 0, true),
        (None, Stranger, 0.0, 9, false),
        (None, Trusted, 0.0, 9, false),
        (Some(1), Trusted, 0.0, 0, true),
        (Some(0), Trusted, 1.0, 0, false),
        (Some(0), Stranger, 1.0, 9, false),
        (Some(1), Stranger, 0.0, 9, true),
        (Some(1), Stranger, 0.0, 0, false),
        // Those beyond the limit are treated as if they had said nothing.
        (Some(1), Stranger, 1.0, 0, true),
    ] {
        let config = settings(sample, strangers);
        let (trace, excess) = traces.begin(&config, &fields(flag), sender, || at(1));
        let case = format!("{flag:?} {sender:?} {sample} {strangers}");
        assert_eq!(trace.recorded.is_some(), expected, "{case}");
        assert_eq!(trace.parent.is_some(), flag.is_some(), "{case}");
        let is_excess = flag == Some(1) && sender == Stranger && strangers == 0;
        assert_eq!(excess.is_some(), is_excess, "{case}");
    }
}

#[test]
fn strangers_share_an_allowance_of_each_second() {
    let traces = Traces::default();
    let recorded = |second| {
        let config = settings(0.0, 3);
        let begin = |_| {
            traces.begin(&config, &fields(Some(1)), TraceSender::Stranger, || {
                at(second)
            })
        };
        let begun = (0..100).map(begin);
        begun.filter(|(trace, _)| trace.recorded.is_some()).count()
    };
    assert_eq!(
        [recorded(7), recorded(7), recorded(8), recorded(6)],
        [3, 0, 3, 3]
    );
}

#[test]
fn a_part_of_traces_that_begin_here_is_recorded() {
    fastrand::seed(7);
    let traces = Traces::default();
    let config = settings(0.1, 0);
    let begin = |_| traces.begin(&config, &fields(None), TraceSender::Stranger, || at(1));
    let begun = (0..10_000).map(begin);
    let recorded = begun.filter(|(trace, _)| trace.recorded.is_some()).count();
    assert!((900..1100).contains(&recorded), "{recorded}");
}

#[test]
fn a_retry_and_a_fetch_have_parents_of_their_own() {
    let (trace, _) = Traces::default().begin(
        &settings(1.0, 0),
        &fields(Some(1)),
        TraceSender::Trusted,
        || at(1),
    );
    let mut headers = fields(Some(1));
    trace.write(&mut headers);
    let told = |headers: &Fields| TraceParent::of(headers).unwrap();
    let first = told(&headers);
    assert_eq!((first.trace, first.span), (trace.id, trace.attempt(1)));
    assert!(trace.next(1).is_none());
    let mut again = headers.clone();
    trace.next(2).unwrap().apply(&mut again);
    assert_eq!(told(&again).span, trace.attempt(2));
    let fetch = trace.of_fetch();
    fetch.instead_of(&trace).apply(&mut headers);
    assert_eq!(told(&headers).span, fetch.attempt(1));
    assert_ne!(fetch.attempt(1), trace.attempt(1));
    // What a route wrote stays.
    headers.insert(TRACEPARENT, "of the route");
    trace.next(2).unwrap().apply(&mut headers);
    assert_eq!(headers.get(TRACEPARENT), Some(&b"of the route"[..]));
}

#[test]
fn what_does_not_fit_the_queue_is_dropped_and_counted() {
    let queue = Queue::default();
    for _ in 0..SPANS_MAX + 5 {
        queue.put(Vec::new());
    }
    assert_eq!(queue.counts(), [0, 5, 0, 0]);
    let mut left = SPANS_MAX;
    while left > 0 {
        let batch = queue.next_batch().unwrap();
        assert!((1..=512).contains(&batch.len()));
        left -= batch.len();
    }
    queue.end();
    queue.finish();
    queue.put(Vec::new());
    assert_eq!(queue.counts(), [0, 6, 0, 0], "nobody sends it any more");
    assert!(queue.next_batch().is_none());
}

#[test]
fn a_trouble_lasts_no_longer_than_its_collector() {
    let queue = Queue::default();
    let [first, second] = ["/a", "/b"].map(|path| Address::Unix(path.into()));
    let trouble = || Some("no".to_owned());
    queue.follow(Some(&first));
    assert!(queue.set_trouble(&first, trouble()), "it begins");
    assert!(!queue.set_trouble(&first, trouble()), "it goes on");
    queue.follow(Some(&first));
    assert_eq!(queue.trouble(), trouble(), "the same one is followed");
    queue.follow(Some(&second));
    assert_eq!(queue.trouble(), None);
    assert!(!queue.set_trouble(&first, trouble()), "it was sent before");
    assert_eq!(queue.trouble(), None);
    assert!(queue.set_trouble(&second, trouble()));
    queue.follow(None);
    assert_eq!(queue.trouble(), None);
    assert!(!queue.set_trouble(&second, trouble()), "what waited");
    assert_eq!(queue.trouble(), None);
    queue.follow(Some(&second));
    assert!(queue.set_trouble(&second, trouble()));
    assert!(queue.set_trouble(&second, None), "it ends");
    assert_eq!(queue.trouble(), None);
}

#[test]
fn a_span_is_json_of_otlp() {
    let began = at(1_795_000_000);
    let trace = Trace {
        recorded: Some(began),
        ..Trace::supposed(&fields(Some(1)))
    };
    let after = |millis| began.instant + Duration::from_millis(millis);
    let period = Period {
        exchange: began,
        began: after(5),
        ended: after(7),
    };
    let mut span = Span::new(&trace, Some(2), "GET".to_owned(), period);
    span.text("a", b"\xff\"");
    span.text("b", "x".repeat(5000));
    span.number("c", 7_u16);
    span.fail("closed");
    let text = String::from_utf8(span.to_json()).unwrap();
    let long = "x".repeat(1024);
    let expected = format!(
        "{{\"traceId\":\"4bf92f3577b34da6a3ce929d0e0e4736\",\"spanId\":\"{}\",\"parentSpanId\":\"0000000000000001\",\
         \"name\":\"GET\",\"kind\":3,\"startTimeUnixNano\":\"1795000000005000000\",\
         \"endTimeUnixNano\":\"1795000000007000000\",\"attributes\":[\
         {{\"key\":\"a\",\"value\":{{\"stringValue\":\"\u{fffd}\\\"\"}}}},\
         {{\"key\":\"b\",\"value\":{{\"stringValue\":\"{long}\"}}}},\
         {{\"key\":\"c\",\"value\":{{\"intValue\":\"7\"}}}},\
         {{\"key\":\"error.type\",\"value\":{{\"stringValue\":\"closed\"}}}}],\"status\":{{\"code\":2}}}}",
        trace.attempt(2).digits()
    );
    assert_eq!(text, expected);
}

const GIVEN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0";
