//! Durations and sizes as texts with units (`1.5m`, `200ms`, `64KiB`), and counts as people read them
//! (`1,000`).
//!
//! The configuration file and the flags of `catamaran app` and `catamaran bench` are read with this crate, so
//! a value means the same everywhere. A value is one decimal number and one unit without a space between them.
//! There is no sign, no exponent and no sequence such as `1m30s`. The value must be a whole number of
//! nanoseconds or bytes; it is computed exactly, without floating point.
//!
//! ```
//! use std::time::Duration;
//!
//! assert_eq!(catamaran_units::parse_duration("1.5m"), Ok(Duration::from_secs(90)));
//! assert_eq!(catamaran_units::parse_size("1.5KiB"), Ok(1536));
//! ```
#![forbid(unsafe_code)]

use std::time::Duration;

/// Why a text is not a duration.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// The text is a number without a unit.
    #[error("has no unit; write \"{0}s\" or \"{0}ms\"")]
    Unit(String),
    /// The text is not a number with a known unit.
    #[error(
        "is not a duration; write a number and its unit (us, ms, s, m, h) without a space, such as \
         \"90s\" or \"1.5m\""
    )]
    Syntax,
    /// The text is not a number with a unit, where days are one, too.
    #[error(
        "is not a duration; write a number and its unit (s, m, h, d) without a space, such as \"14d\" \
         or \"36h\""
    )]
    Lifetime,
    /// The text is not a whole number of nanoseconds.
    #[error("is too fine a duration; the finest is a nanosecond, \"0.001us\"")]
    Fine,
    /// The text is more than 64 bits of nanoseconds, which are 584 years.
    #[error("is too long a duration")]
    Range,
}

/// Reads a duration such as `200ms`, `5s`, `1.5m` or `2h`.
///
/// # Errors
/// The unit is missing or unknown, or the number is malformed, too large or too fine.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let (number, unit) = Decimal::split(text).ok_or(DurationError::Syntax)?;
    if unit.is_empty() {
        return Err(DurationError::Unit(text.to_owned()));
    }
    let nanos = factor(&DURATION_UNITS, unit).ok_or(DurationError::Syntax)?;
    number.duration(nanos)
}

/// Reads what is left of a lifetime that is counted in days, such as a certificate's: `14d`, or a duration as
/// [`parse_duration`] reads it. A day has 24 hours.
///
/// # Errors
/// As [`parse_duration`].
pub fn parse_lifetime(text: &str) -> Result<Duration, DurationError> {
    match Decimal::split(text) {
        Some((days, "d")) => days.duration(NANOS_OF_DAY),
        _ => parse_duration(text).map_err(|error| match error {
            DurationError::Unit(_) | DurationError::Syntax => DurationError::Lifetime,
            error => error,
        }),
    }
}

/// Writes a count with a comma between thousands, such as `1,000`.
#[must_use]
pub fn show_count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Writes a duration as a whole number of the largest unit that divides it, such as `90s`. What is below a
/// microsecond is left out.
pub fn show_duration(duration: Duration) -> String {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    show(micros.saturating_mul(1000), &DURATION_UNITS, "s")
}

/// Why a text is not a size.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// The unit of the text means 1000 to some and 1024 to others, such as `k`.
    #[error("has an ambiguous unit; write \"{0}{1}iB\" (1024) or \"{0}{2}B\" (1000)")]
    Ambiguous(String, char, char),
    /// The text is not a number with a known unit.
    #[error(
        "is not a size; write a number and its unit (B, KiB, MiB, GiB, kB, MB, GB) without a space, \
         such as \"64KiB\""
    )]
    Syntax,
    /// The text is not a whole number of bytes.
    #[error("is not a whole number of bytes")]
    Fraction,
    /// The text is more than 64 bits of bytes.
    #[error("is too large a size")]
    Range,
}

/// Reads a number of bytes such as `8192`, `64KiB` or `1.5MB`.
///
/// # Errors
/// The unit is unknown or ambiguous (`8k`), or the number is malformed, too large or not whole.
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    let (number, unit) = Decimal::split(text).ok_or(SizeError::Syntax)?;
    let unit = if unit.is_empty() { "B" } else { unit };
    let Some(bytes) = factor(&SIZE_UNITS, unit) else {
        let digits = text.strip_suffix(unit).unwrap_or(text).to_owned();
        return Err(match unit {
            "k" | "K" | "KB" | "kb" => SizeError::Ambiguous(digits, 'K', 'k'),
            "m" | "M" | "mb" => SizeError::Ambiguous(digits, 'M', 'M'),
            "g" | "G" | "gb" => SizeError::Ambiguous(digits, 'G', 'G'),
            _ => SizeError::Syntax,
        });
    };
    number.times(bytes).map_err(|error| match error {
        Inexact::Fraction => SizeError::Fraction,
        Inexact::Overflow => SizeError::Range,
    })
}

/// Writes a size as a whole number of the largest binary unit that divides it, such as `64KiB`.
pub fn show_size(bytes: u64) -> String {
    show(bytes, &SIZE_UNITS[..BINARY_UNITS], "B")
}

/// A decimal number: digits, optionally followed by a point and more digits.
struct Decimal<'a> {
    whole: &'a str,
    /// The digits after the point, without zeros at the end.
    fraction: &'a str,
}

/// Why a product is not a whole number of at most 64 bits.
enum Inexact {
    Fraction,
    Overflow,
}

impl<'a> Decimal<'a> {
    /// Splits a text into the number that it begins with and the rest; `None` if it does not begin with a
    /// number.
    fn split(text: &'a str) -> Option<(Self, &'a str)> {
        let (whole, rest) = digits(text)?;
        let (fraction, unit) = match rest.strip_prefix('.') {
            Some(behind) => digits(behind)?,
            None => ("", rest),
        };
        let fraction = fraction.trim_end_matches('0');
        Some((Self { whole, fraction }, unit))
    }

    fn duration(&self, nanos_of_unit: u64) -> Result<Duration, DurationError> {
        match self.times(nanos_of_unit) {
            Ok(nanos) => Ok(Duration::from_nanos(nanos)),
            Err(Inexact::Fraction) => Err(DurationError::Fine),
            Err(Inexact::Overflow) => Err(DurationError::Range),
        }
    }

    fn times(&self, factor: u64) -> Result<u64, Inexact> {
        let units: u64 = self.whole.parse().map_err(|_| Inexact::Overflow)?;
        let whole = units.checked_mul(factor).ok_or(Inexact::Overflow)?;
        if self.fraction.is_empty() {
            return Ok(whole);
        }
        // A fraction of more than 19 digits is refused: whole results do not need one.
        let places = u32::try_from(self.fraction.len()).unwrap_or(u32::MAX);
        let scale = 10_u64.checked_pow(places).ok_or(Inexact::Fraction)?;
        let fraction: u64 = self.fraction.parse().map_err(|_| Inexact::Fraction)?;
        let product = u128::from(fraction) * u128::from(factor);
        if product % u128::from(scale) != 0 {
            return Err(Inexact::Fraction);
        }
        let part = u64::try_from(product / u128::from(scale)).map_err(|_| Inexact::Overflow)?;
        whole.checked_add(part).ok_or(Inexact::Overflow)
    }
}

/// Splits a text into the digits that it begins with and the rest; `None` if it does not begin with a digit.
fn digits(text: &str) -> Option<(&str, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

fn factor(units: &[(&str, u64)], unit: &str) -> Option<u64> {
    let known = units.iter().find(|(name, _)| *name == unit);
    known.map(|(_, factor)| *factor)
}

fn show(value: u64, units: &[(&str, u64)], unit_of_zero: &str) -> String {
    let divides = |(_, factor): &&(&str, u64)| value.is_multiple_of(*factor) && value >= *factor;
    match units.iter().find(divides) {
        Some((name, factor)) => format!("{}{name}", value / factor),
        None => format!("0{unit_of_zero}"),
    }
}

/// The units of durations with their nanoseconds, the largest first.
const DURATION_UNITS: [(&str, u64); 5] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1000),
];

/// The nanoseconds of a day, which is a unit of lifetimes alone.
const NANOS_OF_DAY: u64 = 24 * 3_600_000_000_000;

/// The units of sizes with their bytes: first the binary ones, the largest first.
const SIZE_UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1000),
];

/// How many of [`SIZE_UNITS`] are binary; only these are used to write a size.
const BINARY_UNITS: usize = 4;

#[cfg(test)]
mod tests;
