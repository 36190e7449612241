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

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
