//! Limits of ratios, as users write them for a comparison: `rate<0.95x`, `cpu>1.05x`.

use thiserror::Error;

use super::{MOVED, TOO_FEW};
use crate::document;
use crate::document::versus::{Measure, Versus};
use crate::gate::Verdict;

/// A limit of the ratio of the first target to the other one.
#[derive(Clone, Debug, PartialEq)]
pub struct RatioLimit {
    /// The condition as it was written.
    pub text: String,
    measure: &'static str,
    is_above: bool,
    limit: f64,
}

/// Why a text is not a limit of a ratio.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RatioFault {
    /// The text contains neither `<` nor `>`.
    #[error("it has no < or >")]
    NoSide,
    /// The measure is not known.
    #[error("{0:?} is not rate, p50, p99, errors or cpu")]
    Measure(String),
    /// The limit is not a factor such as `0.95x`.
    #[error("{0:?} is not a factor such as 0.95x")]
    Limit(String),
}

impl RatioLimit {
    /// Whether the text is a limit of a ratio and not of a figure: it ends with `x` or `×`.
    #[must_use]
    pub fn is_meant(text: &str) -> bool {
        text.trim_end().ends_with(['x', '×'])
    }

    /// Parses a limit. `<=` is the same as `<`, and `>=` as `>`.
    ///
    /// # Errors
    /// The text is not a limit of a ratio; [`RatioFault`] says why.
    pub fn parse(text: &str) -> Result<Self, RatioFault> {
        let text = text.trim();
        let at = text.find(['<', '>']).ok_or(RatioFault::NoSide)?;
        let name = text[..at].trim();
        let named = MEASURES.iter().find(|measure| **measure == name);
        let rest = &text[at + 1..];
        let limit = rest.strip_prefix('=').unwrap_or(rest).trim();
        let is_plain = |number: &&str| {
            number
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.')
        };
        let factor = limit
            .strip_suffix(['x', '×'])
            .map(str::trim_end)
            .filter(is_plain);
        Ok(Self {
            text: text.to_owned(),
            measure: named.ok_or_else(|| RatioFault::Measure(name.to_owned()))?,
            is_above: text[at..].starts_with('>'),
            limit: factor
                .and_then(|factor| factor.parse().ok())
                .ok_or_else(|| RatioFault::Limit(limit.to_owned()))?,
        })
    }

    /// Decides the condition by the interval of the ratio. It fails if the whole interval is beyond the limit, passes
    /// if no part of it is, and is undecided otherwise or without an interval.
    fn judge(&self, measures: &[Measure]) -> document::Condition {
        let measure = measures.iter().find(|it| it.measure == self.measure);
        let interval = measure.filter(|it| it.level.is_some());
        let low = interval.map(|it| it.low.unwrap_or(f64::INFINITY));
        let high = interval.map(|it| it.high.unwrap_or(f64::INFINITY));
        let (verdict, reason) = match (measure, low, high) {
            (None, ..) => (Verdict::Undecided, Some(UNKNOWN.to_owned())),
            (Some(it), ..) if [MOVED, TOO_FEW].contains(&it.verdict.as_str()) => {
                (Verdict::Undecided, it.reason.clone())
            }
            (_, Some(low), Some(high)) => match self.sides(low, high) {
                (true, _) => (Verdict::Failed, None),
                (_, true) => (Verdict::Passed, None),
                _ => (Verdict::Undecided, Some(WITHIN.to_owned())),
            },
            _ => (Verdict::Undecided, Some(WITHIN.to_owned())),
        };
        let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
        document::Condition {
            condition: self.text.clone(),
            verdict: verdict.word().to_owned(),
            unit: Some("ratio".to_owned()),
            value: interval.and_then(|it| it.ratio),
            low: finite(low),
            high: finite(high),
            reason,
        }
    }

    /// Whether all of an interval breaks the limit, and whether none of it does.
    fn sides(&self, low: f64, high: f64) -> (bool, bool) {
        if self.is_above {
            (low > self.limit, high <= self.limit)
        } else {
            (high < self.limit, low >= self.limit)
        }
    }
}

impl Versus {
    /// Decides `limits` by the intervals of the ratios, and sets the gate. If the comparison is invalid, all of them
    /// fail. If a target died, or the bodies of the targets differ in length, those that would pass are undecided.
    pub fn decide(&mut self, limits: &[RatioLimit]) {
        let mut conditions: Vec<document::Condition> = limits
            .iter()
            .map(|limit| limit.judge(&self.measures))
            .collect();
        let died = self
            .died
            .as_ref()
            .map(|died| format!("{} died", died.target.to_uppercase()));
        let open = died.or_else(|| self.unequal_bodies.clone());
        for condition in &mut conditions {
            if let Some(why) = &self.invalid {
                condition.verdict = Verdict::Failed.word().to_owned();
                condition.reason = Some(why.clone());
            } else if let Some(why) = &open
                && condition.verdict == Verdict::Passed.word()
            {
                condition.verdict = Verdict::Undecided.word().to_owned();
                condition.reason = Some(why.clone());
            }
        }
        let worst = conditions
            .iter()
            .filter_map(|it| Verdict::named(&it.verdict))
            .max();
        self.gate = Some(document::Gate {
            verdict: worst.unwrap_or(Verdict::Passed).word().to_owned(),
            conditions,
        });
    }
}

const MEASURES: [&str; 5] = ["rate", "p50", "p99", "errors", "cpu"];

const WITHIN: &str = "the limit lies within the interval: a longer run tells more";

const UNKNOWN: &str =
    "CPU time is known of servers alone that listen on this machine, at a loopback address";
