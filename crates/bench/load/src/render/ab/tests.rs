//! Compares with the output of Debian's ab 2.4, into which our measured values are put by hand.

use super::super::sample;
use super::*;
use crate::report::{AbCounts, Failures};

#[test]
fn the_text_of_a_plain_run() {
    let expected = "

Server Software:        nginx/1.22.1
Server Hostname:        127.0.0.1
Server Port:            8080

Document Path:          /
Document Length:        347 bytes

Concurrency Level:      1
Time taken for tests:   0.012 seconds
Complete requests:      3
Failed requests:        0
Total transferred:      1740 bytes
HTML transferred:       1041 bytes
Requests per second:    250.00 [#/sec] (mean)
Time per request:       4.000 [ms] (mean)
Time per request:       4.000 [ms] (mean, across all concurrent requests)
Transfer rate:          141.60 [Kbytes/sec] received

Connection Times (ms)
              min  mean[+/-sd] median   max
Connect:        1    1   0.0      1       1
Processing:     1    3   1.4      3       4
Waiting:        1    3   1.5      3       4
Total:          2    4   1.4      4       5

Percentage of the requests served within a certain time (ms)
  50%      4
  66%      4
  75%      5
  80%      5
  90%      5
  95%      5
  98%      5
  99%      5
 100%      5 (longest request)
";
    assert_eq!(text(&sample::report()), expected);
}

#[test]
fn what_a_post_with_keep_alive_and_errors_adds() {
    let mut report = sample::report();
    report.ab = AbCounts {
        connect: 1,
        receive: 2,
        length: 3,
        exceptions: 4,
        write: 5,
    };
    report.requests.non_2xx = 3;
    report.requests.kept_alive = 2;
    let subject = &mut report.subject;
    subject.keep_alive = true;
    subject.sends_body = true;
    subject.variable_length = true;
    let text = text(&report);
    let expected = "\
Document Length:        Variable

Concurrency Level:      1
Time taken for tests:   0.012 seconds
Complete requests:      3
Failed requests:        10
   (Connect: 1, Receive: 2, Length: 3, Exceptions: 4)
Write errors:           5
Non-2xx responses:      3
Keep-Alive requests:    2
Total transferred:      1740 bytes
Total body sent:        300
HTML transferred:       1041 bytes
";
    assert!(text.contains(expected), "{text}");
    let expected = "received
                        24.41 kb/s sent
                        166.02 kb/s total

";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn without_confidence_and_percentiles() {
    let mut report = sample::report();
    let subject = &mut report.subject;
    subject.confidence = false;
    subject.percentiles = false;
    let text = text(&report);
    let expected = "
Connection Times (ms)
              min   avg   max
Connect:        1     1    1
Processing:     1     3    4
Waiting:        1     3    4
Total:          2     4    5
";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn a_skewed_latency_is_doubted_as_ab_does() {
    let mut page = Page::default();
    let skewed = sample::times([1000, 1000, 1000, 1000, 9000]);
    warn_of_skew(&mut page, "the total time", &skewed.histogram);
    // mean 3, median 1, deviation 3.6
    assert_eq!(page.into_text(), "");
    let mut page = Page::default();
    // Rounded, mean and median are 1 ms apart; the deviation is a thousandth of that.
    warn_of_skew(
        &mut page,
        "the total time",
        &sample::times([1499, 1499, 1500, 1501, 1502]).histogram,
    );
    assert_eq!(page.into_text(), "");
    let mut page = Page::default();
    warn_of_skew(
        &mut page,
        "the waiting time",
        &sample::times([1499, 1499, 1499, 1502, 1503]).histogram,
    );
    let expected = "\
ERROR: The median and mean for the waiting time are more than twice the standard
       deviation apart. These results are NOT reliable.
";
    assert_eq!(page.into_text(), expected);
}

#[test]
fn requests_that_the_server_cut_off_are_complete() {
    let mut report = sample::report();
    report.failures = Failures::default();
    for kind in FailureKind::ALL {
        report.failures.add(kind);
    }
    let complete = [
        "refused",
        "tls",
        "write",
        "reset",
        "receive",
        "early-close",
        "truncated-head",
        "truncated-body",
        "excess",
        "bad-head",
        "bad-body",
        "bad-packet",
    ];
    assert_eq!(complete_requests(&report), 3 + complete.len() as u64);
}

#[test]
fn nothing_done_has_no_times() {
    let mut report = sample::report();
    report.requests.completed = 0;
    let text = text(&report);
    assert!(
        text.ends_with("HTML transferred:       1041 bytes\n"),
        "{text}"
    );
}

#[test]
fn tls_lines_are_those_of_openssl() {
    let mut report = sample::report();
    report.server.tls = Some(TlsFacts {
        version: "TLSv1.3".to_owned(),
        cipher: "TLS_AES_256_GCM_SHA384".to_owned(),
        key_bits: Some(2048),
        cipher_bits: 256,
        temp_key: Some("X25519".to_owned()),
        temp_key_bits: Some(253),
        server_name: Some("localhost".to_owned()),
    });
    let text = text(&report);
    let expected = "\
Server Port:            8080
SSL/TLS Protocol:       TLSv1.3,TLS_AES_256_GCM_SHA384,2048,256
Server Temp Key:        X25519 253 bits
TLS Server Name:        localhost

";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn the_file_of_percentiles_has_a_row_for_each() {
    let text = percentiles_csv(&sample::report());
    assert_eq!(text.lines().count(), 102);
    assert!(
        text.starts_with("Percentage served,Time in ms\n0,2.400\n1,2.401\n"),
        "{text}"
    );
    assert!(text.ends_with("\n99,5.200\n100,5.200\n"), "{text}");
}

#[test]
fn the_file_of_requests_is_sorted_by_their_time() {
    let text = gnuplot(&sample::report(), |_| "Tue Nov 14 22:13:21 2023".to_owned());
    let expected = "\
starttime\tseconds\tctime\tdtime\tttime\twait
Tue Nov 14 22:13:21 2023\t1700000001\t1\t1\t2\t1
Tue Nov 14 22:13:21 2023\t1700000001\t1\t3\t4\t1
Tue Nov 14 22:13:21 2023\t1700000001\t1\t4\t5\t1
";
    assert_eq!(text, expected);
}

#[test]
fn html_is_a_table() {
    let html = html(&sample::report(), &HtmlAttributes::default());
    let expected = "

<table >
<tr ><th colspan=2 bgcolor=white>Server Software:</th><td colspan=2 bgcolor=white>nginx/1.22.1</td></tr>
<tr ><th colspan=2 bgcolor=white>Server Hostname:</th><td colspan=2 bgcolor=white>127.0.0.1</td></tr>
<tr ><th colspan=2 bgcolor=white>Server Port:</th><td colspan=2 bgcolor=white>8080</td></tr>
<tr ><th colspan=2 bgcolor=white>Document Path:</th><td colspan=2 bgcolor=white>/</td></tr>
<tr ><th colspan=2 bgcolor=white>Document Length:</th><td colspan=2 bgcolor=white>347 bytes</td></tr>
<tr ><th colspan=2 bgcolor=white>Concurrency Level:</th><td colspan=2 bgcolor=white>1</td></tr>
<tr ><th colspan=2 bgcolor=white>Time taken for tests:</th><td colspan=2 bgcolor=white>0.012 seconds</td></tr>
<tr ><th colspan=2 bgcolor=white>Complete requests:</th><td colspan=2 bgcolor=white>3</td></tr>
<tr ><th colspan=2 bgcolor=white>Failed requests:</th><td colspan=2 bgcolor=white>0</td></tr>
<tr ><th colspan=2 bgcolor=white>Total transferred:</th><td colspan=2 bgcolor=white>1740 bytes</td></tr>
<tr ><th colspan=2 bgcolor=white>HTML transferred:</th><td colspan=2 bgcolor=white>1041 bytes</td></tr>
<tr ><th colspan=2 bgcolor=white>Requests per second:</th><td colspan=2 bgcolor=white>250.00</td></tr>
<tr ><th colspan=2 bgcolor=white>Transfer rate:</th><td colspan=2 bgcolor=white>141.60 kb/s received</td></tr>
<tr ><th bgcolor=white colspan=4>Connection Times (ms)</th></tr>
<tr ><th bgcolor=white>&nbsp;</th> <th bgcolor=white>min</th>   <th bgcolor=white>avg</th>   <th bgcolor=white>max</th></tr>
<tr ><th bgcolor=white>Connect:</th><td bgcolor=white>    1</td><td bgcolor=white>    1</td><td bgcolor=white>    1</td></tr>
<tr ><th bgcolor=white>Processing:</th><td bgcolor=white>    1</td><td bgcolor=white>    3</td><td bgcolor=white>    4</td></tr>
<tr ><th bgcolor=white>Total:</th><td bgcolor=white>    2</td><td bgcolor=white>    4</td><td bgcolor=white>    5</td></tr>
</table>
";
    assert_eq!(html, expected);
}
