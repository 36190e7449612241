//! Traces through the built binary: what Tomcat is told, and what OpenTelemetry's own messages say of the spans.

use std::io::Write as _;
use std::process::{Command, Stdio};

use catamaran_e2e::{Connector, Front, Tomcat};
use catamaran_testkit::{Deadline, Peer, Script, Signal};
use serde_json::Value;

use crate::through::value;

/// A collector that takes all batches, and what it received.
fn collector() -> Peer {
    let taken = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
    let turn = Script::new().expect_until(b"]}]}]}").send(taken);
    Peer::start(turn.repeat(100).stall())
}

/// A front to the shared Tomcat that records each trace, and logs in JSON.
fn front(connector: Connector, collector: &Peer) -> Front {
    let backend = Tomcat::shared().unwrap().backend_table("app", connector);
    let collector = collector.tcp_address();
    let trace = format!("[trace]\naddress = \"http://{collector}\"\nname = \"shop\"\nsample = 1\n");
    Front::to_app(&format!("{backend}{trace}[log]\nformat = \"json\"\n")).unwrap()
}

/// Ends the front in order.
fn end(front: &mut Front) {
    front.process().signal(Signal::Terminate).unwrap();
    let status = front.process().wait(Deadline::default()).unwrap();
    assert_eq!(status.code(), Some(0), "{}", front.process().stderr());
}

/// The spans that a collector got, as the published messages have them.
fn spans(collector: &Peer) -> Vec<Value> {
    let bodies = (0..collector.connections()).flat_map(|connection| {
        let text = String::from_utf8(collector.received(connection)).unwrap();
        let lines = text
            .lines()
            .filter(|line| line.starts_with("{\"resourceSpans"));
        // The head of the next request follows at once.
        let end = |line: &str| line.rfind('}').map(|at| line[..=at].to_owned());
        lines.filter_map(end).collect::<Vec<_>>()
    });
    let bodies: Vec<String> = bodies.collect();
    let mut python = Command::new("python3")
        .args(["-c", include_str!("traces.py")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = python.stdin.take().unwrap();
    input.write_all(bodies.join("\n").as_bytes()).unwrap();
    drop(input);
    let output = python.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "`cargo xtask needs` fetches the messages: {said}"
    );
    let printed = String::from_utf8(output.stdout).unwrap();
    let lines = printed.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn the_published_messages_read_the_spans_of_a_request_to_tomcat() {
    for connector in [Connector::Ajp, Connector::Http] {
        let collector = collector();
        let mut front = front(connector, &collector);
        let fields = format!(
            "traceparent: 00-{TRACE}-{PARENT}-01\r\ntracestate: a=1\r\ntracestate: b=2\r\n"
        );
        let answer = front.ask(front.head("GET", "/snoop.jsp", &fields)).unwrap();
        let text = answer.text();
        assert_eq!(value(&text, "header.tracestate"), "a=1,b=2");
        let told = value(&text, "header.traceparent").to_owned();
        assert_eq!(front.get("/status.jsp?code=500").unwrap().status, 500);
        let line = front.wait_for_log("/snoop.jsp").unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        end(&mut front);

        let mut spans = spans(&collector);
        // Two workers may have served the two requests, and may end with either first.
        spans.sort_by_key(|span| span["status"].as_u64());
        let [attempt, exchange, failed, failed_exchange] = &spans[..] else {
            panic!("{spans:?}");
        };
        assert_eq!(
            told,
            format!("00-{TRACE}-{}-01", attempt["span"].as_str().unwrap())
        );
        assert_eq!(
            (&line["trace_id"], &line["span_id"]),
            (&TRACE.into(), &exchange["span"])
        );
        assert_eq!(
            (&exchange["parent"], &attempt["parent"]),
            (&PARENT.into(), &exchange["span"])
        );
        for (span, name, kind, status, error) in [
            (attempt, "GET", "SPAN_KIND_CLIENT", 200, false),
            (exchange, "GET /", "SPAN_KIND_SERVER", 200, false),
            (failed, "GET", "SPAN_KIND_CLIENT", 500, true),
            (failed_exchange, "GET /", "SPAN_KIND_SERVER", 500, true),
        ] {
            assert_eq!(span["service"], "shop");
            assert_eq!(
                (&span["name"], &span["kind"]),
                (&name.into(), &kind.into()),
                "{span}"
            );
            assert_eq!(
                (&span["status"], &span["error"]),
                (&status.into(), &error.into()),
                "{span}"
            );
        }
        assert_eq!(failed["trace"], failed_exchange["trace"]);
        assert_ne!(failed["trace"], TRACE);
    }
}

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

const PARENT: &str = "00f067aa0ba902b7";
