//! Durations and sizes with their units.
//!
//! One whole number and one unit: `90s` rather than `1m30s`, `1536KiB` rather than `1.5MiB`. One
//! way to write a value keeps files comparable by eye.

use std::time::Duration;

/// Why a text is not a duration.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// A bare number.
    #[error("has no unit; write \"{0}s\" or \"{0}ms\"")]
    Unit(String),
    /// Something else.
    #[error(
        "is not a duration; write a whole number and its unit (ms, s, m, h) without a space, such \
         as \"90s\""
    )]
    Syntax,
    /// More than 64 bits of milliseconds.
    #[error("is too long a duration")]
    Range,
}

/// Reads a duration such as `200ms`, `5s`, `1m`, `2h`.
///
/// # Errors
/// When the unit is missing or unknown, or the number is not whole or too large.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let (digits, unit) = split(text).ok_or(DurationError::Syntax)?;
    if unit.is_empty() {
        return Err(DurationError::Unit(digits.to_owned()));
    }
    let (_, millis) = DURATION_UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or(DurationError::Syntax)?;
    let number: u64 = digits.parse().map_err(|_| DurationError::Range)?;
    number
        .checked_mul(*millis)
        .map(Duration::from_millis)
        .ok_or(DurationError::Range)
}

/// Writes a duration in the largest unit that divides it.
pub(crate) fn show_duration(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let divides = |(_, unit): &&(&str, u64)| millis.is_multiple_of(*unit) && millis >= *unit;
    let (name, unit) = DURATION_UNITS.iter().find(divides).unwrap_or(&("s", 1000));
    format!("{}{name}", millis / unit)
}

/// Why a text is not a size.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// A unit that means 1000 to some and 1024 to others.
    #[error("has an ambiguous unit; write \"{0}{1}iB\" (1024) or \"{0}{2}B\" (1000)")]
    Ambiguous(String, char, char),
    /// Something else.
    #[error(
        "is not a size; write a whole number and its unit (B, KiB, MiB, GiB, kB, MB, GB) without a \
         space, such as \"64KiB\""
    )]
    Syntax,
    /// More than 64 bits of bytes.
    #[error("is too large a size")]
    Range,
}

/// Reads a number of bytes such as `8192`, `64KiB`, `10MB`.
///
/// # Errors
/// When the unit is unknown or ambiguous (`8k`), or the number is not whole or too large.
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    let (digits, unit) = split(text).ok_or(SizeError::Syntax)?;
    let number: u64 = digits.parse().map_err(|_| SizeError::Range)?;
    if unit.is_empty() {
        return Ok(number);
    }
    if let Some((_, bytes)) = SIZE_UNITS.iter().find(|(name, _)| *name == unit) {
        return number.checked_mul(*bytes).ok_or(SizeError::Range);
    }
    Err(match unit {
        "k" | "K" | "KB" | "kb" => SizeError::Ambiguous(digits.to_owned(), 'K', 'k'),
        "m" | "M" | "mb" => SizeError::Ambiguous(digits.to_owned(), 'M', 'M'),
        "g" | "G" | "gb" => SizeError::Ambiguous(digits.to_owned(), 'G', 'G'),
        _ => SizeError::Syntax,
    })
}

/// Writes a size in the largest binary unit that divides it.
pub(crate) fn show_size(bytes: u64) -> String {
    let divides = |(_, unit): &&(&str, u64)| bytes.is_multiple_of(*unit) && bytes >= *unit;
    let (name, unit) = SIZE_UNITS.iter().take(4).find(divides).unwrap_or(&("B", 1));
    format!("{}{name}", bytes / unit)
}

fn split(text: &str) -> Option<(&str, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// Units of durations in milliseconds, largest first.
const DURATION_UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// Units of sizes in bytes, the binary ones first and largest first.
const SIZE_UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1000),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_durations() {
        for (text, millis) in [
            ("0s", 0),
            ("200ms", 200),
            ("5s", 5000),
            ("1m", 60_000),
            ("2h", 7_200_000),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_millis(millis)),
                "{text}"
            );
        }
        assert_eq!(
            parse_duration("5"),
            Err(DurationError::Unit("5".to_owned()))
        );
        for text in ["", "s", "5 s", "-5s", "1.5s", "5S", "1m30s", "5sec", "٥s"] {
            assert_eq!(parse_duration(text), Err(DurationError::Syntax), "{text}");
        }
        for text in ["18446744073709551615h", "99999999999999999999s"] {
            assert_eq!(parse_duration(text), Err(DurationError::Range), "{text}");
        }
    }

    #[test]
    fn reads_sizes() {
        for (text, bytes) in [
            ("0", 0),
            ("8192", 8192),
            ("64KiB", 65536),
            ("1MB", 1_000_000),
            ("7B", 7),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        let message = parse_size("8k").map_err(|error| error.to_string());
        let expected = "has an ambiguous unit; write \"8KiB\" (1024) or \"8kB\" (1000)";
        assert_eq!(message, Err(expected.to_owned()));
        for text in ["", "KiB", "8 KiB", "-1", "1.5MiB", "8kib"] {
            assert_eq!(parse_size(text), Err(SizeError::Syntax), "{text}");
        }
        for text in ["18446744073709551615GiB", "99999999999999999999"] {
            assert_eq!(parse_size(text), Err(SizeError::Range), "{text}");
        }
    }

    #[test]
    fn writes_what_it_reads() {
        for text in ["0s", "1ms", "1500ms", "90s", "1m", "24h"] {
            assert_eq!(show_duration(parse_duration(text).unwrap()), text);
        }
        for text in ["0B", "1B", "8KiB", "1536KiB", "3MiB", "2GiB"] {
            assert_eq!(show_size(parse_size(text).unwrap()), text);
        }
    }
}
