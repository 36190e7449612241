//! The conditions of a gate as users write them: `p99>20ms`, `errors>0.1%`, `rate<5000`.

use std::time::Duration;

use catamaran_units::parse_duration;
use thiserror::Error;

/// A condition by which the gate fails: a figure beyond a limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The condition as the user wrote it.
    pub text: String,
    pub(super) measure: Measure,
    pub(super) limit: Limit,
}

/// The figure that a condition compares with its limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Measure {
    /// The number of complete responses per second.
    Rate,
    /// The share of requests that failed, had no response or one that was not 2xx.
    Errors,
    /// A percentile of latency; in an open loop, latency counts from when a request was due.
    Percentile(f64),
}

/// The limit of a condition, in the unit of its figure: milliseconds, requests per second, or a share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limit {
    pub(super) side: Side,
    pub(super) value: f64,
}

/// The side of the limit on which the gate fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Above,
    Below,
}

/// A fault that fails a gate by itself unless it is waived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiver {
    /// Responses with a status outside 200 to 299.
    Non2xx,
    /// Requests that were due and never sent.
    Unsent,
    /// Requests that failed or hung.
    Failed,
    /// A run that was given up or stopped, or whose generator was late.
    Invalid,
}

/// Why a text is not a condition.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConditionFault {
    /// The text contains neither `<` nor `>`.
    #[error("it has no < or >")]
    NoSide,
    /// The figure is not known.
    #[error("{0:?} is not rate, errors or a percentile such as p50, p99 or p99.9")]
    Measure(String),
    /// The limit is not valid for the figure.
    #[error("{value:?} is not {expected}")]
    Limit {
        /// The limit as the user wrote it.
        value: String,
        /// The form of limit that the figure has, in words.
        expected: &'static str,
    },
}

impl Condition {
    /// Whether the limit would still be broken without the delays of the generator itself, which have lengthened
    /// latencies by `delay` at most. `low` is the lower end of the figure's interval; `None`: it lies among requests
    /// that had no response.
    pub(super) fn breaks_without(&self, low: Option<f64>, delay: Duration) -> bool {
        match self.measure {
            // Delays cause no errors.
            Measure::Errors => true,
            // Delays lower the rate by an unknown amount.
            Measure::Rate => false,
            Measure::Percentile(_) => match low {
                Some(low_ms) => low_ms - delay.as_secs_f64() * 1000.0 > self.limit.value,
                None => true,
            },
        }
    }

    /// Parses a condition. `<=` is the same as `<`, and `>=` as `>`.
    ///
    /// # Errors
    /// The text is not a condition; [`ConditionFault`] says why.
    pub fn parse(text: &str) -> Result<Self, ConditionFault> {
        let sign = text.find(['<', '>']).ok_or(ConditionFault::NoSide)?;
        let side = if text[sign..].starts_with('<') {
            Side::Below
        } else {
            Side::Above
        };
        let measure = Measure::parse(text[..sign].trim())?;
        let after_sign = &text[sign + 1..];
        let limit = after_sign.strip_prefix('=').unwrap_or(after_sign).trim();
        let Some(value) = measure.parse_limit(limit) else {
            return Err(ConditionFault::Limit {
                value: limit.to_owned(),
                expected: measure.expected(),
            });
        };
        Ok(Self {
            text: text.trim().to_owned(),
            measure,
            limit: Limit { side, value },
        })
    }
}

impl Measure {
    /// `rate`, `errors`, or a percentile such as `p99.9`.
    fn parse(text: &str) -> Result<Self, ConditionFault> {
        match text {
            "rate" => return Ok(Self::Rate),
            "errors" => return Ok(Self::Errors),
            _ => {}
        }
        match text.strip_prefix('p').and_then(decimal) {
            Some(percent) if percent > 0.0 && percent < 100.0 => Ok(Self::Percentile(percent)),
            _ => Err(ConditionFault::Measure(text.to_owned())),
        }
    }

    /// The unit of the figure and its limit.
    pub(super) fn unit(self) -> &'static str {
        match self {
            Self::Rate => "requests/s",
            Self::Errors => "share",
            Self::Percentile(_) => "ms",
        }
    }

    /// The form that a limit of the figure has, in words.
    fn expected(self) -> &'static str {
        match self {
            Self::Rate => "a number of requests per second such as 5000 or 5k",
            Self::Errors => "a share of the requests such as 0.1%",
            Self::Percentile(_) => "a time with its unit such as 20ms, 800us or 1.5s",
        }
    }

    /// Parses a limit in the unit of the figure; `None` if it is not valid.
    fn parse_limit(self, text: &str) -> Option<f64> {
        // Zero needs no unit.
        if text == "0" {
            return Some(0.0);
        }
        match self {
            Self::Percentile(_) => Some(parse_duration(text).ok()?.as_secs_f64() * 1e3),
            Self::Errors => Some(decimal(text.strip_suffix('%')?.trim())? * 0.01),
            Self::Rate => {
                let number = text.strip_suffix("/s").unwrap_or(text);
                if let Some(thousands) = number.strip_suffix('k') {
                    Some(decimal(thousands.trim())? * 1e3)
                } else if let Some(millions) = number.strip_suffix('M') {
                    Some(decimal(millions.trim())? * 1e6)
                } else {
                    decimal(number.trim())
                }
            }
        }
    }
}

impl Waiver {
    /// All kinds of waivers.
    pub const ALL: [Self; 4] = [Self::Non2xx, Self::Unsent, Self::Failed, Self::Invalid];

    /// The waiver's word on the command line and in files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Non2xx => "non-2xx",
            Self::Unsent => "unsent",
            Self::Failed => "failed",
            Self::Invalid => "invalid",
        }
    }
}

/// Parses a plain decimal number: digits with at most one point, without a sign or an exponent.
fn decimal(text: &str) -> Option<f64> {
    let is_plain = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    if is_plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_users_write_them() {
        for (text, measure, side, value) in [
            ("p99>20ms", Measure::Percentile(99.0), Side::Above, 20.0),
            (
                "p99.9 > 1.5s",
                Measure::Percentile(99.9),
                Side::Above,
                1500.0,
            ),
            ("p99>0.5h", Measure::Percentile(99.0), Side::Above, 1.8e6),
            ("p50>=800us", Measure::Percentile(50.0), Side::Above, 0.8),
            ("errors>0.1%", Measure::Errors, Side::Above, 0.001),
            ("errors>0", Measure::Errors, Side::Above, 0.0),
            ("rate<5000", Measure::Rate, Side::Below, 5000.0),
            ("rate <= 5k/s", Measure::Rate, Side::Below, 5000.0),
        ] {
            let condition = Condition::parse(text).unwrap();
            assert_eq!(condition.measure, measure, "{text}");
            assert_eq!(condition.limit.side, side, "{text}");
            assert!((condition.limit.value - value).abs() < 1e-9, "{text}");
        }
    }

    #[test]
    fn what_is_none_is_told() {
        for (text, expected) in [
            ("p99", "it has no < or >"),
            ("p99=20ms", "it has no < or >"),
            (
                "max>20ms",
                "\"max\" is not rate, errors or a percentile such as p50, p99 or p99.9",
            ),
            (
                "p100>1s",
                "\"p100\" is not rate, errors or a percentile such as p50, p99 or p99.9",
            ),
            (
                "p99>20",
                "\"20\" is not a time with its unit such as 20ms, 800us or 1.5s",
            ),
            (
                "p99>20 ms",
                "\"20 ms\" is not a time with its unit such as 20ms, 800us or 1.5s",
            ),
            (
                "errors>0.1",
                "\"0.1\" is not a share of the requests such as 0.1%",
            ),
            (
                "rate<-1",
                "\"-1\" is not a number of requests per second such as 5000 or 5k",
            ),
        ] {
            assert_eq!(
                Condition::parse(text).unwrap_err().to_string(),
                expected,
                "{text}"
            );
        }
    }
}
