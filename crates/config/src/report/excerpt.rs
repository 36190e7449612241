//! One line of a file, shown with a part of it marked.
//!
//! What is shown is safe for a terminal (control characters are replaced), short (a window around
//! the mark) and keeps the value of a `secret` to itself, whatever the fault on that line is.

use std::fmt;
use std::ops::Range;

/// A line of a text.
pub(super) struct Line<'t> {
    /// Its number, from 1.
    pub(super) number: usize,
    start: usize,
    text: &'t str,
}

impl<'t> Line<'t> {
    /// The line on which a byte stands; the end of the text belongs to the last line that has
    /// something on it, so that "unexpected end" points at what was left open.
    pub(super) fn at(text: &'t str, offset: usize) -> Self {
        let offset = floor_char(text, offset.min(text.trim_end().len()));
        let start = text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
        let line = text[start..].lines().next().unwrap_or("");
        let number = text[..start].bytes().filter(|&byte| byte == b'\n').count() + 1;
        Self {
            number,
            start,
            text: line,
        }
    }

    /// The column of a byte, from 1, counted in characters.
    pub(super) fn column(&self, offset: usize) -> usize {
        self.within(offset) + 1
    }

    /// Writes the line and, below, a mark under the part of the span that stands on it.
    pub(super) fn show(&self, span: &Range<usize>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<char> = printable(&masked(self.text)).chars().collect();
        let first = self.within(span.start);
        let last = self.within(span.end).max(first + 1);
        let window = first.saturating_sub(WIDTH / 2)..shown.len().min(first + WIDTH);
        let text: String = shown
            .get(window.clone())
            .unwrap_or_default()
            .iter()
            .collect();
        let pad: String = shown
            .get(window.start..first)
            .unwrap_or_default()
            .iter()
            .map(blank)
            .collect();
        let mark = "^".repeat(last.min(window.end.max(first + 1)) - first);
        writeln!(f, "{:>5} | {text}", self.number)?;
        writeln!(f, "      | {pad}{mark}")
    }

    /// How many characters of the line stand before a byte of the text.
    fn within(&self, offset: usize) -> usize {
        let offset = offset.saturating_sub(self.start).min(self.text.len());
        self.text[..floor_char(self.text, offset)].chars().count()
    }
}

/// Replaces what could move a terminal's cursor or reorder its text.
pub(super) fn printable(text: &str) -> String {
    let safe = |c: char| match c {
        '\t' => '\t',
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    text.chars().map(safe).collect()
}

/// What stands under a character: a tab under a tab keeps the columns in step.
fn blank(c: &char) -> char {
    if *c == '\t' { '\t' } else { ' ' }
}

/// Stars in place of what follows `secret =` up to the closing quote.
fn masked(line: &str) -> String {
    let Some(value) = secret_value(line) else {
        return line.to_owned();
    };
    let (before, rest) = line.split_at(value);
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
    let open = quote.map_or(0, char::len_utf8);
    let length = quote
        .and_then(|quote| rest[open..].find(quote))
        .unwrap_or(rest.len() - open);
    let (secret, after) = rest[open..].split_at(length);
    // One star for each character, so that the marks below still stand in their columns.
    let stars = "*".repeat(secret.chars().count());
    format!("{before}{}{stars}{}", &rest[..open], masked(after))
}

/// Where the value of a key `secret` begins on a line.
fn secret_value(line: &str) -> Option<usize> {
    for (at, word) in line.match_indices("secret") {
        let rest = line[at + word.len()..]
            .trim_start_matches(['"', '\''])
            .trim_start();
        if let Some(value) = rest.strip_prefix('=') {
            return Some(line.len() - value.trim_start().len());
        }
    }
    None
}

/// The nearest character boundary at or before a byte.
fn floor_char(text: &str, offset: usize) -> usize {
    (0..=offset.min(text.len()))
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0)
}

/// Characters shown after the mark's start; half as many before it.
const WIDTH: usize = 120;
