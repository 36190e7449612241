//! Request ids, by which an error page and its log line are found together.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// A request id: 16 hexadecimal digits, unique in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestId(u64);

/// Makes the ids of one worker.
#[derive(Debug)]
pub(crate) struct RequestIds(AtomicU64);

impl RequestIds {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(fastrand::u64(..)))
    }

    pub(crate) fn next(&self) -> RequestId {
        let count = self.0.fetch_add(1, Ordering::Relaxed);
        // An odd factor permutes all numbers: neighbours look unlike and never meet.
        RequestId(count.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}

impl RequestId {
    pub(crate) fn number(self) -> u64 {
        self.0
    }

    pub(crate) fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// Its digits, for the log, which is quicker without a formatter.
    pub(crate) fn digits(self) -> [u8; 16] {
        let digit = |place: usize| b"0123456789abcdef"[(self.0 >> (60 - 4 * place)) as usize & 15];
        std::array::from_fn(digit)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_that_are_displayed() {
        for number in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
            let id = RequestId(number);
            assert_eq!(id.digits(), id.to_string().as_bytes());
        }
    }
}
