//! The sending thread before scripted collectors.

use catamaran_testkit::{Peer, Script};

use super::*;

/// The settings for a collector.
fn settings(collector: &Peer) -> TraceConfig {
    let at = collector.tcp_address();
    TraceConfig::new(Address::Tcp {
        host: at.ip().to_string(),
        port: at.port(),
    })
}

/// The thread before a collector: its queue and its settings.
fn started(collector: &Peer) -> (Arc<Queue>, Arc<ArcSwap<TraceConfig>>) {
    let config = settings(collector);
    let queue = Arc::new(Queue::default());
    queue.follow(Some(&config.address));
    let config = Arc::new(ArcSwap::from_pointee(config));
    start(Arc::clone(&queue), Arc::clone(&config)).unwrap();
    (queue, config)
}

/// Sends one span to a collector, and ends. Returns what became of it.
fn sent(collector: &Peer) -> ([u64; SpanResult::ALL.len()], Arc<Queue>) {
    let (queue, _) = started(collector);
    queue.put(b"{}".to_vec());
    // Until the first attempt is over: what comes after the end is not sent again.
    collector.wait_connections(1);
    (settled(&queue, 1), queue)
}

/// Waits until so many spans are counted.
fn settled(queue: &Queue, spans: u64) -> [u64; SpanResult::ALL.len()] {
    let deadline = catamaran_testkit::Deadline::default();
    let counts = deadline.poll("what became of the spans", || {
        let counts = queue.counts();
        (counts.iter().sum::<u64>() >= spans).then_some(counts)
    });
    counts.unwrap()
}

#[test]
fn a_batch_is_an_export_request() {
    let collector = Peer::start(Script::new().expect_until(END).send(TAKEN).stall());
    let (counts, queue) = sent(&collector);
    assert_eq!(counts, [1, 0, 0, 0]);
    assert_eq!(queue.trouble(), None);
    let text = String::from_utf8(collector.received(0)).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("Content-Type: application/json"), "{head}");
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    let resource = &body["resourceSpans"][0];
    let name = &resource["resource"]["attributes"][0];
    assert_eq!(
        (&name["key"], &name["value"]["stringValue"]),
        (&"service.name".into(), &"catamaran".into())
    );
    assert_eq!(
        resource["scopeSpans"][0]["spans"].as_array().unwrap().len(),
        1
    );
}

#[test]
fn a_batch_is_sent_again_if_the_collector_asks_for_it() {
    let busy = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n";
    let twice = Script::new()
        .expect_until(END)
        .send(busy)
        .expect_until(END)
        .send(TAKEN);
    let collector = Peer::start(twice.stall());
    assert_eq!(sent(&collector).0, [1, 0, 0, 0]);
    assert_eq!(collector.connections(), 1, "the connection is used again");
}

#[test]
fn a_batch_that_is_sent_again_goes_to_the_collector_in_force() {
    let busy = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
    let before = Peer::start(Script::new().expect_until(END).send(busy).stall());
    let after = Peer::start(Script::new().expect_until(END).send(TAKEN).stall());
    let (queue, config) = started(&before);
    queue.put(b"{}".to_vec());
    let trouble = || queue.trouble();
    let deadline = catamaran_testkit::Deadline::default();
    deadline.poll("a trouble", trouble).unwrap();
    let next = TraceConfig {
        name: "other".to_owned(),
        ..settings(&after)
    };
    queue.follow(Some(&next.address));
    config.store(Arc::new(next));
    assert_eq!(settled(&queue, 1), [1, 0, 0, 0]);
    let text = String::from_utf8(after.received(0)).unwrap();
    assert!(text.contains("\"stringValue\":\"other\""), "{text}");
}

#[test]
fn a_connection_that_was_closed_meanwhile_is_replaced() {
    let collector = Peer::start(Script::new().expect_until(END).send(TAKEN).finish());
    let (_, queue) = sent(&collector);
    let _outcome = collector.wait_outcome(0);
    queue.put(b"{}".to_vec());
    assert_eq!(settled(&queue, 2), [2, 0, 0, 0]);
}

#[test]
fn what_the_collector_refuses_is_counted() {
    let refusal = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    let part = b"HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n{\"partialSuccess\":{\"rejectedSpans\":\"1\"}}";
    for answer in [&refusal[..], part] {
        let collector = Peer::start(Script::new().expect_until(END).send(answer).stall());
        let (counts, _) = sent(&collector);
        assert_eq!(counts, [0, 0, 0, 1], "{}", String::from_utf8_lossy(answer));
    }
}

#[test]
fn at_the_end_a_silent_collector_is_not_waited_for_long() {
    let collector = Peer::start(Script::new().stall());
    let (queue, _) = started(&collector);
    queue.put(b"{}".to_vec());
    queue.finish();
    assert_eq!(settled(&queue, 1), [0, 0, 1, 0]);
    assert!(queue.trouble().is_some());
}

#[test]
fn counts_of_an_answer_may_be_texts_or_numbers() {
    for (text, count) in [
        ("", 0),
        ("{}", 0),
        ("{\"partialSuccess\":{}}", 0),
        ("{\"partialSuccess\":{\"rejectedSpans\":\"3\"}}", 3),
        (
            "{\"partialSuccess\":{\"rejectedSpans\":3,\"errorMessage\":\"x\"}}",
            3,
        ),
        ("{\"partialSuccess\":{\"rejectedSpans\":\"many\"}}", 0),
        ("[1]", 0),
    ] {
        let answer = ClientAnswer::default();
        assert_eq!(answer.head.status, StatusCode::OK);
        assert_eq!(judge(&answer, text.as_bytes()).unwrap(), count, "{text}");
    }
}

const TAKEN: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";

const END: &[u8] = b"]}]}]}";
