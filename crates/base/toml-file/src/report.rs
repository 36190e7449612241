//! The faults and warnings of a file and of those it includes, and how they are shown.
//!
//! Other modules find the faults. This one keeps them together with the texts of the files and prints
//! them: one line that says what is wrong, where, and what to do, then the line of the file with the
//! place marked. The value of a `secret` is never shown.

mod excerpt;

use std::fmt;
use std::ops::Range;

use crate::sources::Sources;
use crate::suggest::meant_or;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The file cannot be used.
    Fault,
    /// The file can be used, but hardly as its author meant.
    Warning,
}

/// One fault or warning about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether the file can be used in spite of the finding.
    pub severity: Severity,
    /// The fault, in words.
    pub message: String,
    /// What the reader can do about the finding; empty if the message says enough.
    pub hint: String,
    /// The bytes concerned, as offsets in all texts one after the other; `None` if something is
    /// missing from the file as a whole.
    pub span: Option<Range<usize>>,
}

impl Finding {
    /// A fault at this place: the file cannot be used.
    pub fn fault(message: impl Into<String>, span: Range<usize>) -> Self {
        let (message, hint) = (message.into(), String::new());
        Self {
            severity: Severity::Fault,
            message,
            hint,
            span: Some(span),
        }
    }

    /// A warning about this place: the file can be used.
    pub fn warning(message: impl Into<String>, span: Range<usize>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::fault(message, span)
        }
    }

    /// A fault of the file as a whole, such as a missing table.
    pub fn absence(message: impl Into<String>) -> Self {
        let (message, hint) = (message.into(), String::new());
        Self {
            severity: Severity::Fault,
            message,
            hint,
            span: None,
        }
    }

    /// Adds a hint: what the reader can do about the finding.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
}

/// The file, line and column of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position<'r> {
    /// The name of the file.
    pub file: &'r str,
    /// The line and the column in characters, both from 1; `None` if the finding is about the file as
    /// a whole.
    pub place: Option<(usize, usize)>,
}

/// The texts of a file and of those it includes, with all findings about them. Printing it shows the
/// findings.
#[derive(Clone, Debug)]
pub struct Report {
    /// Boxed to keep small what a reader returns as an error.
    sources: Box<Sources>,
    /// Values that no message may show, each with what is shown instead.
    hidden: Vec<(String, String)>,
    findings: Vec<Finding>,
    unknown_key: UnknownKeyHint,
}

/// Makes the hint for a key that its table does not know. The arguments are the key, and the known
/// name that may have been meant.
pub type UnknownKeyHint = fn(&str, Option<&str>) -> String;

impl Report {
    /// An empty report on a file with this text. Findings show the file as `name`.
    pub fn new(name: &str, text: &str) -> Self {
        Self {
            sources: Box::new(Sources::new(name, text)),
            hidden: Vec::new(),
            findings: Vec::new(),
            unknown_key: |_, meant| meant_or(meant, || "remove it".to_owned()),
        }
    }

    /// A report whose only finding is a fault of the file as a whole, such as that it cannot be read.
    pub fn absence(name: &str, message: impl Into<String>) -> Self {
        let mut report = Self::new(name, "");
        report.push(Finding::absence(message));
        report
    }

    /// Sets how this kind of file hints at what to do about an unknown key.
    pub fn with_unknown_key(self, unknown_key: UnknownKeyHint) -> Self {
        Self {
            unknown_key,
            ..self
        }
    }

    pub(crate) fn hint_of_unknown(&self, name: &str, meant: Option<&str>) -> String {
        (self.unknown_key)(name, meant)
    }

    /// Adds the text of an included file, and returns the offset of its first byte.
    pub fn add(&mut self, name: &str, text: &str) -> usize {
        self.sources.add(name, text)
    }

    /// The offset at which a file begins in the text of all files. Files have numbers in the order of
    /// [`Report::add`]; the main file has 0.
    pub fn start(&self, number: usize) -> usize {
        self.sources.start(number)
    }

    /// The texts of all files from this offset on.
    pub fn text_at(&self, offset: usize) -> &str {
        self.sources.text().get(offset..).unwrap_or_default()
    }

    /// Adds a finding.
    pub fn push(&mut self, mut finding: Finding) {
        for (value, instead) in &self.hidden {
            for text in [&mut finding.message, &mut finding.hint] {
                if text.contains(value) {
                    *text = text.replace(value, instead);
                }
            }
        }
        self.findings.push(finding);
    }

    /// Replaces this value by the name of its variable in all later findings. A value of a few
    /// characters is not replaced, because it could be a part of any word.
    pub fn hide(&mut self, value: String, variable: &str) {
        if value.chars().count() >= HIDDEN_MIN {
            self.hidden.push((value, format!("${{{variable}}}")));
        }
    }

    /// Sorts the findings by their places; those without a place come last. Call it when everything is
    /// found.
    pub fn finish(&mut self) {
        self.hidden.clear();
        let place = |finding: &Finding| finding.span.as_ref().map_or(usize::MAX, |span| span.start);
        self.findings.sort_by_key(place);
    }

    /// Returns `value` if there is no fault.
    ///
    /// # Errors
    /// The report itself, finished, if it has a fault.
    pub fn or<T>(mut self, value: T) -> Result<T, Self> {
        self.finish();
        match self.faults() {
            0 => Ok(value),
            _ => Err(self),
        }
    }

    /// Removes the findings about the file as a whole. They may be wrong if a part of the file could
    /// not be read.
    pub fn forget_absences(&mut self) {
        self.findings.retain(|finding| finding.span.is_some());
    }

    /// Removes those findings after the first `known` ones whose place `keep` does not accept.
    /// Findings without a place stay.
    pub fn retain_from(&mut self, known: usize, keep: impl Fn(&Range<usize>) -> bool) {
        let mut number = 0;
        self.findings.retain(|finding| {
            number += 1;
            number <= known || finding.span.as_ref().is_none_or(&keep)
        });
    }

    /// The line, from 1, of this byte in its own file.
    #[must_use]
    pub fn line(&self, offset: usize) -> usize {
        self.sources.line(offset)
    }

    /// The line, from 1, of this byte when the lines of all files are counted.
    pub(crate) fn line_of_all(&self, offset: usize) -> usize {
        self.sources.line_of_all(offset)
    }

    /// The name of the file that contains this byte.
    pub fn name(&self, offset: usize) -> &str {
        self.sources.name(offset)
    }

    /// The place of the byte at `offset`, for a message about the byte at `finding`: `line 4` if both are in the same
    /// file, otherwise `other.toml:4`.
    pub fn spot(&self, offset: usize, finding: usize) -> String {
        let (name, line) = (self.name(offset), self.line(offset));
        if self.sources.start_of(offset) == self.sources.start_of(finding) {
            format!("line {line}")
        } else {
            format!("{name}:{line}")
        }
    }

    /// Whether there are more findings than are shown, so that looking for hints is not worth the time
    /// any more.
    pub fn is_full(&self) -> bool {
        self.findings.len() > SHOWN_MAX
    }

    /// All findings so far.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Where a finding of this report is.
    #[must_use]
    pub fn position(&self, finding: &Finding) -> Position<'_> {
        let start = finding.span.as_ref().map_or(0, |span| span.start);
        let place = finding.span.as_ref().map(|_| {
            let line = self.excerpt(start);
            (line.number, line.column(start))
        });
        Position {
            file: self.name(start),
            place,
        }
    }

    /// The line that contains this byte.
    fn excerpt(&self, start: usize) -> excerpt::Line<'_> {
        let file = self.sources.around(start);
        excerpt::Line::at(&self.sources.text()[..file.end], file.start, start)
    }

    /// The number of findings that keep the file from being used.
    #[must_use]
    pub fn faults(&self) -> usize {
        self.count(Severity::Fault)
    }

    /// The number of warnings.
    #[must_use]
    pub fn warnings(&self) -> usize {
        self.count(Severity::Warning)
    }

    fn count(&self, severity: Severity) -> usize {
        self.findings
            .iter()
            .filter(|finding| finding.severity == severity)
            .count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secrets = excerpt::secrets(self.sources.text());
        for finding in self.findings.iter().take(SHOWN_MAX) {
            self.show(finding, &secrets, f)?;
        }
        match self.findings.len().saturating_sub(SHOWN_MAX) {
            0 => Ok(()),
            more => writeln!(f, "{}: and {more} more", self.sources.name(0)),
        }
    }
}

impl std::error::Error for Report {}

impl Report {
    fn show(
        &self,
        finding: &Finding,
        secrets: &[Range<usize>],
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        let start = finding.span.as_ref().map_or(0, |span| span.start);
        let line = finding.span.as_ref().map(|_| self.excerpt(start));
        write!(f, "{}:", self.name(start))?;
        if let (Some(line), Some(span)) = (&line, &finding.span) {
            write!(f, "{}:{}:", line.number, line.column(span.start))?;
        }
        let severity = match finding.severity {
            Severity::Fault => "fault",
            Severity::Warning => "warning",
        };
        write!(f, " {severity}: {}", excerpt::printable(&finding.message))?;
        match finding.hint.as_str() {
            "" => writeln!(f)?,
            hint => writeln!(f, "; {}", excerpt::printable(hint))?,
        }
        match (line, &finding.span) {
            (Some(line), Some(span)) => line.show(span, secrets, f),
            _ => Ok(()),
        }
    }
}

/// The most findings that are shown: a file with more is not a configuration with slips in it.
const SHOWN_MAX: usize = 100;

/// The least number of characters of a value that is replaced.
const HIDDEN_MIN: usize = 4;

#[cfg(test)]
mod tests;
