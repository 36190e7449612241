//! The lengths of answers in texts: whether two runs fetched the same page.

use catamaran_units::show_count;

use crate::published::TextFigures;

/// The mean length of an answer, as the text of a tool tells it.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum AnswerLength {
    /// Bytes of a body.
    Body(f64),
    /// Bytes of head and body.
    Whole(f64),
}

impl AnswerLength {
    pub(super) fn of_figures(figures: &TextFigures) -> Option<Self> {
        // Some tools print the number of answers in thousands.
        let by_rate = figures
            .rate
            .zip(figures.seconds)
            .map(|(rate, seconds)| rate * seconds);
        let counted = || figures.completed.map(|completed| completed as f64);
        let answers = by_rate.or_else(counted).filter(|answers| *answers >= 1.0)?;
        let document = figures.document_bytes.map(|bytes| bytes as f64);
        let mean = || Some(figures.body_bytes? as f64 / answers);
        let body = document.or_else(mean).map(Self::Body);
        body.or_else(|| Some(Self::Whole(figures.bytes? as f64 / answers)))
    }

    /// The lengths of both in words, if they differ by more than servers may with the same page; `None` if they do not,
    /// or if they are not of the same part of an answer.
    pub(super) fn differ(self, other: Self) -> Option<String> {
        let (part, one, two, most) = match (self, other) {
            (Self::Body(one), Self::Body(two)) => ("Bodies", one, two, BODY_APART_MAX),
            (Self::Whole(one), Self::Whole(two)) => ("Answers", one, two, WHOLE_APART_MAX),
            _ => return None,
        };
        let apart = one.max(two) / one.min(two).max(1.0);
        let shown = |bytes: f64| show_count(bytes.round() as u64);
        (apart > most).then(|| {
            format!(
                "{part} of {} bytes in one run, of {} in the other",
                shown(one),
                shown(two)
            )
        })
    }
}

/// The factor by which bodies of one page may differ, between servers that say the time or a name in them.
const BODY_APART_MAX: f64 = 1.05;

/// The factor by which answers with their heads may differ.
const WHOLE_APART_MAX: f64 = 1.5;
