//! Moments as texts: the value of the `Date` field (RFC 9110, section 6.6.1), formatted once a second on
//! each thread, and what administrators read.

use std::cell::Cell;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use nix::time::{ClockId, clock_gettime};

/// The text of a date in the fixed format of HTTP.
pub(crate) type DateText = [u8; 29];

/// The present date in the fixed format, such as `Sun, 06 Nov 1994 08:49:37 GMT`. `None` if the clock
/// tells a time before 1970 or after 9999, so that it was never set: then no `Date` must be sent.
pub(crate) fn now() -> Option<DateText> {
    thread_local! {
        static LAST: Cell<(u64, Option<DateText>)> = const { Cell::new((0, None)) };
    }
    // The coarse clock is milliseconds late at most.
    let now = clock_gettime(ClockId::CLOCK_REALTIME_COARSE).ok()?;
    let second = u64::try_from(now.tv_sec()).ok()?;
    let (last_second, date) = LAST.get();
    if last_second == second {
        return date;
    }
    let date = at(second);
    LAST.set((second, date));
    date
}

/// The date at `second`, in seconds of the Unix epoch.
fn at(second: u64) -> Option<DateText> {
    if second >= YEAR_10000 {
        return None;
    }
    let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(second))?;
    httpdate::fmt_http_date(time).into_bytes().try_into().ok()
}

/// A time in seconds of the Unix epoch; 0 if it is earlier.
pub(crate) fn unix_seconds(time: SystemTime) -> u64 {
    let since_epoch = time.duration_since(SystemTime::UNIX_EPOCH);
    since_epoch.map_or(0, |since| since.as_secs())
}

/// Formats seconds of the Unix epoch as RFC 3339 has it; as a plain number if they are beyond the calendar.
pub(crate) fn show_moment(seconds: u64) -> String {
    let signed = i64::try_from(seconds).ok();
    match signed.and_then(|seconds| Timestamp::from_second(seconds).ok()) {
        Some(timestamp) => timestamp.to_string(),
        None => seconds.to_string(),
    }
}

/// The first second of the year 10000, in Unix time: the format has only four digits for the year.
const YEAR_10000: u64 = 253_402_300_800;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_date_of_now() {
        let text = String::from_utf8(now().expect("a clock").into()).expect("text");
        let parsed = httpdate::parse_http_date(&text).expect("a date");
        let age = SystemTime::now()
            .duration_since(parsed)
            .expect("not in the future");
        assert!(age.as_secs() < 60, "{text}");
    }

    #[test]
    fn a_clock_that_was_never_set_has_no_date() {
        assert_eq!(at(0).unwrap(), *b"Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(
            at(YEAR_10000 - 1).unwrap(),
            *b"Fri, 31 Dec 9999 23:59:59 GMT"
        );
        assert_eq!(at(YEAR_10000), None);
        assert_eq!(at(u64::MAX), None);
    }
}
