//! The `Date` field's value (RFC 9110, section 6.6.1), made anew once a second on each thread.

use std::cell::Cell;
use std::time::SystemTime;

/// A date in the fixed format, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HttpDate([u8; LENGTH]);

impl HttpDate {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The present date.
pub(crate) fn now() -> HttpDate {
    thread_local! {
        static LAST: Cell<(u64, HttpDate)> = const { Cell::new((0, HttpDate([b' '; LENGTH]))) };
    }
    let now = SystemTime::now();
    let second = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let (last_second, last) = LAST.get();
    if last_second == second {
        return last;
    }
    let mut bytes = [b' '; LENGTH];
    // The format has a fixed length for all years of four digits.
    for (slot, byte) in bytes.iter_mut().zip(httpdate::fmt_http_date(now).bytes()) {
        *slot = byte;
    }
    LAST.set((second, HttpDate(bytes)));
    HttpDate(bytes)
}

const LENGTH: usize = "Sun, 06 Nov 1994 08:49:37 GMT".len();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_date_of_now() {
        let text = std::str::from_utf8(&now().0).expect("text").to_owned();
        let parsed = httpdate::parse_http_date(&text).expect("a date");
        let age = SystemTime::now()
            .duration_since(parsed)
            .expect("not in the future");
        assert!(age.as_secs() < 60, "{text}");
    }
}
