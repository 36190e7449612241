//! The last changes and failures, for whoever asks what happened.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Debug, Default)]
pub(crate) struct Events(Mutex<Ring>);

#[derive(Debug, Default)]
struct Ring {
    events: VecDeque<Event>,
    /// The number of the last one; the first is 1.
    last: u64,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) number: u64,
    /// In milliseconds of the Unix epoch.
    pub(crate) at: u64,
    pub(crate) kind: Kind,
    pub(crate) upstream: String,
    pub(crate) backend: String,
    pub(crate) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An operator, a deadline or a reload changed something.
    Change,
    /// A request failed on a backend.
    Failure,
}

impl Kind {
    pub(crate) fn token(self) -> &'static str {
        match self {
            Self::Change => "change",
            Self::Failure => "failure",
        }
    }
}

impl Events {
    pub(crate) fn push(&self, kind: Kind, upstream: &str, backend: &str, text: String) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let millis = since.map_or(0, |it| it.as_millis());
        let mut ring = self.lock();
        ring.last += 1;
        let event = Event {
            number: ring.last,
            at: u64::try_from(millis).unwrap_or(u64::MAX),
            kind,
            upstream: upstream.to_owned(),
            backend: backend.to_owned(),
            text,
        };
        if ring.events.len() == EVENTS_MAX {
            ring.events.pop_front();
        }
        ring.events.push_back(event);
    }

    /// Those with a higher number, in their order.
    pub(crate) fn after(&self, number: u64) -> Vec<Event> {
        let ring = self.lock();
        let later = |event: &&Event| event.number > number;
        ring.events.iter().filter(later).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Events that are kept.
const EVENTS_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_thousand_are_kept_by_number() {
        let events = Events::default();
        for number in 1..=1005 {
            events.push(Kind::Failure, "u", "b", format!("{number}"));
        }
        let all = events.after(0);
        assert_eq!((all.len(), all[0].number), (1000, 6));
        let last = events.after(1004);
        assert_eq!((last.len(), &last[0].text[..]), (1, "1005"));
        assert_eq!(events.after(u64::MAX), []);
    }
}
