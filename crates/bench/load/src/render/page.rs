//! Text that grows by lines, with ab's labels.

use std::fmt::{Display, Write as _};

/// A text under way.
#[derive(Debug, Default)]
pub(super) struct Page {
    text: String,
}

impl Page {
    /// A line.
    pub(super) fn line(&mut self, line: impl Display) {
        writeln!(self.text, "{line}").expect("a string takes all");
    }

    /// An empty line.
    pub(super) fn gap(&mut self) {
        self.text.push('\n');
    }

    /// A label, a colon, and what it says from column 24 on.
    pub(super) fn pair(&mut self, label: &str, value: impl Display) {
        self.line(format_args!("{:24}{value}", format!("{label}:")));
    }

    /// The text.
    pub(super) fn into_text(self) -> String {
        self.text
    }
}
