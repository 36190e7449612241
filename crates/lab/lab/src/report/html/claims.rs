//! Writes the claims of a page: sentences, and ratios as bars on one scale.

use catamaran_chart::{Ratios, escaped};

use super::page::Page;
use crate::claim::{Outcome, Verdict};
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
    let layout = claims::layout(result);
    if !layout.is_empty() {
        page.put(format_args!("<p>{}</p>\n", escaped(&layout)));
    }
    let mut values = Vec::new();
    for claim in &result.claims {
        values.extend([claim.low, claim.ratio, claim.high].into_iter().flatten());
        values.extend(claim.planted.map(|planted| planted.ratio));
        if let Some(published) = claim.published {
            values.extend(published.ends());
        }
    }
    let scale = Ratios::of(values.into_iter());
    let axis = scale.axis();
    let rows = result.claims.iter().map(|claim| row(result, claim, &scale));
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
    let cell = |head: &str, text: &str| {
        // The asterisks are Markdown's.
        let text = escaped(text.trim_matches('*'));
        match head {
            "claim" => format!("<td>{text}</td>"),
            _ => format!("<td class=\"n brief\" data-name=\"{head}\">{text}</td>"),
        }
    };
    let mut html_rows = Vec::new();
    for row in rows {
        let cells = claims::PLANTED_HEADS.iter().zip(&row);
        html_rows.push(cells.map(|(head, text)| cell(head, text)).collect());
    }
    page.cards(&claims::PLANTED_HEADS.map(str::to_owned), &html_rows);
}

/// The cells of a claim's row: sentence with gates, verdict, and ratio.
fn row(result: &ResultDocument, claim: &Outcome, scale: &Ratios) -> Vec<String> {
    let bar = match (claim.low, claim.ratio, claim.high) {
        (Some(low), Some(ratio), Some(high)) => {
            let rings = match (claim.published, claim.planted) {
                (Some(published), _) => published.rings(),
                (None, Some(planted)) => vec![planted.ratio],
                (None, None) => Vec::new(),
            };
            scale.bar(Some([low, ratio, high]), &rings)
        }
        _ => String::new(),
    };
    let gates = claims::gates(claim).map(|fired| {
        let (gate, words) = (escaped(&fired.gate), escaped(&fired.words));
        format!("<br><small>{gate}: {words}</small>")
    });
    let survivors = match claims::survivors(claim).as_str() {
        "" => String::new(),
        words => format!("<br><small>{}</small>", escaped(words)),
    };
    let fate = match claim.as_expected {
        Some(true) => "as claimed",
        Some(false) => "not as claimed",
        None => "open",
    };
    let limit = match claims::limit(result, claim).as_str() {
        "" => String::new(),
        limit => format!("<br><small>{}</small>", escaped(limit)),
    };
    let word = claim.verdict.word();
    let class = word.replace(' ', "-");
    let case = match claims::case(claim).as_str() {
        "" => String::new(),
        case => format!(" <span class=\"case\">{}</span>", escaped(case)),
    };
    let off = if claim.verdict == Verdict::NoClaim {
        " off"
    } else {
        ""
    };
    let published = match claims::published(claim).as_str() {
        "" => String::new(),
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
            "<td class=\"verdict\"><b class=\"{class}\">{word}</b> <br><small>{fate}</small>{limit}</td>"
        ),
        format!(
            "<td class=\"bar{off}\">{bar}<div>{}{published}</div></td>",
            claims::ratio(claim)
        ),
    ]
}
