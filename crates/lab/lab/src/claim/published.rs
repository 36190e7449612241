//! The ratio that a source has published of a claim, and what our interval says of it.

use catamaran_stats::repetition::{Finding, of_range, of_ratio};

use super::{Outcome, number};
use crate::experiment::PublishedRatio;

impl PublishedRatio {
    /// Its ends, which are the same of one ratio.
    #[must_use]
    pub fn ends(self) -> [f64; 2] {
        match self {
            Self::One(ratio) => [ratio, ratio],
            Self::Range(ends) => ends,
        }
    }

    /// Where a picture has rings: both ends, if they are not the same.
    pub(crate) fn rings(self) -> Vec<f64> {
        let mut ends = self.ends().to_vec();
        ends.dedup();
        ends
    }

    /// What an interval of ours from `low` to `high` says of it.
    #[must_use]
    pub fn finding(self, ours: [f64; 2]) -> Finding {
        match self {
            Self::One(ratio) => of_ratio(ratio, ours),
            Self::Range(range) => of_range(range, ours),
        }
    }

    /// As text: `×1.10`, or `×1.10 to ×1.50`.
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
