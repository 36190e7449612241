//! An invented report for the tests of the renderers: three requests of a page of 347 bytes.

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use catamaran_stats::Histogram;

use super::{SpokenProtocol, Subject};
use crate::report::{
    AbCounts, Bytes, ConnectionCounts, Counts, Ending, Failures, FirstResponse, InSpan, Latency,
    Report, Sample, Second, ThreadUse, Unfinished, WarmUpReport,
};
use crate::timeline::Timeline;

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
    let counts = Counts {
        started: 3,
        ok: 3,
        completed: 3,
        ..Counts::default()
    };
    let bytes = Bytes {
        received: 1740,
        heads: 699,
        bodies: 1041,
        sent: 300,
        sent_bodies: 0,
    };
    let connections = ConnectionCounts {
        attempted: 3,
        opened: 3,
        ..ConnectionCounts::default()
    };
    Report {
        ending: Ending::Requests,
        started_at: UNIX_EPOCH + Duration::from_secs(1_700_000_000),
        elapsed: Duration::from_millis(12),
        drain: Duration::ZERO,
        warm_up: WarmUpReport::default(),
        threads: 1,
        concurrency: 1,
        concurrency_reached: 1,
        streams_reached: 0,
        addresses: vec!["127.0.0.1:8080".parse().ok()],
        first: Some(first_response()),
        tls: None,
        counts,
        ab: AbCounts::default(),
        failures: Failures::default(),
        reasons: BTreeMap::new(),
        statuses: BTreeMap::from([(200, 3)]),
        operations: None,
        in_span: InSpan {
            sent: 3,
            completed: 3,
            received: 1740,
        },
        bytes,
        connections,
        unfinished: Unfinished {
            hung: 0,
            cut: 0,
            unsent: 0,
            ages: Histogram::new(),
        },
        latency: latency(),
        by_name: Vec::new(),
        silences: Vec::new(),
        silence_min: Duration::from_millis(100),
        longest_silence: None,
        seconds: vec![second(3)],
        timeline: Timeline {
            length: Duration::from_millis(100),
            slices: Vec::new(),
        },
        generator: vec![ThreadUse {
            wall: Duration::from_millis(12),
            cpu: Duration::from_micros(90),
            starved: None,
            spun: Duration::ZERO,
        }],
        samples: vec![sample(5_200_000), sample(2_400_000), sample(4_403_000)],
        descriptors: Some(1024),
        warnings: Vec::new(),
    }
}

fn first_response() -> FirstResponse {
    FirstResponse {
        status: 200,
        server: Some("nginx/1.22.1 (Debian)".to_owned()),
        body_bytes: 347,
        head: b"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\n\r\n".to_vec(),
    }
}

/// Connects of 1 ms; the totals are those of the samples. Each value is the upper end of its bucket.
fn latency() -> Latency {
    Latency {
        connect: histogram([1000, 1000, 1000]),
        first_byte: histogram([1000, 3001, 4000]),
        processing: histogram([1400, 3403, 4200]),
        total: histogram([2400, 4403, 5200]),
        corrected: None,
        lateness: None,
        waits: None,
        per_request_connects: 0,
    }
}

pub(crate) fn histogram(micros: impl IntoIterator<Item = u64>) -> Histogram {
    let mut histogram = Histogram::new();
    for micros in micros {
        histogram.record_micros(micros);
    }
    histogram
}

pub(crate) fn second(completed: u64) -> Second {
    Second {
        completed,
        ..Second::default()
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
