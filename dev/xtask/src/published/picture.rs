//! The pictures of a post: its layout beside ours, and its ratios beside ours.

use std::fmt::Write as _;

use catamaran_chart::{RatioLegend, RatioRow, escaped, ratio_file, text_width};

use super::Judged;
use super::evidence::{Answer, CaseAnswer, CaseSize};
use super::page::PostPage;
use super::source::Published;

/// The picture of all sentences with a figure on a scale of ratios. Rings are published figures. A count is drawn as
/// its ratio to the published count, so that its ring is at 1.
///
/// # Errors
///
/// A published figure does not exist.
pub(super) fn ratios(page: &PostPage<'_>) -> anyhow::Result<String> {
    let (words, texts) = (page.language.words(), page.source.texts_in(page.language));
    let mut rows = Vec::new();
    for Judged { claim, answer } in page.claims {
        let Some(short) = &texts.claim[&claim.id].short else {
            continue;
        };
        let Some(published) = claim.published(page.source)? else {
            continue;
        };
        rows.push(RatioRow {
            label: format!("{} {short}", claim.id),
            rings: rings(&published),
            then: then(answer, &published),
            now: bar(answer.cases.first(), &published),
        });
    }
    let legend = RatioLegend {
        rings: words.legend_rings,
        then: words.legend_then,
        now: words.legend_now,
    };
    let title = format!("{} {}", page.source.test, words.picture);
    Ok(ratio_file(&title, legend, &rows))
}

/// Where the published figure has its rings on the axis of ratios. A count is compared with itself.
fn rings(published: &Published) -> Vec<f64> {
    match published {
        Published::Ratio(ratio) => vec![*ratio],
        Published::Range(ends) => ends.to_vec(),
        Published::Count(_) => vec![1.0],
        Published::Direction(_) => Vec::new(),
    }
}

/// Where our figure with the software of that time is on the axis: the lower end, the estimate, the upper end; `None` if
/// there is none. A figure that is the same on any machine has no interval.
fn then(answer: &Answer, published: &Published) -> Option<[f64; 3]> {
    let Some(figure) = answer.then_figure else {
        return bar(answer.then_cases.first(), published);
    };
    let ours = figure.ours.value();
    let place = match published {
        Published::Count(_) => ours / figure.published.value(),
        Published::Ratio(_) | Published::Range(_) | Published::Direction(_) => ours,
    };
    place.is_finite().then_some([place; 3])
}

/// Our figure of a case, for a bar: the lower end, the estimate, the upper end. A figure that decides nothing is shown,
/// too; `None` if there is no case, a gate forbids it, or there are too few starts.
fn bar(case: Option<&CaseAnswer>, published: &Published) -> Option<[f64; 3]> {
    let scale = match published {
        Published::Count(count) => *count,
        Published::Ratio(_) | Published::Range(_) | Published::Direction(_) => 1.0,
    };
    let ends = match &case?.size {
        CaseSize::Ratio { ends, .. } | CaseSize::Count(ends) => *ends,
        CaseSize::Runs { counts, .. } => [*counts.first()?; 3],
        CaseSize::TooFew { .. } | CaseSize::Gate { .. } => return None,
    };
    Some(ends.map(|end| end / scale))
}

/// Draws which programs shared a machine: in the post above, in our layout below.
pub(super) fn layout(page: &PostPage<'_>) -> String {
    let words = page.language.words();
    let texts = &page.source.texts_in(page.language).layout;
    let rows = [
        (words.layout_there, &texts.there),
        (words.layout_here, &texts.here),
    ];
    let (mut parts, mut right) = (String::new(), 0.0_f64);
    for (number, (name, machines)) in rows.into_iter().enumerate() {
        let top = 6.0 + number as f64 * (MACHINE_HEIGHT + 14.0);
        text(&mut parts, 8.0, top + MACHINE_HEIGHT / 2.0 + 4.0, name);
        let mut x = LEFT;
        for (place, machine) in machines.iter().enumerate() {
            if place > 0 {
                arrow(&mut parts, x - GAP, top + BOX_TOP + BOX_HEIGHT / 2.0);
            }
            x = draw_machine(&mut parts, x, top, machine) + GAP;
        }
        right = right.max(x - GAP);
    }
    let (width, height) = (right + 8.0, 2.0 * MACHINE_HEIGHT + 26.0);
    let title = escaped(words.layout);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{width:.0}\" height=\"{height}\" \
         viewBox=\"0 0 {width:.0} {height}\">\n<style>\n:root {{ color-scheme: light dark }}\n{STYLE}</style>\n\
         <title>{title}</title>{parts}</svg>\n"
    )
}

/// Draws a machine with its programs from left to right, and returns where it ends.
fn draw_machine(parts: &mut String, left: f64, top: f64, machine: &[String]) -> f64 {
    let Some((name, programs)) = machine.split_first() else {
        return left;
    };
    let mut inner = String::new();
    let mut x = left + PADDING;
    for (index, program) in programs.iter().enumerate() {
        if index > 0 {
            arrow(&mut inner, x - GAP, top + BOX_TOP + BOX_HEIGHT / 2.0);
        }
        let width = text_width(program) + 3.0 * PADDING;
        let y = top + BOX_TOP;
        let _ = write!(
            inner,
            "<rect class=\"program\" x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"{BOX_HEIGHT}\" rx=\"3\"/>"
        );
        text(&mut inner, x + PADDING, y + BOX_HEIGHT / 2.0 + 4.0, program);
        x += width + GAP;
    }
    let width = (x - GAP - left + PADDING).max(text_width(name) + 2.0 * PADDING);
    let _ = write!(
        parts,
        "<rect class=\"machine\" x=\"{left:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{MACHINE_HEIGHT}\" rx=\"5\"/>"
    );
    text(parts, left + PADDING, top + 18.0, name);
    parts.push_str(&inner);
    left + width
}

fn text(parts: &mut String, x: f64, y: f64, words: &str) {
    let words = escaped(words);
    let _ = write!(parts, "<text x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>");
}

/// An arrow over the gap that begins at `x`.
fn arrow(parts: &mut String, x: f64, y: f64) {
    let (from, to) = (x + 2.0, x + GAP - 3.0);
    let _ = write!(
        parts,
        "<path class=\"arrow\" d=\"M{from:.1} {y}H{to:.1}m-5 -4l5 4l-5 4\"/>"
    );
}

const STYLE: &str = "\
text { font: 12px system-ui, sans-serif; fill: light-dark(#444, #bbb) }
.machine { fill: none; stroke: light-dark(#999, #777) }
.program { fill: light-dark(#e8f0f8, #24384a); stroke: light-dark(#1f6fb4, #6cb4ee) }
.arrow { fill: none; stroke: light-dark(#444, #bbb) }
";

/// The place of the first machine, right of the name of its row.
const LEFT: f64 = 56.0;

/// The height of a machine, the place of its programs below its upper edge, and their height.
const MACHINE_HEIGHT: f64 = 68.0;
const BOX_TOP: f64 = 28.0;
const BOX_HEIGHT: f64 = 30.0;

/// The space around texts and programs, and the one between programs, which an arrow fills.
const PADDING: f64 = 8.0;
const GAP: f64 = 22.0;
