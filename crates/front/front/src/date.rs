//! The value of the `Date` field (RFC 9110, section 6.6.1), formatted once a second on each thread.

use std::cell::RefCell;
use std::time::{Duration, SystemTime};

use http::HeaderValue;

/// The present date in the fixed format, such as `Sun, 06 Nov 1994 08:49:37 GMT`. `None` if the clock
/// says a time before 1970 or after 9999: it was never set, and without a clock there is to be no
/// `Date`.
pub(crate) fn now() -> Option<HeaderValue> {
    thread_local! {
        static LAST: RefCell<(u64, Option<HeaderValue>)> = const { RefCell::new((0, None)) };
    }
    let now = SystemTime::now();
    let second = now.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs();
    LAST.with_borrow_mut(|(last_second, date)| {
        if *last_second != second {
            *last_second = second;
            *date = at(second);
        }
        date.clone()
    })
}

/// This many seconds after the beginning of 1970.
fn at(second: u64) -> Option<HeaderValue> {
    let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(second))?;
    (second < YEAR_10000).then(|| {
        HeaderValue::try_from(httpdate::fmt_http_date(time))
            .expect("a date is letters, digits and punctuation")
    })
}

/// The format has four digits for the year.
const YEAR_10000: u64 = 253_402_300_800;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_date_of_now() {
        let text = now().expect("a clock").to_str().expect("text").to_owned();
        let parsed = httpdate::parse_http_date(&text).expect("a date");
        let age = SystemTime::now()
            .duration_since(parsed)
            .expect("not in the future");
        assert!(age.as_secs() < 60, "{text}");
    }

    #[test]
    fn a_clock_that_was_never_set_has_no_date() {
        assert_eq!(at(0).unwrap(), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(at(YEAR_10000 - 1).unwrap(), "Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(at(YEAR_10000), None);
        assert_eq!(at(u64::MAX), None);
    }
}
