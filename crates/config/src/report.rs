//! The faults of a file, and how they are shown.
//!
//! Other modules find the faults. This one holds them with the text of the file and writes them: one
//! line that says what, where and what to do, then the line of source with the place marked. The
//! contents of a `secret` are never shown.

mod excerpt;

use std::fmt;
use std::ops::Range;

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
    /// The bytes of the file at fault; `None` when the fault is that something is missing.
    pub span: Option<Range<usize>>,
}

impl Finding {
    pub(crate) fn fault(message: impl Into<String>, span: Range<usize>) -> Self {
        let (message, hint) = (message.into(), String::new());
        Self {
            severity: Severity::Fault,
            message,
            hint,
            span: Some(span),
        }
    }

    pub(crate) fn warning(message: impl Into<String>, span: Range<usize>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::fault(message, span)
        }
    }

    /// A fault of the file as a whole, such as a missing table.
    pub(crate) fn absence(message: impl Into<String>) -> Self {
        let (message, hint) = (message.into(), String::new());
        Self {
            severity: Severity::Fault,
            message,
            hint,
            span: None,
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
}

/// The findings of one file, in the order of the file.
#[derive(Clone, Debug)]
pub struct Report {
    name: String,
    text: String,
    /// Where the lines of the text begin.
    lines: Vec<usize>,
    findings: Vec<Finding>,
}

impl Report {
    pub(crate) fn new(name: &str, text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self {
            name: name.to_owned(),
            text: text.to_owned(),
            lines: std::iter::once(0)
                .chain(ends.map(|(end, _)| end + 1))
                .collect(),
            findings: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Sorts by place; faults of the whole file, which have none, come last.
    pub(crate) fn sort(&mut self) {
        let place = |finding: &Finding| finding.span.as_ref().map_or(usize::MAX, |span| span.start);
        self.findings.sort_by_key(place);
    }

    /// Keeps the findings whose line `keep` wants; those of the whole file have none.
    pub(crate) fn retain_lines(&mut self, keep: impl Fn(Option<usize>) -> bool) {
        let lines = &self.lines;
        let line = |finding: &Finding| Some(line_of(lines, finding.span.as_ref()?.start));
        self.findings.retain(|finding| keep(line(finding)));
    }

    /// The line, from 1, on which a byte of the file stands.
    #[must_use]
    pub fn line(&self, offset: usize) -> usize {
        line_of(&self.lines, offset)
    }

    /// Whether there are more faults than are shown, so that hints are no longer worth their time.
    pub(crate) fn is_full(&self) -> bool {
        self.findings.len() > SHOWN_MAX
    }

    /// Everything found.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
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

fn line_of(lines: &[usize], offset: usize) -> usize {
    lines.partition_point(|&start| start <= offset)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secrets = excerpt::secrets(&self.text);
        for finding in self.findings.iter().take(SHOWN_MAX) {
            self.show(finding, &secrets, f)?;
        }
        match self.findings.len().checked_sub(SHOWN_MAX) {
            Some(rest) if rest > 0 => writeln!(f, "{}: and {rest} more", self.name),
            _ => Ok(()),
        }
    }
}

impl Report {
    fn show(
        &self,
        finding: &Finding,
        secrets: &[Range<usize>],
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        let line = finding
            .span
            .as_ref()
            .map(|span| excerpt::Line::at(&self.text, span.start));
        write!(f, "{}:", self.name)?;
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

#[cfg(test)]
mod tests;
