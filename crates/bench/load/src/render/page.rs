//! A text that is written line by line, with ab's labels.

use std::fmt::{Display, Write as _};

/// A text to which lines are added.
#[derive(Debug, Default)]
pub(super) struct Page {
    text: String,
}

impl Page {
    /// Adds a line to the text.
    pub(super) fn line(&mut self, line: impl Display) {
        writeln!(self.text, "{line}").expect("a string takes all");
    }

    /// Adds an empty line to the text.
    pub(super) fn gap(&mut self) {
        self.text.push('\n');
    }

    /// Adds a line with a label and a colon, and the value from column 24 on.
    pub(super) fn pair(&mut self, label: &str, value: impl Display) {
        self.line(format_args!("{:24}{value}", format!("{label}:")));
    }

    /// Returns the text with all lines added.
    pub(super) fn into_text(self) -> String {
        self.text
    }
}
