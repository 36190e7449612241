//! The faults of a file and of those it includes, and how they are shown.
//!
//! Other modules find the faults. This one holds them with the texts of the files and writes them: one
//! line that says what, where and what to do, then the line of source with the place marked. The
//! contents of a `secret` are never shown.

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

/// One thing to say about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether the file can still be used.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// What to do about it; empty when the message says it all.
    pub hint: String,
    /// The bytes at fault, of all files one behind the other; `None` when the fault is that something
    /// is missing.
    pub span: Option<Range<usize>>,
}

impl Finding {
    /// What keeps the file from being used.
    pub fn fault(message: impl Into<String>, span: Range<usize>) -> Self {
        let (message, hint) = (message.into(), String::new());
        Self {
            severity: Severity::Fault,
            message,
            hint,
            span: Some(span),
        }
    }

    /// What the file can be used with.
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

    /// This finding, with what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
}

/// Where a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position<'r> {
    /// The name of its file.
    pub file: &'r str,
    /// Its line and its column in characters, from 1; `None` if it is about the file as a whole.
    pub place: Option<(usize, usize)>,
}

/// The findings of a file and those it includes, in the order of the files.
#[derive(Clone, Debug)]
pub struct Report {
    /// Boxed to keep small what a reader returns.
    sources: Box<Sources>,
    /// Values that no message may show, and what it shows instead.
    hidden: Vec<(String, String)>,
    findings: Vec<Finding>,
    unknown_key: UnknownKeyHint,
}

/// What to do about a key that its table does not know, given the name that may have been meant.
pub type UnknownKeyHint = fn(&str, Option<&str>) -> String;

impl Report {
    /// A report on a file with this text, which the findings show under `name`.
    pub fn new(name: &str, text: &str) -> Self {
        Self {
            sources: Box::new(Sources::new(name, text)),
            hidden: Vec::new(),
            findings: Vec::new(),
            unknown_key: |_, meant| meant_or(meant, || "remove it".to_owned()),
        }
    }

    /// A report on a file that is at fault as a whole, such as one that cannot be read.
    pub fn absence(name: &str, message: impl Into<String>) -> Self {
        let mut report = Self::new(name, "");
        report.push(Finding::absence(message));
        report
    }

    /// This report, with what this kind of file says of keys that a table does not know.
    pub fn with_unknown_key(self, unknown_key: UnknownKeyHint) -> Self {
        Self {
            unknown_key,
            ..self
        }
    }

    pub(crate) fn hint_of_unknown(&self, name: &str, meant: Option<&str>) -> String {
        (self.unknown_key)(name, meant)
    }

    /// Adds the text of an included file; gives the offset of its first byte.
    pub fn add(&mut self, name: &str, text: &str) -> usize {
        self.sources.add(name, text)
    }

    /// The offset of the first byte of the file of that number; 0 is the one that was asked for.
    pub fn start(&self, number: usize) -> usize {
        self.sources.start(number)
    }

    /// All texts from an offset on.
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

    /// Names a variable in all findings to come where they would show its value. One of a few letters
    /// may be a part of any word.
    pub fn hide(&mut self, value: String, variable: &str) {
        if value.chars().count() >= HIDDEN_MIN {
            self.hidden.push((value, format!("${{{variable}}}")));
        }
    }

    /// Sorts by place, now that all is found; faults of the whole file, which have none, come last.
    pub fn finish(&mut self) {
        self.hidden.clear();
        let place = |finding: &Finding| finding.span.as_ref().map_or(usize::MAX, |span| span.start);
        self.findings.sort_by_key(place);
    }

    /// `value` if nothing is wrong.
    ///
    /// # Errors
    /// Itself, finished, if it has a fault.
    pub fn or<T>(mut self, value: T) -> Result<T, Self> {
        self.finish();
        match self.faults() {
            0 => Ok(value),
            _ => Err(self),
        }
    }

    /// Drops what was found of the file as a whole: it is not known whole.
    pub fn forget_absences(&mut self) {
        self.findings.retain(|finding| finding.span.is_some());
    }

    /// Of the findings after the first `known`, keeps those whose places `keep` accepts.
    pub fn retain_from(&mut self, known: usize, keep: impl Fn(&Range<usize>) -> bool) {
        let mut number = 0;
        self.findings.retain(|finding| {
            number += 1;
            number <= known || finding.span.as_ref().is_none_or(&keep)
        });
    }

    /// The line, from 1, on which a byte stands in its file.
    #[must_use]
    pub fn line(&self, offset: usize) -> usize {
        self.sources.line(offset)
    }

    /// The line, from 1, when the lines of all files are counted.
    pub(crate) fn line_of_all(&self, offset: usize) -> usize {
        self.sources.line_of_all(offset)
    }

    /// The name of the file that a byte is in.
    pub fn name(&self, offset: usize) -> &str {
        self.sources.name(offset)
    }

    /// Where a byte stands, in words for a finding at another: the file is named if it is another.
    pub fn spot(&self, offset: usize, finding: usize) -> String {
        let (name, line) = (self.name(offset), self.line(offset));
        if self.sources.start_of(offset) == self.sources.start_of(finding) {
            format!("line {line}")
        } else {
            format!("{name}:{line}")
        }
    }

    /// Whether there are more faults than are shown, so that hints are no longer worth their time.
    pub fn is_full(&self) -> bool {
        self.findings.len() > SHOWN_MAX
    }

    /// Everything found.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Where one of its findings is.
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

    /// The line that a byte is on.
    fn excerpt(&self, start: usize) -> excerpt::Line<'_> {
        let file = self.sources.around(start);
        excerpt::Line::at(&self.sources.text()[..file.end], file.start, start)
    }

    /// How many findings keep the file from being used.
    #[must_use]
    pub fn faults(&self) -> usize {
        self.count(Severity::Fault)
    }

    /// How many findings are warnings.
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
        match self.findings.len().checked_sub(SHOWN_MAX) {
            Some(rest) if rest > 0 => writeln!(f, "{}: and {rest} more", self.sources.name(0)),
            _ => Ok(()),
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

/// Findings shown at most: past that, a file is not a configuration with slips in it.
const SHOWN_MAX: usize = 100;

/// Letters of a value that is hidden, at least.
const HIDDEN_MIN: usize = 4;

#[cfg(test)]
mod tests;
