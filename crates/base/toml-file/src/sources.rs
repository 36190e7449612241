//! The texts that a configuration consists of: the file, and those it includes.
//!
//! All texts share one range of offsets, one text after the other, so that a span says both the
//! file and the place in it. The first text is the file that was asked for.

use std::ops::Range;

/// The texts with the names of their files.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    /// All texts, separated by newlines.
    text: String,
    files: Vec<(String, Range<usize>)>,
    /// The offsets at which the lines of all texts begin.
    lines: Vec<usize>,
}

impl Sources {
    pub(crate) fn new(name: &str, text: &str) -> Self {
        let mut sources = Self {
            text: String::new(),
            files: Vec::new(),
            lines: Vec::new(),
        };
        sources.add(name, text);
        sources
    }

    /// Adds a text, and returns the offset of its first byte.
    pub(crate) fn add(&mut self, name: &str, text: &str) -> usize {
        if !self.files.is_empty() {
            self.text.push('\n');
        }
        let start = self.text.len();
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        self.lines.push(start);
        self.lines.extend(ends.map(|(end, _)| start + end + 1));
        self.text.push_str(text);
        self.files.push((name.to_owned(), start..self.text.len()));
        start
    }

    /// All texts, one after the other.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The offset of the first byte of the file with this number.
    pub(crate) fn start(&self, number: usize) -> usize {
        self.files[number].1.start
    }

    /// The offset of the first byte of the file that contains this offset.
    pub(crate) fn start_of(&self, offset: usize) -> usize {
        self.file(offset).1.start
    }

    /// The name of the file that contains this offset.
    pub(crate) fn name(&self, offset: usize) -> &str {
        &self.file(offset).0
    }

    /// The offsets of the file that contains this offset.
    pub(crate) fn around(&self, offset: usize) -> Range<usize> {
        self.file(offset).1.clone()
    }

    /// The line, from 1, of this offset in its own file.
    pub(crate) fn line(&self, offset: usize) -> usize {
        self.line_of_all(offset) + 1 - self.line_of_all(self.start_of(offset))
    }

    /// The line, from 1, of this offset when the lines of all files are counted.
    pub(crate) fn line_of_all(&self, offset: usize) -> usize {
        self.lines.partition_point(|&start| start <= offset)
    }

    fn file(&self, offset: usize) -> &(String, Range<usize>) {
        let after = self
            .files
            .partition_point(|(_, range)| range.start <= offset);
        &self.files[after.saturating_sub(1)]
    }
}
