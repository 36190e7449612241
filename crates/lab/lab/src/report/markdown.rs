//! Renders a result as Markdown.

use std::fmt::Write as _;

use catamaran_chart::escaped;

use super::headline::headlines;
use super::{claims, runs, setting, table};
use crate::claim::{Outcome, number};
use crate::gate::GateFinding;
use crate::result::{CALLS_MIN, CellResult, PublishedResult, ResultDocument};

/// The whole result as Markdown.
#[must_use]
pub fn markdown(result: &ResultDocument) -> String {
    let mut parts = vec![
        format!("# {}", result.question),
        first(result),
        format!("**{}**", result.answer),
    ];
    if !result.source.is_empty() {
        parts.push(format!("Repeats: {}.", result.source));
    }
    parts.push(setting(result));
    parts.push(result.note.clone());
    parts.push(published(result));
    parts.push(outcomes(result));
    parts.push(planted(result));
    parts.push(cells(result));
    parts.push(repeated_runs(result));
    parts.push(gates(result));
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n") + "\n"
}

/// The headline: the first published ratio, ours in each era, and the verdicts. Empty if no ratio was published.
fn first(result: &ResultDocument) -> String {
    let mut rows = Vec::new();
    let mut sentences = Vec::new();
    for headline in headlines(result) {
        let ours = match headline.ours {
            Some(ours) => {
                let [low, ratio, high] = ours.map(number);
                format!("×{ratio} [{low}..{high}]")
            }
            None => "no interval".to_owned(),
        };
        sentences.push(headline.sentence_beside(&result.answer).to_owned());
        rows.push(vec![
            headline.says,
            headline.published.words(),
            ours,
            format!("**{}**", headline.word),
        ]);
    }
    if rows.is_empty() {
        return String::new();
    }
    let heads = ["what was claimed", "published", "here", "verdict"];
    sentences.retain(|sentence| !sentence.is_empty());
    sentences.insert(0, table_of(&heads, rows));
    sentences.join("\n\n")
}

/// The two outputs of ab for each published run that was made again, folded away.
fn repeated_runs(result: &ResultDocument) -> String {
    if result.as_published.is_empty() {
        return String::new();
    }
    let mut text =
        "<details><summary>The published runs, made again once: ab's blocks</summary>\n\nWith the source's own \
         values, outside the rounds. No claim is on it."
            .to_owned();
    for run in &result.as_published {
        let [theirs, ours] = [&run.theirs, &run.ours].map(|block| escaped(block));
        // Here and below: writing to a string does not fail.
        let _ = write!(
            text,
            "\n\n### {}\n\n<table>\n<tr><th>published</th><th>here</th></tr>\n<tr><td><pre>\n{theirs}\n\
             </pre></td><td><pre>\n{ours}\n</pre></td></tr>\n</table>",
            run.name
        );
        if let Some(rounds) = &run.rounds {
            let _ = write!(text, "\n\nThe rounds say: {rounds}.");
        }
        if !run.deviations.is_empty() {
            let deviations = run.deviations.join("; ");
            let _ = write!(text, "\n\nOtherwise than there: {deviations}.");
        }
    }
    text + "\n\n</details>"
}

/// A table of the published figures, ours, and what the published ones do not support.
fn published(result: &ResultDocument) -> String {
    if result.published.is_empty() {
        return String::new();
    }
    let mut text = "## As published, and here".to_owned();
    let mut ratios = Vec::new();
    for claim in &result.claims {
        if claim.published.is_some() {
            ratios.push(vec![
                claims::named(claim),
                claims::published(claim),
                claims::ratio(claim),
                claim.finding_word().to_owned(),
            ]);
        }
    }
    if !ratios.is_empty() {
        let heads = [
            "what was claimed",
            "published",
            "here, interval of 95 %",
            "verdict",
        ];
        text += "\n\n";
        text += &table_of(&heads, ratios);
    }
    let shared = claims::shared(result);
    let words = |fired: &GateFinding| format!("**{}**: {}", fired.gate, fired.words);
    let run = |run: &PublishedResult| {
        let own = run.found.iter().filter(|fired| !shared.contains(fired));
        let limits = own.map(words);
        vec![
            run.says.clone(),
            run.ours
                .clone()
                .unwrap_or_else(|| "not run in this form".to_owned()),
            limits.collect::<Vec<_>>().join("<br>"),
        ]
    };
    let heads = [
        "published",
        "here: median [lowest..highest]",
        "limits of the published figure",
    ];
    text += "\n\n";
    text += &table_of(&heads, result.published.iter().map(run));
    if !shared.is_empty() {
        let shared: Vec<String> = shared.iter().map(|fired| words(fired)).collect();
        let _ = write!(text, "\n\nLimits of all of them: {}", shared.join(" "));
    }
    for run in result.published.iter().filter(|run| !run.calls.is_empty()) {
        text += "\n\n";
        text += &calls(run);
    }
    text
}

/// A published table of system calls, with our counts in the same rows.
fn calls(run: &PublishedResult) -> String {
    let figure = |value: f64| match value {
        CALLS_MIN.. => format!("{value:.2}"),
        _ => String::new(),
    };
    let calls = run.calls.iter().map(|call| {
        vec![
            call.name.clone(),
            figure(call.theirs),
            figure(call.failed),
            figure(call.ours),
        ]
    });
    let heads = ["call", "published", "of them failed", "here"];
    format!(
        "### System calls of a request: {}\n\nPublished: of one process, under strace; here: of all, counted \
         in the kernel. Some calls have other names today.\n\n{}",
        run.name,
        table_of(&heads, calls)
    )
}

/// The section of claims: their verdicts, ratios and sentences, with remarks on all of them. Empty without claims.
fn outcomes(result: &ResultDocument) -> String {
    if result.claims.is_empty() {
        return String::new();
    }
    let row = |claim: &Outcome| {
        vec![
            claims::named(claim),
            match claims::limit(result, claim).as_str() {
                "" => claim.verdict.word().to_owned(),
                limit => format!("{}; {limit}", claim.verdict.word()),
            },
            claims::ratio(claim),
            match claims::survivors(claim).as_str() {
                "" => claim.sentence.clone(),
                survivors => format!("{} {survivors}", claim.sentence),
            },
        ]
    };
    let heads = ["claim", "verdict", "ratio", "sentence"];
    let table = table_of(&heads, result.claims.iter().map(row));
    let mut text = "## Claims".to_owned();
    let layout = claims::layout(result);
    if !layout.is_empty() {
        let _ = write!(text, "\n\n{layout}");
    }
    let _ = write!(text, "\n\n{table}");
    let remark = claims::remark(result);
    if !remark.is_empty() {
        let _ = write!(text, "\n\n{remark}");
    }
    let disagreements = claims::disagreements(result);
    if !disagreements.is_empty() {
        text += "\n\nThroughput beside 1 / CPU time of a request:\n";
        for words in disagreements {
            let _ = write!(text, "\n- {words}");
        }
    }
    text
}

/// The table of claims with planted ratios, whose true values are known.
fn planted(result: &ResultDocument) -> String {
    let rows = claims::planted(result);
    if rows.is_empty() {
        return String::new();
    }
    let table = table_of(&claims::PLANTED_HEADS, rows);
    format!(
        "## {}\n\n{}\n\n{table}",
        claims::PLANTED,
        claims::PLANTED_LEGEND
    )
}

/// The section of cells: a table of times, one of costs, and one of traffic, as far as the runs have them.
fn cells(result: &ResultDocument) -> String {
    let mut text = format!("## Cells\n\n{}", table::legend(result));
    for group in table::groups(result) {
        let mut heads = vec!["cell".to_owned(), "runs".to_owned()];
        heads.extend(group.names.iter().map(|name| table::head(name)));
        let extras = table::extras(result, &group);
        heads.extend(extras.iter().map(|(head, _)| (*head).to_owned()));
        let row = |cell: &CellResult| {
            let figure = |name: &String| {
                table::figure(cell, name).map_or_else(String::new, |figure| figure.line())
            };
            let count = match cell.void {
                0 => cell.runs.to_string(),
                void => format!("{}, {void} void", cell.runs),
            };
            let mut row = vec![cell.label.clone(), count];
            row.extend(group.names.iter().map(figure));
            row.extend(table::of_extras(cell, &extras));
            row
        };
        let cells = table_of(&heads, result.cells.iter().map(row));
        let _ = write!(text, "\n\n### {}\n\n{cells}", group.title);
    }
    text
}

/// The section of gates on runs: those that fired, and the names of the others.
fn gates(result: &ResultDocument) -> String {
    let mut text = "## Gates\n".to_owned();
    for gate in &result.gates {
        let on = runs(gate.runs);
        let _ = write!(
            text,
            "\n- **{}** on {on}: {} ({})",
            gate.gate, gate.words, gate.cell
        );
    }
    if !result.passed.is_empty() {
        let _ = write!(text, "\n- did not fire: {}", result.passed.join(", "));
    }
    text
}

/// A Markdown table. A bar within a text is escaped, since it would end the cell.
fn table_of(heads: &[impl AsRef<str>], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: Vec<&str>| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |", cells.join(" | "))
    };
    let mut lines = vec![
        line(heads.iter().map(AsRef::as_ref).collect()),
        format!("|{}", "---|".repeat(heads.len())),
    ];
    for row in rows {
        lines.push(line(row.iter().map(String::as_str).collect()));
    }
    lines.join("\n")
}
