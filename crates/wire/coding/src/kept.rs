//! The coded forms of one body that is kept: each is made once, and sent to all clients that accept it.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use arrayvec::ArrayVec;
use bytes::Bytes;

use crate::accept::Coding;

/// The coded forms of one body. They never change: [`Self::with`] returns a new value that has one more.
#[derive(Debug, Default)]
pub struct CodedBodies {
    bodies: ArrayVec<(Coding, Bytes), { Coding::ALL.len() }>,
    /// How many requests asked for a coding that had not been made.
    wanted: AtomicU32,
    /// Whether a coding is being made.
    is_under_way: AtomicBool,
}

impl CodedBodies {
    /// The body in this coding; `None` if it has not been made.
    #[must_use]
    pub fn get(&self, coding: Coding) -> Option<&Bytes> {
        let found = self.bodies.iter().find(|(known, _)| *known == coding);
        found.map(|(_, bytes)| bytes)
    }

    /// Counts a request for a coding that has not been made. Returns `true` from the second such request on: then
    /// making one pays off. All codings of the body share one count.
    #[must_use]
    pub fn is_wanted_again(&self) -> bool {
        self.wanted.fetch_add(1, Ordering::Relaxed) > 0
    }

    /// Claims the making of a coding; `false` if another task makes one. Call [`Self::end`] if the coding is not kept.
    #[must_use]
    pub fn begin(&self) -> bool {
        !self.is_under_way.swap(true, Ordering::Relaxed)
    }

    /// Ends the coding that [`Self::begin`] announced, after a failure, so that another request may begin it.
    pub fn end(&self) {
        self.is_under_way.store(false, Ordering::Relaxed);
    }

    /// A copy of these codings with one more.
    #[must_use]
    pub fn with(&self, coding: Coding, bytes: Bytes) -> Self {
        let mut kept = self.clone();
        if kept.get(coding).is_none() {
            kept.bodies.try_push((coding, bytes)).ok();
        }
        kept
    }

    /// The bytes of all codings together.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bodies.iter().map(|(_, bytes)| bytes.len()).sum()
    }

    /// Whether no coding has been made.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bodies.is_empty()
    }
}

impl Clone for CodedBodies {
    /// Copies the codings that were made, not the claim on one that is being made.
    fn clone(&self) -> Self {
        Self {
            bodies: self.bodies.clone(),
            wanted: AtomicU32::new(self.wanted.load(Ordering::Relaxed)),
            is_under_way: AtomicBool::new(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_kept_once_and_worth_it_from_the_second_time_on() {
        let none = CodedBodies::default();
        assert!(!none.is_wanted_again() && none.is_wanted_again());
        assert!(none.is_empty() && none.get(Coding::Gzip).is_none());
        let one = none.with(Coding::Gzip, Bytes::from_static(b"abc"));
        let same = one.with(Coding::Gzip, Bytes::from_static(b"other"));
        assert_eq!(same.get(Coding::Gzip).unwrap(), "abc");
        let both = same.with(Coding::Zstd, Bytes::from_static(b"de"));
        let all = both.with(Coding::Brotli, Bytes::from_static(b"f"));
        assert_eq!((one.len(), both.len(), all.len()), (3, 5, 6));
        assert!(Coding::ALL.iter().all(|it| all.get(*it).is_some()));
        assert!(all.is_wanted_again(), "it goes on counting");
    }

    #[test]
    fn one_makes_it_at_a_time() {
        let bodies = CodedBodies::default();
        assert!(bodies.begin() && !bodies.begin());
        bodies.end();
        assert!(bodies.begin());
        let other = bodies.with(Coding::Gzip, Bytes::new());
        assert!(other.begin(), "another coding");
    }
}
