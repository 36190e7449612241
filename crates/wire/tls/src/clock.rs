//! The clock that rustls uses.

use std::time::{Duration, SystemTime};

use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;

/// The system's clock. A time before 1970 is replaced by the beginning of 1970: rustls' own clock
/// would panic, and certificates that are not valid yet are refused either way.
#[derive(Debug)]
pub(crate) struct SystemClock;

impl TimeProvider for SystemClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(unix_time(SystemTime::now()))
    }
}

fn unix_time(time: SystemTime) -> UnixTime {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    UnixTime::since_unix_epoch(since.unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_begins_in_1970() {
        let second = Duration::from_secs(1);
        let epoch = SystemTime::UNIX_EPOCH;
        assert_eq!(unix_time(epoch - second).as_secs(), 0);
        assert_eq!(unix_time(epoch + second).as_secs(), 1);
    }
}
