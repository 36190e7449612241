//! Plans for tests, and the books every report must balance.

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::time::Duration;

use catamaran_load::plan::{
    Arrivals, Checks, Connections, Endpoint, HttpVersion, LengthCheck, Numbers, Pace, Plan,
    Protocol, Request, Samples, Stop, Target, Timeouts, Transport, WarmUp,
};
use catamaran_load::report::{Report, Subject};
use catamaran_load::start;
use catamaran_testkit::Address;

/// One request by one client over HTTP/1.1, kept alive, with a deadline against hangs.
pub(crate) fn plan(address: &Address) -> Plan {
    Plan {
        subject: Subject::default(),
        targets: vec![Target {
            endpoint: Endpoint {
                transport: transport(address),
                tls: None,
                protocol: Protocol::Http,
            },
            requests: vec![Request::get("/", HttpVersion::Http11).header("Host", "test")],
        }],
        pace: closed(1),
        replay: None,
        stages: Vec::new(),
        stop: requests(1),
        warm_up: WarmUp::None,
        threads: NonZeroUsize::MIN,
        connections: Connections::default(),
        timeouts: Timeouts {
            request: Some(Duration::from_secs(20)),
            idle: None,
        },
        checks: Checks {
            body_length: LengthCheck::Failed,
            body_content: false,
            stop_at_receive_error: false,
            stop_without_descriptors: false,
        },
        samples: Samples::None,
        table: None,
        numbers: Numbers::default(),
        cookie_jar: false,
        seed: 1,
        starved_time,
    }
}

pub(crate) fn transport(address: &Address) -> Transport {
    match address {
        Address::Tcp(address) => Transport::Tcp {
            host: address.ip().to_string(),
            port: address.port(),
        },
        Address::Unix(path) => Transport::Unix(path.clone()),
    }
}

pub(crate) fn closed(clients: usize) -> Pace {
    Pace::Closed {
        concurrency: NonZeroUsize::new(clients).unwrap(),
        spacing: Duration::ZERO,
    }
}

pub(crate) fn open(per_second: f64, connections: usize, backlog: usize) -> Pace {
    Pace::Open {
        per_second,
        arrivals: Arrivals::Poisson,
        connections: NonZeroUsize::new(connections).unwrap(),
        backlog: NonZeroUsize::new(backlog).unwrap(),
    }
}

pub(crate) fn requests(count: u64) -> Stop {
    Stop {
        requests: NonZeroU64::new(count),
        duration: None,
        grace: Duration::from_secs(20),
    }
}

pub(crate) fn pipelined(depth: u32) -> Connections {
    Connections {
        pipeline: NonZeroU32::new(depth).unwrap(),
        ..Connections::default()
    }
}

/// As the command line reads it.
fn starved_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let waiting = text.split_ascii_whitespace().nth(1)?;
    waiting.parse().ok().map(Duration::from_nanos)
}

/// Runs to the end and looks at the books.
pub(crate) fn run(plan: Plan) -> Report {
    let mut running = start(plan).unwrap();
    assert!(
        running.wait(Duration::from_secs(30)),
        "the run does not end: {:?}",
        running.progress()
    );
    balanced(running.finish())
}

/// What must be so in every report.
pub(crate) fn balanced(report: Report) -> Report {
    let counts = &report.requests;
    assert_eq!(
        counts.started,
        counts.ok + counts.failed + report.unfinished.total(),
        "{counts:?} {:?}",
        report.unfinished
    );
    assert_eq!(report.failures.total(), counts.failed);
    let operations = report.operations.map_or(0, |operations| operations.total());
    let statuses: u64 = report.statuses.values().sum();
    assert_eq!(statuses + operations, counts.completed);
    assert_eq!(report.latency.total.histogram.count(), counts.completed);
    let in_seconds: u64 = report.seconds.iter().map(|second| second.completed).sum();
    assert_eq!(in_seconds, counts.completed);
    assert_eq!(report.unfinished.ages.count(), report.unfinished.total());
    report
}
