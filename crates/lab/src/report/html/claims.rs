//! The claims of a page: sentences, and ratios as bars on one scale.

use catamaran_chart::escaped;

use super::page::Page;
use crate::claim::{Outcome, Verdict};
use crate::report::claims;
use crate::report::svg::Ratios;
use crate::result::ResultDocument;

pub(super) fn put(page: &mut Page, result: &ResultDocument) {
    if result.claims.is_empty() {
        return;
    }
    page.put(format_args!(
        "<h2>Claims</h2>\n<p>Ratios are taken within rounds. Dot and bar: median and interval of \
         95 %, on one logarithmic scale; the dashed line is 1, no difference. Ring: what was \
         published. {}</p>\n",
        escaped(&claims::remark(result))
    ));
    let values = result.claims.iter();
    let values = values.flat_map(|claim| [claim.low, claim.ratio, claim.high, claim.published]);
    let scale = Ratios::of(values.flatten());
    let axis = scale.axis();
    let rows = result.claims.iter().map(|claim| row(claim, &scale));
    let heads = [
        "claim".to_owned(),
        "verdict".to_owned(),
        format!("<div class=\"scale\">{axis}</div>"),
    ];
    page.put(format_args!("<div class=\"scale below\">{axis}</div>\n"));
    page.cards(&heads, &rows.collect::<Vec<_>>());
}

fn row(claim: &Outcome, scale: &Ratios) -> Vec<String> {
    let bar = match (claim.low, claim.ratio, claim.high) {
        (Some(low), Some(ratio), Some(high)) => scale.bar(low, ratio, high, claim.published),
        _ => String::new(),
    };
    let gates = claims::gates(claim).map(|fired| {
        let (gate, words) = (escaped(&fired.gate), escaped(&fired.words));
        format!("<br><small>{gate}: {words}</small>")
    });
    let fate = match claim.as_expected {
        Some(true) => "as claimed",
        Some(false) => "not as claimed",
        None => "open",
    };
    let word = claim.verdict.word();
    let class = word.replace(' ', "-");
    let case = match claims::case(claim) {
        case if case.is_empty() => case,
        case => format!(" <span class=\"case\">{}</span>", escaped(&case)),
    };
    let off = if claim.verdict == Verdict::NoClaim {
        " off"
    } else {
        ""
    };
    let published = match claims::published(claim) {
        none if none.is_empty() => none,
        published => format!("<br><small>published {published}</small>"),
    };
    vec![
        format!(
            "<td class=\"sentence\"><b>{}</b>{case}<br>{}{}</td>",
            escaped(&claim.says),
            escaped(&claim.sentence),
            gates.collect::<String>()
        ),
        format!(
            "<td class=\"verdict\"><b class=\"{class}\">{word}</b> <br><small>{fate}</small></td>"
        ),
        format!(
            "<td class=\"bar{off}\">{bar}<div>{}{published}</div></td>",
            claims::ratio(claim)
        ),
    ]
}
