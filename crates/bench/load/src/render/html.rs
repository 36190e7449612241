//! Renders a run as one page of HTML without scripts and without requests to the network.
//!
//! The page is made of the JSON report alone, so it can be made at any later time. Each chart is in
//! it twice, wide and narrow, because the text of a scaled picture cannot be read; the style shows
//! the one that fits. Colours follow the reader's choice of light or dark; printing uses the wide
//! charts in light colours.

mod beside;
mod charts;

use std::fmt::Write as _;

use catamaran_chart::{STYLE, escaped};

pub use self::beside::page_beside;
use self::charts::ChartedRun;
use crate::report::Report;

/// The whole page of a run.
pub fn page(run: &Report) -> String {
    let mut page = begin(&run.url);
    verdict(&mut page, run);
    summary(&mut page, run);
    charts::all(&mut page, &[ChartedRun { name: None, run }]);
    super::by_name::html(&mut page, &run.by_name);
    page.push_str(WORDS);
    page.push_str("</body>\n</html>\n");
    page
}

/// The beginning of a page, up to its heading.
fn begin(title: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta \
         name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>\n{PAGE_STYLE}{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n",
        title = escaped(title)
    )
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
    let reason = match &run.verdict_reason {
        Some(reason) => format!(": {}", escaped(reason)),
        None => String::new(),
    };
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
    page.push_str(match run.verdict.as_str() {
        "invalid" => "<dl class=\"void\">\n",
        _ => "<dl>\n",
    });
    for (name, value) in figures(run) {
        push(
            page,
            format_args!("<div><dt>{name}</dt><dd>{}</dd></div>\n", escaped(&value)),
        );
    }
    page.push_str("</dl>\n");
}

/// The main figures, each with its name.
fn figures(run: &Report) -> [(&'static str, String); 8] {
    let (kind, times, lower_bounds) = match &run.latency.corrected {
        Some(corrected) => ("corrected", &corrected.times, &corrected.lower_bounds[..]),
        None => ("raw", &run.latency.total, &[][..]),
    };
    let time = |key: &str, micros: u64| {
        let is_bound = lower_bounds.iter().any(|name| name == key);
        let sign = if is_bound { "> " } else { "" };
        format!("{sign}{:.3} ms, {kind}", micros as f64 / 1000.0)
    };
    let asked = match run.rate_asked_per_s {
        Some(rate) => format!(" of {rate:.1} asked for"),
        None => String::new(),
    };
    let unanswered = run.requests.unfinished;
    [
        (
            "Rate",
            format!("{:.1}/s{asked}", run.throughput.requests_per_s),
        ),
        ("p50", time("p50_us", times.p50_us)),
        ("p99", time("p99_us", times.p99_us)),
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
    ]
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

fn warnings(page: &mut String, run: &Report) {
    if run.warnings.is_empty() {
        return;
    }
    page.push_str("<section>\n<h2>Warnings</h2>\n<ul>\n");
    for warning in &run.warnings {
        push(
            page,
            format_args!(
                "<li><code>{}</code>: {}</li>\n",
                warning.token(),
                escaped(&warning.text())
            ),
        );
    }
    page.push_str("</ul>\n</section>\n");
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("a string takes all");
}

/// What the page's words mean, folded at its end.
const WORDS: &str = "\
<details>\n<summary>What the words mean</summary>\n<dl class=\"words\">\n\
<dt>valid</dt><dd>Nothing is against the figures.</dd>\n\
<dt>valid, imprecise</dt><dd>The figures are the server's, from too few answers or too short a time to be exact.</dd>\n\
<dt>doubtful</dt><dd>The figures may be something else than they seem to be: see the warnings.</dd>\n\
<dt>invalid</dt><dd>The figures are not the server's. They are struck out.</dd>\n\
<dt>p50, p99</dt><dd>Latency that 50 % and 99 % of the requests do not exceed.</dd>\n\
<dt>raw</dt><dd>From when a request was sent. A server that stands still delays what was not sent yet, too: raw latency \
hides that.</dd>\n\
<dt>corrected</dt><dd>From when a request was due by its schedule. <code>&gt;</code> stands before a lower bound.</dd>\n\
<dt>failed</dt><dd>Without a whole answer. An error page is an answer: it counts under \"not 2xx\".</dd>\n\
<dt>unanswered</dt><dd>Without an answer when the run ended. Unsent requests were due, and no connection was free.</dd>\n\
<dt>shaded</dt><dd>A silence: no answer came although requests waited for one.</dd>\n\
</dl>\n</details>\n";

const PAGE_STYLE: &str = "\
:root { color-scheme: light dark }
body { font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; padding: 16px 20px; max-width: 880px;
  background: light-dark(#fff, #161616); color: light-dark(#1b1b1b, #e6e6e6) }
h1 { font-size: 20px; overflow-wrap: anywhere }
h2 { font-size: 15px; margin: 26px 0 8px }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: 14px; margin: 0 }
dt { color: light-dark(#666, #9a9a9a); font-size: 12px }
dd { margin: 0; font-variant-numeric: tabular-nums; overflow-wrap: anywhere }
li, p { overflow-wrap: anywhere }
.verdict { border-left: 4px solid; padding: 6px 12px; overflow-wrap: anywhere }
.valid { border-color: light-dark(#2e7d32, #66bb6a) }
.doubtful { border-color: light-dark(#b26a00, #ffb74d) }
.invalid { border-color: light-dark(#b3261e, #f2645a) }
.words { grid-template-columns: max-content 1fr; gap: 4px 14px }
.struck, .void dd { text-decoration: line-through; color: light-dark(#666, #9a9a9a) }
section { break-inside: avoid }
.gloss { margin: 2px 0 0; font-size: 12px; color: light-dark(#666, #9a9a9a) }
.gloss svg.chart { display: inline; margin-right: 6px }
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
    use crate::report::{SecondFacts, Silence, Warning};

    #[test]
    fn has_its_figures_and_charts_and_nothing_from_elsewhere() {
        let mut run = sample::report();
        run.url = "http://h/?a=<b>&c".to_owned();
        let page = page(&run);
        for part in [
            "<h1>http://h/?a=&lt;b&gt;&amp;c</h1>",
            "<dt>Rate</dt><dd>250.0/s</dd>",
            "<dt>p50</dt><dd>4.403 ms, raw</dd>",
            "<summary>What the words mean</summary>",
        ] {
            assert!(page.contains(part), "{part} {page}");
        }
        // Of three requests no percentile can be quoted, and no second is whole.
        assert_eq!(page.matches("<svg ").count(), 2);
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
            assert!(
                (charts::place(percent) - expected).abs() < 1e-6,
                "{percent}"
            );
        }
    }

    /// A run of three seconds, with 300 requests and a silence.
    fn lasting() -> Report {
        let mut run = sample::report();
        run.elapsed = Duration::from_millis(3200);
        run.seconds = [100, 50, 150].map(sample::second).to_vec();
        run.silences = vec![Silence {
            from: Duration::from_millis(1100),
            to: Duration::from_millis(1700),
        }];
        run.latency.total = sample::times((1..=300).map(|number| number * 10));
        run.conclude();
        run
    }

    #[test]
    fn a_chart_has_what_is_known_and_nothing_empty() {
        let run = lasting();
        let whole = page(&run);
        for title in [
            "Latency by percentile",
            "Histogram of latency",
            "Answers per second",
        ] {
            assert!(whole.contains(&format!("<h2>{title}</h2>")), "{title}");
        }
        // Latencies of seconds are not known, and there was no error.
        for title in ["Latency over time", "Errors over time"] {
            assert!(!whole.contains(title), "{title}");
        }
        // From 1.1 to 1.7 of 3.2 s, on an axis of 800 pixels.
        let rect = "<rect class=\"shaded\" x=\"333.0\" y=\"26\" width=\"150.0\" height=\"192.0\"/>";
        assert_eq!(whole.matches(rect).count(), 1, "{whole}");
        let gloss = "Shaded: no answer came although requests waited (once, for 0.6 s).</p>";
        assert_eq!(whole.matches(gloss).count(), 1, "{whole}");
        // That chart wide and narrow, and the sample beside the words.
        assert_eq!(whole.matches("class=\"shaded\"").count(), 3);
        // Of 300 requests ten lie beyond the 96th percentile: the axis ends before 99.
        assert!(
            whole.contains(">90</text>") && !whole.contains(">99</text>"),
            "{whole}"
        );
        let silent = Report {
            seconds: Vec::new(),
            silences: Vec::new(),
            ..run
        };
        assert!(!page(&silent).contains("Answers per second"));
        let mut twice = lasting();
        let [from, to] = [2000, 2200].map(Duration::from_millis);
        twice.silences.push(Silence { from, to });
        let gloss = "(2 times, for 0.8 s in all and 0.6 s at most).</p>";
        assert!(page(&twice).contains(gloss));
        let steady = Report {
            silences: Vec::new(),
            ..lasting()
        };
        let steady = page(&steady);
        assert!(!steady.contains("class=\"shaded\"") && !steady.contains("class=\"gloss\""));
    }

    /// A server that dies: latency ends with its last answer, the axis and the silence do not.
    #[test]
    fn a_silence_up_to_the_end_is_on_the_axis() {
        let mut run = lasting();
        run.elapsed = Duration::from_secs(10);
        run.seconds.resize_with(10, SecondFacts::default);
        for second in &mut run.seconds[..3] {
            second.p50_us = Some(2000);
        }
        run.silences[0].from = Duration::from_secs(3);
        run.silences[0].to = Duration::from_secs(10);
        let page = page(&run);
        let latency = page
            .split("<h2>")
            .find(|part| part.starts_with("Latency over time"));
        let rect = "<rect class=\"shaded\" x=\"298.0\" y=\"26\" width=\"560.0\" height=\"192.0\"/>";
        assert!(latency.is_some_and(|chart| chart.contains(rect)), "{page}");
    }

    #[test]
    fn two_runs_stand_beside_each_other() {
        let before = lasting();
        let mut after = lasting();
        after.warnings = vec![Warning::GeneratorLate {
            p99: Duration::from_millis(7),
        }];
        after.conclude();
        let alike = page_beside(&before, &after);
        for part in [
            "<h2>Before</h2>",
            "✗ Invalid</strong>",
            "<td class=\"struck\">",
            ">before</text>",
            ">after</text>",
            "--versus URL",
        ] {
            assert!(alike.contains(part), "{part} {alike}");
        }
        assert!(!alike.contains("No comparison"), "{alike}");
        let gloss = "Shaded, of the run before in the upper half and of the one after in the lower: no answer came although \
                     requests waited (before: once, for 0.6 s; after: once, for 0.6 s).";
        assert!(alike.contains(gloss), "{alike}");
        for top in ["26", "122"] {
            let rect = format!(
                "<rect class=\"shaded\" x=\"333.0\" y=\"{top}\" width=\"150.0\" height=\"96.0\"/>"
            );
            assert!(alike.contains(&rect), "{rect} {alike}");
        }
        after.concurrency = 50;
        after.server.document_bytes = Some(29_000);
        let unlike = page_beside(&before, &after);
        let words =
            "the runs were not asked alike: clients: 1 and 50; bytes of a body: 347 and 29000";
        assert!(unlike.contains(words), "{unlike}");
    }
}
