//! The page of two runs, before and after a change.

use catamaran_chart::escaped;

use super::charts::{self, ChartedRun};
use super::{begin, figures, push, verdict};
use crate::report::Report;

/// The page that compares two runs. It shows no ratio of their figures, since the machine may have changed between
/// them.
pub fn page_beside(before: &Report, after: &Report) -> String {
    let mut page = begin(&format!("{} — before and after", after.url));
    push(
        &mut page,
        format_args!(
            "<p>Before: {}<br>After: {}</p>\n",
            escaped(&before.url),
            escaped(&after.url)
        ),
    );
    page.push_str(
        "<p>Two runs, one after the other: what the machine did meanwhile is part of their difference. \
         <code>catamaran bench URL --versus URL</code> has both servers take turns, and says whether they differ.</p>\n",
    );
    let differences = differences_in_load(before, after);
    if !differences.is_empty() {
        push(
            &mut page,
            format_args!(
                "<p class=\"verdict invalid\"><strong>✗ No comparison</strong>: the runs were not asked alike: {}</p>\n",
                escaped(&differences.join("; "))
            ),
        );
    }
    for (name, run) in [("Before", before), ("After", after)] {
        push(&mut page, format_args!("<h2>{name}</h2>\n"));
        verdict(&mut page, run);
    }
    table(&mut page, before, after);
    let charted_runs = [("before", before), ("after", after)].map(|(name, run)| ChartedRun {
        name: Some(name),
        run,
    });
    charts::all(&mut page, &charted_runs);
    page.push_str(super::WORDS);
    page.push_str("</body>\n</html>\n");
    page
}

/// The figures of both runs, a column each; those of an invalid run are struck out.
fn table(page: &mut String, before: &Report, after: &Report) {
    page.push_str(
        "<div class=\"table\"><table>\n<tr><th></th><th>before</th><th>after</th></tr>\n",
    );
    let cell = |run: &Report, value: &str| {
        let class = if run.verdict == "invalid" {
            " class=\"struck\""
        } else {
            ""
        };
        format!("<td{class}>{}</td>", escaped(value))
    };
    let rows = figures(before).into_iter().zip(figures(after));
    for ((name, value_before), (_, value_after)) in rows {
        let cells = cell(before, &value_before) + &cell(after, &value_after);
        push(page, format_args!("<tr><td>{name}</td>{cells}</tr>\n"));
    }
    page.push_str("</table></div>\n");
}

/// The differences in load and response length between two runs, one phrase each; if there are any, the figures cannot
/// be compared.
fn differences_in_load(before: &Report, after: &Report) -> Vec<String> {
    let mut differences = Vec::new();
    let mut compare = |what: &str, one: String, other: String| {
        if one != other {
            differences.push(format!("{what}: {one} and {other}"));
        }
    };
    let protocol = |run: &Report| run.protocol.clone();
    compare("protocol", protocol(before), protocol(after));
    let clients = |run: &Report| run.concurrency.to_string();
    compare("clients", clients(before), clients(after));
    let rate = |run: &Report| match run.rate_asked_per_s {
        Some(rate) => format!("{rate:.0}/s"),
        None => "none".to_owned(),
    };
    compare("rate that was asked for", rate(before), rate(after));
    let kept = |run: &Report| {
        // A server that closes some connections still keeps most of them.
        let is_kept = run.requests.kept_alive * 2 > run.requests.completed;
        if is_kept { "yes" } else { "no" }.to_owned()
    };
    compare("connections kept", kept(before), kept(after));
    let length = |run: &Report| run.server.document_bytes;
    if let (Some(one), Some(other)) = (length(before), length(after)) {
        let (low, high) = (one.min(other) as f64, one.max(other) as f64);
        if high > low * LENGTHS_APART {
            compare("bytes of a body", one.to_string(), other.to_string());
        }
    }
    differences
}

/// The largest factor by which the lengths of two bodies may differ if they are of the same page.
const LENGTHS_APART: f64 = 1.05;
