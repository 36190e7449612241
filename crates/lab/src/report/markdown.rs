//! A result as Markdown.

use std::fmt::Write as _;

use super::{setting, table};
use crate::claim::{Outcome, number};
use crate::result::ResultDocument;

/// The result as Markdown.
#[must_use]
pub fn markdown(result: &ResultDocument) -> String {
    let mut text = String::new();
    let mut line = |words: &str| {
        let _ = writeln!(text, "{words}");
    };
    line(&format!("# {}\n\n{}\n", result.question, result.answer));
    if !result.source.is_empty() {
        line(&format!("Repeats: {}.\n", result.source));
    }
    line(&format!("{}\n", setting(result)));
    line(&as_published(result));
    line("## Claims\n\n| claim | verdict | ratio | published | sentence |\n|---|---|---|---|---|");
    for claim in &result.claims {
        line(&format!(
            "| {} | {} | {} | {} | {} |",
            claim.says,
            claim.verdict.word(),
            ratio(claim),
            claim.published.map_or_else(String::new, number),
            claim.sentence
        ));
    }
    line("\n## Cells\n\nMedians of valid runs, and lowest..highest.\n");
    let names = table::measures(result);
    let heads: Vec<String> = names.iter().map(|name| table::head(name)).collect();
    let rule = "---|".repeat(names.len());
    line(&format!(
        "| cell | runs | {} |\n|---|---|{rule}",
        heads.join(" | ")
    ));
    for cell in &result.cells {
        let figure = |name: &String| match table::figure(cell, name) {
            Some((median, spread)) => format!("{median} ({spread})"),
            None => String::new(),
        };
        let figures: Vec<String> = names.iter().map(figure).collect();
        line(&format!(
            "| {} | {} | {} |",
            cell.label,
            cell.runs,
            figures.join(" | ")
        ));
    }
    if !result.published.is_empty() {
        line("\n## Published\n");
    }
    for run in &result.published {
        line(&format!("- {}", run.says));
        if let Some(ours) = &run.ours {
            line(&format!("  - ours: {ours}"));
        }
        for fired in &run.found {
            line(&format!("  - {}: {}", fired.gate, fired.words));
        }
    }
    line("\n## Gates\n");
    for gate in &result.gates {
        line(&format!(
            "- {} on {} runs: {} ({})",
            gate.gate, gate.runs, gate.words, gate.cell
        ));
    }
    line(&format!("- did not fire: {}", result.passed.join(", ")));
    text
}

/// Both of ab's blocks of each published run that was made again.
fn as_published(result: &ResultDocument) -> String {
    let mut text = String::new();
    for run in &result.as_published {
        let _ = writeln!(
            text,
            "## As published, made again once: {}\n\nPublished:\n\n```\n{}\n```\n\nHere:\n\n```\n{}\n```\n",
            run.name, run.theirs, run.ours
        );
        if !run.deviations.is_empty() {
            let _ = writeln!(
                text,
                "Otherwise than there: {}.\n",
                run.deviations.join("; ")
            );
        }
    }
    text
}

fn ratio(claim: &Outcome) -> String {
    match (claim.ratio, claim.low, claim.high) {
        (Some(ratio), Some(low), Some(high)) => {
            format!("{} [{}..{}]", number(ratio), number(low), number(high))
        }
        _ => String::new(),
    }
}
