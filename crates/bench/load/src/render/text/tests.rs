//! Tests of the text report: whole texts where the layout matters, else single lines.

use super::super::sample;
use super::*;
use crate::report::{FailureKind, FatalError, Warning};

/// A server may allow fewer streams than the plan has.
#[test]
fn streams_are_those_that_there_were() {
    let mut report = sample::report();
    report.subject = Subject {
        protocol: SpokenProtocol::Http2,
        streams: 1000,
        ..sample::subject()
    };
    for (reached, expected) in [
        (250, "250 per connection at most, 1000 were asked for"),
        (1000, "1000 per connection"),
        (0, "1000 per connection"),
    ] {
        report.streams_reached = reached;
        let line = format!("Streams:                {expected}\n");
        assert!(text(&report).contains(&line), "{reached}");
    }
}

#[test]
fn the_text_of_a_plain_run() {
    let expected = "\
Verdict   valid
Rate      250.0/s
Latency   p50 4.403 ms, p99 5.200 ms
Failed    0, of 3 requests
Statuses  2xx 3

Server Software:        nginx/1.22.1
Server Hostname:        127.0.0.1
Server Port:            8080

Document Path:          /
Document Length:        347 bytes

Concurrency Level:      1
Time taken for tests:   0.012000 seconds
Complete requests:      3
Failed requests:        0
Total transferred:      1740 bytes
Total sent:             300 bytes
HTML transferred:       1041 bytes
Requests per second:    250.00 [#/sec] (mean)
Time per request:       4.000000 [ms] (mean)
Time per request:       4.000000 [ms] (mean, across all concurrent requests)
Transfer rate:          141.60 [Kbytes/sec] received
                        24.41 [Kbytes/sec] sent
                        166.02 [Kbytes/sec] total

Connection Times (ms)
                  min      mean   [+/-sd]    median       max
Connect:        1.000     1.000     0.000     1.000     1.000
Processing:     1.400     3.001     1.443     3.403     4.200
Waiting:        1.000     2.667     1.528     3.001     4.000
Total:          2.400     4.001     1.443     4.403     5.200

Percentage of the requests served within a certain time (ms)
    50%       4.403  (too few requests from here on)
    66%       4.403
    75%       5.200
    80%       5.200
    90%       5.200
    95%       5.200
    98%       5.200
    99%       5.200
  99.9%       5.200
 99.99%       5.200
   100%       5.200 (longest request)

Bytes per request (heads, bodies, and all with the framing of bodies)
Sent:           100.0         0.0       100.0
Received:       233.0       347.0       580.0

Statuses
  200                        3

Connections
  attempted                  3
  opened                     3
  used again                 0
  reset                      0
  closed while idle          0
  requests sent twice        0
  most at once               1

Generator
  1 thread(s), 0.000 s of CPU, 30.00 us per request; the busiest thread 1 % of the time
";
    assert_eq!(text(&sample::report()), expected);
}

#[test]
fn an_open_loop_has_two_columns_and_its_lateness() {
    let mut report = sample::report();
    report.latency.total = sample::times(1..=1000);
    let mut corrected = CensoredLatencies::new();
    for micros in 1..=1000 {
        corrected.record(Duration::from_micros(micros * 2));
    }
    report.latency.corrected = Some(corrected.into());
    report.latency.lateness = Some(sample::times([10, 20, 30]));
    report.subject.rate = Some(1000.0);
    let text = text(&report);
    for line in [
        "Requested rate:         1000.00 [#/sec]\n",
        "\n                raw   corrected\n    50%       0.500       1.000\n",
        "\n    99%       0.990       1.980\n  99.9%       0.999       1.998  (too few requests from here on)\n",
        "\n   100%       1.000       2.000 (longest request)\n",
        "  sent late by (ms): median 0.020, 99% 0.030, most 0.030\n",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

/// With stages the number of clients varies, so the mean is known only as measured.
#[test]
fn the_time_of_a_request_with_stages_is_the_measured_mean() {
    let mut report = sample::report();
    report.subject.has_stages = true;
    let text = text(&report);
    let line = "\nTime per request:       4.001000 [ms] (mean)\n";
    assert!(text.contains(line), "{text}");
}

/// The line of a failure has the error of TLS; a refused connect has no further text.
#[test]
fn failures_have_their_reasons() {
    let mut report = sample::report();
    report.failures.add(FailureKind::Refused);
    report.failures.add(FailureKind::Tls);
    let reason = "invalid peer certificate: UnknownIssuer".to_owned();
    report.failure_reasons.insert(FailureKind::Tls, reason);
    let text = text(&report);
    let lines = "  refused                    1  the connection was refused\n  tls                        \
                 1  TLS failed: invalid peer certificate: UnknownIssuer\n";
    assert!(text.contains(lines), "{text}");
}

/// After one request no percentile can be quoted; the text says so once.
#[test]
fn too_few_requests_are_told_once() {
    let mut report = sample::report();
    report.latency.total = sample::times([1000]);
    report.warnings = vec![Warning::FewSamples {
        samples: 1,
        percentile_max: 0.0,
    }];
    let text = text(&report);
    assert_eq!(text.matches("too few requests").count(), 1, "{text}");
    let warning = "WARNING: 1 answers are too few for any percentile: ten must lie beyond";
    assert!(text.contains(warning), "{text}");
}

/// The time that the generator spent without sleeping has a line of its own.
#[test]
fn a_generator_that_spins_says_for_how_long() {
    let mut report = sample::report();
    let before = text(&report);
    assert!(!before.contains("waiting without sleep"), "{before}");
    report.generator.threads[0].spun_s = 0.003;
    let text = text(&report);
    let line = "\n  waiting without sleep for 25 % of the time: starts were too near for a timer\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn stalls_and_waits_say_what_to_do() {
    let mut report = sample::report();
    report.warnings = vec![
        Warning::Waited {
            count: 12,
            of: 600,
            needed: 28,
        },
        Warning::Stalled {
            silent: 0.104,
            longest: Duration::from_millis(1003),
            median: Duration::from_millis(1),
        },
    ];
    let text = text(&report);
    for line in [
        "WARNING: 12 of 600 requests waited for a free connection, which the corrected \
         latency includes: the rate needs about -c 28\n",
        "no answer for 10 % of the time, and the longest took 1003.000 ms, the median 1.000 ms;",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

/// Two of a hundred requests were never sent, so a percentile among them is a lower bound.
#[test]
fn percentiles_of_requests_without_an_answer_are_lower_bounds() {
    let mut corrected = CensoredLatencies::new();
    (0..980).for_each(|_| corrected.record(Duration::from_millis(1)));
    (0..20).for_each(|_| corrected.record_waiting(Duration::from_millis(500)));
    let mut report = sample::report();
    report.latency.corrected = Some(corrected.into());
    let text = text(&report);
    for line in [
        "\n    98%       5.200       1.000\n",
        "\n    99%       5.200   > 500.000\n",
        "\n   100%       5.200   > 500.000 (longest request)\n",
        "\n  `>`: at least; 20 requests without an answer count",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[test]
fn every_failed_request_is_counted_once_with_its_cause() {
    let mut report = sample::report();
    report.failures.add(FailureKind::Reset);
    report.failures.add(FailureKind::Reset);
    report.failures.add(FailureKind::Timeout);
    report.requests.failed = 3;
    report.unfinished.hung = 2;
    let text = text(&report);
    let expected = "\
Failed requests:        3
   (reset: 2, timeout: 1)
Unfinished requests:    2
   (hung: 2, cut: 0, unsent: 0)
";
    assert!(text.contains(expected), "{text}");
    let expected = "
Failures
  reset                      2  the server reset the connection
  timeout                    1  there was no answer in time
";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn doubts_come_before_the_figures() {
    let mut report = sample::report();
    report.ending = Ending::Failure(FatalError {
        kind: FailureKind::Name,
        errno: None,
        message: "no.such.host: Name or service not known".to_owned(),
    });
    report.warnings = vec![
        Warning::NonSuccess {
            count: 5000,
            of: 5000,
        },
        Warning::KeepAliveRefused { kept: 0, of: 5000 },
    ];
    let text = text(&report);
    let expected = "
WARNING: the run was given up: no.such.host: Name or service not known
WARNING: 5000 of 5000 answers were not 2xx: this is the speed of error pages or redirects
WARNING: keep-alive was asked for, but only 0 of 5000 answers kept their connection open: this is \
                    mostly the speed of connecting

Server Software:";
    assert!(text.contains(expected), "{text}");
    let before = text.find(expected).unwrap();
    assert_eq!(text[..before].lines().count(), 5, "{text}");
}

#[test]
fn a_few_error_pages_are_not_called_the_speed_of_all() {
    let mut report = sample::report();
    report.warnings = vec![Warning::NonSuccess {
        count: 2,
        of: 10_000,
    }];
    let text = text(&report);
    let expected = "WARNING: 2 of 10000 answers were not 2xx; their latencies count, too\n";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn whole_seconds_have_a_spread() {
    let mut report = sample::report();
    report.elapsed = Duration::from_millis(3500);
    report.seconds = [100, 110, 90, 20].map(sample::second).to_vec();
    let text = text(&report);
    let expected = "
Requests per second over 3 whole seconds
                  min      mean   [+/-sd]    median       max
                 90.0     100.0      10.0     100.0     110.0
Coefficient of variation: 10.0 %
";
    assert!(text.contains(expected), "{text}");
}
