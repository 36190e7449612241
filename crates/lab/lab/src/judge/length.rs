//! The lengths of responses in texts, which tell whether two runs fetched the same page.

use catamaran_units::show_count;

use crate::published::TextFigures;

/// The mean length of a response in bytes, as far as the text of a tool tells it.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum AnswerLength {
    /// The length of the body.
    Body(f64),
    /// The length of head and body together.
    Whole(f64),
}

impl AnswerLength {
    /// The mean length by the figures of a text; `None` if they do not have it.
    pub(super) fn of_figures(figures: &TextFigures) -> Option<Self> {
        // The product of rate and time is preferred, since some tools print the number of responses rounded to
        // thousands.
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

    /// A clause on how the lengths differ; `None` if they are close enough to be of the same page, or if one is with
    /// the head and the other is not.
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

/// The largest factor by which the bodies of one page may differ: a page may show the time or the name of its server.
const BODY_APART_MAX: f64 = 1.05;

/// The largest factor by which responses with their heads may differ if they are of one page.
const WHOLE_APART_MAX: f64 = 1.5;
