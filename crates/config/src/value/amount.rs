//! Durations and sizes with their units.
//!
//! One number and one unit: `90s` or `1.5m` rather than `1m30s`. Numbers of durations may have a
//! point; those of sizes are whole (`1536KiB` rather than `1.5MiB`). This is the grammar of the
//! whole program: files, and the command lines of `app` and `bench`.

use std::time::Duration;

/// Why a text is not a duration.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// A bare number.
    #[error("has no unit; write \"{0}s\" or \"{0}ms\"")]
    Unit(String),
    /// Something else.
    #[error(
        "is not a duration; write a number and its unit (ms, s, m, h) without a space, such as \
         \"90s\" or \"1.5m\""
    )]
    Syntax,
    /// Parts of a millisecond.
    #[error("has parts of a millisecond; write whole milliseconds, such as \"2ms\"")]
    Fine,
    /// More than 64 bits of milliseconds.
    #[error("is too long a duration")]
    Range,
}

/// Reads a duration such as `200ms`, `5s`, `1.5m`, `2h`.
///
/// # Errors
/// When the unit is missing or unknown, or the number is too large or ends within a millisecond.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let (whole, rest) = split(text).ok_or(DurationError::Syntax)?;
    let (decimals, unit) = match rest.strip_prefix('.') {
        Some(rest) => split(rest).ok_or(DurationError::Syntax)?,
        None => ("", rest),
    };
    if unit.is_empty() {
        return Err(DurationError::Unit(text.to_owned()));
    }
    let (_, millis) = DURATION_UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or(DurationError::Syntax)?;
    let whole: u64 = whole.parse().map_err(|_| DurationError::Range)?;
    let part = part_of(*millis, decimals).ok_or(DurationError::Fine)?;
    whole
        .checked_mul(*millis)
        .and_then(|whole| whole.checked_add(part))
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

/// So many decimals of a unit of `millis`; `None`: no whole number of milliseconds.
fn part_of(millis: u64, decimals: &str) -> Option<u64> {
    let decimals = decimals.trim_end_matches('0');
    let count = u32::try_from(decimals.len()).ok()?;
    let scale = 10_u64.checked_pow(count)?;
    let digits = match count {
        0 => 0,
        _ => decimals.parse::<u64>().ok()?,
    };
    let scaled = digits.checked_mul(millis)?;
    scaled.is_multiple_of(scale).then(|| scaled / scale)
}

/// The digits at the beginning, of which there is at least one, and the rest.
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
            ("1.5m", 90_000),
            ("0.25s", 250),
            ("1.50s", 1500),
            ("2.0ms", 2),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_millis(millis)),
                "{text}"
            );
        }
        for text in ["5", "1.5"] {
            assert_eq!(
                parse_duration(text),
                Err(DurationError::Unit(text.to_owned()))
            );
        }
        for text in [
            "", "s", "5 s", "-5s", "5S", "1m30s", "5sec", "٥s", "1.s", ".5s", "1.5.5s", "1,5s",
            "1e3s",
        ] {
            assert_eq!(parse_duration(text), Err(DurationError::Syntax), "{text}");
        }
        for text in ["1.5ms", "0.0001s", "1.00000000000000000000001s"] {
            assert_eq!(parse_duration(text), Err(DurationError::Fine), "{text}");
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
