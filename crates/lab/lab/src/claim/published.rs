//! The ratio that a source has published of a claim, and what our interval says of it.

use catamaran_stats::repetition::{Finding, next_start, of_range, of_ratio};

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
    /// Whether ours bears the published ratio out; `None` if nothing was published of this case.
    ///
    /// A ratio is of single runs, so it is held against what one more start would give, and can be refuted also where our own
    /// claim is open; a range against our interval. It is open where a gate forbids the claim or starts are too few, and of
    /// the longest requests of two runs.
    #[must_use]
    pub fn finding(&self) -> Option<Finding> {
        let published = self.published?;
        if self.without_verdict().is_some() || self.measure.is_maximum() {
            return Some(Finding::Open);
        }
        let found = match published {
            PublishedRatio::One(ratio) => {
                let next = self.next_start();
                next.map(|next| of_ratio(ratio, next, self.is_decided()))
            }
            PublishedRatio::Range(range) => {
                let ours = self.low.zip(self.high).filter(|_| self.is_decided());
                ours.map(|(low, high)| of_range(range, [low, high]))
            }
        };
        Some(found.unwrap_or(Finding::Open))
    }

    /// The ratio that one more start would have, with a probability of 95 %; wider by what the sides lost.
    #[must_use]
    pub fn next_start(&self) -> Option<[f64; 2]> {
        let [low, high] = next_start(&self.starts)?;
        Some([low / self.bias.exp(), high * self.bias.exp()])
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
