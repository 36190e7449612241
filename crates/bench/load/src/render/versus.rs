//! Renders a comparison of two targets, for people and for programs.

use super::page::Page;
use crate::document::versus::{Measure, SilentBlocks, Versus};
use crate::versus::{hidden_factor, short};

/// The comparison as text: the result first, then the figures.
pub fn text(versus: &Versus) -> String {
    let mut page = Page::default();
    page.line(&versus.sentence);
    page.gap();
    let urls = [("A", &versus.a), ("B", &versus.b)];
    for ((name, url), bytes) in urls.into_iter().zip(versus.body_bytes) {
        let bodies = match bytes {
            Some(bytes) => format!(", bodies of {bytes:.0} bytes"),
            None => String::new(),
        };
        page.line(format_args!("{name}: {url}{bodies}"));
    }
    page.line(format_args!(
        "{} pairs of blocks of {:.0} ms, in mirrored order; medians of blocks, and ratios \
         within pairs by signed ranks",
        versus.pairs,
        versus.block_s * 1000.0
    ));
    if let [a, b] = versus.warm_up_s[..] {
        page.line(format_args!("Warmed for {a:.1} s and {b:.1} s before"));
    }
    warnings(&mut page, versus);
    page.gap();
    page.line(format!(
        "{:8}{:>14}{:>14}{:>9}  {:20}{}",
        "", "A", "B", "A / B", "interval", "verdict"
    ));
    for measure in &versus.measures {
        row(&mut page, measure);
    }
    for silent in versus.silences.iter().filter(|silent| silent.count > 0) {
        silences(&mut page, silent, versus.pairs);
    }
    let mut text = page.into_text();
    if let Some(gate) = &versus.gate {
        text += &super::gate::gate(gate);
    }
    text
}

/// Writes the warnings.
fn warnings(page: &mut Page, versus: &Versus) {
    if !versus.warnings.is_empty() {
        page.gap();
    }
    for warning in &versus.warnings {
        page.line(format_args!(
            "WARNING: in {} blocks of A and {} of B: {}",
            warning.a, warning.b, warning.text
        ));
    }
}

/// The comparison as one JSON object, indented, with a line end.
pub fn json(versus: &Versus) -> String {
    super::json::indented(versus)
}

/// How often and how long a target gave no answer.
fn silences(page: &mut Page, silent: &SilentBlocks, pairs: usize) {
    page.line(format_args!(
        "{:10}{} gave no answer in {} span(s) of {} of its {pairs} blocks, for up to {:.0} ms",
        "silences",
        silent.target.to_uppercase(),
        silent.count,
        silent.blocks,
        silent.longest_ms
    ));
}

/// The row of one measure: both values, their ratio with its interval, the verdict. A measure without an interval
/// has no ratio. An end of an interval without a bound is `∞`.
fn row(page: &mut Page, measure: &Measure) {
    let number = |value: Option<f64>| match value {
        Some(value) => format!("{value:.3}"),
        None => "∞".to_owned(),
    };
    let has_interval = measure.level.is_some();
    let (ratio, interval) = if has_interval {
        let interval = format!("[{} .. {}]", number(measure.low), number(measure.high));
        (number(measure.ratio), interval)
    } else {
        ("-".to_owned(), String::new())
    };
    let line = format!(
        "{:8}{:>14}{:>14}{ratio:>9}  {interval:20}{}",
        measure.measure,
        value_text(measure.a, &measure.unit),
        value_text(measure.b, &measure.unit),
        verdict_text(measure)
    );
    page.line(line);
    if let Some(reason) = &measure.reason {
        page.line(format_args!("{:8}{reason}", ""));
    }
}

fn value_text(value: Option<f64>, unit: &str) -> String {
    let Some(value) = value else {
        return "-".to_owned();
    };
    match unit {
        "ms" => format!("{value:.3} ms"),
        "share" => format!("{:.4} %", value * 100.0),
        "us" => format!("{value:.2} us"),
        _ => format!("{value:.1}/s"),
    }
}

/// The verdict in words; if no difference is shown, with the size of one that the noise may hide.
fn verdict_text(measure: &Measure) -> String {
    let text = match measure.verdict.as_str() {
        "differs" => "differs",
        "suggests" => "suggested, but not beside the other measures",
        "none-shown" => match hidden_factor(measure) {
            Some(factor) => {
                let factor = short(factor);
                return format!("no difference shown; up to ×{factor} may be hidden");
            }
            None => "no difference shown",
        },
        "moved" => "no verdict: it moved",
        _ => "no verdict",
    };
    text.to_owned()
}
