//! Renders the report of `ab` 2.4, in its words, order and number formats.
//!
//! Scripts parse this text: whole milliseconds, and failed requests as ab counts them, one event up
//! to three times. Two figures cannot be computed from histograms and differ within the rounding:
//! the median of an odd number of requests (ab averages the middle one and the next), and times of
//! more than three digits.

mod files;
mod html;

use std::time::Duration;

use catamaran_stats::Histogram;
pub use files::{gnuplot, percentiles_csv};
pub use html::{HtmlAttributes, html};

use super::page::Page;
use super::{per_second, time_per_request};
use crate::clock::millis;
use crate::report::{FailureKind, Report, Subject, TlsFacts, ratio};

/// The report on standard output, from the empty lines after `..done` on.
pub fn text(report: &Report) -> String {
    let subject = &report.subject;
    let mut page = Page::default();
    page.gap();
    page.gap();
    heading(&mut page, report, subject);
    page.gap();
    counts(&mut page, report, subject);
    let done = complete_requests(report);
    if done > 0 {
        rates(&mut page, report, subject);
        times(&mut page, report, subject);
        if subject.percentiles && done > 1 {
            percentiles(&mut page, &report.latency.total.histogram);
        }
    }
    page.into_text()
}

/// ab's "Complete requests": those that were answered, and failures that ab counts as answered.
pub fn complete_requests(report: &Report) -> u64 {
    let mut complete = report.requests.completed;
    for (kind, count) in report.failures.iter() {
        if ab_counts_as_complete(kind) {
            complete += count;
        }
    }
    complete
}

/// Whether ab counts a request that failed in this way as complete. Those with another length are
/// counted as answered anyway; other kinds ab does not know. ab learns of a refused connect and a
/// failed handshake by reading, and takes both for a response.
fn ab_counts_as_complete(kind: FailureKind) -> bool {
    let unknown_to_ab = [
        FailureKind::BodyLength,
        FailureKind::Timeout,
        FailureKind::Backlog,
        FailureKind::BadReply,
        FailureKind::ServerError,
        FailureKind::NotStored,
        FailureKind::WrongValue,
    ];
    let has_response = match kind {
        FailureKind::Refused | FailureKind::Tls => true,
        _ => !kind.is_connect(),
    };
    has_response && !unknown_to_ab.contains(&kind)
}

/// Writes the lines about the server and the document, from the first response.
pub(super) fn heading(page: &mut Page, report: &Report, subject: &Subject) {
    page.pair("Server Software", software(report));
    page.pair("Server Hostname", &subject.hostname);
    page.pair("Server Port", subject.port);
    if let Some(tls) = &report.server.tls {
        tls_lines(page, tls);
    }
    page.gap();
    page.pair("Document Path", &subject.path);
    page.pair("Document Length", document_length(report, subject));
}

/// The first response's Server field up to its first space.
fn software(report: &Report) -> &str {
    let words = report.server.software.as_deref().unwrap_or_default();
    words
        .split(|letter: char| letter <= ' ')
        .next()
        .unwrap_or_default()
}

/// The length of the first document; 0 if no response came, as ab prints it.
fn document_length(report: &Report, subject: &Subject) -> String {
    if subject.variable_length {
        return "Variable".to_owned();
    }
    let bytes = report.server.document_bytes.unwrap_or(0);
    format!("{bytes} bytes")
}

fn tls_lines(page: &mut Page, tls: &TlsFacts) {
    let key_bits = tls.key_bits.unwrap_or(0);
    let TlsFacts {
        version,
        cipher,
        cipher_bits,
        ..
    } = tls;
    page.pair(
        "SSL/TLS Protocol",
        format_args!("{version},{cipher},{key_bits},{cipher_bits}"),
    );
    if let Some(group) = &tls.temp_key {
        // OpenSSL's tools print X25519 and X448 without a kind.
        let kind = if group.starts_with('X') { "" } else { "ECDH " };
        let bits = tls.temp_key_bits.unwrap_or(0);
        page.pair("Server Temp Key", format_args!("{kind}{group} {bits} bits"));
    }
    if let Some(name) = &tls.server_name {
        page.pair("TLS Server Name", name);
    }
}

fn counts(page: &mut Page, report: &Report, subject: &Subject) {
    let errors = &report.ab;
    page.pair("Concurrency Level", report.concurrency);
    let elapsed = report.elapsed.as_secs_f64();
    page.pair("Time taken for tests", format_args!("{elapsed:.3} seconds"));
    page.pair("Complete requests", complete_requests(report));
    page.pair("Failed requests", errors.failed());
    if errors.failed() > 0 {
        page.line(format_args!(
            "   (Connect: {}, Receive: {}, Length: {}, Exceptions: {})",
            errors.connect, errors.receive, errors.length, errors.exceptions
        ));
    }
    if errors.write > 0 {
        page.pair("Write errors", errors.write);
    }
    if report.requests.non_2xx > 0 {
        page.pair("Non-2xx responses", report.requests.non_2xx);
    }
    if subject.keep_alive {
        page.pair("Keep-Alive requests", report.requests.kept_alive);
    }
    let bytes = &report.bytes;
    page.pair(
        "Total transferred",
        format_args!("{} bytes", bytes.received),
    );
    if subject.sends_body {
        page.pair("Total body sent", bytes.sent);
    }
    page.pair(
        "HTML transferred",
        format_args!("{} bytes", bytes.received_bodies),
    );
}

/// Rates and times per request. A transfer rate of what was sent follows if requests have bodies.
fn rates(page: &mut Page, report: &Report, subject: &Subject) {
    // Without time there is no rate: ab leaves these lines out, too.
    if report.elapsed.as_micros() == 0 {
        return;
    }
    let (done, elapsed) = (complete_requests(report), report.elapsed);
    let across_all = ratio(elapsed.as_secs_f64() * 1000.0, done as f64);
    let per_request = time_per_request(report, subject, across_all);
    let rate = per_second(done, elapsed);
    page.pair(
        "Requests per second",
        format_args!("{rate:.2} [#/sec] (mean)"),
    );
    page.pair(
        "Time per request",
        format_args!("{per_request:.3} [ms] (mean)"),
    );
    page.pair(
        "Time per request",
        format_args!("{across_all:.3} [ms] (mean, across all concurrent requests)"),
    );
    let kilobytes = |bytes| per_second(bytes, elapsed) / 1024.0;
    let (received, sent) = (report.bytes.received, report.bytes.sent);
    page.pair(
        "Transfer rate",
        format_args!("{:.2} [Kbytes/sec] received", kilobytes(received)),
    );
    if subject.sends_body {
        page.line(format_args!("{:24}{:.2} kb/s sent", "", kilobytes(sent)));
        let total = kilobytes(received + sent);
        page.line(format_args!("{:24}{total:.2} kb/s total", ""));
    }
}

/// The rows of "Connection Times": ab's label, ab's phrase for the time in a sentence, and the times.
fn rows(report: &Report) -> [(&'static str, &'static str, Histogram); 4] {
    let latency = &report.latency;
    // Every request has a row of its own in ab's table, and those on kept connections have zero.
    let mut connect = latency.connect.histogram.clone();
    connect.record_zeros(latency.per_request_connects);
    [
        ("Connect", "the initial connection time", connect),
        (
            "Processing",
            "the processing time",
            latency.processing.histogram.clone(),
        ),
        (
            "Waiting",
            "the waiting time",
            latency.first_byte.histogram.clone(),
        ),
        ("Total", "the total time", latency.total.histogram.clone()),
    ]
}

/// The table of times. With `-S` (no `confidence`) it has no median and no deviation, and no warnings of skew.
fn times(page: &mut Page, report: &Report, subject: &Subject) {
    page.gap();
    page.line("Connection Times (ms)");
    let rows = rows(report);
    if !subject.confidence {
        page.line("              min   avg   max");
        for (label, _, times) in &rows {
            let [min, mean, max] = [times.min(), times.mean(), times.max()].map(round);
            page.line(format_args!(
                "{:12}{min:5} {mean:5}{max:5}",
                format!("{label}:")
            ));
        }
        return;
    }
    page.line("              min  mean[+/-sd] median   max");
    for (label, _, times) in &rows {
        let [min, mean, median, max] =
            [times.min(), times.mean(), times.median(), times.max()].map(round);
        let deviation = millis(times.stddev());
        page.line(format_args!(
            "{:12}{min:5} {mean:4} {deviation:5.1} {median:6} {max:7}",
            format!("{label}:")
        ));
    }
    for (_, phrase, times) in &rows {
        warn_of_skew(page, phrase, times);
    }
}

/// ab's warning about a skewed distribution, computed from the rounded figures, as in ab.
fn warn_of_skew(page: &mut Page, phrase: &str, times: &Histogram) {
    let distance = round(times.mean()).abs_diff(round(times.median())) as f64;
    let deviation = millis(times.stddev());
    if distance > 2.0 * deviation {
        page.line(format_args!(
            "ERROR: The median and mean for {phrase} are more than twice the standard\n       \
             deviation apart. These results are NOT reliable."
        ));
    } else if distance > deviation {
        page.line(format_args!(
            "WARNING: The median and mean for {phrase} are not within a normal deviation\n        \
             These results are probably not that reliable."
        ));
    }
}

fn percentiles(page: &mut Page, total: &Histogram) {
    page.gap();
    page.line("Percentage of the requests served within a certain time (ms)");
    for percent in PERCENTS {
        let time = round(total.percentile(f64::from(percent)));
        page.line(format_args!("  {percent}%  {time:5}"));
    }
    let longest = round(total.max());
    page.line(format_args!(" 100%  {longest:5} (longest request)"));
}

/// Milliseconds, rounded to a whole number as ab does.
fn round(time: Duration) -> u64 {
    u64::try_from((time.as_micros() + 500) / 1000).unwrap_or(u64::MAX)
}

const PERCENTS: [u8; 8] = [50, 66, 75, 80, 90, 95, 98, 99];

#[cfg(test)]
mod tests;
