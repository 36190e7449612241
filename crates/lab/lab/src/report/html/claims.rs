//! Writes the claims of a page: sentences, and ratios as bars on one scale.

use catamaran_chart::{Ratios, escaped};

use super::page::Page;
use crate::claim::{Outcome, Verdict};
use crate::experiment::PublishedRatio;
use crate::report::claims;
use crate::result::ResultDocument;

/// Writes the section of claims: a row for each, with its verdict and its ratio on a common scale.
pub(super) fn put(page: &mut Page, result: &ResultDocument) {
    if result.claims.is_empty() {
        return;
    }
    page.put(format_args!(
        "<h2>Claims</h2>\n<p>Ratios are taken within rounds. Dot and bar: estimate and interval of \
         95 %, on one logarithmic scale; the dashed line is 1, no difference. Ring: what was \
         published or planted. {}</p>\n",
        escaped(&claims::remark(result))
    ));
    let values = result.claims.iter();
    let values = values.flat_map(|claim| {
        let planted = claim.planted.map(|it| it.ratio);
        let published = claim.published.map(PublishedRatio::ends);
        let [from, to] = [published.map(|it| it[0]), published.map(|it| it[1])];
        [claim.low, claim.ratio, claim.high, from, to, planted]
    });
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

/// Writes the table of claims with planted ratios, whose true values are known.
pub(super) fn planted(page: &mut Page, result: &ResultDocument) {
    let rows = claims::planted(result);
    if rows.is_empty() {
        return;
    }
    page.put(format_args!(
        "<h2>{}</h2>\n<p>{}</p>\n",
        claims::PLANTED,
        escaped(claims::PLANTED_LEGEND)
    ));
    let cell = |(head, text): (&&str, String)| {
        let text = escaped(text.trim_matches('*'));
        match *head {
            "claim" => format!("<td>{text}</td>"),
            head => format!("<td class=\"n brief\" data-name=\"{head}\">{text}</td>"),
        }
    };
    let row = |row: Vec<String>| claims::PLANTED_HEADS.iter().zip(row).map(cell).collect();
    let rows: Vec<Vec<String>> = rows.into_iter().map(row).collect();
    page.cards(&claims::PLANTED_HEADS.map(str::to_owned), &rows);
}

/// The cells of a claim's row: sentence with gates, verdict, and ratio.
fn row(claim: &Outcome, scale: &Ratios) -> Vec<String> {
    let bar = match (claim.low, claim.ratio, claim.high) {
        (Some(low), Some(ratio), Some(high)) => {
            let planted = || claim.planted.map(|it| PublishedRatio::One(it.ratio));
            let ring = claim.published.or_else(planted);
            scale.bar(
                Some([low, ratio, high]),
                &ring.map_or_else(Vec::new, PublishedRatio::rings),
            )
        }
        _ => String::new(),
    };
    let gates = claims::gates(claim).map(|fired| {
        let (gate, words) = (escaped(&fired.gate), escaped(&fired.words));
        format!("<br><small>{gate}: {words}</small>")
    });
    let survivors = match claims::survivors(claim) {
        none if none.is_empty() => none,
        words => format!("<br><small>{}</small>", escaped(&words)),
    };
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
            "<td class=\"sentence\"><b>{}</b>{case}<br>{}{}{survivors}</td>",
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
