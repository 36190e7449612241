//! Parses dates in header fields (RFC 9110, section 5.6.7): three formats, of which two are obsolete.

use std::time::SystemTime;

use crate::Millis;

/// Parses a date in one of the three formats to milliseconds since the beginning of 1970. Upper and lower
/// case are equal. A date before 1970 becomes the beginning of 1970. `None` if it is not a date: another
/// zone than GMT, another width, or further text.
#[must_use]
pub fn parse(text: &[u8]) -> Option<Millis> {
    let text = text.trim_ascii();
    let is_form = match text.len() {
        24 => !text.contains(&b','),
        29 => text.get(3) == Some(&b','),
        30..=33 => text.contains(&b'-'),
        _ => false,
    };
    if !is_form || !text.is_ascii() {
        return None;
    }
    let folded_bytes = fold(text);
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
    let end = text.find([',', ' '])?;
    let days = match end {
        3 => DAYS.map(|day| &day[..3]),
        _ => DAYS,
    };
    if !days.contains(&&text[..end]) {
        return None;
    }
    let rest = &text[end..];
    let dates = days.into_iter().map(|day| format!("{day}{rest}"));
    dates
        .into_iter()
        .find_map(|date| httpdate::parse_http_date(&date).ok())
}

/// Changes upper and lower case of a date as the library demands: `Sun`, `Nov`, `GMT`.
fn fold(text: &[u8]) -> Vec<u8> {
    let mut folded: Vec<u8> = Vec::with_capacity(text.len());
    for byte in text {
        let begins = folded.last().is_none_or(|last| !last.is_ascii_alphabetic());
        folded.push(if begins {
            byte.to_ascii_uppercase()
        } else {
            byte.to_ascii_lowercase()
        });
    }
    if let Some(zone) = folded.len().checked_sub(3).map(|at| &mut folded[at..])
        && zone == b"Gmt"
    {
        zone.make_ascii_uppercase();
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
