//! Writes what was published on a page: each published figure with ours, and the published runs that were repeated.

use catamaran_chart::escaped;

use super::page::Page;
use crate::gate::GateFinding;
use crate::report::claims;
use crate::result::{CALLS_MIN, CallResult, PublishedResult, ResultDocument};

/// Writes the output of each published run, next to that of the same run here.
pub(super) fn repeated_runs(page: &mut Page, result: &ResultDocument) {
    if result.as_published.is_empty() {
        return;
    }
    page.fold("The published runs, made again once: ab's blocks");
    page.put(format_args!(
        "<p>With the source's own values, outside the rounds. No claim is on it.</p>\n"
    ));
    for run in &result.as_published {
        page.put(format_args!(
            "<h3>{}</h3>\n<div class=\"pair\"><figure><figcaption>published</figcaption><pre>{}</pre>\
             </figure><figure><figcaption>here</figcaption><pre>{}</pre></figure></div>\n",
            escaped(&run.name),
            escaped(&run.theirs),
            escaped(&run.ours)
        ));
        if let Some(rounds) = &run.rounds {
            let rounds = escaped(rounds);
            page.put(format_args!("<p>The rounds say: {rounds}.</p>\n"));
        }
        if !run.deviations.is_empty() {
            let deviations = escaped(&run.deviations.join("; "));
            page.put(format_args!("<p>Otherwise than there: {deviations}.</p>\n"));
        }
    }
    page.end_fold();
}

/// Writes a table of the published figures, ours, and what the published ones do not support.
pub(super) fn beside(page: &mut Page, result: &ResultDocument) {
    if result.published.is_empty() {
        return;
    }
    page.put(format_args!("<h2>As published, and here</h2>\n"));
    ratios(page, result);
    let shared = claims::shared(result);
    let rows = result.published.iter().map(|run| row(run, &shared));
    let rows: Vec<Vec<String>> = rows.collect();
    let heads = [
        "published",
        "here: median of the rounds [lowest..highest]",
        "limits of the published figure",
    ];
    page.cards(&heads.map(str::to_owned), &rows);
    if !shared.is_empty() {
        let shared = shared.into_iter().map(words);
        let shared = shared.collect::<Vec<_>>().join(" ");
        page.put(format_args!("<p>Limits of all of them: {shared}</p>\n"));
    }
    page.put(format_args!("<div class=\"pair\">\n"));
    for run in result.published.iter().filter(|run| !run.calls.is_empty()) {
        calls(page, run);
    }
    page.put(format_args!("</div>\n"));
}

/// Writes the claims for which the source has a ratio.
fn ratios(page: &mut Page, result: &ResultDocument) {
    let claims = result.claims.iter();
    let claims = claims.filter(|claim| claim.published.is_some());
    let row = |claim| {
        let figure = match claims::ratio(claim).as_str() {
            "" => "none".to_owned(),
            figure => format!("×{figure}"),
        };
        vec![
            format!(
                "<td>{} <span class=\"case\">{}</span></td>",
                escaped(&claim.says),
                escaped(&claims::case(claim))
            ),
            format!(
                "<td class=\"n brief\" data-name=\"published\">{}</td>",
                claims::published(claim)
            ),
            format!("<td class=\"n brief\" data-name=\"here\">{figure}</td>"),
            format!(
                "<td class=\"brief\" data-name=\"verdict\">{}</td>",
                claim.finding_word()
            ),
        ]
    };
    let rows: Vec<Vec<String>> = claims.map(row).collect();
    if !rows.is_empty() {
        let heads = [
            "what was claimed",
            "published",
            "here, interval of 95 %",
            "verdict",
        ];
        page.cards(&heads.map(str::to_owned), &rows);
    }
}

/// A row of the table. Findings in `shared` are left out, since they are printed once for all rows.
fn row(run: &PublishedResult, shared: &[&GateFinding]) -> Vec<String> {
    let own = run.found.iter().filter(|fired| !shared.contains(fired));
    let items = own.map(|fired| format!("<li>{}</li>", words(fired)));
    let ours = run.ours.as_deref().unwrap_or("not run in this form");
    vec![
        format!("<td>{}</td>", escaped(&run.says)),
        format!("<td data-name=\"here\">{}</td>", escaped(ours)),
        format!("<td><ul>{}</ul></td>", items.collect::<String>()),
    ]
}

fn words(fired: &GateFinding) -> String {
    format!("<b>{}</b> {}", escaped(&fired.gate), escaped(&fired.words))
}

/// Writes a published table of system calls with our counts in the same rows.
fn calls(page: &mut Page, run: &PublishedResult) {
    page.put(format_args!(
        "<div><h3>System calls of a request: {}</h3>\n<p>Left one process of theirs, under strace; right all \
         of ours, counted in the kernel. Some calls have other names today.</p>\n",
        escaped(&run.name)
    ));
    let figure = |value: f64| match value {
        CALLS_MIN.. => format!("<td class=\"n\">{value:.2}</td>"),
        _ => "<td></td>".to_owned(),
    };
    let row = |call: &CallResult| {
        let name = format!("<td>{}</td>", escaped(&call.name));
        vec![
            name,
            figure(call.theirs),
            figure(call.failed),
            figure(call.ours),
        ]
    };
    let heads = ["call", "published", "of them failed", "here"];
    page.table(&heads, &run.calls.iter().map(row).collect::<Vec<_>>());
    page.put(format_args!("</div>\n"));
}
