//! The charts of a page, of one run or of two that are compared.

use std::time::Duration;

use catamaran_chart::{Axis, Chart, Series, shaded_key};

use super::push;
use crate::report::{BARS, CurvePoint, Report, SecondFacts, Silence};

/// A run in the charts. If the page has a single run, each chart has several lines for it. If it has two runs, each
/// chart has one line for each, with the run's name.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChartedRun<'a> {
    /// The run's name on a page of two runs; `None` on the page of a single run.
    pub(super) name: Option<&'static str>,
    pub(super) run: &'a Report,
}

/// Adds all charts of the runs, without those that would be empty.
pub(super) fn all(page: &mut String, runs: &[ChartedRun<'_>]) {
    percentiles(page, runs);
    histogram(page, runs);
    over_time(page, runs);
}

/// Adds latency by percentile, raw and corrected. The axis ends at the last percentile that has ten requests beyond it.
fn percentiles(page: &mut String, runs: &[ChartedRun<'_>]) {
    let curves = percentile_curves(runs);
    let points = curves.iter().flat_map(|(_, curve)| curve.iter());
    let last = points.map(|point| point.percent).fold(0.0, f64::max);
    // The last percentile is at the right end of the axis.
    let width = place(last).max(f64::MIN_POSITIVE);
    let series = curves.iter().map(|(name, curve)| {
        let points = curve
            .iter()
            .map(|point| (place(point.percent) / width, point.ms));
        Series::new(name, points.collect())
    });
    let ticks = [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999]
        .into_iter()
        .filter(|percent| *percent <= last)
        .map(|percent| (place(percent) / width, percent.to_string()));
    chart(
        page,
        &Chart {
            title: "Latency by percentile".to_owned(),
            x: Axis::places("requests not slower (%)", ticks.collect()),
            y: Axis::log("latency (ms)"),
            series: series.collect(),
            shaded: Vec::new(),
        },
    );
}

/// The curves with their names: raw and corrected latency of a single run; of two runs the corrected one, if there is
/// one, else the raw one.
fn percentile_curves<'a>(runs: &[ChartedRun<'a>]) -> Vec<(&'static str, &'a [CurvePoint])> {
    let mut named: Vec<(&str, &[CurvePoint])> = Vec::new();
    for charted in runs {
        let curves = &charted.run.curves;
        if let Some(name) = charted.name {
            named.push((name, curves.corrected.as_ref().unwrap_or(&curves.total)));
            continue;
        }
        named.push(("raw", &curves.total));
        if let Some(corrected) = &curves.corrected {
            named.push(("corrected", corrected));
        }
    }
    named
}

/// The place of a percentile on the chart's horizontal axis: 90 %, 99 % and 99.9 % are equally far apart.
pub(super) fn place(percent: f64) -> f64 {
    -(1.0 - percent / 100.0).max(1e-5).log10() / 5.0
}

/// Adds the share of requests in each tenth of a decade of latency, as steps.
fn histogram(page: &mut String, runs: &[ChartedRun<'_>]) {
    let steps = |charted: &ChartedRun<'_>| {
        let bars = &charted.run.curves.bars;
        let requests: u64 = bars.iter().map(|bar| bar.count).sum();
        let mut points = Vec::new();
        for bar in bars {
            // A decade has `BARS` bars of equal width on the logarithmic axis.
            let from_ms = bar.to_ms / 10_f64.powf(1.0 / f64::from(BARS));
            let percent = bar.count as f64 / requests.max(1) as f64 * 100.0;
            points.extend([(from_ms, percent), (bar.to_ms, percent)]);
        }
        // The line rises from zero and falls to zero.
        if let (Some(first), Some(last)) = (points.first().copied(), points.last().copied()) {
            points.insert(0, (first.0, 0.0));
            points.push((last.0, 0.0));
        }
        Series::new(charted.name.unwrap_or("requests"), points)
    };
    chart(
        page,
        &Chart {
            title: "Histogram of latency".to_owned(),
            x: Axis::log("latency (ms), ten steps a decade"),
            y: Axis::linear("requests (%)"),
            series: runs.iter().map(steps).collect(),
            shaded: Vec::new(),
        },
    );
}

/// A line over time: its name on the page of a single run, and its value in a second.
type TimeLine = (&'static str, fn(&SecondFacts) -> Option<f64>);

/// A chart over time.
struct TimeChart {
    title: &'static str,
    y: Axis,
    /// The lines on the page of a single run.
    of_single: &'static [TimeLine],
    /// The line of each run on a page of two runs.
    of_each: TimeLine,
}

/// Adds charts of responses, latency and errors over time. Silences are shaded; of two runs, those of the first one in
/// the upper half.
fn over_time(page: &mut String, runs: &[ChartedRun<'_>]) {
    let charts = [
        TimeChart {
            title: "Answers per second",
            y: Axis::linear("answers/s"),
            of_single: &[("answers", |second| Some(second.completed as f64))],
            of_each: ("answers", |second| Some(second.completed as f64)),
        },
        TimeChart {
            title: "Latency over time",
            y: Axis::log("latency (ms)"),
            of_single: &[
                ("p50", |second| millis(second.p50_us)),
                ("p99", |second| millis(second.p99_us)),
                ("max", |second| millis(second.max_us)),
            ],
            of_each: ("p99", |second| millis(second.p99_us)),
        },
        TimeChart {
            title: "Errors over time",
            y: Axis::linear("requests/s"),
            of_single: &[
                ("failed", |second| Some(second.failed as f64)),
                ("not 2xx", |second| Some(second.non_2xx as f64)),
            ],
            of_each: ("failed or not 2xx", |second| {
                Some((second.failed + second.non_2xx) as f64)
            }),
        },
    ];
    let gloss = shading_gloss(runs);
    for time_chart in charts {
        chart_with(page, &time_chart.of_runs(runs), &gloss);
    }
}

/// A line below a chart that says what is shaded in it; empty if nothing is.
fn shading_gloss(runs: &[ChartedRun<'_>]) -> String {
    let words: Vec<String> = runs.iter().map(silences_in_words).collect();
    if runs.iter().all(|charted| charted.run.silences.is_empty()) {
        return String::new();
    }
    let place = if words.len() == 2 {
        ", of the run before in the upper half and of the one after in the lower"
    } else {
        ""
    };
    format!(
        "<p class=\"gloss\">{}Shaded{place}: no answer came although requests waited ({}).</p>\n",
        shaded_key(),
        words.join("; ")
    )
}

/// How many silences a run had, and how long they were.
fn silences_in_words(charted: &ChartedRun<'_>) -> String {
    let name = charted
        .name
        .map(|name| format!("{name}: "))
        .unwrap_or_default();
    let lengths = || charted.run.silences.iter().map(|silence| silence.length());
    let Some(longest) = lengths().max() else {
        return format!("{name}never");
    };
    let all: Duration = lengths().sum();
    let longest_s = longest.as_secs_f64();
    match lengths().count() {
        1 => format!("{name}once, for {longest_s:.1} s"),
        count => format!(
            "{name}{count} times, for {:.1} s in all and {longest_s:.1} s at most",
            all.as_secs_f64()
        ),
    }
}

impl TimeChart {
    /// The chart of one run with all its lines, or of two runs with one line each. A run in a comparison has a
    /// name.
    fn of_runs(self, runs: &[ChartedRun<'_>]) -> Chart {
        let (line_name, value) = self.of_each;
        let mut series = Vec::new();
        for charted in runs {
            let seconds = whole_seconds(charted.run);
            if let Some(run_name) = charted.name {
                series.push(line(run_name, value, seconds));
                continue;
            }
            for (name, value) in self.of_single {
                series.push(line(name, *value, seconds));
            }
        }
        let silences_of =
            |charted: &ChartedRun<'_>| charted.run.silences.iter().map(span).collect();
        // The axis has all of the run, also if its last seconds have no value.
        let ends = runs.iter().map(|charted| charted.run.elapsed.as_secs_f64());
        let end = ends.fold(0.0, f64::max);
        // Two runs have one of several lines each, which the title then names.
        let title = if runs.len() == 2 && self.of_single.len() >= 2 {
            format!("{}: {line_name}", self.title)
        } else {
            self.title.to_owned()
        };
        Chart {
            title,
            x: Axis::linear_to("time since measuring began (s)", end),
            y: self.y,
            series,
            shaded: runs.iter().map(silences_of).collect(),
        }
    }
}

/// The whole seconds of a run: the last, partial one and the drain would look like a drop.
fn whole_seconds(run: &Report) -> &[SecondFacts] {
    let whole = usize::try_from(run.elapsed.as_secs()).unwrap_or(usize::MAX);
    &run.seconds[..whole.min(run.seconds.len())]
}

/// A line with the value of each second, at the second's end.
fn line(name: &str, value: fn(&SecondFacts) -> Option<f64>, seconds: &[SecondFacts]) -> Series {
    let numbered = (1_u32..).zip(seconds);
    let points = numbered.filter_map(|(end, second)| Some((f64::from(end), value(second)?)));
    Series::new(name, points.collect())
}

fn span(silence: &Silence) -> (f64, f64) {
    (silence.from.as_secs_f64(), silence.to.as_secs_f64())
}

fn millis(micros: Option<u64>) -> Option<f64> {
    micros.map(|micros| micros as f64 / 1000.0)
}

/// Adds a chart without a line below it.
fn chart(page: &mut String, chart: &Chart) {
    chart_with(page, chart, "");
}

/// Adds a chart, wide and narrow, with `gloss` below it; none if no line has two points of which one is above zero.
fn chart_with(page: &mut String, chart: &Chart, gloss: &str) {
    let is_drawn = |series: &Series| {
        series.points.len() >= 2 && series.points.iter().any(|point| point.1 > 0.0)
    };
    if !chart.series.iter().any(is_drawn) {
        return;
    }
    push(
        page,
        format_args!(
            "<section>\n<h2>{}</h2>\n<div class=\"wide\">{}</div>\n<div class=\"narrow\">{}</div>\n{gloss}</section>\n",
            chart.title,
            chart.svg(880, 260),
            chart.svg(320, 220)
        ),
    );
}
