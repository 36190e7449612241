//! Compares a published ratio with ours: whether what the source says holds here.

use catamaran_stats::repetition::Finding;

use super::{Outcome, Verdict, number};
use crate::experiment::{ERA, PublishedRatio, THEN};

impl PublishedRatio {
    /// The lower and the upper end of the published ratio; of a single ratio, the same number twice.
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
    /// Whether what the source says about this case holds here; `None` if it has published no ratio of it.
    ///
    /// The source says which side is larger, and its ratio is a size from single runs. So this is decided by the side
    /// of 1 on which our ratio is, like the claim's own verdict. The sizes are only shown beside each other.
    #[must_use]
    pub fn finding(&self) -> Option<Finding> {
        let is_published_above = self.published?.ends()[0] > 1.0;
        let is_same_side = self
            .ratio
            .is_some_and(|ratio| (ratio > 1.0) == is_published_above);
        Some(match self.verdict {
            Verdict::Differs if is_same_side => Finding::Holds,
            // A difference within the margin counts as none, also on the source's side.
            Verdict::Differs | Verdict::DiffersLittle | Verdict::Same => Finding::DoesNotHold,
            Verdict::Suggests | Verdict::NotShown | Verdict::TooFew | Verdict::NoClaim => {
                Finding::Undecided
            }
        })
    }

    /// The finding in one or two words; empty if the source has published no ratio of this case.
    #[must_use]
    pub fn finding_word(&self) -> &'static str {
        let mut era = self.each.get(ERA).into_iter();
        let is_of_then = era.any(|era| era.to_string() == THEN);
        match self.finding() {
            None => "",
            Some(Finding::Holds) if is_of_then => "holds then",
            Some(Finding::Holds) => "holds now",
            Some(Finding::DoesNotHold) => "does not hold",
            Some(Finding::Undecided) => UNDECIDED,
        }
    }
}

/// The word for a sentence about which nothing is shown.
pub(crate) const UNDECIDED: &str = "undecided";
