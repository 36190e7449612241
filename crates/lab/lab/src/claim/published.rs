//! The ratio that a source has published of a claim, and what our interval says of it.

use catamaran_stats::repetition::{Finding, of_range, of_ratio};

use super::{Outcome, number};
use crate::experiment::PublishedRatio;

impl PublishedRatio {
    /// The lower and the upper end of the ratio; of a single ratio they are the same.
    #[must_use]
    pub fn ends(self) -> [f64; 2] {
        match self {
            Self::One(ratio) => [ratio, ratio],
            Self::Range(ends) => ends,
        }
    }

    /// The ratios at which a picture has rings: one, or both ends.
    pub(crate) fn rings(self) -> Vec<f64> {
        let mut ends = self.ends().to_vec();
        ends.dedup();
        ends
    }

    /// Whether our interval `ours` (lower and upper end) bears this ratio out.
    #[must_use]
    pub fn finding(self, ours: [f64; 2]) -> Finding {
        match self {
            Self::One(ratio) => of_ratio(ratio, ours),
            Self::Range(range) => of_range(range, ours),
        }
    }

    /// The ratio as text: `×1.10`, or `×1.10 to ×1.50`.
    #[must_use]
    pub fn words(self) -> String {
        match self {
            Self::One(ratio) => format!("×{}", number(ratio)),
            Self::Range([low, high]) => format!("×{} to ×{}", number(low), number(high)),
        }
    }
}

impl Outcome {
    /// Whether our interval bears the published ratio out; `None` if nothing was published of this case. It is open if
    /// the claim itself is, and of the longest requests of two runs.
    #[must_use]
    pub fn finding(&self) -> Option<Finding> {
        let published = self.published?;
        let ours = self.low.zip(self.high).filter(|_| self.is_decided());
        Some(ours.map_or(Finding::Open, |(low, high)| published.finding([low, high])))
    }

    fn is_decided(&self) -> bool {
        use super::Verdict::{Differs, DiffersLittle, Same};
        matches!(self.verdict, Differs | DiffersLittle | Same) && !self.measure.is_maximum()
    }
}

/// The verdict on a published figure in a word or two.
#[must_use]
pub fn word(finding: Finding) -> &'static str {
    match finding {
        Finding::Reproduced => "reproduced",
        Finding::Refuted => "refuted here",
        Finding::Open => "open",
    }
}
