//! An invented report for the tests of the renderers: three requests of a page of 347 bytes.

use std::collections::BTreeMap;
use std::time::Duration;

use catamaran_stats::Histogram;

use crate::report::{
    Bytes, Connections, Generator, InSpan, Latencies, Report, Requests, Sample, SecondFacts,
    Server, SpokenProtocol, Subject, Thread, Times,
};

pub(crate) fn subject() -> Subject {
    Subject {
        url: "http://127.0.0.1:8080/".to_owned(),
        urls: 1,
        hostname: "127.0.0.1".to_owned(),
        port: 8080,
        path: "/".to_owned(),
        protocol: SpokenProtocol::Http11,
        streams: 1,
        memcached: None,
        keep_alive: false,
        sends_body: false,
        variable_length: false,
        percentiles: true,
        confidence: true,
        rate: None,
        has_stages: false,
    }
}

pub(crate) fn report() -> Report {
    let mut report = Report {
        started_at: Duration::from_secs(1_700_000_000),
        elapsed: Duration::from_millis(12),
        threads: 1,
        concurrency: 1,
        concurrency_reached: 1,
        server: server(),
        requests: Requests {
            started: 3,
            ok: 3,
            completed: 3,
            ..Requests::default()
        },
        statuses: BTreeMap::from([(200, 3)]),
        in_span: InSpan {
            sent: 3,
            completed: 3,
            received: 1740,
        },
        bytes: Bytes {
            received: 1740,
            received_heads: 699,
            received_bodies: 1041,
            sent: 300,
            ..Bytes::default()
        },
        connections: Connections {
            attempted: 3,
            opened: 3,
            ..Connections::default()
        },
        latency: latency(),
        silence_min: Duration::from_millis(100),
        seconds: vec![second(3)],
        generator: generator(),
        samples: vec![sample(5_200_000), sample(2_400_000), sample(4_403_000)],
        subject: subject(),
        ..Report::default()
    };
    report.conclude();
    report
}

fn server() -> Server {
    Server {
        addresses: vec![Some("127.0.0.1:8080".to_owned())],
        software: Some("nginx/1.22.1 (Debian)".to_owned()),
        first_status: Some(200),
        document_bytes: Some(347),
        tls: None,
        first_head: b"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\n\r\n".to_vec(),
    }
}

fn generator() -> Generator {
    Generator {
        cpu_s: 90e-6,
        threads: vec![Thread {
            wall_s: 0.012,
            cpu_s: 90e-6,
            busy: 0.0075,
            ..Thread::default()
        }],
        open_files_max: Some(1024),
        ..Generator::default()
    }
}

/// Latencies with connects of 1 ms. The total times are those of the samples. Each value is the upper end of
/// its bucket.
fn latency() -> Latencies {
    Latencies {
        connect: times([1000, 1000, 1000]),
        first_byte: times([1000, 3001, 4000]),
        processing: times([1400, 3403, 4200]),
        total: times([2400, 4403, 5200]),
        ..Latencies::default()
    }
}

pub(crate) fn times(micros: impl IntoIterator<Item = u64>) -> Times {
    let mut histogram = Histogram::new();
    for micros in micros {
        histogram.record_micros(micros);
    }
    histogram.into()
}

pub(crate) fn second(completed: u64) -> SecondFacts {
    SecondFacts {
        completed,
        ..SecondFacts::default()
    }
}

fn sample(total: u64) -> Sample {
    Sample {
        start: 1_000_000_000,
        connect: 1_000_000,
        first_byte: 1_000_000,
        total,
        status: 200,
    }
}
