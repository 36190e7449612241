//! The value of the `Date` field (RFC 9110, section 6.6.1), formatted once a second on each thread.

use std::cell::RefCell;
use std::time::SystemTime;

use http::HeaderValue;

/// The present date in the fixed format, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(crate) fn now() -> HeaderValue {
    thread_local! {
        static LAST: RefCell<(u64, HeaderValue)> =
            const { RefCell::new((0, HeaderValue::from_static(""))) };
    }
    let now = SystemTime::now();
    let second = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    LAST.with_borrow_mut(|(last_second, date)| {
        if *last_second != second {
            *last_second = second;
            *date = HeaderValue::try_from(httpdate::fmt_http_date(now))
                .expect("a date is letters, digits and punctuation");
        }
        date.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_date_of_now() {
        let text = now().to_str().expect("text").to_owned();
        let parsed = httpdate::parse_http_date(&text).expect("a date");
        let age = SystemTime::now()
            .duration_since(parsed)
            .expect("not in the future");
        assert!(age.as_secs() < 60, "{text}");
    }
}
