//! Renders a result as one page of HTML without scripts and without requests to the network.
//!
//! Code writes the page, not a template: for a template each part would need a struct of finished
//! texts, which takes more lines than it saves (551 instead of 481 for the page of a running tier).
//!
//! Each picture is in the page twice, wide and narrow, because the text of a scaled picture cannot
//! be read; the style shows the one that fits. Colours follow the reader's choice of light or dark.

mod cells;
mod claims;
mod over_time;
mod page;
mod published;
mod words;

use catamaran_chart::{Ratios, escaped};

use self::page::Page;
use super::headline::{Headline, headlines};
use super::setting;
use crate::claim::number;
use crate::gate::Effect;
use crate::result::ResultDocument;

/// The whole page of a result.
#[must_use]
pub fn html(result: &ResultDocument) -> String {
    let mut page = Page::begin(&result.question);
    first(&mut page, result);
    page.put(format_args!(
        "<p class=\"answer\">{}</p>\n",
        escaped(&result.answer)
    ));
    if !result.source.is_empty() {
        page.put(format_args!(
            "<p>Repeats: {}.</p>\n",
            escaped(&result.source)
        ));
    }
    page.put(format_args!(
        "<p class=\"setting\">{}</p>\n",
        escaped(&setting(result))
    ));
    if !result.note.is_empty() {
        let note = with_code(&result.note);
        page.put(format_args!("<p class=\"note\">{note}</p>\n"));
    }
    published::beside(&mut page, result);
    claims::put(&mut page, result);
    claims::planted(&mut page, result);
    cells::tables(&mut page, result);
    gates(&mut page, result);
    published::repeated_runs(&mut page, result);
    page.fold("Each round");
    cells::pictures(&mut page, result);
    page.end_fold();
    page.fold("Over time");
    over_time::section(&mut page, result);
    page.end_fold();
    cells::calls(&mut page, result);
    words::put(&mut page, result);
    details(&mut page, result);
    page.end()
}

/// Writes the headlines, one for each era.
fn first(page: &mut Page, result: &ResultDocument) {
    for headline in headlines(result) {
        put_headline(page, result, &headline);
    }
}

/// Writes a headline: the published ratio as a ring, our interval as a bar, and the verdict as a word.
fn put_headline(page: &mut Page, result: &ResultDocument, headline: &Headline<'_>) {
    let our_values = headline.ours.into_iter().flatten();
    let values = our_values.chain(headline.published.ends());
    let scale = Ratios::of(values).with_width(FIRST_WIDTH);
    let ours = match headline.ours {
        Some(ours) => {
            let [low, ratio, high] = ours.map(number);
            format!("here ×{ratio} [{low}..{high}]")
        }
        None => "no interval".to_owned(),
    };
    let word = headline.word;
    page.put(format_args!(
        "<div class=\"first\"><div><p>{}: published {}, {ours}</p>\n{}{}</div>\n<p class=\"word {}\">{word}</p></div>\n",
        escaped(&headline.says),
        headline.published.words(),
        scale.axis(),
        scale.bar(headline.ours, &headline.published.rings()),
        word.replace(' ', "-")
    ));
    let sentence = headline.sentence_beside(&result.answer);
    if !sentence.is_empty() {
        page.put(format_args!("<p>{}</p>\n", escaped(sentence)));
    }
}

/// The text as HTML, with `<code>` for the parts between backticks.
fn with_code(text: &str) -> String {
    let mut html = String::new();
    for (number, part) in text.split('`').enumerate() {
        // Every second part is between backticks.
        if number % 2 == 0 {
            html += &escaped(part);
        } else {
            html += &format!("<code>{}</code>", escaped(part));
        }
    }
    html
}

/// Writes the table of gates that fired on runs, and names those that did not.
fn gates(page: &mut Page, result: &ResultDocument) {
    page.put(format_args!("<h2>Gates</h2>\n<ul>\n"));
    for gate in &result.gates {
        let effect = match gate.effect {
            Effect::Refuse => "refuses",
            Effect::Void => "void",
            Effect::Time => "no claim on times",
            Effect::Machine => "no claim on times and CPU",
            Effect::Claim => "no claim",
            Effect::Note => "note",
        };
        page.put(format_args!(
            "<li><b>{}</b> on {} ({effect}): {} <small>{}</small></li>\n",
            escaped(&gate.gate),
            super::runs(gate.runs),
            escaped(&gate.words),
            escaped(&gate.cell)
        ));
    }
    let passed = escaped(&result.passed.join(", "));
    page.put(format_args!("<li>did not fire: {passed}</li>\n</ul>\n"));
}

/// Writes the servers with their files, the orders of cells and the cost of measuring, folded away.
fn details(page: &mut Page, result: &ResultDocument) {
    page.fold("Servers of the first run, and how it was measured");
    for server in &result.servers {
        page.put(format_args!(
            "<h3>{} ({})</h3>\n<p>{}</p>\n<pre>{}</pre>\n",
            escaped(&server.name),
            escaped(&server.target),
            escaped(&server.version),
            escaped(&server.command.join(" "))
        ));
        for (name, text) in &server.files {
            page.put(format_args!(
                "<p>{}</p>\n<pre>{}</pre>\n",
                escaped(name),
                escaped(text)
            ));
        }
    }
    let order = |order: &Vec<usize>| {
        let cells: Vec<String> = order.iter().map(ToString::to_string).collect();
        format!("[{}]", cells.join(" "))
    };
    let orders: Vec<String> = result.orders.iter().map(order).collect();
    page.put(format_args!(
        "<p>Seed {}; the cells' order in each round: {}.</p>\n",
        result.seed,
        orders.join(" ")
    ));
    if let Some(cost) = result.own_cost {
        let percent = cost * 100.0;
        page.put(format_args!(
            "<p>Measuring took at most {percent:.2} % of the CPU time measured.</p>\n"
        ));
    }
    page.end_fold();
}

/// The width of the headline's picture, in pixels: it fits on a phone.
const FIRST_WIDTH: f64 = 340.0;
