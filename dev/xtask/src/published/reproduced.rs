//! The figures that the post's own software gives today, from the file of expected figures with which `catamaran lab
//! prepare NAME --check` compares.

use anyhow::Context;
use serde::Deserialize;

/// The figures of one piece of software.
#[derive(Debug, Deserialize)]
pub(super) struct ThenFigures {
    #[serde(rename = "case")]
    cases: Vec<ReproducedCase>,
}

#[derive(Debug, Deserialize)]
struct ReproducedCase {
    name: String,
    figures: Vec<ReproducedFigure>,
}

/// A figure of one request.
#[derive(Debug, Deserialize)]
struct ReproducedFigure {
    name: String,
    #[serde(default)]
    calls: Vec<String>,
    published: f64,
    expected: f64,
}

/// Which figure answers a claim: one of the case `of`, or its quotient by the same figure of the case `over`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ThenPlace {
    /// The name of the figure; `None` for the sum of all figures that count system calls.
    figure: Option<String>,
    of: String,
    over: Option<String>,
}

/// A figure of the post's own software today, and the published one that it is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ThenFigure {
    pub(super) published: Quotient,
    pub(super) ours: Quotient,
}

/// A figure of one request, or the quotient of two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Quotient {
    above: f64,
    below: Option<f64>,
}

impl Quotient {
    pub(super) fn value(self) -> f64 {
        self.above / self.below.unwrap_or(1.0)
    }

    pub(super) fn words(self) -> String {
        match self.below {
            Some(below) => format!("{:.1} / {below:.1}", self.above),
            None => format!("{:.1}", self.above),
        }
    }
}

impl ThenFigures {
    /// The figure at a place: a sum of figures, or a quotient of two such sums.
    ///
    /// # Errors
    ///
    /// There is none.
    pub(super) fn figure(&self, place: &ThenPlace) -> anyhow::Result<ThenFigure> {
        let figure = place.figure.as_deref();
        let [published, ours] = self.sums(&place.of, figure)?;
        let below = match &place.over {
            Some(over) => self.sums(over, figure)?.map(Some),
            None => [None, None],
        };
        Ok(ThenFigure {
            published: Quotient {
                above: published,
                below: below[0],
            },
            ours: Quotient {
                above: ours,
                below: below[1],
            },
        })
    }

    /// The published figure of a case and ours, in this order. Without the name of a figure, both are the sums of all
    /// calls.
    fn sums(&self, case: &str, figure: Option<&str>) -> anyhow::Result<[f64; 2]> {
        let found = self.cases.iter().find(|reproduced| reproduced.name == case);
        let reproduced = found.with_context(|| format!("no figures of the case {case:?}"))?;
        let mut sums = None;
        for candidate in &reproduced.figures {
            let is_included = match figure {
                Some(name) => candidate.name == name,
                None => !candidate.calls.is_empty(),
            };
            if is_included {
                let [published, ours] = sums.unwrap_or([0.0, 0.0]);
                sums = Some([published + candidate.published, ours + candidate.expected]);
            }
        }
        sums.with_context(|| format!("no figure {figure:?} of the case {case:?}"))
    }
}

#[cfg(test)]
impl ThenFigure {
    /// A figure that is no quotient.
    pub(super) fn of(published: f64, ours: f64) -> Self {
        let [published, ours] = [published, ours].map(|above| Quotient { above, below: None });
        Self { published, ours }
    }
}
