//! Renders the report as text: a verdict in five lines, ab's report with corrections, and then what ab does not show.
//!
//! Down to the percentiles the labels are ab's, which readers and scripts know; figures have digits
//! down to microseconds, and each failed request is counted once. The lines after that have no
//! counterpart in ab. Warnings come last.

use std::fmt::Display;
use std::time::Duration;

use catamaran_stats::{CensoredLatencies, LatencyFloor, Spread, is_quotable};

use super::page::Page;
use super::{per_second, time_per_request};
use crate::clock::millis;
use crate::report::{Ending, FailureKind, Report, SpokenProtocol, Subject, Thread, Warning, ratio};

/// The whole report as text.
pub fn text(report: &Report) -> String {
    let subject = &report.subject;
    let mut page = Page::default();
    for line in super::verdict::verdict(report) {
        page.line(line);
    }
    warnings(&mut page, report);
    page.gap();
    match &subject.memcached {
        Some(load) => super::memcached::heading(&mut page, subject, load),
        None => super::ab::heading(&mut page, report, subject),
    }
    page.gap();
    load(&mut page, report, subject);
    spans(&mut page, report);
    counts(&mut page, report, subject);
    transferred_bytes(&mut page, report);
    if report.requests.completed > 0 {
        rates(&mut page, report, subject);
        times(&mut page, report, subject);
        if subject.percentiles {
            percentiles(&mut page, report);
        }
        spread(&mut page, report);
    }
    super::by_name::text(&mut page, report);
    bytes(&mut page, report);
    statuses(&mut page, report);
    failures(&mut page, report);
    connections(&mut page, report);
    generator(&mut page, report);
    page.into_text()
}

/// Writes the load that the plan asked for.
fn load(page: &mut Page, report: &Report, subject: &Subject) {
    page.pair("Concurrency Level", report.concurrency);
    if subject.protocol == SpokenProtocol::Http2 {
        page.pair("Protocol", subject.protocol.name());
        page.pair("Streams", streams(report, subject));
    }
    if subject.urls > 1 {
        page.pair("URLs", subject.urls);
    }
    if let Some(rate) = subject.rate {
        page.pair("Requested rate", format_args!("{rate:.2} [#/sec]"));
    }
}

/// Writes the lengths of the warm-up, of the measured span and of the drain.
fn spans(page: &mut Page, report: &Report) {
    let warm_up = &report.warm_up;
    if !warm_up.duration.is_zero() {
        let (seconds, requests) = (warm_up.duration.as_secs_f64(), warm_up.requests);
        let value = format!("{seconds:.3} seconds, {requests} requests, left out");
        page.pair("Warm-up", value);
    }
    let elapsed = report.elapsed.as_secs_f64();
    page.pair("Time taken for tests", format_args!("{elapsed:.6} seconds"));
    let in_drain = report.requests.completed - report.in_span.completed;
    if in_drain > 0 || report.unfinished.hung > 0 {
        let seconds = report.drain.as_secs_f64();
        let value = format!("{seconds:.6} seconds, {in_drain} requests, in no rate");
        page.pair("Drain", value);
    }
}

/// The numbers of requests by their end. Lines whose number is zero are left out.
fn counts(page: &mut Page, report: &Report, subject: &Subject) {
    let counts = &report.requests;
    page.pair("Complete requests", counts.completed);
    page.pair("Failed requests", counts.failed);
    if counts.failed > 0 {
        let failures = report.failures.iter();
        let kinds: Vec<String> = failures
            .map(|(kind, count)| format!("{}: {count}", kind.token()))
            .collect();
        page.line(format_args!("   ({})", kinds.join(", ")));
    }
    let unfinished = &report.unfinished;
    if unfinished.total() > 0 {
        page.pair("Unfinished requests", unfinished.total());
        page.line(format_args!(
            "   (hung: {}, cut: {}, unsent: {})",
            unfinished.hung, unfinished.cut, unfinished.unsent
        ));
    }
    if counts.non_2xx > 0 {
        page.pair("Non-2xx responses", counts.non_2xx);
    }
    if let Some(operations) = &report.operations {
        super::memcached::counts(page, operations);
    } else if subject.keep_alive {
        page.pair("Keep-Alive requests", counts.kept_alive);
    }
}

fn transferred_bytes(page: &mut Page, report: &Report) {
    let bytes = &report.bytes;
    page.pair(
        "Total transferred",
        format_args!("{} bytes", bytes.received),
    );
    page.pair("Total sent", format_args!("{} bytes", bytes.sent));
    let bodies = match report.operations {
        Some(_) => "Values transferred",
        None => "HTML transferred",
    };
    page.pair(bodies, format_args!("{} bytes", bytes.received_bodies));
}

/// The number of streams per connection: that of the plan, with the lower number reached if there is one.
fn streams(report: &Report, subject: &Subject) -> String {
    let (reached, asked) = (report.streams_reached, subject.streams);
    // Zero: no connection had a stream.
    if reached == 0 || reached >= asked as usize {
        return format!("{asked} per connection");
    }
    format!("{reached} per connection at most, {asked} were asked for")
}

/// Rates of requests and bytes over the measured time.
fn rates(page: &mut Page, report: &Report, subject: &Subject) {
    let completed = report.in_span.completed;
    let rate = per_second(completed, report.elapsed);
    page.pair(
        "Requests per second",
        format_args!("{rate:.2} [#/sec] (mean)"),
    );
    let across_all = ratio(report.elapsed.as_secs_f64() * 1000.0, completed as f64);
    let per_request = time_per_request(report, subject, across_all);
    page.pair(
        "Time per request",
        format_args!("{per_request:.6} [ms] (mean)"),
    );
    page.pair(
        "Time per request",
        format_args!("{across_all:.6} [ms] (mean, across all concurrent requests)"),
    );
    let kilobytes = |bytes| per_second(bytes, report.elapsed) / 1024.0;
    let (received, sent) = (
        kilobytes(report.in_span.received),
        kilobytes(report.bytes.sent),
    );
    page.pair(
        "Transfer rate",
        format_args!("{received:.2} [Kbytes/sec] received"),
    );
    page.line(format_args!("{:24}{sent:.2} [Kbytes/sec] sent", ""));
    page.line(format_args!(
        "{:24}{:.2} [Kbytes/sec] total",
        "",
        received + sent
    ));
}

/// The table of latencies. Without `confidence` it has no deviation and no median.
fn times(page: &mut Page, report: &Report, subject: &Subject) {
    let latency = &report.latency;
    page.gap();
    page.line("Connection Times (ms)");
    if subject.confidence {
        page.line("                  min      mean   [+/-sd]    median       max");
    } else {
        page.line("                  min       avg       max");
    }
    for (label, times) in [
        // Only connections that were made count here; the zeros that ab adds for reused ones would hide their times.
        ("Connect:", &latency.connect.histogram),
        ("Processing:", &latency.processing.histogram),
        ("Waiting:", &latency.first_byte.histogram),
        ("Total:", &latency.total.histogram),
    ] {
        let [min, mean, deviation, median, max] = [
            times.min(),
            times.mean(),
            times.stddev(),
            times.median(),
            times.max(),
        ]
        .map(millis);
        if subject.confidence {
            page.line(format_args!(
                "{label:11}{min:10.3}{mean:10.3}{deviation:10.3}{median:10.3}{max:10.3}"
            ));
        } else {
            page.line(format_args!("{label:11}{min:10.3}{mean:10.3}{max:10.3}"));
        }
    }
}

/// Writes the percentiles: raw, and in an open loop also corrected, which count from when requests were due.
fn percentiles(page: &mut Page, report: &Report) {
    let total = &report.latency.total.histogram;
    let corrected = report.latency.censored();
    page.gap();
    page.line("Percentage of the requests served within a certain time (ms)");
    if corrected.is_some() {
        page.line("                raw   corrected");
    }
    let bounds = corrected.map(|corrected| corrected.percentiles(PERCENTS));
    let count = corrected.map_or_else(|| total.count(), CensoredLatencies::count);
    let first_with_few = PERCENTS
        .iter()
        .position(|percent| !is_quotable(*percent, count));
    for (index, percent) in PERCENTS.into_iter().enumerate() {
        let note = if first_with_few == Some(index) {
            FEW_FROM_HERE
        } else {
            ""
        };
        let label = format!("{percent}%");
        let bound = bounds.map(|bounds| bounds[index]);
        percentile(page, &label, total.percentile(percent), bound, note);
    }
    let longest = corrected.map(CensoredLatencies::max);
    percentile(page, "100%", total.max(), longest, " (longest request)");
    let unanswered = corrected.map_or(0, CensoredLatencies::unanswered);
    if unanswered > 0 {
        page.line(format_args!(
            "  `>`: at least; {unanswered} requests without an answer count in `corrected` with the \
             time that they were waited for"
        ));
    }
}

/// Writes the row of one percentile; `corrected` is `None` in a closed loop.
fn percentile(
    page: &mut Page,
    label: &str,
    raw: Duration,
    corrected: Option<LatencyFloor>,
    note: &str,
) {
    let corrected_column = match corrected {
        Some(bound) => format!("{:>12}", at_least(bound)),
        None => String::new(),
    };
    let raw_ms = millis(raw);
    page.line(format_args!(
        "{label:>7} {raw_ms:11.3}{corrected_column}{note}"
    ));
}

/// A latency in milliseconds, with `> ` before a lower bound.
pub(super) fn at_least(bound: LatencyFloor) -> String {
    let mark = if bound.is_exact { "" } else { "> " };
    format!("{mark}{:.3}", millis(bound.at_least))
}

/// Writes the spread of the throughput over the seconds of the run.
fn spread(page: &mut Page, report: &Report) {
    let Some(spread) = Spread::of(&report.whole_seconds()) else {
        return;
    };
    if spread.count < 2 {
        return;
    }
    page.gap();
    page.line(format_args!(
        "Requests per second over {} whole seconds",
        spread.count
    ));
    page.line("                  min      mean   [+/-sd]    median       max");
    page.line(format_args!(
        "{:11}{:10.1}{:10.1}{:10.1}{:10.1}{:10.1}",
        "", spread.min, spread.mean, spread.stddev, spread.median, spread.max
    ));
    let variation = spread.variation() * 100.0;
    page.line(format_args!("Coefficient of variation: {variation:.1} %"));
}

/// The mean number of bytes per request that was started.
fn bytes(page: &mut Page, report: &Report) {
    let bytes = &report.bytes;
    let requests = report.requests.started.max(1) as f64;
    let sent_heads = bytes.sent.saturating_sub(bytes.sent_bodies);
    page.gap();
    page.line("Bytes per request (heads, bodies, and all with the framing of bodies)");
    for (label, heads, bodies, total) in [
        ("Sent:", sent_heads, bytes.sent_bodies, bytes.sent),
        (
            "Received:",
            bytes.received_heads,
            bytes.received_bodies,
            bytes.received,
        ),
    ] {
        let per_request = |bytes: u64| bytes as f64 / requests;
        page.line(format_args!(
            "{label:11}{:10.1}{:12.1}{:12.1}",
            per_request(heads),
            per_request(bodies),
            per_request(total)
        ));
    }
}

fn statuses(page: &mut Page, report: &Report) {
    let statuses = report.statuses.iter();
    let lines = statuses.map(|(status, count)| (status, count, String::new()));
    list(page, "Statuses", lines);
}

fn failures(page: &mut Page, report: &Report) {
    let kinds = report.failures.iter();
    let lines = kinds.map(|(kind, count)| (kind.token(), count, meaning(report, kind)));
    list(page, "Failures", lines);
}

/// The kind of failure in words, with the error of the first such failure if the report has it, for
/// instance why TLS failed.
fn meaning(report: &Report, kind: FailureKind) -> String {
    match report.failure_reasons.get(&kind) {
        Some(reason) => format!("{}: {reason}", kind.text()),
        None => kind.text().to_owned(),
    }
}

/// Writes a heading and a line for each item; nothing if there are none.
fn list(
    page: &mut Page,
    heading: &str,
    lines: impl Iterator<Item = (impl Display, impl Display, String)>,
) {
    let mut lines = lines.peekable();
    if lines.peek().is_none() {
        return;
    }
    page.gap();
    page.line(heading);
    for (name, count, meaning) in lines {
        let line = format!("  {name:<16}{count:>12}  {meaning}");
        page.line(line.trim_end());
    }
}

fn connections(page: &mut Page, report: &Report) {
    let connections = &report.connections;
    page.gap();
    page.line("Connections");
    for (name, count) in [
        ("attempted", connections.attempted),
        ("opened", connections.opened),
        ("used again", connections.reused),
        ("reset", connections.reset),
        ("closed while idle", connections.closed_idle),
        ("requests sent twice", connections.resent),
        ("most at once", report.concurrency_reached as u64),
    ] {
        page.line(format_args!("  {name:20}{count:>8}"));
    }
}

/// Writes the generator's own use of CPU, and how punctual it was.
fn generator(page: &mut Page, report: &Report) {
    let cpu_s = report.generator.cpu_s;
    let per_request = ratio(cpu_s * 1e6, report.requests.completed as f64);
    let highest_percent = |share: fn(&Thread) -> f64| {
        let shares = report.generator.threads.iter().map(share);
        shares.fold(0.0, f64::max) * 100.0
    };
    let busiest = highest_percent(|thread| thread.busy);
    page.gap();
    page.line("Generator");
    page.line(format_args!(
        "  {} thread(s), {cpu_s:.3} s of CPU, {per_request:.2} us per request; the busiest thread \
         {busiest:.0} % of the time",
        report.threads
    ));
    let starved = highest_percent(Thread::starved);
    if starved >= 0.5 {
        page.line(format_args!(
            "  ready to run without a CPU for {starved:.0} % of the time"
        ));
    }
    let spun = highest_percent(Thread::spun);
    if spun >= 0.5 {
        page.line(format_args!(
            "  waiting without sleep for {spun:.0} % of the time: starts were too near for a timer"
        ));
    }
    if let Some(lateness) = &report.latency.lateness {
        let times = &lateness.histogram;
        let [median, p99, max] = [times.median(), times.percentile(99.0), times.max()].map(millis);
        page.line(format_args!(
            "  sent late by (ms): median {median:.3}, 99% {p99:.3}, most {max:.3}"
        ));
    }
}

/// Writes why the run ended if it did not end as planned, and the report's warnings, above the figures that they concern.
fn warnings(page: &mut Page, report: &Report) {
    let ending = match &report.ending {
        Ending::Requests | Ending::Duration => None,
        Ending::Stopped => Some("the run was stopped by hand".to_owned()),
        Ending::Idle => {
            Some("the run was given up: nothing came from the server on any connection".to_owned())
        }
        Ending::Failure(error) => Some(format!("the run was given up: {}", error.message)),
    };
    let texts = report.warnings.iter().map(Warning::text);
    let lines: Vec<String> = ending.into_iter().chain(texts).collect();
    if !lines.is_empty() {
        page.gap();
    }
    for line in lines {
        page.line(format_args!("WARNING: {line}"));
    }
}

const FEW_FROM_HERE: &str = "  (too few requests from here on)";

const PERCENTS: [f64; 10] = [50.0, 66.0, 75.0, 80.0, 90.0, 95.0, 98.0, 99.0, 99.9, 99.99];

#[cfg(test)]
mod tests;
