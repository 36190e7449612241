//! The charts of a page, of one run or of two that are compared.

use catamaran_chart::{Axis, Chart, Series};

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
    let mut curves: Vec<(&str, &[CurvePoint])> = Vec::new();
    for charted in runs {
        let all = &charted.run.curves;
        match (charted.name, &all.corrected) {
            (Some(name), corrected) => {
                curves.push((name, corrected.as_ref().unwrap_or(&all.total)));
            }
            (None, corrected) => {
                curves.push(("raw", &all.total));
                curves.extend(corrected.as_deref().map(|curve| ("corrected", curve)));
            }
        }
    }
    let points = curves.iter().flat_map(|(_, curve)| curve.iter());
    let last = points.map(|point| point.percent).fold(0.0, f64::max);
    let whole = place(last).max(f64::MIN_POSITIVE);
    let series = curves.iter().map(|(name, curve)| {
        let points = curve.iter().map(|it| (place(it.percent) / whole, it.ms));
        Series::new(name, points.collect())
    });
    let percents = [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999];
    let ticks = percents.into_iter().filter(|percent| *percent <= last);
    let ticks = ticks.map(|percent| (place(percent) / whole, percent.to_string()));
    let found = Chart {
        title: "Latency by percentile".to_owned(),
        x: Axis::places("requests not slower (%)", ticks.collect()),
        y: Axis::log("latency (ms)"),
        series: series.collect(),
        shaded: Vec::new(),
    };
    chart(page, &found);
}

/// The place of a percentile on the chart's horizontal axis: 90 %, 99 % and 99.9 % are equally far apart.
pub(super) fn place(percent: f64) -> f64 {
    -(1.0 - percent / 100.0).max(1e-5).log10() / 5.0
}

/// Adds the share of requests in each tenth of a decade of latency, as steps.
fn histogram(page: &mut String, runs: &[ChartedRun<'_>]) {
    let steps = |charted: &ChartedRun<'_>| {
        let bars = &charted.run.curves.bars;
        let all: u64 = bars.iter().map(|bar| bar.count).sum();
        let mut points = Vec::new();
        for bar in bars {
            let from = bar.to_ms / 10_f64.powf(1.0 / f64::from(BARS));
            let share = bar.count as f64 / all.max(1) as f64 * 100.0;
            points.extend([(from, share), (bar.to_ms, share)]);
        }
        if let (Some(first), Some(last)) = (points.first().copied(), points.last().copied()) {
            points.insert(0, (first.0, 0.0));
            points.push((last.0, 0.0));
        }
        Series::new(charted.name.unwrap_or("requests"), points)
    };
    let found = Chart {
        title: "Histogram of latency".to_owned(),
        x: Axis::log("latency (ms), ten steps a decade"),
        y: Axis::linear("requests (%)"),
        series: runs.iter().map(steps).collect(),
        shaded: Vec::new(),
    };
    chart(page, &found);
}

/// A line over time: its name on the page of a single run, and its value in a second.
type TimeLine = (&'static str, fn(&SecondFacts) -> Option<f64>);

/// Adds charts of responses, latency and errors over time. Silences are shaded on the page of a single run.
fn over_time(page: &mut String, runs: &[ChartedRun<'_>]) {
    let all: [(&str, Axis, &[TimeLine], TimeLine); 3] = [
        (
            "Answers per second",
            Axis::linear("answers/s"),
            &[("answers", |it| Some(it.completed as f64))],
            ("answers", |it| Some(it.completed as f64)),
        ),
        (
            "Latency over time",
            Axis::log("latency (ms)"),
            &[
                ("p50", |it| millis(it.p50_us)),
                ("p99", |it| millis(it.p99_us)),
                ("max", |it| millis(it.max_us)),
            ],
            ("p99", |it| millis(it.p99_us)),
        ),
        (
            "Errors over time",
            Axis::linear("requests/s"),
            &[
                ("failed", |it| Some(it.failed as f64)),
                ("not 2xx", |it| Some(it.non_2xx as f64)),
            ],
            ("failed or not 2xx", |it| {
                Some((it.failed + it.non_2xx) as f64)
            }),
        ),
    ];
    for (title, y, of_one, of_each) in all {
        let mut series = Vec::new();
        let mut shaded = Vec::new();
        for charted in runs {
            let seconds = whole_seconds(charted.run);
            match charted.name {
                Some(name) => series.push(line(name, of_each.1, seconds)),
                None => {
                    series.extend(of_one.iter().map(|(name, of)| line(name, *of, seconds)));
                    shaded.extend(charted.run.silences.iter().map(span));
                }
            }
        }
        let title = match (runs, of_one) {
            ([_, _], [_, _, ..]) => format!("{title}: {}", of_each.0),
            _ => title.to_owned(),
        };
        let found = Chart {
            title,
            x: Axis::linear("time since measuring began (s)"),
            y,
            series,
            shaded,
        };
        chart(page, &found);
    }
}

/// The whole seconds of a run: the last, partial one and the drain would look like a drop.
fn whole_seconds(run: &Report) -> &[SecondFacts] {
    let whole = usize::try_from(run.elapsed.as_secs()).unwrap_or(usize::MAX);
    &run.seconds[..whole.min(run.seconds.len())]
}

fn line(name: &str, of: fn(&SecondFacts) -> Option<f64>, seconds: &[SecondFacts]) -> Series {
    let seconds = (1_u32..).zip(seconds);
    let points = seconds.filter_map(|(at, second)| Some((f64::from(at), of(second)?)));
    Series::new(name, points.collect())
}

fn span(silence: &Silence) -> (f64, f64) {
    (silence.from.as_secs_f64(), silence.to.as_secs_f64())
}

fn millis(micros: Option<u64>) -> Option<f64> {
    micros.map(|micros| micros as f64 / 1000.0)
}

/// Adds a chart, wide and narrow; none if no line has two points of which one is above zero.
fn chart(page: &mut String, chart: &Chart) {
    let is_drawn = |series: &Series| {
        series.points.len() >= 2 && series.points.iter().any(|point| point.1 > 0.0)
    };
    if !chart.series.iter().any(is_drawn) {
        return;
    }
    push(
        page,
        format_args!(
            "<section>\n<h2>{}</h2>\n<div class=\"wide\">{}</div>\n<div class=\"narrow\">{}</div>\n</section>\n",
            chart.title,
            chart.svg(880, 260),
            chart.svg(320, 220)
        ),
    );
}
