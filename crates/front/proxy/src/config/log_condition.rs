//! Conditions on the exchanges that have a line in the access log.

use std::time::Duration;

use catamaran_units::{DurationError, SizeError, parse_duration, parse_size};
use thiserror::Error;

/// A comparison such as `status >= 400`, which the figures of an exchange meet or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogCondition {
    /// The status is compared; 0 if no response was begun.
    Status(Comparison, u16),
    /// The time from the request's head to the last byte of the response is compared.
    Duration(Comparison, Duration),
    /// The bytes that were sent of the response's body are compared.
    Bytes(Comparison, u64),
}

/// How a figure is compared with the one that a condition has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `>=`
    AtLeast,
    /// `<`
    Below,
    /// `==`
    Equal,
}

/// The figures of an exchange that conditions compare.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoggedFigures {
    pub(crate) status: u16,
    pub(crate) duration: Duration,
    pub(crate) bytes: u64,
}

/// The reason why a text is not a condition.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum LogConditionError {
    /// The text is not a name, a comparison and a value.
    #[error(
        "must be `status`, `duration` or `bytes`, then `>=`, `<` or `==`, then a value, such as \"status >= 400\""
    )]
    Form,
    /// No status has this number.
    #[error(
        "compares with the status {0:?}; write 0, for no response, or a number from 100 to 599"
    )]
    Status(String),
    /// The value is not a duration.
    #[error("compares with the duration {0:?}, which {1}")]
    Duration(String, DurationError),
    /// The value is not a number of bytes.
    #[error("compares with {0:?} bytes, which {1}")]
    Bytes(String, SizeError),
}

impl LogCondition {
    /// Parses a condition such as `status >= 400`, `duration >= 500ms` or `bytes < 1MiB`.
    ///
    /// # Errors
    /// The text has another form, or its value does not fit the name.
    pub fn parse(text: &str) -> Result<Self, LogConditionError> {
        let mut comparisons = COMPARISONS.iter();
        let found = comparisons.find(|(sign, _)| text.contains(sign));
        let (sign, comparison) = *found.ok_or(LogConditionError::Form)?;
        let (name, value) = text.split_once(sign).ok_or(LogConditionError::Form)?;
        let (name, value) = (name.trim(), value.trim());
        let text_of_value = value.to_owned();
        match name {
            "status" => match value.parse() {
                Ok(status @ (0 | 100..=599)) => Ok(Self::Status(comparison, status)),
                _ => Err(LogConditionError::Status(text_of_value)),
            },
            "duration" => parse_duration(value)
                .map(|duration| Self::Duration(comparison, duration))
                .map_err(|error| LogConditionError::Duration(text_of_value, error)),
            "bytes" => parse_size(value)
                .map(|bytes| Self::Bytes(comparison, bytes))
                .map_err(|error| LogConditionError::Bytes(text_of_value, error)),
            _ => Err(LogConditionError::Form),
        }
    }

    /// Whether an exchange with these figures meets the condition.
    pub(crate) fn is_met(self, figures: LoggedFigures) -> bool {
        match self {
            Self::Status(comparison, limit) => comparison.holds(figures.status, limit),
            Self::Duration(comparison, limit) => comparison.holds(figures.duration, limit),
            Self::Bytes(comparison, limit) => comparison.holds(figures.bytes, limit),
        }
    }
}

impl Comparison {
    fn holds<T: Ord>(self, figure: T, limit: T) -> bool {
        match self {
            Self::AtLeast => figure >= limit,
            Self::Below => figure < limit,
            Self::Equal => figure == limit,
        }
    }
}

/// The comparisons as they are written.
const COMPARISONS: [(&str, Comparison); 3] = [
    (">=", Comparison::AtLeast),
    ("==", Comparison::Equal),
    ("<", Comparison::Below),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_compares_one_figure() {
        let figures = LoggedFigures {
            status: 404,
            duration: Duration::from_millis(500),
            bytes: 1024,
        };
        for (text, expected) in [
            ("status >= 400", true),
            ("status>=405", false),
            ("status < 404", false),
            ("status  ==  404", true),
            ("status == 0", false),
            ("duration >= 500ms", true),
            ("duration < 500ms", false),
            ("duration < 0.6s", true),
            ("bytes >= 1KiB", true),
            ("bytes == 1023", false),
        ] {
            let condition = LogCondition::parse(text).expect(text);
            assert_eq!(condition.is_met(figures), expected, "{text}");
        }
    }

    #[test]
    fn whatever_else_is_written_is_refused() {
        for text in [
            "",
            "status",
            "status > 400",
            "status <= 400",
            "status >= ",
            "status >= 4xx",
            "status >= 99",
            "status >= 600",
            "status >= -1",
            "status >= 400 or duration >= 1s",
            "reason == x",
            ">= 400",
            "duration >= 1",
            "duration >= -1s",
            "bytes < many",
            "status = 400",
        ] {
            assert!(LogCondition::parse(text).is_err(), "{text}");
        }
    }
}
