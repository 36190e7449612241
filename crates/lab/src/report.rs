//! A result for people: on a terminal, as Markdown, as one page of HTML. All is made of the
//! [`ResultDocument`] alone.

mod html;
mod markdown;
mod picture;
mod svg;
mod table;
mod terminal;

pub use html::html;
pub use markdown::markdown;
pub use picture::picture;
pub use terminal::terminal;

use crate::result::ResultDocument;

/// Where and how it ran, in one line.
fn setting(result: &ResultDocument) -> String {
    let host = &result.host;
    let form = if result.is_quick {
        "the short form: all claims are exploratory"
    } else {
        "the whole form"
    };
    let end = if result.is_complete {
        ""
    } else {
        "; incomplete"
    };
    let void: usize = result.cells.iter().map(|cell| cell.void).sum();
    format!(
        "{form}; {} rounds of {} cells, {void} void runs{end}. {}, {} cores of {}, {} MiB, Linux {}.",
        result.rounds,
        result.cells.len(),
        host.system,
        host.cores,
        host.processor,
        host.memory_mib,
        host.kernel
    )
}
