//! Renders the report of `ab -w`: a table of HTML, with fewer figures than the text.

use std::fmt::Display;

use catamaran_stats::Histogram;

use super::super::page::Page;
use super::super::per_second;
use super::{complete_requests, document_length, round, rows, software};
use crate::report::{Report, Subject};

/// Attributes to write into the tags of the report (`-x`, `-y`, `-z`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HtmlAttributes {
    /// The attributes of `<table>` (`-x`).
    pub table: String,
    /// The attributes of `<tr>` (`-y`).
    pub row: String,
    /// The attributes of `<td>` and `<th>` (`-z`).
    pub cell: String,
}

impl Default for HtmlAttributes {
    fn default() -> Self {
        Self {
            table: String::new(),
            row: String::new(),
            cell: "bgcolor=white".to_owned(),
        }
    }
}

/// The report on standard output, from the empty lines after the banner on.
pub fn html(report: &Report, attributes: &HtmlAttributes) -> String {
    let subject = &report.subject;
    let mut table = HtmlTable {
        page: Page::default(),
        attributes,
    };
    table.page.gap();
    table.page.gap();
    let opening = format!("<table {}>", attributes.table);
    table.page.line(opening);
    heading(&mut table, report, subject);
    counts(&mut table, report, subject);
    rates(&mut table, report, subject);
    if complete_requests(report) > 0 {
        times(&mut table, report);
    }
    table.page.line("</table>");
    table.page.into_text()
}

struct HtmlTable<'a> {
    page: Page,
    attributes: &'a HtmlAttributes,
}

impl HtmlTable<'_> {
    fn pair(&mut self, label: &str, value: impl Display) {
        let HtmlAttributes { row, cell, .. } = self.attributes;
        self.page.line(format_args!(
            "<tr {row}><th colspan=2 {cell}>{label}:</th><td colspan=2 {cell}>{value}</td></tr>"
        ));
    }

    fn continued(&mut self, value: impl Display) {
        let HtmlAttributes { row, cell, .. } = self.attributes;
        self.page.line(format_args!(
            "<tr {row}><td colspan=2 {cell}>&nbsp;</td><td colspan=2 {cell}>{value}</td></tr>"
        ));
    }
}

fn heading(table: &mut HtmlTable<'_>, report: &Report, subject: &Subject) {
    table.pair("Server Software", software(report));
    table.pair("Server Hostname", &subject.hostname);
    table.pair("Server Port", subject.port);
    table.pair("Document Path", &subject.path);
    table.pair("Document Length", document_length(report, subject));
}

fn counts(table: &mut HtmlTable<'_>, report: &Report, subject: &Subject) {
    let errors = &report.ab;
    table.pair("Concurrency Level", report.concurrency);
    let elapsed = report.elapsed.as_secs_f64();
    table.pair("Time taken for tests", format_args!("{elapsed:.3} seconds"));
    table.pair("Complete requests", complete_requests(report));
    table.pair("Failed requests", errors.failed());
    if errors.failed() > 0 {
        let HtmlAttributes { row, cell, .. } = table.attributes;
        table.page.line(format_args!(
            "<tr {row}><td colspan=4 {cell} >   (Connect: {}, Length: {}, Exceptions: {})\
             </td></tr>",
            errors.connect, errors.length, errors.exceptions
        ));
    }
    if report.requests.non_2xx > 0 {
        table.pair("Non-2xx responses", report.requests.non_2xx);
    }
    if subject.keep_alive {
        table.pair("Keep-Alive requests", report.requests.kept_alive);
    }
    let bytes = &report.bytes;
    table.pair(
        "Total transferred",
        format_args!("{} bytes", bytes.received),
    );
    if subject.sends_body {
        table.pair("Total body sent", bytes.sent);
    }
    table.pair(
        "HTML transferred",
        format_args!("{} bytes", bytes.received_bodies),
    );
}

fn rates(table: &mut HtmlTable<'_>, report: &Report, subject: &Subject) {
    if report.elapsed.as_micros() == 0 {
        return;
    }
    let rate = per_second(complete_requests(report), report.elapsed);
    table.pair("Requests per second", format_args!("{rate:.2}"));
    let kilobytes = |bytes| per_second(bytes, report.elapsed) / 1024.0;
    let (received, sent) = (report.bytes.received, report.bytes.sent);
    table.pair(
        "Transfer rate",
        format_args!("{:.2} kb/s received", kilobytes(received)),
    );
    if subject.sends_body {
        table.continued(format_args!("{:.2} kb/s sent", kilobytes(sent)));
        table.continued(format_args!("{:.2} kb/s total", kilobytes(received + sent)));
    }
}

/// Writes the table of times. ab has no row for waiting here, and computes its extremes as differences of extremes.
fn times(table: &mut HtmlTable<'_>, report: &Report) {
    let HtmlAttributes { row, cell, .. } = table.attributes;
    let page = &mut table.page;
    page.line(format_args!(
        "<tr {row}><th {cell} colspan=4>Connection Times (ms)</th></tr>"
    ));
    page.line(format_args!(
        "<tr {row}><th {cell}>&nbsp;</th> <th {cell}>min</th>   <th {cell}>avg</th>   \
         <th {cell}>max</th></tr>"
    ));
    let [(_, _, connect_times), .., (_, _, total_times)] = rows(report);
    let cells = |times: &Histogram| {
        let average = round(times.sum()) / times.count().max(1);
        [round(times.min()), average, round(times.max())]
    };
    let (connect, total) = (cells(&connect_times), cells(&total_times));
    let processing = [0, 1, 2].map(|column: usize| total[column].saturating_sub(connect[column]));
    for (label, [min, average, max]) in [
        ("Connect", connect),
        ("Processing", processing),
        ("Total", total),
    ] {
        page.line(format_args!(
            "<tr {row}><th {cell}>{label}:</th><td {cell}>{min:5}</td><td {cell}>{average:5}</td>\
             <td {cell}>{max:5}</td></tr>"
        ));
    }
}
