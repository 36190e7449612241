//! Renders a run as one page of HTML without scripts and without requests to the network.
//!
//! The page is made of the JSON report alone, so it can be made at any later time. Each chart is in
//! it twice, wide and narrow, because the text of a scaled picture cannot be read; the style shows
//! the one that fits. Colours follow the reader's choice of light or dark; printing uses the wide
//! charts in light colours.

use std::fmt::Write as _;

use catamaran_chart::{Axis, Chart, STYLE, Series, escaped};

use crate::report::{CurvePoint, Report, SecondFacts};

/// The whole page of a run.
pub fn page(run: &Report) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta \
         name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{url}</title>\n\
         <style>\n{PAGE_STYLE}{STYLE}</style>\n</head>\n<body>\n<h1>{url}</h1>\n",
        url = escaped(&run.url)
    );
    verdict(&mut page, run);
    summary(&mut page, run);
    percentiles(&mut page, run);
    // The last, partial second and the drain would look like a drop.
    let whole = usize::try_from(run.elapsed.as_secs())
        .unwrap_or(usize::MAX)
        .min(run.seconds.len());
    over_time(&mut page, &run.seconds[..whole]);
    super::by_name::html(&mut page, &run.by_name);
    page.push_str("</body>\n</html>\n");
    page
}

/// Writes the verdict on the figures with its reason, before all figures; a sign and a word repeat
/// what the colour says.
fn verdict(page: &mut String, run: &Report) {
    let (sign, word) = match run.verdict.as_str() {
        "valid" => ("✓", "Valid"),
        "imprecise" => ("✓", "Valid, imprecise"),
        "doubtful" => ("!", "Doubtful"),
        "invalid" => ("✗", "Invalid"),
        // A file without the key, which older versions wrote.
        _ => return warnings(page, run),
    };
    let given = run.verdict_reason.as_deref();
    let reason = given.map_or_else(String::new, |reason| format!(": {}", escaped(reason)));
    push(
        page,
        format_args!(
            "<p class=\"verdict {}\"><strong>{sign} {word}</strong>{reason}</p>\n",
            run.verdict
        ),
    );
    warnings(page, run);
}

/// Writes the main figures. Those of an invalid run are struck out.
fn summary(page: &mut String, run: &Report) {
    let corrected = run.latency.corrected.as_ref();
    let best = corrected.map_or(&run.latency.total, |corrected| &corrected.times);
    let kind = if corrected.is_some() {
        "corrected"
    } else {
        "raw"
    };
    let time = |key: &str, micros: u64| {
        let is_bound = corrected.is_some_and(|it| it.lower_bounds.iter().any(|name| name == key));
        let sign = if is_bound { "> " } else { "" };
        format!("{sign}{:.3} ms, {kind}", micros as f64 / 1000.0)
    };
    let rate = run.rate_asked_per_s;
    let asked = rate.map_or_else(String::new, |rate| format!(" of {rate:.1} asked for"));
    let unanswered = run.requests.unfinished;
    let figures = [
        (
            "Rate",
            format!("{:.1}/s{asked}", run.throughput.requests_per_s),
        ),
        ("p50", time("p50_us", best.p50_us)),
        ("p99", time("p99_us", best.p99_us)),
        (
            "Failed",
            format!("{} of {}", run.requests.failed, run.requests.started),
        ),
        (
            "Unanswered",
            format!("{unanswered}, of which unsent {}", run.unfinished.unsent),
        ),
        answers(run),
        ("Clients", run.concurrency.to_string()),
        ("Measured", format!("{:.1} s", run.elapsed.as_secs_f64())),
    ];
    page.push_str(match run.verdict.as_str() {
        "invalid" => "<dl class=\"void\">\n",
        _ => "<dl>\n",
    });
    for (name, value) in figures {
        push(
            page,
            format_args!("<div><dt>{name}</dt><dd>{}</dd></div>\n", escaped(&value)),
        );
    }
    page.push_str("</dl>\n");
}

/// The tile about responses: how many are not 2xx; for memcached, how many gets found a value.
fn answers(run: &Report) -> (&'static str, String) {
    match &run.memcached {
        Some(found) => ("Hits", format!("{} of {} gets", found.hits, found.gets)),
        None => {
            let requests = &run.requests;
            let text = format!("{} of {}", requests.non_2xx, requests.completed);
            ("Not 2xx", text)
        }
    }
}

/// Writes the chart of raw and corrected latency by percentile.
fn percentiles(page: &mut String, run: &Report) {
    let line = |name: &str, curve: &[CurvePoint]| {
        let points = curve.iter();
        Series::new(name, points.map(|it| (place(it.percent), it.ms)).collect())
    };
    let mut series = vec![line("raw", &run.curves.total)];
    if let Some(corrected) = &run.curves.corrected {
        series.push(line("corrected", corrected));
    }
    let percents = [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999];
    let ticks = percents.map(|percent| (place(percent), percent.to_string()));
    chart(
        page,
        "Latency by percentile",
        &Chart {
            title: "Latency by percentile".to_owned(),
            x: Axis::places("requests not slower (%)", ticks.to_vec()),
            y: Axis::log("latency (ms)"),
            series,
        },
    );
}

/// The place of a percentile on the chart's horizontal axis, from 0 to 1: 90 %, 99 % and 99.9 % are equally far apart.
fn place(percent: f64) -> f64 {
    -(1.0 - percent / 100.0).max(1e-5).log10() / 5.0
}

fn over_time(page: &mut String, seconds: &[SecondFacts]) {
    let line = |name: &str, of: &dyn Fn(&SecondFacts) -> Option<f64>| {
        let seconds = (1_u32..).zip(seconds);
        let points = seconds.filter_map(|(at, second)| Some((f64::from(at), of(second)?)));
        Series::new(name, points.collect())
    };
    let micros = |value: Option<u64>| value.map(|micros| micros as f64 / 1000.0);
    let time = || Axis::linear("time since measuring began (s)");
    for (title, y, series) in [
        (
            "Answers per second",
            Axis::linear("answers/s"),
            vec![line("answers", &|second| Some(second.completed as f64))],
        ),
        (
            "Latency over time",
            Axis::log("latency (ms)"),
            vec![
                line("p50", &|second| micros(second.p50_us)),
                line("p99", &|second| micros(second.p99_us)),
                line("max", &|second| micros(second.max_us)),
            ],
        ),
        (
            "Errors over time",
            Axis::linear("requests/s"),
            vec![
                line("failed", &|second| Some(second.failed as f64)),
                line("not 2xx", &|second| Some(second.non_2xx as f64)),
            ],
        ),
    ] {
        let found = Chart {
            title: title.to_owned(),
            x: time(),
            y,
            series,
        };
        chart(page, title, &found);
    }
}

fn chart(page: &mut String, title: &str, chart: &Chart) {
    push(
        page,
        format_args!(
            "<section>\n<h2>{title}</h2>\n<div class=\"wide\">{}</div>\n<div class=\"narrow\">{}</div>\n</section>\n",
            chart.svg(880, 260),
            chart.svg(320, 220)
        ),
    );
}

fn warnings(page: &mut String, run: &Report) {
    if run.warnings.is_empty() {
        return;
    }
    page.push_str("<section>\n<h2>Warnings</h2>\n<ul>\n");
    for warning in &run.warnings {
        push(
            page,
            format_args!("<li>{}</li>\n", escaped(&warning.text())),
        );
    }
    page.push_str("</ul>\n</section>\n");
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("a string takes all");
}

const PAGE_STYLE: &str = "\
:root { color-scheme: light dark }
body { font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; padding: 16px 20px; max-width: 880px;
  background: light-dark(#fff, #161616); color: light-dark(#1b1b1b, #e6e6e6) }
h1 { font-size: 20px; overflow-wrap: anywhere }
h2 { font-size: 15px; margin: 26px 0 8px }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: 14px; margin: 0 }
dt { color: light-dark(#666, #9a9a9a); font-size: 12px }
dd { margin: 0; font-variant-numeric: tabular-nums; overflow-wrap: anywhere }
li { overflow-wrap: anywhere }
.verdict { border-left: 4px solid; padding: 6px 12px; overflow-wrap: anywhere }
.valid { border-color: light-dark(#2e7d32, #66bb6a) }
.doubtful { border-color: light-dark(#b26a00, #ffb74d) }
.invalid { border-color: light-dark(#b3261e, #f2645a) }
.void dd { text-decoration: line-through; color: light-dark(#666, #9a9a9a) }
section { break-inside: avoid }
.table { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; width: 100% }
th { color: light-dark(#666, #9a9a9a); font-weight: normal; font-size: 11px; vertical-align: bottom }
th, td { text-align: right; padding: 2px 0 2px 8px }
th[colspan] { color: inherit; font-size: 13px; text-align: left; padding: 10px 0 0; overflow-wrap: anywhere }
@media (max-width: 480px) { table { font-size: 12px } th, td { padding-left: 4px } }
.narrow { display: none }
@media (max-width: 919px) { .wide { display: none } .narrow { display: block } }
@page { margin: 14mm }
@media print {
  :root { color-scheme: light }
  body { max-width: none; padding: 0 }
  h2 { break-after: avoid }
  .wide { display: block }
  .narrow { display: none }
  .wide svg { width: 100%; height: auto }
}
";

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::sample;
    use super::*;
    use crate::report::Warning;

    #[test]
    fn has_its_figures_and_charts_and_nothing_from_elsewhere() {
        let mut run = sample::report();
        run.url = "http://h/?a=<b>&c".to_owned();
        let page = page(&run);
        for part in [
            "<h1>http://h/?a=&lt;b&gt;&amp;c</h1>",
            "<dt>Rate</dt><dd>250.0/s</dd>",
            "<dt>p50</dt><dd>4.403 ms, raw</dd>",
            ">answers/s</text>",
            ">latency (ms)</text>",
        ] {
            assert!(page.contains(part), "{part} {page}");
        }
        assert_eq!(page.matches("<svg ").count(), 8);
        for part in ["<script", "src=", "href=", "@import", "url("] {
            assert!(!page.contains(part), "{part}");
        }
    }

    /// A reader who looks only at the tiles must see that the figures are invalid.
    #[test]
    fn the_verdict_of_an_invalid_run_comes_before_its_figures() {
        let mut report = sample::report();
        let check = |report: &mut Report, class: &str, list: &str, words: &str| {
            report.conclude();
            let page = page(report);
            let verdict = format!("<p class=\"verdict {class}\"><strong>{words}");
            let at = page
                .find(&verdict)
                .unwrap_or_else(|| panic!("{words} {page}"));
            let tiles = page.find(list).unwrap_or_else(|| panic!("{list} {page}"));
            assert!(at < tiles, "{page}");
            let warnings = page.find("<h2>Warnings</h2>");
            assert!(warnings.is_none_or(|warnings| warnings < tiles), "{page}");
        };
        check(&mut report, "valid", "<dl>", "✓ Valid</strong></p>");
        report.warnings = vec![Warning::Short];
        check(
            &mut report,
            "imprecise",
            "<dl>",
            "✓ Valid, imprecise</strong>: short</p>",
        );
        report.warnings.push(Warning::Resent { count: 1 });
        check(
            &mut report,
            "doubtful",
            "<dl>",
            "! Doubtful</strong>: resent</p>",
        );
        let p99 = Duration::from_millis(7);
        report.warnings.push(Warning::GeneratorLate { p99 });
        let words = "✗ Invalid</strong>: the generator sent its requests late";
        check(&mut report, "invalid", "<dl class=\"void\">", words);
    }

    #[test]
    fn each_nine_takes_as_much_room() {
        for (percent, expected) in [
            (0.0, 0.0),
            (90.0, 0.2),
            (99.0, 0.4),
            (99.999, 1.0),
            (100.0, 1.0),
        ] {
            assert!((place(percent) - expected).abs() < 1e-6, "{percent}");
        }
    }
}
