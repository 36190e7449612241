//! Renders the results of requests by their names, as text and as HTML.

use std::fmt::Write as _;

use catamaran_chart::escaped;

use super::page::Page;
use super::text::at_least;
use crate::report::{NamedFacts, Report};

/// Writes a table with a row for each name; nothing if there are no names.
pub(super) fn text(page: &mut Page, report: &Report) {
    if report.by_name.is_empty() {
        return;
    }
    let since = match report.latency.corrected {
        Some(_) => "since they were due",
        None => "since they began",
    };
    let names = report.by_name.iter().map(|named| &named.name);
    let longest = names.map(|name| name.chars().count()).max().unwrap_or(0);
    let width = longest.clamp(12, NAME_WIDTH_MAX);
    page.gap();
    page.line(format_args!("Requests by name (ms {since})"));
    page.line(format_args!(
        "  {:width$}{:>10}{:>8}{:>9}{:>11}{:>11}{:>11}{:>11}",
        "", "complete", "failed", "non-2xx", "50%", "90%", "99%", "longest"
    ));
    for named in &report.by_name {
        let latency = &named.latency.censored;
        let [p50, p90, p99] = latency.percentiles([50.0, 90.0, 99.0]).map(at_least);
        page.line(format_args!(
            "  {:width$}{:>10}{:>8}{:>9}{p50:>11}{p90:>11}{p99:>11}{:>11}",
            cut_to(&named.name, width),
            named.completed,
            named.failed + named.unfinished,
            named.non_2xx,
            at_least(latency.max())
        ));
    }
}

/// Writes a table of HTML; nothing if there are no names.
pub(super) fn html(page: &mut String, by_name: &[NamedFacts]) {
    if by_name.is_empty() {
        return;
    }
    page.push_str(
        "<section>\n<h2>By name</h2>\n<div class=\"table\"><table>\n<tr><th>complete</th>\
         <th>failed</th><th>not 2xx</th><th>p50 (ms)</th><th>p99 (ms)</th><th>max (ms)</th></tr>\n",
    );
    for named in by_name {
        let times = &named.latency.times;
        let time = |key: &str, micros: u64| {
            let is_bound = named.latency.lower_bounds.iter().any(|name| name == key);
            let sign = if is_bound { "&gt; " } else { "" };
            format!("{sign}{:.3}", micros as f64 / 1000.0)
        };
        writeln!(
            page,
            "<tr><th colspan=\"6\">{}</th></tr>\n<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td>\
             <td>{}</td><td>{}</td></tr>",
            escaped(&named.name),
            named.completed,
            named.failed + named.unfinished,
            named.non_2xx,
            time("p50_us", times.p50_us),
            time("p99_us", times.p99_us),
            time("max_us", times.max_us)
        )
        .expect("a string takes all");
    }
    page.push_str("</table></div>\n</section>\n");
}

/// The name, cut to `width` letters if it is longer.
fn cut_to(name: &str, width: usize) -> String {
    if name.chars().count() > width {
        name.chars().take(width - 1).chain(['…']).collect()
    } else {
        name.to_owned()
    }
}

/// The most letters of a name in the text: longer names are cut, so that each row is one line.
const NAME_WIDTH_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use catamaran_stats::CensoredLatencies;

    use super::*;
    use crate::render::sample;

    fn report() -> Report {
        let mut report = sample::report();
        let mut latency = CensoredLatencies::new();
        latency.record(Duration::from_micros(1500));
        latency.record_failed(Duration::from_millis(3));
        report.by_name = vec![NamedFacts {
            name: "a <long> name of a request that has no end".to_owned(),
            completed: 1,
            non_2xx: 1,
            failed: 1,
            unfinished: 0,
            latency: latency.into(),
        }];
        report
    }

    #[test]
    fn a_row_for_each_name() {
        let mut page = Page::default();
        text(&mut page, &report());
        let expected = "\nRequests by name (ms since they began)\n".to_owned()
            + "                                    complete  failed  non-2xx        50%        90%\
               \u{20}       99%    longest\n"
            + "  a <long> name of a request that…         1       1        1      1.500    > 3.000\
               \u{20}   > 3.000    > 3.000\n";
        assert_eq!(page.into_text(), expected);
        let mut page = Page::default();
        text(&mut page, &sample::report());
        assert_eq!(page.into_text(), "");
    }

    #[test]
    fn names_are_escaped_in_html() {
        let mut page = String::new();
        html(&mut page, &report().by_name);
        assert!(
            page.contains("<th colspan=\"6\">a &lt;long&gt; name"),
            "{page}"
        );
        assert!(page.contains("<td>&gt; 3.000</td>"), "{page}");
    }
}
