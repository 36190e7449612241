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
        let answers = match (figures.rate, figures.seconds) {
            (Some(rate), Some(seconds)) => rate * seconds,
            _ => figures.completed? as f64,
        };
        if answers < 1.0 {
            return None;
        }
        if let Some(length) = figures.document_bytes {
            return Some(Self::Body(length as f64));
        }
        if let Some(bodies) = figures.body_bytes {
            return Some(Self::Body(bodies as f64 / answers));
        }
        Some(Self::Whole(figures.bytes? as f64 / answers))
    }

    /// A clause on how the lengths differ; `None` if they are close enough to be of the same page, or if one is with
    /// the head and the other is not.
    pub(super) fn differ(self, other: Self) -> Option<String> {
        let (part, one, two, factor_max) = match (self, other) {
            (Self::Body(one), Self::Body(two)) => ("Bodies", one, two, BODY_APART_MAX),
            (Self::Whole(one), Self::Whole(two)) => ("Answers", one, two, WHOLE_APART_MAX),
            _ => return None,
        };
        let factor = one.max(two) / one.min(two).max(1.0);
        if factor <= factor_max {
            return None;
        }
        let [one, two] = [one, two].map(|bytes| show_count(bytes.round() as u64));
        Some(format!(
            "{part} of {one} bytes in one run, of {two} in the other"
        ))
    }
}

/// The largest factor by which the bodies of one page may differ: a page may show the time or the name of its server.
const BODY_APART_MAX: f64 = 1.05;

/// The largest factor by which responses with their heads may differ if they are of one page.
const WHOLE_APART_MAX: f64 = 1.5;
