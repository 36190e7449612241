//! Parses dates in header fields (RFC 9110, section 5.6.7): three formats, of which two are obsolete.

use std::time::SystemTime;

use crate::Millis;

/// Parses a date in one of the three formats to milliseconds since the beginning of 1970. Upper and lower
/// case are equal. A date before 1970 becomes the beginning of 1970. `None` if it is not a date: another
/// zone than GMT, another width, or further text.
#[must_use]
pub fn parse(text: &[u8]) -> Option<Millis> {
    let trimmed = text.trim_ascii();
    let has_form = match trimmed.len() {
        // `Sun Nov  6 08:49:37 1994`
        24 => !trimmed.contains(&b','),
        // `Sun, 06 Nov 1994 08:49:37 GMT`
        29 => trimmed[3] == b',',
        // `Sunday, 06-Nov-94 08:49:37 GMT`, with days of other lengths
        30..=33 => trimmed.contains(&b'-'),
        _ => false,
    };
    if !has_form || !trimmed.is_ascii() {
        return None;
    }
    let folded_bytes = fold(trimmed);
    let folded = std::str::from_utf8(&folded_bytes).ok()?;
    let standard = httpdate::parse_http_date(folded).ok();
    let time = standard.or_else(|| on_another_day(folded))?;
    match time.duration_since(std::time::UNIX_EPOCH) {
        Ok(since) => Some(since.as_secs().saturating_mul(1000)),
        Err(_) => Some(0),
    }
}

/// Parses a date with the wrong day of the week, which is ignored because the rest of the date determines
/// it.
fn on_another_day(text: &str) -> Option<SystemTime> {
    let (given_day, rest) = text.split_at(text.find([',', ' '])?);
    let days = match given_day.len() {
        3 => DAYS.map(|day| &day[..3]),
        _ => DAYS,
    };
    if !days.contains(&given_day) {
        return None;
    }
    // One of the seven is the day of the date.
    days.into_iter()
        .find_map(|day| httpdate::parse_http_date(&format!("{day}{rest}")).ok())
}

/// Changes upper and lower case of a date as the library demands: `Sun`, `Nov`, `GMT`.
fn fold(text: &[u8]) -> Vec<u8> {
    let mut folded: Vec<u8> = Vec::with_capacity(text.len());
    for byte in text {
        let begins_word = folded.last().is_none_or(|last| !last.is_ascii_alphabetic());
        folded.push(if begins_word {
            byte.to_ascii_uppercase()
        } else {
            byte.to_ascii_lowercase()
        });
    }
    if folded.ends_with(b"Gmt") {
        let zone = folded.len() - 3;
        folded[zone..].make_ascii_uppercase();
    }
    folded
}

const DAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_forms_are_one_time() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "sun, 06 nov 1994 08:49:37 gmt",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            // It was none of these days.
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "Friday, 06-Nov-94 08:49:37 GMT",
            "Thu Nov  6 08:49:37 1994",
        ] {
            assert_eq!(parse(text.as_bytes()), Some(784_111_777_000), "{text}");
        }
        assert_eq!(parse(b"Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
    }

    #[test]
    fn anything_else_is_no_date() {
        for text in [
            "",
            "0",
            "-1",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 EST",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 8:49:37 GMT",
            "Sun, 06 Nov 94 08:49:37 GMT",
            "Sun, 06 Nov 1994  08:49:37 GMT",
            "Foo, 06 Nov 1994 08:49:37 GMT",
            "Sun 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08.49.37 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse(&[0xff; 29]), None);
    }
}
