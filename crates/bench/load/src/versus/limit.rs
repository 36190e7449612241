//! Limits of ratios, as users write them for a comparison: `rate<0.95x`, `cpu>1.05x`.

use thiserror::Error;

use super::{MOVED, TOO_FEW};
use crate::document;
use crate::document::versus::{Measure, Versus};
use crate::gate::{self, Verdict};

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
        let sign = text.find(['<', '>']).ok_or(RatioFault::NoSide)?;
        let name = text[..sign].trim();
        let Some(measure) = MEASURES.into_iter().find(|measure| *measure == name) else {
            return Err(RatioFault::Measure(name.to_owned()));
        };
        let after_sign = &text[sign + 1..];
        let limit = after_sign.strip_prefix('=').unwrap_or(after_sign).trim();
        Ok(Self {
            text: text.to_owned(),
            measure,
            is_above: text[sign..].starts_with('>'),
            limit: factor(limit).ok_or_else(|| RatioFault::Limit(limit.to_owned()))?,
        })
    }

    /// The condition on the ratio among `measures`, with its verdict.
    fn judge(&self, measures: &[Measure]) -> document::Condition {
        let measure = measures
            .iter()
            .find(|measure| measure.measure == self.measure);
        let (verdict, reason) = match measure {
            Some(measure) => self.decide(measure),
            None => (Verdict::Undecided, Some(UNKNOWN.to_owned())),
        };
        let interval = measure.filter(|measure| measure.level.is_some());
        document::Condition {
            condition: self.text.clone(),
            verdict: verdict.word().to_owned(),
            unit: Some("ratio".to_owned()),
            value: interval.and_then(|measure| measure.ratio),
            low: interval.and_then(|measure| measure.low),
            high: interval.and_then(|measure| measure.high),
            reason,
        }
    }

    /// The verdict by the interval of the ratio, with the reason if it is undecided. The condition fails if the whole
    /// interval is beyond the limit, passes if no part of it is, and is undecided otherwise or without an interval.
    fn decide(&self, measure: &Measure) -> (Verdict, Option<String>) {
        if [MOVED, TOO_FEW].contains(&measure.verdict.as_str()) {
            return (Verdict::Undecided, measure.reason.clone());
        }
        // An end that is not given is infinite.
        let low = measure.low.unwrap_or(f64::INFINITY);
        let high = measure.high.unwrap_or(f64::INFINITY);
        let (breaks, holds) = if self.is_above {
            (low > self.limit, high <= self.limit)
        } else {
            (high < self.limit, low >= self.limit)
        };
        let has_interval = measure.level.is_some();
        if has_interval && breaks {
            (Verdict::Failed, None)
        } else if has_interval && holds {
            (Verdict::Passed, None)
        } else {
            (Verdict::Undecided, Some(WITHIN.to_owned()))
        }
    }
}

/// Parses a factor such as `0.95x`; `None` if it is not one.
fn factor(text: &str) -> Option<f64> {
    let number = text.strip_suffix(['x', '×'])?.trim_end();
    // Signs and exponents are not allowed.
    let is_plain = number
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    if is_plain { number.parse().ok() } else { None }
}

impl Versus {
    /// Decides `limits` by the intervals of the ratios, and sets the gate. If the comparison is invalid, all of them
    /// fail. If a target died, or the bodies of the targets differ in length, those that would pass are undecided.
    pub fn decide(&mut self, limits: &[RatioLimit]) {
        let mut conditions: Vec<document::Condition> = limits
            .iter()
            .map(|limit| limit.judge(&self.measures))
            .collect();
        let doubt = match &self.died {
            Some(died) => Some(format!("{} died", died.target.to_uppercase())),
            None => self.unequal_bodies.clone(),
        };
        for condition in &mut conditions {
            if let Some(why) = &self.invalid {
                condition.verdict = Verdict::Failed.word().to_owned();
                condition.reason = Some(why.clone());
            } else if let Some(why) = &doubt
                && condition.verdict == Verdict::Passed.word()
            {
                condition.verdict = Verdict::Undecided.word().to_owned();
                condition.reason = Some(why.clone());
            }
        }
        self.gate = Some(gate::result(conditions));
    }
}

const MEASURES: [&str; 5] = ["rate", "p50", "p99", "errors", "cpu"];

const WITHIN: &str = "the limit lies within the interval: a longer run tells more";

const UNKNOWN: &str =
    "CPU time is known of servers alone that listen on this machine, at a loopback address";
