//! Reads numbers as ab does, and numbers, durations and stages as people write them.

use std::num::NonZeroU32;
use std::time::Duration;

use catamaran_load::plan::{Operation, Stage};
use catamaran_units::{DurationError, parse_duration, parse_size};

/// Reads a number as C's `atoi` does: blanks, a sign, digits; what follows is ignored, and without digits it is 0.
pub(crate) fn atoi(text: &str) -> i64 {
    let number = text.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
    let (is_negative, digits) = match number.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, number.strip_prefix('+').unwrap_or(number)),
    };
    let mut magnitude = 0_i64;
    for byte in digits.bytes().take_while(u8::is_ascii_digit) {
        let digit = i64::from(byte - b'0');
        magnitude = magnitude.saturating_mul(10).saturating_add(digit);
    }
    // As C's `strtol`: a number beyond 64 bits becomes the largest one, or the smallest.
    let long = match (is_negative, magnitude) {
        (true, i64::MAX) => i64::MIN,
        (true, _) => -magnitude,
        (false, _) => magnitude,
    };
    // glibc's `atoi` keeps the low 32 bits: a number beyond 64 bits becomes -1, a negative one 0.
    i64::from(long as i32)
}

/// Reads a whole number, with `k` for a thousand and `M` for a million; `None` if it is malformed or beyond 64 bits.
pub(crate) fn count(text: &str) -> Option<u64> {
    let (digits, factor) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1000),
        b'm' | b'M' => (&text[..text.len() - 1], 1_000_000),
        _ => (text, 1),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// Reads a number above zero, such as a rate, with `k` and `M` as in [`count`].
pub(crate) fn amount(text: &str) -> Option<f64> {
    let value = match text.as_bytes().last()? {
        b'k' | b'K' => decimal(&text[..text.len() - 1])? * 1e3,
        b'm' | b'M' => decimal(&text[..text.len() - 1])? * 1e6,
        _ => decimal(text)?,
    };
    (value > 0.0).then_some(value)
}

/// Reads a duration with its unit, or a bare number of seconds, since ab's times are seconds.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let duration = match parse_duration(text) {
        Err(DurationError::Unit(seconds)) => parse_duration(&format!("{seconds}s")),
        other => other,
    };
    duration.ok().filter(|duration| *duration <= DURATION_MAX)
}

/// Reads a stage: `30s=100` holds a level, `30s..100` ramps to it. The level may be 0, the time may not.
pub(crate) fn stage(text: &str) -> Option<Stage> {
    let (time, level, ramp) = match text.split_once("..") {
        Some((time, level)) => (time, level, true),
        None => {
            let (time, level) = text.split_once('=')?;
            (time, level, false)
        }
    };
    let level = if level == "0" { 0.0 } else { amount(level)? };
    Some(Stage {
        duration: duration(time).filter(|duration| !duration.is_zero())?,
        level,
        ramp,
    })
}

/// Reads a mix of operations such as `get=9,set=1`: each at most once, and at least one.
pub(crate) fn mix(text: &str) -> Option<Vec<(Operation, NonZeroU32)>> {
    let mut mix: Vec<(Operation, NonZeroU32)> = Vec::new();
    for each in text.split(',') {
        let (word, weight) = each.split_once('=')?;
        let operation = Operation::named(word)?;
        if mix.iter().any(|(known, _)| *known == operation) {
            return None;
        }
        // An operation with the weight 0 is left out.
        if let Some(weight) = NonZeroU32::new(count(weight)?.try_into().ok()?) {
            mix.push((operation, weight));
        }
    }
    (!mix.is_empty()).then_some(mix)
}

/// Reads a number of bytes: a count, or a size with its unit.
pub(crate) fn size(text: &str) -> Option<usize> {
    let bytes = count(text).or_else(|| parse_size(text).ok())?;
    usize::try_from(bytes).ok()
}

/// Reads a plain decimal number: digits with at most one point, and no sign, exponent, `inf` or `nan`.
fn decimal(text: &str) -> Option<f64> {
    let is_plain = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    if is_plain { text.parse().ok() } else { None }
}

/// The longest duration accepted, a year: longer is a typing error, and clocks can still add it.
pub(crate) const DURATION_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_c_reads_numbers() {
        for (text, expected) in [
            ("100", 100),
            ("  12abc", 12),
            ("-5", -5),
            ("+5", 5),
            ("abc", 0),
            ("", 0),
            ("99999999999999999999", -1),
            ("-99999999999999999999", 0),
            ("4294967297", 1),
        ] {
            assert_eq!(atoi(text), expected, "{text:?}");
        }
    }

    #[test]
    fn as_people_write_numbers() {
        for (text, expected) in [
            ("100", Some(100)),
            ("100k", Some(100_000)),
            ("2M", Some(2_000_000)),
            ("1.5k", None),
            ("k", None),
            ("-1", None),
            ("+1", None),
            ("", None),
            ("99999999999999999999", None),
            ("99999999999999999M", None),
        ] {
            assert_eq!(count(text), expected, "{text:?}");
        }
        for (text, expected) in [
            ("0.5", Some(0.5)),
            ("1.5k", Some(1500.0)),
            ("0", None),
            ("inf", None),
            ("1e3", None),
            ("", None),
        ] {
            assert_eq!(amount(text), expected, "{text:?}");
        }
    }

    #[test]
    fn as_people_write_durations() {
        for (text, millis) in [
            ("10", Some(10_000)),
            ("10s", Some(10_000)),
            ("1.5", Some(1500)),
            ("1.5m", Some(90_000)),
            ("0.5", Some(500)),
            ("500ms", Some(500)),
            ("1h", Some(3_600_000)),
            ("s", None),
            ("", None),
            ("-1s", None),
            ("1d", None),
            (".5", None),
            ("99999999h", None),
        ] {
            let duration = duration(text);
            assert_eq!(duration, millis.map(Duration::from_millis), "{text:?}");
        }
    }

    #[test]
    fn mixes_have_each_operation_once() {
        let weight = |weight| NonZeroU32::new(weight).unwrap();
        let both = vec![(Operation::Get, weight(9)), (Operation::Set, weight(1))];
        assert_eq!(mix("get=9,set=1"), Some(both));
        assert_eq!(mix("set=1,get=0"), Some(vec![(Operation::Set, weight(1))]));
        for text in [
            "",
            "get",
            "get=",
            "get=0",
            "get=1,get=2",
            "delete=1",
            "get=-1",
            "get=9999999999",
        ] {
            assert_eq!(mix(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_have_a_unit_or_none() {
        for (text, bytes) in [
            ("100", Some(100)),
            ("10k", Some(10_000)),
            ("64KiB", Some(65_536)),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(size(text), bytes, "{text}");
        }
    }

    #[test]
    fn stages_hold_or_move() {
        let stage_of = |ramp, level| Stage {
            duration: Duration::from_secs(30),
            level,
            ramp,
        };
        assert_eq!(stage("30s=100"), Some(stage_of(false, 100.0)));
        assert_eq!(stage("30s..1.5k"), Some(stage_of(true, 1500.0)));
        assert_eq!(stage("30s..0"), Some(stage_of(true, 0.0)));
        for text in ["30s", "0s=5", "=5", "30s=", "30s=x", "30s=-1"] {
            assert_eq!(stage(text), None, "{text}");
        }
    }
}
