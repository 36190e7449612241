//! Shows one line of a file with a part of it marked.
//!
//! The output is safe for a terminal (control characters are replaced) and short (a window around the mark). The
//! value of a `secret` is never shown, whatever the fault on that line is.

use std::fmt;
use std::ops::Range;

/// A line of a text, with its number.
pub(super) struct Line<'t> {
    /// The number of the line in its file, from 1.
    pub(super) number: usize,
    start: usize,
    text: &'t str,
}

impl<'t> Line<'t> {
    /// The line that contains this byte.
    ///
    /// The end of the text belongs to the last line that is not empty, so that "unexpected end" points at what
    /// was left open. `first` is the offset at which the file begins; earlier lines belong to other files.
    pub(super) fn at(text: &'t str, first: usize, offset: usize) -> Self {
        let end = first + text[first..].trim_end().len();
        let offset = floor_char(text, offset.min(end));
        let newline = text[first..offset].rfind('\n');
        let start = newline.map_or(first, |newline| first + newline + 1);
        let line = text[start..].lines().next().unwrap_or("");
        let lines = text[first..start].bytes().filter(|&byte| byte == b'\n');
        let number = lines.count() + 1;
        Self {
            number,
            start,
            text: line,
        }
    }

    /// The column of a byte, from 1, in characters.
    pub(super) fn column(&self, offset: usize) -> usize {
        self.within(offset) + 1
    }

    /// Writes the line and, below it, a mark under the part of `span` that is on this line.
    pub(super) fn show(
        &self,
        span: &Range<usize>,
        secrets: &[Range<usize>],
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        let first = self.within(span.start);
        let last = self.within(span.end).clamp(first + 1, first + WIDTH);
        let from = first.saturating_sub(WIDTH / 2);
        let text = printable(&self.masked(from, first + WIDTH - from, secrets));
        let pad: String = text.chars().take(first - from).map(blank).collect();
        writeln!(f, "{:>5} | {text}", self.number)?;
        writeln!(f, "      | {pad}{}", "^".repeat(last - first))
    }

    /// A part of the line in which each character of a secret is replaced by a star, so that the columns of the
    /// marks still fit.
    fn masked(&self, from: usize, length: usize, secrets: &[Range<usize>]) -> String {
        let secret = |at: usize| secrets.iter().any(|span| span.contains(&(self.start + at)));
        let part = self.text.char_indices().skip(from).take(length);
        part.map(|(at, c)| if secret(at) { '*' } else { c })
            .collect()
    }

    /// How many characters of the line come before this byte of the text.
    fn within(&self, offset: usize) -> usize {
        let offset = offset.saturating_sub(self.start).min(self.text.len());
        self.text[..floor_char(self.text, offset)].chars().count()
    }
}

/// The text with everything replaced that could move a terminal's cursor or reorder the text.
pub(super) fn printable(text: &str) -> String {
    let safe = |c: char| match c {
        '\t' => '\t',
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    text.chars().map(safe).collect()
}

/// The character to print under one that has no mark: a tab under a tab, else a space, so that the columns stay
/// aligned.
fn blank(c: char) -> char {
    if c == '\t' { '\t' } else { ' ' }
}

/// The places of the values of all keys `secret`, whether or not the text around them is valid. A broken text may
/// also be a list of variables, such as `AJP_SECRET`.
pub(super) fn secrets(text: &str) -> Vec<Range<usize>> {
    let value = |(at, word): (usize, &str)| secret_after(text, at + word.len());
    let lower = text.to_ascii_lowercase();
    lower.match_indices("secret").filter_map(value).collect()
}

/// The place of a key's value, given the offset at which the key's name ends; `None` if no value follows.
fn secret_after(text: &str, name_end: usize) -> Option<Range<usize>> {
    // More is accepted than by the parser (other white space, and a colon), so that secrets in broken texts are hidden,
    // too.
    let blank = |c: char| c.is_whitespace() && c != '\n';
    let after_name = text[name_end..]
        .trim_start_matches(['"', '\''])
        .trim_start_matches(blank);
    let value = after_name
        .strip_prefix(['=', ':'])?
        .trim_start_matches(blank);
    let start = text.len() - value.len();
    let quote = QUOTES.into_iter().find(|&quote| value.starts_with(quote));
    let open = start + quote.map_or(0, str::len);
    Some(open..open + secret_len(&text[open..], quote))
}

/// The length of a value, given its opening quotes. A value that is not closed ends with its line, or with the
/// text if it may have several lines.
fn secret_len(text: &str, quote: Option<&str>) -> usize {
    let end_of_line = text.find('\n').unwrap_or(text.len());
    let Some(quote) = quote else {
        return end_of_line;
    };
    // Only three quotes begin a value of several lines.
    let value = if quote.len() == 1 {
        &text[..end_of_line]
    } else {
        text
    };
    let mut is_escaped = false;
    for (index, c) in value.char_indices() {
        if !is_escaped && value[index..].starts_with(quote) {
            return index;
        }
        // Between single quotes, a backslash stands for itself.
        is_escaped = c == '\\' && !is_escaped && quote.starts_with('"');
    }
    value.len()
}

/// The nearest character boundary at or before this byte.
fn floor_char(text: &str, offset: usize) -> usize {
    (0..=offset.min(text.len()))
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0)
}

/// How many characters are shown from the start of the mark on; half as many are shown before it.
const WIDTH: usize = 120;

/// The opening quotes of TOML's strings, the longer ones first.
const QUOTES: [&str; 4] = ["\"\"\"", "'''", "\"", "'"];
